//! Variants of the elementwise operations, and their common part: the operands of a call and the computed expression.
//!
//! One element of the output is a function of one element of each input region and of scalars. Regions of other extents
//! than the output's are broadcast as NumPy does it: dimensions are aligned at the last, and one of extent one is
//! repeated.

mod reg;
mod smem;

use std::sync::Arc;

use super::call::{Operand, PrimitiveCall};
use super::decline::Decline;
use super::digits::split;
use super::formula::Formula;
use super::operands::elements;
use super::option::{OptionKind, TileOption};
use super::predicates::{FULL_SCOPE, SCOPE};
use super::variant::Variant;
use crate::intrin::{GpuSet, Op};
use crate::ir::tile::TileParam;
use crate::ir::typing::{self, Arithmetic, Operand as Value};
use crate::ir::{BufferRegion, DType, Expr, Stmt, TileOp, Var};
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
    TileOp::BinaryChain,
];

const ROUNDING: &[TileOption] = &[TileOption {
    name: "rounding_mode",
    kind: OptionKind::Word(&["rn", "rz", "rm", "rp"]),
    default: "\"rn\"",
    doc: "how add, sub, mul and fma of float32 and float64 round: to nearest, toward zero, down or up",
}];

/// Those of which one instruction computes two elements of float32.
const PACKED: &[TileOp] = &[TileOp::Add, TileOp::Sub, TileOp::Mul, TileOp::Fma];

pub(super) static VARIANTS: &[Variant] = &[
    Variant {
        ops: PACKED,
        name: "reg_packed",
        aliases: &["reg"],
        priority: 11,
        arch: GpuSet::least(100),
        options: ROUNDING,
        predicates: &[SCOPE, FULL_SCOPE, reg::ALL_LOCAL],
        plan: reg::plan_packed,
        doc: "as `reg`, two neighbours of float32 by one instruction",
        ..Variant::DEFAULT
    },
    Variant {
        ops: OPERATIONS,
        name: "reg",
        predicates: &[SCOPE, FULL_SCOPE, reg::ALL_LOCAL],
        options: ROUNDING,
        plan: reg::plan,
        doc: "each thread computes its own elements of the output",
        ..Variant::DEFAULT
    },
    Variant {
        ops: OPERATIONS,
        name: "smem",
        predicates: &[SCOPE, FULL_SCOPE, smem::ALL_SHARED],
        options: ROUNDING,
        plan: smem::plan,
        doc: "elements in shared memory, in vectors of up to 16 bytes, spread over the threads of the scope",
        ..Variant::DEFAULT
    },
];

/// A call's operands and the value of an element.
pub(super) struct Elementwise {
    op: TileOp,
    /// The output.
    pub(super) dst: BufferRegion,
    /// The inputs; for unary operations the bias is the second.
    pub(super) sources: Vec<Operand>,
    scale: Option<Expr>,
    has_bias: bool,
    predicate: Option<(Vec<Var>, Expr)>,
    /// The operations of `binary_chain`, and whether the second one has its operand first.
    chain: Option<(Arithmetic, Arithmetic, bool)>,
    /// Rounding that operators cannot express: `rz`, `rm`, `rp`, and `rn` of a fused product and sum.
    pub(super) rounding: Option<Arc<str>>,
    /// The value of the regions' elements.
    value: Formula,
    span: Span,
}

impl Elementwise {
    /// The operands of a call, in the order in which the operation combines them.
    pub(super) fn from_call(call: &PrimitiveCall<'_>) -> Result<Elementwise, Decline> {
        let params = call.op.info().params;
        let output = params.iter().find(|(_, param)| *param == TileParam::Output);
        let (output, _) = output.ok_or("it has no output")?;
        let dst = call.region(output)?.clone();
        let (value, span) = (Formula::none(), call.span);
        let mut this = Elementwise {
            op: call.op,
            dst,
            sources: Vec::new(),
            scale: None,
            has_bias: false,
            predicate: None,
            chain: None,
            rounding: None,
            value,
            span,
        };
        use TileOp::*;
        match call.op {
            // `zero` has no inputs.
            Zero => {}
            Fill | Memset => this.sources.extend(call.operand("value")),
            Sqrt | Exp | Exp2 | Log2 => {
                this.sources.extend(call.operand("src"));
                this.sources.extend(call.operand("bias"));
                this.has_bias = this.sources.len() == 2;
                this.scale = call.scalar("scale").cloned();
                let widest = this.widest(false);
                for (what, e) in [("scale", call.scalar("scale")), ("bias", call.scalar("bias"))] {
                    if let Some(e) = e
                        && e.dtype != widest
                    {
                        return Err(Decline::mistake(
                            format!("{what} dtype {} != compute dtype {widest}", e.dtype),
                            format!("write T.{widest}(…) or T.cast(…, \"{widest}\")"),
                        ));
                    }
                }
            }
            Add | Sub | Mul | Fdiv | Maximum | Minimum => {
                this.sources.extend(call.operand("src1"));
                this.sources.extend(call.operand("src2"));
                this.order_operands()?;
            }
            Select => {
                this.sources.extend(call.operand("true_value"));
                this.sources.extend(call.operand("false_value"));
                let predicate = call.lambda("pred");
                this.predicate = predicate.map(|(vars, body)| (vars.to_vec(), body.clone()));
            }
            Fma => {
                let sources = ["src", "scale", "bias"].map(|name| call.operand(name));
                this.sources.extend(sources.into_iter().flatten());
            }
            BinaryChain => {
                let sources = ["operand0", "data", "operand1"].map(|name| call.operand(name));
                this.sources.extend(sources.into_iter().flatten());
                let of = |name: &str| arithmetic(call.operation(name)?);
                this.chain = Some((of("op0")?, of("op1")?, call.flag("reverse1")?));
            }
            Cast | Reciprocal | Silu => this.sources.extend(call.operand("src")),
            Copy | CopyAsync | PermuteLayout | Gemm | GemmAsync | Sum | Max | Min | ReduceNegate
            | BinaryReduce | UnaryReduce | ComposeOp => return Err("it is no elementwise operation".into()),
        }
        this.check_shapes()?;
        this.rounding = this.rounding_of(call)?;
        let dtypes: Vec<DType> = this.sources.iter().map(Operand::dtype).collect();
        this.value = Formula::build(&dtypes, |values| {
            let of = |(source, value): (&Operand, &Expr)| match source {
                Operand::Scalar(e) => e.clone(),
                Operand::Region(_) => value.clone(),
            };
            let values: Vec<Expr> = this.sources.iter().zip(values).map(of).collect();
            let value = this.compute(&values, span)?;
            typing::cast(value, this.dst.buffer.dtype, span)
        })
        .map_err(|error| Decline::Mistake {
            span: error.span,
            message: error.message,
            help: error.help,
        })?;
        Ok(this)
    }

    /// `rounding_mode=`, which PTX supports for sums and products of float32 and float64.
    fn rounding_of(&self, call: &PrimitiveCall<'_>) -> Result<Option<Arc<str>>, Decline> {
        let mode = match call.option_text("rounding_mode") {
            "" => return Ok(None),
            mode => mode,
        };
        let dtype = self.dst.buffer.dtype;
        let same = self.sources.iter().all(|s| s.dtype() == dtype);
        let rounds = matches!(self.op, TileOp::Add | TileOp::Sub | TileOp::Mul | TileOp::Fma);
        let has = rounds && same && [DType::FLOAT32, DType::FLOAT64].contains(&dtype);
        // Operators round to the nearest, and `a * b + c` may do so once or twice.
        if mode == "rn" && !(has && self.op == TileOp::Fma) {
            return Ok(None);
        }
        if !has {
            return Err(Decline::mistake(
                format!("rounding_mode \"{mode}\" is only for add, sub, mul and fma of float32 or float64"),
                "convert the operands with Tx.cast first, or leave out rounding_mode",
            ));
        }
        Ok(Some(mode.into()))
    }

    /// The PTX instruction that computes one element, or two adjacent float32, into where `to` points.
    pub(super) fn instruction(&self, to: Expr, values: Vec<Expr>, pair: bool, span: Span) -> Option<Stmt> {
        use TileOp::*;
        let [two, single, double] = match self.op {
            Add => [Op::PtxAddF32x2, Op::PtxAddF32, Op::PtxAddF64],
            Sub => [Op::PtxSubF32x2, Op::PtxSubF32, Op::PtxSubF64],
            Mul => [Op::PtxMulF32x2, Op::PtxMulF32, Op::PtxMulF64],
            Fma => [Op::PtxFmaF32x2, Op::PtxFmaF32, Op::PtxFmaF64],
            Zero | Fill | Memset | Cast | Sqrt | Exp | Exp2 | Log2 | Reciprocal | Silu | Fdiv | Maximum
            | Minimum | Select | Copy | CopyAsync | PermuteLayout | Gemm | GemmAsync | Sum | Max | Min
            | ReduceNegate | BinaryReduce | UnaryReduce | BinaryChain | ComposeOp => return None,
        };
        let op = match (pair, self.dst.buffer.dtype == DType::FLOAT64) {
            (true, _) => two,
            (false, false) => single,
            (false, true) => double,
        };
        let mut call = op.call().set("d_addr", to).at(span);
        for (name, value) in ["a", "b", "c"].into_iter().zip(values) {
            call = call.set(name, value);
        }
        call = call.set("rounding", self.rounding.as_deref().unwrap_or("rn"));
        if pair {
            call = call.set("return_dtype", "void");
        }
        Some(call.stmt())
    }

    /// Whether one instruction may compute two elements: sums and products of float32.
    pub(super) fn has_pairs(&self) -> bool {
        let dtype = |s: &Operand| s.dtype() == DType::FLOAT32;
        PACKED.contains(&self.op) && self.dst.buffer.dtype == DType::FLOAT32 && self.sources.iter().all(dtype)
    }

    /// A scalar or smaller first operand is swapped with the second where the operation allows it.
    fn order_operands(&mut self) -> Result<(), Decline> {
        let [a, b] = &self.sources[..] else {
            return Err("two operands are needed".into());
        };
        let commutes = !matches!(self.op, TileOp::Sub | TileOp::Fdiv);
        let name = self.op.name();
        let exchange = match (a, b) {
            (Operand::Scalar(_), Operand::Scalar(_)) => {
                return Err(Decline::mistake(
                    format!("{name}: both inputs are scalars"),
                    match self.op {
                        TileOp::Maximum => {
                            "Tx.fill(dst, T.max(a, b)) fills a region with the larger of two values"
                        }
                        TileOp::Minimum => {
                            "Tx.fill(dst, T.min(a, b)) fills a region with the smaller of two values"
                        }
                        _ => "Tx.fill(dst, …) fills a region with a value that T computes",
                    },
                ));
            }
            (Operand::Scalar(_), _) => commutes,
            (Operand::Region(x), Operand::Region(y)) => commutes && elements(x) < elements(y),
            _ => false,
        };
        if exchange {
            self.sources.swap(0, 1);
        }
        Ok(())
    }

    /// Every region is constant in its extents and broadcasts to the output.
    fn check_shapes(&self) -> Result<(), Decline> {
        let Some(out) = self.dst.const_extents() else {
            return Err("the extents of the output are not constant".into());
        };
        for region in self.inputs() {
            let Some(extents) = region.const_extents() else {
                return Err(format!("the extents of {} are not constant", region.buffer.name).into());
            };
            let Some(pad) = out.len().checked_sub(extents.len()) else {
                return Err(Decline::mistake(
                    format!(
                        "{} has {} dimensions, but the output has {}",
                        region.buffer.name,
                        extents.len(),
                        out.len()
                    ),
                    "an input has at most the dimensions of the output",
                ));
            };
            for (dim, extent) in extents.iter().enumerate() {
                let anchor = out[pad + dim];
                if *extent != anchor && *extent != 1 {
                    return Err(Decline::mistake(
                        format!(
                            "dimension {dim} of {} has {extent} elements, but the output has {anchor} there",
                            region.buffer.name
                        ),
                        "dimensions are aligned at the last one; each has the output's extent, or 1 to be repeated",
                    ));
                }
            }
        }
        Ok(())
    }

    fn inputs(&self) -> impl Iterator<Item = &BufferRegion> {
        self.sources.iter().filter_map(|s| match s {
            Operand::Region(region) => Some(region),
            Operand::Scalar(_) => None,
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
            if matches!(source, Operand::Scalar(_)) && !scalars {
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
                Operand::Scalar(e) => e.clone(),
                Operand::Region(region) => {
                    Expr::load(&region.buffer, self.coordinate(region, at, number)).at(span)
                }
            })
            .collect()
    }

    /// The value of the output element at `at`, converted to the output's dtype.
    pub(super) fn value(&self, at: &[Expr], number: &Expr) -> Expr {
        let values = self.values(at, number, self.span);
        let coordinate: Vec<Expr> = at
            .iter()
            .zip(&self.dst.ranges)
            .map(|(i, (start, _))| minus(i.clone(), start))
            .collect();
        self.value_of(&values, &coordinate)
    }

    /// The value of the output element from the inputs' `values`, where `coordinate` counts in the region; converted to
    /// the output's dtype.
    pub(super) fn value_of(&self, values: &[Expr], coordinate: &[Expr]) -> Expr {
        let vars = self.predicate.as_ref().map_or(&[][..], |(vars, _)| vars);
        self.value.apply_with(values, &|v| {
            let i = vars.iter().position(|w| w == v)?;
            coordinate.get(i).cloned()
        })
    }

    /// The value from the inputs' values, where a predicate has its own variables.
    fn compute(&self, values: &[Expr], span: Span) -> crate::diagnostic::Result<Value> {
        use TileOp::*;
        let operand = |i: usize| values.get(i).cloned().map_or(Value::Float(0.0), Value::Expr);
        let math = |op: Arithmetic, a: Value, b: Value| typing::binary(op, a, b, span).map(Value::Expr);
        let call = |op: Op, x: Value| -> crate::diagnostic::Result<Value> {
            let x = typing::literal(x, span)?;
            if !x.dtype.is_floating() {
                let message = format!("{} needs floating elements, found {}", self.op.name(), x.dtype);
                return crate::diagnostic::error(span, message);
            }
            let dtype = x.dtype;
            Ok(Value::Expr(Expr::call(op, dtype, vec![x]).at(span)))
        };
        let one = |like: &Expr, value: f64| -> crate::diagnostic::Result<Value> {
            Ok(Value::Expr(typing::float_constant(like.dtype, value, span)?))
        };
        let scaled = || -> crate::diagnostic::Result<Value> {
            let mut x = operand(0);
            if let Some(scale) = &self.scale {
                x = math(Arithmetic::Mul, x, scale.clone().into())?;
            }
            if self.has_bias {
                x = math(Arithmetic::Add, x, operand(1))?;
            }
            Ok(x)
        };
        Ok(match self.op {
            Zero => Value::Int(0),
            Fill | Memset | Cast => operand(0),
            Sqrt => call(Op::Sqrt, scaled()?)?,
            Exp => call(Op::Exp, scaled()?)?,
            Exp2 => call(Op::Exp2, scaled()?)?,
            Log2 => call(Op::Log2, scaled()?)?,
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
            BinaryChain => {
                let (first, second, reversed) =
                    self.chain.unwrap_or((Arithmetic::Add, Arithmetic::Add, false));
                let inner = math(first, operand(0), operand(1))?;
                match reversed {
                    true => math(second, operand(2), inner)?,
                    false => math(second, inner, operand(2))?,
                }
            }
            Select => {
                let condition = match &self.predicate {
                    Some((_, body)) => body.clone(),
                    None => Expr::bool(true),
                };
                Value::Expr(typing::if_then_else(
                    condition.into(),
                    operand(0),
                    operand(1),
                    span,
                )?)
            }
            Copy | CopyAsync | PermuteLayout | Gemm | GemmAsync | Sum | Max | Min | ReduceNegate
            | BinaryReduce | UnaryReduce | ComposeOp => {
                return crate::diagnostic::error(
                    span,
                    format!("{} is no elementwise operation", self.op.name()),
                );
            }
        })
    }
}

/// The operator of a binary operation.
pub(super) fn arithmetic(op: TileOp) -> Result<Arithmetic, Decline> {
    Ok(match op {
        TileOp::Add => Arithmetic::Add,
        TileOp::Sub => Arithmetic::Sub,
        TileOp::Mul => Arithmetic::Mul,
        TileOp::Fdiv => Arithmetic::TrueDiv,
        TileOp::Maximum => Arithmetic::Max,
        TileOp::Minimum => Arithmetic::Min,
        other => {
            return Err(Decline::mistake(
                format!("{} is no operation on two operands", other.name()),
                "the operations are add, sub, mul, fdiv, maximum and minimum",
            ));
        }
    })
}

fn plus(a: Expr, b: &Expr) -> Expr {
    crate::layout::apply::binary(crate::ir::BinOp::Add, a, b.clone())
}

fn minus(a: Expr, b: &Expr) -> Expr {
    crate::layout::apply::binary(crate::ir::BinOp::Sub, a, b.clone())
}

/// The coordinate of the element with row-major number `number` in a region of constant extents.
pub(in super::super) fn coordinate_of(number: &Expr, region: &BufferRegion) -> Vec<Expr> {
    let extents: Vec<i128> = (region.ranges.iter())
        .map(|(_, e)| e.as_int().unwrap_or(1))
        .collect();
    let digits = split(number, &extents).into_iter().zip(&extents);
    let at = |((start, _), (digit, extent)): (&(Expr, Expr), (Expr, &i128))| match extent {
        1 => start.clone(),
        _ => plus(digit, start),
    };
    region.ranges.iter().zip(digits).map(at).collect()
}
