//! `import`: modules of the language and of Python, and other kernel files.

use std::rc::Rc;

use ruff_python_ast as ast;

use super::value::{Module, Value};
use super::{Interpreter, Mode, Raised, Scope, ScopeKind, modules, suggest};
use crate::diagnostic::{Diagnostic, Result, error};
use crate::source::Span;

impl Interpreter {
    /// `import a.b as c`.
    pub(super) fn import(&mut self, alias: &ast::Alias) -> Result<()> {
        let span = self.span(alias);
        let path = alias.name.as_str();
        let module = self.find_module(path, span)?;
        match &alias.asname {
            Some(name) => self.assign_name(&name.id, module),
            None => {
                // `import a.b` binds `a`.
                let first = path.split('.').next().unwrap_or(path);
                let value = match first == path {
                    true => module,
                    false => self
                        .find_module(first, span)
                        .or_else(|e| self.nest_module(path, module).ok_or(e))?,
                };
                self.assign_name(&first.into(), value);
            }
        }
        Ok(())
    }

    /// The packages around a module: `a` for `a.b`.
    fn nest_module(&mut self, path: &str, module: Value) -> Option<Value> {
        let mut value = module;
        let mut rest = path;
        while let Some((package, name)) = rest.rsplit_once('.') {
            let scope = Scope::new(ScopeKind::Module, None);
            scope.set(name, value);
            value = Value::Module(Rc::new(Module {
                name: package.into(),
                scope,
            }));
            rest = package;
        }
        self.raised = None;
        Some(value)
    }

    /// `from a import b as c`.
    pub(super) fn import_from(&mut self, s: &ast::StmtImportFrom) -> Result<()> {
        let base = s.module.as_ref().map(|m| m.to_string()).unwrap_or_default();
        for alias in &s.names {
            let span = self.span(alias);
            let name = alias.name.as_str();
            let bound = alias.asname.as_ref().unwrap_or(&alias.name);
            let full = if base.is_empty() {
                name.to_string()
            } else {
                format!("{base}.{name}")
            };
            if name == "*" {
                self.import_all(&base, span)?;
                continue;
            }
            let value = if self.is_file(&full) || base.is_empty() {
                self.find_module(&full, span)?
            } else {
                let module = self.find_module(&base, span)?;
                match (&module, modules::module(&full)) {
                    (Value::Unavailable(_), _) => modules::host_only(&full),
                    (Value::Namespace(_), Some(v)) if !matches!(v, Value::Unavailable(_)) => v,
                    _ => self.get_attribute(&module, name, span)?,
                }
            };
            self.assign_name(&bound.id, value);
        }
        Ok(())
    }

    fn import_all(&mut self, base: &str, span: Span) -> Result<()> {
        match self.find_module(base, span)? {
            Value::Module(m) => {
                let names: Vec<_> = m
                    .scope
                    .vars
                    .borrow()
                    .iter()
                    .map(|(k, v)| (k.clone(), v.clone()))
                    .collect();
                for (name, value) in names {
                    if !name.starts_with('_') {
                        self.assign_name(&name, value);
                    }
                }
                Ok(())
            }
            // The layout names are visible in every file.
            Value::Namespace(p) if &*p == "layout" => Ok(()),
            Value::Namespace(p) => {
                for name in modules::names(&p) {
                    if let Some(v) = self.find_attribute(&Value::Namespace(p.clone()), name, span)? {
                        self.assign_name(&name.into(), v);
                    }
                }
                Ok(())
            }
            _ => error(span, format!("\"from {base} import *\" is not supported")),
        }
    }

    /// Whether a path means a kernel file. The library's modules do not change their meaning because a kernel file
    /// has their name (`kernels/math.py`), and a file named as a host package may import that package.
    fn is_file(&self, path: &str) -> bool {
        self.files.contains_key(path)
            && match modules::module(path) {
                None => true,
                Some(Value::Unavailable(_)) => !self.loading.iter().any(|p| p == path),
                Some(_) => false,
            }
    }

    fn find_module(&mut self, path: &str, span: Span) -> Result<Value> {
        if self.is_file(path) {
            return self.load_file(path, span);
        }
        if let Some(v) = modules::module(path) {
            return Ok(v);
        }
        let exception = self.exception("ModuleNotFoundError", path);
        let message = format!("no kernel file or module \"{path}\"");
        self.raised = Some((message.clone(), Raised::Exception(exception)));
        let files: Vec<String> = self.files.keys().cloned().collect();
        let mut known: Vec<&str> = files.iter().map(String::as_str).collect();
        known.extend(modules::module_names().map(|n| -> &str { n }));
        let d = Diagnostic::new(span, message);
        let d = match suggest(path, known.iter().copied()) {
            Some(s) => d.help(format!("did you mean \"{s}\"?")),
            None => {
                let modules: Vec<&str> = modules::python_modules().collect();
                d.help(format!(
                    "kernel files import other kernel files of the project, tvm.script, and of Python {}",
                    modules.join(", ")
                ))
            }
        };
        Err(Box::new(d))
    }

    fn load_file(&mut self, path: &str, span: Span) -> Result<Value> {
        if let Some(m) = self.loaded.get(path) {
            return Ok(Value::Module(m.clone()));
        }
        if self.loading.iter().any(|p| p == path) {
            return error(span, format!("kernel file \"{path}\" imports itself"));
        }
        let Some(file) = self.files.get(path).cloned() else {
            return error(span, format!("no kernel file \"{path}\""));
        };
        if self.loading.len() > 32 {
            return self.limit(span, "more than 32 imports within imports");
        }
        self.loading.push(path.to_string());
        let scope = Scope::new(ScopeKind::Module, None);
        let saved_file = std::mem::replace(&mut self.file, file.file);
        let saved_scope = std::mem::replace(&mut self.scope, scope.clone());
        let saved_mode = std::mem::replace(&mut self.mode, Mode::Meta);
        let saved_loops = std::mem::take(&mut self.loops);
        self.modules.insert(file.file, file.module.clone());
        let result = self.run_module(&file.module.body);
        self.loops = saved_loops;
        self.mode = saved_mode;
        self.scope = saved_scope;
        self.file = saved_file;
        self.loading.pop();
        if let Err(e) = result {
            return Err(Box::new(e.note(span, format!("\"{path}\" is imported here"))));
        }
        let module = Rc::new(Module {
            name: path.into(),
            scope,
        });
        self.loaded.insert(path.to_string(), module.clone());
        Ok(Value::Module(module))
    }

    /// Runs the statements of a file. Those that need the host (torch, `tvm.compile`) are skipped: the names they
    /// assign are unavailable.
    pub(crate) fn run_module(&mut self, body: &[ast::Stmt]) -> Result<()> {
        for stmt in body {
            match self.exec(stmt) {
                Ok(_) => {}
                Err(e) => match self.raised.take() {
                    Some((message, Raised::Unavailable)) if message == e.message && !self.fatal => {
                        self.skip(stmt, &message);
                    }
                    other => {
                        self.raised = other;
                        return Err(e);
                    }
                },
            }
        }
        Ok(())
    }

    fn skip(&mut self, stmt: &ast::Stmt, why: &str) {
        let mut targets: Vec<&ast::Expr> = match stmt {
            ast::Stmt::Assign(s) => s.targets.iter().collect(),
            ast::Stmt::AnnAssign(s) => vec![&s.target],
            ast::Stmt::With(s) => s
                .items
                .iter()
                .filter_map(|i| i.optional_vars.as_deref())
                .collect(),
            ast::Stmt::For(s) => vec![&s.target],
            _ => Vec::new(),
        };
        let reason = |name: &str| {
            format!("\"{name}\" comes from the host program and has no value in a kernel file ({why})")
        };
        while let Some(target) = targets.pop() {
            match target {
                ast::Expr::Name(n) => {
                    self.scope
                        .set(n.id.clone(), Value::Unavailable(reason(&n.id).into()));
                }
                ast::Expr::Tuple(t) => targets.extend(&t.elts),
                ast::Expr::List(t) => targets.extend(&t.elts),
                ast::Expr::Starred(s) => targets.push(&s.value),
                _ => {}
            }
        }
        if let ast::Stmt::ClassDef(s) = stmt {
            self.scope
                .set(s.name.id.clone(), Value::Unavailable(reason(&s.name.id).into()));
        }
        if let ast::Stmt::FunctionDef(s) = stmt {
            self.scope
                .set(s.name.id.clone(), Value::Unavailable(reason(&s.name.id).into()));
        }
    }
}
