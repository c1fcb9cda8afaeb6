# test: cuda sm_80
# test: compile sm_80
# A GPU before Hopper starts a kernel when the previous one has ended: a kernel for such GPUs leaves the two instructions out there.
from tvm.script import tirx as T


# sim: next_number
#   A: int32[256] = i
#   B: int32[256] = 0 -> 256 - i
@T.prim_func
def next_number(A: T.Buffer((256,), "int32"), B: T.Buffer((256,), "int32")):
    T.device_entry()
    T.attr({"tirx.use_programtic_dependent_launch": True})
    bx = T.cta_id([4])
    tx = T.thread_id([64])
    T.ptx.griddepcontrol.launch_dependents()
    T.ptx.griddepcontrol.wait()
    B[bx * 64 + tx] = A[255 - bx * 64 - tx] + 1
