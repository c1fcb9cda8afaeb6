# test: cuda sm_90a
# A loop that begins with an atomic operation for which shared memory has no instruction: ptxas writes a loop of retries, which must
# not be merged with the loop of the kernel.
from tvm.script import tirx as T


# sim: of_float32
#   idx: int32[4] = 10 * i
#   out: float32[4x64] = 0 -> 64 * (i + 1) + 11 * i
@T.prim_func
def of_float32(idx: T.Buffer((4,), "int32"), out: T.Buffer((4, 64), "float32")):
    T.device_entry()
    T.cta_id([1])
    t = T.thread_id([64])
    total = T.alloc_shared((1,), "float32")
    flag = T.alloc_shared((1,), "int32")
    if t == 0:
        total[0] = T.float32(0)
    T.cuda.cta_sync()
    for i in range(4):
        T.cuda.atomic_add(total.ptr_to([0]), T.float32(1))
        T.cuda.cta_sync()
        if t == 14:
            flag[0] = i + idx[i]
        T.cuda.cta_sync()
        out[i, t] = total[0] + T.cast(flag[0], "float32")
        T.cuda.cta_sync()


# sim: of_int64
#   idx: int32[4] = 10 * i
#   out: int64[4x64] = 0 -> 64 * (i + 1) + 11 * i
@T.prim_func
def of_int64(idx: T.Buffer((4,), "int32"), out: T.Buffer((4, 64), "int64")):
    T.device_entry()
    T.cta_id([1])
    t = T.thread_id([64])
    total = T.alloc_shared((1,), "int64")
    flag = T.alloc_shared((1,), "int32")
    if t == 0:
        total[0] = T.int64(0)
    T.cuda.cta_sync()
    for i in range(4):
        T.cuda.atomic_add(total.ptr_to([0]), T.int64(1))
        T.cuda.cta_sync()
        if t == 14:
            flag[0] = i + idx[i]
        T.cuda.cta_sync()
        out[i, t] = total[0] + T.cast(flag[0], "int64")
        T.cuda.cta_sync()


# An atomic operation on global memory is one instruction.
# sim: in_global_memory
#   total: float32[1] = 0 -> 128
@T.prim_func
def in_global_memory(total: T.Buffer((1,), "float32")):
    T.device_entry()
    T.cta_id([1])
    T.thread_id([64])
    for _ in range(2):
        T.cuda.atomic_add(total.ptr_to([0]), T.float32(1))
        T.cuda.cta_sync()


# sim: by_instruction
#   out: float32[4x64] = 0 -> 64 * (i + 1)
@T.prim_func
def by_instruction(out: T.Buffer((4, 64), "float32")):
    T.device_entry()
    T.cta_id([1])
    t = T.thread_id([64])
    total = T.alloc_shared((1,), "float32")
    if t == 0:
        total[0] = T.float32(0)
    T.cuda.cta_sync()
    for i in range(4):
        T.ptx.red_scalar(total.ptr_to([0]), T.float32(1), op="add", ptx_type="f32", space="shared")
        T.cuda.cta_sync()
        out[i, t] = total[0]
        T.cuda.cta_sync()
