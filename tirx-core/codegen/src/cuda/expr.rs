//! The text of scalar expressions.
//!
//! An expression becomes a [`Code`]. What cannot stand inside a C++ expression (a `Let`, a vector temporary) is written
//! as statements before the current one; where that would evaluate something that must only be evaluated under a
//! condition, the condition becomes an `if` statement too.

use std::borrow::Cow;

use super::code::{Code, Width, float_literal, int_literal, level, string_literal};
use super::emitter::Emitter;
use super::helpers::Helper;
use super::{defects, types};
use crate::diagnostic::{Diagnostic, Result, error};
use crate::ir::{BinOp, Buffer, DType, Expr, ExprKind, Var};
use crate::source::Span;

impl Emitter<'_, '_> {
    /// The C++ type of `dtype`.
    pub(super) fn spell(&mut self, dtype: DType, span: Span) -> Result<Cow<'static, str>> {
        match types::spell(dtype, &mut self.unit.needs) {
            Some(ty) => Ok(ty),
            None => error(span, format!("CUDA has no type for `{dtype}`")),
        }
    }

    /// An expression of any dtype.
    pub(super) fn expr(&mut self, e: &Expr) -> Result<Code> {
        if e.dtype.is_vector() {
            return self.vector(e);
        }
        match &e.kind {
            ExprKind::Var(var) => self.variable(var, e.span),
            ExprKind::Int(value) => {
                self.spell(e.dtype, e.span)?;
                Ok(int_literal(e.dtype, *value))
            }
            ExprKind::Float(value) => self.float_constant(e.dtype, *value, e.span),
            ExprKind::Str(text) => Ok(Code::primary(string_literal(text))),
            ExprKind::Cast(a) => {
                let code = self.expr(a)?;
                self.cast(code, a.dtype, e.dtype, e.span)
            }
            ExprKind::Binary(op, a, b) if op.is_logical() => self.logical(*op, a, b),
            ExprKind::Binary(op, a, b) => {
                let (x, y) = (self.expr(a)?, self.expr(b)?);
                let way = self.way_of(*op, a, b);
                self.binary_by(way, e.span, a.dtype, (x, constant(a)), (y, constant(b)))
            }
            ExprKind::Not(a) => Ok(Code::new(
                format!("!{}", self.expr(a)?.at(level::UNARY)),
                level::UNARY,
            )),
            ExprKind::Select(c, t, f) => {
                let (c, x, y) = (self.expr(c)?, self.expr(t)?, self.expr(f)?);
                Ok(ternary(c, x, y))
            }
            ExprKind::BufferLoad {
                buffer,
                indices,
                predicate: None,
            } => self.load(buffer, indices, e),
            ExprKind::BufferLoad {
                buffer,
                indices,
                predicate: Some(p),
            } => {
                let zero = Expr::constant(e.dtype, 0);
                self.lazy_choice(
                    p,
                    e.dtype,
                    e.span,
                    false,
                    |s| s.load(buffer, indices, e),
                    |s| s.expr(&zero),
                )
            }
            ExprKind::Broadcast { value, .. } => self.expr(value),
            ExprKind::Ramp { base, .. } => self.expr(base),
            ExprKind::Shuffle { .. } => {
                let lanes = self.lanes(e)?;
                match lanes.into_iter().next() {
                    Some(code) => Ok(code),
                    None => error(e.span, "a shuffle without indices has no value"),
                }
            }
            ExprKind::Call { op, args } => self.call(e, *op, args),
            ExprKind::Let(var, value, body) => {
                self.bind(var, value, e.span)?;
                self.expr(body)
            }
        }
    }

    /// A variable or the name of a pointer.
    pub(super) fn variable(&mut self, var: &Var, span: Span) -> Result<Code> {
        if let Some(code) = self.vars.get(var) {
            return Ok(code.clone());
        }
        if let Some(pointer) = self.pointers.get(var) {
            return Ok(Code::primary(&*pointer.name));
        }
        error(
            span,
            format!("variable `{}` is used where it is not defined", var.name()),
        )
    }

    /// `const T name = value;`, from here to the end of the block.
    pub(super) fn bind(&mut self, var: &Var, value: &Expr, span: Span) -> Result<()> {
        let code = self.expr(value)?;
        self.analyzer.bind_facts_of(var, value);
        if var.dtype().is_handle() {
            return self.bind_pointer(var, code, span);
        }
        let alias = match &value.kind {
            ExprKind::Int(_) | ExprKind::Float(_) => true,
            // A second name for the same value is not written; but a hardware index takes the user's name.
            ExprKind::Var(_) => code.level == level::PRIMARY && code.is_trivial(),
            _ => false,
        };
        if alias && value.dtype.is_scalar() {
            self.vars.insert(var.clone(), code);
            return Ok(());
        }
        let ty = self.spell(var.dtype(), span)?;
        let name = self.names.fresh(var.name());
        self.line(&format!("const {ty} {name} = {};", code.text));
        self.vars.insert(var.clone(), Code::primary(name));
        Ok(())
    }

    /// Binds `value` to a new name, so that it can be used several times.
    pub(super) fn temporary(&mut self, hint: &str, dtype: DType, value: Code, span: Span) -> Result<Code> {
        if value.is_trivial() {
            return Ok(value);
        }
        let ty = self.spell(dtype, span)?;
        let name = self.names.fresh(hint);
        self.line(&format!("const {ty} {name} = {};", value.text));
        Ok(Code::primary(name))
    }

    fn float_constant(&mut self, dtype: DType, value: f64, span: Span) -> Result<Code> {
        let ty = self.spell(dtype, span)?;
        if dtype.is_float() && dtype.bits >= 32 {
            return Ok(float_literal(dtype.bits, value));
        }
        let literal = float_literal(32, value).text;
        Ok(Code::primary(match (dtype.is_float(), dtype.is_bfloat16()) {
            (true, _) => format!("__float2half_rn({literal})"),
            (_, true) => format!("__float2bfloat16_rn({literal})"),
            _ => format!("{ty}({literal})"),
        }))
    }

    /// Conversion of one element.
    pub(super) fn cast(&mut self, code: Code, from: DType, to: DType, span: Span) -> Result<Code> {
        let (from, to) = (from.element(), to.element());
        if from == to {
            return Ok(code);
        }
        let ty = self.spell(to, span)?;
        let code = if to.is_bool() {
            self.hidden(code, from)
        } else {
            code.in_range(from)
        };
        // Between two small floating types, and between them and integers, `float` holds every value (32- and
        // 64-bit integers need `double` to be rounded once).
        let native = |d: DType| d.is_float() && d.bits >= 32 || d.is_bool();
        let via = if native(from) || native(to) {
            None
        } else if let Some(via) = defects::half_conversion(from, to) {
            Some(via)
        } else if from.is_small_float() || to.is_small_float() {
            match (from, to) {
                (f, _) if types::is_half(f) => None,
                (_, t) if types::is_half(t) => None,
                (f, _) if f.is_integer() && f.bits >= 32 => Some("double"),
                _ => Some("float"),
            }
        } else {
            None
        };
        Ok(match via {
            Some(via) => code.cast(via).cast(&ty),
            None => code.cast(&ty),
        })
    }

    /// `a && b` or `a || b`.
    fn logical(&mut self, op: BinOp, a: &Expr, b: &Expr) -> Result<Code> {
        let x = self.expr(a)?;
        let before = self.out.len();
        let y = self.expr(b)?;
        let (sign, at) = if op == BinOp::And {
            ("&&", level::AND)
        } else {
            ("||", level::OR)
        };
        if self.out.len() == before {
            // `||` beside `&&` is legal without parentheses, but misleading.
            let side = |c: Code| {
                if c.level == level::AND || c.level == level::OR {
                    if c.level == at {
                        c.text
                    } else {
                        format!("({})", c.text)
                    }
                } else {
                    c.at(at)
                }
            };
            return Ok(Code::new(format!("{} {sign} {}", side(x), side(y)), at));
        }
        let inner = self.out.split_off(before);
        let name = self.names.fresh("holds");
        self.line(&format!("bool {name} = {};", x.text));
        self.line(&format!(
            "if ({}{name}) {{",
            if op == BinOp::And { "" } else { "!" }
        ));
        self.assign_in_block(&inner, &name, &y);
        self.line("}");
        Ok(Code::primary(name))
    }

    /// A choice that evaluates only the chosen value: `?:`, or an `if` statement where that is requested or necessary.
    pub(super) fn lazy_choice(
        &mut self,
        condition: &Expr,
        dtype: DType,
        span: Span,
        statement: bool,
        then: impl FnOnce(&mut Self) -> Result<Code>,
        otherwise: impl FnOnce(&mut Self) -> Result<Code>,
    ) -> Result<Code> {
        let c = self.expr(condition)?;
        let before = self.out.len();
        let x = then(self)?;
        let middle = self.out.len();
        let y = otherwise(self)?;
        if self.out.len() == before && dtype.lanes == 1 && !statement {
            return Ok(ternary(c, x, y));
        }
        let second = self.out.split_off(middle);
        let first = self.out.split_off(before);
        let ty = self.spell(dtype, span)?;
        let name = self.names.fresh("chosen");
        self.line(&format!("{ty} {name};"));
        self.line(&format!("if ({}) {{", c.text));
        self.assign_in_block(&first, &name, &x);
        self.line("} else {");
        self.assign_in_block(&second, &name, &y);
        self.line("}");
        Ok(Code::primary(name))
    }

    /// Statements `before`, then `name = value;`, one level deeper.
    fn assign_in_block(&mut self, before: &str, name: &str, value: &Code) {
        self.push_indented(before);
        self.indent += 1;
        self.line(&format!("{name} = {};", value.text));
        self.indent -= 1;
    }

    /// A value in a form that may be compared with zero.
    fn hidden(&mut self, code: Code, dtype: DType) -> Code {
        let code = code.in_range(dtype);
        if !defects::hides(dtype, &self.facts) {
            return code;
        }
        self.unit.needs.helpers.insert(Helper::Hidden);
        Code::primary(format!("tirx_hidden({})", code.text))
    }

    /// An operator on two elements of one dtype; integer constants are known as such.
    pub(super) fn binary(
        &mut self,
        op: BinOp,
        dtype: DType,
        (a, a_const): (Code, Option<i128>),
        (b, b_const): (Code, Option<i128>),
        span: Span,
    ) -> Result<Code> {
        let dtype = dtype.element();
        if matches!(op, BinOp::Div | BinOp::Mod | BinOp::FloorDiv | BinOp::FloorMod)
            && dtype.is_integer()
            && b_const == Some(0)
        {
            return Err(Box::new(division_by_zero(span)));
        }
        if dtype.is_small_float() {
            let (x, y) = (a.cast("float"), b.cast("float"));
            let code = self.binary(op, DType::FLOAT32, (x, None), (y, None), span)?;
            return if op.is_comparison() {
                Ok(code)
            } else {
                self.cast(code, DType::FLOAT32, dtype, span)
            };
        }
        if let Some(negated) = match op {
            BinOp::Sub if a_const == Some(0) => Some(&b),
            BinOp::Mul if b_const == Some(-1) => Some(&a),
            _ => None,
        } && let Some(helper) = defects::negation(dtype, &self.facts)
        {
            self.unit.needs.helpers.insert(helper);
            if helper == Helper::NegatedWide {
                let ty = self.spell(dtype, span)?;
                return Ok(Code::primary(format!("tirx_negated_wide({})", negated.text)).cast(&ty));
            }
            let code = Code::primary(format!("tirx_negated({})", negated.text));
            return Ok(if dtype.bits < 32 {
                code.with_width(Width::Dirty)
            } else {
                code
            });
        }
        // C++ computes with bools as `int`; the result is converted back to bool here.
        let narrow = types::is_promoted(dtype) || dtype.is_bool();
        let simple = |sign: &str, at: u8, a: Code, b: Code| {
            let (mut text, right) = (a.at(at), b.at(at + 1));
            text.reserve(sign.len() + right.len() + 2);
            text.push(' ');
            text.push_str(sign);
            text.push(' ');
            text.push_str(&right);
            Code::new(text, at)
        };
        let (a, b) = match op {
            BinOp::Add | BinOp::Sub if !dtype.is_bool() => (a, b),
            // Whether nvcc may recognize the expression as a comparison with zero.
            _ if op.is_comparison() && (matches!(op, BinOp::Eq | BinOp::Ne) || dtype.is_uint()) => {
                if a_const.is_none() {
                    (self.hidden(a, dtype), b.in_range(dtype))
                } else {
                    (a.in_range(dtype), self.hidden(b, dtype))
                }
            }
            _ => (a.in_range(dtype), b.in_range(dtype)),
        };
        let computed = |code: Code, width: Width| match narrow {
            true if dtype.is_bool() => code.with_width(Width::Dirty),
            true => code.with_width(width),
            false => code,
        };
        Ok(match op {
            BinOp::Add => computed(simple("+", level::SUM, a, b), Width::Dirty),
            BinOp::Sub => computed(simple("-", level::SUM, a, b), Width::Dirty),
            BinOp::Mul => computed(simple("*", level::PRODUCT, a, b), Width::Dirty),
            BinOp::Div => computed(simple("/", level::PRODUCT, a, b), Width::Dirty),
            BinOp::Mod if dtype.is_floating() => {
                self.math(crate::intrin::Op::Fmod, dtype, vec![a, b], span)?
            }
            BinOp::Mod => computed(simple("%", level::PRODUCT, a, b), Width::Promoted),
            BinOp::FloorDiv if dtype.is_floating() => {
                let quotient = simple("/", level::PRODUCT, a, b);
                self.math(crate::intrin::Op::Floor, dtype, vec![quotient], span)?
            }
            BinOp::FloorMod if dtype.is_floating() => {
                let a = self.temporary("a", dtype, a, span)?;
                let b = self.temporary("b", dtype, b, span)?;
                let quotient = simple("/", level::PRODUCT, a.clone(), b.clone());
                let floor = self.math(crate::intrin::Op::Floor, dtype, vec![quotient], span)?;
                let product = simple("*", level::PRODUCT, floor, b);
                simple("-", level::SUM, a, product)
            }
            BinOp::FloorDiv | BinOp::FloorMod => {
                let divide = op == BinOp::FloorDiv;
                let power = b_const.filter(|v| *v > 0 && v.count_ones() == 1);
                match power {
                    _ if !dtype.is_int()
                        || a_const.is_some_and(|v| v >= 0) && b_const.is_some_and(|v| v > 0) =>
                    {
                        let sign = if divide { "/" } else { "%" };
                        computed(simple(sign, level::PRODUCT, a, b), Width::Promoted)
                    }
                    Some(p) if divide => {
                        let at = level::UNARY;
                        let text = format!("{} >> {}", a.at(at), p.trailing_zeros());
                        computed(Code::new(text, level::SHIFT), Width::Promoted)
                    }
                    Some(p) => {
                        let mask = int_literal(dtype, p - 1);
                        let text = format!("{} & {}", a.at(level::UNARY), mask.at(level::UNARY));
                        computed(Code::new(text, level::BIT_AND), Width::Promoted)
                    }
                    None => {
                        let positive = b_const.is_some_and(|v| v > 0);
                        let helper = if positive {
                            Helper::FloorDivisionByPositive
                        } else {
                            Helper::FloorDivision
                        };
                        self.unit.needs.helpers.insert(helper);
                        let name = match (divide, positive) {
                            (true, true) => "tirx_floordiv_positive",
                            (true, false) => "tirx_floordiv",
                            (false, true) => "tirx_floormod_positive",
                            (false, false) => "tirx_floormod",
                        };
                        let ty = match dtype.bits {
                            64 => "<int64_t>",
                            32 => "",
                            _ => "<int>",
                        };
                        let code = Code::primary(format!("{name}{ty}({}, {})", a.text, b.text));
                        computed(code, Width::Dirty)
                    }
                }
            }
            BinOp::Min | BinOp::Max if dtype.is_bool() => {
                let (sign, at) = if op == BinOp::Min {
                    ("&", level::BIT_AND)
                } else {
                    ("|", level::BIT_OR)
                };
                let text = format!("{} {sign} {}", a.at(level::UNARY), b.at(level::UNARY));
                Code::new(text, at).cast("bool")
            }
            BinOp::Min | BinOp::Max => {
                let mut name = if op == BinOp::Min { "min" } else { "max" }.to_string();
                if types::is_half(dtype) {
                    let bf16 = dtype.is_bfloat16();
                    self.unit.needs.helpers.insert(if bf16 {
                        Helper::Bf16MinMax
                    } else {
                        Helper::HalfMinMax
                    });
                    name.insert_str(0, "tirx_");
                }
                computed(
                    Code::primary(format!("{name}({}, {})", a.text, b.text)),
                    Width::Promoted,
                )
            }
            BinOp::Eq => simple("==", level::EQUAL, a, b),
            BinOp::Ne => simple("!=", level::EQUAL, a, b),
            BinOp::Lt => simple("<", level::LESS, a, b),
            BinOp::Le => simple("<=", level::LESS, a, b),
            BinOp::Gt => simple(">", level::LESS, a, b),
            BinOp::Ge => simple(">=", level::LESS, a, b),
            BinOp::And => simple("&&", level::AND, a, b),
            BinOp::Or => Code::new(format!("{} || {}", paren_and(a), paren_and(b)), level::OR),
        })
    }

    /// A scalar (or one element of a vector type) from memory.
    fn load(&mut self, buffer: &Buffer, indices: &[Expr], e: &Expr) -> Result<Code> {
        let index = self.single_index(buffer, indices, e.span)?;
        if buffer.dtype.is_float4() && buffer.dtype.is_scalar() {
            self.unit.needs.helpers.insert(Helper::Fp4);
            let base = self.pointer(&buffer.data, e.span)?.name;
            let index = self.index(index)?;
            return Ok(Code::primary(format!("tirx_fp4_load({base}, {index})")));
        }
        self.element(buffer, index, e.span)
    }

    /// The one index of a flattened buffer; zero for a buffer without dimensions.
    pub(super) fn single_index<'e>(
        &mut self,
        buffer: &Buffer,
        indices: &'e [Expr],
        span: Span,
    ) -> Result<Option<&'e Expr>> {
        match indices {
            [] => Ok(None),
            [index] => Ok(Some(index)),
            _ => error(
                span,
                format!(
                    "buffer `{}` has {} indices in the final IR, where one is left",
                    buffer.name,
                    indices.len()
                ),
            ),
        }
    }

    /// An index as text.
    pub(super) fn index(&mut self, index: Option<&Expr>) -> Result<String> {
        match index {
            None => Ok("0".into()),
            // A small constant needs no suffix or cast here.
            Some(i) if i.as_int().is_some_and(|v| (0..=i32::MAX as i128).contains(&v)) => {
                Ok(i.as_int().unwrap_or(0).to_string())
            }
            Some(i) => Ok(self.expr(i)?.in_range(i.dtype).text),
        }
    }

    /// `name[index]`: an element of the buffer's own dtype, to read or to write.
    pub(super) fn element(&mut self, buffer: &Buffer, index: Option<&Expr>, span: Span) -> Result<Code> {
        let pointer = self.pointer(&buffer.data, span)?;
        let ty = self.spell(buffer.dtype, span)?;
        let index = self.index(index)?;
        let mut text = String::with_capacity(pointer.name.len() + index.len() + 2);
        if pointer.element == ty {
            text.push_str(&pointer.name);
        } else {
            text.push_str(if pointer.constant { "((const " } else { "((" });
            text.extend([&ty, "*)", &*pointer.name, ")"]);
        }
        text.extend(["[", &index, "]"]);
        Ok(Code::primary(text))
    }

    /// `*(float4*)(name + base)`: several elements from `base` on.
    pub(super) fn elements(
        &mut self,
        buffer: &Buffer,
        base: &Expr,
        whole: DType,
        span: Span,
    ) -> Result<Code> {
        let pointer = self.pointer(&buffer.data, span)?;
        let (ty, vector) = (self.spell(buffer.dtype, span)?, self.spell(whole, span)?);
        let qualifier = if pointer.constant { "const " } else { "" };
        let start = if pointer.element == ty {
            Code::primary(&*pointer.name)
        } else {
            Code::primary(&*pointer.name).cast(&format!("{qualifier}{ty}*"))
        };
        let base = if base.is_int(0) {
            start.at(level::UNARY)
        } else {
            let index = self.expr(base)?.in_range(base.dtype);
            format!("({} + {})", start.text, index.at(level::PRODUCT))
        };
        Ok(Code::new(format!("*({qualifier}{vector}*){base}"), level::UNARY))
    }

    /// A binary operator on the lanes of `a` and `b`.
    pub(super) fn binary_lanes(
        &mut self,
        op: BinOp,
        (a, xs): (&Expr, Vec<Code>),
        (b, ys): (&Expr, Vec<Code>),
        span: Span,
    ) -> Result<Vec<Code>> {
        let (way, ca, cb) = (self.way_of(op, a, b), constant(a), constant(b));
        xs.into_iter()
            .zip(ys)
            .map(|(x, y)| self.binary_by(way, span, a.dtype, (x, ca), (y, cb)))
            .collect()
    }

    /// How to compute `a op b`. Where the operands' ranges exclude negative values, floor division becomes truncating
    /// division, if necessary after adding a multiple of the divisor to the dividend.
    fn way_of(&self, op: BinOp, a: &Expr, b: &Expr) -> Way {
        let dtype = a.dtype.element();
        let divides =
            matches!(op, BinOp::FloorDiv | BinOp::FloorMod) && dtype.is_int() && constant(a).is_none();
        let divisor = constant(b);
        if !divides || divisor.is_some_and(|v| v > 0 && v.count_ones() == 1) {
            return Way::Is(op);
        }
        let bound = self.analyzer.const_int_bound(a);
        if bound.min >= 0 && self.is_nonnegative(b) {
            return Way::Is(if op == BinOp::FloorDiv {
                BinOp::Div
            } else {
                BinOp::Mod
            });
        }
        if let Some(divisor) = divisor
            && divisor > 0
            && dtype.bits >= 32
            && bound.is_finite()
        {
            let turns = (-bound.min + divisor - 1) / divisor;
            let up = turns * divisor;
            if dtype.max_int().is_some_and(|max| bound.max + up <= max) {
                return Way::MovedUp { op, turns, up };
            }
        }
        Way::Is(op)
    }

    /// The operator on one lane.
    fn binary_by(
        &mut self,
        way: Way,
        span: Span,
        dtype: DType,
        x: (Code, Option<i128>),
        y: (Code, Option<i128>),
    ) -> Result<Code> {
        let (op, turns, up) = match way {
            Way::Is(op) => return self.binary(op, dtype, x, y, span),
            Way::MovedUp { op, turns, up } => (op, turns, up),
        };
        let element = dtype.element();
        let moved = (int_literal(element, up), Some(up));
        let x = self.binary(BinOp::Add, element, (x.0, None), moved, span)?;
        if op == BinOp::FloorMod {
            return self.binary(BinOp::Mod, element, (x, None), y, span);
        }
        let quotient = self.binary(BinOp::Div, element, (x, None), y, span)?;
        let back = (int_literal(element, turns), Some(turns));
        self.binary(BinOp::Sub, element, (quotient, None), back, span)
    }

    /// Whether `e` is an integer that cannot be negative.
    pub(super) fn is_nonnegative(&self, e: &Expr) -> bool {
        e.dtype.is_integer() && self.analyzer.const_int_bound(e).min >= 0
    }
}

/// A division whose divisor lowering found to be zero.
fn division_by_zero(span: Span) -> Diagnostic {
    let help = "lowering made the divisor the constant 0, as it does of an unrolled loop's variable in its first iteration and \
                of an index of extent 1; leave this case out with an `if`, or divide by another value";
    Diagnostic::new(span, "division by zero").help(help)
}

/// A way to compute a binary operator.
#[derive(Clone, Copy)]
enum Way {
    /// As this operator.
    Is(BinOp),
    /// Truncating division or its remainder, after adding `up`, which is `turns` times the divisor.
    MovedUp { op: BinOp, turns: i128, up: i128 },
}

/// The constant that an expression, or each of its lanes, equals.
fn constant(e: &Expr) -> Option<i128> {
    match &e.kind {
        ExprKind::Broadcast { value, .. } => value.as_int(),
        _ => e.as_int(),
    }
}

fn paren_and(code: Code) -> String {
    if code.level == level::AND {
        format!("({})", code.text)
    } else {
        code.at(level::OR)
    }
}

/// `c ? x : y`.
pub(super) fn ternary(c: Code, x: Code, y: Code) -> Code {
    let width = x.width.max(y.width);
    let text = format!(
        "{} ? {} : {}",
        c.at(level::OR),
        x.at(level::OR),
        y.at(level::TERNARY)
    );
    Code::new(text, level::TERNARY).with_width(width)
}
