//! `inspect.signature`: the parameters of a function, for decorators that read them.

use std::rc::Rc;

use super::value::{Function, ParameterKind, Value};
use super::{Args, Interpreter};
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
    let described = interp.parameters_of(function)?.split_off(skipped);
    let Some(make) = interp.library_name("inspect", "signature_of")? else {
        return error(span, "the library has no inspect.signature");
    };
    interp.call_value(&make, Args::of([Value::list(described)], span), span)
}

impl Interpreter {
    /// Each parameter's name, kind, default value and annotation; these two are lists of one item or none.
    fn parameters_of(&mut self, function: &Rc<Function>) -> Result<Vec<Value>> {
        let code = function.code.clone();
        let notes = match code.body.def() {
            Some(def) => super::code::annotations(&def.parameters),
            None => Vec::new(),
        };
        let scope = self.captured_scope(function);
        let saved_scope = std::mem::replace(&mut self.scope, scope);
        let saved_file = std::mem::replace(&mut self.file, code.file);
        let described = code.parameters.iter().enumerate().map(|(i, parameter)| {
            let kind = match parameter.kind {
                ParameterKind::PositionalOnly => 0,
                ParameterKind::Positional => 1,
                ParameterKind::VarPositional => 2,
                ParameterKind::KeywordOnly => 3,
                ParameterKind::VarKeyword => 4,
            };
            let default = function.defaults.iter().find(|(at, _)| *at == i);
            let note = notes.get(i).copied().flatten();
            let annotation = note.map(|note| self.eval(note)).transpose()?;
            Ok(Value::tuple(vec![
                Value::str(parameter.name.as_str()),
                Value::Int(kind),
                Value::list(default.map(|(_, value)| value.clone()).into_iter().collect()),
                Value::list(annotation.into_iter().collect()),
            ]))
        });
        let described = described.collect();
        self.scope = saved_scope;
        self.file = saved_file;
        described
    }
}
