# test: parse
# test: cuda sm_90a
# A constant index beyond a buffer is an error where the access may run, and none where constants say that it does not.
from tvm.script import tirx as T
from tvm.script.ir_builder import IRBuilder
from tvm.tirx.script.builder import ir as I


# sim: branches
#   A: int32[32] = i
#   B: int32[32] = 0 -> 2 * i + 3
@T.prim_func
def branches(A: T.Buffer((32,), "int32"), B: T.Buffer((32,), "int32")):
    T.device_entry()
    tx = T.thread_id([32])
    words = T.alloc_buffer((3,), "int32", scope="local")
    for i in T.unroll(3):
        words[i] = A[tx] + i
    total = T.local_scalar("int32")
    total = 0
    if T.bool(False):
        words[3] = words[-1] + A[32]
        T.ptx.mov.b32(words[4], words[5])
    else:
        total = words[0] + words[2]
    if T.And(T.bool(True), T.Not(T.Or(T.bool(False), tx < 0))) or T.bool(True):
        total = total + 1
    elif tx < 16:
        total = total + words[7]
    else:
        B[40:44] = A.vload([32], "int32x4")
        words[1:5] = T.broadcast(1, 4)
    if T.And(tx < 16, T.bool(False)):
        with T.serial(2) as i:
            if tx < 4:
                B[32 + tx] = words[3]
                B[32] = i
                B[30:34] = T.broadcast(1, 4)
    B[tx] = total


# sim: loops
#   A: int32[32] = i
#   B: int32[32] = 0 -> i
@T.prim_func
def loops(A: T.Buffer((32,), "int32"), B: T.Buffer((32,), "int32")):
    T.device_entry()
    tx = T.thread_id([32])
    for i in range(0):
        B[32 + i] = A[32]
    for i, j in T.grid(4, 0):
        B[32] = A[-1] + i + j
    while T.bool(False):
        B[32] = 0
    B[tx] = A[tx]


def built(words):
    """Stores as many words as there are registers: which store that is, conditions of the IR decide."""
    with IRBuilder() as builder:
        with I.prim_func():
            I.func_name("built")
            A = I.arg("A", I.buffer((32 * words,), "uint32"))
            B = I.arg("B", I.buffer((32 * words,), "uint32"))
            I.device_entry()
            tx = I.thread_id([32])
            registers = I.alloc_local((words,), "uint32")
            with I.unroll(words) as i:
                I.buffer_store(registers, A[tx * words + i], [i])
            with I.If(T.And(T.bool(words == 4), tx < 32)):
                with I.Then():
                    I.evaluate(
                        T.ptx.st.global_.v4.b32(B.ptr_to([tx * 4]), registers[0], registers[1], registers[2], registers[3])
                    )
            with I.If(T.bool(words != 2)):
                with I.Then():
                    I.evaluate(0)
                with I.Else():
                    I.evaluate(T.ptx.st.global_.v2.b32(B.ptr_to([tx * 2]), registers[0], registers[1]))
    return builder.get()


# sim: of_two
#   A: uint32[64] = i
#   B: uint32[64] = 0 -> i
of_two = built(2)

# sim: of_four
#   A: uint32[128] = i
#   B: uint32[128] = 0 -> i
of_four = built(4)
