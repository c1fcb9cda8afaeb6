# test: target sm_100a
# Multicast windows: one address for the memory of all ranks, and the fence between a window and the memory's own address.
from tvm.script import tirx as T


# All ranks' rows are summed by a load through the window.
# sim: sums
#   ranks: 4
#   seeds: 4
#   A: float32[4] = (rank + 1) * i -> (rank + 1) * i + 1
#   B: float32[4] = 0 -> 10 * i + 4
@T.prim_func
def sums(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    v = T.alloc_local((4,), "float32")
    if tx == 0:
        for i in range(4):
            A[i] = A[i] + T.float32(1)
        T.ptx.fence.proxy.alias()
        T.nvshmem.barrier_all()
        T.ptx.multimem.ld_reduce.weak.global_.add.v4.f32(v[0], v[1], v[2], v[3], T.nvshmem.mc_ptr(A.ptr_to([0])))
        for i in range(4):
            B[i] = v[i]


# sim: sums_without_fence
#   ranks: 2
#   A: float32[4] = 0
#   B: float32[4] = 0
#   fault: no fence.proxy.alias comes between the two
@T.prim_func
def sums_without_fence(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    v = T.alloc_local((4,), "float32")
    if tx == 0:
        for i in range(4):
            A[i] = T.float32(1)
        T.nvshmem.barrier_all()
        T.ptx.multimem.ld_reduce.weak.global_.add.v4.f32(v[0], v[1], v[2], v[3], T.nvshmem.mc_ptr(A.ptr_to([0])))
        for i in range(4):
            B[i] = v[i]


# The window is used again: rank 0 stores to all, all read their own memory behind the fence; then the same once more.
# sim: reused
#   ranks: 2
#   seeds: 4
#   A: float32[2] = 0 -> 5
#   B: float32[4] = 0 -> [3, 3, 5, 5][i]
@T.prim_func
def reused(A: T.Buffer((2,), "float32"), B: T.Buffer((4,), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    if tx == 0:
        for turn in range(2):
            if T.nvshmem.my_pe() == 0:
                for i in range(2):
                    T.ptx.multimem.st.weak.global_.f32(T.nvshmem.mc_ptr(A.ptr_to([i])), T.float32(3) + T.float32(2) * T.cast(turn, "float32"))
            T.nvshmem.barrier_all()
            T.ptx.fence.proxy.alias()
            for i in range(2):
                B[turn * 2 + i] = A[i]
            T.nvshmem.barrier_all()


# sim: reused_without_fence
#   ranks: 2
#   A: float32[2] = 0
#   B: float32[4] = 0
#   fault: the multicast window
@T.prim_func
def reused_without_fence(A: T.Buffer((2,), "float32"), B: T.Buffer((4,), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    if tx == 0:
        for turn in range(2):
            if T.nvshmem.my_pe() == 0:
                for i in range(2):
                    T.ptx.multimem.st.weak.global_.f32(T.nvshmem.mc_ptr(A.ptr_to([i])), T.float32(3))
            T.nvshmem.barrier_all()
            for i in range(2):
                B[turn * 2 + i] = A[i]
            T.nvshmem.barrier_all()


# A barrier of the kernel's own: all count in all ranks' counters through the window, and poll at their own address.
# sim: arrivals
#   ranks: 3
#   seeds: 6
#   A: int32[1] = 0 -> rank + 1
#   N: uint32[1] = 0 -> 3
#   B: int32[3] = 0 -> i + 1
@T.prim_func
def arrivals(A: T.Buffer((1,), "int32"), N: T.Buffer((1,), "uint32"), B: T.Buffer((3,), "int32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    if tx == 0:
        A[0] = T.nvshmem.my_pe() + 1
        T.ptx.multimem.red.release.sys.global_.add.u32(T.nvshmem.mc_ptr(N.ptr_to([0])), T.uint32(1))
        seen: T.uint32 = T.uint32(0)
        while seen != T.uint32(3):
            T.ptx.ld.acquire.sys.global_.u32(seen, N.ptr_to([0]))
        for r in range(3):
            there = T.decl_buffer((1,), "int32", data=T.nvshmem.ptr(A.ptr_to([0]), r))
            B[r] = there[0]


# The window itself is an argument. 16-bit sums are rounded once with `.acc::f32`.
# sim: halves
#   ranks: 4
#   H: float16[8] = 2048 if rank == 0 else 1
#   B: float16[8] = 0 -> 2051 +- 1e-3
#   W = "H@*"
@T.prim_func
def halves(H: T.Buffer((8,), "float16"), B: T.Buffer((8,), "float16"), W: T.uint64):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    v = T.alloc_local((4,), "uint32")
    if tx == 0:
        T.ptx.multimem.ld_reduce.weak.global_.add.acc__f32.v4.f16x2(v[0], v[1], v[2], v[3], T.reinterpret("handle", W))
        out = T.decl_buffer((4,), "uint32", data=B.data)
        for i in range(4):
            out[i] = v[i]


# sim: plain_access
#   ranks: 2
#   A: float32[4] = 0
#   fault: is an address of a multicast window: only multimem instructions access it
@T.prim_func
def plain_access(A: T.Buffer((4,), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    all = T.decl_buffer((4,), "float32", data=T.nvshmem.mc_ptr(A.ptr_to([0])))
    if tx == 0:
        all[0] = T.float32(1)


# sim: no_window
#   ranks: 2
#   A: float32[4] = 0
#   fault: which is no address of a multicast window
@T.prim_func
def no_window(A: T.Buffer((4,), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    if tx == 0:
        T.ptx.multimem.st.weak.global_.f32(A.ptr_to([0]), T.float32(3))
