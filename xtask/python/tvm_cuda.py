"""Prints what Apache TVM makes of a kernel as CUDA: tvm_cuda.py FILE ENTRY [NAME=VALUE ...] [--time RUNS].

With --time, prints the median seconds of RUNS compilations (lowering and CUDA text, no nvcc) instead.
"""

import ast
import importlib.util
import statistics
import sys
import time

import tvm


def load(path):
    spec = importlib.util.spec_from_file_location("kernels", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def compile_once(path, entry, constants):
    kernel = getattr(load(path), entry)
    if not isinstance(kernel, tvm.tirx.PrimFunc):
        kernel = kernel.specialize(**constants)
    target = tvm.target.Target({"kind": "cuda", "arch": "sm_90a"})
    with target:
        module = tvm.IRModule({"main": kernel})
        executable = tvm.compile(module, target=target, tir_pipeline="tirx")
    return executable.mod.imports[0].inspect_source()


def main():
    args = sys.argv[1:]
    runs = 0
    if "--time" in args:
        at = args.index("--time")
        runs = int(args[at + 1])
        del args[at : at + 2]
    path, entry, *pairs = args
    constants = {}
    for pair in pairs:
        name, _, value = pair.partition("=")
        constants[name] = ast.literal_eval(value)
    text = compile_once(path, entry, constants)
    if not runs:
        print(text)
        return
    spent = []
    for _ in range(runs):
        start = time.perf_counter()
        compile_once(path, entry, constants)
        spent.append(time.perf_counter() - start)
    print(statistics.median(spent))


main()
