//! The text of statements.

use crate::ir::abi::keys;
use std::borrow::Cow;
use std::sync::Arc;

use super::analysis::effect;
use super::code::{Code, level, string_literal};
use super::defects;
use super::emitter::{Emitter, Pointer};
use super::helpers::{Header, Helper};
use crate::arith::{ConstIntBound, fold};
use crate::diagnostic::{Diagnostic, Result, error};
use crate::intrin::{Effect, Op};
use crate::ir::{
    Assert, Attr, AttrNode, AttrValue, BinOp, Buffer, BufferStore, Expr, ExprKind, ForKind, ForLoop, IterVar,
    Stmt, StmtKind, Var, Visitor,
};
use crate::source::Span;

impl Emitter<'_, '_> {
    /// A statement in the current block.
    pub(super) fn stmt(&mut self, stmt: &Stmt) -> Result<()> {
        let outer = self.place;
        self.place = stmt.span.or(outer);
        self.divisions.clear();
        let result = self.stmt_kind(stmt);
        self.divisions.clear();
        self.place = outer;
        result
    }

    fn stmt_kind(&mut self, stmt: &Stmt) -> Result<()> {
        match &stmt.kind {
            StmtKind::Seq(stmts) => self.sequence(stmts),
            StmtKind::Bind(var, value) => {
                let unused = !self.facts.uses.contains_key(var);
                if unused && effect(value) <= Effect::ReadState {
                    return Ok(());
                }
                self.bind(var, value, stmt.span)
            }
            StmtKind::Attr(Attr {
                node,
                key,
                value,
                body,
            }) => {
                if &**key == keys::PREDICATE && self.predicated(body)? {
                    return Ok(());
                }
                self.attribute(node, key, value, stmt.span)?;
                self.stmt(body)
            }
            StmtKind::BufferStore(BufferStore {
                buffer,
                indices,
                value,
                predicate,
            }) => {
                // A register that nothing reads need not be computed.
                if self.is_register(buffer) && !self.is_needed(buffer) {
                    return Ok(());
                }
                let index = self.single_index(buffer, indices, stmt.span)?;
                let place_is_vector = index.is_some_and(|i| i.dtype.is_vector());
                if value.dtype.is_vector() || place_is_vector {
                    return self.store_vector(buffer, index, value, predicate.as_ref(), stmt.span);
                }
                let condition = predicate.as_ref().map(|p| self.expr(p)).transpose()?;
                let code = self.expr(value)?;
                let text = self.store_text(buffer, index, code, stmt.span)?;
                match condition {
                    Some(c) => self.line(&format!("if ({}) {text}", c.text)),
                    None => self.line(&text),
                }
                Ok(())
            }
            StmtKind::AllocBuffer(buffer, _) => self.allocate(buffer, stmt.span),
            StmtKind::DeclBuffer(buffer) => {
                // A pointer binding that nothing reads through is not written.
                let needed = self.facts.uses.contains_key(&buffer.data);
                if !needed || self.pointers.contains_key(&buffer.data) {
                    return Ok(());
                }
                error(
                    stmt.span,
                    format!(
                        "buffer `{}` is declared over pointer `{}`, which is not defined here",
                        buffer.name,
                        buffer.data.name()
                    ),
                )
            }
            StmtKind::ScopeId(_) => error(stmt.span, "a scope id is left in the final IR"),
            StmtKind::Tile(_) => error(stmt.span, "a tile primitive is left in the final IR"),
            StmtKind::Evaluate(e) => self.evaluate(e),
            StmtKind::For(ForLoop {
                var,
                min,
                extent,
                kind,
                annotations,
                step,
                body,
                ..
            }) => self.for_loop(
                var,
                (min, extent, step.as_ref()),
                *kind,
                annotations,
                body,
                stmt.span,
            ),
            StmtKind::While(condition, body) => self.while_loop(condition, body),
            StmtKind::If(condition, then, otherwise) => self.branch(condition, then, otherwise.as_ref()),
            StmtKind::Assert(Assert {
                condition,
                kind,
                message,
            }) => {
                self.unit.needs.headers.insert(Header::Cassert);
                let code = self.expr(condition)?;
                let text = string_literal(&format!("{kind}: {}", message.concat()));
                self.line(&format!("assert({} && {text});", code.at(level::EQUAL)));
                Ok(())
            }
        }
    }

    fn sequence(&mut self, stmts: &[Stmt]) -> Result<()> {
        stmts.iter().try_for_each(|stmt| self.stmt(stmt))
    }

    /// The statements of a nested block, one level deeper.
    pub(super) fn block(&mut self, body: &Stmt) -> Result<()> {
        self.indent += 1;
        self.names.open();
        let outer = self.wgmma_registers.len();
        let result = self.stmt(body);
        self.wgmma_registers.truncate(outer);
        self.names.close();
        self.indent -= 1;
        result
    }

    /// `A[i] = value;`.
    pub(super) fn store_text(
        &mut self,
        buffer: &Buffer,
        index: Option<&Expr>,
        value: Code,
        span: Span,
    ) -> Result<String> {
        if buffer.dtype.is_float4() && buffer.dtype.is_scalar() {
            self.unit.needs.helpers.insert(Helper::Fp4);
            let base = self.pointer(&buffer.data, span)?.name;
            let index = self.index(index)?;
            let private = matches!(buffer.scope(), "local" | "");
            let name = if private {
                "tirx_fp4_store"
            } else {
                "tirx_fp4_store_atomic"
            };
            return Ok(format!("{name}({base}, {index}, {});", value.text));
        }
        let place = self.element(buffer, index, span)?;
        let mut text = place.text;
        text.reserve(value.text.len() + 4);
        text.extend([" = ", &value.text, ";"]);
        Ok(text)
    }

    fn evaluate(&mut self, e: &Expr) -> Result<()> {
        if effect(e) < Effect::UpdateState && !matches!(&e.kind, ExprKind::Call { op, .. } if keeps(*op)) {
            return Ok(());
        }
        self.discards_value = matches!(e.kind, ExprKind::Call { .. });
        let code = self.expr(e);
        self.discards_value = false;
        let code = code?;
        self.line(&format!("{};", code.text));
        if defects::waits_for_all_wgmma(e) {
            for registers in self.wgmma_registers.clone() {
                self.unit.needs.helpers.insert(Helper::Finished);
                self.line(&format!("tirx_finished({registers});"));
            }
        }
        Ok(())
    }

    fn branch(&mut self, condition: &Expr, then: &Stmt, otherwise: Option<&Stmt>) -> Result<()> {
        let code = self.expr(condition)?;
        self.line(&format!("if ({}) {{", code.text));
        self.block(then)?;
        let mut otherwise = otherwise;
        while let Some(stmt) = otherwise {
            // A chain of `else if` stays flat where the next condition needs no statements of its own.
            if let StmtKind::If(condition, then, next) = &stmt.kind {
                let before = self.out.len();
                let code = self.expr(condition)?;
                if self.out.len() == before {
                    self.line(&format!("}} else if ({}) {{", code.text));
                    self.block(then)?;
                    otherwise = next.as_ref();
                    continue;
                }
                self.out.truncate(before);
            }
            self.line("} else {");
            self.block(stmt)?;
            break;
        }
        self.line("}");
        Ok(())
    }

    fn while_loop(&mut self, condition: &Expr, body: &Stmt) -> Result<()> {
        // As in TVM 0.26: a loop with an unknown count is not worth unrolling.
        self.line("#pragma unroll 1");
        let before = self.out.len();
        self.digits.enter_loop();
        self.indent += 1;
        let code = self.expr(condition);
        self.indent -= 1;
        let code = code?;
        let inner = self.out.split_off(before);
        // The form of TVM's text: nvcc generates other code for `while (condition)`.
        self.line("while (true) {");
        self.out.push_str(&inner);
        self.indent += 1;
        self.line(&format!("if (!({})) break;", code.text));
        self.indent -= 1;
        self.block(body)?;
        self.digits.leave_loop();
        self.line("}");
        Ok(())
    }

    fn for_loop(
        &mut self,
        var: &Var,
        (min, extent, step): (&Expr, &Expr, Option<&Expr>),
        kind: ForKind,
        annotations: &[(Arc<str>, AttrValue)],
        body: &Stmt,
        span: Span,
    ) -> Result<()> {
        // Each thread runs a parallel loop sequentially.
        if !matches!(kind, ForKind::Serial | ForKind::Parallel | ForKind::Unrolled) {
            return error(span, format!("a loop of kind {kind:?} is left in the final IR"));
        }
        let first = self.expr(min)?.in_range(min.dtype);
        let end = loop_end(min, extent);
        let mut bound = self.expr(&end)?.in_range(end.dtype);
        if !is_fixed(&end) {
            bound = self.temporary("end", end.dtype, bound, span)?;
        }
        let step = step
            .filter(|s| !s.is_int(1))
            .map(|s| -> Result<Code> {
                let code = self.expr(s)?.in_range(s.dtype);
                if is_fixed(s) {
                    Ok(code)
                } else {
                    self.temporary("step", s.dtype, code, span)
                }
            })
            .transpose()?;
        let ty = self.spell(var.dtype(), span)?;
        let unroll = || (kind == ForKind::Unrolled).then(|| "#pragma unroll".to_string());
        if let Some(text) = annotations.iter().find_map(|(k, v)| pragma(k, v)).or_else(unroll) {
            self.line(&text);
        }
        self.names.open();
        let name = self.names.fresh(var.name());
        let advance = match step {
            None => format!("++{name}"),
            Some(s) => format!("{name} += {}", s.text),
        };
        self.line(&format!(
            "for ({ty} {name} = {}; {name} < {}; {advance}) {{",
            first.text,
            bound.at(level::SHIFT)
        ));
        let (low, count) = (
            self.analyzer.const_int_bound(min),
            self.analyzer.const_int_bound(extent),
        );
        let last = low.max.saturating_add(count.max).saturating_sub(1).max(low.min);
        let range = ConstIntBound::new(low.min, last).intersect(ConstIntBound::of_dtype(var.dtype()));
        self.analyzer.set_bound(var, range);
        self.vars.insert(var.clone(), Code::primary(name));
        self.digits.varies(var);
        self.digits.enter_loop();
        let result = self.block(body);
        self.digits.leave_loop();
        self.names.close();
        result?;
        self.line("}");
        Ok(())
    }

    fn attribute(&mut self, node: &AttrNode, key: &str, value: &Expr, span: Span) -> Result<()> {
        match (key, node) {
            (keys::THREAD_EXTENT, AttrNode::IterVar(iv)) => self.hardware_index(iv, span),
            (keys::THREAD_EXTENT | keys::VIRTUAL_THREAD, _) => error(
                span,
                format!("attribute `{key}` is left in the final IR without a hardware index"),
            ),
            // Attributes that apply to the whole function, and attributes for passes, need no text.
            _ => {
                let _ = value;
                Ok(())
            }
        }
    }

    fn hardware_index(&mut self, iv: &IterVar, span: Span) -> Result<()> {
        let ty = self.spell(iv.var.dtype(), span)?;
        let code = match &*iv.thread_tag {
            tag @ ("threadIdx.x" | "threadIdx.y" | "threadIdx.z" | "blockIdx.x" | "blockIdx.y"
            | "blockIdx.z") => Code::primary(tag).cast(&ty),
            tag @ ("clusterCtaIdx.x" | "clusterCtaIdx.y" | "clusterCtaIdx.z") => {
                // In one-dimensional clusters the rank equals the index, and is quicker to read.
                let others = [
                    "clusterCtaIdx.y",
                    "clusterCtaIdx.z",
                    "preferredClusterCtaIdx.y",
                    "preferredClusterCtaIdx.z",
                ];
                let flat = others
                    .iter()
                    .all(|tag| self.facts.extent(tag).is_none_or(|e| e.is_int(1)));
                let (helper, name) = match tag {
                    "clusterCtaIdx.x" if flat => (Helper::ClusterCtaRank, "tirx_cluster_cta_rank()"),
                    "clusterCtaIdx.x" => (Helper::ClusterCtaIdX, "tirx_cluster_cta_id_x()"),
                    "clusterCtaIdx.y" => (Helper::ClusterCtaIdY, "tirx_cluster_cta_id_y()"),
                    _ => (Helper::ClusterCtaIdZ, "tirx_cluster_cta_id_z()"),
                };
                self.unit.needs.helpers.insert(helper);
                Code::primary(name)
            }
            // A launch parameter, which nothing reads.
            tag if tag.starts_with("preferredClusterCtaIdx.") => return Ok(()),
            tag => return error(span, format!("CUDA has no hardware index `{tag}`")),
        };
        if iv.thread_tag.starts_with("threadIdx.") {
            self.read_thread_index(iv);
        }
        self.vars.insert(iv.var.clone(), code);
        let extent = self.facts.extent(&iv.thread_tag).and_then(Expr::as_int);
        let last = extent.map_or(i32::MAX as i128, |n| (n - 1).max(0));
        self.analyzer.set_bound(&iv.var, ConstIntBound::new(0, last));
        Ok(())
    }

    /// nvcc reads the special registers of a thread's index in each branch that uses them. TVM's kernels read them once
    /// before the first branch, for the warp index that they all compute; a use that generates no instruction has the
    /// same effect and saves a few instructions.
    fn read_thread_index(&mut self, iv: &IterVar) {
        let uses = self.facts.uses.get(&iv.var).copied().unwrap_or(0);
        self.most_thread_uses = self.most_thread_uses.max(uses);
        let mut axes = self.facts.threads.iter().rev();
        let last = axes.find(|(tag, _)| tag.starts_with("threadIdx."));
        let is_last = last.is_none_or(|(tag, _)| *tag == iv.thread_tag);
        if is_last && self.most_thread_uses > 1 && self.facts.branches {
            let index = self.index_of_warp();
            self.line(&format!("asm volatile(\"\" : : \"r\"({index}));"));
        }
    }

    /// The part of a thread's index that differs between warps: axes that vary only within one warp are left out.
    fn index_of_warp(&self) -> String {
        let extent = |axis: &str| self.facts.extent(axis).map_or(Some(1), Expr::as_int);
        let (Some(x), Some(y), Some(z)) = (
            extent("threadIdx.x"),
            extent("threadIdx.y"),
            extent("threadIdx.z"),
        ) else {
            return "threadIdx.x".into();
        };
        let is_within = |row: i128| row > 0 && 32 % row == 0;
        let mut terms = Vec::new();
        if z > 1 {
            terms.push(format!("threadIdx.z * {}", x * y));
        }
        if y > 1 && (z == 1 || !is_within(x * y)) {
            terms.push(format!("threadIdx.y * {x}"));
        }
        if y * z == 1 || !is_within(x) {
            terms.push("threadIdx.x".into());
        }
        match &terms[..] {
            [one] => one.split(' ').next().unwrap_or_default().into(),
            _ => terms.join(" + "),
        }
    }

    /// Whether a buffer is one private element whose address is not taken: a register.
    pub(super) fn is_register(&self, buffer: &Buffer) -> bool {
        let use_ = self.facts.pointers.get(&buffer.data);
        matches!(buffer.scope(), "local" | "")
            && buffer.const_size() == Some(1)
            && !buffer.dtype.is_float4()
            && use_.is_none_or(|u| u.only_first && !u.escapes && !u.retyped)
    }

    /// Whether a register is read, or its value has a side effect.
    pub(super) fn is_needed(&self, buffer: &Buffer) -> bool {
        let use_ = self.facts.pointers.get(&buffer.data);
        use_.is_some_and(|u| u.read || u.kept)
    }

    /// Allocates storage.
    fn allocate(&mut self, buffer: &Buffer, span: Span) -> Result<()> {
        if buffer.scope() == "tmem" {
            // Columns of tensor memory are no C++ objects: instructions name them by number.
            return Ok(());
        }
        let ty = self.spell(buffer.dtype, span)?;
        if self.is_register(buffer) {
            // An array, as in TVM's text: nvcc promotes arrays later than variables, so that the generated code is the
            // same as for TVM's text. With variables some kernels get shorter code and others longer code.
            let name = self.names.fresh(&buffer.name);
            if self.is_needed(buffer) {
                self.line(&format!("{ty} {name}[1];"));
            }
            self.define(buffer, name, ty);
            return Ok(());
        }
        let scope = buffer.scope().to_string();
        let Some(size) = buffer.const_size().filter(|s| *s >= 0) else {
            if scope == "shared.dyn" {
                return self.dynamic_shared(buffer, ty, span);
            }
            let message = format!("buffer `{}` in scope `{scope}` has no constant size", buffer.name);
            let help = match (variable_of_extents(buffer), &*scope) {
                (Some(name), _) => format!(
                    "`{name}` is a variable, and known when the kernel runs; `{name} = T.meta_var(…)` is known at compile time"
                ),
                (None, "shared") => {
                    "give it a constant size, or allocate it with scope=\"shared.dyn\": its size is the launch's".to_string()
                }
                (None, _) => {
                    "give it a constant size: registers are allotted when the kernel is compiled".to_string()
                }
            };
            return Err(Box::new(Diagnostic::new(span, message).help(help)));
        };
        let size = if buffer.dtype.is_float4() && buffer.dtype.is_scalar() {
            (size + 1) / 2
        } else {
            size
        };
        match &*scope {
            "local" | "" => {
                let use_ = self.facts.pointers.get(&buffer.data).cloned().unwrap_or_default();
                let natural = buffer.dtype.bytes().max(1);
                let wanted = if use_.escapes || use_.retyped {
                    use_.widest.max(16)
                } else {
                    use_.widest
                };
                // The buffer's own alignment counts as well: nvcc keeps an aligned array in memory, whereas it would
                // turn an unaligned one with a computed index into a chain of selects over registers, which is many
                // times longer.
                let align = wanted.next_power_of_two().min(32);
                let align = align.max((buffer.align as usize).max(1).next_power_of_two());
                let prefix = if align > natural.min(16) {
                    format!("alignas({align}) ")
                } else {
                    String::new()
                };
                let name = self.names.fresh(&buffer.name);
                self.line(&format!("{prefix}{ty} {name}[{size}];"));
                // Registers of operands A may be pairs of 16 bits: they are no results.
                let is_result = buffer.dtype.is_scalar() && buffer.dtype.bits == 32;
                if is_result && self.facts.wgmma_registers.contains(&buffer.data) {
                    self.wgmma_registers.push(name.clone());
                }
                self.define(buffer, name, ty);
            }
            "shared" => {
                let name = self.names.fresh(&buffer.name);
                let align = (buffer.align as usize).max(1).next_power_of_two();
                self.line(&format!("__shared__ alignas({align}) {ty} {name}[{size}];"));
                let bytes = size as usize * buffer.dtype.bytes();
                self.static_shared = self.static_shared.next_multiple_of(align) + bytes;
                self.define(buffer, name, ty);
            }
            "shared.dyn" => self.dynamic_shared(buffer, ty, span)?,
            _ => {
                return error(
                    span,
                    format!(
                        "a kernel cannot allocate buffer `{}` in scope `{scope}`",
                        buffer.name
                    ),
                );
            }
        }
        Ok(())
    }

    fn dynamic_shared(&mut self, buffer: &Buffer, ty: Cow<'static, str>, span: Span) -> Result<()> {
        if self.dynamic_shared {
            return crate::diagnostic::error(
                span,
                "a kernel has one allocation of dynamic shared memory; take parts of it with `decl_buffer` or a pool",
            );
        }
        self.dynamic_shared = true;
        // Such arrays of all kernels of a file share one symbol: the name is reserved for the whole text.
        let name = self.names.fresh(&buffer.name);
        self.names.reserve(&name);
        self.unit.reserved.push(name.clone());
        // Parts of it may require 1024 bytes (the pattern of a swizzle), whatever the declaration of the whole says: a static
        // array before it would leave it at a multiple of what is written here.
        let least = if self.facts.engines { 1024 } else { 16 };
        let align = (buffer.align as usize).max(least).next_power_of_two();
        self.line(&format!("extern __shared__ __align__({align}) {ty} {name}[];"));
        self.define(buffer, name, ty);
        Ok(())
    }

    fn define(&mut self, buffer: &Buffer, name: String, element: Cow<'static, str>) {
        let pointer = Pointer {
            name: name.into(),
            element,
            constant: false,
        };
        self.pointers.insert(buffer.data.clone(), pointer);
    }
}

/// Calls whose row says that they are at most pure, but which are written all the same.
fn keeps(op: Op) -> bool {
    matches!(op, Op::Assume)
}

/// Whether an expression has the same value in each iteration of a loop: constants, variables and arithmetic on them.
fn is_fixed(e: &Expr) -> bool {
    match &e.kind {
        ExprKind::BufferLoad { .. } | ExprKind::Let(..) => false,
        ExprKind::Call { op, .. } if op.effect() > Effect::Pure => false,
        _ => e.operands().all(is_fixed),
    }
}

/// One past the last value: `min + extent`, where `extent` is often `end - min`.
fn loop_end(min: &Expr, extent: &Expr) -> Expr {
    if let Some((end, from)) = extent.as_binary(BinOp::Sub)
        && from == min
    {
        return end.clone();
    }
    if let (Some((end, from)), Some(m)) = (extent.as_binary(BinOp::Sub), min.as_int())
        && from.as_int() == Some(m)
    {
        return end.clone();
    }
    // `n + -2` for a loop from 2.
    if let (Some((end, back)), Some(m)) = (extent.as_binary(BinOp::Add), min.as_int())
        && back.as_int() == Some(-m)
    {
        return end.clone();
    }
    let min = min.clone().cast(extent.dtype);
    fold::add(min, extent.clone())
}

fn pragma(key: &str, value: &AttrValue) -> Option<String> {
    match key {
        "disable_unroll" if value.as_int() != Some(0) => Some("#pragma unroll 1".into()),
        "pragma_unroll_factor" => Some(format!("#pragma unroll {}", value.as_int().filter(|n| *n > 0)?)),
        _ => None,
    }
}

/// The variable that an extent of a buffer reads: `per = 4` declares one, where a compile-time value is meant.
fn variable_of_extents(buffer: &Buffer) -> Option<Arc<str>> {
    #[derive(Default)]
    struct Read(Option<Arc<str>>);
    impl Visitor for Read {
        fn visit_expr(&mut self, expr: &Expr) {
            if let ExprKind::BufferLoad { buffer, .. } = &expr.kind
                && buffer.scope() == "local"
            {
                self.0.get_or_insert_with(|| buffer.name.clone());
            }
            self.walk_expr(expr);
        }
    }
    let mut read = Read::default();
    buffer.shape.iter().for_each(|extent| read.visit_expr(extent));
    read.0
}
