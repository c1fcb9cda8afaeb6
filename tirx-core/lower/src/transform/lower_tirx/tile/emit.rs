//! Where a plan writes: statements in place of the call, and what the call needs elsewhere.
//!
//! A variant may need work on the host before the launch (tensor maps) and at the entry of the device region (a prefetch).
//! [`Emit`] has a function for each; [`Outside`] collects what does not stand in the call's place, for the whole device
//! region, and puts it there when the region is complete. Equal work is done once: statements at the entry have a key, and
//! tensor maps are compared.

use rustc_hash::FxHashSet;

use super::context::Context;
use crate::intrin::Op;
use crate::ir::abi::keys;
use crate::ir::abi::tensor_map::ENCODE;
use crate::ir::{DType, Expr, Stmt, StmtKind, Type, Var};
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
    /// It can use parameters and scope ids.
    pub(super) fn entry(&mut self, key: impl Into<String>, stmt: Stmt) {
        let key = key.into();
        if self.outside.keys.insert(key) {
            self.outside.entry.push(stmt);
        }
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

/// What the calls of a device region write outside their places.
#[derive(Default)]
pub(super) struct Outside {
    /// On the host, before the launch.
    pub(super) host: Vec<Stmt>,
    maps: Vec<(TensorMap, Var)>,
    entry: Vec<Stmt>,
    keys: FxHashSet<String>,
}

impl Outside {
    /// The region's body with the statements at the entry.
    pub(super) fn around(&mut self, body: Stmt) -> Stmt {
        let entry = std::mem::take(&mut self.entry);
        match entry.is_empty() {
            true => body,
            false => in_launch(&body, entry),
        }
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
