"""Kernels that several devices run together: memory of other ranks by its address, and flags between them."""

from tvm.script import tirx as T


@T.prim_func
def all_reduce(a: T.handle, b: T.handle, c: T.handle, f: T.handle, pb: T.handle, pf: T.handle, turn: T.uint32):
    """C = the sum over all ranks of 2 A. Every rank writes its 2 A to B; then each block waits until that block of every rank has
    written, and sums the B of all ranks. `pb` and `pf` have the addresses of B and F on every rank; `turn` counts the launches with one F
    from 1 on."""
    n = T.int32()
    g = T.int32()
    ranks = T.int32()
    A = T.match_buffer(a, (n,), "float32")
    B = T.match_buffer(b, (n,), "float32")
    C = T.match_buffer(c, (n,), "float32")
    F = T.match_buffer(f, (g,), "uint32")
    PB = T.match_buffer(pb, (ranks,), "uint64")
    PF = T.match_buffer(pf, (ranks,), "uint64")
    T.device_entry()
    bx = T.cta_id([g])
    tx = T.thread_id([256])
    i = bx * 256 + tx
    if i < n:
        B[i] = A[i] * T.float32(2.0)
    T.cuda.cta_sync()
    if tx < ranks:
        there = T.decl_buffer((g,), "uint32", data=T.reinterpret("handle", PF[tx]))
        T.ptx.red_scalar(there.ptr_to([bx]), T.uint32(1), sem="release", scope="sys", op="add", ptx_type="u32")
    if tx == 0:
        while T.ptx.ld_acquire(F.ptr_to([bx]), "uint32", "u32", scope="sys") < turn * T.cast(ranks, "uint32"):
            T.cuda.nano_sleep(T.uint64(20))
    T.cuda.cta_sync()
    if i < n:
        total = T.alloc_local((1,), "float32")
        total[0] = T.float32(0)
        for rank in range(ranks):
            theirs = T.decl_buffer((n,), "float32", data=T.reinterpret("handle", PB[rank]))
            total[0] = total[0] + theirs[i]
        C[i] = total[0]
