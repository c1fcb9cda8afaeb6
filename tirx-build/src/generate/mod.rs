//! The generated Rust file: `pub mod kernels` with a typed function per kernel and the layers below it.
//!
//! ```text
//! kernels::scale(&stream, …)              typed and safe
//! kernels::scale::raw(&stream, …)         device pointers, unsafe
//! kernels::scale::{IMAGE, LOADED}         the bytes, and the kernel that loads itself
//! kernels::add::n256(&stream, …)          a specialization: the same below kernels::add::n256
//! kernels::add::launch(&stream, kernels::add::Constexpr { N: 256 }, …)
//! kernels::scale::tuned(&stream, …)       the specialization that fits the sizes
//! kernels::axpby::<f16>(&stream, …)       specializations that differ in their element types
//! ```

mod choice;
pub(crate) mod docs;
mod format;
pub(crate) mod names;
mod tuned;

use std::fmt::Write;

use tirx_core::codegen::rust::{Launcher, RAW_DOCS};
use tirx_core::ir::abi::FunctionParam;
use tirx_core::script::ConstValue;

use crate::compile::Compiled;
use crate::hash::{digest, hex};
use crate::target::Targets;
use choice::Choice;
use tirx_core::ir::Gpu;
pub(crate) use tuned::Tuned;

/// How the generated text finds the compiled kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// A build script writes it and them into `OUT_DIR`, for the features of this build.
    BuildScript,
    /// They are files beside it; each kernel is under its feature.
    Source,
}

impl Form {
    /// The expression for the bytes of a file.
    fn include(self, file: &str) -> String {
        match self {
            Form::BuildScript => format!("include_bytes!(concat!(env!(\"OUT_DIR\"), \"/tirx/{file}\"))"),
            Form::Source => format!("include_bytes!({file:?})"),
        }
    }
}

/// A kernel with its variants.
#[derive(Debug)]
pub(crate) struct GeneratedKernel {
    /// The manifest's name.
    pub(crate) name: String,
    /// Its name among several kernels of one entry: it stands in a module with the manifest's name.
    pub(crate) result: Option<String>,
    /// The definition's name in its file.
    pub(crate) entry: String,
    /// The Cargo feature without which it is not there.
    pub(crate) feature: Option<String>,
    /// Its variants: one without values, or one per specialization.
    pub(crate) variants: Vec<Variant>,
    /// The choice between the variants, if they are candidates.
    pub(crate) tuned: Option<Tuned>,
}

/// One image.
#[derive(Debug)]
pub(crate) struct Variant {
    /// Name of the specialization; `None` for a kernel without compile-time parameters.
    pub(crate) name: Option<String>,
    /// Its compile-time values, in the kernel's order.
    pub(crate) values: Vec<(String, ConstValue)>,
    /// The name of its files, without extension.
    pub(crate) file: String,
    /// What the compiler made.
    pub(crate) compiled: Compiled,
    /// The fat binary, if there is one.
    pub(crate) fatbin: Option<Vec<u8>>,
    /// The targets that it is for.
    pub(crate) targets: Targets,
    /// The name of the first of them, where other targets have other code.
    pub(crate) own: Option<String>,
    /// The code for the other targets, where it differs.
    pub(crate) others: Vec<Variant>,
    /// The image's hash.
    pub(crate) hash: String,
}

impl GeneratedKernel {
    /// Its path in Rust: `add`, `made::first`.
    pub(crate) fn path(&self) -> String {
        match &self.result {
            Some(result) => format!("{}::{result}", self.name),
            None => self.name.clone(),
        }
    }

    /// Every image: those of each variant in order.
    pub(crate) fn images(&self) -> impl Iterator<Item = &Variant> {
        self.variants.iter().flat_map(Variant::each)
    }
}

impl Variant {
    /// The image for its first target, then those for targets whose code differs.
    pub(crate) fn each(&self) -> impl Iterator<Item = &Variant> {
        std::iter::once(self).chain(&self.others)
    }

    /// What was compiled for each of them, to change it.
    pub(crate) fn compiled_mut(&mut self) -> impl Iterator<Item = &mut Compiled> {
        std::iter::once(&mut self.compiled).chain(self.others.iter_mut().map(|other| &mut other.compiled))
    }

    /// Changes each of them.
    pub(crate) fn for_each_mut(&mut self, change: &mut impl FnMut(&mut Variant)) {
        change(self);
        self.others.iter_mut().for_each(change);
    }

    /// The targets that the fat binary has machine code for.
    fn native(&self) -> Vec<String> {
        match self.fatbin {
            Some(_) => self.targets.native.iter().map(Gpu::to_string).collect(),
            None => Vec::new(),
        }
    }

    /// A hash of the launcher's behaviour: its arguments, checks and launch dimensions. A launcher can launch any
    /// kernel with the same hash.
    pub(crate) fn signature(&self) -> String {
        let launcher = &self.compiled.launcher;
        let mut parts = vec![launcher.parameters(), launcher.host.function()];
        parts.extend(launcher.raw.iter().map(|raw| raw.item.clone()));
        for function in &launcher.functions {
            parts.push(format!("{} {:?}", function.symbol, function.params));
        }
        hex(&digest(&parts))
    }
}

/// A value as Rust and messages write it.
pub(crate) fn value_text(value: &ConstValue) -> String {
    match value {
        ConstValue::None => "None".to_string(),
        ConstValue::Bool(v) => v.to_string(),
        ConstValue::Int(v) => v.to_string(),
        ConstValue::Float(v) => format!("{v:?}"),
        ConstValue::Str(v) => format!("{v:?}"),
        ConstValue::List(items) => format!(
            "[{}]",
            items.iter().map(value_text).collect::<Vec<_>>().join(", ")
        ),
        ConstValue::Dict(items) => format!("{{ {} }}", values_text(items)),
    }
}

fn values_text(values: &[(String, ConstValue)]) -> String {
    let parts: Vec<String> = values
        .iter()
        .map(|(name, value)| format!("{name} = {}", value_text(value)))
        .collect();
    parts.join(", ")
}

/// The number of what generated code expects of `tirx-rt`: names, types and their meaning. It changes with every change
/// after which code that an earlier `tirx-build` generated would not compile or would do something else; `tirx-rt`
/// accepts its own number and reports any other (`tirx_rt::generated_contract!`).
const CONTRACT: u32 = 2;

/// The version of this crate, which `tirx-rt` compares with its own.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The path by which launchers name the run time, and the one by which the generated file does: every module of it has
/// the name `tirx_rt` in scope, which `tirx_rt::include_kernels!` defines. So the crate may have another name in Cargo.toml,
/// and the text compiles in every edition.
const RUN_TIME: (&str, &str) = ("::tirx_rt::", "tirx_rt::");
/// Brings the name into a module below.
const NAME_OF_RUN_TIME: &str = "use super::tirx_rt;\n";

/// The lints that may not cause warnings in the generated module: which kernels a program calls, and which lints it
/// enables, is its own affair.
const ALLOWED: &[&str] = &[
    "dead_code",
    "non_snake_case",
    "trivial_casts",
    "trivial_numeric_casts",
    "unreachable_pub",
    "unused_qualifications",
    "unused_results",
    "clippy::all",
    "clippy::pedantic",
    "clippy::nursery",
    "clippy::restriction",
];

/// The text of `tirx_kernels.rs`, formatted. `manifest` is the manifest's file name.
pub(crate) fn file(manifest: &str, kernels: &[GeneratedKernel], form: Form) -> String {
    let mut text = String::new();
    doc(&mut text, &[format!("Kernels declared in `{manifest}`.")]);
    let _ = writeln!(
        text,
        "#[allow({})]\npub mod kernels {{\ntirx_rt_of_kernels!();",
        ALLOWED.join(", ")
    );
    let _ = writeln!(text, "::tirx_rt::generated_contract!({CONTRACT}, {VERSION:?});");
    let all: Vec<&GeneratedKernel> = kernels.iter().collect();
    match form {
        Form::BuildScript => items(&mut text, &all, form),
        Form::Source => items_by_feature(&mut text, &all),
    }
    text.push_str("}\n");
    let header = format!(
        "// Generated by tirx-build from {manifest}. Changes here are lost: change the manifest.\n\n"
    );
    header + &format::format(&text.replace(RUN_TIME.0, RUN_TIME.1))
}

/// The items of each feature's kernels, in a module of the feature: one `cfg` for all of them.
fn items_by_feature(text: &mut String, kernels: &[&GeneratedKernel]) {
    let mut features: Vec<Option<&str>> = vec![None];
    for kernel in kernels {
        if !features.contains(&kernel.feature.as_deref()) {
            features.push(kernel.feature.as_deref());
        }
    }
    for feature in features {
        let its: Vec<&GeneratedKernel> = kernels
            .iter()
            .copied()
            .filter(|kernel| kernel.feature.as_deref() == feature)
            .collect();
        let Some(feature) = feature else {
            items(text, &its, Form::Source);
            continue;
        };
        let word = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
        let module = format!("feature_{}", feature.chars().map(word).collect::<String>());
        let _ = writeln!(
            text,
            "#[cfg(feature = {feature:?})]\nmod {module} {{\n{NAME_OF_RUN_TIME}"
        );
        items(text, &its, Form::Source);
        let _ = writeln!(text, "}}\n#[cfg(feature = {feature:?})]\npub use {module}::*;");
    }
}

/// The items of kernels.
fn items(text: &mut String, kernels: &[&GeneratedKernel], form: Form) {
    let mut rest = kernels;
    while let Some(first) = rest.first() {
        // The kernels of one entry are adjacent.
        let count = rest.iter().take_while(|k| k.name == first.name).count();
        let (group, others) = rest.split_at(count);
        rest = others;
        if first.result.is_none() {
            group.iter().for_each(|kernel| kernel_items(text, kernel, form));
            continue;
        }
        doc(text, &[format!("The kernels that `{}` gives.", first.entry)]);
        let _ = writeln!(text, "pub mod {} {{\n{NAME_OF_RUN_TIME}", first.name);
        group.iter().for_each(|kernel| kernel_items(text, kernel, form));
        text.push_str("}\n");
    }
}

fn doc(text: &mut String, lines: &[String]) {
    for line in lines {
        // A comment ends at its line's end, and may not have a carriage return.
        for line in line.split(['\n', '\r']) {
            let _ = match line {
                "" => writeln!(text, "///"),
                line => writeln!(text, "/// {line}"),
            };
        }
    }
}

fn kernel_items(text: &mut String, kernel: &GeneratedKernel, form: Form) {
    let name = kernel.result.as_ref().unwrap_or(&kernel.name);
    let path = kernel.path();
    if let [variant @ Variant { name: None, .. }] = kernel.variants.as_slice() {
        typed_function(text, name, kernel, variant);
        doc(text, &[format!("The layers below [`{name}`](fn@{name}).")]);
        let _ = writeln!(text, "pub mod {name} {{\n{NAME_OF_RUN_TIME}");
        all_layers(text, &path, variant, &SharedChecks::default(), form);
        text.push_str("}\n");
        return;
    }
    let first = &kernel.variants[0].compiled;
    let origin = docs::origin(&kernel.entry, &first.sources, first.authored.span);
    let mut lines = docs::docstring(&first.sources, first.authored.span);
    lines.extend([
        String::new(),
        format!("{origin}, in these specializations:"),
        String::new(),
    ]);
    for variant in &kernel.variants {
        let variant_name = variant.name.as_deref().unwrap_or_default();
        lines.push(format!("- `{variant_name}`: {}", values_text(&variant.values)));
    }
    doc(text, &lines);
    let _ = writeln!(text, "pub mod {name} {{\n{NAME_OF_RUN_TIME}");
    let shared = SharedChecks::of_variants(&kernel.variants);
    shared
        .functions
        .iter()
        .for_each(|(checks, name)| text.push_str(&checks.replacen(CHECKED, name, 1)));
    for variant in &kernel.variants {
        let variant_name = variant.name.as_deref().unwrap_or_default();
        typed_function(text, variant_name, kernel, variant);
        doc(
            text,
            &[format!("The layers below [`{variant_name}`](fn@{variant_name}).")],
        );
        let _ = writeln!(text, "pub mod {variant_name} {{\n{NAME_OF_RUN_TIME}");
        all_layers(text, &format!("{path}::{variant_name}"), variant, &shared, form);
        text.push_str("}\n");
    }
    let choice = Choice::from_kernel(kernel);
    if let Some(choice) = &choice {
        choice.module_items(text);
    }
    if let Some(tuned) = &kernel.tuned {
        tuned::module_items(text, kernel, tuned);
    }
    text.push_str("}\n");
    if let Some(choice) = &choice {
        choice.generic_function(text, name);
    }
}

fn parameters(launcher: &Launcher) -> String {
    let parameters = launcher.parameters();
    if parameters.is_empty() {
        parameters
    } else {
        format!(", {parameters}")
    }
}

const RESULT: &str = "Result<(), ::tirx_rt::Error>";

fn typed_function(text: &mut String, name: &str, kernel: &GeneratedKernel, variant: &Variant) {
    let compiled = &variant.compiled;
    let docstring = docs::docstring(&compiled.sources, compiled.authored.span);
    let origin = docs::origin(&kernel.entry, &compiled.sources, compiled.authored.span);
    let values = match variant.values.as_slice() {
        [] => String::new(),
        values => format!("`{}`", values_text(values)),
    };
    doc(
        text,
        &docs::typed(&docstring, &origin, &values, &compiled.launcher),
    );
    let _ = writeln!(
        text,
        "pub fn {name}(stream: &::tirx_rt::Stream{}) -> {RESULT} {{ {} }}",
        parameters(&compiled.launcher),
        compiled.launcher.call_host(name)
    );
}

/// The name of a function of checks within the module of an image.
const CHECKED: &str = "checked";

/// The checks that several images of a kernel have in common: functions in the kernel's module.
#[derive(Default)]
struct SharedChecks {
    /// The text of each function, named `checked`, and the name that it has in the kernel's module.
    functions: Vec<(String, String)>,
}

impl SharedChecks {
    fn of_variants(variants: &[Variant]) -> SharedChecks {
        let mut uses: Vec<(String, usize)> = Vec::new();
        for image in variants.iter().flat_map(Variant::each) {
            let Some(checks) = image.compiled.launcher.host.checks(CHECKED) else {
                continue;
            };
            match uses.iter_mut().find(|(known, _)| *known == checks) {
                Some((_, count)) => *count += 1,
                None => uses.push((checks, 1)),
            }
        }
        let taken = |name: &str| {
            variants
                .iter()
                .any(|variant| variant.name.as_deref() == Some(name))
        };
        let mut numbered = (1..)
            .map(|n| format!("{CHECKED}_{n}"))
            .filter(|name| !taken(name));
        let shared = uses.into_iter().filter(|(_, count)| *count > 1);
        SharedChecks {
            functions: shared.map(|(checks, _)| checks).zip(&mut numbered).collect(),
        }
    }

    /// The function `host` of an image whose module is so many modules below the kernel's.
    fn host(&self, image: &Variant, below: usize) -> String {
        let host = &image.compiled.launcher.host;
        let shared = host
            .checks(CHECKED)
            .and_then(|checks| self.functions.iter().find(|(known, _)| *known == checks));
        match shared {
            Some((_, name)) => {
                let path = "super::".repeat(below);
                format!("use {path}{name} as {CHECKED};\n{}", host.function_with_call())
            }
            None => host.function(),
        }
    }
}

/// The contents of a variant's module; where its targets have different code, a module for each, and a choice.
fn all_layers(text: &mut String, path: &str, variant: &Variant, checks: &SharedChecks, form: Form) {
    if variant.others.is_empty() {
        layers(text, path, variant, form);
        text.push_str(&checks.host(variant, 1));
        return;
    }
    let module = |v: &Variant| v.own.clone().unwrap_or_default();
    let mut rows = String::new();
    let mut arms = String::new();
    for (at, one) in variant.each().enumerate() {
        let name = module(one);
        let targets: Vec<String> = one.targets.each().into_iter().map(|(target, _)| target).collect();
        doc(text, &[format!("The code for {}.", targets.join(", "))]);
        let _ = writeln!(text, "pub mod {name} {{\n{NAME_OF_RUN_TIME}");
        layers(text, &format!("{path}::{name}"), one, form);
        text.push_str(&checks.host(one, 2));
        text.push_str("}\n");
        let _ = write!(
            rows,
            "::tirx_rt::ForTargets {{ targets: &{targets:?}, kernel: &{name}::LOADED }},"
        );
        let pattern = match at + 1 == variant.others.len() + 1 {
            true => "_".to_string(),
            false => at.to_string(),
        };
        let _ = write!(arms, "{pattern} => {name}::host(stream, args),");
    }
    doc(
        text,
        &[
            "The kernel for each target; which one runs is decided on the first launch on a device."
                .to_string(),
        ],
    );
    let _ = writeln!(
        text,
        "pub static LOADED: ::tirx_rt::KernelForTargets = ::tirx_rt::KernelForTargets::new(&[{rows}]);"
    );
    // All of them take the same arguments.
    let choice = format!("match LOADED.choose(stream)? {{ {arms} }}");
    let header = variant.compiled.launcher.host.header(&choice);
    let _ = writeln!(text, "{header} {{ {choice} }}");
}

/// The contents of a module with one image, without the function `host`.
fn layers(text: &mut String, path: &str, variant: &Variant, form: Form) {
    let launcher = &variant.compiled.launcher;
    let file = &variant.file;
    let include = |extension: &str| form.include(&format!("{file}.{extension}"));
    let functions: Vec<String> = launcher
        .functions
        .iter()
        .map(|function| {
            let params: Vec<String> = function
                .params
                .iter()
                .map(|param| match param {
                    FunctionParam::Pointer => "::tirx_rt::ParamKind::Pointer".to_string(),
                    FunctionParam::Scalar(bits) => format!("::tirx_rt::ParamKind::Scalar {{ bits: {bits} }}"),
                    FunctionParam::TensorMap => "::tirx_rt::ParamKind::TensorMap".to_string(),
                })
                .collect();
            format!(
                "::tirx_rt::DeviceFunction {{ symbol: {:?}, params: &[{}] }}",
                function.symbol,
                params.join(", ")
            )
        })
        .collect();
    let fatbin = if variant.fatbin.is_some() {
        format!("Some({})", include("fatbin"))
    } else {
        "None".to_string()
    };
    let _ = writeln!(text, "const KERNEL: &str = {path:?};");
    doc(text, &["The compiled kernel as data.".to_string()]);
    let _ = writeln!(
        text,
        "pub static IMAGE: ::tirx_rt::KernelImage = ::tirx_rt::KernelImage {{ name: KERNEL, functions: &[{}], \
         fatbin: {fatbin}, ir: {}, targets: &{:?}, ptx: {:?}, hash: {:?}, signature: {:?} }};",
        functions.join(", "),
        include("ir"),
        variant.native(),
        variant
            .targets
            .ptx
            .as_ref()
            .map(|gpu| gpu.compute())
            .filter(|_| variant.fatbin.is_some()),
        variant.hash,
        variant.signature(),
    );
    doc(text, &["The kernel, loaded on its first launch.".to_string()]);
    text.push_str("pub static LOADED: ::tirx_rt::Kernel = ::tirx_rt::Kernel::new(&IMAGE);\n");
    for raw in &launcher.raw {
        let mut lines = vec![
            format!("Launches `{}` with device pointers and values.", raw.symbol),
            String::new(),
        ];
        for (name, meaning) in &raw.params {
            lines.push(format!("- `{name}`: {meaning}"));
        }
        lines.extend(
            [
                "",
                "# Errors",
                "",
                "Those of the launch.",
                "",
                "# Safety",
                "",
                "The pointers are valid on the stream's device for all reads and writes of the kernel, until it is done.",
            ]
            .map(String::from),
        );
        let mut docs = String::new();
        doc(&mut docs, &lines);
        text.push_str(&raw.item.replace(RAW_DOCS, &docs));
    }
}
