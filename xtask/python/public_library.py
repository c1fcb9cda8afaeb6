"""Kernels of the public library in the language of TVM 0.27, run on the simulator by the library's own tests.

public_library.py CHECKOUT TIRX [WORD...]; TIRX is the `cargo-tirx` executable, a word selects cases by name, and
`=MODULE<tab>NAME` is one case; `--list` prints these. Needs PyTorch (the CPU is
enough) and apache-tvm 0.27, which the library imports. Prints a line a case: module, name, result and details, separated by tabs.

The library's tests make data on the GPU, compile a kernel, launch it and compare with references. Here tensors are on the CPU
wherever the tests ask for the GPU, and a compiled kernel is a run of the simulator on the kernel's file as it is. References that need
the packages that a kernel was ported from are left out; what remains is what the library computes with PyTorch.
"""

import importlib
import subprocess
import sys
import tempfile
import time
import types
from pathlib import Path

import numpy as np
import torch

CASES = {}
LIMIT = 3600  # seconds of a run


def case(module, name, **config):
    """Registers a test of a module at a configuration: `test(library, config)`."""

    def register(test):
        CASES[f"{module} {name}".strip()] = (module, config, test)
        return test

    return register


class Reported(Exception):
    """The simulator reported something."""


class NotEnded(Exception):
    """A run takes longer than is waited for."""


class Kernel:
    """A kernel of the library, compiled and run by the command line for each call."""

    def __init__(self, path, entry, values, options=()):
        self.path, self.entry, self.values, self.options = path, entry, values, options

    def __call__(self, *arguments):
        command = [TIRX, "tirx", "sim", str(self.path), "--entry", self.entry, "--arch", "sm_100a", *self.options]
        for name, value in self.values.items():
            command += ["-D", f"{name}={value!r}"]
        with tempfile.TemporaryDirectory() as folder:
            tensors = {}
            for number, value in enumerate(arguments):
                if isinstance(value, torch.Tensor):
                    tensors[number] = value
                    np.save(f"{folder}/{number}.npy", as_numpy(value))
                    command += ["--arg", f"{number}={folder}/{number}.npy", "--out", f"{number}={folder}/{number}.out.npy"]
                elif value is not None:
                    command += ["--scalar", f"{number}={value}"]
            try:
                done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT)
            except subprocess.TimeoutExpired:
                raise NotEnded(f"after {LIMIT} s") from None
            if done.returncode != 0:
                lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
                lines = [line for line in lines if not line.startswith("warning")]
                raise Reported(" ".join(lines[:3]))
            for number, tensor in tensors.items():
                found = torch.from_numpy(np.load(f"{folder}/{number}.out.npy"))
                tensor.copy_(found.view(tensor.dtype).reshape(tensor.shape))


# NumPy has no such floats: they go by their bits.
BITS = {torch.bfloat16: torch.uint16, torch.float8_e4m3fn: torch.uint8, torch.float8_e5m2: torch.uint8, torch.bool: torch.uint8}


def as_numpy(tensor):
    tensor = tensor.detach().contiguous()
    return tensor.view(BITS.get(tensor.dtype, tensor.dtype)).numpy()


def on_gpu(value):
    return (isinstance(value, str) and value.startswith("cuda")) or (isinstance(value, torch.device) and value.type == "cuda")


class OnCpu(torch.overrides.TorchFunctionMode):
    """Makes tensors on the CPU where the GPU is asked for; they say that they are on the GPU."""

    def __torch_function__(self, function, kinds, args=(), kwargs=None):
        if function is torch.Tensor.cuda:
            return args[0]
        if function == torch.Tensor.is_cuda.__get__:
            return True
        if function is torch.device:
            return function(*args, **(kwargs or {}))
        if function == torch.Tensor.device.__get__:
            return torch.device("cuda", 0)
        kwargs = {name: torch.device("cpu") if on_gpu(value) else value for name, value in (kwargs or {}).items()}
        args = [torch.device("cpu") if on_gpu(value) else value for value in args]
        return function(*args, **kwargs)


def stand_in_for_the_gpu():
    """The parts of `torch.cuda` that the tests call, and the library's compiler."""
    class Generator(torch.Generator):
        def __new__(cls, device="cpu"):
            return super().__new__(cls)

    torch.Generator = Generator
    properties = types.SimpleNamespace(multi_processor_count=148, shared_memory_per_block_optin=232448, name="simulator", major=10, minor=0)
    stand_ins = {
        "is_available": lambda: True,
        "is_initialized": lambda: False,
        "synchronize": lambda *_: None,
        "get_device_capability": lambda *_: (10, 0),
        "get_device_properties": lambda *_: properties,
        "current_device": lambda: 0,
        "empty_cache": lambda: None,
    }
    for name, function in stand_ins.items():
        setattr(torch.cuda, name, function)
    # The library's runner imports parts of TVM that came after 0.27.
    runner = types.ModuleType("tirx_kernels.runner")
    runner.compile_kernel = lambda kernel: kernel
    runner.hardware_num_sms = lambda default=148: default
    runner.cuda_target = runner.bench = runner.compile_executable = lambda *_, **__: None
    runner.check_low_level_ir = runner.prepared_gpu_benchmark = lambda *_, **__: None
    sys.modules["tirx_kernels.runner"] = runner
    # What is imported only to see that it is there.
    sys.modules["flashinfer"] = types.ModuleType("flashinfer")


def load(module, options=()):
    """A module of the library whose `get_kernel` gives a `Kernel`."""
    library = importlib.import_module("tirx_kernels." + module.removesuffix(".py").replace("/", "."))
    path = CHECKOUT / "tirx_kernels" / module
    library.get_kernel = lambda **values: Kernel(path, "get_kernel", values, options)
    return library


def by_own_test(library, config):
    """The library's test, which compares with PyTorch alone."""
    library.run_test(**config)


def by_oracle(library, config):
    """The library's test; the comparison with the package that the kernel comes from compares the kernel with itself."""

    def same(case):
        if "reference_state_raw" in case:
            case["reference_state_raw"].copy_(case["tirx_state_raw"])
        return case["tirx_out"]

    library._flashinfer_reference = same
    library.run_test(**config)


# Rows that fill the tiles: of a part of one the kernels read what no copy has written, and leave it out afterwards.
SMALL_NORM = {"M": 8, "H": 256, "enable_pdl": False}


@case("basic/rmsnorm.py", "")
def _(library, _):
    x, w = torch.randn(3, 512, dtype=torch.float16), torch.randn(512, dtype=torch.float16)
    out = torch.zeros_like(x)
    library.get_kernel(hidden_size=512)(x, w, out)
    wide = x.float()
    expected = wide * torch.rsqrt(wide.pow(2).mean(dim=-1, keepdim=True) + 1e-6) * w.float()
    torch.testing.assert_close(out, expected.half(), rtol=1e-3, atol=1e-3)


def gemm(library, config):
    a, b = (torch.randint(-3, 4, (n, config["K"])).half() for n in (config["M"], config["N"]))
    out = torch.zeros(config["M"], config["N"], dtype=torch.float16)
    library.get_kernel(**config)(a, b, out)
    torch.testing.assert_close(out, (a.float() @ b.float().T).half(), rtol=0, atol=0)


case("basic/fp16_bf16_gemm.py", "512 x 256 x 128", M=512, N=256, K=128, dtype="fp16")(gemm)


def attention(library, config):
    library.get_flash_attention4_kernel = lambda batch_size, seq_len, _, num_qo_heads, num_kv_heads, head_dim, is_causal: library.get_kernel(
        batch_size=batch_size, seq_len=seq_len, num_qo_heads=num_qo_heads, num_kv_heads=num_kv_heads, head_dim=head_dim, is_causal=is_causal
    )
    library.run_test(**config)


for causal in (False, True):
    case(
        "flashattention/flash_attention4.py",
        "256 tokens" + ", causal" * causal,
        batch_size=1,
        seq_len=256,
        num_qo_heads=1,
        num_kv_heads=1,
        head_dim=128,
        is_causal=causal,
    )(attention)


def activation(library, config):
    (given,) = library.prepare_data(**config)
    out = torch.zeros(config["num_tokens"], config["d"], dtype=given.dtype)
    library.get_kernel(**config)(given, out)
    x, y = given.float().split(config["d"], dim=1)
    functions = {
        "silu": torch.nn.functional.silu,
        "gelu": torch.nn.functional.gelu,
        "gelu_tanh": lambda x: torch.nn.functional.gelu(x, approximate="tanh"),
    }
    expected = (functions[config["act"]](x) * y).to(given.dtype)
    within = 1e-3 if given.dtype == torch.float16 else 8e-3
    torch.testing.assert_close(out, expected, rtol=within, atol=within)


for act in ("silu", "gelu", "gelu_tanh"):
    for dtype in ("float16", "bfloat16"):
        case("flashinfer/activation/act_and_mul.py", f"{act} {dtype}", act=act, dtype=dtype, num_tokens=3, d=264)(activation)


def rmsnorm(library, config):
    data = library._prepare_tensors(config)
    output = library._prepare_output(config["M"], config["H"], data["y_row_stride"], config["dtype"], initialize_padding=True)
    snapshot = library._input_snapshot(data, config["M"], config["H"])
    library._launch_tirx(library.get_kernel(**config), data, output, config)
    expected = library._math_oracle(data["x"], data["weight"], config["variant"], 1e-6, None)
    library._assert_close(output["view"], expected, name="FP32")
    library._assert_inputs_unchanged(data, snapshot, config["M"], config["H"])
    library._assert_output_padding(output, config["M"], config["H"], data["y_row_stride"], name="output")


for variant in ("rmsnorm", "gemma_rmsnorm"):
    for layout in ("compact", "strided"):
        case(
            "flashinfer/norm/rmsnorm.py",
            f"{variant} {layout}",
            **SMALL_NORM,
            variant=variant,
            dtype="float16",
            input_layout=layout,
            output_layout=layout,
        )(rmsnorm)


def layernorm(library, config):
    data = library._prepare_tensors(config)
    output = library._prepare_output(config["M"], config["H"], data["y_row_stride"], initialize_padding=True)
    library._launch_tirx(library.get_kernel(**config), data, output, config)
    expected = library._math_oracle(data["x"], data["gamma"], data["beta"], 1e-6, None)
    library._assert_close(output["view"], expected, name="FP32", rtol=1e-2, atol=1e-2)


case("flashinfer/norm/layernorm.py", "", M=3, H=768, enable_pdl=False, input_layout="compact", output_layout="compact")(layernorm)


def fused_add_rmsnorm(library, config):
    data = library._prepare_tensors(config)
    snapshot = library._input_snapshot(data, config["M"], config["H"])
    library._launch_tirx(library.get_kernel(**config), data, config)
    output, residual = library._math_oracle(snapshot, config["variant"], 1e-6)
    library._assert_close(data["input"], output, name="output")
    library._assert_close(data["residual"], residual, name="residual")


case(
    "flashinfer/norm/fused_add_rmsnorm.py",
    "",
    **SMALL_NORM,
    variant="fused_add_rmsnorm",
    dtype="float16",
    input_layout="compact",
    residual_layout="compact",
)(fused_add_rmsnorm)


def qk_rmsnorm(library, config):
    data = library._prepare_tensors(config)
    output = library._prepare_output(
        *(config[name] for name in "BNH"), data["y_batch_stride"], data["y_head_stride"], config["dtype"], initialize_padding=True
    )
    library._launch_tirx(library.get_kernel(**config), data, output, config)
    expected = library._math_oracle(data["x"], data["weight"], config["variant"], 1e-6, None, config["N"])
    library._assert_close(library._checked_rows(output["view"], None, config["N"]), expected, name="FP32")


case(
    "flashinfer/norm/qk_rmsnorm.py",
    "",
    B=2,
    N=8,
    H=128,
    variant="rmsnorm",
    dtype="float16",
    enable_pdl=False,
    input_layout="compact",
    output_layout="compact",
)(qk_rmsnorm)


def rmsnorm_quant(library, config):
    data = library._prepare_tensors(config)
    output = library._prepare_output(config["M"], config["H"], data["y_row_stride"], config["output_dtype"], initialize_padding=True)
    library._launch_tirx(library.get_kernel(**config), data, output, config)
    expected = library._math_oracle(data["x"], data["weight"], data["scale"], 1e-6, config["output_dtype"], None)
    library._assert_math_close(output["view"], expected, name="FP32")


case(
    "flashinfer/norm/rmsnorm_quant.py",
    "",
    **SMALL_NORM,
    input_dtype="float16",
    output_dtype="float8_e4m3fn",
    input_layout="compact",
    output_layout="compact",
    scale=1.0,
)(rmsnorm_quant)

KDA = (
    "flashkda_decode_t1_precomputed",
    "flashkda_decode_t2_precomputed",
    "flashkda_decode_t3_lower_bound",
    "flashkda_decode_t4_precomputed",
    "flashkda_decode_t5_gram",
    "flashkda_decode_t6_gram",
    "recurrent_kda_decode_one_warp",
    "recurrent_kda_decode_grouped",
)


def smallest(library, config):
    """The library's test at its configuration with the fewest sequences."""
    configs = [{name: value for name, value in config.items() if name != "label"} for config in library.CONFIGS]
    size = lambda config: (config.get("num_seqs") or config.get("batch") or 1) * (config.get("num_value_heads") or 1)
    by_oracle(library, {**min(configs, key=size), **config})


for name in KDA:
    case(f"flashinfer/kda/{name}.py", "")(smallest)


def topk(library, config):
    """Any k largest are right where values are equal: the library's comparison knows."""

    def reference(cfg, data, outputs):
        values, indices = data["scores"].float().topk(cfg["k"], dim=1)
        outputs["values"].copy_(values)
        outputs["indices"].copy_(indices)

    library.run_reference = reference
    library.assert_reference_is_top_k = library.assert_device_matches_compile_profile = lambda *_: None
    library.run_test(**config)


for dtype in ("float32", "bfloat16"):
    case("flashinfer/topk/radix_topk_single_cta.py", dtype, dtype=dtype, mode="basic", num_rows=2, length=2048, k=64)(topk)


def mxfp8(library, config):
    given = library.prepare_data(**config)
    given = given[0] if isinstance(given, tuple) else given
    out, scales = library._alloc_outputs(config["m"], config["k"], config["sf_layout"])
    library.get_kernel(**config)(given.view(-1), out.view(-1), scales, config["m"] * (config["k"] // 32))
    blocks = given.float().reshape(-1, 32)
    # The smallest power of two that is not below the greatest magnitude by 448.
    bits = (blocks.abs().amax(dim=1) * torch.tensor(1 / 448)).view(torch.int32)
    exponent = (bits >> 23) + (bits & 0x7FFFFF != 0)
    torch.testing.assert_close(scales.int(), exponent, rtol=0, atol=0)
    quantized = (blocks * torch.exp2(127.0 - exponent)[:, None]).clamp(-448, 448).to(torch.float8_e4m3fn)
    torch.testing.assert_close(out.view(-1), quantized.view(torch.uint8).view(-1), rtol=0, atol=0)


for dtype in ("float16", "bfloat16"):
    case(
        "flashinfer/quantization/mxfp8_quantize.py", dtype, dtype=dtype, m=16, k=256, sf_layout="linear", enable_pdl=False
    )(mxfp8)


def state_update(library, config):
    """One step of the recurrence of a selective state-space model."""

    def reference(case):
        kwargs, spec = case["kwargs"], case["spec"]
        states = library._view_state(case["reference_state_raw"], spec, case["state_stride"])
        slots = case["state_indices"].reshape(-1)
        # Heads of a group share B and C.
        spread = lambda m: m.float().repeat_interleave(kwargs["nheads"] // kwargs["ngroups"], dim=-2)
        step = case["dt_view"].float()
        step = step + case["bias_view"].float() if kwargs["has_dt_bias"] else step
        step = torch.nn.functional.softplus(step)
        for n in range(kwargs["batch"]):
            slot = int(slots[n])
            x, dt = case["x"][n].float(), step[n]
            decay = torch.exp(dt[..., None] * case["matrix_a_view"].float())
            b, c = spread(case["matrix_b"][n]), spread(case["matrix_c"][n])
            state = states[slot].float() * decay + (dt * x)[..., None] * b[:, None, :]
            out = (state * c[:, None, :]).sum(dim=-1) + case["d_view"].float() * x
            states[slot].copy_(state)
            case["reference_output"][n].copy_(out)

    library._run_reference = reference
    library.run_test(**{**library._case(""), **config})


for name in ("simple", "vertical"):
    case(f"flashinfer/mamba/selective_state_update_stp_{name}.py", "", batch=2, nheads=4, ngroups=2, dim=64, dstate=128)(state_update)

for name, heads, sizes in (
    ("sparse_prefill_head64_phase1", 64, {"topk": 512}),
    ("sparse_prefill_head128_phase1", 128, {"topk": 512, "d_qk": 576}),
    ("sparse_prefill_head128_small_topk_phase1", 128, {"topk": 256}),
):
    case(f"flashmla/{name}.py", "", **{"s_q": 2, "s_kv": 1024, "h_q": heads, "d_qk": 512, "have_attn_sink": True, **sizes})(by_own_test)


def main():
    global CHECKOUT, TIRX
    CHECKOUT, TIRX, words = Path(sys.argv[1]).resolve(), sys.argv[2], sys.argv[3:]
    sys.path.insert(0, str(CHECKOUT))
    stand_in_for_the_gpu()
    for name, (module, config, test) in CASES.items():
        case = f"{module}\t{name.removeprefix(module).strip()}"
        if words == ["--list"]:
            print(case)
            continue
        if words and not any(case == word[1:] if word.startswith("=") else word in name for word in words):
            continue
        start = time.time()
        with OnCpu():
            torch.manual_seed(0)
            try:
                test(load(module), dict(config))
                result, details = "right", ""
            except Reported as report:
                result, details = "reported", str(report)
            except NotEnded as error:
                result, details = "not ended", str(error)
            except AssertionError as error:
                result, details = "wrong", " ".join(str(error).split())[:300]
            except Exception as error:  # a defect of the case, which must not hide the others
                result, details = "not run", f"{type(error).__name__}: {error}"
        print(f"{case}\t{result}\t{details} ({time.time() - start:.0f} s)", flush=True)


main()
