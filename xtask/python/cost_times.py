"""The cost model (`cargo tirx sim --cost`) beside measured times: prints a Markdown table, and how many pairs have the measured order.

    cost_times.py ROOT TIRX

ROOT is the checkout, TIRX the `cargo-tirx` executable; Python has NumPy. Takes a minute.

A kernel runs on the simulator with two small sizes, each for one multiprocessor and its share of the memories. The time of each resource is a
polynomial of the size that has no constant term beside that of the begin and the end of a tile: linear in K for products, `a S + b S^2` for attention. Two
sizes give it, and the largest time of a resource at full size is the bound. Measured times are those of docs/book/src/ladder/times.txt,
docs/developing/performance.md and tirx-kernels/README.md.
"""

import itertools
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

MULTIPROCESSORS = 132
UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "ns": 1e-9}


def resources(tirx, gpu, arguments, folder):
    """Seconds of each resource."""
    command = [tirx, "tirx", "sim", *arguments, "--cost", gpu, "--per-multiprocessor", "--no-race-check"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, arguments))}: {done.stderr}")
    rows = done.stdout.split("least time\n", 1)[1].splitlines()
    found = {}
    for row in rows:
        words = row.rsplit(None, 2)
        if len(words) != 3 or words[2] not in UNITS:
            break
        found[words[0].strip()] = float(words[1]) * UNITS[words[2]]
    return found


def zeros(folder, name, shape, dtype=np.uint16):
    np.save(folder / f"{name}.npy", np.zeros(shape, dtype))
    return ["--arg", f"{name}={name}.npy"]


class Product:
    """M x N x K on all multiprocessors, from tiles of 256 x 256 on one."""

    kind = "product of 16 bits"

    def __init__(self, file, entry, full, more=(), small=(256, 256)):
        self.file, self.entry, self.full, self.more, self.small = file, entry, full, more, small
        self.sizes = (256, 512)

    def operations(self):
        return 2.0 * self.full[0] * self.full[1] * self.full[2]

    def size(self):
        return " x ".join(f"{extent:,}" for extent in self.full)

    def arguments(self, root, folder, k):
        m, n = self.small
        defines = [f"M={m}", f"N={n}", f"K={k}", *self.more]
        tensors = [word for name in "ABC" for word in ("--out", f"{name}={name}.npy")]
        return [root / self.file, "--entry", self.entry, *(word for define in defines for word in ("-D", define)), *tensors]

    def scaled(self, small, large):
        """The time at full size of a resource that takes these times."""
        k, twice = self.sizes
        slope = (large - small) / (twice - k)
        tiles = self.full[0] * self.full[1] / (self.small[0] * self.small[1])
        return (small + slope * (self.full[2] - k)) * tiles / MULTIPROCESSORS


class Ladder(Product):
    def __init__(self, step):
        persistent = ["CTAS=1"] if step in ("09-persistent", "10-stores") else []
        super().__init__(f"docs/book/src/ladder/{step}.py", None, (4096, 4096, 4096), persistent)

    def arguments(self, root, folder, k):
        arguments = super().arguments(root, folder, k)
        return [arguments[0], *arguments[3:]]


class Tiles(Product):
    """The products of `tirx-kernels`."""

    def __init__(self, full):
        super().__init__("tirx-kernels/kernels/gemm/hopper.py", "tiles", full)

    def arguments(self, root, folder, k):
        m, n = self.small
        tensors = [*zeros(folder, "a", (1, m, k)), *zeros(folder, "b", (1, n, k)), *zeros(folder, "c", (1, m, n))]
        return [root / self.file, "--entry", self.entry, "-D", "dtype=bfloat16", *tensors, "--scalar", "blocks=1"]


class Attention:
    """Heads on all multiprocessors, from one head on one."""

    kind = "attention"

    def __init__(self, file, entry, heads, length, head=128):
        self.file, self.entry, self.heads, self.length, self.head = file, entry, heads, length, head
        self.sizes = (768, 1536)

    def operations(self):
        return 4.0 * self.heads * self.length * self.length * self.head

    def size(self):
        return f"{self.heads} heads of {self.length:,} x {self.head}"

    def arguments(self, root, folder, length):
        tensors = [word for name in "QKVO" for word in ("--out", f"{name}={name}.npy")]
        return [root / self.file, "--entry", self.entry, "-D", "H=1", "-D", f"S={length}", *tensors]

    def scaled(self, small, large):
        s, twice = self.sizes
        square = (large / twice - small / s) / (twice - s)
        linear = small / s - square * s
        return (linear * self.length + square * self.length**2) * self.heads / MULTIPROCESSORS


class Forward(Attention):
    """The attention of `tirx-kernels`."""

    def __init__(self, heads, length, head, more=()):
        super().__init__("tirx-kernels/kernels/attention/hopper.py", "forward", heads, length, head)
        self.more = more

    def arguments(self, root, folder, length):
        tensors = [word for name in "qkvo" for word in zeros(folder, name, (1, 1, length, self.head))]
        for name, shape, dtype in [("lse", (0, 0, 0), np.float32), ("offsets_of_q", (0,), np.int32), ("offsets_of_k", (0,), np.int32)]:
            tensors += zeros(folder, name, shape, dtype)
        scalars = ["scale=0.1", "causal=0", "window=0", "cap=0.0", "near=1", "blocks=1"]
        defines = ["dtype=bfloat16", f"DQ={self.head}", "PLAIN=True", *self.more]
        return [
            root / self.file, "--entry", self.entry, *(word for define in defines for word in ("-D", define)), *tensors,
            *(word for scalar in scalars for word in ("--scalar", scalar)),
        ]


def kernels(file):
    return f"kernels/{file}.py"


CUBE = (8192, 8192, 8192)
# Each with its GPU and the measured time in microseconds, or throughput in TFLOP/s.
CASES = [
    *((f"ladder {step}", "H200", Ladder(step), time) for step, time in [
        ("01-naive", 149917), ("02-shared", 18845), ("03-registers", 3310), ("04-tensor-cores", 608), ("05-ring", 519),
        ("06-wgmma", 321), ("07-pipeline", 244), ("08-wide", 223), ("09-persistent", 240), ("10-stores", 201),
    ]),
    ("matmul_mma", "H200", Product(kernels("tensor_cores"), "matmul_mma", CUBE), "267"),
    ("gemm_wgmma", "H200", Product(kernels("hopper"), "gemm_wgmma", CUBE, ["CTAS=1"]), "750"),
    ("gemm_tiles", "H200", Product(kernels("hopper_tiles"), "gemm_tiles", CUBE, ["CTAS=1"]), "725"),
    ("gemm_clusters", "H200", Product(kernels("hopper"), "gemm_clusters", CUBE, ["CLUSTERS=1"], (256, 512)), "720"),
    ("tirx-kernels, product", "H200", Tiles((4096, 4096, 4096)), "784"),
    ("tirx-kernels, product", "H100", Tiles((4096, 4096, 4096)), "766"),
    ("tirx-kernels, product", "H100", Tiles((16384, 16384, 16384)), "708"),
    ("attention", "H200", Attention(kernels("attention"), "attention", 64, 8192), "564"),
    ("hopper_attention", "H200", Attention(kernels("hopper_attention"), "hopper_attention", 64, 8192), "656"),
    ("tirx-kernels, attention", "H200", Forward(64, 4096, 128), "655"),
    ("tirx-kernels, attention", "H200", Forward(64, 4096, 64, ["WARPGROUPS=3"]), "535"),
    ("tirx-kernels, attention", "H200", Forward(64, 4096, 256), "709"),
    ("tirx-kernels, attention", "H200", Forward(512, 512, 128), "490"),
]


def main():
    root, tirx = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
    print("| kernel | GPU | size | bound, us | limit | measured, us | measured / bound |\n|---|---|---|---|---|---|---|")
    rows = []
    for name, gpu, case, measured in CASES:
        with tempfile.TemporaryDirectory() as folder:
            folder = Path(folder)
            small, large = (resources(tirx, gpu, case.arguments(root, folder, size), folder) for size in case.sizes)
        times = {name: case.scaled(small.get(name, 0.0), seconds) for name, seconds in large.items()}
        limit = max(times, key=times.get)
        bound = times[limit]
        seconds = measured * 1e-6 if isinstance(measured, int) else case.operations() / (float(measured) * 1e12)
        rows.append((name, gpu, case, bound, seconds))
        print(
            f"| {name} | {gpu} | {case.size()} | {bound * 1e6:,.0f} | {limit} | {seconds * 1e6:,.0f} | {seconds / bound:.2f} |",
            flush=True,
        )
    below = [row[0] for row in rows if row[4] < row[3]]
    print(f"\nmeasured below the bound: {', '.join(below) or 'none'}")
    agree, equal, other = 0, 0, []
    for x, y in itertools.combinations(rows, 2):
        if (x[1], x[2].kind) != (y[1], y[2].kind):
            continue
        rates = [(row[2].operations() / row[3], row[2].operations() / row[4]) for row in (x, y)]
        (a, b), (c, d) = rates
        if abs(a - c) < 0.01 * max(a, c):
            equal += 1
        elif (a < c) == (b < d):
            agree += 1
        else:
            other.append(f"{x[0]} ({x[2].size()}) and {y[0]} ({y[2].size()})")
    print(f"pairs of one kind on one GPU by throughput: {agree} in the measured order, {equal} with equal bounds, {len(other)} in the other order")
    for pair in other:
        print(f"- {pair}")


if __name__ == "__main__":
    main()
