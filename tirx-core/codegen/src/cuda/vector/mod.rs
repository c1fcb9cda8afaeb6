//! The text of vector expressions.
//!
//! C++ has no arithmetic on `float4`: a vector expression is written lane by lane, each lane a scalar expression
//! over the lanes of its operands, and put together at the end. What the lanes share is computed once before the
//! statement. Loads and stores of consecutive elements are one access of the vector type.

mod casts;
mod words;

use self::casts::converts_whole;
use self::words::{computes_bytes, is_four_bytes, words_of};
use super::code::{Code, int_literal, level};
use super::emitter::Emitter;
use super::helpers::Helper;
use super::types::{self, FIELDS, VectorForm};
use super::{expr, math};
use crate::diagnostic::{Result, error};
use crate::intrin::Op;
use crate::ir::at;
use crate::ir::{BinOp, Buffer, DType, Expr, ExprKind};
use crate::source::Span;

impl Emitter<'_, '_> {
    /// A vector expression as one C++ value.
    pub(super) fn vector(&mut self, e: &Expr) -> Result<Code> {
        match &e.kind {
            ExprKind::Var(var) => self.variable(var, e.span),
            ExprKind::BufferLoad {
                buffer,
                indices,
                predicate: None,
            } => {
                let index = self.single_index(buffer, indices, e.span)?;
                match index {
                    _ if buffer.dtype.is_vector() && index.is_none_or(|i| i.dtype.is_scalar()) => {
                        self.element(buffer, index, e.span)
                    }
                    Some(i) if consecutive(i).is_some() && !e.dtype.is_float4() => {
                        let base = consecutive(i).unwrap_or(i);
                        self.elements(buffer, base, e.dtype, e.span)
                    }
                    _ => self.join_lanes(e),
                }
            }
            ExprKind::Let(var, value, body) => {
                self.bind(var, value, e.span)?;
                self.vector(body)
            }
            ExprKind::Call {
                op: Op::Reinterpret,
                args,
            } => self.reinterpret(e, args),
            ExprKind::Call { op, args } if op.traits().whole_vector => self.call(e, *op, args),
            ExprKind::Call {
                op: Op::IfThenElse,
                args,
            } if args[at!(IfThenElse.cond)].dtype.is_scalar() => {
                let (x, y) = (args[at!(IfThenElse.t)].clone(), args[at!(IfThenElse.f)].clone());
                self.lazy_choice(
                    &args[at!(IfThenElse.cond)],
                    e.dtype,
                    e.span,
                    true,
                    |s| s.vector(&x),
                    |s| s.vector(&y),
                )
            }
            // Four halves are converted to four bytes in pairs.
            ExprKind::Cast(a)
                if types::is_half(a.dtype.element()) && e.dtype.lanes == 4 && types::is_packed(e.dtype) =>
            {
                let ty = self.spell(e.dtype, e.span)?;
                let lanes = self.lanes_of_words(a)?;
                let mut pairs = Vec::new();
                for two in lanes.chunks(2) {
                    pairs.push(self.join(a.dtype.with_lanes(2), two.to_vec(), e.span)?.text);
                }
                Ok(Code::primary(format!("{ty}({})", pairs.join(", "))))
            }
            ExprKind::Cast(a) if converts_whole(a.dtype, e.dtype) => {
                let ty = self.spell(e.dtype, e.span)?;
                Ok(self.vector(a)?.cast(&ty))
            }
            ExprKind::Select(c, t, f) if c.dtype.is_scalar() => {
                let (c, x, y) = (self.expr(c)?, self.vector(t)?, self.vector(f)?);
                Ok(expr::ternary(c, x, y))
            }
            _ => self.join_lanes(e),
        }
    }

    fn join_lanes(&mut self, e: &Expr) -> Result<Code> {
        if let Some(word) = self.four_bytes(e)? {
            self.unit.needs.helpers.insert(Helper::BitCast);
            let ty = self.spell(e.dtype, e.span)?;
            return Ok(Code::primary(format!("tirx_bit_cast<{ty}>({})", word.text)));
        }
        let lanes = self.lanes(e)?;
        self.join(e.dtype, lanes, e.span)
    }

    /// A vector value from its lanes.
    pub(super) fn join(&mut self, dtype: DType, lanes: Vec<Code>, span: Span) -> Result<Code> {
        let ty = self.spell(dtype, span)?;
        let element = dtype.element();
        let Some((_, form)) = types::vector(dtype) else {
            return error(span, format!("CUDA has no type for `{dtype}`"));
        };
        Ok(match form {
            VectorForm::Fields(make) => {
                let lanes: Vec<String> = lanes.into_iter().map(|c| c.in_range(element).text).collect();
                Code::primary(format!("{make}({})", lanes.join(", ")))
            }
            VectorForm::Bytes => {
                self.unit.needs.helpers.extend([Helper::Vec, Helper::BitCast]);
                let scalar = self.spell(element, span)?;
                let lanes: Vec<String> = lanes.into_iter().map(|c| c.text).collect();
                let array = format!("tirx_vec<{scalar}, {}>{{{}}}", dtype.lanes, lanes.join(", "));
                Code::primary(format!("tirx_bit_cast<{ty}>({array})"))
            }
            VectorForm::Nibbles => {
                self.unit.needs.helpers.insert(Helper::Fp4Vec);
                let lanes: Vec<String> = lanes.into_iter().map(|c| c.text).collect();
                Code::primary(format!("tirx_fp4_join<{ty}>({})", lanes.join(", ")))
            }
            // Braces do not allow narrowing.
            VectorForm::Array => {
                let lanes: Vec<String> = lanes.into_iter().map(|c| c.exact(element).text).collect();
                Code::primary(format!("{ty}{{{}}}", lanes.join(", ")))
            }
        })
    }

    /// The lanes of a C++ value of a vector type; `value` is a name.
    pub(super) fn split(&mut self, dtype: DType, value: &Code) -> Vec<Code> {
        let form = types::vector(dtype).map(|v| v.1);
        let fields = matches!(form, Some(VectorForm::Fields(_)));
        let mut name = value.text.clone();
        if form == Some(VectorForm::Nibbles) {
            self.unit.needs.helpers.insert(Helper::Fp4);
            let lane = |i| Code::primary(format!("tirx_fp4_load(&{name}, {i})"));
            return (0..dtype.lanes).map(lane).collect();
        }
        if let (Some(VectorForm::Bytes), Some(scalar)) = (form, types::element(dtype)) {
            self.unit.needs.helpers.extend([Helper::Vec, Helper::BitCast]);
            name = format!("tirx_bit_cast<tirx_vec<{scalar}, {}>>({name})", dtype.lanes);
        }
        // The fields of CUDA's vectors are `long long`, which `min` does not accept together with an `int64_t`.
        let wide = fields && dtype.bits == 64 && dtype.is_integer();
        (0..dtype.lanes as usize)
            .map(|i| {
                let lane = Code::primary(if fields {
                    format!("{name}.{}", FIELDS[i])
                } else {
                    format!("{name}.v[{i}]")
                });
                match types::element(dtype) {
                    Some(ty) if wide => lane.cast(ty),
                    _ => lane,
                }
            })
            .collect()
    }

    /// A scalar that several lanes read.
    fn shared(&mut self, e: &Expr) -> Result<Code> {
        let code = self.expr(e)?;
        let literal = matches!(e.kind, ExprKind::Int(_) | ExprKind::Float(_));
        if literal {
            Ok(code)
        } else {
            self.temporary("s", e.dtype, code, e.span)
        }
    }

    /// Each lane as a scalar expression. Each may be written once; the order of evaluation does not matter.
    pub(super) fn lanes(&mut self, e: &Expr) -> Result<Vec<Code>> {
        if !e.dtype.is_vector() && !matches!(e.kind, ExprKind::Shuffle { .. }) {
            return Ok(vec![self.expr(e)?]);
        }
        if let Some(other) = self.without_defect(e) {
            return self.lanes(&other);
        }
        let count = e.dtype.lanes as usize;
        let element = e.dtype.element();
        match &e.kind {
            ExprKind::Broadcast { value, lanes } => {
                let one = if value.dtype.is_vector() {
                    self.lanes(value)?
                } else {
                    vec![self.shared(value)?]
                };
                Ok((0..*lanes).flat_map(|_| one.clone()).collect())
            }
            ExprKind::Ramp { base, stride, lanes } => {
                let bases = if base.dtype.is_vector() {
                    self.lanes(base)?
                } else {
                    vec![self.shared(base)?]
                };
                let step = stride.as_int();
                let steps = if step.is_some() {
                    Vec::new()
                } else {
                    vec![self.shared(stride)?]
                };
                let mut out = Vec::with_capacity(count);
                for i in 0..*lanes as i128 {
                    for (l, b) in bases.iter().enumerate() {
                        let offset = match (step, steps.get(l).or(steps.first())) {
                            (Some(step), _) => (int_literal(element, step * i), Some(step * i)),
                            (None, Some(s)) => {
                                let i = (int_literal(element, i), Some(i));
                                let zero = i.1 == Some(0);
                                let product =
                                    self.binary(BinOp::Mul, element, (s.clone(), None), i, e.span)?;
                                (product, zero.then_some(0))
                            }
                            _ => (int_literal(element, 0), Some(0)),
                        };
                        out.push(if offset.1 == Some(0) {
                            b.clone()
                        } else if base.as_int().is_some() && step.is_some() {
                            int_literal(
                                element,
                                element.wrap(base.as_int().unwrap_or(0) + offset.1.unwrap_or(0)),
                            )
                        } else {
                            self.binary(BinOp::Add, element, (b.clone(), None), offset, e.span)?
                        });
                    }
                }
                Ok(out)
            }
            ExprKind::BufferLoad {
                buffer,
                indices,
                predicate,
            } => self.load_lanes(e, buffer, indices, predicate.as_ref()),
            ExprKind::Cast(a) => {
                if let Some(packed) = self.packed_cast(e, a)? {
                    return Ok(packed);
                }
                let lanes = self.lanes(a)?;
                lanes
                    .into_iter()
                    .map(|c| self.cast(c, a.dtype, element, e.span))
                    .collect()
            }
            ExprKind::Binary(op, a, b) => {
                let (x, y) = (self.lanes(a)?, self.lanes(b)?);
                self.binary_lanes(*op, (a, x), (b, y), e.span)
            }
            ExprKind::Not(a) => {
                let lanes = self.lanes(a)?;
                Ok(lanes
                    .into_iter()
                    .map(|c| Code::new(format!("!{}", c.at(level::UNARY)), level::UNARY))
                    .collect())
            }
            ExprKind::Select(c, t, f) if c.dtype.is_vector() => self.choose_lanes(c, t, f),
            ExprKind::Shuffle { vectors, indices } => {
                let mut all = Vec::new();
                for v in vectors {
                    all.push((self.lanes(v)?, v));
                }
                let mut flat = Vec::new();
                for (lanes, v) in all {
                    for lane in lanes {
                        // A lane may be selected more than once.
                        flat.push(if v.dtype.is_vector() || indices.len() > 1 {
                            self.temporary("lane", v.dtype.element(), lane, e.span)?
                        } else {
                            lane
                        });
                    }
                }
                indices
                    .iter()
                    .map(
                        |i| match i.as_int().and_then(|i| flat.get(usize::try_from(i).ok()?)) {
                            Some(lane) => Ok(lane.clone()),
                            None => error(
                                e.span,
                                "a shuffle index is no constant, or picks a lane that is not there",
                            ),
                        },
                    )
                    .collect()
            }
            ExprKind::Let(var, value, body) => {
                self.bind(var, value, e.span)?;
                self.lanes(body)
            }
            ExprKind::Call { op, args } => match op {
                Op::IfThenElse if args[at!(IfThenElse.cond)].dtype.is_vector() => {
                    let before = self.out.len();
                    let (x, y) = (&args[at!(IfThenElse.t)], &args[at!(IfThenElse.f)]);
                    let lanes = self.choose_lanes(&args[at!(IfThenElse.cond)], x, y)?;
                    if reads_memory(x) || reads_memory(y) {
                        self.out.truncate(before);
                        return error(
                            e.span,
                            "a lazy choice per lane that reads memory cannot be vectorized",
                        );
                    }
                    Ok(lanes)
                }
                Op::Vectorlow | Op::Vectorhigh | Op::Vectorcombine => {
                    let mut lanes = Vec::new();
                    for arg in args {
                        lanes.extend(self.lanes(arg)?);
                    }
                    if *op == Op::Vectorhigh {
                        lanes.drain(..lanes.len().saturating_sub(count));
                    }
                    lanes.truncate(count);
                    Ok(lanes)
                }
                Op::Reinterpret | Op::IfThenElse => self.split_value(e),
                _ if op.traits().whole_vector => self.split_value(e),
                _ => self.map_lanes(e, *op, args),
            },
            ExprKind::Var(_) | ExprKind::Select(..) => self.split_value(e),
            ExprKind::Int(_) | ExprKind::Float(_) | ExprKind::Str(_) => {
                error(e.span, format!("a constant cannot have dtype `{}`", e.dtype))
            }
        }
    }

    /// The lanes of a value held as one C++ object.
    fn split_value(&mut self, e: &Expr) -> Result<Vec<Code>> {
        let code = self.vector(e)?;
        let value = self.temporary("v", e.dtype, code, e.span)?;
        Ok(self.split(e.dtype, &value))
    }

    fn load_lanes(
        &mut self,
        e: &Expr,
        buffer: &Buffer,
        indices: &[Expr],
        predicate: Option<&Expr>,
    ) -> Result<Vec<Code>> {
        let index = self.single_index(buffer, indices, e.span)?;
        let scalar_index = index.is_none_or(|i| i.dtype.is_scalar());
        if predicate.is_none()
            && (buffer.dtype.is_vector() && scalar_index
                || index.and_then(consecutive).is_some() && !e.dtype.is_float4())
        {
            if self.reads_word(e.dtype)
                && let Some(word) = self.words(e)?
            {
                self.unit.needs.helpers.insert(Helper::BitCast);
                let ty = self.spell(e.dtype, e.span)?;
                let code = Code::primary(format!("tirx_bit_cast<{ty}>({})", word.text));
                let value = self.temporary("v", e.dtype, code, e.span)?;
                return Ok(self.split(e.dtype, &value));
            }
            return self.split_value(e);
        }
        let Some(index) = index else {
            return error(e.span, "a load without an index has one lane");
        };
        if buffer.dtype.is_vector() {
            return error(e.span, "a gather of vectors has no CUDA form");
        }
        let places = self.lanes(index)?;
        let predicates = predicate.map(|p| self.lanes(p)).transpose()?;
        let ty = self.spell(buffer.dtype, e.span)?;
        let pointer = self.pointer(&buffer.data, e.span)?;
        let mut out = Vec::with_capacity(places.len());
        for (i, place) in places.into_iter().enumerate() {
            let place = place.in_range(index.dtype.element()).text;
            let name = &pointer.name;
            let code = if buffer.dtype.is_float4() {
                self.unit.needs.helpers.insert(Helper::Fp4);
                Code::primary(format!("tirx_fp4_load({name}, {place})"))
            } else if pointer.element == ty {
                Code::primary(format!("{name}[{place}]"))
            } else {
                let qualifier = if pointer.constant { "const " } else { "" };
                Code::primary(format!("(({qualifier}{ty}*){name})[{place}]"))
            };
            out.push(match predicates.as_ref().and_then(|p| p.get(i).or(p.first())) {
                Some(p) => {
                    let zero = self.expr(&Expr::constant(buffer.dtype, 0))?;
                    expr::ternary(p.clone(), code, zero)
                }
                None => code,
            });
        }
        Ok(out)
    }

    /// `c ? t : f` in each lane.
    fn choose_lanes(&mut self, c: &Expr, t: &Expr, f: &Expr) -> Result<Vec<Code>> {
        let (c, x, y) = (self.lanes(c)?, self.lanes(t)?, self.lanes(f)?);
        Ok(c.into_iter()
            .zip(x)
            .zip(y)
            .map(|((c, x), y)| expr::ternary(c, x, y))
            .collect())
    }

    /// An element-wise intrinsic: the scalar one in each lane, over variables that stand for the operands' lanes.
    fn map_lanes(&mut self, e: &Expr, op: Op, args: &[Expr]) -> Result<Vec<Code>> {
        let mut columns = Vec::with_capacity(args.len());
        for arg in args {
            let vector = arg.dtype.is_vector();
            let lanes = if vector {
                self.lanes(arg)?
            } else if matches!(arg.kind, ExprKind::Int(_) | ExprKind::Str(_)) {
                columns.push(vec![arg.clone()]);
                continue;
            } else {
                vec![self.shared(arg)?]
            };
            let dtype = arg.dtype.element();
            let mut column = Vec::with_capacity(lanes.len());
            for lane in lanes {
                let var = crate::ir::Var::new("lane", dtype);
                // An operand of an intrinsic may be written more than once.
                let lane = self.temporary("lane", dtype, lane.exact(dtype), e.span)?;
                self.vars.insert(var.clone(), lane);
                column.push(Expr::var(&var));
            }
            columns.push(column);
        }
        let element = e.dtype.element();
        (0..e.dtype.lanes as usize)
            .map(|i| {
                let args: Vec<Expr> = columns
                    .iter()
                    .filter_map(|c| c.get(i).or(c.first()))
                    .cloned()
                    .collect();
                let call = Expr::call(op, element, args).at(e.span);
                let lane = self.expr(&call)?;
                // Function by function, not lane by lane: nvcc shares the constants of a function between lanes.
                match math::find(op) {
                    Some(_) => self.temporary("lane", element, lane, e.span),
                    None => Ok(lane),
                }
            })
            .collect()
    }

    /// Stores a vector value.
    pub(super) fn store_vector(
        &mut self,
        buffer: &Buffer,
        index: Option<&Expr>,
        value: &Expr,
        predicate: Option<&Expr>,
        span: Span,
    ) -> Result<()> {
        if predicate.is_none() && buffer.dtype.is_vector() && index.is_none_or(|i| i.dtype.is_scalar()) {
            let code = self.vector(value)?;
            let place = self.element(buffer, index, span)?;
            self.line(&format!("{} = {};", place.text, code.text));
            return Ok(());
        }
        let Some(index) = index else {
            return error(span, "a vector cannot be stored into one element");
        };
        if let (None, Some(base), false) = (predicate, consecutive(index), value.dtype.is_float4()) {
            if let Some(word) = self.four_bytes(value)? {
                let place = self.elements(buffer, base, DType::UINT32, span)?;
                self.line(&format!("{} = {};", place.text, word.text));
                return Ok(());
            }
            let array = types::vector(value.dtype).is_some_and(|(_, form)| form == VectorForm::Array);
            if (array || is_four_bytes(value.dtype))
                && let Some(words) = self.words(value)?
            {
                // nvcc copies an array element by element, and four bytes that were computed one by one.
                let place =
                    self.elements(buffer, base, words_of(value.dtype).unwrap_or(value.dtype), span)?;
                self.line(&format!("{} = {};", place.text, words.text));
                return Ok(());
            }
            self.byte_arithmetic = computes_bytes(value);
            let code = self.vector(value);
            let in_word = self.byte_arithmetic && is_four_bytes(value.dtype);
            self.byte_arithmetic = false;
            let code = code?;
            if in_word {
                self.unit.needs.helpers.insert(Helper::BitCast);
                let place = self.elements(buffer, base, DType::UINT32, span)?;
                let word = format!("tirx_bit_cast<unsigned int>({})", code.text);
                self.line(&format!("{} = {word};", place.text));
                return Ok(());
            }
            let place = self.elements(buffer, base, value.dtype, span)?;
            self.line(&format!("{} = {};", place.text, code.text));
            return Ok(());
        }
        if buffer.dtype.is_vector() {
            return error(span, "a scatter of vectors has no CUDA form");
        }
        // All values are read before the first is written.
        let values = if value.dtype.is_float4() {
            let element = value.dtype.element();
            let lanes = self.lanes(value)?;
            lanes
                .into_iter()
                .map(|lane| self.temporary("v", element, lane, span))
                .collect::<Result<Vec<_>>>()?
        } else {
            let code = self.vector(value)?;
            let code = self.temporary("v", value.dtype, code, span)?;
            self.split(value.dtype, &code)
        };
        let places = self.lanes(index)?;
        let predicates = predicate.map(|p| self.lanes(p)).transpose()?;
        for (i, (place, value)) in places.into_iter().zip(values).enumerate() {
            let var = crate::ir::Var::new("place", index.dtype.element());
            self.vars.insert(var.clone(), place);
            let store = self.store_text(buffer, Some(&Expr::var(&var)), value, span)?;
            match predicates.as_ref().and_then(|p| p.get(i).or(p.first())) {
                Some(p) => self.line(&format!("if ({}) {store}", p.text)),
                None => self.line(&store),
            }
        }
        Ok(())
    }
}

/// The first index, where `index` steps by one.
pub(super) fn consecutive(index: &Expr) -> Option<&Expr> {
    match &index.kind {
        ExprKind::Ramp { base, stride, .. } if stride.is_int(1) && base.dtype.is_scalar() => Some(base),
        _ => None,
    }
}

/// Whether a value contains a load.
pub(super) fn reads_memory(e: &Expr) -> bool {
    matches!(e.kind, ExprKind::BufferLoad { .. }) || e.operands().any(reads_memory)
}
