# test: parse
# test: cuda sm_90a

SQUARE = r"""
__device__ __forceinline__ float shared_square(float x) { return x * x; }
"""
BOTH = SQUARE + r"""
__device__ __forceinline__ float plus(float x, float y) { return shared_square(x) + y; }
__device__ __forceinline__ float minus(float x, float y) { return shared_square(x) - y; }
"""
SCALE = r"""
template <int N>
__device__ __forceinline__ float scale(float x) { return x * N; }
"""

@T.prim_func
def sources(A: T.Buffer((32,), "float32"), B: T.Buffer((32,), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    a: T.float32 = T.cuda.func_call("plus", A[tx], B[tx], source_code=BOTH, return_type="float32")
    b: T.float32 = T.cuda.func_call("minus", A[tx], B[tx], source_code=BOTH, return_type="float32")
    c: T.float32 = T.cuda.func_call("scale<3>", a, source_code=SCALE, return_type="float32")
    d: T.float32 = T.cuda.func_call("scale<5>", b, source_code=SCALE, return_type="float32")
    B[tx] = c + d
