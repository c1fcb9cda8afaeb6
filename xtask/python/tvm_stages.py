"""What Apache TVM makes of kernels after each pass, and as CUDA: tvm_stages.py JOBS.json OUT.

JOBS.json is a list of {"id", "path", "entry", "constants", "arch", "stages"}. For each, OUT/ID holds `NN-Pass.py` for
every pass where "stages" is set (host and device functions together after the last ones), `kernel.cu`, and `error.txt`
with the message where TVM refuses the kernel. TVM is imported once and files are loaded once.
"""

import __future__
import ast
import contextlib
import io
import json
import os
import re
import sys
import types
from pathlib import Path

import tvm
from tvm import tirx
from tvm.backend.cuda import transforms as cuda_transforms
from tvm.tirx.build import split_host_device_mods

PRELUDE = (
    "from tvm.script import ir as I\nfrom tvm.script import tirx as T\n"
    "from tvm.script.tirx import tile as Tx\nfrom tvm.tirx.layout import *\n"
)

t = tirx.transform

PASSES = [
    ("LowerTIRx", t.LowerTIRx()),
    ("UnifyThreadBinding", tvm.s_tir.transform.UnifyThreadBinding()),
    ("StmtSimplify", t.StmtSimplify()),
    ("LowerTIRxOpaque", t.LowerTIRxOpaque()),
    ("FlattenBuffer", t.FlattenBuffer()),
    ("BF16ComputeLegalize", t.BF16ComputeLegalize()),
    ("NarrowDataType", t.NarrowDataType(32)),
    ("VectorizeLoop", t.VectorizeLoop(True)),
    ("UnrollLoop", t.UnrollLoop()),
    ("StmtSimplify2", t.StmtSimplify()),
    ("CommonSubexprElim", t.CommonSubexprElim()),
    ("FP8ComputeLegalize", t.FP8ComputeLegalize()),
    ("VerifyMemory", t.VerifyMemory()),
    ("AnnotateEntryFunc", t.AnnotateEntryFunc()),
    ("SplitHostDevice", t.SplitHostDevice()),
    ("LowerIket", cuda_transforms.LowerIket()),
    ("MakePackedAPI", t.MakePackedAPI()),
    ("FP8StorageLegalize", t.FP8StorageLegalize()),
    ("BF16StorageLegalize", t.BF16StorageLegalize()),
]
# Finalization, by kind of function.
HOST = [("LowerTVMBuiltin", t.LowerTVMBuiltin()), ("HostLowerIntrin", t.LowerIntrin())]
DEVICE = [("LowerWarpMemory", t.LowerWarpMemory()), ("StmtSimplify3", t.StmtSimplify()), ("LowerIntrin", t.LowerIntrin())]


def load(path, loaded={}):
    """What a kernel file defines, by name. A definition that TVM refuses is its error: the others stand."""
    if path in loaded:
        return loaded[path]
    source = Path(path)
    text = source.read_text()
    tree = ast.parse(text)
    module = types.ModuleType("kernels_" + source.stem)
    module.__file__ = path
    sys.modules[module.__name__] = module
    names = loaded[path] = vars(module)
    if not any(isinstance(s, (ast.Import, ast.ImportFrom)) and "tvm" in ast.unparse(s) for s in tree.body):
        exec(PRELUDE, names)
    future = [s for s in tree.body if isinstance(s, ast.ImportFrom) and s.module == "__future__"]
    flags = __future__.annotations.compiler_flag if future else 0
    for statement in tree.body:
        if statement in future:
            continue
        try:
            # The file's name: TVM reads the source of what it parses.
            exec(compile(ast.Module([statement], []), path, "exec", flags, dont_inherit=True), names)
        except BaseException as error:
            if not hasattr(statement, "name"):
                raise
            names[statement.name] = error
    return names


def module_of(job):
    kernel = load(job["path"])[job["entry"]]
    if isinstance(kernel, BaseException):
        raise kernel
    if isinstance(kernel, tvm.IRModule):
        return kernel
    if not isinstance(kernel, tirx.PrimFunc):
        kernel = kernel.specialize(**job["constants"])
    return tvm.IRModule({"main": kernel})


def text_of(module):
    """The module as text. TVM leaves strings of several lines out as metadata, and its printer of metadata crashes."""
    strings = []

    def visit(node):
        found = [node] if isinstance(node, tirx.StringImm) else []
        if isinstance(node, tirx.AssertStmt):
            found = list(node.message_parts)
        for string in found:
            if "\n" in string.value and not any(string.same_as(known) for known in strings):
                strings.append(string)

    for name in sorted(module.get_global_vars(), key=lambda var: var.name_hint):
        if isinstance(module[name], tirx.PrimFunc):
            tirx.stmt_functor.post_order_visit(module[name].body, visit)
    literal = lambda found: json.dumps(strings[int(found.group(1))].value)
    return re.sub(r'metadata\["tirx.StringImm"\]\[(\d+)\]', literal, module.script())


def stages(module, target, out):
    """Writes the module after each pass."""
    count = 0

    def write(name, module):
        nonlocal count
        (out / f"{count:02}-{name}.py").write_text(text_of(module))
        count += 1

    module = t.BindTarget(target.with_host("llvm"))(module)
    write("BindTarget", module)
    for name, apply in PASSES:
        module = apply(module)
        write(name, module)
    host, devices = split_host_device_mods(module)
    for name, apply in HOST:
        host = apply(host)
        write(name, host)
    (device,) = devices.values() if devices else (tvm.IRModule({}),)
    for name, apply in DEVICE:
        device = apply(device)
        write(name, device)


def compile_job(job, folder):
    """All that is asked for of one kernel; the message where TVM refuses it."""
    target = tvm.target.Target({"kind": "cuda", "arch": job["arch"]})
    quiet = io.StringIO()
    try:
        with target, contextlib.redirect_stdout(quiet), contextlib.redirect_stderr(quiet):
            module = module_of(job)
            if job["stages"]:
                stages(module, target, folder)
            executable = tvm.compile(module, target=target, tir_pipeline="tirx")
            (folder / "kernel.cu").write_text(executable.mod.imports[0].inspect_source())
    except BaseException as error:
        text = f"{type(error).__name__}: {error}\n" + quiet.getvalue()
        lines = [l for l in text.splitlines() if l.strip()]
        told = [l for l in lines if "rror" in l] or lines
        (folder / "error.txt").write_text(told[0])


def main():
    jobs, out = json.loads(Path(sys.argv[1]).read_text()), Path(sys.argv[2])
    for job in jobs:
        (out / job["id"]).mkdir(parents=True, exist_ok=True)
    # A child does the work until it crashes on a kernel (TVM does on some), then another goes on with the next.
    at = 0
    while at < len(jobs):
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reader)
            for job in jobs[at:]:
                compile_job(job, out / job["id"])
                os.write(writer, b".")
            os._exit(0)
        os.close(writer)
        with os.fdopen(reader, "rb") as progress:
            at += len(progress.read())
        os.waitpid(child, 0)
        if at < len(jobs):
            (out / jobs[at]["id"] / "error.txt").write_text("TVM crashed")
            at += 1


main()
