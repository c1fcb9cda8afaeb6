# The address behind a buffer's end may be computed, and not be accessed.
from tvm.script import tirx as T


# sim: from_the_end
#   A: float32[8x16] = i * 16 + j
#   B: float32[16] = 0 -> A[7][i]
@T.prim_func
def from_the_end(A: T.Buffer((8, 16), "float32"), B: T.Buffer((16,), "float32")):
    T.device_entry()
    T.cta_id([1])
    tx = T.thread_id([16])
    end: T.let = A.ptr_to([8, 0])
    last: T.let = T.ptr_byte_offset(end, (tx - 16) * 4, "float32")
    B[tx] = T.cuda.ldg(last, "float32")

# The tensor's last row and one more.
# variant: over_the_end of from_the_end
#   replace: "(tx - 16)" -> "(tx - 15)"
#   fault: reads through `last` bytes 512 to 516 of `A`, whose allocation has 512


# sim: copied_from_the_end
#   A: float32[8x16] = i * 16 + j
#   B: float32[16] = 0
#   fault: reads bytes 512 to 528 of `A`, whose allocation has 512
@T.prim_func
def copied_from_the_end(A: T.Buffer((8, 16), "float32"), B: T.Buffer((16,), "float32")):
    T.device_entry()
    T.cta_id([1])
    tx = T.thread_id([4])
    s = T.alloc_shared((16,), "float32", align=16)
    T.ptx.cp_async(s.ptr_to([tx * 4]), A.ptr_to([8, tx * 4]), 16)
    T.ptx.cp_async.commit_group()
    T.ptx.cp_async.wait_group(0)
    for i in T.unroll(4):
        B[tx * 4 + i] = s[tx * 4 + i]
