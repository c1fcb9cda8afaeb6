//! Parameters and type parameters.

use super::Parser;
use super::expr::Context;
use crate::Ranged;
use crate::ast::*;
use crate::error::{Result, SyntaxError};
use crate::lexer::TokenKind;

impl Parser<'_> {
    /// `(a, /, b: c = d, *e, f, **g)`
    pub(super) fn function_parameters(&mut self) -> Result<Parameters> {
        let start = self.start();
        if !self.at(TokenKind::LeftParenthesis) {
            return Err(self.unexpected("`(` and the parameters"));
        }
        self.open();
        let mut parameters = self.parameters(TokenKind::RightParenthesis)?;
        self.close(TokenKind::RightParenthesis, "`,` or ")?;
        parameters.range = self.range(start);
        Ok(parameters)
    }

    pub(super) fn lambda_parameters(&mut self) -> Result<Parameters> {
        self.parameters(TokenKind::Colon)
    }

    /// Parameters up to `end`, which is not eaten. Those of a `lambda`, which end with `:`, have no annotations.
    fn parameters(&mut self, end: TokenKind) -> Result<Parameters> {
        let start = self.start();
        let annotated = end == TokenKind::RightParenthesis;
        let mut parameters = Parameters {
            range: self.range(start),
            posonlyargs: Vec::new(),
            args: Vec::new(),
            vararg: None,
            kwonlyargs: Vec::new(),
            kwarg: None,
        };
        // A `*`, alone or of `*args`; whether a parameter must still follow it.
        let (mut star, mut wanted) = (None, false);
        let mut slash = false;
        while !self.at(end) {
            let from = self.start();
            let here = self.current.range();
            let wrong = |message: &str| Err(SyntaxError::new(here, message));
            if parameters.kwarg.is_some() {
                return wrong("nothing can follow the parameter `**`");
            }
            match self.current.kind {
                TokenKind::Star => {
                    self.bump();
                    if star.is_some() {
                        return wrong("there is one `*` already");
                    }
                    star = Some(here);
                    wanted = !self.at(TokenKind::Name);
                    if !wanted {
                        let parameter = self.parameter(from, annotated, true)?;
                        parameters.vararg = Some(Box::new(parameter));
                        self.refuse_default()?;
                    }
                }
                TokenKind::DoubleStar => {
                    self.bump();
                    if wanted {
                        return wrong("a parameter that is passed by name must follow `*`");
                    }
                    let parameter = self.parameter(from, annotated, false)?;
                    parameters.kwarg = Some(Box::new(parameter));
                    self.refuse_default()?;
                }
                TokenKind::Slash => {
                    self.bump();
                    match () {
                        () if slash => return wrong("there is one `/` already"),
                        () if star.is_some() => return wrong("`/` must stand before `*`"),
                        () if parameters.args.is_empty() => {
                            return wrong("a parameter must stand before `/`");
                        }
                        () => {}
                    }
                    slash = true;
                    parameters.posonlyargs = std::mem::take(&mut parameters.args);
                }
                TokenKind::Name => {
                    let parameter = self.parameter(from, annotated, false)?;
                    let default = match self.eat(TokenKind::Equal) {
                        true => Some(Box::new(self.expression()?)),
                        false => None,
                    };
                    wanted = false;
                    let mut before = parameters.posonlyargs.iter().chain(&parameters.args);
                    if star.is_none() && default.is_none() && before.any(|p| p.default.is_some()) {
                        let message = "a parameter without default cannot follow one with a default";
                        return Err(SyntaxError::new(parameter.range(), message));
                    }
                    let parameter = ParameterWithDefault {
                        range: self.range(from),
                        parameter,
                        default,
                    };
                    match star {
                        Some(_) => parameters.kwonlyargs.push(parameter),
                        None => parameters.args.push(parameter),
                    }
                }
                _ => {
                    let or_end = format!("a parameter or `{}`", end.spelling());
                    return Err(match self.current.kind.is_keyword() {
                        true => self
                            .identifier("a parameter")
                            .err()
                            .unwrap_or_else(|| self.unexpected(&or_end)),
                        false => self.unexpected(&or_end),
                    });
                }
            }
            if !self.at(end) && !self.eat(TokenKind::Comma) {
                return Err(self.unexpected(&format!("`,` or `{}`", end.spelling())));
            }
        }
        if let (Some(star), true) = (star, wanted) {
            let message = "a parameter that is passed by name must follow `*`";
            return Err(SyntaxError::new(star, message));
        }
        parameters.range = self.range(start);
        Ok(parameters)
    }

    /// A parameter's name and annotation.
    fn parameter(&mut self, start: u32, annotated: bool, star: bool) -> Result<Parameter> {
        let name = self.identifier("the name of a parameter")?;
        let annotation = match annotated && self.eat(TokenKind::Colon) {
            false => None,
            true if star => Some(Box::new(self.conditional(Context::ELEMENT)?)),
            true => Some(Box::new(self.expression()?)),
        };
        Ok(Parameter {
            range: self.range(start),
            name,
            annotation,
        })
    }

    fn refuse_default(&mut self) -> Result<()> {
        match self.at(TokenKind::Equal) {
            true => {
                let message = "a parameter with `*` or `**` has no default";
                Err(SyntaxError::new(self.current.range(), message))
            }
            false => Ok(()),
        }
    }

    /// `[T, *U, **V]`, where there are any.
    pub(super) fn type_params(&mut self) -> Result<Option<Box<TypeParams>>> {
        if !self.at(TokenKind::LeftBracket) {
            return Ok(None);
        }
        let start = self.start();
        self.open();
        let mut type_params = Vec::new();
        loop {
            type_params.push(self.type_param()?);
            if !self.eat(TokenKind::Comma) || self.at(TokenKind::RightBracket) {
                break;
            }
        }
        self.close(TokenKind::RightBracket, "`,` or ")?;
        let range = self.range(start);
        Ok(Some(Box::new(TypeParams { range, type_params })))
    }

    fn type_param(&mut self) -> Result<TypeParam> {
        let start = self.start();
        let kind = self.current.kind;
        if matches!(kind, TokenKind::Star | TokenKind::DoubleStar) {
            self.bump();
        }
        let name = self.identifier("the name of a type parameter")?;
        let mut bound = None;
        if !matches!(kind, TokenKind::Star | TokenKind::DoubleStar) && self.eat(TokenKind::Colon) {
            bound = Some(Box::new(self.expression()?));
        }
        let default = match self.eat(TokenKind::Equal) {
            false => None,
            true if kind == TokenKind::Star => Some(Box::new(self.conditional(Context::ELEMENT)?)),
            true => Some(Box::new(self.expression()?)),
        };
        let range = self.range(start);
        Ok(match kind {
            TokenKind::Star => TypeParam::TypeVarTuple(TypeParamTypeVarTuple { range, name, default }),
            TokenKind::DoubleStar => TypeParam::ParamSpec(TypeParamParamSpec { range, name, default }),
            _ => TypeParam::TypeVar(TypeParamTypeVar {
                range,
                name,
                bound,
                default,
            }),
        })
    }
}
