//! Walks of a syntax tree that read it.

use crate::ast::*;

pub mod transformer;

/// Reads a tree. A method that is not written goes on to the parts.
pub trait Visitor<'a> {
    /// A statement.
    fn visit_stmt(&mut self, stmt: &'a Stmt) {
        walk_stmt(self, stmt);
    }

    /// An expression.
    fn visit_expr(&mut self, expr: &'a Expr) {
        walk_expr(self, expr);
    }

    /// The statements of a block.
    fn visit_body(&mut self, body: &'a [Stmt]) {
        for stmt in body {
            self.visit_stmt(stmt);
        }
    }

    /// The parameters of a function.
    fn visit_parameters(&mut self, parameters: &'a Parameters) {
        walk_parameters(self, parameters);
    }

    /// The arguments of a call or a class.
    fn visit_arguments(&mut self, arguments: &'a Arguments) {
        walk_arguments(self, arguments);
    }

    /// A handler of a `try` statement.
    fn visit_except_handler(&mut self, handler: &'a ExceptHandler) {
        walk_except_handler(self, handler);
    }

    /// A pattern.
    fn visit_pattern(&mut self, pattern: &'a Pattern) {
        walk_pattern(self, pattern);
    }
}

/// Visits the parts of a statement: decorators and values before targets, targets before blocks.
pub fn walk_stmt<'a, V: Visitor<'a> + ?Sized>(v: &mut V, stmt: &'a Stmt) {
    match stmt {
        Stmt::FunctionDef(s) => {
            decorators(v, &s.decorator_list);
            type_params(v, &s.type_params);
            v.visit_parameters(&s.parameters);
            option(v, &s.returns);
            v.visit_body(&s.body);
        }
        Stmt::ClassDef(s) => {
            decorators(v, &s.decorator_list);
            type_params(v, &s.type_params);
            if let Some(arguments) = &s.arguments {
                v.visit_arguments(arguments);
            }
            v.visit_body(&s.body);
        }
        Stmt::Return(s) => option(v, &s.value),
        Stmt::Delete(s) => all(v, &s.targets),
        Stmt::TypeAlias(s) => {
            v.visit_expr(&s.value);
            type_params(v, &s.type_params);
            v.visit_expr(&s.name);
        }
        Stmt::Assign(s) => {
            v.visit_expr(&s.value);
            all(v, &s.targets);
        }
        Stmt::AugAssign(s) => {
            v.visit_expr(&s.value);
            v.visit_expr(&s.target);
        }
        Stmt::AnnAssign(s) => {
            option(v, &s.value);
            v.visit_expr(&s.annotation);
            v.visit_expr(&s.target);
        }
        Stmt::For(s) => {
            v.visit_expr(&s.iter);
            v.visit_expr(&s.target);
            v.visit_body(&s.body);
            v.visit_body(&s.orelse);
        }
        Stmt::While(s) => {
            v.visit_expr(&s.test);
            v.visit_body(&s.body);
            v.visit_body(&s.orelse);
        }
        Stmt::If(s) => {
            v.visit_expr(&s.test);
            v.visit_body(&s.body);
            for clause in &s.elif_else_clauses {
                if let Some(test) = &clause.test {
                    v.visit_expr(test);
                }
                v.visit_body(&clause.body);
            }
        }
        Stmt::With(s) => {
            for item in &s.items {
                v.visit_expr(&item.context_expr);
                option(v, &item.optional_vars);
            }
            v.visit_body(&s.body);
        }
        Stmt::Match(s) => {
            v.visit_expr(&s.subject);
            for case in &s.cases {
                v.visit_pattern(&case.pattern);
                option(v, &case.guard);
                v.visit_body(&case.body);
            }
        }
        Stmt::Raise(s) => {
            option(v, &s.exc);
            option(v, &s.cause);
        }
        Stmt::Try(s) => {
            v.visit_body(&s.body);
            for handler in &s.handlers {
                v.visit_except_handler(handler);
            }
            v.visit_body(&s.orelse);
            v.visit_body(&s.finalbody);
        }
        Stmt::Assert(s) => {
            v.visit_expr(&s.test);
            option(v, &s.msg);
        }
        Stmt::Expr(s) => v.visit_expr(&s.value),
        Stmt::Import(_)
        | Stmt::ImportFrom(_)
        | Stmt::Global(_)
        | Stmt::Nonlocal(_)
        | Stmt::Pass(_)
        | Stmt::Break(_)
        | Stmt::Continue(_) => {}
    }
}

/// Visits the type that a handler catches, and its block.
pub fn walk_except_handler<'a, V: Visitor<'a> + ?Sized>(v: &mut V, handler: &'a ExceptHandler) {
    let ExceptHandler::ExceptHandler(handler) = handler;
    option(v, &handler.type_);
    v.visit_body(&handler.body);
}

/// Visits the parts of an expression.
pub fn walk_expr<'a, V: Visitor<'a> + ?Sized>(v: &mut V, expr: &'a Expr) {
    match expr {
        Expr::BoolOp(e) => all(v, &e.values),
        Expr::Named(e) => {
            v.visit_expr(&e.value);
            v.visit_expr(&e.target);
        }
        Expr::BinOp(e) => {
            v.visit_expr(&e.left);
            v.visit_expr(&e.right);
        }
        Expr::UnaryOp(e) => v.visit_expr(&e.operand),
        Expr::Lambda(e) => {
            if let Some(parameters) = &e.parameters {
                v.visit_parameters(parameters);
            }
            v.visit_expr(&e.body);
        }
        Expr::If(e) => {
            v.visit_expr(&e.test);
            v.visit_expr(&e.body);
            v.visit_expr(&e.orelse);
        }
        Expr::Dict(e) => {
            for item in &e.items {
                if let Some(key) = &item.key {
                    v.visit_expr(key);
                }
                v.visit_expr(&item.value);
            }
        }
        Expr::Set(e) => all(v, &e.elts),
        Expr::ListComp(e) => {
            generators(v, &e.generators);
            v.visit_expr(&e.elt);
        }
        Expr::SetComp(e) => {
            generators(v, &e.generators);
            v.visit_expr(&e.elt);
        }
        Expr::DictComp(e) => {
            generators(v, &e.generators);
            v.visit_expr(&e.key);
            v.visit_expr(&e.value);
        }
        Expr::Generator(e) => {
            generators(v, &e.generators);
            v.visit_expr(&e.elt);
        }
        Expr::Await(e) => v.visit_expr(&e.value),
        Expr::Yield(e) => option(v, &e.value),
        Expr::YieldFrom(e) => v.visit_expr(&e.value),
        Expr::Compare(e) => {
            v.visit_expr(&e.left);
            all(v, &e.comparators);
        }
        Expr::Call(e) => {
            v.visit_expr(&e.func);
            v.visit_arguments(&e.arguments);
        }
        Expr::FString(e) => {
            for part in e.value.iter() {
                if let FStringPart::FString(f) = part {
                    elements(v, &f.elements);
                }
            }
        }
        Expr::Attribute(e) => v.visit_expr(&e.value),
        Expr::Subscript(e) => {
            v.visit_expr(&e.value);
            v.visit_expr(&e.slice);
        }
        Expr::Starred(e) => v.visit_expr(&e.value),
        Expr::List(e) => all(v, &e.elts),
        Expr::Tuple(e) => all(v, &e.elts),
        Expr::Slice(e) => {
            option(v, &e.lower);
            option(v, &e.upper);
            option(v, &e.step);
        }
        Expr::StringLiteral(_)
        | Expr::BytesLiteral(_)
        | Expr::NumberLiteral(_)
        | Expr::BooleanLiteral(_)
        | Expr::NoneLiteral(_)
        | Expr::EllipsisLiteral(_)
        | Expr::Name(_) => {}
    }
}

/// Visits defaults, then annotations.
pub fn walk_parameters<'a, V: Visitor<'a> + ?Sized>(v: &mut V, parameters: &'a Parameters) {
    let Parameters {
        posonlyargs,
        args,
        vararg,
        kwonlyargs,
        kwarg,
        ..
    } = parameters;
    for list in [&*posonlyargs, &*args, &*kwonlyargs] {
        for parameter in list.iter() {
            option(v, &parameter.default);
            option(v, &parameter.parameter.annotation);
        }
    }
    for parameter in vararg.iter().chain(kwarg.iter()) {
        option(v, &parameter.annotation);
    }
}

/// Visits positional arguments, then those with a keyword.
pub fn walk_arguments<'a, V: Visitor<'a> + ?Sized>(v: &mut V, arguments: &'a Arguments) {
    all(v, &arguments.args);
    for keyword in &arguments.keywords {
        v.visit_expr(&keyword.value);
    }
}

/// Visits the parts of a pattern.
pub fn walk_pattern<'a, V: Visitor<'a> + ?Sized>(v: &mut V, pattern: &'a Pattern) {
    match pattern {
        Pattern::MatchValue(p) => v.visit_expr(&p.value),
        Pattern::MatchSequence(p) => patterns(v, &p.patterns),
        Pattern::MatchMapping(p) => {
            all(v, &p.keys);
            patterns(v, &p.patterns);
        }
        Pattern::MatchClass(p) => {
            v.visit_expr(&p.cls);
            patterns(v, &p.arguments.patterns);
            for keyword in &p.arguments.keywords {
                v.visit_pattern(&keyword.pattern);
            }
        }
        Pattern::MatchAs(p) => {
            if let Some(pattern) = &p.pattern {
                v.visit_pattern(pattern);
            }
        }
        Pattern::MatchOr(p) => patterns(v, &p.patterns),
        Pattern::MatchSingleton(_) | Pattern::MatchStar(_) => {}
    }
}

fn all<'a, V: Visitor<'a> + ?Sized>(v: &mut V, exprs: &'a [Expr]) {
    for expr in exprs {
        v.visit_expr(expr);
    }
}

fn option<'a, V: Visitor<'a> + ?Sized>(v: &mut V, expr: &'a Option<Box<Expr>>) {
    if let Some(expr) = expr {
        v.visit_expr(expr);
    }
}

fn patterns<'a, V: Visitor<'a> + ?Sized>(v: &mut V, patterns: &'a [Pattern]) {
    for pattern in patterns {
        v.visit_pattern(pattern);
    }
}

fn decorators<'a, V: Visitor<'a> + ?Sized>(v: &mut V, decorators: &'a [Decorator]) {
    for decorator in decorators {
        v.visit_expr(&decorator.expression);
    }
}

fn type_params<'a, V: Visitor<'a> + ?Sized>(v: &mut V, params: &'a Option<Box<TypeParams>>) {
    let Some(params) = params else { return };
    for param in &params.type_params {
        match param {
            TypeParam::TypeVar(p) => {
                option(v, &p.bound);
                option(v, &p.default);
            }
            TypeParam::TypeVarTuple(p) => option(v, &p.default),
            TypeParam::ParamSpec(p) => option(v, &p.default),
        }
    }
}

fn generators<'a, V: Visitor<'a> + ?Sized>(v: &mut V, generators: &'a [Comprehension]) {
    for generator in generators {
        v.visit_expr(&generator.iter);
        v.visit_expr(&generator.target);
        all(v, &generator.ifs);
    }
}

fn elements<'a, V: Visitor<'a> + ?Sized>(v: &mut V, elements: &'a [InterpolatedStringElement]) {
    for element in elements {
        if let InterpolatedStringElement::Interpolation(field) = element {
            v.visit_expr(&field.expression);
            if let Some(format) = &field.format_spec {
                self::elements(v, &format.elements);
            }
        }
    }
}
