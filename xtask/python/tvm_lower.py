"""Lowers kernels with Apache TVM: tvm_lower.py FOLDER PASS.

Writes the IR of each FOLDER/NAME.py after PASS to FOLDER/NAME.tvm, or why TVM refuses it to FOLDER/NAME.refused.
A file holds one kernel, a PrimFunc named `k`.
"""

import importlib.util
import sys
from pathlib import Path

import tvm
from tvm import tirx


def passes():
    t = tirx.transform
    return [
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
    ]


def lowered(path, last):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    target = tvm.target.Target({"kind": "cuda", "arch": "sm_90a"})
    with target:
        mod = tvm.IRModule({"main": module.k})
        mod = tirx.transform.BindTarget(target.with_host("llvm"))(mod)
        for name, run in passes():
            mod = run(mod)
            if name == last:
                break
        return mod.script()


def main():
    folder, last = sys.argv[1:]
    for path in sorted(Path(folder).glob("*.py")):
        try:
            text = lowered(path, last)
            path.with_suffix(".tvm").write_text(text)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # TVM's diagnostics are of many kinds, SystemExit among them.
            path.with_suffix(".refused").write_text(f"{type(error).__name__}: {error}")


main()
