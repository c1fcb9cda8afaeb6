//! What of the host program has a value in a kernel file, so that kernels may depend on it: an environment that begins
//! empty, paths as text, random numbers of a seed, other runs of a kernel file, and the GPU that a build names.

use std::any::Any;
use std::cell::RefCell;
use std::rc::Rc;

use super::frame::EvalFrame;
use super::value::{Module, Object, Value};
use super::{Args, Dict, Interpreter, Scope, ScopeKind, args, modules};
use crate::diagnostic::{Result, error};
use crate::ir::DType;
use crate::source::{FileId, Span};

/// The path in a library text of what is the host's: `import __host__.random` there.
pub(super) const HOST_PREFIX: &str = "__host__.";

/// Names of host modules that a text of the library defines: the path, the module of the text, the name.
const LIBRARY: &[(&str, &str, &str)] = &[
    ("pathlib.Path", "pathlib", "Path"),
    ("pathlib.PurePath", "pathlib", "PurePath"),
    ("pathlib.PurePosixPath", "pathlib", "PurePath"),
    ("random.Random", "random", "Random"),
    ("types.SimpleNamespace", "types", "SimpleNamespace"),
    ("contextlib.nullcontext", "contextlib", "nullcontext"),
    ("contextlib.contextmanager", "contextlib", "contextmanager"),
    ("inspect.Parameter", "inspect", "Parameter"),
    ("inspect.Signature", "inspect", "Signature"),
    ("threading.local", "types", "SimpleNamespace"),
];

impl Interpreter {
    /// An attribute of a host value.
    pub(super) fn host_attribute(&mut self, why: &Rc<str>, name: &str) -> Result<Value> {
        if let Some(path) = modules::host_path(why) {
            let full = format!("{path}.{name}");
            if let Some(value) = self.host_value(&full)? {
                return Ok(value);
            }
        }
        Ok(modules::host_part(why, name))
    }

    /// The value that a path of the host has in a kernel file.
    fn host_value(&mut self, path: &str) -> Result<Option<Value>> {
        if let Some((_, text, name)) = LIBRARY.iter().find(|(p, ..)| *p == path) {
            return self.library_name(text, name);
        }
        Ok(Some(match path {
            "warnings.warn" => Value::builtin(path, super::lints::warn),
            "inspect.signature" => Value::builtin(path, super::signature::signature),
            "os.environ" => Value::Dict(self.environment()),
            "os.getenv" => Value::builtin("os.getenv", |interp, args, span| {
                let bound = args.bind(
                    "os.getenv",
                    &[args::required("key"), args::optional("default")],
                    span,
                )?;
                let default = bound[1].clone().map_or(Value::None, |(value, _)| value);
                let Some((key, at)) = &bound[0] else {
                    return Ok(default);
                };
                let key = interp.key_of(key, *at)?;
                let known = interp.environment().borrow().get(&key).cloned();
                Ok(known.unwrap_or(default))
            }),
            "sys.modules" => Value::Dict(self.session.caches.python_modules.clone()),
            "importlib.util.spec_from_file_location" => Value::builtin(path, |interp, args, span| {
                let parameters = [args::required("name"), args::optional("location")];
                let bound = args.bind("spec_from_file_location", &parameters, span)?;
                let (Some((name, name_at)), Some((location, at))) = (&bound[0], &bound[1]) else {
                    return Ok(Value::None);
                };
                let Some(name) = name.as_str() else {
                    return error(*name_at, "a module's name is a string");
                };
                let location = interp.display(location, *at)?;
                // Files that are not loaded have no value here, like everything else outside.
                Ok(match interp.file_named(&location) {
                    Some(file) => Value::Object(Rc::new(ModuleSpec {
                        name: name.into(),
                        file,
                    })),
                    None => {
                        modules::host_only(&format!("importlib.util.spec_from_file_location({location:?})"))
                    }
                })
            }),
            "importlib.util.module_from_spec" => Value::builtin(path, |_, args, span| {
                let [(spec, at)] = args.exactly("module_from_spec", ["spec"], span)?;
                let Value::Object(object) = &spec else {
                    return error(at, format!("expected a module spec, found {}", spec.type_name()));
                };
                match object.as_any().downcast_ref::<ModuleSpec>() {
                    Some(spec) => Ok(Value::Module(Rc::new(Module {
                        name: spec.name.clone(),
                        scope: Scope::new(ScopeKind::Module, None),
                    }))),
                    None => error(
                        at,
                        format!("expected a module spec, found {}", object.type_name()),
                    ),
                }
            }),
            // Kernels are built for a GPU, whether or not the machine that builds them has one.
            "torch.cuda.is_available" => Value::builtin(path, |_, _, _| Ok(Value::Bool(true))),
            "torch.cuda.current_device" => Value::builtin(path, |_, _, _| Ok(Value::Int(0))),
            "torch.cuda.get_device_properties" => Value::builtin(path, |interp, _, _| {
                let multiprocessors = interp.session.multiprocessors;
                Ok(Value::Object(Rc::new(Gpu { multiprocessors })))
            }),
            // A tensor's content is the host's, the size of its elements is not.
            "torch.empty" | "torch.zeros" | "torch.ones" => {
                let name: Rc<str> = path.into();
                Value::builtin(path, move |_, mut args, _| {
                    let dtype = args.take_keyword("dtype").map(|given| given.0);
                    let dtype = dtype.as_ref().and_then(|value| match value {
                        Value::Unavailable(why) => modules::host_path(why),
                        _ => None,
                    });
                    Ok(modules::host_only(
                        &match dtype.filter(|path| torch_dtype(path).is_some()) {
                            Some(dtype) => format!("{name}(dtype={dtype})"),
                            None => name.to_string(),
                        },
                    ))
                })
            }
            _ => match path.rsplit_once('.') {
                Some((dtype, "itemsize")) => match torch_dtype(dtype) {
                    Some(dtype) => Value::Int(dtype.bytes() as i128),
                    None => return Ok(None),
                },
                Some((tensor, "element_size")) => {
                    let made = tensor.split_once("(dtype=");
                    let Some(dtype) = made.and_then(|(_, dtype)| torch_dtype(dtype.trim_end_matches(')')))
                    else {
                        return Ok(None);
                    };
                    let bytes = dtype.bytes() as i128;
                    Value::builtin("element_size", move |_, _, _| Ok(Value::Int(bytes)))
                }
                _ => return Ok(None),
            },
        }))
    }

    /// `os.environ`: empty when a build begins, so that it gives the same everywhere.
    fn environment(&mut self) -> Rc<RefCell<Dict>> {
        let made = self.session.caches.environment.get_or_insert_with(|| {
            let mut dict = Dict::default();
            let missing = |_: &mut Interpreter, _: Args, _: Span| Ok(modules::host_only("os.environ[…]"));
            dict.factory = Some(Value::builtin("os.environ[]", missing));
            Rc::new(RefCell::new(dict))
        });
        made.clone()
    }

    /// The loaded file of a name as `__file__` gives it.
    fn file_named(&self, name: &str) -> Option<FileId> {
        let mut files = self
            .session
            .modules
            .keys()
            .copied()
            .filter(|file| self.session.packages.contains_key(file));
        files.find(|file| self.session.sources.file(*file).is_some_and(|f| f.name == name))
    }

    /// The value of a name that every module has: `__file__`, `__package__`.
    pub(super) fn module_name(&self, name: &str) -> Option<Value> {
        let package = self.session.packages.get(&self.frame.file)?;
        match name {
            "__file__" => self
                .session
                .sources
                .file(self.frame.file)
                .map(|file| Value::str(&*file.name)),
            "__package__" => Some(Value::str(package.as_str())),
            _ => None,
        }
    }

    /// `globals()`: the names of the module that the text of the call belongs to. Assigning to the dict has no effect on
    /// them.
    pub(super) fn globals(&mut self, span: Span) -> Result<Value> {
        let mut scope = self.frame.scope.clone();
        while let Some(parent) = scope.parent.clone() {
            scope = parent;
        }
        let mut names: Vec<_> = scope
            .vars
            .borrow()
            .iter()
            .map(|(k, v)| (k.to_string(), v.clone()))
            .collect();
        names.sort_by(|a, b| a.0.cmp(&b.0));
        let mut dict = Dict::default();
        for (name, value) in names {
            let name = Value::str(name);
            let key = self.key_of(&name, span)?;
            dict.insert(key, name, value);
        }
        Ok(Value::Dict(Rc::new(RefCell::new(dict))))
    }
}

/// The dtype that a name of torch stands for.
pub(super) fn torch_dtype(path: &str) -> Option<DType> {
    let name = path.strip_prefix("torch.")?;
    let name = match name {
        "half" => "float16",
        "float" => "float32",
        "double" => "float64",
        "short" => "int16",
        "int" => "int32",
        "long" => "int64",
        other => other,
    };
    name.parse().ok()
}

/// `importlib.util.spec_from_file_location(name, path)` of a loaded kernel file, and its loader.
struct ModuleSpec {
    name: Rc<str>,
    file: FileId,
}

impl Object for ModuleSpec {
    fn type_name(&self) -> &str {
        "ModuleSpec"
    }

    fn attribute(&self, _: &mut Interpreter, name: &str, _: Span) -> Result<Option<Value>> {
        let file = self.file;
        Ok(match name {
            "name" => Some(Value::Str(self.name.clone())),
            "loader" => Some(Value::Object(Rc::new(ModuleSpec {
                name: self.name.clone(),
                file,
            }))),
            "exec_module" => Some(Value::builtin(name, move |interp, args, span| {
                let [(module, at)] = args.exactly("exec_module", ["module"], span)?;
                match &module {
                    Value::Module(module) => interp.run_again(file, module, span),
                    other => error(at, format!("expected a module, found {}", other.type_name())),
                }
            })),
            _ => None,
        })
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Interpreter {
    /// Runs a loaded file once more, with names of its own.
    fn run_again(&mut self, file: FileId, module: &Rc<Module>, span: Span) -> Result<Value> {
        let Some(text) = self.session.modules.get(&file).cloned() else {
            return error(span, format!("\"{}\" has no text", module.name));
        };
        if self.session.loading.len() > 32 {
            return self.limit(span, "more than 32 imports within imports");
        }
        self.session.loading.push(module.name.to_string());
        let frame = EvalFrame {
            call: None,
            calls: 0,
            ..self.frame.of_file(file, module.scope.clone())
        };
        let result = self.enter(frame, |i| i.run_module(&text.body));
        self.session.loading.pop();
        result.map(|()| Value::None)
    }
}

/// `torch.cuda.get_device_properties(…)`: what the build says of the GPU.
struct Gpu {
    multiprocessors: Option<u32>,
}

impl Object for Gpu {
    fn type_name(&self) -> &str {
        "GPU"
    }

    fn attribute(&self, _: &mut Interpreter, name: &str, _: Span) -> Result<Option<Value>> {
        Ok(Some(match (name, self.multiprocessors) {
            ("multi_processor_count", Some(count)) => Value::Int(i128::from(count)),
            ("multi_processor_count", None) => Value::Unavailable(
                "the kernel depends on the number of multiprocessors of the GPU, which the build does not name: give \
                 `multiprocessors = 132` (H100 SXM) or 148 (B200) in kernels.toml, or --multiprocessors"
                    .into(),
            ),
            _ => modules::host_only(&format!("torch.cuda.get_device_properties().{name}")),
        }))
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
