//! The text of scalar expressions.
//!
//! An expression becomes a [`Code`]. What cannot stand inside a C++ expression (a `Let`, a vector temporary) is written
//! as statements before the current one; where that would evaluate something that must only be evaluated under a
//! condition, the condition becomes an `if` statement too.

use std::borrow::Cow;

use super::analysis::effect;
use super::binary::constant;
use super::code::{Code, float_literal, int_literal, level, string_literal};
use super::emitter::{Emitter, Named};
use super::helpers::Helper;
use super::{defects, types};
use crate::diagnostic::{Result, error};
use crate::intrin::Effect;
use crate::ir::{BinOp, Buffer, DType, Expr, ExprKind, Var};
use crate::source::Span;

impl Emitter<'_, '_> {
    /// The same value in a form that nvcc compiles right, where it would not this one.
    pub(super) fn without_defect(&self, e: &Expr) -> Option<Expr> {
        self.digits
            .moved_first(e)
            .or_else(|| defects::as_negation(e, &self.facts))
    }

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
        if let Some(other) = self.without_defect(e) {
            return self.expr(&other);
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
            format!("variable `{}` is used outside of its scope", var.name()),
        )
    }

    /// `const T name = value;`, from here to the end of the block.
    pub(super) fn bind(&mut self, var: &Var, value: &Expr, span: Span) -> Result<()> {
        let code = self.expr(value)?;
        self.analyzer.bind_facts_of(var, value);
        self.digits.bound(var, value);
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
        let is_division = matches!(value.kind, ExprKind::Binary(BinOp::Div | BinOp::Mod, ..));
        if is_division && effect(value) == Effect::Pure {
            let named = self.division(&ty, var, &code);
            self.vars.insert(var.clone(), named);
            return Ok(());
        }
        let name = self.names.fresh(var.name());
        self.line(&format!("const {ty} {name} = {};", code.text));
        self.vars.insert(var.clone(), Code::primary(name));
        Ok(())
    }

    /// A name for the value of a division: that of the same one earlier in the statement, if there is one. A floor division needs
    /// quotient and remainder in each place where it stands, and where one of these is evaluated only under a condition, nvcc would
    /// branch around a division that it has done already.
    fn division(&mut self, ty: &str, var: &Var, value: &Code) -> Code {
        let is_same = |known: &&Named| {
            // What has moved into a block is not visible here.
            let stands = self
                .out
                .get(known.at..)
                .is_some_and(|rest| rest.starts_with(&known.line));
            stands && known.value == value.text && known.dtype == var.dtype()
        };
        if let Some(known) = self.divisions.iter().find(is_same) {
            return Code::primary(known.name.clone());
        }
        let name = self.names.fresh(var.name());
        let at = self.out.len();
        self.line(&format!("const {ty} {name} = {};", value.text));
        self.divisions.push(Named {
            value: value.text.clone(),
            dtype: var.dtype(),
            line: self.out[at..].to_string(),
            at,
            name: name.clone(),
        });
        Code::primary(name)
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
        let named = self.divisions.len();
        let x = then(self)?;
        // What has a name in one branch has none in the other.
        self.divisions.truncate(named);
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
    pub(super) fn hidden(&mut self, code: Code, dtype: DType) -> Code {
        let code = code.in_range(dtype);
        if !defects::hides(dtype, &self.facts) {
            return code;
        }
        self.unit.needs.helpers.insert(Helper::Hidden);
        Code::primary(format!("tirx_hidden({})", code.text))
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
}

pub(super) fn paren_and(code: Code) -> String {
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
