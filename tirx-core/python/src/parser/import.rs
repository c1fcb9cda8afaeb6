//! `import` and `from … import`.

use super::Parser;
use crate::ast::*;
use crate::error::{Result, SyntaxError};
use crate::lexer::TokenKind;

impl Parser<'_> {
    pub(super) fn import(&mut self) -> Result<Stmt> {
        let start = self.start();
        self.bump();
        let mut names = Vec::new();
        loop {
            let start = self.start();
            let name = self.dotted_name()?;
            names.push(self.alias(start, name)?);
            if !self.eat(TokenKind::Comma) {
                break;
            }
        }
        let range = self.range(start);
        Ok(Stmt::Import(StmtImport { range, names }))
    }

    pub(super) fn import_from(&mut self) -> Result<Stmt> {
        let start = self.start();
        self.bump();
        let mut level = 0;
        loop {
            level += match self.current.kind {
                TokenKind::Dot => 1,
                TokenKind::Ellipsis => 3,
                _ => break,
            };
            self.bump();
        }
        let module = match level > 0 && self.at(TokenKind::Import) {
            true => None,
            false => Some(self.dotted_name()?),
        };
        self.expect(TokenKind::Import)?;
        let mut names = Vec::new();
        if self.at(TokenKind::Star) {
            let range = self.bump().range();
            let id = self.name("*");
            let name = Identifier { range, id };
            let asname = None;
            names.push(Alias { range, name, asname });
        } else {
            let in_parentheses = self.at(TokenKind::LeftParenthesis);
            if in_parentheses {
                self.open();
            }
            loop {
                let start = self.start();
                let name = self.identifier("a name to import")?;
                names.push(self.alias(start, name)?);
                let comma = self.current.range();
                if !self.eat(TokenKind::Comma) || in_parentheses && self.at(TokenKind::RightParenthesis) {
                    break;
                }
                if !in_parentheses && !self.at(TokenKind::Name) {
                    let message =
                        "a name must follow this comma; a list that ends with a comma takes parentheses";
                    return Err(SyntaxError::new(comma, message));
                }
            }
            if in_parentheses {
                self.close(TokenKind::RightParenthesis, "`,` or ")?;
            }
        }
        Ok(Stmt::ImportFrom(StmtImportFrom {
            range: self.range(start),
            module,
            names,
            level,
        }))
    }

    fn alias(&mut self, start: u32, name: Identifier) -> Result<Alias> {
        let asname = match self.eat(TokenKind::As) {
            true => Some(self.identifier("a name after `as`")?),
            false => None,
        };
        let range = self.range(start);
        Ok(Alias { range, name, asname })
    }

    /// `a.b.c`
    fn dotted_name(&mut self) -> Result<Identifier> {
        let start = self.start();
        let first = self.identifier("the name of a module")?;
        if !self.at(TokenKind::Dot) {
            return Ok(first);
        }
        let mut path = first.id.to_string();
        while self.eat(TokenKind::Dot) {
            path.push('.');
            path.push_str(&self.identifier("the name of a module")?);
        }
        let range = self.range(start);
        let id = Name::from(path);
        Ok(Identifier { range, id })
    }
}
