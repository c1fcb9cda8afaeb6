//! The interface of a kernel: the parameters of the typed function, and those of its device functions.
//!
//! Rust, C and Python launchers spell it in their languages.

use rustc_hash::FxHashMap;

use super::{Field, launch, param_uses, tensor_map};
use crate::at;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::intrin::Op;
use crate::ir::{BinOp, DType, Expr, ExprKind, IRModule, PrimFunc, Stmt, StmtKind, Var, Visitor, uses_var};

/// The kind of a parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ParamKind {
    /// A tensor.
    Tensor {
        /// Element type.
        dtype: DType,
        /// Whether the kernel may write it.
        written: bool,
        /// Whether the kernel reads it; true where this is not known.
        read: bool,
        /// Extents in the kernel's words: `n`, `256`.
        shape: Vec<String>,
        /// Strides in the kernel's words; empty for a compact tensor.
        strides: Vec<String>,
        /// Whether a view's offset reaches the kernel apart from its address (declared `elem_offset`).
        at_base: bool,
    },
    /// A value.
    Scalar(DType),
    /// A tensor map that the caller has encoded.
    TensorMap,
    /// A pointer that the kernel does not use.
    Unused,
}

/// A parameter of the typed function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Param {
    /// The kernel's name for it: `A`.
    pub name: String,
    /// Its kind.
    pub kind: ParamKind,
}

impl Param {
    /// What a kernel does with a tensor: `read`, `written`, `read and written`; empty for other parameters.
    pub fn access(&self) -> &'static str {
        match self.kind {
            ParamKind::Tensor {
                read: true,
                written: true,
                ..
            } => "read and written",
            ParamKind::Tensor { written: true, .. } => "written",
            ParamKind::Tensor { .. } => "read",
            _ => "",
        }
    }
}

/// The parameters of the typed function, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Signature {
    /// The parameters.
    pub params: Vec<Param>,
}

impl Signature {
    /// The parameters of a kernel: `authored` is the function as written, `host` the host function of the lowered `module`,
    /// which says what is read and written.
    pub fn from_functions(
        authored: &PrimFunc,
        host: &PrimFunc,
        module: &IRModule,
    ) -> Result<Signature, Diagnostics> {
        let used = used_arguments(host, module);
        let mut errors = Vec::new();
        let mut params = Vec::new();
        for (index, var) in authored.params.iter().enumerate() {
            let (name, kind) = match authored.buffer_of(var) {
                Some(buffer) => {
                    let text = |all: &[Expr]| all.iter().map(extent_text).collect();
                    let kind = ParamKind::Tensor {
                        dtype: buffer.dtype,
                        written: used.written.contains(&index),
                        read: used.read.contains(&index),
                        shape: text(&buffer.shape),
                        strides: text(&buffer.strides),
                        at_base: buffer.elem_offset.as_ref().is_some_and(|o| !o.is_int(0)),
                    };
                    (&*buffer.name, kind)
                }
                None if var.ty().is_tensor_map() => (var.name(), ParamKind::TensorMap),
                None if var.dtype().is_handle() && !uses_var(&authored.body, |used| used == var) => {
                    (var.name(), ParamKind::Unused)
                }
                None if var.dtype().is_handle() => {
                    let message = format!("parameter `{}` is a pointer without a shape", var.name());
                    let help = format!("bind it: `A = T.match_buffer({}, (n,), \"float32\")`", var.name());
                    errors.push(Diagnostic::new(var.span(), message).help(help));
                    continue;
                }
                None => (var.name(), ParamKind::Scalar(var.dtype())),
            };
            params.push(Param {
                name: name.to_string(),
                kind,
            });
        }
        match errors.is_empty() {
            true => Ok(Signature { params }),
            false => Err(Diagnostics(errors)),
        }
    }
}

/// A device function as the image's table needs it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// Its symbol.
    pub symbol: String,
    /// The kinds of its parameters.
    pub params: Vec<FunctionParam>,
}

/// A parameter of a device function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FunctionParam {
    /// A device pointer.
    Pointer,
    /// A scalar of this many bits.
    Scalar(u8),
    /// A tensor map, by value.
    TensorMap,
}

impl FunctionParam {
    /// The kind of a variable as a parameter.
    pub fn from_var(var: &Var) -> FunctionParam {
        match var.dtype() {
            _ if var.ty().is_tensor_map() => FunctionParam::TensorMap,
            dtype if dtype.is_handle() => FunctionParam::Pointer,
            dtype => FunctionParam::Scalar(dtype.bits),
        }
    }
}

/// An extent in the kernel's words, for documentation.
fn extent_text(expr: &Expr) -> String {
    fn go(expr: &Expr, nested: bool) -> String {
        match &expr.kind {
            ExprKind::Var(v) => v.name().to_string(),
            ExprKind::Int(v) => v.to_string(),
            ExprKind::Cast(inner) => go(inner, nested),
            ExprKind::Binary(op, a, b) => {
                let sign = match op {
                    BinOp::Add => "+",
                    BinOp::Sub => "-",
                    BinOp::Mul => "*",
                    BinOp::FloorDiv | BinOp::Div => "//",
                    BinOp::FloorMod | BinOp::Mod => "%",
                    BinOp::Min => return format!("min({}, {})", go(a, false), go(b, false)),
                    BinOp::Max => return format!("max({}, {})", go(a, false), go(b, false)),
                    _ => return "…".to_string(),
                };
                let text = format!("{} {sign} {}", go(a, true), go(b, true));
                if nested { format!("({text})") } else { text }
            }
            _ => "…".to_string(),
        }
    }
    go(expr, false)
}

/// The positions of arguments, by their use in launches.
#[derive(Default)]
struct Used {
    read: Vec<usize>,
    written: Vec<usize>,
}

/// The arguments that some launch may read or write.
fn used_arguments(host: &PrimFunc, module: &IRModule) -> Used {
    /// Pointer variables with the argument they come from.
    struct Origins<'a> {
        module: &'a IRModule,
        args: Option<Var>,
        of: FxHashMap<Var, usize>,
        used: Used,
    }
    impl Origins<'_> {
        fn origin(&self, expr: &Expr) -> Option<usize> {
            match &expr.kind {
                ExprKind::Var(v) => self.of.get(v).copied(),
                ExprKind::Call {
                    op: Op::TvmStructGet,
                    args,
                } => {
                    let object = args.get(at!(TvmStructGet.arr))?;
                    let field = args.get(at!(TvmStructGet.field))?.as_int();
                    if field.and_then(Field::from_number) != Some(Field::ArgValue)
                        || object.as_var() != self.args.as_ref()
                    {
                        return self.origin(object);
                    }
                    let index = args.get(at!(TvmStructGet.index))?.as_int()?;
                    index.try_into().ok()
                }
                _ => expr.operands().find_map(|e| self.origin(e)),
            }
        }
    }
    impl Visitor for Origins<'_> {
        fn visit_stmt(&mut self, stmt: &Stmt) {
            match &stmt.kind {
                StmtKind::Bind(var, value) if var.dtype().is_handle() => {
                    if let Some(index) = self.origin(value) {
                        self.of.insert(var.clone(), index);
                    }
                }
                StmtKind::Evaluate(call) => {
                    if let Some(args) = call.as_call(Op::TvmCallPacked)
                        && let Some(Ok(encode)) = tensor_map::encode(args, call.span)
                        && let Some(index) = self.origin(&encode.address)
                    {
                        // A write through the tensor map is a write to the tensor.
                        self.of.insert(encode.map.clone(), index);
                    }
                    if let Some(args) = call.as_call(Op::TvmCallPacked)
                        && let Some(launch) = launch(self.module, args)
                    {
                        let uses = param_uses(self.module, launch.device);
                        for (arg, uses) in launch.args.iter().zip(uses) {
                            let origin = self.origin(arg);
                            self.used.written.extend(origin.filter(|_| uses.written));
                            self.used.read.extend(origin.filter(|_| uses.read));
                        }
                    }
                }
                _ => {}
            }
            self.walk_stmt(stmt);
        }
    }
    let mut origins = Origins {
        module,
        // (self_handle, args, num_args, result)
        args: host.params.get(1).cloned(),
        of: FxHashMap::default(),
        used: Used::default(),
    };
    origins.visit_stmt(&host.body);
    origins.used
}
