//! Tests the code blocks of README and of the pages of the book, `docs/book/src`.
//!
//! A page has a package, which begins as `cargo tirx new` makes it, and its blocks are taken one after another:
//!
//! | block | what the test does |
//! |---|---|
//! | a first line that names a file: `// src/main.rs`, `# kernels.toml` | writes it into the package; a `main.rs` is built and run, other files are built with what follows |
//! | `python` | a kernel file: all passes, CUDA text, `# sim:` lines, `# error:` lines ([`kernel_block`]); with `host`, parsed only |
//! | `toml` | read as a manifest, or a part of one |
//! | `rust` | statements of a program that includes the package's kernels and has a `device` (the simulator) and a `stream`, run |
//! | `sh` | run in the package; with `fails`, it must fail |
//! | `text` with `$ command` | the command's output is what follows; a line `…` stands for any lines |
//! | `text,output` | what the run before wrote has these lines, one after another |
//! | `text` | nothing: a picture, a table |
//! | `c` | compiled, with `tirx_c.h` |
//!
//! A `sh`, `cmake`, `cpp` or `rust` block with `no_run` is only shown: what it needs is not there in tests. `TIRX_FILTER=page`
//! takes the pages whose name holds the text.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tirx_build::manifest::Manifest;
use tirx_tests::pages::{Block, kernel_block, python, read};
use tirx_tests::{nvcc, root};

use tirx_tests::tools;

use crate::throw_away::{ScratchPackages, texts};

/// The package of a page.
struct Package {
    place: ScratchPackages,
    /// The output of the last run, stdout and stderr.
    output: String,
    /// Whether a file was written since the last build.
    changed: bool,
}

const NAME: &str = "my-kernels";

impl Package {
    fn new(page: &str, command_line: &Path) -> Package {
        let mut place = ScratchPackages::new();
        place.set("TIRX_NVCC", "none");
        place.set("CARGO_NET_OFFLINE", "true");
        let mut path = std::env::var("PATH").unwrap();
        match page {
            // Bundles are made there: an nvcc is on PATH.
            "shipping.md" => {
                place.unset("TIRX_NVCC");
                match nvcc::search() {
                    Some(nvcc) => place.nvcc(&nvcc.path, None),
                    None => place.fake_nvcc(),
                };
            }
            // Programs in other languages reach the simulator as the driver.
            "c-and-cpp.md" | "start-c-and-python.md" | "python.md" => {
                match page {
                    // The page names the driver itself, in the checkout that it begins with.
                    "start-c-and-python.md" => place.set("TIRX", root().to_str().unwrap()),
                    _ => place.set("TIRX_DRIVER", tools::driver().to_str().unwrap()),
                }
                let python = tools::python();
                path = format!("{}:{path}", python.parent().unwrap().display());
            }
            _ => {}
        }
        let folder = command_line.parent().unwrap().display();
        place.set(
            "PATH",
            &format!("{}:{folder}:{path}", place.path("bin").display()),
        );
        let template =
            |file: &str| fs::read_to_string(root().join("cargo-tirx/template").join(file)).unwrap();
        place.package(NAME, &template("kernels.toml"), "", &template("main.rs.txt"), "");
        fs::remove_file(place.path(NAME).join("kernels.py")).unwrap();
        place.write(&format!("{NAME}/kernels/vector.py"), &template("vector.py"));
        Package {
            place,
            output: String::new(),
            changed: false,
        }
    }

    fn write(&mut self, file: &str, text: &str) {
        match file {
            "Cargo.toml" => self.place.manifest(NAME, text),
            _ => self.place.write(&format!("{NAME}/{file}"), text),
        }
        self.changed = true;
    }

    /// Runs Cargo, which must succeed.
    fn cargo(&mut self, arguments: &[&str]) -> Result<(), String> {
        let (success, out, err) = self.place.cargo(NAME, arguments);
        self.output = format!("{out}{err}");
        match success {
            true => Ok(()),
            false => Err(format!("cargo {}: {err}{out}", arguments.join(" "))),
        }
    }

    fn shell(&mut self, text: &str) -> bool {
        let mut command = self.place.prepared(Command::new("sh"), NAME);
        command.args(["-e", "-c", text]);
        let (success, out, err) = texts(command.output().unwrap());
        self.output = format!("{out}{err}");
        success
    }

    fn block(&mut self, block: &Block) -> Result<(), String> {
        if let Some(file) = block.file() {
            self.write(file, &block.text);
            if file == "src/main.rs" {
                self.changed = false;
                self.cargo(&["run"])?;
            }
            return Ok(());
        }
        match (block.language.as_str(), &block.words[..]) {
            ("python", words) if words == ["host"] => python(&block.text),
            ("python", _) => kernel_block(block, &self.place.path("")),
            ("toml", []) => manifest(&block.text),
            ("rust", []) => self.statements(block),
            ("sh", []) => match self.shell(&block.text) {
                true => Ok(()),
                false => Err(format!("it fails: {}", self.output)),
            },
            ("sh", words) if words == ["fails"] => match self.shell(&block.text) {
                false => Ok(()),
                true => Err("it succeeds".into()),
            },
            ("text", words) if words == ["output"] => lines_in_order(&self.output, &block.text),
            ("text", []) if block.text.starts_with("$ ") => self.transcript(&block.text),
            ("text", []) => Ok(()),
            ("c", []) => c(&block.text, &self.place.path("")),
            ("sh" | "cmake" | "cpp" | "rust", words) if words == ["no_run"] => Ok(()),
            (language, words) => Err(format!("no test for blocks of `{language}` with {words:?}")),
        }
    }

    /// Statements, as a program beside the package's.
    fn statements(&mut self, block: &Block) -> Result<(), String> {
        let name = format!("line{}", block.line);
        let program = match block.text.contains("fn main") {
            true => block.text.clone(),
            false => format!(
                "#![allow(unused_imports, unused_variables, unused_mut)]\nuse tirx_rt::{{Device, Tensor, f16}};\n\
                 tirx_rt::include_kernels!();\nfn main() -> Result<(), Box<dyn std::error::Error>> {{\n\
                 let device = Device::new_simulator();\nlet stream = device.default_stream();\n{}Ok(())\n}}\n",
                block.text
            ),
        };
        self.place.write(&format!("{NAME}/src/bin/{name}.rs"), &program);
        self.changed = false;
        let result = self.cargo(&["run", "--bin", &name]);
        fs::remove_file(self.place.path(NAME).join(format!("src/bin/{name}.rs"))).unwrap();
        result
    }

    fn transcript(&mut self, text: &str) -> Result<(), String> {
        for part in text.split("\n$ ") {
            let (command, expected) = part.split_once('\n').unwrap_or((part, ""));
            self.shell(command.strip_prefix("$ ").unwrap_or(command));
            match expected.contains('…') {
                true => lines_in_order(&self.output, expected)?,
                false if self.output.trim_end() == expected.trim_end() => {}
                false => return Err(format!("`{command}` says:\n{}", self.output)),
            }
        }
        Ok(())
    }
}

/// Whether a text has these lines in this order; `…` in a line stands for anything.
fn lines_in_order(text: &str, lines: &str) -> Result<(), String> {
    let mut rest = text.lines();
    for line in lines
        .lines()
        .map(str::trim_end)
        .filter(|line| !line.is_empty() && *line != "…")
    {
        let parts: Vec<&str> = line.split('…').collect();
        let fits = |found: &str| {
            let mut at = 0;
            parts.iter().all(|part| match found[at..].find(part) {
                Some(place) => {
                    at += place + part.len();
                    true
                }
                None => false,
            })
        };
        if !rest.any(fits) {
            return Err(format!("no line {line:?} in\n{text}"));
        }
    }
    Ok(())
}

/// A manifest or a part of one.
fn manifest(text: &str) -> Result<(), String> {
    let kernel = match text.contains("[[kernel]]") {
        true => "",
        false => "\n[[kernel]]\nname = \"k\"\nsource = \"k.py\"\n",
    };
    let targets = match text.contains("targets") || text.contains("[defaults]") {
        true => "",
        false => "\n[defaults]\ntargets = [\"sm_90a\"]\n",
    };
    let read = Manifest::parse("kernels.toml", &format!("{text}{kernel}{targets}"));
    read.map(|_| ()).map_err(|error| error.to_string())
}

fn c(text: &str, folder: &Path) -> Result<(), String> {
    let file = folder.join("block.c");
    fs::write(&file, format!("#include \"tirx_c.h\"\n{text}")).unwrap();
    let include = root().join("tirx-build/src/c_api/runtime");
    let output = Command::new("cc")
        .args(["-fsyntax-only", "-Wall", "-Werror", "-I"])
        .args([&include, &file])
        .output();
    match output.map(texts) {
        Ok((true, ..)) => Ok(()),
        Ok((false, _, err)) => Err(err),
        Err(error) => Err(format!("cc: {error}")),
    }
}

/// Builds `cargo-tirx`, and says where it is.
pub(crate) fn command_line() -> PathBuf {
    let mut command = Command::new(env!("CARGO"));
    command
        .args(["build", "--offline", "-p", "cargo-tirx", "--message-format=json"])
        .current_dir(root());
    let (success, out, err) = texts(command.output().unwrap());
    assert!(success, "{err}");
    let program = out
        .rsplit_once("\"executable\":\"")
        .expect("cargo-tirx is a program")
        .1;
    program.split('"').next().unwrap().into()
}

/// The pages of README and of the book whose name holds the filter.
fn pages() -> Vec<PathBuf> {
    let only = std::env::var("TIRX_FILTER").unwrap_or_default();
    let mut pages = tirx_tests::pages::book();
    pages.push(root().join("README.md"));
    pages.retain(|page| page.file_name().unwrap().to_string_lossy().contains(&only));
    pages.sort();
    pages
}

#[test]
fn every_block_of_the_book_does_what_the_page_says() {
    let command_line = command_line();
    let mut wrong = Vec::new();
    for page in pages() {
        let name = page.file_name().unwrap().to_string_lossy();
        let mut package = Package::new(&name, &command_line);
        for block in read(&page).unwrap() {
            if let Err(message) = package.block(&block) {
                wrong.push(format!("{}: {message}", block.place()));
            }
        }
        if package.changed
            && let Err(message) = package.cargo(&["build"])
        {
            wrong.push(format!("{}: {message}", page.display()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[test]
fn lines_are_found_in_their_order() {
    lines_in_order("a 1 b\nc\nd", "a … b\n…\nd").unwrap();
    assert!(lines_in_order("d\na 1 b", "a … b\nd").is_err());
}
