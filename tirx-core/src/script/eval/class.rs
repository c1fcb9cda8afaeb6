//! Classes: definition, inheritance, attributes, dataclasses, enums, exceptions.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

use ruff_python_ast as ast;
use ruff_text_size::Ranged;
use rustc_hash::FxHashMap;

use super::value::{
    Class, ClassKind, DataClass, Field, Function, FunctionMode, Instance, Method, Object, Value,
};
use super::{Args, Interpreter, Mode, Scope, ScopeKind, args, suggest};
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

/// `super()` within a method.
pub(super) struct Super {
    pub(super) class: Rc<Class>,
    pub(super) receiver: Value,
}

impl Object for Super {
    fn type_name(&self) -> &str {
        "super"
    }
    fn attribute(&self, interp: &mut Interpreter, name: &str, span: Span) -> Result<Option<Value>> {
        for base in &self.class.mro {
            let found = base.dict.borrow().get(name).cloned();
            if let Some(value) = found {
                return interp.bind_attribute(value, &self.receiver, span).map(Some);
            }
        }
        match name {
            "__init__" | "__init_subclass__" | "__post_init__" => {
                Ok(Some(Value::builtin(name, |_, _, _| Ok(Value::None))))
            }
            _ => Ok(None),
        }
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Interpreter {
    /// A class of Python itself.
    pub(super) fn builtin_class(name: &str, bases: &[&Rc<Class>]) -> Rc<Class> {
        let mut mro = Vec::new();
        for base in bases {
            mro.push((*base).clone());
            mro.extend(base.mro.iter().cloned());
        }
        Rc::new(Class {
            name: name.into(),
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
            if let Some(k) = arguments
                .keywords
                .iter()
                .find(|k| k.arg.as_ref().is_none_or(|a| a.as_str() != "metaclass"))
            {
                return error(self.span(k), "class keyword arguments are not supported");
            }
        }
        let mut mro: Vec<Rc<Class>> = Vec::new();
        for base in &bases {
            for class in std::iter::once(base).chain(&base.mro) {
                // The last place wins, so that a shared base comes after all that derive from it.
                mro.retain(|c| !Rc::ptr_eq(c, class));
                mro.push(class.clone());
            }
        }
        if mro.len() > 64 {
            return self.limit(span, "more than 64 base classes");
        }
        let mut fields: Vec<Field> = Vec::new();
        for class in mro.iter() {
            match &*class.kind.borrow() {
                ClassKind::Enum { integer } => kind = ClassKind::Enum { integer: *integer },
                ClassKind::NamedTuple(d) if class.span.is_some() => fields.extend(d.fields.iter().cloned()),
                ClassKind::NamedTuple(_) => {
                    kind = ClassKind::NamedTuple(Rc::new(DataClass {
                        fields: vec![],
                        frozen: true,
                    }))
                }
                _ => {}
            }
        }
        if !fields.is_empty() && matches!(kind, ClassKind::Plain) {
            kind = ClassKind::NamedTuple(Rc::new(DataClass {
                fields: vec![],
                frozen: true,
            }));
        }
        let scope = Scope::new(ScopeKind::Class, Some(self.scope.clone()));
        let saved_scope = std::mem::replace(&mut self.scope, scope.clone());
        let saved_mode = std::mem::replace(&mut self.mode, Mode::Meta);
        let saved_order = std::mem::take(&mut self.class_order);
        let result = self.exec_block(&def.body);
        let order = std::mem::replace(&mut self.class_order, saved_order);
        self.mode = saved_mode;
        self.scope = saved_scope;
        result?;
        let class = Rc::new(Class {
            name: def.name.as_str().into(),
            mro,
            dict: RefCell::default(),
            order: RefCell::default(),
            kind: RefCell::new(ClassKind::Plain),
            is_meta: Cell::new(false),
            span,
        });
        self.count_object(span)?;
        self.classes.push(Rc::downgrade(&class));
        class.is_meta.set(class.mro.iter().any(|c| c.is_meta.get()));
        let mut dict: FxHashMap<Rc<str>, Value> = FxHashMap::default();
        for (name, value) in scope.vars.borrow().iter() {
            set_class(value, &class);
            dict.insert(name.as_str().into(), value.clone());
        }
        let own: Vec<Rc<str>> = order
            .iter()
            .filter(|n| dict.contains_key(&***n))
            .cloned()
            .collect();
        *class.order.borrow_mut() = own;
        *class.dict.borrow_mut() = dict;
        if let ClassKind::NamedTuple(_) = kind {
            fields.extend(self.annotated_fields(def, &class)?);
            kind = ClassKind::NamedTuple(Rc::new(DataClass { fields, frozen: true }));
        }
        if let ClassKind::Enum { .. } = kind {
            self.make_enum_members(&class, &kind)?;
        }
        *class.kind.borrow_mut() = kind;
        Ok(class)
    }

    /// The `name: type = default` lines of a class body, in order.
    pub(super) fn annotated_fields(
        &mut self,
        def: &ast::StmtClassDef,
        class: &Rc<Class>,
    ) -> Result<Vec<Field>> {
        let mut fields = Vec::new();
        for stmt in &def.body {
            let ast::Stmt::AnnAssign(s) = stmt else { continue };
            let ast::Expr::Name(name) = &*s.target else {
                continue;
            };
            if let ast::Expr::Subscript(sub) = &*s.annotation
                && self.text_of(sub.value.range()).ends_with("ClassVar")
            {
                continue;
            }
            let default = class.dict.borrow().get(name.id.as_str()).cloned();
            let mut field = Field {
                name: name.id.as_str().into(),
                default,
                factory: None,
                init: true,
            };
            if let Some(Value::Object(o)) = &field.default
                && let Some(f) = o.as_any().downcast_ref::<FieldSpec>()
            {
                let spec = f.0.clone();
                field = Field {
                    name: field.name,
                    ..spec
                };
                match &field.default {
                    Some(v) => class.dict.borrow_mut().insert(field.name.clone(), v.clone()),
                    None => class.dict.borrow_mut().remove(&field.name),
                };
            }
            fields.push(field);
        }
        Ok(fields)
    }

    /// Makes a class a dataclass.
    pub(super) fn make_data_class(
        &mut self,
        class: &Rc<Class>,
        def: &ast::StmtClassDef,
        frozen: bool,
    ) -> Result<()> {
        let mut fields: Vec<Field> = Vec::new();
        for base in class.mro.iter().rev() {
            if let ClassKind::DataClass(d) = &*base.kind.borrow() {
                fields.extend(d.fields.iter().cloned());
            }
        }
        for field in self.annotated_fields(def, class)? {
            match fields.iter_mut().find(|f| f.name == field.name) {
                Some(f) => *f = field,
                None => fields.push(field),
            }
        }
        *class.kind.borrow_mut() = ClassKind::DataClass(Rc::new(DataClass { fields, frozen }));
        Ok(())
    }

    fn make_enum_members(&mut self, class: &Rc<Class>, kind: &ClassKind) -> Result<()> {
        let order = class.order.borrow().clone();
        let mut last = 0i128;
        let mut members: Vec<(Rc<str>, Value)> = Vec::new();
        *class.kind.borrow_mut() = kind.clone();
        for name in order {
            let value = class.dict.borrow().get(&name).cloned();
            let Some(value) = value else { continue };
            if name.starts_with('_')
                || matches!(value, Value::Function(_) | Value::Object(_) | Value::Class(_))
            {
                let is_auto = matches!(&value, Value::Object(o) if o.as_any().is::<Auto>());
                if !is_auto {
                    continue;
                }
            }
            let value = match &value {
                // The next bit.
                Value::Object(_) if super::flags::is_flag(class) => {
                    Value::Int(1 << (128 - last.max(0).leading_zeros()).min(120))
                }
                Value::Object(_) => Value::Int(last + 1),
                other => other.clone(),
            };
            if let Some(v) = value.as_int() {
                last = v;
            }
            let mut alias = None;
            for (_, m) in &members {
                if let Value::Instance(i) = m
                    && let Some(v) = i.get("value")
                    && self.equals(&v, &value, class.span)?
                {
                    alias = Some(m.clone());
                }
            }
            let member = alias.unwrap_or_else(|| {
                Value::Instance(Rc::new(Instance {
                    class: class.clone(),
                    fields: RefCell::new(vec![
                        ("name".into(), Value::Str(name.clone())),
                        ("value".into(), value),
                    ]),
                }))
            });
            members.push((name, member));
        }
        class.dict.borrow_mut().extend(members);
        Ok(())
    }

    /// The members of an enum, in order, without aliases.
    pub(super) fn enum_members(&self, class: &Rc<Class>) -> Vec<Value> {
        let order = class.order.borrow();
        let dict = class.dict.borrow();
        let members = order.iter().filter_map(|n| match dict.get(n) {
            Some(Value::Instance(i))
                if Rc::ptr_eq(&i.class, class) && i.get("name")?.as_str() == Some(&**n) =>
            {
                Some(Value::Instance(i.clone()))
            }
            _ => None,
        });
        members.collect()
    }

    /// `class(args)`.
    pub(super) fn construct(&mut self, class: &Rc<Class>, args: Args, span: Span) -> Result<Value> {
        let kind = class.kind.borrow().clone();
        match kind {
            ClassKind::Builtin if class.span == Span::NONE && !self.is_exception(class) => {
                return self.call_type(&class.name.clone(), args, span);
            }
            ClassKind::Enum { .. } => {
                let [(value, at)] = args.exactly(&class.name, ["value"], span)?;
                for member in self.enum_members(class) {
                    if let Value::Instance(i) = &member {
                        if let Value::Instance(j) = &value
                            && Rc::ptr_eq(i, j)
                        {
                            return Ok(member);
                        }
                        if let Some(v) = i.get("value")
                            && self.equals(&v, &value, at)?
                        {
                            return Ok(member);
                        }
                    }
                }
                let text = self.repr(&value, at)?;
                return self.raise("ValueError", at, format!("{text} is no value of {}", class.name));
            }
            _ => {}
        }
        let instance = Rc::new(Instance {
            class: class.clone(),
            fields: RefCell::default(),
        });
        let value = Value::Instance(instance.clone());
        if let Some(init) = self.class_attribute(class, "__init__") {
            self.call_method(&init, &value, args, span)?;
            return Ok(value);
        }
        if self.is_exception(class) {
            let items = args.positional.into_iter().map(|(v, _)| v).collect();
            instance.set("args", Value::tuple(items));
            return Ok(value);
        }
        if let ClassKind::DataClass(d) | ClassKind::NamedTuple(d) = &kind {
            self.fill_fields(&instance, d, args, span)?;
            if let Some(post) = self.class_attribute(class, "__post_init__") {
                self.call_method(&post, &value, Args::default(), span)?;
            }
            return Ok(value);
        }
        if let Some((_, at)) = args.positional.first() {
            return error(*at, format!("{}() takes no arguments", class.name));
        }
        if let Some((_, _, at)) = args.keyword.first() {
            return error(*at, format!("{}() takes no arguments", class.name));
        }
        Ok(value)
    }

    fn fill_fields(
        &mut self,
        instance: &Rc<Instance>,
        data: &DataClass,
        args: Args,
        span: Span,
    ) -> Result<()> {
        let name = instance.class.name.clone();
        let init: Vec<&Field> = data.fields.iter().filter(|f| f.init).collect();
        let mut bound: Vec<Option<Value>> = vec![None; init.len()];
        let given = args.positional.len();
        for (i, (value, at)) in args.positional.into_iter().enumerate() {
            match bound.get_mut(i) {
                Some(slot) => *slot = Some(value),
                None => {
                    return error(
                        at,
                        format!(
                            "{name}() takes {} but {given} were given",
                            args::count(init.len(), "argument")
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
                    if let Some(s) = suggest(&key, init.iter().map(|f| &*f.name)) {
                        d = d.help(format!("did you mean \"{s}\"?"));
                    }
                    return Err(Box::new(d));
                }
            }
        }
        let mut missing = Vec::new();
        let mut bound = bound.into_iter();
        for field in &data.fields {
            let given = if field.init { bound.next().flatten() } else { None };
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

    /// A name of a class or its bases.
    pub(super) fn class_attribute(&self, class: &Rc<Class>, name: &str) -> Option<Value> {
        std::iter::once(class)
            .chain(&class.mro)
            .find_map(|c| c.dict.borrow().get(name).cloned())
    }

    /// A class attribute seen through an object: functions become methods, properties are computed.
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
            let mut dict = super::Dict::default();
            for (k, v) in instance.fields.borrow().iter() {
                dict.insert(super::Key::Str(k.clone()), Value::Str(k.clone()), v.clone());
            }
            return Ok(Some(Value::Dict(Rc::new(RefCell::new(dict)))));
        }
        if let ClassKind::NamedTuple(d) = &*instance.class.kind.borrow() {
            match name {
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
                "_fields" => {
                    return Ok(Some(Value::tuple(
                        d.fields.iter().map(|f| Value::Str(f.name.clone())).collect(),
                    )));
                }
                _ => {}
            }
        }
        if let Some(f) = self.class_attribute(&instance.class, "__getattr__") {
            return self
                .call_method(&f, &receiver, Args::of([Value::str(name)], span), span)
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
                            self.call_method(&f.clone(), target, Args::of([value], span), span)?;
                            Ok(())
                        }
                        None => self.raise(
                            "AttributeError",
                            span,
                            format!("property \"{name}\" has no setter"),
                        ),
                    };
                }
                let frozen = matches!(&*i.class.kind.borrow(),
                    ClassKind::DataClass(d) | ClassKind::NamedTuple(d) if d.frozen);
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
            Value::Function(_) | Value::Kernel(_) => Ok(()),
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
        let class = match self.builtins.get(class) {
            Some(Value::Class(c)) => c,
            _ => Interpreter::builtin_class(class, &[]),
        };
        Value::Instance(Rc::new(Instance {
            class,
            fields: RefCell::new(vec![("args".into(), Value::tuple(vec![Value::str(message)]))]),
        }))
    }
}

/// `enum.auto()`.
pub(super) struct Auto;

impl Object for Auto {
    fn type_name(&self) -> &str {
        "auto"
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// `dataclasses.field(...)`.
pub(super) struct FieldSpec(pub(super) Field);

impl Object for FieldSpec {
    fn type_name(&self) -> &str {
        "dataclass field"
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// A function with its first argument.
pub(super) fn method(receiver: Value, function: Value) -> Value {
    Value::Method(Rc::new(Method { receiver, function }))
}

/// Tells functions the class they belong to, for `super()`.
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

/// The function with another mode of running.
pub(super) fn with_mode(function: &Rc<Function>, mode: FunctionMode, scope: Rc<Scope>) -> Rc<Function> {
    Rc::new(Function {
        name: function.name.clone(),
        code: function.code.clone(),
        defaults: function.defaults.clone(),
        scope,
        mode,
        class: RefCell::new(function.class.borrow().clone()),
    })
}
