//! Headers and device helper functions that a kernel needs.
//!
//! Each is emitted once per module, in the order of the enums, and only where it is requested.

use std::collections::BTreeSet;

use super::defects;

/// A header of the CUDA toolkit or the C++ library.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Header {
    Cassert,
    Cstdint,
    Cstdio,
    TypeTraits,
    Cuda,
    CooperativeGroups,
    Bf16,
    Fp16,
    Fp4,
    Fp6,
    Fp8,
    MathConstants,
    Nvshmem,
    Nvshmemx,
}

impl Header {
    /// The file name between the angle brackets.
    pub(super) fn file(self) -> &'static str {
        match self {
            Header::Cassert => "cassert",
            Header::Cstdint => "cstdint",
            Header::Cstdio => "cstdio",
            Header::TypeTraits => "type_traits",
            Header::Cuda => "cuda.h",
            Header::CooperativeGroups => "cooperative_groups.h",
            Header::Bf16 => "cuda_bf16.h",
            Header::Fp16 => "cuda_fp16.h",
            Header::Fp4 => "cuda_fp4.h",
            Header::Fp6 => "cuda_fp6.h",
            Header::Fp8 => "cuda_fp8.h",
            Header::MathConstants => "math_constants.h",
            Header::Nvshmem => "nvshmem.h",
            Header::Nvshmemx => "nvshmemx.h",
        }
    }

    /// The header with this file name.
    pub(super) fn named(file: &str) -> Option<Header> {
        const ALL: [Header; 14] = [
            Header::Cassert,
            Header::Cstdint,
            Header::Cstdio,
            Header::TypeTraits,
            Header::Cuda,
            Header::CooperativeGroups,
            Header::Bf16,
            Header::Fp16,
            Header::Fp4,
            Header::Fp6,
            Header::Fp8,
            Header::MathConstants,
            Header::Nvshmem,
            Header::Nvshmemx,
        ];
        ALL.into_iter().find(|header| header.file() == file)
    }

    /// The headers that raw source text needs, recognized by the names it uses.
    pub(super) fn wanted_by(source: &str) -> impl Iterator<Item = Header> + '_ {
        const SIGNS: &[(&str, Header)] = &[
            ("_t", Header::Cstdint),
            ("std::", Header::TypeTraits),
            ("printf", Header::Cstdio),
            ("assert", Header::Cassert),
            ("CUtensorMap", Header::Cuda),
            ("cooperative_groups", Header::CooperativeGroups),
            ("bfloat16", Header::Bf16),
            ("half", Header::Fp16),
            ("nv_fp4", Header::Fp4),
            ("nv_fp6", Header::Fp6),
            ("nv_fp8", Header::Fp8),
            ("CUDART_", Header::MathConstants),
        ];
        SIGNS
            .iter()
            .filter(move |(sign, _)| source.contains(sign))
            .map(|(_, h)| *h)
    }
}

/// A helper function (or type) of the generated text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Helper {
    /// `tirx_vec<T, N>`: a vector CUDA has no built-in type for.
    Vec,
    /// `tirx_bit_cast<To>(from)`.
    BitCast,
    /// `tirx_floordiv(a, b)`, `tirx_floormod(a, b)` for signed integers.
    FloorDivision,
    /// `tirx_floordiv_positive(a, b)`, `tirx_floormod_positive(a, b)`.
    FloorDivisionByPositive,
    /// `tirx_max(half, half)`, `tirx_min`.
    HalfMinMax,
    /// `tirx_max(nv_bfloat16, nv_bfloat16)`, `tirx_min`.
    Bf16MinMax,
    /// `tirx_negated(int)`.
    Negated,
    /// `tirx_finished(array)`: accumulators of `wgmma` that a wait has made readable.
    Finished,
    /// `tirx_negated_wide(uint64_t)`.
    NegatedWide,
    /// `tirx_with_low_word(uint64_t, unsigned int)`.
    WithLowWord,
    /// `tirx_hidden(int)`.
    Hidden,
    /// `tirx_atomic_add(pointer, value)`.
    AtomicAdd,
    /// `tirx_fp4_load`, `tirx_fp4_store`, `tirx_fp4_store_atomic`.
    Fp4,
    /// `tirx_fp4_vec<N>`: more than four; `tirx_fp4_join<V>(elements...)`.
    Fp4Vec,
    /// `tirx_named_barrier(id, threads)`.
    NamedBarrier,
    /// `tirx_cluster_sync()`.
    ClusterSync,
    /// Special registers.
    ClusterCtaRank,
    ClusterCtaIdX,
    ClusterCtaIdY,
    ClusterCtaIdZ,
    ClusterIdX,
    ClusterIdY,
    ClusterIdZ,
    /// `tirx_thread_rank()`.
    ThreadRank,
    /// `tirx_trap_unless(condition)`.
    TrapUnless,
    /// Butterfly reductions over lanes.
    WarpSum,
    WarpMax,
    WarpMin,
    /// Reductions over the block.
    CtaSum,
    CtaMax,
    CtaMin,
}

impl Helper {
    /// The helper with this name, for rows.
    pub(super) fn named(name: &str) -> Option<Helper> {
        match name {
            "tirx_bit_cast" => Some(Helper::BitCast),
            "tirx_named_barrier" => Some(Helper::NamedBarrier),
            "tirx_cluster_sync" => Some(Helper::ClusterSync),
            "tirx_trap_unless" => Some(Helper::TrapUnless),
            _ => None,
        }
    }

    /// Other helpers its text uses.
    pub(super) fn uses(self) -> &'static [Helper] {
        match self {
            Helper::CtaSum => &[Helper::WarpSum],
            Helper::CtaMax => &[Helper::WarpMax],
            Helper::CtaMin => &[Helper::WarpMin],
            Helper::Fp4Vec => &[Helper::Fp4],
            _ => &[],
        }
    }

    /// Headers its text uses.
    pub(super) fn headers(self) -> &'static [Header] {
        match self {
            Helper::HalfMinMax => &[Header::Fp16],
            Helper::Bf16MinMax => &[Header::Bf16],
            Helper::Fp4 => &[Header::Cstdint, Header::Fp4],
            _ => &[],
        }
    }

    /// Its text.
    pub(super) fn text(self) -> String {
        // Volatile: kept over branches and barriers, the value moves from a register of the warp to one of each lane.
        let special = |name: &str, register: &str| {
            format!(
                "__device__ __forceinline__ int {name}() {{\n  int value;\n  asm volatile(\"mov.u32 %0, %%{register};\" : \
                 \"=r\"(value));\n  return value;\n}}\n"
            )
        };
        match self {
            Helper::Vec => VEC.into(),
            Helper::BitCast => BIT_CAST.into(),
            Helper::FloorDivision => FLOOR_DIVISION.into(),
            Helper::FloorDivisionByPositive => FLOOR_DIVISION_BY_POSITIVE.into(),
            Helper::HalfMinMax => min_max_16("half"),
            Helper::Bf16MinMax => min_max_16("nv_bfloat16"),
            Helper::Negated => defects::NEGATED.into(),
            Helper::Finished => defects::FINISHED.into(),
            Helper::NegatedWide => defects::NEGATED_WIDE.into(),
            Helper::WithLowWord => WITH_LOW_WORD.into(),
            Helper::Hidden => defects::HIDDEN.into(),
            Helper::AtomicAdd => defects::ATOMIC_ADD.into(),
            Helper::Fp4 => FP4.into(),
            Helper::Fp4Vec => FP4_VEC.into(),
            Helper::NamedBarrier => NAMED_BARRIER.into(),
            Helper::ClusterSync => CLUSTER_SYNC.into(),
            Helper::ClusterCtaRank => special("tirx_cluster_cta_rank", "cluster_ctarank"),
            Helper::ClusterCtaIdX => special("tirx_cluster_cta_id_x", "cluster_ctaid.x"),
            Helper::ClusterCtaIdY => special("tirx_cluster_cta_id_y", "cluster_ctaid.y"),
            Helper::ClusterCtaIdZ => special("tirx_cluster_cta_id_z", "cluster_ctaid.z"),
            Helper::ClusterIdX => special("tirx_cluster_id_x", "clusterid.x"),
            Helper::ClusterIdY => special("tirx_cluster_id_y", "clusterid.y"),
            Helper::ClusterIdZ => special("tirx_cluster_id_z", "clusterid.z"),
            Helper::ThreadRank => THREAD_RANK.into(),
            Helper::TrapUnless => TRAP_UNLESS.into(),
            Helper::WarpSum => warp_reduce("sum", "value + other"),
            Helper::WarpMax => warp_reduce("max", "MAX(value, other)"),
            Helper::WarpMin => warp_reduce("min", "MIN(value, other)"),
            Helper::CtaSum => cta_reduce("sum"),
            Helper::CtaMax => cta_reduce("max"),
            Helper::CtaMin => cta_reduce("min"),
        }
    }
}

/// The headers and helpers requested so far.
#[derive(Default)]
pub(super) struct Needs {
    pub(super) headers: BTreeSet<Header>,
    pub(super) helpers: BTreeSet<Helper>,
}

impl Needs {
    /// The `#include` lines and the helpers' text.
    pub(super) fn preamble(&self) -> String {
        let mut helpers = self.helpers.clone();
        // Helpers used by helpers use no further ones.
        helpers.extend(self.helpers.iter().flat_map(|h| h.uses()));
        let mut headers = self.headers.clone();
        headers.extend(helpers.iter().flat_map(|h| h.headers()));
        let mut out = String::new();
        for header in &headers {
            if *header == Header::Nvshmem {
                out.push_str(WITHOUT_NVSHMEM);
            }
            out.push_str(&format!("#include <{}>\n", header.file()));
        }
        if !headers.is_empty() {
            out.push('\n');
        }
        // Reductions of 16-bit floats take the order of `half` and `nv_bfloat16` from these.
        let has = |h| helpers.contains(&h);
        let reduces = has(Helper::WarpMax) || has(Helper::WarpMin);
        let mut all = helpers.clone();
        if reduces && headers.contains(&Header::Fp16) {
            all.insert(Helper::HalfMinMax);
        }
        if reduces && headers.contains(&Header::Bf16) {
            all.insert(Helper::Bf16MinMax);
        }
        let wide = !(all.contains(&Helper::HalfMinMax) || all.contains(&Helper::Bf16MinMax));
        if reduces && !wide {
            // The generic form beside the two overloads.
            out.push_str(MIN_MAX_GENERIC);
            out.push('\n');
        }
        for helper in &all {
            let text = helper.text();
            let text = if wide {
                text.replace("MAX(", "max(").replace("MIN(", "min(")
            } else {
                text.replace("MAX(", "tirx_max(").replace("MIN(", "tirx_min(")
            };
            out.push_str(&text);
            out.push('\n');
        }
        out
    }
}

/// The error of nvcc where NVSHMEM is not installed.
const WITHOUT_NVSHMEM: &str = "\
#if !__has_include(<nvshmem.h>)
#error \"T.nvshmem needs NVSHMEM's headers: install PyPI's nvidia-nvshmem-cu13 and pass its include folder to nvcc, -I...\"
#endif
";

const VEC: &str = "\
template <typename T, int N>
struct alignas(sizeof(T) * (N & -N) < 32 ? sizeof(T) * (N & -N) : 32) tirx_vec {
  T v[N];
};
";

const BIT_CAST: &str = "\
template <typename To, typename From>
__device__ __forceinline__ To tirx_bit_cast(From from) {
  static_assert(sizeof(To) == sizeof(From), \"a bit cast keeps the size\");
  To to;
  memcpy(&to, &from, sizeof(To));
  return to;
}
";

const FLOOR_DIVISION: &str = "\
// Integer division rounded to minus infinity, and its remainder.
template <typename T>
__device__ __forceinline__ T tirx_floordiv(T a, T b) {
  const T quotient = a / b;
  const T remainder = a % b;
  const bool down = b >= 0 ? remainder < 0 : remainder > 0;
  return down ? quotient - 1 : quotient;
}

template <typename T>
__device__ __forceinline__ T tirx_floormod(T a, T b) {
  const T remainder = a % b;
  const bool down = b >= 0 ? remainder < 0 : remainder > 0;
  return down ? remainder + b : remainder;
}
";

const FLOOR_DIVISION_BY_POSITIVE: &str = "\
// Integer division rounded to minus infinity and its remainder, for a positive divisor.
template <typename T>
__device__ __forceinline__ T tirx_floordiv_positive(T a, T b) {
  return a / b - (a % b < 0);
}

template <typename T>
__device__ __forceinline__ T tirx_floormod_positive(T a, T b) {
  const T remainder = a % b;
  return remainder < 0 ? remainder + b : remainder;
}
";

/// As of wider floats: the other operand where one is NaN, and zeros by their signs.
fn min_max_16(ty: &str) -> String {
    format!(
        "__device__ __forceinline__ {ty} tirx_max({ty} a, {ty} b) {{ return __hmax(a, b); }}\n\
         __device__ __forceinline__ {ty} tirx_min({ty} a, {ty} b) {{ return __hmin(a, b); }}\n"
    )
}

const MIN_MAX_GENERIC: &str = "\
template <typename T>
__device__ __forceinline__ T tirx_max(T a, T b) { return max(a, b); }
template <typename T>
__device__ __forceinline__ T tirx_min(T a, T b) { return min(a, b); }
";

const FP4: &str = "\
// Two elements a byte, the even one in the low half. A store that other threads may see changes its own half alone.
template <typename Index>
__device__ __forceinline__ __nv_fp4_e2m1 tirx_fp4_load(const void* base, Index index) {
  __nv_fp4_e2m1 element;
  element.__x = (static_cast<const unsigned char*>(base)[index >> 1] >> ((int)(index & 1) * 4)) & 0xf;
  return element;
}

template <typename Index>
__device__ __forceinline__ void tirx_fp4_store(void* base, Index index, __nv_fp4_e2m1 element) {
  unsigned char& byte = static_cast<unsigned char*>(base)[index >> 1];
  const int shift = (index & 1) * 4;
  byte = (byte & ~(0xf << shift)) | ((element.__x & 0xf) << shift);
}

template <typename Index>
__device__ __forceinline__ void tirx_fp4_store_atomic(void* base, Index index, __nv_fp4_e2m1 element) {
  const uint64_t address = reinterpret_cast<uint64_t>(base) + (index >> 1);
  unsigned int* word = reinterpret_cast<unsigned int*>(address & ~uint64_t(3));
  const unsigned int shift = (address & 3) * 8 + (index & 1) * 4;
  atomicOr(word, 0xfu << shift);
  atomicXor(word, (~(unsigned int)element.__x & 0xfu) << shift);
}
";

const FP4_VEC: &str = "\
template <int N>
struct alignas((N / 2 & -(N / 2)) < 32 ? (N / 2 & -(N / 2)) : 32) tirx_fp4_vec {
  unsigned char bytes[N / 2];
};

template <typename V, typename... E>
__device__ __forceinline__ V tirx_fp4_join(E... elements) {
  V vector = {};
  int lane = 0;
  (tirx_fp4_store(&vector, lane++, elements), ...);
  return vector;
}
";

/// The two words by themselves: with masks and shifts over 64 bits nvcc computes both words.
const WITH_LOW_WORD: &str = "\
__device__ __forceinline__ uint64_t tirx_with_low_word(uint64_t value, unsigned int low) {
  uint2 words = *(uint2*)&value;
  words.x = low;
  return *(uint64_t*)&words;
}
";

const NAMED_BARRIER: &str = "\
__device__ __forceinline__ void tirx_named_barrier(int barrier, int threads) {
  asm volatile(\"bar.sync %0, %1;\" : : \"r\"(barrier), \"r\"(threads) : \"memory\");
}
";

const CLUSTER_SYNC: &str = "\
__device__ __forceinline__ void tirx_cluster_sync() {
  asm volatile(\"barrier.cluster.arrive.aligned;\" : : : \"memory\");
  asm volatile(\"barrier.cluster.wait.aligned;\" : : : \"memory\");
}
";

const THREAD_RANK: &str = "\
__device__ __forceinline__ int tirx_thread_rank() {
  return (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
}
";

const TRAP_UNLESS: &str = "\
__device__ __forceinline__ void tirx_trap_unless(bool condition) {
  if (!condition) __trap();
}
";

fn warp_reduce(name: &str, combine: &str) -> String {
    format!(
        "template <int Width, typename T>
__device__ __forceinline__ T tirx_warp_{name}(T value) {{
#pragma unroll
  for (int lanes = Width / 2; lanes > 0; lanes /= 2) {{
    const T other = __shfl_xor_sync(0xffffffffu, value, lanes);
    value = {combine};
  }}
  return value;
}}
"
    )
}

/// `thread` is the linear index in the block; `scratch` has room for `Warps` values.
fn cta_reduce(name: &str) -> String {
    format!(
        "template <int Warps, typename T>
__device__ __forceinline__ T tirx_cta_{name}(T value, T* scratch, T identity, int thread) {{
  constexpr int width = Warps <= 1 ? 1 : Warps <= 2 ? 2 : Warps <= 4 ? 4 : Warps <= 8 ? 8 : Warps <= 16 ? 16 : 32;
  value = tirx_warp_{name}<32>(value);
  if (thread % 32 == 0) scratch[thread / 32] = value;
  __syncthreads();
  if (thread < 32) {{
    T partial = thread < Warps ? scratch[thread] : identity;
    partial = tirx_warp_{name}<width>(partial);
    if (thread == 0) scratch[0] = partial;
  }}
  __syncthreads();
  return scratch[0];
}}
"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_preamble_holds_what_is_needed_once() {
        let mut needs = Needs::default();
        assert_eq!(needs.preamble(), "");
        needs.helpers.insert(Helper::CtaMax);
        let text = needs.preamble();
        assert_eq!(text.matches("T tirx_warp_max(T value)").count(), 1);
        assert!(text.contains("value = max(value, other)") && !text.contains("#include"));
        assert!(text.find("tirx_warp_max").unwrap() < text.find("tirx_cta_max").unwrap());
        needs.headers.insert(Header::Fp16);
        let text = needs.preamble();
        assert!(text.starts_with("#include <cuda_fp16.h>\n"));
        assert!(text.contains("half tirx_max(half a, half b)") && text.contains("tirx_max(value, other)"));
    }

    #[test]
    fn raw_sources_tell_their_headers() {
        let wanted: Vec<_> =
            Header::wanted_by("__device__ float f(half x) { return __half2float(x); }").collect();
        assert_eq!(wanted, [Header::Fp16]);
    }
}
