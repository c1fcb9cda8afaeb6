//! What does a load, store or atomic of PTX say? Its call holds operands first, then its modifiers as texts and numbers.
//!
//! The forms are those of `ld`, `st`, `red` and `atom` in the PTX ISA; the order of a call's arguments is TVM's.

use super::Op;
use crate::ir::{DType, Expr};

/// The modifiers of an operator, in the order in which a call has them behind its operands.
#[derive(Debug)]
pub struct Form {
    /// The operator.
    pub op: Op,
    /// The modifiers' names.
    pub fields: &'static [&'static str],
    /// Whether a cache policy (a uint64) stands last among the operands; a load that gives its value may do without.
    policy: Policy,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Policy {
    Always,
    WithDestination,
    Never,
}

const LOAD: &[&str] = &[
    "return_type",
    "scope",
    "space",
    "vec",
    "ptx_type",
    "has_cache",
    "to_dst",
    "l1_evict",
    "l2_evict",
    "prefetch_size",
];
const STORE: &[&str] = &[
    "scope",
    "space",
    "vec",
    "ptx_type",
    "has_cache",
    "l1_evict",
    "l2_evict",
    "from_src",
];
const UPDATE: &[&str] = &["sem", "scope", "space", "op", "ptx_type", "has_cache"];

/// All forms.
#[rustfmt::skip]
pub static FORMS: &[Form] = &[
    Form { op: Op::PtxLd, policy: Policy::Always, fields: &[
        "return_type", "weak", "space", "cop", "vec", "ptx_type", "has_cache", "to_dst", "l1_evict", "l2_evict",
        "prefetch_size",
    ] },
    Form { op: Op::PtxLdGlobalNc, policy: Policy::Always, fields: &[
        "return_type", "cop", "vec", "ptx_type", "has_cache", "to_dst", "l1_evict", "l2_evict", "prefetch_size",
    ] },
    Form { op: Op::PtxLdRelaxed, policy: Policy::Always, fields: LOAD },
    Form { op: Op::PtxLdAcquire, policy: Policy::WithDestination, fields: LOAD },
    Form { op: Op::PtxLdVolatile, policy: Policy::Never, fields: &[
        "return_type", "space", "vec", "ptx_type", "to_dst", "prefetch_size",
    ] },
    Form { op: Op::PtxLdMmio, policy: Policy::Never, fields: &[
        "return_type", "sem", "scope", "space", "ptx_type", "to_dst",
    ] },
    Form { op: Op::PtxSt, policy: Policy::Always, fields: &[
        "weak", "space", "cop", "vec", "ptx_type", "has_cache", "l1_evict", "l2_evict", "from_src",
    ] },
    Form { op: Op::PtxStRelaxed, policy: Policy::Always, fields: STORE },
    Form { op: Op::PtxStRelease, policy: Policy::Always, fields: STORE },
    Form { op: Op::PtxStVolatile, policy: Policy::Never, fields: &["space", "vec", "ptx_type", "from_src"] },
    Form { op: Op::PtxStMmio, policy: Policy::Never, fields: &["sem", "scope", "space", "ptx_type"] },
    Form { op: Op::PtxAtomScalar, policy: Policy::Always, fields: UPDATE },
    Form { op: Op::PtxRedScalar, policy: Policy::Always, fields: UPDATE },
];

impl Form {
    /// The form of an operator of this file.
    pub fn of(op: Op) -> Option<&'static Form> {
        FORMS.iter().find(|form| form.op == op)
    }

    /// Whether a call has a cache policy among its operands.
    pub fn has_policy(&self, to_dst: bool) -> bool {
        self.policy == Policy::Always || self.policy == Policy::WithDestination && to_dst
    }
}

/// What an instruction does with memory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Access {
    /// Reads.
    Load,
    /// Writes.
    Store,
    /// Reads and writes in one step: the operation's name.
    Update(&'static str),
}

/// What is loaded or stored: its name in PTX, its dtype in memory and in a register, the register's letter in `asm`.
#[derive(Clone, Copy, Debug)]
pub struct Element {
    /// `u32`.
    pub ptx: &'static str,
    /// In memory.
    pub memory: DType,
    /// In a register.
    pub register: DType,
    /// `r`.
    pub letter: &'static str,
}

const fn element(ptx: &'static str, memory: DType, register: DType, letter: &'static str) -> Element {
    Element {
        ptx,
        memory,
        register,
        letter,
    }
}

static ELEMENTS: &[Element] = &[
    element("b8", DType::UINT8, DType::UINT32, "r"),
    element("u8", DType::UINT8, DType::UINT32, "r"),
    element("s8", DType::INT8, DType::INT32, "r"),
    element("b16", DType::UINT16, DType::UINT16, "h"),
    element("u16", DType::UINT16, DType::UINT16, "h"),
    element("s16", DType::INT16, DType::INT16, "h"),
    element("b32", DType::UINT32, DType::UINT32, "r"),
    element("u32", DType::UINT32, DType::UINT32, "r"),
    element("s32", DType::INT32, DType::INT32, "r"),
    element("b64", DType::UINT64, DType::UINT64, "l"),
    element("u64", DType::UINT64, DType::UINT64, "l"),
    element("s64", DType::INT64, DType::INT64, "l"),
    // Two halves; one register where CUDA names it.
    element("b128", DType::UINT64, DType::UINT64, "q"),
    element("f32", DType::FLOAT32, DType::FLOAT32, "f"),
    element("f64", DType::FLOAT64, DType::FLOAT64, "d"),
];

/// A call of one of [`FORMS`], understood.
#[derive(Debug)]
pub struct MemoryInstruction<'a> {
    /// What it does.
    pub access: Access,
    /// The instruction without its operands: `ld.relaxed.gpu.global.v2.u32`.
    pub text: String,
    /// Whether it takes part in the order of memory between threads (any but weak accesses).
    pub strong: bool,
    /// Where.
    pub address: &'a Expr,
    /// Destinations of a load, values or the one source of a store, the value of an update.
    pub operands: &'a [Expr],
    /// Whether `operands` are pointers to what is loaded or stored.
    pub by_pointer: bool,
    /// The cache policy, where the instruction has one.
    pub policy: Option<&'a Expr>,
    /// What is accessed.
    pub element: Element,
    /// How many of it.
    pub lanes: usize,
    /// Whether the address is one of shared memory, of local memory, or a 32-bit address of shared memory.
    pub space: Space,
    /// The dtype of the call's value.
    pub result: DType,
    /// Why PTX does not have it, though TVM's text may hold it.
    pub missing: Option<String>,
}

/// How an address is given to the instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Space {
    /// A generic pointer, as global memory has it.
    Global,
    /// A generic pointer into shared memory.
    Shared,
    /// A generic pointer into local memory.
    Local,
    /// The address in shared memory itself.
    RawShared,
}

/// `name` must be one of `known`.
fn one_of<'k>(what: &str, name: &str, known: &[&'k str]) -> Result<&'k str, String> {
    known
        .iter()
        .find(|k| **k == name)
        .copied()
        .ok_or_else(|| format!("{what} must be one of {}, found \"{name}\"", known.join(", ")))
}

impl<'a> MemoryInstruction<'a> {
    /// Reads a call; `None` for other operators.
    ///
    /// # Errors
    /// What PTX does not have.
    pub fn of(op: Op, args: &'a [Expr]) -> Result<Option<MemoryInstruction<'a>>, String> {
        match Form::of(op) {
            Some(form) => MemoryInstruction::read(form, args).map(Some),
            None => Ok(None),
        }
    }

    fn read(form: &Form, args: &'a [Expr]) -> Result<MemoryInstruction<'a>, String> {
        let split = args
            .len()
            .checked_sub(form.fields.len())
            .filter(|operands| *operands > 0);
        let (operands, modifiers) = args.split_at(split.ok_or("too few arguments")?);
        let at = |name: &str| form.fields.iter().position(|f| *f == name).map(|i| &modifiers[i]);
        let text = |name: &str| match at(name).map(|e| e.as_str()) {
            Some(Some(text)) => Ok(text),
            Some(None) => Err(format!("{name} must be a string")),
            None => Ok(""),
        };
        let number = |name: &str| at(name).and_then(Expr::as_int).unwrap_or(0);

        let name = text("ptx_type")?;
        let names: Vec<&str> = ELEMENTS.iter().map(|e| e.ptx).collect();
        one_of("ptx_type", name, &names)?;
        let element = *ELEMENTS.iter().find(|e| e.ptx == name).ok_or("ptx_type")?;
        let lanes = match one_of("vec", text("vec")?, &["", "v2", "v4", "v8"])? {
            "" if name == "b128" => 2,
            "" => 1,
            vec => vec[1..].parse().map_err(|_| "vec".to_string())?,
        };
        let spaces = &["global", "shared", "shared::cta", "shared::cluster", "local"];
        let space = match form.op {
            Op::PtxLdGlobalNc => "global",
            _ => one_of("space", text("space")?, spaces)?,
        };

        let stem = form.op.info().script.trim_start_matches("ptx.");
        let (verb, order) = stem.split_once('_').unwrap_or((stem, ""));
        let mut missing = None;
        let mut said = String::from(verb);
        let mut say = |word: &str| {
            if !word.is_empty() {
                said.push('.');
                said.push_str(word);
            }
        };
        let update = matches!(verb, "atom" | "red");
        if update {
            let orders: &[&str] = match verb {
                "red" => &["", "relaxed", "release"],
                _ => &["", "relaxed", "acquire", "release", "acq_rel"],
            };
            say(one_of("sem", text("sem")?, orders)?);
            say(one_of(
                "scope",
                text("scope")?,
                &["", "cta", "cluster", "gpu", "sys"],
            )?);
            say(space);
        } else {
            let scope = || one_of("scope", text("scope")?, &["cta", "cluster", "gpu", "sys"]);
            match order {
                "relaxed" | "acquire" | "release" => {
                    say(order);
                    say(scope()?);
                    say(space);
                }
                "volatile" => {
                    say("volatile");
                    say(space);
                }
                "mmio" => {
                    let orders: &[&str] = match verb {
                        "ld" => &["relaxed", "acquire"],
                        _ => &["relaxed", "release"],
                    };
                    let order = one_of("sem", text("sem")?, orders)?;
                    if order != "relaxed" {
                        missing = Some(format!("{verb}.mmio is relaxed alone: sem=\"relaxed\""));
                    }
                    say("mmio");
                    say(order);
                    say(one_of("scope", text("scope")?, &["sys"])?);
                    say(one_of("space", space, &["global"])?);
                }
                "global_nc" => {
                    say("global");
                    say(one_of("cop", text("cop")?, &["", "ca", "cg", "cs"])?);
                    say("nc");
                }
                _ => {
                    let cops: &[&str] = match verb {
                        "ld" => &["", "ca", "cg", "cs", "lu", "cv"],
                        _ => &["", "wb", "cg", "cs", "wt"],
                    };
                    say(if number("weak") != 0 { "weak" } else { "" });
                    say(space);
                    say(one_of("cop", text("cop")?, cops)?);
                }
            }
        }
        let access = match verb {
            "ld" => Access::Load,
            "st" => Access::Store,
            _ => Access::Update(operation(text("op")?, verb, element.ptx)?),
        };
        if let Access::Update(operation) = access {
            say(operation);
        }
        let l1 = [
            "",
            "L1::evict_normal",
            "L1::evict_unchanged",
            "L1::evict_first",
            "L1::evict_last",
            "L1::no_allocate",
        ];
        let l1 = one_of("l1_evict", text("l1_evict")?, &l1)?;
        let l2 = ["", "L2::evict_normal", "L2::evict_first", "L2::evict_last"];
        let l2 = one_of("l2_evict", text("l2_evict")?, &l2)?;
        let evicts = !l1.is_empty() || !l2.is_empty();
        if evicts && !text("cop")?.is_empty() {
            return Err("cop goes with neither l1_evict nor l2_evict".into());
        }
        say(l1);
        say(l2);
        let has_cache = number("has_cache") != 0;
        say(if has_cache { "L2::cache_hint" } else { "" });
        say(one_of(
            "prefetch_size",
            text("prefetch_size")?,
            &["", "L2::64B", "L2::128B", "L2::256B"],
        )?);
        say(text("vec")?);
        say(element.ptx);

        let destinations = usize::try_from(number("to_dst")).unwrap_or(usize::MAX);
        let with_policy = form.has_policy(destinations > 0);
        let (policy, operands) = match operands.split_last() {
            Some((policy, rest)) if with_policy => (Some(policy), rest),
            _ => (None, operands),
        };
        if has_cache && policy.is_none() {
            return Err("a cache hint needs a destination: dst=…".into());
        }
        let (address, operands, by_pointer, result) = match access {
            Access::Load if name == "b128" => return Err("b128 is stored, not loaded".into()),
            Access::Load => {
                let Some((address, to)) = operands.split_last() else {
                    return Err("there is no address".into());
                };
                if to.len() != destinations
                    || ![0, 1, lanes].contains(&to.len())
                    || to.is_empty() && lanes > 1
                {
                    return Err(format!(
                        "a load of {lanes} takes one destination or {lanes}, found {}",
                        to.len()
                    ));
                }
                let result = if to.is_empty() {
                    returned(text("return_type")?, element)?
                } else {
                    DType::VOID
                };
                (address, to, true, result)
            }
            Access::Update(_) if name == "b128" => return Err("b128 is stored, not updated".into()),
            Access::Store | Access::Update(_) => {
                let Some((address, values)) = operands.split_first() else {
                    return Err("there is no address".into());
                };
                let from = number("from_src") != 0;
                if name == "b128" {
                    let plain = said == "st.weak.shared::cta.b128" && from;
                    if !plain {
                        return Err(
                            "b128 is stored with src=, weak=True and space=\"shared::cta\", and nothing else"
                                .into(),
                        );
                    }
                }
                let wanted = if from { 1 } else { lanes };
                if values.len() != wanted {
                    return Err(format!(
                        "takes {wanted} after the address, found {}",
                        values.len()
                    ));
                }
                let result = if verb == "atom" {
                    element.register
                } else {
                    DType::VOID
                };
                (address, values, from, result)
            }
        };
        let space = match (address.dtype, space) {
            (DType::UINT32, "shared" | "shared::cta" | "shared::cluster") => Space::RawShared,
            (d, _) if !d.is_handle() => {
                return Err(
                    "the address must be a pointer such as A.ptr_to([i]), or a uint32 in shared memory"
                        .into(),
                );
            }
            (_, "global") => Space::Global,
            (_, "local") => Space::Local,
            _ => Space::Shared,
        };
        Ok(MemoryInstruction {
            access,
            text: said,
            strong: update || !matches!(order, "" | "global_nc"),
            address,
            operands,
            by_pointer,
            policy: policy.filter(|_| has_cache),
            element,
            lanes,
            space,
            result,
            missing,
        })
    }
}

/// The dtype of a load's value: the register's, or its signed twin for plain bits.
fn returned(name: &str, element: Element) -> Result<DType, String> {
    let signed = match element.ptx {
        "b32" => Some(DType::INT32),
        "b64" => Some(DType::INT64),
        _ => None,
    };
    match name.parse::<DType>() {
        Ok(d) if d == element.register || Some(d) == signed => Ok(d),
        _ => Err(format!(
            "a load of {} gives {}, not \"{name}\"",
            element.ptx, element.register
        )),
    }
}

/// An operation on elements of a type that PTX has it for.
fn operation(name: &str, verb: &str, ptx: &str) -> Result<&'static str, String> {
    const OPERATIONS: &[(&str, &[&str])] = &[
        ("and", &["b32", "b64"]),
        ("or", &["b32", "b64"]),
        ("xor", &["b32", "b64"]),
        ("exch", &["b32", "b64"]),
        ("add", &["u32", "s32", "u64", "f32", "f64"]),
        ("inc", &["u32"]),
        ("dec", &["u32"]),
        ("min", &["u32", "s32", "u64", "s64"]),
        ("max", &["u32", "s32", "u64", "s64"]),
    ];
    let has = |known: &str| verb == "atom" || known != "exch";
    let Some((known, types)) = OPERATIONS.iter().find(|(known, _)| *known == name && has(known)) else {
        let all: Vec<&str> = OPERATIONS
            .iter()
            .map(|(known, _)| *known)
            .filter(|known| has(known))
            .collect();
        return Err(format!("op must be one of {}, found \"{name}\"", all.join(", ")));
    };
    if !types.contains(&ptx) {
        return Err(format!("\"{name}\" is on {}, not on {ptx}", types.join(", ")));
    }
    Ok(known)
}
