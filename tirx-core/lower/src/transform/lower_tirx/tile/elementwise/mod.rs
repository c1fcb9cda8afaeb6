//! Variants of the elementwise operations, and their common part: the operands of a call and the computed expression.
//!
//! One element of the output is a function of one element of each input region and of scalars. Regions of other extents
//! than the output's are broadcast as NumPy does it: dimensions are aligned at the last, and one of extent one is
//! repeated.

mod reg;
mod smem;

pub(super) use smem::barrier;

use std::sync::Arc;

use super::build::elements;
use super::context::Context;
use super::copy::{FULL_SCOPE, SCOPE};
use super::variant::{OptionKind, TileOption, Variant, ready};
use crate::intrin::Op;
use crate::ir::typing::{self, Arithmetic, Operand};
use crate::ir::{BufferRegion, DType, Expr, Stmt, TileArg, TileCall, TileOp, Var, substitute};
use crate::source::Span;

/// The operations whose elements are independent of each other.
const OPERATIONS: &[TileOp] = &[
    TileOp::Zero,
    TileOp::Fill,
    TileOp::Memset,
    TileOp::Cast,
    TileOp::Sqrt,
    TileOp::Exp,
    TileOp::Exp2,
    TileOp::Log2,
    TileOp::Reciprocal,
    TileOp::Silu,
    TileOp::Add,
    TileOp::Sub,
    TileOp::Mul,
    TileOp::Fdiv,
    TileOp::Maximum,
    TileOp::Minimum,
    TileOp::Fma,
    TileOp::Select,
];

const ROUNDING: &[TileOption] = &[TileOption {
    name: "rounding_mode",
    kind: OptionKind::Word(&["rn", "rz", "rm", "rp"]),
    default: "\"rn\"",
    doc: "how add, sub, mul and fma of float32 and float64 round: to nearest, toward zero, down or up",
}];

pub(super) static VARIANTS: &[Variant] = &[
    Variant {
        ops: OPERATIONS,
        name: "reg",
        aliases: &[],
        priority: 10,
        only_forced: false,
        predicates: &[SCOPE, FULL_SCOPE, reg::ALL_LOCAL],
        options: ROUNDING,
        plan: |call, cx| ready(call, cx, reg::lower),
        doc: "each thread computes what it holds of the output",
        ..Variant::DEFAULT
    },
    Variant {
        ops: OPERATIONS,
        name: "smem",
        aliases: &[],
        priority: 10,
        only_forced: false,
        predicates: &[SCOPE, FULL_SCOPE, smem::ALL_SHARED],
        options: ROUNDING,
        plan: |call, cx| ready(call, cx, smem::lower),
        doc: "elements in shared memory, in vectors of up to 16 bytes, spread over the threads of the scope",
        ..Variant::DEFAULT
    },
];

/// An input.
#[derive(Clone)]
pub(super) enum Source {
    /// A region.
    Region(BufferRegion),
    /// One scalar for all elements.
    Scalar(Expr),
}

impl Source {
    fn dtype(&self) -> DType {
        match self {
            Source::Region(region) => region.buffer.dtype,
            Source::Scalar(e) => e.dtype,
        }
    }
}

/// A call's operands and operation.
pub(super) struct Plan {
    op: TileOp,
    /// The output.
    pub(super) dst: BufferRegion,
    /// The inputs; for unary operations the bias is the second.
    pub(super) sources: Vec<Source>,
    scale: Option<Expr>,
    has_bias: bool,
    predicate: Option<(Vec<Var>, Expr)>,
    /// Rounding that operators cannot express: `rz`, `rm`, `rp`, and `rn` of a fused product and sum.
    pub(super) rounding: Option<Arc<str>>,
}

impl Plan {
    /// The operands of a call, in the order in which the operation combines them.
    pub(super) fn of(call: &TileCall) -> Result<Plan, String> {
        let source = |i: usize| match call.args.get(i) {
            Some(TileArg::Region(region)) => Some(Source::Region(region.clone())),
            Some(TileArg::Expr(e)) => Some(Source::Scalar(e.clone())),
            _ => None,
        };
        let dst = call.region(0).ok_or("the output is no region")?.clone();
        let mut plan = Plan {
            op: call.op,
            dst,
            sources: Vec::new(),
            scale: None,
            has_bias: false,
            predicate: None,
            rounding: None,
        };
        use TileOp::*;
        match call.op {
            // `zero` has no inputs.
            Zero => {}
            Sqrt | Exp | Exp2 | Log2 => {
                plan.sources.extend(source(1));
                plan.sources.extend(source(2));
                plan.has_bias = plan.sources.len() == 2;
                plan.scale = call.args.get(3).and_then(TileArg::as_expr).cloned();
                let widest = plan.widest(false);
                for (what, e) in [
                    ("scale", plan.scale.as_ref()),
                    ("bias", call.args.get(2).and_then(TileArg::as_expr)),
                ] {
                    if let Some(e) = e
                        && e.dtype != widest
                    {
                        return Err(format!("{what} dtype {} != compute dtype {widest}", e.dtype));
                    }
                }
            }
            Add | Sub | Mul | Fdiv | Maximum | Minimum => {
                plan.sources.extend(source(1));
                plan.sources.extend(source(2));
                plan.order_operands()?;
            }
            Select => {
                plan.sources.extend(source(1));
                plan.sources.extend(source(2));
                if let Some(TileArg::Lambda(vars, body)) = call.args.get(3) {
                    plan.predicate = Some((vars.clone(), body.clone()));
                }
            }
            _ => plan.sources.extend((1..call.args.len()).filter_map(source)),
        }
        plan.check_shapes()?;
        plan.rounding = plan.rounding_of(call)?;
        Ok(plan)
    }

    /// `rounding_mode=`, which PTX supports for sums and products of float32 and float64.
    fn rounding_of(&self, call: &TileCall) -> Result<Option<Arc<str>>, String> {
        let mode = match call.config.get("rounding_mode") {
            None => return Ok(None),
            Some(mode) => mode.as_str().ok_or("rounding_mode is the name of a rounding")?,
        };
        if !["rn", "rz", "rm", "rp"].contains(&mode) {
            return Err(format!(
                "rounding_mode must be rn, rz, rm or rp, found \"{mode}\""
            ));
        }
        let dtype = self.dst.buffer.dtype;
        let same = self.sources.iter().all(|s| s.dtype() == dtype);
        let rounds = matches!(self.op, TileOp::Add | TileOp::Sub | TileOp::Mul | TileOp::Fma);
        let has = rounds && same && [DType::FLOAT32, DType::FLOAT64].contains(&dtype);
        // Operators round to the nearest, and `a * b + c` may do so once or twice.
        if mode == "rn" && !(has && self.op == TileOp::Fma) {
            return Ok(None);
        }
        if !has {
            return Err(format!(
                "rounding_mode \"{mode}\" is for add, sub, mul and fma of float32 or float64 alone"
            ));
        }
        Ok(Some(mode.into()))
    }

    /// The PTX instruction that computes one element, or two adjacent float32, into where `to` points.
    pub(super) fn instruction(&self, to: Expr, values: Vec<Expr>, pair: bool, span: Span) -> Option<Stmt> {
        let double = self.dst.buffer.dtype == DType::FLOAT64;
        let op = match (self.op, pair, double) {
            (TileOp::Add, true, _) => Op::PtxAddF32x2,
            (TileOp::Sub, true, _) => Op::PtxSubF32x2,
            (TileOp::Mul, true, _) => Op::PtxMulF32x2,
            (TileOp::Fma, true, _) => Op::PtxFmaF32x2,
            (TileOp::Add, _, false) => Op::PtxAddF32,
            (TileOp::Sub, _, false) => Op::PtxSubF32,
            (TileOp::Mul, _, false) => Op::PtxMulF32,
            (TileOp::Fma, _, false) => Op::PtxFmaF32,
            (TileOp::Add, _, true) => Op::PtxAddF64,
            (TileOp::Sub, _, true) => Op::PtxSubF64,
            (TileOp::Mul, _, true) => Op::PtxMulF64,
            (TileOp::Fma, _, true) => Op::PtxFmaF64,
            _ => return None,
        };
        let mode = Expr::string(self.rounding.as_deref().unwrap_or("rn")).at(span);
        let number = |v: i32| Expr::int32(v).at(span);
        let mut args = vec![to];
        args.extend(values);
        args.push(mode);
        if pair {
            args.extend([number(0), number(1), Expr::string("void").at(span)]);
        } else {
            args.extend([number(0), number(0)]);
        }
        Some(Stmt::evaluate(Expr::call(op, DType::VOID, args).at(span)))
    }

    /// Whether one instruction may compute two elements: sums and products of float32 on sm_100.
    pub(super) fn has_pairs(&self, cx: &Context<'_>) -> bool {
        let dtype = |s: &Source| s.dtype() == DType::FLOAT32;
        matches!(self.op, TileOp::Add | TileOp::Sub | TileOp::Mul | TileOp::Fma)
            && self.dst.buffer.dtype == DType::FLOAT32
            && self.sources.iter().all(dtype)
            && cx.has_capability(100)
    }

    /// A scalar or smaller first operand is swapped with the second where the operation allows it.
    fn order_operands(&mut self) -> Result<(), String> {
        let [a, b] = &self.sources[..] else {
            return Err("two operands are needed".to_string());
        };
        let commutes = !matches!(self.op, TileOp::Sub | TileOp::Fdiv);
        let name = self.op.name();
        let exchange = match (a, b) {
            (Source::Scalar(_), Source::Scalar(_)) => return Err("both inputs are constants".to_string()),
            (Source::Scalar(_), _) if commutes => true,
            (Source::Scalar(_), _) => {
                return Err(format!("non-commutative op {name} cannot have constant lhs"));
            }
            (Source::Region(x), Source::Region(y)) if elements(x) < elements(y) => {
                if !commutes {
                    return Err(format!("non-commutative op {name} cannot swap to broadcast"));
                }
                true
            }
            _ => false,
        };
        if exchange {
            self.sources.swap(0, 1);
        }
        Ok(())
    }

    /// Every region is constant in its extents and broadcasts to the output.
    fn check_shapes(&self) -> Result<(), String> {
        let Some(out) = self.dst.const_extents() else {
            return Err("the extents of the output are not constant".to_string());
        };
        for region in self.inputs() {
            let Some(extents) = region.const_extents() else {
                return Err(format!("the extents of {} are not constant", region.buffer.name));
            };
            let Some(pad) = out.len().checked_sub(extents.len()) else {
                return Err(format!(
                    "shape incompat: op rank {} > anchor rank {}",
                    extents.len(),
                    out.len()
                ));
            };
            for (dim, extent) in extents.iter().enumerate() {
                let anchor = out[pad + dim];
                if *extent != anchor && *extent != 1 {
                    return Err(format!(
                        "shape incompat: dim {dim}: op extent {extent} vs anchor {anchor} (need equal or 1)"
                    ));
                }
            }
        }
        Ok(())
    }

    fn inputs(&self) -> impl Iterator<Item = &BufferRegion> {
        self.sources.iter().filter_map(|s| match s {
            Source::Region(region) => Some(region),
            Source::Scalar(_) => None,
        })
    }

    /// Every region, the output first.
    pub(super) fn regions(&self) -> impl Iterator<Item = &BufferRegion> {
        std::iter::once(&self.dst).chain(self.inputs())
    }

    /// The widest dtype of the output, the regions and, with `scalars`, the scalars; the first of equals.
    fn widest(&self, scalars: bool) -> DType {
        let mut widest = self.dst.buffer.dtype;
        for source in &self.sources {
            if matches!(source, Source::Scalar(_)) && !scalars {
                continue;
            }
            if source.dtype().bits > widest.bits {
                widest = source.dtype();
            }
        }
        widest
    }

    /// Bits of the widest element of any region.
    pub(super) fn widest_bits(&self) -> i128 {
        self.widest(false).bits.into()
    }

    /// The coordinate in `region` that belongs to coordinate `at` of the output, whose row-major number is `number`.
    pub(super) fn coordinate(&self, region: &BufferRegion, at: &[Expr], number: &Expr) -> Vec<Expr> {
        let same = region.ranges.iter().map(|(_, e)| e.as_int()).eq(self
            .dst
            .ranges
            .iter()
            .map(|(_, e)| e.as_int()));
        if same {
            return coordinate_of(number, region);
        }
        let pad = self.dst.ranges.len() - region.ranges.len();
        let dims = region.ranges.iter().enumerate();
        dims.map(|(dim, (start, extent))| {
            if extent.is_int(1) {
                return start.clone();
            }
            let (out_start, _) = &self.dst.ranges[pad + dim];
            let digit = at[pad + dim].clone() - out_start.clone();
            plus(digit, start)
        })
        .collect()
    }

    /// The input values for the output element at `at`.
    pub(super) fn values(&self, at: &[Expr], number: &Expr, span: Span) -> Vec<Expr> {
        self.sources
            .iter()
            .map(|source| match source {
                Source::Scalar(e) => e.clone(),
                Source::Region(region) => {
                    Expr::load(&region.buffer, self.coordinate(region, at, number)).at(span)
                }
            })
            .collect()
    }

    /// The value of the output element at `at`, converted to the output's dtype.
    pub(super) fn value(&self, at: &[Expr], number: &Expr, span: Span) -> Result<Expr, String> {
        let values = self.values(at, number, span);
        let coordinate: Vec<Expr> = at
            .iter()
            .zip(&self.dst.ranges)
            .map(|(i, (start, _))| minus(i.clone(), start))
            .collect();
        self.value_of(&values, &coordinate, span)
    }

    /// The value of the output element from the inputs' `values`, where `coordinate` counts in the region; converted to
    /// the output's dtype.
    pub(super) fn value_of(&self, values: &[Expr], coordinate: &[Expr], span: Span) -> Result<Expr, String> {
        let value = self
            .compute(values, coordinate, span)
            .map_err(|error| error.message)?;
        typing::cast(value, self.dst.buffer.dtype, span).map_err(|error| error.message)
    }

    fn compute(
        &self,
        values: &[Expr],
        coordinate: &[Expr],
        span: Span,
    ) -> crate::diagnostic::Result<Operand> {
        use TileOp::*;
        let operand = |i: usize| values.get(i).cloned().map_or(Operand::Float(0.0), Operand::Expr);
        let math = |op: Arithmetic, a: Operand, b: Operand| typing::binary(op, a, b, span).map(Operand::Expr);
        let call = |op: Op, x: Operand| -> crate::diagnostic::Result<Operand> {
            let x = typing::literal(x, span)?;
            if !x.dtype.is_floating() {
                let message = format!("{} needs floating elements, found {}", self.op.name(), x.dtype);
                return crate::diagnostic::error(span, message);
            }
            let dtype = x.dtype;
            Ok(Operand::Expr(Expr::call(op, dtype, vec![x]).at(span)))
        };
        let one = |like: &Expr, value: f64| -> crate::diagnostic::Result<Operand> {
            Ok(Operand::Expr(typing::float_constant(like.dtype, value, span)?))
        };
        Ok(match self.op {
            Zero => Operand::Int(0),
            Fill | Memset | Cast => operand(0),
            Sqrt | Exp | Exp2 | Log2 => {
                let mut x = operand(0);
                if let Some(scale) = &self.scale {
                    x = math(Arithmetic::Mul, x, scale.clone().into())?;
                }
                if self.has_bias {
                    x = math(Arithmetic::Add, x, operand(1))?;
                }
                let op = match self.op {
                    Sqrt => Op::Sqrt,
                    Exp => Op::Exp,
                    Exp2 => Op::Exp2,
                    _ => Op::Log2,
                };
                call(op, x)?
            }
            Reciprocal => {
                let x = typing::literal(operand(0), span)?;
                math(Arithmetic::TrueDiv, one(&x, 1.0)?, x.into())?
            }
            Silu => {
                let x = typing::literal(operand(0), span)?;
                let minus = math(Arithmetic::Sub, one(&x, 0.0)?, x.clone().into())?;
                let exp = call(Op::Exp, minus)?;
                let below = math(Arithmetic::Add, one(&x, 1.0)?, exp)?;
                math(Arithmetic::TrueDiv, x.into(), below)?
            }
            Add => math(Arithmetic::Add, operand(0), operand(1))?,
            Sub => math(Arithmetic::Sub, operand(0), operand(1))?,
            Mul => math(Arithmetic::Mul, operand(0), operand(1))?,
            Fdiv => math(Arithmetic::TrueDiv, operand(0), operand(1))?,
            Maximum => math(Arithmetic::Max, operand(0), operand(1))?,
            Minimum => math(Arithmetic::Min, operand(0), operand(1))?,
            Fma => {
                let product = math(Arithmetic::Mul, operand(0), operand(1))?;
                math(Arithmetic::Add, product, operand(2))?
            }
            Select => {
                let condition = match &self.predicate {
                    Some((vars, body)) => {
                        let value = |v: &Var| {
                            let i = vars.iter().position(|w| w == v)?;
                            coordinate.get(i).cloned()
                        };
                        substitute(body, &value)
                    }
                    None => Expr::bool(true),
                };
                Operand::Expr(typing::if_then_else(
                    condition.into(),
                    operand(0),
                    operand(1),
                    span,
                )?)
            }
            _ => return crate::diagnostic::error(span, "no elementwise operation"),
        })
    }
}

fn plus(a: Expr, b: &Expr) -> Expr {
    crate::layout::apply::binary(crate::ir::BinOp::Add, a, b.clone())
}

fn minus(a: Expr, b: &Expr) -> Expr {
    crate::layout::apply::binary(crate::ir::BinOp::Sub, a, b.clone())
}

/// The coordinate of the element with row-major number `number` in a region of constant extents.
pub(in super::super) fn coordinate_of(number: &Expr, region: &BufferRegion) -> Vec<Expr> {
    use crate::arith::fold;
    let mut rest = number.clone();
    let mut digits = Vec::new();
    let outermost = region.ranges.iter().position(|(_, e)| !e.is_int(1)).unwrap_or(0);
    for (dim, (start, extent)) in region.ranges.iter().enumerate().rev() {
        let extent = Expr::constant(rest.dtype, extent.as_int().unwrap_or(1));
        if extent.is_int(1) {
            digits.push(start.clone());
            continue;
        }
        let digit = if dim == outermost {
            rest.clone()
        } else {
            fold::floormod(rest.clone(), extent.clone())
        };
        digits.push(plus(digit, start));
        rest = fold::floordiv(rest, extent);
    }
    digits.reverse();
    digits
}
