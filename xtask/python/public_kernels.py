"""Runs kernels of the public library on the simulator and compares with NumPy: public_kernels.py CHECKOUT TIRX [WORD...].

TIRX is the `cargo-tirx` executable. Each case is one small configuration of a family; a word selects cases by name. Prints
a line a case: the name, the result and its details, separated by tabs. The result is `right`, `wrong` (with the largest
difference) or `reported` (with the first lines of what the simulator reported).
"""

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

CASES = {}


def case(name):
    def register(make):
        CASES[name] = make
        return make

    return register


class Case:
    """A module, its configuration, its arguments, and what its outputs must be: `(expected, relative, absolute)`."""

    def __init__(self, module, values, arguments, outputs, entry="get_kernel", options=()):
        self.module, self.values, self.arguments, self.outputs = module, values, arguments, outputs
        self.entry, self.options = entry, options


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


# The kernel reads sums behind a commit's mbarrier without `tcgen05.fence::after_thread_sync`, and publishes mbarriers by
# `fence.mbarrier_init` before a relaxed arrival at the cluster's barrier; both are reported as races.
UNORDERED = ("--no-race-check",)


def gemm(dtype, m, n, k):
    rng = np.random.default_rng(1)
    a, b = (rng.integers(-3, 4, shape).astype(np.float16) for shape in ((m, k), (n, k)))
    expected = (a.astype(np.float32) @ b.astype(np.float32).T).astype(np.float16)
    values = {"dtype": dtype, "M": m, "N": n, "K": k}
    return Case("gemm/fp16_bf16_gemm.py", values, {"A": a, "B": b}, {"D": (expected, 0, 0)}, options=UNORDERED)


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
        options=UNORDERED,
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
        options=UNORDERED,
    )


@case("attention forward, 256 tokens")
def _():
    return attention(256, 1, 1, False)


def run(checkout, tirx, this, folder):
    """The result and its details."""
    command = [tirx, "tirx", "sim", str(checkout / "tirx_kernels" / this.module), "--entry", this.entry, "--arch", "sm_100a"]
    for name, value in this.values.items():
        command += ["-D", f"{name}={value!r}"]
    for name, value in this.arguments.items():
        if isinstance(value, (int, float)):
            command += ["--scalar", f"{name}={value}"]
            continue
        np.save(folder / f"{name}.npy", value)
        command += ["--arg", f"{name}={folder / name}.npy"]
    for name, (expected, *_) in this.outputs.items():
        if name not in this.arguments:
            # What the kernel leaves out stays as it was, which is nothing that it could have computed.
            np.save(folder / f"{name}.npy", np.full_like(expected, 77))
            command += ["--arg", f"{name}={folder / name}.npy"]
        command += ["--out", f"{name}={folder / name}.out.npy"]
    done = subprocess.run(command + list(this.options), capture_output=True, text=True)
    if done.returncode != 0:
        lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
        return "reported", " ".join(lines[:2])
    worst = 0.0
    for name, (expected, relative, absolute) in this.outputs.items():
        found = np.load(folder / f"{name}.out.npy")
        found, expected = found.astype(np.float64), expected.astype(np.float64)
        difference = np.abs(found - expected)
        if not (difference <= absolute + relative * np.abs(expected)).all():
            return "wrong", f"{name}: {int((difference > absolute + relative * np.abs(expected)).sum())} of {expected.size}, by {difference.max():.3g} at most"
        worst = max(worst, float(difference.max()))
    return "right", f"differs by {worst:.1e} at most"


def main():
    checkout, tirx, words = Path(sys.argv[1]), sys.argv[2], sys.argv[3:]
    for name, make in CASES.items():
        if words and not any(word in name for word in words):
            continue
        start = time.time()
        with tempfile.TemporaryDirectory() as folder:
            this = make()
            result, details = run(checkout, tirx, this, Path(folder))
        print(f"{this.module}\t{name}\t{result}\t{details} ({time.time() - start:.0f} s)", flush=True)


main()
