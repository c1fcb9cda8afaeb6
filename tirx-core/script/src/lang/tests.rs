//! The namespace without the evaluator: functions are looked up and called as the evaluator would.

use std::rc::Rc;

use super::super::eval::Slice;
use super::*;
use crate::ir::{Attr, BufferStore, ExprKind, Type, Var};

fn interp() -> Interpreter {
    let mut interp = Interpreter::default();
    interp.open_block(Span::NONE).unwrap();
    interp
}

fn run(interp: &mut Interpreter, function: &Value, args: Args) -> Result<Value> {
    match function {
        Value::Builtin(f) => (f.call)(interp, args, Span::NONE),
        Value::DType(d) => call_dtype(interp, *d, args, Span::NONE),
        Value::Object(o) => o.clone().call(interp, args, Span::NONE),
        other => panic!("{} is not called", other.type_name()),
    }
}

fn args(values: impl IntoIterator<Item = Value>) -> Args {
    Args::positional(values, Span::NONE)
}

/// `T.<name>(values)`.
fn t(interp: &mut Interpreter, name: &str, values: impl IntoIterator<Item = Value>) -> Result<Value> {
    let (path, name) = match name.rsplit_once('.') {
        Some((path, name)) => (format!("T.{path}"), name),
        None => ("T".to_string(), name),
    };
    let function = attribute(&path, name).unwrap_or_else(|| panic!("no {path}.{name}"));
    run(interp, &function, args(values))
}

fn ok(result: Result<Value>) -> String {
    match result {
        Ok(Value::Expr(e)) => format!("{e:?}"),
        Ok(Value::Int(v)) => v.to_string(),
        Ok(other) => other.type_name(),
        Err(e) => format!("error: {}", e.message),
    }
}

fn int(v: i128) -> Value {
    Value::Int(v)
}

fn tuple(items: &[i128]) -> Value {
    Value::tuple(items.iter().map(|v| int(*v)).collect())
}

fn var(name: &str, dtype: DType) -> Value {
    Value::Expr(Expr::var(&Var::new(name, dtype)))
}

fn slice(start: Value, stop: Value, step: Value) -> Value {
    Value::Slice(Rc::new(Slice { start, stop, step }))
}

fn buffer(interp: &mut Interpreter, shape: &[i128], dtype: &str) -> (Value, Buffer) {
    let value = t(interp, "alloc_shared", [tuple(shape), Value::str(dtype)]).unwrap();
    let Value::Buffer(b) = &value else { panic!() };
    let b = b.clone();
    (value, b)
}

#[test]
fn every_row_is_found_and_every_refusal_has_a_reason() {
    for name in [
        "exp",
        "alloc_local",
        "cta_id",
        "grid",
        "Cast",
        "f32",
        "float32x4",
        "let",
        "S",
        "TileLayout",
    ] {
        assert!(attribute("T", name).is_some(), "T.{name}");
    }
    for name in ["cta_sync", "atomic_add", "func_call", "__shfl_xor_sync"] {
        assert!(attribute("T.cuda", name).is_some(), "T.cuda.{name}");
    }
    assert!(attribute("T", "aloc_local").is_none());
    assert!(names("T").contains(&"alloc_local".to_string()));
    assert!(names("T.cuda").contains(&"cta_sync".to_string()));
    // As TVM 0.27 spells it.
    assert!(names("T.cuda").contains(&"mbarrier_wait".to_string()));
    for (path, name) in [("T", "nki"), ("T", "sblock"), ("T.cuda", "mma_fill")] {
        match attribute(path, name) {
            Some(Value::Unavailable(reason)) => assert!(reason.contains(name), "{reason}"),
            _ => panic!("{path}.{name}"),
        }
    }
}

#[test]
fn functions_promote_and_check_their_operands() {
    let mut i = interp();
    let x = || var("x", DType::INT32);
    let y = || var("y", DType::FLOAT32);
    assert!(ok(t(&mut i, "exp", [y()])).contains("Exp"));
    assert_eq!(
        ok(t(&mut i, "exp", [x()])),
        "error: T.exp: needs a floating-point operand, found int32"
    );
    assert_eq!(ok(t(&mut i, "exp", [])), "error: T.exp() misses \"x\"");
    assert_eq!(
        ok(t(&mut i, "exp", [y(), y()])),
        "error: T.exp() takes 1 positional argument but 2 were given"
    );
    assert_eq!(
        ok(t(&mut i, "exp", [Value::str("a")])),
        "error: T.exp: parameter \"x\" must be a number or expression, found the string \"a\""
    );
    assert!(ok(t(&mut i, "max", [int(3), int(4)])).contains("Int(4)"));
    assert!(ok(t(&mut i, "floor", [Value::Float(2.5)])).contains("Float(2.0)"));
    assert!(ok(t(&mut i, "clz", [var("l", DType::INT64)])).ends_with(":int32"));
    assert!(ok(t(&mut i, "isnan", [var("h", DType::FLOAT16)])).contains("Cast"));
    assert_eq!(
        ok(t(&mut i, "alloc_shared", [int(4), Value::str("flot32")])),
        "error: unknown dtype \"flot32\""
    );
    assert_eq!(
        ok(t(
            &mut i,
            "alloc_buffer",
            [
                int(4),
                Value::str("float32"),
                Value::None,
                Value::None,
                Value::None,
                Value::None,
                Value::str("shard")
            ]
        )),
        "error: T.alloc_buffer: unknown scope \"shard\""
    );
}

#[test]
fn dtypes_convert_and_declare() {
    let mut i = interp();
    assert!(ok(t(&mut i, "float32", [Value::str("-inf")])).contains("Float(-inf)"));
    assert_eq!(ok(t(&mut i, "int8", [int(128)])), "error: 128 does not fit int8");
    let mut named = args([]);
    named.names = vec!["n".into()];
    let Ok(Value::Expr(n)) = run(&mut i, &attribute("T", "int64").unwrap(), named) else {
        panic!()
    };
    let n = n.as_var().unwrap();
    assert_eq!((n.name(), n.ty()), ("n", &Type::Prim(DType::INT64)));
    let Ok(Value::Expr(p)) = t(&mut i, "handle", [Value::str("float32"), Value::str("shared")]) else {
        panic!()
    };
    assert_eq!(p.as_var().unwrap().ty(), &Type::pointer(DType::FLOAT32, "shared"));
    let vector = subscript(&mut i, &Value::DType(DType::FLOAT32), &tuple(&[2, 3]), Span::NONE).unwrap();
    assert!(
        matches!(&vector, Value::Annotation(a) if matches!(&**a, Annotation::LocalVector(_, s) if s.len() == 2))
    );
    let of = subscript(
        &mut i,
        &attribute("T", "let").unwrap(),
        &Value::Expr(p),
        Span::NONE,
    )
    .unwrap();
    assert!(
        matches!(&of, Value::Annotation(a) if matches!(&**a, Annotation::Let(Some(Type::Pointer { .. }))))
    );
}

#[test]
fn elements_are_checked_against_the_shape() {
    let mut i = interp();
    let (a, _) = buffer(&mut i, &[16, 8], "float32");
    let mut at = |index: Value| ok(subscript(&mut i, &a, &index, Span::NONE));
    assert!(at(tuple(&[15, 7])).contains("BufferLoad"));
    assert_eq!(
        at(tuple(&[16, 0])),
        "error: index 16 is out of range for dimension 0 of buffer"
    );
    assert_eq!(
        at(tuple(&[0, -1])),
        "error: index -1 is out of range for dimension 1 of buffer"
    );
    assert_eq!(
        at(tuple(&[0, 0, 0])),
        "error: buffer has 2 dimensions but 3 indices were given"
    );
    assert_eq!(
        at(Value::tuple(vec![int(0), Value::Float(1.5)])),
        "error: index 1 of buffer must be an integer, found float32"
    );
    assert_eq!(at(tuple(&[0])), "buffer region");
    let wide = |from, to| Value::tuple(vec![int(0), slice(int(from), int(to), Value::None)]);
    assert_eq!(at(wide(0, 4)), "buffer region");
    assert_eq!(
        at(wide(0, 9)),
        "error: slice bound 9 is out of range for dimension 1 of buffer"
    );
    let stepped = Value::tuple(vec![int(0), slice(int(0), int(8), int(2))]);
    assert!(at(stepped).contains("lanes: 4"));
}

#[test]
fn stores_cast_but_do_not_broadcast() {
    let mut i = interp();
    let (a, _) = buffer(&mut i, &[16], "float32");
    let mut put = |index: Value, value: Value| match store(&mut i, &a, &index, &value, Span::NONE) {
        Ok(()) => "ok".to_string(),
        Err(e) => e.message.clone(),
    };
    assert_eq!(put(int(0), int(1)), "ok");
    assert_eq!(put(int(0), var("n", DType::INT64)), "ok");
    assert_eq!(
        put(int(16), int(1)),
        "index 16 is out of range for dimension 0 of buffer"
    );
    let four = || slice(int(0), int(4), Value::None);
    assert_eq!(
        put(four(), Value::Float(1.0)),
        "cannot store float32 in buffer: the place has float32x4"
    );
    assert_eq!(
        put(
            four(),
            Value::Expr(Expr::broadcast(Expr::float(DType::FLOAT32, 1.0), 4))
        ),
        "ok"
    );
    assert_eq!(
        put(int(0), Value::str("x")),
        "cannot store the string \"x\" in buffer"
    );
    let stmts = i.close_block();
    // The allocation and three stores; the literal became the buffer's dtype at once.
    assert_eq!(stmts.as_slice().len(), 4);
    let StmtKind::BufferStore(BufferStore { value, .. }) = &stmts.as_slice()[1].kind else {
        panic!()
    };
    assert_eq!(value.as_float(), Some(1.0));
}

#[test]
fn regions_are_values_where_they_are_vectors() {
    let mut i = interp();
    let (a, b) = buffer(&mut i, &[16, 8], "float32");
    let m0 = var("m0", DType::INT32);
    let m1 = binary(&mut i, Operator::Add, &m0, &int(4), Span::NONE).unwrap();
    let index = Value::tuple(vec![int(0), slice(m0, m1, Value::None)]);
    let Ok(Value::Region(region)) = subscript(&mut i, &a, &index, Span::NONE) else {
        panic!()
    };
    assert!(region.ranges[1].1.is_int(4));
    let e = to_expr(&Value::Region(region), Span::NONE).unwrap();
    assert_eq!(e.dtype, DType::FLOAT32.with_lanes(4));
    let ExprKind::BufferLoad { buffer, indices, .. } = &e.kind else {
        panic!()
    };
    assert_eq!(*buffer, b);
    assert!(matches!(indices[1].kind, ExprKind::Ramp { lanes: 4, .. }));
}

#[test]
fn regions_have_ranges_and_parts() {
    let mut i = interp();
    let (a, _) = buffer(&mut i, &[16, 8], "float32");
    let slices = |first: [i128; 2], second: [i128; 2]| {
        let each = |[from, to]: [i128; 2]| slice(int(from), int(to), Value::None);
        Value::tuple(vec![each(first), each(second)])
    };
    let whole = subscript(&mut i, &a, &slices([4, 12], [2, 8]), Span::NONE).unwrap();
    let part = subscript(&mut i, &whole, &slices([1, 3], [0, 5]), Span::NONE).unwrap();
    let mut number = |dim: i128, name: &str| {
        let ranges = value_attribute(&mut i, &part, "region", Span::NONE).unwrap();
        let range = ranges.as_items().unwrap()[dim as usize].clone();
        value_attribute(&mut i, &range, name, Span::NONE)
            .unwrap()
            .as_int()
    };
    assert_eq!([number(0, "min"), number(0, "extent")], [Some(5), Some(2)]);
    assert_eq!([number(1, "min"), number(1, "extent")], [Some(2), Some(5)]);
    let row = subscript(&mut i, &whole, &int(3), Span::NONE).unwrap();
    let Value::Region(row) = row else { panic!() };
    assert!(row.ranges[0].0.is_int(7) && row.ranges[1].1.is_int(6));
}

#[test]
fn views_keep_the_pointer_and_change_the_description() {
    let mut i = interp();
    let (a, b) = buffer(&mut i, &[4, 8], "float16");
    let mut method = |name: &str, values: Vec<Value>| -> Buffer {
        let f = value_attribute(&mut i, &a, name, Span::NONE).unwrap();
        match run(&mut i, &f, args(values)) {
            Ok(Value::Buffer(b)) => b,
            Ok(other) => panic!("{}", other.type_name()),
            Err(e) => panic!("{}", e.message),
        }
    };
    let shape = |b: &Buffer| b.shape.iter().map(|e| e.as_int().unwrap()).collect::<Vec<_>>();
    let flat = method("view", vec![int(-1)]);
    assert_eq!((shape(&flat), &flat.data), (vec![32], &b.data));
    assert!(flat.layout.as_ref().unwrap().is_row_major(&flat.shape));
    let wide = method("view", vec![Value::str("float32")]);
    assert_eq!((shape(&wide), wide.dtype), (vec![4, 4], DType::FLOAT32));
    let turned = method("permute", vec![int(1), int(0)]);
    assert_eq!(shape(&turned), vec![8, 4]);
    let Some(crate::layout::Layout::Tile(tile)) = &turned.layout else {
        panic!()
    };
    assert!(tile.shard[0].stride.is_int(1) && tile.shard[1].stride.is_int(8));
    let sub = value_attribute(&mut i, &a, "sub", Span::NONE).unwrap();
    let row = subscript(&mut i, &sub, &int(3), Span::NONE).unwrap();
    let Value::Buffer(row) = row else { panic!() };
    assert!(row.elem_offset.as_ref().unwrap().is_int(24));
    assert_eq!(shape(&row), vec![8]);
    let wrong = value_attribute(&mut i, &a, "vlod", Span::NONE)
        .map(|_| ())
        .unwrap_err();
    assert_eq!(wrong.help.as_deref(), Some("did you mean \"vload\"?"));
}

#[test]
fn layouts_are_built_from_their_text_form() {
    let mut i = interp();
    let s = attribute("T", "S").unwrap();
    let lane = attribute("layout", "laneid").unwrap();
    let stride = binary(&mut i, Operator::MatMult, &int(8), &lane, Span::NONE).unwrap();
    let index = slice(tuple(&[4, 8]), Value::tuple(vec![stride, int(1)]), Value::None);
    let spec = subscript(&mut i, &s, &index, Span::NONE).unwrap();
    let offset = binary(&mut i, Operator::MatMult, &int(2), &lane, Span::NONE).unwrap();
    let spec = binary(&mut i, Operator::Add, &spec, &offset, Span::NONE).unwrap();
    let spec = binary(&mut i, Operator::Add, &spec, &int(5), Span::NONE).unwrap();
    let Ok(Value::Layout(crate::layout::Layout::Tile(tile))) = t(&mut i, "TileLayout", [spec]) else {
        panic!()
    };
    assert_eq!(&*tile.shard[0].axis.0, "laneid");
    assert!(tile.shard[0].stride.is_int(8) && tile.shard[1].axis.is_memory());
    assert_eq!(tile.offset.len(), 2);
    let plain = subscript(&mut i, &s, &tuple(&[4, 8]), Span::NONE).unwrap();
    let Ok(Value::Layout(plain)) = t(&mut i, "TileLayout", [plain]) else {
        panic!()
    };
    assert!(plain.is_row_major(&[Expr::int32(4), Expr::int32(8)]));
}

#[test]
fn atomics_take_the_dtype_of_what_they_point_to() {
    let mut i = interp();
    let (a, _) = buffer(&mut i, &[4], "uint32");
    let ptr_to = value_attribute(&mut i, &a, "ptr_to", Span::NONE).unwrap();
    let pointer = run(&mut i, &ptr_to, args([Value::list(vec![int(1)])])).unwrap();
    assert!(ok(t(&mut i, "cuda.atomic_add", [pointer.clone(), int(1)])).ends_with(":uint32"));
    assert_eq!(
        ok(t(
            &mut i,
            "cuda.atomic_add",
            [pointer.clone(), var("y", DType::FLOAT32)]
        )),
        "error: T.cuda.atomic_add: the pointer is to uint32 but \"value\" is float32"
    );
    let Value::Expr(p) = pointer else { panic!() };
    assert_eq!(expr_type(&p), Type::pointer(DType::UINT32, "shared"));
    assert_eq!(
        ok(t(&mut i, "cuda.func_call", [Value::str("f")])),
        "error: T.cuda.func_call: parameter \"source_code\" must be given"
    );
}

#[test]
fn a_pool_places_views_one_behind_the_other() {
    let mut i = interp();
    let pool = t(&mut i, "SMEMPool", []).unwrap();
    let mut method = |name: &str, values: Vec<Value>| {
        let f = value_attribute(&mut i, &pool, name, Span::NONE).unwrap();
        run(&mut i, &f, args(values))
    };
    let offset = |v: &Value| match v {
        Value::Buffer(b) => b.elem_offset.as_ref().map_or(0, |e| e.as_int().unwrap()),
        other => panic!("{}", other.type_name()),
    };
    let first = method("alloc", vec![tuple(&[4, 4]), Value::str("float16")]).unwrap();
    let second = method("alloc", vec![int(8), Value::str("float32")]).unwrap();
    assert_eq!((offset(&first), offset(&second)), (0, 8));
    method("move_base_to", vec![int(2)]).unwrap();
    let wrong = method("alloc", vec![int(8), Value::str("float32")])
        .map(|_| ())
        .unwrap_err();
    assert_eq!(
        wrong.message,
        "T.decl_buffer: byte offset 2 is no multiple of the size of float32"
    );
    method("commit", vec![]).unwrap();
    let stmts = i.close_block();
    let StmtKind::Attr(Attr { key, value, .. }) = &stmts.as_slice().last().unwrap().kind else {
        panic!()
    };
    assert_eq!((&**key, value.as_int()), ("tirx.dyn_smem_bytes", Some(64)));
}

#[test]
fn conditions_are_bool() {
    let n = var("n", DType::INT32);
    assert_eq!(condition(&n, Span::NONE).unwrap().dtype, DType::BOOL);
    let p = var("p", DType::HANDLE);
    assert!(condition(&p, Span::NONE).is_err());
}

/// The names that TVM 0.26 exports as `T`, without dtypes and the decorators (which the evaluator defines).
const EXPORTED: &str = "\
    Add And Assert Bind Break Broadcast Buffer BufferLoad Call CallEffectKind Cast CommReducer ComposeLayout \
    Continue Div DtypeConstructor EQ Else ExecScope FloatImm FloorDiv FloorMod GE GT If IntImm Iter IterVar \
    LE LT Layout Let LetAnnotation LocalVectorAnnotation Max Min Mod Mul NE Not Optional Or ProducerLoad Ptr \
    R Ramp Range Reduce Return S SMEMPool ScopeIdDef Select Shuffle StringImm Sub TMEMPool \
    TVMBackendAllocWorkspace TVMBackendFreeWorkspace TensorMap Then TileLayout Var While abs acos acosh \
    add_to_parent address_of alloc_buffer alloc_cast_frag alloc_local alloc_scalar alloc_shared \
    alloc_tcgen05_ldst_frag anylist_getitem anylist_resetitem anylist_setitem_call_cpacked \
    anylist_setitem_call_packed arg asin asinh assume atan atan2 atanh attr axis bf16 bind bitwise_and \
    bitwise_not bitwise_or bitwise_xor block_name_suffix_context bool boolean break_loop broadcast buffer \
    buffer_decl buffer_store buffer_var builder call_cpacked call_cpacked_lowered call_extern call_intrin \
    call_kernel call_llvm_intrin call_llvm_pure_intrin call_packed call_packed_lowered call_pure_extern cast \
    ceil ceildiv cluster cluster_id clz comm_reducer constexpr continue_loop cooperative_tensor_fill \
    cooperative_tensor_load cooperative_tensor_multiply_accumulate cooperative_tensor_store copysign cos cosh \
    cta cta_id cta_id_in_cluster cta_id_in_pair cuda decl_buffer decl_scalar device_entry dp4a \
    end_profile_intrinsic env_thread erf evaluate exp exp10 exp2 f16 f32 f64 fabs filter floor floordiv \
    floormod fma fmod func_attr func_name func_ret get_active_lane_mask grid handle handle_add_byte_offset \
    hypot i16 i32 i64 i8 if_then_else ignore_loop_partition index_map infinity init isfinite isinf isnan \
    isnullptr iter_var lane_id launch_thread ldexp let likely llvm_lookup_intrinsic_id local_scalar log log10 \
    log1p log2 lookup_param match_buffer max max_value meta_var metal min min_value nearbyint nextafter nki \
    nvshmem parallel parser popcount pow print_buffer ptr ptr_byte_offset ptx q_multiply_shift \
    q_multiply_shift_per_axis ramp reads register_script_namespace reinterpret round rsqrt sblock \
    sblock_alloc_buffer sblock_attr scalar_wrapper scope_id selector serial shared_scalar shift_left \
    shift_right sigmoid sin sinh smem sqrt start_profile_intrinsic static_assert tan tanh target thread \
    thread_binding thread_id thread_id_in_wg thread_return tile tmem trunc truncdiv truncmod tvm_access_ptr \
    tvm_bmma_sync tvm_call_cpacked tvm_call_cpacked_lowered tvm_call_packed tvm_call_packed_lowered \
    tvm_fill_fragment tvm_global_barrier_kinit tvm_kernel_replace_point tvm_load_matrix_sync tvm_mma_sync \
    tvm_stack_alloca tvm_stack_make_array tvm_stack_make_shape tvm_storage_sync tvm_store_matrix_sync \
    tvm_struct_get tvm_struct_set tvm_thread_allreduce tvm_thread_invariant tvm_throw_last_error tvm_tuple \
    tvm_warp_activemask tvm_warp_shuffle tvm_warp_shuffle_down tvm_warp_shuffle_up tvm_warp_shuffle_xor \
    type_annotation u16 u32 u64 u8 undef unroll var vectorcombine vectorhigh vectorized vectorlow void vscale \
    warp warp_id warp_id_in_wg warpgroup warpgroup_id webgpu wg wg_reg_tile where writes";

#[test]
fn no_name_of_tvm_is_a_silent_gap() {
    let missing: Vec<&str> = EXPORTED
        .split_whitespace()
        .filter(|n| attribute("T", n).is_none())
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
}

/// Helps suggest from these lists, so that each name in them must be one that kernels can use.
#[test]
fn names_that_are_suggested_are_offered() {
    let mut paths: Vec<String> = ["T", "I", "layout", "layout.Axis"].map(String::from).into();
    let mut refused = Vec::new();
    while let Some(path) = paths.pop() {
        for name in names(&path) {
            let full = format!("{path}.{name}");
            match attribute(&path, &name) {
                Some(Value::Namespace(_)) => paths.push(full),
                Some(Value::Unavailable(_)) => refused.push(full),
                _ => {}
            }
        }
    }
    assert!(refused.is_empty(), "{refused:?}");
}

#[test]
fn names_of_ptx_are_suggested_by_release() {
    let has = |release, name: &str| {
        names_of_release("T.ptx", release)
            .iter()
            .any(|known| known == name)
    };
    assert!(has(Some(Release::V26), "ld_acquire") && !has(Some(Release::V26), "createpolicy"));
    assert!(!has(Some(Release::V27), "ld_acquire") && has(Some(Release::V27), "createpolicy"));
    assert!(has(None, "ld_acquire") && has(None, "createpolicy"));
    let acquire = |release| elsewhere("T", "ld_acquire", release);
    assert_eq!(acquire(Some(Release::V26)).as_deref(), Some("T.ptx.ld_acquire"));
    assert_eq!(acquire(Some(Release::V27)), None);
}
