//! `dataclasses` and named tuples.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

use tirx_python as ast;
use tirx_python::Ranged;

use super::value::{Class, ClassKind, DataClass, Field, Instance, Object, Value};
use super::{Args, Interpreter, keyword, required};
use crate::diagnostic::{Result, error};
use crate::source::Span;

/// The arguments of `@dataclass(…)`.
#[derive(Clone, Copy)]
pub(super) struct Options {
    frozen: bool,
    eq: bool,
    order: bool,
    repr: bool,
    init: bool,
    keyword_only: bool,
}

impl Interpreter {
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
            let mut field = Field::new(name.id.as_str(), default);
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
        options: Options,
    ) -> Result<()> {
        let mut fields: Vec<Field> = Vec::new();
        for base in class.mro.iter().rev() {
            if let ClassKind::DataClass(d) = &*base.kind.borrow() {
                fields.extend(d.fields.iter().cloned());
            }
        }
        for mut field in self.annotated_fields(def, class)? {
            field.keyword_only |= options.keyword_only;
            match fields.iter_mut().find(|f| f.name == field.name) {
                Some(f) => *f = field,
                None => fields.push(field),
            }
        }
        if !options.init && !class.dict.borrow().contains_key("__init__") {
            let nothing = Value::builtin("__init__", |_, _, _| Ok(Value::None));
            class.dict.borrow_mut().insert("__init__".into(), nothing);
        }
        *class.kind.borrow_mut() = ClassKind::DataClass(Rc::new(DataClass {
            fields,
            frozen: options.frozen,
            eq: options.eq,
            order: options.order,
            repr: options.repr,
        }));
        Ok(())
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

/// `dataclasses.name`.
pub(super) fn dataclasses(name: &str) -> Option<Value> {
    Some(match name {
        "dataclass" => Value::builtin("dataclasses.dataclass", |interp, mut args, span| {
            let mut options = Options {
                frozen: false,
                eq: true,
                order: false,
                repr: true,
                init: true,
                keyword_only: false,
            };
            for (name, value, at) in std::mem::take(&mut args.keyword) {
                let on = interp.truth(&value, at)?;
                match &*name {
                    "frozen" => options.frozen = on,
                    "eq" => options.eq = on,
                    "order" => options.order = on,
                    "repr" => options.repr = on,
                    "init" => options.init = on,
                    "kw_only" => options.keyword_only = on,
                    _ => {}
                }
            }
            let apply = move |interp: &mut Interpreter, value: &Value, span: Span| {
                let (Value::Class(class), Some(def)) = (value, interp.frame.class_def.clone()) else {
                    return error(span, "dataclass decorates a class");
                };
                interp.make_data_class(class, &def, options)?;
                Ok(value.clone())
            };
            match args.positional.first() {
                Some((value, at)) => apply(interp, value, *at),
                None => Ok(Value::builtin(
                    "dataclasses.dataclass",
                    move |interp, args, span| {
                        let [(value, _)] = args.exactly("dataclass", ["class"], span)?;
                        apply(interp, &value, span)
                    },
                )),
            }
            .map_err(|e| Box::new(e.or_span(span)))
        }),
        "field" => Value::builtin("dataclasses.field", |interp, args, span| {
            let params = [
                keyword("default"),
                keyword("default_factory"),
                keyword("init"),
                keyword("repr"),
                keyword("compare"),
                keyword("hash"),
                keyword("kw_only"),
                keyword("metadata"),
            ];
            let bound = args.bind("dataclasses.field", &params, span)?;
            let mut on = |i: usize, default: bool| match &bound[i] {
                Some((v, at)) => interp.truth(v, *at),
                None => Ok(default),
            };
            Ok(Value::Object(Rc::new(FieldSpec(Field {
                name: "".into(),
                default: bound[0].as_ref().map(|v| v.0.clone()),
                factory: bound[1].as_ref().map(|v| v.0.clone()),
                init: on(2, true)?,
                repr: on(3, true)?,
                compare: on(4, true)?,
                keyword_only: on(6, false)?,
            }))))
        }),
        "replace" => Value::builtin("dataclasses.replace", |interp, mut args, span| {
            if args.positional.len() != 1 {
                return error(span, "dataclasses.replace() takes one object");
            }
            let (object, at) = args.positional.remove(0);
            let Value::Instance(i) = &object else {
                return error(at, "dataclasses.replace() needs a dataclass");
            };
            // Attributes that are not fields are computed again by `__post_init__`.
            let Some(data) = dataclass_of(&object) else {
                return error(at, "dataclasses.replace() needs a dataclass");
            };
            for (name, value) in i.fields.borrow().iter() {
                if !data.fields.iter().any(|f| f.name == *name && f.init) {
                    continue;
                }
                if !args.keyword.iter().any(|(n, ..)| n == name) {
                    args.keyword.push((name.clone(), value.clone(), at));
                }
            }
            interp.construct(&i.class, args, span)
        }),
        "asdict" => Value::builtin("dataclasses.asdict", |interp, args, span| {
            let [(object, at)] = args.exactly("dataclasses.asdict", ["object"], span)?;
            match dataclass_of(&object) {
                Some(_) => plain(interp, &object, true, at),
                None => interp.raise("TypeError", at, "dataclasses.asdict() needs a dataclass"),
            }
        }),
        "astuple" => Value::builtin("dataclasses.astuple", |interp, args, span| {
            let [(object, at)] = args.exactly("dataclasses.astuple", ["object"], span)?;
            match dataclass_of(&object) {
                Some(_) => plain(interp, &object, false, at),
                None => interp.raise("TypeError", at, "dataclasses.astuple() needs a dataclass"),
            }
        }),
        "is_dataclass" => Value::builtin("dataclasses.is_dataclass", |_, args, span| {
            let [(object, _)] = args.exactly("dataclasses.is_dataclass", ["object"], span)?;
            let is = match &object {
                Value::Class(c) => c.data().is_some() && !c.is_named_tuple(),
                other => dataclass_of(other).is_some(),
            };
            Ok(Value::Bool(is))
        }),
        "fields" => Value::builtin("dataclasses.fields", |_, args, span| {
            let [(object, at)] = args.exactly("dataclasses.fields", ["class"], span)?;
            let class = match &object {
                Value::Class(c) => c.clone(),
                Value::Instance(i) => i.class.clone(),
                _ => return error(at, "dataclasses.fields() needs a dataclass"),
            };
            let Some(d) = class.data().filter(|_| !class.is_named_tuple()) else {
                return error(at, "dataclasses.fields() needs a dataclass");
            };
            let names = d.fields.iter().map(|f| {
                Value::Instance(Rc::new(super::value::Instance {
                    class: Interpreter::builtin_class("Field", &[]),
                    fields: RefCell::new(vec![
                        ("name".into(), Value::Str(f.name.clone())),
                        ("default".into(), f.default.clone().unwrap_or(Value::None)),
                        ("init".into(), Value::Bool(f.init)),
                        ("repr".into(), Value::Bool(f.repr)),
                        ("compare".into(), Value::Bool(f.compare)),
                    ]),
                }))
            });
            Ok(Value::tuple(names.collect()))
        }),
        _ => return None,
    })
}

/// `collections.namedtuple`.
pub(super) fn namedtuple(interp: &mut Interpreter, args: Args, span: Span) -> Result<Value> {
    let params = [required("typename"), required("field_names"), keyword("defaults")];
    let bound = args.bind("collections.namedtuple", &params, span)?;
    let (Some((Value::Str(name), _)), Some((fields, at))) = (&bound[0], &bound[1]) else {
        return error(span, "a named tuple's name is a str");
    };
    let names: Vec<String> = match fields {
        Value::Str(s) => s.replace(',', " ").split_whitespace().map(String::from).collect(),
        other => {
            let items = interp.iterate(other, *at)?;
            items
                .iter()
                .filter_map(|v| v.as_str().map(String::from))
                .collect()
        }
    };
    let defaults = match &bound[2] {
        Some((v, at)) => interp.iterate(v, *at)?,
        None => Vec::new(),
    };
    let without = names.len().saturating_sub(defaults.len());
    let fields = names.iter().enumerate().map(|(i, n)| {
        let default = i.checked_sub(without).and_then(|j| defaults.get(j).cloned());
        Field::new(n.as_str(), default)
    });
    let data = DataClass::tuple(fields.collect());
    Ok(Value::Class(Rc::new(Class {
        bases: Vec::new(),
        name: name.clone(),
        mro: Vec::new(),
        dict: RefCell::default(),
        order: RefCell::default(),
        kind: RefCell::new(ClassKind::NamedTuple(Rc::new(data))),
        is_meta: Cell::new(false),
        span,
    })))
}

/// The attributes of an object as a dict.
pub(super) fn as_dict(instance: &Instance) -> Value {
    let mut dict = super::Dict::default();
    for (k, v) in instance.fields.borrow().iter() {
        dict.insert(super::Key::Str(k.clone()), Value::Str(k.clone()), v.clone());
    }
    Value::Dict(Rc::new(RefCell::new(dict)))
}

/// `_fields`.
pub(super) fn field_names(data: &DataClass) -> Value {
    Value::tuple(data.fields.iter().map(|f| Value::Str(f.name.clone())).collect())
}

/// The fields of an object of a dataclass.
fn dataclass_of(value: &Value) -> Option<Rc<DataClass>> {
    match value {
        Value::Instance(i) if !i.class.is_named_tuple() => i.class.data(),
        _ => None,
    }
}

/// A value with the dataclasses in it as dicts, or as tuples.
fn plain(interp: &mut Interpreter, value: &Value, as_dicts: bool, span: Span) -> Result<Value> {
    let mut each = |items: Vec<Value>| -> Result<Vec<Value>> {
        let item = |v: &Value| interp.nested(span, |i| plain(i, v, as_dicts, span));
        items.iter().map(item).collect()
    };
    Ok(match value {
        Value::List(items) => Value::list(each(items.borrow().clone())?),
        Value::Tuple(items) => Value::tuple(each(items.to_vec())?),
        Value::Dict(d) => {
            let (keys, values): (Vec<Value>, Vec<Value>) =
                d.borrow().iter().map(|(k, v)| (k.clone(), v.clone())).unzip();
            let values = each(values)?;
            let mut dict = super::Dict::default();
            for (k, v) in keys.into_iter().zip(values) {
                dict.insert(interp.key_of(&k, span)?, k, v);
            }
            Value::Dict(Rc::new(RefCell::new(dict)))
        }
        Value::Instance(i) => match dataclass_of(value) {
            Some(data) => {
                let of = |f: &Field| Some((f.name.clone(), i.get(&f.name)?));
                let (names, values): (Vec<Rc<str>>, Vec<Value>) = data.fields.iter().filter_map(of).unzip();
                let values = each(values)?;
                if !as_dicts {
                    return Ok(Value::tuple(values));
                }
                let mut dict = super::Dict::default();
                for (name, v) in names.into_iter().zip(values) {
                    dict.insert(super::Key::Str(name.clone()), Value::Str(name), v);
                }
                Value::Dict(Rc::new(RefCell::new(dict)))
            }
            None => value.clone(),
        },
        other => other.clone(),
    })
}
