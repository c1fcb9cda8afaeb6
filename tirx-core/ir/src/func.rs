//! Functions, modules and attributes.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Buffer, DType, Expr, ExprKind, Stmt, Type, Var};
use crate::source::{SourceMap, Span};

/// The value of an attribute or annotation.
#[derive(Clone, Debug, PartialEq)]
pub enum AttrValue {
    /// No value.
    None,
    /// A flag.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// A number.
    Float(f64),
    /// A text.
    Str(Arc<str>),
    /// A list.
    List(Vec<AttrValue>),
    /// A dictionary.
    Dict(BTreeMap<Arc<str>, AttrValue>),
    /// An expression of the IR.
    Expr(Expr),
    /// A compilation target: `T.target({...})`.
    Target(BTreeMap<Arc<str>, AttrValue>),
}

impl AttrValue {
    /// The value in normal form: constants as plain values.
    pub fn plain(&self) -> AttrValue {
        match self {
            AttrValue::Expr(e) => match &e.kind {
                ExprKind::Int(v) if e.dtype.is_bool() => AttrValue::Bool(*v != 0),
                ExprKind::Int(v) if e.dtype == DType::INT32 => AttrValue::Int(*v as i64),
                ExprKind::Str(s) => AttrValue::Str(s.clone()),
                _ => self.clone(),
            },
            _ => self.clone(),
        }
    }

    /// Calls `f` with the expressions in it.
    pub fn for_each_expr<'a>(&'a self, f: &mut impl FnMut(&'a Expr)) {
        match self {
            AttrValue::Expr(e) => f(e),
            AttrValue::List(items) => items.iter().for_each(|v| v.for_each_expr(f)),
            AttrValue::Dict(items) => items.values().for_each(|v| v.for_each_expr(f)),
            _ => {}
        }
    }

    /// The same with other expressions.
    pub fn map_exprs(&self, f: &mut impl FnMut(&Expr) -> Expr) -> AttrValue {
        match self {
            AttrValue::Expr(e) => AttrValue::Expr(f(e)),
            AttrValue::List(items) => AttrValue::List(items.iter().map(|v| v.map_exprs(f)).collect()),
            AttrValue::Dict(items) => {
                AttrValue::Dict(items.iter().map(|(k, v)| (k.clone(), v.map_exprs(f))).collect())
            }
            other => other.clone(),
        }
    }

    /// The integer (bools count).
    pub fn as_int(&self) -> Option<i64> {
        match self {
            AttrValue::Int(v) => Some(*v),
            AttrValue::Bool(v) => Some(*v as i64),
            AttrValue::Expr(e) => e.as_int().and_then(|v| v.try_into().ok()),
            _ => None,
        }
    }

    /// The text.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            AttrValue::Str(s) => Some(s),
            AttrValue::Expr(e) => e.as_str(),
            _ => None,
        }
    }

    /// The list's items.
    pub fn as_list(&self) -> Option<&[AttrValue]> {
        match self {
            AttrValue::List(items) => Some(items),
            _ => None,
        }
    }
}

/// Attributes in order of their names.
pub type Attrs = BTreeMap<Arc<str>, AttrValue>;

/// A function.
#[derive(Clone, Debug)]
pub struct PrimFunc {
    /// Parameters in order: scalars and pointers.
    pub params: Vec<Var>,
    /// The tensors behind pointer parameters, in parameter order.
    pub buffer_map: Vec<(Var, Buffer)>,
    /// What it returns; `None` for nothing.
    pub ret: Option<Type>,
    /// `global_symbol`, `target`, `calling_conv`, …
    pub attrs: Attrs,
    /// What it does.
    pub body: Stmt,
    /// The first line of the definition (`def name(...)`).
    pub span: Span,
}

impl PrimFunc {
    /// The tensor behind a parameter.
    pub fn buffer_of(&self, param: &Var) -> Option<&Buffer> {
        self.buffer_map.iter().find(|(v, _)| v == param).map(|(_, b)| b)
    }

    /// An attribute.
    pub fn attr(&self, key: &str) -> Option<&AttrValue> {
        self.attrs.get(key)
    }

    /// The exported name (`global_symbol`).
    pub fn global_symbol(&self) -> Option<&str> {
        self.attr("global_symbol").and_then(AttrValue::as_str)
    }

    /// The function with an attribute set.
    pub fn with_attr(mut self, key: &str, value: AttrValue) -> PrimFunc {
        self.attrs.insert(key.into(), value);
        self
    }

    /// The function without an attribute.
    pub fn without_attr(mut self, key: &str) -> PrimFunc {
        self.attrs.remove(key);
        self
    }

    /// The dtype it returns; `void` for nothing.
    pub fn ret_dtype(&self) -> DType {
        self.ret.as_ref().map_or(DType::VOID, Type::dtype)
    }
}

/// Functions by name, in order, with the texts their spans point into.
#[derive(Clone, Debug, Default)]
pub struct IRModule {
    /// The functions.
    pub functions: Vec<(Arc<str>, PrimFunc)>,
    /// Module attributes.
    pub attrs: Attrs,
    /// The texts behind the spans.
    pub sources: SourceMap,
}

impl IRModule {
    /// A module of one function.
    pub fn single(name: impl Into<Arc<str>>, func: PrimFunc, sources: SourceMap) -> IRModule {
        IRModule {
            functions: vec![(name.into(), func)],
            attrs: Attrs::new(),
            sources,
        }
    }

    /// A function by name.
    pub fn get(&self, name: &str) -> Option<&PrimFunc> {
        self.functions.iter().find(|(n, _)| &**n == name).map(|(_, f)| f)
    }

    /// The module with each function changed by `f`.
    pub fn try_map<E>(mut self, mut f: impl FnMut(PrimFunc) -> Result<PrimFunc, E>) -> Result<IRModule, E> {
        self.functions = self
            .functions
            .into_iter()
            .map(|(n, func)| Ok((n, f(func)?)))
            .collect::<Result<_, E>>()?;
        Ok(self)
    }

    /// The module with each function changed by `f`.
    pub fn map(mut self, mut f: impl FnMut(PrimFunc) -> PrimFunc) -> IRModule {
        self.functions = self.functions.into_iter().map(|(n, func)| (n, f(func))).collect();
        self
    }
}
