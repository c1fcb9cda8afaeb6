use super::super::{Options, PassContext, Target, split_host_device};
use super::*;
use crate::ir::{Assert, Attr, Attrs, Buffer, IterKind, IterVar, StmtKind};
use crate::source::{SourceMap, Span};

fn launch(tag: &str, extent: i32, body: impl FnOnce(&Var) -> Stmt) -> Stmt {
    let var = Var::new(tag.replace('.', "_"), DType::INT32);
    let body = body(&var);
    let iter = IterVar {
        var,
        dom: None,
        kind: IterKind::ThreadIndex,
        thread_tag: tag.into(),
    };
    Stmt::attr(
        AttrNode::IterVar(iter),
        "thread_extent",
        Expr::int32(extent),
        body,
        Span::NONE,
    )
}

/// `B[t] = A[t:t+4]…` over `A: (n, 4)`, `B: (n * 2, 4)`, with a scalar.
fn packed() -> (PrimFunc, String) {
    let n = Var::new("n", DType::INT32);
    let s = Var::new("s", DType::BFLOAT16);
    let shape = |rows: Expr| vec![rows, Expr::int32(4)];
    let plain = |name: &str, rows: Expr| {
        Buffer::fresh(name, shape(rows), DType::FLOAT32, "global", Span::NONE).with(|b| b.layout = None)
    };
    let a = plain("A", Expr::var(&n));
    let b = plain("B", Expr::var(&n) * Expr::int32(2));
    let flat = |b: &Buffer| {
        b.with(|f| {
            f.shape = vec![Expr::int32(64)];
        })
    };
    let region = launch("threadIdx.x", 16, |t| {
        let at = |b: &Buffer| {
            let ramp = Expr::ramp(Expr::var(t) * Expr::int32(4), Expr::int32(1), 4);
            (flat(b), vec![ramp])
        };
        let (from, index) = at(&a);
        let (to, place) = at(&b);
        Stmt::seq([
            Stmt::store(&to, place, Expr::load(&from, index), Span::NONE),
            Stmt::evaluate(Expr::var(&s)),
        ])
    });
    let (p, q) = (Var::new("p", DType::HANDLE), Var::new("q", DType::HANDLE));
    let func = PrimFunc {
        params: vec![p.clone(), q.clone(), s],
        buffer_map: vec![(p, a), (q, b)],
        ret: None,
        attrs: Attrs::new(),
        body: region,
        span: Span::NONE,
    }
    .with_attr("global_symbol", AttrValue::Str("copy".into()));
    let context = PassContext::new(Target::SM_90A, &Options::default());
    let module = IRModule::single("main", func, SourceMap::new());
    let module = split_host_device::run(module, &context).unwrap();
    let module = run(module, &context).unwrap();
    let host = module.get("main").unwrap().clone();
    let text = crate::ir::print_func("main", &host);
    (host, text)
}

fn messages(stmt: &Stmt, out: &mut Vec<String>) {
    match &stmt.kind {
        StmtKind::Assert(Assert { message, .. }) => out.push(message.concat()),
        StmtKind::Seq(all) => all.iter().for_each(|s| messages(s, out)),
        StmtKind::Attr(Attr { body, .. }) | StmtKind::If(_, body, _) => messages(body, out),
        _ => {}
    }
}

#[test]
fn every_field_is_checked_once() {
    let (host, text) = packed();
    let mut all = Vec::new();
    messages(&host.body, &mut all);
    let signature =
        " when calling:\n  `copy(A: Tensor([n, 4], float32), B: Tensor([n * 2, 4], float32), s: bfloat16)`";
    let expected = [
        "Expected 3 arguments",
        "args pointer is NULL",
        "Mismatched type on argument #0|Tensor",
        "Mismatched type on argument #1|Tensor",
        "Mismatched type on argument #2|float",
        "Mismatched type on argument #0|Tensor",
        "Mismatched A.ndim on argument #0|2",
        "Mismatched A.dtype on argument #0|float32",
        "Mismatched A.device_type on argument #0|cuda",
        "Mismatched type on argument #1|Tensor",
        "Mismatched B.ndim on argument #1|2",
        "Mismatched B.dtype on argument #1|float32",
        "Mismatched B.device_type on argument #1|cuda",
        "Mismatched A.strides on argument #0|to be compact array",
        "A data pointer is NULL on argument #0|non-NULL data pointer",
        "Mismatched B.strides on argument #1|to be compact array",
        "Mismatched B.device_id on argument #1|to match A.device_id",
        "B data pointer is NULL on argument #1|non-NULL data pointer",
        "Invalid A.shape[1] on argument #0|4",
        "Invalid A.byte_offset on argument #0|0",
        "Invalid B.shape[0] on argument #1|A.shape[0] * 2",
        "Invalid B.shape[1] on argument #1|4",
        "Invalid B.byte_offset on argument #1|0",
        "Misaligned A.data on argument #0|data alignment=16 bytes",
        "Invalid A.shape on argument #0|at most 2147483647 elements, which int32 indices reach",
        "Misaligned B.data on argument #1|data alignment=16 bytes",
        "Invalid B.shape on argument #1|at most 2147483647 elements, which int32 indices reach",
    ];
    let expected: Vec<String> = expected
        .iter()
        .map(|m| match m.split_once('|') {
            Some((what, value)) => format!("{what}{signature},\n  expected {value}"),
            None => format!("{what}{signature}", what = m),
        })
        .collect();
    assert_eq!(all, expected, "{text}");
    assert_eq!(host.global_symbol(), Some("__tvm_ffi_copy"));
    assert_eq!(host.attr("calling_conv"), Some(&AttrValue::Int(1)));
    assert_eq!(host.ret, Some(Type::Prim(DType::INT32)));
}

#[test]
fn extents_come_from_shapes() {
    let (_, text) = packed();
    for line in [
        "n: T.let[T.int32] = T.Cast(\"int32\", T.tvm_struct_get(copy_A_shape, 0, 17, \"int64\"))",
        "T.call_packed(\"__tvm_set_device\", 2, dev_id)",
        "T.call_packed(\"copy_kernel\", A.data, B.data, s, 16)",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
}

/// Whether a tensor of these extents passes the check; every extent is a variable.
fn reached(extents: &[i64], steps: &[i64]) -> bool {
    let vars = |prefix: &str, list: &[i64]| -> Vec<Var> {
        (0..list.len())
            .map(|i| Var::new(format!("{prefix}{i}"), DType::INT32))
            .collect()
    };
    let (shape, strides) = (vars("n", extents), vars("s", steps));
    let exprs = |vars: &[Var]| vars.iter().map(Expr::var).collect::<Vec<_>>();
    let buffer = Buffer::fresh("A", exprs(&shape), DType::UINT8, "global", Span::NONE)
        .with(|node| node.strides = exprs(&strides));
    let check = tensors::within_reach(&buffer).unwrap();
    let mut analyzer = crate::arith::Analyzer::new();
    for (var, value) in shape.iter().zip(extents).chain(strides.iter().zip(steps)) {
        analyzer.bind_value(var, &Expr::int32(i32::try_from(*value).unwrap()));
    }
    analyzer.simplify(&check).as_int().unwrap() == 1
}

#[test]
fn what_indices_of_32_bits_do_not_reach_is_refused() {
    assert!(reached(&[65536, 32767], &[]));
    assert!(!reached(&[65536, 32768], &[]));
    assert!(
        !reached(&[65536, 65536, 65536, 65536], &[]),
        "the product is 2^64"
    );
    assert!(reached(&[65536, 65536, 0], &[]));
    assert!(reached(&[2, 65536], &[1 << 30, 1]));
    assert!(!reached(&[3, 65536], &[1 << 30, 1]));
}
