//! Loads and stores of PTX with their order, cache operators and vectors, and addresses of other blocks' shared memory.
//!
//! Calls are parsed to a [`MemoryInstruction`], for code generation and the simulator alike.

use super::cache_policy;
use super::kinds::*;
use crate::intrin::gpu_set::GpuSet;
use crate::intrin::memory::{ELEMENT_NAMES, MemoryInstruction};
use crate::intrin::operands::Operands;
use crate::intrin::row::*;
use crate::intrin::{Effect::*, ResultRule};
use crate::ir::{DType, Expr, ExprKind, Type};

/// A pointer, or an address in shared memory.
pub(super) const PLACE: ArgKind = ArgKind::Pointer(Space::FromModifiers);
pub(super) const TYPE: ArgKind = ArgKind::Text(ELEMENT_NAMES);
/// A state space; none for a generic address.
pub(super) const SPACE: ArgKind =
    ArgKind::Text(&["global", "shared", "shared::cta", "shared::cluster", "local", ""]);
/// Modifiers of accesses that not every GPU has.
pub(super) const NEWER: &[(&str, &str, GpuSet)] = &[
    ("scope", "cluster", SM_90),
    ("space", "shared::cluster", SM_90),
    ("has_cache", "1", GpuSet::least(80)),
    ("prefetch_size", "L2::256B", GpuSet::least(80)),
];
const SCOPE: ArgKind = ArgKind::Text(&["cta", "cluster", "gpu", "sys"]);
const VEC: ArgKind = ArgKind::Text(&["", "v2", "v4", "v8"]);
const L1: ArgKind = ArgKind::Text(&[
    "",
    "L1::evict_normal",
    "L1::evict_unchanged",
    "L1::evict_first",
    "L1::evict_last",
    "L1::no_allocate",
]);
const L2: ArgKind = ArgKind::Text(&["", "L2::evict_normal", "L2::evict_first", "L2::evict_last"]);
const PREFETCH: ArgKind = ArgKind::Text(&["", "L2::64B", "L2::128B", "L2::256B"]);
const LOAD_CACHE: ArgKind = ArgKind::Text(&["", "ca", "cg", "cs", "lu", "cv"]);
const STORE_CACHE: ArgKind = ArgKind::Text(&["", "wb", "cg", "cs", "wt"]);
/// A named cache policy, which is replaced by its value.
pub(super) const HINT: &[Arg] = &[arg(
    "cache_hint",
    ArgKind::Text(&["", "evict_normal", "evict_first", "evict_last"]),
)];
const LOAD: Traits = Traits::PLAIN.memory(Memory::Reads);
const STRONG_LOAD: Traits = Traits::SYNC
    .synchronizes(Synchronizes::Memory)
    .memory(Memory::Reads);
const STORE: Traits = Traits::PLAIN.memory(Memory::Writes);
const STRONG_STORE: Traits = Traits::SYNC
    .synchronizes(Synchronizes::Memory)
    .memory(Memory::Writes);

/// A cache policy: the one that is given, or the one of a name.
pub(super) fn policy(given: &mut Given) -> Result<(), String> {
    let mut has = true;
    if given.get("cache_policy").is_empty() {
        let bits = match given.text("cache_hint") {
            "" => 0,
            name => cache_policy(name).ok_or_else(|| {
                format!(
                    "no cache policy is known as \"{name}\": evict_normal, evict_first and evict_last are; others are given by cache_policy="
                )
            })?,
        };
        has = bits != 0;
        given.set("cache_policy", Expr::constant(DType::UINT64, bits.into()));
    }
    given.set("has_cache", Expr::int32(has.into()));
    Ok(())
}

/// The same for a load that has a policy only with a destination.
fn policy_of_destination(given: &mut Given) -> Result<(), String> {
    policy(given)?;
    if given.get("dst").is_empty() {
        if given.int("has_cache") == Some(1) {
            return Err("a cache hint needs a destination: dst=…".into());
        }
        given.leave_out("cache_policy");
    }
    Ok(())
}

/// Loads and stores of the memory of devices have one scope and one state space.
fn mmio(given: &mut Given) -> Result<(), String> {
    given.set("scope", Expr::string("sys"));
    given.set("space", Expr::string("global"));
    Ok(())
}

/// How many values a store has.
fn values(call: &Operands) -> usize {
    let lanes = match call.text("vec") {
        "" => 1,
        vec => vec[1..].parse().unwrap_or(1),
    };
    if call.flag("from_src") { 0 } else { lanes }
}

pub(super) fn known(call: &Operands) -> Result<(), String> {
    MemoryInstruction::read(call).map(|_| ())
}

pub(super) fn value_dtype(call: &Operands) -> DType {
    MemoryInstruction::read(call).map_or(DType::VOID, |access| access.result)
}

/// An access is aligned to its size; registers, given by pointers, are moved one by one.
pub(super) fn of_the_access(call: &Operands, argument: &str) -> u32 {
    match MemoryInstruction::read(call) {
        Ok(access) if matches!(argument, "addr" | "address") => {
            let each = if access.element.ptx == "b128" {
                128
            } else {
                access.element.memory.bits.into()
            };
            (access.lanes * each / 8) as u32
        }
        _ => 1,
    }
}

/// 32 bytes in one access.
fn wide(call: &Operands) -> Option<(&'static str, GpuSet)> {
    let access = MemoryInstruction::read(call).ok()?;
    let bits = access.lanes * usize::from(access.element.memory.bits);
    (bits == 256).then_some((" of 256 bits", SM_100))
}

const fn load(name: &'static str, script: &'static str) -> Row {
    Row::new(name, script, special())
        .completed(HINT, policy)
        .checked(known)
        .value(ResultRule::Of(value_dtype))
        .traits(STRONG_LOAD)
        .destinations(&["dst"])
        .aligned(of_the_access)
        .needs(NEWER)
        .needs_by(wide)
        .section("ld")
}

const fn store(name: &'static str, script: &'static str) -> Row {
    Row::new(name, script, special())
        .completed(HINT, policy)
        .checked(known)
        .traits(STRONG_STORE)
        .sources(&["src"])
        .aligned(of_the_access)
        .needs(NEWER)
        .needs_by(wide)
        .section("st")
}

/// The operands of a load that has a cache policy, then its modifiers up to the vector.
macro_rules! loaded {
    ($policy:expr, $($field:expr),*) => {
        &[
            rest("dst", GENERIC), arg("addr", PLACE), $policy, arg("return_type", ArgKind::DType), $($field,)*
            arg("vec", VEC), arg("ptx_type", TYPE), arg("has_cache", ArgKind::Flag), arg("to_dst", ArgKind::Count("dst")),
            arg("l1_evict", L1), arg("l2_evict", L2), arg("prefetch_size", PREFETCH),
        ]
    };
}

/// The operands of a store, then its modifiers.
macro_rules! stored {
    ($($field:expr),*) => {
        &[
            arg("address", PLACE), list("values", ANY, values), optional("src", GENERIC), arg("cache_policy", U64), $($field,)*
            arg("vec", VEC), arg("ptx_type", TYPE), arg("has_cache", ArgKind::Flag), arg("l1_evict", L1), arg("l2_evict", L2),
            arg("from_src", ArgKind::Has("src")),
        ]
    };
}

const ORDERED_LOAD: &str = "(addr, return_type, ptx_type, *, scope='gpu', space='global', vec='', dst=None, cache_hint='', \
                            cache_policy=None, l1_evict='', l2_evict='', prefetch_size='')";
const ORDERED_STORE: &str = "(address, *values, src=None, scope='gpu', space='global', vec='', ptx_type, cache_hint='', \
                             cache_policy=None, l1_evict='', l2_evict='')";

/// The untyped dtype of the integer that a pointer points to.
fn pointee_bits(pointer: &Expr) -> Option<u8> {
    let dtype = match &pointer.kind {
        ExprKind::Call {
            op: crate::intrin::Op::AddressOf,
            args,
        } => match &args.get(crate::at!(AddressOf.obj))?.kind {
            ExprKind::BufferLoad { buffer, .. } => buffer.dtype,
            _ => return None,
        },
        ExprKind::Var(var) => match var.ty() {
            Type::Pointer { element, .. } => *element,
            _ => return None,
        },
        _ => return None,
    };
    (dtype.is_integer() && dtype.is_scalar()).then_some(dtype.bits)
}

fn acquired(call: &Operands) -> Result<(), String> {
    match call.get("res").and_then(pointee_bits) {
        Some(32 | 64) => Ok(()),
        _ => Err("\"res\" must be an element of 32 or 64 bits of integers, such as r or A[i]".into()),
    }
}

fn acquired_words(call: &Operands, _: Machine) -> Result<Words, String> {
    let (width, ty) = match call.get("res").and_then(pointee_bits) {
        Some(64) => ("b64", Ty::B64),
        _ => ("b32", Ty::B32),
    };
    Ok(Words {
        texts: vec![("width", width.into())],
        types: vec![("res", ty)],
    })
}

fn mapped_dtype(call: &Operands) -> DType {
    call.text("return_type").parse().unwrap_or(DType::VOID)
}

fn mapped(call: &Operands) -> Result<(), String> {
    let (space, ptx, dtype) = (call.text("space"), call.text("ptx_type"), mapped_dtype(call));
    match (space, ptx) {
        (_, "u64") if dtype == DType::UINT64 => Ok(()),
        ("shared::cluster", "u32") if dtype == DType::UINT32 => Ok(()),
        _ => Err(format!(
            "there is no mapa of space \"{space}\" and type {ptx} that gives {dtype}: the address of a generic pointer is u64 and \
             uint64; space \"shared::cluster\" has u32 and uint32 too"
        )),
    }
}

fn mapped_words(call: &Operands, _: Machine) -> Result<Words, String> {
    let wide = call.text("ptx_type") == "u64";
    let address = match (call.text("space"), wide) {
        ("", _) => "\"l\"(ptr)",
        (_, true) => "\"l\"(__cvta_generic_to_shared(ptr))",
        (_, false) => "\"r\"((unsigned int)__cvta_generic_to_shared(ptr))",
    };
    Ok(Words {
        texts: vec![
            (
                "type",
                if wide {
                    "unsigned long long"
                } else {
                    "unsigned int"
                }
                .into(),
            ),
            ("letter", if wide { "l" } else { "r" }.into()),
            ("dot", if call.text("space").is_empty() { "" } else { "." }.into()),
            ("address", address.into()),
        ],
        ..Words::default()
    })
}

fn bulk_words(call: &Operands, _: Machine) -> Result<Words, String> {
    let (dot, address) = match call.text("space") {
        "" => ("", "\"l\"(ptr)"),
        _ => (".", "\"r\"((unsigned int)__cvta_generic_to_shared(ptr))"),
    };
    let how = if call.flag("weak") { ".weak" } else { "" };
    Ok(Words {
        texts: vec![
            ("dot", dot.into()),
            ("address", address.into()),
            ("how", how.into()),
        ],
        ..Words::default()
    })
}

rows! { $ memory {
    /// Loads the value at `addr`: as the result, or to the memory at `dst`. Weak unless specified otherwise.
    PtxLd = load("tirx.ptx.ld", "ptx.ld")
        .args(loaded!(arg("cache_policy", U64), arg("weak", ArgKind::Flag), arg("space", SPACE), arg("cop", LOAD_CACHE)))
        .signature("(addr, return_type, ptx_type, *, dst=None, weak=False, space='global', cop='', vec='', cache_hint='', \
                    cache_policy=None, l1_evict='', l2_evict='', prefetch_size='')")
        .traits(LOAD);
    /// Loads from global memory that does not change while the kernel runs.
    PtxLdGlobalNc = load("tirx.ptx.ld_global_nc", "ptx.ld_global_nc")
        .args(loaded!(arg("cache_policy", U64), arg("cop", ArgKind::Text(&["", "ca", "cg", "cs"]))))
        .signature("(addr, return_type, ptx_type, *, dst=None, cop='', vec='', cache_hint='', cache_policy=None, l1_evict='', \
                    l2_evict='', prefetch_size='')")
        .traits(LOAD).section("ld.global.nc");
    /// Loads relaxed: atomically with respect to the threads of `scope`.
    PtxLdRelaxed = load("tirx.ptx.ld_relaxed", "ptx.ld_relaxed")
        .args(loaded!(arg("cache_policy", U64), arg("scope", SCOPE), arg("space", SPACE)))
        .signature(ORDERED_LOAD);
    /// Loads with acquire: writes of threads of `scope` before they stored the value (with release) are visible
    /// afterwards.
    PtxLdAcquire = load("tirx.ptx.ld_acquire", "ptx.ld_acquire")
        .args(loaded!(optional("cache_policy", U64), arg("scope", SCOPE), arg("space", SPACE)))
        .completed(HINT, policy_of_destination)
        .signature(ORDERED_LOAD);
    /// A volatile load.
    PtxLdVolatile = load("tirx.ptx.ld_volatile", "ptx.ld_volatile")
        .args(&[
            rest("dst", GENERIC), arg("addr", PLACE), arg("return_type", ArgKind::DType), arg("space", SPACE), arg("vec", VEC),
            arg("ptx_type", TYPE), arg("to_dst", ArgKind::Count("dst")), arg("prefetch_size", PREFETCH),
        ])
        .signature("(addr, return_type, ptx_type, *, space='global', vec='', dst=None, prefetch_size='')");
    /// Loads from memory-mapped device memory (MMIO).
    PtxLdMmio = load("tirx.ptx.ld_mmio", "ptx.ld_mmio")
        .args(&[
            rest("dst", GENERIC), arg("addr", PLACE), arg("return_type", ArgKind::DType), arg("sem", ArgKind::Text(&["relaxed"])),
            arg("scope", ArgKind::Text(&["sys"])), arg("space", ArgKind::Text(&["global"])), arg("ptx_type", TYPE),
            arg("to_dst", ArgKind::Count("dst")),
        ])
        .completed(&[], mmio)
        .signature("(addr, return_type, ptx_type, *, sem='relaxed', dst=None)");
    /// Stores values, or the value at `src`.
    PtxSt = store("tirx.ptx.st", "ptx.st")
        .args(stored!(arg("weak", ArgKind::Flag), arg("space", SPACE), arg("cop", STORE_CACHE)))
        .signature("(address, *values, src=None, weak=False, space='shared', cop='', vec='', ptx_type, cache_hint='', \
                    cache_policy=None, l1_evict='', l2_evict='')")
        .traits(STORE);
    /// Stores relaxed: atomically with respect to the threads of `scope`.
    PtxStRelaxed = store("tirx.ptx.st_relaxed", "ptx.st_relaxed")
        .args(stored!(arg("scope", SCOPE), arg("space", SPACE)))
        .signature(ORDERED_STORE);
    /// Stores with release: threads of `scope` that load the value (with acquire) see the earlier writes of this thread.
    PtxStRelease = store("tirx.ptx.st_release", "ptx.st_release")
        .args(stored!(arg("scope", SCOPE), arg("space", SPACE)))
        .signature(ORDERED_STORE);
    /// A volatile store.
    PtxStVolatile = store("tirx.ptx.st_volatile", "ptx.st_volatile")
        .args(&[
            arg("address", PLACE), list("values", ANY, values), optional("src", GENERIC), arg("space", SPACE), arg("vec", VEC),
            arg("ptx_type", TYPE), arg("from_src", ArgKind::Has("src")),
        ])
        .signature("(address, *values, src=None, space='global', vec='', ptx_type)");
    /// Stores to memory-mapped device memory (MMIO).
    PtxStMmio = store("tirx.ptx.st_mmio", "ptx.st_mmio")
        .args(&[
            arg("address", PLACE), arg("value", ANY), arg("sem", ArgKind::Text(&["relaxed"])), arg("scope", ArgKind::Text(&["sys"])),
            arg("space", ArgKind::Text(&["global"])), arg("ptx_type", TYPE),
        ])
        .completed(&[], mmio)
        .signature("(address, value, *, sem='relaxed', ptx_type)");
    /// `__ldg(addr)`: loads from memory that does not change while the kernel runs. The dtype of the value is required, as the
    /// second argument: `T.cuda.ldg(A.ptr_to([i]), "float32")`. `dst=[p, q], vec="v2"` loads two elements to where the pointers point,
    /// `vec="v4"` four; TVM prints this form by position: `(p, q, addr, dtype, "v2", 2)`.
    CudaLdg = Row::new("tirx.cuda.ldg", "cuda.ldg", special()).args(&[arg("addr", ANY)]).value(ResultRule::GivenLast)
        .effect(ReadState).traits(LOAD.whole_vector()).sources(&["addr"]);
    /// Loads an integer of 32 or 64 bits into the element `res`, acquiring at the scope of the GPU.
    PtxLdGlobalAcquire = Row::new("tirx.ptx.ld_global_acquire", "ptx.ld_global_acquire", ptx("ld.acquire.gpu.global.{width} {res}, [{addr}];").words(acquired_words))
        .args(&[arg("res", ArgKind::Element(Access::Out, Ty::FromWords)), arg("addr", GLOBAL)]).traits(STRONG_LOAD)
        .checked(acquired).section("ld");
    /// Loads the float32 element `addr` into `reg[local_addr]` if `guard` holds, else 0.
    PtxLdg32 = Row::new("tirx.ptx.ldg32", "ptx.ldg32", code("asm volatile(\"{ .reg .pred p; setp.ne.b32 p, %2, 0; @!p mov.b32 %0, 0; @p ld.global.nc.f32 %0, [%1]; }\" : \"=f\"(reg[local_addr]) : \"l\"(addr), \"r\"((int)guard));"))
        .args(&[arg("reg", ArgKind::Array(DType::FLOAT32)), arg("guard", CONDITION), arg("addr", ArgKind::Element(Access::In, Ty::F32)), arg("local_addr", I32)])
        .traits(LOAD).section("ld.global.nc").destinations(&["reg"]).also(&["s_tir.ldg32"]);
    /// Writes zeros to `num_bytes` bytes of shared memory.
    PtxStBulk = Row::new("tirx.ptx.st_bulk", "ptx.st_bulk", code("asm volatile(\"st.bulk$how$$dot$$space$ [%0], %1, 0;\" : : $address$, \"l\"((unsigned long long)num_bytes) : \"memory\");").words(bulk_words))
        .args(&[arg("ptr", GENERIC), arg("num_bytes", U32), arg("weak", ArgKind::Flag), arg("space", ArgKind::Text(&["", "shared::cta"]))])
        .traits(STORE).signature("(ptr, num_bytes, weak=False, space='shared::cta')").section("st.bulk");
    /// The address that corresponds to `ptr` in the shared memory of block `rank` of the cluster.
    PtxMapa = Row::new("tirx.ptx.mapa", "ptx.mapa", code("$type$ mapped;\nasm volatile(\"mapa$dot$$space$.$ptx_type$ %0, %1, %2;\" : \"=$letter$\"(mapped) : $address$, \"r\"(rank));\nreturn mapped;").words(mapped_words))
        .args(&[arg("ptr", GENERIC), arg("rank", U32), arg("space", ArgKind::Text(&["", "shared::cluster"])), arg("ptx_type", ArgKind::Text(&["u64", "u32"])), arg("return_type", ArgKind::DType)])
        .value(ResultRule::Of(mapped_dtype)).effect(Pure)
        .also(&["ptx.map_shared_rank"]).signature("(ptr, rank, space='', ptx_type='u64', return_type='uint64')").checked(mapped)
        .section("mapa");
    /// The address in shared memory of a generic pointer.
    CudaCvtaGenericToShared = Row::new("tirx.cuda.cvta_generic_to_shared", "cuda.cvta_generic_to_shared", code("return (unsigned int)__cvta_generic_to_shared(ptr);"))
        .args(&[arg("ptr", GENERIC)]).gives(DType::UINT32).effect(Pure).section("Address Space Conversion Functions");
    /// The address in shared memory of a result of `ptx.mapa`.
    CudaSmemAddrFromUint64 = Row::new("tirx.cuda.smem_addr_from_uint64", "cuda.smem_addr_from_uint64", code("return (unsigned int)cluster_addr;"))
        .args(&[arg("cluster_addr", U64)]).gives(DType::UINT32).effect(Pure);
} }
