//! Operations that a GPU does not have, that cannot be combined in one kernel, or that some releases of CUDA do not
//! know.

use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::intrin::mnemonic::lookup::either;
use crate::intrin::mnemonic::{InstructionCall, spelling};
use crate::intrin::row::{Release, Synchronizes};
use crate::intrin::{GpuSet, Op, Operands, Row};
use crate::ir::abi::{Target, is_device, is_subroutine};
use crate::ir::{Expr, ExprKind, Gpu, IRModule, PrimFunc, Stmt, Visitor};
use crate::source::Span;

/// The operations of a module that a target (`sm_90a`) does not have: those of its device functions, or of all
/// functions where it is not lowered.
///
/// # Errors
/// One message for each call, at its line.
pub fn unsupported(module: &IRModule, target: Gpu) -> Result<(), Diagnostics> {
    let device = |func: &PrimFunc| is_device(func) || is_subroutine(func);
    let lowered = module.functions.iter().any(|(_, func)| device(func));
    let functions = module
        .functions
        .iter()
        .filter(|(_, func)| !lowered || device(func));
    let errors: Vec<_> = functions
        .flat_map(|(_, func)| of_function(func, target))
        .collect();
    match errors.is_empty() {
        true => Ok(()),
        false => Err(Diagnostics(errors)),
    }
}

/// How TVM 0.27 writes an operation, for a message: the call may be of either release.
fn in_v27(op: Op) -> String {
    spelling::name(op).map_or_else(String::new, |name| {
        format!(" (TVM 0.27 writes the operation as `{name}`)")
    })
}

/// The same for one function.
pub(super) fn of_function(func: &PrimFunc, target: Gpu) -> Vec<Diagnostic> {
    struct Calls {
        target: Gpu,
        /// The GPU that the function is lowered for.
        own: Option<Gpu>,
        errors: Vec<Diagnostic>,
        /// The first `cta_group` of a tcgen05 operation: its value, the operation and where.
        group: Option<(i128, &'static str, Span)>,
    }
    impl Visitor for Calls {
        fn visit_stmt(&mut self, stmt: &Stmt) {
            if stmt.has_call() {
                self.walk_stmt(stmt);
            }
        }

        fn visit_expr(&mut self, e: &Expr) {
            if !e.has_call() {
                return;
            }
            if let ExprKind::Call { op, args } = &e.kind
                && let Some((what, arch)) = missing(*op, args, self.target)
                && !self.own.is_some_and(|own| is_left_out(*op, own))
            {
                let script = op.info().script;
                let message = format!(
                    "`T.{script}`{what} needs {arch}, and the target is {}",
                    self.target
                );
                let help = match self.own.is_some_and(|_| is_left_out(*op, self.target)) {
                    true => format!(
                        "name {} first: a kernel for older GPUs leaves it out there",
                        self.target
                    ),
                    false => format!(
                        "name a target that has it, such as {}{}",
                        arch.example(),
                        in_v27(*op)
                    ),
                };
                self.errors.push(Diagnostic::new(e.span, message).help(help));
            }
            if let ExprKind::Call {
                op: Op::PtxInstruction,
                args,
            } = &e.kind
            {
                self.errors.extend(lacks_instruction(e.span, args, self.target));
            }
            if let ExprKind::Call { op, args } = &e.kind
                && let Some(group) = tcgen05_group(op.row(), args)
            {
                let script = op.info().script;
                let (first, by, at) = *self.group.get_or_insert((group, script, e.span));
                if group != first {
                    let message = format!(
                        "`T.{script}` has cta_group={group}, and other calls of this kernel have cta_group={first}"
                    );
                    let error = Diagnostic::new(e.span, message)
                        .note(at, format!("`T.{by}` has cta_group={first}"))
                        .help("give all tcgen05 operations of a kernel the same cta_group (PTX ISA, \"tcgen05\")");
                    self.errors.push(error);
                }
            }
            self.walk_expr(e);
        }
    }
    let mut calls = Calls {
        target,
        own: func.attr("target").and_then(Target::from_attr).map(|own| own.gpu),
        errors: Vec::new(),
        group: None,
    };
    calls.visit_stmt(&func.body);
    calls.errors.into_iter().map(|e| e.or_span(func.span)).collect()
}

/// Whether the text leaves an operation out on GPUs that do not have it, in a kernel for this GPU: a grid of an older GPU starts when
/// the previous one has ended, as if it had waited.
pub(super) fn is_left_out(op: Op, own: Gpu) -> bool {
    op.traits().synchronizes == Synchronizes::Grids && !op.gpus().holds(own)
}

/// The error where a target does not have an instruction that is given by its mnemonic.
fn lacks_instruction(span: Span, args: &[Expr], target: Gpu) -> Option<Diagnostic> {
    let call = InstructionCall::read(args).ok()?;
    let gpus = call.tokens.lacking(target)?;
    let text = call.tokens.text();
    let (major, minor) = call.tokens.ptx();
    let message = format!(
        "`{text}` (PTX {major}.{minor}) needs {}, and the target is {target}",
        either(gpus)
    );
    let help = format!("name a target that has it, such as {}", gpus[0].example());
    Some(Diagnostic::new(span, message).help(help))
}

/// A feature that earlier releases of CUDA do not know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Since {
    /// The first release that knows it.
    pub release: Release,
    /// The error with an earlier release, at the call.
    pub error: Diagnostic,
}

/// The operations of a function that not every release of CUDA knows.
pub(super) fn releases(func: &PrimFunc) -> Vec<Since> {
    struct Calls(Vec<Since>, Span);
    impl Visitor for Calls {
        fn visit_stmt(&mut self, stmt: &Stmt) {
            if stmt.has_call() {
                self.walk_stmt(stmt);
            }
        }

        fn visit_expr(&mut self, e: &Expr) {
            if !e.has_call() {
                return;
            }
            if let ExprKind::Call {
                op: Op::PtxInstruction,
                args,
            } = &e.kind
            {
                self.0.extend(since_instruction(e.span.or(self.1), args));
            }
            if let ExprKind::Call { op, args } = &e.kind
                && (!op.row().since.is_empty() || op.row().since_by.is_some())
                && let Ok(operands) = Operands::read(op.row(), args)
            {
                let since = |what: &str, release: Release| {
                    let (major, minor) = release;
                    let message = format!(
                        "`T.{}`{what} needs CUDA {major}.{minor} or later",
                        op.info().script,
                    );
                    let help = format!(
                        "pin it: `cuda = \"{major}.{minor}\"` below `[toolchain]` in the manifest{}",
                        in_v27(*op)
                    );
                    Since {
                        release,
                        error: Diagnostic::new(e.span, message).or_span(self.1).help(help),
                    }
                };
                let of = |(name, value, release): &(&str, &str, Release)| {
                    Some(since(&modifier_phrase(&operands, name, value)?, *release))
                };
                self.0.extend(op.row().since.iter().filter_map(of));
                let by = op.row().since_by.and_then(|by| by(&operands));
                self.0.extend(by.map(|(what, release)| since(what, release)));
            }
            self.walk_expr(e);
        }
    }
    let mut calls = Calls(Vec::new(), func.span);
    calls.visit_stmt(&func.body);
    calls.0
}

/// The release of CUDA that an instruction given by its mnemonic needs.
fn since_instruction(span: Span, args: &[Expr]) -> Option<Since> {
    let call = InstructionCall::read(args).ok()?;
    let (text, (major, minor)) = (call.tokens.text(), call.tokens.ptx());
    let release = cuda_of(call.tokens.ptx())?;
    let (cuda, update) = release;
    let message = format!("`{text}` (PTX {major}.{minor}) needs CUDA {cuda}.{update} or later");
    let help = format!("pin it: `cuda = \"{cuda}.{update}\"` below `[toolchain]` in the manifest");
    Some(Since {
        release,
        error: Diagnostic::new(span, message).help(help),
    })
}

/// The first release of CUDA whose ptxas reads a release of the PTX ISA ("Release History" there); `None` for those before 8.0, which
/// every nvcc that compiles kernels here reads.
fn cuda_of(ptx: (u32, u32)) -> Option<Release> {
    match ptx {
        (8, minor @ 0..=5) => Some((12, minor)),
        // CUDA 12.6 has the PTX of 12.5.
        (8, minor) => Some((12, minor + 1)),
        (9, minor) => Some((13, minor)),
        _ => None,
    }
}

/// The words ` with NAME="VALUE"` of a message, if the call gives the modifier this value. A flag `has_NAME` is written as NAME.
fn modifier_phrase(operands: &Operands, name: &str, value: &str) -> Option<String> {
    let given = operands.get(name)?;
    let (matches, phrase) = match given.as_str() {
        Some(text) => (text == value, format!(" with {name}=\"{text}\"")),
        None => (
            given.as_int()?.to_string() == value,
            format!(" with {}", name.trim_start_matches("has_")),
        ),
    };
    matches.then_some(phrase)
}

/// `cta_group` of a tcgen05 operation: PTX allows one value of it per kernel.
fn tcgen05_group(row: &'static Row, args: &[Expr]) -> Option<i128> {
    if !row.name.starts_with("tirx.ptx.tcgen05") {
        return None;
    }
    Operands::read(row, args).ok()?.int("cta_group")
}

/// The first feature of a call that a target does not have.
fn missing(op: Op, args: &[Expr], target: Gpu) -> Option<(String, GpuSet)> {
    let (row, gpus) = (op.row(), op.gpus());
    if !gpus.holds(target) {
        return Some((String::new(), gpus));
    }
    if row.needs.is_empty() && row.needs_by.is_none() {
        return None;
    }
    let operands = Operands::read(row, args).ok()?;
    let by = row.needs_by.and_then(|needs| needs(&operands));
    if let Some((what, arch)) = by.filter(|(_, arch)| !arch.holds(target)) {
        return Some((what.to_string(), arch));
    }
    row.needs.iter().find_map(|(name, value, arch)| {
        let phrase = modifier_phrase(&operands, name, value)?;
        (!arch.holds(target)).then_some((phrase, *arch))
    })
}
