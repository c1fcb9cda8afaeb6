"""Columns of tensor memory, and operands of tensor cores in shared memory."""

from tvm.backend.cuda.tile_primitive.tma_utils import SwizzleMode, mma_atom_shape, mma_shared_layout
from tvm import DataType
from tvm.script import tirx as T
from tvm.tirx.layout import tmem_datapath_layout, tmem_mma_operand_layout, sf_tmem_layout, S, TCol, TileLayout, TLane
from tvm.tirx.layout import tcgen05_atom_layout, wg_local_layout


def _product(values):
    result = 1
    for value in values:
        result = result * value
    return result


def _swizzle_that_fits(row_bits):
    for mode in (SwizzleMode.SWIZZLE_128B_ATOM, SwizzleMode.SWIZZLE_64B_ATOM, SwizzleMode.SWIZZLE_32B_ATOM):
        atom_bits = 128 << mode.value
        if row_bits >= atom_bits and row_bits % atom_bits == 0:
            return mode
    return SwizzleMode.SWIZZLE_NONE


def _validate_mma_alloc_shape(shape, dtype, swizzle_mode):
    """An error names the extent that does not fit the atoms of a swizzle. Symbolic extents pass."""
    if swizzle_mode == SwizzleMode.SWIZZLE_NONE:
        return
    where = f"alloc_tcgen05_mma_AB shape={tuple(shape)}"
    if len(shape) < 2:
        raise ValueError(f"{where} has fewer than 2 dimensions; use swizzle_mode='none'")
    rows, columns = shape[-2], shape[-1]
    if not (isinstance(rows, int) and isinstance(columns, int)):
        return
    bits = DataType(dtype).bits
    row_bits = columns * bits
    atom_bits = 128 << swizzle_mode.value
    if row_bits < atom_bits or row_bits % atom_bits != 0:
        raise ValueError(
            f"{where} with dtype={str(dtype)!r} has rows of {row_bits // 8} bytes, which do not fit the "
            f"{atom_bits // 8}-byte rows of {swizzle_mode.name}; use swizzle_mode=SwizzleMode."
            f"{_swizzle_that_fits(row_bits).name}, or a multiple of {atom_bits // bits} elements"
        )
    if rows < 8 or rows % 8 != 0:
        raise ValueError(
            f"{where} has {rows} rows, and {swizzle_mode.name} takes a multiple of 8; use swizzle_mode='none'"
        )


def mma_operand_layout(shape, dtype, swizzle_mode):
    """The layout of `alloc_tcgen05_mma_AB`; an error names the extent that does not fit."""
    if isinstance(swizzle_mode, str):
        if swizzle_mode == "auto":
            swizzle_mode = SwizzleMode.SWIZZLE_128B_ATOM
        elif swizzle_mode == "none":
            swizzle_mode = SwizzleMode.SWIZZLE_NONE
        else:
            raise ValueError(f"Unsupported swizzle_mode={swizzle_mode!r}; expected 'auto', 'none', or SwizzleMode")
    _validate_mma_alloc_shape(shape, dtype, swizzle_mode)
    return mma_shared_layout(dtype, swizzle_mode, shape)


def wg_reg_tile(elem_per_thread, dtype="float32"):
    """A tile in the registers of a warpgroup: 128 rows, one row per thread."""
    return T.alloc_buffer((128, elem_per_thread), dtype, layout=wg_local_layout(elem_per_thread), scope="local")


def _fragment(shape, dtype, layout):
    rows, cols = shape
    flat = T.alloc_local((rows * cols // 128,), dtype)
    return flat.view(rows, cols, layout=layout)


def alloc_tcgen05_ldst_frag(instr_shape, tensor_shape, dtype):
    """Registers of a warpgroup as `tcgen05.ld` and `.st` of a shape fill them."""
    rows, cols = tensor_shape
    if rows * cols % 128 != 0:
        raise ValueError(
            f"alloc_tcgen05_ldst_frag: {tensor_shape} elements of {dtype!r} do not divide evenly among 128 threads"
        )
    return _fragment(tensor_shape, dtype, tcgen05_atom_layout(instr_shape, tensor_shape, dtype))


def alloc_cast_frag(src, dtype):
    """Registers for the same elements as those of `src`, of another dtype."""
    return _fragment(src.shape, dtype, src.layout)


@T.meta_class
class TMEMPool:
    """A cursor over the columns of tensor memory that one warp of the block allocates."""

    def __init__(
        self,
        pool,
        total_cols=512,
        *,
        cta_group=1,
        alloc_warp=0,
        dealloc_warp=None,
        tmem_addr=None,
        sync_after_alloc=True,
    ):
        self.pool = pool
        self.total_cols = total_cols
        self.cta_group = cta_group
        self.alloc_warp = alloc_warp
        self.dealloc_warp = alloc_warp if dealloc_warp is None else dealloc_warp
        self.sync_after_alloc = sync_after_alloc
        self.offset = 0
        self.max_offset = 0
        self._committed = False
        self._deallocated = False
        self._addr_buf = pool.alloc([1], "uint32", align=4) if tmem_addr is None else tmem_addr

    @property
    def addr(self):
        try:
            return self._addr_buf[0]
        except TypeError:
            return self._addr_buf

    def _columns(self, shape, dtype, cols, layout):
        if cols is not None:
            return cols
        bits = DataType(dtype).bits
        if layout is not None:
            total = layout.span("TCol") * bits
            assert total % 32 == 0, f"the layout spans {total} bits of columns, which are 32 bits wide"
            return total // 32
        assert len(shape) == 2, "TMEMPool.alloc() requires cols= for non-2D TMEM buffers"
        total = _product(shape) * bits
        assert total % (32 * shape[0]) == 0, (
            f"Cannot infer TMEM columns from shape={shape}, dtype={dtype!r}; please pass cols= explicitly"
        )
        return total // (32 * shape[0])

    def alloc(self, shape, dtype="float32", *, layout=None, cols=None):
        cols = self._columns(shape, dtype, cols, layout)
        first = self.offset
        end = first + cols
        assert end <= self.total_cols, f"TMEM overflow: {end} > {self.total_cols}"
        if layout is None:
            assert len(shape) == 2, "TMEMPool.alloc() requires layout= for non-2D TMEM buffers"
            rows, columns = shape
            if rows == 128:
                layout = tmem_datapath_layout("D", rows, columns)
            else:
                layout = TileLayout(S[(rows, columns) : (1 @ TLane, 1 @ TCol)])
        buffer = T.decl_buffer(shape, dtype, scope="tmem", allocated_addr=first, layout=layout)
        self.move_base_to(end)
        return buffer

    def alloc_sf(self, shape, dtype, *, sf_per_mma, sf_reuse=1):
        """Scale factors: `(rows, factors)` or `(stages, rows, factors)`."""
        if len(shape) not in (2, 3):
            raise ValueError(f"alloc_sf takes (rows, SF_K*sf_reuse) or (pipe_depth, rows, SF_K*sf_reuse), got {shape}")
        depth = shape[0] if len(shape) == 3 else None
        rows, last = shape[-2], shape[-1]
        assert last % sf_reuse == 0, f"alloc_sf: shape last dim {last} must be divisible by sf_reuse={sf_reuse}"
        layout = sf_tmem_layout(
            rows=rows, SF_K=last // sf_reuse, sf_per_mma=sf_per_mma, sf_reuse=sf_reuse, pipe_depth=depth
        )
        return self.alloc(shape, dtype, layout=layout)

    def alloc_tcgen05_mma_A(self, shape, dtype="bfloat16", *, M, cta_group, ws=False, sparse=False, cols=None):
        layout = tmem_mma_operand_layout("A", shape, dtype, M=M, cta_group=cta_group, ws=ws, sparse=sparse)
        return self.alloc(shape, dtype, layout=layout, cols=cols)

    def alloc_tcgen05_mma_D(
        self, shape, dtype="float32", *, M, cta_group, ws=False, sparse=False, group=None, cols=None
    ):
        layout = tmem_mma_operand_layout(
            "D", shape, dtype, M=M, cta_group=cta_group, ws=ws, sparse=sparse, group=group
        )
        return self.alloc(shape, dtype, layout=layout, cols=cols)

    alloc_tcgen05_mma_C = alloc_tcgen05_mma_D

    def move_base_to(self, col):
        self.offset = col
        self.max_offset = max(self.max_offset, self.offset)

    @T.inline
    def _emit_alloc(self):
        warp = T.meta_var(T.warp_id())
        if warp == self.alloc_warp:
            T.ptx.tcgen05.alloc(T.address_of(self.addr), n_cols=self.total_cols, cta_group=self.cta_group)
            if self.sync_after_alloc:
                T.cuda.warp_sync()

    @T.inline
    def _emit_dealloc(self):
        warp = T.meta_var(T.warp_id())
        if warp == self.dealloc_warp:
            T.ptx.tcgen05.relinquish_alloc_permit(cta_group=self.cta_group)
            T.ptx.tcgen05.dealloc(self.addr, n_cols=self.total_cols, cta_group=self.cta_group)

    def commit(self):
        assert not self._committed, "TMEMPool.commit() can only be called once"
        self._emit_alloc()
        self._committed = True

    def dealloc(self):
        assert self._committed, "TMEMPool.dealloc() called before commit()"
        assert not self._deallocated, "TMEMPool.dealloc() can only be called once"
        self._deallocated = True
        self._emit_dealloc()
