//! How is a kernel built from Rust? With [`FuncBuilder`]: parameters, launch, statements, and values whose operators have
//! the types and promotions of the kernel language.
//!
//! ```
//! use tirx_ir::DType;
//! use tirx_ir::builder::FuncBuilder;
//!
//! let mut f = FuncBuilder::new("scale");
//! let n = f.extent("n");
//! let a = f.tensor("A", [n.clone()], DType::FLOAT32);
//! let b = f.tensor("B", [n.clone()], DType::FLOAT32);
//! f.device_entry();
//! let [bx] = f.cta_id(["bx"], [n.clone().ceildiv(256)]);
//! let [tx] = f.thread_id(["tx"], [256]);
//! let i = f.bind("i", bx * 256 + tx);
//! f.if_then(i.clone().lt(n), |f| f.store(&b, [i.clone()], f.load(&a, [i]) * 2.0));
//! let func = f.finish()?;
//! # Ok::<(), Box<tirx_source::Diagnostic>>(())
//! ```
//!
//! A mistake, such as operands that have no common type, is recorded and becomes the error of [`FuncBuilder::finish`];
//! a value computed from a mistaken one carries the mistake on.

use std::ops;
use std::sync::Arc;

use crate::diagnostic::{Diagnostic, Result};
use crate::source::Span;
use crate::typing::{self, Arithmetic, Operand};
use crate::{
    AttrNode, AttrValue, Attrs, BinOp, Buffer, BufferStore, DType, Expr, ForKind, ForLoop, PrimFunc,
    ScopeIdDef, ScopeIdKind, Stmt, StmtKind, Var, verify_func,
};

/// A value of a kernel under construction: an expression, a Rust number, or a recorded mistake.
#[derive(Clone, Debug)]
pub struct Value(Result<Operand>);

impl Value {
    fn operand(self) -> Result<Operand> {
        self.0
    }

    /// The expression; numbers have the type that the kernel language gives them.
    fn expr(self) -> Result<Expr> {
        typing::literal(self.0?, Span::NONE)
    }

    fn from_result(expr: Result<Expr>) -> Value {
        Value(expr.map(Operand::Expr))
    }

    fn arithmetic(self, op: Arithmetic, other: impl Into<Value>) -> Value {
        let both = || typing::binary(op, self.operand()?, other.into().operand()?, Span::NONE);
        Value::from_result(both())
    }

    fn compare(self, op: BinOp, other: impl Into<Value>) -> Value {
        let both = || typing::compare(op, self.operand()?, other.into().operand()?, Span::NONE);
        Value::from_result(both())
    }

    fn logical(self, op: BinOp, other: impl Into<Value>) -> Value {
        let both = || typing::logical(op, self.operand()?, other.into().operand()?, Span::NONE);
        Value::from_result(both())
    }

    /// `T.cast(self, dtype)`.
    #[must_use]
    pub fn cast(self, dtype: DType) -> Value {
        Value::from_result(
            self.0
                .and_then(|operand| typing::cast(operand, dtype, Span::NONE)),
        )
    }

    /// `T.ceildiv(self, other)`.
    #[must_use]
    pub fn ceildiv(self, other: impl Into<Value>) -> Value {
        let both = || typing::ceildiv(self.operand()?, other.into().operand()?, Span::NONE);
        Value::from_result(both())
    }

    /// `T.if_then_else(self, then, otherwise)`: evaluates one of the two.
    #[must_use]
    pub fn if_then_else(self, then: impl Into<Value>, otherwise: impl Into<Value>) -> Value {
        let all = || {
            let (then, otherwise) = (then.into().operand()?, otherwise.into().operand()?);
            typing::if_then_else(self.operand()?, then, otherwise, Span::NONE)
        };
        Value::from_result(all())
    }
}

macro_rules! methods {
    ($($(#[$doc:meta])* $name:ident, $how:ident, $op:expr;)*) => {
        impl Value {
            $($(#[$doc])*
            #[must_use]
            pub fn $name(self, other: impl Into<Value>) -> Value {
                self.$how($op, other)
            })*
        }
    };
}

methods! {
    /// `self // other`.
    floordiv, arithmetic, Arithmetic::FloorDiv;
    /// `self % other`.
    floormod, arithmetic, Arithmetic::FloorMod;
    /// `T.min(self, other)`.
    min, arithmetic, Arithmetic::Min;
    /// `T.max(self, other)`.
    max, arithmetic, Arithmetic::Max;
    /// `self < other`.
    lt, compare, BinOp::Lt;
    /// `self <= other`.
    le, compare, BinOp::Le;
    /// `self > other`.
    gt, compare, BinOp::Gt;
    /// `self >= other`.
    ge, compare, BinOp::Ge;
    /// `self == other`.
    equals, compare, BinOp::Eq;
    /// `self and other`.
    and, logical, BinOp::And;
    /// `self or other`.
    or, logical, BinOp::Or;
}

macro_rules! operators {
    ($($trait:ident, $method:ident, $op:ident;)*) => {$(
        impl<T: Into<Value>> ops::$trait<T> for Value {
            type Output = Value;
            fn $method(self, other: T) -> Value {
                self.arithmetic(Arithmetic::$op, other)
            }
        }
    )*};
}

operators! {
    Add, add, Add;
    Sub, sub, Sub;
    Mul, mul, Mul;
    Div, div, TrueDiv;
    BitAnd, bitand, BitwiseAnd;
    BitOr, bitor, BitwiseOr;
    BitXor, bitxor, BitwiseXor;
    Shl, shl, ShiftLeft;
    Shr, shr, ShiftRight;
}

impl ops::Neg for Value {
    type Output = Value;
    fn neg(self) -> Value {
        Value::from_result(self.0.and_then(|operand| typing::neg(operand, Span::NONE)))
    }
}

impl From<Expr> for Value {
    fn from(expr: Expr) -> Value {
        Value(Ok(Operand::Expr(expr)))
    }
}

impl From<i32> for Value {
    fn from(value: i32) -> Value {
        Value(Ok(Operand::Int(value.into())))
    }
}

impl From<f64> for Value {
    fn from(value: f64) -> Value {
        Value(Ok(Operand::Float(value)))
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Value {
        Value(Ok(Operand::Bool(value)))
    }
}

/// A kernel that is being built. See the module.
#[derive(Debug)]
pub struct FuncBuilder {
    name: Arc<str>,
    params: Vec<Var>,
    buffer_map: Vec<(Var, Buffer)>,
    /// Statements of each open block; the outermost is the function.
    blocks: Vec<Vec<Stmt>>,
    /// Number of statements before the kernel begins.
    host: Option<usize>,
    mistake: Option<Box<Diagnostic>>,
}

impl FuncBuilder {
    /// A function without parameters and statements.
    pub fn new(name: impl Into<Arc<str>>) -> FuncBuilder {
        FuncBuilder {
            name: name.into(),
            params: Vec::new(),
            buffer_map: Vec::new(),
            blocks: vec![Vec::new()],
            host: None,
            mistake: None,
        }
    }

    fn fail(&mut self, mistake: Box<Diagnostic>) {
        self.mistake.get_or_insert(mistake);
    }

    /// The expression of a value; a mistake becomes the function's, and the value zero.
    fn expr(&mut self, value: impl Into<Value>) -> Expr {
        value.into().expr().unwrap_or_else(|mistake| {
            self.fail(mistake);
            Expr::int32(0)
        })
    }

    fn emit(&mut self, kind: StmtKind) {
        if let Some(block) = self.blocks.last_mut() {
            block.push(Stmt::new(kind, Span::NONE));
        }
    }

    /// An extent of tensors that is known when the kernel is called: `n = T.int32()`.
    pub fn extent(&mut self, name: &str) -> Value {
        Value::from(Expr::var(&Var::new(name, DType::INT32)))
    }

    /// A parameter: a number.
    pub fn scalar(&mut self, name: &str, dtype: DType) -> Value {
        let var = Var::new(name, dtype);
        self.params.push(var.clone());
        Value::from(Expr::var(&var))
    }

    /// A parameter: a tensor, compact and row-major.
    pub fn tensor<V: Into<Value>>(
        &mut self,
        name: &str,
        shape: impl IntoIterator<Item = V>,
        dtype: DType,
    ) -> Buffer {
        let shape: Vec<Expr> = shape.into_iter().map(|extent| self.expr(extent)).collect();
        let buffer = Buffer::fresh(name, shape, dtype, "global", Span::NONE);
        let param = Var::new(format!("{name}_handle"), DType::HANDLE);
        self.params.push(param.clone());
        self.buffer_map.push((param, buffer.clone()));
        buffer
    }

    /// `T.device_entry()`: what follows runs on the device.
    pub fn device_entry(&mut self) {
        let before = self.blocks.first().map_or(0, Vec::len);
        if self.host.is_some() || self.blocks.len() > 1 {
            let text = "the kernel begins once, outside of other statements";
            return self.fail(Box::new(Diagnostic::new(Span::NONE, text)));
        }
        self.host = Some(before);
    }

    fn scope_id<const D: usize, V: Into<Value>>(
        &mut self,
        kind: ScopeIdKind,
        names: [&str; D],
        extents: [V; D],
    ) -> [Value; D] {
        let vars = names.map(|name| Var::new(name, DType::INT32));
        let extents = extents.into_iter().map(|extent| self.expr(extent)).collect();
        self.emit(StmtKind::ScopeId(ScopeIdDef {
            kind,
            vars: vars.to_vec(),
            extents: Some(extents),
            preferred: None,
        }));
        vars.map(|var| Value::from(Expr::var(&var)))
    }

    /// `T.cta_id([…])`: the block's coordinates in a grid of these extents.
    pub fn cta_id<const D: usize, V: Into<Value>>(
        &mut self,
        names: [&str; D],
        extents: [V; D],
    ) -> [Value; D] {
        self.scope_id(ScopeIdKind::CtaId, names, extents)
    }

    /// `T.thread_id([…])`: the thread's coordinates in a block of these extents.
    pub fn thread_id<const D: usize, V: Into<Value>>(
        &mut self,
        names: [&str; D],
        extents: [V; D],
    ) -> [Value; D] {
        self.scope_id(ScopeIdKind::ThreadId, names, extents)
    }

    /// A buffer in a storage scope: `shared`, `local`.
    pub fn alloc<V: Into<Value>>(
        &mut self,
        name: &str,
        shape: impl IntoIterator<Item = V>,
        dtype: DType,
        scope: &str,
    ) -> Buffer {
        let shape: Vec<Expr> = shape.into_iter().map(|extent| self.expr(extent)).collect();
        let buffer = Buffer::fresh(name, shape, dtype, scope, Span::NONE);
        self.emit(StmtKind::AllocBuffer(buffer.clone(), Vec::new()));
        buffer
    }

    /// An element.
    pub fn load<V: Into<Value>>(&self, buffer: &Buffer, indices: impl IntoIterator<Item = V>) -> Value {
        let indices: Result<Vec<Expr>> = indices.into_iter().map(|index| index.into().expr()).collect();
        Value::from_result(indices.and_then(|indices| {
            rank(buffer, indices.len())?;
            Ok(Expr::load(buffer, indices))
        }))
    }

    /// Stores a value, converted to the buffer's type.
    pub fn store<V: Into<Value>>(
        &mut self,
        buffer: &Buffer,
        indices: impl IntoIterator<Item = V>,
        value: impl Into<Value>,
    ) {
        let indices: Vec<Expr> = indices.into_iter().map(|index| self.expr(index)).collect();
        if let Err(mistake) = rank(buffer, indices.len()) {
            return self.fail(mistake);
        }
        let value = self.expr(value.into().cast(buffer.dtype));
        self.emit(StmtKind::BufferStore(BufferStore {
            buffer: buffer.clone(),
            indices,
            value,
            predicate: None,
        }));
    }

    /// A name for a value: `name: T.let = value`.
    pub fn bind(&mut self, name: &str, value: impl Into<Value>) -> Value {
        let value = self.expr(value);
        let var = Var::new(name, value.dtype);
        self.emit(StmtKind::Bind(var.clone(), value));
        Value::from(Expr::var(&var))
    }

    /// An expression for its effect, such as `Expr::call` of a barrier.
    pub fn evaluate(&mut self, value: impl Into<Value>) {
        let value = self.expr(value);
        self.emit(StmtKind::Evaluate(value));
    }

    /// The statements that `body` makes, as one.
    fn block(&mut self, body: impl FnOnce(&mut FuncBuilder)) -> Stmt {
        self.blocks.push(Vec::new());
        body(self);
        Stmt::seq(self.blocks.pop().unwrap_or_default())
    }

    /// Statements that run where the condition holds.
    pub fn if_then(&mut self, condition: impl Into<Value>, then: impl FnOnce(&mut FuncBuilder)) {
        let condition = self.expr(condition);
        let then = self.block(then);
        self.emit(StmtKind::If(condition, then, None));
    }

    /// Runs one of two bodies, by the condition.
    pub fn if_else(
        &mut self,
        condition: impl Into<Value>,
        then: impl FnOnce(&mut FuncBuilder),
        otherwise: impl FnOnce(&mut FuncBuilder),
    ) {
        let condition = self.expr(condition);
        let then = self.block(then);
        let otherwise = self.block(otherwise);
        self.emit(StmtKind::If(condition, then, Some(otherwise)));
    }

    /// A loop over `0..extent`: serial, unrolled or vectorized.
    pub fn for_each(
        &mut self,
        kind: ForKind,
        name: &str,
        extent: impl Into<Value>,
        body: impl FnOnce(&mut FuncBuilder, Value),
    ) {
        let extent = self.expr(extent);
        let var = Var::new(name, extent.dtype);
        let body = self.block(|f| body(f, Value::from(Expr::var(&var))));
        self.emit(StmtKind::For(ForLoop::new(kind, &var, extent, body)));
    }

    /// The function.
    ///
    /// # Errors
    /// The first mistake; no `device_entry`; what the verifier finds.
    pub fn finish(mut self) -> Result<PrimFunc> {
        let name = self.name.clone();
        if let Some(mistake) = self.mistake {
            return Err(mistake);
        }
        let Some(host) = self.host else {
            let diagnostic = Diagnostic::new(Span::NONE, format!("`{}` has no device_entry", self.name));
            return Err(Box::new(diagnostic));
        };
        let mut body = self.blocks.pop().unwrap_or_default();
        let device = Stmt::seq(body.split_off(host));
        let on = Expr::bool(true);
        body.push(Stmt::attr(
            AttrNode::None,
            "tirx.device_entry",
            on,
            device,
            Span::NONE,
        ));
        let func = PrimFunc {
            params: self.params,
            buffer_map: self.buffer_map,
            ret: None,
            attrs: Attrs::from([("global_symbol".into(), AttrValue::Str(self.name))]),
            body: Stmt::seq(body),
            span: Span::NONE,
        };
        match verify_func(&name, &func) {
            Ok(()) => Ok(func),
            Err(mut errors) => Err(Box::new(errors.0.remove(0))),
        }
    }
}

fn rank(buffer: &Buffer, indices: usize) -> Result<()> {
    match buffer.shape.len() {
        rank if rank == indices => Ok(()),
        rank => {
            let text = format!("`{}` has {rank} dimensions, found {indices} indices", buffer.name);
            Err(Box::new(Diagnostic::new(Span::NONE, text)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::print_func;

    #[test]
    fn a_kernel_is_built() {
        let mut f = FuncBuilder::new("rows");
        let n = f.extent("n");
        let a = f.tensor("A", [n.clone(), 8.into()], DType::FLOAT16);
        let b = f.tensor("B", [n.clone()], DType::FLOAT32);
        let s = f.scalar("s", DType::FLOAT32);
        f.device_entry();
        let [bx] = f.cta_id(["bx"], [n.clone().ceildiv(64)]);
        let [tx] = f.thread_id(["tx"], [64]);
        let row = f.bind("row", bx * 64 + tx);
        f.if_then(row.clone().lt(n), |f| {
            let sum = f.alloc("sum", [1], DType::FLOAT32, "local");
            f.store(&sum, [0], 0.0);
            f.for_each(ForKind::Serial, "k", 8, |f, k| {
                let next = f.load(&sum, [0]) + f.load(&a, [row.clone(), k]) * s.clone();
                f.store(&sum, [0], next);
            });
            f.if_else(
                f.load(&sum, [0]).ge(0.0),
                |f| f.store(&b, [row.clone()], f.load(&sum, [0])),
                |f| f.store(&b, [row.clone()], -f.load(&sum, [0])),
            );
        });
        let text = print_func("rows", &f.finish().unwrap());
        for part in [
            "bx = T.cta_id([(n + 64 - 1) // 64])",
            "tx = T.thread_id([64])",
            "if row < n:",
            "sum = sum + T.Cast(\"float32\", A[row, k]) * s",
            "B[row] = sum * T.float32(-1.0)",
        ] {
            assert!(text.contains(part), "{part}\n{text}");
        }
    }

    #[test]
    fn mistakes_are_the_error_at_the_end() {
        let build = |body: &dyn Fn(&mut FuncBuilder, &Buffer)| {
            let mut f = FuncBuilder::new("wrong");
            let a = f.tensor("A", [64], DType::FLOAT32);
            f.device_entry();
            let [_] = f.cta_id(["bx"], [1]);
            let [_] = f.thread_id(["tx"], [64]);
            body(&mut f, &a);
            f.finish().map(|_| ()).map_err(|mistake| mistake.message.clone())
        };
        assert_eq!(build(&|f, a| f.store(a, [0], 1.0)), Ok(()));
        assert_eq!(
            build(&|f, a| f.store(a, [0, 1], 1.0)).unwrap_err(),
            "`A` has 1 dimensions, found 2 indices"
        );
        assert!(
            build(&|f, a| {
                let value = f.load(a, [0, 0]) + 1;
                f.store(a, [0], value);
            })
            .is_err()
        );
        assert!(build(&|f, a| f.if_then(f.load(a, [0]), |_| {})).is_err());
        assert!(
            build(&|f, _| f.device_entry())
                .unwrap_err()
                .contains("begins once")
        );
        assert!(FuncBuilder::new("empty").finish().is_err());
    }
}
