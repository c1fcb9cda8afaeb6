//! Walks of a syntax tree that change it.

use crate::ast::*;

/// Changes a tree. A method that is not written goes on to the parts.
pub trait Transformer {
    /// A statement.
    fn visit_stmt(&self, stmt: &mut Stmt) {
        walk_stmt(self, stmt);
    }

    /// An expression.
    fn visit_expr(&self, expr: &mut Expr) {
        walk_expr(self, expr);
    }

    /// The statements of a block.
    fn visit_body(&self, body: &mut [Stmt]) {
        for stmt in body {
            self.visit_stmt(stmt);
        }
    }

    /// The parameters of a function.
    fn visit_parameters(&self, parameters: &mut Parameters) {
        walk_parameters(self, parameters);
    }

    /// The arguments of a call or a class.
    fn visit_arguments(&self, arguments: &mut Arguments) {
        walk_arguments(self, arguments);
    }

    /// A handler of a `try` statement.
    fn visit_except_handler(&self, handler: &mut ExceptHandler) {
        walk_except_handler(self, handler);
    }

    /// A pattern.
    fn visit_pattern(&self, pattern: &mut Pattern) {
        walk_pattern(self, pattern);
    }
}

/// Visits the parts of a statement: decorators and values before targets, targets before blocks.
pub fn walk_stmt<V: Transformer + ?Sized>(v: &V, stmt: &mut Stmt) {
    match stmt {
        Stmt::FunctionDef(s) => {
            decorators(v, &mut s.decorator_list);
            type_params(v, &mut s.type_params);
            v.visit_parameters(&mut s.parameters);
            option(v, &mut s.returns);
            v.visit_body(&mut s.body);
        }
        Stmt::ClassDef(s) => {
            decorators(v, &mut s.decorator_list);
            type_params(v, &mut s.type_params);
            if let Some(arguments) = &mut s.arguments {
                v.visit_arguments(arguments);
            }
            v.visit_body(&mut s.body);
        }
        Stmt::Return(s) => option(v, &mut s.value),
        Stmt::Delete(s) => all(v, &mut s.targets),
        Stmt::TypeAlias(s) => {
            v.visit_expr(&mut s.value);
            type_params(v, &mut s.type_params);
            v.visit_expr(&mut s.name);
        }
        Stmt::Assign(s) => {
            v.visit_expr(&mut s.value);
            all(v, &mut s.targets);
        }
        Stmt::AugAssign(s) => {
            v.visit_expr(&mut s.value);
            v.visit_expr(&mut s.target);
        }
        Stmt::AnnAssign(s) => {
            option(v, &mut s.value);
            v.visit_expr(&mut s.annotation);
            v.visit_expr(&mut s.target);
        }
        Stmt::For(s) => {
            v.visit_expr(&mut s.iter);
            v.visit_expr(&mut s.target);
            v.visit_body(&mut s.body);
            v.visit_body(&mut s.orelse);
        }
        Stmt::While(s) => {
            v.visit_expr(&mut s.test);
            v.visit_body(&mut s.body);
            v.visit_body(&mut s.orelse);
        }
        Stmt::If(s) => {
            v.visit_expr(&mut s.test);
            v.visit_body(&mut s.body);
            for clause in &mut s.elif_else_clauses {
                if let Some(test) = &mut clause.test {
                    v.visit_expr(test);
                }
                v.visit_body(&mut clause.body);
            }
        }
        Stmt::With(s) => {
            for item in &mut s.items {
                v.visit_expr(&mut item.context_expr);
                option(v, &mut item.optional_vars);
            }
            v.visit_body(&mut s.body);
        }
        Stmt::Match(s) => {
            v.visit_expr(&mut s.subject);
            for case in &mut s.cases {
                v.visit_pattern(&mut case.pattern);
                option(v, &mut case.guard);
                v.visit_body(&mut case.body);
            }
        }
        Stmt::Raise(s) => {
            option(v, &mut s.exc);
            option(v, &mut s.cause);
        }
        Stmt::Try(s) => {
            v.visit_body(&mut s.body);
            for handler in &mut s.handlers {
                v.visit_except_handler(handler);
            }
            v.visit_body(&mut s.orelse);
            v.visit_body(&mut s.finalbody);
        }
        Stmt::Assert(s) => {
            v.visit_expr(&mut s.test);
            option(v, &mut s.msg);
        }
        Stmt::Expr(s) => v.visit_expr(&mut s.value),
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
pub fn walk_except_handler<V: Transformer + ?Sized>(v: &V, handler: &mut ExceptHandler) {
    let ExceptHandler::ExceptHandler(handler) = handler;
    option(v, &mut handler.type_);
    v.visit_body(&mut handler.body);
}

/// Visits the parts of an expression.
pub fn walk_expr<V: Transformer + ?Sized>(v: &V, expr: &mut Expr) {
    match expr {
        Expr::BoolOp(e) => all(v, &mut e.values),
        Expr::Named(e) => {
            v.visit_expr(&mut e.value);
            v.visit_expr(&mut e.target);
        }
        Expr::BinOp(e) => {
            v.visit_expr(&mut e.left);
            v.visit_expr(&mut e.right);
        }
        Expr::UnaryOp(e) => v.visit_expr(&mut e.operand),
        Expr::Lambda(e) => {
            if let Some(parameters) = &mut e.parameters {
                v.visit_parameters(parameters);
            }
            v.visit_expr(&mut e.body);
        }
        Expr::If(e) => {
            v.visit_expr(&mut e.test);
            v.visit_expr(&mut e.body);
            v.visit_expr(&mut e.orelse);
        }
        Expr::Dict(e) => {
            for item in &mut e.items {
                if let Some(key) = &mut item.key {
                    v.visit_expr(key);
                }
                v.visit_expr(&mut item.value);
            }
        }
        Expr::Set(e) => all(v, &mut e.elts),
        Expr::ListComp(e) => {
            generators(v, &mut e.generators);
            v.visit_expr(&mut e.elt);
        }
        Expr::SetComp(e) => {
            generators(v, &mut e.generators);
            v.visit_expr(&mut e.elt);
        }
        Expr::DictComp(e) => {
            generators(v, &mut e.generators);
            v.visit_expr(&mut e.key);
            v.visit_expr(&mut e.value);
        }
        Expr::Generator(e) => {
            generators(v, &mut e.generators);
            v.visit_expr(&mut e.elt);
        }
        Expr::Await(e) => v.visit_expr(&mut e.value),
        Expr::Yield(e) => option(v, &mut e.value),
        Expr::YieldFrom(e) => v.visit_expr(&mut e.value),
        Expr::Compare(e) => {
            v.visit_expr(&mut e.left);
            all(v, &mut e.comparators);
        }
        Expr::Call(e) => {
            v.visit_expr(&mut e.func);
            v.visit_arguments(&mut e.arguments);
        }
        Expr::FString(e) => {
            for part in e.value.iter_mut() {
                if let FStringPart::FString(f) = part {
                    elements(v, &mut f.elements);
                }
            }
        }
        Expr::Attribute(e) => v.visit_expr(&mut e.value),
        Expr::Subscript(e) => {
            v.visit_expr(&mut e.value);
            v.visit_expr(&mut e.slice);
        }
        Expr::Starred(e) => v.visit_expr(&mut e.value),
        Expr::List(e) => all(v, &mut e.elts),
        Expr::Tuple(e) => all(v, &mut e.elts),
        Expr::Slice(e) => {
            option(v, &mut e.lower);
            option(v, &mut e.upper);
            option(v, &mut e.step);
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
pub fn walk_parameters<V: Transformer + ?Sized>(v: &V, parameters: &mut Parameters) {
    let Parameters {
        posonlyargs,
        args,
        vararg,
        kwonlyargs,
        kwarg,
        ..
    } = parameters;
    for list in [&mut *posonlyargs, &mut *args, &mut *kwonlyargs] {
        for parameter in list.iter_mut() {
            option(v, &mut parameter.default);
            option(v, &mut parameter.parameter.annotation);
        }
    }
    for parameter in vararg.iter_mut().chain(kwarg.iter_mut()) {
        option(v, &mut parameter.annotation);
    }
}

/// Visits positional arguments, then those with a keyword.
pub fn walk_arguments<V: Transformer + ?Sized>(v: &V, arguments: &mut Arguments) {
    all(v, &mut arguments.args);
    for keyword in &mut arguments.keywords {
        v.visit_expr(&mut keyword.value);
    }
}

/// Visits the parts of a pattern.
pub fn walk_pattern<V: Transformer + ?Sized>(v: &V, pattern: &mut Pattern) {
    match pattern {
        Pattern::MatchValue(p) => v.visit_expr(&mut p.value),
        Pattern::MatchSequence(p) => patterns(v, &mut p.patterns),
        Pattern::MatchMapping(p) => {
            all(v, &mut p.keys);
            patterns(v, &mut p.patterns);
        }
        Pattern::MatchClass(p) => {
            v.visit_expr(&mut p.cls);
            patterns(v, &mut p.arguments.patterns);
            for keyword in &mut p.arguments.keywords {
                v.visit_pattern(&mut keyword.pattern);
            }
        }
        Pattern::MatchAs(p) => {
            if let Some(pattern) = &mut p.pattern {
                v.visit_pattern(pattern);
            }
        }
        Pattern::MatchOr(p) => patterns(v, &mut p.patterns),
        Pattern::MatchSingleton(_) | Pattern::MatchStar(_) => {}
    }
}

fn all<V: Transformer + ?Sized>(v: &V, exprs: &mut [Expr]) {
    for expr in exprs {
        v.visit_expr(expr);
    }
}

fn option<V: Transformer + ?Sized>(v: &V, expr: &mut Option<Box<Expr>>) {
    if let Some(expr) = expr {
        v.visit_expr(expr);
    }
}

fn patterns<V: Transformer + ?Sized>(v: &V, patterns: &mut [Pattern]) {
    for pattern in patterns {
        v.visit_pattern(pattern);
    }
}

fn decorators<V: Transformer + ?Sized>(v: &V, decorators: &mut [Decorator]) {
    for decorator in decorators {
        v.visit_expr(&mut decorator.expression);
    }
}

fn type_params<V: Transformer + ?Sized>(v: &V, params: &mut Option<Box<TypeParams>>) {
    let Some(params) = params else { return };
    for param in &mut params.type_params {
        match param {
            TypeParam::TypeVar(p) => {
                option(v, &mut p.bound);
                option(v, &mut p.default);
            }
            TypeParam::TypeVarTuple(p) => option(v, &mut p.default),
            TypeParam::ParamSpec(p) => option(v, &mut p.default),
        }
    }
}

fn generators<V: Transformer + ?Sized>(v: &V, generators: &mut [Comprehension]) {
    for generator in generators {
        v.visit_expr(&mut generator.iter);
        v.visit_expr(&mut generator.target);
        all(v, &mut generator.ifs);
    }
}

fn elements<V: Transformer + ?Sized>(v: &V, elements: &mut [InterpolatedStringElement]) {
    for element in elements {
        if let InterpolatedStringElement::Interpolation(field) = element {
            v.visit_expr(&mut field.expression);
            if let Some(format) = &mut field.format_spec {
                self::elements(v, &mut format.elements);
            }
        }
    }
}
