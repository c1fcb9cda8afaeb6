//! The host function as a C function, statement by statement.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::expr::Printer;
use super::extent;
use super::{Result, c_scalar, is_pointer, packed_params};
use crate::intrin::Op;
use crate::ir::abi::host::checked::{is_arithmetic, is_followed, written_out};
use crate::ir::abi::tensor_map::{self, Encode};
use crate::ir::abi::{self, Check, LaunchParam, PackedLaunch, What};
use crate::ir::abi::{ParamKind, Signature};
use crate::ir::at;
use crate::ir::{
    Assert, Attr, BinOp, Expr, ExprKind, ForKind, ForLoop, IRModule, PrimFunc, Stmt, StmtKind, Var,
};

struct HostPrinter<'a> {
    module: &'a IRModule,
    name: &'a str,
    names: Vec<String>,
    printer: Printer,
    /// Values of names that are bound to integer arithmetic: launch extents compute them without wrapping.
    arithmetic: FxHashMap<Var, Expr>,
    out: String,
    indent: usize,
    launches: usize,
    /// The maps whose tensors may have no elements, each with the name of the condition.
    empty_maps: Vec<(Var, String)>,
}

/// Prints the function `NAME_host`.
pub(super) fn print(
    name: &str,
    shown: &str,
    func: &PrimFunc,
    module: &IRModule,
    signature: &Signature,
) -> Result<String> {
    let [self_handle, args, count, result] = packed_params(func)?;
    let mut host = HostPrinter {
        module,
        name,
        names: signature.params.iter().map(|p| p.name.clone()).collect(),
        printer: Printer::default(),
        arithmetic: FxHashMap::default(),
        out: String::new(),
        indent: 1,
        launches: 0,
        empty_maps: Vec::new(),
    };
    host.printer.define(self_handle, "self");
    host.printer.define(args, "args");
    host.printer.define(count, "num_args");
    host.printer.define(result, "result");
    for (index, param) in signature.params.iter().enumerate() {
        if let ParamKind::Tensor { shape, .. } = &param.kind {
            let (name, rank) = (&param.name, shape.len());
            host.line(format!(
                "TIRX_TRY(tirx_check_tensor(kernel, args, num_args, {index}, {name:?}, {rank}));"
            ));
        }
    }
    host.stmt(&func.body)?;
    Ok(format!(
        "static int32_t {name}_host(void* self, const void* args, int32_t num_args, void* result, void* stream) {{\n  \
         static const char kernel[] = {shown:?};\n  bool divided_by_zero = false;\n  \
         (void)self; (void)result; (void)num_args; (void)divided_by_zero; (void)kernel;\n{}  return TIRX_OK;\n}}\n\n",
        host.out
    ))
}

impl HostPrinter<'_> {
    fn line(&mut self, text: impl AsRef<str>) {
        for _ in 0..self.indent {
            self.out.push_str("  ");
        }
        self.out.push_str(text.as_ref());
        self.out.push('\n');
    }

    /// Emitted after a line that may have divided by zero.
    fn check_division(&mut self) {
        if std::mem::take(&mut self.printer.divides) {
            self.line("if (divided_by_zero) return tirx_fail_check(kernel, \"RuntimeError\", \"division by zero\");");
        }
    }

    fn stmt(&mut self, stmt: &Stmt) -> Result<()> {
        match &stmt.kind {
            StmtKind::Seq(stmts) => stmts.iter().try_for_each(|s| self.stmt(s))?,
            // Attributes for passes: no text.
            StmtKind::Attr(Attr { body, .. }) => self.stmt(body)?,
            StmtKind::DeclBuffer(_) => {}
            StmtKind::Bind(var, value) => {
                if is_followed(value) {
                    self.arithmetic.insert(var.clone(), value.clone());
                }
                self.bind(var, value)?;
            }
            StmtKind::Assert(Assert {
                condition,
                kind,
                message,
            }) => self.check(condition, kind, message)?,
            StmtKind::Evaluate(e) => self.evaluate(e)?,
            StmtKind::If(condition, then, otherwise) => {
                let condition = self.printer.expr(condition)?;
                self.line(format!("if {} {{", parenthesized(&condition)));
                self.indented(then)?;
                if let Some(otherwise) = otherwise {
                    self.line("} else {");
                    self.indented(otherwise)?;
                }
                self.line("}");
            }
            StmtKind::For(ForLoop {
                var,
                min,
                extent,
                kind: ForKind::Serial | ForKind::Unrolled,
                step,
                body,
                ..
            }) => {
                let (min, extent) = (self.printer.expr(min)?, self.printer.expr(extent)?);
                let step = step
                    .as_ref()
                    .map_or(Ok("1".to_string()), |s| self.printer.expr(s))?;
                let ty = self.c_type(var, &Expr::var(var))?;
                let name = self.printer.name(var);
                self.check_division();
                self.line(format!(
                    "for ({ty} {name} = {min}, {name}_end = ({ty})({min} + {extent}); {name} < {name}_end; {name} += {step}) {{"
                ));
                self.indented(body)?;
                self.line("}");
            }
            StmtKind::While(condition, body) => {
                let condition = self.printer.expr(condition)?;
                self.line(format!("while {} {{", parenthesized(&condition)));
                self.indented(body)?;
                self.line("}");
            }
            _ => {
                return Err(crate::diagnostic::Diagnostic::new(
                    stmt.span,
                    "the host has this statement, and C launchers cannot",
                )
                .into());
            }
        }
        Ok(())
    }

    fn indented(&mut self, body: &Stmt) -> Result<()> {
        self.indent += 1;
        let result = self.stmt(body);
        self.indent -= 1;
        result
    }

    fn c_type(&self, var: &Var, at: &Expr) -> Result<&'static str> {
        if is_pointer(var) {
            return Ok("void*");
        }
        c_scalar(var.dtype()).ok_or_else(|| abi::unsupported(at, &format!("dtype {}", var.dtype())))
    }

    fn bind(&mut self, var: &Var, value: &Expr) -> Result<()> {
        // Storage for a tensor map: it has a value once it is encoded.
        if var.ty().is_tensor_map() && value.as_call(Op::TvmStackAlloca).is_some() {
            return Ok(());
        }
        let text = self.printer.expr(value)?;
        let ty = self.c_type(var, value)?;
        let name = self.printer.name(var);
        self.line(format!("{ty} {name} = ({ty}){text};"));
        self.line(format!("(void){name};"));
        self.check_division();
        self.fits(value, &name)
    }

    /// Checks an extent, a stride or a scalar that is read as a smaller integer than the 64 bits that a caller passes.
    fn fits(&mut self, value: &Expr, name: &str) -> Result<()> {
        let (wide, expected) = match abi::descriptor_value(value) {
            Some(wide) => (wide, "at most 2147483647".to_string()),
            None => match passed_scalar(value) {
                Some((wide, least, most)) => (wide, format!("from {least} to {most}")),
                None => return Ok(()),
            },
        };
        let text = self.printer.expr(wide)?;
        let shown = name
            .trim_start_matches(|c: char| c == 'v' || c.is_ascii_digit())
            .trim_start_matches('_');
        self.line(format!(
            "if ((int64_t){name} != {text}) return tirx_fail_value(kernel, -1, {shown:?}, \"value\", \
             {expected:?}, (int64_t){text});"
        ));
        Ok(())
    }

    /// An assertion: each part of a conjunction is a check of its own, with its own actual value.
    fn check(&mut self, condition: &Expr, kind: &str, message: &[Arc<str>]) -> Result<()> {
        if let Some((a, b)) = condition.as_binary(BinOp::And) {
            self.check(a, kind, message)?;
            return self.check(b, kind, message);
        }
        let text = self.printer.expr(condition)?;
        self.check_division();
        let failure = match Check::read(message, &self.names) {
            Some(check) => self.failure(&check, condition, kind, message)?,
            None => plain_failure(kind, message),
        };
        self.line(format!("if (!{}) return {failure};", parenthesized(&text)));
        Ok(())
    }

    /// The error of a failed check: the argument, its property, the actual and the expected value.
    fn failure(
        &mut self,
        check: &Check,
        condition: &Expr,
        kind: &str,
        message: &[Arc<str>],
    ) -> Result<String> {
        let (index, argument) = (check.index, &check.argument);
        if check.what == What::Data {
            return Ok(format!(
                "tirx_fail_text(kernel, {kind:?}, {index}, {argument:?}, \"data\", \"a pointer\", \"null\")"
            ));
        }
        if check.what == What::Type {
            return Ok(format!(
                "tirx_fail_type(kernel, {index}, {argument:?}, {:?}, ((const tirx_any*)args)[{index}].type_index)",
                check.expected
            ));
        }
        let Some((a, b)) = abi::compared(condition) else {
            return Ok(plain_failure(kind, message));
        };
        if check.what == What::DType {
            let expected = &check.expected;
            return Ok(format!(
                "tirx_fail_dtype(kernel, {kind:?}, args, {index}, {argument:?}, {expected:?})"
            ));
        }
        let (actual, wanted) = if abi::reads_argument(b) && !abi::reads_argument(a) || a.as_int().is_some() {
            (b, a)
        } else {
            (a, b)
        };
        if matches!(check.what, What::Alignment | What::OffsetAlignment) {
            let remainder = |e: &Expr| matches!(e.kind, ExprKind::Binary(BinOp::Mod | BinOp::FloorMod, ..));
            let found = [actual, wanted].into_iter().find(|e| remainder(e));
            if let Some(ExprKind::Binary(_, value, divisor)) = found.map(|e| &e.kind) {
                let is_address = matches!(value.as_call(Op::Reinterpret), Some([a]) if a.dtype.is_handle());
                let unit = if is_address { "" } else { " elements" };
                let expected = match divisor.as_int() {
                    Some(v) => format!("a multiple of {v}{unit}"),
                    None => format!("a multiple of {}", check.expected),
                };
                let value = self.printer.expr(value)?;
                return Ok(format!(
                    "tirx_fail_value(kernel, {index}, {argument:?}, {:?}, {expected:?}, (int64_t){value})",
                    check.what.field()
                ));
            }
        }
        let actual = abi::descriptor_value(actual).unwrap_or(actual);
        let field = match abi::element_position(actual) {
            Some(position) if check.what == What::Compact => format!("strides[{position}]"),
            _ => check.what.field().to_string(),
        };
        if actual.dtype.is_floating() || actual.dtype.is_handle() {
            return Ok(plain_failure(kind, message));
        }
        let words = match wanted.as_int() {
            Some(v) if check.expected.is_empty() || v.to_string() == check.expected => String::new(),
            None if check.expected.is_empty() => String::new(),
            _ => check.expected.clone(),
        };
        let (actual, wanted) = (self.printer.expr(actual)?, self.printer.expr(wanted)?);
        Ok(format!(
            "tirx_fail_mismatch(kernel, {index}, {argument:?}, {field:?}, (int64_t){wanted}, {words:?}, (int64_t){actual})"
        ))
    }

    fn evaluate(&mut self, e: &Expr) -> Result<()> {
        match &e.kind {
            ExprKind::Int(_) => Ok(()),
            ExprKind::Call { op: Op::Ret, .. } => {
                self.line("return TIRX_OK;");
                Ok(())
            }
            ExprKind::Call {
                op: Op::TvmCallPacked,
                args,
            } => {
                // The packed function takes the kind of the device and its number.
                if args[at!(TvmCallPacked.func_name)].as_str() == Some("__tvm_set_device")
                    && let [_, device] = &args[at!(TvmCallPacked.args)..]
                {
                    let device = self.printer.expr(device)?;
                    self.line(format!("TIRX_TRY(tirx_set_device(kernel, {device}, &stream));"));
                    return Ok(());
                }
                if let Some(encode) = tensor_map::encode(args, e.span) {
                    return self.tensor_map(&encode.map_err(|error| *error)?);
                }
                match abi::launch(self.module, args) {
                    Some(launch) => self.launch(&launch),
                    None => Err(abi::unsupported(e, "a call of this packed function")),
                }
            }
            ExprKind::Call { op, .. } => Err(abi::unsupported(e, &format!("`T.{}`", op.info().script))),
            _ => Ok(()),
        }
    }

    fn launch(&mut self, launch: &PackedLaunch<'_>) -> Result<()> {
        let number = self.launches;
        self.launches += 1;
        self.line("{");
        self.indent += 1;
        let mut addresses = Vec::new();
        for (i, (param, arg)) in launch.device.params.iter().zip(launch.args).enumerate() {
            let value = self.printer.expr(arg)?;
            if param.ty().is_tensor_map() {
                addresses.push(format!("(void*)({value})"));
                continue;
            }
            let ty = self.c_type(param, arg)?;
            self.line(format!("{ty} p{i} = ({ty}){value};"));
            addresses.push(format!("&p{i}"));
        }
        let list = if addresses.is_empty() {
            "NULL".to_string()
        } else {
            addresses.join(", ")
        };
        self.line(format!("void* params[] = {{{list}}};"));
        self.line("tirx_launch_config config = TIRX_LAUNCH_CONFIG;");
        for (param, tag, value) in &launch.params {
            let place = match param {
                LaunchParam::Grid(d) => format!("grid[{d}]"),
                LaunchParam::Block(d) => format!("block[{d}]"),
                LaunchParam::Cluster(d) => format!("cluster[{d}]"),
                LaunchParam::PreferredCluster(d) => format!("preferred_cluster[{d}]"),
                LaunchParam::SharedBytes => "shared_bytes".to_string(),
                LaunchParam::Programmatic => {
                    self.line("config.programmatic = 1;");
                    continue;
                }
                LaunchParam::Cooperative => {
                    self.line("config.cooperative = 1;");
                    continue;
                }
            };
            let Some(value) = value else { continue };
            let arithmetic = &self.arithmetic;
            let bound = |var: &Var| arithmetic.get(var).cloned();
            for line in extent::print(&mut self.printer, &bound, tag, &place, value)? {
                self.line(line);
            }
        }
        self.check_division();
        for arg in launch.args {
            let map = self.empty_maps.iter().find(|(map, _)| arg.as_var() == Some(map));
            if let Some((map, empty)) = map {
                let error = tensor_map::without_elements(map.name());
                let text = format!(
                    "if ({empty} && tirx_has_blocks(&config)) return tirx_fail_check(kernel, \"ValueError\", {error:?});"
                );
                self.line(text);
            }
        }
        self.line(format!(
            "TIRX_TRY(tirx_launch(&{}_kernel, {}, stream, &config, params)); /* launch {number} */",
            self.name, launch.function
        ));
        self.indent -= 1;
        self.line("}");
        Ok(())
    }

    /// Checks the rules of a tensor map and encodes it, unless an earlier launch has encoded the same one.
    fn tensor_map(&mut self, encode: &Encode<'_>) -> Result<()> {
        let map = encode.map.name().to_string();
        let encode = encode
            .clone()
            .exact(&|value| written_out(value, &|var| self.arithmetic.get(var).cloned()));
        // A tensor without elements has no map; only a launch with blocks needs one.
        let empty = match encode.is_empty() {
            None => None,
            Some(condition) => {
                let name = format!("{}_is_empty", self.printer.name(encode.map));
                let condition = self.printer.expr(&condition)?;
                self.line(format!("const bool {name} = {condition};"));
                self.empty_maps.push((encode.map.clone(), name.clone()));
                Some(name)
            }
        };
        let has_elements = empty
            .as_ref()
            .map_or_else(String::new, |name| format!("!{name} && "));
        for rule in encode.rules() {
            if rule.condition.as_int() == Some(1) || constant_condition(&rule.condition) == Some(true) {
                continue;
            }
            let condition = self.printer.expr(&rule.condition)?;
            let value = self.printer.expr(&rule.value)?;
            // Computed values may exceed 64 bits, too.
            let fits = match extent::wide(&mut self.printer, &rule.value) {
                Some((wide, _)) if is_arithmetic(&rule.value, &|_| None) => format!(" || !{wide}.fits"),
                _ => String::new(),
            };
            let broken = format!("!{}{fits}", parenthesized(&condition));
            let broken = match has_elements.as_str() {
                "" => broken,
                condition => format!("{condition}({broken})"),
            };
            self.line(format!(
                "if ({broken}) return tirx_fail_tensor_map(kernel, {map:?}, {:?}, {:?}, (int64_t){value});",
                rule.field, rule.expected
            ));
        }
        let mut list = |values: &[Expr], ty: &str| -> Result<String> {
            let texts = values
                .iter()
                .map(|v| Ok(format!("({ty}){}", self.printer.expr(v)?)));
            Ok(texts.collect::<Result<Vec<String>>>()?.join(", "))
        };
        let (dims, strides) = (
            list(&encode.dims, "uint64_t")?,
            list(&encode.strides, "uint64_t")?,
        );
        let box_dims = list(&encode.box_dims, "uint32_t")?;
        let element_strides = list(&encode.element_strides, "uint32_t")?;
        let address = self.printer.expr(&encode.address)?;
        let name = self.printer.name(encode.map);
        let rank = encode.dims.len();
        let strides = if strides.is_empty() {
            "0".to_string()
        } else {
            strides
        };
        self.line(format!("static tirx_tensor_map_cache {name}_cache;"));
        self.line(format!("tirx_tensor_map {name}_map;"));
        self.line(format!("void* {name} = &{name}_map;"));
        self.line(format!(
            "tirx_tensor_map_spec {name}_spec = {{{}, {rank}, (uint64_t)(uintptr_t){address}, {{{dims}}}, {{{strides}}}, \
             {{{box_dims}}}, {{{element_strides}}}, {}, {}, {}, {}}};",
            encode.data_type, encode.interleave, encode.swizzle, encode.l2_promotion, encode.oob_fill
        ));
        let unless_empty = match &empty {
            Some(name) => format!("if (!{name}) "),
            None => String::new(),
        };
        self.line(format!(
            "{unless_empty}TIRX_TRY(tirx_tensor_map_encode(kernel, {map:?}, &{name}_cache, &{name}_spec, &{name}_map));"
        ));
        Ok(())
    }
}

/// Whether a condition over constants holds.
fn constant_condition(e: &Expr) -> Option<bool> {
    if let Some((a, b)) = e.as_binary(BinOp::And) {
        return Some(constant_condition(a)? && constant_condition(b)?);
    }
    let number = |e: &Expr| e.as_int();
    let ExprKind::Binary(op, a, b) = &e.kind else {
        return e.as_int().map(|v| v != 0);
    };
    let value = |e: &Expr| match &e.kind {
        ExprKind::Binary(BinOp::FloorMod, a, b) => {
            let product = match &a.kind {
                ExprKind::Binary(BinOp::Mul, x, y) => number(x)?.checked_mul(number(y)?),
                _ => number(a),
            }?;
            Some(product.rem_euclid(number(b).filter(|b| *b > 0)?))
        }
        ExprKind::Binary(BinOp::Mul, x, y) => number(x)?.checked_mul(number(y)?),
        _ => number(e),
    };
    let (a, b) = (value(a)?, value(b)?);
    Some(match op {
        BinOp::Eq => a == b,
        BinOp::Le => a <= b,
        BinOp::Ge => a >= b,
        _ => return None,
    })
}

fn plain_failure(kind: &str, message: &[Arc<str>]) -> String {
    format!("tirx_fail_check(kernel, {kind:?}, {:?})", message.concat())
}

/// A condition in the form of C's `if`.
fn parenthesized(text: &str) -> String {
    let whole = text.starts_with('(') && {
        let mut depth = 0;
        text.char_indices().all(|(i, c)| {
            depth += match c {
                '(' => 1,
                ')' => -1,
                _ => 0,
            };
            depth > 0 || i + 1 == text.len()
        })
    };
    if whole {
        text.to_string()
    } else {
        format!("({text})")
    }
}

/// The 64 bits of a packed argument that is read as a smaller integer, and the range of that integer.
fn passed_scalar(value: &Expr) -> Option<(&Expr, i128, i128)> {
    let ExprKind::Cast(wide) = &value.kind else {
        return None;
    };
    let field = wide.as_call(Op::TvmStructGet)?.get(at!(TvmStructGet.field))?;
    let passed = field.as_int().and_then(abi::Field::from_number) == Some(abi::Field::ArgValue);
    let smaller = value.dtype.is_integer() && value.dtype.bits < 64 && wide.dtype.is_integer();
    let (least, most) = value.dtype.min_int().zip(value.dtype.max_int())?;
    (passed && smaller).then_some((wide, least, most))
}
