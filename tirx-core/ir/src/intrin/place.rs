//! Where is an argument in a call? Its place follows from the row, and is found while this program is compiled.

use super::row::Many;
use super::{Op, rows};

/// The place of an argument in the calls of one operation, or of several that have it at the same place: a constant, so
/// that reading an argument by its name costs no more than by its number. A name that the row does not have, or whose
/// place depends on the call (behind a list or an optional argument), does not compile: those are read through
/// [`Operands`](super::Operands).
///
/// ```
/// use tirx_ir::{DType, Expr, at, intrin::Op};
///
/// let sum = Op::Dp4a.call().dtype(DType::INT32).set("vec1", 1).set("vec2", 2).set("acc", 3).build();
/// let args = sum.as_call(Op::Dp4a).unwrap();
/// assert_eq!(args[at!(Dp4a.acc)].as_int(), Some(3));
/// assert_eq!(at!(ShiftLeft | ShiftRight.y), 1);
/// ```
///
/// ```compile_fail
/// let place = tirx_ir::at!(Dp4a.accumulator);
/// ```
#[macro_export]
macro_rules! at {
    ($($op:ident)|+ . $name:ident) => {
        const { $crate::intrin::place(&[$($crate::intrin::Op::$op),+], stringify!($name)) }
    };
}

/// The place of an argument that calls of all these operations have at the same place; see [`at!`](crate::at).
///
/// # Panics
/// Where an operation has no such argument, or none at this place in every call. It is called while this program is
/// compiled.
pub const fn place(ops: &[Op], name: &str) -> usize {
    let found = place_in(ops[0], name);
    let mut i = 1;
    while i < ops.len() {
        assert!(
            place_in(ops[i], name) == found,
            "these operations have the argument at different places"
        );
        i += 1;
    }
    found
}

const fn place_in(op: Op, name: &str) -> usize {
    let args = rows::row(op).args;
    let mut place = 0;
    while place < args.len() {
        if same(args[place].name, name) {
            return place;
        }
        assert!(
            matches!(args[place].many, Many::One),
            "a list or an optional argument is before it: read the call with `Operands`"
        );
        place += 1;
    }
    panic!("the row of the operation has no argument of this name")
}

/// Whether two texts are equal, which `==` does not tell in a constant.
const fn same(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    if a.len() != b.len() {
        return false;
    }
    let mut i = 0;
    while i < a.len() {
        if a[i] != b[i] {
            return false;
        }
        i += 1;
    }
    true
}
