//! Packages outside of the workspace, built by Cargo with a real nvcc whose runs are counted: when nvcc runs again, and
//! that no output is stale.
#![cfg(unix)]

mod book;
mod bundle;
mod bundles;
mod c_api;
mod host_operators;
mod kill;
mod library;
mod others;
mod package;
mod project;
mod surroundings;
mod throw_away;
mod tuning;

use std::fs;

use throw_away::{ScratchPackages, real_nvcc, texts};

const KERNELS: &str = r#"from tvm.script import tirx as T

@T.jit
def add(A: T.Buffer((N,), "float32"), B: T.Buffer((N,), "float32"), *, N: T.constexpr):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([N])
    B[tx] = A[tx] + 1.0
"#;

const MAIN: &str = r#"tirx_rt::include_kernels!();

fn main() -> tirx_rt::Result<()> {
    let stream = tirx_rt::Device::simulator().new_stream()?;
    let a = tirx_rt::Tensor::from_slice(&stream, &[41.0_f32; 32], [32])?;
    let mut b = tirx_rt::Tensor::zeros(&stream, [32])?;
    kernels::add::n32(&stream, &a, &mut b)?;
    let image = &kernels::add::n32::IMAGE;
    println!("{:?} {:?} {:?}", b.to_vec()?[31], image.fatbin.is_some(), image.targets);
    Ok(())
}
"#;

/// `count` specializations of `add`, for `targets`.
fn manifest(count: usize, targets: &str) -> String {
    let sizes: Vec<String> = (0..count).map(|i| format!("{{ N = {} }}", 32 + i)).collect();
    format!(
        "[defaults]\ntargets = [{targets}]\n\n[[kernel]]\nname = \"add\"\nsource = \"kernels.py\"\nspecialize = [{}]\n",
        sizes.join(", ")
    )
}

#[test]
fn one_of_fifty_kernels_is_one_run() {
    let Some(real) = real_nvcc() else { return };
    let place = ScratchPackages::new();
    place.nvcc(&real, None);
    place.package("fifty", &manifest(50, "\"sm_90a\""), KERNELS, MAIN, "");
    assert_eq!(place.build("fifty"), 50);
    // Nothing changed: the build script does not even run.
    let (success, _, err) = place.cargo("fifty", &["build"]);
    assert!(success && !err.contains("Compiling"), "{err}");
    assert_eq!(place.counted(), (0, 0));
    place.edit("fifty/kernels.py", "@T.jit", "# A comment.\n@T.jit");
    assert_eq!(place.build("fifty"), 0);
    place.edit("fifty/kernels.toml", "{ N = 81 }", "{ N = 82 }");
    assert_eq!(place.build("fifty"), 1);
}

#[test]
fn what_changes_and_comes_back_is_compiled_once() {
    let Some(real) = real_nvcc() else { return };
    let mut place = ScratchPackages::new();
    place.nvcc(&real, None);
    place.package("steps", &manifest(2, "\"sm_90a\""), KERNELS, MAIN, "");
    let before = listing(&place, "steps");
    read_only(&place, "steps", true);
    assert_eq!(place.build("steps"), 2);
    let (_, out, err) = place.cargo("steps", &["run"]);
    assert_eq!(out, "42.0 true [\"sm_90a\"]\n", "{err}");
    assert_eq!(listing(&place, "steps"), before, "a build wrote into the package");
    read_only(&place, "steps", false);
    // Clippy has Cargo run the build script again, which finds everything made.
    let (success, _, err) = place.cargo("steps", &["clippy"]);
    assert!(success && place.counted().0 == 0, "{err}");

    // Flags of nvcc, there and back.
    place.set("NVCC_APPEND_FLAGS", "--use_fast_math");
    assert_eq!(place.build("steps"), 2);
    place.unset("NVCC_APPEND_FLAGS");
    assert_eq!(place.build("steps"), 0);
    // A limit of registers takes the place of launch bounds, in which alone the two kernels' texts differ.
    place.edit("steps/kernels.toml", "source", "max-registers = 32\nsource");
    assert_eq!(place.build("steps"), 1);
    place.edit("steps/kernels.toml", "max-registers = 32\n", "");

    // A target: it alone is compiled, and nothing when it is removed.
    place.edit("steps/kernels.toml", "[\"sm_90a\"]", "[\"sm_90a\", \"sm_100a\"]");
    assert_eq!(place.build("steps"), 2);
    place.edit("steps/kernels.toml", ", \"sm_100a\"", "");
    assert_eq!(place.build("steps"), 0);

    // nvcc: another release, another place for it on PATH, none, and back.
    place.nvcc(&real, Some("13.0, V13.0.1"));
    assert_eq!(place.build("steps"), 2);
    place.nvcc(&real, None);
    assert_eq!(place.build("steps"), 0);
    let path = std::env::var("PATH").unwrap();
    place.set(
        "PATH",
        &format!("{}:/nowhere:{path}", place.path("bin").display()),
    );
    let (success, _, err) = place.cargo("steps", &["build"]);
    assert!(success && !err.contains("Compiling"), "{err}");
    fs::remove_file(place.path("bin/nvcc")).unwrap();
    let (success, out, err) = place.cargo("steps", &["run"]);
    // A machine may have another nvcc where one is looked for last.
    if err.contains("no nvcc was found") {
        assert!(success && out == "42.0 false []\n", "{out}{err}");
        place.nvcc(&real, None);
        let (success, out, err) = place.cargo("steps", &["run"]);
        assert!(success && out == "42.0 true [\"sm_90a\"]\n", "{out}{err}");
        assert_eq!(place.counted().0, 0);
    }
    place.nvcc(&real, None);

    // An nvcc that writes nothing, and one that fails: errors without duplicates, and nothing stale.
    place.edit("steps/kernels.py", "+ 1.0", "+ 2.0");
    place.set("NVCC_APPEND_FLAGS", "--dryrun");
    let (success, _, err) = place.cargo("steps", &["build"]);
    assert!(!success);
    assert_eq!(
        err.matches("nvcc ended without an error, but wrote no output")
            .count(),
        1,
        "{err}"
    );
    place.unset("NVCC_APPEND_FLAGS");
    let (success, out, err) = place.cargo("steps", &["run"]);
    assert!(success && out == "43.0 true [\"sm_90a\"]\n", "{out}{err}");

    // A mistake is reported once.
    place.edit("steps/kernels.py", "A[tx] +", "Z[tx] +");
    let (success, _, err) = place.cargo("steps", &["build"]);
    assert!(!success);
    assert_eq!(err.matches("kernels.py:6:13").count(), 1, "{err}");
    assert_eq!(err.matches("rror: ").count(), 2, "Cargo's and ours: {err}");
}

#[test]
fn errors_of_nvcc_point_into_the_kernel_file() {
    let Some(real) = real_nvcc() else { return };
    let place = ScratchPackages::new();
    place.nvcc(&real, None);
    let kernels = "from tvm.script import tirx as T\n\nSOURCE = \"\"\"\n__device__ float twice(float x) {\n  \
                   return missing * x;\n}\n\"\"\"\n\n@T.prim_func\ndef raw(A: T.Buffer((32,), \"float32\")):\n    \
                   T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([32])\n    \
                   A[tx] = T.cuda.func_call(\"twice\", A[tx], source_code=SOURCE, return_type=\"float32\")\n";
    let manifest =
        "[[kernel]]\nname = \"raw\"\nsource = \"kernels.py\"\ntargets = [\"sm_90a\", \"sm_100a\"]\n";
    place.package("raw", manifest, kernels, "fn main() {}\n", "");
    let (success, _, err) = place.cargo("raw", &["build"]);
    assert!(!success);
    assert!(
        err.contains("nvcc: identifier \"missing\" is undefined") && err.contains("--> kernels.py:5:3"),
        "{err}"
    );
    assert_eq!(err.matches("is undefined").count(), 1, "{err}");
    place.edit("raw/kernels.py", "return missing", "int unused = 1; return 2.0f");
    let (success, _, err) = place.cargo("raw", &["build"]);
    assert!(success, "{err}");
    assert!(
        err.contains(
            "warning: raw@0.0.0: kernels.py:5:3: nvcc: variable \"unused\" was declared but never referenced"
        ),
        "{err}"
    );
}

/// The lines of the kernel file that the machine code of an image names, as `nvdisasm` prints them; `None` where the
/// toolkit has none.
fn lines_named(place: &ScratchPackages, nvcc: &std::path::Path, image: &[u8]) -> Option<Vec<String>> {
    let nvdisasm = nvcc.with_file_name("nvdisasm");
    let elf = image.windows(4).position(|bytes| bytes == b"\x7fELF").unwrap();
    let cubin = place.path("image.cubin");
    fs::write(&cubin, &image[elf..]).unwrap();
    let mut command = std::process::Command::new(nvdisasm);
    let (success, out, err) = texts(command.arg("--print-line-info").arg(&cubin).output().ok()?);
    assert!(success, "{err}");
    let named = out
        .lines()
        .filter_map(|line| line.trim().strip_prefix("//## File "));
    Some(named.map(str::to_string).collect())
}

#[test]
fn machine_code_names_the_lines_of_the_kernel_file() {
    let Some(real) = real_nvcc() else { return };
    let kernel = "from tvm.script import tirx as T\n\n@T.prim_func\ndef mark(A: T.Buffer((32,), \"float32\")):\n    \
                  T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([32])\n    A[tx] = A[tx] * 3.0 + 1.0\n";
    let main = "tirx_rt::include_kernels!();\n\nfn main() -> std::io::Result<()> {\n    \
                std::fs::write(std::env::args().nth(1).unwrap(), kernels::mark::IMAGE.fatbin.unwrap())\n}\n";
    let image = |key: &str| {
        let place = ScratchPackages::new();
        place.nvcc(&real, None);
        let manifest = format!(
            "[[kernel]]\nname = \"mark\"\nsource = \"kernels/mark.py\"\ntargets = [\"sm_90a\"]\n{key}\n\
             flags = [\"--no-compress\"]\n"
        );
        place.package("marked", &manifest, "", main, "");
        place.write("marked/kernels/mark.py", kernel);
        let file = place.path("image");
        let mut command = place.prepared(std::process::Command::new(env!("CARGO")), "marked");
        command.args(["run", "--offline", "--"]).arg(&file);
        let (success, _, err) = texts(command.output().unwrap());
        assert!(success, "{err}");
        (fs::read(file).unwrap(), place)
    };
    let has = |image: &[u8], text: &str| image.windows(text.len()).any(|part| part == text.as_bytes());
    // Line tables hold folders apart from the names in them.
    let names_the_file = |image: &[u8]| has(image, "/proc/self/cwd/kernels") && has(image, "mark.py");
    let names_the_place =
        |image: &[u8], place: &ScratchPackages| has(image, &place.path("").to_string_lossy());
    let line = "\"/proc/self/cwd/kernels/mark.py\", line 6";
    // `lineinfo`, twice: the bytes depend on no folder and no time.
    let (first, place) = image("lineinfo = true");
    let (second, _) = image("lineinfo = true");
    assert!(first == second, "two builds give two images");
    assert!(has(&first, ".debug_line") && names_the_file(&first) && !has(&first, ".debug_info"));
    assert!(!names_the_place(&first, &place));
    if let Some(named) = lines_named(&place, &real, &first) {
        assert!(named.iter().any(|named| named == line), "{named:?}");
    }
    // `debug`, with the debug profile: variables, too.
    let (debug, place) = image("debug = true");
    assert!(has(&debug, ".debug_info") && names_the_file(&debug));
    if let Some(named) = lines_named(&place, &real, &debug) {
        assert!(named.iter().any(|named| named == line), "{named:?}");
    }
    // Neither without the keys.
    let (plain, _) = image("");
    assert!(!has(&plain, ".debug_line") && !has(&plain, "mark.py"));
}

#[test]
fn two_packages_build_at_once_and_share_a_program() {
    let Some(real) = real_nvcc() else { return };
    let place = ScratchPackages::new();
    place.nvcc(&real, None);
    // The same kernels in both: two builds at once compile them once.
    place.package("one", &manifest(2, "\"sm_90a\""), KERNELS, MAIN, "");
    place.package("two", &manifest(2, "\"sm_90a\""), KERNELS, MAIN, "");
    let builds = ["one", "two"].map(|package| place.spawn(package, &["build"]));
    for build in builds {
        let (success, _, err) = texts(build.wait_with_output().unwrap());
        assert!(success, "{err}");
    }
    assert_eq!(place.counted().0, 2);
    // A library and a program with kernels of one name, and of other contents.
    place.edit("one/kernels.py", "+ 1.0", "+ 100.0");
    fs::rename(place.path("one/src/main.rs"), place.path("one/src/lib.rs")).unwrap();
    place.edit("one/src/lib.rs", "fn main()", "pub fn hundred()");
    place.edit(
        "two/Cargo.toml",
        "[build-dependencies]",
        "one = { path = \"../one\" }\n[build-dependencies]",
    );
    place.edit("two/src/main.rs", "    Ok(())", "    one::hundred()");
    let (success, out, err) = place.cargo("two", &["run"]);
    assert!(success, "{err}");
    assert_eq!(out, "42.0 true [\"sm_90a\"]\n141.0 true [\"sm_90a\"]\n");
}

fn listing(place: &ScratchPackages, package: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut folders = vec![place.path(package)];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap().flatten() {
            names.push(entry.path().to_string_lossy().into_owned());
            if entry.path().is_dir() {
                folders.push(entry.path());
            }
        }
    }
    names.sort();
    names
}

/// Takes the right to write from a package's files and folders, or gives it back.
fn read_only(place: &ScratchPackages, package: &str, read_only: bool) {
    for path in listing(place, package)
        .iter()
        .chain([&place.path(package).to_string_lossy().into_owned()])
    {
        let mode = match (read_only, std::path::Path::new(path).is_dir()) {
            (true, true) => 0o555,
            (true, false) => 0o444,
            (false, true) => 0o755,
            (false, false) => 0o644,
        };
        let permissions = std::os::unix::fs::PermissionsExt::from_mode(mode);
        fs::set_permissions(path, permissions).unwrap();
    }
}

const SEPARATE: &str = r#"from tvm.script import tirx as T
from tvm.script.tirx import tile as Tx

@T.prim_func
def twice(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([32])
    r = T.alloc_buffer((2,), "float32", scope="local")
    Tx.copy(r, A[tx * 2 : tx * 2 + 2])
    Tx.add(r, r, r)
    Tx.copy(B[tx * 2 : tx * 2 + 2], r)
"#;

const SEPARATE_MAIN: &str = r#"tirx_rt::include_kernels!();
use kernels::twice;

fn main() -> tirx_rt::Result<()> {
    for arch in ["sm_90a", "sm_100a"] {
        let stream = tirx_rt::Device::new_simulator().simulated_arch(arch).new_stream()?;
        // Rows of ones: each element of the product is the sum of a row of B.
        let one = tirx_rt::f16::from_f32(1.0);
        let rows = tirx_rt::Tensor::from_slice(&stream, &[one; 128 * 64], [128, 64])?;
        let columns = tirx_rt::Tensor::from_slice(&stream, &[one; 64 * 64], [64, 64])?;
        let mut product = tirx_rt::Tensor::zeros(&stream, [128, 64])?;
        kernels::product(&stream, &rows, &columns, &mut product)?;
        println!("{arch}: {:?}", product.to_vec()?.iter().sum::<f32>() / 64.0);
        let a = tirx_rt::Tensor::from_slice(&stream, &[21.0_f32; 64], [64])?;
        let mut b = tirx_rt::Tensor::zeros(&stream, [64])?;
        twice(&stream, &a, &mut b)?;
        let chosen = &twice::LOADED.all()[twice::LOADED.choose(&stream)?];
        println!("{arch}: {} by {:?}", b.to_vec()?[63], chosen.kernel.image().targets);
    }
    // One instruction for two elements where there is one.
    for text in [
        include_str!(concat!(env!("OUT_DIR"), "/tirx/twice-sm_90a.cu")),
        include_str!(concat!(env!("OUT_DIR"), "/tirx/twice-sm_100a.cu")),
    ] {
        println!("{}", text.contains("add.rn.f32x2"));
    }
    for text in [
        include_str!(concat!(env!("OUT_DIR"), "/tirx/product-sm_90a.cu")),
        include_str!(concat!(env!("OUT_DIR"), "/tirx/product-sm_100a.cu")),
    ] {
        println!("{} {}", text.contains("wgmma.mma_async"), text.contains("tcgen05.mma"));
    }
    Ok(())
}
"#;

#[test]
fn targets_whose_code_differs_have_an_image_each_behind_one_launcher() {
    let Some(real) = real_nvcc() else { return };
    let place = ScratchPackages::new();
    place.nvcc(&real, None);
    let manifest = "[defaults]\ntargets = [\"sm_90a\", \"sm_100a\"]\n\n[[kernel]]\nname = \"twice\"\nsource = \"kernels.py\"\n\n\
                    [[kernel]]\nname = \"product\"\nsource = \"tile_target_choices.py\"\n";
    place.package("separate", manifest, SEPARATE, SEPARATE_MAIN, "");
    // A kernel that asks for its target.
    for file in ["tile_target_choices.py", "_fragments.py"] {
        let text = fs::read_to_string(tirx_tests::root().join("tests/kernels/tiles").join(file)).unwrap();
        place.write(&format!("separate/{file}"), &text);
    }
    assert_eq!(place.build("separate"), 4);
    let (_, out, err) = place.cargo("separate", &["run"]);
    let expected = "sm_90a: 8192.0\nsm_90a: 42 by [\"sm_90a\"]\nsm_100a: 8192.0\nsm_100a: 42 by [\"sm_100a\"]\n\
                    false\ntrue\ntrue false\nfalse true\n";
    assert_eq!(out, expected, "{err}");
}
