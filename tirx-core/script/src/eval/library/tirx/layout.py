"""Layouts of tensor memory: which lane and column has an element."""

from tvm.tirx.layout import R, S, TCol, TileLayout, TLane

_ROWS = {"A": 128, "B": 64, "C": 64, "D": 128, "E": 64, "F": 64, "G": 32}


def tmem_datapath_layout(datapath, rows, cols, sub_slab=0):
    """Where the tensor cores put `(rows, cols)` by a data path of PTX: A to G."""
    where = "tmem_datapath_layout"
    if datapath not in _ROWS:
        raise ValueError(f"{where}: unknown datapath {datapath!r}; supported: {sorted(_ROWS)}")
    if rows != _ROWS[datapath]:
        raise ValueError(f"{where}: datapath={datapath!r} expects rows={_ROWS[datapath]}, got {rows}")
    if sub_slab not in (0, 1):
        raise ValueError(f"{where}: sub_slab must be 0 or 1, got {sub_slab}")
    if datapath in ("C", "F"):
        # 16 rows to each warp's 32 lanes, in the lower or the upper half.
        spec = S[(4, 16, cols) : (32 @ TLane, 1 @ TLane, 1 @ TCol)]
        return TileLayout(spec + (16 @ TLane)) if sub_slab else TileLayout(spec)
    if sub_slab != 0:
        raise ValueError(f"{where}: datapath={datapath!r} takes all lanes; sub_slab must be 0")
    if datapath in ("A", "D"):
        return TileLayout(S[(rows, cols) : (1 @ TLane, 1 @ TCol)])
    # Columns beyond a half or a quarter go to further lanes.
    parts = 4 if datapath == "G" else 2
    if cols % parts != 0:
        raise ValueError(f"{where}: datapath={datapath!r} requires a multiple of {parts} columns, got {cols}")
    return TileLayout(S[(rows, parts, cols // parts) : (1 @ TLane, (128 // parts) @ TLane, 1 @ TCol)])


def _datapath(M, cta_group, ws, sparse):
    if sparse:
        raise ValueError(f"alloc_tcgen05_mma: sparse operands are not supported (M={M}, cta_group={cta_group})")
    if ws and (cta_group, M) != (1, 64):
        raise ValueError(f"alloc_tcgen05_mma: ws=True goes with cta_group=1, M=64; got M={M}, cta_group={cta_group}")
    known = {(1, 128): "D", (1, 64): "E" if ws else "F", (2, 256): "A", (2, 128): "B"}
    if (cta_group, M) not in known:
        raise ValueError(
            f"alloc_tcgen05_mma: no data path for M={M}, cta_group={cta_group}; M is 64 or 128 with cta_group=1, "
            "128 or 256 with cta_group=2"
        )
    return known[(cta_group, M)]


def tmem_mma_operand_layout(operand, shape, dtype, *, M, cta_group, ws=False, sparse=False, group=None):
    """The layout of an operand of `tcgen05.mma` in tensor memory: "A", or the accumulator "D"."""
    datapath = _datapath(M, cta_group, ws, sparse)
    extents = [int(extent) for extent in shape]
    folded = datapath in ("B", "E")
    # Two halves of lanes, before or between the other dimensions.
    batched = len(extents) == 3 and extents[0] == 2

    def rows_are(rows):
        if rows != M // cta_group:
            raise ValueError(
                f"alloc_tcgen05_mma_{operand}: M={M}, cta_group={cta_group} has {M // cta_group} rows in a block, "
                f"got {rows} (shape {extents})"
            )

    if operand not in ("A", "D"):
        raise ValueError(f"tmem_mma_operand_layout: operand must be 'A' or 'D', got {operand!r}")
    if batched and (folded if operand == "D" else datapath in ("B", "E")):
        _, rows, cols = extents
        rows_are(rows)
        return TileLayout(S[(2, rows, cols) : (64 @ TLane, 1 @ TLane, 1 @ TCol)])
    if operand == "D":
        if group is not None:
            parts = [int(g) for g in group]
            if len(extents) != 2 or len(parts) != 3 or parts[1] != 2 or parts[0] * 2 * parts[2] != extents[1]:
                raise ValueError(f"alloc_tcgen05_mma_D: group must be (s, 2, n) with s * 2 * n columns, got {group}")
            if not folded:
                raise ValueError(f"alloc_tcgen05_mma_D: group= goes with data paths B and E, not {datapath}")
            rows_are(extents[0])
            extents = [extents[0], *parts]
        elif len(extents) == 2:
            rows_are(extents[0])
            return tmem_datapath_layout(datapath, *extents)
        if folded and len(extents) == 3 and extents[1] == 2:
            rows_are(extents[0])
            return TileLayout(S[tuple(extents) : (1 @ TLane, 64 @ TLane, 1 @ TCol)])
        if folded and len(extents) == 4 and extents[2] == 2:
            rows_are(extents[0])
            return TileLayout(S[tuple(extents) : (1 @ TLane, extents[3] @ TCol, 64 @ TLane, 1 @ TCol)])
        raise ValueError(f"alloc_tcgen05_mma_D: unsupported shape {extents} for data path {datapath}")
    if len(extents) != 2 or datapath == "E":
        raise ValueError(f"alloc_tcgen05_mma_A: unsupported shape {extents} for data path {datapath}")
    rows, cols = extents
    rows_are(rows)
    spec = S[(rows, cols) : (1 @ TLane, 1 @ TCol)]
    # Both halves of the lanes hold the same.
    return TileLayout(spec + R[2 : 64 @ TLane]) if datapath == "B" else TileLayout(spec)


def sf_tmem_layout(rows, SF_K, sf_per_mma, sf_reuse=1, pipe_depth=None):
    """Scale factors in tensor memory: 32 rows to the 32 lanes of each warp alike, four factors of 8 bits in a column."""
    if SF_K % sf_per_mma != 0:
        raise ValueError(f"SF_K={SF_K} must be a multiple of sf_per_mma={sf_per_mma}")
    steps = SF_K // sf_per_mma
    chunks = rows // 32
    column = 4
    # Steps that share a column.
    packed = column // sf_per_mma if steps > 1 else 1
    while packed > 1 and steps % packed != 0:
        packed //= 2
    stage = chunks * column
    extents = [chunks, 32, steps // packed, packed, sf_per_mma]
    strides = [column @ TCol, 1 @ TLane, stage @ TCol, sf_per_mma @ TCol, 1 @ TCol]
    if sf_reuse > 1:
        extents.append(sf_reuse)
        strides.append(0 @ TCol)
    if pipe_depth is not None:
        extents.insert(0, pipe_depth)
        strides.insert(0, stage @ TCol)
    kept = [(e, s) for e, s in zip(extents, strides) if e != 1]
    return TileLayout(S[tuple(e for e, _ in kept) : tuple(s for _, s in kept)] + R[4 : 32 @ TLane])


def sf_smem_layout(rows, SF_K, sf_per_mma, sf_reuse=1, pipe_depth=None):
    """Scale factors in shared memory, from where copies fill `sf_tmem_layout`: 16 bytes for each of 32 lanes, four for a row."""
    column = 4
    if rows % 128 != 0:
        raise ValueError(f"rows={rows} must be a multiple of 128")
    if column % sf_per_mma != 0:
        raise ValueError(f"sf_per_mma={sf_per_mma} must divide epc={column}")
    if SF_K % column != 0:
        raise ValueError(f"SF_K={SF_K} must be a multiple of epc={column}")
    extents = [rows // 128, 4, 32, SF_K // column, sf_per_mma, column // sf_per_mma]
    strides = [128 * SF_K, column, 4 * column, 128 * column, column // sf_per_mma, 1]
    if sf_reuse > 1:
        extents.append(sf_reuse)
        strides.append(0)
    kept = [(e, s) for e, s in zip(extents, strides) if e != 1]
    if pipe_depth is not None:
        kept.insert(0, (pipe_depth, rows * SF_K))
    return TileLayout(S[tuple(e for e, _ in kept) : tuple(s for _, s in kept)])


def wg_local_layout(cols, rows=128):
    """Rows to the threads of a warpgroup; each has its columns in registers."""
    from tvm.tirx.layout import Axis

    return TileLayout(S[(rows, cols) : (1 @ Axis.tid_in_wg, 1)])


# What `.num` may be (PTX ISA, "tcgen05.ld"), and the columns of 32 bits of one repetition.
_REPETITIONS = {
    "32x32b": (1, 2, 4, 8, 16, 32, 64, 128),
    "16x64b": (1, 2, 4, 8, 16, 32, 64, 128),
    "16x128b": (1, 2, 4, 8, 16, 32, 64),
    "16x256b": (1, 2, 4, 8, 16, 32),
}
_COLUMNS = {"32x32b": 1, "16x64b": 2, "16x128b": 4, "16x256b": 8}


def tcgen05_atom_layout(instr_shape, tensor_shape, dtype):
    """Which thread of a warpgroup has an element in which register, after `tcgen05.ld` of a shape."""
    from tvm import DataType
    from tvm.tirx.layout import Axis

    where = f"tcgen05_atom_layout {instr_shape!r}"
    if instr_shape not in _REPETITIONS:
        raise ValueError(f"tcgen05_atom_layout: instr_shape is one of {list(_REPETITIONS)}, got {instr_shape!r}")
    bits = DataType(dtype).bits
    if bits not in (16, 32):
        raise ValueError(f"{where}: dtype has 16 or 32 bits, got {dtype} ({bits} bits)")
    if len(tensor_shape) != 2:
        raise ValueError(f"{where}: tensor_shape is (rows, columns), got {tensor_shape!r}")
    rows, cols = tensor_shape
    if rows not in (64, 128):
        raise ValueError(f"{where}: 64 or 128 rows, got {rows}")
    known = _REPETITIONS[instr_shape]
    tid, warp, lane = Axis.tid_in_wg, Axis.wid_in_wg, Axis.laneid
    if instr_shape == "32x32b" and rows == 64:
        # Columns beyond a half are in the other 64 lanes.
        if bits != 32:
            raise ValueError(f"{where}: 64 rows take 32-bit elements, got {dtype} ({bits} bits)")
        if cols % 2 != 0 or cols // 2 not in known:
            raise ValueError(f"{where}: 64 rows take twice {known} columns, got {cols}")
        return TileLayout(S[(64, 2, cols // 2) : (1 @ tid, 64 @ tid, 1)])
    packed = 32 // bits
    step = _COLUMNS[instr_shape] * packed
    if cols % step != 0 or cols // step not in known:
        raise ValueError(f"{where}: {dtype} takes {step} times {known} columns, got {cols}")
    if instr_shape == "32x32b":
        return TileLayout(S[(rows, cols) : (1 @ tid, 1)])
    n = cols // step
    # Rows and columns of a warp, in registers of 32 bits; those of a second issue for the upper 16 rows come behind.
    if instr_shape == "16x64b":
        registers = n
        row_axes = [(2, 1 @ lane), (8, 4 @ lane)]
        column_axes = [(n, packed), (2, 2 @ lane)]
    elif instr_shape == "16x128b":
        registers = 2 * n
        row_axes = [(2, packed), (8, 4 @ lane)]
        column_axes = [(n, 2 * packed), (4, 1 @ lane)]
    else:
        registers = 4 * n
        row_axes = [(2, 2 * packed), (8, 4 @ lane)]
        column_axes = [(n, 4 * packed), (4, 1 @ lane), (2, packed)]
    axes = [(4, 1 @ warp)]
    if rows == 128:
        axes.append((2, registers * packed))
    axes.extend(row_axes)
    axes.extend(column_axes)
    if packed == 2:
        axes.append((2, 1))
    return TileLayout(S[tuple(e for e, _ in axes) : tuple(s for _, s in axes)])
