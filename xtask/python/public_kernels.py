"""Runs kernels of the public library on the simulator and compares with NumPy.

    public_kernels.py CHECKOUT TIRX [WORD...]
    public_kernels.py CHECKOUT TIRX --list
    public_kernels.py --history CHECKOUT TIRX [WORD...]

TIRX is the `cargo-tirx` executable. Each case is one small configuration of a family; a word selects cases by name, and
`=MODULE<tab>NAME` is one case; `--list` prints these. Prints
a line a case: the module, the name, the result and its details, separated by tabs. The result is `right`, `wrong` (with the
largest difference) or `reported` (with the first line of what the simulator reported, and whether the values are right if it
goes on after its findings, or without the check of races).

With `--history`, CHECKOUT is a clone, and the kernels that fixes of synchronization in its history concern are run without the
fix and with it; a word selects commits.
"""

import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

CASES = {}
LIMIT = 3600  # seconds of a run


def case(name):
    def register(make):
        CASES[name] = make
        return make

    return register


class Case:
    """A module, its configuration, its arguments, and what its outputs must be: `(expected, relative, absolute)`. A NaN
    stands for an element that is not compared. A tensor map is an array with options of `--tensor-map`."""

    def __init__(self, module, values, arguments, outputs, bits=(), maps=None):
        self.module, self.values, self.arguments, self.outputs = module, values, arguments, outputs
        self.maps = maps or {}
        self.bits = bits  # outputs that are bits of bfloat16, compared as numbers


def rmsnorm(hidden, rows):
    rng = np.random.default_rng(1)
    x = rng.standard_normal((rows, hidden)).astype(np.float16)
    w = rng.standard_normal(hidden).astype(np.float16)
    wide = x.astype(np.float32)
    factor = 1 / np.sqrt((wide * wide).mean(axis=1, keepdims=True) + 1e-6)
    expected = wide * factor * w.astype(np.float32)
    return Case(
        "normalization/rmsnorm.py",
        {"hidden_size": hidden},
        {"input_global": x, "weight_global": w},
        {"out_global": (expected.astype(np.float16), 1e-3, 1e-3)},
    )


@case("rmsnorm hidden_size=128, 3 rows")
def _():
    return rmsnorm(128, 3)


@case("rmsnorm hidden_size=5120, 2 rows")
def _():
    return rmsnorm(5120, 2)



def gemm(dtype, m, n, k):
    rng = np.random.default_rng(1)
    a, b = (rng.integers(-3, 4, shape).astype(np.float16) for shape in ((m, k), (n, k)))
    expected = (a.astype(np.float32) @ b.astype(np.float32).T).astype(np.float16)
    values = {"dtype": dtype, "M": m, "N": n, "K": k}
    return Case("gemm/fp16_bf16_gemm.py", values, {"A": a, "B": b}, {"D": (expected, 0, 0)})


@case("fp16 gemm, 512 x 256 x 128")
def _():
    return gemm("fp16", 512, 256, 128)


@case("fp16 gemm with an overlapped epilogue, 256 x 1024 x 256")
def _():
    return gemm("fp16", 256, 1024, 256)


def e4m3(codes):
    """The values of codes of float8_e4m3fn without NaN."""
    sign, exponent, mantissa = codes >> 7, (codes >> 3 & 15).astype(np.int64), (codes & 7).astype(np.float64)
    normal = (1 + mantissa / 8) * 2.0 ** (exponent - 7)
    return np.where(sign == 1, -1.0, 1.0) * np.where(exponent == 0, mantissa / 512, normal)


def bfloat16(values):
    """Bits of the nearest bfloat16, ties to even."""
    bits = values.astype(np.float32).view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)


def fp8_blockwise(m, n, k):
    rng = np.random.default_rng(2)
    a, b = (rng.integers(0x28, 0x48, shape).astype(np.uint8) | rng.integers(0, 2, shape).astype(np.uint8) << 7 for shape in ((m, k), (n, k)))
    # One power of two for 128 elements of a row; four of them in a word.
    sa, sb = (rng.integers(125, 130, (rows, k // 128)).astype(np.uint8) for rows in (m, n))
    wide = lambda x, s: (e4m3(x).reshape(-1, k // 128, 128) * 2.0 ** (s.astype(np.float64)[:, :, None] - 127)).reshape(-1, k)
    expected = bfloat16(wide(a, sa) @ wide(b, sb).T)
    packed = lambda s: np.ascontiguousarray(s.view(np.uint32).T)
    return Case(
        "gemm/fp8_blockwise_gemm.py",
        {"M": m, "N": n, "K": k},
        {"A": a, "B": b, "SFA": packed(sa), "SFB": packed(sb)},
        {"D": (expected, 0, 1)},  # of bits: the order of a sum's terms is the tensor core's own
    )


@case("fp8 gemm with block scales, 1024 x 2048 x 512")
def _():
    return fp8_blockwise(1024, 2048, 512)


def attention(tokens, heads, groups, causal):
    rng = np.random.default_rng(3)
    q = rng.standard_normal((1, tokens, heads, 128)).astype(np.float16)
    k, v = (rng.standard_normal((1, tokens, groups, 128)).astype(np.float16) for _ in range(2))
    wide = lambda x: np.repeat(x[0].astype(np.float64), heads // x.shape[2], axis=1).transpose(1, 0, 2)
    scores = wide(q) @ wide(k).transpose(0, 2, 1) / np.sqrt(128)
    if causal:
        scores = np.where(np.tri(tokens, dtype=bool), scores, -np.inf)
    weights = np.exp(scores - scores.max(axis=2, keepdims=True))
    expected = (weights / weights.sum(axis=2, keepdims=True)) @ wide(v)
    values = {
        "batch_size": 1,
        "seq_len": tokens,
        "num_qo_heads": heads,
        "num_kv_heads": groups,
        "head_dim": 128,
        "is_causal": causal,
    }
    output = expected.transpose(1, 0, 2)[None].astype(np.float16)
    return Case(
        "attention/flash_attention4.py",
        values,
        {"Q": q, "K": k, "V": v},
        {"O": (output, 1e-2, 4e-3)},
    )


@case("attention forward, 256 tokens")
def _():
    return attention(256, 1, 1, False)


def wide_bfloat16(bits):
    return (bits.astype(np.uint32) << 16).view(np.float32).astype(np.float64)


def small_bfloat16(rng, shape):
    """Bits of normally distributed bfloat16."""
    return bfloat16(rng.standard_normal(shape))


def grouped_fp8(groups, rows, n, k):
    """Rows of `groups` groups, each `rows` long, times the matrix of their group."""
    rng = np.random.default_rng(4)
    code = lambda shape: rng.integers(0x28, 0x48, shape).astype(np.uint8) | rng.integers(0, 2, shape).astype(np.uint8) << 7
    a, b = code((groups * rows, k)), code((groups, n, k))
    sa = rng.integers(125, 130, (groups * rows, k // 128)).astype(np.uint8)
    sb = np.repeat(rng.integers(125, 130, (groups, n // 128, k // 128)).astype(np.uint8), 128, axis=1)
    scaled = lambda x, s: (e4m3(x).reshape(-1, k // 128, 128) * 2.0 ** (s.astype(np.float64)[:, :, None] - 127)).reshape(-1, k)
    expected = [scaled(a[g * rows : (g + 1) * rows], sa[g * rows : (g + 1) * rows]) @ scaled(b[g], sb[g]).T for g in range(groups)]
    packed = lambda s: np.ascontiguousarray(s.view(np.uint32).T)
    return Case(
        "gemm/grouped_fp8_gemm_contiguous.py",
        {"num_groups": groups, "N": n, "K": k, "M": groups * rows},
        {
            "A": a,
            "B": b,
            "SFA": packed(sa),
            "SFB": np.stack([packed(s) for s in sb]),
            "GROUPED_LAYOUT": np.repeat(np.arange(groups, dtype=np.int32), rows),
        },
        {"D": (bfloat16(np.concatenate(expected)), 0, 1)},
    )


@case("grouped fp8 gemm, 2 groups, 480 x 256 x 512")
def _():
    return grouped_fp8(2, 240, 256, 512)


E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6])


def pack4(codes):
    """Two codes of four bits to a byte, the first in the low bits."""
    return (codes[..., 0::2] | codes[..., 1::2] << 4).astype(np.uint8)


def nvfp4(m, n, k):
    rng = np.random.default_rng(5)
    a, b = (rng.integers(0, 16, (rows, k)).astype(np.uint8) for rows in (m, n))
    sa, sb = (rng.integers(0x30, 0x40, (rows, k // 16)).astype(np.uint8) for rows in (m, n))
    alpha = 0.25
    wide = lambda x, s: (E2M1[x].reshape(-1, k // 16, 16) * e4m3(s)[:, :, None]).reshape(-1, k)
    expected = alpha * (wide(a, sa) @ wide(b, sb).T)

    def blocked(s):
        """Scale factors as tensor cores take them: blocks of 128 rows by 4, each 32 rows of 16 bytes."""
        rows, columns = s.shape
        return s.reshape(rows // 128, 4, 32, columns // 4, 4).transpose(0, 3, 2, 1, 4).reshape(rows, columns).copy()

    return Case(
        "gemm/nvfp4_gemm.py",
        {"M": m, "N": n, "K": k},
        {"A_packed": pack4(a), "B_packed": pack4(b), "SFA_in": blocked(sa), "SFB_in": blocked(sb), "alpha": np.float32([alpha])},
        {"D": (bfloat16(expected), 0, 1)},
    )


@case("nvfp4 gemm, 256 x 256 x 512")
def _():
    return nvfp4(256, 256, 512)


def prenorm(m, n, k, splits):
    rng = np.random.default_rng(6)
    a = rng.integers(-4, 5, (m, k)).astype(np.float64)
    b = rng.integers(-8, 9, (n, k)) / 8
    parts = np.array_split(np.arange(k // 64), splits)  # the first parts are longer, as the kernel has them
    columns = [np.concatenate([np.arange(c * 64, c * 64 + 64) for c in part]) for part in parts]
    d = np.stack([a[:, c] @ b[:, c].T for c in columns]).astype(np.float32)
    squares = np.stack([(a[:, c] ** 2).sum(axis=1) for c in columns]).astype(np.float32)
    return Case(
        "deepgemm/tf32_hc_prenorm_gemm.py",
        {"m": m, "n": n, "k": k, "num_splits": splits},
        {"shape_m": m, "a": bfloat16(a), "b": b.astype(np.float32)},
        {"d": (d[0] if splits == 1 else d, 0, 0), "sqr_sum": (squares.reshape(-1), 0, 0)},
    )


@case("hyper-connection prenorm, 13 x 24 x 512")
def _():
    return prenorm(13, 24, 512, 1)


@case("hyper-connection prenorm in 3 parts, 70 x 24 x 1024")
def _():
    return prenorm(70, 24, 1024, 3)


def mqa_scores(q, kv, weights, ends):
    """The weighted sum over heads of the positive scores, for keys before `ends`."""
    scores = np.maximum(np.einsum("mhd,nd->hmn", q, kv), 0)
    logits = (scores * weights.T[:, :, None]).sum(axis=0)
    return np.where(np.arange(kv.shape[0]) < ends[:, None], logits, np.nan)


def mqa_logits(module, tokens, keys, quantized, blocks):
    heads, width = 64, 128
    rng = np.random.default_rng(7)
    weights = rng.standard_normal((tokens, heads)).astype(np.float32)
    ends = np.arange(tokens, dtype=np.int32) + (keys - tokens)
    q, q_arguments = quantized(rng, (tokens, heads, width), "q")
    kv, kv_arguments = quantized(rng, (keys, width), "kv")
    stride = -(-(keys + 256) // 8) * 8
    expected = np.full((-(-tokens // 2) * 2, stride), np.nan)
    expected[:tokens, :keys] = mqa_scores(q, kv, weights.astype(np.float64), ends)
    arguments = {
        "seq_len": tokens,
        "seq_len_kv": keys,
        "max_seqlen_k": 0,
        "logits_stride": stride,
        "cu_seq_len_k_start_h": np.zeros(tokens, np.int32),
        "cu_seq_len_k_end_h": ends,
        **q_arguments,
        **kv_arguments,
        "weights_gmem_h": weights,
    }
    values = {"seq_len": tokens, "seq_len_kv": keys, "num_sms": blocks}
    return Case(module, values, arguments, {"logits_h": (expected.astype(np.float32), 1e-4, 1e-3)})


def as_fp8(rng, shape, name):
    codes = rng.integers(0x28, 0x48, shape).astype(np.uint8) | rng.integers(0, 2, shape).astype(np.uint8) << 7
    if name == "q":
        return e4m3(codes), {"q_gmem_h": codes.reshape(-1, shape[-1])}
    scales = rng.uniform(0.5, 2, shape[0]).astype(np.float32)
    return e4m3(codes) * scales[:, None].astype(np.float64), {"kv_gmem_h": codes, "kv_scales_gmem_h": scales}


def as_fp4(rng, shape, name):
    codes = rng.integers(0, 16, shape).astype(np.uint8)
    scales = rng.integers(125, 130, (*shape[:-1], shape[-1] // 32)).astype(np.uint8)
    values = E2M1[codes] * np.repeat(2.0 ** (scales.astype(np.float64) - 127), 32, axis=-1)
    words = scales.view(np.uint32)[..., 0]
    packed = pack4(codes).reshape(-1, shape[-1] // 2)
    if name == "q":
        return values, {"q_gmem_h": packed, "sf_q_gmem_h": words}
    return values, {"kv_gmem_h": packed, "sf_kv_gmem_h": words.reshape(1, -1)}


@case("mqa logits of fp8, 6 tokens, 300 keys")
def _():
    return mqa_logits("deepgemm/mqa_logits_fp8.py", 6, 300, as_fp8, 2)


@case("mqa logits of fp4, 6 tokens, 300 keys")
def _():
    return mqa_logits("deepgemm/mqa_logits_fp4.py", 6, 300, as_fp4, 2)


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


def sparse_prefill(module, heads, width, tokens, keys, chosen):
    """Each token attends to `chosen` of the keys, whose first 512 columns are the values."""
    rng = np.random.default_rng(8)
    q, kv = small_bfloat16(rng, (tokens, heads, width)), small_bfloat16(rng, (keys, width))
    indices = rng.integers(0, keys, (tokens, chosen)).astype(np.int32)
    indices[:, 0], indices[:, -1] = -1, keys  # no keys
    valid = (indices >= 0) & (indices < keys)
    out, most, total = [], [], []
    for row, picked, good in zip(wide_bfloat16(q), indices, valid):
        k = wide_bfloat16(kv)[picked[good]]
        scores = row @ k.T / np.sqrt(width)
        top = scores.max(axis=1)
        weights = np.exp(scores - top[:, None])
        out.append(weights @ k[:, :512] / weights.sum(axis=1, keepdims=True))
        most.append(top)
        total.append(top + np.log(weights.sum(axis=1)))
    return Case(
        module,
        {"s_q": tokens, "s_kv": keys, "topk": chosen, "d_qk": width},
        {
            "q": q,
            "kv": kv.reshape(-1),
            "indices": indices.reshape(-1),
            "attn_sink": np.zeros(heads, np.float32),
            "topk_length": np.zeros(tokens, np.int32),
        },
        {
            "out": (bfloat16(np.stack(out)), 4 / 128, 5e-3),
            "max_logits": (np.float32(most), 1e-4, 1e-4),
            "lse": (np.float32(total), 1e-4, 1e-4),
        },
        bits={"out"},
    )


for label, module, heads, widths, chosen in (
    ("sparse prefill, 64 heads", "sparse_prefill_head64_phase1", 64, (512, 576), 128),
    ("sparse prefill, 128 heads", "sparse_prefill_head128_phase1", 128, (512, 576), 256),
    ("sparse prefill, 128 heads, few keys", "sparse_prefill_head128_small_topk_phase1", 128, (512,), 128),
):
    for width in widths:
        case(f"{label}, width {width}")(
            lambda module=module, heads=heads, width=width, chosen=chosen: sparse_prefill(
                f"flashmla/{module}.py", heads, width, 2, 300, chosen
            )
        )


def attention_backward(tokens, causal):
    rng = np.random.default_rng(9)
    shape = (1, tokens, 1, 128)
    q, k, v, do = ((rng.standard_normal(shape) / 2).astype(np.float16) for _ in range(4))
    wide = lambda x: x[0, :, 0].astype(np.float64)
    scale = 1 / np.sqrt(128)
    scores = wide(q) @ wide(k).T * scale
    if causal:
        scores = np.where(np.tri(tokens, dtype=bool), scores, -np.inf)
    top = scores.max(axis=1)
    lse = top + np.log(np.exp(scores - top[:, None]).sum(axis=1))
    p = np.exp(scores - lse[:, None])
    sums = ((p @ wide(v)) * wide(do)).sum(axis=1)
    ds = p * (wide(do) @ wide(v).T - sums[:, None])
    plain = lambda x: x[None, :, None].astype(np.float16)
    dq = ds @ wide(k)
    # Sums of dQ, not scaled yet, lie as the tensor core's accumulators do, in tiles of 128 rows.
    s, d = np.meshgrid(np.arange(tokens), np.arange(128), indexing="ij")
    row = s // 128 * 128 + (s >> 5 & 1) + (d >> 6 & 1) * 2 + (d >> 2 & 15) * 4 + (s >> 6 & 1) * 64
    moved = np.zeros_like(dq)
    moved[row, (s & 31) * 4 + (d & 3)] = dq
    return Case(
        "attention/flash_attention_backward.py",
        {"batch_size": 1, "seq_len": tokens, "num_heads": 1, "is_causal": causal},
        {
            "Q_g": q,
            "K_g": k,
            "V_g": v,
            "dO_g": do,
            "LSE_g": (lse / np.log(2)).astype(np.float32)[None, None],
            "dpsum_g": sums.astype(np.float32)[None, None],
            "dQ_acc_g": np.zeros((1, 1, tokens, 128), np.float32),
        },
        {
            "dK_g": (plain(ds.T @ wide(q) * scale), 1e-2, 4e-3),
            "dV_g": (plain(p.T @ wide(do)), 1e-2, 4e-3),
            "dQ_acc_g": (moved.astype(np.float32)[None, None], 1e-2, 2e-2),
        },
    )


@case("attention backward, 256 tokens")
def _():
    return attention_backward(256, False)


@case("causal attention backward, 256 tokens")
def _():
    return attention_backward(256, True)


@case("causal attention forward, 256 tokens")
def _():
    return attention(256, 1, 1, True)


# What functions of raw CUDA in the library compute, in the language of kernels: the simulator cannot run C++.
STAND_INS = """
from tvm.script import tirx as T

def _float(bits):
    return T.reinterpret("float32", bits)

def _bits(value):
    return T.reinterpret("uint32", value)

def _pair(function, *words):
    low, high = (function(*(_float(T.cast(w >> T.uint64(at), "uint32")) for w in words)) for at in (0, 32))
    return T.cast(_bits(high), "uint64") << T.uint64(32) | T.cast(_bits(low), "uint64")

def _positive_sum(values, weights):
    at = lambda p, j: T.ptx.ld(T.ptr_byte_offset(p, 4 * j, "float32"), "float32", "f32")
    total = T.float32(0)
    for j in range(64):
        total = total + T.max(at(values, j), T.float32(0)) * at(weights, j)
    return total

def _doubled_positive(place, a, weights, sums):
    positive = lambda a, w, c: (a + T.abs(a)) * w + c
    return T.ptx.st(place, _pair(positive, a, weights, sums), space="local", ptx_type="b64")

def _mxf4_block32(sums, a, b, descriptor, accumulate, scales_of_a, scales_of_b):
    return T.ptx.tcgen05.mma.block_scale(
        sums, a, b, scales_of_a, scales_of_b, descriptor, d_dtype="float32", a_dtype="float4_e2m1fn", b_dtype="float4_e2m1fn",
        sfa_dtype="float8_e8m0fnu", sfb_dtype="float8_e8m0fnu", use_a_tmem=False, cta_group=1, enable_input_d=accumulate)

_STAND_INS = {
    "tirx_prefetch_l2": lambda place: T.int32(0),
    "tirx_relu2_fma_f32x2": _doubled_positive,
    "tvm_builtin_opaque_sm_idx_u32": lambda number: number,
    "tvm_builtin_opaque_warp_id": lambda number: number,
    "tvm_builtin_tcgen05_mma_mxf4_block32_ss": _mxf4_block32,
    "shl_u32_clamp": lambda value, shift: T.Select(shift < T.uint32(32), value << (shift & T.uint32(31)), T.uint32(0)),
    "combine_int_frac_ex2": lambda whole, part: _float((_bits(whole) << T.uint32(23)) + _bits(part)),
    "tvm_builtin_fma_scale_sub_f32x2": lambda a, b, c: _pair(lambda a, b, c: a * b - c, a, b, c),
    "tvm_builtin_mqa_fp8_wrelu_reduce_64": _positive_sum,
    "tvm_builtin_mqa_fp4_wrelu_reduce_64": _positive_sum,
}

def _stand_in(name, *args, source_code=None, return_type=None):
    return _STAND_INS[name](*args)
"""


def without_raw_functions(file, folder):
    """The file, or a copy of it that uses stand-ins."""
    text = file.read_text()
    calls = re.compile(r"\b(?:T\.cuda\.func_call|cuda_func_call)\(")
    if not calls.search(text):
        return file
    copy = folder / file.name
    copy.write_text(calls.sub("_stand_in(", text) + STAND_INS)  # lines keep their numbers
    return copy


# Findings after which the simulator can go on, so that values are compared in spite of them.
FINDINGS = "--continue-after=unwritten-reads,freed-columns,double-arrivals,unfinished-reads"


def run(checkout, tirx, this, folder):
    """The result and its details."""
    result, details = run_once(checkout, tirx, this, folder, ())
    if result == "reported":
        for how, options in (("going on", (FINDINGS,)), ("going on without the check of races", (FINDINGS, "--no-race-check"))):
            again, why = run_once(checkout, tirx, this, folder, options)
            details += f"; {how}: {again}" + (f" ({why})" if again != "right" else "")
            if again != "reported":
                break
    return result, details


# Folders of the library, and where it has their modules in the language of TVM 0.27.
MOVED = {"gemm": "basic", "normalization": "basic", "attention": "flashattention"}


def file_of(checkout, module):
    """The module's file, or `None` where this state of the library has none of this interface."""
    folder, name = module.split("/")
    files = (checkout / "tirx_kernels" / where / name for where in (folder, MOVED.get(folder, folder)))
    return next((file for file in files if file.exists()), None)


def run_once(checkout, tirx, this, folder, options):
    file = without_raw_functions(file_of(checkout, this.module), folder)
    command = [tirx, "tirx", "sim", str(file), "--entry", "get_kernel", "--arch", "sm_100a"]
    for name, value in this.values.items():
        command += ["-D", f"{name}={value!r}"]
    for name, value in this.arguments.items():
        if isinstance(value, (int, float)):
            command += ["--scalar", f"{name}={value}"]
            continue
        np.save(folder / f"{name}.npy", value)
        command += ["--arg", f"{name}={folder / name}.npy"]
    for name, (array, modes) in this.maps.items():
        np.save(folder / f"{name}.npy", array)
        command += ["--tensor-map", f"{name}={folder / name}.npy,{modes}"]
    for name, (expected, *_) in this.outputs.items():
        if name not in this.arguments:
            # What the kernel leaves out stays as it was, which is nothing that it could have computed.
            np.save(folder / f"{name}.npy", np.full(expected.shape, 77, expected.dtype))
            command += ["--arg", f"{name}={folder / name}.npy"]
        command += ["--out", f"{name}={folder / name}.out.npy"]
    try:
        done = subprocess.run([*command, *options], capture_output=True, text=True, timeout=LIMIT)
    except subprocess.TimeoutExpired:
        return "not ended", f"after {LIMIT} s"
    if done.returncode != 0:
        lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
        first = next((at for at, line in enumerate(lines) if line.startswith("error")), 0)
        lines = lines[first:]
        return "reported", " ".join(lines[:2]).replace(str(checkout / "tirx_kernels") + "/", "").replace(f"{folder}/", "")
    worst = 0.0
    for name, (expected, relative, absolute) in this.outputs.items():
        found = np.load(folder / f"{name}.out.npy")
        wide = wide_bfloat16 if name in this.bits else lambda x: x.astype(np.float64)
        found, expected = wide(found.reshape(expected.shape)), wide(expected)
        compared = ~np.isnan(expected)
        found, expected = found[compared], expected[compared]
        difference = np.abs(found - expected)
        good = difference <= absolute + relative * np.abs(expected)  # false of NaN
        if not good.all():
            return "wrong", f"{name}: {int((~good).sum())} of {expected.size}, by {difference.max():.3g} at most"
        worst = max(worst, float(difference.max()))
    return "right", f"differs by {worst:.1e} at most"


# Fixes of synchronization, and the cases that they concern.
HISTORY = {
    "5f714f5": ("attention forward, 256 tokens", "fp8 gemm with block scales, 1024 x 2048 x 512"),
    "fc8c67d": ("nvfp4 gemm, 256 x 256 x 512", "mqa logits of fp4, 6 tokens, 300 keys"),
    "ce7e98b": ("mqa logits of fp8, 6 tokens, 300 keys", "mqa logits of fp4, 6 tokens, 300 keys"),
    "b2a7ef0": ("nvfp4 gemm, 256 x 256 x 512",),
    "40c5e3c": ("grouped fp8 gemm, 2 groups, 480 x 256 x 512",),
    "c324c9a": (
        "mqa logits of fp4, 6 tokens, 300 keys",
        "sparse prefill, 64 heads, width 576",
        "sparse prefill, 128 heads, width 576",
        "sparse prefill, 128 heads, few keys, width 512",
    ),
}


def cases(checkout, tirx, wanted):
    for name, make in CASES.items():
        if not wanted(name):
            continue
        start = time.time()
        this = make()
        if file_of(checkout, this.module) is None:
            continue
        with tempfile.TemporaryDirectory() as folder:
            yield this.module, name, *run(checkout, tirx, this, Path(folder)), time.time() - start


def history(clone, tirx, words):
    """Runs the clone's state as it is, and with each fix taken back: older states are in the language of older releases."""
    git = lambda *words: subprocess.run(["git", "-C", clone, *words], capture_output=True, check=True).stdout
    for commit, names in HISTORY.items():
        if words and commit not in words:
            continue
        for when in ("without", "with"):
            with tempfile.TemporaryDirectory() as folder:
                subprocess.run(["tar", "x", "-C", folder], input=git("archive", "HEAD", "tirx_kernels"), check=True)
                if when == "without":
                    back = ["patch", "--reverse", "--strip=1", "--fuzz=3", "--force", "--quiet", "--reject-file=-", "-d", folder]
                    done = subprocess.run(back, input=git("show", "--format=", commit), capture_output=True)
                    if done.returncode != 0:
                        print(f"{commit}\tcannot be taken back as a whole", flush=True)
                for module, name, result, details, _ in cases(Path(folder), tirx, lambda name: name in names):
                    print(f"{commit}\t{when}\t{module}\t{name}\t{result}\t{details}", flush=True)


def main():
    arguments = [argument for argument in sys.argv[1:] if argument != "--history"]
    checkout, tirx, words = Path(arguments[0]), arguments[1], arguments[2:]
    if "--history" in sys.argv:
        return history(checkout, tirx, words)
    if words == ["--list"]:
        for name, make in CASES.items():
            print(f"{make().module}\t{name}")
        return
    exact = {word.partition("\t")[2] for word in words if word.startswith("=")}
    wanted = lambda name: not words or name in exact or any(word in name for word in words if not word.startswith("="))
    for module, name, result, details, seconds in cases(checkout, tirx, wanted):
        print(f"{module}\t{name}\t{result}\t{details} ({seconds:.0f} s)", flush=True)


main()
