//! The schema of a row: everything that the compiler knows of one operation, stated once.
//!
//! A row names an operation of the IR, its arguments in the order of a call node (which is the order in which TVM
//! prints them), how kernel text writes it, what a GPU must have for it, what it does besides computing, and the CUDA
//! it becomes. Argument binding, printer, verifier, architecture check, CUDA text, reference pages and the simulator
//! read it from here. The families are the files of [`super::rows`].

mod build;

use super::gpu_set::GpuSet;
use super::operands::Operands;
use super::{Effect, ResultRule};
use crate::ir::DType;

pub use build::{
    arg, code, expression, function, host, list, lowered, optional, ptx, pure_ptx, rest, special, state_ptx,
};

/// Fills arguments that a signature does not name.
pub type Complete = fn(&mut Given) -> Result<(), String>;
/// Checks the combination of modifiers; an error names the one that PTX does not have, and its second line what to do
/// instead.
pub type Check = fn(&Operands) -> Result<(), String>;
/// The GPUs that a particular call needs, and the part of the call that needs them.
pub type NeedsBy = fn(&Operands) -> Option<(&'static str, GpuSet)>;
/// The alignment in bytes that the named pointer argument of a call needs; 1 for any address.
pub type AlignmentBy = fn(&Operands, &str) -> u32;
/// The release of CUDA that a particular call needs, and the part of the call that needs it.
pub type SinceBy = fn(&Operands) -> Option<(&'static str, Release)>;
/// Computes the words of a template.
pub type MakeWords = fn(&Operands, Machine) -> Result<Words, String>;

/// A release of CUDA: 13.2 is `(13, 2)`.
pub type Release = (u32, u32);

/// One operation.
#[derive(Debug)]
pub struct Row {
    /// The IR's name: `tirx.ptx.mbarrier_init`.
    pub name: &'static str,
    /// Its name after `T.` in text, the spelling that is printed: `ptx.mbarrier.init`.
    pub script: &'static str,
    /// Other spellings of the same function.
    pub also: &'static [&'static str],
    /// How text writes a call: `(bar, count)`, in Python's syntax of parameters with literal defaults. `None` where
    /// every argument is given by position in the order of `args`.
    pub signature: Option<&'static str>,
    /// The arguments of a call node, in order.
    pub args: &'static [Arg],
    /// Parameters of the signature that are not arguments of the node: `complete` reads them.
    pub words: &'static [Arg],
    /// Fills arguments that the signature does not name from those that it does.
    pub complete: Option<Complete>,
    /// Checks what the kinds of the arguments cannot express: combinations that PTX does not have.
    pub check: Option<Check>,
    /// The dtype of the call's value.
    pub result: ResultRule,
    /// Its effect besides giving a value.
    pub effect: Effect,
    /// Its effect on other threads and engines.
    pub traits: Traits,
    /// Pointer arguments through which it only reads.
    pub sources: &'static [&'static str],
    /// Pointer arguments through which it only writes.
    pub destinations: &'static [&'static str],
    /// The alignment that its pointers into memory need.
    pub alignment: Option<AlignmentBy>,
    /// The GPUs that have it, if the lines of PTX tables do not tell: see [`Op::gpus`](super::Op::gpus).
    pub arch: Option<GpuSet>,
    /// Modifier values that fewer GPUs have: argument, value, GPUs.
    pub needs: &'static [(&'static str, &'static str, GpuSet)],
    /// The same for combinations of arguments.
    pub needs_by: Option<NeedsBy>,
    /// Modifier values that only later releases of CUDA know: argument, value, first release (`(13, 2)`).
    pub since: &'static [(&'static str, &'static str, Release)],
    /// The same for combinations of arguments.
    pub since_by: Option<SinceBy>,
    /// The least and greatest value of the result, for integers.
    pub range: Option<(i64, i64)>,
    /// The CUDA it becomes.
    pub cuda: Cuda,
    /// The section of the PTX ISA, or of the CUDA programming guide, that describes it.
    pub section: &'static str,
}

/// An argument of a call node.
#[derive(Clone, Copy, Debug)]
pub struct Arg {
    /// Its name, as in the signature.
    pub name: &'static str,
    /// Its kind.
    pub kind: ArgKind,
    /// How many values it takes.
    pub many: Many,
}

/// The kind of an argument.
#[derive(Clone, Copy, Debug)]
pub enum ArgKind {
    /// The value of a register. Integers of other widths are converted as in C; floats must have the dtype itself.
    Value(DType),
    /// A value of any dtype.
    Any,
    /// Any expression, strings included.
    Node,
    /// A bool, or an integer that is tested against 0.
    Condition,
    /// A lane mask of a warp, one bit per lane.
    Mask,
    /// A pointer to elements of a dtype.
    Array(DType),
    /// A location in memory: a pointer, or for shared memory its 32-bit shared address (a `uint64` is an address in
    /// another block's shared memory, as `T.ptx.mapa` gives it).
    Pointer(Space),
    /// A variable of the thread that the instruction reads or writes, given by its address; of [`ArgKind::Element`] text
    /// names the element itself and the node has its address.
    Register(Access, Ty),
    /// The same, written as the element: `acc[i]`.
    Element(Access, Ty),
    /// One of these words, which is a part of the instruction's name.
    Text(&'static [&'static str]),
    /// The name of a dtype, in PTX or in TVM's words.
    DTypeName,
    /// The name of a dtype of the language, such as `"uint32"`; `"void"` for none.
    DType,
    /// Any string.
    Name,
    /// 0 or 1, known at compile time.
    Flag,
    /// A bool known at compile time.
    Bool,
    /// An integer in this inclusive range, known at compile time.
    Immediate(i64, i64),
    /// 0 or 1: whether the named argument is present. Not written in text.
    Has(&'static str),
    /// How many values the named argument has. Not written in text.
    Count(&'static str),
}

/// How many values an argument takes.
#[derive(Clone, Copy, Debug)]
pub enum Many {
    /// One.
    One,
    /// One or none.
    Optional,
    /// The number that this computes from the arguments before the list; `None` takes all that are left.
    List(Option<fn(&Operands) -> usize>),
}

/// A state space of PTX.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Space {
    /// Shared memory: the instruction takes a 32-bit address.
    Shared,
    /// Global memory.
    Global,
    /// Any: a generic address.
    Generic,
    /// Determined by the modifiers: a pointer, or a 32-bit address in shared memory.
    FromModifiers,
}

/// How an instruction uses a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Reads it.
    In,
    /// Writes it.
    Out,
    /// Reads and writes it.
    InOut,
}

/// The type of a register in `asm`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ty {
    /// 16 bits.
    B16,
    /// 32 bits.
    B32,
    /// 64 bits.
    B64,
    /// float32.
    F32,
    /// float64.
    F64,
    /// As [`Cuda::words`] determines for this argument's name.
    FromWords,
}

impl Ty {
    /// Its C++ type and its constraint letter in `asm`.
    pub fn spelling(self) -> (&'static str, &'static str) {
        match self {
            Ty::B16 => ("unsigned short", "h"),
            Ty::B32 | Ty::FromWords => ("unsigned int", "r"),
            Ty::B64 => ("unsigned long long", "l"),
            Ty::F32 => ("float", "f"),
            Ty::F64 => ("double", "d"),
        }
    }
}

/// The effect of an operation on vector lanes, memory, other threads and asynchronous engines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Traits {
    /// Whether it applies to each lane of vectors separately.
    pub elementwise: bool,
    /// Whether it is arithmetic, so that dtypes without arithmetic are widened for it.
    pub arithmetic: bool,
    /// Whether a vector result is produced as one value, not lane by lane.
    pub whole_vector: bool,
    /// The argument whose values it passes between lanes.
    pub passes_on: Option<u8>,
    /// Its effect on memory that other threads may see.
    pub memory: Memory,
    /// The threads that must execute it together, each once.
    pub collective: Collective,
    /// The engine that completes the work asynchronously.
    pub engine: Engine,
    /// Whether it may wait for another thread or engine.
    pub waits: bool,
    /// Whose accesses it orders, or which threads it releases.
    pub synchronizes: Synchronizes,
    /// Whether its result tells threads of a block apart, whatever the arguments are.
    pub tells_threads_apart: bool,
}

/// The effect of an operation on memory that other threads may see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Memory {
    /// Nothing.
    None,
    /// Reads it.
    Reads,
    /// Writes it.
    Writes,
    /// Reads and writes it.
    ReadsAndWrites,
}

/// Between whom an operation synchronizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Synchronizes {
    /// Nobody.
    Nobody,
    /// No thread waits, but memory accesses are ordered.
    Memory,
    /// The lanes of a warp, which exchange values of registers: accesses to memory are not ordered.
    Lanes,
    /// The lanes of a warp.
    Warp,
    /// The warps of a warpgroup.
    Warpgroup,
    /// The threads of a block, and the engines that work for it.
    Block,
    /// Threads of a cluster.
    Cluster,
    /// All threads of a grid, which must run at once.
    Grid,
    /// One grid and another.
    Grids,
}

/// Threads that execute an instruction together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Collective {
    /// Each thread for itself.
    Thread,
    /// All 32 lanes of a warp (`.sync.aligned`).
    Warp,
    /// The four warps of a warpgroup.
    Warpgroup,
    /// All threads of a block.
    Block,
}

/// An engine that works asynchronously to the threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    /// None: the work is complete when the instruction is.
    None,
    /// Copies of `cp.async`, in the generic proxy.
    AsyncCopy,
    /// Bulk and tensor copies, in the async proxy.
    BulkCopy,
    /// Tensor cores of `wgmma`, in the async proxy.
    Wgmma,
    /// Tensor cores and tensor memory of `tcgen05`.
    Tcgen05,
}

impl Traits {
    /// An instruction of one thread, with no asynchronous work.
    pub const PLAIN: Traits = Traits {
        elementwise: false,
        arithmetic: false,
        whole_vector: false,
        passes_on: None,
        memory: Memory::None,
        collective: Collective::Thread,
        engine: Engine::None,
        waits: false,
        synchronizes: Synchronizes::Nobody,
        tells_threads_apart: false,
    };
    /// It orders memory or releases other threads of the block.
    pub const SYNC: Traits = Traits {
        synchronizes: Synchronizes::Block,
        ..Traits::PLAIN
    };
    /// It may wait.
    pub const WAIT: Traits = Traits {
        waits: true,
        ..Traits::SYNC
    };

    /// The same, performed by an engine.
    pub const fn by(self, engine: Engine) -> Traits {
        Traits { engine, ..self }
    }

    /// The same, collective over several threads.
    pub const fn collective(self, collective: Collective) -> Traits {
        Traits { collective, ..self }
    }

    /// The same, synchronizing other threads than those of a block.
    pub const fn synchronizes(self, synchronizes: Synchronizes) -> Traits {
        Traits { synchronizes, ..self }
    }

    /// The same, with accesses to memory.
    pub const fn memory(self, memory: Memory) -> Traits {
        Traits { memory, ..self }
    }

    /// The same, applied to each lane of vectors.
    pub const fn elementwise(self) -> Traits {
        Traits {
            elementwise: true,
            ..self
        }
    }

    /// The same, arithmetic on each lane of vectors.
    pub const fn arithmetic(self) -> Traits {
        Traits {
            arithmetic: true,
            ..self.elementwise()
        }
    }

    /// The same, producing a vector as one value.
    pub const fn whole_vector(self) -> Traits {
        Traits {
            whole_vector: true,
            ..self
        }
    }

    /// The same, giving each lane one of the lanes' arguments.
    pub const fn passes_on(self, argument: u8) -> Traits {
        Traits {
            passes_on: Some(argument),
            ..self
        }
    }

    /// The same, with a result that tells threads of a block apart.
    pub const fn tells_threads_apart(self) -> Traits {
        Traits {
            tells_threads_apart: true,
            ..self
        }
    }

    /// Whether it reads memory that other threads may see.
    pub const fn reads(&self) -> bool {
        matches!(self.memory, Memory::Reads | Memory::ReadsAndWrites)
    }
}

/// The CUDA that an operation becomes.
#[derive(Clone, Copy, Debug)]
pub struct Cuda {
    /// Its form.
    pub form: CudaForm,
    /// Words of the template that are not arguments, types of registers, and anything else derived from the modifiers.
    pub words: Option<MakeWords>,
    /// Headers that the text needs.
    pub headers: &'static [&'static str],
    /// Functions of `codegen/src/cuda/helpers.rs` that the text needs, by name.
    pub helpers: &'static [&'static str],
}

/// The machine that a template's words may depend on.
#[derive(Clone, Copy, Debug)]
pub struct Machine {
    /// Ten times the major compute capability plus the minor one; 0 where the target is not known.
    pub capability: u32,
}

/// The words of a template, by name.
#[derive(Debug, Default, PartialEq, Eq, Hash)]
pub struct Words {
    /// Texts; an empty one counts as absent for `{?name:…}`.
    pub texts: Vec<(&'static str, String)>,
    /// Types of registers whose kind is [`Ty::FromWords`].
    pub types: Vec<(&'static str, Ty)>,
}

/// The form of an operation in CUDA.
#[derive(Clone, Copy, Debug)]
pub enum CudaForm {
    /// A function of CUDA C++ that takes the arguments as they are.
    Function(&'static str),
    /// An expression of CUDA C++, in which `$name$` is an argument.
    Expression(&'static str),
    /// A template of PTX within `asm volatile`. `{name}` is an operand (its place follows from the kind) or a modifier;
    /// `{name}` of a list is its places with commas between; `{.name}` is the modifier behind a dot where it is not
    /// empty; `{?name:text}` is the text where the modifier is neither empty nor 0 (or the operand is there), `{!name:text}`
    /// where it is; `{{` and `}}` are braces, outside of conditions. `{result}` is the call's value. Instructions that declare registers are put
    /// within braces.
    Ptx(&'static str),
    /// As [`CudaForm::Ptx`], but pure: no clobber of memory and not volatile.
    PurePtx(&'static str),
    /// As [`CudaForm::Ptx`] without the clobber of memory: it reads or changes thread state, and runs exactly as often as
    /// written.
    StatePtx(&'static str),
    /// The body of a C++ function whose parameters have the arguments' names; `$name$` is a modifier or word.
    Code(&'static str),
    /// Written by hand in the code generator, where the text depends on dtypes and kinds of memory: a C++ operator, a
    /// function of the dtype, a jump.
    Special,
    /// Never printed: a pass replaces it.
    Lowered,
    /// Never printed: it occurs in host functions only.
    Host,
}

impl Row {
    /// What the operation does with the memory that a pointer argument points to: as `sources` and `destinations` say,
    /// else as its effect on memory. `None` for arguments that are values: a pointer among them is not followed.
    pub fn access(&self, arg: &Arg) -> Option<Access> {
        if self.sources.contains(&arg.name) {
            return Some(Access::In);
        }
        if self.destinations.contains(&arg.name) {
            return Some(Access::Out);
        }
        match (arg.kind, self.traits.memory) {
            (ArgKind::Register(access, _) | ArgKind::Element(access, _), _) => Some(access),
            (ArgKind::Pointer(_) | ArgKind::Array(_), memory) => match memory {
                Memory::Reads => Some(Access::In),
                Memory::Writes => Some(Access::Out),
                Memory::ReadsAndWrites => Some(Access::InOut),
                Memory::None if self.effect == Effect::ReadState => Some(Access::In),
                Memory::None => None,
            },
            _ => None,
        }
    }
}

impl Row {
    /// The alignment in bytes that an address needs which is given as this argument of a call; `None` for values.
    pub fn alignment(&self, arg: &Arg, call: &Operands) -> Option<u32> {
        let rule = self
            .alignment
            .filter(|_| matches!(arg.kind, ArgKind::Pointer(_)))?;
        Some(rule(call, arg.name))
    }
}

/// The arguments of a call in text, by parameter, during binding.
#[derive(Debug, Default)]
pub struct Given {
    /// Expressions by parameter; none for one that is left out.
    pub values: Vec<(&'static str, Vec<crate::ir::Expr>)>,
}

impl Given {
    /// The values of a parameter.
    pub fn get(&self, name: &str) -> &[crate::ir::Expr] {
        let found = self.values.iter().find(|(n, _)| *n == name);
        found.map_or(&[], |(_, list)| list.as_slice())
    }

    /// The text of a parameter; empty where it is absent.
    pub fn text(&self, name: &str) -> &str {
        self.get(name)
            .first()
            .and_then(|e| e.as_str())
            .unwrap_or_default()
    }

    /// The integer value of a parameter.
    pub fn int(&self, name: &str) -> Option<i128> {
        self.get(name).first().and_then(|e| e.as_int())
    }

    /// Leaves an argument out.
    pub fn leave_out(&mut self, name: &str) {
        self.values.retain(|(n, _)| *n != name);
    }

    /// Sets an argument.
    pub fn set(&mut self, name: &'static str, value: crate::ir::Expr) {
        match self.values.iter_mut().find(|(n, _)| *n == name) {
            Some((_, list)) => *list = vec![value],
            None => self.values.push((name, vec![value])),
        }
    }
}
