//! The variants of a kernel that the manifest requests: its definition, and checked compile-time values.
//!
//! Pure: the definitions of the file are an argument.

use std::collections::{BTreeMap, BTreeSet};

use tirx_core::diagnostic::Diagnostic;
use tirx_core::script::{ConstValue, Entry};

use crate::error::{Error, Result};
use crate::generate::{names, value_text};
use crate::manifest::{Kernel, Manifest, Text};
use tirx_core::suggest;

/// One variant of a kernel.
#[derive(Clone, Debug, PartialEq)]
pub struct Specialization {
    /// Its Rust name; `None` for the one variant of a kernel without `specialize`.
    pub name: Option<String>,
    /// The values that the manifest gives.
    pub given: BTreeMap<String, ConstValue>,
    /// Values of all parameters that distinguish variants, defaults included, in the kernel's order.
    pub values: Vec<(String, ConstValue)>,
}

/// The definition that a kernel of the manifest means, among those of its file.
///
/// # Errors
/// There is none of the name, or none is named and there are several.
pub fn entry<'a>(manifest: &Manifest, kernel: &Kernel, entries: &'a [Entry]) -> Result<&'a Entry> {
    let names: Vec<&str> = entries.iter().map(|e| e.name.as_str()).collect();
    let wanted = kernel.entry.as_deref().unwrap_or(&kernel.name);
    if let Some(entry) = entries.iter().find(|e| e.name == wanted) {
        return Ok(entry);
    }
    if let (None, [only]) = (&kernel.entry, entries) {
        return Ok(only);
    }
    let file = match &kernel.text {
        Text::File(path) => format!("`{path}`"),
        Text::Inline(_) | Text::Function(_) => "the script".to_string(),
    };
    let message = match (&kernel.entry, entries.is_empty()) {
        (_, true) => format!("{file} defines no kernel"),
        (Some(entry), false) => format!("{file} defines no kernel `{entry}`"),
        (None, false) => format!("{file} defines several kernels, none of them `{wanted}`"),
    };
    let help = match (suggest(wanted, names.iter().copied()), names.as_slice()) {
        (_, []) => "decorate a function with @T.prim_func or @T.jit".to_string(),
        (Some(near), _) if kernel.entry.is_some() => format!("did you mean `{near}`?"),
        _ => format!("choose with `entry`: it defines {}", names.join(", ")),
    };
    let diagnostic = Diagnostic::new(kernel.entry_span, message).help(help);
    Err(Error::from_diagnostic(&diagnostic, &manifest.sources))
}

/// The variants of a kernel, and the errors in invalid specializations.
pub fn expand(manifest: &Manifest, kernel: &Kernel, entry: &Entry) -> (Vec<Specialization>, Vec<Error>) {
    let mut order: Vec<String> = entry.specializable().map(str::to_string).collect();
    if entry.open {
        let given: BTreeSet<&String> = kernel
            .specialize
            .iter()
            .flat_map(|values| values.keys())
            .collect();
        let more: Vec<String> = given
            .into_iter()
            .filter(|name| !order.contains(name))
            .cloned()
            .collect();
        order.extend(more);
    }
    let refuse = |index: usize, message: String, help: String| {
        let span = kernel
            .specialize_spans
            .get(index)
            .copied()
            .unwrap_or(kernel.entry_span);
        Error::from_diagnostic(&Diagnostic::new(span, message).help(help), &manifest.sources)
    };
    // A kernel without `specialize` is one variant without values.
    let specializations = if kernel.specialize.is_empty() {
        vec![BTreeMap::new()]
    } else {
        let values = |given: &BTreeMap<String, ConstValue>| {
            let value = |(name, value): (&String, &ConstValue)| (name.clone(), entry.value_of(name, value));
            given.iter().map(value).collect()
        };
        kernel.specialize.iter().map(values).collect()
    };
    let mut variants: Vec<Specialization> = Vec::new();
    let mut errors = Vec::new();
    for (index, given) in specializations.iter().enumerate() {
        if let Some(unknown) = given.keys().find(|name| !order.contains(name)) {
            let help = match (
                suggest(unknown, order.iter().map(String::as_str)),
                order.as_slice(),
            ) {
                (_, []) => "the kernel has no compile-time parameters: remove `specialize`".to_string(),
                (Some(near), _) => format!("did you mean `{near}`?"),
                (None, order) => format!("its compile-time parameters are {}", order.join(", ")),
            };
            let message = format!(
                "kernel `{}` has no compile-time parameter `{unknown}`",
                kernel.name
            );
            errors.push(refuse(index, message, help));
            continue;
        }
        if let Some((name, value)) = given
            .iter()
            .find(|(name, value)| entry.optionals.contains(name) && **value != ConstValue::None)
        {
            let message = format!(
                "kernel `{}`: `{name}` is a T.Optional parameter, found {}",
                kernel.name,
                value_text(value)
            );
            let help = format!("leave it out of the kernel with `{name} = \"None\"`, or out of `specialize`");
            errors.push(refuse(index, message, help));
            continue;
        }
        let missing: Vec<&str> = entry
            .constexprs
            .iter()
            .filter(|p| p.required && !given.contains_key(&p.name))
            .map(|p| p.name.as_str())
            .collect();
        if !missing.is_empty() {
            let message = format!(
                "kernel `{}` needs a value for {}",
                kernel.name,
                missing.join(", ")
            );
            errors.push(refuse(
                index,
                message,
                format!("specialize = [{{ {} = … }}]", missing.join(" = …, ")),
            ));
            continue;
        }
        let values: Vec<_> = order
            .iter()
            .filter_map(|name| {
                let parameter = entry.constexprs.iter().find(|p| p.name == *name);
                let value = given
                    .get(name)
                    .or_else(|| parameter.and_then(|p| p.default.as_ref()));
                // A default is part of the dispatch only where some specialization gives that parameter.
                let used = specializations.iter().any(|s| s.contains_key(name));
                Some((name.clone(), value.filter(|_| used)?.clone()))
            })
            .collect();
        let name = (!kernel.specialize.is_empty()).then(|| names::specialization(&order, given));
        let name = name.map(|name| {
            if name.is_empty() {
                "default".to_string()
            } else {
                name
            }
        });
        if let Some(clash) = variants.iter().find(|v| v.name == name) {
            let message = format!(
                "two specializations of kernel `{}` would both be named `{}`",
                kernel.name,
                clash.name.as_deref().unwrap_or_default()
            );
            let help = match clash.values == values {
                true => "they have equal values: remove one of them",
                false => "their values differ in characters that Rust names cannot hold",
            };
            errors.push(refuse(index, message, help.into()));
            continue;
        }
        variants.push(Specialization {
            name,
            given: given.clone(),
            values,
        });
    }
    (variants, errors)
}
