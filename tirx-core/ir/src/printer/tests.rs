//! The text of IR built by hand, compared with what TVM 0.26 prints for the same program.

use super::{print, print_expr, print_stmt};
use crate::intrin::Op;
use crate::ir::*;
use crate::source::{SourceMap, Span};

fn v(name: &str) -> Var {
    Var::new(name, DType::INT32)
}

fn e(var: &Var) -> Expr {
    Expr::var(var)
}

fn c(value: i32) -> Expr {
    Expr::int32(value)
}

fn f32s(value: f64) -> Expr {
    Expr::float(DType::FLOAT32, value)
}

fn buffer(name: &str, shape: Vec<Expr>, dtype: DType, scope: &str) -> Buffer {
    Buffer::fresh(name, shape, dtype, scope, Span::NONE)
}

fn alloc(buffer: &Buffer) -> Stmt {
    Stmt::new(StmtKind::AllocBuffer(buffer.clone(), vec![]), Span::NONE)
}

fn decl(buffer: &Buffer) -> Stmt {
    Stmt::new(StmtKind::DeclBuffer(buffer.clone()), Span::NONE)
}

fn store(buffer: &Buffer, indices: Vec<Expr>, value: Expr) -> Stmt {
    Stmt::store(buffer, indices, value, Span::NONE)
}

fn module(buffers: Vec<Buffer>, scalars: Vec<Var>, body: Stmt) -> IRModule {
    let buffer_map: Vec<(Var, Buffer)> = buffers
        .into_iter()
        .map(|b| (Var::new(format!("{}_handle", b.name), DType::HANDLE), b))
        .collect();
    let params = buffer_map.iter().map(|(v, _)| v.clone()).chain(scalars).collect();
    let attrs = [("global_symbol".into(), AttrValue::Str("kernel".into()))].into();
    let func = PrimFunc {
        params,
        buffer_map,
        ret: None,
        attrs,
        body,
        span: Span::NONE,
    };
    IRModule::single("main", func, SourceMap::new())
}

fn body_of(text: &str) -> String {
    let skip = text.find("    @T.prim_func").unwrap_or(0);
    text[skip..]
        .lines()
        .map(|l| format!("{}\n", l.strip_prefix("    ").unwrap_or(l)))
        .collect()
}

#[test]
fn a_kernel_as_authored() {
    let (a, b) = (
        buffer("A", vec![c(256)], DType::FLOAT32, "global"),
        buffer("B", vec![c(256)], DType::FLOAT32, "global"),
    );
    let (bx, tx) = (v("bx"), v("tx"));
    let id = |kind, var: &Var, extent| {
        let def = ScopeIdDef {
            kind,
            vars: vec![var.clone()],
            extents: Some(vec![c(extent)]),
            preferred: None,
        };
        Stmt::new(StmtKind::ScopeId(def), Span::NONE)
    };
    let value = Expr::load(&a, vec![e(&tx)]) * f32s(2.0);
    let body = Stmt::seq([
        id(ScopeIdKind::CtaId, &bx, 1),
        id(ScopeIdKind::ThreadId, &tx, 256),
        store(&b, vec![e(&tx)], value),
    ]);
    let body = Stmt::attr(
        AttrNode::None,
        "tirx.device_entry",
        Expr::bool(true),
        body,
        Span::NONE,
    );
    assert_eq!(
        print(&module(vec![a, b], vec![], body)),
        "\
# from tvm.script import ir as I
# from tvm.script import tirx as T
# from tvm.tirx.layout import Axis

@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((256,), \"float32\"), B: T.Buffer((256,), \"float32\")):
        T.func_attr({\"global_symbol\": \"kernel\"})
        T.attr({\"tirx.device_entry\": T.bool(True)})
        bx = T.cta_id([1])
        tx = T.thread_id([256])
        B[tx] = A[tx] * T.float32(2.0)
"
    );
}

#[test]
fn a_kernel_after_lowering() {
    let a = buffer("A", vec![c(16), c(16)], DType::FLOAT32, "global").with(|n| n.layout = None);
    let flat = Buffer::new(BufferNode::flat(
        "A",
        a.data.clone(),
        DType::FLOAT32,
        vec![c(256)],
        Span::NONE,
    ));
    let (bx, tx, y) = (v("blockIdx.x"), v("threadIdx.x"), v("tx"));
    let launch = |var: &Var, extent, body| {
        let node = IterVar {
            var: var.clone(),
            dom: None,
            kind: IterKind::ThreadIndex,
            thread_tag: var.name().into(),
        };
        Stmt::attr(
            AttrNode::IterVar(node),
            "thread_extent",
            c(extent),
            body,
            Span::NONE,
        )
    };
    let inner = Stmt::seq([
        Stmt::bind(&y, e(&tx), Span::NONE),
        store(&flat, vec![e(&tx)], f32s(1.0)),
        Stmt::evaluate(Expr::call(Op::CudaCtaSync, DType::VOID, vec![])),
        Stmt::evaluate(e(&flat.data)),
    ]);
    let body = Stmt::seq([decl(&flat), launch(&bx, 1, launch(&tx, 256, inner))]);
    assert_eq!(
        body_of(&print(&module(vec![a], vec![], body))),
        "\
@T.prim_func
def main(A: T.Buffer((16, 16), \"float32\", layout=None)):
    T.func_attr({\"global_symbol\": \"kernel\"})
    A_1 = A.view(256)
    with T.launch_thread(\"blockIdx.x\", 1) as blockIdx_x:
        threadIdx_x = T.launch_thread(\"threadIdx.x\", 256)
        tx: T.let[T.int32] = threadIdx_x
        A_1[threadIdx_x] = T.float32(1.0)
        T.cuda.cta_sync()
        T.evaluate(A_1.data)
"
    );
}

#[test]
fn symbolic_signatures() {
    let (n, m, s) = (v("n"), Var::new("m", DType::INT64), v("s0"));
    let offset = v("eo");
    let a = buffer("A", vec![e(&n)], DType::FLOAT32, "global");
    let b = buffer("B", vec![c(8), e(&m)], DType::FLOAT16, "global").with(|x| {
        x.align = 16;
        x.elem_offset = Some(c(64));
    });
    let d = buffer("D", vec![e(&n), c(4)], DType::INT8, "shared").with(|x| {
        x.strides = vec![e(&s), c(1)];
        x.elem_offset = Some(e(&offset));
    });
    let body = Stmt::seq([
        Stmt::evaluate(e(&s) + e(&offset)),
        store(&a, vec![e(&n) - c(1)], f32s(0.1)),
    ]);
    assert_eq!(
        body_of(&print(&module(vec![a, b, d], vec![v("n")], body))),
        "\
@T.prim_func
def main(A: T.Buffer((\"n\",), \"float32\"), B: T.Buffer((8, \"m\"), \"float16\", elem_offset=64, align=16), \
D: T.Buffer((n, 4), \"int8\", strides=(\"s0\", 1), scope=\"shared\", offset_factor=1), n_1: T.int32):
    n = T.int32()
    m = T.int64()
    T.func_attr({\"global_symbol\": \"kernel\"})
    T.evaluate(D.strides[0] + D.elem_offset)
    A[n - 1] = T.float32(0.10000000000000001)
"
    );
}

#[test]
fn loops() {
    let a = buffer("A", vec![c(256)], DType::FLOAT32, "global");
    let (i, j, k, n) = (v("i"), v("j"), v("k"), v("n"));
    let work = |var: &Var| store(&a, vec![e(var)], f32s(1.0));
    let loop_of = |var: &Var, min: Expr, extent: Expr, kind, step, annotations, body| {
        let l = ForLoop {
            min,
            annotations,
            step,
            ..ForLoop::new(kind, var, extent, body)
        };
        Stmt::new(l, Span::NONE)
    };
    let serial = ForKind::Serial;
    let body = Stmt::seq([
        loop_of(&i, c(0), c(4), serial, None, vec![], work(&i)),
        loop_of(&i, c(2), c(3), serial, None, vec![], work(&i)),
        loop_of(&i, e(&n), e(&n) - c(1), serial, None, vec![], work(&i)),
        loop_of(&i, c(0), c(10), serial, Some(c(2)), vec![], work(&i)),
        loop_of(
            &i,
            c(0),
            c(10),
            serial,
            None,
            vec![("k".into(), AttrValue::Int(1))],
            work(&i),
        ),
        loop_of(&i, c(0), c(10), ForKind::Unrolled, None, vec![], work(&i)),
        Stmt::for_serial(
            &i,
            c(4),
            Stmt::for_serial(&j, e(&n), work(&j), Span::NONE),
            Span::NONE,
        ),
        Stmt::for_serial(
            &i,
            c(4),
            Stmt::for_serial(
                &j,
                e(&i),
                Stmt::for_serial(&k, c(2), work(&k), Span::NONE),
                Span::NONE,
            ),
            Span::NONE,
        ),
    ]);
    let text = body_of(&print(&module(vec![a.clone()], vec![n.clone()], body)));
    let heads: Vec<&str> = text
        .lines()
        .filter(|l| l.trim_start().starts_with("for"))
        .map(str::trim)
        .collect();
    assert_eq!(
        heads,
        [
            "for i in range(4):",
            "for i in range(2, 5):",
            "for i in range(n, n + (n - 1)):",
            "for i in range(0, 10, 2):",
            "for i in T.serial(10, annotations={\"k\": 1}):",
            "for i in T.unroll(10):",
            "for i, j in T.grid(4, n):",
            "for i in range(4):",
            "for j, k in T.grid(i, 2):",
        ]
    );
}

#[test]
fn scalars_and_names() {
    let (x, y, z) = (
        buffer("x", vec![c(1)], DType::INT32, "local"),
        buffer("y", vec![c(1)], DType::FLOAT32, "local"),
        buffer("x", vec![c(1)], DType::INT32, "shared"),
    );
    let at = |b: &Buffer| Expr::load(b, vec![c(0)]);
    let body = Stmt::seq([
        alloc(&x),
        store(&x, vec![c(0)], c(3)),
        alloc(&y),
        store(&y, vec![c(0)], at(&y) + f32s(1.0)),
        alloc(&z),
        store(&z, vec![c(0)], at(&x) + c(1)),
        Stmt::if_else(Expr::bool(true), Stmt::seq([alloc(&y)]), None, Span::NONE),
    ]);
    assert_eq!(
        print_stmt(&body),
        "\
x: T.int32 = 3
y: T.float32
y = y + T.float32(1.0)
x_1 = T.alloc_shared((1,), \"int32\")
x_1[0] = x + 1
if T.bool(True):
    y_1: T.float32
"
    );
    // A scalar whose address is taken through its data pointer keeps its brackets.
    let body = Stmt::seq([alloc(&x), store(&x, vec![c(0)], c(3)), Stmt::evaluate(e(&x.data))]);
    assert_eq!(
        print_stmt(&body),
        "x = T.alloc_local((1,), \"int32\")\nx[0] = 3\nT.evaluate(x.data)\n"
    );
}

#[test]
fn operators_and_parentheses() {
    let (n, m) = (v("n"), v("m"));
    let (n, m) = (e(&n), e(&m));
    let (b, f) = (e(&Var::new("b", DType::BOOL)), e(&Var::new("f", DType::FLOAT32)));
    let bin = |op, a: &Expr, b: &Expr| Expr::binary(op, a.clone(), b.clone());
    use BinOp::*;
    let lt = bin(Lt, &n, &m);
    let twice = bin(Add, &n, &m);
    for (expr, text) in [
        (bin(Sub, &n, &bin(Sub, &m, &c(1))), "n - (m - 1)"),
        (bin(Sub, &bin(Sub, &n, &m), &c(1)), "n - m - 1"),
        (bin(Mul, &n, &bin(Mul, &m, &c(2))), "n * (m * 2)"),
        (bin(Mul, &bin(Add, &n, &m), &c(-5)), "(n + m) * -5"),
        (bin(FloorMod, &bin(FloorDiv, &n, &m), &c(2)), "n // m % 2"),
        (bin(Div, &n, &m), "T.Div(n, m)"),
        (bin(Mod, &n, &m), "T.truncmod(n, m)"),
        (bin(Div, &f, &f), "f / f"),
        (bin(Eq, &lt, &b), "(n < m) == b"),
        (bin(Eq, &b, &lt), "b == (n < m)"),
        (Expr::logical_not(lt.clone()), "not n < m"),
        (Expr::logical_not(bin(And, &b, &lt)), "not (b and n < m)"),
        (
            bin(Or, &bin(Or, &b, &lt), &bin(And, &b, &b)),
            "b or n < m or b and b",
        ),
        (bin(Or, &b, &bin(Or, &b, &b)), "b or (b or b)"),
        (bin(Max, &n, &c(3)), "T.max(n, 3)"),
        // A node that the parser would fold is printed in function form.
        (bin(Add, &c(1), &c(2)), "T.Add(1, 2)"),
        (bin(Mul, &n, &c(1)), "T.Mul(n, 1)"),
        (bin(Add, &bin(Add, &n, &m), &c(0)), "T.Add(n + m, 0)"),
        (bin(Max, &n, &n), "T.Max(n, n)"),
        (bin(Max, &twice, &twice), "T.max(n + m, n + m)"),
        (
            Expr::call(Op::ShiftLeft, DType::INT32, vec![n.clone(), c(2)]),
            "T.shift_left(n, 2)",
        ),
        (
            Expr::call(Op::ShiftLeft, DType::INT32, vec![n.clone(), c(0)]),
            "T.call_intrin(\"int32\", \"tirx.shift_left\", n, 0)",
        ),
        (
            Expr::call(Op::Fabs, DType::FLOAT32, vec![Expr::float(DType::FLOAT32, -2.0)]),
            "T.call_intrin(\"float32\", \"tirx.fabs\", T.float32(-2.0))",
        ),
        (
            bin(
                And,
                &Expr::broadcast(b.clone(), 2),
                &Expr::broadcast(b.clone(), 2),
            ),
            "T.And(T.Broadcast(b, 2), T.Broadcast(b, 2))",
        ),
        (Expr::logical_not(Expr::bool(true)), "T.Not(T.bool(True))"),
        (c(3).cast(DType::FLOAT32), "T.Cast(\"float32\", 3)"),
        (Expr::int64(7), "T.int64(7)"),
        (Expr::select(lt, n.clone(), m.clone()), "T.Select(n < m, n, m)"),
        (Expr::ramp(n.clone(), c(1), 4), "T.Ramp(n, 1, 4)"),
        (
            Expr::call(Op::Reinterpret, DType::FLOAT32, vec![n.clone()]),
            "T.reinterpret(\"float32\", n)",
        ),
        (
            Expr::call(Op::CallExtern, DType::FLOAT32, vec![Expr::string("g"), n.clone()]),
            "T.call_extern(\"float32\", \"g\", n)",
        ),
        (
            Expr::call(
                Op::CudaFuncCall,
                DType::FLOAT32,
                vec![Expr::string("g"), Expr::string("a\nb"), m],
            ),
            "T.cuda.func_call(\"g\", m, source_code=\"a\\nb\", return_type=\"float32\")",
        ),
    ] {
        // Free variables are declared ahead in a statement; an expression alone just names them.
        assert_eq!(print_expr(&expr), text);
    }
}

#[test]
fn views_and_slices() {
    let k = buffer("K", vec![c(16), c(8)], DType::FLOAT32, "shared");
    let view = |shape: Vec<Expr>, layout: Option<crate::layout::Layout>| {
        Buffer::new(BufferNode {
            layout,
            ..BufferNode::flat("V", k.data.clone(), DType::FLOAT32, shape, Span::NONE)
        })
    };
    let row = crate::layout::Layout::row_major;
    let column = |a: i32, b: i32, s: i32, t: i32| {
        let iter = |e, s| crate::layout::Iter {
            extent: c(e),
            stride: c(s),
            axis: crate::layout::Axis::memory(),
        };
        crate::layout::Layout::Tile(std::sync::Arc::new(crate::layout::TileLayout {
            shard: vec![iter(a, s), iter(b, t)],
            ..Default::default()
        }))
    };
    let n = v("n");
    let ramp = |base: Expr, stride| Expr::ramp(base, c(stride), 4);
    let let_var = v("l");
    let body = Stmt::seq([
        alloc(&k),
        decl(&view(vec![c(128)], Some(row(&[c(128)])))),
        decl(&view(vec![c(8), c(16)], Some(column(8, 16, 1, 8)))),
        decl(&view(vec![c(32), c(4)], Some(column(32, 4, 1, 32)))),
        decl(&view(vec![c(16), c(8)], Some(row(&[c(16), c(8)])))),
        Stmt::bind(&n, c(1), Span::NONE),
        store(
            &k,
            vec![e(&n), ramp(c(0), 1)],
            Expr::load(&k, vec![c(0), ramp(e(&n), 2)]),
        ),
        store(
            &k,
            vec![c(0), ramp(c(0), 0)],
            Expr::load(&k, vec![c(0), ramp(e(&n) * c(4), 1)]),
        ),
        // In a slice the binding would occur twice.
        store(
            &k,
            vec![c(0), ramp(Expr::let_in(&let_var, c(1), e(&let_var)), 1)],
            Expr::load(&k, vec![c(0), ramp(c(0), 1)]),
        ),
    ]);
    assert_eq!(
        print_stmt(&body),
        "\
K = T.alloc_shared((16, 8))
V = K.view(128)
V_1 = K.permute(1, 0)
V_2 = K.view(32, 4, layout=T.TileLayout(T.S[(32, 4):(1, 32)]))
V_3 = T.decl_buffer((16, 8), data=K.data, scope=\"shared\")
n: T.let[T.int32] = 1
K[n, 0:4] = K[0, n:n + 8:2]
K[0, T.Ramp(0, 0, 4)] = K[0, n * 4:n * 4 + 4]
l = T.int32()
K[0, T.Ramp(T.Let(l, where={l: 1}), 1, 4)] = K[0, 0:4]
"
    );
}

#[test]
fn hardware_indices_shared_by_regions_are_declared_first() {
    let a = buffer("A", vec![c(256)], DType::FLOAT32, "global");
    let t = v("t");
    let launch = || {
        let node = IterVar {
            var: t.clone(),
            dom: None,
            kind: IterKind::ThreadIndex,
            thread_tag: "threadIdx.x".into(),
        };
        Stmt::attr(
            AttrNode::IterVar(node),
            "thread_extent",
            c(4),
            store(&a, vec![e(&t)], f32s(1.0)),
            Span::NONE,
        )
    };
    let body = Stmt::if_else(
        Expr::bool(true),
        Stmt::seq([launch(), launch()]),
        None,
        Span::NONE,
    );
    assert_eq!(
        body_of(&print(&module(vec![a.clone()], vec![], body)))
            .lines()
            .skip(3)
            .collect::<Vec<_>>()
            .join("\n"),
        "    if T.bool(True):
        t = T.env_thread(\"threadIdx.x\")
        with T.launch_thread(t, 4):
            A[t] = T.float32(1.0)
        with T.launch_thread(t, 4):
            A[t] = T.float32(1.0)"
    );
}
