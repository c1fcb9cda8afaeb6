//! `cargo tirx fix`: files of TVM 0.26 in the language of 0.27.

use std::fs;

use super::{Folder, fails};

const OLD: &str = r#"from tvm.script import tirx as T


# sim: waits(N=32)
#   A: uint32[32] = i
#   B: uint32[32] = 0 -> A[i]
@T.jit
def waits(A: T.Buffer((N,), "uint32"), B: T.Buffer((N,), "uint32"), *, N: T.constexpr):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([N])
    bar = T.alloc_buffer((1,), "uint64", scope="shared")
    if tx == 0:
        T.ptx.mbarrier.init(bar.ptr_to([0]), N)  # one arrival of each
        T.ptx.fence.mbarrier_init()
    T.ptx.bar.sync(0, N)
    T.ptx.mbarrier.arrive(  bar.ptr_to([0])  )
    T.ptx.mbarrier.try_wait(bar.ptr_to([0]), 0)
    x: T.uint32 = T.ptx.ld(A.ptr_to([tx]), "uint32", "u32")
    B[tx] = x   # kept
"#;

const NEW: &str = r#"    if tx == 0:
        T.ptx.mbarrier.init.shared.b64(bar.ptr_to([0]), N)  # one arrival of each
        T.ptx.fence.mbarrier_init.release.cluster()
    T.ptx.bar.sync(0, N)
    T.ptx.mbarrier.arrive.shared.b64(bar.ptr_to([0]))
    T.cuda.mbarrier_wait(bar.ptr_to([0]), 0)
    x: T.uint32
    T.ptx.ld.global_.u32(x, A.ptr_to([tx]))
    B[tx] = x   # kept
"#;

#[test]
fn a_file_is_rewritten_where_it_stands() {
    let folder = Folder::new();
    let path = folder.path("old.py");
    fs::write(&path, OLD).unwrap();
    let checked = folder.run(&["fix", "--tvm", "0.27", "--check", "old.py"]);
    assert_eq!(checked.code, Some(1), "{}", checked.err);
    assert!(checked.err.contains("is written for TVM 0.26"), "{}", checked.err);
    assert_eq!(fs::read_to_string(&path).unwrap(), OLD);
    let written = folder.run(&["fix", "--tvm", "0.27", "old.py"]);
    assert_eq!(written.code, Some(0), "{}", written.err);
    assert!(
        written.out.contains(
            "old.py:15\n- T.ptx.fence.mbarrier_init()\n+ T.ptx.fence.mbarrier_init.release.cluster()\n"
        ),
        "{}",
        written.out
    );
    let text = fs::read_to_string(&path).unwrap();
    let unchanged = OLD.find("    if tx").unwrap();
    assert_eq!(text, format!("{}{NEW}", &OLD[..unchanged]));
    let tested = folder.run(&["test", "old.py"]);
    assert_eq!(tested.code, Some(0), "{}{}", tested.out, tested.err);
    // What is of 0.27 stays.
    let again = folder.run(&["fix", "--tvm", "0.27", "--check", "old.py"]);
    assert_eq!((again.code, again.out.as_str()), (Some(0), ""), "{}", again.err);
}

const CLUSTER: &str = r#"from tvm.script import tirx as T


# sim: exchanged
#   A: float32[2x64] = i * 64 + j
#   B: float32[2x64] = 0 -> (1 - i) * 64 + j
#   seeds: 4
@T.prim_func
def exchanged(A: T.Buffer((2, 64), "float32"), B: T.Buffer((2, 64), "float32")):
    T.device_entry()
    bx = T.cta_id([2])
    rank = T.cta_id_in_cluster([2])
    tx = T.thread_id([64])
    S = T.alloc_shared((64,), "float32")
    S[tx] = A[rank, tx]
    if tx % 2 == 0:
        T.ptx.barrier.cluster.arrive(aligned=False)
    else:
        T.ptx.barrier.cluster.arrive(sem="release", aligned=False)
    T.ptx.barrier.cluster.wait(acquire=True, aligned=False)
    far = T.decl_buffer((64,), "float32", data=T.reinterpret("handle", T.ptx.map_shared_rank(S.ptr_to([0]), 1 - rank)))
    B[rank, tx] = far[tx]
    T.cuda.cluster_sync()
"#;

/// The barrier that is not aligned has the name of the aligned one of 0.26.
#[test]
fn barriers_of_a_cluster_that_are_not_aligned_stay_so() {
    let folder = Folder::new();
    let path = folder.path("old.py");
    fs::write(&path, CLUSTER).unwrap();
    let written = folder.run(&["fix", "--tvm", "0.27", "old.py"]);
    assert_eq!(written.code, Some(0), "{}", written.err);
    let text = fs::read_to_string(&path).unwrap();
    for call in ["arrive()", "arrive.release()", "wait.acquire()"] {
        assert!(
            text.contains(&format!("T.ptx.barrier.cluster.{call}\n")),
            "{text}"
        );
    }
    assert!(
        !written.out.contains("nothing in the file says"),
        "{}",
        written.out
    );
    let tested = folder.run(&["test", "old.py"]);
    assert_eq!(tested.code, Some(0), "{}{}", tested.out, tested.err);
    let again = folder.run(&["fix", "--tvm", "0.27", "--check", "old.py"]);
    assert_eq!((again.code, again.out.as_str()), (Some(0), ""), "{}", again.err);

    // A file whose calls are all in both releases is said to need its release.
    let alone = "from tvm.script import tirx as T\n@T.prim_func\ndef k(A: T.Buffer((64,), \"float32\")):\n    T.device_entry()\n    \
                 bx = T.cta_id([2])\n    cx = T.cta_id_in_cluster([2])\n    tx = T.thread_id([64])\n    A[tx] = 0.0\n    \
                 T.ptx.barrier.cluster.arrive(aligned=False)\n    T.ptx.barrier.cluster.wait(aligned=False)\n";
    fs::write(&path, alone).unwrap();
    let written = folder.run(&["fix", "--tvm", "0.27", "old.py"]);
    assert_eq!(written.code, Some(0), "{}", written.err);
    let text = fs::read_to_string(&path).unwrap();
    assert!(
        text.contains("arrive()\n    T.ptx.barrier.cluster.wait()\n"),
        "{text}"
    );
    assert!(
        written.out.contains("build it with `--tvm 0.27`"),
        "{}",
        written.out
    );
    let shown = folder.run(&["cuda", "--tvm", "0.27", "old.py"]);
    assert!(shown.out.contains("barrier.cluster.arrive;"), "{}", shown.out);
}

#[test]
fn a_file_with_a_call_that_stays_is_not_written() {
    let folder = Folder::new();
    let path = folder.path("old.py");
    let text = OLD.replace(
        "B[tx] = x ",
        "B[tx] = T.if_then_else(tx > 1, T.ptx.ld(A.ptr_to([tx]), \"uint32\", \"u32\"), x) ",
    );
    fs::write(&path, &text).unwrap();
    let outcome = folder.run(&["fix", "--tvm", "0.27", "old.py"]);
    fails(
        &outcome,
        1,
        &[
            "old.py:20: T.ptx.ld: it is computed only under the condition before it: write an `if` statement",
            "1 of 6 calls cannot be rewritten",
        ],
    );
    assert_eq!(fs::read_to_string(&path).unwrap(), text);
}

/// A file whose kernel is made by a function, as in libraries: its values are in the manifest.
#[test]
fn kernels_are_compared_with_the_values_that_the_manifest_declares() {
    let folder = Folder::new();
    let text = r#"from tvm.script import tirx as T

def get_kernel(n, scaled=False):
    @T.prim_func
    def power(A: T.Buffer((n,), "float32")):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([n])
        scale: T.let = T.ptx.exp2(A[tx]) * T.float32(2)
        if scaled:
            A[tx] = T.ptx.rcp(scale)
        else:
            A[tx] = scale
        if n > 64:
            T.ptx.bar.sync(0, n)
            T.ptx.griddepcontrol.wait()
            A[tx] = A[tx] + T.ptx.exp2(scale)
    return power
"#;
    fs::write(folder.path("old.py"), text).unwrap();
    let outcome = folder.run(&["fix", "--tvm", "0.27", "old.py"]);
    let help =
        "give -D n=…, name another kernel with --entry, or declare the file's kernels in `kernels.toml`";
    fails(&outcome, 1, &["the IR of `get_kernel` before and after", help]);
    let manifest = "[defaults]\ntargets = [\"sm_90a\"]\n[[kernel]]\nname = \"k\"\nsource = \"old.py\"\nentry = \"get_kernel\"\n\
                    specialize = [{ n = 32 }, { n = 64, scaled = true }]\n";
    fs::write(folder.path("kernels.toml"), manifest).unwrap();
    let written = folder.run(&["fix", "--tvm", "0.27", "old.py"]);
    assert_eq!(written.code, Some(0), "{}", written.err);
    let summary = "old.py: 3 calls in the language of 0.27; the IR of 2 builds is the same\n\
                   old.py: not compared, since no build reaches them: line 17\n";
    assert!(written.out.ends_with(summary), "{}", written.out);
    let new = fs::read_to_string(folder.path("old.py")).unwrap();
    for line in [
        "        exp2_value: T.float32\n        T.ptx.ex2.approx.ftz.f32(exp2_value, A[tx])\n        scale: T.let = exp2_value * T.float32(2)\n",
        "            T.ptx.rcp.approx.ftz.f32(A[tx], scale)\n",
    ] {
        assert!(new.contains(line), "{new}");
    }
    // One kernel by its name, with values of the command line.
    fs::write(folder.path("old.py"), text).unwrap();
    let one = folder.run(&[
        "fix",
        "--tvm",
        "0.27",
        "--entry",
        "get_kernel",
        "-D",
        "n=128",
        "old.py",
    ]);
    assert_eq!(one.code, Some(0), "{}", one.err);
    assert!(
        one.out
            .contains("not compared, since no build reaches them: line 11"),
        "{}",
        one.out
    );
}

/// What 0.26 gives as a value, converts itself or takes as a condition by any number.
#[test]
fn values_numbers_and_conditions_are_those_of_the_newer_release() {
    let folder = Folder::new();
    let text = r#"from tvm.script import tirx as T

@T.prim_func
def mixed(A: T.Buffer((32,), "float32"), D: T.Buffer((1,), "uint64")):
    T.device_entry()
    T.cluster_id([1])
    rank = T.cta_id_in_cluster([2])
    tx = T.thread_id([32])
    bar = T.alloc_shared((1,), "uint64")
    more: T.int32 = tx
    pair: T.let = T.ptx.add_f32x2(D[0], D[0], dps=False)
    total = T.ptx.fma_f32x2(pair, pair, D[0], ftz=True, dps=False)
    D[0] = T.ptx.mul_f32x2(total, pair, rounding="rz", dps=False)
    T.ptx.mbarrier.arrive(bar.ptr_to([0]), remote=rank ^ 1, pred=True)
    T.ptx.mbarrier.arrive(bar.ptr_to([0]), remote=0, pred=tx == 0)
    T.ptx.tcgen05.mma(0, D[0], D[0], 136314896, d_dtype="float32", a_dtype="float8_e4m3fn", b_dtype="float8_e4m3fn",
                      use_a_tmem=False, cta_group=1, enable_input_d=more)
    A[tx] = T.ptx.max_f32(A[tx], A[31 - tx], ftz=True)
"#;
    fs::write(folder.path("old.py"), text).unwrap();
    let outcome = folder.run(&["fix", "--tvm", "0.27", "old.py"]);
    assert_eq!(outcome.code, Some(0), "{}", outcome.err);
    let new = fs::read_to_string(folder.path("old.py")).unwrap();
    for part in [
        "T.ptx.add.rn.f32x2(pair_value, D[0], D[0])",
        "T.ptx.fma.rn.ftz.f32x2(",
        "T.ptx.mul.rz.f32x2(D[0], total, pair)",
        "T.uint32(rank ^ 1)",
        "pred=tx == 0)",
        "(T.uint32(0), T.uint64(D[0]), T.uint64(D[0]), 136314896, 0, 0, 0, 0, T.ptx.pred(more))",
        "T.ptx.max.ftz.f32(A[tx], A[tx], A[31 - tx])",
    ] {
        assert!(new.contains(part), "{part}: {new}");
    }
    assert!(!new.contains("pred=True"), "{new}");
}

/// What functions of plain Python give as a value, an instruction of 0.27 writes to a buffer that they allocate.
#[test]
fn values_of_plain_functions_are_written_to_registers() {
    let folder = Folder::new();
    let text = r#"from tvm.script import tirx as T

def load(address):
    return T.ptx.ld_acquire(address, "uint32", "b32", scope="gpu", space="global")

def store_sum(to, a, b):
    v0 = T.ptx.ld(a, "uint32", "u32")
    v1 = T.ptx.ld(b, "uint32", "u32")
    T.evaluate(T.ptx.st(to, v0 + v1, ptx_type="u32", space="global"))

@T.prim_func
def sums(A: T.Buffer((32,), "uint32"), B: T.Buffer((32,), "uint32"), F: T.Buffer((64,), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    x: T.uint32 = load(A.ptr_to([tx]))
    B[tx] = x
    store_sum(B.ptr_to([tx]), A.ptr_to([tx]), A.ptr_to([31 - tx]))
    T.ptx.mul_f32x2(T.address_of(F[tx * 2]), T.cuda.make_float2(F[0], F[1]), T.cuda.make_float2(F[2], F[3]), rounding="rn")
    pair: T.let = T.ptx.cvt(T.cast(x, "uint16"), dtype="f16x2", atype="e4m3x2", rounding="rn")
    B[tx] = pair
"#;
    fs::write(folder.path("old.py"), text).unwrap();
    let outcome = folder.run(&["fix", "--tvm", "0.27", "old.py"]);
    assert_eq!(outcome.code, Some(0), "{}", outcome.err);
    let new = fs::read_to_string(folder.path("old.py")).unwrap();
    for part in [
        "    ld_acquire_value = T.alloc_local((1,), \"uint32\")\n    \
         T.evaluate(T.ptx.ld.acquire.gpu.global_.b32(ld_acquire_value[0], address))\n    return ld_acquire_value[0]\n",
        "    v0 = ld_value[0]\n",
        "    T.evaluate(T.ptx.st.global_.u32(to, v0 + v1))\n",
        "T.ptx.mov.b64(F[tx * 2], F[tx * 2 + 1], mul_f32x2_value)\n",
        "T.ptx.cvt.rn.f16x2.e4m3x2(pair_value, T.cast(x, \"uint16\"))\n    pair: T.let = pair_value\n",
    ] {
        assert!(new.contains(part), "{part}: {new}");
    }
}

/// Parts of a mnemonic that the file computes: their values decide, wherever the kernels evaluate them.
#[test]
fn modifiers_that_have_names_are_those_that_the_kernels_evaluate() {
    let folder = Folder::new();
    let text = r#"from tvm.script import tirx as T

BM, BN = 64, 128
SHAPE = {"k": 16, "dtype": "float16"}


@T.jit
def product(C: T.Buffer((N,), "float32"), *, N: T.constexpr):
    T.device_entry()
    T.cta_id([1])
    tx = T.thread_id([128])
    acc = T.alloc_local((BN // 2,), "float32")
    words = T.alloc_local((4,), "uint32")
    T.ptx.wgmma.mma_async.ss(T.uint64(0), T.uint64(0), *[acc[i] for i in range(BN // 2)], M=BM, N=BN, K=SHAPE["k"],
                             in_dtype=SHAPE["dtype"], out_dtype="float32", transA=False, transB=False, scaleA=1.0, scaleB=1.0,
                             scaleD=True)
    for n in (64, 128):
        if n == BN:
            T.ptx.bar.sync(1, N)
    if N > 256:
        T.ptx.wgmma.mma_async.ss(T.uint64(0), T.uint64(0), *[acc[i] for i in range(64)], M=64, N=N, K=16, in_dtype="float16",
                                 out_dtype="float32", transA=False, transB=False, scaleA=1.0, scaleB=1.0, scaleD=True)
    C[tx] = acc[0]
"#;
    fs::write(folder.path("old.py"), text).unwrap();
    let one = folder.run(&["fix", "--tvm", "0.27", "--stdout", "-D", "N=128", "old.py"]);
    let shape =
        "T.ptx.wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16(*[acc[i] for i in range(BN // 2)],";
    assert!(one.out.contains(shape), "{}{}", one.out, one.err);
    // No kernel that is built has a shape for the second: it stays, and no shape is guessed.
    assert_eq!(one.out.matches(".m64n").count(), 1, "{}", one.out);
    let why = "the instruction depends on `N`, and no kernel that is built evaluates it";
    assert_eq!(one.code, Some(1), "{}", one.err);
    assert!(one.err.contains(why), "{}", one.err);
}

/// The command translates the call; a build script, which has no translation, names the mnemonic of the table.
#[test]
fn a_file_of_both_releases_gets_the_call_of_the_newer_one() {
    let folder = Folder::new();
    let text = r#"from tvm.script import tirx as T


@T.prim_func
def both(A: T.Buffer((64,), "uint32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    T.ptx.barrier.cluster.arrive.aligned()
    T.ptx.mbarrier.init(A.ptr_to([0]), 1)
"#;
    fs::write(folder.path("both.py"), text).unwrap();
    let checked = folder.run(&["check", "both.py"]);
    assert_eq!(checked.code, Some(1), "{}", checked.err);
    for part in [
        "0.27 has `T.ptx.mbarrier.init.shared.b64(A.ptr_to([0]), 1)` for `T.ptx.mbarrier.init(A.ptr_to([0]), 1)`",
        "0.26 has `T.ptx.barrier.cluster.arrive` for `T.ptx.barrier.cluster.arrive.aligned`",
    ] {
        assert!(checked.err.contains(part), "{}", checked.err);
    }
}
