//! Comprehensions: lists, sets and dicts built by loops.

use std::rc::Rc;

use tirx_python::{self as ast};

use super::scope::ScopeKind;
use super::value::Value;
use super::{Interpreter, Scope, dict};
use crate::diagnostic::{Result, error};
use crate::source::Span;

impl Interpreter {
    pub(super) fn eval_comprehension(
        &mut self,
        generators: &[ast::Comprehension],
        elt: &ast::Expr,
        span: Span,
    ) -> Result<Vec<Value>> {
        let mut items = Vec::new();
        self.comprehend(generators, true, span, &mut |interp| {
            let value = match elt {
                ast::Expr::Starred(s) => interp.eval(&s.value)?,
                _ => interp.eval(elt)?,
            };
            items.push(value);
            if items.len() > super::limits::ITEMS {
                return interp.limit(span, "a comprehension made too many items");
            }
            Ok(())
        })?;
        Ok(items)
    }

    pub(super) fn eval_dict_comprehension(&mut self, e: &ast::ExprDictComp, span: Span) -> Result<Value> {
        let mut dict = dict::Dict::default();
        self.comprehend(&e.generators, true, span, &mut |interp| {
            let name = interp.eval(&e.key)?;
            let value = interp.eval(&e.value)?;
            let key = interp.key_of(&name, span)?;
            dict.insert(key, name, value);
            Ok(())
        })?;
        Ok(Value::Dict(Rc::new(std::cell::RefCell::new(dict))))
    }

    /// Runs `body` for each iteration of a comprehension's loops.
    pub(super) fn comprehend(
        &mut self,
        generators: &[ast::Comprehension],
        outermost: bool,
        span: Span,
        body: &mut dyn FnMut(&mut Interpreter) -> Result<()>,
    ) -> Result<()> {
        let Some((first, rest)) = generators.split_first() else {
            return body(self);
        };
        if first.is_async {
            return error(span, "\"async for\" is not supported in kernel files");
        }
        let source = self.eval_operand(&first.iter)?;
        let items = self.iterator(&source, self.span(&first.iter))?;
        // All iterations of all loops share one scope; the first iterable is evaluated in the enclosing one.
        let scope = match outermost {
            true => Scope::new(ScopeKind::Comprehension, Some(self.frame.scope.clone())),
            false => self.frame.scope.clone(),
        };
        let run = |interp: &mut Interpreter| -> Result<()> {
            while let Some(item) = interp.next_item(&items, span)? {
                interp.bind(&first.target, item)?;
                let mut take = true;
                for test in &first.ifs {
                    let value = interp.eval_operand(test)?;
                    if !interp.truth(&value, interp.span(test))? {
                        take = false;
                        break;
                    }
                }
                if take {
                    interp.comprehend(rest, false, span, body)?;
                }
            }
            Ok(())
        };
        self.in_scope(scope, |i| i.as_python(run))
    }
}
