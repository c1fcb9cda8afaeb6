# test: parse
# test: cuda sm_90a
# test: sim
# Elections, registers, fences, loads without modifiers, 16 bytes at once, timers.
import enum

from tvm.script import tirx as T


class Event(enum.Enum):
    LOAD = 0
    WORK = 5


@T.prim_func
def elects(B: T.Buffer((3, 64), "uint32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([64])
    T.ptx.setmaxnreg(False, 40)
    chosen: T.let = T.ptx.elect_sync()
    B[0, tx] = chosen
    B[1, tx] = T.uint32(9)
    B[2, tx] = T.uint32(9)
    if T.ptx.elect_sync():
        B[1, tx] = T.uint32(1)
    if tx >= 32:
        if T.ptx.elect_sync():
            B[2, tx] = T.uint32(2)
    T.cuda.cta_sync()
    T.ptx.setmaxnreg(True, 232)
    T.ptx.fence.mbarrier_init()
    T.ptx.fence.proxy_async()
    T.ptx.fence.proxy_async("shared::cta")
    T.ptx.fence.proxy_async(space="global")


@T.prim_func
def loads(A: T.Buffer((32,), "uint32"), C: T.Buffer((32,), "int64"), F: T.Buffer((32,), "float32"), B: T.Buffer((32,), "uint32"), D: T.Buffer((32,), "int64"), G: T.Buffer((32,), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    r: T.uint32
    T.ptx.ld_global_acquire(r, A.ptr_to([31 - tx]))
    B[tx] = r + T.uint32(1)
    T.ptx.ld_global_acquire(D[tx], C.ptr_to([tx]))
    L = T.alloc_local((4,), "float32")
    L[1] = T.float32(-1)
    T.ptx.ldg32(L.data, tx < 20, F[T.min(tx + 4, 31)], 2)
    G[tx] = L[2] + L[1]


@T.prim_func
def quads(A: T.Buffer((16,), "uint32"), B: T.Buffer((16,), "uint32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([4])
    S = T.alloc_shared((16,), "uint32", align=16)
    L = T.alloc_local((4,), "uint32")
    for i in T.unroll(4):
        L[i] = A[tx * 4 + i] * T.uint32(3)
    T.ptx.st(S.ptr_to([tx * 4]), src=L.data, ptx_type="b128", weak=True, space="shared::cta")
    T.cuda.cta_sync()
    for i in T.unroll(4):
        B[tx * 4 + i] = S[15 - tx * 4 - i]


@T.prim_func
def timers(P: T.Buffer((64,), "uint64"), B: T.Buffer((4,), "uint64")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    tag = T.alloc_local((1,), "uint64")
    offset = T.alloc_local((1,), "uint32")
    T.cuda.timer_init(P.data, tag.data, offset.data, 3, 2)
    T.cuda.timer_start(Event.LOAD, P.data, tag.data, offset.data, 4, tx == 0)
    T.cuda.timer_end(Event.LOAD, P.data, tag.data, offset.data, 4, tx == 0)
    T.cuda.timer_start(Event.WORK, P.data, tag.data, offset.data, 4, tx == 0)
    T.cuda.timer_finalize(P.data, tag.data, offset.data, 4, tx == 0)
    if tx == 0:
        B[0] = P[0]
        B[1] = P[7] & T.uint64(0xFFFFFFFF)
        B[2] = P[11] & T.uint64(0xFFFFFFFF)
        B[3] = T.cast(T.shift_right(P[15], T.uint64(32)) >= T.shift_right(P[3], T.uint64(32)), "uint64") + T.cast(offset[0], "uint64") * T.uint64(256)
        for i in range(16):
            P[i] = T.uint64(0)


@T.prim_func
def mapped(S: T.Buffer((2,), "uint32"), A: T.Buffer((1,), "uint64")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([1])
    S[0] = T.cuda.smem_addr_from_uint64(A[0])
    T.ptx.add_f64(A.ptr_to([0]), T.float64(0.25), T.float32(1.5))
