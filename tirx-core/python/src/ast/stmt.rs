//! Statements.

use std::sync::Arc;

use super::*;

variants! {
    /// A statement. Definitions are shared: whoever runs them later holds them, and not a copy.
    Stmt {
        /// `def f(): …`
        FunctionDef(Arc<StmtFunctionDef>),
        /// `class A: …`
        ClassDef(Arc<StmtClassDef>),
        /// `return a`
        Return(StmtReturn),
        /// `del a`
        Delete(StmtDelete),
        /// `type A = b`
        TypeAlias(StmtTypeAlias),
        /// `a = b`
        Assign(StmtAssign),
        /// `a += b`
        AugAssign(StmtAugAssign),
        /// `a: b = c`
        AnnAssign(StmtAnnAssign),
        /// `for a in b: …`
        For(StmtFor),
        /// `while a: …`
        While(StmtWhile),
        /// `if a: …`
        If(StmtIf),
        /// `with a as b: …`
        With(StmtWith),
        /// `match a: …`
        Match(StmtMatch),
        /// `raise a from b`
        Raise(StmtRaise),
        /// `try: …`
        Try(StmtTry),
        /// `assert a, b`
        Assert(StmtAssert),
        /// `import a`
        Import(StmtImport),
        /// `from a import b`
        ImportFrom(StmtImportFrom),
        /// `global a`
        Global(StmtGlobal),
        /// `nonlocal a`
        Nonlocal(StmtNonlocal),
        /// `a`
        Expr(StmtExpr),
        /// `pass`
        Pass(StmtPass),
        /// `break`
        Break(StmtBreak),
        /// `continue`
        Continue(StmtContinue),
    }
}

impl Stmt {
    /// The function that it defines.
    pub fn as_function_def_stmt(&self) -> Option<&StmtFunctionDef> {
        match self {
            Stmt::FunctionDef(def) => Some(def),
            _ => None,
        }
    }
}

/// A handler of a `try` statement.
#[derive(Clone, Debug)]
pub enum ExceptHandler {
    /// The only kind there is.
    ExceptHandler(ExceptHandlerExceptHandler),
}

variants! {
    /// A type parameter.
    TypeParam {
        /// `T: bound = default`
        TypeVar(TypeParamTypeVar),
        /// `*T`
        TypeVarTuple(TypeParamTypeVarTuple),
        /// `**T`
        ParamSpec(TypeParamParamSpec),
    }
}

nodes! {
    /// A file.
    ModModule {
        /// Its statements.
        body: Vec<Stmt>,
    }
    /// `@decorator` … `async def name[T](parameters) -> returns: body`
    StmtFunctionDef {
        /// `async def`
        is_async: bool,
        /// In order.
        decorator_list: Vec<Decorator>,
        /// Its name.
        name: Identifier,
        /// `[T]`
        type_params: Option<Box<TypeParams>>,
        /// Its parameters.
        parameters: Box<Parameters>,
        /// The type of its value.
        returns: Option<Box<Expr>>,
        /// Its statements.
        body: Vec<Stmt>,
    }
    /// `class name[T](arguments): body`
    StmtClassDef {
        /// In order.
        decorator_list: Vec<Decorator>,
        /// Its name.
        name: Identifier,
        /// `[T]`
        type_params: Option<Box<TypeParams>>,
        /// Bases and keywords; `None` without parentheses.
        arguments: Option<Box<Arguments>>,
        /// Its statements.
        body: Vec<Stmt>,
    }
    /// `return value`
    StmtReturn {
        /// The value, where there is one.
        value: Option<Box<Expr>>,
    }
    /// `del targets`
    StmtDelete {
        /// In order.
        targets: Vec<Expr>,
    }
    /// `type name[T] = value`
    StmtTypeAlias {
        /// A name.
        name: Box<Expr>,
        /// `[T]`
        type_params: Option<Box<TypeParams>>,
        /// The type.
        value: Box<Expr>,
    }
    /// `a = b = value`
    StmtAssign {
        /// In order.
        targets: Vec<Expr>,
        /// The value of each.
        value: Box<Expr>,
    }
    /// `target op= value`
    StmtAugAssign {
        /// A name, an attribute or a subscript.
        target: Box<Expr>,
        /// Operator.
        op: Operator,
        /// Second operand.
        value: Box<Expr>,
    }
    /// `target: annotation = value`
    StmtAnnAssign {
        /// A name, an attribute or a subscript.
        target: Box<Expr>,
        /// Its type.
        annotation: Box<Expr>,
        /// Its value, where there is one.
        value: Option<Box<Expr>>,
        /// Whether the target is a name without parentheses.
        simple: bool,
    }
    /// `async for target in iter: body` `else: orelse`
    StmtFor {
        /// `async for`
        is_async: bool,
        /// What is assigned.
        target: Box<Expr>,
        /// What is iterated over.
        iter: Box<Expr>,
        /// What is repeated.
        body: Vec<Stmt>,
        /// What runs at the end.
        orelse: Vec<Stmt>,
    }
    /// `while test: body` `else: orelse`
    StmtWhile {
        /// The condition.
        test: Box<Expr>,
        /// What is repeated.
        body: Vec<Stmt>,
        /// What runs at the end.
        orelse: Vec<Stmt>,
    }
    /// `if test: body`
    StmtIf {
        /// The condition.
        test: Box<Expr>,
        /// What runs where it holds.
        body: Vec<Stmt>,
        /// `elif` and `else`, in order.
        elif_else_clauses: Vec<ElifElseClause>,
    }
    /// `elif test: body`, `else: body`
    ElifElseClause {
        /// `None` for `else`.
        test: Option<Expr>,
        /// Its statements.
        body: Vec<Stmt>,
    }
    /// `async with items: body`
    StmtWith {
        /// `async with`
        is_async: bool,
        /// In order.
        items: Vec<WithItem>,
        /// Its statements.
        body: Vec<Stmt>,
    }
    /// `context_expr as optional_vars`
    WithItem {
        /// The context manager.
        context_expr: Expr,
        /// What is assigned.
        optional_vars: Option<Box<Expr>>,
    }
    /// `match subject: cases`
    StmtMatch {
        /// What is matched.
        subject: Box<Expr>,
        /// In order.
        cases: Vec<MatchCase>,
    }
    /// `case pattern if guard: body`
    MatchCase {
        /// What is looked for.
        pattern: Pattern,
        /// The condition, where there is one.
        guard: Option<Box<Expr>>,
        /// Its statements.
        body: Vec<Stmt>,
    }
    /// `raise exc from cause`
    StmtRaise {
        /// The exception; `None` for the one that is being handled.
        exc: Option<Box<Expr>>,
        /// What caused it.
        cause: Option<Box<Expr>>,
    }
    /// `try: body` `except …` `else: orelse` `finally: finalbody`
    StmtTry {
        /// What is tried.
        body: Vec<Stmt>,
        /// In order.
        handlers: Vec<ExceptHandler>,
        /// What runs where nothing was raised.
        orelse: Vec<Stmt>,
        /// What runs in any case.
        finalbody: Vec<Stmt>,
        /// `except*`
        is_star: bool,
    }
    /// `except type_ as name: body`
    ExceptHandlerExceptHandler {
        /// What is caught; `None` for everything.
        type_: Option<Box<Expr>>,
        /// Its name.
        name: Option<Identifier>,
        /// Its statements.
        body: Vec<Stmt>,
    }
    /// `assert test, msg`
    StmtAssert {
        /// The condition.
        test: Box<Expr>,
        /// What is said where it does not hold.
        msg: Option<Box<Expr>>,
    }
    /// `import names`
    StmtImport {
        /// In order.
        names: Vec<Alias>,
    }
    /// `from module import names`
    StmtImportFrom {
        /// `None` where there are dots alone.
        module: Option<Identifier>,
        /// In order; `*` for all.
        names: Vec<Alias>,
        /// Dots before the module.
        level: u32,
    }
    /// `name as asname`
    Alias {
        /// What is imported.
        name: Identifier,
        /// How it is called here.
        asname: Option<Identifier>,
    }
    /// `global names`
    StmtGlobal {
        /// In order.
        names: Vec<Identifier>,
    }
    /// `nonlocal names`
    StmtNonlocal {
        /// In order.
        names: Vec<Identifier>,
    }
    /// An expression.
    StmtExpr {
        /// The expression.
        value: Box<Expr>,
    }
    /// `pass`
    StmtPass {}
    /// `break`
    StmtBreak {}
    /// `continue`
    StmtContinue {}
    /// `@expression`
    Decorator {
        /// What is called with the definition.
        expression: Expr,
    }
    /// `[T, *U, **V]`
    TypeParams {
        /// In order.
        type_params: Vec<TypeParam>,
    }
    /// `name: bound = default`
    TypeParamTypeVar {
        /// Its name.
        name: Identifier,
        /// What it must be.
        bound: Option<Box<Expr>>,
        /// What it is where nothing is given.
        default: Option<Box<Expr>>,
    }
    /// `*name = default`
    TypeParamTypeVarTuple {
        /// Its name.
        name: Identifier,
        /// What it is where nothing is given.
        default: Option<Box<Expr>>,
    }
    /// `**name = default`
    TypeParamParamSpec {
        /// Its name.
        name: Identifier,
        /// What it is where nothing is given.
        default: Option<Box<Expr>>,
    }
}
