//! A package outside of the workspace, built by Cargo as a user's is: without network and without nvcc.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Imported by the other file.
const SHAPES: &str = r#"from tvm.script import tirx as T

STEP = 1.0

def one_block(threads):
    bx = T.cta_id([1])
    return T.thread_id([threads])
"#;

const KERNELS: &str = r#"from __future__ import annotations
from tvm.script import tirx as T
import parts.shapes as shapes
from parts.shapes import STEP

@T.jit
def add(A: T.Buffer((N,), "float32"), B: T.Buffer((N,), "float32"), *, N: T.constexpr):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([N])
    B[tx] = A[tx] + STEP

@T.jit
def fill(A: T.Buffer((N,), DTYPE), *, N: T.constexpr, DTYPE: T.constexpr, TWICE: T.constexpr = False):
    T.device_entry()
    tx = shapes.one_block(N)
    A[tx] = T.cast(tx * (2 if TWICE else 1), DTYPE)

add_of_the_file = add.specialize(N=32)

@T.prim_func
def narrow(A: T.Buffer((15,), "float4_e2m1fn"), P: T.Buffer((2,), "float4_e2m1fnx4"), S: T.Buffer((2,), "float6_e2m3fn"),
           B: T.Buffer((15,), "float4_e2m1fn")):
    T.device_entry()
    tx = shapes.one_block(15)
    B[14 - tx] = T.cast(T.cast(A[tx], "float32") + 1.0, "float4_e2m1fn")
    if tx < 2:
        P[tx] = T.cast(T.cast(P[tx], "float32x4") * T.Broadcast(T.float32(2), 4), "float4_e2m1fnx4")
        S[tx] = T.cast(7.5, "float6_e2m3fn")

@T.prim_func
def scales(A: T.Buffer((4,), "float8_e4m3fn"), W: T.Buffer((4,), "float8_e5m2"), S: T.Buffer((4,), "float8_e8m0fnu"),
           P: T.Buffer((4,), "float4_e2m1fnx2"), B: T.Buffer((4,), "float8_e4m3fn"), Q: T.Buffer((4,), "float4_e2m1fnx2")):
    T.device_entry()
    tx = shapes.one_block(4)
    B[tx] = T.cast(T.cast(A[tx], "float32") * T.cast(W[tx], "float32") * T.cast(S[tx], "float32"), "float8_e4m3fn")
    Q[tx] = P[tx]

@T.prim_func
def launched(A: T.Buffer((256,), "float32"), threads: T.int32, blocks: T.int32, words: T.int32):
    T.device_entry()
    bx, by = T.cta_id([1, blocks])
    rank = T.cta_id_in_cluster([1])
    tx = T.thread_id([threads])
    S = T.alloc_buffer((words,), "float32", scope="shared.dyn")
    S[tx] = 2.0
    if by == 0:
        A[tx] = S[tx]

@T.prim_func
def vast(a: T.handle, B: T.Buffer((256,), "float32"), g: T.int64, threads: T.int64, words: T.int64):
    n = T.int64(); m = T.int64()
    A = T.match_buffer(a, (n, m), "uint8")
    columns: T.let[T.int32] = T.Cast("int32", n)
    T.device_entry()
    bx, by, bz = T.cta_id([T.ceildiv(g, 4), n, columns + 1])
    tx = T.thread_id([threads])
    S = T.alloc_buffer((words,), "float32", scope="shared.dyn")
    S[tx] = 2.0
    if bx == 0 and by == 0 and bz == 0:
        B[tx] = S[tx]

@T.prim_func
def outer(a: T.handle, b: T.handle, c: T.handle):
    m = T.int32(); n = T.int32()
    A = T.match_buffer(a, (m,), "float32")
    B = T.match_buffer(b, (n,), "float32")
    C = T.match_buffer(c, (m * n,), "float32")
    T.device_entry()
    bx = T.cta_id([T.ceildiv(m * n, 256)]); tx = T.thread_id([256])
    i: T.let = bx * 256 + tx
    if i < m * n:
        C[i] = A[i // n] * B[i % n]

@T.prim_func
def shifted(A: T.Buffer((1,), "int32"), m: T.int32):
    T.device_entry()
    bx = T.cta_id([(m + 1048575) >> 20]); tx = T.thread_id([1])
    T.cuda.atomic_add(A.ptr_to([0]), T.int32(1))

@T.prim_func
def blocks(A: T.Buffer((1,), "int32"), m: T.int32, n: T.int32):
    T.device_entry()
    bx = T.cta_id([T.ceildiv(m * n + 1048575, 1048576)]); tx = T.thread_id([1])
    T.cuda.atomic_add(A.ptr_to([0]), T.int32(1))

@T.jit
def far(A: T.Buffer((4,), "int64"), *, START: T.constexpr):
    T.device_entry()
    tx = shapes.one_block(4)
    A[tx] = T.int64(START) + T.cast(tx, "int64")

@T.prim_func
def turns(A: T.Buffer((1,), "int32"), n: T.int32):
    T.device_entry()
    bx = T.cta_id([1]); tx = T.thread_id([1])
    for i in range(n):
        A[0] = A[0] + i

@T.prim_func
def next_number(A: T.Buffer((1,), "int32"), n: T.int32):
    T.device_entry()
    bx = T.cta_id([1]); tx = T.thread_id([1])
    A[0] = n + 1

@T.prim_func
def tickets(A: T.Buffer((1,), "int32"), B: T.Buffer((32,), "int32")):
    T.device_entry()
    bx = T.cta_id([1]); tx = T.thread_id([32])
    B[tx] = T.cuda.atomic_add(A.ptr_to([0]), T.int32(1))

@T.prim_func
def mapped(A: T.Buffer((64,), "float32"), m: T.int32, n: T.int32):
    pitch: T.let = m * n * 4
    A_map: T.let[T.handle("tensormap")] = T.tvm_stack_alloca("tensormap", 1)
    T.call_packed("runtime.cuTensorMapEncodeTiled", A_map, "float32", 3, A.data, 4, 2, 2, 64, pitch * m, 4, 2, 1, 1, 1, 1,
                  0, 0, 2, 0)
    T.device_entry()
    bx = T.cta_id([1]); tx = T.thread_id([32])
    if tx == 0:
        A[0] = T.cast(T.address_of(A_map) % T.uint64(64), "float32")
"#;

const MANIFEST: &str = r#"[defaults]
targets = ["sm_90a"]

[[kernel]]
name = "add"
source = "kernels.py"
specialize = [{ N = 64 }]

[[kernel]]
name = "fill"
source = "kernels.py"
specialize = [{ N = 4, DTYPE = "int32", TWICE = true }, { N = 4, DTYPE = "float16" }]

[[kernel]]
name = "add_of_the_file"
source = "kernels.py"

[[kernel]]
name = "narrow"
source = "kernels.py"

[[kernel]]
name = "scales"
source = "kernels.py"

[[kernel]]
name = "launched"
source = "kernels.py"

[[kernel]]
name = "vast"
source = "kernels.py"

[[kernel]]
name = "outer"
source = "kernels.py"

[[kernel]]
name = "shifted"
source = "kernels.py"

[[kernel]]
name = "blocks"
source = "kernels.py"

[[kernel]]
name = "mapped"
source = "kernels.py"

[[kernel]]
name = "far"
source = "kernels.py"
specialize = [{ START = 4294967296 }, { START = -9223372036854775807 }]

[[kernel]]
name = "turns"
source = "kernels.py"

[[kernel]]
name = "next_number"
source = "kernels.py"

[[kernel]]
name = "tickets"
source = "kernels.py"
"#;

const BUILD: &str =
    "fn main() -> tirx_build::Result<()> {\n    tirx_build::compile_kernels(\"kernels.toml\")\n}\n";

const MAIN: &str = r#"tirx_rt::include_kernels!();

use tirx_rt::{Device, Tensor};

fn main() -> tirx_rt::Result<()> {
    let stream = Device::simulator().new_stream()?;
    let a = Tensor::from_slice(&stream, &[41.0_f32; 64], [64])?;
    let mut b = Tensor::zeros(&stream, [64])?;
    kernels::add::n64(&stream, &a, &mut b)?;
    println!("{:?}", b.to_vec()?[63]);
    let mut doubled = Tensor::<i32>::zeros(&stream, [4])?;
    kernels::fill::n4_dtype_int32_twice_true(&stream, &mut doubled)?;
    let mut halves = Tensor::<tirx_rt::f16>::zeros(&stream, [4])?;
    kernels::fill::n4_dtype_float16(&stream, &mut halves)?;
    println!("{:?} {:?}", doubled.to_vec()?, halves.to_vec()?);
    let short = Tensor::from_slice(&stream, &[1.0_f32; 32], [32])?;
    let mut sum = Tensor::zeros(&stream, [32])?;
    kernels::add_of_the_file(&stream, &short, &mut sum)?;
    println!("{:?}", sum.to_vec()?[31]);

    let fours: Vec<_> = (0..15u8).map(tirx_rt::Float4E2m1::from_bits).collect();
    let fours = Tensor::from_slice(&stream, &fours, [15])?;
    let mut back = Tensor::zeros(&stream, [15])?;
    let mut packed = Tensor::from_slice(&stream, &[0x7421_u16, 0xf0_u16], [2])?;
    let mut sixes = Tensor::<u8>::zeros(&stream, [2])?;
    kernels::narrow(&stream, &fours, &mut packed, &mut sixes, &mut back)?;
    println!("{:?} {:x?} {:x?}", back.to_vec()?, packed.to_vec()?, sixes.to_vec()?);

    // Floats of 8 bits and pairs of 4 bits have types; bytes are seen as them.
    use tirx_rt::{f4e2m1x2, f8e4m3, f8e5m2, f8e8m0};
    let eights = Tensor::from_slice(&stream, &[1.0, -2.0, 0.5, 448.0].map(f8e4m3::from_f32), [4])?;
    let wide = Tensor::from_slice(&stream, &[2.0, 3.0, 4.0, 0.25].map(f8e5m2::from_f32), [4])?;
    let powers = Tensor::from_slice(&stream, &[2.0, 0.5, 1.0, 4.0].map(f8e8m0::from_f32), [4])?;
    let pairs = Tensor::from_slice(&stream, &[f4e2m1x2::from_f32([1.5, -6.0]); 4], [4])?;
    let mut bytes = Tensor::<u8>::zeros(&stream, [4])?;
    let mut copies = Tensor::zeros(&stream, [4])?;
    let mut products = bytes.as_bits_mut::<f8e4m3>()?;
    kernels::scales(&stream, &eights, &wide, &powers, &pairs, &mut products, &mut copies)?;
    println!("{:?} {:?}", products.to_vec()?, copies.to_vec()?[3].to_f32());
    println!("{:x?}", bytes.to_vec()?);

    // Launches that are too large, known at run time only.
    let mut c = Tensor::zeros(&stream, [256])?;
    kernels::launched(&stream, &mut c, 256, 3, 30_000)?;
    println!("{:?}", c.to_vec()?[255]);
    for (threads, blocks, words) in [(2048, 1, 2048), (256, 70_000, 256), (256, 1, 60_000), (-1, 1, 1)] {
        println!("{}", kernels::launched(&stream, &mut c, threads, blocks, words).unwrap_err());
    }
    // 64-bit values whose lower halves are extents.
    let (half, cut) = (1i64 << 32, (1i64 << 32) + 1);
    for (g, rows, threads, words) in [
        (4, 1, 256, 256), (half << 20, 1, 256, 256), (4, half, 256, 256), (4, 1, cut, 256), (4, 1, -half, 256), (4, 1, 256, half),
    ] {
        let tall = Tensor::<u8>::zeros(&stream, [rows as usize, 0])?;
        match kernels::vast(&stream, &tall, &mut c, g, threads, words) {
            Ok(()) => println!("{:?}", c.to_vec()?[255]),
            Err(error) => println!("{error}"),
        }
    }
    // Products that 32 bits do not hold.
    let long = Tensor::<f32>::zeros(&stream, [65_536])?;
    let mut empty = Tensor::<f32>::zeros(&stream, [0])?;
    println!("{}", kernels::outer(&stream, &long, &long, &mut empty).unwrap_err());
    let mut count = Tensor::<i32>::zeros(&stream, [1])?;
    kernels::blocks(&stream, &mut count, 1, i32::MAX)?;
    kernels::shifted(&stream, &mut count, i32::MAX)?;
    println!("{:?}", count.to_vec()?);
    println!("{}", kernels::blocks(&stream, &mut count, 1 << 30, 1 << 30).unwrap_err());
    let mut maps = Tensor::<f32>::zeros(&stream, [64])?;
    kernels::mapped(&stream, &mut maps, 2, 2)?;
    // Compile-time values that 32 bits do not hold.
    let mut numbers = Tensor::<i64>::zeros(&stream, [4])?;
    kernels::far::launch(&stream, kernels::far::Constexpr { START: 4_294_967_296 }, &mut numbers)?;
    println!("{:?}", numbers.to_vec()?);
    // Parts of tensors are arguments as they are.
    let mut parts = Tensor::<f32>::zeros(&stream, [128])?;
    kernels::add::n64(&stream, &a.slice(0, 0..64)?, &mut parts.slice_mut(0, 64..128)?)?;
    println!("{:?}", &parts.to_vec()?[63..65]);
    // Strides of 2^44 and 2^64 bytes: 0 in 32 and in 64 bits, which would be a stride.
    for (m, n) in [(1 << 20, 4), (1 << 30, 4)] {
        println!("{}", kernels::mapped(&stream, &mut maps, m, n).unwrap_err());
    }
    println!("{}", kernels::add::launch(&stream, kernels::add::Constexpr { N: 128 }, &a, &mut b).unwrap_err());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_do_what_they_are_for() {
        let stream = Device::new_simulator().default_stream();
        let mut one = Tensor::<i32>::zeros(&stream, [1]).unwrap();
        if let Err(error) = kernels::turns(&stream, &mut one, 100) {
            panic!("{error}");
        }
        if let Err(error) = kernels::next_number(&stream, &mut one, i32::MAX) {
            panic!("{error}");
        }
        let (mut count, mut tickets) =
            (Tensor::<i32>::zeros(&stream, [1]).unwrap(), Tensor::<i32>::zeros(&stream, [32]).unwrap());
        kernels::tickets(&stream, &mut count, &mut tickets).unwrap();
        assert_eq!(tickets.to_vec().unwrap()[0], 0);
    }
}
"#;

/// The package's folder, and where Cargo builds.
struct Package {
    folder: tempfile::TempDir,
    target: PathBuf,
}

impl Package {
    /// What the workspace's tests have compiled is used again: the same lock file, profile and target directory.
    fn new() -> Package {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("..")
            .canonicalize()
            .unwrap();
        let program = std::env::current_exe().unwrap();
        let package = Package {
            folder: tempfile::tempdir().unwrap(),
            target: program.ancestors().nth(3).unwrap().into(),
        };
        let root_text = root.display();
        let manifest = format!(
            "[package]\nname = \"throw-away\"\nedition = \"2024\"\n\
             [dependencies]\ntirx-rt = {{ path = \"{root_text}/tirx-rt\" }}\n\
             [build-dependencies]\ntirx-build = {{ path = \"{root_text}/tirx-build\" }}\n\
             [profile.dev]\ndebug = \"line-tables-only\"\n[workspace]\n"
        );
        for folder in ["src", "parts"] {
            fs::create_dir(package.folder.path().join(folder)).unwrap();
        }
        package.write("Cargo.toml", &manifest);
        fs::copy(root.join("Cargo.lock"), package.folder.path().join("Cargo.lock")).unwrap();
        for (file, text) in [
            ("kernels.py", KERNELS),
            ("parts/shapes.py", SHAPES),
            ("kernels.toml", MANIFEST),
            ("build.rs", BUILD),
            ("src/main.rs", MAIN),
        ] {
            package.write(file, text);
        }
        package
    }

    fn write(&self, file: &str, text: &str) {
        fs::write(self.folder.path().join(file), text).unwrap();
    }

    /// Runs Cargo: whether it succeeded, stdout and stderr.
    fn cargo(&self, command: &str) -> (bool, String, String) {
        self.cargo_with(command, &[])
    }

    fn cargo_with(&self, command: &str, variables: &[(&str, &str)]) -> (bool, String, String) {
        let output = Command::new(env!("CARGO"))
            .args([command, "--offline"])
            .current_dir(self.folder.path())
            .env("CARGO_TARGET_DIR", &self.target)
            .env("TIRX_NVCC", "none")
            .env_remove("RUSTFLAGS")
            .envs(variables.iter().copied())
            .output()
            .unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (output.status.success(), text(output.stdout), text(output.stderr))
    }
}

#[test]
fn a_package_without_nvcc_and_network() {
    let package = Package::new();
    let (success, out, err) = package.cargo("run");
    assert!(success, "{err}");
    assert_eq!(
        out,
        "42.0\n[0, 2, 4, 6] [0.0, 1.0, 2.0, 3.0]\n2.0\n\
         [-3.0, -2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 6.0, 4.0, 4.0, 3.0, 2.0, 2.0, 1.5, 1.0] [7642, f0] [1f, 1f]\n\
         [4.0, -3.0, 2.0, 448.0] [1.5, -6.0]\n[48, c4, 40, 7e]\n2.0\n\
         kernel `launched` cannot be launched with 2048 threads along x: 1024 is the most\n\
         kernel `launched` cannot be launched with 70000 blocks along y: 65535 is the most\n\
         kernel `launched` cannot be launched with 240000 bytes of dynamic shared memory: 232448 is the most\n\
         kernel `launched`: threadIdx.x would be -1\n\
         2.0\n\
         kernel `vast` cannot be launched: blockIdx.x, `(g + T.int64(3)) // T.int64(4)`, would be 1125899906842624 (g = \
         4503599627370496)\n\
         kernel `vast`: blockIdx.y would be 4294967296\n\
         kernel `vast`: threadIdx.x would be 4294967297\n\
         kernel `vast`: threadIdx.x would be -4294967296\n\
         kernel `vast` cannot be launched: tirx.use_dyn_shared_memory, `words * T.int64(4)`, would be 17179869184 (words = \
         4294967296)\n\
         kernel `outer`, argument 2 `c`: shape[0] is 0, expected 4294967296 (a.shape[0] * b.shape[0])\n[4097]\n\
         kernel `blocks` cannot be launched: blockIdx.x, `(m * n + 2097150) // 1048576`, would be 1099511627777 (m = \
         1073741824, n = 1073741824)\n\
         [4294967296, 4294967297, 4294967298, 4294967299]\n[0.0, 42.0]\n\
         kernel `mapped`: tensor map `A_map`: globalStrides[1] is 17592186044416, expected from 0 to 2^40 - 1 bytes\n\
         kernel `mapped`: tensor map `A_map`: globalStrides[1] is more than 64 bits hold, expected from 0 to 2^40 - 1 \
         bytes\n\
         kernel `add` was not built for N = 128; built: N = 64. Add the specialization to kernels.toml\n"
    );
    let warnings: Vec<&str> = err.lines().filter(|line| line.starts_with("warning:")).collect();
    let [warning] = warnings[..] else {
        panic!("{err}");
    };
    assert!(
        warning.contains("TIRX_NVCC is `none`: the kernels run on the simulator only"),
        "{warning}"
    );

    // `cargo test` has the simulator's settings from its environment.
    let (success, out, err) = package.cargo_with("test", &[]);
    assert!(success, "{out}{err}");
    let settings = [
        ("TIRX_SIM_STEP_LIMIT", "10", "TIRX_SIM_STEP_LIMIT"),
        ("TIRX_SIM_CHECK_OVERFLOW", "1", "overflow"),
        ("TIRX_SIM_SEED", "7", "left: 31"),
        (
            "TIRX_SIM_SEED",
            "soon",
            "TIRX_SIM_SEED is `soon`, which is no number",
        ),
        (
            "TIRX_SIM_STEP_LIMIT",
            "few",
            "TIRX_SIM_STEP_LIMIT is `few`, which is no number and not `none`",
        ),
    ];
    for (name, value, said) in settings {
        let (success, out, err) = package.cargo_with("test", &[(name, value)]);
        assert!(!success && out.contains(said), "{name}={value}: {out}{err}");
    }

    // What is imported is part of the kernel: the build notices that it changed.
    package.write("parts/shapes.py", &SHAPES.replace("STEP = 1.0", "STEP = 2.0"));
    let (success, out, err) = package.cargo("run");
    assert!(success && out.starts_with("43.0\n"), "{out}{err}");

    // A specialization that is not in the manifest is no function.
    package.write("src/main.rs", &MAIN.replace("add::n64", "add::n65"));
    let (success, _, err) = package.cargo("build");
    assert!(
        !success && err.contains("error[E0425]: cannot find function `n65` in module `kernels::add`"),
        "{err}"
    );

    // A kernel that must have machine code.
    package.write(
        "kernels.toml",
        &MANIFEST.replacen("specialize", "require = true\nspecialize", 1),
    );
    let (success, _, err) = package.cargo("build");
    assert!(!success, "{err}");
    for part in [
        "TIRX_NVCC is `none`; the manifest requires machine code for `add`",
        "= help: ",
    ] {
        assert!(err.contains(part), "{part}: {err}");
    }
}
