//! From a final device function to bytecode.
//!
//! | file | what it compiles |
//! |---|---|
//! | `scan` | nothing: what must be known of a function beforehand |
//! | `registers` | values, registers, constants, jumps |
//! | `statement` | statements and control flow |
//! | `expression` | expressions but for calls |
//! | `asynchronous` | asynchronous copies, mbarriers |
//! | `meaning` | intrinsics: what compiles each operation |
//! | `call` | calls of them, and those that need little |
//! | `remote` | NVSHMEM, cluster launch control |
//! | `mnemonic` | instructions that are given by their mnemonics |
//! | `math` | intrinsics that are arithmetic |
//! | `warp` | barriers, shuffles, votes, reductions |
//! | `special_register` | who and where a thread is |
//! | `call_out` | raw CUDA functions, `printf` |
//! | `instructions`, `ptx_convert`, `ptx_memory`, `ptx_sync` | PTX instructions; `cvt`; those that access memory; timers |
//! | `tensor`, `tcgen05` | instructions of tensor cores; tensor memory |
//! | `memory` | loads and stores |
//! | `views` | buffers over a part of a shared array |
//! | `index` | from coordinates to an offset in an array |
//! | `pointer` | pointers, accesses and atomics through them |
//! | `inline` | called functions, written out in place |
//!
//! A value that is the same in all lanes of a warp (constants, parameters, block indices and what follows from
//! them) is computed once, in a scalar register. Arrays in scope `local` whose indices are all constants become
//! vector registers.

mod asynchronous;
mod call;
mod call_out;
mod expression;
mod index;
mod inline;
mod instructions;
mod math;
mod meaning;
mod memory;
mod mnemonic;
mod pointer;
mod polls;
mod ptx_convert;
mod ptx_memory;
mod ptx_sync;
mod redundant;
mod registers;
mod remote;
mod scan;
mod special_register;
mod statement;
mod tcgen05;
mod tensor;
mod views;
mod warp;

pub use mnemonic::simulates;
use rustc_hash::FxHashMap;
use tirx_ir::abi::{Target, keys};
use tirx_ir::{Buffer, IRModule, Limits, PrimFunc, Var};
use tirx_source::Diagnostics;
use tirx_source::diagnostic::{Diagnostic, Result, error};
use tirx_source::source::{SourceMap, Span};

use registers::{Registers, Val};
use tirx_sim_machine::bytecode::{Axis, BYTE, Code, Inst, Pc, R, Region, Special, WORD};
use tirx_sim_machine::numeric::Kind;

/// Where the memory behind a data pointer is.
#[derive(Clone, Debug)]
enum Home {
    Param(u16),
    Shared(u16),
    Local(u16),
    /// A local array in registers: one register per lane of an element; where initialization is tracked, the index of
    /// its first bit.
    Registers {
        elements: Vec<R>,
        init: Option<u16>,
        /// Its number among the arrays with indices that are not constant.
        indexed: Option<u16>,
    },
    /// A pointer value.
    Pointer(Val),
}

/// A loop being compiled.
#[derive(Clone, Copy)]
struct Loop {
    is_while: bool,
}

/// How a function is compiled.
#[derive(Clone, Copy, Debug, Default)]
pub struct CompileOptions {
    /// Whether signed overflow of `int32` and `int64`, and a shift by an amount that the width does not have, is an error. It is undefined in CUDA C++, and wraps here unless asked.
    pub check_overflow: bool,
}

struct Compiler<'a> {
    code: Code,
    options: CompileOptions,
    sources: &'a SourceMap,
    scan: scan::Scan,
    registers: Registers,
    vars: FxHashMap<Var, Vec<Val>>,
    homes: FxHashMap<Var, Home>,
    /// The views of shared arrays: by the array and the buffer.
    views: FxHashMap<(u16, Buffer), u16>,
    specials: FxHashMap<SpecialKey, R>,
    thread_index: [Option<R>; 3],
    /// The text of what is being compiled.
    span: Span,
    /// The text that the work of instructions is charged to.
    charged: Span,
    places: FxHashMap<Span, u32>,
    /// The `Step` instruction that counts the current block's operators.
    block: usize,
    /// No instruction before this one may be changed: it is a jump target.
    label: usize,
    loops: Vec<Loop>,
    /// In a branch that some threads of the block may not take.
    parted: bool,
    /// Inside a condition that decides whether a loop continues.
    polling: bool,
    /// Whether loads go through the path for memory that does not change.
    constant: bool,
    /// Accesses are made through a multicast window.
    window: bool,
    /// A product is compiled that names a kind of formats, and no formats.
    any_formats: bool,
}

type SpecialKey = (u8, u16);

/// Compiles the device function called `function` (its name in the module or its `global_symbol`).
pub(crate) fn compile(
    module: &IRModule,
    function: &str,
    options: CompileOptions,
) -> Result<Code, Diagnostics> {
    let func = module.get(function).or_else(|| {
        let mut functions = module.functions.iter().map(|(_, f)| f);
        functions.find(|f| f.global_symbol() == Some(function))
    });
    let Some(func) = func else {
        let names: Vec<String> = module.functions.iter().map(|(n, _)| format!("`{n}`")).collect();
        let message = format!("the module has no function `{function}`");
        return Err(Diagnostic::new(Span::NONE, message)
            .help(format!("it has {}", names.join(", ")))
            .into());
    };
    let written_out = match module.functions.len() > 1 && inline::calls(func) {
        true => PrimFunc {
            body: inline::inlined(module, func)?,
            ..func.clone()
        },
        false => func.clone(),
    };
    let func = &written_out;
    let target = func.attr("target").and_then(Target::from_attr);
    let limit = |key: &str| u32::try_from(func.attr(key)?.as_int()?).ok();
    let mut compiler = Compiler {
        code: Code {
            name: function.to_string(),
            min_blocks: limit(keys::MIN_BLOCKS_PER_SM).unwrap_or(0),
            max_registers: limit(keys::MAX_REGISTERS),
            most_shared: target
                .map_or(Limits::USUAL, |target| target.gpu.limits())
                .block_shared_memory,
            arch: target.map_or(String::new(), |target| target.gpu.to_string()),
            ..Code::default()
        },
        options,
        sources: &module.sources,
        scan: scan::Scan::from_function(func),
        registers: Registers::default(),
        vars: FxHashMap::default(),
        homes: FxHashMap::default(),
        views: FxHashMap::default(),
        specials: FxHashMap::default(),
        thread_index: [None; 3],
        span: func.span,
        charged: Span::NONE,
        places: FxHashMap::default(),
        block: 0,
        label: 0,
        loops: Vec::new(),
        parted: false,
        polling: false,
        constant: false,
        window: false,
        any_formats: false,
    };
    compiler.function(func).map_err(|mut d| {
        d.span = d.span.or(func.span);
        Diagnostics::from(d)
    })?;
    Ok(compiler.code)
}

impl Compiler<'_> {
    fn function(&mut self, func: &PrimFunc) -> Result<()> {
        for (i, param) in func.params.iter().enumerate() {
            let Some(kind) = Kind::from_dtype(param.dtype()).filter(|_| param.dtype().is_scalar()) else {
                return error(
                    func.span,
                    format!("parameter `{}` is {}", param.name(), param.dtype()),
                );
            };
            self.code.params.push((param.name().to_string(), kind));
            if kind == Kind::Ptr {
                self.homes.insert(param.clone(), Home::Param(i as u16));
            } else {
                let register = self.special(Special::Param(i as u16))?;
                self.vars.insert(param.clone(), vec![Val::scalar(kind, register)]);
            }
        }
        // A device function's tensors are plain pointers; the map is empty after SplitHostDevice.
        for (param, buffer) in &func.buffer_map {
            if let Some(home) = self.homes.get(param).cloned() {
                self.homes.insert(buffer.data.clone(), home);
            }
        }
        self.begin_block();
        self.statement(&func.body)?;
        self.emit(Inst::End);
        self.finish()
    }

    /// Fills in the tables that depend on the whole function.
    fn finish(&mut self) -> Result<()> {
        if self.code.insts.len() >= 1 << 24 {
            return error(Span::NONE, "the kernel is too large for the simulator");
        }
        redundant::remove(&mut self.code);
        self.code.granule = self.code.finest(WORD, |r| !matches!(r, Region::Local(_)));
        self.code.local_granule = self
            .code
            .finest(BYTE, |r| matches!(r, Region::Local(_) | Region::Pointer));
        self.code.settle_order();
        self.code.axes = self.scan.axes();
        self.code.v32 = self.registers.count32();
        self.code.v64 = self.registers.count64();
        self.code.scalars = self.registers.initial_scalars();
        Ok(())
    }

    /// The scalar register that holds a launch-time value.
    fn special(&mut self, special: Special) -> Result<R> {
        let key = match special {
            Special::Param(i) => (0, i),
            Special::Index(Axis::Block(d)) => (1, d as u16),
            Special::Index(Axis::Thread(d)) => (2, d as u16),
            Special::Index(Axis::ClusterCta(d)) => (3, d as u16),
            Special::Index(Axis::Cluster(d)) => (4, d as u16),
            Special::WarpThread(d) => (5, d as u16),
            Special::WarpId => (6, 0),
            Special::GridDim(d) => (7, d as u16),
            Special::BlockDim(d) => (8, d as u16),
            Special::ClusterDim(d) => (9, d as u16),
            Special::ClusterRank => (10, 0),
            Special::Rank => (11, 0),
            Special::Ranks => (12, 0),
            Special::Arrivals => (13, 0),
            Special::ArrivalsWindow => (14, 0),
        };
        if let Some(register) = self.specials.get(&key) {
            return Ok(*register);
        }
        let register = self.registers.permanent_scalar(self.span)?;
        self.specials.insert(key, register);
        self.code.specials.push((register, special));
        Ok(register)
    }

    /// threadIdx along an axis: a scalar where it is uniform in every warp.
    fn thread_index(&mut self, dim: u8) -> Result<Val> {
        let x = self.scan.extent(Axis::Thread(0));
        let xy = x.map(|x| x * self.scan.extent(Axis::Thread(1)).unwrap_or(1));
        let uniform = match dim {
            0 => false,
            1 => x.is_some_and(|x| x % 32 == 0),
            _ => xy.is_some_and(|xy| xy % 32 == 0) && x.is_some_and(|x| x % 32 == 0),
        };
        if uniform {
            let register = self.special(Special::WarpThread(dim))?;
            return Ok(Val::scalar(Kind::I32, register));
        }
        let register = match self.thread_index[dim as usize] {
            Some(register) => register,
            None => {
                let register = self.registers.permanent_vector(self.span)?;
                self.thread_index[dim as usize] = Some(register);
                self.code.thread_index.push((register, dim));
                register
            }
        };
        Ok(Val::vector(Kind::I32, register))
    }

    fn here(&self) -> Pc {
        self.code.insts.len() as Pc
    }
}
