//! What does a load, store or atomic of PTX do?
//!
//! The forms are those of `ld`, `st`, `red` and `atom` in the PTX ISA; their arguments are described by the rows of
//! [`super::rows`].

use super::{Op, Operands};
use crate::ir::{DType, Expr};

/// What an instruction does with memory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Access {
    /// Reads.
    Load,
    /// Writes.
    Store,
    /// Reads and writes atomically: the operation's name.
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

/// The names of all elements.
pub const ELEMENT_NAMES: &[&str] = &[
    "b8", "u8", "s8", "b16", "u16", "s16", "b32", "u32", "s32", "b64", "u64", "s64", "b128", "f32", "f64",
];

/// The dtype of a register that holds an element of this name.
pub fn register_of(name: &str) -> Option<DType> {
    ELEMENTS.iter().find(|e| e.ptx == name).map(|e| e.register)
}

/// A parsed call of a load, a store or an atomic.
#[derive(Debug)]
pub struct MemoryInstruction<'a> {
    /// What it does.
    pub access: Access,
    /// The instruction without its operands: `ld.relaxed.gpu.global.v2.u32`.
    pub text: String,
    /// Whether it takes part in the memory order between threads (every access that is not weak).
    pub strong: bool,
    /// The address operand.
    pub address: &'a Expr,
    /// Destinations of a load, values or the one source of a store, the value of an update.
    pub operands: &'a [Expr],
    /// Whether `operands` are pointers to the values rather than the values.
    pub by_pointer: bool,
    /// The cache policy, where the instruction has one.
    pub policy: Option<&'a Expr>,
    /// What is accessed.
    pub element: Element,
    /// How many elements are accessed.
    pub lanes: usize,
    /// How the address is given: generic, shared, local, or a 32-bit shared address.
    pub space: Space,
    /// The dtype of the call's value.
    pub result: DType,
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
    pub fn from_call(op: Op, args: &'a [Expr]) -> Result<Option<MemoryInstruction<'a>>, String> {
        // For these the type of the access is one of the modifiers.
        if !matches!(op.info().family, "memory" | "atomics")
            || op.row().arg("ptx_type").is_none()
            || op == Op::PtxMapa
        {
            return Ok(None);
        }
        MemoryInstruction::read(&Operands::read(op.row(), args)?).map(Some)
    }

    /// Reads the operands of a call.
    ///
    /// # Errors
    /// What PTX does not have.
    pub fn read(call: &Operands<'a>) -> Result<MemoryInstruction<'a>, String> {
        let text = |name: &str| call.text(name);
        let name = text("ptx_type");
        let element = *ELEMENTS.iter().find(|e| e.ptx == name).ok_or("ptx_type")?;
        let lanes = match text("vec") {
            "" if name == "b128" => 2,
            "" => 1,
            vec => vec
                .trim_start_matches('v')
                .parse()
                .map_err(|_| "vec".to_string())?,
        };
        let space = match call.row.arg("space") {
            None => "global",
            Some(_) => text("space"),
        };

        let stem = call.row.script.trim_start_matches("ptx.");
        let (verb, order) = stem.split_once('_').unwrap_or((stem, ""));
        let mut said = String::from(verb);
        let mut say = |word: &str| {
            if !word.is_empty() {
                said.push('.');
                said.push_str(word);
            }
        };
        let update = matches!(verb, "atom" | "red");
        if verb == "red" {
            one_of("sem", text("sem"), &["", "relaxed", "release"])?;
        }
        match order {
            _ if update => {
                say(text("sem"));
                say(text("scope"));
                say(space);
            }
            "relaxed" | "acquire" | "release" => {
                say(order);
                say(text("scope"));
                say(space);
            }
            "volatile" => {
                say("volatile");
                say(space);
            }
            "mmio" => {
                say("mmio");
                say(text("sem"));
                say(text("scope"));
                say(space);
            }
            "global_nc" => {
                say("global");
                say(text("cop"));
                say("nc");
            }
            _ => {
                say(if call.flag("weak") { "weak" } else { "" });
                say(space);
                say(text("cop"));
            }
        }
        let access = match verb {
            "ld" => Access::Load,
            "st" => Access::Store,
            _ => Access::Update(operation(text("op"), verb, element.ptx)?),
        };
        if let Access::Update(operation) = access {
            say(operation);
        }
        let (l1, l2) = (text("l1_evict"), text("l2_evict"));
        if !(l1.is_empty() && l2.is_empty() || text("cop").is_empty()) {
            return Err("cop goes with neither l1_evict nor l2_evict".into());
        }
        let bytes = lanes * usize::from(element.memory.bits) / 8;
        if !l2.is_empty() && bytes != 32 {
            return Err(format!(
                "\"{l2}\" goes with accesses of 32 bytes: vec=\"v8\" of 32 bits or vec=\"v4\" of 64 bits"
            ));
        }
        let atomic = update || matches!(order, "relaxed" | "acquire" | "release" | "volatile");
        if atomic && space == "local" {
            return Err(format!(
                "local memory belongs to one thread: {} does not take it",
                if order.is_empty() { verb } else { stem }
            ));
        }
        say(l1);
        say(l2);
        let has_cache = call.flag("has_cache");
        say(if has_cache { "L2::cache_hint" } else { "" });
        say(text("prefetch_size"));
        say(text("vec"));
        say(element.ptx);

        let policy = call.get("cache_policy");
        if has_cache && policy.is_none() {
            return Err("a cache hint needs a destination: dst=…".into());
        }
        let place = |name: &str| call.get(name).ok_or("there is no address");
        let (address, operands, by_pointer, result) = match access {
            Access::Load if name == "b128" => return Err("b128 is stored, not loaded".into()),
            Access::Load => {
                let to = call.list("dst");
                if ![0, 1, lanes].contains(&to.len()) || to.is_empty() && lanes > 1 {
                    return Err(format!(
                        "a load of {lanes} takes one destination or {lanes}, found {}",
                        to.len()
                    ));
                }
                let result = if to.is_empty() {
                    returned(text("return_type"), element)?
                } else {
                    DType::VOID
                };
                (place("addr")?, to, true, result)
            }
            Access::Update(_) if name == "b128" => return Err("b128 is stored, not updated".into()),
            Access::Store | Access::Update(_) => {
                let from = call.flag("from_src");
                if name == "b128" && !(said == "st.weak.shared::cta.b128" && from) {
                    return Err(
                        "b128 is stored with src=, weak=True and space=\"shared::cta\", and nothing else"
                            .into(),
                    );
                }
                let names = ["src", "values", "value"];
                let values = names
                    .iter()
                    .map(|name| call.list(name))
                    .find(|list| !list.is_empty());
                let values = values.ok_or("takes the stored value after the address")?;
                let result = if verb == "atom" {
                    element.register
                } else {
                    DType::VOID
                };
                (place("address")?, values, from, result)
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
            (_, "global" | "") => Space::Global,
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
        })
    }
}

/// The dtype of a load's value: the register's, or its signed counterpart for untyped bits.
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

/// Checks that PTX has an atomic operation for an element type.
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
