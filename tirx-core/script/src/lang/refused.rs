//! Names of TVM's `T` that this compiler does not support, by family, with the message for the user.

/// The reason why `path.name` is not supported; `None` for a name that TVM does not have either.
pub(super) fn reason(path: &str, name: &str) -> Option<String> {
    let full = format!("{path}.{name}");
    let has = |list: &[&str]| list.contains(&name);
    if let Some(family) = family(&full) {
        return Some(format!("{full} is not supported yet ({family})"));
    }
    match path {
        "T" if name == "func_name" => {
            Some(format!("{full} is not supported: a kernel is named by its `def`"))
        }
        "T" if has(&["Layout"]) => Some(format!("{full} is not supported yet (layout algebra)")),
        "T" if has(&["tmem"]) => Some(format!(
            "{full} is not supported yet (tensor memory and asynchronous copies)"
        )),
        "T" if has(&[
            "tvm_load_matrix_sync",
            "tvm_mma_sync",
            "tvm_bmma_sync",
            "tvm_fill_fragment",
            "tvm_store_matrix_sync",
        ]) =>
        {
            Some(format!("{full} is not supported yet (tensor cores)"))
        }
        "T" if name.starts_with("cooperative_tensor") => Some(format!(
            "{full} is not supported: it belongs to Metal and this compiler targets CUDA"
        )),
        "T" if has(&[
            "nki",
            "metal",
            "webgpu",
            "nvshmem",
            "vscale",
            "get_active_lane_mask",
        ]) =>
        {
            Some(format!(
                "{full} is not supported: it belongs to another backend than CUDA"
            ))
        }
        "T" if name.starts_with("call_llvm") || name == "llvm_lookup_intrinsic_id" => Some(format!(
            "{full} is not supported: this compiler does not use LLVM"
        )),
        "T" if has(&[
            "sblock",
            "sblock_alloc_buffer",
            "sblock_attr",
            "block_name_suffix_context",
            "axis",
            "reads",
            "writes",
            "where",
            "init",
            "Reduce",
            "CommReducer",
            "comm_reducer",
            "index_map",
            "IterVar",
            "iter_var",
            "Range",
            "ProducerLoad",
            "selector",
        ]) =>
        {
            Some(format!(
                "{full} is not supported: it belongs to schedulable TIR (blocks), not to TIRx"
            ))
        }
        "T" if has(&[
            "call_cpacked",
            "call_cpacked_lowered",
            "tvm_call_cpacked",
            "tvm_call_cpacked_lowered",
            "tvm_stack_make_array",
            "tvm_stack_make_shape",
            "tvm_global_barrier_kinit",
            "tvm_kernel_replace_point",
            "tvm_thread_invariant",
            "anylist_getitem",
            "anylist_resetitem",
            "anylist_setitem_call_cpacked",
            "anylist_setitem_call_packed",
            "lookup_param",
            "TVMBackendAllocWorkspace",
            "TVMBackendFreeWorkspace",
            "start_profile_intrinsic",
            "end_profile_intrinsic",
            "call_kernel",
            "ignore_loop_partition",
            "add_to_parent",
            "Call",
            "CallEffectKind",
            "DtypeConstructor",
            "LetAnnotation",
            "LocalVectorAnnotation",
            "ScopeIdDef",
            "scalar_wrapper",
            "register_script_namespace",
            "builder",
            "parser",
            "frame",
            "Return",
            "func_ret",
            "arg",
        ]) =>
        {
            Some(format!(
                "{full} is not supported: it is part of TVM's own runtime or builder, not of kernels"
            ))
        }
        _ => None,
    }
}

/// The family of an unsupported instruction.
fn family(full: &str) -> Option<&'static str> {
    const FAMILIES: &[(&str, &[&str])] = &[("tensor cores", &["T.cuda.mma_fill", "T.cuda.mma_store"])];
    let holds = |names: &[&str]| names.iter().any(|name| full.starts_with(name));
    let found = FAMILIES.iter().find(|(_, names)| holds(names));
    found.map(|(family, _)| *family)
}
