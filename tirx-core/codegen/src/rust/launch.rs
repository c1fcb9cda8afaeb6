//! Launches: a raw function for each launch, and its configuration.

use super::Raw;
use super::checked::{checked, failed};
use super::code::{Binds, Code, bits, join, logical};
use super::expr::{Printer, Value};
use super::line::{Line, LineKind};
use super::names::Names;
use super::stmt::{HostPrinter, Result};
use super::{internal, rust_scalar, string_literal};
use crate::ir::abi::host::checked::{is_computed, unconverted, written_out};
use crate::ir::abi::tensor_map::{Encode, Rule, without_elements};
use crate::ir::abi::{self, LaunchParam};
use crate::ir::{BinOp, DType, Expr, ExprKind, Type, Var, Visitor};

impl HostPrinter<'_> {
    /// Prints a raw function for the launch, and the call of it.
    pub(super) fn launch(&mut self, launch: &abi::PackedLaunch<'_>) -> Result<()> {
        let symbols = abi::device_functions(self.module);
        let symbol = symbols[launch.function].0.to_string();
        let single = symbols.len() == 1;
        let name = self.raw_names.fresh(&if single {
            "raw".to_string()
        } else {
            format!("raw_{symbol}")
        });

        let mut printer = Printer::new(self.signature, Names::reserving(&["stream", "config"]));
        let mut params: Vec<(String, String, String)> = Vec::new();
        let mut call_args: Vec<Code> = Vec::new();
        let mut tensor_maps: Vec<String> = Vec::new();
        for (param, arg) in launch.device.params.iter().zip(launch.args) {
            let name = printer.names.name(param);
            // A host variable that is passed as an argument is named like the parameter here.
            if let Some(var) = arg.as_var() {
                printer.define_name(var, &name);
            }
            if param.ty().is_tensor_map() {
                tensor_maps.push(name.clone());
                params.push((name, "&::tirx_rt::TensorMap".to_string(), param_text(param)));
                call_args.push(self.printer.code(arg)?);
                continue;
            }
            let ty = rust_scalar(param.dtype()).ok_or_else(|| {
                abi::unsupported(arg, &format!("a kernel parameter of dtype {}", param.dtype()))
            })?;
            params.push((name, ty.to_string(), param_text(param)));
            call_args.push(self.printer.code(arg)?);
        }
        let bits: Vec<String> = launch
            .device
            .params
            .iter()
            .zip(&params)
            .map(
                |(param, (name, ..))| match tensor_maps.iter().position(|map| map == name) {
                    // Tensor maps are passed beside the arguments, by number.
                    Some(number) => number.to_string(),
                    None => bits(name, param.dtype()),
                },
            )
            .collect();
        let mut config = Config::default();
        for (param, tag, value) in &launch.params {
            let Some(value) = value else {
                config.flag(*param);
                continue;
            };
            // Values that the host binds along the way are computed here, without wrapping.
            let value = self.written_out(value);
            let value = unconverted(&value);
            // Variables of the extents that the device function does not take become parameters too.
            for var in free_vars(value) {
                if printer.value(&Expr::var(&var)).is_ok() {
                    continue;
                }
                match self.printer.value(&Expr::var(&var))? {
                    Value::Code(code) if !var.dtype().is_handle() => {
                        let name = printer.names.name(&var);
                        let ty = rust_scalar(var.dtype()).unwrap_or("i64").to_string();
                        printer.define_name(&var, &name);
                        params.push((name, ty, format!("{}, for the launch extents", var.dtype())));
                        call_args.push(code);
                    }
                    Value::Code(_) => {}
                    known => printer.define(&var, known),
                }
            }
            let exact = |printer: &mut Printer<'_>| match is_computed(value) {
                true => checked(printer, value, &|_| None),
                false => None,
            };
            let extent = match printer.value(value) {
                Ok(Value::Int(v)) if u32::try_from(v).is_ok() => v.to_string(),
                Ok(Value::Code(code)) => match exact(&mut printer) {
                    Some(checked) => checked.launch_extent_call(tag, value),
                    None => extent_call(tag, &code.text, value),
                },
                _ => {
                    // The value reads an argument directly, so the caller computes it.
                    let code = self.printer.code(value)?;
                    if let Some(checked) = exact(&mut self.printer) {
                        let name = printer.names.fresh(tag);
                        let mut computed = code;
                        computed.text = checked.launch_extent_call(tag, value);
                        call_args.push(computed);
                        config.set(*param, name.clone());
                        params.push((name, "u32".to_string(), format!("launch extent `{tag}`")));
                        continue;
                    }
                    let name = printer.names.fresh(tag);
                    let ty = rust_scalar(value.dtype).unwrap_or("i64").to_string();
                    let text = extent_call(tag, &name, value);
                    params.push((name, ty, format!("launch extent `{tag}`")));
                    call_args.push(code);
                    text
                }
            };
            config.set(*param, extent);
        }
        let config = config.text();
        let declared: Vec<String> = params.iter().map(|(n, ty, _)| format!("{n}: {ty}")).collect();
        let item = format!(
            "::tirx_rt::raw_launch! {{\n{RAW_DOCS}fn {name}(stream: &::tirx_rt::Stream{})\n\
             LOADED.{}({}, stream, &{config}, &[{}]{})\n}}\n",
            declared.iter().map(|d| format!(", {d}")).collect::<String>(),
            if tensor_maps.is_empty() {
                "launch"
            } else {
                "launch_with_tensor_maps"
            },
            launch.function,
            bits.join(", "),
            match tensor_maps.as_slice() {
                [] => String::new(),
                maps => format!(", &[{}]", maps.join(", ")),
            },
        );
        self.raw.push(Raw {
            symbol,
            name: name.clone(),
            params: params.into_iter().map(|(name, _, text)| (name, text)).collect(),
            item,
        });
        let texts: String = call_args.iter().map(|c| format!(", {}", c.text)).collect();
        let codes: Vec<&Code> = call_args.iter().collect();
        self.lines.push(Line::new(
            LineKind::Launch,
            format!("::tirx_rt::call_raw!({name}(stream{texts}))?;"),
            &codes,
        ));
        Ok(())
    }
}

impl HostPrinter<'_> {
    /// Checks the rules of a tensor map and encodes it, unless an earlier launch has encoded the same one.
    pub(super) fn tensor_map(&mut self, encode: &Encode<'_>) -> Result<()> {
        let map = string_literal(encode.map.name());
        let mut reads = Vec::new();
        // A tensor without elements has no map; only a launch with blocks needs one.
        let empty = match encode.is_empty() {
            None => None,
            Some(condition) => {
                let code = self.printer.code(&condition)?;
                let name = self
                    .printer
                    .names
                    .fresh(&format!("{}_is_empty", encode.map.name()));
                let text = format!("let {name} = {};", code.text);
                self.lines.push(Line::defining(
                    LineKind::Value(Some("bool")),
                    &name,
                    text,
                    code.reads,
                ));
                reads.push(name.clone());
                Some(Code {
                    reads: vec![name.clone()],
                    ..Code::tight(name)
                })
            }
        };
        for rule in encode.rules() {
            self.tensor_map_rule(&map, &rule, empty.as_ref())?;
        }
        let mut list = |printer: &mut Printer<'_>, values: &[Expr], ty: &str| -> Result<String> {
            let mut texts = Vec::new();
            for value in values {
                texts.push(match printer.value(value)? {
                    Value::Int(v) => v.to_string(),
                    _ => {
                        let code = printer.code(value)?;
                        reads.extend(code.reads.iter().cloned());
                        format!("{} as {ty}", code.operand(Binds::Cast))
                    }
                });
            }
            Ok(format!("&[{}]", texts.join(", ")))
        };
        let printer = &mut self.printer;
        let dims = list(printer, &encode.dims, "u64")?;
        let strides = list(printer, &encode.strides, "u64")?;
        let box_dims = list(printer, &encode.box_dims, "u32")?;
        let element_strides = list(printer, &encode.element_strides, "u32")?;
        let address = printer.code(&encode.address)?;
        reads.extend(address.reads.iter().cloned());
        let name = self.printer.names.name(encode.map);
        let otherwise = empty.map_or_else(String::new, |empty| {
            let error = string_literal(&without_elements(encode.map.name()));
            format!(
                "if {} {{ ::tirx_rt::TensorMap::without_elements({error}) }} else ",
                empty.text
            )
        });
        self.lines.push(Line::defining(
            LineKind::Prepare,
            &name,
            format!(
                "let {name} = &{otherwise}{{ static CACHE: ::tirx_rt::TensorMapCache = ::tirx_rt::TensorMapCache::new(); \
                 CACHE.encode(stream, KERNEL, {map}, &::tirx_rt::TensorMapSpec {{ data_type: {}, address: {}, \
                 dims: {dims}, strides: {strides}, box_dims: {box_dims}, element_strides: {element_strides}, \
                 interleave: {}, swizzle: {}, l2_promotion: {}, oob_fill: {} }})? }};",
                encode.data_type,
                address.text,
                encode.interleave,
                encode.swizzle,
                encode.l2_promotion,
                encode.oob_fill,
            ),
            reads,
        ));
        self.printer.define_name(encode.map, &name);
        Ok(())
    }

    /// `empty` is true of a tensor that the rule does not concern.
    fn tensor_map_rule(&mut self, map: &str, rule: &Rule, empty: Option<&Code>) -> Result<()> {
        match self.printer.value(&rule.condition)? {
            Value::Int(0) => {
                let message = format!("tensor map {map}: {} never is {}", rule.field, rule.expected);
                return Err(internal(rule.value.span, message));
            }
            Value::Int(_) => return Ok(()),
            _ => {}
        }
        // Each bound of a range is a condition of its own; conditions that are known to hold are dropped.
        if let Some((low, high)) = rule.condition.as_binary(BinOp::And) {
            for condition in [low, high] {
                let condition = condition.clone();
                self.tensor_map_rule(
                    map,
                    &Rule {
                        condition,
                        ..rule.clone()
                    },
                    empty,
                )?;
            }
            return Ok(());
        }
        // Computed values may exceed 64 bits, too.
        let computed = matches!(rule.value.kind, ExprKind::Binary(..) | ExprKind::Call { .. });
        let checked = match computed {
            true => failed(&mut self.printer, &rule.condition, &|_| None)?,
            false => None,
        };
        let failed = match checked {
            Some(failed) => failed,
            None => self.printer.negated(&rule.condition)?,
        };
        let failed = match empty {
            Some(empty) => {
                let has_elements = join(Binds::Unary, format!("!{}", empty.text), &[empty]);
                logical(BinOp::And, &has_elements, &failed)
            }
            None => failed,
        };
        let value = self.number(&rule.value)?;
        let actual = match rule.field.as_str() {
            "globalAddress" => format!("format_args!(\"{{:#x}}\", {})", value.text),
            _ => value.text.clone(),
        };
        let error = format!(
            "::tirx_rt::host::tensor_map_rule(KERNEL, {map}, {}, {}, {actual})",
            string_literal(&rule.field),
            string_literal(&rule.expected),
        );
        self.lines.push(Line::check(failed, error, value.reads));
        Ok(())
    }
}

impl HostPrinter<'_> {
    /// An extent with names of arithmetic values expanded.
    pub(super) fn written_out(&self, value: &Expr) -> Expr {
        written_out(value, &|var| self.arithmetic.get(var).cloned())
    }
}

/// The position of the documentation of a raw function in its item.
pub const RAW_DOCS: &str = "/*docs*/";
fn param_text(param: &Var) -> String {
    match param.ty() {
        Type::Pointer { element, .. } => format!("device pointer to {element}"),
        Type::Prim(dtype) => dtype.to_string(),
        Type::TensorMap => "tensor map".to_string(),
    }
}

fn extent_call(tag: &str, text: &str, value: &Expr) -> String {
    let wide = match value.dtype {
        DType::INT64 => text.to_string(),
        DType::UINT64 => format!("({text}) as i64"),
        _ => format!("i64::from({text})"),
    };
    format!(
        "::tirx_rt::host::extent(KERNEL, {}, {wide})?",
        string_literal(tag)
    )
}

/// A launch configuration under construction.
#[derive(Default)]
struct Config {
    grid: [Option<String>; 3],
    block: [Option<String>; 3],
    cluster: [Option<String>; 3],
    preferred_cluster: [Option<String>; 3],
    shared_bytes: Option<String>,
    cooperative: bool,
    programmatic: bool,
}

impl Config {
    fn flag(&mut self, param: LaunchParam) {
        self.cooperative |= param == LaunchParam::Cooperative;
        self.programmatic |= param == LaunchParam::Programmatic;
    }

    fn set(&mut self, param: LaunchParam, value: String) {
        match param {
            LaunchParam::Grid(d) => self.grid[d] = Some(value),
            LaunchParam::Block(d) => self.block[d] = Some(value),
            LaunchParam::Cluster(d) => self.cluster[d] = Some(value),
            LaunchParam::PreferredCluster(d) => self.preferred_cluster[d] = Some(value),
            LaunchParam::SharedBytes => self.shared_bytes = Some(value),
            flag => self.flag(flag),
        }
    }

    fn text(&self) -> String {
        let mut fields = Vec::new();
        let triples = [
            ("grid", &self.grid),
            ("block", &self.block),
            ("cluster", &self.cluster),
            ("preferred_cluster", &self.preferred_cluster),
        ];
        for (name, extents) in triples {
            if extents.iter().any(Option::is_some) {
                let extents: Vec<&str> = extents.iter().map(|e| e.as_deref().unwrap_or("1")).collect();
                fields.push(format!("{name}: [{}]", extents.join(", ")));
            }
        }
        if let Some(bytes) = &self.shared_bytes {
            fields.push(format!("shared_bytes: {bytes}"));
        }
        for (name, set) in [
            ("cooperative", self.cooperative),
            ("programmatic", self.programmatic),
        ] {
            if set {
                fields.push(format!("{name}: true"));
            }
        }
        if fields.is_empty() {
            return "::tirx_rt::LaunchConfig::default()".to_string();
        }
        format!(
            "::tirx_rt::LaunchConfig {{ {}, ..::tirx_rt::LaunchConfig::default() }}",
            fields.join(", ")
        )
    }
}

/// The variables that an expression reads, each once, left to right.
fn free_vars(expr: &Expr) -> Vec<Var> {
    struct Vars(Vec<Var>);
    impl Visitor for Vars {
        fn visit_expr(&mut self, expr: &Expr) {
            if let ExprKind::Var(v) = &expr.kind
                && !self.0.contains(v)
            {
                self.0.push(v.clone());
            }
            self.walk_expr(expr);
        }
    }
    let mut vars = Vars(Vec::new());
    vars.visit_expr(expr);
    vars.0
}
