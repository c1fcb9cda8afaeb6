//! What the parts of each node are, once for walks that read and for walks that change.

/// Declares the functions that visit the parts of nodes: the lifetime of the tree, the trait of the visitor, how the visitor
/// is passed, how a part and a field are referred to, how a list is iterated over, and how a shared definition is reached.
macro_rules! walks {
    (
        [$($lifetime:tt)*] [$($visitor:tt)*] [$($by:tt)*] [$($part:tt)*] [$($field:tt)*] $iter:ident $definition:ident
    ) => {
        /// Visits the parts of a statement: decorators and values before targets, targets before blocks.
        pub fn walk_stmt<$($lifetime)* V: $($visitor)* + ?Sized>(v: $($by)* V, stmt: $($part)* Stmt) {
            match stmt {
                Stmt::FunctionDef(s) => {
                    let s = $definition(s);
                    decorators(v, $($field)* s.decorator_list);
                    type_params(v, $($field)* s.type_params);
                    v.visit_parameters($($field)* s.parameters);
                    option(v, $($field)* s.returns);
                    v.visit_body($($field)* s.body);
                }
                Stmt::ClassDef(s) => {
                    let s = $definition(s);
                    decorators(v, $($field)* s.decorator_list);
                    type_params(v, $($field)* s.type_params);
                    if let Some(arguments) = $($field)* s.arguments {
                        v.visit_arguments(arguments);
                    }
                    v.visit_body($($field)* s.body);
                }
                Stmt::Return(s) => option(v, $($field)* s.value),
                Stmt::Delete(s) => all(v, $($field)* s.targets),
                Stmt::TypeAlias(s) => {
                    v.visit_expr($($field)* s.value);
                    type_params(v, $($field)* s.type_params);
                    v.visit_expr($($field)* s.name);
                }
                Stmt::Assign(s) => {
                    v.visit_expr($($field)* s.value);
                    all(v, $($field)* s.targets);
                }
                Stmt::AugAssign(s) => {
                    v.visit_expr($($field)* s.value);
                    v.visit_expr($($field)* s.target);
                }
                Stmt::AnnAssign(s) => {
                    option(v, $($field)* s.value);
                    v.visit_expr($($field)* s.annotation);
                    v.visit_expr($($field)* s.target);
                }
                Stmt::For(s) => {
                    v.visit_expr($($field)* s.iter);
                    v.visit_expr($($field)* s.target);
                    v.visit_body($($field)* s.body);
                    v.visit_body($($field)* s.orelse);
                }
                Stmt::While(s) => {
                    v.visit_expr($($field)* s.test);
                    v.visit_body($($field)* s.body);
                    v.visit_body($($field)* s.orelse);
                }
                Stmt::If(s) => {
                    v.visit_expr($($field)* s.test);
                    v.visit_body($($field)* s.body);
                    for clause in $($field)* s.elif_else_clauses {
                        if let Some(test) = $($field)* clause.test {
                            v.visit_expr(test);
                        }
                        v.visit_body($($field)* clause.body);
                    }
                }
                Stmt::With(s) => {
                    for item in $($field)* s.items {
                        v.visit_expr($($field)* item.context_expr);
                        option(v, $($field)* item.optional_vars);
                    }
                    v.visit_body($($field)* s.body);
                }
                Stmt::Match(s) => {
                    v.visit_expr($($field)* s.subject);
                    for case in $($field)* s.cases {
                        v.visit_pattern($($field)* case.pattern);
                        option(v, $($field)* case.guard);
                        v.visit_body($($field)* case.body);
                    }
                }
                Stmt::Raise(s) => {
                    option(v, $($field)* s.exc);
                    option(v, $($field)* s.cause);
                }
                Stmt::Try(s) => {
                    v.visit_body($($field)* s.body);
                    for handler in $($field)* s.handlers {
                        v.visit_except_handler(handler);
                    }
                    v.visit_body($($field)* s.orelse);
                    v.visit_body($($field)* s.finalbody);
                }
                Stmt::Assert(s) => {
                    v.visit_expr($($field)* s.test);
                    option(v, $($field)* s.msg);
                }
                Stmt::Expr(s) => v.visit_expr($($field)* s.value),
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
        pub fn walk_except_handler<$($lifetime)* V: $($visitor)* + ?Sized>(v: $($by)* V, handler: $($part)* ExceptHandler) {
            let ExceptHandler::ExceptHandler(handler) = handler;
            option(v, $($field)* handler.type_);
            v.visit_body($($field)* handler.body);
        }

        /// Visits the parts of an expression.
        pub fn walk_expr<$($lifetime)* V: $($visitor)* + ?Sized>(v: $($by)* V, expr: $($part)* Expr) {
            match expr {
                Expr::BoolOp(e) => all(v, $($field)* e.values),
                Expr::Named(e) => {
                    v.visit_expr($($field)* e.value);
                    v.visit_expr($($field)* e.target);
                }
                Expr::BinOp(e) => {
                    v.visit_expr($($field)* e.left);
                    v.visit_expr($($field)* e.right);
                }
                Expr::UnaryOp(e) => v.visit_expr($($field)* e.operand),
                Expr::Lambda(e) => {
                    if let Some(parameters) = $($field)* e.parameters {
                        v.visit_parameters(parameters);
                    }
                    v.visit_expr($($field)* e.body);
                }
                Expr::If(e) => {
                    v.visit_expr($($field)* e.test);
                    v.visit_expr($($field)* e.body);
                    v.visit_expr($($field)* e.orelse);
                }
                Expr::Dict(e) => {
                    for item in $($field)* e.items {
                        if let Some(key) = $($field)* item.key {
                            v.visit_expr(key);
                        }
                        v.visit_expr($($field)* item.value);
                    }
                }
                Expr::Set(e) => all(v, $($field)* e.elts),
                Expr::ListComp(e) => {
                    generators(v, $($field)* e.generators);
                    v.visit_expr($($field)* e.elt);
                }
                Expr::SetComp(e) => {
                    generators(v, $($field)* e.generators);
                    v.visit_expr($($field)* e.elt);
                }
                Expr::DictComp(e) => {
                    generators(v, $($field)* e.generators);
                    v.visit_expr($($field)* e.key);
                    v.visit_expr($($field)* e.value);
                }
                Expr::Generator(e) => {
                    generators(v, $($field)* e.generators);
                    v.visit_expr($($field)* e.elt);
                }
                Expr::Await(e) => v.visit_expr($($field)* e.value),
                Expr::Yield(e) => option(v, $($field)* e.value),
                Expr::YieldFrom(e) => v.visit_expr($($field)* e.value),
                Expr::Compare(e) => {
                    v.visit_expr($($field)* e.left);
                    all(v, $($field)* e.comparators);
                }
                Expr::Call(e) => {
                    v.visit_expr($($field)* e.func);
                    v.visit_arguments($($field)* e.arguments);
                }
                Expr::FString(e) => {
                    for part in e.value.$iter() {
                        if let FStringPart::FString(f) = part {
                            elements(v, $($field)* f.elements);
                        }
                    }
                }
                Expr::Attribute(e) => v.visit_expr($($field)* e.value),
                Expr::Subscript(e) => {
                    v.visit_expr($($field)* e.value);
                    v.visit_expr($($field)* e.slice);
                }
                Expr::Starred(e) => v.visit_expr($($field)* e.value),
                Expr::List(e) => all(v, $($field)* e.elts),
                Expr::Tuple(e) => all(v, $($field)* e.elts),
                Expr::Slice(e) => {
                    option(v, $($field)* e.lower);
                    option(v, $($field)* e.upper);
                    option(v, $($field)* e.step);
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
        pub fn walk_parameters<$($lifetime)* V: $($visitor)* + ?Sized>(v: $($by)* V, parameters: $($part)* Parameters) {
            let Parameters {
                posonlyargs,
                args,
                vararg,
                kwonlyargs,
                kwarg,
                ..
            } = parameters;
            for list in [$($field)* *posonlyargs, $($field)* *args, $($field)* *kwonlyargs] {
                for parameter in list.$iter() {
                    option(v, $($field)* parameter.default);
                    option(v, $($field)* parameter.parameter.annotation);
                }
            }
            for parameter in vararg.$iter().chain(kwarg.$iter()) {
                option(v, $($field)* parameter.annotation);
            }
        }

        /// Visits positional arguments, then those with a keyword.
        pub fn walk_arguments<$($lifetime)* V: $($visitor)* + ?Sized>(v: $($by)* V, arguments: $($part)* Arguments) {
            all(v, $($field)* arguments.args);
            for keyword in $($field)* arguments.keywords {
                v.visit_expr($($field)* keyword.value);
            }
        }

        /// Visits the parts of a pattern.
        pub fn walk_pattern<$($lifetime)* V: $($visitor)* + ?Sized>(v: $($by)* V, pattern: $($part)* Pattern) {
            match pattern {
                Pattern::MatchValue(p) => v.visit_expr($($field)* p.value),
                Pattern::MatchSequence(p) => patterns(v, $($field)* p.patterns),
                Pattern::MatchMapping(p) => {
                    all(v, $($field)* p.keys);
                    patterns(v, $($field)* p.patterns);
                }
                Pattern::MatchClass(p) => {
                    v.visit_expr($($field)* p.cls);
                    patterns(v, $($field)* p.arguments.patterns);
                    for keyword in $($field)* p.arguments.keywords {
                        v.visit_pattern($($field)* keyword.pattern);
                    }
                }
                Pattern::MatchAs(p) => {
                    if let Some(pattern) = $($field)* p.pattern {
                        v.visit_pattern(pattern);
                    }
                }
                Pattern::MatchOr(p) => patterns(v, $($field)* p.patterns),
                Pattern::MatchSingleton(_) | Pattern::MatchStar(_) => {}
            }
        }

        fn all<$($lifetime)* V: $($visitor)* + ?Sized>(v: $($by)* V, exprs: $($part)* [Expr]) {
            for expr in exprs {
                v.visit_expr(expr);
            }
        }

        fn option<$($lifetime)* V: $($visitor)* + ?Sized>(v: $($by)* V, expr: $($part)* Option<Box<Expr>>) {
            if let Some(expr) = expr {
                v.visit_expr(expr);
            }
        }

        fn patterns<$($lifetime)* V: $($visitor)* + ?Sized>(v: $($by)* V, patterns: $($part)* [Pattern]) {
            for pattern in patterns {
                v.visit_pattern(pattern);
            }
        }

        fn decorators<$($lifetime)* V: $($visitor)* + ?Sized>(v: $($by)* V, decorators: $($part)* [Decorator]) {
            for decorator in decorators {
                v.visit_expr($($field)* decorator.expression);
            }
        }

        fn type_params<$($lifetime)* V: $($visitor)* + ?Sized>(v: $($by)* V, params: $($part)* Option<Box<TypeParams>>) {
            let Some(params) = params else { return };
            for param in $($field)* params.type_params {
                match param {
                    TypeParam::TypeVar(p) => {
                        option(v, $($field)* p.bound);
                        option(v, $($field)* p.default);
                    }
                    TypeParam::TypeVarTuple(p) => option(v, $($field)* p.default),
                    TypeParam::ParamSpec(p) => option(v, $($field)* p.default),
                }
            }
        }

        fn generators<$($lifetime)* V: $($visitor)* + ?Sized>(v: $($by)* V, generators: $($part)* [Comprehension]) {
            for generator in generators {
                v.visit_expr($($field)* generator.iter);
                v.visit_expr($($field)* generator.target);
                all(v, $($field)* generator.ifs);
            }
        }

        fn elements<$($lifetime)* V: $($visitor)* + ?Sized>(v: $($by)* V, elements: $($part)* [InterpolatedStringElement]) {
            for element in elements {
                if let InterpolatedStringElement::Interpolation(field) = element {
                    v.visit_expr($($field)* field.expression);
                    if let Some(format) = $($field)* field.format_spec {
                        self::elements(v, $($field)* format.elements);
                    }
                }
            }
        }
    };
}

pub(super) use walks;
