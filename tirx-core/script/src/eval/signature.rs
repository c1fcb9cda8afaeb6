//! `inspect.signature`: the parameters of a function, for decorators that read them.

use std::cell::RefCell;
use std::rc::Rc;

use super::frame::EvalFrame;
use super::value::{Function, ParameterKind, Value};
use super::{Args, Dict, Interpreter, Key};
use crate::diagnostic::{Result, error};
use crate::source::Span;

/// `inspect.signature(function)`.
pub(super) fn signature(interp: &mut Interpreter, args: Args, span: Span) -> Result<Value> {
    let [(function, at)] = args.exactly("inspect.signature", ["obj"], span)?;
    let (function, skipped) = match &function {
        Value::Method(method) => (&method.function, 1),
        other => (other, 0),
    };
    let Value::Function(function) = function else {
        let message = format!(
            "inspect.signature() needs a function, found {}",
            function.type_name()
        );
        return interp.raise("TypeError", at, message);
    };
    let described = interp.parameters_of(function, at)?.split_off(skipped);
    let Some(make) = interp.library_name("inspect", "signature_of")? else {
        return error(span, "the library has no inspect.signature");
    };
    interp.call_value(&make, Args::positional([Value::list(described)], span), span)
}

const ANNOTATIONS: &str = "__annotations__";

impl Interpreter {
    /// `function.__annotations__`: what has been assigned to it, else a dict of what the text says, which is the function's from
    /// then on.
    pub(super) fn annotations_of(&mut self, function: &Rc<Function>) -> Result<Value> {
        if let Some(assigned) = function.attribute(ANNOTATIONS) {
            return Ok(assigned);
        }
        let code = function.code.clone();
        let mut dict = Dict::default();
        if let Some(def) = code.body.def() {
            let names = code.parameters.iter().map(|parameter| parameter.name.as_str());
            let notes = names.zip(super::code::annotations(&def.parameters));
            let notes = notes.chain([("return", def.returns.as_deref())]);
            for (name, note) in notes {
                if let Some(note) = note {
                    let value = self.in_function(function, |interp| interp.eval(note))?;
                    dict.insert(Key::Str(name.into()), Value::str(name), value);
                }
            }
        }
        let dict = Value::Dict(Rc::new(RefCell::new(dict)));
        function.set_attribute(ANNOTATIONS, dict.clone());
        Ok(dict)
    }

    /// Evaluates where a function was defined.
    fn in_function<R>(&mut self, function: &Rc<Function>, evaluate: impl FnOnce(&mut Interpreter) -> R) -> R {
        let frame = EvalFrame {
            file: function.code.file,
            scope: self.captured_scope(function),
            ..self.frame.clone()
        };
        self.enter(frame, evaluate)
    }

    /// Each parameter's name, kind, default value and annotation; these two are lists of one item or none.
    fn parameters_of(&mut self, function: &Rc<Function>, span: Span) -> Result<Vec<Value>> {
        let Value::Dict(notes) = self.annotations_of(function)? else {
            return self.raise("TypeError", span, "__annotations__ must be a dict");
        };
        let described = function.code.parameters.iter().enumerate().map(|(i, parameter)| {
            let kind = match parameter.kind {
                ParameterKind::PositionalOnly => 0,
                ParameterKind::Positional => 1,
                ParameterKind::VarPositional => 2,
                ParameterKind::KeywordOnly => 3,
                ParameterKind::VarKeyword => 4,
            };
            let default = function.defaults.iter().find(|(at, _)| *at == i);
            let annotation = notes
                .borrow()
                .get(&Key::Str(parameter.name.as_str().into()))
                .cloned();
            Value::tuple(vec![
                Value::str(parameter.name.as_str()),
                Value::Int(kind),
                Value::list(default.map(|(_, value)| value.clone()).into_iter().collect()),
                Value::list(annotation.into_iter().collect()),
            ])
        });
        Ok(described.collect())
    }
}
