//! The dispatching function over all specializations of a kernel: the element types of the tensors choose at compile
//! time, the values of a `Constexpr` at run time.
//!
//! Specializations with one common Rust signature have `Constexpr` and `launch`. Where their signatures differ in
//! element types alone, these become type parameters, and a trait says for which types there is a specialization:
//!
//! ```text
//! kernels::axpby::<f16>(&stream, kernels::axpby::Constexpr { N: 256 }, &x, &mut y)
//! ```

use std::collections::BTreeMap;
use std::fmt::Write;

use tirx_core::codegen::rust::{is_keyword, rust_element, rust_scalar, rust_type, tensor_type};
use tirx_core::ir::abi::ParamKind;
use tirx_core::script::ConstValue;

use super::{GeneratedKernel, RESULT, Variant, doc, value_text, values_text};

/// The dispatching function.
pub(super) struct Choice<'a> {
    kernel: &'a GeneratedKernel,
    /// Name and type of each parameter after the stream; a type may name type parameters.
    params: Vec<(String, Type)>,
    /// The types that each type parameter stands for, by variant.
    types: Vec<Vec<String>>,
    /// Fields of `Constexpr` with their types, in the kernel's order.
    fields: Vec<(&'a str, &'static str)>,
}

/// The type of a parameter: the text before and after the element type, and the element type.
struct Type {
    before: &'static str,
    element: Element,
    after: &'static str,
}

enum Element {
    /// The same in all variants.
    Fixed(String),
    /// A type parameter, by number.
    Param(usize),
}

impl Type {
    fn text(&self, param: &dyn Fn(usize) -> String) -> String {
        let element = match &self.element {
            Element::Fixed(text) => text.clone(),
            Element::Param(number) => param(*number),
        };
        format!("{}{element}{}", self.before, self.after)
    }
}

/// The text around the element type of a parameter's type, and the element type.
fn parts(kind: &ParamKind) -> (&'static str, String, &'static str) {
    match kind {
        ParamKind::Tensor { dtype, written, .. } => {
            let (before, after) = tensor_type(*written);
            (before, rust_element(*dtype).unwrap_or("u8").to_string(), after)
        }
        ParamKind::Scalar(dtype) => ("", rust_scalar(*dtype).unwrap_or("i64").to_string(), ""),
        ParamKind::TensorMap | ParamKind::Unused => ("", rust_type(kind), ""),
    }
}

impl<'a> Choice<'a> {
    /// `None` where no single function has the signatures of all variants, or where the values have no common types.
    pub(super) fn from_kernel(kernel: &'a GeneratedKernel) -> Option<Choice<'a>> {
        let variants = &kernel.variants;
        let first = variants.first()?;
        let launcher = |v: &'a Variant| &v.compiled.launcher;
        let mut types: Vec<Vec<String>> = Vec::new();
        let mut params = Vec::new();
        for (at, (name, param)) in launcher(first).params().enumerate() {
            let (before, element, after) = parts(&param.kind);
            let mut elements = Vec::new();
            for variant in variants {
                let (other_name, other) = launcher(variant)
                    .params()
                    .nth(at)
                    .filter(|_| launcher(variant).names.len() == launcher(first).names.len())?;
                let (b, element, a) = parts(&other.kind);
                if (b, a) != (before, after) || other_name != name {
                    return None;
                }
                elements.push(element);
            }
            let element = match elements.iter().all(|other| *other == element) {
                true => Element::Fixed(element),
                false => {
                    let known = types.iter().position(|known| *known == elements);
                    Element::Param(known.unwrap_or_else(|| {
                        types.push(elements);
                        types.len() - 1
                    }))
                }
            };
            let ty = Type {
                before,
                element,
                after,
            };
            params.push((name.to_string(), ty));
        }
        let mut choice = Choice {
            kernel,
            params,
            types,
            fields: Vec::new(),
        };
        choice.fields = choice.fields_of(first)?;
        Some(choice)
    }

    /// The values that types do not distinguish.
    fn fields_of(&self, first: &'a Variant) -> Option<Vec<(&'a str, &'static str)>> {
        let variants = &self.kernel.variants;
        let same_names = variants.iter().all(|v| {
            let names = |v: &'a Variant| v.values.iter().map(|(name, _)| name.as_str());
            names(v).eq(names(first))
        });
        if !same_names {
            return None;
        }
        let mut fields = Vec::new();
        for (at, (name, _)) in first.values.iter().enumerate() {
            // A parameter that all variants leave out is not part of the choice.
            if variants.iter().all(|v| v.values[at].1 == ConstValue::None) {
                continue;
            }
            let varies = self.groups().values().any(|group| {
                let values = group.iter().map(|v| &variants[*v].values[at].1);
                values.clone().any(|value| Some(value) != values.clone().next())
            });
            if varies || self.types.is_empty() {
                let values: Vec<&ConstValue> = variants.iter().map(|v| &v.values[at].1).collect();
                fields.push((name.as_str(), field_type(&values)?));
            }
        }
        Some(fields)
    }

    /// The variants for each choice of types, by number.
    fn groups(&self) -> BTreeMap<Vec<&str>, Vec<usize>> {
        let mut groups: BTreeMap<Vec<&str>, Vec<usize>> = BTreeMap::new();
        for at in 0..self.kernel.variants.len() {
            let types = self.types.iter().map(|types| types[at].as_str()).collect();
            groups.entry(types).or_default().push(at);
        }
        groups
    }

    /// `stream: …, constexpr: Constexpr, x: …`, with these names for the type parameters.
    fn parameters(&self, constexpr: &str, param: &dyn Fn(usize) -> String) -> String {
        let mut text = "stream: &::tirx_rt::Stream".to_string();
        if !self.fields.is_empty() {
            let _ = write!(text, ", constexpr: {constexpr}");
        }
        for (name, ty) in &self.params {
            let _ = write!(text, ", {name}: {}", ty.text(param));
        }
        text
    }

    /// The forwarded arguments: `stream, constexpr, x, y`.
    fn arguments(&self) -> String {
        let constexpr = (!self.fields.is_empty()).then_some("constexpr");
        let names = self.params.iter().map(|(name, _)| name.as_str());
        let all: Vec<&str> = ["stream"].into_iter().chain(constexpr).chain(names).collect();
        all.join(", ")
    }

    /// A type parameter's name.
    fn type_param(&self, number: usize) -> String {
        match self.types.len() {
            1 => "E".to_string(),
            _ => format!("E{number}"),
        }
    }

    fn type_params(&self) -> Vec<String> {
        (0..self.types.len())
            .map(|number| self.type_param(number))
            .collect()
    }

    /// The items of the kernel's module: `Constexpr`, the trait, `launch`.
    pub(super) fn module_items(&self, text: &mut String) {
        if !self.fields.is_empty() {
            let lines = ["Values to choose a specialization by; see [`launch`].".to_string()];
            doc(text, &lines);
            text.push_str("#[derive(Clone, Copy, Debug, PartialEq)]\npub struct Constexpr {\n");
            for (name, ty) in &self.fields {
                doc(text, &[format!("`{name}` of the kernel.")]);
                let _ = writeln!(text, "pub {}: {ty},", field_name(name));
            }
            text.push_str("}\n");
        }
        match self.types.len() {
            0 => {
                self.documentation(text);
                let _ = writeln!(
                    text,
                    "pub fn launch({}) -> {RESULT} {{",
                    self.parameters("Constexpr", &|_| String::new())
                );
                let all: Vec<usize> = (0..self.kernel.variants.len()).collect();
                self.chain(text, &all, "");
                text.push_str("}\n");
            }
            _ => {
                self.element_trait(text);
                self.function(text, "launch", "");
            }
        }
    }

    /// The function beside the kernel's module, where there are type parameters.
    pub(super) fn generic_function(&self, text: &mut String, name: &str) {
        if !self.types.is_empty() {
            self.function(text, name, &format!("{name}::"));
        }
    }

    fn documentation(&self, text: &mut String) {
        let errors = "`Error::NotBuilt` if the manifest does not have it; else those of the specialization.";
        let what = match (self.types.is_empty(), self.fields.is_empty()) {
            (true, _) => "Launches the specialization with these values.",
            (false, true) => "Launches the specialization for these element types.",
            (false, false) => "Launches the specialization for these element types, with these values.",
        };
        let errors = match self.fields.is_empty() {
            true => "Those of the specialization.",
            false => errors,
        };
        doc(text, &[what, "", "# Errors", "", errors].map(String::from));
    }

    /// The element types of the groups, as messages and documentation write them.
    fn shown_types(&self) -> String {
        let groups = self.groups();
        let shown: Vec<String> = groups
            .keys()
            .map(|types| {
                let names: Vec<&str> = types.iter().map(|ty| short(ty)).collect();
                match names.as_slice() {
                    [one] => (*one).to_string(),
                    all => format!("({})", all.join(", ")),
                }
            })
            .collect();
        shown.join(", ")
    }

    /// The trait of the types that there are specializations for.
    fn element_trait(&self, text: &mut String) {
        let kernel = &self.kernel.name;
        let shown = self.shown_types();
        doc(
            text,
            &[format!("Element types that the kernel is built for: {shown}.")],
        );
        let message = format!("kernel `{kernel}` is not built for `{{Self}}`");
        let note = format!("it is built for {shown}: the manifest's `specialize` lists the values");
        let _ = writeln!(
            text,
            "#[diagnostic::on_unimplemented(message = {message:?}, note = {note:?})]"
        );
        let params = self.type_params();
        let single = params.len() == 1;
        let own = |number: usize| match single {
            true => "Self".to_string(),
            false => self.type_param(number),
        };
        let bounded: Vec<String> = params
            .iter()
            .map(|p| format!("{p}: ::tirx_rt::Element"))
            .collect();
        let head = match single {
            true => "Element: ::tirx_rt::Element".to_string(),
            false => format!("Element<{}>", bounded.join(", ")),
        };
        let _ = writeln!(
            text,
            "pub trait {head} {{ #[doc(hidden)] fn launch({}) -> {RESULT}; }}",
            self.parameters("Constexpr", &own)
        );
        for (types, group) in self.groups() {
            let names: Vec<&str> = types.iter().map(|ty| short(ty)).collect();
            let (implemented, on) = match types.as_slice() {
                [one] => ("Element".to_string(), (*one).to_string()),
                all => (
                    format!("Element<{}>", all.join(", ")),
                    format!("({})", all.join(", ")),
                ),
            };
            let exact = |number: usize| types[number].to_string();
            let _ = writeln!(
                text,
                "impl {implemented} for {on} {{ fn launch({}) -> {RESULT} {{",
                self.parameters("Constexpr", &exact)
            );
            self.chain(text, &group, &format!(" for {}", names.join(", ")));
            text.push_str("} }\n");
        }
    }

    /// A function with type parameters that calls the trait's; `path` leads to the kernel's module.
    fn function(&self, text: &mut String, name: &str, path: &str) {
        self.documentation(text);
        let params = self.type_params();
        let (declared, condition, on) = match params.as_slice() {
            [one] => (
                format!("{one}: {path}Element"),
                String::new(),
                format!("<{one} as {path}Element>"),
            ),
            all => {
                let bounded: Vec<String> = all.iter().map(|p| format!("{p}: ::tirx_rt::Element")).collect();
                let list = all.join(", ");
                (
                    bounded.join(", "),
                    format!(" where ({list}): {path}Element<{list}>"),
                    format!("<({list}) as {path}Element<{list}>>"),
                )
            }
        };
        let _ = writeln!(
            text,
            "pub fn {name}<{declared}>({}) -> {RESULT}{condition} {{ {on}::launch({}) }}",
            self.parameters(&format!("{path}Constexpr"), &|number| self.type_param(number)),
            self.arguments()
        );
    }

    /// Statements that call the variant whose values equal those of `constexpr`.
    fn chain(&self, text: &mut String, group: &[usize], types: &str) {
        let variants = &self.kernel.variants;
        let arguments: String = self.params.iter().map(|(name, _)| format!(", {name}")).collect();
        if self.fields.is_empty() {
            // Types alone distinguish them: there is one.
            let name = group.first().and_then(|at| variants[*at].name.as_deref());
            let _ = writeln!(text, "{}(stream{arguments})", name.unwrap_or_default());
            return;
        }
        for variant in group.iter().map(|at| &variants[*at]) {
            let values: Vec<String> = self
                .fields
                .iter()
                .filter_map(|(field, ty)| {
                    let (_, value) = variant.values.iter().find(|(name, _)| name == field)?;
                    let text = match (value, *ty) {
                        (ConstValue::Int(v), "f64") => format!("{:?}", *v as f64),
                        _ => value_text(value),
                    };
                    Some(format!("{}: {text}", field_name(field)))
                })
                .collect();
            let _ = writeln!(
                text,
                "if constexpr == (Constexpr {{ {} }}) {{ return {}(stream{arguments}); }}",
                values.join(", "),
                variant.name.as_deref().unwrap_or_default()
            );
        }
        let pattern: Vec<String> = self
            .fields
            .iter()
            .map(|(name, ty)| format!("{name} = {{{}}}", if *ty == "&'static str" { ":?" } else { "" }))
            .collect();
        let requested: String = self
            .fields
            .iter()
            .map(|(name, _)| format!(", constexpr.{}", field_name(name)))
            .collect();
        let built: Vec<String> = variants.iter().map(|v| values_text(&v.values)).collect();
        let _ = writeln!(
            text,
            "Err(::tirx_rt::host::not_built({:?}, format_args!({:?}{requested}), &{built:?}))",
            self.kernel.name,
            pattern.join(", ") + types
        );
    }
}

/// A type without its path.
fn short(ty: &str) -> &str {
    ty.rsplit("::").next().unwrap_or(ty)
}

/// The type of a field that holds the values of all specializations; `None` where no one type does.
fn field_type(values: &[&ConstValue]) -> Option<&'static str> {
    let all = |pred: fn(&ConstValue) -> bool| values.iter().all(|v| pred(v));
    if all(|v| matches!(v, ConstValue::Int(v) if i64::try_from(*v).is_ok())) {
        Some("i64")
    } else if all(|v| matches!(v, ConstValue::Int(_))) {
        Some("i128")
    } else if all(|v| matches!(v, ConstValue::Bool(_))) {
        Some("bool")
    } else if all(|v| matches!(v, ConstValue::Int(_) | ConstValue::Float(_))) {
        Some("f64")
    } else if all(|v| matches!(v, ConstValue::Str(_))) {
        Some("&'static str")
    } else {
        None
    }
}

/// A compile-time parameter as a field: its own name, unless that is a Rust keyword.
fn field_name(name: &str) -> String {
    if is_keyword(name) {
        format!("{name}_")
    } else {
        name.to_string()
    }
}
