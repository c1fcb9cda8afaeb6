# test: compile sm_90a
# test: compile sm_100a
# Parameters and variables named like types and functions that the CUDA text uses.
from tvm.script import tirx as T


# sim: vector_types
#   float4: float32[64] = i
#   half2: float16[64] = i
#   uint4: uint32[64] = 0 -> i * 2
#   int2: float32[64] = 0 -> i * 3
#   make_float4 = 2.0
@T.prim_func
def vector_types(
    float4: T.Buffer((64,), "float32"),
    half2: T.Buffer((64,), "float16"),
    uint4: T.Buffer((64,), "uint32"),
    int2: T.Buffer((64,), "float32"),
    make_float4: T.float32,
):
    T.device_entry()
    dim3 = T.cta_id([1])
    uchar4 = T.thread_id([16])
    __shared__ = T.alloc_shared((64,), "float32")
    float2 = T.alloc_local((4,), "float32")
    ulonglong2: T.let = uchar4 * 4
    double: T.float32 = T.float32(2)
    for ushort2 in T.vectorized(4):
        float2[ushort2] = float4[ulonglong2 + ushort2] * make_float4
    for i in T.vectorized(4):
        __shared__[ulonglong2 + i] = float2[i]
    for longlong4 in T.vectorized(4):
        int2[ulonglong2 + longlong4] = __shared__[ulonglong2 + longlong4] + T.cast(half2[ulonglong2 + longlong4], "float32")
    for nv_bfloat162 in T.vectorized(4):
        uint4[ulonglong2 + nv_bfloat162] = T.cast(half2[ulonglong2 + nv_bfloat162], "uint32") * T.cast(double, "uint32")


# A tensor map, narrow floats and pairs, and a kernel that is called as a type.
# sim: float2
#   CUtensorMap: float8_e4m3fn[64] = i % 4
#   bfloat162: bfloat16[64] = i % 8
#   uintptr_t: float32[64] = 0 -> i % 4 + i % 8
@T.prim_func
def float2(
    CUtensorMap: T.Buffer((64,), "float8_e4m3fn"),
    bfloat162: T.Buffer((64,), "bfloat16"),
    uintptr_t: T.Buffer((64,), "float32"),
):
    T.device_entry()
    int3 = T.cta_id([1])
    half = T.thread_id([32])
    __nv_bfloat162 = T.alloc_local((2,), "bfloat16")
    for i in T.vectorized(2):
        __nv_bfloat162[i] = bfloat162[half * 2 + i]
    for __half2 in T.unroll(2):
        uintptr_t[half * 2 + __half2] = T.cast(CUtensorMap[half * 2 + __half2], "float32") + T.cast(__nv_bfloat162[__half2], "float32")
