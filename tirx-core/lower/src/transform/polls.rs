//! Loops that poll global memory by plain loads.
//!
//! **Idea.** A loop that ends by what it reads of global memory, and changes nothing of it itself, ends only if another thread
//! writes that memory. A plain load says nothing of other threads: nvcc may read once, before the loop, which then never ends.
//! The loop gets a warning, unless something in it keeps the compiler from moving the load: a store, a call that may write
//! memory, a barrier or a fence.
//!
//! A loop ends by its condition, and by those of branches that leave it (`break`, `return`). Values that it computes and
//! then asks for (`seen = F[0]`) are followed to what they are computed from; one that is computed from itself (`i = i + 1`)
//! changes by itself, and the loop with it.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::diagnostic::Diagnostic;
use crate::intrin::row::{Memory, Synchronizes};
use crate::intrin::{Effect, Op};
use crate::ir::at;
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
                        "poll with T.ptx.ld_acquire(pointer, dtype, ptx_type, scope=\"gpu\"), or with T.ptx.ld_volatile and \
                         a fence after the loop",
                    ),
            );
        }
        self.walk_stmt(stmt);
    }
}

/// The global buffer that a loop waits for by plain loads, and the load.
fn polled(condition: &Expr, body: &Stmt) -> Option<(Buffer, Span)> {
    let mut exits = Exits::default();
    exits.visit_stmt(body);
    if exits.always {
        return None;
    }
    let mut reads = Reads::default();
    reads.visit_expr(condition);
    exits.conditions.iter().for_each(|c| reads.visit_expr(c));

    let mut computed = Computed::default();
    computed.visit_stmt(body);
    let reads = computed.followed(reads)?;
    let (buffer, span) = reads.global.first()?.clone();
    let mut changes = Changes {
        reads: &reads,
        any: false,
    };
    changes.visit_expr(condition);
    changes.visit_stmt(body);
    (!changes.any).then_some((buffer, span))
}

/// The conditions of branches that leave a loop.
#[derive(Default)]
struct Exits {
    conditions: Vec<Expr>,
    /// The conditions of the branches around the statement.
    around: Vec<Expr>,
    /// Whether a statement outside of all branches leaves the loop, which then has one turn.
    always: bool,
    /// Whether the statement is in a loop within the loop, whose `break` leaves that one.
    within: bool,
}

impl Visitor for Exits {
    fn visit_stmt(&mut self, stmt: &Stmt) {
        match &stmt.kind {
            StmtKind::If(condition, then, otherwise) => {
                self.around.push(condition.clone());
                self.visit_stmt(then);
                if let Some(otherwise) = otherwise {
                    self.visit_stmt(otherwise);
                }
                self.around.pop();
            }
            StmtKind::For(_) | StmtKind::While(..) => {
                let outside = std::mem::replace(&mut self.within, true);
                self.walk_stmt(stmt);
                self.within = outside;
            }
            StmtKind::Evaluate(call) => {
                let leaves = call.as_call(Op::BreakLoop).is_some() && !self.within
                    || call.as_call(Op::ThreadReturn).is_some();
                if leaves {
                    self.always |= self.around.is_empty();
                    self.conditions.extend(self.around.iter().cloned());
                }
            }
            _ => self.walk_stmt(stmt),
        }
    }

    fn visit_expr(&mut self, _: &Expr) {}
}

/// The values that a loop computes: the local memory and the variables that it writes, and from what.
#[derive(Default)]
struct Computed(FxHashMap<Var, Vec<Expr>>);

impl Visitor for Computed {
    fn visit_stmt(&mut self, stmt: &Stmt) {
        match &stmt.kind {
            StmtKind::BufferStore(store) if store.buffer.scope() == "local" => {
                let from = self.0.entry(store.buffer.data.clone()).or_default();
                from.push(store.value.clone());
                from.extend(store.indices.iter().cloned());
            }
            StmtKind::Bind(var, value) => self.0.entry(var.clone()).or_default().push(value.clone()),
            _ => {}
        }
        self.walk_stmt(stmt);
    }

    fn visit_expr(&mut self, _: &Expr) {}
}

impl Computed {
    /// What is read in the end by expressions with these reads; nothing where a value is computed from itself.
    fn followed(&self, reads: Reads) -> Option<Reads> {
        let mut all = Reads {
            global: reads.global,
            ..Reads::default()
        };
        let mut done = FxHashSet::default();
        // The values on the way from the first one to the one that is followed, each with what is left of its reads.
        let mut way: Vec<(Option<Var>, Vec<Var>)> = vec![(None, reads.data.into_iter().rev().collect())];
        while let Some((var, left)) = way.last_mut() {
            let Some(next) = left.pop() else {
                done.extend(var.take());
                way.pop();
                continue;
            };
            if way.iter().any(|(var, _)| var.as_ref() == Some(&next)) {
                return None;
            }
            let Some(from) = self.0.get(&next) else {
                all.data.push(next);
                continue;
            };
            if done.contains(&next) {
                continue;
            }
            let mut reads = Reads::default();
            from.iter().for_each(|e| reads.visit_expr(e));
            all.global.extend(reads.global);
            way.push((Some(next), reads.data.into_iter().rev().collect()));
        }
        Some(all)
    }
}

/// What conditions read.
#[derive(Default)]
struct Reads {
    /// Loads of global memory.
    global: Vec<(Buffer, Span)>,
    /// The storage of all buffers that they read, and the variables.
    data: Vec<Var>,
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
                if let ExprKind::BufferLoad { indices, .. } = &args[at!(AddressOf.obj)].kind {
                    indices.iter().for_each(|index| self.visit_expr(index));
                    return;
                }
            }
            ExprKind::BufferLoad { buffer, .. } => {
                if buffer.scope() == "global" {
                    self.global.push((buffer.clone(), expr.span));
                }
                self.data.push(buffer.data.clone());
            }
            ExprKind::Var(var) => {
                self.data.push(var.clone());
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
            // Branches that leave the loop.
            "while True:\n            if F[0] == 3: break",
            "while True:\n            if F[0] == 3: return\n            T.cuda.nano_sleep(T.uint64(20))",
            "while True:\n            if i < 5:\n                if F[0] == 3: break",
            // Values that the loop asks for.
            "while i == 0: i = F[0]",
            "while True:\n            v: T.let = F[0]\n            if v > n: break",
            "while i == 0:\n            i = F[0]\n            if n == 3: i = F[1] + 2",
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
            "while True:\n            if F[i] == 3: break\n            i = i + 1",
            "while True:\n            for k in range(5):\n                if F[k] == 3: break\n            T.cuda.cta_sync()",
            "while i == 0:\n            i = F[0]\n            T.cuda.cta_sync()",
            "while True:\n            j: T.let = i\n            i = j + 1\n            if F[j] == 3: break",
            "while n == 3:\n            i = F[0]\n            if i == 3: F[0] = 5",
            // One turn.
            "while True:\n            if F[0] == 3: break\n            i = 7\n            break",
        ] {
            assert_eq!(warned(lines), [""; 0], "{lines}");
        }
    }
}
