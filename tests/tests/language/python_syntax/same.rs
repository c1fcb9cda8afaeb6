//! Compares a tree of `tirx-python` with one of ruff: the same nodes, fields and ranges.

use std::ops::Deref;

use ruff_python_ast as ruff;
use tirx_python as ours;

/// Where two trees differ first.
pub(crate) type Difference = String;

/// Whether two parts of trees are the same.
pub(crate) trait Same<R: ?Sized> {
    fn same(&self, other: &R) -> Result<(), Difference>;
}

impl Same<ruff_text_size::TextRange> for ours::TextRange {
    fn same(&self, other: &ruff_text_size::TextRange) -> Result<(), Difference> {
        let ours = self.to_usize();
        let ruff = other.start().to_usize()..other.end().to_usize();
        match ours == ruff {
            true => Ok(()),
            false => Err(format!(" {ours:?}, ruff {ruff:?}")),
        }
    }
}

impl<A: Same<B>, B> Same<Box<B>> for Box<A> {
    fn same(&self, other: &Box<B>) -> Result<(), Difference> {
        (**self).same(other)
    }
}

impl<A: Same<B>, B> Same<Option<B>> for Option<A> {
    fn same(&self, other: &Option<B>) -> Result<(), Difference> {
        match (self, other) {
            (Some(a), Some(b)) => a.same(b),
            (None, None) => Ok(()),
            (a, _) => Err(format!(" there: {}", a.is_some())),
        }
    }
}

fn lists<'a, A: Same<B> + 'a, B: 'a>(
    ours: impl ExactSizeIterator<Item = &'a A>,
    ruff: impl ExactSizeIterator<Item = &'a B>,
) -> Result<(), Difference> {
    if ours.len() != ruff.len() {
        return Err(format!(" {} items, ruff {}", ours.len(), ruff.len()));
    }
    ours.zip(ruff)
        .enumerate()
        .try_for_each(|(at, (a, b))| a.same(b).map_err(|e| format!("[{at}]{e}")))
}

impl<A: Same<B>, B, R: Deref<Target = [B]>> Same<R> for Vec<A> {
    fn same(&self, other: &R) -> Result<(), Difference> {
        lists(self.iter(), other.iter())
    }
}

/// Values that print the same.
macro_rules! values {
    ($($ours:ty => $ruff:ty;)*) => {$(
        impl Same<$ruff> for $ours {
            fn same(&self, other: &$ruff) -> Result<(), Difference> {
                let (ours, ruff) = (format!("{self:?}"), format!("{other:?}"));
                match ours == ruff {
                    true => Ok(()),
                    false => Err(format!(" {ours}, ruff {ruff}")),
                }
            }
        }
    )*};
}

values! {
    bool => bool;
    u32 => u32;
    Box<str> => Box<str>;
    ours::BoolOp => ruff::BoolOp;
    ours::Operator => ruff::Operator;
    ours::UnaryOp => ruff::UnaryOp;
    ours::CmpOp => ruff::CmpOp;
    ours::ExprContext => ruff::ExprContext;
    ours::ConversionFlag => ruff::ConversionFlag;
    ours::Singleton => ruff::Singleton;
}

impl Same<ruff::name::Name> for ours::Name {
    fn same(&self, other: &ruff::name::Name) -> Result<(), Difference> {
        match self.as_str() == other.as_str() {
            true => Ok(()),
            false => Err(format!(" {self}, ruff {other}")),
        }
    }
}

impl Same<ruff::StringLiteralValue> for ours::StringLiteralValue {
    fn same(&self, other: &ruff::StringLiteralValue) -> Result<(), Difference> {
        match self.to_str() == other.to_str() {
            true => Ok(()),
            false => Err(format!(" {:?}, ruff {:?}", self.to_str(), other.to_str())),
        }
    }
}

impl Same<ruff::BytesLiteralValue> for Box<[u8]> {
    fn same(&self, other: &ruff::BytesLiteralValue) -> Result<(), Difference> {
        match self.iter().copied().eq(other.bytes()) {
            true => Ok(()),
            false => Err(format!(" {self:?}")),
        }
    }
}

impl Same<ruff::Number> for ours::Number {
    fn same(&self, other: &ruff::Number) -> Result<(), Difference> {
        let is_same = match (self, other) {
            (ours::Number::Int(a), ruff::Number::Int(b)) => {
                a.as_u64() == b.as_u64()
                    && a.as_i64() == b.as_i64()
                    && a.to_string() == b.to_string().replace('_', "")
            }
            (ours::Number::Float(a), ruff::Number::Float(b)) => a.to_bits() == b.to_bits(),
            (ours::Number::Complex { imag: a, .. }, ruff::Number::Complex { imag: b, .. }) => a == b,
            _ => false,
        };
        match is_same {
            true => Ok(()),
            false => Err(format!(" {self:?}, ruff {other:?}")),
        }
    }
}

impl Same<ruff::FStringValue> for ours::FStringValue {
    fn same(&self, other: &ruff::FStringValue) -> Result<(), Difference> {
        lists(self.iter(), other.as_slice().iter())
    }
}

impl Same<ruff::DebugText> for ours::DebugText {
    fn same(&self, other: &ruff::DebugText) -> Result<(), Difference> {
        match (self.leading(), self.trailing()) == (other.leading(), other.trailing()) {
            true => Ok(()),
            false => Err(format!(" {self:?}, ruff {other:?}")),
        }
    }
}

impl Same<ruff::DictItem> for ours::DictItem {
    fn same(&self, other: &ruff::DictItem) -> Result<(), Difference> {
        self.key.same(&other.key)?;
        self.value.same(&other.value)
    }
}

impl Same<ruff::ExprCall> for ours::ExprCall {
    fn same(&self, other: &ruff::ExprCall) -> Result<(), Difference> {
        let ended = "ExprCall";
        self.range
            .same(&ruff_text_size::Ranged::range(other))
            .and_then(|()| self.func.same(&other.func))
            .and_then(|()| self.arguments.same(&other.arguments))
            .map_err(|e| format!(".{ended}{e}"))
    }
}

impl Same<ruff::ExprDictComp> for ours::ExprDictComp {
    fn same(&self, other: &ruff::ExprDictComp) -> Result<(), Difference> {
        self.range.same(&other.range)?;
        match &other.key {
            Some(key) => self.key.same(key)?,
            None => return Err(" unpacked".into()),
        }
        self.value.same(&other.value)?;
        self.generators.same(&other.generators)
    }
}

/// Nodes with the same fields.
macro_rules! nodes {
    ($($node:ident { $($field:ident)* })*) => {$(
        impl Same<ruff::$node> for ours::$node {
            fn same(&self, other: &ruff::$node) -> Result<(), Difference> {
                self.range.same(&other.range).map_err(|e| format!(".{}{e}", stringify!($node)))?;
                $(
                    self.$field
                        .same(&other.$field)
                        .map_err(|e| format!(".{}.{}{e}", stringify!($node), stringify!($field)))?;
                )*
                Ok(())
            }
        }
    )*};
}

/// Enumerations with the same variants.
macro_rules! variants {
    ($($name:ident { $($variant:ident)* })*) => {$(
        impl Same<ruff::$name> for ours::$name {
            fn same(&self, other: &ruff::$name) -> Result<(), Difference> {
                match (self, other) {
                    $((ours::$name::$variant(a), ruff::$name::$variant(b)) => a.same(b),)*
                    // Where there is one variant, this is unreachable.
                    #[allow(unreachable_patterns)]
                    (a, _) => Err(format!(" {a:.60?}: another kind in ruff's tree")),
                }
            }
        }
    )*};
}

variants! {
    Stmt {
        FunctionDef ClassDef Return Delete TypeAlias Assign AugAssign AnnAssign For While If With Match Raise Try Assert
        Import ImportFrom Global Nonlocal Expr Pass Break Continue
    }
    Expr {
        BoolOp Named BinOp UnaryOp Lambda If Dict Set ListComp SetComp DictComp Generator Await Yield YieldFrom Compare
        Call FString StringLiteral BytesLiteral NumberLiteral BooleanLiteral NoneLiteral EllipsisLiteral Attribute
        Subscript Starred Name List Tuple Slice
    }
    Pattern { MatchValue MatchSingleton MatchSequence MatchMapping MatchClass MatchStar MatchAs MatchOr }
    TypeParam { TypeVar TypeVarTuple ParamSpec }
    ExceptHandler { ExceptHandler }
    FStringPart { Literal FString }
    InterpolatedStringElement { Literal Interpolation }
}

nodes! {
    StmtFunctionDef { is_async decorator_list name type_params parameters returns body }
    StmtClassDef { decorator_list name type_params arguments body }
    StmtReturn { value }
    StmtDelete { targets }
    StmtTypeAlias { name type_params value }
    StmtAssign { targets value }
    StmtAugAssign { target op value }
    StmtAnnAssign { target annotation value simple }
    StmtFor { is_async target iter body orelse }
    StmtWhile { test body orelse }
    StmtIf { test body elif_else_clauses }
    ElifElseClause { test body }
    StmtWith { is_async items body }
    WithItem { context_expr optional_vars }
    StmtMatch { subject cases }
    MatchCase { pattern guard body }
    StmtRaise { exc cause }
    StmtTry { body handlers orelse finalbody is_star }
    ExceptHandlerExceptHandler { type_ name body }
    StmtAssert { test msg }
    StmtImport { names }
    StmtImportFrom { module names level }
    Alias { name asname }
    StmtGlobal { names }
    StmtNonlocal { names }
    StmtExpr { value }
    StmtPass {}
    StmtBreak {}
    StmtContinue {}
    Decorator { expression }
    TypeParams { type_params }
    TypeParamTypeVar { name bound default }
    TypeParamTypeVarTuple { name default }
    TypeParamParamSpec { name default }
    Identifier { id }
    ExprBoolOp { op values }
    ExprNamed { target value }
    ExprBinOp { left op right }
    ExprUnaryOp { op operand }
    ExprLambda { parameters body }
    ExprIf { test body orelse }
    ExprDict { items }
    ExprSet { elts }
    ExprListComp { elt generators }
    ExprSetComp { elt generators }
    ExprGenerator { elt generators parenthesized }
    ExprAwait { value }
    ExprYield { value }
    ExprYieldFrom { value }
    ExprCompare { left ops comparators }
    ExprFString { value }
    ExprStringLiteral { value }
    ExprBytesLiteral { value }
    ExprNumberLiteral { value }
    ExprBooleanLiteral { value }
    ExprNoneLiteral {}
    ExprEllipsisLiteral {}
    ExprAttribute { value attr ctx }
    ExprSubscript { value slice ctx }
    ExprStarred { value ctx }
    ExprName { id ctx }
    ExprList { elts ctx }
    ExprTuple { elts ctx parenthesized }
    ExprSlice { lower upper step }
    Comprehension { target iter ifs is_async }
    Arguments { args keywords }
    Keyword { arg value }
    Parameters { posonlyargs args vararg kwonlyargs kwarg }
    Parameter { name annotation }
    ParameterWithDefault { parameter default }
    StringLiteral { value }
    FString { elements }
    InterpolatedStringLiteralElement { value }
    InterpolatedElement { expression debug_text conversion format_spec }
    InterpolatedStringFormatSpec { elements }
    PatternMatchValue { value }
    PatternMatchSingleton { value }
    PatternMatchSequence { patterns }
    PatternMatchMapping { keys patterns rest }
    PatternMatchClass { cls arguments }
    PatternArguments { patterns keywords }
    PatternKeyword { attr pattern }
    PatternMatchStar { name }
    PatternMatchAs { pattern name }
    PatternMatchOr { patterns }
}
