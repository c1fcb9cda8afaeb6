//! One function: its signature and body, and what is known while its text is written.

use std::borrow::Cow;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::analysis::Facts;
use super::code::Code;
use super::defects::digits::Digits;
use super::names::{self, Names};
use super::unit::Unit;
use super::{KernelInfo, lines};
use crate::arith::Analyzer;
use crate::diagnostic::{Diagnostic, Result, error};
use crate::ir::abi::Target;
use crate::ir::at;
use crate::ir::{DType, Gpu, PrimFunc, Type, Var};
use crate::source::Span;

/// The name and the pointee of a data pointer.
#[derive(Clone, Debug)]
pub(super) struct Pointer {
    pub(super) name: Arc<str>,
    /// The C++ type of an element.
    pub(super) element: Cow<'static, str>,
    /// Whether nothing is stored through it.
    pub(super) constant: bool,
}

/// A value that has a name.
pub(super) struct Named {
    pub(super) value: String,
    pub(super) dtype: DType,
    /// The line that names it, and where in the text it stands.
    pub(super) line: String,
    pub(super) at: usize,
    pub(super) name: String,
}

/// The state of printing one function. State that functions share is in `unit`.
pub(super) struct Emitter<'u, 'm> {
    pub(super) unit: &'u mut Unit<'m>,
    pub(super) out: String,
    /// The current statement, which is the origin of the written lines.
    pub(super) place: Span,
    pub(super) indent: usize,
    pub(super) names: Names,
    pub(super) vars: FxHashMap<Var, Code>,
    /// The divisions of the current statement that have a name.
    pub(super) divisions: Vec<Named>,
    pub(super) pointers: FxHashMap<Var, Pointer>,
    /// Ranges of integer variables.
    pub(super) analyzer: Analyzer,
    pub(super) facts: Facts,
    /// The arrays in scope that `wgmma` writes or reads.
    pub(super) wgmma_registers: Vec<String>,
    pub(super) digits: Digits,
    pub(super) static_shared: usize,
    pub(super) dynamic_shared: bool,
    /// How often the most used index of a thread is read, of the axes bound so far.
    pub(super) most_thread_uses: u32,
    /// Whether the value of the current call is unused.
    pub(super) discards_value: bool,
    /// Whether the function returns a value.
    pub(super) returns_value: bool,
    /// Whether the current statement computes with vectors of bytes.
    pub(super) byte_arithmetic: bool,
    /// The function's GPU, if it is known.
    pub(super) gpu: Option<Gpu>,
}

impl<'u, 'm> Emitter<'u, 'm> {
    pub(super) fn new(unit: &'u mut Unit<'m>, func: &PrimFunc, is_kernel: bool) -> Emitter<'u, 'm> {
        let mut names = Names::default();
        for (name, func) in &unit.module.functions {
            names.reserve(func.global_symbol().unwrap_or(name));
        }
        for name in &unit.reserved {
            names.reserve(name);
        }
        let target = func.attr("target").and_then(Target::from_attr);
        Emitter {
            unit,
            out: String::new(),
            place: func.span,
            indent: 0,
            names,
            vars: FxHashMap::default(),
            divisions: Vec::new(),
            pointers: FxHashMap::default(),
            analyzer: Analyzer::new(),
            facts: Facts::from_body(&func.body),
            wgmma_registers: Vec::new(),
            digits: Digits::default(),
            static_shared: 0,
            dynamic_shared: false,
            most_thread_uses: 0,
            discards_value: false,
            returns_value: !is_kernel && !func.ret_dtype().is_void(),
            byte_arithmetic: false,
            gpu: target.map(|target| target.gpu),
        }
    }

    /// The function's text, and the facts that a launcher needs.
    pub(super) fn definition(
        mut self,
        symbol: &str,
        func: &PrimFunc,
        is_kernel: bool,
    ) -> Result<(String, KernelInfo)> {
        let legal = !symbol.is_empty()
            && !symbol.starts_with(|c: char| c.is_ascii_digit())
            && symbol.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
        if !legal || (names::is_reserved(symbol) && !symbol.contains("__")) {
            let message = format!("`{symbol}` cannot be the name of a CUDA function");
            let diagnostic = Diagnostic::new(func.span, message);
            return Err(Box::new(match symbol.is_ascii() {
                true => diagnostic.help(
                    "CUDA, C++ or the generated text has this name: give the kernel another one, with a word before it for example",
                ),
                false => diagnostic.help("give the kernel a name of ASCII letters, digits and `_`"),
            }));
        }
        self.reserve_called(func);
        self.names.open();
        let (list, params) = self.parameters(func)?;
        if !is_kernel {
            // The call may stand in a loop.
            func.params.iter().for_each(|param| self.digits.varies(param));
        }
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
        let info = self.info(symbol, params);
        Ok((self.out, info))
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
                    && let Some(name) =
                        args[at!(CallExtern | CallPureExtern | CudaFuncCall.func_name)].as_str()
                {
                    self.0.reserve(name);
                }
                self.walk_expr(expr);
            }
        }
        Called(&mut self.names).visit_stmt(&func.body);
    }

    /// The pointer of a buffer.
    pub(super) fn pointer(&mut self, data: &Var, span: Span) -> Result<Pointer> {
        match self.pointers.get(data) {
            Some(pointer) => Ok(pointer.clone()),
            None if matches!(data.ty(), Type::Pointer { scope, .. } if &**scope == "tmem") => error(
                span,
                "tensor memory has no address: it is copied to registers first (Tx.copy_async, T.ptx.tcgen05.ld)",
            ),
            None => error(
                span,
                format!("pointer `{}` is used outside of its scope", data.name()),
            ),
        }
    }

    /// A line at the current indentation.
    pub(super) fn line(&mut self, text: &str) {
        for _ in 0..self.indent {
            self.out.push_str("  ");
        }
        self.out.push_str(text);
        lines::push_mark(&mut self.out, self.place);
        self.out.push('\n');
    }

    /// Indents lines that were written at the current indentation one level deeper.
    pub(super) fn push_indented(&mut self, text: &str) {
        for line in text.lines() {
            self.out.push_str("  ");
            self.out.push_str(line);
            self.out.push('\n');
        }
    }
}
