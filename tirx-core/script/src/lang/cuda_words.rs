//! CUDA C++ names and their TIRx equivalents.
//!
//! Where a kernel uses an unknown name that is in this table, the error suggests the TIRx equivalent.

/// Words of CUDA C++ without leading underscores and without a math function's `f`, and what to write instead.
const WORDS: &[(&str, &str)] = &[
    ("threadIdx", "declare the index: tx = T.thread_id([256])"),
    ("blockIdx", "declare the index: bx = T.cta_id([4])"),
    (
        "blockDim",
        "the block's extent is the argument of T.thread_id: use that number",
    ),
    (
        "gridDim",
        "the grid's extent is the argument of T.cta_id: use that number",
    ),
    ("clusterIdx", "declare the index: cid = T.cluster_id([4])"),
    (
        "warpSize",
        "a warp has 32 threads; T.warp_id([n]) and T.lane_id([32]) number them",
    ),
    ("laneid", "declare the index: lane = T.lane_id([32])"),
    ("syncthreads", "write T.cuda.cta_sync()"),
    ("sync_threads", "write T.cuda.cta_sync()"),
    ("barrier", "write T.cuda.cta_sync()"),
    ("syncwarp", "write T.cuda.warp_sync()"),
    ("shfl", "write T.tvm_warp_shuffle(mask, value, lane, 32, 32)"),
    (
        "shfl_down",
        "write T.tvm_warp_shuffle_down(mask, value, delta, 32, 32)",
    ),
    (
        "shfl_up",
        "write T.tvm_warp_shuffle_up(mask, value, delta, 32, 32)",
    ),
    (
        "shfl_xor",
        "write T.tvm_warp_shuffle_xor(mask, value, lane_mask, 32, 32)",
    ),
    ("shfl_sync", "write T.tvm_warp_shuffle(mask, value, lane, 32, 32)"),
    (
        "shfl_down_sync",
        "write T.tvm_warp_shuffle_down(mask, value, delta, 32, 32)",
    ),
    (
        "shfl_up_sync",
        "write T.tvm_warp_shuffle_up(mask, value, delta, 32, 32)",
    ),
    (
        "shfl_xor_sync",
        "write T.tvm_warp_shuffle_xor(mask, value, lane_mask, 32, 32)",
    ),
    ("atomicAdd", "write T.cuda.atomic_add(A.ptr_to([i]), value)"),
    (
        "atomicCAS",
        "write T.cuda.atomic_cas(A.ptr_to([i]), compare, value)",
    ),
    (
        "atomicMax",
        "write T.ptx.atom_scalar(A.ptr_to([i]), value, op=\"max\", ptx_type=\"s32\"); of floats, a loop around T.cuda.atomic_cas",
    ),
    (
        "atomicMin",
        "write T.ptx.atom_scalar(A.ptr_to([i]), value, op=\"min\", ptx_type=\"s32\"); of floats, a loop around T.cuda.atomic_cas",
    ),
    (
        "atomicExch",
        "write T.ptx.atom_scalar(A.ptr_to([i]), value, op=\"exch\", ptx_type=\"b32\")",
    ),
    (
        "atomic_max",
        "write T.ptx.atom_scalar(A.ptr_to([i]), value, op=\"max\", ptx_type=\"s32\"); of floats, a loop around T.cuda.atomic_cas",
    ),
    (
        "atomic_min",
        "write T.ptx.atom_scalar(A.ptr_to([i]), value, op=\"min\", ptx_type=\"s32\"); of floats, a loop around T.cuda.atomic_cas",
    ),
    ("printf", "write T.cuda.printf(\"%d\\n\", value)"),
    ("shared", "allocate it: S = T.alloc_shared((256,), \"float32\")"),
    ("local", "allocate it: r = T.alloc_local((4,), \"float32\")"),
    ("half", "write \"float16\""),
    ("float4", "write \"float32x4\""),
    ("rsqrt", "write T.rsqrt(x)"),
    ("sqrt", "write T.sqrt(x)"),
    ("exp", "write T.exp(x)"),
    ("log", "write T.log(x)"),
    ("tanh", "write T.tanh(x)"),
    ("fma", "write a * b + c: nvcc fuses it"),
    ("fmax", "write T.max(a, b)"),
    ("fmin", "write T.min(a, b)"),
    ("fabs", "write T.abs(x)"),
    // Functions of Triton and NumPy, and of TVM before TIRx.
    ("all", "write a and b, or 0 <= i < n"),
    ("any", "write a or b"),
    ("program_id", "declare the index: bx = T.cta_id([4])"),
    ("cdiv", "write T.ceildiv(a, b)"),
    ("maximum", "write T.max(a, b)"),
    ("minimum", "write T.min(a, b)"),
    ("inf", "write T.infinity(\"float32\")"),
    (
        "finfo",
        "write T.max_value(\"float32\") or T.min_value(\"float32\")",
    ),
    ("iinfo", "write T.max_value(\"int32\") or T.min_value(\"int32\")"),
];

/// The TIRx equivalent of a CUDA C++ name.
pub fn cuda_word(name: &str) -> Option<&'static str> {
    let find = |word: &str| {
        WORDS
            .iter()
            .find(|(known, _)| *known == word)
            .map(|(_, help)| *help)
    };
    let word = name.trim_matches('_');
    find(word).or_else(|| find(word.strip_suffix('f')?))
}
