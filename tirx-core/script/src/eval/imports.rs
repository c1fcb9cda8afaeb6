//! `import`: modules of the language and of Python, and other kernel files.
//!
//! Names of the host program (`torch`) become host values, [`Value::Unavailable`]: an import of one is right, a use of it is an error.

use std::rc::Rc;

use tirx_python as ast;

use super::value::{Module, Value};
use super::{Interpreter, Scope, ScopeKind, modules, suggest};
use crate::diagnostic::{Diagnostic, Result, error};
use crate::parse::{resolve_relative, with_packages};
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
                let value = match (first == path, &module) {
                    (true, _) => module,
                    // A package of kernel files may be a folder without a file of its own.
                    (false, Value::Module(_)) if !self.is_file(first) => self.nest_module(path, module),
                    (false, _) => self.find_module(first, span)?,
                };
                self.assign_name(&first.into(), value);
            }
        }
        Ok(())
    }

    /// The packages around a module: `a` for `a.b`.
    fn nest_module(&self, path: &str, module: Value) -> Value {
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
        value
    }

    /// The module whose names `from … import` takes.
    fn base_of(&self, s: &ast::StmtImportFrom) -> Result<String> {
        let name = s.module.as_ref().map_or("", |m| m.as_str());
        let package = self
            .session
            .packages
            .get(&self.frame.file)
            .map_or("", String::as_str);
        if let Some(base) = resolve_relative(package, s.level, name) {
            return Ok(base);
        }
        let written = format!("{}{name}", ".".repeat(s.level as usize));
        let message = format!("\"from {written} import\" leaves the outermost package");
        let help = match package {
            "" => "a file belongs to a package if its folder has an __init__.py; \"..\" is the folder around it, if \
                   that folder has an __init__.py, too"
                .to_string(),
            _ => format!("the file belongs to the package \"{package}\": the folder around the outermost one has no __init__.py"),
        };
        Err(Box::new(Diagnostic::new(self.span(s), message).help(help)))
    }

    /// `from a import b as c`.
    pub(super) fn import_from(&mut self, s: &ast::StmtImportFrom) -> Result<()> {
        let base = self.base_of(s)?;
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
            // A kernel file of this name is meant before a name in the package.
            let value = if self.is_file(&full) || base.is_empty() {
                self.find_module(&full, span)?
            } else {
                let module = self.find_module(&base, span)?;
                match (&module, modules::module(&full)) {
                    (Value::Unavailable(why), _) => self.host_attribute(why, name)?,
                    // Every unknown path below `tvm` is a host value here; the name may still be one of the namespace.
                    (Value::Namespace(_), Some(v)) if !matches!(v, Value::Unavailable(_)) => v,
                    // Names of a Python module that are not supported here count as host values.
                    (Value::Namespace(path), _) if modules::is_python(path) => {
                        match self.find_attribute(&module, name, span)? {
                            Some(value) => value,
                            None => modules::host_only(&full),
                        }
                    }
                    (Value::Module(m), _)
                        if self.session.loading.iter().any(|p| *p == *m.name)
                            && m.scope.get_own(name).is_none() =>
                    {
                        let message =
                            format!("cannot import \"{name}\" from \"{base}\", which is still running");
                        return Err(Box::new(Diagnostic::new(span, message).help(format!(
                            "\"{base}\" imports this file before it defines \"{name}\": import the module and use its name later, or move \"{name}\" to a third file"
                        ))));
                    }
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
            // `S`, `TileLayout` and the axes are visible in every file; the functions are not.
            Value::Namespace(p) if &*p == "layout" => {
                for name in super::library::names("layout") {
                    if let Some(v) = self.library_name("layout", name)? {
                        self.assign_name(&name.into(), v);
                    }
                }
                Ok(())
            }
            Value::Namespace(p) => {
                for name in modules::names(&p) {
                    if let Some(v) = self.find_attribute(&Value::Namespace(p.clone()), name, span)? {
                        self.assign_name(&name.into(), v);
                    }
                }
                Ok(())
            }
            Value::Unavailable(_) => Ok(()),
            _ => error(span, format!("\"from {base} import *\" is not supported")),
        }
    }

    /// Whether a path denotes a kernel file. A module of the library keeps its meaning even if a kernel file has its
    /// name (`kernels/math.py`), and a file named like a host package may import that package.
    fn is_file(&self, path: &str) -> bool {
        self.session.files.contains_key(path)
            && match modules::module(path) {
                None => true,
                Some(Value::Unavailable(_)) => !self.session.loading.iter().any(|p| p == path),
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
        // Kernel files stand beside host code, whose packages are not available here: a missing one is reported when it
        // is used.
        let files: Vec<String> = self.session.files.keys().cloned().collect();
        let known = files
            .iter()
            .map(String::as_str)
            .chain(modules::module_names().map(|n| -> &str { n }));
        let near = suggest(path, known).map(|near| near.to_string());
        Ok(modules::not_found(path, near.as_deref()))
    }

    /// The module of a kernel file, which runs at the first import, after the packages around it. A module that imports
    /// itself through others sees the names that it has so far, as in Python.
    fn load_file(&mut self, path: &str, span: Span) -> Result<Value> {
        let mut module = None;
        let paths: Vec<String> = with_packages(path).collect();
        for path in &paths {
            if !self.is_file(path) {
                continue;
            }
            let is_new = !self.session.loaded.contains_key(path);
            let loaded = self.load_one(path, span)?;
            // A module becomes an attribute of its package when it is first imported; the package may use the name for something else
            // afterwards.
            if is_new
                && let Some((package, name)) = path.rsplit_once('.')
                && let Some(package) = self.session.loaded.get(package)
            {
                package.scope.set(name, Value::Module(loaded.clone()));
            }
            module = Some(loaded);
        }
        match module {
            Some(module) => Ok(Value::Module(module)),
            None => error(span, format!("no kernel file \"{path}\"")),
        }
    }

    fn load_one(&mut self, path: &str, span: Span) -> Result<Rc<Module>> {
        if let Some(m) = self.session.loaded.get(path) {
            return Ok(m.clone());
        }
        let Some(file) = self.session.files.get(path).cloned() else {
            return error(span, format!("no kernel file \"{path}\""));
        };
        if self.session.loading.len() > 32 {
            return self.limit(span, "more than 32 imports within imports");
        }
        let scope = Scope::new(ScopeKind::Module, None);
        let module = Rc::new(Module {
            name: path.into(),
            scope: scope.clone(),
        });
        self.session.loading.push(path.to_string());
        self.session.loaded.insert(path.to_string(), module.clone());
        self.session.modules.insert(file.file, file.module.clone());
        self.session.packages.insert(file.file, file.package.clone());
        let frame = self.frame.of_file(file.file, scope);
        let result = self.enter(frame, |i| i.run_module(&file.module.body));
        self.session.loading.pop();
        if let Err(e) = result {
            self.session.loaded.remove(path);
            return Err(Box::new(e.note(span, format!("\"{path}\" is imported here"))));
        }
        Ok(module)
    }

    /// Runs the statements of a file.
    pub(crate) fn run_module(&mut self, body: &[ast::Stmt]) -> Result<()> {
        body.iter().try_for_each(|stmt| self.exec(stmt).map(|_| ()))
    }
}
