//! Final device IR to CUDA C++.
//!
//! [`emit`] writes every device function of a module (`calling_conv` 2) as a `__global__` function with C linkage.
//! The text depends on nothing but the module; nvcc accepts it with `-std=c++17` for sm_90a and sm_100a.
//!
//! | file | question |
//! |---|---|
//! | `analysis` | what must be known before the first line |
//! | `aliases` | which pointers are promised to alias no other |
//! | `launch` | signature and launch bounds |
//! | `stmt` | statements |
//! | `expr` | scalar expressions |
//! | `vector` | vector expressions, lane by lane |
//! | `calls` | intrinsics |
//! | `instructions` | packed values and PTX instructions |
//! | `rows`, `asm` | operations that have a row, and the templates of their inline assembly |
//! | `requirements` | which operations the GPU does not have |
//! | `ptx_memory`, `ptx_convert`, `ptx_sync` | PTX with modifiers |
//! | `memory` | pointers, bit casts, atomics |
//! | `threads` | shuffles, ranks, reductions |
//! | `math` | which function computes what, by dtype |
//! | `code` | text with precedence; literals |
//! | `types` | dtypes as C++ types |
//! | `names` | identifiers |
//! | `lines` | which line of the kernel a line of the text came from |
//! | `helpers` | headers and device functions of our own |
//!
//! **Integers.** C++ computes 8- and 16-bit integers in `int`. A cast back stands wherever the upper bits could be
//! seen (`code::Width`), so such arithmetic wraps as the IR says. 32- and 64-bit arithmetic is C++'s own.

mod analysis;
mod asm;
mod calls;
mod code;
mod defects;
mod expr;
mod helpers;
mod instructions;
mod launch;
mod lines;
mod math;
mod memory;
mod names;
mod ptx_convert;
mod ptx_memory;
mod requirements;
mod rows;
mod stmt;
mod threads;
mod types;
mod vector;

pub use requirements::unsupported;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use self::analysis::Facts;
use self::code::Code;
use self::helpers::Needs;
use self::names::Names;
use crate::arith::Analyzer;
use crate::diagnostic::{Diagnostics, Result, error};
use crate::ir::abi::Target;
use crate::ir::abi::{is_device, is_subroutine};
use crate::ir::{DType, IRModule, PrimFunc, Type, Var};
use crate::source::Span;

/// What a kernel parameter is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParamKind {
    /// A pointer to device memory.
    Pointer,
    /// A value of this dtype.
    Scalar(DType),
    /// A tensor map, by value.
    TensorMap,
}

/// A kernel parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParamInfo {
    /// Its name in the text.
    pub name: String,
    /// What it is.
    pub kind: ParamKind,
}

/// A kernel of the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelInfo {
    /// Its name in the image.
    pub symbol: String,
    /// Its parameters in order.
    pub params: Vec<ParamInfo>,
    /// Threads of a block, where constant: the first launch bound.
    pub threads_per_block: Option<u32>,
    /// Bytes of static shared memory.
    pub static_shared_bytes: usize,
    /// Whether the launcher says how much dynamic shared memory there is.
    pub uses_dynamic_shared: bool,
}

/// CUDA C++ of a module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CudaSource {
    /// The text.
    pub text: String,
    /// Where each line of the text came from; `Span::NONE` for lines that no user wrote. What nvcc says of a line is
    /// said of that place.
    pub lines: Vec<Span>,
    /// Its kernels, in order.
    pub kernels: Vec<KernelInfo>,
    /// Names of the raw functions it calls (`T.cuda.func_call`): the simulator needs a stand-in for each.
    pub stand_ins: Vec<String>,
}

/// Writes the device functions of a module.
pub fn emit(module: &IRModule) -> Result<CudaSource, Diagnostics> {
    let mut emitter = Emitter::new(module);
    let mut errors = Vec::new();
    let mut bodies = String::new();
    let mut kernels = Vec::new();
    let functions = module.functions.iter();
    let subroutines = functions.clone().filter(|(_, func)| is_subroutine(func));
    let subroutine_count = subroutines.clone().count();
    let launched = functions.filter(|(_, func)| is_device(func));
    let mut prototypes = String::new();
    for (i, (name, func)) in subroutines.chain(launched).enumerate() {
        let is_kernel = i >= subroutine_count;
        if let Some(target) = func.attr("target").and_then(Target::from_attr) {
            errors.extend(requirements::of_function(func, &target.arch));
        }
        match emitter.definition(func.global_symbol().unwrap_or(name), func, is_kernel) {
            Ok(info) => {
                bodies.push('\n');
                bodies.push_str(&emitter.out);
                if is_kernel {
                    kernels.push(info);
                } else if let Some((signature, _)) = lines::unmarked(&emitter.out).split_once(" {\n") {
                    prototypes.push_str(&format!("{signature};\n"));
                }
            }
            Err(diagnostic) => errors.push(diagnostic.or_span(func.span)),
        }
    }
    if !errors.is_empty() {
        return Err(Diagnostics(errors));
    }
    let mut text = String::from("// Generated by tirx.\n\n");
    text.push_str(&emitter.needs.preamble());
    for function in emitter.generated.values() {
        text.push_str(function);
        text.push('\n');
    }
    let mut written: Vec<&str> = Vec::new();
    for raw in &emitter.raw {
        // One source may define several functions.
        if !written.contains(&&*raw.source) {
            written.push(&raw.source);
            lines::push_raw(
                &mut text,
                raw.source.trim_matches('\n'),
                raw.span,
                &module.sources,
            );
            text.push('\n');
        }
    }
    if !prototypes.is_empty() {
        text.push_str(&prototypes);
        text.push('\n');
    }
    text.push_str(bodies.trim_start_matches('\n'));
    let stand_ins = emitter.raw.iter().map(|r| r.name.clone()).collect();
    let (text, lines) = lines::split(&text);
    Ok(CudaSource {
        text,
        lines,
        kernels,
        stand_ins,
    })
}

/// What a data pointer is called and points to.
#[derive(Clone, Debug)]
struct Pointer {
    name: Arc<str>,
    /// The C++ type of an element.
    element: Cow<'static, str>,
    /// Nothing is stored through it.
    constant: bool,
}

/// A raw function.
struct RawSource {
    name: String,
    source: String,
    span: Span,
}

/// The text under way and what is known about it.
struct Emitter<'m> {
    module: &'m IRModule,
    out: String,
    /// The statement under way: where the lines that are written come from.
    place: Span,
    indent: usize,
    names: Names,
    vars: FxHashMap<Var, Code>,
    pointers: FxHashMap<Var, Pointer>,
    /// Ranges of integer variables.
    analyzer: Analyzer,
    facts: Facts,
    needs: Needs,
    raw: Vec<RawSource>,
    /// Functions that hold one instruction, by name.
    generated: BTreeMap<String, String>,
    static_shared: usize,
    dynamic_shared: bool,
    /// How often an index of a thread is used, of the axes that were bound.
    most_thread_uses: u32,
    /// Names that later functions must not take either.
    reserved_for_good: Vec<String>,
    /// The value of the call under way is not used.
    discards_value: bool,
    /// The function under way gives a value.
    returns_value: bool,
    /// The statement under way computes with vectors of bytes.
    byte_arithmetic: bool,
    /// Of the GPU that the function under way is for, as 90; 0 where that is not said.
    capability: u32,
}

impl<'m> Emitter<'m> {
    fn new(module: &'m IRModule) -> Emitter<'m> {
        Emitter {
            module,
            out: String::new(),
            place: Span::NONE,
            indent: 0,
            names: Names::default(),
            vars: FxHashMap::default(),
            pointers: FxHashMap::default(),
            analyzer: Analyzer::new(),
            facts: Facts::default(),
            needs: Needs::default(),
            raw: Vec::new(),
            generated: BTreeMap::new(),
            static_shared: 0,
            dynamic_shared: false,
            most_thread_uses: 0,
            reserved_for_good: Vec::new(),
            discards_value: false,
            returns_value: false,
            byte_arithmetic: false,
            capability: 0,
        }
    }

    /// One function, launched or called; its text is left in `out`.
    fn definition(&mut self, symbol: &str, func: &PrimFunc, is_kernel: bool) -> Result<KernelInfo> {
        let legal = !symbol.is_empty()
            && !symbol.starts_with(|c: char| c.is_ascii_digit())
            && symbol.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
        if !legal || (names::is_reserved(symbol) && !symbol.contains("__")) {
            return error(
                func.span,
                format!("`{symbol}` cannot be the name of a CUDA function"),
            );
        }
        self.out.clear();
        self.place = func.span;
        self.indent = 0;
        self.vars.clear();
        self.pointers.clear();
        self.analyzer = Analyzer::new();
        self.static_shared = 0;
        self.dynamic_shared = false;
        self.most_thread_uses = 0;
        self.returns_value = !is_kernel && !func.ret_dtype().is_void();
        self.facts = Facts::of(&func.body);
        let target = func.attr("target").and_then(Target::from_attr);
        self.capability = target.map_or(0, |target| target.compute_capability());
        self.names = Names::default();
        for (name, func) in &self.module.functions {
            self.names.reserve(func.global_symbol().unwrap_or(name));
        }
        for name in &self.reserved_for_good {
            self.names.reserve(name);
        }
        self.reserve_called(func);
        self.names.open();
        let (list, params) = self.parameters(func)?;
        let kind = match func.ret_dtype() {
            _ if is_kernel => format!("extern \"C\" __global__ void {}", self.launch_bounds(func)),
            DType::VOID => "static __device__ __forceinline__ void ".to_string(),
            dtype => format!(
                "static __device__ __forceinline__ {} ",
                self.spell(dtype, func.span)?
            ),
        };
        self.line(&format!("{kind}{symbol}({list}) {{"));
        self.block(&func.body)?;
        self.line("}");
        self.names.close();
        Ok(self.info(symbol, params))
    }

    /// Functions that the body calls by name keep their names.
    fn reserve_called(&mut self, func: &PrimFunc) {
        use crate::intrin::Op;
        use crate::ir::{Expr, ExprKind, Visitor};
        struct Called<'n>(&'n mut Names);
        impl Visitor for Called<'_> {
            fn visit_expr(&mut self, expr: &Expr) {
                if let ExprKind::Call {
                    op: Op::CallExtern | Op::CallPureExtern | Op::CudaFuncCall,
                    args,
                } = &expr.kind
                    && let Some(name) = args.first().and_then(Expr::as_str)
                {
                    self.0.reserve(name);
                }
                self.walk_expr(expr);
            }
        }
        Called(&mut self.names).visit_stmt(&func.body);
    }

    /// The pointer of a buffer.
    fn pointer(&mut self, data: &Var, span: Span) -> Result<Pointer> {
        match self.pointers.get(data) {
            Some(pointer) => Ok(pointer.clone()),
            None if matches!(data.ty(), Type::Pointer { scope, .. } if &**scope == "tmem") => error(
                span,
                "tensor memory has no address: it is copied to registers first (Tx.copy_async, T.ptx.tcgen05.ld)",
            ),
            None => error(
                span,
                format!("pointer `{}` is used where it is not defined", data.name()),
            ),
        }
    }

    /// A line at the block's depth.
    fn line(&mut self, text: &str) {
        for _ in 0..self.indent {
            self.out.push_str("  ");
        }
        self.out.push_str(text);
        lines::push_mark(&mut self.out, self.place);
        self.out.push('\n');
    }

    /// Lines that were written at the block's depth, one level deeper.
    fn push_indented(&mut self, text: &str) {
        for line in text.lines() {
            self.out.push_str("  ");
            self.out.push_str(line);
            self.out.push('\n');
        }
    }
}

#[cfg(test)]
mod tests;
