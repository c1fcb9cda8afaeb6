"""The cases of `public_cases.py` and `public_cases_of_maps.py` for the state of the library whose kernels `tirx_kernels/kern` builds: what these
take under other names, and the tensor maps that they take instead of tensors.
"""

import numpy as np

from public_cases import Case

CHANGES = {}


def changes(*modules):
    def register(change):
        for module in modules:
            CHANGES[module] = change
        return change

    return register


def for_kern(this):
    """The case as the kernels of `kern` take it."""
    change = CHANGES.get(this.module)
    return this if change is None else change(this)


def changed(this, names=(), tensors=(), dropped=(), **maps):
    """`names` are new ones. Each of `maps` is a tensor with options of its map; `tensors` are those that stay beside their maps.
    An output that is no tensor any more is that of its map."""
    names = dict(names)
    new = lambda name: names.get(name, name)
    taken = {of for of, _ in maps.values()} - set(tensors)
    arguments = {new(name): value for name, value in this.arguments.items() if name not in taken and name not in dropped}
    outputs, given = {}, dict(this.maps)
    for name, (of, options) in maps.items():
        if of in tensors:
            given[name] = (new(of), options)
        elif of in this.outputs:
            expected = this.outputs[of][0]
            outputs[name] = this.outputs[of]
            given[name] = (this.arguments.get(of, np.full(expected.shape, 77, expected.dtype)), options)
        else:
            given[name] = (this.arguments[of], options)
    outputs |= {new(name): value for name, value in this.outputs.items() if name not in taken}
    bits = {name for name in outputs if name in this.bits} | {new(name) for name in this.bits}
    return Case(this.module, this.values, arguments, outputs, bits=bits, maps=given, entry=this.entry)


@changes("normalization/rmsnorm.py")
def _(this):
    rows = this.arguments["input_global"].shape[0]
    this.arguments |= {"batch_size": rows, "input_global": this.arguments["input_global"].reshape(-1)}
    expected, *tolerances = this.outputs["out_global"]
    this.outputs["out_global"] = (expected.reshape(-1), *tolerances)
    return changed(this, {"input_global": "inp", "weight_global": "wgt", "out_global": "out"})


@changes("gemm/fp16_bf16_gemm.py")
def _(this):
    return changed(this, {"A": "a", "B": "b", "D": "d"})


@changes("gemm/nvfp4_gemm.py")
def _(this):
    m, n, k = (this.values[name] for name in "MNK")
    scales = lambda rows: f"dtype=uint16,shape={rows // 128}x{k // 64}x256,strides={k * 8}x512,box=1x4x256"
    return changed(
        this,
        A_tensor_map=("A_packed", "box=128x128,swizzle=128"),
        B_tensor_map=("B_packed", "box=128x128,swizzle=128"),
        SFA_tensor_map=("SFA_in", scales(m)),
        SFB_tensor_map=("SFB_in", scales(n)),
        D_tensor_map=("D", "dtype=bfloat16,box=128x64,swizzle=128"),
    )


@changes("attention/flash_attention4.py")
def _(this):
    rows = lambda x: f"shape={2 * x.shape[2]}x{x.shape[1]}x64,strides=128x{x.shape[2] * 256},box=2x128x64,swizzle=128"
    q, k, v = (this.arguments[name] for name in "QKV")
    assert q.shape == k.shape, "the map of several heads for one of keys has another form"
    maps = {"Q_tensor_map": ("Q", rows(q)), "K_tensor_map": ("K", rows(k)), "V_tensor_map": ("V", rows(v))}
    maps |= {f"{name}_1": of for name, of in maps.items()}
    return changed(this, **maps, O_tensor_map=("O", rows(q)))


@changes("attention/flash_attention_backward.py")
def _(this):
    batch, tokens, heads, width = this.arguments["Q_g"].shape
    row, step = heads * width * 2, tokens * heads * width * 2
    halves = f"shape={batch}x{heads}x2x{tokens}x64,strides={step}x{width * 2}x{width}x{row},box=1x1x2x{{}}x64,swizzle=128"
    plain = f"shape={batch}x{heads}x{tokens}x{width},strides={step}x{width * 2}x{row},box=1x1x{{}}x64,swizzle=128"
    sums = f"shape={batch}x{heads}x{tokens}x{width},strides={heads * tokens * width * 4}x{tokens * width * 4}x{width * 4},box=1x1x8x{width}"
    maps = {
        **{"q_row_map": ("Q_g", halves.format(64)), "q_col_map": ("Q_g", plain.format(128))},
        **{"k_row_map": ("K_g", halves.format(128)), "k_col_map": ("K_g", plain.format(256)), "v_row_map": ("V_g", halves.format(128))},
        **{"do_row_map": ("dO_g", halves.format(64)), "do_col_map": ("dO_g", plain.format(128))},
        **{"dk_map": ("dK_g", plain.format(128)), "dv_map": ("dV_g", plain.format(128)), "dq_map": ("dQ_acc_g", sums)},
    }
    flat(this)
    return changed(this, tensors={of for of, _ in maps.values()}, **maps)


def flat(this):
    """Tensors of one dimension, as `K.gptr` takes them."""
    for name, value in this.arguments.items():
        if isinstance(value, np.ndarray):
            this.arguments[name] = value.reshape(-1)
    this.outputs = {name: (expected.reshape(-1), *rest) for name, (expected, *rest) in this.outputs.items()}


@changes("deepgemm/tf32_hc_prenorm_gemm.py")
def _(this):
    m, n, k, splits = (this.values[name] for name in ("m", "n", "k", "num_splits"))
    columns = -(-n // 16) * 16
    result = f"shape={splits}x{m}x{n},strides={m * n * 4}x{n * 4},box=1x64x{columns}" if splits > 1 else f"shape={m}x{n},box=64x{columns}"
    maps = {
        "a_map": ("a", f"dtype=bfloat16,shape={m}x{k},box=64x64,swizzle=128"),
        "b_map": ("b", f"dtype=tfloat32,shape={n}x{k},box={columns}x32,swizzle=128"),
        "d_map": ("d", f"{result},swizzle=128"),
    }
    flat(this)
    return changed(this, tensors="abd", **maps)


@changes("deepgemm/mqa_logits_fp8.py", "deepgemm/mqa_logits_fp4.py")
def _(this):
    tokens, keys = this.values["seq_len"], this.values["seq_len_kv"]
    words = lambda rows, of: f"dtype={of},shape={tokens}x64,box={rows}x64"
    if this.module.endswith("fp8.py"):
        this.arguments["num_q_blocks"] = -(-tokens // 2)
        maps = {
            "kv_map": ("kv_gmem_h", "box=256x128,swizzle=128"),
            "kv_scales_map": ("kv_scales_gmem_h", "box=256"),
            "q_map": ("q_gmem_h", "box=128x128,swizzle=128"),
        }
    else:
        maps = {
            "kv_map": ("kv_gmem_h", "box=256x64,swizzle=64"),
            "sf_kv_map": ("sf_kv_gmem_h", f"dtype=uint32,shape={keys},box=256"),
            "q_map": ("q_gmem_h", "box=128x64,swizzle=64"),
            "sf_q_map": ("sf_q_gmem_h", words(2, "uint32")),
        }
    expected, *tolerances = this.outputs["logits_h"]
    this.outputs["logits_h"] = (expected.reshape(-1), *tolerances)
    names = {"cu_seq_len_k_start_h": "cu_seq_len_k_start", "cu_seq_len_k_end_h": "cu_seq_len_k_end", "logits_h": "logits_flat"}
    return changed(this, names, weights_map=("weights_gmem_h", words(2, "float32")), **maps)


@changes("deepgemm/paged_mqa_logits_fp8.py", "deepgemm/paged_mqa_logits_fp4.py")
def _(this):
    flat(this)
    return changed(this, {name: f"{name}_flat" for name in ("context_lens", "block_table", "schedule_meta", "logits")})


@changes("flashinfer/gemm/tinygemm2_sm100.py")
def _(this):
    return changed(this, {"d_bias_h": "d_bias", "c_output_h": "c_output"})


@changes(*(f"deepgemm/{name}.py" for name in ("fp8_gemm_1d1d", "m_grouped_fp8_gemm_contiguous", "m_grouped_fp8_gemm_masked", "k_grouped_fp8_gemm_contiguous", "fp8_bmm")))
def _(this):
    return changed(this, {"grouped_layout_ptr": "grouped_layout"})


@changes("flashinfer/mamba/selective_state_update_mtp_vertical.py", "flashinfer/mamba/selective_state_update_mtp_horizontal.py")
def _(this):
    nothing = {"state_scale": np.float32, "intermediate_scales": np.float32, "cu_seqlens": np.int32}
    nothing |= {"dst_indices": np.int64, "num_accepted_tokens": np.int64}
    this.arguments |= {name: np.zeros(1, dtype) for name, dtype in nothing.items()}
    return this


@changes("flashinfer/gdn_prefill/gdn_prefill_sm100.py")
def _(this):
    return changed(this, {"descriptor_workspace": "desc_ws"})


@changes("flashmla/sparse_decode_head64.py")
def _(this):
    if "max_splits" in this.values:
        # On a GPU of 32 multiprocessors the configuration has 32 parts at most.
        this.options = ("--multiprocessors", "32")
        this.values = {"model_type": "V32", "b": 1, "s_q": 1, "s_kv": 320, "topk": 256, "page_block_size": 64, "have_attn_sink": True}
        this.entry = "get_kernel[sparse_flashmla_decode_head64_combine]"
        return this
    this.entry = "get_kernel[sparse_flashmla_decode_head64]"
    pages, row = this.arguments["num_blocks"], 656
    rows, heads, width = pages * this.arguments["stride_kv_block"] // row, 64, 576
    queries = f"strides={heads * width * 2}x{heads * width * 2}x{width * 2}"
    step = heads * 512 * 2
    maps = {
        "kv_rope_tensormap": ("kv", f"dtype=bfloat16,shape={rows}x64,strides={row},offset=528,box=1x32,swizzle=64"),
        "kv_nope_tensormap": ("kv", f"dtype=int64,shape={rows}x64,strides={row},box=1x64"),
        "q_strided_tensormap": ("q", f"dtype=bfloat16,shape=1x1x{heads}x{width},{queries},box=1x1x{heads}x64,swizzle=128"),
        "q_tail_tensormap": (
            "q",
            f"dtype=bfloat16,shape=1x1x{width // 32}x{heads}x32,strides={heads * width * 2}x{heads * width * 2}x64x{width * 2},"
            f"box=1x1x2x{heads}x32,swizzle=64",
        ),
        "out_tensormap": ("out", f"dtype=bfloat16,shape=1x1x{heads}x512,strides={step}x{step}x1024,box=1x1x{heads}x64,swizzle=128"),
    }
    maps |= {f"extra_{name}": maps[name] for name in ("kv_rope_tensormap", "kv_nope_tensormap")}
    flat(this)
    nothing = {"topk_length": np.int32, "extra_kv": np.uint16, "extra_indices": np.int32, "extra_topk_length": np.int32}
    this.arguments |= {name: np.zeros(1, dtype) for name, dtype in nothing.items()}
    this.arguments |= {"tma_coords_step_per_block": this.arguments["stride_kv_block"] // row, "tma_coords_step_per_extra_block": 0}
    return changed(this, tensors={"q", "kv", "out"}, **maps)
