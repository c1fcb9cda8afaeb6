"""Kernels from Python: the shared library through TVM's FFI, called with DLPack tensors.

    python main.py path/to/libexample_kernels.so

With PyTorch and a GPU the tensors are PyTorch's, and nothing is copied. Without, they are made by hand in the memory of
the simulator, whose library the variable TIRX_DRIVER names.
"""

import ctypes
import sys

import tvm_ffi

library = sys.argv[1]
kernels = tvm_ffi.load_module(library)


def with_torch(torch):
    a = torch.arange(256, dtype=torch.float32, device="cuda")
    b = torch.full((256,), 0.5, device="cuda")
    c = torch.empty_like(a)
    kernels.add_n256(a, b, c)
    assert torch.equal(c, a + b)
    print("c[255] =", c[255].item())


class DLDevice(ctypes.Structure):
    _fields_ = [("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32)]


class DLDataType(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device", DLDevice),
        ("ndim", ctypes.c_int32),
        ("dtype", DLDataType),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class DLManagedTensor(ctypes.Structure):
    _fields_ = [("dl_tensor", DLTensor), ("manager_ctx", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


class DeviceVector:
    """float32 in device memory, as DLPack hands it over."""

    def __init__(self, runtime, values):
        self.runtime, self.n = runtime, len(values)
        self.shape = (ctypes.c_int64 * 1)(self.n)
        self.strides = (ctypes.c_int64 * 1)(1)
        self.data = ctypes.c_void_p()
        self.check(runtime.tirx_alloc(0, ctypes.c_size_t(4 * self.n), ctypes.byref(self.data)))
        source = (ctypes.c_float * self.n)(*values)
        self.check(runtime.tirx_copy_to_device(0, self.data, source, ctypes.c_size_t(4 * self.n)))
        tensor = DLTensor(self.data, DLDevice(2, 0), 1, DLDataType(2, 32, 1), self.shape, self.strides, 0)
        self.managed = DLManagedTensor(tensor, None, None)

    def check(self, status):
        if status:
            raise RuntimeError(self.runtime.tirx_last_error().decode())

    def __dlpack_device__(self):
        return (2, 0)

    def __dlpack__(self, **_):
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        return new(ctypes.addressof(self.managed), b"dltensor", None)

    def values(self):
        out = (ctypes.c_float * self.n)()
        self.check(self.runtime.tirx_copy_to_host(0, out, self.data, ctypes.c_size_t(4 * self.n)))
        return list(out)


def by_hand():
    runtime = ctypes.CDLL(library)
    runtime.tirx_last_error.restype = ctypes.c_char_p
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
