//! Kernel files as TIRx users write them: functions that make kernels, beside tests, benchmarks and data of the host
//! program.

use std::collections::BTreeMap;

use crate::source::SourceMap;
use crate::{ConstValue, EntryKind, KernelFile, NoImports};
use tirx_ir::print;

fn load(text: &str) -> KernelFile {
    let mut sources = SourceMap::new();
    KernelFile::load(&mut sources, "k.py", text, &NoImports)
        .unwrap_or_else(|e| panic!("{}", e.render(&sources)))
}

fn values(given: &[(&str, ConstValue)]) -> BTreeMap<String, ConstValue> {
    given.iter().map(|(n, v)| (n.to_string(), v.clone())).collect()
}

/// Names and texts of the kernels that an entry gives.
fn build(text: &str, entry: &str, given: &[(&str, ConstValue)]) -> Vec<(String, String)> {
    let file = load(text);
    match file.build_all(Some(entry), &values(given)) {
        Ok(all) => all.into_iter().map(|b| (b.name, print(&b.module))).collect(),
        Err(e) => panic!("{}", e.render(file.sources())),
    }
}

fn fails(text: &str, entry: &str, given: &[(&str, ConstValue)]) -> String {
    let file = load(text);
    match file.build_all(Some(entry), &values(given)) {
        Ok(_) => panic!("{entry} was built"),
        Err(e) => e.render(file.sources()),
    }
}

fn entries(text: &str) -> Vec<String> {
    load(text).entries().iter().map(|e| e.name.clone()).collect()
}

const MAKER: &str = r#"
import argparse
import os, sys, time
from pathlib import Path
import numpy as np
import torch
import triton.testing
import my_company.benchmarks as bench
from my_company.data import load_weights, SHAPES
from dataclasses import dataclass
from collections import Counter, deque
import tvm
import tvm.testing
from tvm.testing import env
from tvm.script import tirx as T

torch.manual_seed(0)
os.environ["CUDA_VISIBLE_DEVICES"] = "0"
sys.path.insert(0, str(Path(__file__).parent))
DEV = torch.device("cuda" if torch.cuda.is_available() else "cpu")
TARGET = tvm.target.Target("cuda")
if torch.cuda.get_device_capability()[0] < 9:
    raise RuntimeError("needs sm_90")
sm_count = torch.cuda.get_device_properties(0).multi_processor_count
try:
    import flash_attn
    HAS_FLASH = True
except ImportError:
    HAS_FLASH = False

def get_kernel(M, N, K=64, dtype="float16", *, scale=2.0):
    """Scales."""
    assert M % 32 == 0

    @T.prim_func
    def scaled(A_ptr: T.handle, B_ptr: T.handle):
        A = T.match_buffer(A_ptr, (M, N, K), dtype)
        B = T.match_buffer(B_ptr, (M, N, K), dtype)
        T.device_entry()
        bx = T.cta_id([M])
        tx = T.thread_id([N])
        for k in range(K):
            B[bx, tx, k] = A[bx, tx, k] * T.cast(scale, dtype)

    return scaled

def prepare(M, N):
    a = torch.rand(M, N, device=DEV)
    return a, np.zeros((M, N), dtype=np.float32)

class Runner(torch.nn.Module):
    def forward(self, x):
        return x @ x

async def serve(): ...

def benchmark(M, N):
    kernel = get_kernel(M, N)
    with TARGET:
        exe = tvm.compile(tvm.IRModule({"main": kernel}), target=TARGET, tir_pipeline="tirx")
    a, b = prepare(M, N)
    exe(a, b)
    for _ in range(3):
        t0 = time.time()
        exe(a, b)
        torch.cuda.synchronize()
        print(f"{time.time() - t0:.3f} s, {a.numel() / 1e9} G")
    torch.testing.assert_close(b, a * 2, rtol=1e-3, atol=1e-3)
    ms = triton.testing.do_bench(lambda: exe(a, b))
    assert ms < 10

if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--m", type=int, default=64)
    args = parser.parse_args()
    benchmark(args.m, args.m)
"#;

#[test]
fn a_function_that_returns_a_kernel_is_an_entry() {
    let int = ConstValue::Int;
    assert_eq!(entries(MAKER), ["get_kernel", "benchmark"]);
    let file = load(MAKER);
    let entry = file.entry("get_kernel").expect("the entry");
    assert_eq!(entry.kind, EntryKind::Function);
    let parameters: Vec<(&str, bool)> = entry
        .constexprs
        .iter()
        .map(|p| (p.name.as_str(), p.required))
        .collect();
    assert_eq!(
        parameters,
        [
            ("M", true),
            ("N", true),
            ("K", false),
            ("dtype", false),
            ("scale", false)
        ]
    );

    let built = build(MAKER, "get_kernel", &[("M", int(64)), ("N", int(32))]);
    assert_eq!(built.len(), 1);
    assert_eq!(built[0].0, "scaled");
    assert!(built[0].1.contains("(64, 32, 64), \"float16\""), "{}", built[0].1);

    let given = [
        ("M", int(32)),
        ("N", int(8)),
        ("K", int(4)),
        ("dtype", ConstValue::Str("float32".into())),
        ("scale", ConstValue::Float(3.0)),
    ];
    let text = &build(MAKER, "get_kernel", &given)[0].1;
    assert!(
        text.contains("(32, 8, 4)") && text.contains("* T.float32(3.0)"),
        "{text}"
    );

    // A function that compiles and runs the kernel itself still returns the kernel.
    let built = build(MAKER, "benchmark", &[("M", int(32)), ("N", int(8))]);
    assert_eq!(built[0].0, "scaled");
}

#[test]
fn what_a_function_is_called_with_is_checked() {
    let error = fails(
        MAKER,
        "get_kernel",
        &[("M", ConstValue::Int(33)), ("N", ConstValue::Int(8))],
    );
    assert!(
        error.contains("assertion failed: M % 32 == 0") && error.contains("k.py:"),
        "{error}"
    );
    let error = fails(MAKER, "get_kernel", &[("M", ConstValue::Int(32))]);
    assert!(error.contains("get_kernel() misses \"N\""), "{error}");
    let error = fails(
        MAKER,
        "prepare",
        &[("M", ConstValue::Int(32)), ("N", ConstValue::Int(8))],
    );
    assert!(error.contains("\"prepare\" makes no kernel"), "{error}");
}

#[test]
fn values_of_the_host_are_inert_until_a_kernel_needs_one() {
    let text = r#"
import torch
from helpers import TILE
from tvm.script import tirx as T
N = torch.cuda.device_count()

@T.prim_func
def uses_torch(A: T.Buffer((32,), "float32")):
    T.device_entry()
    tx = T.thread_id([32])
    A[tx] = T.float32(N)

@T.prim_func
def uses_module(A: T.Buffer((32,), "float32")):
    T.device_entry()
    tx = T.thread_id([TILE])
    A[tx] = 0.0

def by_host():
    if torch.cuda.device_count() > 1:
        return uses_torch
    return uses_module
"#;
    let error = fails(text, "uses_torch", &[]);
    assert!(
        error.contains("\"torch.cuda.device_count\" belongs to the host program"),
        "{error}"
    );
    assert!(error.contains("k.py:11"), "{error}");
    let error = fails(text, "uses_module", &[]);
    assert!(
        error.contains("\"helpers.TILE\"") && error.contains("no kernel file or module \"helpers\""),
        "{error}"
    );
    let error = fails(text, "by_host", &[]);
    assert!(error.contains("torch.cuda.device_count"), "{error}");
}

const SEVERAL: &str = r#"
from __future__ import annotations
import tvm
from tvm.script import ir as I, tirx as T

@T.jit
def add(A: T.Buffer((N,), "float32"), *, N: T.constexpr):
    T.device_entry()
    tx = T.thread_id([N])
    A[tx] = A[tx] + 1.0

k256 = add.specialize(N=256)
kernels = {n: add.specialize(N=n) for n in (128, 512)}
more = [add.specialize(N=n) for n in (32, 64)]

def pair(n=64):
    @T.prim_func
    def twice(A: T.Buffer((n,), "float32")):
        T.device_entry()
        tx = T.thread_id([n])
        A[tx] = A[tx] * 2.0

    @T.prim_func
    def half(A: T.Buffer((n,), "float32")):
        T.device_entry()
        tx = T.thread_id([n])
        A[tx] = A[tx] * 0.5
    return twice, half

def by_name(n):
    twice, half = pair(n)
    return {"fwd": twice, "bwd": half}

def module(n):
    twice, half = pair(n)
    return tvm.IRModule({"twice": twice, "other": half})

def compiled(n):
    return tvm.compile(tvm.IRModule({"main": pair(n)[1]}), target="cuda", tir_pipeline="tirx")

def specialized(n):
    return add.specialize(N=n)

def tagged(n):
    return specialized(n).with_attr("global_symbol", "add_tagged")

def as_class(n):
    @I.ir_module
    class Module:
        @T.prim_func
        def main(A: T.Buffer((n,), "float32")):
            T.device_entry()
            tx = T.thread_id([n])
            A[tx] = 0.0
    return Module

def changes_afterwards():
    step = [1.0]
    @T.prim_func
    def k(A: T.Buffer((32,), "float32")):
        T.device_entry()
        tx = T.thread_id([32])
        A[tx] = step[0]
    step[0] = 2.0
    return k
"#;

#[test]
fn kernels_of_the_module_level_are_entries() {
    assert_eq!(
        entries(SEVERAL),
        [
            "add",
            "k256",
            "kernels[128]",
            "kernels[512]",
            "more[0]",
            "more[1]"
        ]
    );
    for (entry, extent) in [
        ("k256", 256),
        ("kernels[512]", 512),
        ("kernels.128", 128),
        ("more[1]", 64),
    ] {
        let text = &build(SEVERAL, entry, &[])[0].1;
        assert!(text.contains(&format!("({extent},)")), "{entry}: {text}");
    }
}

#[test]
fn several_results_are_named_as_the_kernels_are() {
    let n = [("n", ConstValue::Int(96))];
    let names = |entry: &str| -> Vec<String> { build(SEVERAL, entry, &n).into_iter().map(|b| b.0).collect() };
    assert_eq!(names("pair"), ["twice", "half"]);
    assert_eq!(names("by_name"), ["fwd", "bwd"]);
    assert_eq!(names("module"), ["twice", "other"]);
    assert_eq!(names("compiled"), ["half"]);
    assert_eq!(names("specialized"), ["add"]);
    assert_eq!(names("tagged"), ["add_tagged"]);
    assert_eq!(names("as_class"), ["Module"]);
    assert_eq!(names("by_name[bwd]"), ["bwd"]);
    assert_eq!(names("pair[1]"), ["half"]);
    assert!(build(SEVERAL, "by_name[\"bwd\"]", &n)[0].1.contains("0.5"));
    assert!(build(SEVERAL, "pair", &[])[0].1.contains("(64,)"));
    let error = fails(SEVERAL, "pair[thrice]", &n);
    assert!(
        error.contains("gives no kernel \"thrice\"") && error.contains("\"twice\", \"half\""),
        "{error}"
    );
    let file = load(SEVERAL);
    let Err(error) = file.build(Some("pair"), &BTreeMap::new()) else {
        panic!("two kernels");
    };
    assert!(error.render(file.sources()).contains("pair[twice], pair[half]"));
}

#[test]
fn a_kernel_is_built_where_it_is_decorated() {
    let text = &build(SEVERAL, "changes_afterwards", &[])[0].1;
    assert!(text.contains("T.float32(1.0)"), "{text}");
}

#[test]
fn tests_around_kernels_load() {
    let text = r#"
import numpy as np
import pytest
import tvm
import tvm.testing
from tvm.script import tirx as T
from tvm.testing import env

@pytest.mark.gpu
@pytest.mark.skipif(not env.has_cuda(), reason="need cuda")
@pytest.mark.parametrize("warps", [1, 2, 4])
@pytest.mark.parametrize("dev", [tvm.cuda(0)])
def test_sum(warps, dev=None):
    n = warps * 32
    def reference(x):
        y = x.copy()
        y[1:] = x[:-1] + np.float32(1)
        return y

    @T.prim_func
    def func(out_ptr: T.handle):
        out = T.match_buffer(out_ptr, (n,), "float32")
        T.device_entry()
        tx = T.thread_id([n])
        out[tx] = T.float32(tx)

    with pytest.raises(Exception):
        @T.prim_func
        def broken(a: T.handle):
            undefined_name[0] = 1
    if not env.has_cuda():
        pytest.skip("no GPU")
    with tvm.target.Target("cuda") as target:
        mod = tvm.compile(tvm.IRModule({"main": func}), target=target, tir_pipeline="tirx")
        src = mod.mod.imports[0].inspect_source()
        assert "out_ptr" in src
        a = tvm.runtime.tensor(np.zeros(n, dtype="float32"), device=tvm.cuda(0))
        mod(a)
        for i, (x, y) in enumerate(zip(a.numpy(), reference(a.numpy()))):
            assert x == y
        out = [float(v) for v in a.numpy()]
        print(f"max {max(out)} of {len(out)}: {a.shape[0]:>8.3f}")
        np.testing.assert_allclose(a.numpy(), reference(a.numpy()), rtol=1e-5)

if __name__ == "__main__":
    tvm.testing.main()
"#;
    assert_eq!(entries(text), ["test_sum"]);
    let built = build(text, "test_sum", &[("warps", ConstValue::Int(4))]);
    assert_eq!(built.iter().map(|b| b.0.as_str()).collect::<Vec<_>>(), ["func"]);
}

/// What kernels of libraries take from their host program: any keyword, constants of the environment, the GPU's size,
/// random problem sizes, one file run with several environments.
const LIBRARY: &str = r#"
import importlib.util
import os
import random
import sys
from pathlib import Path
import torch
from tvm.script import tirx as T

TILE = int(os.environ.get("MY_TILE", "32"))
HOME = os.environ["HOME"]
SIZES = {torch.float16: 2, torch.float32: 4}
BYTES = torch.empty((), dtype=torch.bfloat16).element_size() + torch.float32.itemsize

def rows(seed):
    rng = random.Random(seed)
    return [int(100 * rng.uniform(0.7, 1.3)) for _ in range(3)] + [rng.randint(1, 6), rng.getrandbits(40)]

assert rows(0) == [120, 115, 95, 3, 562492388602], rows(0)
assert random.Random(7).sample(range(100), 5) == [41, 19, 50, 83, 6]
assert Path(__file__).stem == "k" and Path("a") / "b.py" == Path("a/b.py") and Path("a/b.py").suffix == ".py"
assert BYTES == 6

def again(tile):
    os.environ.update({"MY_TILE": str(tile)})
    name = f"k_{tile}"
    spec = importlib.util.spec_from_file_location(name, Path(__file__))
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    os.environ.pop("MY_TILE", None)
    return module

def get_kernel(n, **options):
    if TILE != options.get("tile", TILE):
        return again(options["tile"]).get_kernel(n, **options)
    assert globals()["TILE"] == TILE and "n" not in globals()
    if not torch.cuda.is_available():
        raise RuntimeError("no GPU")
    blocks = torch.cuda.get_device_properties(torch.cuda.current_device()).multi_processor_count if options.get("fill") else 1

    @T.prim_func
    def scaled(a: T.handle):
        A = T.match_buffer(a, (blocks, n), "float32")
        T.device_entry()
        bx = T.cta_id([blocks])
        tx = T.thread_id([TILE])
        A[bx, tx] = A[bx, tx] * options.get("scale", 1.0)

    return scaled.with_attr("tirx.kernel_launch_params", ["tirx.use_programtic_dependent_launch"]).with_attr(
        {"my.note": 3, "my.other": True}
    ).without_attr("my.other")
"#;

#[test]
fn kernels_of_libraries_take_keywords_and_an_environment() {
    let n = ("n", ConstValue::Int(256));
    let text = |more: &[(&str, ConstValue)]| {
        let given: Vec<_> = std::iter::once(n.clone()).chain(more.iter().cloned()).collect();
        build(LIBRARY, "get_kernel", &given).remove(0).1
    };
    let plain = text(&[]);
    assert!(plain.contains("T.thread_id([32])"), "{plain}");
    assert!(
        plain.contains("\"tirx.kernel_launch_params\": [\"tirx.use_programtic_dependent_launch\"]"),
        "{plain}"
    );
    assert!(
        plain.contains("\"my.note\": 3") && !plain.contains("my.other"),
        "{plain}"
    );
    let wide = text(&[("tile", ConstValue::Int(64)), ("scale", ConstValue::Float(2.5))]);
    assert!(
        wide.contains("T.thread_id([64])") && wide.contains("2.5"),
        "{wide}"
    );
    let entry = load(LIBRARY).entry("get_kernel").unwrap();
    assert!(entry.takes("anything") && entry.specializable().eq(["n"]));
    // A kernel that fills the GPU needs to be told how large it is.
    let error = fails(LIBRARY, "get_kernel", &[n, ("fill", ConstValue::Bool(true))]);
    assert!(error.contains("`multiprocessors = 132`"), "{error}");
}

#[test]
fn what_no_keyword_takes_is_an_error() {
    let given = [("n", ConstValue::Int(4)), ("tile", ConstValue::Int(4))];
    let error = fails(SEVERAL, "specialized", &given);
    assert!(error.contains("no parameter \"tile\""), "{error}");
    let configs = "CONFIGS = [{\"n\": 4, \"shape\": (2, 3), \"label\": \"a\"}]\n";
    let dict = ConstValue::Dict(vec![
        ("n".into(), ConstValue::Int(4)),
        (
            "shape".into(),
            vec![ConstValue::Int(2), ConstValue::Int(3)].into(),
        ),
        ("label".into(), "a".into()),
    ]);
    assert_eq!(load(configs).constant("CONFIGS"), Ok(Some(vec![dict].into())));
}

/// Configurations and context managers of Python's library, which need nothing of the host.
#[test]
fn namespaces_and_context_managers_are_pythons() {
    let text = r#"
import contextlib
import types
from types import SimpleNamespace
from tvm.script import tirx as T

config = SimpleNamespace(BM=32, dtype="float32")
config.BM *= 2
assert repr(config) == "namespace(BM=64, dtype='float32')" and vars(config)["BM"] == 64
assert config == types.SimpleNamespace(BM=64, dtype="float32") and config != SimpleNamespace(BM=32)

steps = []

@contextlib.contextmanager
def region(name, times=1):
    steps.append(name)
    yield len(name) * times
    steps.append("end of " + name)

with region("load", times=2) as size, contextlib.nullcontext(5) as five:
    steps.append(size + five)
assert steps == ["load", 13, "end of load"]

@T.prim_func
def k(A: T.Buffer((config.BM,), config.dtype)):
    T.device_entry(); T.cta_id([1]); tx = T.thread_id([config.BM])
    A[tx] = 1.0
"#;
    let kernels = build(text, "k", &[]);
    assert!(kernels[0].1.contains("T.thread_id([64])"), "{}", kernels[0].1);
}
