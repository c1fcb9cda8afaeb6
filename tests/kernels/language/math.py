# test: cuda sm_90a
# test: sim
# Each function of a number, in each dtype that has it.
from tvm.script import tirx as T


def exponentials(dtype):
    @T.prim_func
    def kernel(A: T.Buffer((8,), dtype), B: T.Buffer((11, 8), dtype)):
        T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([8])
        x: T.let = A[tx]
        B[0, tx] = T.exp(x)
        B[1, tx] = T.exp2(x)
        B[2, tx] = T.exp10(x)
        B[3, tx] = T.log(x)
        B[4, tx] = T.log2(x)
        B[5, tx] = T.log10(x)
        B[6, tx] = T.log1p(x)
        B[7, tx] = T.sqrt(x)
        B[8, tx] = T.rsqrt(x)
        B[9, tx] = T.sigmoid(x)
        B[10, tx] = T.erf(x)

    return kernel


def trigonometry(dtype):
    @T.prim_func
    def kernel(A: T.Buffer((8,), dtype), B: T.Buffer((6, 8), dtype)):
        T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([8])
        x: T.let = A[tx]
        B[0, tx] = T.sin(x)
        B[1, tx] = T.cos(x)
        B[2, tx] = T.tan(x)
        B[3, tx] = T.asin(x)
        B[4, tx] = T.acos(x)
        B[5, tx] = T.atan(x)

    return kernel


def hyperbolic(dtype):
    @T.prim_func
    def kernel(A: T.Buffer((8,), dtype), B: T.Buffer((5, 8), dtype)):
        T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([8])
        x: T.let = A[tx]
        B[0, tx] = T.sinh(x)
        B[1, tx] = T.cosh(x)
        B[2, tx] = T.tanh(x)
        B[3, tx] = T.asinh(x)
        B[4, tx] = T.atanh(x)

    return kernel


def areacosine(dtype):
    @T.prim_func
    def kernel(A: T.Buffer((8,), dtype), B: T.Buffer((1, 8), dtype)):
        T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([8])
        x: T.let = A[tx]
        B[0, tx] = T.acosh(x)

    return kernel


def rounding(dtype):
    @T.prim_func
    def kernel(A: T.Buffer((8,), dtype), B: T.Buffer((7, 8), dtype)):
        T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([8])
        x: T.let = A[tx]
        B[0, tx] = T.floor(x)
        B[1, tx] = T.ceil(x)
        B[2, tx] = T.trunc(x)
        B[3, tx] = T.round(x)
        B[4, tx] = T.nearbyint(x)
        B[5, tx] = T.abs(x)
        B[6, tx] = T.fabs(x)

    return kernel


def pairs(dtype):
    @T.prim_func
    def kernel(A: T.Buffer((8,), dtype), B: T.Buffer((8,), dtype), C: T.Buffer((7, 8), dtype)):
        T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([8])
        C[0, tx] = T.pow(A[tx], B[tx])
        C[1, tx] = T.fmod(A[tx], B[tx])
        C[2, tx] = T.hypot(A[tx], B[tx])
        C[3, tx] = T.atan2(A[tx], B[tx])
        C[4, tx] = T.copysign(A[tx], B[tx])
        C[5, tx] = T.max(A[tx], B[tx])
        C[6, tx] = T.min(A[tx], B[tx])

    return kernel


def pairs_but_pow(dtype):
    @T.prim_func
    def kernel(A: T.Buffer((8,), dtype), B: T.Buffer((8,), dtype), C: T.Buffer((6, 8), dtype)):
        T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([8])
        C[0, tx] = T.fmod(A[tx], B[tx])
        C[1, tx] = T.hypot(A[tx], B[tx])
        C[2, tx] = T.atan2(A[tx], B[tx])
        C[3, tx] = T.copysign(A[tx], B[tx])
        C[4, tx] = T.max(A[tx], B[tx])
        C[5, tx] = T.min(A[tx], B[tx])

    return kernel


def fused(dtype):
    @T.prim_func
    def kernel(A: T.Buffer((8,), dtype), B: T.Buffer((8,), dtype), C: T.Buffer((2, 8), dtype), E: T.Buffer((8,), "int32")):
        T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([8])
        C[0, tx] = T.fma(A[tx], B[tx], A[tx])
        C[1, tx] = T.ldexp(A[tx], E[tx])

    return kernel


def neighbours(dtype):
    @T.prim_func
    def kernel(A: T.Buffer((8,), dtype), B: T.Buffer((8,), dtype), C: T.Buffer((8,), dtype)):
        T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([8])
        C[tx] = T.nextafter(A[tx], B[tx])

    return kernel


def classes(dtype):
    @T.prim_func
    def kernel(A: T.Buffer((8,), dtype), B: T.Buffer((3, 8), "bool")):
        T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([8])
        B[0, tx] = T.isnan(A[tx])
        B[1, tx] = T.isinf(A[tx])
        B[2, tx] = T.isfinite(A[tx])

    return kernel


exponentials_f16 = exponentials("float16")
trigonometry_f16 = trigonometry("float16")
hyperbolic_f16 = hyperbolic("float16")
areacosine_f16 = areacosine("float16")
rounding_f16 = rounding("float16")
pairs_f16 = pairs("float16")
fused_f16 = fused("float16")
classes_f16 = classes("float16")
exponentials_bf16 = exponentials("bfloat16")
trigonometry_bf16 = trigonometry("bfloat16")
hyperbolic_bf16 = hyperbolic("bfloat16")
areacosine_bf16 = areacosine("bfloat16")
rounding_bf16 = rounding("bfloat16")
pairs_bf16 = pairs_but_pow("bfloat16")
fused_bf16 = fused("bfloat16")
classes_bf16 = classes("bfloat16")
exponentials_f32 = exponentials("float32")
trigonometry_f32 = trigonometry("float32")
hyperbolic_f32 = hyperbolic("float32")
areacosine_f32 = areacosine("float32")
rounding_f32 = rounding("float32")
pairs_f32 = pairs("float32")
fused_f32 = fused("float32")
neighbours_f32 = neighbours("float32")
classes_f32 = classes("float32")
exponentials_f64 = exponentials("float64")
trigonometry_f64 = trigonometry("float64")
hyperbolic_f64 = hyperbolic("float64")
areacosine_f64 = areacosine("float64")
rounding_f64 = rounding("float64")
pairs_f64 = pairs("float64")
fused_f64 = fused("float64")
neighbours_f64 = neighbours("float64")
classes_f64 = classes("float64")
