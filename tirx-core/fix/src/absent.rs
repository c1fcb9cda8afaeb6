//! Which calls of TVM 0.26 have no counterpart in 0.27, and why?
//!
//! The table has a line for each: the function, the argument that decides, and what the user can do. `docs/reference/releases.md` lists it.

use super::calls::Literal;
use super::given::{Given, value_of};
use tirx_ir::intrin::Op;

/// What an argument is in the calls that have no counterpart.
#[derive(Clone, Copy)]
enum When {
    /// Every call.
    Always,
    /// The argument is given, and is neither 0 nor `False`.
    Set(&'static str),
    /// The argument is this text.
    Is(&'static str, &'static str),
}

impl When {
    fn holds(self, given: &Given) -> bool {
        let known = |name: &str| value_of(given, name).map(|value| value.known());
        match self {
            When::Always => true,
            When::Set(name) => known(name).is_some_and(|value| value != Some(&Literal::Int(0))),
            When::Is(name, text) => known(name) == Some(Some(&Literal::Text(text.into()))),
        }
    }
}

/// A call without a counterpart.
struct Absent {
    op: Op,
    when: When,
    reason: &'static str,
}

const ABSENT: &[Absent] = &[
    Absent {
        op: Op::PtxTcgen05MmaSp,
        when: When::Always,
        reason: "0.27 has sparse products of tensor memory for `kind::ti16` and only with `collector::b`, both for sm_107",
    },
    Absent {
        op: Op::PtxTcgen05MmaSpBlockScale,
        when: When::Always,
        reason: "0.27 has sparse products with scale factors only with collectors, for sm_107",
    },
    Absent {
        op: Op::PtxTcgen05Mma,
        when: When::Set("scale_input_d"),
        reason: "no instruction of 0.27 scales D: it leaves out the operand scale-input-d",
    },
    Absent {
        op: Op::PtxSt,
        when: When::Is("ptx_type", "b128"),
        reason: "0.27 stores 128 bits from a variable of uint128, not from an address",
    },
    Absent {
        op: Op::PtxAddF32x2,
        when: When::Is("return_dtype", "float32x2"),
        reason: PAIR,
    },
    Absent {
        op: Op::PtxSubF32x2,
        when: When::Is("return_dtype", "float32x2"),
        reason: PAIR,
    },
    Absent {
        op: Op::PtxMulF32x2,
        when: When::Is("return_dtype", "float32x2"),
        reason: PAIR,
    },
    Absent {
        op: Op::PtxFmaF32x2,
        when: When::Is("return_dtype", "float32x2"),
        reason: PAIR,
    },
];

const PAIR: &str = "0.27 has a pair of float32 only as a variable of uint64, not as a vector";

/// Functions that are no rows.
const FUNCTIONS: &[(&str, &str)] = &[(
    "ptx.mma.sp",
    "0.27 has it as `T.ptx.mma.sp.sync.aligned.…` with a variable of 32 bits for each register, not by pointers and offsets",
)];

/// Why a function that is no row has no counterpart.
pub(super) fn function(script: &str) -> Option<&'static str> {
    let found = FUNCTIONS.iter().find(|(name, _)| *name == script);
    found.map(|(_, reason)| *reason)
}

/// Why a call of a row has no counterpart; `None` where it may have one.
pub(super) fn reason(op: Op, given: &Given) -> Option<&'static str> {
    let absent = ABSENT
        .iter()
        .find(|absent| absent.op == op && absent.when.holds(given));
    absent.map(|absent| absent.reason)
}

/// The functions without a counterpart, with the argument that decides and the reason, as the documentation lists them.
pub fn table() -> Vec<(String, &'static str)> {
    let call = |absent: &Absent| {
        let name = format!("T.{}", absent.op.row().script);
        match absent.when {
            When::Always => name,
            When::Set(argument) => format!("{name}(…, {argument}=…)"),
            When::Is(argument, text) => format!("{name}(…, {argument}=\"{text}\")"),
        }
    };
    let rows = ABSENT.iter().map(|absent| (call(absent), absent.reason));
    let functions = FUNCTIONS
        .iter()
        .map(|(name, reason)| (format!("T.{name}"), *reason));
    rows.chain(functions).collect()
}
