"""Cases as in `public_cases.py`, of kernels that take tensor maps from their caller.

The library makes these maps in PyTorch. Here each is an array with options of `cargo tirx sim --tensor-map`: its box is what one copy of
the kernel moves, which follows from the tiles that the library chooses for the configuration.
"""

import random

import numpy as np

from public_cases import E2M1, Case, bfloat16, case, e4m3, mqa_scores, pack4, small_bfloat16, wide_bfloat16


def paged_mqa_logits(module, batch, next_n, pages, ends, quantized, blocks):
    """Logits of keys in pages of 64, which a table names for each request; each block takes whole requests."""
    heads, width, page = 64, 128, 64
    rng = np.random.default_rng(8)
    table = rng.permutation(batch * pages).astype(np.int32).reshape(batch, pages)
    weights = rng.standard_normal((batch * next_n, heads)).astype(np.float32)
    q, q_maps = quantized(rng, (batch * next_n, heads, width), "q")
    kv, kv_maps = quantized(rng, (batch * pages, page, width), "kv")
    stride = -(-pages * page // 256) * 256
    expected = np.full((batch * next_n, stride), np.nan)
    for request in range(batch):
        keys = kv[table[request]].reshape(-1, width)
        rows = slice(request * next_n, (request + 1) * next_n)
        expected[rows, : pages * page] = mqa_scores(q[rows], keys, weights[rows].astype(np.float64), np.array(ends[request]))
    atoms = -(-next_n // 2)
    rows = 2 if next_n >= 2 else 1
    box = {"tensor_map_weights": (weights, f"box={rows}x{heads}")}
    # What a map of queries moves: the rows of one atom.
    box |= {name: (array, options.format(rows=rows * heads, atoms=rows)) for name, (array, options) in {**q_maps, **kv_maps}.items()}
    split = np.linspace(0, batch, blocks + 1).astype(np.int32) * atoms
    arguments = {
        "batch_size": batch,
        "logits_stride": stride,
        "block_table_stride": pages,
        "context_lens": np.array(ends, np.int32),
        "block_table": table,
        "indices": np.arange(batch, dtype=np.int32),
        "schedule_meta": np.stack([split, np.zeros_like(split)], axis=1),
    }
    values = {
        "batch_size": batch,
        "next_n": next_n,
        "max_num_pages": pages,
        "num_pages": batch * pages,
        "num_sms": blocks,
    }
    return Case(module, values, arguments, {"logits": (expected.astype(np.float32), 1e-4, 1e-3)}, maps=box)


def fused_pages(keys, scales):
    """The bytes of each page's keys, and behind them the page's scales."""
    pages = keys.shape[0]
    return np.concatenate([keys.reshape(pages, -1), np.ascontiguousarray(scales).view(np.uint8).reshape(pages, -1)], axis=1)


def as_paged_fp8(rng, shape, name):
    codes = rng.integers(0x28, 0x48, shape).astype(np.uint8) | rng.integers(0, 2, shape).astype(np.uint8) << 7
    if name == "q":
        return e4m3(codes), {"tensor_map_q": (codes.reshape(-1, shape[-1]), "dtype=float8_e4m3fn,box={rows}x128,swizzle=128")}
    scales = rng.uniform(0.5, 2, shape[:2]).astype(np.float32)
    pages, page, width = shape
    fused, pitch = fused_pages(codes, scales), page * (width + 4)
    maps = {
        "tensor_map_kv": (fused, f"dtype=float8_e4m3fn,shape={pages}x{page}x{width},strides={pitch}x{width},box=1x{page}x{width},swizzle=128"),
        "tensor_map_kv_scales": (fused, f"dtype=float32,shape={pages}x{page},strides={pitch},offset={page * width},box=1x{page}"),
    }
    return e4m3(codes) * scales[:, :, None].astype(np.float64), maps


def as_paged_fp4(rng, shape, name):
    codes = rng.integers(0, 16, shape).astype(np.uint8)
    scales = rng.integers(125, 130, (*shape[:-1], shape[-1] // 32)).astype(np.uint8)
    values = E2M1[codes] * np.repeat(2.0 ** (scales.astype(np.float64) - 127), 32, axis=-1)
    words, packed = scales.view(np.uint32)[..., 0], pack4(codes)
    if name == "q":
        return values, {
            "tensor_map_q": (packed.reshape(-1, shape[-1] // 2), "dtype=float4_align8,box={rows}x128,swizzle=64"),
            "tensor_map_sf_q": (words.view(np.int32), "box={atoms}x64"),
        }
    pages, page, width = shape
    fused, pitch = fused_pages(packed, words), page * (width // 2 + 4)
    return values, {
        "tensor_map_kv": (
            fused,
            f"dtype=float4_align8,shape={pages}x{page}x{width},strides={pitch}x{width // 2},box=1x{page}x{width},swizzle=64",
        ),
        "tensor_map_sf_kv": (fused, f"dtype=int32,shape={pages}x{page},strides={pitch},offset={page * width // 2},box=1x{page}"),
    }


@case("paged mqa logits of fp8, 2 requests of 5 pages")
def _():
    return paged_mqa_logits("deepgemm/paged_mqa_logits_fp8.py", 2, 1, 5, [[300], [70]], as_paged_fp8, 2)


@case("paged mqa logits of fp8, 2 tokens each, in one block")
def _():
    return paged_mqa_logits("deepgemm/paged_mqa_logits_fp8.py", 2, 2, 3, [[150, 151], [10, 11]], as_paged_fp8, 1)


@case("paged mqa logits of fp4, 2 tokens each, in one block")
def _():
    return paged_mqa_logits("deepgemm/paged_mqa_logits_fp4.py", 2, 2, 3, [[150, 151], [10, 11]], as_paged_fp4, 1)


@case("paged mqa logits of fp4, 2 requests of 5 pages")
def _():
    return paged_mqa_logits("deepgemm/paged_mqa_logits_fp4.py", 2, 1, 5, [[300], [70]], as_paged_fp4, 2)


def tiny_gemm(rows, outputs, k, stages):
    rng = np.random.default_rng(10)
    x, w = (rng.integers(-8, 9, shape) / 8 for shape in ((rows, k), (outputs, k)))
    bias = rng.integers(-8, 9, outputs) / 4
    return Case(
        "flashinfer/gemm/tinygemm2_sm100.py",
        {"B": rows, "O": outputs, "K": k, "stage": stages},
        {"d_bias_h": bfloat16(bias), "a_M": outputs, "b_N": rows, "c_K": k},
        {"c_output_h": (bfloat16(x @ w.T + bias).reshape(-1), 0, 0)},
        maps={
            "a_tmap_wt": (bfloat16(w), "dtype=bfloat16,box=16x64,swizzle=128"),
            "b_tmap_act": (bfloat16(x), "dtype=bfloat16,box=8x64,swizzle=128"),
        },
    )


@case("tiny gemm with a ring of 4, 2 x 16 x 256")
def _():
    return tiny_gemm(2, 16, 256, 4)


@case("tiny gemm with a ring of 8, 13 x 32 x 2112")
def _():
    return tiny_gemm(13, 32, 2112, 8)


FP8 = "dtype=float8_e4m3fn"


def fp8(rng, shape):
    return rng.integers(0x28, 0x48, shape).astype(np.uint8) | rng.integers(0, 2, shape).astype(np.uint8) << 7


def powers(rng, shape):
    return rng.integers(125, 130, shape).astype(np.uint8)


def scaled(values, scales):
    """Each scale is for as many elements of a row as there are scales less than elements."""
    return values * np.repeat(2.0 ** (scales.astype(np.float64) - 127), values.shape[-1] // scales.shape[-1], axis=-1)


def words(scales):
    """Four scales of a row to a word; a column of words, for all rows, is one row of the result."""
    wide = np.pad(scales, [(0, 0)] * (scales.ndim - 1) + [(0, -scales.shape[-1] % 4)])
    return np.ascontiguousarray(np.swapaxes(np.ascontiguousarray(wide).view(np.int32), -1, -2))


def stacked(x):
    """All dimensions but the last are one."""
    return np.ascontiguousarray(x).reshape(-1, x.shape[-1])


def deepgemm(module, values, shape, a, b, sfa, sfb, d, rows, columns, layout=None, old=None, bits=True):
    """`a`, `b`, and `old`, what is in the result before the launch, are arrays with their maps' options; `d` is the result with those
    of its map. `rows` and `columns` of a tile have the scale factors of one copy."""
    expected, options = d
    layout = np.zeros(1, np.int32) if layout is None else np.array(layout, np.int32)
    if old is None:
        old = np.full(expected.shape, 77, np.uint16 if bits else np.float32)
    return Case(
        f"deepgemm/{module}.py",
        {**values, "num_sms": 2},
        {
            "grouped_layout_ptr": layout,
            "grouped_len": layout.size,
            **dict(zip(("shape_m", "shape_n", "shape_k"), shape)),
        },
        # The order of a sum's terms is the tensor core's own.
        {"tensor_map_cd": (bfloat16(expected), 1 / 128, 1e-3) if bits else (expected.astype(np.float32), 1e-5, 1e-3)},
        bits={"tensor_map_cd"} if bits else (),
        maps={
            "tensor_map_a": a,
            "tensor_map_b": b,
            "tensor_map_sfa": (sfa, f"box=1x{rows}"),
            "tensor_map_sfb": (sfb, f"box=1x{columns}"),
            "tensor_map_cd": (old, options),
        },
    )


def dense(m, n, k, box_a, box_b, box_d, rows, b_dtype="fp8"):
    rng = np.random.default_rng(11)
    a, sa, sb = fp8(rng, (m, k)), powers(rng, (m, k // 128)), powers(rng, (n, k // (32 if b_dtype == "fp4" else 128)))
    b = rng.integers(0, 16, (n, k)).astype(np.uint8) if b_dtype == "fp4" else fp8(rng, (n, k))
    wide = E2M1[b] if b_dtype == "fp4" else e4m3(b)
    map_of_b = (pack4(b), f"dtype=float4_e2m1fn,shape={n}x{k},strides={k // 2}") if b_dtype == "fp4" else (b, FP8)
    return deepgemm(
        "fp8_gemm_1d1d",
        {"M": m, "N": n, "K": k, "b_dtype": b_dtype},
        (m, n, k),
        (a, f"{FP8},box={box_a}x128,swizzle=128"),
        (map_of_b[0], f"{map_of_b[1]},box={box_b}x128,swizzle=128"),
        words(sa),
        words(sb),
        (scaled(e4m3(a), sa) @ scaled(wide, sb).T, f"dtype=bfloat16,box={box_d}x64,swizzle=128"),
        rows,
        128,
    )


@case("deepgemm fp8, 256 x 256 x 640")
def _():
    return dense(256, 256, 640, 128, 64, 128, 128)


@case("deepgemm fp8, operands swapped, 96 x 256 x 512")
def _():
    return dense(96, 256, 512, 48, 128, 16, 96)


@case("deepgemm fp8 by fp4, 128 x 256 x 512")
def _():
    return dense(128, 256, 512, 64, 128, 16, 128, "fp4")


@case("deepgemm fp8, both transposed, added to the result, 256 x 256 x 512")
def _():
    m, n, k = 256, 256, 512
    rng = np.random.default_rng(12)
    a, b, sa, sb = fp8(rng, (m, k)), fp8(rng, (n, k)), powers(rng, (m, k // 128)), powers(rng, (n, k // 128))
    old = rng.integers(-64, 64, (m, n)).astype(np.float32)
    return deepgemm(
        "fp8_gemm_1d1d",
        {"M": m, "N": n, "K": k, "major_a": "mn", "major_b": "mn", "accumulate": True, "cd_dtype": "fp32"},
        (m, n, k),
        (np.ascontiguousarray(a.T), f"{FP8},box=128x128,swizzle=128"),
        (np.ascontiguousarray(b.T), f"{FP8},box=128x64,swizzle=64"),
        words(sa),
        words(sb),
        (old + scaled(e4m3(a), sa) @ scaled(e4m3(b), sb).T, "box=128x32,swizzle=128"),
        128,
        128,
        old=old,
        bits=False,
    )


def drawn(count, expected, seed):
    """The lengths of groups, as the library draws them."""
    rng = random.Random(seed)
    return [int(expected * rng.uniform(0.7, 1.3)) for _ in range(count)]


def groups_of_rows(ends_of_groups):
    """The rows of two groups lie in one matrix, those of each from a multiple of 224 on."""
    groups, each, n, k, seed, tile = 2, 150, 256, 512, 1, 224
    rng = np.random.default_rng(13)
    lengths = drawn(groups, each, seed)
    a, b = fp8(rng, (groups * tile, k)), fp8(rng, (groups, n, k))
    sa, sb = powers(rng, (groups * tile, k // 128)), powers(rng, (groups, n, k // 128))
    expected, group = np.full((groups * tile, n), np.nan), np.full(groups * tile, -1)
    for g, length in enumerate(lengths):
        rows = slice(g * tile, g * tile + length)
        expected[rows] = scaled(e4m3(a[rows]), sa[rows]) @ scaled(e4m3(b[g]), sb[g]).T
        group[rows] = g
    return deepgemm(
        "m_grouped_fp8_gemm_contiguous",
        {"num_groups": groups, "expected_m_per_group": each, "N": n, "K": k, "seed": seed, "use_psum_layout": ends_of_groups},
        (groups * tile, n, k),
        (a, f"{FP8},box=112x128,swizzle=128"),
        (stacked(b), f"{FP8},box=128x128,swizzle=128"),
        words(sa),
        stacked(words(sb)),
        (expected, "dtype=bfloat16,box=16x64,swizzle=128"),
        tile,
        128,
        layout=[g * tile + length for g, length in enumerate(lengths)] if ends_of_groups else group,
    )


@case("deepgemm fp8, 2 groups of rows")
def _():
    return groups_of_rows(False)


@case("deepgemm fp8, 2 groups of rows by their ends")
def _():
    return groups_of_rows(True)


@case("deepgemm fp8, 2 groups of rows in matrices that are not full")
def _():
    groups, each, n, k, seed, most, tile = 2, 40, 256, 512, 1, 4096, 64
    rng = np.random.default_rng(14)
    a, b = fp8(rng, (groups, most, k)), fp8(rng, (groups, n, k))
    sa, sb = powers(rng, (groups, most, k // 128)), powers(rng, (groups, n, k // 128))
    expected, lengths = np.full((groups, most, n), np.nan), drawn(groups, each, seed)
    for g, length in enumerate(lengths):
        expected[g, :length] = scaled(e4m3(a[g, :length]), sa[g, :length]) @ scaled(e4m3(b[g]), sb[g]).T
    return deepgemm(
        "m_grouped_fp8_gemm_masked",
        {"num_groups": groups, "expected_m_per_group": each, "N": n, "K": k, "seed": seed},
        (most, n, k),
        (stacked(a), f"{FP8},box={tile // 2}x128,swizzle=128"),
        (stacked(b), f"{FP8},box=128x128,swizzle=128"),
        stacked(words(sa)),
        stacked(words(sb)),
        (stacked(expected), "dtype=bfloat16,box=16x64,swizzle=128"),
        tile,
        128,
        layout=lengths,
    )


@case("deepgemm fp8, 2 groups of columns, added to the result")
def _():
    groups, m, n, each, tile, seed = 2, 256, 256, 300, 128, 1
    rng = np.random.default_rng(15)
    lengths = [-(-length // tile) * tile for length in drawn(groups, each, seed)]
    k = sum(lengths)
    a, b, old = fp8(rng, (k, m)), fp8(rng, (k, n)), rng.integers(-64, 64, (groups, m, n)).astype(np.float32)
    expected, scales, start = old.astype(np.float64), ([], []), 0
    for g, length in enumerate(lengths):
        part = slice(start, start + length)
        (wide_a, sa), (wide_b, sb) = ((e4m3(x[part]).T, powers(rng, (x.shape[1], length // tile))) for x in (a, b))
        expected[g] += scaled(wide_a, sa) @ scaled(wide_b, sb).T
        scales[0].append(words(sa))  # each group begins a word
        scales[1].append(words(sb))
        start += length
    return deepgemm(
        "k_grouped_fp8_gemm_contiguous",
        {"num_groups": groups, "M": m, "N": n, "expected_k_per_group": each, "gran_k": 128, "k_alignment": tile, "seed": seed},
        (m, n, k),
        (a, f"{FP8},box=128x128,swizzle=128"),
        (b, f"{FP8},box=128x64,swizzle=64"),
        *(np.concatenate(rows) for rows in scales),
        (stacked(expected), "box=128x32,swizzle=128"),
        128,
        128,
        layout=lengths,
        old=stacked(old),
        bits=False,
    )


@case("deepgemm fp8, 2 products, 96 x 256 x 512")
def _():
    batch, m, n, k = 2, 96, 256, 512
    rng = np.random.default_rng(16)
    a, b = fp8(rng, (m, batch, k)), fp8(rng, (batch, n, k))
    sa, sb = powers(rng, (batch, m, k // 128)), powers(rng, (batch, n, k // 128))
    wide = scaled(e4m3(a).transpose(1, 0, 2), sa) @ scaled(e4m3(b), sb).transpose(0, 2, 1)
    # Rows of both products lie side by side.
    return deepgemm(
        "fp8_bmm",
        {"expr": "bhr,hdr->bhd", "H": batch, "R": k, "D": n, "B": m},
        (m, n, k),
        (a, f"{FP8},shape={batch}x{m}x{k},strides={k}x{batch * k},box=1x48x128,swizzle=128"),
        (b, f"{FP8},box=1x128x128,swizzle=128"),
        stacked(words(sa)),
        stacked(words(sb)),
        (wide.transpose(1, 0, 2), f"dtype=bfloat16,shape={batch}x{m}x{n},strides={n * 2}x{batch * n * 2},box=1x16x64,swizzle=128"),
        96,
        128,
    )


def state_update(module, box, tokens=1):
    """Steps of the recurrence of a selective state-space model, which also changes its state."""
    batch, heads, groups, dim, width = 2, 4, 2, 64, 128
    several = tokens > 1
    rng = np.random.default_rng(17)
    slots = batch if several else 16
    state = small_bfloat16(rng, (slots, heads, dim, width))
    x = small_bfloat16(rng, (batch, tokens, heads, dim))
    b, c = (small_bfloat16(rng, (batch, tokens, groups, width)) for _ in range(2))
    dt, d = (rng.standard_normal(shape).astype(np.float32) for shape in ((batch, tokens, heads), heads))
    bias, a = (-rng.uniform(low, low + 1, heads).astype(np.float32) for low in (3, 1))
    chosen = rng.permutation(slots)[:batch]
    step = np.log1p(np.exp(dt + bias.astype(np.float64)))
    spread = lambda m: np.repeat(wide_bfloat16(m), heads // groups, axis=2)
    wide_b, wide_c, wide_x = spread(b), spread(c), wide_bfloat16(x)
    after, output = wide_bfloat16(state), np.zeros(x.shape)
    for n, slot in enumerate(chosen):
        for t in range(tokens):
            keep, taken = np.exp(step[n, t] * a), step[n, t][:, None] * wide_x[n, t]
            after[slot] = after[slot] * keep[:, None, None] + taken[:, :, None] * wide_b[n, t][:, None, :]
            output[n, t] = (after[slot] * wide_c[n, t][:, None, :]).sum(axis=-1) + d[:, None] * wide_x[n, t]
    sizes = {"x": heads * dim, "dt": heads, "b": groups * width, "c": groups * width, "z": heads * dim, "out": heads * dim}
    strides = {f"{name}_stride_batch": size * tokens for name, size in sizes.items()}
    index = np.int64
    arguments = {
        "state": state.reshape(-1),
        "x": x.reshape(-1),
        "dt": dt.reshape(-1),
        "matrix_a": a,
        "matrix_b": b.reshape(-1),
        "matrix_c": c.reshape(-1),
        "d_weight": d,
        "z": x.reshape(-1),
        "dt_bias": bias,
        "state_indices": chosen.astype(index),
        "rand_seed": np.zeros(1, index),
        "state_stride_batch": heads * dim * width,
        **strides,
        "state_indices_stride_batch": 1,
        "dst_indices_stride_batch": 0,
        "dt_softplus": 1,
        "update_state": 1,
        "pad_slot_id": -1,
    }
    values = {
        **{"batch": batch, "nheads": heads, "dim": dim, "dstate": width},
        **{"input_dtype": "bfloat16", "state_dtype": "bfloat16", "weight_dtype": "float32", "index_dtype": "int64"},
        **{"index_rank": 1, "dt_softplus": True},
    }
    maps = {"tensor_state": ("state", f"shape={slots}x{heads}x{dim}x{width},box=1x1x{box}")}
    if several:
        values |= {"tokens": tokens, "heads_per_group": heads // groups, "mode": "fixed", "has_intermediate_states": False}
        values |= {"cu_seqlens_dtype": "int32", "accepted_dtype": "int64", "matrix_a_dtype": "float32"}
        arguments |= {f"{name}_stride_mtp": size for name, size in sizes.items()}
        arguments |= {"intermediate_states": np.zeros(1, np.uint16), "intermediate_indices": np.zeros(batch, index)}
        arguments |= {"state_indices_stride_t": 0, "dst_indices_stride_t": 0, "cache_steps": tokens}
        for name, of, count, row in (("b", "matrix_b", groups, width), ("c", "matrix_c", groups, width), ("x", "x", heads, dim)):
            maps[f"tensor_{name}"] = (of, f"shape={batch}x{tokens}x{count}x{row},box=1x{tokens}x1x{row}")
    else:
        values["ngroups"] = groups
        arguments["dst_indices"] = np.zeros(batch, index)
    if several or module.endswith("vertical"):
        arguments |= {"state_scale_stride_batch": 0, "nheads_runtime": heads, "ngroups_runtime": groups}
    if not several and module.endswith("vertical"):
        arguments["state_scale"] = np.zeros(1, np.float32)
    return Case(
        f"flashinfer/mamba/selective_state_update_{module}.py",
        values,
        arguments,
        {"state": (bfloat16(after).reshape(-1), 2e-2, 2e-2), "output": (bfloat16(output).reshape(-1), 2e-2, 2e-2)},
        bits={"state", "output"},
        maps=maps,
    )


for name, box, tokens in (("stp_vertical", "16x128", 1), ("stp_horizontal", "64x32", 1), ("mtp_vertical", "64x128", 4), ("mtp_horizontal", "32x128", 4)):
    case(f"state update {name}")(lambda name=name, box=box, tokens=tokens: state_update(name, box, tokens))


def gated_delta(lengths, blocks):
    """A linear attention whose state forgets by a gate, and takes of each value what it does not predict already."""
    heads, wide, width = 2, 8, 128
    rng = np.random.default_rng(18)
    tokens = sum(lengths)
    q, v = (rng.standard_normal((tokens, n, width)).astype(np.float16) for n in (heads, wide))
    k = rng.standard_normal((tokens, heads, width))
    k = (k / np.linalg.norm(k, axis=-1, keepdims=True)).astype(np.float16)
    gate = rng.uniform(size=(tokens, wide)).astype(np.float32)
    beta = (1 / (1 + np.exp(-rng.uniform(size=(tokens, wide))))).astype(np.float32)
    before = rng.standard_normal((len(lengths), wide, width, width)).astype(np.float32)
    after, output = before.astype(np.float64), np.zeros((tokens, wide, width))
    spread = lambda x: np.repeat(x.astype(np.float64), wide // heads, axis=1)
    wide_q, wide_k, ends = spread(q), spread(k), np.cumsum([0, *lengths])
    for s, (start, end) in enumerate(zip(ends, ends[1:])):
        for t in range(start, end):
            kept = after[s] * gate[t][:, None, None]  # rows are values, columns are keys
            news = beta[t][:, None] * (v[t] - np.einsum("hvk,hk->hv", kept, wide_k[t]))
            after[s] = kept + news[:, :, None] * wide_k[t][:, None, :]
            output[t] = np.einsum("hvk,hk->hv", after[s], wide_q[t]) / np.sqrt(width)
    keys = f"shape={heads}x{tokens}x{width},strides={2 * width}x{2 * width * heads},box=1x64x64,swizzle=128"
    each = wide // heads
    values = f"shape={heads}x{each}x{tokens}x{width},strides={2 * width * each}x{2 * width}x{2 * width * wide},box=1x1x64x64,swizzle=128"
    return Case(
        "flashinfer/gdn_prefill/gdn_prefill_sm100.py",
        {"hq": heads, "hv": wide, "seq_lens": tuple(lengths)},
        {
            **{"q": q.reshape(-1), "k": k.reshape(-1), "v": v.reshape(-1), "gate": gate.reshape(-1), "beta": beta.reshape(-1)},
            "cu_seqlens": ends.astype(np.int32),
            "initial_state": before.reshape(-1),
            "descriptor_workspace": np.zeros(blocks * 512, np.int8),
            **{"total_tokens": tokens, "num_sequences": len(lengths), "num_sms": blocks, "scale": 1 / np.sqrt(width)},
        },
        {
            "o": (output.astype(np.float16).reshape(-1), 1e-2, 2e-2),
            "final_state": (after.astype(np.float32).reshape(-1), 1e-2, 2e-2),
        },
        maps={"q_map": ("q", keys), "k_map": ("k", keys), "v_map": ("v", values), "o_map": ("o", values)},
    )


@case("gated delta net, sequences of 130 and 64 tokens")
def _():
    return gated_delta((130, 64), 2)


@case("gated delta net, a sequence of 384 tokens")
def _():
    return gated_delta((384,), 8)
