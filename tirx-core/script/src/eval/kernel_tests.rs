//! The IR that statements of a kernel build, and statements that are rejected.

use std::collections::BTreeMap;

use crate::ir::print;
use crate::ir::{Expr, ExprKind, IRModule, Stmt, StmtKind, Visitor};
use crate::source::SourceMap;
use crate::{KernelFile, NoImports};

/// Builds the only kernel of a file.
fn build(text: &str) -> Result<IRModule, String> {
    let text = format!("from tvm.script import tirx as T\n{text}");
    let mut sources = SourceMap::new();
    let file = KernelFile::load(&mut sources, "k.py", &text, &NoImports).map_err(|d| d.render(&sources))?;
    file.build(None, &BTreeMap::new()).map_err(|d| d.render(&sources))
}

const HEAD: &str = "@T.prim_func\ndef k(A: T.Buffer((16, 16), \"float32\"), n: T.int32, p: T.handle):\n";

/// The statements that a body builds, as text.
fn body(text: &str) -> String {
    let lines: String = text
        .trim_matches('\n')
        .lines()
        .map(|l| format!("{l}\n"))
        .collect();
    let module = build(&format!("{HEAD}{lines}")).unwrap_or_else(|e| panic!("{text}\n{e}"));
    let printed = print(&module);
    let start = printed
        .find("T.func_attr")
        .and_then(|i| printed[i..].find('\n').map(|j| i + j + 1))
        .unwrap_or(0);
    printed[start..]
        .lines()
        .map(|l| format!("{}\n", l.strip_prefix("        ").unwrap_or(l)))
        .collect()
}

#[track_caller]
fn builds(text: &str, expected: &str) {
    let strip = |s: &str| {
        s.lines()
            .filter(|l| !l.trim().is_empty())
            .map(|l| format!("{}\n", l.trim_end()))
            .collect::<String>()
    };
    let expected: String = expected
        .lines()
        .map(|l| format!("{}\n", l.strip_prefix("    ").unwrap_or(l)))
        .collect();
    assert_eq!(strip(&body(text)), strip(&expected));
}

#[track_caller]
fn refuses(text: &str, parts: &[&str]) {
    let text = if text.contains("@T.") {
        text.to_string()
    } else {
        format!("{HEAD}{text}")
    };
    let error = build(&text).map(|m| print(&m)).expect_err(&text);
    for part in parts {
        assert!(error.contains(part), "{text}\nmisses {part:?}:\n{error}");
    }
}

#[test]
fn plain_assignment_makes_a_scalar_and_names_bind_what_is_new() {
    builds(
        "
    x = A[0, 0]
    x = x + 1.0
    y = 3
    v = T.alloc_local((4,), 'float32')
    w = v
    w[0] = x
    q = A.ptr_to([1, 2])
",
        "
    x: T.float32 = A[0, 0]
    x = x + T.float32(1.0)
    y: T.int32 = 3
    w = T.alloc_local((4,))
    w[0] = x
    q: T.let[T.handle(\"float32\", \"global\")] = T.address_of(A[1, 2])
",
    );
}

#[test]
fn annotations_choose_the_kind_of_name() {
    builds(
        "
    a: T.int32 = 0
    b: T.float16
    c: T.f32[2]
    d: T.let = n * 2
    e: T.let[T.int64] = 5
    s = T.local_scalar('int32')
    s = a + 1
    b = 2
    c[1] = d
",
        "
    a: T.int32 = 0
    b: T.float16
    c = T.alloc_local((2,))
    d: T.let[T.int32] = n * 2
    e: T.let[T.int64] = T.int64(5)
    s: T.int32 = a + 1
    b = T.float16(2.0)
    c[1] = T.Cast(\"float32\", d)
",
    );
    refuses(
        "    x: int = 3\n",
        &["\"int\" is no dtype of a kernel", "did you mean \"T.int32\"?"],
    );
    refuses("    x: T.let\n", &["T.let needs a value"]);
    refuses(
        "    x: T.handle = A.data\n",
        &["a pointer cannot be a mutable scalar", "T.let[T.handle"],
    );
    refuses("    x: T.f32[2] = 1.0\n", &["cannot have an initial value"]);
}

#[test]
fn tuples_swap_scalars() {
    builds(
        "
    a, b = n, 2
    a, b = b, a
    (c, d), e = (n, 1), T.meta_var(7)
    A[0, e] = a - b
",
        "
    a: T.int32 = n
    b: T.int32 = 2
    tmp: T.int32 = a
    a = b
    b = tmp
    c: T.int32 = n
    d: T.int32 = 1
    A[0, 7] = T.Cast(\"float32\", a - b)
",
    );
}

#[test]
fn several_values_are_kept_out_of_a_kernel() {
    builds(
        "
    x, (y, z) = T.meta_var((n + 1, [n, 3]))
    if z == 3:
        A[y, x] = T.float32(z)
",
        "
    A[n, n + 1] = T.float32(3.0)
",
    );
}

#[test]
fn conditions_known_now_are_decided_now() {
    builds(
        "
    if n > 1 and n > 2:
        A[0, 0] = 1.0
    elif n > 3:
        A[0, 0] = 2.0
    else:
        A[0, 0] = 3.0
    if False and n > 2:
        A[0, 1] = 4.0
    if None is not None and None[0] > n:
        A[0, 1] = 4.0
    A[0, 2] = 5.0 if 3 > 2 else 6.0
    A[0, 3] = 5.0 if n > 2 else 6.0
    if 0 <= n < 10 and not n == 3:
        A[0, 4] = 1.0
    else:
        pass
",
        "
    if n > 1 and n > 2:
        A[0, 0] = T.float32(1.0)
    else:
        if n > 3:
            A[0, 0] = T.float32(2.0)
        else:
            A[0, 0] = T.float32(3.0)
    A[0, 2] = T.float32(5.0)
    A[0, 3] = T.if_then_else(n > 2, T.float32(5.0), T.float32(6.0))
    if 0 <= n and n < 10 and not n == 3:
        A[0, 4] = T.float32(1.0)
    else:
        T.evaluate(0)
",
    );
}

#[test]
fn loops_run_in_the_kernel_or_unroll_over_values() {
    builds(
        "
    for i in range(4):
        if i > n:
            break
        continue
    for i, j in T.grid(n, 2):
        A[i, j] = 1.0
    for i in range(2, 10, 2):
        A[0, i] = 1.0
    for v, name in zip((1, 2, 3), 'abc'):
        if name == 'b':
            continue
        A[0, v] = v
    while n > 3:
        A[0, 0] = 0.0
",
        "
    for i in range(4):
        if i > n:
            T.break_loop()
        T.continue_loop()
    for i, j in T.grid(n, 2):
        A[i, j] = T.float32(1.0)
    for i in range(2, 10, 2):
        A[0, i] = T.float32(1.0)
    A[0, 1] = T.float32(1.0)
    A[0, 3] = T.float32(3.0)
    while n > 3:
        A[0, 0] = T.float32(0.0)
",
    );
    refuses(
        "    for i in A:\n        pass\n",
        &["cannot loop over a buffer", "T.serial"],
    );
    refuses(
        "    for v in [1, 2]:\n        if n > v:\n            break\n",
        &["\"break\" depends on run-time values"],
    );
    refuses("    break\n", &["\"break\" outside of a loop"]);
    refuses(
        "    for i in range(4):\n        pass\n    else:\n        A[0, 0] = 1.0\n",
        &["\"else\" of a loop"],
    );
}

#[test]
fn names_of_a_block_end_with_it() {
    refuses(
        "    for i in range(3):\n        x = n\n    A[0, 0] = x\n",
        &["unknown name \"x\"", "assigned in a block that has ended"],
    );
    builds(
        "
    for i in range(3):
        x = n
    x = 2.5
    if True:
        y = 1
    A[0, 0] = y
",
        "
    for i in range(3):
        x: T.int32 = n
    x: T.float32 = T.float32(2.5)
    y: T.int32 = 1
    A[0, 0] = T.Cast(\"float32\", y)
",
    );
}

#[test]
fn regions_flat_and_nested() {
    builds(
        "
    with T.launch_thread('blockIdx.x', 4) as bx:
        tx = T.launch_thread('threadIdx.x', 16)
        with T.attr({'a': 1, 'b': 2}):
            A[bx, tx] = 1.0
        A[bx, tx] = 2.0
    T.attr({'c': 3})
    A[0, 0] = 3.0
",
        "
    with T.launch_thread(\"blockIdx.x\", 4) as bx:
        tx = T.launch_thread(\"threadIdx.x\", 16)
        with T.attr({\"a\": 1, \"b\": 2}):
            A[bx, tx] = T.float32(1.0)
        A[bx, tx] = T.float32(2.0)
    with T.attr({\"c\": 3}):
        A[0, 0] = T.float32(3.0)
",
    );
    refuses(
        "    with 3:\n        pass\n",
        &["int cannot be used with \"with\""],
    );
    refuses("    i = T.serial(3)\n", &["a loop needs \"for\""]);
}

#[test]
fn asserts_returns_and_expressions() {
    builds(
        "
    '''documentation'''
    assert n > 2, 'too small'
    assert n > 3, ('ValueError', ['a', 'b'])
    assert n > 4
    pass
    T.cuda.cta_sync()
    if n > 3:
        return
",
        "
    assert n > 2, (\"RuntimeError\", [\"too small\"])
    assert n > 3, (\"ValueError\", [\"a\", \"b\"])
    assert n > 4, (\"RuntimeError\", [\"n > 4 does not hold\"])
    T.cuda.cta_sync()
    if n > 3:
        T.thread_return()
",
    );
    refuses("    assert 1 > 2, 'never'\n", &["assertion failed: never"]);
    refuses("    x = T.cuda.cta_sync()\n", &["has no value"]);
}

#[test]
fn inline_functions_expand_where_they_are_called() {
    let text = "
K = 3
@T.inline
def put(A, i, v=1.0):
    t = A[i, 0]
    A[i, 0] = t + v
    for k in range(2):
        A[i, k] = K
@T.inline
def dot(A, m):
    acc: T.float32 = 0.0
    for i in range(m):
        acc += A[i, i]
    return acc
@T.prim_func
def k(A: T.Buffer((16, 16), 'float32'), n: T.int32):
    z = n + 1
    @T.inline
    def own(j):
        A[j, 1] = z
    put(A, n)
    put(A, n, v=2.0)
    z = n + 2
    own(3)
    A[0, 0] = dot(A, 4)
";
    let printed = print(&build(text).unwrap());
    for line in [
        "t: T.float32 = A[n, 0]",
        "t_1: T.float32 = A[n, 0]",
        "A[n, 0] = t_1 + T.float32(2.0)",
        "A[n, k] = T.float32(3.0)",
        "A[3, 1] = T.Cast(\"float32\", z)",
        "acc: T.float32 = T.float32(0.0)",
        "A[0, 0] = acc",
    ] {
        assert!(printed.contains(line), "{line}\n{printed}");
    }
    refuses(
        "@T.inline\ndef f(n):\n    if n > 1:\n        return 1\n@T.prim_func\ndef k(n: T.int32):\n    f(n)\n",
        &[
            "\"return\" of an inline function cannot depend on run-time values",
            "\"f\" is called from here",
        ],
    );
    refuses(
        "def f(n):\n    if n > 1:\n        return 1\n@T.prim_func\ndef k(n: T.int32):\n    x = f(n)\n",
        &["this condition is only known when the kernel runs", "@T.inline"],
    );
    refuses(
        "@T.inline\ndef f(A, i):\n    A[i] = unknown_thing\n@T.prim_func\ndef k(A: T.Buffer((4,), 'float32')):\n    f(A, 1)\n",
        &[
            "k.py:4:12",
            "unknown name \"unknown_thing\"",
            "\"f\" is called from here",
            "k.py:7:5",
        ],
    );
}

#[test]
fn meta_classes_name_their_buffers() {
    let text = "
@T.meta_class
class Pool:
    def __init__(self, depth):
        self.tiles = [T.alloc_shared((4,), 'float32') for _ in range(depth)]
        self.count = T.local_scalar('int32')
    @T.inline
    def put(self, i, v):
        self.tiles[1][i] = v
        self.count = self.count + 1
@T.prim_func
def k(A: T.Buffer((16,), 'float32'), n: T.int32):
    pool = Pool(2)
    pool.put(n, 1.0)
";
    let printed = print(&build(text).unwrap());
    for line in [
        "pool_tiles_0 = T.alloc_shared((4,))",
        "pool_tiles_1[n] = T.float32(1.0)",
        "pool_count = pool_count + 1",
    ] {
        assert!(printed.contains(line), "{line}\n{printed}");
    }
}

#[test]
fn parameters() {
    let text = "
@T.prim_func
def k(A: T.Buffer(('n', 'm + 1'), 'float32'), B: T.Buffer((m, 'n * 2'), 'int8'), n: T.int64, p: T.handle('float32', 'shared')):
    m = T.int32()
    A[0, 0] = m
";
    let printed = print(&build(text).unwrap());
    assert!(
        printed.contains("B: T.Buffer((m, n * T.int64(2)), \"int8\")"),
        "{printed}"
    );
    assert!(
        printed.contains("p: T.handle(\"float32\", \"shared\")"),
        "{printed}"
    );
    refuses(
        "@T.prim_func\ndef k(a):\n    pass\n",
        &["parameter \"a\" needs a type"],
    );
    refuses(
        "@T.prim_func\ndef k(a: int):\n    pass\n",
        &["\"int\" is no type of a kernel parameter", "T.int32"],
    );
    refuses(
        "@T.prim_func\ndef k(*, N: T.constexpr):\n    pass\n",
        &["constexpr"],
    );
    refuses(
        "@T.prim_func\ndef k(*args):\n    pass\n",
        &["cannot take * parameters"],
    );
    refuses(
        "@T.prim_func\ndef k(A: T.Buffer(('n',), 'int8'), m: T.int32):\n    i = T.int64(3)\n    A[i] = nn\n",
        &["unknown name \"nn\""],
    );
}

#[test]
fn hostile_kernels_end_in_an_error() {
    let nested_ifs = |depth: usize| {
        let lines: String = (1..=depth)
            .map(|i| format!("{}if n > {i}:\n", "    ".repeat(i)))
            .collect();
        format!("{lines}{}A[0, 0] = 1.0\n", "    ".repeat(depth + 1))
    };
    let cases = [
        ("    while True:\n        A[0, 0] = T.meta_var(1.0)\n        for v in range(3): pass\n    x = T.meta_var(n)\n    for _ in [0] * 100000:\n        x = T.meta_var(x + 1)\n".to_string(), "nested more than"),
        ("    x = T.meta_var(n)\n    for _ in [0] * 64:\n        x = T.meta_var(x * x)\n".to_string(), "operations"),
        ("    for _ in [0] * 300000:\n        A[0, 0] = 1.0\n".to_string(), "statements"),
        (nested_ifs(80), "nested more than"),
    ];
    for (text, part) in cases {
        let error = build(&format!("{HEAD}{text}"))
            .map(|m| print(&m).len())
            .expect_err(&text[..60.min(text.len())]);
        assert!(error.contains(part), "{error}");
    }
    let recursive =
        "@T.inline\ndef f(n):\n    if n > 1:\n        f(n)\n@T.prim_func\ndef k(n: T.int32):\n    f(n)\n";
    let error = build(recursive).map(|_| ()).unwrap_err();
    assert!(
        error.contains("nested more than") || error.contains("calls within calls"),
        "{error}"
    );
}

/// Every user-written statement and expression points at text.
#[test]
fn nodes_carry_their_spans() {
    struct Check(Vec<String>);
    impl Visitor for Check {
        fn visit_stmt(&mut self, stmt: &Stmt) {
            if !stmt.span.is_some() && !matches!(stmt.kind, StmtKind::Seq(_)) && !stmt.is_nop() {
                self.0.push(format!("{stmt:?}").chars().take(80).collect());
            }
            self.walk_stmt(stmt);
        }
        fn visit_expr(&mut self, expr: &Expr) {
            if !expr.span.is_some()
                && !matches!(
                    expr.kind,
                    ExprKind::Int(_) | ExprKind::Float(_) | ExprKind::Str(_)
                )
            {
                self.0.push(format!("{expr:?}").chars().take(80).collect());
            }
            self.walk_expr(expr);
        }
    }
    let module = build(
        "
@T.prim_func
def k(a: T.handle, b: T.handle, s: T.float32):
    n = T.int32()
    A = T.match_buffer(a, (n,), 'float32')
    B = T.match_buffer(b, (n,), 'float32')
    assert n > 2, 'small'
    T.device_entry()
    bx = T.cta_id([T.ceildiv(n, 256)]); tx = T.thread_id([256])
    i: T.let = bx * 256 + tx
    acc: T.float32 = 0.0
    for j in T.unroll(4):
        if i + j < n and not j == 3:
            acc += T.exp(A[i + j]) * s
        else:
            acc = -acc
    t = T.alloc_shared((32,), 'float32')
    t[tx % 32] = T.if_then_else(tx > 3, acc, 0.0)
    T.cuda.cta_sync()
    while acc > 1.0:
        acc = acc / 2.0
    B[i] = T.cast(acc, 'float32') + t[0]
",
    )
    .unwrap();
    let mut check = Check(Vec::new());
    check.visit_stmt(&module.functions[0].1.body);
    assert!(check.0.is_empty(), "{:#?}", check.0);
}

#[test]
fn a_printed_host_function_gives_a_declared_symbol_its_value() {
    let text = |attr: &str| {
        format!(
            "@T.prim_func\ndef main(p: T.handle):\n    n = T.int32()\n    T.func_attr({{{attr}\"x\": n + 1}})\n    \
             n = T.Cast(\"int32\", T.tvm_struct_get(p, 1, 15, \"int64\"))\n    T.evaluate(n)\n"
        )
    };
    build(&text("\"calling_conv\": 1, ")).unwrap();
    // In kernel files as users write them, a name is defined once.
    let error = build(&text("")).expect_err("defined twice");
    assert!(error.contains("\"n\" is an immutable name here"), "{error}");
}

#[test]
fn a_buffer_has_a_type_of_its_own() {
    let body = "
    S = T.alloc_buffer((16, 16), \"float32\", scope=\"shared\", layout=T.TileLayout(T.S[(16, 16) : (18, 1)]))
    A[0, 0] = T.cast(A.ty.shape[1] + S.ty.layout.apply(1, 2)[\"m\"], S.ty.dtype)
    A[0, 1] = 1 if A.ty == S.ty else 2
    A[0, 2] = T.cast(n, A.ty)
";
    let text = self::body(body);
    for part in [
        "A[0, 0] = T.float32(36.0)",
        "A[0, 1] = T.float32(2.0)",
        "A[0, 2] = T.Cast(\"float32\", n)",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
}
