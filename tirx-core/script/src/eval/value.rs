//! The values of expressions of a kernel file: meta values, which exist at compile time only, and values of the IR.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use tirx_python as ast;

use super::dict::{Dict, Set};
pub use super::iter::Iter;
use super::scope::Scope;
use super::{Args, Interpreter};
use crate::diagnostic::{Result, error};
use crate::ir::{AttrValue, Buffer, DType, Expr, ForLoop, PrimFunc, Stmt, Type};
use crate::layout::Layout;
use crate::source::{FileId, Span};

/// A value. Cheap to clone; containers are shared, as in Python.
#[derive(Clone)]
pub enum Value {
    /// `None`.
    None,
    /// `...`
    Ellipsis,
    /// `NotImplemented`.
    NotImplemented,
    /// `True`, `False`.
    Bool(bool),
    /// An integer; arithmetic that leaves the range is an error.
    Int(i128),
    /// A number.
    Float(f64),
    /// A text.
    Str(Rc<str>),
    /// A tuple.
    Tuple(Rc<[Value]>),
    /// A list.
    List(Rc<RefCell<Vec<Value>>>),
    /// A dictionary, in order of insertion.
    Dict(Rc<RefCell<Dict>>),
    /// A set, in order of insertion.
    Set(Rc<RefCell<Set>>),
    /// `a:b:c` or `slice(a, b, c)`; absent parts are `None`.
    Slice(Rc<Slice>),
    /// `range(a, b, c)`.
    Range(Range),
    /// An iterator: `iter`, `zip`, `map`, …
    Iterator(Rc<Iter>),
    /// A `def` or `lambda`, run at meta level.
    Function(Rc<Function>),
    /// A function bound to its first argument.
    Method(Rc<Method>),
    /// A function written in Rust.
    Builtin(Rc<Builtin>),
    /// A class.
    Class(Rc<Class>),
    /// An object of a class.
    Instance(Rc<Instance>),
    /// A `@T.prim_func` or `@T.jit` that has not been built yet.
    Kernel(Rc<Kernel>),
    /// A module or namespace by its path: `T`, `T.cuda`, `math`.
    Namespace(Rc<str>),
    /// A kernel file that was imported: its names.
    Module(Rc<Module>),
    /// A host value (`torch`, `tvm.compile`): the error that using it gives.
    Unavailable(Rc<str>),
    /// A dtype: called, it is a conversion or a fresh variable; subscripted, an annotation.
    DType(DType),
    /// A layout.
    Layout(Layout),
    /// An expression of the IR.
    Expr(Expr),
    /// A buffer.
    Buffer(Buffer),
    /// A rectangular part of a buffer.
    Region(Rc<Region>),
    /// A statement with a body, before its body exists.
    Frame(Rc<Frame>),
    /// An annotation after the colon of a name: `T.let`, `T.f32[2]`, `T.constexpr`.
    Annotation(Rc<Annotation>),
    /// `T.meta_var(x)`: binding it to a name binds `x` itself.
    MetaVar(Rc<Value>),
    /// Any other object of the language.
    Object(Rc<dyn Object>),
}

/// A value with its own behaviour.
pub trait Object {
    /// Its type's name in messages.
    fn type_name(&self) -> &str;
    /// `value.name`; `None` for no such attribute.
    fn attribute(&self, _interp: &mut Interpreter, _name: &str, _span: Span) -> Result<Option<Value>> {
        Ok(None)
    }
    /// `value(args)`.
    fn call(&self, _interp: &mut Interpreter, _args: Args, span: Span) -> Result<Value> {
        error(span, format!("{} cannot be called", self.type_name()))
    }
    /// `value[index]`.
    fn subscript(&self, _interp: &mut Interpreter, _index: &Value, span: Span) -> Result<Value> {
        error(span, format!("{} cannot be subscripted", self.type_name()))
    }
    /// `value[index] = item`.
    fn set_item(&self, interp: &mut Interpreter, _index: &Value, _item: Value, span: Span) -> Result<()> {
        let message = format!("{} cannot be assigned to by index", self.type_name());
        interp.raise("TypeError", span, message)
    }
    /// `value op other`, or `other op value` where `reflected`; `None` for no such operator.
    fn binary(
        &self,
        _interp: &mut Interpreter,
        _op: ast::Operator,
        _other: &Value,
        _reflected: bool,
        _span: Span,
    ) -> Result<Option<Value>> {
        Ok(None)
    }
    /// Whether both are equal; identity by default.
    fn equals(&self, _other: &dyn Object) -> bool {
        false
    }
    /// For downcasts.
    fn as_any(&self) -> &dyn Any;
}

/// `start:stop:step`.
#[derive(Clone)]
pub struct Slice {
    /// First, or `None`.
    pub start: Value,
    /// One past the last, or `None`.
    pub stop: Value,
    /// Step, or `None`.
    pub step: Value,
}

/// Integers from `start` below `stop`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// First.
    pub start: i128,
    /// Bound.
    pub stop: i128,
    /// Step, not zero.
    pub step: i128,
}

impl Range {
    /// Number of items.
    pub fn len(&self) -> usize {
        let count = if self.step > 0 {
            (self.stop.saturating_sub(self.start).saturating_add(self.step - 1)) / self.step
        } else {
            (self
                .start
                .saturating_sub(self.stop)
                .saturating_add(-self.step - 1))
                / -self.step
        };
        usize::try_from(count.max(0)).unwrap_or(usize::MAX)
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Item `index`.
    pub fn get(&self, index: usize) -> i128 {
        self.start + self.step * index as i128
    }
}

/// A `def` or `lambda`.
pub struct Function {
    /// Its name; `<lambda>`.
    pub name: Rc<str>,
    /// Its code.
    pub code: Rc<Code>,
    /// Default values of the parameters that have one, by position in [`Code::parameters`].
    pub defaults: Vec<(usize, Value)>,
    /// The scope it was defined in.
    pub scope: Rc<Scope>,
    /// How the body runs.
    pub mode: FunctionMode,
    /// The class it was defined in, for `super()`.
    pub class: RefCell<Option<Rc<Class>>>,
    /// What has been assigned to its attributes: `f.__annotations__ = {…}`.
    pub attributes: RefCell<Vec<(Rc<str>, Value)>>,
}

impl Function {
    /// An attribute that has been assigned.
    pub fn attribute(&self, name: &str) -> Option<Value> {
        let attributes = self.attributes.borrow();
        attributes
            .iter()
            .find(|(n, _)| **n == *name)
            .map(|(_, value)| value.clone())
    }

    /// `function.name = value`.
    pub fn set_attribute(&self, name: &str, value: Value) {
        let mut attributes = self.attributes.borrow_mut();
        match attributes.iter_mut().find(|(n, _)| **n == *name) {
            Some((_, old)) => *old = value,
            None => attributes.push((name.into(), value)),
        }
    }
}

/// How the body of a function runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FunctionMode {
    /// As Python.
    Meta,
    /// As part of the kernel that calls it (`@T.inline`, `@T.macro`).
    Inline,
    /// As `Inline`, with the names of the caller (`@T.macro(hygienic=False)`).
    Dynamic,
}

/// A function's text.
pub struct Code {
    /// The file.
    pub file: FileId,
    /// Its parameters, flattened.
    pub parameters: Vec<Parameter>,
    /// Its body.
    pub body: CodeBody,
    /// Names that the body assigns (without `global` and `nonlocal` ones).
    pub locals: rustc_hash::FxHashSet<ast::Name>,
    /// Names declared `global`.
    pub globals: Vec<ast::Name>,
    /// Names declared `nonlocal`.
    pub nonlocals: Vec<ast::Name>,
    /// Whether the body has a `yield`.
    pub is_generator: bool,
    /// The definition's first line.
    pub span: Span,
}

/// What a function runs.
pub enum CodeBody {
    /// `def`: the definition.
    Def(Arc<ast::StmtFunctionDef>),
    /// `lambda`: the lambda.
    Lambda(ast::ExprLambda),
    /// None: a function that was built statement by statement.
    Built,
}

impl CodeBody {
    /// The definition; `None` for a lambda.
    pub fn def(&self) -> Option<&ast::StmtFunctionDef> {
        match self {
            CodeBody::Def(def) => Some(def),
            CodeBody::Lambda(_) | CodeBody::Built => None,
        }
    }
}

/// A parameter.
pub struct Parameter {
    /// Its name.
    pub name: ast::Name,
    /// How arguments reach it.
    pub kind: ParameterKind,
    /// Whether it has a default.
    pub has_default: bool,
    /// Its place.
    pub span: Span,
}

/// How arguments reach a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum ParameterKind {
    PositionalOnly,
    Positional,
    VarPositional,
    KeywordOnly,
    VarKeyword,
}

/// A function bound to its first argument.
pub struct Method {
    /// The first argument.
    pub receiver: Value,
    /// The function.
    pub function: Value,
}

/// A builtin function.
pub type BuiltinCall = dyn Fn(&mut Interpreter, Args, Span) -> Result<Value>;

/// A function written in Rust.
pub struct Builtin {
    /// Its name in messages, e.g. `T.alloc_buffer`.
    pub name: Rc<str>,
    /// Its implementation.
    pub call: Box<BuiltinCall>,
}

/// A class.
pub struct Class {
    /// Its name.
    pub name: Rc<str>,
    /// Classes it names as its bases.
    pub bases: Vec<Rc<Class>>,
    /// Classes it inherits from, in resolution order, itself not included.
    pub mro: Vec<Rc<Class>>,
    /// Its names.
    pub dict: RefCell<FxHashMap<Rc<str>, Value>>,
    /// Names in order of definition.
    pub order: RefCell<Vec<Rc<str>>>,
    /// Its kind.
    pub kind: RefCell<ClassKind>,
    /// `@T.meta_class`: buffers in attributes of its objects get names.
    pub is_meta: Cell<bool>,
    /// Where it was defined.
    pub span: Span,
}

/// The kind of a class.
#[derive(Clone)]
pub enum ClassKind {
    /// Nothing.
    Plain,
    /// `@dataclass`: its fields, in order.
    DataClass(Rc<DataClass>),
    /// `enum.Enum` and its kind.
    Enum {
        /// Whether members behave as their values (`IntEnum`, `StrEnum`).
        integer: bool,
    },
    /// `NamedTuple`: its fields.
    NamedTuple(Rc<DataClass>),
    /// A type of Python itself, for `isinstance` and conversions: `int`, `ValueError`, …
    Builtin,
}

/// The fields of a dataclass.
pub struct DataClass {
    /// Name, default (or factory), whether it takes part in `__init__`.
    pub fields: Vec<Field>,
    /// Whether objects are immutable.
    pub frozen: bool,
    /// Whether objects are compared by their fields.
    pub eq: bool,
    /// Whether objects have an order.
    pub order: bool,
    /// Whether objects print their fields.
    pub repr: bool,
}

impl DataClass {
    /// The fields of a named tuple.
    pub(super) fn tuple(fields: Vec<Field>) -> DataClass {
        DataClass {
            fields,
            frozen: true,
            eq: true,
            order: true,
            repr: true,
        }
    }

    /// The values that objects are compared and hashed by.
    pub(super) fn compared(&self, object: &Instance) -> Vec<Value> {
        let fields = self.fields.iter().filter(|f| f.compare);
        fields.filter_map(|f| object.get(&f.name)).collect()
    }
}

/// A field of a dataclass.
#[derive(Clone)]
pub struct Field {
    /// Its name.
    pub name: Rc<str>,
    /// Its default.
    pub default: Option<Value>,
    /// What makes its default.
    pub factory: Option<Value>,
    /// Whether it takes part in `__init__`.
    pub init: bool,
    /// Whether it is given by name only.
    pub keyword_only: bool,
    /// Whether it is printed.
    pub repr: bool,
    /// Whether it takes part in comparisons.
    pub compare: bool,
}

/// An object of a class.
pub struct Instance {
    /// Its class.
    pub class: Rc<Class>,
    /// Its attributes, in order of first assignment.
    pub fields: RefCell<Vec<(Rc<str>, Value)>>,
}

impl Field {
    /// A field that takes part in everything.
    pub(super) fn new(name: impl Into<Rc<str>>, default: Option<Value>) -> Field {
        Field {
            name: name.into(),
            default,
            factory: None,
            init: true,
            keyword_only: false,
            repr: true,
            compare: true,
        }
    }
}

impl Instance {
    /// An attribute of the object itself.
    pub fn get(&self, name: &str) -> Option<Value> {
        self.fields
            .borrow()
            .iter()
            .find(|(n, _)| &**n == name)
            .map(|(_, v)| v.clone())
    }

    /// Sets an attribute.
    pub fn set(&self, name: &str, value: Value) {
        let mut fields = self.fields.borrow_mut();
        match fields.iter_mut().find(|(n, _)| &**n == name) {
            Some((_, v)) => *v = value,
            None => fields.push((name.into(), value)),
        }
    }
}

/// A kernel that was defined and has not been built.
pub struct Kernel {
    /// The name of its `def`.
    pub name: Rc<str>,
    /// Its text.
    pub code: Rc<Code>,
    /// The scope it was defined in.
    pub scope: Rc<Scope>,
    /// Whether it is a `@T.jit`.
    pub is_jit: bool,
    /// `private=True`: it has no `global_symbol`.
    pub is_private: bool,
    /// `s_tir=True`: it is written for schedules, so its buffers have no layout.
    pub is_s_tir: bool,
    /// `persistent=True`.
    pub is_persistent: bool,
    /// Values of `T.constexpr` parameters that were given (`specialize`).
    pub constexprs: Vec<(Rc<str>, Value)>,
    /// Default values by parameter.
    pub defaults: Vec<(usize, Value)>,
    /// How many kernels were decorated before it.
    pub number: usize,
    /// Attributes given by `with_attr`; `None` takes one away.
    pub attrs: Vec<(Rc<str>, Option<AttrValue>)>,
    /// The function itself, if it was built statement by statement.
    pub finished: Option<PrimFunc>,
}

impl Kernel {
    /// The same kernel as another value.
    pub(super) fn copy(&self) -> Kernel {
        Kernel {
            name: self.name.clone(),
            code: self.code.clone(),
            scope: self.scope.clone(),
            is_jit: self.is_jit,
            is_private: self.is_private,
            is_s_tir: self.is_s_tir,
            is_persistent: self.is_persistent,
            constexprs: self.constexprs.clone(),
            defaults: self.defaults.clone(),
            number: self.number,
            attrs: self.attrs.clone(),
            finished: self.finished.clone(),
        }
    }
}

/// An imported kernel file.
pub struct Module {
    /// Its dotted name.
    pub name: Rc<str>,
    /// Its names.
    pub scope: Rc<Scope>,
}

/// A rectangular part of a buffer.
pub struct Region {
    /// The buffer.
    pub buffer: Buffer,
    /// First coordinate and extent of each dimension.
    pub ranges: Vec<(Expr, Expr)>,
    /// How many dimensions were written; the others are whole.
    pub written: usize,
    /// Whether it may go beyond its buffer, as it stands in a statement that never runs.
    pub never_runs: bool,
}

/// A statement with a body, before its body exists.
pub enum Frame {
    /// Loops, outermost first: `T.serial(n)`, `T.grid(m, n)`.
    For(Vec<ForLoop>),
    /// A region: `T.attr(…)`, `T.launch_thread(…)`.
    Region {
        /// The value that `as` binds.
        value: Value,
        /// The statement around the body.
        wrap: Box<dyn Fn(Stmt) -> Stmt>,
    },
    /// Several, outermost first: `T.attr({"a": 1, "b": 2})`.
    Many(Vec<Rc<Frame>>),
    /// `T.If(condition)`, whose body is `T.Then()` and `T.Else()`.
    If(Expr),
    /// `T.Then()`.
    Then,
    /// `T.Else()`.
    Else,
    /// `T.While(condition)`.
    While(Expr),
    /// `I.prim_func()` of the builder: a whole function.
    Function {
        /// `is_private=True`: it has no `global_symbol`.
        is_private: bool,
        /// `s_tir=True`: its buffers have no layout.
        is_s_tir: bool,
        /// `persistent=True`.
        is_persistent: bool,
    },
}

/// An annotation after the colon of a name.
pub enum Annotation {
    /// `T.let`, `T.let[type]`.
    Let(Option<Type>),
    /// `T.f32[2]`: a local buffer.
    LocalVector(DType, Vec<Expr>),
    /// `T.constexpr`.
    Constexpr,
    /// `T.Optional(annotation)`.
    Optional(Value),
}

impl Value {
    /// A text.
    pub fn str(text: impl Into<Rc<str>>) -> Value {
        Value::Str(text.into())
    }

    /// A list.
    pub fn list(items: Vec<Value>) -> Value {
        Value::List(Rc::new(RefCell::new(items)))
    }

    /// A tuple.
    pub fn tuple(items: Vec<Value>) -> Value {
        Value::Tuple(items.into())
    }

    /// Items to be taken once.
    pub fn iterator(items: Vec<Value>) -> Value {
        Iter::items(items)
    }

    /// A function written in Rust.
    pub fn builtin(
        name: impl Into<Rc<str>>,
        call: impl Fn(&mut Interpreter, Args, Span) -> Result<Value> + 'static,
    ) -> Value {
        Value::Builtin(Rc::new(Builtin {
            name: name.into(),
            call: Box::new(call),
        }))
    }

    /// A namespace.
    pub fn namespace(path: &str) -> Value {
        Value::Namespace(path.into())
    }

    /// Its type's name in messages.
    pub fn type_name(&self) -> String {
        match self {
            Value::None => "None",
            Value::Ellipsis => "ellipsis",
            Value::NotImplemented => "NotImplemented",
            Value::Bool(_) => "bool",
            Value::Int(_) => "int",
            Value::Float(_) => "float",
            Value::Str(_) => "str",
            Value::Tuple(_) => "tuple",
            Value::List(_) => "list",
            Value::Dict(_) => "dict",
            Value::Set(_) => "set",
            Value::Slice(_) => "slice",
            Value::Range(_) => "range",
            Value::Iterator(_) => "iterator",
            Value::Function(_) => "function",
            Value::Method(_) => "method",
            Value::Builtin(_) => "builtin function",
            Value::Class(_) => "class",
            Value::Instance(i) => return i.class.name.to_string(),
            Value::Kernel(k) if k.is_jit => "@T.jit kernel",
            Value::Kernel(_) => "@T.prim_func kernel",
            Value::Namespace(_) | Value::Module(_) => "module",
            Value::Unavailable(_) => "unavailable value",
            Value::DType(_) => "dtype",
            Value::Layout(_) => "layout",
            Value::Expr(e) => return format!("{} expression", e.dtype),
            Value::Buffer(_) => "buffer",
            Value::Region(_) => "buffer region",
            Value::Frame(_) => "statement frame",
            Value::Annotation(_) => "annotation",
            Value::MetaVar(_) => "meta_var",
            Value::Object(o) => return o.type_name().to_string(),
        }
        .to_string()
    }

    /// Whether operators on it build IR.
    pub fn is_ir(&self) -> bool {
        matches!(self, Value::Expr(_) | Value::Buffer(_) | Value::Region(_))
    }

    /// The integer, bools included.
    pub fn as_int(&self) -> Option<i128> {
        match self {
            Value::Int(v) => Some(*v),
            Value::Bool(v) => Some(*v as i128),
            Value::Instance(_) => self.member_number()?.as_int(),
            _ => None,
        }
    }

    /// The value of a member of an `IntEnum` or `StrEnum`.
    pub fn member_number(&self) -> Option<Value> {
        match self {
            Value::Instance(i) if matches!(&*i.class.kind.borrow(), ClassKind::Enum { integer: true }) => {
                i.get("value")
            }
            _ => None,
        }
    }

    /// The text.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Value::Str(s) => Some(s),
            _ => None,
        }
    }

    /// The expression.
    pub fn as_expr(&self) -> Option<&Expr> {
        match self {
            Value::Expr(e) => Some(e),
            _ => None,
        }
    }

    /// A named tuple as a tuple; any other value unchanged.
    pub(super) fn plain_tuple(&self) -> Value {
        match self {
            Value::Instance(i) if i.class.is_named_tuple() => {
                Value::tuple(i.fields.borrow().iter().map(|f| f.1.clone()).collect())
            }
            other => other.clone(),
        }
    }

    /// Items of a tuple or list.
    pub fn as_items(&self) -> Option<Vec<Value>> {
        match self {
            Value::Instance(i) if i.class.is_named_tuple() => self.plain_tuple().as_items(),
            Value::Tuple(items) => Some(items.to_vec()),
            Value::List(items) => Some(items.borrow().clone()),
            _ => None,
        }
    }
}
