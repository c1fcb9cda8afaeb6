//! Bundles opened at run time: kernels of a running program are replaced, unless they do not fit it.

use std::fs;
use std::path::PathBuf;

use tirx_build::{Builder, BundleAction, Environment};
use tirx_rt::{Bundle, Device, Tensor};
use tirx_tests::stand_in;

tirx_rt::include_kernels!();

/// The kernels of the program that the tests replace, one for each test: what was launched is not replaced.
const KERNELS: &str = r#"from tvm.script import tirx as T

LENGTH = 256

@T.prim_func
def scale(A_ptr: T.handle, B_ptr: T.handle):
    A = T.match_buffer(A_ptr, (256,), "float32")
    B = T.match_buffer(B_ptr, (256,), "float32")
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([256])
    B[tx] = A[tx] * T.float32(2.0)

@T.prim_func
def scal(A_ptr: T.handle, B_ptr: T.handle, s: T.float32):
    A = T.match_buffer(A_ptr, (LENGTH,), "float32")
    B = T.match_buffer(B_ptr, (LENGTH,), "float32")
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([LENGTH])
    B[tx] = A[tx] * s

@T.jit
def add(A: T.Buffer((N,), "float32"), B: T.Buffer((N,), "float32"),
        C: T.Buffer((N,), "float32"), *, N: T.constexpr):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([N])
    C[tx] = A[tx] + B[tx]
"#;

const MANIFEST: &str = "[defaults]\ntargets = [\"sm_90a\"]\nptx = \"compute_90\"\n\
    [[kernel]]\nname = \"scale\"\nsource = \"k.py\"\n[[kernel]]\nname = \"scal\"\nsource = \"k.py\"\n\
    [[kernel]]\nname = \"add\"\nsource = \"k.py\"\nspecialize = [{ N = 256 }]\n";

/// A bundle of these kernels, made by an nvcc that is a shell script: the simulator runs the IR.
fn bundle(kernels: &str, single: bool) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = |file: &str| folder.path().join(file);
    fs::write(path("k.py"), kernels).unwrap();
    fs::write(path("kernels.toml"), MANIFEST).unwrap();
    let environment = Environment::process()
        .with("TIRX_NVCC", stand_in::nvcc(path("nvcc"), "13.0", ""))
        .with("TIRX_STORE", "none");
    Builder::new()
        .manifest(path("kernels.toml"))
        .environment(environment)
        .bundle(BundleAction::Write, single, "MIT")
        .unwrap();
    let place = path("kernels.bundle");
    (folder, place)
}

#[test]
fn a_changed_kernel_takes_the_place_of_the_one_that_was_built_in() {
    for single in [false, true] {
        let (_folder, path) = bundle(
            &KERNELS.replace("A[tx] * T.float32(2.0)", "A[tx] * T.float32(5.0)"),
            single,
        );
        let bundle = Bundle::open(&path).unwrap();
        let mut names: Vec<&str> = bundle.names().collect();
        names.sort_unstable();
        assert_eq!(names, ["add::n256", "scal", "scale"]);
        let image = bundle.image("add::n256").unwrap();
        assert_eq!(
            (image.targets, image.ptx),
            (["sm_90a"].as_slice(), Some("compute_90"))
        );
        assert!(image.runs_on(9, 0) && image.runs_on(12, 0) && !image.runs_on(8, 0));
        if single {
            let again = kernels::scale::LOADED
                .replace_from(&bundle)
                .unwrap_err()
                .to_string();
            assert!(
                again.contains("kernel `scale` was launched or replaced already"),
                "{again}"
            );
            continue;
        }
        kernels::scale::LOADED.replace_from(&bundle).unwrap();
        let stream = Device::simulator().default_stream();
        let a = Tensor::from_slice(&stream, &[3.0f32; 256], [256]).unwrap();
        let mut b = Tensor::zeros(&stream, [256]).unwrap();
        kernels::scale(&stream, &a, &mut b).unwrap();
        assert_eq!(b.to_vec().unwrap(), [15.0f32; 256]);
        assert_eq!(
            kernels::scale::LOADED.image().hash,
            bundle.image("scale").unwrap().hash
        );
    }
}

#[test]
fn a_changed_signature_is_refused() {
    // Another length: the launcher's check would let through what the kernel does not take.
    let (_folder, path) = bundle(&KERNELS.replace("LENGTH = 256", "LENGTH = 128"), false);
    let bundle = Bundle::open(&path).unwrap();
    let message = kernels::scal::LOADED
        .replace_from(&bundle)
        .unwrap_err()
        .to_string();
    assert!(
        message.contains("kernel `scal` has another signature than the one that this program was built with")
            && message.contains("so the program must be built again"),
        "{message}"
    );
    // The built-in kernel keeps working.
    let stream = Device::simulator().default_stream();
    let a = Tensor::from_slice(&stream, &[-1.0f32; 256], [256]).unwrap();
    let mut b = Tensor::from_slice(&stream, &[9.0f32; 256], [256]).unwrap();
    kernels::scal(&stream, &a, &mut b, 3.0).unwrap();
    assert_eq!(b.to_vec().unwrap(), [-3.0f32; 256]);
}

#[test]
fn what_was_launched_is_not_replaced() {
    let stream = Device::simulator().default_stream();
    let a = Tensor::from_slice(&stream, &[3.0f32; 256], [256]).unwrap();
    let mut c = Tensor::zeros(&stream, [256]).unwrap();
    kernels::add::n256(&stream, &a, &a, &mut c).unwrap();
    let (_folder, path) = bundle(KERNELS, false);
    let message = kernels::add::n256::LOADED
        .replace_from(&Bundle::open(&path).unwrap())
        .unwrap_err();
    assert!(
        message.to_string().contains(
            "kernel `add::n256` was launched or replaced already: open the bundle before the first launch"
        ),
        "{message}"
    );
}

#[test]
fn bundles_that_are_damaged_or_lack_the_kernel_are_refused() {
    let (folder, path) = bundle(KERNELS, false);
    let opened = Bundle::open(&path).unwrap();
    let message = kernels::scale_dyn::LOADED
        .replace_from(&opened)
        .unwrap_err()
        .to_string();
    assert!(message.contains("it has no kernel `scale_dyn`"), "{message}");

    let file = path.join("scal.tirxk");
    let bytes = fs::read(&file).unwrap();
    let refused = |bytes: &[u8], said: &str| {
        fs::write(&file, bytes).unwrap();
        let message = Bundle::open(&path).unwrap_err().to_string();
        assert!(
            message.contains("`scal.tirxk` ") && message.contains(said),
            "{message}"
        );
    };
    let mut flipped = bytes.clone();
    flipped[bytes.len() / 2] ^= 1;
    refused(&flipped, "is damaged: its content does not match its hash");
    refused(&bytes[..20], "is cut off, or a length in it is wrong");
    refused(
        &[b"TIRXKRN9", &bytes[8..]].concat(),
        "is of another version of the format",
    );
    refused(b"hello, world", "is no kernel of a bundle");
    let nothing = Bundle::open(folder.path().join("nothing"))
        .unwrap_err()
        .to_string();
    assert!(nothing.contains("the bundle cannot be read"), "{nothing}");
    let text = folder.path().join("text");
    fs::write(&text, "hello, world").unwrap();
    let message = Bundle::open(&text).unwrap_err().to_string();
    assert!(
        message.contains("is no bundle: its first bytes are wrong"),
        "{message}"
    );

    fs::write(&file, &bytes).unwrap();
    let lock = path.join("kernels.lock");
    let text = fs::read_to_string(&lock).unwrap();
    let refused = |said: &str| {
        let message = Bundle::open(&path).unwrap_err().to_string();
        assert!(message.contains(said), "{message}");
    };
    fs::remove_file(&lock).unwrap();
    refused("the bundle has no kernels.lock");
    for (from, to, said) in [
        ("version = 1", "version = 2", "`kernels.lock` is of version 2"),
        (
            "tirx = ",
            "tir = ",
            "`kernels.lock` is damaged: unknown key `tir`",
        ),
        ("flags = []", "flags = [\"-G\"]", "is not that of its inputs"),
        (
            "file = \"scal\"",
            "file = \"scaled\"",
            "there is no file `scaled.tirxk`",
        ),
    ] {
        assert!(text.contains(from), "{from}");
        fs::write(&lock, text.replace(from, to)).unwrap();
        refused(said);
    }
    // A kernel of another bundle, which is whole by itself.
    fs::write(&lock, &text).unwrap();
    let (_other, other) = bundle(&KERNELS.replace("A[tx] * s", "A[tx] + s"), false);
    fs::copy(other.join("scal.tirxk"), &file).unwrap();
    refused("`scal.tirxk` is not the kernel `scal` that kernels.lock names");
    fs::write(&file, &bytes).unwrap();
    Bundle::open(&path).unwrap();
}
