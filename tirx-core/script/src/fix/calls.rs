//! Which calls of a file are of TVM 0.26, and with which arguments?

use std::ops::Range;

use tirx_python as ast;
use tirx_python::visitor::{Visitor, walk_expr, walk_stmt};
use tirx_python::{Ranged, TextRange};

use crate::lang;
use crate::release::ptx_path;

/// A call of a function of PTX.
pub(super) struct OldCall {
    /// `T.ptx.ld`.
    pub(super) name: String,
    /// Where the call is.
    pub(super) call: Range<usize>,
    /// Its arguments as they are written, with what is within the parentheses.
    pub(super) arguments: String,
    pub(super) positional: Vec<Argument>,
    pub(super) keywords: Vec<(String, Argument)>,
    /// The statement that it is, where it is one or what one assigns.
    pub(super) statement: Option<Statement>,
}

/// The statement of a call.
pub(super) struct Statement {
    pub(super) range: Range<usize>,
    /// What its value is assigned to: `A[i]`.
    pub(super) target: Option<String>,
    /// The declaration that makes the target: `x: T.uint32`, with what separates it from the next statement.
    pub(super) declaration: String,
}

/// An argument as it is written.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Argument {
    pub(super) text: String,
    /// Its value, of a literal.
    pub(super) literal: Option<Literal>,
    /// The element that it is the address of: `A[i]` of `A.ptr_to([i])`.
    pub(super) element: Option<String>,
    /// The elements of a list.
    pub(super) items: Option<Vec<Argument>>,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Literal {
    Int(i128),
    Text(String),
    None,
}

impl Argument {
    /// One that a signature gives.
    pub(super) fn of_literal(literal: Literal) -> Argument {
        Argument {
            text: match &literal {
                Literal::Int(value) => value.to_string(),
                Literal::Text(text) => format!("\"{text}\""),
                Literal::None => "None".into(),
            },
            literal: Some(literal),
            element: None,
            items: None,
        }
    }

    pub(super) fn new(e: &ast::Expr, text: &str) -> Argument {
        let slice = |range: TextRange| text[range.start().to_usize()..range.end().to_usize()].to_string();
        let items = match e {
            ast::Expr::List(list) => Some(&list.elts),
            ast::Expr::Tuple(tuple) => Some(&tuple.elts),
            _ => None,
        };
        Argument {
            text: slice(e.range()),
            literal: literal(e),
            element: element(e, &slice),
            items: items.map(|items| items.iter().map(|item| Argument::new(item, text)).collect()),
        }
    }
}

fn literal(e: &ast::Expr) -> Option<Literal> {
    Some(match e {
        ast::Expr::StringLiteral(text) => Literal::Text(text.value.to_str().to_string()),
        ast::Expr::BooleanLiteral(flag) => Literal::Int(flag.value.into()),
        ast::Expr::NoneLiteral(_) => Literal::None,
        ast::Expr::NumberLiteral(number) => match &number.value {
            ast::Number::Int(value) => Literal::Int(value.as_i64()?.into()),
            _ => return None,
        },
        ast::Expr::UnaryOp(minus) if minus.op == ast::UnaryOp::USub => match literal(&minus.operand)? {
            Literal::Int(value) => Literal::Int(-value),
            _ => return None,
        },
        _ => return None,
    })
}

/// The element that an address is of, as text.
fn element(e: &ast::Expr, slice: &dyn Fn(TextRange) -> String) -> Option<String> {
    if let ast::Expr::Starred(list) = e {
        return Some(format!(
            "*{}",
            element(&list.value, slice)?.trim_start_matches('*')
        ));
    }
    if let ast::Expr::ListComp(list) = e {
        // `[A.ptr_to([i]) for i in range(4)]`
        let rest = slice(TextRange::new(list.elt.range().end(), e.range().end()));
        return Some(format!("*[{}{rest}", element(&list.elt, slice)?));
    }
    let ast::Expr::Call(call) = e else { return None };
    let ast::Expr::Attribute(function) = &*call.func else {
        return None;
    };
    let [only] = &call.arguments.args[..] else {
        return None;
    };
    match (function.attr.as_str(), only) {
        ("ptr_to", ast::Expr::List(list)) => {
            let indices: Vec<String> = list.elts.iter().map(|index| slice(index.range())).collect();
            Some(format!(
                "{}[{}]",
                slice(function.value.range()),
                indices.join(", ")
            ))
        }
        ("address_of", element) => Some(slice(element.range())),
        _ => None,
    }
}

/// The calls, in the order in which they begin.
pub(super) fn of(module: &ast::ModModule, text: &str) -> Vec<OldCall> {
    let mut found = Calls {
        text,
        statement: None,
        calls: Vec::new(),
    };
    module.body.iter().for_each(|stmt| found.visit_stmt(stmt));
    found.calls.sort_by_key(|call| call.call.start);
    found.calls
}

struct Calls<'a> {
    text: &'a str,
    /// The statement that is being visited.
    statement: Option<&'a ast::Stmt>,
    calls: Vec<OldCall>,
}

fn bytes(range: TextRange) -> Range<usize> {
    range.start().to_usize()..range.end().to_usize()
}

impl<'a> Calls<'a> {
    fn statement(&self, call: &ast::ExprCall) -> Option<Statement> {
        let stmt = self.statement?;
        let is_call = |e: &ast::Expr| e.range() == call.range();
        let (target, declaration) = match stmt {
            ast::Stmt::Expr(e) if is_call(&e.value) => (None, String::new()),
            ast::Stmt::Assign(assign) if is_call(&assign.value) => match &assign.targets[..] {
                [one @ (ast::Expr::Name(_) | ast::Expr::Subscript(_))] => {
                    (Some(self.text[bytes(one.range())].to_string()), String::new())
                }
                _ => return None,
            },
            ast::Stmt::AnnAssign(assign)
                if assign.simple && assign.value.as_ref().is_some_and(|e| is_call(e)) =>
            {
                let declared = assign.target.range().start()..assign.annotation.range().end();
                let declared = &self.text[declared.start.to_usize()..declared.end.to_usize()];
                let start = stmt.range().start().to_usize();
                let line = self.text[..start].rfind('\n').map_or(0, |at| at + 1);
                let before = &self.text[line..start];
                let separator = match before.trim().is_empty() {
                    true => format!("\n{before}"),
                    false => "; ".into(),
                };
                let target = self.text[bytes(assign.target.range())].to_string();
                (Some(target), format!("{declared}{separator}"))
            }
            _ => return None,
        };
        Some(Statement {
            range: bytes(stmt.range()),
            target,
            declaration,
        })
    }
}

impl<'a> Visitor<'a> for Calls<'a> {
    fn visit_stmt(&mut self, stmt: &'a ast::Stmt) {
        let around = self.statement.replace(stmt);
        walk_stmt(self, stmt);
        self.statement = around;
    }

    fn visit_expr(&mut self, e: &'a ast::Expr) {
        if let ast::Expr::Call(call) = e
            && let Some(path) = ptx_path(&call.func)
        {
            let name = format!("T.ptx.{}", path.join("."));
            if lang::is_old_ptx(&name, true) {
                let inside = bytes(call.arguments.range());
                let keywords = call.arguments.keywords.iter().map(|keyword| {
                    // `**more` has no name.
                    let name = keyword.arg.as_ref().map_or("**", |name| name.as_str());
                    (name.to_string(), Argument::new(&keyword.value, self.text))
                });
                self.calls.push(OldCall {
                    name,
                    call: bytes(call.range()),
                    arguments: self.text[inside].to_string(),
                    positional: call
                        .arguments
                        .args
                        .iter()
                        .map(|arg| Argument::new(arg, self.text))
                        .collect(),
                    keywords: keywords.collect(),
                    statement: self.statement(call),
                });
            }
        }
        walk_expr(self, e);
    }
}
