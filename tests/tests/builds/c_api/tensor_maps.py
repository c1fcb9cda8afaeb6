"""Tensor maps from Python: tensor_maps.py LIBRARY. The kernels are `copied` and `rows` of the test."""

import ctypes
import sys

import tvm_ffi

from simulated import DeviceVector, open_runtime

runtime, kernels = open_runtime(sys.argv[1]), tvm_ffi.load_module(sys.argv[1])


def tensor_map(tensor, box, swizzle=0, l2_promotion=0, interleave=0, nan_fill=False, data_type=0):
    """The map of a tensor: its memory, to be kept, and what kernels take."""
    memory = ctypes.create_string_buffer(128 + 64)
    place = ctypes.c_void_p(-(-ctypes.addressof(memory) // 64) * 64)
    kernels.tirx_tensor_map(place, tensor, swizzle, l2_promotion, interleave, nan_fill, data_type, *box)
    return memory, place


def error_of(call):
    try:
        call()
        print("accepted")
    except (TypeError, ValueError, RuntimeError) as error:
        print(str(error).splitlines()[-1].partition("Error: ")[2] or str(error).splitlines()[-1])


a = DeviceVector(runtime, [float(i) for i in range(256)])
b = DeviceVector(runtime, [0.0] * 256)
views = [a.shaped(8, 32), b.shaped(8, 32), a.shaped(0, 32)]  # alive as long as the tensors
a_tensor, b_tensor, none = map(tvm_ffi.from_dlpack, views)
memory, a_map = tensor_map(a_tensor, (8, 32), l2_promotion=128)
kernels.copied(a_map, b_tensor)
assert b.values() == a.values()
error_of(lambda: tensor_map(a_tensor, (8,)))
error_of(lambda: tensor_map(a_tensor, (8, 512)))
error_of(lambda: kernels.tirx_tensor_map(a_tensor, a_tensor, 8, 32))

kernels.rows(none, 0)
error_of(lambda: kernels.rows(none, 1))
print("done")
