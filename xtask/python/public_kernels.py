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
