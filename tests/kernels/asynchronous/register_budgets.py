# `setmaxnreg`: the warps of a block share the registers that it was launched with.
from tvm.script import tirx as T


# 384 threads have 168 each: two warpgroups take what the third returns.
# sim: three_roles
#   B: int32[384] = 0 -> i
@T.prim_func
def three_roles(B: T.Buffer((384,), "int32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([384])
    if tx < 128:
        T.ptx.setmaxnreg(False, 40)
    else:
        T.ptx.setmaxnreg(True, 232)
    B[tx] = tx

# variant: eight_too_many of three_roles
#   replace: "(False, 40)" -> "(False, 48)"
#   fault: ask for 65536 registers together, and the block has 64512, 168 for each thread

# A warpgroup that does not ask keeps its registers.
# variant: a_role_that_does_not_ask of three_roles
#   replace: "        T.ptx.setmaxnreg(False, 40)" -> "        B[tx] = 0"
#   fault: (4 of them keep the 168 for each thread that they were launched with)

# Two blocks shall fit in a multiprocessor: 80 for each thread.
# variant: two_blocks of three_roles
#   replace: "bx = T.cta_id([1])" -> 'T.attr({"tirx.launch_bounds_min_blocks_per_sm": 2})\n    bx = T.cta_id([1])'
#   fault: and the block has 30720, 80 for each thread


# Back to more: the warps of a warpgroup meet between two requests.
# sim: there_and_back
#   B: int32[128] = 0 -> i
@T.prim_func
def there_and_back(B: T.Buffer((128,), "int32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([128])
    T.ptx.setmaxnreg(False, 88)
    T.cuda.warpgroup_sync(1)
    T.ptx.setmaxnreg(True, 232)
    B[tx] = tx

# variant: there_and_back_alone of there_and_back
#   without: "T.cuda.warpgroup_sync(1)"
#   fault: the warps of a warpgroup synchronize between two of them
