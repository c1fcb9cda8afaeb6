"""Which tensors a kernel takes, from Python: arguments.py LIBRARY. The kernel is `summed` of the test."""

import sys

import tvm_ffi

from simulated import DeviceVector, open_runtime

runtime, kernels = open_runtime(sys.argv[1]), tvm_ffi.load_module(sys.argv[1])
a = DeviceVector(runtime, [float(i) for i in range(72)])
b = DeviceVector(runtime, [0.5] * 64)
c = DeviceVector(runtime, [0.0] * 64)


def summed(*vectors):
    kernels.summed(*(tvm_ffi.from_dlpack(vector) for vector in vectors))
    return c.values()


# A view that begins 16 bytes in is aligned, one that begins 4 bytes in is not.
assert summed(a.part(16, 64), b, c) == [i + 4.5 for i in range(64)]
for arguments in ((a.part(4, 64), b, c), (b, a.part(4, 64), c)):
    try:
        summed(*arguments)
        print("accepted")
    except ValueError as error:
        print(str(error).splitlines()[-1])
assert c.values() == [i + 4.5 for i in range(64)], "nothing was launched"

# Arguments that are only read may be one tensor.
same = a.part(0, 64)
assert summed(same, same, c) == [2.0 * i for i in range(64)]
print("done")
