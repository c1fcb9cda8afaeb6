//! Statements of files and blocks.

use super::{MAX_ERRORS, Parser};
use crate::ast::Stmt;
use crate::error::Result;
use crate::lexer::TokenKind;

impl Parser<'_> {
    /// Statements up to `end`, which is not eaten. Errors are recorded.
    pub(super) fn statements(&mut self, end: TokenKind) -> Vec<Stmt> {
        let mut body = Vec::new();
        while !self.at(end) && !self.at(TokenKind::EndOfFile) {
            self.start_statement();
            if let Err(error) = self.statement(&mut body) {
                let is_limit = error.is_limit;
                self.errors.push(*error);
                if is_limit || self.errors.len() == MAX_ERRORS {
                    self.stop();
                    break;
                }
                self.recover();
                self.skipped_block();
            }
        }
        body
    }

    /// The block of a statement with an error, for its own errors.
    fn skipped_block(&mut self) {
        if !self.at(TokenKind::Indent) || self.blocks >= self.limits.blocks {
            return;
        }
        self.bump();
        self.blocks += 1;
        self.statements(TokenKind::Dedent);
        self.blocks -= 1;
        self.eat(TokenKind::Dedent);
    }

    /// `:` and what follows it: statements in the same line, or an indented block. `of` is what it belongs to.
    pub(super) fn body(&mut self, of: &str) -> Result<Vec<Stmt>> {
        self.expect(TokenKind::Colon)?;
        if !self.eat(TokenKind::Newline) {
            let mut body = Vec::new();
            self.simple_line(&mut body)?;
            return Ok(body);
        }
        if !self.at(TokenKind::Indent) {
            return Err(self.unexpected(&format!("an indented block after {of}")));
        }
        if self.blocks == self.limits.blocks {
            let limit = self.limits.blocks;
            return Err(self.beyond(format!("blocks are nested more than {limit} deep")));
        }
        self.bump();
        self.blocks += 1;
        let statement = self.statement;
        let body = self.statements(TokenKind::Dedent);
        self.statement = statement;
        self.blocks -= 1;
        self.eat(TokenKind::Dedent);
        Ok(body)
    }
}
