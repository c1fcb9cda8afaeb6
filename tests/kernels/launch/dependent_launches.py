# Programmatic dependent launches: what the grid before does is there from griddepcontrol.wait on.
from tvm.script import tirx as T


# sim: waits
#   A: int32[256] = 0 -> i
#   B: int32[256] = 0 -> 256 - i
@T.prim_func
def waits(A: T.Buffer((256,), "int32"), B: T.Buffer((256,), "int32")):
    with T.launch_thread("blockIdx.x", 4) as bx, T.launch_thread("threadIdx.x", 64) as tx:
        T.ptx.griddepcontrol.launch_dependents()
        A[bx * 64 + tx] = bx * 64 + tx
    with T.attr({"tirx.use_programtic_dependent_launch": 1}):
        with T.launch_thread("blockIdx.x", 4) as bx, T.launch_thread("threadIdx.x", 64) as tx:
            T.ptx.griddepcontrol.wait()
            B[bx * 64 + tx] = A[255 - bx * 64 - tx] + 1

# variant: does_not_wait of waits
#   without: "T.ptx.griddepcontrol.wait()"
#   fault: no griddepcontrol.wait orders the two

# The first grid does not even ask for its dependents.
# variant: does_not_wait_for_the_end of waits
#   without: "T.ptx.griddepcontrol.launch_dependents()"
#   without: "T.ptx.griddepcontrol.wait()"
#   fault: no griddepcontrol.wait orders the two


# sim: waits_too_late
#   A: int32[256] = 0
#   B: int32[256] = 0
#   fault: no griddepcontrol.wait orders the two
@T.prim_func
def waits_too_late(A: T.Buffer((256,), "int32"), B: T.Buffer((256,), "int32")):
    with T.launch_thread("blockIdx.x", 4) as bx, T.launch_thread("threadIdx.x", 64) as tx:
        A[bx * 64 + tx] = bx * 64 + tx
        T.ptx.griddepcontrol.launch_dependents()
    with T.attr({"tirx.use_programtic_dependent_launch": 1}):
        with T.launch_thread("blockIdx.x", 4) as bx, T.launch_thread("threadIdx.x", 64) as tx:
            first: T.int32 = A[255 - bx * 64 - tx]
            T.ptx.griddepcontrol.wait()
            B[bx * 64 + tx] = first + 1


# What the first grid does not touch may be read before.
# sim: reads_weights_early
#   A: int32[256] = 0 -> i
#   W: int32[256] = i * 7
#   B: int32[256] = 0 -> 255 - i + i * 7
@T.prim_func
def reads_weights_early(A: T.Buffer((256,), "int32"), W: T.Buffer((256,), "int32"), B: T.Buffer((256,), "int32")):
    with T.launch_thread("blockIdx.x", 4) as bx, T.launch_thread("threadIdx.x", 64) as tx:
        T.ptx.griddepcontrol.launch_dependents()
        A[bx * 64 + tx] = bx * 64 + tx
    with T.attr({"tirx.use_programtic_dependent_launch": 1}):
        with T.launch_thread("blockIdx.x", 4) as bx, T.launch_thread("threadIdx.x", 64) as tx:
            w: T.int32 = W[bx * 64 + tx]
            T.ptx.griddepcontrol.wait()
            B[bx * 64 + tx] = A[255 - bx * 64 - tx] + w


# What the first grid reads may not be written before.
# sim: writes_early
#   A: int32[256] = i
#   B: int32[256] = 0
#   fault: which the previous grid, which may still be running, reads
@T.prim_func
def writes_early(A: T.Buffer((256,), "int32"), B: T.Buffer((256,), "int32")):
    with T.launch_thread("blockIdx.x", 4) as bx, T.launch_thread("threadIdx.x", 64) as tx:
        T.ptx.griddepcontrol.launch_dependents()
        B[bx * 64 + tx] = A[255 - bx * 64 - tx]
    with T.attr({"tirx.use_programtic_dependent_launch": 1}):
        with T.launch_thread("blockIdx.x", 4) as bx, T.launch_thread("threadIdx.x", 64) as tx:
            A[bx * 64 + tx] = 0
            T.ptx.griddepcontrol.wait()


# One thread waits and the others have met it.
# sim: one_waits
#   A: int32[256] = 0 -> i
#   B: int32[256] = 0 -> 256 - i
@T.prim_func
def one_waits(A: T.Buffer((256,), "int32"), B: T.Buffer((256,), "int32")):
    with T.launch_thread("blockIdx.x", 4) as bx, T.launch_thread("threadIdx.x", 64) as tx:
        T.ptx.griddepcontrol.launch_dependents()
        A[bx * 64 + tx] = bx * 64 + tx
    with T.attr({"tirx.use_programtic_dependent_launch": 1}):
        with T.launch_thread("blockIdx.x", 4) as bx, T.launch_thread("threadIdx.x", 64) as tx:
            if tx == 0:
                T.ptx.griddepcontrol.wait()
            T.cuda.cta_sync()
            B[bx * 64 + tx] = A[255 - bx * 64 - tx] + 1

# The others have not.
# variant: one_waits_alone of one_waits
#   without: "T.cuda.cta_sync()"
#   fault: no griddepcontrol.wait orders the two


# A bulk copy is issued before the wait.
# sim: copies_early
#   A: float32[64] = 0
#   B: float32[64] = 0
#   fault: no griddepcontrol.wait orders the two
@T.prim_func
def copies_early(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    with T.launch_thread("blockIdx.x", 1) as bx, T.launch_thread("threadIdx.x", 64) as tx:
        T.ptx.griddepcontrol.launch_dependents()
        A[tx] = T.cast(tx, "float32")
    with T.attr({"tirx.use_programtic_dependent_launch": 1}):
        with T.launch_thread("blockIdx.x", 1) as bx, T.launch_thread("threadIdx.x", 64) as tx:
            S = T.alloc_buffer((64,), "float32", scope="shared", align=128)
            bar = T.alloc_buffer((1,), "uint64", scope="shared")
            if tx == 0:
                T.ptx.mbarrier.init(bar.ptr_to([0]), 1)
                T.ptx.fence.mbarrier_init()
                T.ptx.mbarrier.arrive.expect_tx(bar.ptr_to([0]), 256)
                T.ptx.cp_async_bulk_g2s_cta(S.ptr_to([0]), A.ptr_to([0]), 256, bar.ptr_to([0]))
            T.ptx.griddepcontrol.wait()
            T.cuda.cta_sync()
            T.ptx.mbarrier.try_wait(bar.ptr_to([0]), 0)
            B[tx] = S[tx]


# Without the attribute the second grid starts when the first has ended.
# sim: in_order
#   A: int32[256] = 0 -> i
#   B: int32[256] = 0 -> 256 - i
@T.prim_func
def in_order(A: T.Buffer((256,), "int32"), B: T.Buffer((256,), "int32")):
    with T.launch_thread("blockIdx.x", 4) as bx, T.launch_thread("threadIdx.x", 64) as tx:
        T.ptx.griddepcontrol.launch_dependents()
        A[bx * 64 + tx] = bx * 64 + tx
    with T.launch_thread("blockIdx.x", 4) as bx, T.launch_thread("threadIdx.x", 64) as tx:
        B[bx * 64 + tx] = A[255 - bx * 64 - tx] + 1
