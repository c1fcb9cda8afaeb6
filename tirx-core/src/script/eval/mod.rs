//! The meta evaluator: Python semantics over two kinds of value. See [`Value`].
//!
//! Operations on meta values alone are computed here; one that touches an IR value is handed to
//! [`super::lang`], which builds IR. Functions run in one of two ways: as Python (module level, helper functions,
//! classes), or as part of a kernel (bodies of `@T.prim_func`, `@T.jit` and `@T.inline`), where `if`, `for`, `while`,
//! assignment and the like build statements.

mod args;
mod builder;
mod dict;
pub mod limits;
mod names;
mod scope;
mod value;

use std::rc::Rc;
use std::sync::Arc;

use rustc_hash::FxHashMap;

pub use args::{Args, Param, count, keyword, optional, quoted, required};
pub use builder::{FunctionBuilder, Wrap};
pub use dict::{Dict, Key, Set, key};
pub use names::suggest;
pub use scope::{Scope, ScopeKind};
pub use value::*;

use crate::ir::{Buffer, Var};
use builder::Block;

/// The state of one evaluation. Builtins get it to emit statements, call values back and see the function that
/// is being built.
#[derive(Default)]
pub struct Interpreter {
    function: Option<FunctionBuilder>,
    blocks: Vec<Block>,
    emitted: usize,
    steps: u64,
    fatal: bool,
    renamed_buffers: FxHashMap<usize, (Buffer, Arc<str>)>,
    renamed_vars: FxHashMap<Var, Arc<str>>,
}

impl Class {
    /// Whether its objects are compared and hashed by their fields.
    fn is_data_tuple(&self) -> bool {
        match &*self.kind.borrow() {
            ClassKind::DataClass(d) => d.frozen,
            ClassKind::NamedTuple(_) => true,
            _ => false,
        }
    }
}

#[allow(unused)]
type Shared<T> = Rc<T>;
