//! Objects of classes: `class(args)`, the order in which bases are searched, and what `super()` finds.

use std::any::Any;
use std::cell::RefCell;
use std::rc::Rc;

use super::value::{Class, ClassKind, DataClass, Field, Instance, Object, Value};
use super::{Args, Interpreter, args, suggest};
use crate::diagnostic::{Diagnostic, Result, error};
use crate::source::Span;

/// The method resolution order (C3) of a class with these bases; `None` where the bases contradict each other.
pub(super) fn resolution_order(bases: &[Rc<Class>]) -> Option<Vec<Rc<Class>>> {
    let mut lists: Vec<Vec<Rc<Class>>> = bases
        .iter()
        .map(|b| std::iter::once(b).chain(&b.mro).cloned().collect())
        .collect();
    lists.push(bases.to_vec());
    let mut order = Vec::new();
    loop {
        lists.retain(|l| !l.is_empty());
        if lists.is_empty() {
            return Some(order);
        }
        // The first head that occurs in no list's tail.
        let next = lists
            .iter()
            .map(|l| &l[0])
            .find(|head| !lists.iter().any(|l| l[1..].iter().any(|c| Rc::ptr_eq(c, head))))?;
        let next = next.clone();
        for list in &mut lists {
            if Rc::ptr_eq(&list[0], &next) {
                list.remove(0);
            }
        }
        order.push(next);
    }
}

/// How an object gets its initial attributes.
enum Initializer {
    /// `__init__` of the kernel file.
    Function(Value),
    /// The generated `__init__` of a dataclass.
    Fields(Rc<DataClass>),
    /// Exceptions store their arguments.
    Arguments,
    /// No initializer: arguments are an error.
    Nothing,
}

/// The first initializer among the classes.
fn initializer<'a>(classes: impl Iterator<Item = &'a Rc<Class>>) -> Initializer {
    for class in classes {
        if let Some(function) = class.dict.borrow().get("__init__") {
            return Initializer::Function(function.clone());
        }
        match &*class.kind.borrow() {
            ClassKind::DataClass(d) => return Initializer::Fields(d.clone()),
            ClassKind::Builtin if &*class.name == "BaseException" => return Initializer::Arguments,
            _ => {}
        }
    }
    Initializer::Nothing
}

/// `super()` within a method: the classes after `class` in the resolution order of the receiver's own class.
pub(super) struct Super {
    pub(super) class: Rc<Class>,
    pub(super) receiver: Value,
}

impl Super {
    fn rest(&self) -> Vec<Rc<Class>> {
        let of = match &self.receiver {
            Value::Instance(i) => &i.class,
            Value::Class(c) => c,
            _ => &self.class,
        };
        let mut order = std::iter::once(of).chain(&of.mro);
        match order.by_ref().any(|c| Rc::ptr_eq(c, &self.class)) {
            true => order.cloned().collect(),
            false => self.class.mro.clone(),
        }
    }
}

impl Object for Super {
    fn type_name(&self) -> &str {
        "super"
    }
    fn attribute(&self, interp: &mut Interpreter, name: &str, span: Span) -> Result<Option<Value>> {
        let rest = self.rest();
        if name == "__init__" {
            let (receiver, found) = (self.receiver.clone(), initializer(rest.iter()));
            return Ok(Some(Value::builtin(name, move |interp, args, span| {
                interp.initialize(&receiver, &found, args, span)?;
                Ok(Value::None)
            })));
        }
        for base in &rest {
            let found = base.dict.borrow().get(name).cloned();
            match found {
                Some(value) if name == "__new__" => return Ok(Some(value)),
                Some(value) => return interp.bind_attribute(value, &self.receiver, span).map(Some),
                None => {}
            }
        }
        let receiver = self.receiver.clone();
        Ok(match name {
            "__new__" => Some(object_new()),
            "__init_subclass__" | "__post_init__" | "__enter__" | "__exit__" => {
                Some(Value::builtin(name, |_, _, _| Ok(Value::None)))
            }
            "__setattr__" => Some(Value::builtin("__setattr__", move |_, args, span| {
                let [(name, _), (value, _)] = args.exactly("__setattr__", ["name", "value"], span)?;
                if let (Value::Instance(i), Value::Str(n)) = (&receiver, &name) {
                    i.set(n, value);
                }
                Ok(Value::None)
            })),
            "__repr__" | "__str__" => Some(Value::builtin(name, move |interp, _, span| {
                interp.repr_of_object(&receiver, span).map(Value::str)
            })),
            _ => None,
        })
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// `object.__new__`.
pub(super) fn object_new() -> Value {
    Value::builtin("__new__", |interp, mut args, span| {
        if args.positional.is_empty() {
            return interp.raise("TypeError", span, "__new__() needs a class");
        }
        let (class, at) = args.positional.remove(0);
        let Value::Class(class) = class else {
            return interp.raise("TypeError", at, "__new__() needs a class");
        };
        interp.new_instance(&class, &args, span).map(Value::Instance)
    })
}

impl Interpreter {
    /// `class(args)`.
    pub(super) fn construct(&mut self, class: &Rc<Class>, args: Args, span: Span) -> Result<Value> {
        let kind = class.kind.borrow().clone();
        match kind {
            ClassKind::Builtin if class.span == Span::NONE && !self.is_exception(class) => {
                return self.call_type(&class.name.clone(), args, span);
            }
            ClassKind::Enum { .. } => {
                let [(value, at)] = args.exactly(&class.name, ["value"], span)?;
                return self.enum_member(class, &value, at);
            }
            _ => {}
        }
        let value = match self.class_attribute(class, "__new__") {
            Some(new) => {
                let new = static_function(&new);
                let value = self.call_method(&new, &Value::Class(class.clone()), args.clone(), span)?;
                match &value {
                    Value::Instance(i)
                        if Rc::ptr_eq(&i.class, class)
                            || i.class.mro.iter().any(|c| Rc::ptr_eq(c, class)) => {}
                    _ => return Ok(value),
                }
                // Arguments that `__new__` took need no `__init__`.
                if matches!(
                    initializer(std::iter::once(class).chain(&class.mro)),
                    Initializer::Nothing | Initializer::Arguments
                ) {
                    return Ok(value);
                }
                value
            }
            None => Value::Instance(self.new_instance(class, &args, span)?),
        };
        if matches!(kind, ClassKind::NamedTuple(_)) {
            return Ok(value);
        }
        let found = initializer(std::iter::once(class).chain(&class.mro));
        self.initialize(&value, &found, args, span)?;
        Ok(value)
    }

    /// An object before its `__init__`: named tuples have their fields, exceptions their arguments.
    fn new_instance(&mut self, class: &Rc<Class>, args: &Args, span: Span) -> Result<Rc<Instance>> {
        let instance = Rc::new(Instance {
            class: class.clone(),
            fields: RefCell::default(),
        });
        if let ClassKind::NamedTuple(d) = &*class.kind.borrow() {
            self.fill_fields(&instance, d, args.clone(), span)
                .map_err(|e| self.as_exception("TypeError", e))?;
        } else if self.is_exception(class) {
            let items = args.positional.iter().map(|(v, _)| v.clone()).collect();
            instance.set("args", Value::tuple(items));
        }
        Ok(instance)
    }

    fn initialize(&mut self, object: &Value, how: &Initializer, args: Args, span: Span) -> Result<()> {
        let Value::Instance(instance) = object else {
            return Ok(());
        };
        match how {
            Initializer::Function(function) => {
                self.call_method(function, object, args, span)?;
            }
            Initializer::Fields(data) => {
                self.fill_fields(instance, data, args, span)
                    .map_err(|e| self.as_exception("TypeError", e))?;
                if let Some(post) = self.class_attribute(&instance.class, "__post_init__") {
                    self.call_method(&post, object, Args::default(), span)?;
                }
            }
            Initializer::Arguments => {
                let items = args.positional.into_iter().map(|(v, _)| v).collect();
                instance.set("args", Value::tuple(items));
            }
            Initializer::Nothing => {
                let first = args.positional.first().map(|a| a.1);
                if let Some(at) = first.or(args.keyword.first().map(|a| a.2)) {
                    return self.raise(
                        "TypeError",
                        at,
                        format!("{}() takes no arguments", instance.class.name),
                    );
                }
            }
        }
        Ok(())
    }

    fn fill_fields(
        &mut self,
        instance: &Rc<Instance>,
        data: &DataClass,
        args: Args,
        span: Span,
    ) -> Result<()> {
        let name = instance.class.name.clone();
        let mut init: Vec<&Field> = data.fields.iter().filter(|f| f.init && !f.keyword_only).collect();
        let positions = init.len();
        init.extend(data.fields.iter().filter(|f| f.init && f.keyword_only));
        let mut bound: Vec<Option<Value>> = vec![None; init.len()];
        let given = args.positional.len();
        for (i, (value, at)) in args.positional.into_iter().enumerate() {
            match bound[..positions].get_mut(i) {
                Some(slot) => *slot = Some(value),
                None => {
                    return error(
                        at,
                        format!(
                            "{name}() takes {} but {given} were given",
                            args::count(positions, "argument")
                        ),
                    );
                }
            }
        }
        for (key, value, at) in args.keyword {
            match init.iter().position(|f| f.name == key) {
                Some(i) if bound[i].is_some() => {
                    return error(at, format!("{name}() got more than one value for \"{key}\""));
                }
                Some(i) => bound[i] = Some(value),
                None => {
                    let mut d = Diagnostic::new(at, format!("{name}() has no field \"{key}\""));
                    let open = init.iter().zip(&bound).filter(|(_, given)| given.is_none());
                    if let Some(s) = suggest(&key, open.map(|(f, _)| &*f.name)) {
                        d = d.help(format!("did you mean \"{s}\"?"));
                    }
                    return Err(Box::new(d));
                }
            }
        }
        let mut missing = Vec::new();
        for field in &data.fields {
            let at = init.iter().position(|f| f.name == field.name);
            let given = at.and_then(|at| bound[at].take());
            let value = match (given, &field.default, &field.factory) {
                (Some(v), ..) => v,
                (None, Some(v), _) => v.clone(),
                (None, None, Some(f)) => self.call_value(f, Args::default(), span)?,
                (None, None, None) if field.init => {
                    missing.push(&*field.name);
                    continue;
                }
                (None, None, None) => continue,
            };
            instance.set(&field.name, value);
        }
        if !missing.is_empty() {
            return error(span, format!("{name}() misses {}", args::quoted(&missing)));
        }
        Ok(())
    }
}

/// The function within a `staticmethod` or `classmethod`; any other value unchanged.
pub(super) fn static_function(value: &Value) -> Value {
    match value {
        Value::Object(o) => match o.as_any().downcast_ref::<super::class::Descriptor>() {
            Some(d) => d.function.clone(),
            None => value.clone(),
        },
        _ => value.clone(),
    }
}
