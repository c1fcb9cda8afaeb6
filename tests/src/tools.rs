//! Tools that tests need besides Cargo and a C compiler: the packages of `tools.txt`, installed once through pip into a
//! virtual environment in the target directory; and the simulator as a driver.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The packages, with the hashes of their wheels.
const PACKAGES: &str = include_str!("../tools.txt");

/// The virtual environment.
fn environment() -> &'static Path {
    static PLACE: OnceLock<PathBuf> = OnceLock::new();
    PLACE.get_or_init(|| install().unwrap_or_else(|reason| panic!("the tools of the tests: {reason}")))
}

fn install() -> Result<PathBuf, String> {
    let program = std::env::current_exe().map_err(|e| e.to_string())?;
    let target = program.ancestors().nth(3).ok_or("no target directory")?;
    let place = target.join("test-tools");
    let failed = |what: &str| {
        let what = what.to_string();
        move |error: std::io::Error| format!("{what}: {error}")
    };
    fs::create_dir_all(target).map_err(failed("the target directory"))?;
    // A lock, so that concurrent test programs install once.
    let lock = fs::File::create(target.join("test-tools.lock")).map_err(failed("the lock"))?;
    lock.lock().map_err(failed("the lock"))?;
    let done = place.join("installed.txt");
    if fs::read_to_string(&done).is_ok_and(|installed| installed == PACKAGES) {
        return Ok(place);
    }
    if std::env::var_os("TIRX_OFFLINE").is_some_and(|value| !value.is_empty() && value != "0") {
        return Err("they are not installed, and TIRX_OFFLINE forbids fetching them".to_string());
    }
    let python = std::env::var_os("TIRX_PYTHON").unwrap_or_else(|| "python3".into());
    let _ = fs::remove_dir_all(&place);
    run(Command::new(python).args(["-m", "venv"]).arg(&place))?;
    let list = place.join("packages.txt");
    fs::write(&list, PACKAGES).map_err(failed("packages.txt"))?;
    let pip = [
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-input",
        "--disable-pip-version-check",
        "--only-binary",
        ":all:",
        "--require-hashes",
        "--no-deps",
        "--requirement",
    ];
    run(Command::new(place.join("bin/python")).args(pip).arg(&list))?;
    fs::write(done, PACKAGES).map_err(failed("installed.txt"))?;
    Ok(place)
}

fn run(command: &mut Command) -> Result<(), String> {
    let output = command
        .output()
        .map_err(|error| format!("{command:?}: {error}"))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(format!(
            "{command:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        )),
    }
}

/// A Python with TVM's FFI, in a folder where it is `python`, too.
///
/// # Panics
/// Where the tools cannot be installed.
pub fn python() -> PathBuf {
    environment().join("bin/python")
}

/// The machine's CMake, else one that was fetched.
///
/// # Panics
/// As [`python`].
pub fn cmake() -> PathBuf {
    let own = Command::new("cmake").arg("--version").output();
    match own.is_ok_and(|output| output.status.success()) {
        true => PathBuf::from("cmake"),
        false => environment().join("bin/cmake"),
    }
}

/// The folder with the libclang that bindgen opens: what `LIBCLANG_PATH` names, else one that was fetched.
///
/// # Panics
/// As [`python`].
pub fn libclang() -> PathBuf {
    if let Some(named) = std::env::var_os("LIBCLANG_PATH").filter(|path| !path.is_empty()) {
        return named.into();
    }
    let lib = environment().join("lib");
    let pythons = fs::read_dir(&lib).into_iter().flatten().flatten();
    let mut places = pythons.map(|python| python.path().join("site-packages/clang/native"));
    places
        .find(|place| place.is_dir())
        .unwrap_or_else(|| panic!("no libclang in {}", lib.display()))
}

/// The simulator as a driver: Cargo puts the shared library of a dependency beside the test's program.
///
/// # Panics
/// Where it is not there: the test's package does not depend on `tirx-sim-driver`.
pub fn driver() -> PathBuf {
    let program = std::env::current_exe().unwrap_or_default();
    let places = program.ancestors().skip(1).take(2);
    let names = ["libtirx_simulator.so", "libtirx_simulator.dylib"];
    places
        .flat_map(|folder| names.map(|name| folder.join(name)))
        .find(|library| library.is_file())
        .unwrap_or_else(|| {
            panic!(
                "no shared library of tirx-sim-driver beside {}",
                program.display()
            )
        })
}
