"""Counts what two CUDA files become: machine_code.py OURS.cu THEIRS.cu ARCH prints `A / B | R / S`: instructions
without NOPs and registers, over all kernels of each file."""

import re
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

TOOLS = Path(sysconfig.get_paths()["purelib"]) / "nvidia" / "cu13" / "bin"


def tool(name):
    """The tool of the environment's CUDA packages."""
    if (TOOLS / name).exists():
        return TOOLS / name
    found = sorted(Path(sysconfig.get_paths()["purelib"], "nvidia").glob(f"**/bin/{name}"))
    return found[0] if found else name


def measure(source, arch):
    with tempfile.TemporaryDirectory() as folder:
        cubin = Path(folder) / "kernel.cubin"
        code = f"-gencode=arch=compute_{arch[3:]},code={arch}"
        command = [tool("nvcc"), "-w", "-std=c++17", "-O3", code, "-cubin", "-Xptxas", "-v", source, "-o", cubin]
        built = subprocess.run(command, capture_output=True, text=True)
        if built.returncode:
            sys.exit(f"{source}: nvcc failed\n{built.stderr[-3000:]}")
        listing = subprocess.run([tool("cuobjdump"), "-sass", cubin], capture_output=True, text=True, check=True).stdout
    operations = re.findall(r"/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([A-Z][\w.]*)", listing)
    registers = re.findall(r"Used (\d+) registers", built.stderr)
    return sum(o != "NOP" for o in operations), sum(map(int, registers))


ours, theirs = (measure(Path(p), sys.argv[3]) for p in sys.argv[1:3])
print(f"{ours[0]} / {theirs[0]} | {ours[1]} / {theirs[1]}")
