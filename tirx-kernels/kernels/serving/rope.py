"""Rotary embedding: turns pairs of a head's elements by angles that grow with the position."""

from __future__ import annotations

from tvm.script import tirx as T

from rows import after_previous, load, misaligned, store, vector

MAX_PAIRS = 256


@T.inline
def angles(cosines, sines, position, Frequencies, pairs, tid, threads):
    """The cosine and sine of position * frequency. The angle is reduced in float64: positions may be large."""
    for p in range(T.ceildiv(pairs, threads)):
        if p * threads + tid < pairs:
            angle: T.float64 = T.cast(position, "float64") * T.cast(Frequencies[p * threads + tid], "float64")
            turns: T.float64 = T.nearbyint(angle * T.float64(0.15915494309189535))
            small: T.float32 = T.cast(angle - turns * T.float64(6.283185307179586), "float32")
            cosines[p * threads + tid] = T.cos(small)
            sines[p * threads + tid] = T.sin(small)


@T.jit
def rope(x: T.handle, positions: T.handle, frequencies: T.handle, interleaved: T.int32, *, dtype: T.constexpr):
    """Turns X `[tokens, heads, head]` in place: pair p is the elements 2 p and 2 p + 1 if `interleaved`, else p and p + pairs. Elements
    behind the pairs keep their values."""
    tokens, heads, head, pairs = T.int32(), T.int32(), T.int32(), T.int32()
    x_token, x_head, p_step = T.int64(), T.int64(), T.int64()
    X = T.match_buffer(x, (tokens, heads, head), dtype, strides=(x_token, x_head, 1))
    Positions = T.match_buffer(positions, (tokens,), "int32", strides=(p_step,))
    Frequencies = T.match_buffer(frequencies, (pairs,), "float32")
    VEC = T.meta_var(vector(dtype))
    HALF = T.meta_var(VEC // 2)
    T.device_entry()
    after_previous()
    token = T.cta_id([tokens])
    tid = T.thread_id([128])
    cosines = T.alloc_shared((MAX_PAIRS,), "float32")
    sines = T.alloc_shared((MAX_PAIRS,), "float32")
    one = T.alloc_local((VEC,), dtype)
    two = T.alloc_local((VEC,), dtype)
    angles(cosines, sines, Positions[token], Frequencies, pairs, tid, 128)
    T.cuda.cta_sync()
    if interleaved != 0:
        groups: T.int32 = T.truncdiv(pairs + (HALF - 1), HALF)
        for k in range(T.truncdiv(heads * groups + 127, 128)):
            item: T.int32 = k * 128 + tid
            if item < heads * groups:
                h: T.int32 = T.truncdiv(item, groups)
                p: T.int32 = (item - h * groups) * HALF
                Xs = T.decl_buffer((head,), dtype, data=X.ptr_to([token, h, 0]), scope="global")
                bits: T.uint8 = misaligned(X.ptr_to([token, h, 0]))
                load(one, 0, Xs, p * 2, pairs * 2, bits == T.uint8(0), dtype, VEC)
                for v in T.unroll(HALF):
                    at: T.int32 = T.min(p + v, pairs - 1)
                    a: T.float32 = T.cast(one[2 * v], "float32")
                    b: T.float32 = T.cast(one[2 * v + 1], "float32")
                    one[2 * v] = T.cast(a * cosines[at] - b * sines[at], dtype)
                    one[2 * v + 1] = T.cast(b * cosines[at] + a * sines[at], dtype)
                store(Xs, p * 2, pairs * 2, one, 0, bits == T.uint8(0), dtype, VEC)
    else:
        groups: T.int32 = T.truncdiv(pairs + (VEC - 1), VEC)
        for k in range(T.truncdiv(heads * groups + 127, 128)):
            item: T.int32 = k * 128 + tid
            if item < heads * groups:
                h: T.int32 = T.truncdiv(item, groups)
                p: T.int32 = (item - h * groups) * VEC
                Xs = T.decl_buffer((pairs,), dtype, data=X.ptr_to([token, h, 0]), scope="global")
                Zs = T.decl_buffer((pairs,), dtype, data=X.ptr_to([token, h, pairs]), scope="global")
                bits: T.uint8 = misaligned(X.ptr_to([token, h, 0])) | misaligned(X.ptr_to([token, h, pairs]))
                load(one, 0, Xs, p, pairs, bits == T.uint8(0), dtype, VEC)
                load(two, 0, Zs, p, pairs, bits == T.uint8(0), dtype, VEC)
                for v in T.unroll(VEC):
                    at: T.int32 = T.min(p + v, pairs - 1)
                    a: T.float32 = T.cast(one[v], "float32")
                    b: T.float32 = T.cast(two[v], "float32")
                    one[v] = T.cast(a * cosines[at] - b * sines[at], dtype)
                    two[v] = T.cast(b * cosines[at] + a * sines[at], dtype)
                store(Xs, p, pairs, one, 0, bits == T.uint8(0), dtype, VEC)
                store(Zs, p, pairs, two, 0, bits == T.uint8(0), dtype, VEC)
