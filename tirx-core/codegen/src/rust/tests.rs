//! Launchers of small kernels compared with committed text: `testdata/*.rs`. `UPDATE_EXPECT=1` rewrites it.

use std::path::Path;

use super::*;
use crate::ir::{AttrNode, AttrValue, Attrs, BinOp, Buffer, Expr, IterKind, IterVar, Stmt, Var};
use crate::source::SourceMap;
use tirx_lower::transform::{Options, PassContext, Target, make_packed_api, split_host_device};

fn launch(tag: &str, extent: Expr, body: impl FnOnce(&Var) -> Stmt) -> Stmt {
    let var = Var::new(tag.replace('.', "_"), DType::INT32);
    let body = body(&var);
    let iter = IterVar {
        var,
        dom: None,
        kind: IterKind::ThreadIndex,
        thread_tag: tag.into(),
    };
    Stmt::attr(AttrNode::IterVar(iter), "thread_extent", extent, body, Span::NONE)
}

fn buffer(name: &str, shape: Vec<Expr>, dtype: DType) -> Buffer {
    Buffer::fresh(name, shape, dtype, "global", Span::NONE).with(|b| b.layout = None)
}

fn lowered(name: &str, func: PrimFunc) -> (PrimFunc, IRModule) {
    let func = func.with_attr("global_symbol", AttrValue::Str(name.into()));
    let context = PassContext::new(Target::SM_90A, &Options::default());
    let module = IRModule::single("main", func.clone(), SourceMap::new());
    let module = split_host_device::run(module, &context).unwrap();
    (func, make_packed_api::run(module, &context).unwrap())
}

fn text(launcher: &Launcher) -> String {
    let mut text = format!(
        "fn typed(stream: &::tirx_rt::Stream, {})\n",
        launcher.parameters()
    );
    text.push_str(&format!(
        "{}\n\n{}",
        launcher.call_host("k"),
        launcher.host.function()
    ));
    for raw in &launcher.raw {
        let params: Vec<String> = raw.params.iter().map(|(n, t)| format!("{n}: {t}")).collect();
        text.push_str(&format!(
            "\n// {}: {}\n{}",
            raw.symbol,
            params.join("; "),
            raw.item
        ));
    }
    text
}

fn expect(name: &str, actual: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("src/rust/testdata")
        .join(name);
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, actual).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        actual == expected,
        "{name} differs (UPDATE_EXPECT=1 writes it anew):\n{actual}"
    );
}

/// `B[i] = A[i] * s` over `A: (n, 4)` and `B: (n * 2, 4)` in ⌈n / 256⌉ blocks.
fn scale_rows() -> PrimFunc {
    let (n, s) = (Var::new("n", DType::INT32), Var::new("s", DType::FLOAT16));
    let k = Var::new("k", DType::INT32);
    let flag = Var::new("flag", DType::BOOL);
    let a = buffer("A", vec![Expr::var(&n), Expr::int32(4)], DType::FLOAT16);
    let b = buffer(
        "B",
        vec![Expr::var(&n) * Expr::int32(2), Expr::int32(4)],
        DType::FLOAT16,
    );
    let flat = |b: &Buffer| b.with(|f| f.shape = vec![Expr::int32(64)]);
    let blocks = Expr::binary(
        BinOp::FloorDiv,
        Expr::var(&n) + Expr::int32(255),
        Expr::int32(256),
    );
    let body = launch("blockIdx.x", blocks, |bx| {
        launch("threadIdx.x", Expr::int32(256), |tx| {
            let index = Expr::var(bx) * Expr::int32(256) + Expr::var(tx);
            let value = Expr::load(&flat(&a), vec![index.clone()]) * Expr::var(&s);
            let store = Stmt::store(&flat(&b), vec![index + Expr::var(&k)], value, Span::NONE);
            Stmt::if_else(Expr::var(&flag), store, None, Span::NONE)
        })
    });
    let (p, q) = (Var::new("p", DType::HANDLE), Var::new("q", DType::HANDLE));
    PrimFunc {
        params: vec![p.clone(), q.clone(), s, k, flag],
        buffer_map: vec![(p, a), (q, b)],
        ret: None,
        attrs: Attrs::new(),
        body,
        span: Span::NONE,
    }
}

#[test]
fn a_launcher_checks_and_launches() {
    let (authored, module) = lowered("scale_rows", scale_rows());
    let launcher = launcher(&authored, &module).unwrap();
    let types = launcher.types();
    assert_eq!(types[0], "&impl ::tirx_rt::AsTensor<::tirx_rt::f16>");
    assert_eq!(types[1], "&mut impl ::tirx_rt::AsTensorMut<::tirx_rt::f16>");
    assert_eq!(types[2..], ["::tirx_rt::f16", "i32", "bool"]);
    expect("scale_rows.rs", &text(&launcher));
}

#[test]
fn names_of_variables_do_not_reach_the_text() {
    // Variables are numbered per process; the text must not depend on it.
    let once = lowered("scale_rows", scale_rows());
    let again = lowered("scale_rows", scale_rows());
    let print = |(authored, module): &(PrimFunc, IRModule)| text(&launcher(authored, module).unwrap());
    assert_eq!(print(&once), print(&again));
}

#[test]
fn a_pointer_without_a_shape_is_refused() {
    let (mut authored, module) = lowered("scale_rows", scale_rows());
    authored.buffer_map.clear();
    authored.body = Stmt::evaluate(Expr::var(&authored.params[0]));
    let error = launcher(&authored, &module).unwrap_err();
    assert!(
        error.0[0]
            .message
            .contains("parameter `p` is a pointer without a shape"),
        "{error}"
    );
    assert!(
        error.0[0]
            .help
            .as_ref()
            .is_some_and(|h| h.contains("T.match_buffer(p"))
    );
}

#[test]
fn several_launches_and_host_loops() {
    let n = Var::new("n", DType::INT32);
    let a = buffer("A", vec![Expr::var(&n)], DType::FLOAT32);
    let region = |value: Expr| {
        launch("blockIdx.x", Expr::var(&n), |bx| {
            Stmt::store(&a, vec![Expr::var(bx)], value.cast(DType::FLOAT32), Span::NONE)
        })
    };
    let i = Var::new("i", DType::INT32);
    let more = Expr::binary(BinOp::Lt, Expr::int32(3), Expr::var(&n));
    let body = Stmt::seq([
        region(Expr::int32(1)),
        Stmt::for_serial(&i, Expr::int32(3), region(Expr::var(&i)), Span::NONE),
        Stmt::if_else(more, region(Expr::int32(4)), None, Span::NONE),
    ]);
    let p = Var::new("p", DType::HANDLE);
    let func = PrimFunc {
        params: vec![p.clone()],
        buffer_map: vec![(p, a)],
        ret: None,
        attrs: Attrs::new(),
        body,
        span: Span::NONE,
    };
    let (authored, module) = lowered("two", func);
    let launcher = launcher(&authored, &module).unwrap();
    assert_eq!(launcher.functions.len(), 3);
    expect("several_launches.rs", &text(&launcher));
}
