//! Modules of the library that are written in Python. Each definition in them is read and run when its name is first used:
//! a kernel needs few of them.

mod parts;

use std::borrow::Cow;
use std::rc::Rc;

use self::parts::{Part, Parts};
use super::frame::EvalFrame;
use super::scope::ScopeKind;
use super::value::Value;
use super::{Args, Interpreter, Scope};
use crate::diagnostic::{Result, error};
use crate::source::Span;

/// Texts by module. Errors in them are reported at the call in the kernel file.
pub(super) const TEXTS: &[(&str, &str)] = &[
    ("itertools", include_str!("library/itertools.py")),
    ("functools", include_str!("library/functools.py")),
    ("operator", include_str!("library/operator.py")),
    ("collections", include_str!("library/collections.py")),
    ("pathlib", include_str!("library/pathlib.py")),
    ("random", include_str!("library/random.py")),
    ("types", include_str!("library/types.py")),
    ("contextlib", include_str!("library/contextlib.py")),
    ("inspect", include_str!("library/inspect.py")),
    ("layout", include_str!("library/tirx/layout.py")),
    ("tvm.tirx.bench", include_str!("library/tirx/bench.py")),
    ("tvm.tirx", include_str!("library/tirx/op.py")),
    (
        "tvm.script.ir_builder",
        include_str!("library/tirx/ir_builder.py"),
    ),
    (
        "tvm.tirx.stmt_functor",
        include_str!("library/tirx/stmt_functor.py"),
    ),
    (
        "tvm.script.parser.core.parser",
        include_str!("library/tirx/parser.py"),
    ),
    ("tvm.backend.cuda.iket", include_str!("library/cuda/iket.py")),
    (
        "tvm.backend.cuda.lang.pipeline",
        include_str!("library/cuda/pipeline.py"),
    ),
    (
        "tvm.backend.cuda.lang.tile_scheduler",
        include_str!("library/cuda/tile_scheduler.py"),
    ),
    (
        "tvm.backend.cuda.lang.warp_role",
        include_str!("library/cuda/warp_role.py"),
    ),
    (
        "tvm.backend.cuda.lang.smem_desc",
        include_str!("library/cuda/smem_desc.py"),
    ),
    (
        "tvm.backend.cuda.lang.alloc_pool",
        include_str!("library/cuda/alloc_pool.py"),
    ),
    (
        "tvm.backend.cuda.tile_primitive.tma_utils",
        include_str!("library/cuda/tma_utils.py"),
    ),
    (
        "tvm.backend.cuda.tile_primitive.layout_utils",
        include_str!("library/cuda/layout_utils.py"),
    ),
];

/// Names that a module takes from others: a package from its modules (`path.`), a module from one.
const TAKEN: &[(&str, &[&str])] = &[
    (
        "tvm.backend.cuda.lang",
        &[
            "tvm.backend.cuda.lang.pipeline",
            "tvm.backend.cuda.lang.tile_scheduler",
            "tvm.backend.cuda.lang.warp_role",
            "tvm.backend.cuda.lang.smem_desc",
            "tvm.backend.cuda.lang.alloc_pool",
        ],
    ),
    (
        "tvm.backend.cuda.tile_primitive.common",
        &["tvm.backend.cuda.lang.smem_desc"],
    ),
    (
        "tvm.script.parser.core.diagnostics",
        &["tvm.script.parser.core.parser"],
    ),
    ("tvm.backend.cuda.tile_primitive.gemm_async.tcgen05", &["layout"]),
    ("T", &["tvm.backend.cuda.lang.alloc_pool"]),
];

/// Packages that contain modules but no names of their own.
const PACKAGES: &[&str] = &[
    "tvm.backend",
    "tvm.backend.cuda",
    "tvm.backend.cuda.tile_primitive",
    "tvm.backend.cuda.op",
];

/// The current path of a module that has moved: TVM keeps the older paths, and kernels of older releases import them.
pub(super) fn current(path: &str) -> Cow<'_, str> {
    const MOVED: &[(&str, &str)] = &[
        ("tvm.tirx.lang", "tvm.backend.cuda.lang"),
        (
            "tvm.tirx.cuda.operator.tile_primitive",
            "tvm.backend.cuda.tile_primitive",
        ),
        ("tvm.tirx.cuda", "tvm.backend.cuda"),
    ];
    for (old, new) in MOVED {
        match path.strip_prefix(old) {
            Some(rest) if rest.is_empty() || rest.starts_with('.') => return format!("{new}{rest}").into(),
            _ => {}
        }
    }
    path.into()
}

/// Whether `path` is a module of the kernel language's library.
pub(super) fn is_module(path: &str) -> bool {
    path.starts_with("tvm.")
        && (TEXTS.iter().any(|(p, _)| *p == path)
            || TAKEN.iter().any(|(p, _)| *p == path)
            || PACKAGES.contains(&path))
}

/// Paths of the kernel language's library, for suggestions.
pub(super) fn modules() -> impl Iterator<Item = &'static str> {
    let texts = TEXTS.iter().map(|(p, _)| *p).filter(|p| p.starts_with("tvm."));
    texts.chain(["tvm.backend.cuda.lang"])
}

/// The names that the text of a module defines for others.
pub(super) fn names(path: &str) -> impl Iterator<Item = &'static str> {
    defined(path).filter(|name| !name.starts_with('_'))
}

/// All names that the text of a module defines.
fn defined(path: &str) -> impl Iterator<Item = &'static str> {
    let at = TEXTS.iter().position(|(p, _)| *p == path);
    at.map(|at| Parts::from_module(at).names()).into_iter().flatten()
}

impl Interpreter {
    /// Calls a function of the library.
    pub(crate) fn call_library(
        &mut self,
        path: &str,
        name: &str,
        arguments: Vec<Value>,
        span: Span,
    ) -> Result<Value> {
        let Some(function) = self.library_name(path, name)? else {
            return error(span, format!("\"{path}.{name}\" is missing"));
        };
        let args = Args {
            positional: arguments.into_iter().map(|value| (value, span)).collect(),
            ..Args::default()
        };
        self.call_value(&function, args, span)
    }

    /// `path.name`, where a text of the library defines it: who asks for a private name by that name gets it, as in Python.
    pub(super) fn library_name(&mut self, path: &str, name: &str) -> Result<Option<Value>> {
        let taken = TAKEN
            .iter()
            .filter(|(p, _)| *p == path)
            .flat_map(|(_, from)| *from);
        let sources = std::iter::once(path).chain(taken.copied());
        let Some(path) = sources.into_iter().find(|p| defined(p).any(|n| n == name)) else {
            return Ok(None);
        };
        let Some(at) = TEXTS.iter().position(|(p, _)| *p == path) else {
            return Ok(None);
        };
        let scope = match self.session.library.get(&at) {
            Some(scope) => scope.clone(),
            None => {
                let scope = Scope::new(ScopeKind::Library(at), None);
                self.session.library.insert(at, scope.clone());
                self.run_part(&scope, Parts::from_module(at).head())?;
                scope
            }
        };
        self.library_part(&scope, at, name)
    }

    /// A name of a library module: its definition runs when the name is first used.
    pub(super) fn library_part(
        &mut self,
        scope: &Rc<Scope>,
        module: usize,
        name: &str,
    ) -> Result<Option<Value>> {
        if let Some(value) = scope.get_own(name) {
            return Ok(Some(value));
        }
        let Some(part) = Parts::from_module(module).defining(name) else {
            return Ok(None);
        };
        self.run_part(scope, part)?;
        Ok(scope.get_own(name))
    }

    /// Runs a part of a module's text.
    fn run_part(&mut self, scope: &Rc<Scope>, part: &'static Part) -> Result<()> {
        let frame = EvalFrame {
            match_names: None,
            ..self.frame.of_file(part.file, scope.clone())
        };
        self.enter(frame, |i| {
            i.close_over();
            i.exec_block(part.body()).map(|_| ())
        })
    }
}
