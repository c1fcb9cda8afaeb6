//! The value of a name, and the error for a name that nothing defines.

use tirx_python::{self as ast};

use super::builtins::Builtins;
use super::scope::ScopeKind;
use super::value::Value;
use super::{Interpreter, Mode, suggest};
use crate::diagnostic::{Diagnostic, Result, error};
use crate::ir::{DType, ExprKind, Var};
use crate::lang;
use crate::source::Span;

/// Usual names of thread indices, and the functions that declare them.
const INDEX_NAMES: &[(&[&str], &str)] = &[
    (
        &["tx", "ty", "tz", "tid", "tid_x", "thread_id", "thread_idx"],
        "T.thread_id([128])",
    ),
    (
        &["bx", "by", "bz", "bid", "cta_id", "block_id", "block_idx", "pid"],
        "T.cta_id([1])",
    ),
    (&["laneid", "lane", "lane_id"], "T.lane_id([32])"),
    (&["warpid", "warp", "warp_id"], "T.warp_id([4])"),
    (
        &["wgid", "wg", "wg_id", "warpgroup", "warpgroup_id"],
        "T.warpgroup_id([1])",
    ),
    (&["tid_in_wg"], "T.thread_id_in_wg([128])"),
    (&["wid_in_wg"], "T.warp_id_in_wg([4])"),
    (&["cbx", "cby", "cbz", "cluster_id"], "T.cluster_id([1])"),
];

impl Interpreter {
    /// A name.
    pub(super) fn eval_name(&mut self, name: &ast::Name, span: Span) -> Result<Value> {
        match self.lookup(name, span)? {
            // `n = TypeVar("n")`: a variable of the shapes of parameters.
            Some(Value::Str(text))
                if *text == *name.as_str()
                    && (self.frame.match_names.is_some() || self.kernel.match_vars.contains_key(name)) =>
            {
                let var = match self.kernel.match_vars.get(name) {
                    Some(var) => var.clone(),
                    None => {
                        let dtypes = self.frame.match_names.as_ref();
                        let dtype = dtypes.and_then(|d| d.get(name).copied()).unwrap_or(DType::INT32);
                        let var = Var::at(name.as_str(), dtype, span);
                        self.kernel.known_vars.insert(var.clone());
                        self.kernel.match_vars.insert(name.clone(), var.clone());
                        var
                    }
                };
                Ok(Value::Expr(crate::ir::Expr::var(&var).at(span)))
            }
            Some(Value::Object(o))
                if o.type_name() == "layout axis"
                    && self.frame.mode == Mode::Kernel
                    && self.frame.layouts == 0
                    && self.frame.scope.lookup(name).is_none() =>
            {
                self.undeclared(name, span)
            }
            Some(Value::Expr(e)) if matches!(e.kind, ExprKind::Var(_) | ExprKind::BufferLoad { .. }) => {
                Ok(Value::Expr(e.at(span)))
            }
            Some(value) => Ok(value),
            None => {
                if let Some(dtypes) = &self.frame.match_names
                    && (self.frame.in_text || dtypes.contains_key(name))
                {
                    let dtype = dtypes.get(name).copied().unwrap_or(DType::INT32);
                    let var = Var::at(name.as_str(), dtype, span);
                    let value = Value::Expr(crate::ir::Expr::var(&var).at(span));
                    self.kernel.known_vars.insert(var.clone());
                    self.kernel.match_vars.insert(name.clone(), var);
                    self.frame.scope.set(name.clone(), value.clone());
                    return Ok(value);
                }
                self.unknown_name(name, span)
            }
        }
    }

    /// The value of a name: scopes, then Python's builtins, then the names every kernel file has.
    pub(super) fn lookup(&mut self, name: &ast::Name, span: Span) -> Result<Option<Value>> {
        let mut scope = &self.frame.scope;
        let mut first = true;
        loop {
            if (first || !matches!(scope.kind, ScopeKind::Class(_)))
                && let Some(v) = scope.vars.borrow().get(name)
            {
                return Ok(Some(v.clone()));
            }
            if let ScopeKind::Function(code) = &scope.kind
                && code.locals.contains(name)
            {
                return error(
                    span,
                    format!("local variable \"{name}\" is used before it has a value"),
                );
            }
            first = false;
            match &scope.parent {
                Some(parent) => scope = parent,
                None => break,
            }
        }
        if let ScopeKind::Library(module) = scope.kind {
            let scope = scope.clone();
            if let Some(value) = self.library_part(&scope, module, name)? {
                return Ok(Some(value));
            }
        }
        if name.starts_with("__")
            && let Some(v) = self.module_name(name)
        {
            return Ok(Some(v));
        }
        if let Some(v) = self.session.caches.builtins.get(name.as_str()) {
            return Ok(Some(v));
        }
        Ok(match name.as_str() {
            "T" | "I" | "Tx" => Some(Value::namespace(name)),
            // A comment is the import in printed IR of 0.27.
            "TypeVar" if self.is_printed() => super::modules::attribute("typing", name),
            host if super::modules::HOST_BUILTINS.contains(&host) => Some(super::modules::host_only(host)),
            // In the shape of a parameter every other name is a new variable.
            _ if self.frame.match_names.is_some() => None,
            other => lang::attribute("layout", other),
        })
    }

    /// The error for an undeclared name that is usually a thread index.
    fn undeclared<T>(&mut self, name: &str, span: Span) -> Result<T> {
        let d = Diagnostic::new(span, format!("\"{name}\" is not defined"));
        let d = match INDEX_NAMES.iter().find(|(names, _)| names.contains(&name)) {
            Some((_, declaration)) => d.help(format!(
                "declare it after T.device_entry(): `{name} = {declaration}`"
            )),
            None => d.help(format!(
                "\"{name}\" is an axis of layouts, as in `1 @ {name}`; elsewhere it needs a value"
            )),
        };
        Err(self.as_exception("NameError", Box::new(d)))
    }

    fn unknown_name<T>(&mut self, name: &str, span: Span) -> Result<T> {
        let indexed = INDEX_NAMES.iter().any(|(names, _)| names.contains(&name));
        let near = suggest(name, self.frame.scope.visible().iter().map(String::as_str)).is_some();
        let known = near || self.kernel.ended_names.contains_key(name) || self.frame.match_names.is_some();
        if indexed && self.frame.mode == Mode::Kernel && !known {
            return self.undeclared(name, span);
        }
        // Names defined in the file are suggested before those that every file has.
        let own = self.frame.scope.visible();
        let mut known = Vec::new();
        known.extend(Builtins::names().map(String::from));
        known.extend(["T", "I", "Tx"].map(String::from));
        known.extend(lang::names("layout"));
        let mut d = Diagnostic::new(span, format!("unknown name \"{name}\""));
        let shape = self.frame.match_names.is_some();
        if let Some(span) = self.kernel.ended_names.get(name) {
            d = d
                .note(
                    *span,
                    format!("\"{name}\" was assigned in a block that has ended"),
                )
                .help(format!(
                    "names of a block in a kernel end with it; declare it before, e.g. `{name}: T.float32`"
                ));
        } else if let Some(s) = suggest(name, own.iter().map(String::as_str)) {
            d = d.help(format!("did you mean \"{s}\"?"));
        } else if let Some(help) = lang::cuda_word(name) {
            d = d.help(help);
        } else if let Some(s) = suggest(name, known.iter().map(String::as_str)) {
            d = d.help(format!("did you mean \"{s}\"?"));
        } else if lang::is_offered("T", name) {
            d = d.help(format!("did you mean \"T.{name}\"?"));
        }
        if shape {
            d = d.help(format!(
                "an extent that the tensors have at run time is written \"{name}\", in quotes, or declared in the body: \
                 `{name} = T.int32()`"
            ));
        }
        Err(self.as_exception("NameError", Box::new(d)))
    }
}
