//! `cargo tirx stubs`: the language's names as Python stubs, so that Pyright and other checkers know `T` and `Tx`.

use std::fmt::Write;
use std::path::PathBuf;

use tirx_services::language::{self, describe};

use crate::failure::{Result, user};
use crate::output::{Output, out};

#[derive(clap::Args, Debug)]
pub(crate) struct Stubs {
    /// The folder to write to; Pyright reads `typings` next to its settings.
    #[arg(long, value_name = "FOLDER", default_value = "typings")]
    out: PathBuf,
    /// Writes `tirx-stubs`, a package that pip can install, instead.
    #[arg(long)]
    package: bool,
}

/// Words that Python does not allow as names: such names are written in other ways, `T.ptx["ld.global.u32"]`.
const KEYWORDS: &[&str] = &[
    "False", "None", "True", "and", "as", "assert", "async", "await", "break", "class", "continue", "def",
    "del", "elif", "else", "except", "finally", "for", "from", "global", "if", "import", "in", "is",
    "lambda", "nonlocal", "not", "or", "pass", "raise", "return", "try", "while", "with", "yield",
];

/// `Open` has whatever is asked of it: mnemonics of PTX go on below every name, `T.ptx.ld.global_.acquire.gpu.b32`.
const HEAD: &str = "# Written by `cargo tirx stubs`.\nfrom typing import Any, overload\n\n\
class Open(type):\n    def __getattr__(cls, name: str) -> Any: ...\n    def __getitem__(cls, item: Any) -> Any: ...\n\n";

/// Functions that take more arguments than their descriptions list.
const FREE: &[&str] = &["T.hint", "T.tvm_tuple"];
const FREE_BELOW: &str = "T.cuda.iket.";

/// Names of annotations that no list of the language has.
const ANNOTATIONS: &[&str] = &["Ptr", "ptr", "buffer_var"];

/// The modules that kernel files import names of the library from: whatever is asked of them.
const LIBRARY: &[&str] = &[
    "ir",
    "ir/type",
    "runtime",
    "script/ir_builder",
    "script/ir_builder/tirx",
    "script/parser",
    "script/parser/core",
    "script/parser/core/diagnostics",
    "script/parser/core/parser",
    "support",
    "support/nvcc",
    "testing",
    "backend",
    "backend/cuda",
    "backend/cuda/cpp",
    "backend/cuda/cpp/descriptors",
    "backend/cuda/iket",
    "backend/cuda/lang",
    "backend/cuda/lang/alloc_pool",
    "backend/cuda/lang/clc",
    "backend/cuda/lang/pipeline",
    "backend/cuda/lang/smem_desc",
    "backend/cuda/lang/tile_scheduler",
    "backend/cuda/lang/warp_role",
    "backend/cuda/op",
    "backend/cuda/tile_primitive",
    "backend/cuda/tile_primitive/common",
    "backend/cuda/tile_primitive/gemm_async",
    "backend/cuda/tile_primitive/gemm_async/tcgen05",
    "backend/cuda/tile_primitive/layout_utils",
    "backend/cuda/tile_primitive/tma_utils",
    "tirx",
    "tirx/analysis",
    "tirx/bench",
    "tirx/cuda",
    "tirx/cuda/iket",
    "tirx/cuda/operator",
    "tirx/cuda/operator/tile_primitive",
    "tirx/cuda/operator/tile_primitive/tma_utils",
    "tirx/lang",
    "tirx/lang/alloc_pool",
    "tirx/lang/pipeline",
    "tirx/lang/smem_desc",
    "tirx/lang/tile_scheduler",
    "tirx/lang/warp_role",
    "tirx/layout",
    "tirx/script",
    "tirx/script/builder",
    "tirx/script/builder/frame",
    "tirx/script/builder/ir",
    "tirx/stmt_functor",
];

pub(crate) fn run(command: &Stubs, _: &Output) -> Result<()> {
    let package = if command.package { "tvm-stubs" } else { "tvm" };
    let open = "from typing import Any\n\ndef __getattr__(name: str) -> Any: ...\n";
    let mut files = vec![
        (
            format!("{package}/__init__.pyi"),
            format!("{open}\nfrom . import script as script\n"),
        ),
        (format!("{package}/script/__init__.pyi"), roots()),
        (format!("{package}/script/tirx/__init__.pyi"), module("T")),
        (format!("{package}/script/tirx/tile.pyi"), module("Tx")),
    ];
    for module in LIBRARY {
        files.push((format!("{package}/{module}/__init__.pyi"), open.to_string()));
    }
    if command.package {
        files.push(("pyproject.toml".to_string(), pyproject()));
    }
    for (name, text) in &files {
        let path = command.out.join(name);
        let written = match path.parent() {
            Some(parent) => std::fs::create_dir_all(parent),
            None => Ok(()),
        };
        written
            .and_then(|()| std::fs::write(&path, text))
            .map_err(|error| user(format_args!("cannot write `{}`: {error}", path.display())))?;
    }
    out(&format!(
        "wrote {} files below {}\n",
        files.len(),
        command.out.display()
    ))
}

fn roots() -> String {
    "from typing import Any\n\nfrom . import tirx as tirx\n\nir: Any\ntir: Any\n\ndef __getattr__(name: str) -> Any: ...\n".to_string()
}

fn pyproject() -> String {
    format!(
        "[build-system]\nrequires = [\"setuptools\"]\nbuild-backend = \"setuptools.build_meta\"\n\n[project]\nname = \"tirx-stubs\"\n\
         version = \"{}\"\ndescription = \"The names of TIRx kernel files, for type checkers.\"\n\n[tool.setuptools]\n\
         packages = [\"tvm-stubs\", \"tvm-stubs.script\", \"tvm-stubs.script.tirx\"{}]\n\n[tool.setuptools.package-data]\n\"*\" = [\"*.pyi\"]\n",
        env!("CARGO_PKG_VERSION"),
        LIBRARY
            .iter()
            .map(|module| format!(", \"tvm-stubs.{}\"", module.replace('/', ".")))
            .collect::<String>()
    )
}

/// The stub of a namespace as a module.
fn module(path: &str) -> String {
    let mut text = HEAD.to_string();
    if path == "T" {
        text += "from . import tile as tile\n\n";
    }
    body(path, 0, &mut text);
    if path == "T" {
        for name in ANNOTATIONS {
            let _ = writeln!(text, "{name}: Any");
        }
        // `from tvm.script import tirx as Tx` has the tile primitives too.
        let own = language::below("T");
        for name in language::below("Tx").iter().filter(|name| !own.contains(name)) {
            let _ = writeln!(text, "from .tile import {name} as {name}");
        }
    }
    text
}

fn body(path: &str, depth: usize, text: &mut String) {
    let indent = "    ".repeat(depth);
    let names = language::below(path);
    for name in &names {
        let name = name.as_str();
        // A stub cannot write these; the module `tile` is a file of its own.
        if KEYWORDS.contains(&name) || (path == "T" && name == "tile") {
            continue;
        }
        let full = format!("{path}.{name}");
        let known = describe(&full);
        let documentation = known.as_ref().map_or(String::new(), |known| {
            let meaning = known.meaning.replace('\\', "\\\\").replace("\"\"\"", "'''");
            let facts = match known.facts.is_empty() {
                true => String::new(),
                false => format!("\n{indent}    {}", known.facts),
            };
            format!(
                "{indent}    \"\"\"{}{facts}\"\"\"\n",
                meaning.trim().trim_end_matches('"')
            )
        });
        let signature = known.as_ref().map(|known| known.signature.as_str());
        let called = signature.filter(|s| !s.is_empty()).map(|signature| {
            // An older form that the same name accepts too has other arguments.
            let older = names.contains(&format!("{name}_legacy"));
            match older || FREE.contains(&full.as_str()) || full.starts_with(FREE_BELOW) {
                true => "(*args, **kwargs)",
                false => signature,
            }
        });
        let is_type = path == "T"
            && (name.chars().next().is_some_and(char::is_uppercase)
                || name.parse::<tirx_core::ir::DType>().is_ok()
                || is_short_type(name));
        let in_ptx = full.starts_with("T.ptx");
        let open = if in_ptx { "(metaclass=Open)" } else { "" };
        // The same words may be a mnemonic, whose operands are others.
        let mnemonic = full.strip_prefix("T.ptx.").is_some_and(language::is_mnemonic);
        if language::is_namespace(&full) {
            let called = called.map_or("*args: Any, **kwargs: Any".to_string(), typed);
            let _ = writeln!(
                text,
                "{indent}class {name}{open}:\n{documentation}{}",
                made(&called, mnemonic, &indent)
            );
            body(&full, depth + 1, text);
        } else if is_type {
            // Annotations are calls and literals are values of every type: nothing less than `Any` fits.
            let _ = writeln!(
                text,
                "{indent}{name}: Any\n{}",
                documentation.replace("    \"\"\"", "\"\"\"").trim_end()
            );
        } else if let (Some(signature), true) = (called, in_ptx) {
            let made = made(&typed(signature), mnemonic, &indent);
            let _ = writeln!(text, "{indent}class {name}{open}:\n{documentation}{made}");
        } else if let Some(signature) = called {
            let decorator = match depth {
                0 => String::new(),
                _ => format!("{indent}@staticmethod\n"),
            };
            let _ = write!(
                text,
                "{decorator}{indent}def {name}({}) -> Any:\n{documentation}{indent}    ...\n",
                typed(signature)
            );
        } else {
            let _ = writeln!(text, "{indent}{name}: Any");
        }
    }
}

/// What a name of `T.ptx` is called with: its parameters, and the operands of a mnemonic where it is one too.
fn made(parameters: &str, mnemonic: bool, indent: &str) -> String {
    let comma = if parameters.is_empty() { "" } else { ", " };
    let own = format!("{indent}    def __new__(cls{comma}{parameters}) -> Any: ...");
    if !mnemonic || parameters.starts_with("*args") {
        return own;
    }
    format!(
        "{indent}    @overload\n{own}\n{indent}    @overload\n{indent}    \
         def __new__(cls, *operands: Any, pred: Any = ..., preserve_dst: Any = ...) -> Any: ..."
    )
}

/// Whether a name is a dtype in short: `f32`, `u8`, `boolean`.
fn is_short_type(name: &str) -> bool {
    let digits = name.trim_start_matches(['f', 'i', 'u']);
    name == "boolean" || name.len() > digits.len() && digits.parse::<u8>().is_ok()
}

/// The parameters with types: `bar: Any, *, count: Any = ...`.
fn typed(signature: &str) -> String {
    let is_name = |text: &str| {
        !text.is_empty()
            && !text.starts_with(|c: char| c.is_ascii_digit())
            && text.chars().all(|c| c.is_alphanumeric() || c == '_')
            && !KEYWORDS.contains(&text)
    };
    let mut optional = false;
    let mut after_star = false;
    let mut parts: Vec<String> = Vec::new();
    for parameter in language::parameters(signature) {
        let (name, default) = match parameter.split_once('=') {
            Some((name, _)) => (name.trim(), true),
            None => (parameter.trim(), false),
        };
        let bare = name.trim_start_matches('*');
        if name == "*" || name == "/" {
            after_star |= name == "*";
            parts.push(name.to_string());
        } else if is_name(bare) {
            after_star |= name.starts_with('*');
            // Python wants a default behind one that has it.
            optional |= default;
            let default = match !name.starts_with('*') && (default || optional && !after_star) {
                true => " = ...",
                false => "",
            };
            parts.push(format!("{name}: Any{default}"));
        } else {
            return "*args: Any, **kwargs: Any".to_string();
        }
    }
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_are_python_s() {
        assert_eq!(typed("(bar, count)"), "bar: Any, count: Any");
        assert_eq!(typed("(a, *b, c='')"), "a: Any, *b: Any, c: Any = ...");
        assert_eq!(
            typed("(a=…, b, *, c, d=(1, 2))"),
            "a: Any = ..., b: Any = ..., *, c: Any, d: Any = ..."
        );
        assert_eq!(typed("(1)"), "*args: Any, **kwargs: Any");
        assert_eq!(typed("()"), "");
    }

    #[test]
    fn every_module_that_a_kernel_file_imports_has_a_stub() {
        fn modules(folder: &std::path::Path, found: &mut std::collections::BTreeSet<String>) {
            for entry in std::fs::read_dir(folder).unwrap().flatten() {
                // Files of errors are wrong on purpose.
                if entry.file_name() == "errors" {
                    continue;
                }
                if entry.path().is_dir() {
                    modules(&entry.path(), found);
                    continue;
                }
                let text = std::fs::read_to_string(entry.path()).unwrap_or_default();
                let imported = text
                    .lines()
                    .map(|line| line.split_whitespace().collect::<Vec<_>>())
                    .filter(|words| matches!(words[..], ["from", _, "import", ..] | ["import", ..]));
                found.extend(imported.map(|words| words[1].to_string()));
            }
        }
        let mut imported = std::collections::BTreeSet::new();
        for folder in ["tests/kernels", "kernels"] {
            let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
            modules(&root.join(folder), &mut imported);
        }
        let paths = imported.iter().filter_map(|path| path.strip_prefix("tvm."));
        let (known, missing): (Vec<_>, Vec<_>) = paths
            .map(|path| path.replace('.', "/"))
            .filter(|path| !["script", "script/tirx"].contains(&path.as_str()))
            .partition(|path| LIBRARY.contains(&path.as_str()));
        assert!(known.len() > 10, "{known:?}");
        assert_eq!(missing, Vec::<String>::new());
    }

    /// Stubs are Python, and the kernel language's own parser reads Python.
    #[test]
    fn stubs_are_python_with_every_name() {
        for (root, names) in [
            (
                "T",
                [
                    "def ceildiv(",
                    "float32: Any",
                    "class ptx(metaclass=Open):",
                    "prim_func: Any",
                ],
            ),
            ("Tx", ["copy", "gemm", "class cta:", "class warp:"]),
        ] {
            let text = module(root);
            for name in names {
                assert!(text.contains(name), "{name}");
            }
            // Not called, so that only its syntax counts.
            let body: String = text.lines().map(|line| format!("    {line}\n")).collect();
            let program = format!("from __future__ import annotations\n\ndef stub():\n    pass\n{body}");
            let mut sources = tirx_core::source::SourceMap::new();
            let loaded = tirx_core::script::KernelFile::load(
                &mut sources,
                "stub.py",
                &program,
                &tirx_core::script::NoImports,
            );
            assert!(
                loaded.is_ok(),
                "{}",
                loaded.err().map_or(String::new(), |e| e.render(&sources))
            );
        }
    }
}
