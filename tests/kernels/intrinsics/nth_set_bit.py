# test: parse
# test: cuda sm_90a
# The n-th set bit of a word from a base on, forwards and backwards.
from tvm.script import tirx as T


def place(word, base, n):
    bits = [b for b in range(32) if word >> b & 1 == 1]
    if n > 0:
        found = [b for b in bits if b >= base]
    elif n < 0:
        found = [b for b in bits if b <= base][::-1]
    else:
        found = [b for b in bits if b == base]
    which = n - 1 if n > 0 else (-n - 1 if n < 0 else 0)
    return found[which] if which < len(found) else 4294967295


# sim: found
#   W: uint32[32] = i * 2654435761 % 4294967296
#   D: uint32[7x32] = 0 -> place(W[j], j, i * 2 - 6)
@T.prim_func
def found(W: T.Buffer((32,), "uint32"), D: T.Buffer((7, 32), "uint32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    for i in range(7):
        D[i, tx] = T.ptx.fns_b32(W[tx], T.uint32(tx), i * 2 - 6)
