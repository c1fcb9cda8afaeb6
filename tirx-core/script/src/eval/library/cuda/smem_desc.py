"""Descriptors of matrices in shared memory."""

from tvm.script import tirx as T


def smem_desc_add_16B_offset(desc_val, offset):
    """The descriptor with its low 32 bits, where the address is, moved by `offset` units of 16 bytes."""
    low = T.Cast("uint32", desc_val) + T.Cast("uint32", offset)
    return T.bitwise_or(T.bitwise_and(desc_val, T.uint64(0xFFFFFFFF00000000)), T.Cast("uint64", low))


@T.meta_class
class SmemDescriptor:
    """A descriptor that is encoded once and moved by adding to it."""

    def __init__(self):
        self._buf = T.alloc_local([1], "uint64")

    @property
    def desc(self):
        return self._buf[0]

    @T.inline
    def init(self, smem_ptr, ldo, sdo, swizzle):
        T.ptx.tcgen05.encode_matrix_descriptor(T.address_of(self._buf[0]), smem_ptr, ldo, sdo, swizzle)

    def add_16B_offset(self, offset):
        return smem_desc_add_16B_offset(self._buf[0], offset)

    @T.inline
    def make_lo_uniform(self):
        """All lanes of the warp take the low 32 bits of lane 0."""
        self._buf[0] = T.bitwise_or(
            T.bitwise_and(self._buf[0], T.uint64(0xFFFFFFFF00000000)),
            T.Cast("uint64", T.tvm_warp_shuffle(T.uint32(0xFFFFFFFF), T.Cast("uint32", self._buf[0]), 0, 32, 32)),
        )
