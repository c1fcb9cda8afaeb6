"""Machine code of the public library's kernels beside that of TVM: public_machine_code.py CHECKOUT TIRX FOLDER [WORD...].

TIRX is the `cargo-tirx` executable, a word selects modules by their paths. Each module's first configuration is compiled by both; the
CUDA texts are left in FOLDER, and `machine_code.py` compares them: a line each kernel. TVM's texts are taken from there in the next run.
Needs apache-tvm of the library's release; PyTorch, whose names the modules use on import, is stood in for where there is none.
"""

import importlib
import importlib.abc
import importlib.machinery
import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import MagicMock

import tvm  # before the stand-in: it asks whether PyTorch is there

CHECKOUT, TIRX, FOLDER, WORDS = Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3]), sys.argv[4:]
ARCH = "sm_100a"
MULTIPROCESSORS = 148
BLOCKS = 24


class StandIns(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Packages that the library imports and that its kernels do not need."""

    PACKAGES = ("torch", "pytest", "triton", "deep_gemm", "deep_ep", "flashinfer")

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in self.PACKAGES:
            return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec):
        return MagicMock(__path__=[])

    def exec_module(self, module):
        pass


def stand_in():
    sys.meta_path.append(StandIns())  # behind the others: what is installed is taken
    import torch

    for name, size in {"float32": 4, "float16": 2, "bfloat16": 2, "int32": 4, "int8": 1, "float8_e4m3fn": 1}.items():
        setattr(torch, name, SimpleNamespace(itemsize=size))
    torch.empty = lambda *shape, dtype, **_: SimpleNamespace(element_size=lambda: dtype.itemsize)
    torch.cuda = MagicMock()
    torch.cuda.get_device_properties.return_value.multi_processor_count = MULTIPROCESSORS
    torch.cuda.is_available.return_value = True
    runner = sys.modules["tirx_kernels.runner"] = MagicMock()
    runner.hardware_num_sms = lambda default=MULTIPROCESSORS: MULTIPROCESSORS


def modules():
    root = CHECKOUT / "tirx_kernels"
    for file in sorted(root.rglob("*.py")):
        path, text = str(file.relative_to(root)), file.read_text()
        if "\ndef get_kernel(" in text and "\nCONFIGS" in text and (not WORDS or any(word in path for word in WORDS)):
            yield path


def theirs(module):
    """The CUDA texts of TVM by the kernels' names, and the configuration."""
    kept = FOLDER / f"{stem(module)}.theirs.json"
    if not kept.exists():
        kept.write_text(json.dumps(compiled_by_tvm(module)))
    return json.loads(kept.read_text())


def stem(module):
    return module.removesuffix(".py").replace("/", "-")


def compiled_by_tvm(module):
    library = importlib.import_module("tirx_kernels." + module.removesuffix(".py").replace("/", "."))
    values = {name: value for name, value in library.CONFIGS[0].items() if name != "label"}
    # The functions of DeepEP's kernels ask that package for a number of blocks.
    values |= {"num_sms": BLOCKS} if module.startswith("deepep/") else {}
    made = library.get_kernel(**values)
    if isinstance(made, dict):
        several = made
    elif isinstance(made, (list, tuple)):
        several = {kernel.attrs["global_symbol"]: kernel for kernel in made}
    else:
        several = {"": made}
    texts = {}
    for name, kernel in several.items():
        with tvm.target.Target({"kind": "cuda", "arch": ARCH}) as target:
            whole = kernel if isinstance(kernel, tvm.IRModule) else tvm.IRModule({"main": kernel})
            executable = tvm.compile(whole, target=target, tir_pipeline="tirx")
        texts[name] = executable.mod.imports[0].inspect_source()
    return texts, values


def ours(module, values, name):
    entry = f"get_kernel[{name}]" if name else "get_kernel"
    command = [TIRX, "tirx", "cuda", str(CHECKOUT / "tirx_kernels" / module), "--entry", entry, "--arch", ARCH]
    for key, value in values.items():
        command += ["-D", f"{key}={value!r}"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise ValueError(next((line for line in done.stderr.splitlines() if line.startswith("error")), done.stderr))
    return done.stdout


def main():
    sys.path.insert(0, str(CHECKOUT))
    stand_in()
    FOLDER.mkdir(parents=True, exist_ok=True)
    for module in modules():
        try:
            texts, values = theirs(module)
            for number, (name, text) in enumerate(texts.items()):
                pair = [FOLDER / f"{stem(module)}-{number}.{who}.cu" for who in ("ours", "theirs")]
                pair[0].write_text(ours(module, values, name))
                pair[1].write_text(text)
                compare = [sys.executable, Path(__file__).with_name("machine_code.py"), ARCH, FOLDER / "cache", *pair]
                row = subprocess.run(compare, capture_output=True, text=True)
                print(f"{module}\t{name}\t{row.stdout.strip() or row.stderr[-300:]}", flush=True)
        except Exception as error:  # a module that one of the two does not take must not hide the others
            print(f"{module}\t\tnot compared: {type(error).__name__}: {str(error)[:300]}", flush=True)


main()
