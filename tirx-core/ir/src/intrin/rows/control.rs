//! Choices, jumps, and hints about values.

use super::kinds::*;
use crate::intrin::row::*;
use crate::intrin::{Effect::*, ResultRule};
use crate::ir::DType;

rows! { $ control {
    /// Lazy choice: only the chosen value is evaluated.
    IfThenElse = Row::new("tirx.if_then_else", "if_then_else", special())
        .args(&[arg("cond", ANY), arg("t", ANY), arg("f", ANY)]).value(ResultRule::Arg(1)).effect(Pure);
    /// The condition is usually true.
    Likely = Row::new("tirx.likely", "likely", special()).args(&[arg("cond", ANY)]).value(ResultRule::Arg(0))
        .effect(Annotation).traits(Traits::PLAIN.elementwise());
    /// `pred`; tile primitives in its scope assume that it holds for one value of the scope id `var`: for one lane, one
    /// warp, one warpgroup.
    Filter = Row::new("tirx.filter", "filter", lowered()).args(&[arg("var", ANY), arg("pred", ANY)]).gives(DType::BOOL)
        .effect(Pure);
    /// Asserts to the compiler that the condition holds.
    Assume = Row::new("tirx.assume", "assume", special()).args(&[arg("cond", ANY)]).gives(DType::BOOL).effect(Opaque);
    /// An arbitrary value.
    Undef = Row::new("tirx.undef", "undef", special()).value(ResultRule::Given).effect(ReadState)
        .traits(Traits::PLAIN.whole_vector());
    /// Leaves the innermost loop.
    BreakLoop = Row::new("tirx.break_loop", "break_loop", special()).effect(ControlJump);
    /// Continues with the next iteration of the innermost loop.
    ContinueLoop = Row::new("tirx.continue_loop", "continue_loop", special()).effect(ControlJump);
    /// Ends the thread.
    ThreadReturn = Row::new("tirx.thread_return", "thread_return", special()).effect(ControlJump);
    /// Returns a value from the function.
    Ret = Row::new("tirx.ret", "ret", special()).args(&[arg("value", ANY)]).effect(ControlJump);
    /// The same bits as another dtype.
    Reinterpret = Row::new("tirx.reinterpret", "reinterpret", special()).args(&[arg("value", ANY)])
        .value(ResultRule::Given).effect(Pure);
    /// Whether a pointer is null.
    IsNullptr = Row::new("tirx.isnullptr", "isnullptr", special()).args(&[arg("x", ANY)]).gives(DType::BOOL)
        .effect(Pure);
    /// The lower half of the lanes.
    Vectorlow = Row::new("tirx.vectorlow", "vectorlow", special()).args(&[arg("vec", ANY)]).value(ResultRule::Given)
        .effect(Pure);
    /// The upper half of the lanes.
    Vectorhigh = Row::new("tirx.vectorhigh", "vectorhigh", special()).args(&[arg("vec", ANY)]).value(ResultRule::Given)
        .effect(Pure);
    /// Concatenates two vectors.
    Vectorcombine = Row::new("tirx.vectorcombine", "vectorcombine", special())
        .args(&[arg("vec1", ANY), arg("vec2", ANY)]).value(ResultRule::Given).effect(Pure);
    /// A dtype as an argument (of `tvm_access_ptr`).
    TypeAnnotation = Row::new("tirx.type_annotation", "type_annotation", lowered()).value(ResultRule::Given)
        .effect(Pure);
    /// A tuple of values as one argument.
    TvmTuple = Row::new("tirx.tvm_tuple", "tvm_tuple", lowered()).args(&[rest("values", NODE)]).gives(DType::HANDLE)
        .effect(Pure);
} }
