"""Small configurations of the public library's kernels, and what they must compute, by NumPy: those that take tensors.

Those that take tensor maps are in `public_cases_of_maps.py`, and `public_kernels.py` runs both.
"""

import numpy as np

CASES = {}


def case(name):
    def register(make):
        CASES[name] = make
        return make

    return register


class Case:
    """A module, its configuration, its arguments, and what its outputs must be: `(expected, relative, absolute)`. A NaN
    stands for an element that is not compared. A tensor map is an array, or the name of a tensor of the kernel, with options of
    `--tensor-map`. `options` are further ones of the command."""

    def __init__(self, module, values, arguments, outputs, bits=(), maps=None, entry="get_kernel", options=()):
        self.module, self.values, self.arguments, self.outputs = module, values, arguments, outputs
        self.maps, self.entry, self.options = maps or {}, entry, options
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


def sparse_decode(keys, chosen):
    """One token of one request attends to `chosen` keys, of which 512 columns are float8 with four scales and 64 are bfloat16; the
    first 512 columns are the values."""
    heads, width, page, row = 64, 576, 64, 656
    rng = np.random.default_rng(19)
    pages = keys // page
    q = small_bfloat16(rng, (heads, width))
    codes = rng.integers(0x28, 0x48, (keys, 512)).astype(np.uint8) | rng.integers(0, 2, (keys, 512)).astype(np.uint8) << 7
    scales = 2.0 ** rng.integers(-2, 2, (keys, 4))
    rest = small_bfloat16(rng, (keys, 64))
    kv = np.concatenate([e4m3(codes) * np.repeat(scales, 128, axis=1), wide_bfloat16(rest)], axis=1)
    rows = np.concatenate([codes, scales.astype(np.float32).view(np.uint8), rest.view(np.uint8)], axis=1)
    stored = np.zeros((pages, page + 1, row), np.uint8)
    stored[:, :page] = rows.reshape(pages, page, row)
    indices = rng.permutation(keys)[:chosen].astype(np.int32)
    indices[[0, -1]] = -1  # no keys
    sink = rng.standard_normal(heads).astype(np.float32)
    picked = kv[indices[indices >= 0]]
    scale = width**-0.55
    scores = wide_bfloat16(q) @ picked.T * scale
    top = scores.max(axis=1)
    weights = np.exp(scores - top[:, None])
    total = top + np.log(weights.sum(axis=1))
    out = weights @ picked[:, :512] / weights.sum(axis=1, keepdims=True) / (1 + np.exp(sink - total))[:, None]
    return Case(
        "flashmla/sparse_decode_head64.py",
        {
            **{"model_type": "V32", "b": 1, "s_q": 1, "s_kv": keys, "topk": chosen, "page_block_size": page},
            "have_attn_sink": True,
        },
        {
            **{"q": q.reshape(1, 1, heads, width), "kv": stored.view(np.uint16).reshape(-1, row // 2), "indices": indices},
            "attn_sink": sink,
            "lse_accum": np.zeros(heads, np.float32),
            "o_accum": np.zeros(heads * 512, np.float32),
            # The one partition: request 0, from its first block of keys to its last.
            "tile_scheduler_metadata": np.int32([[0, 0, 0, chosen // 64, 0, 0, 0, 0]]),
            "num_splits": np.int32([0, 1]),
            "sm_scale_div_log2": scale / np.log(2),
            **{"stride_q_b": heads * width, "stride_q_s_q": heads * width, "stride_q_h_q": width},
            **{"stride_kv_block": (page + 1) * row, "stride_kv_row": row, "stride_indices_b": chosen, "stride_indices_s_q": chosen},
            **{"stride_lse_b": heads, "stride_lse_s_q": heads},
            **{"stride_o_b": heads * 512, "stride_o_s_q": heads * 512, "stride_o_h_q": 512},
            **{f"stride_extra_{name}": 0 for name in ("kv_block", "kv_row", "indices_b", "indices_s_q")},
            **{"stride_lse_accum_split": 0, "stride_lse_accum_s_q": heads},
            **{"stride_o_accum_split": 0, "stride_o_accum_s_q": heads * 512, "stride_o_accum_h_q": 512},
            **{"b": 1, "s_q": 1, "topk": chosen, "extra_topk": 0, "num_blocks": pages, "extra_num_blocks": 0},
            **{"page_block_size": page, "extra_page_block_size": 0, "num_sm_parts": 1},
        },
        {
            "out": (bfloat16(out).reshape(1, 1, heads, 512), 4 / 128, 5e-3),
            "lse": (total.astype(np.float32), 1e-4, 1e-4),
        },
        bits={"out"},
        entry="get_kernel[_kernel]",
    )


@case("sparse decode, 64 heads, 256 of 320 keys")
def _():
    return sparse_decode(320, 256)


@case("sparse decode, the sum of 3 parts")
def _():
    heads, parts = 64, 3
    rng = np.random.default_rng(20)
    logs, values = rng.standard_normal((parts, heads)), rng.standard_normal((parts, heads, 512)).astype(np.float32)
    logs, sink = logs.astype(np.float32), rng.standard_normal(heads).astype(np.float32)  # those of the parts are of base 2
    weights = np.exp2(logs.astype(np.float64))
    total = np.log(weights.sum(axis=0))
    out = (weights[:, :, None] * values).sum(axis=0) / (np.exp(total) + np.exp(sink))[:, None]
    return Case(
        "flashmla/sparse_decode_head64.py",
        {"max_splits": 32, "use_pdl": False},
        {
            **{"lse_accum": logs.reshape(-1), "o_accum": values.reshape(-1), "num_splits": np.int32([0, parts]), "attn_sink": sink},
            **{"stride_lse_b": heads, "stride_lse_s_q": heads},
            **{"stride_o_b": heads * 512, "stride_o_s_q": heads * 512, "stride_o_h_q": 512},
            **{"stride_lse_accum_split": heads, "stride_lse_accum_s_q": heads},
            **{"stride_o_accum_split": heads * 512, "stride_o_accum_s_q": heads * 512, "stride_o_accum_h_q": 512},
            **{"b": 1, "s_q": 1, "h_q": heads, "d_v": 512, "num_sm_parts": parts - 1},
        },
        {"out": (bfloat16(out).reshape(-1), 1 / 64, 1e-3), "lse": (total.astype(np.float32), 1e-4, 1e-4)},
        bits={"out"},
        # `get_kernel` would choose `max_splits` by the GPU that is there.
        entry="_sparse_decode_head64_combine_kernel",
    )
