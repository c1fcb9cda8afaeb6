//! Expressions.

use super::*;

variants! {
    /// An expression.
    Expr {
        /// `a and b`
        BoolOp(ExprBoolOp),
        /// `a := b`
        Named(ExprNamed),
        /// `a + b`
        BinOp(ExprBinOp),
        /// `-a`
        UnaryOp(ExprUnaryOp),
        /// `lambda a: b`
        Lambda(ExprLambda),
        /// `a if b else c`
        If(ExprIf),
        /// `{a: b}`
        Dict(ExprDict),
        /// `{a, b}`
        Set(ExprSet),
        /// `[a for b in c]`
        ListComp(ExprListComp),
        /// `{a for b in c}`
        SetComp(ExprSetComp),
        /// `{a: b for c in d}`
        DictComp(ExprDictComp),
        /// `(a for b in c)`
        Generator(ExprGenerator),
        /// `await a`
        Await(ExprAwait),
        /// `yield a`
        Yield(ExprYield),
        /// `yield from a`
        YieldFrom(ExprYieldFrom),
        /// `a < b < c`
        Compare(ExprCompare),
        /// `f(a, b=c)`
        Call(ExprCall),
        /// `f"text {a}"`
        FString(ExprFString),
        /// `"text"`
        StringLiteral(ExprStringLiteral),
        /// `b"text"`
        BytesLiteral(ExprBytesLiteral),
        /// `1.5`
        NumberLiteral(ExprNumberLiteral),
        /// `True`
        BooleanLiteral(ExprBooleanLiteral),
        /// `None`
        NoneLiteral(ExprNoneLiteral),
        /// `...`
        EllipsisLiteral(ExprEllipsisLiteral),
        /// `a.b`
        Attribute(ExprAttribute),
        /// `a[b]`
        Subscript(ExprSubscript),
        /// `*a`
        Starred(ExprStarred),
        /// `a`
        Name(ExprName),
        /// `[a, b]`
        List(ExprList),
        /// `a, b`
        Tuple(ExprTuple),
        /// `a:b:c` within brackets
        Slice(ExprSlice),
    }
}

impl Expr {
    /// The string that it is.
    pub fn as_string_literal_expr(&self) -> Option<&ExprStringLiteral> {
        match self {
            Expr::StringLiteral(string) => Some(string),
            _ => None,
        }
    }

    /// Whether it is `None`.
    pub fn is_none_literal_expr(&self) -> bool {
        matches!(self, Expr::NoneLiteral(_))
    }
}

/// What is done with a name or a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExprContext {
    /// It is read.
    Load,
    /// It is assigned.
    Store,
    /// It is deleted.
    Del,
}

nodes! {
    /// `a and b and c`
    ExprBoolOp {
        /// The operator between all operands.
        op: BoolOp,
        /// Two operands or more.
        values: Vec<Expr>,
    }
    /// `target := value`
    ExprNamed {
        /// A name.
        target: Box<Expr>,
        /// Its value.
        value: Box<Expr>,
    }
    /// `left op right`
    ExprBinOp {
        /// First operand.
        left: Box<Expr>,
        /// Operator.
        op: Operator,
        /// Second operand.
        right: Box<Expr>,
    }
    /// `op operand`
    ExprUnaryOp {
        /// Operator.
        op: UnaryOp,
        /// Operand.
        operand: Box<Expr>,
    }
    /// `lambda parameters: body`
    ExprLambda {
        /// `None` where there are none.
        parameters: Option<Box<Parameters>>,
        /// The value.
        body: Box<Expr>,
    }
    /// `body if test else orelse`
    ExprIf {
        /// The condition.
        test: Box<Expr>,
        /// The value where it holds.
        body: Box<Expr>,
        /// The value where it does not.
        orelse: Box<Expr>,
    }
    /// `{key: value, **more}`
    ExprDict {
        /// In order.
        items: Vec<DictItem>,
    }
    /// `{a, b}`
    ExprSet {
        /// In order.
        elts: Vec<Expr>,
    }
    /// `[elt for …]`
    ExprListComp {
        /// An element.
        elt: Box<Expr>,
        /// The loops, outermost first.
        generators: Vec<Comprehension>,
    }
    /// `{elt for …}`
    ExprSetComp {
        /// An element.
        elt: Box<Expr>,
        /// The loops, outermost first.
        generators: Vec<Comprehension>,
    }
    /// `{key: value for …}`
    ExprDictComp {
        /// A key.
        key: Box<Expr>,
        /// Its value.
        value: Box<Expr>,
        /// The loops, outermost first.
        generators: Vec<Comprehension>,
    }
    /// `(elt for …)`
    ExprGenerator {
        /// An element.
        elt: Box<Expr>,
        /// The loops, outermost first.
        generators: Vec<Comprehension>,
        /// Whether it has its own parentheses; not where it is the only argument of a call.
        parenthesized: bool,
    }
    /// `await value`
    ExprAwait {
        /// What is awaited.
        value: Box<Expr>,
    }
    /// `yield value`
    ExprYield {
        /// The value, where there is one.
        value: Option<Box<Expr>>,
    }
    /// `yield from value`
    ExprYieldFrom {
        /// What yields.
        value: Box<Expr>,
    }
    /// `left op comparator op comparator`
    ExprCompare {
        /// First operand.
        left: Box<Expr>,
        /// The operators.
        ops: Vec<CmpOp>,
        /// The operand after each operator.
        comparators: Vec<Expr>,
    }
    /// `func(arguments)`
    ExprCall {
        /// What is called.
        func: Box<Expr>,
        /// With what.
        arguments: Arguments,
    }
    /// `f"…"`, alone or beside other strings.
    ExprFString {
        /// Its parts.
        value: FStringValue,
    }
    /// `"…"`, alone or beside other strings.
    ExprStringLiteral {
        /// The text.
        value: StringLiteralValue,
    }
    /// `b"…"`, alone or beside others.
    ExprBytesLiteral {
        /// The bytes, escapes replaced.
        value: Box<[u8]>,
    }
    /// A number.
    ExprNumberLiteral {
        /// Its value.
        value: Number,
    }
    /// `True`, `False`
    ExprBooleanLiteral {
        /// Its value.
        value: bool,
    }
    /// `None`
    ExprNoneLiteral {}
    /// `...`
    ExprEllipsisLiteral {}
    /// `value.attr`
    ExprAttribute {
        /// The object.
        value: Box<Expr>,
        /// The attribute's name.
        attr: Identifier,
        /// What is done with it.
        ctx: ExprContext,
    }
    /// `value[slice]`
    ExprSubscript {
        /// The object.
        value: Box<Expr>,
        /// The index; a tuple where there are several.
        slice: Box<Expr>,
        /// What is done with it.
        ctx: ExprContext,
    }
    /// `*value`
    ExprStarred {
        /// What is unpacked.
        value: Box<Expr>,
        /// What is done with it.
        ctx: ExprContext,
    }
    /// A name.
    ExprName {
        /// The name.
        id: Name,
        /// What is done with it.
        ctx: ExprContext,
    }
    /// `[a, b]`
    ExprList {
        /// In order.
        elts: Vec<Expr>,
        /// What is done with it.
        ctx: ExprContext,
    }
    /// `a, b`
    ExprTuple {
        /// In order.
        elts: Vec<Expr>,
        /// What is done with it.
        ctx: ExprContext,
        /// Whether it has its own parentheses.
        parenthesized: bool,
    }
    /// `lower:upper:step`
    ExprSlice {
        /// Start.
        lower: Option<Box<Expr>>,
        /// End.
        upper: Option<Box<Expr>>,
        /// Step.
        step: Option<Box<Expr>>,
    }
    /// `for target in iter if test`
    Comprehension {
        /// What is assigned.
        target: Expr,
        /// What is iterated over.
        iter: Expr,
        /// The conditions.
        ifs: Vec<Expr>,
        /// `async for`
        is_async: bool,
    }
    /// `(a, *b, c=d, **e)`
    Arguments {
        /// Positional ones and `*a`, in order.
        args: Vec<Expr>,
        /// `a=b` and `**a`, in order.
        keywords: Vec<Keyword>,
    }
    /// `arg=value`, `**value`
    Keyword {
        /// The name; `None` after `**`.
        arg: Option<Identifier>,
        /// The value.
        value: Expr,
    }
    /// The parameters of a function.
    Parameters {
        /// Before the `/`.
        posonlyargs: Vec<ParameterWithDefault>,
        /// Before the `*`.
        args: Vec<ParameterWithDefault>,
        /// `*args`
        vararg: Option<Box<Parameter>>,
        /// After the `*`.
        kwonlyargs: Vec<ParameterWithDefault>,
        /// `**kwargs`
        kwarg: Option<Box<Parameter>>,
    }
    /// `name: annotation`
    Parameter {
        /// Its name.
        name: Identifier,
        /// Its type.
        annotation: Option<Box<Expr>>,
    }
    /// `parameter=default`
    ParameterWithDefault {
        /// The parameter.
        parameter: Parameter,
        /// Its value where none is given.
        default: Option<Box<Expr>>,
    }
}

/// `key: value`, `**value`
#[derive(Clone, Debug)]
pub struct DictItem {
    /// `None` after `**`.
    pub key: Option<Expr>,
    /// The value.
    pub value: Expr,
}

impl Parameters {
    /// All parameters, in order.
    pub fn iter(&self) -> impl Iterator<Item = &Parameter> {
        let before = self.posonlyargs.iter().chain(&self.args).map(|p| &p.parameter);
        let after = self.kwonlyargs.iter().map(|p| &p.parameter);
        let vararg = self.vararg.iter().map(|p| &**p);
        let kwarg = self.kwarg.iter().map(|p| &**p);
        before.chain(vararg).chain(after).chain(kwarg)
    }

    /// The parameters that take one argument each, in order.
    pub fn iter_non_variadic_params(&self) -> impl Iterator<Item = &ParameterWithDefault> {
        self.posonlyargs.iter().chain(&self.args).chain(&self.kwonlyargs)
    }
}
