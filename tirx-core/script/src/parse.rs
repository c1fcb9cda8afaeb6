//! Python text to a syntax tree, on a stack that holds it, and its errors to diagnostics.

use std::sync::Arc;

use tirx_python as ast;
use tirx_python::TextRange;

use super::eval::limits;
use super::release::{Evidence, Release};
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::ir::with_stack;
use crate::source::{FileId, Span};

/// A parsed kernel file.
#[derive(Clone)]
pub struct ParsedFile {
    /// Whether its tree is so deep that parsing and freeing it take a larger stack.
    is_deep: bool,
    /// Which file.
    pub(crate) file: FileId,
    /// Its statements.
    pub module: Arc<ast::ModModule>,
    /// The package that its relative imports start from: `a.b` in `a/b/c.py` and in `a/b/__init__.py`.
    pub(crate) package: String,
    /// What it says about the release of TVM that it is written for.
    pub(crate) evidence: Arc<Evidence>,
}

impl Drop for ParsedFile {
    /// Frees a deep tree without recursion.
    fn drop(&mut self) {
        if self.is_deep
            && let Some(module) = Arc::get_mut(&mut self.module)
        {
            ast::free(module);
        }
    }
}

/// The module that `from ..name import x` means in a file of `package`: each dot after the first leaves one package.
/// `None` where there are more dots than packages.
pub(super) fn resolve_relative(package: &str, level: u32, name: &str) -> Option<String> {
    let mut base = package;
    for _ in 1..level.max(1) {
        if base.is_empty() {
            return None;
        }
        base = base.rsplit_once('.').map_or("", |(outer, _)| outer);
    }
    // Whatever is above the outermost package belongs to no package.
    if level > 1 && base.is_empty() {
        return None;
    }
    let parts: Vec<&str> = [if level == 0 { "" } else { base }, name]
        .into_iter()
        .filter(|part| !part.is_empty())
        .collect();
    Some(parts.join("."))
}

/// The id of the first library file; files from here on are not the user's.
pub(super) const LIBRARY_FILE: FileId = FileId(u32::MAX - 0xffff);

/// The span of a node; none in files that no user wrote.
pub(super) fn span_of(file: FileId, range: TextRange) -> Span {
    if file >= LIBRARY_FILE {
        return Span::NONE;
    }
    Span::new(file, range.start().to_u32(), range.end().to_u32())
}

/// Parses a file.
///
/// # Errors
/// Syntax errors (the first of each statement), and texts beyond the limits.
pub fn parse_file(file: FileId, text: &str) -> Result<ParsedFile, Diagnostics> {
    if text.len() > limits::SOURCE_BYTES {
        let message = format!("the file is larger than {} bytes", limits::SOURCE_BYTES);
        return Err(Diagnostic::new(Span::new(file, 0, 1), message).into());
    }
    match ast::parse_module(text, ast::Limits::STACK) {
        Ok(module) => Ok(with_evidence(file, text, module, false)),
        Err(errors) if errors.iter().any(|e| e.is_limit) => with_stack(limits::PARSER_STACK, || {
            match ast::parse_module(text, limits::PYTHON) {
                Ok(module) => Ok(with_evidence(file, text, module, true)),
                Err(errors) => Err(syntax_errors(file, text, &errors)),
            }
        }),
        Err(errors) => Err(syntax_errors(file, text, &errors)),
    }
}

/// A tree with what the file says about its release.
fn with_evidence(file: FileId, text: &str, module: ast::ModModule, is_deep: bool) -> ParsedFile {
    let evidence = match file >= LIBRARY_FILE {
        true => Evidence::default(),
        false => Evidence::from_module(&module, text),
    };
    ParsedFile {
        is_deep,
        file,
        module: Arc::new(module),
        package: String::new(),
        evidence: Arc::new(evidence),
    }
}

/// The first errors of a text.
fn syntax_errors(file: FileId, text: &str, errors: &[ast::SyntaxError]) -> Diagnostics {
    let shown = errors.iter().take(8).map(|e| {
        let span = span_of(file, e.range);
        if e.is_limit {
            return Diagnostic::new(span, e.message.clone());
        }
        let diagnostic = Diagnostic::new(span, format!("syntax error: {e}"));
        match operator_of_c(text, e.range.start().to_usize()) {
            Some(help) => diagnostic.help(help),
            None => diagnostic,
        }
    });
    Diagnostics(shown.collect())
}

impl ParsedFile {
    /// Runs what reads the tree by recursion.
    pub fn walk<R: Send>(&self, walk: impl FnOnce(&ast::ModModule) -> R + Send) -> R {
        match self.is_deep {
            true => with_stack(limits::PARSER_STACK, || walk(&self.module)),
            false => walk(&self.module),
        }
    }

    /// Says for which release the file is written, where it does not show that; the error where it shows another one.
    pub(crate) fn name_release(&mut self, release: Release) -> Option<Diagnostic> {
        Arc::make_mut(&mut self.evidence).name(release, self.file)
    }
}

fn is_condition(line: &str) -> bool {
    let words = ["if ", "elif ", "while "];
    words.iter().any(|word| line.trim_start().starts_with(word))
}

/// The Python spelling of a C operator found at a syntax error.
fn operator_of_c(text: &str, at: usize) -> Option<&'static str> {
    let (before, rest) = text.split_at_checked(at)?;
    let line = before.rsplit('\n').next().unwrap_or_default();
    let has = |operator: &str| rest.starts_with(operator) || line.trim_end().ends_with(operator);
    let before_it = line.trim_end();
    Some(match () {
        () if rest.starts_with('&') && before_it.ends_with('&') || has("&&") => "Python writes `and`",
        () if rest.starts_with('|') && before_it.ends_with('|') || has("||") => "Python writes `or`",
        () if rest.starts_with('?') => {
            "Python writes `a if condition else b`; T.if_then_else(condition, a, b) is the same"
        }
        () if rest.starts_with('!') => "Python writes `not`",
        () if rest.starts_with("if") && before_it.trim_start() == "else" => "Python writes `elif`",
        () if before_it.ends_with("++") => "Python writes `x += 1`",
        () if before_it.ends_with("--") => "Python writes `x -= 1`",
        () if rest.starts_with('=') && is_condition(line) => "Python compares with `==`",
        () if rest.starts_with('{') => "Python opens a block with `:` and indents it",
        () => return None,
    })
}

/// The dotted names of all modules that `import` statements of the file name, in order.
pub(super) fn imported_modules(module: &ast::ModModule, package: &str) -> Vec<(String, TextRange)> {
    type Found = Vec<(String, TextRange)>;
    fn walk(stmts: &[ast::Stmt], package: &str, out: &mut Found) {
        let walk = |stmts: &[ast::Stmt], out: &mut Found| walk(stmts, package, out);
        for stmt in stmts {
            match stmt {
                ast::Stmt::Import(s) => {
                    let modules = s.names.iter().flat_map(|a| with_packages(a.name.as_str()));
                    out.extend(modules.map(|module| (module, s.range)));
                }
                ast::Stmt::ImportFrom(s) => {
                    let name = s.module.as_ref().map_or("", |m| m.as_str());
                    // One that leaves all packages is reported where it runs.
                    let Some(base) = resolve_relative(package, s.level, name) else {
                        continue;
                    };
                    out.extend(with_packages(&base).map(|module| (module, s.range)));
                    let dot = if base.is_empty() { "" } else { "." };
                    let members = s.names.iter().map(|a| format!("{base}{dot}{}", a.name));
                    out.extend(members.map(|module| (module, s.range)));
                }
                ast::Stmt::FunctionDef(s) => walk(&s.body, out),
                ast::Stmt::ClassDef(s) => walk(&s.body, out),
                ast::Stmt::For(s) => walk(&s.body, out),
                ast::Stmt::While(s) => walk(&s.body, out),
                ast::Stmt::With(s) => walk(&s.body, out),
                ast::Stmt::If(s) => {
                    walk(&s.body, out);
                    s.elif_else_clauses.iter().for_each(|c| walk(&c.body, out));
                }
                ast::Stmt::Try(s) => {
                    walk(&s.body, out);
                    for handler in &s.handlers {
                        let ast::ExceptHandler::ExceptHandler(h) = handler;
                        walk(&h.body, out);
                    }
                    walk(&s.orelse, out);
                    walk(&s.finalbody, out);
                }
                _ => {}
            }
        }
    }
    let mut out = Vec::new();
    walk(&module.body, package, &mut out);
    out
}

/// `a`, `a.b`, `a.b.c` of `a.b.c`: importing a module runs the packages around it first.
pub(super) fn with_packages(path: &str) -> impl Iterator<Item = String> {
    let ends = path.match_indices('.').map(|(at, _)| at);
    let ends = ends.chain((!path.is_empty()).then_some(path.len()));
    ends.map(|end| path[..end].to_string())
}

#[cfg(test)]
mod tests {
    use tirx_python::Limits;

    use super::*;
    use crate::source::SourceMap;

    fn parse(text: &str) -> Result<(), String> {
        let mut sources = SourceMap::new();
        let file = sources.add("k.py", text);
        parse_file(file, text).map(|_| ()).map_err(|d| d.render(&sources))
    }

    #[test]
    fn syntax_errors_point_at_the_text() {
        let message = parse("x = 1\ny = (2\n").unwrap_err();
        assert!(message.starts_with("error: syntax error: "), "{message}");
        assert!(message.contains("k.py:"), "{message}");
        let message = parse("def f(:\n    pass\n").unwrap_err();
        assert!(message.contains("k.py:1:7"), "{message}");
    }

    #[test]
    fn operators_of_c_are_explained() {
        for (text, help) in [
            ("if a > 3 && b:\n    pass\n", "`and`"),
            ("if a > 3 || b:\n    pass\n", "`or`"),
            ("x = a > 3 ? 1 : 2\n", "`a if condition else b`"),
            ("if !a:\n    pass\n", "`not`"),
            ("if a:\n    pass\nelse if b:\n    pass\n", "`elif`"),
            ("x++\n", "`x += 1`"),
            ("if x = 3:\n    pass\n", "`==`"),
        ] {
            let message = parse(text).unwrap_err();
            assert!(
                message.contains("= help: Python ") && message.contains(help),
                "{text}{message}"
            );
        }
        assert!(!parse("x = (1\n").unwrap_err().contains("help"));
    }

    #[test]
    fn hostile_text_is_refused_on_a_small_stack() {
        let cases = [
            "(".repeat(100_000),
            format!("x = {}1", "-".repeat(100_000)),
            format!("x = {}1", "not ".repeat(100_000)),
            format!("x = a{}", ".b".repeat(100_000)),
            format!("x = a{}", "()".repeat(100_000)),
            format!("x = 1{}", " + 1".repeat(100_000)),
            format!("x = {}1", "lambda: ".repeat(100_000)),
            format!("x = 1{}", " if a else 1".repeat(100_000)),
            format!("x = f\"{{a{}}}\"", ".b".repeat(100_000)),
            (0..2000)
                .map(|i| format!("{}if a:\n", " ".repeat(i)))
                .collect::<String>(),
        ];
        for case in cases {
            let head: String = case.chars().take(20).collect();
            let run = std::thread::Builder::new()
                .stack_size(1 << 20)
                .spawn(move || parse(&case))
                .unwrap();
            let error = run.join().unwrap().expect_err(&head);
            assert!(
                error.contains("nested more than") || error.contains("chains more than"),
                "{head}: {error}"
            );
        }
    }

    #[test]
    fn what_is_just_within_the_limits_parses_and_drops() {
        let (nesting, levels) = (limits::PYTHON.nesting as usize, limits::PYTHON.levels as usize);
        for case in [
            format!("x = 1{}", " + 1".repeat(levels - 5)),
            format!("x = 1{}", " + a[i]".repeat(levels - 5)),
            format!("x = a{}", ".b".repeat(levels - 5)),
            format!("x = {}1", "not ".repeat(nesting - 5)),
            format!("x = 1{}", " if a else 1".repeat(nesting / 2 - 5)),
            format!("x = {}1{}", "(".repeat(nesting - 5), ")".repeat(nesting - 5)),
            format!("x = 1{}", " + 1".repeat(Limits::STACK.levels as usize - 5)),
            format!("x = {}1{}", "(".repeat(50), ")".repeat(50)),
            format!("if a:\n  b\n{}", "elif a:\n  b\n".repeat(20_000)),
            format!("x = [{}]", "1, ".repeat(100_000)),
        ] {
            let run = std::thread::Builder::new()
                .stack_size(1 << 20)
                .spawn(move || parse(&case))
                .unwrap();
            run.join().unwrap().unwrap();
        }
    }
}
