//! Tensor maps from the command line: `sim` and `bench` make them for kernels that take them from their caller.

use std::fs;

use super::{Folder, fails};

/// Copies a tile of 8 x 32 from the tensor of one map to that of another, and to a tensor.
const COPY: &str = r#"from tvm.script import tirx as T


@T.prim_func
def copy(A_map: T.TensorMap(), B_map: T.TensorMap(), C: T.Buffer((8, 32), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tid = T.thread_id([32])
    tile = T.alloc_shared((8, 32), "float32", align=1024)
    full = T.alloc_shared((1,), "uint64")
    if tid == 0:
        T.ptx.mbarrier.init(full.ptr_to([0]), 1)
        T.ptx.fence.mbarrier_init()
        T.ptx.mbarrier.arrive.expect_tx(full.ptr_to([0]), 8 * 32 * 4)
        T.ptx.cp_async.bulk.tensor.g2s_cluster(2, tile.ptr_to([0, 0]), full.ptr_to([0]), T.address_of(A_map), 0, 1, "", 0, 0)
    T.cuda.cta_sync()
    T.ptx.mbarrier.try_wait(full.ptr_to([0]), 0)
    for i in range(8):
        C[i, tid] = tile[i, tid]
    if tid == 0:
        T.ptx.cp_async.bulk.tensor.s2g(2, tile.ptr_to([0, 0]), T.address_of(B_map), "", 0, 0)
        T.ptx.cp_async.bulk.commit_group()
        T.ptx.cp_async.bulk.wait_group(0)
"#;

fn folder() -> Folder {
    let folder = Folder::new();
    fs::write(folder.path("copy.py"), COPY).unwrap();
    let values: Vec<f32> = (0..1024).map(|i| i as f32).collect();
    folder.array("a.npy", &values);
    folder
}

/// Simulates the copy with these maps of `a.npy` and of the result.
fn copied(folder: &Folder, a: &str, b: &str) -> super::Outcome {
    let (a, b) = (format!("A_map={a}"), format!("B_map={b}"));
    folder.run(&[
        "sim",
        "copy.py",
        "--arch",
        "sm_90a",
        "--tensor-map",
        &a,
        "--tensor-map",
        &b,
        "--out",
        "C=c.npy",
    ])
}

#[test]
fn a_map_is_of_a_file_of_a_parameter_or_of_new_memory() {
    let folder = folder();
    let rows = |first: usize, pitch: usize, width: usize| -> Vec<f32> {
        let value = |r: usize, c: usize| {
            if c < width {
                (first + r * pitch + c) as f32
            } else {
                0.0
            }
        };
        (0..8).flat_map(|r| (0..32).map(move |c| value(r, c))).collect()
    };
    let new = "float32[8x32],box=8x32";
    for (a, expected) in [
        ("a.npy,shape=8x32,box=8x32", rows(0, 32, 32)),
        // Rows of 16 of 64 elements, from the 128th on; the box reaches beyond them.
        (
            "a.npy,shape=8x16,strides=256,offset=512,box=8x32",
            rows(128, 64, 16),
        ),
        // All elements are moved as they are, whatever they are called.
        ("a.npy,shape=8x32,dtype=int32,l2=128,box=8x32", rows(0, 32, 32)),
    ] {
        let outcome = copied(&folder, a, new);
        assert_eq!(outcome.code, Some(0), "{a}: {}", outcome.err);
        assert_eq!(folder.floats("c.npy"), expected, "{a}");
    }
    // The result through the map: of new memory, and of the kernel's own tensor.
    let outcome = folder.run(&[
        "sim",
        "copy.py",
        "--arch",
        "sm_90a",
        "--tensor-map",
        "A_map=a.npy,shape=8x32,box=8x32,swizzle=128",
        "--tensor-map",
        "B_map=float32[8x32],box=8x32,swizzle=128",
        "--out",
        "B_map=b.npy",
        "--out",
        "C=c.npy",
    ]);
    assert_eq!(outcome.code, Some(0), "{}", outcome.err);
    assert_eq!(folder.floats("b.npy"), rows(0, 32, 32));
    assert_ne!(folder.floats("c.npy"), rows(0, 32, 32), "the tile is permuted");
    let outcome = copied(&folder, "C,box=8x32", new);
    assert_eq!(outcome.code, Some(0), "{}", outcome.err);
    assert_eq!(folder.floats("c.npy"), [0.0; 256]);
}

#[test]
fn wrong_maps_are_named() {
    let folder = folder();
    let good = "float32[8x32],box=8x32";
    for (a, parts) in [
        (
            "a.npy",
            vec![
                "`A_map`: the box (the part that one copy moves) is missing",
                "box=64x32",
            ],
        ),
        (
            "a.npy,box=8x32",
            vec!["tensor map `A_map`: ", "found 1, 0, 2 and 1"],
        ),
        (
            "a.npy,shape=8x32,box=8x512",
            vec!["boxDim[0] is 512, expected from 1 to 256"],
        ),
        (
            "a.npy,shape=8x30,box=8x32",
            vec!["globalStrides[0] is 120, expected a multiple of 16 bytes"],
        ),
        (
            "a.npy,shape=8x32,box=8x32,offset=8",
            vec!["globalAddress is ", "a multiple of 16 bytes"],
        ),
        (
            "a.npy,shape=0x32,box=8x32",
            vec!["globalDim[1] is 0, expected from 1 to 2^32"],
        ),
        (
            "a.npy,shape=64x32,box=8x32",
            vec!["it reaches 8192 bytes far, its tensor has 4096"],
        ),
        (
            "a.npy,dtype=int8,box=8x32",
            vec!["its elements have 8 bits, those of the tensor 32", "shape="],
        ),
        (
            "a.npy,box=8x32,swizzle=48",
            vec!["swizzle is one of [0, 32, 64, 128] bytes, found `48`"],
        ),
        ("a.npy,box=8x32,dtype=float6", vec!["no elements of `float6`"]),
        ("a.npy,box=8,32", vec!["`32` is not of the form KEY=VALUE"]),
        ("a.npy,bocks=8x32", vec!["`bocks` is no key of a tensor map"]),
        ("a.npy,box=8xq", vec!["`8xq` is no list of numbers like 64x32"]),
        (
            "a.npy,box=8x32,fill=one",
            vec!["fill is `zeros` or `nan`, found `one`"],
        ),
        ("no.npy,box=8x32", vec!["cannot read `no.npy`"]),
        (
            "D,box=8x32",
            vec!["`D` is no tensor of the kernel", "a file ends with .npy"],
        ),
        ("float5[8x32],box=8x32", vec!["`float5` is no dtype"]),
        ("float32[8xq],box=8x32", vec!["`8xq` is no list of numbers"]),
        ("float32[99999999x99999999],box=8x32", vec!["is too large"]),
        (
            "int8[64x64],box=8x32,fill=nan",
            vec!["NaN fills tensor maps of float16"],
        ),
    ] {
        let outcome = copied(&folder, a, good);
        let code = outcome.code;
        assert!(matches!(code, Some(1 | 2)), "{a}: {code:?} {}", outcome.err);
        for part in parts {
            assert!(outcome.err.contains(part), "{a}: {part}\n{}", outcome.err);
        }
    }
    let run = |arguments: &[&str]| folder.run(&[&["sim", "copy.py", "--arch", "sm_90a"], arguments].concat());
    let missing = run(&[
        "--tensor-map",
        "A_map=a.npy,shape=8x32,box=8x32",
        "--out",
        "C=c.npy",
    ]);
    fails(
        &missing,
        1,
        &[
            "tensor map `B_map` is missing",
            "--tensor-map B_map=FILE.npy,box=64x32",
        ],
    );
    let array = run(&["--arg", "A_map=a.npy"]);
    fails(
        &array,
        1,
        &["`A_map` is a tensor map", "--tensor-map A_map=a.npy,box=64x32"],
    );
    let number = run(&["--scalar", "A_map=1"]);
    fails(&number, 1, &["tensor map `A_map` is missing"]);
    let both = [
        "--tensor-map",
        "A_map=a.npy,shape=8x32,box=8x32",
        "--tensor-map",
        "B_map=float32[8x32],box=8x32",
        "--out",
        "C=c.npy",
    ];
    let unknown = run(&[&both[..], &["--tensor-map", "C=a.npy,box=8"]].concat());
    fails(&unknown, 1, &["--tensor-map C: `C` is no tensor map"]);
    let unknown = run(&[&both[..], &["--tensor-map", "B_mop=a.npy,box=8"]].concat());
    fails(
        &unknown,
        1,
        &["--tensor-map B_mop: the kernel has no such parameter", "B_map"],
    );
    let twice = run(&[&both[..], &["--tensor-map", "A_map=a.npy,box=8"]].concat());
    fails(&twice, 2, &["`A_map` is given twice"]);
}

#[test]
fn bench_makes_maps_and_their_tensors() {
    let folder = folder();
    let manifest =
        "[defaults]\ntargets = [\"sm_90a\"]\n\n[[kernel]]\nname = \"copy\"\nsource = \"copy.py\"\n";
    fs::write(folder.path("kernels.toml"), manifest).unwrap();
    let bench = |maps: &[&str]| {
        let arguments = [&["bench", "copy", "--simulator", "--samples", "1"], maps].concat();
        folder.run_with(&arguments, &[("TIRX_NVCC", "none")])
    };
    let a = ["--tensor-map", "A_map=C,box=8x32"];
    let outcome = bench(&[&a[..], &["--tensor-map", "B_map=float32[8x32],box=8x32"]].concat());
    assert_eq!(outcome.code, Some(0), "{}", outcome.err);
    fails(
        &bench(&a),
        1,
        &[
            "tensor map `B_map` is missing",
            "--tensor-map B_map=float16[64x128],box=64x32",
        ],
    );
    let other = bench(&[&a[..], &["--tensor-map", "B_map=D,box=8x32"]].concat());
    fails(&other, 1, &["tensor map `B_map`: `D` is no tensor of the kernel"]);
}
