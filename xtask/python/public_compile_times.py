"""Times kernels of the public library from source to CUDA text beside Apache TVM 0.26: public_compile_times.py CHECKOUT TIRX COMPILE.

To be run by a Python that has TVM; TIRX is the `cargo-tirx` executable in release. COMPILE is tests/examples/compile.rs as a build
script is compiled, without optimization. What counts is processor time (user and system), so that other work on the machine
changes little: of whole processes, which start, read the file and make the text, for both; and for TVM also that of calling
`get_kernel`, lowering and text in a process that has loaded its modules and compiled the kernel once. The least of several runs.
"""

import importlib
import importlib.machinery
import os
import subprocess
import sys
import time
import types
from pathlib import Path
from unittest import mock

import tvm

KERNELS = {
    "gemm/fp16_bf16_gemm.py": {"dtype": "bf16", "M": 4096, "N": 4096, "K": 4096},
    "attention/flash_attention4.py": {
        "batch_size": 1, "seq_len": 4096, "num_qo_heads": 32, "num_kv_heads": 8, "head_dim": 128, "is_causal": True,
    },
    "attention/flash_attention_backward.py": {"batch_size": 1, "seq_len": 4096, "num_heads": 16, "is_causal": True},
}
RUNS = 5


def released(tirx, file, values):
    command = [tirx, "tirx", "cuda", str(file), "--entry", "get_kernel", "--arch", "sm_100a"]
    return least_time(command + [word for name, value in values.items() for word in ("-D", f"{name}={value!r}")])


def build_script(compile_once, file, values):
    constants = [f"{name}={value}" for name, value in values.items()]
    return least_time([compile_once, "1", str(file), "get_kernel", *constants, "on", "sm_100a"])


def least_time(command):
    least = float("inf")
    for _ in range(RUNS):
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        if status != 0:
            sys.exit(f"{' '.join(command)}: failed")
        least = min(least, usage.ru_utime + usage.ru_stime)
    return least


def theirs(file, runs):
    """Compiles so many times, and gives the least processor time of one but the first."""
    module = importlib.import_module("tirx_kernels." + file.removesuffix(".py").replace("/", "."))
    target = tvm.target.Target({"kind": "cuda", "arch": "sm_100a"})
    least = float("inf")
    for run in range(runs):
        start = time.process_time()
        with target:
            kernel = module.get_kernel(**KERNELS[file])
            compiled = tvm.compile(tvm.IRModule({"main": kernel}), target=target, tir_pipeline="tirx")
            text = compiled.mod.imports[0].inspect_source()
        if "__global__" not in text:
            sys.exit(f"{file}: no CUDA text")
        if run > 0:
            least = min(least, time.process_time() - start)
    return least


class Host(types.ModuleType):
    """A module of the host programs, which no kernel needs."""

    __path__ = ()

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return mock.MagicMock()


class HostPackages:
    """Finds and loads them."""

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("torch", "triton", "flashinfer", "flash_attn", "pytest", "scipy", "cuda"):
            return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec):
        return Host(spec.name)

    def exec_module(self, module):
        pass


def main():
    checkout = Path(sys.argv[1])
    sys.path.insert(0, str(checkout))
    sys.meta_path.append(HostPackages())
    if sys.argv[2] == "--once":
        theirs(sys.argv[3], 1)
        return
    _, _, tirx, compile_once = sys.argv
    print("| kernel | TVM, loaded | TVM, process | release | ratios | build script | ratios |\n|---|---|---|---|---|---|---|")
    for file, values in KERNELS.items():
        path = checkout / "tirx_kernels" / file
        loaded = theirs(file, RUNS + 1)
        process = least_time([sys.executable, __file__, str(checkout), "--once", file])
        cells = [f"`{file}`", f"{loaded * 1e3:.0f} ms", f"{process * 1e3:.0f} ms"]
        for our_time in (released(tirx, path, values), build_script(compile_once, path, values)):
            cells += [f"{our_time * 1e3:.0f} ms", f"{loaded / our_time:.0f}, {process / our_time:.0f}"]
        print(f"| {' | '.join(cells)} |", flush=True)


main()
