//! Classes: definition and attributes.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

use rustc_hash::FxHashMap;
use tirx_python as ast;

use super::value::{
    Class, ClassKind, DataClass, Field, Function, FunctionMode, Instance, Method, Object, Value,
};
use super::{Args, Interpreter, Scope, ScopeKind};
use crate::diagnostic::{Diagnostic, Result, error};
use crate::source::Span;

/// `property`, `staticmethod`, `classmethod`.
pub(super) struct Descriptor {
    pub(super) kind: DescriptorKind,
    pub(super) function: Value,
    pub(super) setter: Option<Value>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DescriptorKind {
    Property,
    CachedProperty,
    Static,
    Class,
}

impl Object for Descriptor {
    fn type_name(&self) -> &str {
        match self.kind {
            DescriptorKind::Property | DescriptorKind::CachedProperty => "property",
            DescriptorKind::Static => "staticmethod",
            DescriptorKind::Class => "classmethod",
        }
    }
    fn attribute(&self, _: &mut Interpreter, name: &str, _: Span) -> Result<Option<Value>> {
        if name != "setter" || self.kind != DescriptorKind::Property {
            return Ok(None);
        }
        let function = self.function.clone();
        Ok(Some(Value::builtin("property.setter", move |_, args, span| {
            let [(setter, _)] = args.exactly("property.setter", ["function"], span)?;
            Ok(Value::Object(Rc::new(Descriptor {
                kind: DescriptorKind::Property,
                function: function.clone(),
                setter: Some(setter),
            })))
        })))
    }
    fn call(&self, interp: &mut Interpreter, args: Args, span: Span) -> Result<Value> {
        interp.call_value(&self.function.clone(), args, span)
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Interpreter {
    /// A builtin class of Python.
    pub(super) fn builtin_class(name: &str, bases: &[&Rc<Class>]) -> Rc<Class> {
        let mut mro = Vec::new();
        for base in bases {
            mro.push((*base).clone());
            mro.extend(base.mro.iter().cloned());
        }
        Rc::new(Class {
            name: name.into(),
            bases: bases.iter().map(|b| (*b).clone()).collect(),
            mro,
            dict: RefCell::default(),
            order: RefCell::default(),
            kind: RefCell::new(ClassKind::Builtin),
            is_meta: Cell::new(false),
            span: Span::NONE,
        })
    }

    /// A `class` statement before its decorators.
    pub(super) fn make_class(&mut self, def: &ast::StmtClassDef) -> Result<Rc<Class>> {
        let span = self.span(&def.name);
        let mut bases: Vec<Rc<Class>> = Vec::new();
        let mut kind = ClassKind::Plain;
        let mut keywords: Vec<(Rc<str>, Value, Span)> = Vec::new();
        if let Some(arguments) = &def.arguments {
            for base in &arguments.args {
                let at = self.span(base);
                match self.eval(base)? {
                    Value::Class(c) => bases.push(c),
                    Value::Namespace(_) | Value::None => {}
                    Value::Unavailable(why) => return self.unavailable(&why, at),
                    other => {
                        return error(at, format!("a base must be a class, found {}", other.type_name()));
                    }
                }
            }
            for k in &arguments.keywords {
                let at = self.span(k);
                match &k.arg {
                    Some(name) if name.as_str() == "metaclass" => {}
                    Some(name) => {
                        let value = self.eval(&k.value)?;
                        keywords.push((name.as_str().into(), value, at));
                    }
                    None => return error(at, "** in the arguments of a class is not supported"),
                }
            }
        }
        if bases.len() > 64 || bases.iter().map(|b| b.mro.len()).sum::<usize>() > 1024 {
            return self.limit(span, "more than 64 base classes");
        }
        let Some(mro) = super::construct::resolution_order(&bases) else {
            return self.raise(
                "TypeError",
                span,
                "the bases of this class contradict each other in their order",
            );
        };
        if mro.len() > 64 {
            return self.limit(span, "more than 64 base classes");
        }
        let mut fields: Vec<Field> = Vec::new();
        for class in mro.iter() {
            match &*class.kind.borrow() {
                ClassKind::Enum { integer } => {
                    let mixed = mro.iter().any(|c| {
                        matches!(&*c.name, "int" | "str" | "float")
                            && matches!(&*c.kind.borrow(), ClassKind::Builtin)
                    });
                    let integer = *integer || mixed || matches!(kind, ClassKind::Enum { integer: true });
                    kind = ClassKind::Enum { integer };
                }
                ClassKind::NamedTuple(d) if class.span.is_some() => fields.extend(d.fields.iter().cloned()),
                ClassKind::NamedTuple(_) => kind = ClassKind::NamedTuple(Rc::new(DataClass::tuple(vec![]))),
                _ => {}
            }
        }
        if !fields.is_empty() && matches!(kind, ClassKind::Plain) {
            kind = ClassKind::NamedTuple(Rc::new(DataClass::tuple(vec![])));
        }
        // Classes of the library that derive from this kind keep their values in a field of their own.
        if matches!(kind, ClassKind::Plain)
            && self.frame.file < crate::parse::LIBRARY_FILE
            && let Some(base) = bases.iter().find(|c| c.holds_builtin_values())
        {
            let message = format!("a class cannot inherit from {} in kernel files", base.name);
            let help = format!("keep the {0} in a field: self.items = {0}(…)", base.name);
            return Err(Box::new(Diagnostic::new(span, message).help(help)));
        }
        let names_in_order = RefCell::default();
        let scope = Scope::new(ScopeKind::Class(names_in_order), Some(self.frame.scope.clone()));
        self.in_scope(scope.clone(), |i| i.as_python(|i| i.exec_block(&def.body)))?;
        let class = Rc::new(Class {
            name: def.name.as_str().into(),
            bases,
            mro,
            dict: RefCell::default(),
            order: RefCell::default(),
            kind: RefCell::new(ClassKind::Plain),
            is_meta: Cell::new(false),
            span,
        });
        self.count_object(span)?;
        self.session.cycles.classes.push(Rc::downgrade(&class));
        class.is_meta.set(class.mro.iter().any(|c| c.is_meta.get()));
        let mut dict: FxHashMap<Rc<str>, Value> = FxHashMap::default();
        for (name, value) in scope.vars.borrow().iter() {
            set_class(value, &class);
            dict.insert(name.as_str().into(), value.clone());
        }
        let order = match &scope.kind {
            ScopeKind::Class(order) => order.take(),
            _ => Vec::new(),
        };
        let own: Vec<Rc<str>> = order
            .iter()
            .filter(|name| dict.contains_key(name.as_str()))
            .map(|name| name.as_str().into())
            .collect();
        *class.order.borrow_mut() = own;
        *class.dict.borrow_mut() = dict;
        if let ClassKind::NamedTuple(_) = kind {
            fields.extend(self.annotated_fields(def, &class)?);
            kind = ClassKind::NamedTuple(Rc::new(DataClass::tuple(fields)));
        }
        if let ClassKind::Enum { .. } = kind {
            self.make_enum_members(&class, &kind)?;
        }
        *class.kind.borrow_mut() = kind;
        self.announce_class(&class, keywords, span)?;
        Ok(class)
    }

    /// Calls `__set_name__` of the attributes of a new class and `__init_subclass__` of its bases.
    fn announce_class(
        &mut self,
        class: &Rc<Class>,
        keyword: Vec<(Rc<str>, Value, Span)>,
        span: Span,
    ) -> Result<()> {
        let receiver = Value::Class(class.clone());
        let names = class.order.borrow().clone();
        for name in names {
            let value = class.dict.borrow().get(&name).cloned();
            if let Some(value @ Value::Instance(_)) = &value
                && let Some(hook) = self.descriptor_method(value, "__set_name__")
            {
                let args = Args::positional([receiver.clone(), Value::Str(name)], span);
                self.call_method(&hook, value, args, span)?;
            }
        }
        let hook = class
            .mro
            .iter()
            .find_map(|c| c.dict.borrow().get("__init_subclass__").cloned());
        match hook {
            Some(hook) => {
                let hook = super::construct::static_function(&hook);
                let args = Args {
                    keyword,
                    ..Args::default()
                };
                self.call_method(&hook, &receiver, args, span)?;
            }
            None => {
                if let Some((name, _, at)) = keyword.first() {
                    return self.raise(
                        "TypeError",
                        *at,
                        format!("no base of this class takes \"{name}\""),
                    );
                }
            }
        }
        Ok(())
    }

    /// A name of a class or its bases.
    pub(super) fn class_attribute(&self, class: &Rc<Class>, name: &str) -> Option<Value> {
        std::iter::once(class)
            .chain(&class.mro)
            .find_map(|c| c.dict.borrow().get(name).cloned())
    }

    /// `__get__`, `__set__` or `__set_name__` of an object stored in a class attribute.
    fn descriptor_method(&self, value: &Value, name: &str) -> Option<Value> {
        match value {
            Value::Instance(i) => self.class_attribute(&i.class, name),
            _ => None,
        }
    }

    /// A descriptor (an object with `__get__`) in a class attribute, accessed through an object of the class or,
    /// without one, through the class.
    pub(super) fn described(
        &mut self,
        value: Value,
        receiver: Option<&Value>,
        class: &Rc<Class>,
        span: Span,
    ) -> Result<Value> {
        match self.descriptor_method(&value, "__get__") {
            Some(get) => {
                let seen = receiver.cloned().unwrap_or(Value::None);
                let args = Args::positional([seen, Value::Class(class.clone())], span);
                self.call_method(&get, &value, args, span)
            }
            None => Ok(value),
        }
    }

    /// A class attribute accessed through an object: functions become methods, properties are evaluated.
    pub(super) fn bind_attribute(&mut self, value: Value, receiver: &Value, span: Span) -> Result<Value> {
        match &value {
            Value::Function(_) => Ok(method(receiver.clone(), value)),
            Value::Object(o) => match o.clone().as_any().downcast_ref::<Descriptor>() {
                Some(d) => match d.kind {
                    DescriptorKind::Static => Ok(d.function.clone()),
                    DescriptorKind::Class => {
                        let class = match receiver {
                            Value::Instance(i) => Value::Class(i.class.clone()),
                            other => other.clone(),
                        };
                        Ok(method(class, d.function.clone()))
                    }
                    DescriptorKind::Property | DescriptorKind::CachedProperty => {
                        self.call_method(&d.function, receiver, Args::default(), span)
                    }
                },
                None => Ok(value),
            },
            Value::Instance(_) => match receiver {
                Value::Instance(i) => self.described(value, Some(receiver), &i.class, span),
                _ => Ok(value),
            },
            _ => Ok(value),
        }
    }

    /// `instance.name`.
    pub(super) fn instance_attribute(
        &mut self,
        instance: &Rc<Instance>,
        name: &str,
        span: Span,
    ) -> Result<Option<Value>> {
        let receiver = Value::Instance(instance.clone());
        let in_class = self.class_attribute(&instance.class, name);
        if let Some(Value::Object(o)) = &in_class
            && let Some(d) = o.as_any().downcast_ref::<Descriptor>()
            && d.kind == DescriptorKind::Property
        {
            return self
                .bind_attribute(in_class.clone().unwrap_or(Value::None), &receiver, span)
                .map(Some);
        }
        if let Some(v) = &in_class
            && self.descriptor_method(v, "__set__").is_some()
            && self.descriptor_method(v, "__get__").is_some()
        {
            return self.bind_attribute(v.clone(), &receiver, span).map(Some);
        }
        if let Some(v) = instance.get(name) {
            return Ok(Some(v));
        }
        if let Some(v) = in_class {
            let is_cached = matches!(&v, Value::Object(o)
                if o.as_any().downcast_ref::<Descriptor>().is_some_and(|d| d.kind == DescriptorKind::CachedProperty));
            let value = self.bind_attribute(v, &receiver, span)?;
            if is_cached {
                instance.set(name, value.clone());
            }
            return Ok(Some(value));
        }
        if name == "__class__" {
            return Ok(Some(Value::Class(instance.class.clone())));
        }
        if name == "__dict__" {
            return Ok(Some(super::records::as_dict(instance)));
        }
        if let ClassKind::Enum { integer: true } = &*instance.class.kind.borrow()
            && let Some(value) = instance.get("value")
            && let Some(found) = super::methods::attribute(&value, name)
        {
            return Ok(Some(found));
        }
        if name == "value" && instance.class.is_named("StopIteration") {
            let args = instance
                .get("args")
                .and_then(|a| a.as_items())
                .unwrap_or_default();
            return Ok(Some(args.into_iter().next().unwrap_or(Value::None)));
        }
        if self.is_exception(&instance.class) && matches!(name, "__cause__" | "__context__" | "__traceback__")
        {
            return Ok(Some(Value::None));
        }
        if let ClassKind::NamedTuple(d) = &*instance.class.kind.borrow() {
            match name {
                "index" | "count" => {
                    let items = instance.fields.borrow().iter().map(|f| f.1.clone()).collect();
                    return Ok(super::methods::attribute(&Value::tuple(items), name));
                }
                "_asdict" => {
                    let all = super::records::as_dict(instance);
                    return Ok(Some(Value::builtin("_asdict", move |_, _, _| Ok(all.clone()))));
                }
                "_replace" => {
                    let (class, fields) = (instance.class.clone(), instance.fields.borrow().clone());
                    return Ok(Some(Value::builtin("_replace", move |_, args, _| {
                        let copy = Instance {
                            class: class.clone(),
                            fields: RefCell::new(fields.clone()),
                        };
                        for (k, v, _) in args.keyword {
                            copy.set(&k, v);
                        }
                        Ok(Value::Instance(Rc::new(copy)))
                    })));
                }
                "_fields" => return Ok(Some(super::records::field_names(d))),
                _ => {}
            }
        }
        if let Some(f) = self.class_attribute(&instance.class, "__getattr__") {
            return self
                .call_method(&f, &receiver, Args::positional([Value::str(name)], span), span)
                .map(Some);
        }
        Ok(None)
    }

    /// `target.name = value`.
    pub(super) fn set_attribute(
        &mut self,
        target: &Value,
        name: &str,
        value: Value,
        span: Span,
    ) -> Result<()> {
        match target {
            Value::Instance(i) => {
                if let Some(Value::Object(o)) = self.class_attribute(&i.class, name)
                    && let Some(d) = o.as_any().downcast_ref::<Descriptor>()
                    && d.kind == DescriptorKind::Property
                {
                    return match &d.setter {
                        Some(f) => {
                            self.call_method(&f.clone(), target, Args::positional([value], span), span)?;
                            Ok(())
                        }
                        None => self.raise(
                            "AttributeError",
                            span,
                            format!("property \"{name}\" has no setter"),
                        ),
                    };
                }
                if let Some(place) = self.class_attribute(&i.class, name)
                    && let Some(set) = self.descriptor_method(&place, "__set__")
                {
                    let args = Args::positional([target.clone(), value], span);
                    self.call_method(&set, &place, args, span)?;
                    return Ok(());
                }
                if let Some(f) = self.class_attribute(&i.class, "__setattr__") {
                    self.call_method(
                        &f,
                        target,
                        Args::positional([Value::str(name), value], span),
                        span,
                    )?;
                    return Ok(());
                }
                let frozen = i.class.data().is_some_and(|d| d.frozen);
                if frozen {
                    return self.raise(
                        "AttributeError",
                        span,
                        format!("{} is frozen: \"{name}\" cannot be assigned", i.class.name),
                    );
                }
                i.set(name, value);
                Ok(())
            }
            Value::Class(c) if c.span.is_some() => {
                set_class(&value, c);
                if c.dict.borrow_mut().insert(name.into(), value).is_none() {
                    c.order.borrow_mut().push(name.into());
                }
                Ok(())
            }
            Value::Function(f) => {
                f.set_attribute(name, value);
                Ok(())
            }
            Value::Kernel(_) => Ok(()),
            Value::Unavailable(why) => self.unavailable(why, span),
            other => self.raise(
                "AttributeError",
                span,
                format!("attributes of {} cannot be assigned", other.type_name()),
            ),
        }
    }

    /// Whether a class is an exception.
    pub(super) fn is_exception(&self, class: &Rc<Class>) -> bool {
        std::iter::once(class)
            .chain(&class.mro)
            .any(|c| &*c.name == "BaseException" && c.span == Span::NONE)
    }

    /// The instance of a builtin exception.
    pub(super) fn exception(&self, class: &str, message: &str) -> Value {
        self.exception_of(class, vec![Value::str(message)])
    }

    /// The instance of a builtin exception with these `args`.
    pub(super) fn exception_of(&self, class: &str, args: Vec<Value>) -> Value {
        let class = match self.session.caches.builtins.get(class) {
            Some(Value::Class(c)) => c,
            _ => Interpreter::builtin_class(class, &[]),
        };
        Value::Instance(Rc::new(Instance {
            class,
            fields: RefCell::new(vec![("args".into(), Value::tuple(args))]),
        }))
    }
}

/// A function bound to its first argument.
pub(super) fn method(receiver: Value, function: Value) -> Value {
    Value::Method(Rc::new(Method { receiver, function }))
}

/// Records in each function the class that it belongs to, for `super()`.
fn set_class(value: &Value, class: &Rc<Class>) {
    match value {
        Value::Function(f) => {
            f.class.borrow_mut().get_or_insert_with(|| class.clone());
        }
        Value::Object(o) => {
            if let Some(d) = o.as_any().downcast_ref::<Descriptor>() {
                set_class(&d.function, class);
                if let Some(s) = &d.setter {
                    set_class(s, class);
                }
            }
        }
        _ => {}
    }
}

/// The function with another way of running its body.
pub(super) fn with_mode(function: &Rc<Function>, mode: FunctionMode, scope: Rc<Scope>) -> Rc<Function> {
    Rc::new(Function {
        name: function.name.clone(),
        code: function.code.clone(),
        defaults: function.defaults.clone(),
        scope,
        mode,
        class: RefCell::new(function.class.borrow().clone()),
        attributes: function.attributes.clone(),
    })
}
