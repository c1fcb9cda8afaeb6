//! Names of TVM's `T` that this compiler does not support, by the reason that the message gives.

/// Names with one reason. A name that ends in `*` stands for all that begin so.
struct Row {
    names: &'static [&'static str],
    /// What the message says of a name.
    reason: &'static str,
}

const ROWS: &[Row] = &[
    Row {
        names: &["T.func_name"],
        reason: "is not supported: a kernel is named by its `def`",
    },
    Row {
        names: &["T.Layout"],
        reason: "is not supported yet (layout algebra)",
    },
    Row {
        names: &["T.tmem"],
        reason: "is not supported yet (tensor memory and asynchronous copies)",
    },
    Row {
        names: &[
            "T.cuda.mma_fill*",
            "T.cuda.mma_store*",
            "T.tvm_load_matrix_sync",
            "T.tvm_mma_sync",
            "T.tvm_bmma_sync",
            "T.tvm_fill_fragment",
            "T.tvm_store_matrix_sync",
        ],
        reason: "is not supported yet (tensor cores)",
    },
    Row {
        names: &["T.cooperative_tensor*"],
        reason: "is not supported: it belongs to Metal and this compiler targets CUDA",
    },
    Row {
        names: &[
            "T.nki",
            "T.metal",
            "T.webgpu",
            "T.nvshmem",
            "T.vscale",
            "T.get_active_lane_mask",
        ],
        reason: "is not supported: it belongs to another backend than CUDA",
    },
    Row {
        names: &["T.call_llvm*", "T.llvm_lookup_intrinsic_id"],
        reason: "is not supported: this compiler does not use LLVM",
    },
    Row {
        names: &[
            "T.sblock",
            "T.sblock_alloc_buffer",
            "T.sblock_attr",
            "T.block_name_suffix_context",
            "T.axis",
            "T.reads",
            "T.writes",
            "T.where",
            "T.init",
            "T.Reduce",
            "T.CommReducer",
            "T.comm_reducer",
            "T.index_map",
            "T.IterVar",
            "T.iter_var",
            "T.Range",
            "T.ProducerLoad",
            "T.selector",
        ],
        reason: "is not supported: it belongs to schedulable TIR (blocks), not to TIRx",
    },
    Row {
        names: &[
            "T.call_cpacked",
            "T.call_cpacked_lowered",
            "T.tvm_call_cpacked",
            "T.tvm_call_cpacked_lowered",
            "T.tvm_stack_make_array",
            "T.tvm_stack_make_shape",
            "T.tvm_global_barrier_kinit",
            "T.tvm_kernel_replace_point",
            "T.tvm_thread_invariant",
            "T.anylist_getitem",
            "T.anylist_resetitem",
            "T.anylist_setitem_call_cpacked",
            "T.anylist_setitem_call_packed",
            "T.lookup_param",
            "T.TVMBackendAllocWorkspace",
            "T.TVMBackendFreeWorkspace",
            "T.start_profile_intrinsic",
            "T.end_profile_intrinsic",
            "T.call_kernel",
            "T.ignore_loop_partition",
            "T.add_to_parent",
            "T.Call",
            "T.CallEffectKind",
            "T.DtypeConstructor",
            "T.LetAnnotation",
            "T.LocalVectorAnnotation",
            "T.ScopeIdDef",
            "T.scalar_wrapper",
            "T.register_script_namespace",
            "T.builder",
            "T.parser",
            "T.frame",
            "T.func_ret",
            "T.arg",
        ],
        reason: "is not supported: it is part of TVM's own runtime or builder, not of kernels",
    },
];

/// The reason why `path.name` is not supported; `None` for a name that TVM does not have either.
pub(super) fn reason(path: &str, name: &str) -> Option<String> {
    let full = format!("{path}.{name}");
    let is = |row: &str| match row.strip_suffix('*') {
        Some(start) => full.starts_with(start),
        None => row == full,
    };
    let row = ROWS.iter().find(|row| row.names.iter().any(|name| is(name)))?;
    Some(format!("{full} {}", row.reason))
}
