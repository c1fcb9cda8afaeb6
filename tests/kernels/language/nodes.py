# test: parse
# test: cuda sm_90a
# test: sim
# Nodes and statements in function form, the short names of dtypes, variables and pointers.
from tvm.script import tirx as T


@T.prim_func
def expressions(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32"), C: T.Buffer((13, 8), "int32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([8])
    C[0, tx] = T.Sub(T.Add(A[tx], B[tx]), 1)
    C[1, tx] = T.Max(A[tx], B[tx])
    C[2, tx] = T.Min(A[tx], B[tx])
    C[3, tx] = T.FloorMod(A[tx], 7)
    C[4, tx] = T.Select(T.GE(A[tx], B[tx]), 1, 0)
    C[5, tx] = T.Select(T.GT(A[tx], B[tx]), 1, 0)
    C[6, tx] = T.Select(T.LE(A[tx], B[tx]), 1, 0)
    C[7, tx] = T.Select(T.NE(A[tx], B[tx]), 1, 0)
    C[8, tx] = T.Select(T.Or(T.LT(A[tx], 0), T.EQ(B[tx], 3)), 1, 0)
    C[9, tx] = T.IntImm("int32", 7) * tx
    C[10, tx] = T.Cast("int32", T.FloatImm("float32", 2.5) * T.Cast("float32", tx))
    C[11, tx] = T.BufferLoad(A, [tx]) + T.floormod(A[tx], B[tx])
    C[12, tx] = T.call_intrin("int32", "tirx.popcount", A[tx])


@T.prim_func
def statements(A: T.Buffer((8,), "int32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([8])
    with T.If(tx < 4):
        with T.Then():
            A[tx] = 1
        with T.Else():
            T.buffer_store(A, 2, [tx])
    i: T.int32 = 0
    with T.While(i < 10):
        i = i + 1
        A[tx] = A[tx] + i
    for j in T.serial(10):
        with T.If(j >= 5):
            with T.Then():
                T.Break()
        with T.If(j % 2 == 1):
            with T.Then():
                T.Continue()
        A[tx] = A[tx] + 100
    with T.Assert(A[tx] > 0, "positive"):
        A[tx] = A[tx] * 2


@T.prim_func
def bindings(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32x4")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([8])
    x = T.Bind(A[tx] + 1)
    y = T.bind(x * x)
    z = T.var("int32")
    T.Bind(y - x, var=z)
    w = T.Var("w", "int32")
    A[tx] = T.Let(w * w + z, where={w: x})
    B[tx] = T.ramp(tx, 2, 4)


@T.prim_func
def pointers(a: T.handle, c: T.Buffer((8,), "float32")):
    A = T.match_buffer(a, (8,), "float32")
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([8])
    B = T.decl_buffer((2, 4), "float32", data=A.data)
    s = T.decl_scalar("float32", A.data, "global", 3)
    c[tx] = B[tx // 4, tx % 4] + s


@T.prim_func
def raw_pointers(a: T.Ptr("float32"), b: T.Ptr(T.float32, "global"), c: T.handle("float32")):
    A = T.decl_buffer((8,), "float32", data=a)
    B = T.buffer((8,), "float32", data=b)
    C = T.decl_buffer((8,), "float32", data=c)
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([8])
    p = T.ptr("float32", "global")
    q = T.buffer_var("float32", "global")
    C[tx] = A[tx]


@T.prim_func
def scopes(A: T.Buffer((8,), "int32")):
    T.device_entry()
    bx = T.scope_id([1], "kernel", "cta")
    tx = T.scope_id([8], "cta", "thread")
    shared = T.smem((8,), "int32")
    shared[tx] = A[tx]
    T.cuda.cta_sync()
    A[tx] = shared[7 - tx]


@T.prim_func
def short_names(
    A: T.Buffer((12, 2), "float32"),
    i: T.i8,
    j: T.i16,
    k: T.i32,
    l: T.i64,
    u: T.u8,
    v: T.u16,
    w: T.u32,
    x: T.u64,
    f: T.f16,
    g: T.f32,
    d: T.f64,
    b: T.boolean,
):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([2])
    A[0, tx] = T.f32(i)
    A[1, tx] = T.f32(j)
    A[2, tx] = T.f32(k)
    A[3, tx] = T.f32(l)
    A[4, tx] = T.f32(u)
    A[5, tx] = T.f32(v)
    A[6, tx] = T.f32(w)
    A[7, tx] = T.f32(x)
    A[8, tx] = T.f32(f) + g
    A[9, tx] = T.f32(d)
    A[10, tx] = T.f32(b)
    A[11, tx] = T.f32(T.bf16(2.5)) + T.f32(T.u8(3))


@T.macro
def twice(buffer, at):
    doubled: T.let = buffer[at] + buffer[at]
    buffer[at] = doubled


@T.prim_func
def expanded(A: T.Buffer((8,), "int32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([8])


    twice(A, tx)


@T.prim_func
def halves(A: T.Buffer((4,), "float32x4"), B: T.Buffer((4,), "float32x2")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([4])
    B[tx] = T.vectorlow("float32x2", A[tx]) + T.vectorhigh("float32x2", A[tx])


@T.prim_func
def dots(A: T.Buffer((4,), "int8x4"), B: T.Buffer((4,), "uint8x4"), C: T.Buffer((4,), "int32"), D: T.Buffer((4,), "uint32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([4])
    C[tx] = T.dp4a(A[tx], A[tx], C[tx])
    D[tx] = T.dp4a("uint32", B[tx], B[tx], D[tx])


@T.prim_func
def registers(A: T.Buffer((7, 64), "int32")):
    T.device_entry()
    bx = T.cta_id([2])
    tx = T.thread_id([32])
    A[0, bx * 32 + tx] = T.ptx.fetch_register(32, "laneid")
    A[1, bx * 32 + tx] = T.ptx.fetch_register(32, "tid.x")
    A[2, bx * 32 + tx] = T.ptx.fetch_register(32, "ctaid.x")
    A[3, bx * 32 + tx] = T.ptx.fetch_register(32, "ntid.x")
    A[4, bx * 32 + tx] = T.ptx.fetch_register(32, "nctaid.x")
    A[5, bx * 32 + tx] = T.ptx.fetch_register(32, "lanemask_lt")
    A[6, bx * 32 + tx] = T.ptx.fetch_register(32, "lanemask_eq")
