//! A crate that ships its kernels: bundled where there is an nvcc, packaged, and built from its tarball where there is no
//! nvcc, no Python and no network.
//!
//! nvcc is the real one that the workspace's tests use; without one these tests say so and pass. The network is taken away
//! by `unshare`; where the system does not permit that, they say so and build with Cargo's own `--offline`.
#![cfg(unix)]

mod place;

use std::fs;

use place::{ShippedPackages, isolated, real_nvcc};

const KERNELS: &str = r#"from tvm.script import tirx as T

@T.jit
def add(A: T.Buffer((N,), "float32"), B: T.Buffer((N,), "float32"), *, N: T.constexpr):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([N])
    B[tx] = A[tx] + 1.0

@T.prim_func
def double(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([64])
    B[tx] = A[tx] * 2.0
"#;

const MANIFEST: &str = r#"[defaults]
targets = ["sm_90a", "sm_100f"]
ptx = "compute_90"

[toolchain]
cuda = "13.0"
auto-install = true

[[kernel]]
name = "add"
source = "kernels.py"
specialize = [{ N = 32 }, { N = 64 }]

[[kernel]]
name = "double"
source = "kernels.py"
"#;

const BUILD: &str =
    "fn main() -> tirx_build::Result<()> {\n    tirx_build::compile_kernels(\"kernels.toml\")\n}\n";

/// Runs kernels on the simulator, and writes the fat binaries that were linked into the folder it is given.
const MAIN: &str = r#"tirx_rt::include_kernels!();

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let stream = tirx_rt::Device::simulator().new_stream()?;
    let a = tirx_rt::Tensor::from_slice(&stream, &[20.0_f32; 64], [64])?;
    let (mut b, mut c) = (tirx_rt::Tensor::zeros(&stream, [64])?, tirx_rt::Tensor::zeros(&stream, [64])?);
    kernels::add::n64(&stream, &a, &mut b)?;
    kernels::double(&stream, &b, &mut c)?;
    println!("{:?}", c.to_vec()?[63]);
    if let Some(folder) = std::env::args().nth(1) {
        for image in [&kernels::add::n32::IMAGE, &kernels::add::n64::IMAGE, &kernels::double::IMAGE] {
            let bytes = image.fatbin.ok_or("no machine code")?;
            std::fs::write(format!("{folder}/{}", image.name.replace("::", "-")), bytes)?;
        }
    }
    Ok(())
}
"#;

/// A place with the package `shipped` and a bundle that the command line made with the real nvcc.
fn bundled(single: bool) -> Option<ShippedPackages> {
    let nvcc = real_nvcc()?;
    let place = ShippedPackages::new();
    place.package("shipped");
    for (file, text) in [
        ("kernels.py", KERNELS),
        ("kernels.toml", MANIFEST),
        ("build.rs", BUILD),
        ("src/main.rs", MAIN),
    ] {
        place.write(&format!("shipped/{file}"), text);
    }
    let mut arguments = vec!["tirx", "bundle"];
    if single {
        arguments.push("--single-file");
    }
    let wrote = place.tirx("shipped", &arguments, Some(&nvcc));
    assert_eq!(wrote.code, Some(0), "{}", wrote.err);
    assert!(wrote.out.starts_with("wrote kernels.bundle\n"), "{}", wrote.out);
    Some(place)
}

#[test]
fn a_packaged_crate_builds_from_its_tarball_without_nvcc_python_and_network() {
    let Some(place) = bundled(false) else { return };
    // What nvcc makes of the kernels, with the bundle put aside.
    fs::rename(place.path("shipped/kernels.bundle"), place.path("aside")).unwrap();
    let by_nvcc = place.folder("by-nvcc");
    let run = place.cargo_with_nvcc("shipped", &["run", "--quiet", "--", by_nvcc.to_str().unwrap()]);
    assert_eq!((run.code, run.out.as_str()), (Some(0), "42.0\n"), "{}", run.err);
    fs::rename(place.path("aside"), place.path("shipped/kernels.bundle")).unwrap();

    let unpacked = place.packaged("shipped");
    for file in [
        "kernels.bundle/kernels.lock",
        "kernels.bundle/NOTICE.txt",
        "kernels.bundle/add-n32.tirxk",
    ] {
        assert!(
            place.path(&unpacked).join(file).is_file(),
            "{file} is not in the tarball"
        );
    }
    let from_bundle = place.folder("from-bundle");
    let run = isolated(&place, &unpacked, &["run", "--", from_bundle.to_str().unwrap()]);
    assert_eq!((run.code, run.out.as_str()), (Some(0), "42.0\n"), "{}", run.err);
    assert!(!run.err.contains("warning"), "{}", run.err);
    for image in ["add-n32", "add-n64", "double"] {
        let (one, other) = (fs::read(by_nvcc.join(image)), fs::read(from_bundle.join(image)));
        assert!(
            one.unwrap() == other.unwrap(),
            "the image of {image} is not the one that nvcc made"
        );
    }
}

#[test]
fn a_crate_with_its_kernels_as_source_files_has_no_build_script() {
    let Some(nvcc) = real_nvcc() else { return };
    let place = ShippedPackages::new();
    place.package("shipped");
    place.write("shipped/kernels.py", KERNELS);
    let manifest = MANIFEST.replace("name = \"double\"", "name = \"double\"\nfeature = \"twice\"");
    place.write("shipped/kernels.toml", &manifest);
    let cargo = fs::read_to_string(place.path("shipped/Cargo.toml")).unwrap();
    let cargo: String = cargo
        .lines()
        .filter(|line| *line != "[build-dependencies]" && !line.starts_with("tirx-build"))
        .map(|line| format!("{line}\n"))
        .collect();
    place.write(
        "shipped/Cargo.toml",
        &format!("{cargo}\n[features]\ndefault = [\"twice\"]\ntwice = []\n"),
    );
    let include = "tirx_rt::include_kernels!(\"../made/tirx_kernels.rs\");";
    place.write(
        "shipped/src/main.rs",
        &MAIN.replace("tirx_rt::include_kernels!();", include),
    );
    let sources = ["tirx", "sources", "--out", "made"];
    let wrote = place.tirx("shipped", &sources, Some(&nvcc));
    assert_eq!(wrote.code, Some(0), "{}", wrote.err);
    assert!(
        wrote.out.starts_with("wrote made\n3 kernels by nvcc 13.0 "),
        "{}",
        wrote.out
    );

    // The tarball has them, and there is nothing else to build.
    let unpacked = place.packaged("shipped");
    let images = place.folder("images");
    let run = isolated(&place, &unpacked, &["run", "--", images.to_str().unwrap()]);
    assert_eq!((run.code, run.out.as_str()), (Some(0), "42.0\n"), "{}", run.err);
    assert!(!run.err.contains("Compiling tirx-build"), "{}", run.err);
    assert!(fs::read(images.join("double")).unwrap().len() > 64);
    let without = isolated(&place, &unpacked, &["build", "--no-default-features"]);
    assert!(without.err.contains("double"), "{}", without.err);

    // They are checked without nvcc.
    let locked = [&sources[..], &["--locked"]].concat();
    let said = place.tirx("shipped", &locked, None);
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert!(said.out.starts_with("up to date: made\n"), "{}", said.out);
    place.edit("shipped/kernels.py", "* 2.0", "* 3.0");
    let said = place.tirx("shipped", &locked, None);
    assert_eq!(said.code, Some(1));
    assert!(
        said.err.contains("`made/double.ir` is out of date"),
        "{}",
        said.err
    );
    assert!(said.err.contains("run `cargo tirx sources`"), "{}", said.err);
    place.edit("shipped/kernels.py", "* 3.0", "* 2.0");
    fs::remove_file(place.path("shipped/made/add-n32.fatbin")).unwrap();
    let said = place.tirx("shipped", &locked, None);
    assert_eq!(said.code, Some(1));
    assert!(
        said.err.contains("`made/tirx_kernels.rs` is out of date"),
        "{}",
        said.err
    );

    // A folder with files of somebody else is left alone.
    place.write("shipped/made/notes.txt", "mine");
    let said = place.tirx("shipped", &sources, Some(&nvcc));
    assert_eq!(said.code, Some(1));
    assert!(
        said.err
            .contains("notes.txt` is no file that this command writes"),
        "{}",
        said.err
    );
}

/// A change to a bundle, and the resulting message of a build.
type Damage<'a> = (&'a dyn Fn(&ShippedPackages, &str), &'a [&'a str]);

#[test]
fn bundles_that_do_not_fit_are_refused_by_the_build() {
    let Some(place) = bundled(false) else { return };
    let bytes = |place: &ShippedPackages, file: &str, change: &dyn Fn(&mut Vec<u8>)| {
        let path = place.path(file);
        let mut bytes = fs::read(&path).unwrap();
        change(&mut bytes);
        fs::write(path, bytes).unwrap();
    };
    let cases: [Damage<'_>; 7] = [
        (
            &|place, package| place.edit(&format!("{package}/kernels.py"), "* 2.0", "* 3.0"),
            &[
                "is stale: kernel `double` has changed: its source, a specialization or a file that it imports",
                "= help: run `cargo tirx bundle` on a machine with nvcc",
            ],
        ),
        (
            &|place, package| {
                bytes(
                    place,
                    &format!("{package}/kernels.bundle/double.tirxk"),
                    &|bytes| {
                        bytes.truncate(bytes.len() / 2);
                    },
                );
            },
            &["kernels.bundle` is damaged: kernel `double` is damaged: its content does not match its hash"],
        ),
        (
            &|place, package| {
                bytes(
                    place,
                    &format!("{package}/kernels.bundle/add-n64.tirxk"),
                    &|bytes| {
                        let middle = bytes.len() / 2;
                        bytes[middle] ^= 16;
                    },
                );
            },
            &[
                "kernels.bundle` is damaged: kernel `add::n64` is damaged: its content does not match its hash",
            ],
        ),
        (
            &|place, package| {
                let lock = format!("{package}/kernels.bundle/kernels.lock");
                place.edit(&lock, "version = 1", "version = 7");
            },
            &["kernels.bundle` is of version 7, this compiler reads version 1"],
        ),
        (
            &|place, package| {
                bytes(
                    place,
                    &format!("{package}/kernels.bundle/double.tirxk"),
                    &|bytes| bytes[7] = b'9',
                );
            },
            &["kernel `double` is of another version of the format"],
        ),
        (
            &|place, package| {
                fs::remove_file(place.path(&format!("{package}/kernels.bundle/double.tirxk"))).unwrap()
            },
            &[
                "kernel `double` has no file `double.tirxk`",
                "= help: restore it from version control",
            ],
        ),
        (
            &|place, package| {
                let specialize = "specialize = [{ N = 32 }, { N = 64 }";
                place.edit(
                    &format!("{package}/kernels.toml"),
                    specialize,
                    &format!("{specialize}, {{ N = 96 }}"),
                );
            },
            &["is stale: kernel `add::n96` is not in the bundle"],
        ),
    ];
    for (at, (damage, said)) in cases.iter().enumerate() {
        let package = format!("damaged-{at}");
        place.copy("shipped", &package);
        damage(&place, &package);
        let built = isolated(&place, &package, &["build"]);
        assert_ne!(built.code, Some(0), "{said:?}");
        for said in *said {
            assert!(built.err.contains(said), "{said}: {}", built.err);
        }
    }
}

#[test]
fn the_command_line_checks_and_verifies_a_bundle() {
    let Some(place) = bundled(false) else { return };
    let nvcc = real_nvcc();
    let again = place.tirx("shipped", &["tirx", "bundle"], nvcc.as_deref());
    for part in [
        "  add::n32  sm_90a ",
        ", sm_100f ",
        ", compute_90 ",
        " (packed ",
        "3 kernels by nvcc 13.0 V13.0.",
    ] {
        assert!(again.out.contains(part), "{part}: {}", again.out);
    }
    // Up to date: no nvcc is needed to say so.
    let locked = place.tirx("shipped", &["tirx", "bundle", "--locked"], None);
    assert!(
        locked.code == Some(0) && locked.out.starts_with("up to date: kernels.bundle\n"),
        "{}",
        locked.err
    );
    let verified = place.tirx("shipped", &["tirx", "bundle", "--verify"], nvcc.as_deref());
    assert_eq!(verified.code, Some(0), "{}", verified.err);
    assert!(
        verified
            .out
            .starts_with("verified, byte for byte: kernels.bundle\n"),
        "{}",
        verified.out
    );
    // The same bytes in another folder and at another place.
    place.copy("shipped", "elsewhere");
    fs::remove_dir_all(place.path("elsewhere/kernels.bundle")).unwrap();
    let made = place.tirx(
        "elsewhere",
        &["tirx", "bundle", "--out", "there/all"],
        nvcc.as_deref(),
    );
    assert_eq!(made.code, Some(0), "{}", made.err);
    for file in fs::read_dir(place.path("shipped/kernels.bundle"))
        .unwrap()
        .flatten()
    {
        let other = place.path("elsewhere/there/all").join(file.file_name());
        assert!(
            fs::read(file.path()).unwrap() == fs::read(other).unwrap(),
            "{:?}",
            file.file_name()
        );
    }
    // One target: the others are left out.
    let small = place.tirx(
        "elsewhere",
        &["tirx", "bundle", "--out", "small", "--targets", "sm_90a"],
        nvcc.as_deref(),
    );
    assert!(
        small.code == Some(0) && !small.out.contains("sm_100f"),
        "{}{}",
        small.out,
        small.err
    );

    place.edit("shipped/kernels.py", "+ 1.0", "+ 2.0");
    let stale = place.tirx("shipped", &["tirx", "bundle", "--locked"], None);
    assert_eq!(stale.code, Some(1));
    for kernel in ["add::n32", "add::n64"] {
        let said = format!("error: the bundle `kernels.bundle` is stale: kernel `{kernel}` has changed");
        assert!(stale.err.contains(&said), "{}", stale.err);
    }
    let none = place.tirx("shipped", &["tirx", "bundle", "--out", "no", "--locked"], None);
    assert!(
        none.code == Some(1) && none.err.contains("there is no bundle at `no`"),
        "{}",
        none.err
    );
    let none = place.tirx("shipped", &["tirx", "bundle"], None);
    assert!(
        none.code == Some(1) && none.err.contains("a bundle needs an nvcc to be made"),
        "{}",
        none.err
    );
    let empty = place.tirx("shipped", &["tirx", "bundle", "--targets", ","], None);
    assert!(
        empty.code == Some(2) && empty.err.contains("`--targets` has an empty name"),
        "{}",
        empty.err
    );
    place.edit("shipped/kernels.toml", "targets = [", "targets = [\"native\", ");
    let native = place.tirx("shipped", &["tirx", "bundle"], nvcc.as_deref());
    assert!(
        native.err.contains(
            "`native` among the targets: a bundle is for other machines than the one it is made on"
        ),
        "{}",
        native.err
    );
}

#[test]
fn one_file_serves_as_well_and_locked_builds_take_nothing_else() {
    let Some(place) = bundled(true) else { return };
    assert!(place.path("shipped/kernels.bundle").is_file());
    let run = isolated(&place, "shipped", &["run", "--quiet"]);
    assert_eq!((run.code, run.out.as_str()), (Some(0), "42.0\n"), "{}", run.err);
    let bytes = fs::read(place.path("shipped/kernels.bundle")).unwrap();
    fs::write(place.path("shipped/kernels.bundle"), &bytes[..bytes.len() - 1]).unwrap();
    let cut = isolated(&place, "shipped", &["build"]);
    assert!(
        cut.code != Some(0)
            && cut
                .err
                .contains("kernels.bundle` is damaged: its content does not match its hash"),
        "{}",
        cut.err
    );
    fs::remove_file(place.path("shipped/kernels.bundle")).unwrap();
    // Without a bundle the manifest would have nvcc fetched.
    let fetch = isolated(&place, "shipped", &["build"]);
    assert_ne!(fetch.code, Some(0));
    if !fetch.err.contains("nvcc 13.0") {
        panic!("{}", fetch.err);
    }
    let locked = place.cargo_with_nvcc_and("shipped", &["build"], &[("TIRX_LOCKED", "1")]);
    assert!(
        locked.code != Some(0) && locked.err.contains("there is no bundle at `kernels.bundle`"),
        "{}",
        locked.err
    );
}
