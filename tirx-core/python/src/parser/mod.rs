//! Tokens to a syntax tree, by recursive descent: one function for a rule of the grammar.
//!
//! A rule ends at its first error. [`Parser::statements`] records the error and goes on after the line, so that one run
//! tells the first error of each statement.

mod arguments;
mod assign;
mod atom;
mod block;
mod compound;
mod expr;
mod function;
mod import;
mod pattern;
mod simple;
mod string;
mod text;

use rustc_hash::FxHashMap;

use crate::ast::*;
use crate::error::{Result, SyntaxError};
use crate::lexer::{Lexer, Token, TokenKind};
use crate::{TextRange, TextSize};

/// How deep a syntax tree may be. Text beyond it is an error, never an exhausted stack.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Expressions that are read one within the other: brackets in brackets, `not not a`, `a if b else c if d else e`.
    pub nesting: u32,
    /// Levels of one expression's tree: as many as operators in `a + b + c`, `a.b.c` and `a[b][c]`, which are read one
    /// after the other.
    pub levels: u32,
    /// Blocks within blocks.
    pub blocks: u32,
}

impl Limits {
    /// What a stack of 1 MiB holds in a build without optimization: to parse, to walk and to free the tree.
    pub const STACK: Limits = Limits {
        nesting: 60,
        levels: 300,
        blocks: 60,
    };
}

/// Reads a file.
///
/// # Errors
/// The first error of each statement that has one.
pub fn parse_module(source: &str, limits: Limits) -> std::result::Result<ModModule, Vec<SyntaxError>> {
    if u32::try_from(source.len()).is_err() {
        let error = SyntaxError::new(TextRange::default(), "the text is larger than 4 GiB");
        return Err(vec![SyntaxError {
            is_limit: true,
            ..*error
        }]);
    }
    let mut parser = Parser::new(source, Lexer::new(source), limits);
    let body = parser.statements(TokenKind::EndOfFile);
    match parser.errors.is_empty() {
        true => Ok(ModModule {
            range: TextRange::new(TextSize::new(0), TextSize::new(source.len() as u32)),
            body,
        }),
        false => Err(parser.errors),
    }
}

/// Reads an expression that is a part of a text: what a string says that is an annotation. Line breaks in it are white space.
///
/// # Errors
/// The first error.
pub fn parse_expression(
    source: &str,
    range: TextRange,
    limits: Limits,
) -> std::result::Result<Expr, SyntaxError> {
    let mut parser = Parser::new(source, Lexer::from_range(source, range), limits);
    let read = parser.expression_list(expr::Context::default());
    let read = read.and_then(|e| match parser.current.kind {
        TokenKind::EndOfFile => Ok(e),
        _ => Err(parser.unexpected("the end of the expression")),
    });
    read.map_err(|error| *error)
}

/// Statements with errors that are told.
const MAX_ERRORS: usize = 100;

struct Parser<'src> {
    source: &'src str,
    lexer: Lexer<'src>,
    /// The next token, which is `tokens[index]`.
    current: Token,
    /// The tokens of the statement, as far as they are read.
    tokens: Vec<Token>,
    index: usize,
    /// Where the last token ended that belongs to a node.
    previous_end: u32,
    /// Opening brackets that are not closed yet.
    open: Vec<Token>,
    /// Where the current statement starts.
    statement: u32,
    errors: Vec<SyntaxError>,
    limits: Limits,
    /// Rules around the current one that count to [`Limits::nesting`].
    nesting: u32,
    /// Levels of the deepest expression that has ended within the innermost one that has not.
    levels: u32,
    /// Blocks around the current statement.
    blocks: u32,
    names: FxHashMap<&'src str, Name>,
}

/// Bytes of a text for each name in it, about: longer texts repeat more of theirs.
const BYTES_OF_A_NAME: usize = 64;

impl<'src> Parser<'src> {
    fn new(source: &'src str, mut lexer: Lexer<'src>, limits: Limits) -> Parser<'src> {
        let current = lexer.next();
        Parser {
            source,
            lexer,
            current,
            tokens: vec![current],
            index: 0,
            previous_end: current.start,
            open: Vec::new(),
            statement: current.start,
            errors: Vec::new(),
            limits,
            nesting: 0,
            levels: 0,
            blocks: 0,
            names: FxHashMap::with_capacity_and_hasher(source.len() / BYTES_OF_A_NAME, Default::default()),
        }
    }

    fn at(&self, kind: TokenKind) -> bool {
        self.current.kind == kind
    }

    /// The kind of the token so many after the current one.
    fn peek(&mut self, ahead: usize) -> TokenKind {
        while self.tokens.len() <= self.index + ahead {
            let token = self.lexer.next();
            self.tokens.push(token);
        }
        self.tokens[self.index + ahead].kind
    }

    /// Goes behind the current token, and gives it.
    fn bump(&mut self) -> Token {
        let token = self.current;
        if !matches!(
            token.kind,
            TokenKind::Newline | TokenKind::Dedent | TokenKind::Semicolon
        ) {
            self.previous_end = token.end;
        }
        self.index += 1;
        if self.index == self.tokens.len() {
            let next = self.lexer.next();
            self.tokens.push(next);
        }
        self.current = self.tokens[self.index];
        token
    }

    fn eat(&mut self, kind: TokenKind) -> bool {
        let found = self.at(kind);
        if found {
            self.bump();
        }
        found
    }

    fn expect(&mut self, kind: TokenKind) -> Result<Token> {
        match self.at(kind) {
            true => Ok(self.bump()),
            false => {
                let expected = match kind {
                    TokenKind::Newline => "the end of the statement".to_string(),
                    TokenKind::In => "`in`".to_string(),
                    TokenKind::Import => "`import`".to_string(),
                    TokenKind::Else => "`else` and the value for a false condition".to_string(),
                    kind => format!("`{}`", kind.spelling()),
                };
                Err(self.unexpected(&expected))
            }
        }
    }

    /// An opening bracket.
    fn open(&mut self) -> Token {
        let token = self.bump();
        self.open.push(token);
        token
    }

    /// The bracket that closes the innermost open one. `or` says what might stand there instead.
    fn close(&mut self, kind: TokenKind, or: &str) -> Result<()> {
        if !self.at(kind) {
            return Err(self.unexpected(&format!("{or}`{}`", kind.spelling())));
        }
        self.open.pop();
        self.bump();
        Ok(())
    }

    fn text(&self, token: Token) -> &'src str {
        token.text(self.source)
    }

    /// Where a node starts that starts with the current token.
    fn start(&self) -> u32 {
        self.current.start
    }

    /// The range of a node that ends with the last token.
    fn range(&self, start: u32) -> TextRange {
        TextRange::new(TextSize::new(start), TextSize::new(self.previous_end.max(start)))
    }

    fn name(&mut self, text: &'src str) -> Name {
        self.names.entry(text).or_insert_with(|| Name::from(text)).clone()
    }

    /// A name that is assigned, or that belongs to something. `what` says of what.
    fn identifier(&mut self, what: &str) -> Result<Identifier> {
        if !self.at(TokenKind::Name) {
            return Err(match self.current.kind.is_keyword() {
                true => {
                    let word = self.text(self.current);
                    let message =
                        format!("expected {what}, found `{word}`, which is a keyword and cannot be a name");
                    SyntaxError::new(self.current.range(), message)
                }
                false => self.unexpected(what),
            });
        }
        let token = self.bump();
        let id = self.name(self.text(token));
        Ok(Identifier {
            range: token.range(),
            id,
        })
    }

    /// The error of the current token, where something else is expected.
    fn unexpected(&mut self, expected: &str) -> Box<SyntaxError> {
        let token = self.current;
        if token.kind == TokenKind::Error {
            let found = self.lexer.errors.iter().rev();
            if let Some(error) = found.clone().find(|e| {
                let at = e.range.start().to_u32();
                token.start <= at && at <= token.end
            }) {
                return Box::new(error.clone());
            }
        }
        if let Some(&bracket) = self.open.last()
            && (token.kind == TokenKind::EndOfFile || self.starts_statement(true))
        {
            let message = format!("`{}` is never closed", bracket.kind.spelling());
            return SyntaxError::new(bracket.range(), message);
        }
        let text = token.text(self.source);
        let found = match token.kind {
            TokenKind::Name => format!("the name `{text}`"),
            TokenKind::Int | TokenKind::Float | TokenKind::Imaginary => format!("the number `{text}`"),
            TokenKind::String => "a string".into(),
            TokenKind::FStringStart => "an f-string".into(),
            TokenKind::FStringText => "text of the f-string".into(),
            TokenKind::FStringEnd => "the end of the f-string".into(),
            TokenKind::Newline => "the end of the line".into(),
            TokenKind::Indent => "an indented line".into(),
            TokenKind::Dedent => "the end of the block".into(),
            TokenKind::EndOfFile => "the end of the text".into(),
            kind if kind.is_keyword() => format!("the keyword `{text}`"),
            _ => format!("`{text}`"),
        };
        SyntaxError::new(token.range(), format!("expected {expected}, found {found}"))
    }

    /// Bytes of white space before a token that is the first of its line.
    fn indent_of(&self, at: u32) -> Option<usize> {
        let before = &self.source.as_bytes()[..at as usize];
        let width = before
            .iter()
            .rev()
            .take_while(|b| matches!(b, b' ' | b'\t'))
            .count();
        match before[..before.len() - width].last() {
            None | Some(b'\n' | b'\r') => Some(width),
            Some(_) => None,
        }
    }

    /// Whether the current token, within brackets, is the first of a line, and of a statement that follows: with a keyword,
    /// or (where `or_name`) anything that is indented as little as the statement around it.
    fn starts_statement(&self, or_name: bool) -> bool {
        use TokenKind::*;
        let of_statement = self.indent_of(self.statement).unwrap_or(0);
        if self.current.start == self.statement
            || self
                .indent_of(self.current.start)
                .is_none_or(|width| width > of_statement)
        {
            return false;
        }
        let kind = self.current.kind;
        matches!(
            kind,
            Def | Class
                | Return
                | Import
                | From
                | While
                | With
                | Try
                | Raise
                | Pass
                | Break
                | Continue
                | Global
                | Nonlocal
                | Assert
                | Del
                | At
        ) || or_name && matches!(kind, Name | If | For)
    }

    /// Goes to the line after the one with an error; after the last line that open brackets join to it, where they are closed.
    fn recover(&mut self) {
        if !self.open.is_empty() && self.starts_statement(true) {
            self.restart(self.current.start as usize);
            return;
        }
        let after = self.current.end as usize;
        let in_brackets = !self.open.is_empty();
        loop {
            match self.current.kind {
                TokenKind::Newline => {
                    self.bump();
                    return;
                }
                TokenKind::EndOfFile => break,
                _ if in_brackets && self.starts_statement(false) => break,
                _ => {}
            }
            self.bump();
        }
        let rest = &self.source.as_bytes()[after..];
        if in_brackets && let Some(end) = rest.iter().position(|b| *b == b'\n') {
            self.restart(after + end + 1);
        }
    }

    /// Reads on at the start of the line with the byte `at`, all brackets closed.
    fn restart(&mut self, at: usize) {
        let before = &self.source.as_bytes()[..at];
        let line = before.iter().rposition(|b| matches!(b, b'\n' | b'\r'));
        self.lexer.restart(line.map_or(0, |at| at + 1));
        self.tokens.clear();
        self.index = 0;
        self.current = self.lexer.next();
        self.tokens.push(self.current);
    }

    /// Reads nothing more.
    fn stop(&mut self) {
        let end = self.source.len() as u32;
        self.current = Token {
            kind: TokenKind::EndOfFile,
            start: end,
            end,
        };
        self.lexer.restart(self.source.len());
        self.tokens = vec![self.current];
        self.index = 0;
    }

    /// Starts a statement: tokens before it are forgotten.
    fn start_statement(&mut self) {
        self.statement = self.current.start;
        self.levels = 0;
        self.open.clear();
        if self.index + 1 == self.tokens.len() {
            self.tokens.clear();
            self.tokens.push(self.current);
            self.index = 0;
        }
    }

    /// Where parsing may go back to.
    fn checkpoint(&self) -> (usize, u32, usize) {
        (self.index, self.previous_end, self.open.len())
    }

    fn rewind(&mut self, (index, previous_end, open): (usize, u32, usize)) {
        self.index = index;
        self.current = self.tokens[index];
        self.previous_end = previous_end;
        self.open.truncate(open);
    }

    fn beyond(&self, message: String) -> Box<SyntaxError> {
        let mut error = SyntaxError::new(self.current.range(), message);
        error.is_limit = true;
        error
    }

    /// Runs a rule that may contain itself.
    fn nested<T>(&mut self, rule: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.nesting == self.limits.nesting {
            let limit = self.limits.nesting;
            return Err(self.beyond(format!("an expression is nested more than {limit} deep")));
        }
        self.nesting += 1;
        let result = rule(self);
        self.nesting -= 1;
        result
    }

    /// Counts a level of the expression that is being read.
    fn level(&mut self) -> Result<()> {
        self.levels += 1;
        if self.levels > self.limits.levels {
            let limit = self.limits.levels;
            return Err(self.beyond(format!("an expression chains more than {limit} operators")));
        }
        Ok(())
    }
}
