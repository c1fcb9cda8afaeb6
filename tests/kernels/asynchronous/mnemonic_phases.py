# test: compile sm_90a
# mbarriers whose phases are named by states, stores that complete at an mbarrier, and atomics, by their mnemonics; right and with
# one mistake each.
from tvm.script import tirx as T


# Each thread waits for the phase in which it has arrived.
# sim: states
#   A: float32[64] = i
#   B: float32[64] = 0 -> 63 - i
#   C: uint32[64] = 0 -> 32 * 63 + 32 * 31
#   seeds: 3
@T.prim_func
def states(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32"), C: T.Buffer((64,), "uint32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([64])
    S = T.alloc_shared((64,), "float32")
    bar = T.alloc_shared((1,), "uint64")
    state: T.uint64
    done: T.uint32
    pending: T.uint32
    all: T.uint32
    if tx == 0:
        T.ptx.mbarrier.init.shared.b64(bar.ptr_to([0]), T.uint32(64))
        C[0] = T.uint32(0)
    T.cuda.cta_sync()
    for k in range(2):
        S[tx] = A[tx] * T.float32(k)
        T.ptx.mbarrier.arrive.shared.b64(state, bar.ptr_to([0]))
        done = T.uint32(0)
        while done == T.uint32(0):
            T.ptx.mbarrier.try_wait.shared.b64(done, bar.ptr_to([0]), state)
        B[tx] = S[63 - tx]
        T.ptx.mbarrier.arrive.release.cta.shared.b64(state, bar.ptr_to([0]))
        done = T.uint32(0)
        while done == T.uint32(0):
            T.ptx.mbarrier.test_wait.acquire.cta.shared.b64(done, bar.ptr_to([0]), state)
    # Each warp's arrivals have left so many less for the other warp.
    T.ptx.mbarrier.pending_count.b64(pending, state)
    T.ptx.atom.relaxed.gpu.global_.add.u32(all, C.ptr_to([0]), pending - T.uint32(1))
    T.cuda.cta_sync()
    all = C[0]
    T.cuda.cta_sync()
    C[tx] = all

# A test that does not acquire tells nothing.
# variant: states_relaxed of states
#   replace: "mbarrier.try_wait.shared" -> "mbarrier.try_wait.relaxed.cta.shared"
#   fault: race


# Two phases later nobody knows of a state.
# sim: state_of_long_ago
#   B: uint32[1] = 0
#   fault: tests a state of phase 0 of an mbarrier in phase 2: a state can be tested in its phase and in the one after it
@T.prim_func
def state_of_long_ago(B: T.Buffer((1,), "uint32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([1])
    bar = T.alloc_shared((1,), "uint64")
    state: T.uint64
    done: T.uint32
    T.ptx.mbarrier.init.shared.b64(bar.ptr_to([0]), T.uint32(1))
    T.ptx.mbarrier.arrive.shared.b64(state, bar.ptr_to([0]))
    T.ptx.mbarrier.test_wait.shared.b64(done, bar.ptr_to([0]), state)
    T.ptx.mbarrier.arrive.shared.b64(bar.ptr_to([0]))
    T.ptx.mbarrier.test_wait.shared.b64(done, bar.ptr_to([0]), state)
    B[0] = done


# Half of the threads leave the later phases.
# sim: leaves
#   A: float32[64] = i
#   B: float32[64] = 0 -> 2 * i if i < 32 else 0
#   seeds: 3
@T.prim_func
def leaves(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([64])
    S = T.alloc_shared((64,), "float32")
    bar = T.alloc_shared((1,), "uint64")
    if tx == 0:
        T.ptx.mbarrier.init.shared.b64(bar.ptr_to([0]), T.uint32(64))
    T.cuda.cta_sync()
    S[tx] = A[tx]
    if tx >= 32:
        T.ptx["mbarrier.arrive_drop.release.cta.shared::cta.b64"](bar.ptr_to([0]))
    else:
        T.ptx["mbarrier.arrive.release.cta.shared::cta.b64"](bar.ptr_to([0]))
        T.cuda.mbarrier_wait(bar.ptr_to([0]), 0)
        B[tx] = S[tx] + S[tx + 32] - T.float32(32)
        T.ptx["mbarrier.arrive.release.cta.shared::cta.b64"](bar.ptr_to([0]))
        T.cuda.mbarrier_wait(bar.ptr_to([0]), 1)

# The second phase waits for those who are gone.
# variant: leaves_without_drop of leaves
#   replace: "mbarrier.arrive_drop" -> "mbarrier.arrive"
#   fault: waits for 32 of 64 arrivals


# Each block sends its values to the other one of the cluster, and its sum.
# sim: sends
#   A: float32[2x32] = i * 32 + j
#   B: float32[2x32] = 0 -> A[1 - i][j] + 496
#   seeds: 4
@T.prim_func
def sends(A: T.Buffer((2, 32), "float32"), B: T.Buffer((2, 32), "float32")):
    T.device_entry()
    bx = T.cta_id([2])
    rank = T.cta_id_in_cluster([2])
    tx = T.thread_id([32])
    S = T.alloc_shared((32,), "float32")
    sum = T.alloc_shared((1,), "uint32")
    bar = T.alloc_shared((1,), "uint64")
    there: T.uint32
    total: T.uint32
    full: T.uint32
    if tx == 0:
        sum[0] = T.uint32(0)
        T.ptx.mbarrier.init.shared.b64(bar.ptr_to([0]), T.uint32(1))
        T.ptx.fence.mbarrier_init.release.cluster()
    T.cuda.cluster_sync()
    if tx == 0:
        T.ptx["mbarrier.arrive.expect_tx.shared::cta.b64"](bar.ptr_to([0]), T.uint32(256))
    T.ptx["mapa.shared::cluster.u32"](there, T.cuda.cvta_generic_to_shared(S.ptr_to([tx])), T.uint32(1 - rank))
    T.ptx["mapa.shared::cluster.u32"](total, T.cuda.cvta_generic_to_shared(sum.ptr_to([0])), T.uint32(1 - rank))
    T.ptx["mapa.shared::cluster.u32"](full, T.cuda.cvta_generic_to_shared(bar.ptr_to([0])), T.uint32(1 - rank))
    T.ptx["st.async.shared::cluster.mbarrier::complete_tx::bytes.f32"](there, A[bx, tx], full)
    T.ptx["red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32"](total, T.uint32(tx), full)
    T.cuda.mbarrier_wait(bar.ptr_to([0]), 0)
    B[bx, tx] = S[tx] + T.cast(sum[0], "float32")
    T.cuda.cluster_sync()

# Nobody waits.
# variant: sends_unawaited of sends
#   replace: "T.cuda.mbarrier_wait(bar.ptr_to([0]), 0)" -> "T.cuda.warp_sync()"
#   fault: reads `S[

# Half of the bytes are expected.
# variant: sends_half_expected of sends
#   replace: "T.uint32(256)" -> "T.uint32(128)"
#   fault: an asynchronous operation writes, and this thread has not waited for its completion

# The bytes are counted by a barrier of the own block.
# variant: sends_to_another of sends
#   replace: "bar.ptr_to([0])), T.uint32(1 - rank))" -> "bar.ptr_to([0])), T.uint32(rank))"
#   fault: both are of one block
