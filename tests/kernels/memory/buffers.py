# test: parse only
# Parameters, views, layouts, scopes, scalars.

@T.prim_func
def bufs(a: T.handle, b: T.handle, c: T.handle, d: T.handle, e: T.handle, F: T.Buffer((), "float32"), g: T.handle, ws: T.handle("float32"), h: T.handle):
    n = T.int32()
    s0 = T.int32()
    s1 = T.int32()
    eo = T.int32()
    A = T.match_buffer(a, (n, 4), "float32", strides=(s0, s1))
    B = T.match_buffer(b, (n*2,), "float32", elem_offset=eo)
    C = T.match_buffer(c, (n,), "float32", scope="shared", align=8)
    D = T.match_buffer(d, (16,), "float32x4", offset_factor=8)
    E = T.match_buffer(e, (16, 8), "int8", layout=T.TileLayout(T.S[(16,8):(1,16)]))
    G = T.match_buffer(g, (16, 8), layout=None)
    H = T.match_buffer(h, (T.int64(16), T.int64(8)))
    T.device_entry(); bx = T.cta_id([2]); tx = T.thread_id([32])
    W = T.decl_buffer((n, 8), "float32", data=ws)
    W2 = T.decl_buffer((n, 8), "float16", data=ws)
    W3 = T.decl_buffer((n, 8), "float32", data=ws, elem_offset=16)
    W4 = T.decl_buffer((n, 8), "float32", data=ws, byte_offset=16)
    W5 = T.decl_buffer((64,), "float32", data=ws, strides=(2,))
    W6 = T.decl_buffer((64,), "float32", data=A.data)
    W7 = T.decl_buffer((n,4), "float32", data=A.data)
    W8 = T.decl_buffer((16, 8), "float32", data=G.data)
    W9 = T.decl_buffer((8,16), "float32", data=G.data, layout=None)
    G1 = G.view(128)
    E1 = E.view(128)
    E3 = E.view(8, 16)
    E4 = E.view(8, 16, layout=T.TileLayout(T.S[(8,16):(1,8)]))
    E5 = E.permute(1, 0)
    E6 = E[0:4, 2:4]
    K = T.alloc_shared((16, 8), "float32")
    K1 = K.view(128)
    K2 = T.decl_buffer((128,), "float32", data=K.data)
    K3 = T.decl_buffer((128,), "float32", data=K.data, scope="shared")
    K4 = T.decl_buffer((64,), "float16", data=K.data)
    K5 = T.decl_buffer((64,), "float16", data=K.data, elem_offset=8)
    K6 = T.decl_buffer((64,), "float16", data=K.data, align=16)
    K7 = T.decl_buffer((16,8), "float32", data=K.data)
    K8 = K.permute(1,0)
    K9 = T.decl_buffer((8,16), "float32", data=K.data, layout=T.TileLayout(T.S[(8,16):(1,8)]))
    L = T.alloc_buffer((32, 8), "float32", scope="local", layout=T.TileLayout(T.S[(32, 8) : (1 @ laneid, 1)]))
    L1 = L.local(8)
    L2 = T.alloc_buffer((32, 8), "float32", scope="local", layout=T.TileLayout(T.S[(32, 8) : (1 @ laneid, 1)] + T.R[4: 1 @ warpid] + 3 ))
    M = T.alloc_buffer((32,), "float32")
    N = T.alloc_buffer((32,), "float32", scope="shared.dyn")
    P = T.alloc_buffer((32,), "float32", scope="shared", align=16)
    Q = T.alloc_buffer((32,), "float32", scope="local", align=16)
    R = T.alloc_buffer((32,), "float32", scope="warp")
    SS = T.alloc_shared((32,2), "float32", strides=(4,1))
    UU = T.alloc_shared((32,2), "float32", elem_offset=4)
    VV = T.alloc_shared((32,2), "float32", offset_factor=4)
    XX = T.alloc_shared((32,2), "float32", annotations={"a": 1})
    YY = T.decl_buffer((32,2), "float32", scope="shared")
    ZZ = T.alloc_scalar("int32", "global")
    sm = T.shared_scalar("int32")
    r: T.float32[4]
    r0: T.f32
    p: T.let = T.reinterpret("handle", T.ptr_byte_offset(A.data, 16, "float32"))
    pp: T.let[T.handle("float32")] = T.ptr_byte_offset(A.data, 16, "float32")
    PP = T.decl_buffer((4,), "float32", data=pp)
    ZZ = 1
    sm = 2
    r[0] = 1.0
    T.evaluate(T.address_of(r0))
    T.evaluate(T.address_of(sm))
    F[()] = 1.0

@T.prim_func
def bufs(a: T.handle, b: T.handle, E: T.Buffer((16,8), "int8", layout=T.TileLayout(T.S[(16,8):(1,16)])), Q: T.Buffer((16,16),"float32"), c: T.handle, d: T.handle, e: T.handle, f: T.handle):
    n = T.int32()
    s0 = T.int32()
    s1 = T.int32()
    eo = T.int32()
    q = T.int32()
    w = T.int32()
    A = T.match_buffer(a, (n, 4), "float32", strides=(s0, s1))
    B = T.match_buffer(b, (n,), "float32", strides=(s0,), elem_offset=eo)
    C = T.match_buffer(c, (q,), "float32", elem_offset=eo)
    D = T.match_buffer(d, (w*2,), "float32")
    F = T.match_buffer(e, (q,), "float32", elem_offset=eo*2)
    G = T.match_buffer(f, (4,), "float32", elem_offset=n)
    T.device_entry(); bx = T.cta_id([2]); tx = T.thread_id([32])
    K = T.alloc_shared((16, 8), "float32")
    T.evaluate(K.data)
    K1 = K.view(128)
    T.evaluate(K.data)
    K2 = T.decl_buffer((128,), "float32", data=K.data)
    K3 = T.decl_buffer((64,2), "float32", data=K1.data)
    K4 = T.decl_buffer((32,4), "float32", data=K3.data)
    T.evaluate(K.data)
    K5 = T.decl_buffer((4,32), "float32", data=K.data, layout=None)
    K6 = T.decl_buffer((32,4), "float32", data=K.data, layout=T.TileLayout(T.S[(32,4):(1,32)]))
    K7 = T.decl_buffer((8,16), "float32", data=K.data, layout=T.TileLayout(T.S[(16,8):(8,1)]))
    E1 = T.decl_buffer((128,), "int8", data=E.data)
    Q1 = Q.permute(1,0)
    Q2 = T.decl_buffer((16,16), "float32", data=Q.data, layout=T.TileLayout(T.S[(16,16):(1,16)]))
    Q3 = T.decl_buffer((4,64), "float32", data=Q2.data, layout=T.TileLayout(T.S[(16,16):(1,16)]))
    T.evaluate(s0 + eo + w)
    B[0] = 1.0
    x = T.alloc_local((1,), "float32")
    y = T.alloc_local((1,), "float32")
    x[0] = 1.0
    y[0] = x[0]
    if n == 3:
        z = T.alloc_local((1,), "float32")
        T.evaluate(z.data)
        u = T.alloc_local((1,), "float32")
        u[0] = u[0] + 1.0
        zz = T.decl_buffer((1,), "float32", data=u.data)
        zz[0] = 1.0
        zq = T.decl_buffer((1,), "float32", data=K.data)
        zq[0] = 1.0
        zw = T.decl_buffer((1,), "float32", data=K.data, layout=None)
        zw[0] = 1.0
        k9 = T.alloc_local((1,), "float32x4")
        k9[0] = T.Broadcast(T.float32(1), 4)
        k8 = T.alloc_local((1,), "float16")
        k8[0] = T.Cast("float16", x[0])
        k7 = T.alloc_local((1,), "bool")
        k7[0] = True
        k6 = T.alloc_local((T.int64(1),), "bool")
        k6[0] = True
        k5 = T.alloc_local((1,1), "bool")
        k5[0,0] = True
        k4 = T.alloc_local((), "bool")
        k4[()] = True
        k3 = T.alloc_buffer((1,), "int32")
        k3[0] = 1
        T.evaluate(T.address_of(k3[0]))
        T.evaluate(k3.ptr_to([0]))
        T.evaluate(T.tvm_access_ptr(T.type_annotation("float32"), x.data, 0, 16, 1))
    for i in range(4):
        z1: T.int32
        for j in T.vectorized(4):
            Q[i, j] = Q[i, j] + T.float32(1)
    cls: T.let = n + 1
    Module: T.let = n + 1
    Axis: T.let = n + 1
    S: T.let = n + 1
    R: T.let = n + 1
    Tx: T.let = n + 1
    main: T.let = n + 1
    metadata: T.let = n + 1
    T.evaluate(T.Cast("int32", n) + T.Cast("int32", T.float32(3)) + T.Cast("int32", T.int64(3)))
    T.evaluate(T.Add(1, 2))
    T.evaluate(T.Mul(T.Add(1, 2), n))
    T.evaluate(T.Sub(n, T.int32(3)))
    T.evaluate(T.LT(1, 2))
    T.evaluate(T.And(T.bool(True), T.bool(False)))
    T.evaluate(T.Not(T.bool(True)))
    T.evaluate(T.FloorDiv(7, 2))
    T.evaluate(T.min(7, 2))
    T.evaluate(T.Select(True, 1, 2))
    T.evaluate(T.Cast("float32", 1))
    T.evaluate(T.Div(7, 2))
    T.evaluate(T.Add(1.0, 2.0))
    T.evaluate(T.Mod(7,2))
    T.evaluate(T.Div(1.0, 2.0))
    T.evaluate(T.EQ(n, 2) == (n == 1))
    T.evaluate(T.float32(2) - (-T.float32(3)))
    T.evaluate(n - (-3))
    T.evaluate(T.Mul(n, T.Mul(n,n)) + T.Mul(T.Mul(n,n),n))
    T.evaluate(T.Cast("int32", n > 3 ) > 3)
    T.evaluate(T.Broadcast(T.bool(True),4))
    T.evaluate(T.Ramp(0,1,4) + T.Broadcast(1,4))


# An annotation declares strides and offsets of the first extent's dtype, and nothing but names: others are matched in the body.
@T.prim_func
def declared_apart(a: T.handle, b: T.handle, c: T.handle):
    n = T.int16()
    m, k = T.int32(), T.int64()
    A = T.match_buffer(a, (n,), "float32", elem_offset=m)
    B = T.match_buffer(b, (n, 4), "float32", strides=(k, 1))
    C = T.match_buffer(c, (8,), "float32", elem_offset=m * 4)
    T.device_entry()
    bx = T.cta_id([n])
    tx = T.thread_id([1])
    C[0] = A[bx] + B[bx, 0]
