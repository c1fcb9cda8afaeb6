//! Descriptions of the names of `T` that are not operations, one sentence each, for the reference page.
//!
//! Operations are described in their rows; dtypes need no description.

/// Names without `T.`, sorted, with their descriptions.
const MEANINGS: &[(&str, &str)] = &[
    ("Add", "The sum as a node, not folded."),
    (
        "And",
        "Both conditions hold; the second is evaluated only if the first holds.",
    ),
    (
        "Assert",
        "Stops the function with an error unless the condition holds: a frame form of `assert`.",
    ),
    ("Bind", "Names a value; the form that printed IR has."),
    ("BitwiseAnd", "The bits that both values have."),
    ("BitwiseNot", "The bits that are not set in the value."),
    (
        "BitwiseOr",
        "The bits that are set in at least one of the values.",
    ),
    (
        "BitwiseXor",
        "The bits that are set in exactly one of the values.",
    ),
    ("Break", "Leaves the innermost loop."),
    ("Broadcast", "A vector with the value in each of `lanes` lanes."),
    (
        "Buffer",
        "The type of a parameter that is a tensor: its shape and dtype, and optionally strides, scope, layout and alignment.",
    ),
    ("BufferLoad", "The element of a buffer at indices, as a node."),
    ("Cast", "Conversion to a dtype, as a node."),
    (
        "ComposeLayout",
        "A layout followed by a swizzle of shared memory.",
    ),
    ("Continue", "The next iteration of the innermost loop."),
    ("Div", "The quotient, rounded to zero for integers, as a node."),
    ("EQ", "Whether two values are equal, as a node."),
    (
        "Else",
        "The statements of a frame-form `T.If` if its condition does not hold.",
    ),
    (
        "ExecScope",
        "An execution scope by its name: thread, warp, warpgroup, cta, cluster. Layouts name the scopes that they span.",
    ),
    ("FloatImm", "A constant of a float dtype."),
    ("FloorDiv", "The quotient rounded to minus infinity, as a node."),
    (
        "FloorMod",
        "The remainder of the division rounded to minus infinity, as a node.",
    ),
    ("GE", "Whether `a >= b`, as a node."),
    ("GT", "Whether `a > b`, as a node."),
    ("If", "The frame form of `if`, with `T.Then` and `T.Else`."),
    ("IntImm", "A constant of an integer dtype."),
    ("Iter", "One iterator of a layout: extent, stride, axis."),
    ("LE", "Whether `a <= b`, as a node."),
    ("LShift", "The value shifted to the left, as a node."),
    ("LT", "Whether `a < b`, as a node."),
    (
        "Let",
        "A variable with a value within one expression: `T.Let(body, where={x: value})`.",
    ),
    ("Max", "The greater of two values, as a node."),
    ("Min", "The lesser of two values, as a node."),
    ("Mod", "The remainder of the division rounded to zero, as a node."),
    ("Mul", "The product as a node, not folded."),
    ("NE", "Whether two values differ, as a node."),
    ("Not", "Whether a condition does not hold, as a node."),
    (
        "Optional",
        "The type of a parameter that may be absent: `T.Optional[T.Buffer(…)]`.",
    ),
    (
        "Or",
        "Either condition holds; the second is evaluated only if the first does not.",
    ),
    (
        "Ptr",
        "The type of a pointer to elements of a dtype in a memory scope.",
    ),
    ("R", "Iterators of a layout that replicate: `R[2 : 4@warpid]`."),
    ("RShift", "The value shifted to the right, as a node."),
    ("Ramp", "A vector that starts at `base` and steps by `stride`."),
    (
        "Return",
        "Ends the function, on the device the thread: the frame form of `return`.",
    ),
    (
        "S",
        "Iterators of a layout, extents and strides: `S[(8, 4) : (4, 1)]`.",
    ),
    (
        "SMEMPool",
        "A pool of dynamic shared memory from which buffers are allocated one after the other.",
    ),
    (
        "Select",
        "Selects one of two values by a condition; both are evaluated.",
    ),
    ("Shuffle", "Lanes picked from vectors, as a new vector."),
    ("StringImm", "A text as an argument of a call."),
    ("Sub", "The difference as a node, not folded."),
    (
        "TMEMPool",
        "A pool of tensor memory from which buffers are allocated.",
    ),
    (
        "TensorMap",
        "The type of a parameter that is a tensor map (`CUtensorMap`).",
    ),
    (
        "Then",
        "The statements of a frame-form `T.If` if its condition holds.",
    ),
    (
        "TileLayout",
        "How the coordinates of a buffer become places on axes: iterators, replicas, offsets.",
    ),
    ("Var", "A new variable of a dtype."),
    ("While", "The frame form of `while`."),
    ("abs", "The absolute value."),
    (
        "alloc_buffer",
        "New memory of a shape and dtype in a scope (`\"global\"`, `\"shared\"`, `\"local\"`, …) for as long as the block of statements runs.",
    ),
    (
        "alloc_cast_frag",
        "Registers for the same elements as those of `src`, of another dtype.",
    ),
    (
        "alloc_local",
        "New memory of the thread: an array in registers if its indices are known.",
    ),
    ("alloc_scalar", "A new variable of one element in a scope."),
    ("alloc_shared", "New shared memory of the block."),
    (
        "alloc_tcgen05_ldst_frag",
        "Registers of a warpgroup as `tcgen05.ld` and `.st` of a shape fill them.",
    ),
    (
        "attr",
        "Attributes of the statements that follow, or of the region of a `with`.",
    ),
    ("bind", "Names a value: `x = T.bind(value)`."),
    ("boolean", "`T.bool`."),
    ("broadcast", "A vector with the value in each of `lanes` lanes."),
    ("buffer", "`T.Buffer`."),
    ("buffer_decl", "`T.Buffer`."),
    (
        "buffer_store",
        "Stores a value to the element of a buffer at indices.",
    ),
    ("buffer_var", "The type of a pointer behind a buffer."),
    (
        "call_intrin",
        "A call of an operation by the IR's name, with its dtype.",
    ),
    (
        "cast",
        "Conversion to a dtype, as C converts; floats to narrower floats round to nearest even.",
    ),
    ("ceildiv", "The quotient rounded up."),
    (
        "cluster",
        "Tile primitives that the threads of a cluster do together: `T.cluster.copy(…)`.",
    ),
    (
        "cluster_id",
        "The index of the cluster in the grid, of these extents.",
    ),
    (
        "constexpr",
        "The type of a parameter that is known when the kernel is compiled.",
    ),
    ("cta", "Tile primitives that the threads of a block do together."),
    (
        "cta_id",
        "The index of the block in the grid (or of the cluster's block), of these extents.",
    ),
    ("cta_id_in_cluster", "The index of the block in its cluster."),
    ("cta_id_in_pair", "The index of the block in its pair of blocks."),
    (
        "cuda.cta_max",
        "The greatest `value` of the block's threads; `scratch` points to shared memory for `num_warps` values.",
    ),
    (
        "cuda.cta_min",
        "The least `value` of the block's threads; `scratch` points to shared memory for `num_warps` values.",
    ),
    (
        "cuda.cta_sum",
        "The sum of `value` over the block's threads; `scratch` points to shared memory for `num_warps` values.",
    ),
    (
        "cuda.iket.official_event",
        "An event of a kernel with a payload, by the text of its source.",
    ),
    (
        "cuda.sm100_2sm_leader_smem_addr",
        "The address of shared memory in the first block of the pair.",
    ),
    (
        "cuda.wait_until",
        "Loads the word at `ptr` into `dst` until the predicate holds, and acquires it.",
    ),
    ("cuda.warp_max", "The greatest `value` of each `width` lanes."),
    ("cuda.warp_min", "The least `value` of each `width` lanes."),
    ("cuda.warp_sum", "The sum of `value` over each `width` lanes."),
    ("decl_buffer", "A buffer over memory that a pointer points to."),
    (
        "decl_scalar",
        "A buffer of one element over memory that a pointer points to.",
    ),
    (
        "device_entry",
        "Begins the device function: the statements after it run on the GPU.",
    ),
    (
        "env_thread",
        "A hardware index such as `\"threadIdx.x\"`, whose extent `T.launch_thread` gives.",
    ),
    ("evaluate", "An expression for its effect."),
    ("floordiv", "The quotient rounded to minus infinity: `//`."),
    (
        "floormod",
        "The remainder of the division rounded to minus infinity: `%`.",
    ),
    ("func_attr", "Attributes of the function."),
    ("grid", "Nested serial loops: `for i, j in T.grid(4, 8)`."),
    (
        "handle",
        "The dtype of pointers; with a dtype and a scope, the type of pointers to it.",
    ),
    (
        "hint",
        "Words about the region that passes may read, or a message to the reader.",
    ),
    ("infinity", "The infinity of a float dtype."),
    ("inline", "A function whose calls are replaced by its body."),
    (
        "jit",
        "A kernel with parameters that are given when it is compiled.",
    ),
    ("lane_id", "The index of the thread in its warp."),
    (
        "launch_thread",
        "Gives a hardware index its extent: the form that printed IR has.",
    ),
    (
        "let",
        "A name for a value, which is not assigned again: `x: T.let = value`.",
    ),
    (
        "local_scalar",
        "A variable of the thread, as `x: T.int32` declares one.",
    ),
    ("macro", "`T.inline`, as older kernels write it."),
    (
        "match_buffer",
        "The buffer that a parameter holds; variables in its shape and strides take the caller's values.",
    ),
    ("max", "The greater of two values; the number if one is NaN."),
    ("max_value", "The greatest finite value of a dtype."),
    (
        "meta_class",
        "A class whose instances exist while the kernel is built and hold buffers of it.",
    ),
    (
        "meta_var",
        "Keeps a Python value out of the kernel: the name stands for the value.",
    ),
    ("min", "The lesser of two values; the number if one is NaN."),
    ("min_value", "The least finite value of a dtype."),
    (
        "parallel",
        "A loop of host functions whose iterations are independent.",
    ),
    (
        "prim_func",
        "A function of the module: a kernel, or a function that kernels call.",
    ),
    ("ptr", "`T.Ptr`."),
    ("ptx.cp_async.bulk", "Bulk copies: a namespace."),
    (
        "ptx.cp_async.legacy",
        "`T.ptx.cp_async` with pointers and offsets in elements.",
    ),
    (
        "ptx.cp_async.mbarrier.arrive.noinc",
        "`T.ptx.cp_async.mbarrier.arrive` that does not count itself.",
    ),
    (
        "ptx.ldmatrix_legacy",
        "`T.ptx.ldmatrix` with pointers and offsets.",
    ),
    (
        "ptx.mma.legacy",
        "`T.ptx.mma` with registers as pointers and offsets.",
    ),
    (
        "ptx.mma.sp",
        "The product of a sparse matrix and a matrix, with registers as pointers and offsets.",
    ),
    (
        "ptx_legacy.ldmatrix",
        "`T.ptx.ldmatrix` with pointers and offsets, as TVM 0.27 writes it.",
    ),
    (
        "ptx_legacy.mma",
        "`T.ptx.mma` with registers as pointers and offsets, as TVM 0.27 writes it.",
    ),
    ("ramp", "A vector that starts at `base` and steps by `stride`."),
    (
        "s_tir.cp_async_raw",
        "`T.ptx.cp_async` with pointers and offsets, as TVM 0.27 writes it.",
    ),
    (
        "scope_id",
        "A scope id by parent and child: `T.scope_id([4], parent=\"cta\", cur=\"warp\")`.",
    ),
    ("serial", "A loop."),
    ("shared_scalar", "A variable of the block in shared memory."),
    ("smem", "`T.alloc_shared`."),
    (
        "static_assert",
        "Stops the build with a message unless a condition that is known then holds.",
    ),
    (
        "target",
        "The target of a function: `T.target({\"kind\": \"cuda\", \"arch\": \"sm_90a\"})`.",
    ),
    ("thread", "Tile primitives that each thread does by itself."),
    ("thread_binding", "A loop whose variable is a hardware index."),
    (
        "thread_id",
        "The index of the thread in its block, of these extents.",
    ),
    ("thread_id_in_wg", "The index of the thread in its warpgroup."),
    (
        "tile",
        "Tile primitives; which threads do them is the scope they stand in.",
    ),
    ("truncdiv", "The quotient rounded to zero."),
    ("truncmod", "The remainder of the division rounded to zero."),
    (
        "tensormap_encode_tiled",
        "Encodes a tensor map on the host: the map, the address, extents, strides in bytes, box extents, element strides.",
    ),
    ("tvm_call_packed", "`T.call_packed`."),
    ("tvm_call_packed_lowered", "`T.call_packed_lowered`."),
    (
        "unroll",
        "A loop that is unrolled: its iterations are written out.",
    ),
    ("var", "A new variable of a dtype."),
    ("vectorized", "A loop whose iterations are the lanes of vectors."),
    ("void", "The dtype of an expression without a value."),
    ("warp", "Tile primitives that the lanes of a warp do together."),
    ("warp_id", "The index of the warp in its block."),
    ("warp_id_in_wg", "The index of the warp in its warpgroup."),
    (
        "warpgroup",
        "Tile primitives that the four warps of a warpgroup do together.",
    ),
    ("warpgroup_id", "The index of the warpgroup in its block."),
    ("wg", "`T.warpgroup`."),
    (
        "wg_reg_tile",
        "A tile in the registers of a warpgroup: 128 rows, one row per thread.",
    ),
];

/// The description of a name that is not an operation: `T.alloc_buffer`.
pub(super) fn find(name: &str) -> Option<&'static str> {
    let name = name.strip_prefix("T.")?;
    let found = MEANINGS.iter().find(|(known, _)| *known == name);
    found.map(|(_, meaning)| *meaning)
}
