"""Runs the two kernels of the public library that talk to other ranks on the simulator, and compares with NumPy.

    public_ranks.py CHECKOUT TIRX [--each] [RANKS...]

CHECKOUT is a checkout in the language of TVM 0.26, TIRX the `cargo-tirx` executable; Python has NumPy. Prints a line a case: the
module, the ranks, the result and its details, separated by tabs. All checks of the simulator are on. The kernels have defects
(`REPAIRS`): each kernel runs as it is, which the simulator reports, and with all repairs. With `--each` it also runs once for each
defect, with all other repairs.

The kernels run from copies with small extents, 8 blocks in place of 148, and functions of the language in place of raw CUDA. The queue
of tasks is what the library's host code makes. The gather itself is a copy by the host, which is done before the launch.
"""

import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

sys.dont_write_bytecode = True

# What the functions of raw CUDA do, in the language of kernels.
STAND_INS = '''
from tvm.script import tirx as T

def _half(word, at):
    return T.reinterpret("float16", T.cast(word >> T.uint32(at), "uint16"))

def _sum(a, b):
    low, high = (T.cast(T.reinterpret("uint16", _half(a, at) + _half(b, at)), "uint32") for at in (0, 16))
    return low | high << T.uint32(16)

def _value(name, *args, source_code=None, return_type=None):
    if name == "semaphore_notify_remote":
        there = T.nvshmem.ptr(args[1], args[0])
        return T.ptx.atom_scalar(there, args[2], sem="relaxed", scope="sys", op="add", ptx_type="u64")
    return T.ptx.ld_acquire(args[0], "int32", "s32", scope="sys")

def _put(address, place, value):
    return T.ptx.st(T.ptr_byte_offset(address, place, "int32"), value, space="shared", ptx_type="b32")

def _get(to, address, place):
    value = T.ptx.ld(T.ptr_byte_offset(address, place, "int32"), "int32", "b32", space="shared")
    return T.ptx.st(to, value, space="local", ptx_type="b32")

@T.inline
def _action(name, *args, source_code=None):
    if name == "pack_values":
        _put(args[4], 0, args[0])
        _put(args[4], 4, args[1])
        _put(args[4], 8, args[2])
        _put(args[4], 12, args[3])
    if name == "unpack_values":
        _get(args[1], args[0], 0)
        _get(args[2], args[0], 4)
        _get(args[3], args[0], 8)
        _get(args[4], args[0], 12)
    if name == "thread_fence_system":
        T.ptx.fence("sc", "sys")
    if name == "enqueue_remote":
        tail = T.nvshmem.ptr(args[2], args[4])
        place: T.let = T.ptx.atom_scalar(tail, T.int32(1), sem="relaxed", scope="sys", op="add", ptx_type="s32") & args[3]
        tasks = T.nvshmem.ptr(args[1], args[4])
        T.ptx.st(T.ptr_byte_offset(tasks, 8 * place, "int32"), args[6], ptx_type="b32")
        T.ptx.st(T.ptr_byte_offset(tasks, 8 * place + 4, "int32"), args[7], ptx_type="b32")
        kind = T.ptr_byte_offset(T.nvshmem.ptr(args[0], args[4]), 4 * place, "int32")
        T.ptx.st_release(kind, args[5], ptx_type="s32", scope="sys")
    if name == "ld_reduce_8_fp16":
        v = T.alloc_local((4,), "uint32")
        for i in T.unroll(4):
            v[i] = T.uint32(0)
        for rank in T.unroll(RANKS):
            for i in T.unroll(4):
                part = T.ptr_byte_offset(T.nvshmem.ptr(args[0], rank), 4 * i, "uint32")
                v[i] = _sum(v[i], T.ptx.ld(part, "uint32", "b32"))
        for i in T.unroll(4):
            T.ptx.st(T.ptr_byte_offset(args[1], 4 * i, "uint32"), v[i], ptx_type="b32")
'''

SCHEDULER = "self.sch_pipe.mbar_p2c.ptr_to([self.sch_pipe.idx, 0]), remote={}, pred=True"
CLUSTER = ", sem='release', scope='cluster', space='shared::cluster'"

# Of each defect the texts that repair it (docs/developing/public-kernels.md has the reasons).
SCOPE = [
    *((SCHEDULER.format(rank), SCHEDULER.format(rank) + CLUSTER) for rank in (0, 1)),
    ("ptx.mbarrier.try_wait(\n                    self.mbar_p2c", "ptx.mbarrier.try_wait_acquire_cluster(\n                    self.mbar_p2c"),
]
NO_TASK = "            fetched_task_type[0] = -1"
INDICES = [(NO_TASK, f"{NO_TASK}; fetched_task_idx0[0] = 0; fetched_task_idx1[0] = 0")]
REPAIRS = {
    "allgather_gemm.py": {
        "arrival of scope cta": SCOPE,
        "setmaxnreg without a barrier": [("T.ptx.setmaxnreg(False", "T.cuda.warpgroup_sync(wg_id); T.ptx.setmaxnreg(False")],
        "indices of no task": INDICES,
    },
    "gemm_reduce_scatter.py": {
        "arrival of scope cta": SCOPE,
        "setmaxnreg without a barrier": [("Tx.ptx.setmaxnreg(False", "Tx.cuda.warpgroup_sync(wg_id); Tx.ptx.setmaxnreg(False")],
        "indices of no task": INDICES,
        "task of 16 bytes in 8": [("packed_buf = pool.alloc((1,)", "packed_buf = pool.alloc((2,)")],
        "wait for the reads of stores": [("bulk.wait_group(0)", "bulk.wait_group(0, read=False)")],
        "last notification acquires nothing": [
            ("rs_queue.enqueue(signal_rank", '_action("thread_fence_system"); rs_queue.enqueue(signal_rank'),
        ],
    },
}

VALUES = ("while_ld_global_acquire", "ld_global_acquire", "semaphore_notify_remote")
CAPACITY = 2048
# Entries of a queue that a kernel does not use.
NOTHING = -1


def copied(checkout, module, folder, ranks, extents, repairs):
    """A copy of a module with these extents, repairs and stand-ins; lines keep their numbers."""
    text = (checkout / "tirx_kernels/gemm_comm" / module).read_text()
    for old, new in [*extents, ("SM_NUMBER = 148", "SM_NUMBER = 8"), ('WORLD_SIZE_ENV, "4")', f'WORLD_SIZE_ENV, "{ranks}")'), *repairs]:
        if old not in text:
            sys.exit(f"{module}: no `{old}` in this state of the library")
        text = text.replace(old, new)
    names = "|".join(VALUES)
    text = re.sub(rf'\bTx?\.cuda\.func_call\((?=\s*"(?:{names})")', "_value(", text)
    text = re.sub(r"\bTx?\.cuda\.func_call\(", "_action(", text)
    text = text.replace("\nimport os\n", "\nimport os; from tirx_kernels.gemm_comm.stand_ins import _value, _action\n", 1)
    package = folder / "tirx_kernels"
    if not package.exists():
        shutil.copytree(checkout / "tirx_kernels", package)
    (package / "gemm_comm/stand_ins.py").write_text(f"RANKS = {ranks}\n{STAND_INS}")
    (package / "gemm_comm" / module).write_text(text)
    return package / "gemm_comm" / module


def queue(tasks):
    types, indices = np.full(CAPACITY, NOTHING, np.int32), np.zeros((CAPACITY, 2), np.int32)
    if tasks:
        types[: len(tasks)], indices[: len(tasks)] = 0, tasks
    return types, indices


def allgather(checkout, folder, ranks, repairs):
    """Each rank multiplies the rows of all by its own columns."""
    m, n, k = 512 * ranks, 256 * ranks, 256
    extents = [('"8192")', f'"{m}")'), ('"51200")', f'"{n}")'), ('"5120")', f'"{k}")')]
    file = copied(checkout, "allgather_gemm.py", folder, ranks, extents, [("int(1e7)", "16"), *repairs])
    draw = np.random.default_rng(0)
    a = draw.integers(-3, 4, (ranks, m // ranks, k)).astype(np.float16)
    b = draw.integers(-3, 4, (ranks, n // ranks, k)).astype(np.float16)
    whole = a.reshape(m, k)
    clusters = m // 512
    tensors, expected = [], []
    for rank in range(ranks):
        types, indices = queue([((rank + row) % clusters, 0) for row in range(clusters)])
        tensors.append({
            "A": a[rank], "B": b[rank], "ag_out": whole, "semaphore": np.ones(ranks, np.uint64),
            "profiler_buffer": np.zeros(16, np.uint64), "gemm_task_types": types, "gemm_task_idxs": indices,
            "gemm_head": np.zeros(1, np.int32), "gemm_tail": np.array([clusters], np.int32),
            "out": np.full((m, n // ranks), 77, np.float16),
        })
        expected.append(whole.astype(np.float32) @ b[rank].astype(np.float32).T)
    return file, "_build_kernel", tensors, expected


def reduce_scatter(checkout, folder, ranks, repairs):
    """Each rank has a part of K; the sums of all are split by rows."""
    m, n, k = 512 * ranks, 256, 256 * ranks
    extents = [('"8192")', f'"{m}")'), ('"5120")', f'"{n}")'), ('"25600")', f'"{k}")')]
    file = copied(checkout, "gemm_reduce_scatter.py", folder, ranks, extents, repairs)
    draw = np.random.default_rng(0)
    a = draw.integers(-2, 3, (ranks, m, k // ranks)).astype(np.float16)
    b = draw.integers(-2, 3, (ranks, n, k // ranks)).astype(np.float16)
    rows = m // ranks
    types, indices = queue([(row, 0) for row in range(m // 512)])
    none, places = queue([])
    zero = np.zeros(1, np.int32)
    tensors = [{
        "A": a[rank], "B": b[rank], "gemm_out": np.full((m, n), 77, np.float16),
        "semaphore": np.zeros((rows // 256, n // 256), np.uint64), "gemm_task_types": types, "gemm_task_idxs": indices,
        "gemm_head": zero, "gemm_tail": np.array([m // 512], np.int32), "rs_task_types": none, "rs_task_idxs": places,
        "rs_head": zero, "rs_tail": zero, "out": np.full((rows, n), 77, np.float16),
    } for rank in range(ranks)]
    whole = sum(x.astype(np.float32) @ y.astype(np.float32).T for x, y in zip(a, b))
    return file, "test_mma_ss_tma_2sm_persistent", tensors, [whole[rank * rows : (rank + 1) * rows] for rank in range(ranks)]


def run(tirx, folder, made):
    """The result and its details."""
    file, entry, tensors, expected = made
    command = [tirx, "tirx", "sim", file, "--entry", entry, "--arch", "sm_100a", "--tvm", "0.26", "--ranks", str(len(tensors))]
    for rank, own in enumerate(tensors):
        for name, value in own.items():
            np.save(folder / f"{name}{rank}.npy", value)
    for name in tensors[0]:
        command += ["--arg", f"{name}={folder}/{name}{{rank}}.npy"]
    command += ["--out", f"out={folder}/result{{rank}}.npy"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        lines = [line.strip() for line in done.stderr.splitlines()]
        first = next((at for at, line in enumerate(lines) if line.startswith("error")), 0)
        return "reported", " ".join(lines[first : first + 2]).replace(f"{folder}/", "")
    differences = [
        float(np.abs(np.load(folder / f"result{rank}.npy").astype(np.float32) - right).max())
        for rank, right in enumerate(expected)
    ]
    # The operands are small integers: each sum is exact in float16.
    return ("right" if max(differences) == 0 else "wrong"), f"differs by {max(differences):.3g} at most"


def main():
    checkout, tirx, *words = sys.argv[1:]
    checkout, tirx = Path(checkout).resolve(), Path(tirx).resolve()
    each = "--each" in words
    for ranks in [int(word) for word in words if word != "--each"] or [2, 4, 8]:
        for name, make in [("allgather_gemm.py", allgather), ("gemm_reduce_scatter.py", reduce_scatter)]:
            repairs = REPAIRS[name]
            cases = [("as it is", []), ("with all repairs", list(repairs))]
            if each:
                cases += [(f"with all repairs but `{left}`", [other for other in repairs if other != left]) for left in repairs]
            for case, chosen in cases:
                start = time.time()
                with tempfile.TemporaryDirectory() as folder:
                    folder = Path(folder)
                    edits = [edit for repair in chosen for edit in repairs[repair]]
                    result, details = run(tirx, folder, make(checkout, folder, ranks, edits))
                print(f"gemm_comm/{name}", f"{ranks} ranks", case, result, details, f"{time.time() - start:.0f} s", sep="\t", flush=True)


if __name__ == "__main__":
    main()
