"""Rewrites the kernels of the public library for TVM 0.27 by `cargo tirx fix`, in a copy.

    public_fix.py CHECKOUT TIRX [WORD...]

TIRX is the `cargo-tirx` executable; a word selects modules by name. Each module is compared with all of its CONFIGS, which a
manifest declares. Prints a line a module: its name, how many calls were rewritten and how many are left; then a line for each
that is left.
"""

import importlib
import importlib.abc
import importlib.machinery
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from unittest.mock import MagicMock

sys.dont_write_bytecode = True

# What modules import beside the library itself: configurations need none of it.
ABSENT = ("torch", "tvm", "numpy", "triton", "cutlass", "deep_gemm", "flashinfer", "flash_attn", "cuda", "nvidia", "tvm_ffi")


class Absent(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path, target=None):
        if name.split(".")[0] in ABSENT:
            return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec):
        module = MagicMock(name=spec.name)
        module.__path__, module.__spec__, module.__name__ = [], spec, spec.name
        return module

    def exec_module(self, module):
        pass


def toml(value):
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(toml, value)) + "]"
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {toml(part)}" for key, part in value.items()) + " }"
    raise ValueError(f"{value!r} has no form in TOML")


def configurations(module):
    every = [{k: v for k, v in config.items() if k != "label" and v is not None} for config in module.CONFIGS]
    return [config for at, config in enumerate(every) if config not in every[:at]]


def fixed(checkout, tirx, file, configs):
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(checkout / "tirx_kernels", Path(folder, "tirx_kernels"))
        manifest = f"""[defaults]
targets = ["sm_100a"]
[[kernel]]
name = "kernel"
source = "{file}"
entry = "get_kernel"
specialize = {toml(configs)}
"""
        Path(folder, "kernels.toml").write_text(manifest)
        command = [tirx, "tirx", "fix", "--tvm", "0.27", "--multiprocessors", "148", str(file)]
        return subprocess.run(command, cwd=folder, capture_output=True, text=True)


def main():
    checkout, tirx, *words = sys.argv[1:]
    checkout, tirx = Path(checkout).resolve(), Path(tirx).resolve()
    sys.path.insert(0, str(checkout))
    sys.meta_path.insert(0, Absent())
    for path in sorted(checkout.glob("tirx_kernels/**/*.py")):
        file = path.relative_to(checkout)
        name = ".".join(file.with_suffix("").parts[1:])
        if "\ndef get_kernel" not in path.read_text() or words and not any(word in name for word in words):
            continue
        try:
            module = importlib.import_module("tirx_kernels." + name)
            done = fixed(checkout, tirx, file, configurations(module))
        except Exception as error:
            print(f"{name}: {error!r}")
            continue
        whole = re.search(r"(\d+) calls? in the language", done.stdout)
        left = re.search(r"(\d+) of (\d+) calls? cannot be rewritten", done.stderr)
        if left:
            print(f"{name}: {int(left[2]) - int(left[1])} rewritten, {left[1]} left")
        elif done.returncode:
            print(f"{name}: {done.stderr.strip().splitlines()[0]}")
        else:
            print(f"{name}: {whole[1] if whole else 0} rewritten, none left")
        for line in re.findall(r"^error: \S+?:(\d+): (.*)$", done.stderr, re.MULTILINE):
            print(f"    line {line[0]}: {line[1][:150]}")
        sys.stdout.flush()


main()
