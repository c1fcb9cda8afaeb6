//! Structural equality: the same program up to the names of what it binds.
//!
//! Variables and buffers that are bound (parameters, shape variables, loops, bindings, allocations, declarations) are
//! matched pairwise where they are bound; all others must be the same variable. Spans and names take no part, nor do
//! differences of notation: an absent element offset is zero, annotations have no order, a hardware index is its tag.

mod attrs;
mod buffer;
mod expr;
mod stmt;

use std::fmt;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::{Attrs, Buffer, Expr, IRModule, PrimFunc, Stmt, Type, Var, image};
use crate::ir::{Levels, print_expr, with_stack_for};

/// The first difference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// The path to it from the root: `main.body[3].value`.
    pub path: String,
    /// What is there on the left.
    pub left: String,
    /// What is there on the right.
    pub right: String,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "at {}: `{}` is not `{}`",
            self.path,
            self.left.trim_end(),
            self.right.trim_end()
        )
    }
}

impl std::error::Error for Mismatch {}

/// IR that can be compared and hashed by structure.
pub trait Structural: Levels + Sync {
    #[doc(hidden)]
    fn compare(&self, other: &Self, state: &mut Comparison) -> Result<(), Mismatch>;
    #[doc(hidden)]
    fn write(&self, writer: &mut image::Encoder);
}

/// Whether two modules, functions, statements or expressions are the same up to renaming of what they bind.
pub fn structural_equal<T: Structural + ?Sized>(a: &T, b: &T) -> Result<(), Mismatch> {
    let levels = a.levels().max(b.levels());
    with_stack_for(levels, || a.compare(b, &mut Comparison::default()))
}

/// A number that is the same for structurally equal things, on every machine. Variables that nothing binds count by
/// the order in which they occur.
pub fn structural_hash<T: Structural + ?Sized>(a: &T) -> u64 {
    with_stack_for(a.levels(), || {
        let mut writer = image::Encoder::structural();
        a.write(&mut writer);
        // FNV-1a.
        writer.bytes().iter().fold(0xcbf2_9ce4_8422_2325, |h, b| {
            (h ^ u64::from(*b)).wrapping_mul(0x100_0000_01b3)
        })
    })
}

/// A step of the path to a difference.
#[derive(Clone)]
enum Step {
    Field(&'static str),
    Index(usize),
    Name(Arc<str>),
}

/// The correspondence of variables on the left with those on the right.
#[derive(Default)]
pub struct Comparison {
    vars: FxHashMap<Var, Var>,
    reverse: FxHashMap<Var, Var>,
    buffers: FxHashMap<Buffer, Buffer>,
    path: Vec<Step>,
}

type Outcome = Result<(), Mismatch>;

impl Comparison {
    fn at<R>(&mut self, step: Step, f: impl FnOnce(&mut Self) -> Result<R, Mismatch>) -> Result<R, Mismatch> {
        self.path.push(step);
        let result = f(self);
        if result.is_ok() {
            self.path.pop();
        }
        result
    }

    fn field<R>(
        &mut self,
        name: &'static str,
        f: impl FnOnce(&mut Self) -> Result<R, Mismatch>,
    ) -> Result<R, Mismatch> {
        self.at(Step::Field(name), f)
    }

    fn differ(&self, left: impl Into<String>, right: impl Into<String>) -> Outcome {
        let mut path = String::new();
        for step in &self.path {
            match step {
                Step::Field(name) if path.is_empty() => path.push_str(name),
                Step::Field(name) => path.push_str(&format!(".{name}")),
                Step::Index(i) => path.push_str(&format!("[{i}]")),
                Step::Name(name) if path.is_empty() => path.push_str(name),
                Step::Name(name) => path.push_str(&format!(".{name}")),
            }
        }
        let path = if path.is_empty() { "the root".into() } else { path };
        Err(Mismatch {
            path,
            left: left.into(),
            right: right.into(),
        })
    }

    fn same<T: PartialEq + fmt::Debug>(&self, a: &T, b: &T) -> Outcome {
        if a == b {
            Ok(())
        } else {
            self.differ(format!("{a:?}"), format!("{b:?}"))
        }
    }

    fn ty(&self, a: &Type, b: &Type) -> Outcome {
        if a == b {
            Ok(())
        } else {
            self.differ(type_name(a), type_name(b))
        }
    }

    /// Matches two variables where they are bound.
    fn bind(&mut self, a: &Var, b: &Var) -> Outcome {
        self.ty(a.ty(), b.ty())?;
        if let Some(old) = self.vars.insert(a.clone(), b.clone()) {
            self.reverse.remove(&old);
        }
        self.reverse.insert(b.clone(), a.clone());
        Ok(())
    }

    fn is_free(&self, a: &Var, b: &Var) -> bool {
        !self.vars.contains_key(a) && !self.reverse.contains_key(b)
    }

    fn var(&self, a: &Var, b: &Var) -> Outcome {
        let same = match (self.vars.get(a), self.reverse.get(b)) {
            (Some(x), _) => x == b,
            (None, None) => a == b,
            (None, Some(_)) => false,
        };
        if same {
            Ok(())
        } else {
            self.differ(a.name(), b.name())
        }
    }

    /// As [`Comparison::var`]; two variables that nothing binds are matched from here on.
    fn var_or_bind(&mut self, a: &Var, b: &Var) -> Outcome {
        if a != b && self.is_free(a, b) {
            self.bind(a, b)
        } else {
            self.var(a, b)
        }
    }

    fn exprs(&mut self, a: &[Expr], b: &[Expr]) -> Outcome {
        if a.len() != b.len() {
            let all =
                |list: &[Expr]| format!("[{}]", list.iter().map(print_expr).collect::<Vec<_>>().join(", "));
            return self.differ(all(a), all(b));
        }
        a.iter()
            .zip(b)
            .enumerate()
            .try_for_each(|(i, (x, y))| self.at(Step::Index(i), |s| s.expr(x, y)))
    }

    fn option(&mut self, a: &Option<Expr>, b: &Option<Expr>) -> Outcome {
        let text = |e: &Option<Expr>| e.as_ref().map_or("nothing".into(), print_expr);
        match (a, b) {
            (Some(x), Some(y)) => self.expr(x, y),
            (None, None) => Ok(()),
            _ => self.differ(text(a), text(b)),
        }
    }
}

fn type_name(ty: &Type) -> String {
    match ty {
        Type::Prim(dtype) => dtype.to_string(),
        Type::Pointer { element, scope } => format!("pointer to {element} in {scope}"),
        Type::TensorMap => "tensor map".to_string(),
    }
}

impl Structural for Expr {
    fn compare(&self, other: &Self, state: &mut Comparison) -> Outcome {
        state.expr(self, other)
    }
    fn write(&self, writer: &mut image::Encoder) {
        writer.expr(self);
    }
}

impl Structural for Stmt {
    fn compare(&self, other: &Self, state: &mut Comparison) -> Outcome {
        state.stmt(self, other)
    }
    fn write(&self, writer: &mut image::Encoder) {
        writer.stmt(self);
    }
}

impl Structural for PrimFunc {
    fn compare(&self, other: &Self, state: &mut Comparison) -> Outcome {
        state.func(self, other)
    }
    fn write(&self, writer: &mut image::Encoder) {
        writer.func(self);
    }
}

impl Structural for IRModule {
    fn compare(&self, other: &Self, state: &mut Comparison) -> Outcome {
        let names = |m: &IRModule| {
            let mut names: Vec<_> = m.functions.iter().map(|(n, _)| n.clone()).collect();
            names.sort();
            names
        };
        state.same(&names(self), &names(other))?;
        let attrs = |m: &IRModule| -> Attrs { m.attrs.clone() };
        state.field("attrs", |s| s.attrs(&attrs(self), &attrs(other)))?;
        for (name, func) in &self.functions {
            if let Some(other) = other.get(name) {
                state.at(Step::Name(name.clone()), |s| s.func(func, other))?;
            }
        }
        Ok(())
    }
    fn write(&self, writer: &mut image::Encoder) {
        writer.module(self);
    }
}
