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
fix and with it, in the last state in the language of the fix; a word selects commits.
"""

import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.dont_write_bytecode = True

import numpy as np

import public_cases_of_maps  # registers its cases
from public_cases import CASES, wide_bfloat16
from public_cases_of_kern import for_kern

LIMIT = 3600  # seconds of a run


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
FINDINGS = "--continue-after=unwritten-reads,freed-columns,double-arrivals,unfinished-reads,unwaited-loads,missing-fences"


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
    folder, _, name = module.rpartition("/")
    files = (checkout / "tirx_kernels" / where / name for where in (folder, MOVED.get(folder, folder)))
    return next((file for file in files if file.exists()), None)


def run_once(checkout, tirx, this, folder, options):
    file = without_raw_functions(file_of(checkout, this.module), folder)
    command = [tirx, "tirx", "sim", str(file), "--entry", this.entry, "--arch", "sm_100a"]
    for name, value in this.values.items():
        command += ["-D", f"{name}={value!r}"]
    for name, value in this.arguments.items():
        if isinstance(value, (int, float)):
            command += ["--scalar", f"{name}={value}"]
            continue
        np.save(folder / f"{name}.npy", value)
        command += ["--arg", f"{name}={folder / name}.npy"]
    for name, (of, modes) in this.maps.items():
        if not isinstance(of, str):
            np.save(folder / f"{name}.npy", of)
            of = f"{folder / name}.npy"
        command += ["--tensor-map", f"{name}={of},{modes}"]
    for name, (expected, *_) in this.outputs.items():
        if name not in this.arguments and name not in this.maps:
            # What the kernel leaves out stays as it was, which is nothing that it could have computed.
            np.save(folder / f"{name}.npy", np.full(expected.shape, 77, expected.dtype))
            command += ["--arg", f"{name}={folder / name}.npy"]
        command += ["--out", f"{name}={folder / name}.out.npy"]
    try:
        done = subprocess.run([*command, *this.options, *options], capture_output=True, text=True, timeout=LIMIT)
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


# Fixes of synchronization, by the state of the library that they are taken back from, and the cases that they concern.
HISTORY = {
    "5be3974": {
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
    },
    "92240d6": {
        "4e15069": ("gated delta net, a sequence of 384 tokens",),
        "011bdee": ("paged mqa logits of fp8, 2 requests of 5 pages", "attention backward, 256 tokens"),
    },
}


def cases(checkout, tirx, wanted):
    for name, make in CASES.items():
        if not wanted(name):
            continue
        start = time.time()
        this = make()
        if file_of(checkout, this.module) is None:
            continue
        if (checkout / "tirx_kernels" / "kern").exists():
            this = for_kern(this)
        with tempfile.TemporaryDirectory() as folder:
            yield this.module, name, *run(checkout, tirx, this, Path(folder)), time.time() - start


def take_back(git, commit, folder):
    """Takes a fix back from the files of a state that has them, by their names: some have moved. Says whether that works."""
    taken = False
    for path in git("show", "--format=", "--name-only", commit).decode().split():
        present = [Path(path)] if (folder / path).exists() else [p.relative_to(folder) for p in folder.rglob(Path(path).name)]
        if len(present) != 1:
            continue  # tests are not in the state, and some files are gone
        change = git("show", "--format=", commit, "--", path).replace(path.encode(), str(present[0]).encode())
        back = ["patch", "--reverse", "--strip=1", "--fuzz=3", "--force", "--quiet", "--reject-file=-", "-d", folder]
        if subprocess.run(back, input=change, capture_output=True).returncode != 0:
            return False
        taken = True
    return taken


def history(clone, tirx, words):
    """Runs a state as it is, and with each fix taken back: older states are in the language of older releases."""
    git = lambda *words: subprocess.run(["git", "-C", clone, *words], capture_output=True, check=True).stdout
    for state, commit, names in ((state, *fix) for state, fixes in HISTORY.items() for fix in fixes.items()):
        if words and commit not in words:
            continue
        for when in ("without", "with"):
            with tempfile.TemporaryDirectory() as folder:
                subprocess.run(["tar", "x", "-C", folder], input=git("archive", state, "tirx_kernels"), check=True)
                if when == "without" and not take_back(git, commit, Path(folder)):
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
