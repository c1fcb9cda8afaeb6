"""Kernels from Python: the shared library through TVM's FFI, called with DLPack tensors.

    python main.py path/to/libexample_kernels.so

With PyTorch and a GPU the tensors are PyTorch's, and nothing is copied. Without, they are made by hand in the memory of
the simulator, whose library the variable TIRX_DRIVER names.
"""

import sys

import tvm_ffi

from simulated import DeviceVector, open_runtime

library = sys.argv[1]
kernels = tvm_ffi.load_module(library)


def with_torch(torch):
    a = torch.arange(256, dtype=torch.float32, device="cuda")
    b = torch.full((256,), 0.5, device="cuda")
    c = torch.empty_like(a)
    kernels.add_n256(a, b, c)
    assert torch.equal(c, a + b)
    print("c[255] =", c[255].item())


def by_hand():
    runtime = open_runtime(library)
    vectors = [DeviceVector(runtime, values) for values in ([float(i) for i in range(256)], [0.5] * 256, [0.0] * 256)]
    a, b, c = (tvm_ffi.from_dlpack(v) for v in vectors)
    kernels.add_n256(a, b, c)
    assert vectors[2].values() == [i + 0.5 for i in range(256)]
    print("c[255] =", vectors[2].values()[255])
    short = DeviceVector(runtime, [0.0] * 128)
    try:
        kernels.add_n256(a, tvm_ffi.from_dlpack(short), c)
    except ValueError as error:
        print(str(error).splitlines()[-1])


try:
    import torch

    torch = torch if torch.cuda.is_available() else None
except ImportError:
    torch = None
with_torch(torch) if torch else by_hand()
