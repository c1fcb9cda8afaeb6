//! Identifiers that are valid in CUDA C++ and do not hide each other.

use rustc_hash::{FxHashMap, FxHashSet};

/// Words that no generated name may be: C++ keywords, CUDA's own names, macros of the headers, and every function the
/// generated text calls. Sorted, for binary search.
const RESERVED: &[&str] = &[
    "alignas",
    "alignof",
    "and",
    "and_eq",
    "asm",
    "assert",
    "atomicAdd",
    "atomicCAS",
    "auto",
    "bfloat16",
    "bfloat162",
    "bitand",
    "bitor",
    "blockDim",
    "blockIdx",
    "bool",
    "break",
    "case",
    "catch",
    "ceil",
    "char",
    "clock64",
    "clusterDim",
    "clusterIdx",
    "compl",
    "concept",
    "const",
    "const_cast",
    "consteval",
    "constexpr",
    "constinit",
    "continue",
    "cooperative_groups",
    "copysign",
    "cosh",
    "co_await",
    "co_return",
    "co_yield",
    "decltype",
    "default",
    "delete",
    "do",
    "double",
    "dynamic_cast",
    "else",
    "enum",
    "errno",
    "explicit",
    "export",
    "extern",
    "false",
    "float",
    "floor",
    "fma",
    "for",
    "friend",
    "goto",
    "gridDim",
    "half",
    "if",
    "inline",
    "int",
    "int16_t",
    "int32_t",
    "int64_t",
    "int8_t",
    "intptr_t",
    "isfinite",
    "isinf",
    "isnan",
    "linux",
    "log",
    "long",
    "main",
    "max",
    "min",
    "mutable",
    "namespace",
    "new",
    "noexcept",
    "not",
    "not_eq",
    "nullptr",
    "nv_bfloat16",
    "nv_bfloat162",
    "operator",
    "or",
    "or_eq",
    "pow",
    "printf",
    "private",
    "protected",
    "ptrdiff_t",
    "public",
    "register",
    "reinterpret_cast",
    "requires",
    "restrict",
    "return",
    "rint",
    "round",
    "short",
    "signed",
    "sizeof",
    "size_t",
    "sqrt",
    "static",
    "static_assert",
    "static_cast",
    "std",
    "stderr",
    "stdin",
    "stdout",
    "struct",
    "switch",
    "template",
    "this",
    "thread_local",
    "threadIdx",
    "throw",
    "trap",
    "true",
    "trunc",
    "try",
    "typedef",
    "typeid",
    "typename",
    "uchar",
    "uint",
    "uint16_t",
    "uint32_t",
    "uint64_t",
    "uint8_t",
    "uintptr_t",
    "union",
    "unix",
    "unsigned",
    "ushort",
    "using",
    "virtual",
    "void",
    "volatile",
    "warpSize",
    "wchar_t",
    "while",
    "xor",
    "xor_eq",
    "CUtensorMap",
    "EOF",
    "INFINITY",
    "NAN",
    "NDEBUG",
    "NULL",
];

/// Whether CUDA C++ already gives `name` a meaning.
///
/// Names that begin with an underscore followed by an underscore or a capital belong to the compiler, those with `tirx_` to our helpers;
/// `CUDART_*`, `M_PI` and other all-capital names with an underscore may be macros.
pub(super) fn is_reserved(name: &str) -> bool {
    let mut chars = name.chars();
    let compiler =
        chars.next() == Some('_') && chars.next().is_some_and(|c| c == '_' || c.is_ascii_uppercase());
    compiler
        || name.starts_with("tirx_")
        || name.starts_with("CUDART_")
        || name.starts_with("M_")
        || name.contains("__")
        || super::math::is_function(name)
        || RESERVED.contains(&name)
        || is_vector_type(name)
}

/// Whether CUDA has a vector type or its maker of this name: `float4`, `uint2`, `longlong4_16a`, `half2`, `make_int3`; `dim3`.
fn is_vector_type(name: &str) -> bool {
    const ELEMENTS: &[&str] = &[
        "char",
        "uchar",
        "short",
        "ushort",
        "int",
        "uint",
        "long",
        "ulong",
        "longlong",
        "ulonglong",
        "float",
        "double",
        "half",
        "dim",
    ];
    let name = name.strip_prefix("make_").unwrap_or(name);
    let name = name
        .strip_suffix("_16a")
        .or_else(|| name.strip_suffix("_32a"))
        .unwrap_or(name);
    let element = name.strip_suffix(['1', '2', '3', '4']);
    element.is_some_and(|element| ELEMENTS.contains(&element))
}

/// `name` as a C++ identifier that is not reserved.
pub(super) fn sanitize(name: &str) -> String {
    let mut out: String = name
        .chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() || c == '_' {
                c
            } else {
                '_'
            }
        })
        .collect();
    while out.contains("__") {
        out = out.replace("__", "_");
    }
    if out.is_empty() || out.starts_with(|c: char| c.is_ascii_digit()) || is_reserved(&out) {
        out.insert_str(0, "v_");
        while out.contains("__") {
            out = out.replace("__", "_");
        }
    }
    out
}

/// The names in use, by block.
#[derive(Default)]
pub(super) struct Names {
    taken: FxHashSet<String>,
    /// Names of each open block, innermost last.
    blocks: Vec<Vec<String>>,
    /// Where the search for a free suffix continues.
    next: FxHashMap<String, u32>,
}

impl Names {
    /// Reserves `name` for the whole text (a function, something that a raw source calls).
    pub(super) fn reserve(&mut self, name: &str) {
        self.taken.insert(name.to_string());
    }

    /// Opens a block.
    pub(super) fn open(&mut self) {
        self.blocks.push(Vec::new());
    }

    /// Closes the innermost block: its names are free again.
    pub(super) fn close(&mut self) {
        for name in self.blocks.pop().unwrap_or_default() {
            self.taken.remove(&name);
        }
        if self.blocks.is_empty() {
            self.next.clear();
        }
    }

    /// A free name like `wanted`, taken until the block closes.
    pub(super) fn fresh(&mut self, wanted: &str) -> String {
        let base = sanitize(wanted);
        let mut name = base.clone();
        if self.taken.contains(&name) {
            let mut n = self.next.get(&base).copied().unwrap_or(1);
            loop {
                name = if base.ends_with('_') {
                    format!("{base}{n}")
                } else {
                    format!("{base}_{n}")
                };
                n += 1;
                if !self.taken.contains(&name) {
                    break;
                }
            }
            self.next.insert(base, n);
        }
        self.taken.insert(name.clone());
        if let Some(block) = self.blocks.last_mut() {
            block.push(name.clone());
        }
        name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_identifiers() {
        for (name, expected) in [
            ("A_ptr", "A_ptr"),
            ("float", "v_float"),
            ("threadIdx", "v_threadIdx"),
            ("x__y", "x_y"),
            ("__x", "_x"),
            ("_Bool", "v_Bool"),
            ("3d", "v_3d"),
            ("größe", "gr_e"),
            ("", "v_"),
            ("expf", "v_expf"),
            ("blockIdx.x", "blockIdx_x"),
            ("float4", "v_float4"),
            ("longlong4_16a", "v_longlong4_16a"),
            ("make_int2", "v_make_int2"),
            ("dim3", "v_dim3"),
            ("float5", "float5"),
            ("point4", "point4"),
        ] {
            assert_eq!(sanitize(name), expected, "{name}");
            assert!(!is_reserved(&sanitize(name)), "{name}");
        }
    }

    #[test]
    fn names_are_unique_within_their_blocks() {
        let mut names = Names::default();
        names.open();
        assert_eq!(names.fresh("i"), "i");
        names.open();
        assert_eq!(names.fresh("i"), "i_1");
        assert_eq!(names.fresh("i"), "i_2");
        names.close();
        names.open();
        assert_eq!(names.fresh("j"), "j");
        names.close();
        assert_eq!(names.fresh("j"), "j");
    }
}
