//! Where a plan writes: statements in place of the call, and what the call needs elsewhere.
//!
//! A variant may need work on the host before the launch (tensor maps), at the entry of the device region (an mbarrier,
//! a prefetch), after the definition of a buffer (a descriptor), shared memory or a named barrier of its own, and other tile
//! calls. [`Emit`] has a function for each; [`Outside`] collects what does not stand in the call's place, for the whole
//! device region, and puts it there when the region is complete. Equal work is done once: the functions take a key, and
//! tensor maps are compared.

use rustc_hash::{FxHashMap, FxHashSet};

use super::context::Context;
use crate::intrin::Op;
use crate::ir::abi::keys;
use crate::ir::abi::tensor_map::ENCODE;
use crate::ir::{
    Buffer, BufferNode, DType, Expr, ExprKind, Mutator, Stmt, StmtKind, TileCall, Type, Var, Visitor,
};
use crate::source::Span;

/// See the [module](self).
pub(super) struct Emit<'e, 'a> {
    /// The call's context.
    pub(super) cx: &'e mut Context<'a>,
    outside: &'e mut Outside,
    stmts: Vec<Stmt>,
}

impl<'e, 'a> Emit<'e, 'a> {
    pub(super) fn new(cx: &'e mut Context<'a>, outside: &'e mut Outside) -> Emit<'e, 'a> {
        Emit {
            cx,
            outside,
            stmts: Vec::new(),
        }
    }

    /// The statements in place of the call.
    pub(super) fn finish(self) -> Stmt {
        Stmt::seq(self.stmts)
    }

    /// The call's place.
    pub(super) fn span(&self) -> Span {
        self.cx.span
    }

    /// A statement in place of the call, after those before.
    pub(super) fn push(&mut self, stmt: Stmt) {
        self.stmts.push(stmt);
    }

    /// A statement at the entry of the device region, which every thread executes; of several with one key only the first.
    /// It can use parameters, scope ids and buffers of [`Emit::shared`].
    pub(super) fn entry(&mut self, key: impl Into<String>, stmt: Stmt) {
        let key = key.into();
        if self.outside.keys.insert(key) {
            self.outside.entry.push(stmt);
        }
    }

    /// A value that is computed at the entry of the device region, once per key.
    pub(super) fn entry_value(&mut self, key: impl Into<String>, name: &str, value: Expr) -> Expr {
        let key = key.into();
        let span = self.cx.span;
        if let Some(var) = self.outside.values.get(&key) {
            return Expr::var(var).at(span);
        }
        let var = Var::at(name, value.dtype, span);
        self.outside.entry.push(Stmt::bind(&var, value, span));
        self.outside.values.insert(key, var.clone());
        Expr::var(&var).at(span)
    }

    /// A statement on the host, before the launch. It can use parameters and what [`Context::on_host`] gives.
    pub(super) fn host(&mut self, stmt: Stmt) {
        self.outside.host.push(stmt);
    }

    /// A tensor map, which the host encodes before the launch; equal ones are one. Gives the address that instructions
    /// take: `T.address_of(map)`.
    pub(super) fn tensor_map(&mut self, map: TensorMap) -> Expr {
        let span = self.cx.span;
        let known = self.outside.maps.iter().find(|(other, _)| *other == map);
        let var = match known {
            Some((_, var)) => var.clone(),
            None => {
                let var = Var::at(format!("{}_map", map.name), Type::TensorMap, span);
                let allocate = Op::TvmStackAlloca
                    .call()
                    .set("dtype", "tensormap")
                    .set("num", 1)
                    .at(span);
                self.outside.host.push(Stmt::bind(&var, allocate.build(), span));
                self.outside.host.push(map.encode(&var, span));
                self.outside.maps.push((map, var.clone()));
                var
            }
        };
        Expr::call(Op::AddressOf, DType::UINT64, vec![Expr::var(&var).at(span)]).at(span)
    }

    /// Shared memory of the variant's own, for this call. `align` is in bytes.
    pub(super) fn shared(&mut self, name: &str, shape: &[i128], dtype: DType, align: u32) -> Buffer {
        let buffer = shared_buffer(name, shape, dtype, align, self.cx.span);
        self.outside.shared.push(buffer.clone());
        buffer
    }

    /// Shared memory that all calls with this key use in turn. The variant sees to the barriers between them.
    pub(super) fn shared_once(
        &mut self,
        key: impl Into<String>,
        name: &str,
        shape: &[i128],
        dtype: DType,
        align: u32,
    ) -> Buffer {
        let key = key.into();
        if let Some(buffer) = self.outside.buffers.get(&key) {
            return buffer.clone();
        }
        let buffer = self.shared(name, shape, dtype, align);
        self.outside.buffers.insert(key, buffer.clone());
        buffer
    }

    /// A value that is computed right after the definition of `buffer`, once per key: `make` gives the statements and the
    /// value. A buffer that is a parameter is defined at the entry.
    pub(super) fn after(
        &mut self,
        buffer: &Buffer,
        key: impl Into<String>,
        make: impl FnOnce(Span) -> (Vec<Stmt>, Expr),
    ) -> Expr {
        let key = (buffer.clone(), key.into());
        if let Some(value) = self.outside.after_values.get(&key) {
            return value.clone();
        }
        let (stmts, value) = make(self.cx.span);
        self.outside
            .after
            .entry(buffer.clone())
            .or_default()
            .extend(stmts);
        self.outside.after_values.insert(key, value.clone());
        value
    }

    /// The number of a named barrier that nothing else in the kernel uses; the same for all calls with one key. The plan
    /// must have asked [`Context::named_barrier_left`].
    pub(super) fn named_barrier(&mut self, key: impl Into<String>) -> Expr {
        let key = key.into();
        let number = match self.outside.barriers.get(&key) {
            Some(number) => *number,
            None => {
                let taken = |n: &i32| {
                    !self.cx.launch.barriers.contains(n) && !self.outside.barriers.values().any(|b| b == n)
                };
                let number = OWN_BARRIERS.rev().find(taken).unwrap_or(OWN_BARRIERS.end - 1);
                self.outside.barriers.insert(key, number);
                number
            }
        };
        Expr::int32(number).at(self.cx.span)
    }

    /// Another tile call in this place, which is dispatched in turn.
    pub(super) fn tile(&mut self, call: TileCall) {
        self.stmts
            .push(Stmt::new(StmtKind::Tile(Box::new(call)), self.cx.span));
    }
}

fn shared_buffer(name: &str, shape: &[i128], dtype: DType, align: u32, span: Span) -> Buffer {
    let shape: Vec<Expr> = shape.iter().map(|e| Expr::int32(*e as i32)).collect();
    let fresh = Buffer::fresh(name, shape, dtype, "shared", span);
    Buffer::new(BufferNode {
        align,
        ..(*fresh).clone()
    })
}

/// A tensor map: what `cuTensorMapEncodeTiled` takes. Dimension 0 is the innermost one.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct TensorMap {
    /// The name of its tensor.
    pub(super) name: String,
    /// Element dtype.
    pub(super) dtype: DType,
    /// Address of the first element, on the host.
    pub(super) address: Expr,
    /// Extents in elements, on the host.
    pub(super) dims: Vec<Expr>,
    /// Bytes between indices of dimensions 1, 2, …; on the host.
    pub(super) strides: Vec<Expr>,
    /// Elements of a copy along each dimension.
    pub(super) box_dims: Vec<i128>,
    /// Steps in elements along each dimension.
    pub(super) element_strides: Vec<i128>,
    /// `CUtensorMapInterleave`.
    pub(super) interleave: i32,
    /// `CUtensorMapSwizzle`: none, 32, 64, 128 bytes.
    pub(super) swizzle: i32,
    /// `CUtensorMapL2promotion`.
    pub(super) l2_promotion: i32,
    /// `CUtensorMapFloatOOBfill`.
    pub(super) oob_fill: i32,
    /// `CUtensorMapDataType` where the dtype does not say it.
    pub(super) data_type: Option<i32>,
}

impl TensorMap {
    /// The host's call.
    fn encode(&self, var: &Var, span: Span) -> Stmt {
        let number = |v: i128| Expr::int32(v as i32).at(span);
        let mut args = vec![
            Expr::var(var).at(span),
            Expr::string(self.dtype.to_string()).at(span),
            number(self.dims.len() as i128),
            self.address.clone(),
        ];
        args.extend(self.dims.iter().cloned());
        args.extend(self.strides.iter().cloned());
        args.extend(self.box_dims.iter().map(|v| number(*v)));
        args.extend(self.element_strides.iter().map(|v| number(*v)));
        let modes = [self.interleave, self.swizzle, self.l2_promotion, self.oob_fill];
        args.extend(modes.map(|v| number(v.into())));
        args.extend(self.data_type.map(|v| number(v.into())));
        let call = Op::TvmCallPacked
            .call()
            .set("func_name", ENCODE)
            .list("args", args);
        call.at(span).stmt()
    }
}

/// The named barriers that [`Emit::named_barrier`] gives out. Those from 8 on belong to the warpgroups.
pub(super) const OWN_BARRIERS: std::ops::Range<i32> = 1..8;

/// What the calls of a device region write outside their places.
#[derive(Default)]
pub(super) struct Outside {
    /// On the host, before the launch.
    pub(super) host: Vec<Stmt>,
    maps: Vec<(TensorMap, Var)>,
    shared: Vec<Buffer>,
    buffers: FxHashMap<String, Buffer>,
    entry: Vec<Stmt>,
    keys: FxHashSet<String>,
    values: FxHashMap<String, Var>,
    after: FxHashMap<Buffer, Vec<Stmt>>,
    after_values: FxHashMap<(Buffer, String), Expr>,
    barriers: FxHashMap<String, i32>,
}

impl Outside {
    /// The region's body with the shared memory, the statements at the entry and those after definitions.
    pub(super) fn around(&mut self, body: Stmt) -> Stmt {
        let body = if self.after.is_empty() {
            body
        } else {
            let mut insert = AfterDefinitions {
                after: &mut self.after,
            };
            insert.stmt(&body)
        };
        let shared = self.shared.drain(..);
        let mut all: Vec<Stmt> = shared
            .map(|b| {
                let span = b.span;
                Stmt::new(StmtKind::AllocBuffer(b, Vec::new()), span)
            })
            .collect();
        all.append(&mut self.entry);
        // What is left belongs to buffers that are defined outside the region, in the order of their names.
        let mut left: Vec<(Buffer, Vec<Stmt>)> = self.after.drain().collect();
        left.sort_by(|a, b| a.0.name.cmp(&b.0.name));
        all.extend(left.into_iter().flat_map(|(_, stmts)| stmts));
        if all.is_empty() {
            return body;
        }
        in_launch(&body, all)
    }
}

/// `before` in front of a body, inside the launch where the body is one.
fn in_launch(body: &Stmt, mut before: Vec<Stmt>) -> Stmt {
    match &body.kind {
        StmtKind::Attr(attr) if &*attr.key == keys::THREAD_EXTENT => {
            let inner = in_launch(&attr.body, before);
            Stmt::attr(
                attr.node.clone(),
                attr.key.clone(),
                attr.value.clone(),
                inner,
                body.span,
            )
        }
        _ => {
            before.push(body.clone());
            Stmt::seq(before)
        }
    }
}

/// Inserts statements after the definitions of buffers.
struct AfterDefinitions<'a> {
    after: &'a mut FxHashMap<Buffer, Vec<Stmt>>,
}

impl Mutator for AfterDefinitions<'_> {
    fn expr(&mut self, expr: &Expr) -> Expr {
        expr.clone()
    }

    fn stmt(&mut self, stmt: &Stmt) -> Stmt {
        match &stmt.kind {
            StmtKind::AllocBuffer(buffer, _) | StmtKind::DeclBuffer(buffer) => {
                match self.after.remove(buffer) {
                    Some(stmts) => Stmt::seq(std::iter::once(stmt.clone()).chain(stmts)),
                    None => stmt.clone(),
                }
            }
            _ => self.walk_stmt(stmt),
        }
    }
}

/// The numbers of the named barriers that a statement uses; all of them where one is not a constant.
pub(in super::super) fn named_barriers(body: &Stmt) -> FxHashSet<i32> {
    struct Find(FxHashSet<i32>);
    impl Visitor for Find {
        fn visit_expr(&mut self, e: &Expr) {
            if let ExprKind::Call { op, args } = &e.kind {
                let number = match op {
                    Op::PtxBarSync | Op::PtxBarArrive | Op::PtxBarrierSync | Op::CudaWarpgroupSync => {
                        args.first()
                    }
                    _ => None,
                };
                match number.map(Expr::as_int) {
                    Some(Some(number)) => {
                        self.0.extend(i32::try_from(number));
                    }
                    Some(None) => self.0.extend(0..16),
                    None => {}
                }
            }
            self.walk_expr(e);
        }
    }
    let mut find = Find(FxHashSet::default());
    find.visit_stmt(body);
    find.0
}
