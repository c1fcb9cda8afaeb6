"""What Apache TVM makes of kernels after each pass, and as CUDA: tvm_stages.py JOBS.json OUT.

JOBS.json is a list of {"id", "path", "entry", "constants", "arch", "stages"}. For each, OUT/ID holds `NN-Pass.py` for
every pass where "stages" is set (host and device functions together after the last ones), `kernel.cu`, and `error.txt`
with the message where TVM refuses the kernel. TVM is imported once and files are loaded once.

Files import others of the folders in TIRX_KERNEL_FOLDERS. These come last: a kernel file may be named as a module of Python is.
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

sys.path += [folder for folder in os.environ.get("TIRX_KERNEL_FOLDERS", "").split(os.pathsep) if folder]

t = tirx.transform
StringImm = tirx.StringImm if hasattr(tirx, "StringImm") else tvm.ir.StringImm

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


def walk(body, visit):
    """Calls `visit` for strings and assertions; each release has a walk of its own."""
    if hasattr(tirx, "stmt_functor"):
        return tirx.stmt_functor.post_order_visit(body, visit)
    import tvm_ffi

    tvm_ffi.structural_walk(body, [(StringImm, visit), (tirx.AssertStmt, visit)])


def text_of(module):
    """The module as text. TVM leaves strings of several lines out as metadata, and its printer of metadata crashes."""
    strings = []

    def visit(node):
        found = [node] if isinstance(node, StringImm) else []
        if isinstance(node, tirx.AssertStmt):
            found = list(node.message_parts)
        for string in found:
            if "\n" in string.value and not any(string.same_as(known) for known in strings):
                strings.append(string)

    for name in sorted(module.get_global_vars(), key=lambda var: var.name_hint):
        if isinstance(module[name], tirx.PrimFunc):
            walk(module[name].body, visit)
    literal = lambda found: json.dumps(strings[int(found.group(1))].value)
    text = re.sub(r'metadata\["(?:tirx|ir).StringImm"\]\[(\d+)\]', literal, module.script())
    return text if hasattr(tirx, "stmt_functor") else with_mnemonics(text)


def with_mnemonics(text):
    """The text of TVM 0.27 with instructions as kernels write them, and calls of kernels as 0.26 prints them.

    0.27 prints an instruction as its family, the operands, and a string for each slot of its table, which reads back nowhere:
    `T.ptx.ld(x, p, "", "global", "f32", "")` is `T.ptx["ld.global.f32"](x, p)`.
    """
    lines = text.encode().split(b"\n")
    replaced = []
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.Call) or node.lineno != node.end_lineno:
            continue
        function = ast.unparse(node.func)
        if function == "T.call_ffi_kernel":
            replaced.append((node, f"T.call_packed({', '.join(map(ast.unparse, node.args))})"))
        elif function.startswith("T.ptx.") and node.args and is_text(node.args[-1]):
            replaced.append((node, mnemonic(node)))
    for node, new in sorted(replaced, key=lambda pair: -pair[0].col_offset):
        line = lines[node.lineno - 1]
        lines[node.lineno - 1] = line[: node.col_offset] + new.encode() + line[node.end_col_offset :]
    return b"\n".join(lines).decode()


def is_text(node):
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def mnemonic(call):
    """A call by mnemonic. The last string says which operands are predicates (`p2`) and sinks (`s1`), which are left out, whether
    the last operand is the instruction's own predicate (`pred`), and whether what it writes is kept without it (`keep`)."""
    operands, slots = list(call.args), []
    while operands and is_text(operands[-1]):
        slots.insert(0, operands.pop().value)
    *slots, marks = slots
    marks = marks.split(",")
    arguments = [ast.unparse(plain_address(operand)) for operand in operands]
    own = [f"pred={arguments.pop()}"] if "pred" in marks else []
    for mark in marks:
        if mark[:1] == "s" and mark[1:].isdigit():
            arguments.insert(int(mark[1:]), "T.ptx.SINK")
    for mark in marks:
        if mark[:1] == "p" and mark[1:].isdigit():
            arguments[int(mark[1:])] = f"T.ptx.pred({arguments[int(mark[1:])]})"
    if "keep" in marks:
        own.append("preserve_dst=True")
    name = ".".join([call.func.attr.replace("_", "."), *filter(None, slots)])
    return f'T.ptx["{name}"]({", ".join(arguments + own)})'


def plain_address(operand):
    """An operand without the conversion to an address in shared memory, which the text of an instruction makes."""
    for node in ast.walk(operand):
        if isinstance(node, ast.Call):
            node.args = [plain_address(arg) for arg in node.args]
    converted = isinstance(operand, ast.Call) and ast.unparse(operand.func) == "T.cuda.cvta_generic_to_shared"
    return operand.args[0] if converted else operand


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
