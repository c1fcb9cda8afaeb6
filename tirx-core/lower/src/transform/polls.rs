//! Loops that poll global memory by plain loads.
//!
//! **Idea.** A loop whose condition reads global memory, and which changes nothing that the condition reads, ends only if
//! another thread writes that memory. A plain load says nothing of other threads: nvcc may read once, before the loop, which
//! then never ends. The loop gets a warning, unless something in it keeps the compiler from moving the load: a store, a call
//! that may write memory, a barrier or a fence.

use rustc_hash::FxHashSet;

use crate::diagnostic::Diagnostic;
use crate::intrin::row::{Memory, Synchronizes};
use crate::intrin::{Effect, Op};
use crate::ir::{Buffer, Expr, ExprKind, PrimFunc, Stmt, StmtKind, Var, Visitor};
use crate::source::Span;

/// The warnings of a function.
pub(super) fn warnings(func: &PrimFunc) -> Vec<Diagnostic> {
    let mut loops = Loops(Vec::new());
    loops.visit_stmt(&func.body);
    loops.0
}

struct Loops(Vec<Diagnostic>);

impl Visitor for Loops {
    fn visit_stmt(&mut self, stmt: &Stmt) {
        if let StmtKind::While(condition, body) = &stmt.kind
            && let Some((buffer, span)) = polled(condition, body)
        {
            let message = format!(
                "the loop polls \"{}\" by plain loads, which nvcc may move out of it",
                buffer.name
            );
            self.0.push(
                Diagnostic::new(span.or(stmt.span), message)
                    .label("is read once, if the compiler chooses so")
                    .help(
                        "poll with T.ptx.ld_acquire(pointer, dtype, ptx_type, scope=\"gpu\"), or with T.ptx.ld_volatile and a fence \
                         behind the loop",
                    ),
            );
        }
        self.walk_stmt(stmt);
    }
}

/// The global buffer that a loop waits for by plain loads, and the load.
fn polled(condition: &Expr, body: &Stmt) -> Option<(Buffer, Span)> {
    let mut reads = Reads::default();
    reads.visit_expr(condition);
    let (buffer, span) = reads.global.first()?.clone();
    let mut changes = Changes {
        reads: &reads,
        any: false,
    };
    changes.visit_expr(condition);
    changes.visit_stmt(body);
    (!changes.any).then_some((buffer, span))
}

/// What a condition reads.
#[derive(Default)]
struct Reads {
    /// Loads of global memory.
    global: Vec<(Buffer, Span)>,
    /// The storage of all buffers that it reads.
    data: FxHashSet<Var>,
}

impl Visitor for Reads {
    fn visit_expr(&mut self, expr: &Expr) {
        match &expr.kind {
            // Taking an address reads the indices alone.
            ExprKind::Call {
                op: Op::AddressOf,
                args,
                ..
            } => {
                if let Some(ExprKind::BufferLoad { indices, .. }) = args.first().map(|e| &e.kind) {
                    indices.iter().for_each(|index| self.visit_expr(index));
                    return;
                }
            }
            ExprKind::BufferLoad { buffer, .. } => {
                if buffer.scope() == "global" {
                    self.global.push((buffer.clone(), expr.span));
                }
                self.data.insert(buffer.data.clone());
            }
            _ => {}
        }
        self.walk_expr(expr);
    }
}

/// Whether a loop changes what its condition reads, or keeps the compiler from reading it once.
struct Changes<'a> {
    reads: &'a Reads,
    any: bool,
}

impl Visitor for Changes<'_> {
    fn visit_expr(&mut self, expr: &Expr) {
        // `__nanosleep` is no barrier for the compiler.
        if let ExprKind::Call { op, .. } = &expr.kind
            && *op != Op::CudaNanoSleep
        {
            let traits = op.traits();
            let writes = matches!(traits.memory, Memory::Writes | Memory::ReadsAndWrites);
            let reads = traits.memory == Memory::Reads && op.effect() != Effect::Pure;
            let unknown = matches!(op, Op::CallExtern | Op::CudaFuncCall);
            self.any |= writes || reads || unknown || traits.synchronizes != Synchronizes::Nobody;
        }
        self.walk_expr(expr);
    }

    fn visit_stmt(&mut self, stmt: &Stmt) {
        if let StmtKind::BufferStore(store) = &stmt.kind {
            self.any |= self.reads.data.contains(&store.buffer.data) || store.buffer.scope() != "local";
        }
        self.walk_stmt(stmt);
    }
}

#[cfg(test)]
mod tests {
    use tirx_script::{KernelFile, NoImports};

    use crate::source::SourceMap;

    /// The warnings of a kernel whose thread 0 runs these lines.
    fn warned(lines: &str) -> Vec<String> {
        let text = format!(
            "from tvm.script import tirx as T\n\n@T.prim_func\ndef kernel(F: T.Buffer((2,), 'int32'), n: T.int32):\n    \
             T.device_entry(); bx = T.cta_id([2]); tx = T.thread_id([32])\n    i: T.int32 = 0\n    if tx == 0:\n        {lines}\n"
        );
        let mut sources = SourceMap::new();
        let file = KernelFile::load(&mut sources, "k.py", &text, &NoImports).unwrap();
        let module = file.build(Some("kernel"), &Default::default()).unwrap();
        let (_, func) = &module.functions[0];
        super::warnings(func).into_iter().map(|w| w.message).collect()
    }

    #[test]
    fn loops_that_only_another_thread_ends_are_warned_of() {
        let message = "the loop polls \"F\" by plain loads, which nvcc may move out of it";
        for lines in [
            "while F[0] == 0: T.evaluate(0)",
            "while F[bx] == 0: T.cuda.nano_sleep(T.uint64(20))",
            "while F[0] < n and i < 5: T.cuda.nano_sleep(T.uint64(20))",
        ] {
            assert_eq!(warned(lines), [message], "{lines}");
        }
        for lines in [
            // The loop goes on by itself.
            "while F[i] == 0: i = i + 1",
            "while F[0] < n: F[0] = F[0] + 1",
            // Other loads, and loops in which the load cannot be moved.
            "while T.ptx.ld_acquire(F.ptr_to([0]), 'int32', 's32', scope='gpu') == 0: T.evaluate(0)",
            "while F[0] == 0: T.cuda.thread_fence()",
            "while i < n: i = i + F[0]",
        ] {
            assert_eq!(warned(lines), [""; 0], "{lines}");
        }
    }
}
