//! Expressions as text: Python's operators where they mean the same, `T.` functions elsewhere.

use super::super::typing;
use super::{Printer, literal};
use crate::at;
use crate::intrin::mnemonic::call::SINK;
use crate::intrin::mnemonic::{Direction, InstructionCall};
use crate::intrin::row::ArgKind;
use crate::intrin::{Op, Operands, ResultRule, Row};
use crate::ir::{AttrValue, BinOp, Buffer, DType, Expr, ExprKind, Type, Var};

/// Precedence of operators, as in Python.
mod level {
    pub(super) const ANY: u8 = 0;
    pub(super) const OR: u8 = 1;
    pub(super) const AND: u8 = 2;
    pub(super) const NOT: u8 = 3;
    pub(super) const COMPARISON: u8 = 4;
    pub(super) const SUM: u8 = 5;
    pub(super) const PRODUCT: u8 = 6;
}

/// The function that builds a binary node as it is.
fn function(op: BinOp) -> &'static str {
    match op {
        BinOp::Add => "Add",
        BinOp::Sub => "Sub",
        BinOp::Mul => "Mul",
        BinOp::Div => "Div",
        BinOp::Mod => "Mod",
        BinOp::FloorDiv => "FloorDiv",
        BinOp::FloorMod => "FloorMod",
        BinOp::Min => "Min",
        BinOp::Max => "Max",
        BinOp::Eq => "EQ",
        BinOp::Ne => "NE",
        BinOp::Lt => "LT",
        BinOp::Le => "LE",
        BinOp::Gt => "GT",
        BinOp::Ge => "GE",
        BinOp::And => "And",
        BinOp::Or => "Or",
    }
}

/// Python's operator for a node on operands of `dtype`, with its precedence.
fn operator(op: BinOp, dtype: DType) -> Option<(&'static str, u8)> {
    Some(match op {
        BinOp::Add => ("+", level::SUM),
        BinOp::Sub => ("-", level::SUM),
        BinOp::Mul => ("*", level::PRODUCT),
        BinOp::Div if dtype.is_floating() => ("/", level::PRODUCT),
        BinOp::FloorDiv => ("//", level::PRODUCT),
        BinOp::FloorMod => ("%", level::PRODUCT),
        BinOp::Eq => ("==", level::COMPARISON),
        BinOp::Ne => ("!=", level::COMPARISON),
        BinOp::Lt => ("<", level::COMPARISON),
        BinOp::Le => ("<=", level::COMPARISON),
        BinOp::Gt => (">", level::COMPARISON),
        BinOp::Ge => (">=", level::COMPARISON),
        BinOp::And => ("and", level::AND),
        BinOp::Or => ("or", level::OR),
        BinOp::Div | BinOp::Mod | BinOp::Min | BinOp::Max => return None,
    })
}

fn is_number(e: &Expr) -> bool {
    matches!(e.kind, ExprKind::Int(_) | ExprKind::Float(_))
}

/// Whether the parser would fold the node when it reads operator text. Operations on two numbers are always printed in
/// function form, and so is one under `and` and `or`.
fn folds(op: BinOp, a: &Expr, b: &Expr) -> bool {
    let (left, right) = (is_number(a), is_number(b));
    if matches!(op, BinOp::Min | BinOp::Max) && a.same_node(b) && a.as_var().is_none() {
        // `a` is one shared node here; read back from text it would be two.
        return false;
    }
    (left && right) || (op.is_logical() && (left || right)) || typing::folds(op, a, b)
}

/// Whether the parser would fold `T.name(args)`: the call is then printed as `T.call_intrin`, which it builds without
/// folding.
fn call_folds(op: Op, args: &[Expr]) -> bool {
    match (op, args) {
        (
            Op::Fabs | Op::Floor | Op::Ceil | Op::Trunc | Op::Round | Op::Nearbyint | Op::Isnan | Op::Likely,
            [x],
        ) => is_number(x),
        (Op::IfThenElse, _) => args.get(at!(IfThenElse.cond)).is_some_and(is_number),
        (Op::BitwiseAnd | Op::BitwiseOr | Op::BitwiseXor, [a, b]) => is_number(a) && is_number(b),
        (Op::ShiftLeft | Op::ShiftRight, [a, b]) => {
            let within = b
                .as_int()
                .is_none_or(|v| (1..i128::from(a.dtype.bits)).contains(&v));
            !within || (is_number(a) && is_number(b))
        }
        _ => false,
    }
}

/// Brackets within brackets that Python reads: CPython gives up at 200, and a name is worth more than the last few.
const MAX_BRACKETS: u32 = 150;

impl Printer {
    /// Writes an expression in a context without operators.
    pub(super) fn expr(&mut self, out: &mut String, e: &Expr) {
        self.bracketed(out, e, |printer, out| printer.operand(out, e, level::ANY));
    }

    /// Writes `e`, which stands in brackets, by `write`. Below [`MAX_BRACKETS`] it gets a name, which is an alias of the
    /// expression and computes nothing: `nested = T.meta_var(…)` ahead of the line.
    fn bracketed(&mut self, out: &mut String, e: &Expr, write: impl FnOnce(&mut Printer, &mut String)) {
        // A load may stand where its address is meant; a variable that `T.Let` binds has no name ahead of the line.
        let named = self.brackets >= MAX_BRACKETS
            && self.names_expressions
            && self.lets == 0
            && e.depth() > 1
            && !matches!(e.kind, ExprKind::BufferLoad { .. });
        if !named {
            self.brackets += 1;
            write(self, out);
            self.brackets -= 1;
            return;
        }
        let around = std::mem::take(&mut self.brackets);
        let value = self.expr_text(e);
        self.brackets = around;
        let name = self.names.fresh("nested");
        self.before.push(format!("{name} = T.meta_var({value})"));
        out.push_str(&name);
    }

    /// The text of an expression in a context without operators.
    pub(super) fn expr_text(&mut self, e: &Expr) -> String {
        let mut out = String::new();
        self.expr(&mut out, e);
        out
    }

    /// Writes an expression in a context of precedence `min`.
    fn operand(&mut self, out: &mut String, e: &Expr, min: u8) {
        match &e.kind {
            ExprKind::Var(var) => {
                let text = self.var_text(var);
                out.push_str(&text);
            }
            ExprKind::Int(value) => int(out, e.dtype, *value),
            ExprKind::Float(value) => {
                let number = literal::float(literal::as_written(e.dtype, *value));
                out.push_str(&format!("T.{}({number})", e.dtype));
            }
            ExprKind::Str(text) => literal::string(out, text),
            ExprKind::Cast(value) => {
                out.push_str(&format!("T.Cast(\"{}\", ", e.dtype));
                self.expr(out, value);
                out.push(')');
            }
            ExprKind::Binary(op, a, b) => self.binary(out, e, (*op, a, b), min),
            ExprKind::Not(value) if is_number(value) => self.function_call(out, "Not", &[value]),
            ExprKind::Not(value) => self.parenthesized(out, e, min > level::NOT, |printer, out| {
                out.push_str("not ");
                printer.operand(out, value, level::NOT);
            }),
            ExprKind::Select(condition, yes, no) => self.function_call(out, "Select", &[condition, yes, no]),
            ExprKind::BufferLoad {
                buffer,
                indices,
                predicate,
            } => {
                self.load(out, buffer, indices, predicate.as_ref());
            }
            ExprKind::Ramp { base, stride, lanes } => {
                out.push_str("T.Ramp(");
                self.list(out, &[base, stride]);
                out.push_str(&format!(", {lanes})"));
            }
            ExprKind::Broadcast { value, lanes } => {
                out.push_str("T.Broadcast(");
                self.expr(out, value);
                out.push_str(&format!(", {lanes})"));
            }
            ExprKind::Shuffle { vectors, indices } => {
                out.push_str("T.Shuffle([");
                self.list(out, &vectors.iter().collect::<Vec<_>>());
                out.push_str("], [");
                self.list(out, &indices.iter().collect::<Vec<_>>());
                out.push_str("])");
            }
            ExprKind::Call { op, args } => self.call(out, *op, args, e.dtype),
            ExprKind::Let(var, value, body) => {
                let value = self.expr_text(value);
                let name = self.names.define_var(var);
                self.declare(&name, var);
                out.push_str("T.Let(");
                self.lets += 1;
                self.expr(out, body);
                self.lets -= 1;
                out.push_str(&format!(", where={{{name}: {value}}})"));
            }
        }
    }

    /// The binary node `e`, of an operator and two operands.
    fn binary(&mut self, out: &mut String, e: &Expr, (op, a, b): (BinOp, &Expr, &Expr), min: u8) {
        // On vectors, `and` and `or` are the bitwise operators.
        let folded = folds(op, a, b) || (op.is_logical() && a.dtype.is_vector());
        match operator(op, a.dtype) {
            Some((symbol, own)) if !folded => self.parenthesized(out, e, own < min, |printer, out| {
                // Python chains comparisons, so a comparison on the left needs parentheses too.
                printer.operand(out, a, if own == level::COMPARISON { own + 1 } else { own });
                out.push_str(&format!(" {symbol} "));
                printer.operand(out, b, own + 1);
            }),
            _ => {
                let name = match op {
                    BinOp::Min if !folded => "min",
                    BinOp::Max if !folded => "max",
                    BinOp::Mod if !folded => "truncmod",
                    _ => function(op),
                };
                self.function_call(out, name, &[a, b]);
            }
        }
    }

    /// Writes `e` by `inner`, in parentheses if `yes`.
    fn parenthesized(
        &mut self,
        out: &mut String,
        e: &Expr,
        yes: bool,
        inner: impl FnOnce(&mut Printer, &mut String),
    ) {
        if !yes {
            return inner(self, out);
        }
        self.bracketed(out, e, |printer, out| {
            out.push('(');
            inner(printer, out);
            out.push(')');
        });
    }

    fn function_call(&mut self, out: &mut String, name: &str, args: &[&Expr]) {
        out.push_str(&format!("T.{name}("));
        self.list(out, args);
        out.push(')');
    }

    /// Expressions with commas between them.
    pub(super) fn list(&mut self, out: &mut String, exprs: &[&Expr]) {
        for (i, e) in exprs.iter().enumerate() {
            if i > 0 {
                out.push_str(", ");
            }
            self.expr(out, e);
        }
    }

    fn load(&mut self, out: &mut String, buffer: &Buffer, indices: &[Expr], predicate: Option<&Expr>) {
        let (name, scalar) = self.buffer_text(buffer);
        out.push_str(&name);
        if scalar {
            return;
        }
        match predicate {
            None => self.indices(out, indices),
            Some(predicate) => {
                out.push_str(".vload([");
                self.list(out, &indices.iter().collect::<Vec<_>>());
                out.push_str("], predicate=");
                self.expr(out, predicate);
                out.push(')');
            }
        }
    }

    /// `[i, j]`, ramps of constant positive step as slices.
    pub(super) fn indices(&mut self, out: &mut String, indices: &[Expr]) {
        if indices.is_empty() {
            out.push_str("[()]");
            return;
        }
        out.push('[');
        for (i, index) in indices.iter().enumerate() {
            if i > 0 {
                out.push_str(", ");
            }
            match &index.kind {
                ExprKind::Ramp { base, stride, lanes }
                    if base.dtype.is_scalar() && stride.as_int().is_some_and(|s| s > 0) && !has_let(base) =>
                {
                    let step = stride.as_int().unwrap_or(1);
                    let length = Expr::constant(base.dtype, step * i128::from(*lanes));
                    let end = end(base, &length);
                    self.expr(out, base);
                    out.push(':');
                    self.expr(out, &end);
                    if step != 1 {
                        out.push(':');
                        self.expr(out, stride);
                    }
                }
                _ => self.expr(out, index),
            }
        }
        out.push(']');
    }

    fn call(&mut self, out: &mut String, op: Op, args: &[Expr], dtype: DType) {
        if op == Op::CudaFuncCall
            && let Ok(call) = Operands::read(op.row(), args)
            && let (Some(name), Some(source)) = (call.get("func_name"), call.get("source_code"))
        {
            let mut shown = vec![name];
            shown.extend(call.list("args"));
            out.push_str("T.cuda.func_call(");
            self.list(out, &shown);
            out.push_str(", source_code=");
            self.expr(out, source);
            if !dtype.is_void() {
                out.push_str(&format!(", return_type=\"{dtype}\""));
            }
            out.push(')');
            return;
        }
        if op == Op::CallFunction
            && let Some(name) = args.get(at!(CallFunction.func_name))
        {
            out.push_str(&format!("Module.{}(", name.as_str().unwrap_or_default()));
            self.list(out, &args[at!(CallFunction.args)..].iter().collect::<Vec<_>>());
            out.push(')');
            return;
        }
        if let Op::PtxInstruction = op
            && let Ok(call) = InstructionCall::read(args)
        {
            self.instruction(out, &call);
            return;
        }
        if op == Op::AddressOf
            && let Some(ExprKind::BufferLoad { buffer, indices, .. }) =
                args.get(at!(AddressOf.obj)).map(|e| &e.kind)
            && is_behind(buffer, indices)
        {
            // What is behind the end has an address, and no value.
            let name = self.buffer_text(buffer).0;
            out.push_str(&format!("{name}.ptr_to(["));
            self.list(out, &indices.iter().collect::<Vec<_>>());
            out.push_str("])");
            return;
        }
        if call_folds(op, args) {
            out.push_str(&format!("T.call_intrin(\"{dtype}\", \"{}\", ", op.name()));
            self.list(out, &args.iter().collect::<Vec<_>>());
            out.push(')');
            return;
        }
        self.row_call(out, op.row(), args, dtype);
    }

    /// `T.ptx["ld.global.b32"](value, pointer, pred=p)`: registers that are written as elements.
    fn instruction(&mut self, out: &mut String, call: &InstructionCall) {
        out.push_str(&format!("T.ptx[\"{}\"](", call.tokens.text()));
        let registers = call
            .operands
            .iter()
            .flat_map(|(o, list)| list.iter().map(move |e| (o, e)));
        for (i, (operand, e)) in registers.enumerate() {
            if i > 0 {
                out.push_str(", ");
            }
            let element = match operand.direction {
                Direction::Read => None,
                _ => e
                    .as_call(Op::AddressOf)
                    .and_then(|args| args.get(at!(AddressOf.obj))),
            };
            match element {
                _ if e.as_str() == Some(SINK) => out.push_str("T.ptx.SINK"),
                Some(element) if matches!(element.kind, ExprKind::BufferLoad { .. }) => {
                    self.expr(out, element)
                }
                _ => self.expr(out, e),
            }
        }
        if let Some(predicate) = call.predicate {
            out.push_str(if call.operands.is_empty() {
                "pred="
            } else {
                ", pred="
            });
            self.expr(out, predicate);
        }
        if call.preserves {
            out.push_str(", preserve_dst=True");
        }
        out.push(')');
    }

    /// All arguments by position, elements where the node has their addresses, and the dtype where the arguments do not
    /// determine it.
    fn row_call(&mut self, out: &mut String, row: &'static Row, args: &[Expr], dtype: DType) {
        let mut shown: Vec<&Expr> = args.iter().collect();
        let elements = row
            .args
            .iter()
            .any(|arg| matches!(arg.kind, ArgKind::Element(..)));
        if elements && let Ok(operands) = Operands::read(row, args) {
            let kinds = operands
                .each()
                .flat_map(|(arg, part)| part.iter().map(move |_| arg.kind));
            for (shown, kind) in shown.iter_mut().zip(kinds) {
                if let (ArgKind::Element(..), Some([element])) = (kind, shown.as_call(Op::AddressOf))
                    && matches!(element.kind, ExprKind::BufferLoad { .. })
                {
                    *shown = element;
                }
            }
        }
        let said = match dtype {
            DType::HANDLE => "T.handle().ty".to_string(),
            _ => format!("\"{dtype}\""),
        };
        out.push_str(&format!("T.{}(", row.script));
        if let ResultRule::Given = row.result {
            out.push_str(&said);
            out.push_str(if shown.is_empty() { "" } else { ", " });
        }
        self.list(out, &shown);
        if let ResultRule::GivenLast = row.result {
            out.push_str(&format!(", {said}"));
        }
        out.push(')');
    }

    /// Declares a variable ahead of the current line: `n = T.int32()`.
    pub(super) fn declare(&mut self, name: &str, var: &Var) {
        let value = constructor(var);
        self.before.push(format!("{name} = {value}"));
    }

    /// The value of an attribute or annotation.
    pub(super) fn attr_value(&mut self, out: &mut String, value: &AttrValue) {
        match value {
            AttrValue::None => out.push_str("None"),
            AttrValue::Bool(v) => out.push_str(if *v { "True" } else { "False" }),
            AttrValue::Int(v) => out.push_str(&v.to_string()),
            AttrValue::Float(v) if v.is_finite() => out.push_str(&literal::float(*v)),
            AttrValue::Float(v) => out.push_str(&format!("float({})", literal::float(*v))),
            AttrValue::Str(s) => literal::string(out, s),
            AttrValue::List(items) => {
                out.push('[');
                for (i, item) in items.iter().enumerate() {
                    if i > 0 {
                        out.push_str(", ");
                    }
                    self.attr_value(out, item);
                }
                out.push(']');
            }
            AttrValue::Dict(items) => self.attr_dict(out, items.iter().map(|(k, v)| (&**k, v))),
            AttrValue::Expr(e) => self.expr(out, e),
            AttrValue::Target(items) => {
                out.push_str("T.target(");
                self.attr_dict(out, items.iter().map(|(k, v)| (&**k, v)));
                out.push(')');
            }
        }
    }

    /// `{"key": value, …}`.
    pub(super) fn attr_dict<'a>(
        &mut self,
        out: &mut String,
        items: impl IntoIterator<Item = (&'a str, &'a AttrValue)>,
    ) {
        out.push('{');
        for (i, (key, value)) in items.into_iter().enumerate() {
            if i > 0 {
                out.push_str(", ");
            }
            literal::string(out, key);
            out.push_str(": ");
            self.attr_value(out, value);
        }
        out.push('}');
    }
}

/// The expression that makes a new variable: `T.int32()`, `T.handle("float32", "global")`.
pub(super) fn constructor(var: &Var) -> String {
    match var.ty() {
        Type::Prim(dtype) => format!("T.{dtype}()"),
        ty @ (Type::Pointer { .. } | Type::TensorMap) => type_text(ty),
    }
}

/// `T.int32`, `T.handle("float32", "global")`.
pub(super) fn type_text(ty: &Type) -> String {
    match ty {
        Type::Prim(dtype) => format!("T.{dtype}"),
        Type::Pointer { element, scope } => format!("T.handle(\"{element}\", \"{scope}\")"),
        Type::TensorMap => "T.TensorMap()".to_string(),
    }
}

/// An integer constant: bare where it is an `int32`, as a bare number in text is.
fn int(out: &mut String, dtype: DType, value: i128) {
    if dtype.is_bool() {
        out.push_str(if value != 0 {
            "T.bool(True)"
        } else {
            "T.bool(False)"
        });
    } else if dtype == DType::INT32 {
        out.push_str(&value.to_string());
    } else {
        out.push_str(&format!("T.{dtype}({value})"));
    }
}

/// Whether an expression binds a variable: printed twice, as in a slice, it would bind two.
fn has_let(e: &Expr) -> bool {
    matches!(e.kind, ExprKind::Let(..)) || e.operands().any(has_let)
}

/// One past the last value of a range, in the form from which the front end reads `length` back.
pub(super) fn end(base: &Expr, length: &Expr) -> Expr {
    match (base.as_int(), length.as_int()) {
        (Some(a), Some(b)) => Expr::constant(base.dtype, a + b),
        (Some(0), _) => length.clone(),
        _ => Expr::binary(BinOp::Add, base.clone(), length.clone()),
    }
}

/// Whether an element is behind the last of its buffer's first dimension, in which only the address of one may be asked.
fn is_behind(buffer: &Buffer, indices: &[Expr]) -> bool {
    let ends = indices.first().zip(buffer.shape.first());
    let ends = ends.and_then(|(index, extent)| index.as_int().zip(extent.as_int()));
    buffer.layout.is_some() && ends.is_some_and(|(index, extent)| index >= extent)
}
