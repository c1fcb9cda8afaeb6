# test: parse
# test: cuda sm_90a

TRACER = r"""
__device__ __forceinline__ unsigned int tvm_builtin_iket_official_event(int event) { return event; }
"""

@T.prim_func
def events(A_ptr: T.handle):
    A = T.match_buffer(A_ptr, (32,), "uint32")
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    T.cuda.iket.mark("begin")
    T.cuda.iket.mark("value", tx)
    token: T.uint32 = T.cuda.iket.range_start("load")
    T.cuda.iket.range_end(token)
    T.cuda.iket.range_push("store", 1)
    A[tx] = T.cuda.iket.sentinel_token("none") + T.cuda.sm100_2sm_leader_smem_addr(A.ptr_to([0]))
    T.cuda.iket.range_pop()
    A[tx] = T.cuda.iket.official_event(7, TRACER)
