//! The launch parameters of a region: one walk collects extents, flags and memory, and removes the attributes that
//! state them.

use crate::ir::abi::keys;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::flags::Flags;
use super::{
    DEVICE_KERNEL_LAUNCH, DYNAMIC_SHARED_MEMORY, KERNEL_LAUNCH_PARAMS, MAX_BLOCKS_PER_CLUSTER, MAX_REGISTERS,
    MIN_BLOCKS_PER_SM,
};
use crate::arith::fold;
use crate::diagnostic::{Diagnostic, Result};
use crate::intrin::Op;
use crate::intrin::row::Synchronizes;
use crate::ir::{
    Attr, AttrNode, AttrValue, Attrs, Buffer, DType, Expr, ExprKind, Mutator, Stmt, StmtKind, Var, substitute,
};
use crate::source::Span;
use crate::transform::lower_tirx::LARGEST_WRITTEN_OUT;

/// The attribute with the used size of a pool of dynamic shared memory, whose buffer has no extent.
const POOL_BYTES: &str = "tirx.dyn_smem_bytes";

/// The launch parameters.
#[derive(Default)]
pub(super) struct LaunchParameters {
    /// The hardware indices in order of appearance, each with its extent and where it is declared.
    pub(super) extents: Vec<(Arc<str>, Expr, Span)>,
    pub(super) flags: Flags,
    pub(super) min_blocks: Option<i64>,
    pub(super) max_cluster: Option<i64>,
    pub(super) max_registers: Option<i64>,
    /// Bytes of the dynamic shared memory allocation.
    dynamic_shared: Option<(Expr, Span)>,
    /// Bytes of the pool, where a size is declared.
    pool: Option<(Expr, Span)>,
    /// Arrays in static shared memory.
    pub(super) static_shared: Vec<(Buffer, Span)>,
    /// Arrays of the threads.
    pub(super) local: Vec<(Buffer, Span)>,
    /// Values bound in the region: an extent or a size that reads one is expanded, since the launch stands outside.
    inside: FxHashMap<Var, Expr>,
    pub(super) failed: Option<Box<Diagnostic>>,
}

impl LaunchParameters {
    /// Records the launch in a kernel's attributes; gives the values of its launch parameters.
    pub(super) fn describe(&self, flags: Flags, symbol: Arc<str>, attrs: &mut Attrs) -> Vec<Expr> {
        let dynamic = self.dynamic_bytes().map(|(bytes, _)| bytes.clone());
        let indices = self.extents.iter().map(|(tag, ..)| tag.clone());
        let tags = indices
            .chain(flags.tags().map(Arc::from))
            .chain(dynamic.iter().map(|_| DYNAMIC_SHARED_MEMORY.into()));
        let mut set = |key: &str, value: AttrValue| attrs.insert(key.into(), value);
        set("calling_conv", AttrValue::Int(DEVICE_KERNEL_LAUNCH));
        set("global_symbol", AttrValue::Str(symbol));
        set("tirx.is_global_func", AttrValue::Bool(true));
        set(
            KERNEL_LAUNCH_PARAMS,
            AttrValue::List(tags.map(AttrValue::Str).collect()),
        );
        for (key, blocks) in [
            (MIN_BLOCKS_PER_SM, self.min_blocks),
            (MAX_BLOCKS_PER_CLUSTER, self.max_cluster),
            (MAX_REGISTERS, self.max_registers),
        ] {
            if let Some(blocks) = blocks {
                set(key, AttrValue::Int(blocks));
            }
        }
        let extents = self.extents.iter().map(|(_, extent, _)| extent.clone());
        extents.chain(dynamic).collect()
    }

    /// An error where dynamic shared memory has no size: a pool's buffer has none of its own.
    pub(super) fn check_pool(&self) -> Result<()> {
        match &self.dynamic_shared {
            Some((bytes, span)) if bytes.is_int(0) && self.pool.is_none() => Err(Box::new(
                Diagnostic::new(*span, "this pool of shared memory has no size")
                    .label("the size that the kernel uses is not known")
                    .help("call commit() of the pool after its last alloc"),
            )),
            _ => Ok(()),
        }
    }

    /// Bytes of dynamic shared memory of the launch, and their place.
    pub(super) fn dynamic_bytes(&self) -> Option<&(Expr, Span)> {
        self.pool.as_ref().or(self.dynamic_shared.as_ref())
    }

    fn dynamic(&mut self, buffer: &Buffer, span: Span) {
        if let Some((_, first)) = &self.dynamic_shared {
            let error = Diagnostic::new(span, "a kernel has at most one dynamic shared memory allocation")
                .note(*first, "the first one")
                .help("allocate one buffer of bytes and declare views in it, as T.SMEMPool does");
            self.failed.get_or_insert(Box::new(error));
            return;
        }
        let size = self.written_out(&bytes(buffer), "the size of dynamic shared memory", span);
        self.dynamic_shared = Some((size, span));
    }

    /// `value` without the names of the region.
    fn written_out(&mut self, value: &Expr, what: &str, span: Span) -> Expr {
        let expanded = substitute(value, &|var| self.inside.get(var).cloned());
        if expanded.size() > LARGEST_WRITTEN_OUT {
            let message = format!("{what} is too large with its names written out");
            let error = Diagnostic::new(span, message)
                .help("compute it before T.device_entry(), or pass it as a scalar parameter");
            self.failed.get_or_insert(Box::new(error));
        }
        expanded
    }

    /// A positive constant for `__launch_bounds__`.
    fn bound(&mut self, key: &str, value: &Expr, span: Span) -> Option<i64> {
        let positive = value.as_int().filter(|blocks| *blocks > 0);
        if positive.is_none() {
            let message = format!("{key} must be a positive constant");
            let error = Diagnostic::new(value.span.or(span), message);
            self.failed.get_or_insert(Box::new(error));
        }
        positive.and_then(|blocks| i64::try_from(blocks).ok())
    }
}

/// Bytes of a buffer, in 64 bits.
pub(super) fn bytes(buffer: &Buffer) -> Expr {
    let extents = buffer.shape.iter().map(|e| fold::cast(e.clone(), DType::INT64));
    let count = extents.reduce(fold::mul).unwrap_or_else(|| Expr::int64(1));
    let bits = buffer.dtype.storage_bits() as i64 * buffer.dtype.lanes as i64;
    if bits % 8 == 0 {
        return fold::mul(count, Expr::int64(bits / 8));
    }
    let bits = fold::mul(count, Expr::int64(bits));
    fold::floordiv(fold::add(bits, Expr::int64(7)), Expr::int64(8))
}

impl Mutator for LaunchParameters {
    fn expr(&mut self, expr: &Expr) -> Expr {
        expr.clone()
    }

    fn stmt(&mut self, stmt: &Stmt) -> Stmt {
        match &stmt.kind {
            StmtKind::Attr(Attr {
                node: AttrNode::IterVar(iter),
                key,
                value,
                ..
            }) if &**key == keys::THREAD_EXTENT => {
                if !self.extents.iter().any(|(tag, ..)| *tag == iter.thread_tag) {
                    let what = format!("the extent of {}", iter.thread_tag);
                    let extent = self.written_out(value, &what, stmt.span);
                    self.extents.push((iter.thread_tag.clone(), extent, stmt.span));
                }
                self.walk_stmt(stmt)
            }
            StmtKind::Attr(Attr { key, value, body, .. }) => {
                match &**key {
                    MIN_BLOCKS_PER_SM => self.min_blocks = self.bound(key, value, stmt.span),
                    MAX_BLOCKS_PER_CLUSTER => self.max_cluster = self.bound(key, value, stmt.span),
                    MAX_REGISTERS => self.max_registers = self.bound(key, value, stmt.span),
                    POOL_BYTES => self.pool = Some((fold::cast(value.clone(), DType::INT32), stmt.span)),
                    _ => match Flags::of_attribute(key, value) {
                        Some(flags) => self.flags = self.flags.or(flags),
                        None => return self.walk_stmt(stmt),
                    },
                }
                self.stmt(body)
            }
            StmtKind::Bind(var, value) => {
                let value = substitute(value, &|var| self.inside.get(var).cloned());
                self.inside.insert(var.clone(), value);
                stmt.clone()
            }
            StmtKind::AllocBuffer(buffer, _) => {
                let span = stmt.span.or(buffer.span);
                match buffer.scope() {
                    "shared.dyn" => self.dynamic(buffer, span),
                    "shared" => self.static_shared.push((buffer.clone(), span)),
                    "local" => self.local.push((buffer.clone(), span)),
                    _ => {}
                }
                stmt.clone()
            }
            StmtKind::Evaluate(call)
                if call
                    .as_call(Op::Ret)
                    .is_some_and(|args| !args.iter().all(|a| a.is_int(0))) =>
            {
                let error = Diagnostic::new(call.span.or(stmt.span), "a kernel returns no value")
                    .help("write the value to a buffer that is a parameter; `return` alone ends the thread");
                self.failed.get_or_insert(Box::new(error));
                stmt.clone()
            }
            StmtKind::Evaluate(call) if matches!(&call.kind, ExprKind::Call { op, .. } if op.traits().synchronizes == Synchronizes::Grid) =>
            {
                self.flags.cooperative = true;
                stmt.clone()
            }
            _ => self.walk_stmt(stmt),
        }
    }
}
