//! Which calls of a file are of TVM 0.26, and with which arguments?

use std::ops::Range;

use tirx_python as ast;
use tirx_python::visitor::{Visitor, walk_expr, walk_stmt};
use tirx_python::{Ranged, TextRange};

use tirx_script::lang;
use tirx_script::release::ptx_path;

impl OldCall {
    /// Its arguments, those by position first.
    pub(super) fn all(&self) -> impl Iterator<Item = &Argument> {
        self.positional
            .iter()
            .chain(self.keywords.iter().map(|(_, value)| value))
    }

    /// The same, to be changed.
    pub(super) fn all_mut(&mut self) -> impl Iterator<Item = &mut Argument> {
        self.positional
            .iter_mut()
            .chain(self.keywords.iter_mut().map(|(_, value)| value))
    }
}

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
    /// Whether it is the value that `T.reinterpret` takes.
    pub(super) is_reinterpreted: bool,
    /// The statement that it is in; `None` in what no statement of a kernel evaluates, such as a decorator.
    pub(super) around: Option<Around>,
}

/// The statement that a call is in.
#[derive(Clone, Debug)]
pub(super) struct Around {
    pub(super) range: Range<usize>,
    /// What stands before it on its line, where that is nothing but space.
    pub(super) indent: Option<String>,
    pub(super) form: StatementForm,
    /// The statements within it: what each stands in.
    pub(super) bodies: Vec<Range<usize>>,
    /// Why a value of the call cannot be computed before the statement.
    pub(super) bound: Option<&'static str>,
    /// Whether it is in a function of plain Python, where an annotation declares nothing and a call alone builds nothing.
    pub(super) is_plain: bool,
}

impl Around {
    /// What an instruction writes to, for a value that gets the name `temporary`.
    pub(super) fn variable(&self, temporary: &str) -> String {
        match self.is_plain {
            true => format!("{temporary}[0]"),
            false => temporary.into(),
        }
    }
}

/// What a statement does with the value of a call.
#[derive(Clone, Debug)]
pub(super) enum StatementForm {
    /// It is the call: its value is dropped.
    Call,
    /// It assigns the value: `A[i] = …`.
    Assign { target: String },
    /// It declares a name and gives it the value: `x: T.uint32 = …`.
    Declare { target: String, annotation: String },
    /// It is a loop whose condition has the call.
    While { test: Range<usize> },
    /// The value is a part of something else.
    Within,
}

/// An argument as it is written.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Argument {
    pub(super) text: String,
    /// Its value, of a literal.
    pub(super) literal: Option<Literal>,
    /// Its value wherever the kernels evaluate it, if that is one constant: 128 of `BN`.
    pub(super) observed: Option<Literal>,
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
    /// An argument that the file does not contain, such as a default of a signature: a literal in Python's spelling.
    pub(super) fn from_literal(literal: Literal) -> Argument {
        Argument {
            text: match &literal {
                Literal::Int(value) => value.to_string(),
                Literal::Text(text) => format!("\"{text}\""),
                Literal::None => "None".into(),
            },
            literal: Some(literal),
            observed: None,
            element: None,
            items: None,
        }
    }

    /// An argument whose text is put together from other arguments; its value is not known.
    pub(super) fn from_text(text: &str) -> Argument {
        Argument {
            text: text.to_string(),
            literal: None,
            observed: None,
            element: None,
            items: None,
        }
    }

    /// Its value, where that is known.
    pub(super) fn known(&self) -> Option<&Literal> {
        self.literal.as_ref().or(self.observed.as_ref())
    }

    /// Whether evaluating it once more changes nothing, so that its value can be observed: it has no calls.
    pub(super) fn is_observable(&self) -> bool {
        self.literal.is_none() && self.items.is_none() && !self.text.contains(['*', '(', '{', '\n'])
    }

    /// The element whose address this is, and those behind it: `A[i, j]`, `A[i, j + 1]`.
    pub(super) fn consecutive(&self, count: usize) -> Option<Vec<Argument>> {
        let element = self.element.as_ref()?;
        let start = element.strip_suffix(']')?;
        let (outer, last) = start.split_at(start.rfind(['[', ',', ' '])? + 1);
        let behind = |at: usize| match (at, last.parse::<usize>()) {
            (0, _) => element.clone(),
            (_, Ok(last)) if !outer.ends_with("- ") && !outer.ends_with("+ ") && !outer.ends_with("* ") => {
                format!("{outer}{}]", last + at)
            }
            _ => format!("{start} + {at}]"),
        };
        (!element.starts_with('*')).then(|| (0..count).map(|at| Argument::from_text(&behind(at))).collect())
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
            observed: None,
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
pub(super) fn find(module: &ast::ModModule, text: &str) -> Vec<OldCall> {
    let mut found = Calls {
        text,
        statement: None,
        bound: None,
        is_plain: false,
        reinterpreted: Vec::new(),
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
    /// Why what is being visited must stay where it is.
    bound: Option<&'static str>,
    /// Whether the function around it is plain Python.
    is_plain: bool,
    /// What `T.reinterpret` takes.
    reinterpreted: Vec<TextRange>,
    calls: Vec<OldCall>,
}

fn bytes(range: TextRange) -> Range<usize> {
    range.start().to_usize()..range.end().to_usize()
}

/// From the first to the last statement of a block.
fn whole(body: &[ast::Stmt]) -> Option<Range<usize>> {
    Some(bytes(body.first()?.range()).start..bytes(body.last()?.range()).end)
}

impl<'a> Calls<'a> {
    fn around(&self, call: &ast::ExprCall) -> Option<Around> {
        let stmt = self.statement?;
        let text = |range: TextRange| self.text[bytes(range)].to_string();
        let is_call = |e: &ast::Expr| e.range() == call.range();
        let mut bodies: Vec<Option<Range<usize>>> = Vec::new();
        let form = match stmt {
            ast::Stmt::Expr(e) if is_call(&e.value) => StatementForm::Call,
            ast::Stmt::Assign(assign) if is_call(&assign.value) => match &assign.targets[..] {
                [one @ (ast::Expr::Name(_) | ast::Expr::Subscript(_))] => StatementForm::Assign {
                    target: text(one.range()),
                },
                _ => StatementForm::Within,
            },
            ast::Stmt::AnnAssign(assign)
                if assign.simple && assign.value.as_ref().is_some_and(|e| is_call(e)) =>
            {
                StatementForm::Declare {
                    target: text(assign.target.range()),
                    annotation: text(assign.annotation.range()),
                }
            }
            ast::Stmt::While(s) => {
                bodies.push(whole(&s.body));
                bodies.push(whole(&s.orelse));
                StatementForm::While {
                    test: bytes(s.test.range()),
                }
            }
            ast::Stmt::If(s) => {
                bodies.push(whole(&s.body));
                bodies.extend(s.elif_else_clauses.iter().map(|clause| whole(&clause.body)));
                StatementForm::Within
            }
            ast::Stmt::For(s) => {
                bodies.push(whole(&s.body));
                bodies.push(whole(&s.orelse));
                StatementForm::Within
            }
            ast::Stmt::With(s) => {
                bodies.push(whole(&s.body));
                StatementForm::Within
            }
            ast::Stmt::FunctionDef(_) | ast::Stmt::ClassDef(_) | ast::Stmt::Try(_) | ast::Stmt::Match(_) => {
                return None;
            }
            _ => StatementForm::Within,
        };
        let range = bytes(stmt.range());
        let line = self.text[..range.start].rfind('\n').map_or(0, |at| at + 1);
        let before = &self.text[line..range.start];
        Some(Around {
            indent: before.trim().is_empty().then(|| before.to_string()),
            range,
            form,
            bodies: bodies.into_iter().flatten().collect(),
            bound: self.bound,
            is_plain: self.is_plain,
        })
    }

    fn visit_if(&mut self, s: &'a ast::StmtIf) {
        self.visit_expr(&s.test);
        s.body.iter().for_each(|stmt| self.visit_stmt(stmt));
        for clause in &s.elif_else_clauses {
            if let Some(test) = &clause.test {
                let why = "it is in the condition of an `elif`, and no statement can precede an `elif`: write `else:` with an `if` inside";
                self.visit_bound(why, |visitor| visitor.visit_expr(test));
            }
            clause.body.iter().for_each(|stmt| self.visit_stmt(stmt));
        }
    }

    /// Visits what is evaluated only sometimes, or more than once.
    fn visit_bound(&mut self, why: &'static str, visit: impl FnOnce(&mut Self)) {
        let around = self.bound;
        self.bound = around.or(Some(why));
        visit(self);
        self.bound = around;
    }
}

impl<'a> Visitor<'a> for Calls<'a> {
    fn visit_stmt(&mut self, stmt: &'a ast::Stmt) {
        let around = self.statement.replace(stmt);
        let bound = self.bound.take();
        let is_plain = self.is_plain;
        match stmt {
            ast::Stmt::If(s) => self.visit_if(s),
            ast::Stmt::FunctionDef(function) => {
                self.is_plain = function.decorator_list.is_empty();
                walk_stmt(self, stmt);
            }
            _ => walk_stmt(self, stmt),
        }
        self.is_plain = is_plain;
        self.statement = around;
        self.bound = bound;
    }

    fn visit_expr(&mut self, e: &'a ast::Expr) {
        if let ast::Expr::Call(call) = e
            && matches!(&*call.func, ast::Expr::Attribute(function) if function.attr.as_str() == "reinterpret")
        {
            self.reinterpreted
                .extend(call.arguments.args.iter().map(|arg| arg.range()));
        }
        if let ast::Expr::Call(call) = e
            && let Some(path) = ptx_path(&call.func)
        {
            let name = format!("T.ptx.{}", path.join("."));
            if lang::is_old_ptx(&name, true) {
                let keywords = call.arguments.keywords.iter().map(|keyword| {
                    let name = keyword.arg.as_ref().map_or("**", |name| name.as_str());
                    (name.to_string(), Argument::new(&keyword.value, self.text))
                });
                self.calls.push(OldCall {
                    name,
                    call: bytes(call.range()),
                    arguments: self.text[bytes(call.arguments.range())].to_string(),
                    positional: call
                        .arguments
                        .args
                        .iter()
                        .map(|arg| Argument::new(arg, self.text))
                        .collect(),
                    keywords: keywords.collect(),
                    is_reinterpreted: self.reinterpreted.contains(&call.range()),
                    around: self.around(call),
                });
            }
        }
        const SOMETIMES: &str = "it is computed only under the condition before it: write an `if` statement";
        const OFTEN: &str = "it is computed for each element: write a loop";
        match e {
            ast::Expr::BoolOp(op) => {
                if let Some((first, rest)) = op.values.split_first() {
                    self.visit_expr(first);
                    self.visit_bound(SOMETIMES, |visitor| {
                        rest.iter().for_each(|e| visitor.visit_expr(e));
                    });
                }
            }
            ast::Expr::If(choice) => {
                self.visit_expr(&choice.test);
                self.visit_bound(SOMETIMES, |visitor| {
                    visitor.visit_expr(&choice.body);
                    visitor.visit_expr(&choice.orelse);
                });
            }
            ast::Expr::Call(call) if is_choice(&call.func) => {
                if let Some((first, rest)) = call.arguments.args.split_first() {
                    self.visit_expr(first);
                    self.visit_bound(SOMETIMES, |visitor| {
                        rest.iter().for_each(|e| visitor.visit_expr(e));
                    });
                }
            }
            ast::Expr::Lambda(_)
            | ast::Expr::ListComp(_)
            | ast::Expr::SetComp(_)
            | ast::Expr::DictComp(_)
            | ast::Expr::Generator(_) => self.visit_bound(OFTEN, |visitor| walk_expr(visitor, e)),
            _ => walk_expr(self, e),
        }
    }
}

/// Whether a function evaluates one of its arguments only: `T.if_then_else`.
fn is_choice(function: &ast::Expr) -> bool {
    matches!(function, ast::Expr::Attribute(a) if a.attr.as_str() == "if_then_else")
}
