"""Rows of a tensor, read and written in vectors of 16 bytes: the parts that the memory-bound kernels share.

A block has 256 threads, and `threads` of them, a power of two, work on a row together. A row may begin at any address. If all rows consist
of whole vectors at multiples of 16 bytes, a kernel takes its short path: it loads vectors without conditions, so that all loads are in flight
before the first number is used, and takes the last vector of the row for those behind its end. Otherwise a vector is one access if it is
aligned and lies within the row, and single elements if not."""

from __future__ import annotations

from tvm.script import tirx as T

WARPS = 8
THREADS = 32 * WARPS
CACHED = 4                                   # vectors of a row that a thread keeps in registers
# nvcc unrolls the loop, so that the kernel's text stays short.
BY_NVCC = {"pragma_unroll_explicit": False}
VECTORS = 4                                  # vectors of a segment of a row that a thread has in flight
FEW = 64                                     # rows of a launch that mostly waits for its first loads
BYTES = {"float32": 4, "float16": 2, "bfloat16": 2, "int8": 1, "uint8": 1, "uint16": 2, "float8_e4m3fn": 1}


def vector(dtype):
    """The elements of 16 bytes."""
    return 16 // BYTES[dtype]


def misaligned(pointer):
    """The bytes between an address and the multiple of 16 before it."""
    return T.cast(T.bitwise_and(T.reinterpret("uint64", pointer), T.uint64(15)), "uint8")


def quotient(value, power):
    """`value` divided by a power of two."""
    return value >> T.popcount(power - 1)


def inside(whole, column, v, columns):
    """Whether element v of the vector at a column lies within the row; on the path `whole` vectors end with the row."""
    return column + (0 if whole else v) < columns


@T.inline
def start_next():
    """Allows the next kernel of the stream to start up to its wait for this one, so that the launches of short kernels overlap. A kernel with much work
    allows it towards its end: blocks of the next kernels would take the room of others, and gather on few multiprocessors."""
    T.attr({"tirx.use_programtic_dependent_launch": True})
    T.ptx.griddepcontrol.launch_dependents()


@T.inline
def after_previous(early=True):
    """The beginning of a kernel: it goes on when the previous kernel of the stream has ended; with `early`, the next one may start now. Older GPUs than
    Hopper start a kernel when the previous one has ended."""
    T.attr({"tirx.use_programtic_dependent_launch": True})
    if early:
        T.ptx.griddepcontrol.launch_dependents()
    T.ptx.griddepcontrol.wait()


@T.inline
def to_l2(pointer):
    """Asks for the cache line of an address in the L2 cache. This is right before the wait for the previous kernel, too, whatever that kernel writes: all
    writes go through that cache."""
    T.prefetch(pointer, 0, 2, 1)


@T.inline
def load_vector(to, at, row, column, columns, dtype, count):
    """The `count` elements, 16 bytes, of an aligned row from `column` on, or the row's last ones if they are behind its end."""
    here = T.decl_buffer((columns // count,), dtype + "x" + str(count), data=row.data, scope="global")
    there = T.decl_buffer((at // count + 1,), dtype + "x" + str(count), data=to.data, scope="local")
    there[at // count] = here[T.min(column, columns - count) // count]


@T.inline
def load(to, at, row, column, columns, aligned, dtype, count):
    """`count` elements of a row from `column` on, to `to[at]` and the elements behind; zeros behind the row's end."""
    if aligned and column + count <= columns:
        here = T.decl_buffer((columns // count,), dtype + "x" + str(count), data=row.data, scope="global")
        there = T.decl_buffer((at // count + 1,), dtype + "x" + str(count), data=to.data, scope="local")
        there[at // count] = here[T.truncdiv(column, count)]
    else:
        for v in T.unroll(count):
            to[at + v] = T.if_then_else(column + v < columns, row[column + v], T.cast(0, dtype))


@T.inline
def store(row, column, columns, source, at, aligned, dtype, count):
    """The inverse of `load`; writes nothing behind the row's end."""
    if aligned and column + count <= columns:
        here = T.decl_buffer((at // count + 1,), dtype + "x" + str(count), data=source.data, scope="local")
        there = T.decl_buffer((columns // count,), dtype + "x" + str(count), data=row.data, scope="global")
        there[T.truncdiv(column, count)] = here[at // count]
    else:
        for v in T.unroll(count):
            if column + v < columns:
                row[column + v] = source[at + v]


@T.inline
def widen(to, source, at, count):
    """`count` elements from `source[at]` on as float32. Of two bfloat16 in a word, one is shifted and the other is the word's upper half; nvcc takes
    three instructions for the two if it has them as elements."""
    if source.dtype == "bfloat16":
        words = T.decl_buffer(((at + count) // 2,), "uint32", data=source.data, scope="local")
        for pair in T.unroll(count // 2):
            to[pair * 2] = T.reinterpret("float32", words[at // 2 + pair] << T.uint32(16))
            to[pair * 2 + 1] = T.reinterpret("float32", words[at // 2 + pair] & T.uint32(0xFFFF0000))
    else:
        for e in T.unroll(count):
            to[e] = T.cast(source[at + e], "float32")


@T.inline
def load_row(whole, to, at, row, column, columns, dtype, count):
    """A vector on the path `whole` or on the other one. What is behind the row's end has no meaning: ask `inside`."""
    if whole:
        load_vector(to, at, row, column, columns, dtype, count)
    else:
        load(to, at, row, column, columns, misaligned(row.ptr_to([0])) == T.uint8(0), dtype, count)


@T.inline
def store_row(whole, row, column, columns, source, at, dtype, count):
    """`store` on the path `whole` or on the other one."""
    if whole:
        here = T.decl_buffer((at // count + 1,), dtype + "x" + str(count), data=source.data, scope="local")
        there = T.decl_buffer((columns // count,), dtype + "x" + str(count), data=row.data, scope="global")
        if column < columns:
            there[T.truncdiv(column, count)] = here[at // count]
    else:
        store(row, column, columns, source, at, misaligned(row.ptr_to([0])) == T.uint8(0), dtype, count)


@T.inline
def reduce_row(combine, value, parts, thread, threads):
    """A value of each of the `threads` of a row, combined; each of them gets the result."""
    for power in T.unroll(5):
        if (1 << power) < threads:
            value[0] = combine(value[0], T.tvm_warp_shuffle_xor(0xFFFFFFFF, value[0], 1 << power, 32, 32))
    if threads > 32:
        warps: T.int32 = T.truncdiv(threads, 32)
        if thread % 32 == 0:
            parts[T.truncdiv(thread, 32)] = value[0]
        T.cuda.cta_sync()
        value[0] = parts[T.truncdiv(T.bitwise_and(thread, 0 - threads), 32) + T.bitwise_and(thread, warps - 1)]
        for power in T.unroll(3):
            if (1 << power) < warps:
                value[0] = combine(value[0], T.tvm_warp_shuffle_xor(0xFFFFFFFF, value[0], 1 << power, 32, 32))


def added(one, other):
    return one + other


@T.inline
def row_sum(value, parts, thread, threads):
    """The sum of a value over the `threads` of a row; each of them gets it."""
    reduce_row(added, value, parts, thread, threads)


def greater(one, other):
    """The greater of two numbers, or NaN if one of them is; `T.max` gives the other one then."""
    return T.ptx.max_f32(one, other, nan=True)


@T.inline
def row_max(value, parts, thread, threads, combine=T.max):
    """The maximum of a value over the `threads` of a row; each of them gets it."""
    reduce_row(combine, value, parts, thread, threads)
