# error: T.ptx.atom_scalar: "add" is on u32, s32, u64, f32, f64, not on s64
# error: error_ptx_memory.py:10:13
from tvm.script import tirx as T


@T.prim_func
def k(A: T.Buffer((32,), "int64")):
    T.device_entry()
    tx = T.thread_id([32])
    A[tx] = T.ptx.atom_scalar(A.ptr_to([0]), A[tx], op="add", ptx_type="s64")
