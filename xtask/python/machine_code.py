"""Counts what CUDA files become: machine_code.py ARCH CACHE OURS.cu THEIRS.cu [OURS.cu THEIRS.cu ...].

A line each pair: `instructions A / B | registers A / B | spilled bytes A / B | opcodes` over all kernels of each file,
without NOPs; `opcodes` is `same` (the same sequence of opcodes), `shorter`, `reordered` (as many) or `longer`. Where
nvcc refuses one: `ours: MESSAGE`, or `theirs: MESSAGE` (also where it refuses both). The tools are those of
`TIRX_NVCC`, else those of the environment's CUDA packages, else those on the PATH; machine code is listed by cuobjdump, or by
nvdisasm where there is none. The folder CACHE keeps what was measured, by content.
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

SITE = Path(sysconfig.get_paths()["purelib"]) / "nvidia"


def tool(name):
    """A tool of the CUDA release in use."""
    nvcc = os.environ.get("TIRX_NVCC", "")
    beside = Path(nvcc).parent / name
    if nvcc not in ("", "none") and beside.exists():
        return beside
    found = sorted(SITE.glob(f"**/bin/{name}"))
    return found[0] if found else shutil.which(name)


def measure(source, arch, cache):
    """Opcodes, registers and spilled bytes; a message where nvcc refuses the file."""
    key = hashlib.sha256(f"{tool('nvcc')} {arch}\n{Path(source).read_text()}".encode()).hexdigest()
    kept = Path(cache) / f"{key}.json"
    if kept.exists():
        return json.loads(kept.read_text())
    measured = compile_and_count(source, arch)
    kept.write_text(json.dumps(measured))
    return measured


def compile_and_count(source, arch):
    with tempfile.TemporaryDirectory() as folder:
        cubin = Path(folder) / "kernel.cubin"
        code = f"-gencode=arch=compute_{arch[3:]},code={arch}"
        command = [tool("nvcc"), "-w", "-std=c++17", "-O3", code, "-cubin", "-Xptxas", "-v", source, "-o", cubin]
        built = subprocess.run(command, capture_output=True, text=True)
        if built.returncode:
            told = [line for line in built.stderr.splitlines() if "error" in line] or ["nvcc failed"]
            return told[0].replace(str(source), Path(source).name)
        lister = [tool("cuobjdump"), "-sass"] if tool("cuobjdump") else [tool("nvdisasm"), "-c"]
        if lister[0] is None:
            sys.exit("neither cuobjdump nor nvdisasm is on the PATH")
        listing = subprocess.run([*lister, cubin], capture_output=True, text=True, check=True).stdout
    operations = re.findall(r"/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([A-Z][\w.]*)", listing)
    registers = re.findall(r"Used (\d+) registers", built.stderr)
    spilled = re.findall(r"(\d+) bytes spill (?:stores|loads)", built.stderr)
    return [[o for o in operations if o != "NOP"], sum(map(int, registers)), sum(map(int, spilled))]


def row(ours, theirs):
    if isinstance(theirs, str):
        return f"theirs: {theirs}"
    if isinstance(ours, str):
        return f"ours: {ours}"
    if ours[0] == theirs[0]:
        how = "same"
    elif len(ours[0]) == len(theirs[0]):
        how = "reordered"
    else:
        how = "shorter" if len(ours[0]) < len(theirs[0]) else "longer"
    return f"{len(ours[0])} / {len(theirs[0])} | {ours[1]} / {theirs[1]} | {ours[2]} / {theirs[2]} | {how}"


arch, cache, files = sys.argv[1], sys.argv[2], sys.argv[3:]
Path(cache).mkdir(parents=True, exist_ok=True)
with ThreadPoolExecutor(os.cpu_count()) as pool:
    measured = list(pool.map(lambda file: measure(file, arch, cache), files))
for ours, theirs in zip(measured[::2], measured[1::2]):
    print(row(ours, theirs))
