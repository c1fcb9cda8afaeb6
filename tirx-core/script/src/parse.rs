//! Python text to a syntax tree, by ruff's parser, with limits that keep hostile text from exhausting the stack.

use std::collections::BTreeSet;
use std::sync::Arc;

use ruff_python_ast as ast;
use ruff_text_size::TextRange;

use super::eval::limits;
use super::release::{Evidence, Release};
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::source::{FileId, Span};

/// A parsed kernel file.
#[derive(Clone)]
pub(crate) struct ParsedFile {
    /// Whether its tree is so deep that parsing and freeing it take a larger stack.
    is_deep: bool,
    /// Which file.
    pub(crate) file: FileId,
    /// Its statements.
    pub(crate) module: Arc<ast::ModModule>,
    /// The package that its relative imports start from: `a.b` in `a/b/c.py` and in `a/b/__init__.py`.
    pub(crate) package: String,
    /// What it says about the release of TVM that it is written for.
    pub(crate) evidence: Arc<Evidence>,
}

impl Drop for ParsedFile {
    /// Frees a deep tree on a stack that holds it.
    fn drop(&mut self) {
        if self.is_deep && Arc::strong_count(&self.module) == 1 {
            let nothing = ast::ModModule {
                node_index: ast::AtomicNodeIndex::NONE,
                range: TextRange::default(),
                body: Default::default(),
            };
            stacker::grow(limits::PARSER_STACK, || self.module = Arc::new(nothing));
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
pub(super) const LIBRARY_FILE: FileId = FileId(u32::MAX - 64);

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
/// Syntax errors (the first of each line), and texts beyond the limits.
pub(super) fn parse_file(file: FileId, text: &str) -> Result<ParsedFile, Diagnostics> {
    let is_deep = check_limits(file, text)?;
    if is_deep {
        return stacker::grow(limits::PARSER_STACK, || parse_checked(file, text, is_deep));
    }
    parse_checked(file, text, is_deep)
}

fn parse_checked(file: FileId, text: &str, is_deep: bool) -> Result<ParsedFile, Diagnostics> {
    let parsed = ruff_python_parser::parse_unchecked_source(text, ruff_python_ast::PySourceType::Python);
    if !parsed.errors().is_empty() {
        let mut lines = BTreeSet::new();
        let errors = parsed.errors().iter().filter(|e| {
            let start = e.location.start().to_usize().min(text.len());
            lines.insert(text.as_bytes()[..start].iter().filter(|b| **b == b'\n').count())
        });
        let list: Vec<Diagnostic> = errors
            .take(8)
            .map(|e| {
                let message = e.error.to_string();
                let mut chars = message.chars();
                let first = chars
                    .next()
                    .map(|c| c.to_lowercase().to_string())
                    .unwrap_or_default();
                let diagnostic = Diagnostic::new(
                    span_of(file, e.location),
                    format!("syntax error: {first}{}", chars.as_str()),
                );
                match operator_of_c(text, e.location.start().to_usize()) {
                    Some(help) => diagnostic.help(help),
                    None => diagnostic,
                }
            })
            .collect();
        return Err(Diagnostics(list));
    }
    let module = Arc::new(parsed.into_syntax());
    let evidence = match file >= LIBRARY_FILE {
        true => Evidence::default(),
        false => Evidence::of(&module, text),
    };
    if let Some(mixed) = evidence.mixed(file) {
        return Err(mixed.into());
    }
    Ok(ParsedFile {
        is_deep,
        file,
        module,
        package: String::new(),
        evidence: Arc::new(evidence),
    })
}

impl ParsedFile {
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
pub(super) fn imported_modules(module: &ast::ModModule, package: &str) -> Vec<String> {
    fn walk(stmts: &[ast::Stmt], package: &str, out: &mut Vec<String>) {
        let walk = |stmts: &[ast::Stmt], out: &mut Vec<String>| walk(stmts, package, out);
        for stmt in stmts {
            match stmt {
                ast::Stmt::Import(s) => {
                    out.extend(s.names.iter().flat_map(|a| with_packages(a.name.as_str())));
                }
                ast::Stmt::ImportFrom(s) => {
                    let name = s.module.as_ref().map_or("", |m| m.as_str());
                    // One that leaves all packages is reported where it runs.
                    let Some(base) = resolve_relative(package, s.level, name) else {
                        continue;
                    };
                    out.extend(with_packages(&base));
                    let dot = if base.is_empty() { "" } else { "." };
                    out.extend(s.names.iter().map(|a| format!("{base}{dot}{}", a.name)));
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

/// Operators of a chain: what bounds the depth of its tree.
#[derive(Clone, Copy, Default)]
struct Chain {
    /// Those that the parser reads by recursion.
    within: usize,
    /// Those that it reads one after the other.
    after: usize,
}

/// Refuses text whose syntax tree would be too deep: brackets in brackets, long operator chains, deep indentation.
///
/// The result says whether the accepted tree is so deep that walking it takes a larger stack. This reads characters, not Python: text in
/// plain strings and comments is skipped, text in f-strings counts as code.
fn check_limits(file: FileId, text: &str) -> Result<bool, Diagnostics> {
    let fail = |at: usize, message: String| {
        let span = Span::new(file, at as u32, at as u32 + 1);
        Err(Diagnostics::from(Diagnostic::new(span, message)))
    };
    if text.len() > limits::SOURCE_BYTES {
        return fail(
            0,
            format!("the file is larger than {} bytes", limits::SOURCE_BYTES),
        );
    }
    let bytes = text.as_bytes();
    // Operators seen since the last separator, one entry an open bracket; their sum bounds the tree's depth.
    let mut chains: Vec<Chain> = vec![Chain::default()];
    let (mut total, mut is_deep) = (Chain::default(), false);
    // Whether an operand has just ended: what follows is a binary operator or a postfix.
    let mut after_operand = false;
    let mut indents: Vec<usize> = vec![0];
    // The f-strings around the current position, each with its quote and the number of brackets open where its field began.
    let mut formatted: Vec<(Quote, usize)> = Vec::new();
    let mut line_start = true;
    let mut i = 0;
    while i < bytes.len() {
        if line_start && chains.len() == 1 {
            let width = bytes[i..]
                .iter()
                .take_while(|b| matches!(b, b' ' | b'\t'))
                .count();
            let next = bytes.get(i + width);
            if !matches!(next, Some(b'\n' | b'\r' | b'#') | None) {
                while indents.last().is_some_and(|w| *w > width) {
                    indents.pop();
                }
                if indents.last() != Some(&width) {
                    indents.push(width);
                }
                if indents.len() > limits::INDENTS {
                    return fail(i, format!("blocks are nested more than {} deep", limits::INDENTS));
                }
            }
        }
        line_start = false;
        let mut chain = None;
        match bytes[i] {
            b'#' => {
                while i < bytes.len() && bytes[i] != b'\n' {
                    i += 1;
                }
                continue;
            }
            b'\n' => {
                line_start = true;
                if chains.len() == 1 {
                    chains[0] = Chain::default();
                    total = Chain::default();
                    after_operand = false;
                }
            }
            b',' | b';' => {
                if let Some(last) = chains.last_mut() {
                    total.within -= last.within;
                    total.after -= last.after;
                    *last = Chain::default();
                }
                after_operand = false;
            }
            b'(' | b'[' | b'{' => {
                chain = Some(after_operand);
                chains.push(Chain::default());
                if chains.len() > limits::BRACKETS {
                    return fail(
                        i,
                        format!("brackets are nested more than {} deep", limits::BRACKETS),
                    );
                }
            }
            b')' | b']' | b'}' if chains.len() > 1 => {
                let ended = chains.pop().unwrap_or_default();
                total.within -= ended.within;
                total.after -= ended.after;
                after_operand = true;
                if let Some((quote, _)) =
                    formatted.pop_if(|(_, open)| bytes[i] == b'}' && *open == chains.len())
                {
                    // A field has ended: the text after it.
                    i = skip_formatted(bytes, i + 1, quote, &mut formatted, chains.len());
                    continue;
                }
            }
            quote @ (b'"' | b'\'') => {
                let mut prefix = i;
                while prefix > 0 && bytes[prefix - 1].is_ascii_alphabetic() && i - prefix < 2 {
                    prefix -= 1;
                }
                let letters = &bytes[prefix..i];
                after_operand = true;
                i = match letters.iter().any(|b| matches!(b, b'f' | b'F' | b't' | b'T')) {
                    true => {
                        let quote = Quote {
                            mark: quote,
                            triple: bytes[i..].starts_with(&[quote; 3]),
                        };
                        let start = i + if quote.triple { 3 } else { 1 };
                        skip_formatted(bytes, start, quote, &mut formatted, chains.len())
                    }
                    false => skip_string(bytes, i, quote),
                };
                continue;
            }
            b'.' | b'+' | b'-' | b'*' | b'/' | b'%' | b'&' | b'|' | b'^' | b'~' | b'<' | b'>' | b'='
            | b'@' | b':' => {
                chain = Some(after_operand && !matches!(bytes[i], b'~' | b':'));
                // `//`, `<<`, `>>`, `==`, `<=`: one operator. `**` is read by recursion.
                let next = bytes.get(i + 1);
                if next == Some(&b'=') || (next == Some(&bytes[i]) && matches!(bytes[i], b'/' | b'<' | b'>'))
                {
                    i += 1;
                }
            }
            c if c.is_ascii_digit() => after_operand = true,
            c if c.is_ascii_alphabetic() => {
                let start = i;
                while i < bytes.len() && (bytes[i].is_ascii_alphanumeric() || bytes[i] == b'_') {
                    i += 1;
                }
                match &bytes[start..i] {
                    b"not" | b"lambda" | b"if" | b"await" | b"for" => chain = Some(false),
                    // The parser makes one list of them.
                    b"and" | b"or" | b"in" | b"is" => chain = Some(true),
                    b"else" | b"return" | b"yield" | b"assert" => {
                        after_operand = false;
                        continue;
                    }
                    _ => {
                        after_operand = true;
                        continue;
                    }
                }
                i -= 1;
            }
            _ => {}
        }
        if let Some(is_after) = chain {
            // An opening bracket belongs to the chain around it: `f()()()`.
            let at = chains.len() - 1 - matches!(bytes[i], b'(' | b'[' | b'{') as usize;
            for count in [&mut total, &mut chains[at]] {
                match is_after {
                    true => count.after += 1,
                    false => count.within += 1,
                }
            }
            is_deep |= total.within + total.after > limits::CHAIN || chains.len() > limits::FEW_BRACKETS;
            let exceeded = match () {
                () if total.within > limits::CHAIN => Some(limits::CHAIN),
                () if total.after > limits::LONG_CHAIN => Some(limits::LONG_CHAIN),
                () => None,
            };
            if let Some(most) = exceeded {
                return fail(i, format!("an expression chains more than {most} operators"));
            }
            after_operand = false;
        }
        i += 1;
    }
    Ok(is_deep)
}

/// What ends a string.
#[derive(Clone, Copy)]
struct Quote {
    mark: u8,
    triple: bool,
}

/// The position where the text of an f-string that goes on at `i` ends: after its closing quote, or at the bracket that
/// opens a field, which is code and is recorded in `formatted` with the number of open brackets.
fn skip_formatted(
    bytes: &[u8],
    mut i: usize,
    quote: Quote,
    formatted: &mut Vec<(Quote, usize)>,
    open: usize,
) -> usize {
    while i < bytes.len() {
        match bytes[i] {
            b'\\' => i += 1,
            b'{' if bytes.get(i + 1) == Some(&b'{') => i += 1,
            b'{' => {
                formatted.push((quote, open));
                return i;
            }
            b'\n' if !quote.triple => return i,
            c if c == quote.mark && !quote.triple => return i + 1,
            c if c == quote.mark && bytes[i..].starts_with(&[quote.mark; 3]) => return i + 3,
            _ => {}
        }
        i += 1;
    }
    bytes.len()
}

/// The position after the string that starts at `i`.
fn skip_string(bytes: &[u8], i: usize, quote: u8) -> usize {
    let triple = bytes[i..].starts_with(&[quote; 3]);
    let mut j = i + if triple { 3 } else { 1 };
    while j < bytes.len() {
        match bytes[j] {
            b'\\' => j += 1,
            b'\n' if !triple => return j,
            c if c == quote && !triple => return j + 1,
            c if c == quote && bytes[j..].starts_with(&[quote; 3]) => return j + 3,
            _ => {}
        }
        j += 1;
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
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
        let chain = format!("x = 1{}", " + 1".repeat(limits::CHAIN - 5));
        let long = format!("x = 1{}", " + a[i]".repeat(limits::LONG_CHAIN / 2 - 5));
        let within = format!("x = {}1", "not ".repeat(limits::CHAIN - 5));
        let brackets = format!(
            "x = {}1{}",
            "(".repeat(limits::BRACKETS - 5),
            ")".repeat(limits::BRACKETS - 5)
        );
        for case in [
            chain,
            long,
            within,
            brackets,
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
