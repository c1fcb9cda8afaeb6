"""Tensors of float32 in the memory of the C interface's run time, made by hand: for programs without PyTorch."""

import copy
import ctypes


def open_runtime(library):
    """The run time of the library of kernels: memory and copies."""
    runtime = ctypes.CDLL(library)
    runtime.tirx_last_error.restype = ctypes.c_char_p
    return runtime


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

    def shaped(self, *shape):
        """The same memory as a compact tensor of another shape."""
        same, rank = copy.copy(self), len(shape)
        strides = [1] * rank
        for dimension in range(rank - 1, 0, -1):
            strides[dimension - 1] = strides[dimension] * shape[dimension]
        same.shape, same.strides = (ctypes.c_int64 * rank)(*shape), (ctypes.c_int64 * rank)(*strides)
        tensor = DLTensor(self.data, DLDevice(2, 0), rank, DLDataType(2, 32, 1), same.shape, same.strides, 0)
        same.managed = DLManagedTensor(tensor, None, None)
        return same

    def part(self, first_byte, n):
        """The same memory from another byte on."""
        part = copy.copy(self)
        part.n, part.shape = n, (ctypes.c_int64 * 1)(n)
        data = ctypes.c_void_p(self.data.value + first_byte)  # as views of PyTorch have it: no byte_offset
        tensor = DLTensor(data, DLDevice(2, 0), 1, DLDataType(2, 32, 1), part.shape, self.strides, 0)
        part.managed = DLManagedTensor(tensor, None, None)
        return part

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
