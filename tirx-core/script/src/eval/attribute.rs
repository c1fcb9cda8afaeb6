//! `value.name` for every kind of value.

use std::cell::RefCell;
use std::rc::Rc;

use super::value::{ClassKind, Kernel, Value};
use super::{Args, Interpreter, Mode, class, methods, modules, suggest};
use crate::diagnostic::{Diagnostic, Result};
use crate::lang;
use crate::source::Span;

impl Interpreter {
    /// `value.name`.
    pub fn get_attribute(&mut self, value: &Value, name: &str, span: Span) -> Result<Value> {
        match self.find_attribute(value, name, span)? {
            Some(v) => Ok(v),
            None => self.no_attribute(value, name, span),
        }
    }

    /// `value.name`, if there is one.
    pub(super) fn find_attribute(&mut self, value: &Value, name: &str, span: Span) -> Result<Option<Value>> {
        Ok(match value {
            Value::Namespace(path) => self.namespace_attribute(&path.clone(), name)?,
            Value::Module(m) => match (m.scope.get_own(name), m.scope.get_own("__getattr__")) {
                (None, Some(other)) if !name.starts_with("__") => {
                    let name = Value::str(name);
                    return self
                        .call_value(&other, Args::positional([name], span), span)
                        .map(Some);
                }
                (own, _) => own,
            },
            Value::Instance(i) => return self.instance_attribute(i, name, span),
            Value::Frame(frame) if matches!(name, "__enter__" | "__exit__") => {
                let (frame, enters) = (frame.clone(), name == "__enter__");
                Some(Value::builtin(name, move |interp, _, span| match enters {
                    true => interp.enter_frame(&frame, span),
                    false => interp.exit_frame(&frame, span).map(|()| Value::Bool(false)),
                }))
            }
            // TVM's frames run callbacks when they are left; regions that are still open at the end of a function end there.
            Value::Frame(frame) if name == "condition" => super::nodes::of_frame(frame, name),
            Value::Frame(_) if name == "add_callback" => {
                Some(Value::builtin(name, |_, _, _| Ok(Value::None)))
            }
            Value::Class(c) => match name {
                "__name__" | "__qualname__" => Some(Value::Str(c.name.clone())),
                "__mro__" => Some(self.order_of(c)),
                "__bases__" => {
                    let mut bases: Vec<Value> = c.bases.iter().cloned().map(Value::Class).collect();
                    if bases.is_empty() && &*c.name != "object" {
                        bases.extend(self.session.caches.builtins.get("object"));
                    }
                    Some(Value::tuple(bases))
                }
                "mro" => {
                    let order = self.order_of(c);
                    Some(Value::builtin("mro", move |interp, _, span| {
                        interp.iterate(&order, span).map(Value::list)
                    }))
                }
                "__new__" if self.class_attribute(c, name).is_none() => Some(super::construct::object_new()),
                "_fields" if c.is_named_tuple() => c.data().map(|d| super::records::field_names(&d)),
                "_make" if c.is_named_tuple() => {
                    let class = c.clone();
                    Some(Value::builtin("_make", move |interp, args, span| {
                        let [(items, at)] = args.exactly("_make", ["iterable"], span)?;
                        let items = interp.iterate(&items, at)?;
                        interp.construct(&class, Args::positional(items, at), span)
                    }))
                }
                "__members__" if matches!(&*c.kind.borrow(), ClassKind::Enum { .. }) => {
                    let mut dict = super::Dict::default();
                    for m in self.enum_members(c) {
                        if let Value::Instance(i) = &m
                            && let Some(Value::Str(n)) = i.get("name")
                        {
                            dict.insert(super::Key::Str(n.clone()), Value::Str(n), m);
                        }
                    }
                    Some(Value::Dict(Rc::new(RefCell::new(dict))))
                }
                "__setattr__" if &*c.name == "object" => {
                    Some(Value::builtin("object.__setattr__", |_, args, span| {
                        let [(target, _), (name, _), (value, _)] =
                            args.exactly("object.__setattr__", ["self", "name", "value"], span)?;
                        if let (Value::Instance(i), Value::Str(n)) = (&target, &name) {
                            i.set(n, value);
                        }
                        Ok(Value::None)
                    }))
                }
                "__getattribute__" if &*c.name == "object" => {
                    Some(Value::builtin("object.__getattribute__", |interp, args, span| {
                        let [(target, _), (name, at)] =
                            args.exactly("object.__getattribute__", ["self", "name"], span)?;
                        let Value::Str(name) = &name else {
                            return interp.raise("TypeError", at, "attribute name must be string");
                        };
                        // Unlike `target.name`, without the class's `__getattr__`.
                        let found = match &target {
                            Value::Instance(i) => match i.get(name) {
                                Some(field) => Some(field),
                                None if interp.class_attribute(&i.class, name).is_some() => {
                                    interp.instance_attribute(i, name, span)?
                                }
                                None => None,
                            },
                            _ => interp.find_attribute(&target, name, span)?,
                        };
                        match found {
                            Some(value) => Ok(value),
                            None => interp.no_attribute(&target, name, span),
                        }
                    }))
                }
                "__init__" if self.class_attribute(c, name).is_none() => {
                    Some(Value::builtin("__init__", |_, _, _| Ok(Value::None)))
                }
                _ => match self.class_attribute(c, name) {
                    Some(Value::Object(o)) => match o.as_any().downcast_ref::<class::Descriptor>() {
                        Some(d) if d.kind == class::DescriptorKind::Static => Some(d.function.clone()),
                        Some(d) if d.kind == class::DescriptorKind::Class => {
                            Some(class::method(value.clone(), d.function.clone()))
                        }
                        _ => Some(Value::Object(o)),
                    },
                    Some(v @ Value::Instance(_)) => Some(self.described(v, None, &c.clone(), span)?),
                    Some(v) => Some(v),
                    None => methods::unbound(&c.name, name),
                },
            },
            Value::Function(f) if f.attribute(name).is_some() => f.attribute(name),
            Value::Function(f) => match name {
                "__name__" | "__qualname__" => Some(Value::Str(f.name.clone())),
                "__doc__" => Some(Value::None),
                "__annotations__" => Some(self.annotations_of(f)?),
                _ => None,
            },
            Value::Builtin(f) if name == "__name__" => {
                Some(Value::str(f.name.rsplit('.').next().unwrap_or(&f.name)))
            }
            // `itertools.chain.from_iterable`, `dict.fromkeys`, ….
            Value::Builtin(f) => modules::attribute(&f.name, name)
                .or_else(|| lang::attribute(&f.name, name))
                .or_else(|| super::host::tvm_value(&format!("{}.{name}", f.name))),
            Value::Method(m) => match name {
                "__self__" => Some(m.receiver.clone()),
                _ => return self.find_attribute(&m.function, name, span),
            },
            Value::Kernel(k) => kernel_attribute(k, name),
            Value::Iterator(it) => super::iter::method(it, name),
            Value::Object(o) => o.clone().attribute(self, name, span)?,
            // In a helper function an operation on it is the error, not its name.
            Value::Unavailable(why) if !self.is_building() || self.frame.mode == Mode::Meta => {
                let why = why.clone();
                Some(self.host_attribute(&why, name)?)
            }
            Value::Unavailable(why) => return self.unavailable(why, span),
            Value::MetaVar(v) => return self.find_attribute(&v.clone(), name, span),
            Value::Slice(s) => match name {
                "start" => Some(s.start.clone()),
                "stop" => Some(s.stop.clone()),
                "step" => Some(s.step.clone()),
                _ => None,
            },
            Value::Expr(_) | Value::Buffer(_) | Value::Region(_) | Value::Layout(_) | Value::DType(_) => {
                return lang::value_attribute(self, value, name, span).map(Some);
            }
            Value::Range(r) => match name {
                "start" => Some(Value::Int(r.start)),
                "stop" => Some(Value::Int(r.stop)),
                "step" => Some(Value::Int(r.step)),
                _ => methods::attribute(value, name),
            },
            Value::Int(_) | Value::Bool(_) if matches!(name, "real" | "numerator") => Some(value.clone()),
            _ => methods::attribute(value, name),
        })
    }

    /// `class.__mro__`.
    fn order_of(&self, class: &Rc<super::Class>) -> Value {
        let mut order: Vec<Value> = vec![Value::Class(class.clone())];
        order.extend(class.mro.iter().cloned().map(Value::Class));
        if !matches!(order.last(), Some(Value::Class(c)) if &*c.name == "object") {
            order.extend(self.session.caches.builtins.get("object"));
        }
        Value::tuple(order)
    }

    fn namespace_attribute(&mut self, path: &str, name: &str) -> Result<Option<Value>> {
        if let Some(looked_up) = &mut self.session.looked_up {
            looked_up.insert(format!("{path}.{name}"));
        }
        if path == "T.ptx"
            && let Some(v) = lang::ptx_attribute(self.release(), name)
        {
            return Ok(Some(v));
        }
        if let Some(known) = self
            .session
            .caches
            .language
            .get(path)
            .and_then(|names| names.get(name))
        {
            return Ok(Some(known.clone()));
        }
        if path == "builder" {
            // The module of the builder has the names of `T`, and those that only a function under construction needs.
            return match super::traced::attribute(name) {
                Some(v) => Ok(Some(self.of_language(path, name, v))),
                None => self.namespace_attribute("T", name),
            };
        }
        if let Some(v) = super::decorators::attribute(path, name) {
            return Ok(Some(self.of_language(path, name, v)));
        }
        if let Some(v) = modules::attribute(path, name) {
            return Ok(Some(v));
        }
        if let Some(v) = self.library_name(path, name)? {
            return Ok(Some(v));
        }
        if let Some(v) = self.builtin_module_class(path, name) {
            return Ok(Some(v));
        }
        if let Some(v) = lang::attribute(path, name) {
            return Ok(Some(self.of_language(path, name, v)));
        }
        let full = format!("{path}.{name}");
        if let Some(v) = super::host::tvm_value(&full) {
            return Ok(Some(v));
        }
        if let Some(v) = modules::module(&full) {
            return Ok(Some(v));
        }
        if path == "tvm" || path.starts_with("tvm.") {
            return Ok(Some(modules::host_only(&full)));
        }
        Ok(None)
    }

    /// Keeps the value of a name of the language: a kernel uses the same names again and again.
    fn of_language(&mut self, path: &str, name: &str, value: Value) -> Value {
        let names = self.session.caches.language.entry(path.into()).or_default();
        names.insert(name.into(), value.clone());
        value
    }

    fn no_attribute<R>(&mut self, value: &Value, name: &str, span: Span) -> Result<R> {
        // Some functions have names behind them: `T.ptx.cp_async` is called, and has `T.ptx.cp_async.wait_group`.
        let value = match value {
            Value::Builtin(f) if !lang::names(&f.name).is_empty() => &Value::Namespace(f.name.clone()),
            _ => value,
        };
        let (what, known): (String, Vec<String>) = match value {
            Value::Namespace(path) => {
                let mut names = lang::names_of_release(path, self.release());
                names.extend(modules::names(path).into_iter().map(String::from));
                names.extend(super::decorators::names(path).iter().map(|n| n.to_string()));
                (path.to_string(), names)
            }
            Value::Module(m) => {
                let names = m.scope.vars.borrow().keys().map(|k| k.to_string()).collect();
                (format!("module {}", m.name), names)
            }
            Value::Instance(i) => {
                let mut names: Vec<String> = i.fields.borrow().iter().map(|f| f.0.to_string()).collect();
                for c in std::iter::once(&i.class).chain(&i.class.mro) {
                    names.extend(c.dict.borrow().keys().map(|k| k.to_string()));
                }
                (format!("{} object", i.class.name), names)
            }
            Value::Class(c) => {
                let names = c.dict.borrow().keys().map(|k| k.to_string()).collect();
                (format!("class {}", c.name), names)
            }
            other => (
                other.type_name(),
                methods::names(other).into_iter().map(String::from).collect(),
            ),
        };
        let message = match value {
            Value::Namespace(path) => format!("unknown name \"{path}.{name}\""),
            _ => format!("{what} has no attribute \"{name}\""),
        };
        let exception = self.exception("AttributeError", &message);
        self.exceptions.raised = Some((message.clone(), super::Raised::Exception(exception)));
        let mut d = Diagnostic::new(span, message);
        let foreign = match value {
            Value::Namespace(_) => super::super::lang::cuda_word(name),
            _ => None,
        };
        let elsewhere = match value {
            Value::Namespace(path) => lang::elsewhere(path, name, self.release()),
            _ => None,
        };
        if let Some(help) = foreign {
            d = d.help(help);
        } else if let Some(full) = elsewhere {
            d = d.help(format!("did you mean \"{full}\"?"));
        } else if let Some(s) = suggest(name, known.iter().map(String::as_str)) {
            d = d.help(format!("did you mean \"{s}\"?"));
        }
        Err(Box::new(d))
    }
}

fn kernel_attribute(kernel: &Rc<Kernel>, name: &str) -> Option<Value> {
    match name {
        "__name__" => Some(Value::Str(kernel.name.clone())),
        "body" | "with_body" => super::nodes::of_kernel(kernel, name),
        "specialize" if kernel.is_jit => {
            let kernel = kernel.clone();
            Some(Value::builtin("specialize", move |interp, args: Args, span| {
                if let Some((_, at)) = args.positional.first() {
                    return crate::diagnostic::error(
                        *at,
                        "specialize() takes keyword arguments only: specialize(N=256)",
                    );
                }
                let mut constexprs = kernel.constexprs.clone();
                for (name, value, at) in args.keyword {
                    if !kernel.code.parameters.iter().any(|p| p.name == *name) {
                        let known = kernel.code.parameters.iter().map(|p| p.name.as_str());
                        let mut d =
                            Diagnostic::new(at, format!("\"{}\" has no parameter \"{name}\"", kernel.name));
                        if let Some(s) = suggest(&name, known) {
                            d = d.help(format!("did you mean \"{s}\"?"));
                        }
                        return Err(Box::new(d));
                    }
                    constexprs.retain(|(n, _)| *n != name);
                    constexprs.push((name, value));
                }
                let _ = span;
                let mut specialized = kernel.copy();
                specialized.constexprs = constexprs;
                let specialized = Rc::new(specialized);
                interp
                    .session
                    .kernels
                    .made
                    .push(Value::Kernel(specialized.clone()));
                Ok(Value::Kernel(specialized))
            }))
        }
        _ => super::host::kernel_attribute(kernel, name),
    }
}
