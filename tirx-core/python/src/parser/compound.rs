//! Statements with blocks.

use std::sync::Arc;

use super::Parser;
use super::expr::{Context, is_parenthesized};
use crate::Ranged;
use crate::ast::*;
use crate::error::{Result, SyntaxError};
use crate::lexer::TokenKind;

impl Parser<'_> {
    /// Reads a statement with a block, or a line of others.
    pub(super) fn statement(&mut self, body: &mut Vec<Stmt>) -> Result<()> {
        let start = self.start();
        let stmt = match self.current.kind {
            TokenKind::If => self.if_statement()?,
            TokenKind::For => self.for_statement(start, false)?,
            TokenKind::While => self.while_statement()?,
            TokenKind::Def => self.function(start, Vec::new(), false)?,
            TokenKind::Class => self.class(start, Vec::new())?,
            TokenKind::Try => self.try_statement()?,
            TokenKind::With => self.with_statement(start, false)?,
            TokenKind::At => self.decorated()?,
            TokenKind::Async => {
                self.bump();
                match self.current.kind {
                    TokenKind::Def => self.function(start, Vec::new(), true)?,
                    TokenKind::With => self.with_statement(start, true)?,
                    TokenKind::For => self.for_statement(start, true)?,
                    _ => return Err(self.unexpected("`def`, `with` or `for` after `async`")),
                }
            }
            TokenKind::Indent => {
                let message = "this line is indented more than the one before, which opens no block";
                let range = self.current.range();
                self.bump();
                let range = match self.at(TokenKind::Error) {
                    true => return Err(self.unexpected("a statement")),
                    false => range,
                };
                return Err(SyntaxError::new(range, message));
            }
            TokenKind::Name if self.text(self.current) == "match" => match self.match_statement()? {
                Some(stmt) => stmt,
                None => return self.simple_line(body),
            },
            _ => return self.simple_line(body),
        };
        body.push(stmt);
        Ok(())
    }

    fn if_statement(&mut self) -> Result<Stmt> {
        let start = self.start();
        self.bump();
        let test = Box::new(self.named(Context::default())?);
        let body = self.body("`if`")?;
        let mut clauses = Vec::new();
        loop {
            let start = self.start();
            let test = match self.current.kind {
                TokenKind::Elif => {
                    self.bump();
                    Some(self.named(Context::default())?)
                }
                TokenKind::Else => {
                    self.bump();
                    None
                }
                _ => break,
            };
            let is_last = test.is_none();
            let body = self.body(if is_last { "`else`" } else { "`elif`" })?;
            let range = self.range(start);
            clauses.push(ElifElseClause { range, test, body });
            if is_last {
                break;
            }
        }
        Ok(Stmt::If(StmtIf {
            range: self.range(start),
            test,
            body,
            elif_else_clauses: clauses,
        }))
    }

    /// The block of `else` after a loop or a `try`, where there is one.
    fn orelse(&mut self) -> Result<Vec<Stmt>> {
        match self.eat(TokenKind::Else) {
            true => self.body("`else`"),
            false => Ok(Vec::new()),
        }
    }

    fn for_statement(&mut self, start: u32, is_async: bool) -> Result<Stmt> {
        self.bump();
        let mut target = self.expression_list(Context::LOOP)?;
        self.assign_to(&mut target, ExprContext::Store)?;
        self.expect(TokenKind::In)?;
        let iter = Box::new(self.expression_list(Context::ELEMENT)?);
        let body = self.body("`for`")?;
        let orelse = self.orelse()?;
        Ok(Stmt::For(StmtFor {
            range: self.range(start),
            is_async,
            target: Box::new(target),
            iter,
            body,
            orelse,
        }))
    }

    fn while_statement(&mut self) -> Result<Stmt> {
        let start = self.start();
        self.bump();
        let test = Box::new(self.named(Context::default())?);
        let body = self.body("`while`")?;
        let orelse = self.orelse()?;
        Ok(Stmt::While(StmtWhile {
            range: self.range(start),
            test,
            body,
            orelse,
        }))
    }

    fn decorated(&mut self) -> Result<Stmt> {
        let start = self.start();
        let mut decorators = Vec::new();
        while self.at(TokenKind::At) {
            let start = self.start();
            self.bump();
            let expression = self.named(Context::default())?;
            let range = self.range(start);
            decorators.push(Decorator { range, expression });
            self.expect(TokenKind::Newline)?;
        }
        let kind = self.current.kind;
        match kind {
            TokenKind::Def => self.function(start, decorators, false),
            TokenKind::Class => self.class(start, decorators),
            TokenKind::Async if self.peek(1) == TokenKind::Def => {
                self.bump();
                self.function(start, decorators, true)
            }
            _ => Err(self.unexpected("`def`, `async def` or `class` after a decorator")),
        }
    }

    fn function(&mut self, start: u32, decorator_list: Vec<Decorator>, is_async: bool) -> Result<Stmt> {
        self.bump();
        let name = self.identifier("the name of the function")?;
        let type_params = self.type_params()?;
        let parameters = Box::new(self.function_parameters()?);
        let mut returns = None;
        if self.eat(TokenKind::Arrow) {
            let value = self.expression()?;
            self.refuse_tuple(&value)?;
            returns = Some(Box::new(value));
        }
        let body = self.body("`def`")?;
        Ok(Stmt::FunctionDef(Arc::new(StmtFunctionDef {
            range: self.range(start),
            is_async,
            decorator_list,
            name,
            type_params,
            parameters,
            returns,
            body,
        })))
    }

    fn class(&mut self, start: u32, decorator_list: Vec<Decorator>) -> Result<Stmt> {
        self.bump();
        let name = self.identifier("the name of the class")?;
        let type_params = self.type_params()?;
        let arguments = match self.at(TokenKind::LeftParenthesis) {
            true => Some(Box::new(self.arguments(true)?)),
            false => None,
        };
        let body = self.body("`class`")?;
        Ok(Stmt::ClassDef(Arc::new(StmtClassDef {
            range: self.range(start),
            decorator_list,
            name,
            type_params,
            arguments,
            body,
        })))
    }

    fn try_statement(&mut self) -> Result<Stmt> {
        let start = self.start();
        self.bump();
        let body = self.body("`try`")?;
        let mut handlers = Vec::new();
        let mut is_star = None;
        while self.at(TokenKind::Except) {
            let start = self.start();
            let word = self.bump();
            let star = self.eat(TokenKind::Star);
            if is_star.is_some_and(|before| before != star) {
                let message = "a `try` has handlers of `except` or of `except*`, not of both";
                return Err(SyntaxError::new(word.range(), message));
            }
            is_star = Some(star);
            let (mut type_, mut name) = (None, None);
            if star || !self.at(TokenKind::Colon) {
                let value = self.expression_list(Context::default())?;
                if self.eat(TokenKind::As) {
                    if let Expr::Tuple(ExprTuple {
                        parenthesized: false, ..
                    }) = value
                    {
                        let message = "several exceptions take parentheses before `as`";
                        return Err(SyntaxError::new(value.range(), message));
                    }
                    name = Some(self.identifier("a name after `as`")?);
                }
                type_ = Some(Box::new(value));
            }
            let body = self.body("`except`")?;
            handlers.push(ExceptHandler::ExceptHandler(ExceptHandlerExceptHandler {
                range: self.range(start),
                type_,
                name,
                body,
            }));
        }
        let orelse = self.orelse()?;
        let has_finally = self.eat(TokenKind::Finally);
        let finalbody = match has_finally {
            true => self.body("`finally`")?,
            false => Vec::new(),
        };
        if handlers.is_empty() && !has_finally {
            return Err(self.unexpected("`except` or `finally` after the block of `try`"));
        }
        Ok(Stmt::Try(StmtTry {
            range: self.range(start),
            body,
            handlers,
            orelse,
            finalbody,
            is_star: is_star.unwrap_or(false),
        }))
    }

    fn with_statement(&mut self, start: u32, is_async: bool) -> Result<Stmt> {
        self.bump();
        let items = self.with_items()?;
        let body = self.body("`with`")?;
        Ok(Stmt::With(StmtWith {
            range: self.range(start),
            is_async,
            items,
            body,
        }))
    }

    fn with_items(&mut self) -> Result<Vec<WithItem>> {
        if !self.at(TokenKind::LeftParenthesis) {
            return self.plain_with_items();
        }
        // `with (a, b):` has two items, `with (a, b) as c:` one.
        let before = self.checkpoint();
        let in_parentheses = match self.parenthesized_with_items() {
            Ok(items) if self.at(TokenKind::Colon) => return Ok(items),
            Ok(_) => Some(self.unexpected("`:`")),
            Err(error) if error.is_limit => return Err(error),
            Err(error) => Some(error),
        };
        self.rewind(before);
        let plain = self.plain_with_items();
        match (plain, in_parentheses) {
            // The error that is further on is the better one.
            (Err(plain), Some(other)) if other.range.start().to_u32() > plain.range.start().to_u32() => {
                Err(other)
            }
            (plain, _) => plain,
        }
    }

    fn parenthesized_with_items(&mut self) -> Result<Vec<WithItem>> {
        self.open();
        let mut items = vec![self.with_item()?];
        while self.eat(TokenKind::Comma) && !self.at(TokenKind::RightParenthesis) {
            items.push(self.with_item()?);
        }
        self.close(TokenKind::RightParenthesis, "`,` or ")?;
        Ok(items)
    }

    fn plain_with_items(&mut self) -> Result<Vec<WithItem>> {
        let mut items = vec![self.with_item()?];
        while self.eat(TokenKind::Comma) {
            items.push(self.with_item()?);
        }
        Ok(items)
    }

    fn with_item(&mut self) -> Result<WithItem> {
        let start = self.start();
        let context_expr = self.expression()?;
        let mut optional_vars = None;
        if self.eat(TokenKind::As) {
            let mut target = self.conditional(Context::ARGUMENT)?;
            self.assign_to(&mut target, ExprContext::Store)?;
            optional_vars = Some(Box::new(target));
        }
        Ok(WithItem {
            range: self.range(start),
            context_expr,
            optional_vars,
        })
    }

    /// `match` is a keyword where it starts a statement of this kind, and a name elsewhere.
    fn match_statement(&mut self) -> Result<Option<Stmt>> {
        use TokenKind::*;
        // What cannot follow a name.
        let is_certain = match self.peek(1) {
            Not => self.peek(2) != In,
            Name | Int | Float | Imaginary | String | FStringStart | LeftBrace | Tilde | Ellipsis | Await
            | Yield | Lambda | True | False | None => true,
            LeftParenthesis | LeftBracket | Star | Plus | Minus => false,
            _ => return Ok(Option::None),
        };
        let start = self.start();
        let before = self.checkpoint();
        self.bump();
        let subject = self.subject();
        if !is_certain {
            let is_match = subject.is_ok() && self.at(Colon) && self.peek(1) == Newline;
            if !is_match {
                if let Err(error) = subject
                    && error.is_limit
                {
                    return Err(error);
                }
                self.rewind(before);
                return Ok(Option::None);
            }
        }
        let subject = Box::new(subject?);
        self.expect(Colon)?;
        self.expect(Newline)?;
        if !self.at(Indent) {
            return Err(self.unexpected("an indented block after `match`"));
        }
        self.bump();
        self.blocks += 1;
        let mut cases = Vec::new();
        while self.at(Name) && self.text(self.current) == "case" {
            cases.push(self.case()?);
        }
        self.blocks -= 1;
        if !self.eat(Dedent) || cases.is_empty() {
            return Err(self.unexpected("`case`"));
        }
        Ok(Some(Stmt::Match(StmtMatch {
            range: self.range(start),
            subject,
            cases,
        })))
    }

    /// `a`, `a, b`, `*a,`
    fn subject(&mut self) -> Result<Expr> {
        let start = self.start();
        let first = self.named(Context::ELEMENT)?;
        if self.at(TokenKind::Comma) {
            let elts = self.elements(first, |p| p.named(Context::ELEMENT))?;
            return Ok(Expr::Tuple(ExprTuple {
                range: self.range(start),
                elts,
                ctx: ExprContext::Load,
                parenthesized: false,
            }));
        }
        match &first {
            Expr::Starred(_) if !is_parenthesized(&first, start) => {
                let message = "`*` before an expression unpacks it; a tuple of one takes a comma";
                Err(SyntaxError::new(first.range(), message))
            }
            _ => Ok(first),
        }
    }

    fn case(&mut self) -> Result<MatchCase> {
        let start = self.start();
        self.bump();
        let pattern = self.case_pattern()?;
        let guard = match self.eat(TokenKind::If) {
            true => Some(Box::new(self.named(Context::default())?)),
            false => None,
        };
        let body = self.body("`case`")?;
        Ok(MatchCase {
            range: self.range(start),
            pattern,
            guard,
            body,
        })
    }
}
