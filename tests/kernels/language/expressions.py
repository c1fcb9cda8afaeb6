# test: parse only
# Operators, parentheses, constants, calls, slices.

@T.prim_func
def exprs(A: T.Buffer((256,), "float32"), H: T.Buffer((256,), "float16"), I: T.Buffer((256,), "int64"), U: T.Buffer((256,), "uint8"), V: T.Buffer((64,), "float32x4"), Bo: T.Buffer((64,), "bool"), n: T.int32, m: T.int32, l: T.int64, f: T.float32, d: T.float64, b: T.bool, c: T.bool, p: T.handle("float32")):
    T.device_entry(); bx = T.cta_id([2]); tx = T.thread_id([32])
    z: T.int32 = 3
    A[n - (m - 1)] = f * (f + 1.0)
    A[(n - m) - 1] = (f * f) / (f * f) / f
    A[n * (m * 2)] = f / (f / f)
    A[n // m % 2 * 3] = -f
    A[n // (m % 2) * 3] = f
    A[-n] = T.float32(-1.5)
    A[-5 + n] = f
    A[n + -5] = f
    A[n - 5] = T.float32(1e20)
    A[n * -5] = T.float32(1e-20)
    A[n] = T.float32(0.1)
    A[n] = T.float32(3.14159)
    A[n] = T.float32(16777216.0)
    A[n] = T.float32(1e10)
    A[n] = T.float32("nan")
    A[n] = T.float32("-inf")
    A[n] = T.float32(3)
    H[n] = T.float16(0.1)
    H[n] = T.float16("inf")
    A[n] = T.Cast("float32", d + 0.1)
    I[n] = T.int64(5) + l * 3
    I[n] = T.Cast("int64", n) + T.int64(-7)
    U[n] = T.uint8(200) + T.Cast("uint8", n)
    V[0] = V[1] + T.Broadcast(T.float32(1), 4)
    V[2] = T.Broadcast(f, 4) * V[1]
    Bo[0] = T.bool(True)
    Bo[1] = False
    Bo[2] = n < m and (b or c) and not b
    Bo[2] = (n < m) == b
    Bo[2] = b == (n < m)
    Bo[3] = not (n < m)
    Bo[3] = not (b and c)
    Bo[3] = not b == c
    Bo[3] = b or c and b
    Bo[3] = (b or c) and b
    Bo[3] = (b or c) or b
    Bo[3] = b or (c or b)
    A[T.Ramp(n, 2, 4)] = T.Broadcast(f, 4)
    A[T.Ramp(n, 1, 4)] = T.Broadcast(f, 4)
    A[T.Ramp(n * 4, 1, 4)] = A[T.Ramp(4, 1, 4)]
    A[T.Ramp(0, 1, 4)] = A[T.Ramp(4, 1, 4)]
    A[T.Ramp(0, 3, 4)] = A[T.Ramp(n, m, 4)]
    A[T.Broadcast(n, 4)] = A[T.Ramp(n, 1, 4)]
    A[n] = T.Let(f + 1.0, where={f: T.float32(3)})
    A[n] = T.Shuffle([A[T.Ramp(n, 1, 4)]], [2])
    A[n] = T.Cast("float32", T.Div(l, T.int64(3))) + T.Cast("float32", T.Mod(n, 3)) + T.Cast("float32", T.floordiv(n, 3)) + T.Cast("float32", T.truncdiv(n, m))
    A[n] = T.Cast("float32", T.min(n, m) + T.max(n, 3))
    A[n] = T.if_then_else(T.likely(n < m), f, 0.0)
    A[n] = T.Select(b, f, T.float32(0))
    A[n] = T.abs(f) + T.pow(f, 2.0) + T.exp2(f) + T.sigmoid(f) + T.fma(f, f, f) + T.erf(f) + T.round(f) + T.nearbyint(f) + T.trunc(f) + T.floor(f) + T.ceil(f)
    A[n] = T.call_extern("float32", "fn", f, "str", T.address_of(A[0]))
    A[n] = T.call_pure_extern("float32", "fn", f)
    T.evaluate(T.call_extern("void", "fn", f))
    T.call_extern("int32", "fn", A.access_ptr("rw"), A.access_ptr("r", offset=3))
    T.call_extern("int32", "fn", T.tvm_access_ptr(T.type_annotation("float32"), A.data, 0, 16, 1), z)
    A[n] = T.reinterpret("float32", n)
    I[n] = T.Cast("int64", T.reinterpret("uint32", f))
    z = z + n
    A[z] = T.cuda.ldg(A.ptr_to([n]), "float32")
    T.cuda.printf("%d\n", n)
    A[0] = T.Cast("float32", T.popcount(n) + T.clz(n) + (n >> 2) + (n << m))
    A[1] = T.Cast("float32", n & m)
    A[1] = T.Cast("float32", T.Cast("int64", n) + l)
    T.print_buffer(A.data, "float32", False, False, 1, (256,))
    A[2] = T.isnan(f)
    T.cuda.trap_when_assert_failed(n < m)
    q: T.let = T.ptr_byte_offset(A.data, 16, "float32")
    q2: T.let = T.handle_add_byte_offset(A.data, 16)
    A[3] = T.cuda.warp_reduce(f, "sum", 32)
    T.tvm_storage_sync("shared")
    A[4] = T.Cast("float32", T.cuda.ballot_sync(T.uint32(0xFFFFFFFF), n))
    T.assume(n < m)
    A[5] = T.cast(T.undef(), "float32")
    A[6] = T.Cast("float32", T.isnullptr(p))
    Bo[4] = T.isnullptr(p)
