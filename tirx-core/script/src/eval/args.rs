//! Arguments of a call, and how they are matched with the parameters of a builtin function.

use std::rc::Rc;
use std::sync::Arc;

use super::Value;
use super::suggest;
use crate::diagnostic::{Diagnostic, Result};
use crate::source::Span;

/// Arguments of a call, evaluated, with their places.
#[derive(Clone, Default)]
pub struct Args {
    /// By position.
    pub positional: Vec<(Value, Span)>,
    /// By name, in order of writing.
    pub keyword: Vec<(Rc<str>, Value, Span)>,
    /// The names of the call's result, where the call is the whole right side of an assignment in a kernel: `x = f()`
    /// gives `["x"]`, `bx, by = f()` gives `["bx", "by"]`, `with f() as x` and `for x in f()` likewise. Empty
    /// otherwise. New buffers and variables take their names from here.
    pub names: Vec<Arc<str>>,
    /// Whether the target is a tuple, `bx, = f()` included.
    pub names_are_tuple: bool,
}

/// A parameter of a builtin function.
#[derive(Clone, Copy, Debug)]
pub struct Param {
    /// Its name.
    pub name: &'static str,
    /// Whether it must be given.
    pub required: bool,
    /// Whether it may only be given by name.
    pub keyword_only: bool,
}

/// A parameter that must be given.
pub const fn required(name: &'static str) -> Param {
    Param {
        name,
        required: true,
        keyword_only: false,
    }
}

/// An optional parameter.
pub const fn optional(name: &'static str) -> Param {
    Param {
        name,
        required: false,
        keyword_only: false,
    }
}

/// An optional keyword-only parameter.
pub const fn keyword(name: &'static str) -> Param {
    Param {
        name,
        required: false,
        keyword_only: true,
    }
}

impl Args {
    /// Arguments by position only.
    pub fn positional(values: impl IntoIterator<Item = Value>, span: Span) -> Args {
        Args {
            positional: values.into_iter().map(|v| (v, span)).collect(),
            ..Args::default()
        }
    }

    /// The name for the created object, or `default`.
    pub fn name_or(&self, default: &str) -> Arc<str> {
        self.name_at(0, 1, default)
    }

    /// The name for object `index` of `count` created ones: from the tuple target, or `name_index` for a plain one.
    pub fn name_at(&self, index: usize, count: usize, default: &str) -> Arc<str> {
        if self.names_are_tuple || (count == 1 && self.names.len() == 1) {
            if let Some(name) = self.names.get(index) {
                return name.clone();
            }
        } else if let Some(name) = self.names.first() {
            return format!("{name}_{index}").into();
        }
        default.into()
    }

    /// Removes a keyword argument and gives it.
    pub fn take_keyword(&mut self, name: &str) -> Option<(Value, Span)> {
        let at = self.keyword.iter().position(|(n, ..)| &**n == name)?;
        let (_, value, span) = self.keyword.remove(at);
        Some((value, span))
    }

    /// The arguments in the order of `params`. `None` where one was left out (an explicit `None` is a value).
    ///
    /// # Errors
    /// Too many, unknown, doubled and missing arguments, each with the function's parameter list.
    pub fn bind(self, function: &str, params: &[Param], span: Span) -> Result<Vec<Option<(Value, Span)>>> {
        let signature = || {
            let mut list: Vec<String> = Vec::new();
            let mut star = false;
            for p in params {
                if p.keyword_only && !star {
                    list.push("*".into());
                    star = true;
                }
                list.push(if p.required {
                    p.name.to_string()
                } else {
                    format!("{}=…", p.name)
                });
            }
            format!("{function}({})", list.join(", "))
        };
        let fail = |span: Span, message: String| {
            Err(Box::new(
                Diagnostic::new(span, message).help(format!("the signature is {}", signature())),
            ))
        };
        let positions = params.iter().filter(|p| !p.keyword_only).count();
        if let Some((_, at)) = self.positional.get(positions) {
            let given = self.positional.len();
            return fail(
                *at,
                format!(
                    "{function}() takes {} but {given} were given",
                    count(positions, "positional argument")
                ),
            );
        }
        let mut bound: Vec<Option<(Value, Span)>> = self.positional.into_iter().map(Some).collect();
        bound.resize_with(params.len(), || None);
        for (name, value, at) in self.keyword {
            let Some(i) = params.iter().position(|p| p.name == &*name) else {
                let help = {
                    // A parameter that has its argument already takes no other one.
                    let open = params.iter().zip(&bound).filter(|(_, given)| given.is_none());
                    suggest(&name, open.map(|(p, _)| p.name))
                }
                .map(|s| format!("did you mean \"{s}\"? "))
                .unwrap_or_default();
                return Err(Box::new(
                    Diagnostic::new(at, format!("{function}() has no parameter \"{name}\""))
                        .help(format!("{help}the signature is {}", signature())),
                ));
            };
            if bound[i].is_some() {
                return fail(at, format!("{function}() got more than one value for \"{name}\""));
            }
            bound[i] = Some((value, at));
        }
        let missing: Vec<&str> = params
            .iter()
            .zip(&bound)
            .filter(|(p, b)| p.required && b.is_none())
            .map(|(p, _)| p.name)
            .collect();
        if !missing.is_empty() {
            return fail(span, format!("{function}() misses {}", quoted(&missing)));
        }
        Ok(bound)
    }

    /// Exactly `N` positional arguments called `names`.
    pub fn exactly<const N: usize>(
        self,
        function: &str,
        names: [&'static str; N],
        span: Span,
    ) -> Result<[(Value, Span); N]> {
        let params = names.map(required);
        let bound: Vec<(Value, Span)> = self
            .bind(function, &params, span)?
            .into_iter()
            .flatten()
            .collect();
        // `bind` gives one value for each required parameter.
        bound
            .try_into()
            .map_err(|_| Box::new(Diagnostic::new(span, format!("{function}() takes {N} arguments"))))
    }
}

/// `1 thing`, `2 things`.
pub fn count(n: usize, thing: &str) -> String {
    format!("{n} {thing}{}", if n == 1 { "" } else { "s" })
}

/// Names in quotes, joined for a sentence.
pub fn quoted(names: &[&str]) -> String {
    let quoted: Vec<String> = names.iter().map(|n| format!("\"{n}\"")).collect();
    quoted.join(", ")
}
