"""Host cost of a kernel call from Python, with PyTorch's tensors. Needs a GPU.

    python cost.py path/to/libexample_kernels.so
"""

import statistics
import sys
import time

import torch
import tvm_ffi

BATCH, ROUNDS = 512, 101

kernels = tvm_ffi.load_module(sys.argv[1])
a = torch.arange(256, dtype=torch.float32, device="cuda")
b = torch.empty_like(a)


def measured(what, call):
    rounds = []
    for _ in range(ROUNDS):
        start = time.perf_counter_ns()
        for _ in range(BATCH):
            call()
        rounds.append((time.perf_counter_ns() - start) / BATCH)
        torch.cuda.synchronize()
    print(f"{what}: {statistics.median(rounds):.0f} ns per call (fastest {min(rounds):.0f})")


scale = kernels.scale
measured("Python, PyTorch's tensors", lambda: scale(a, b))
assert torch.equal(b, a * 2), "wrong values"
ta, tb = tvm_ffi.from_dlpack(a), tvm_ffi.from_dlpack(b)
measured("Python, tensors of the FFI", lambda: scale(ta, tb))
measured("Python, an operation of PyTorch (torch.mul)", lambda: torch.mul(a, 2.0, out=b))
