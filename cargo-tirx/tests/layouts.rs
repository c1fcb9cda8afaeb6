//! `cargo tirx layout` and `cargo tirx explain` as users see them, and the pictures of the guide.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Runs the command in a folder; what it writes, stdout then stderr.
fn run(folder: &Path, args: &[&str]) -> (bool, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_cargo-tirx"))
        .args(args)
        .current_dir(folder)
        .output()
        .unwrap();
    let text = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
    (output.status.success(), text.concat())
}

#[track_caller]
fn shows(args: &[&str], expected: &str) {
    let folder = tempfile::tempdir().unwrap();
    let (_, found) = run(folder.path(), args);
    assert_eq!(found.trim_end(), expected.trim_matches('\n'));
}

#[test]
fn a_layout_is_a_table() {
    shows(
        &[
            "layout",
            "ComposeLayout(0, 2, 2, TileLayout(S[(4, 4)]))",
            "--svg",
            "-",
        ],
        "
each element: m
 0  1  2  3
 5  4  7  6
10 11  8  9
15 14 13 12
bank conflicts of a warp, one element per lane: 1-way along a row, 1-way along a column
",
    );
}

#[test]
fn owners_stand_beside_places() {
    shows(
        &[
            "layout",
            "S[(2, 4, 2):(4 @ laneid, 1 @ laneid, 1)]",
            "--shape",
            "4,4",
            "--svg",
            "-",
        ],
        "
each element: laneid/m
0/0 0/1 1/0 1/1
2/0 2/1 3/0 3/1
4/0 4/1 5/0 5/1
6/0 6/1 7/0 7/1
",
    );
}

#[test]
fn columns_of_one_bank_conflict() {
    let folder = tempfile::tempdir().unwrap();
    let conflicts = |layout: &str, bytes: &str| {
        let args = ["layout", layout, "--bytes", bytes, "--svg", "-"];
        let (ok, found) = run(folder.path(), &args);
        assert!(ok, "{found}");
        found
            .lines()
            .last()
            .unwrap()
            .rsplit_once(": ")
            .unwrap()
            .1
            .to_string()
    };
    assert_eq!(
        conflicts("S[(32, 32)]", "4"),
        "1-way along a row, 32-way along a column"
    );
    assert_eq!(
        conflicts("S[(32, 32):(33, 1)]", "4"),
        "1-way along a row, 1-way along a column"
    );
    assert_eq!(
        conflicts("ComposeLayout(2, 3, 3, TileLayout(S[(32, 32)]))", "4"),
        "1-way along a row, 4-way along a column"
    );
    assert_eq!(
        conflicts("S[(32, 64)]", "2"),
        "1-way along a row, 32-way along a column"
    );
}

#[test]
fn the_picture_has_a_cell_an_element_and_two_lines_of_banks() {
    let folder = tempfile::tempdir().unwrap();
    let (ok, found) = run(folder.path(), &["layout", "S[(8, 32)]", "--svg", "rows.svg"]);
    assert!(ok && found.ends_with("picture: rows.svg\n"), "{found}");
    let picture = fs::read_to_string(folder.path().join("rows.svg")).unwrap();
    assert_eq!(picture.matches("<rect ").count(), 8 * 32 + 3 * 32);
    // Eight rows of a column in one bank.
    assert_eq!(picture.matches(">8</text>").count(), 1 + 1 + 1);
    // Elements that threads own are in no bank.
    run(
        folder.path(),
        &["layout", "S[(8, 4):(1 @ laneid, 1)]", "--svg", "lanes.svg"],
    );
    let picture = fs::read_to_string(folder.path().join("lanes.svg")).unwrap();
    assert_eq!(picture.matches("<rect ").count(), 8 * 4);
}

#[test]
fn a_layout_that_does_not_fit_says_so() {
    let fails = |args: &[&str], part: &str| {
        let folder = tempfile::tempdir().unwrap();
        let (ok, found) = run(folder.path(), args);
        assert!(!ok && found.contains(part), "{found}");
    };
    fails(
        &["layout", "S[(4, 8)]", "--shape", "4,9"],
        "the layout has 32 elements, the shape 36",
    );
    fails(&["layout", "S[(4, 8):(8)]"], "1 strides for 2 extents");
    fails(
        &["layout", "S[(400, 400)]"],
        "160000 elements are too many for a table",
    );
    fails(&["layout", "S[(4, 8)]", "--shape", "0,8"], "extents are positive");
}

const KERNEL: &str = r#"from tvm.script import tirx as T
from tvm.script.tirx import tile as Tx


@T.prim_func
def roots(A: T.Buffer((32, 32), "float32"), n: T.int32):
    T.device_entry(); T.cta_id([1]); T.thread_id([256])
    s = T.alloc_buffer((32, 32), "float32", scope="shared")
    Tx.cta.copy(s, A)
    Tx.cta.sqrt(s, s)
    Tx.cta.copy(A[0:n, 0:7], s[0:n, 0:7])
"#;

#[test]
fn explain_says_which_variant_and_why_not_the_others() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("k.py"), KERNEL).unwrap();
    let (ok, found) = run(folder.path(), &["explain", "k.py:10"]);
    assert!(ok, "{found}");
    let expected = "
k.py:10: Tx.cta.sqrt(s, s)
  reg   declines: s is in shared, not in local memory
  smem  chosen
  partition: 1 rounds x 256 threads x 4 elements
  the caller waits for nothing: the threads of the scope see the result
";
    assert!(found.starts_with(expected.trim_start()), "{found}");
    assert!(found.contains("T.sqrt(s["), "{found}");
    let (_, all) = run(folder.path(), &["explain", "k.py"]);
    assert_eq!(all.matches("  partition: ").count(), 2, "{all}");
    let (ok, found) = run(folder.path(), &["explain", "k.py:6"]);
    assert!(
        !ok && found.contains("there is no tile primitive on line 6"),
        "{found}"
    );
}

#[test]
fn a_copy_by_one_thread_is_warned_about() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("k.py"), KERNEL).unwrap();
    let (ok, found) = run(folder.path(), &["check", "k.py"]);
    assert!(ok, "{found}");
    for part in [
        "warning: this copy from shared to global at scope cta goes element by element in one thread",
        "k.py:11:5",
        "ragged: non-constant region extent",
        "help: `dispatch=\"fallback\"` or `# tirx: allow(copy-by-one-thread)` on the line turns the warning off",
    ] {
        assert!(found.contains(part), "{part}: {found}");
    }
    // Naming the variant or allowing the warning silences it.
    for known in [
        KERNEL.replace("s[0:n, 0:7])", "s[0:n, 0:7], dispatch=\"fallback\")"),
        KERNEL.replace("s[0:n, 0:7])", "s[0:n, 0:7])  # tirx: allow(copy-by-one-thread)"),
    ] {
        fs::write(folder.path().join("k.py"), known).unwrap();
        let (ok, found) = run(folder.path(), &["check", "k.py"]);
        assert!(ok && !found.contains("warning"), "{found}");
    }
}

/// The layouts of the book, with the page and the arguments of the command for each.
const PICTURES: &[(&str, &str, &[&str])] = &[
    ("rows", "memory.md", &["S[(8, 32)]"]),
    (
        "swizzle",
        "memory.md",
        &["ComposeLayout(2, 3, 3, TileLayout(S[(8, 32)]))"],
    ),
    (
        "threads",
        "gallery/first-kernels.md",
        &["S[(2, 8):(1 @ bx, 1 @ tx)]", "--shape", "1,16"],
    ),
    (
        "vectors",
        "gallery/rows.md",
        &["S[(8, 4, 4):(4 @ laneid, 1 @ laneid, 1)]", "--shape", "8,16"],
    ),
    (
        "weights",
        "gallery/few-bits.md",
        &["S[(8, 4, 8):(4 @ laneid, 1 @ laneid, 1)]", "--shape", "8,32"],
    ),
    (
        "quads",
        "memory.md",
        &["S[(8, 4, 2):(4 @ laneid, 1 @ laneid, 1)]", "--shape", "8,8"],
    ),
];

/// Timelines of the book that are of larger sizes than the page's runs: kernels of `kernels/`, each with its file, its entry, its values
/// and its tensors.
const TIMELINES: &[(&str, &str, &str, &[&str])] = &[
    ("ring.py", "ring", "", &["A", "B"]),
    ("pipelines.py", "scale_tma", "M=512", &["X", "Y"]),
    (
        "profiled.py",
        "scale_profiled",
        "M=512 WORDS=256",
        &["X", "Y", "P"],
    ),
    (
        "hopper.py",
        "gemm_clusters",
        "M=256 N=256 K=512 CLUSTERS=1",
        &["A", "B", "C"],
    ),
    (
        "hopper_tiles.py",
        "gemm_tiles",
        "M=128 N=128 K=512 BN=128 CTAS=1",
        &["A", "B", "C"],
    ),
    (
        "hopper_attention.py",
        "hopper_attention",
        "H=1 S=256",
        &["Q", "K", "V", "O"],
    ),
    ("attention.py", "attention", "H=1 S=256", &["Q", "K", "V", "O"]),
    (
        "blackwell.py",
        "gemm_pairs",
        "M=256 N=256 K=512",
        &["A", "B", "C"],
    ),
    (
        "blackwell_attention.py",
        "blackwell_attention",
        "H=1 S=256",
        &["Q", "K", "V", "O"],
    ),
];

/// Compares a picture with the one of the book; with `UPDATE_EXPECT=1` it is written there.
fn is_current(file: &str, made: &str) {
    let committed = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../docs/book/src")
        .join(file);
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        fs::write(&committed, made).unwrap();
    }
    let found = fs::read_to_string(&committed).unwrap_or_default();
    assert!(found == made, "{file} is old: UPDATE_EXPECT=1 makes it anew");
}

#[test]
fn the_layouts_of_the_book_are_current() {
    let book = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../docs/book/src");
    let folder = tempfile::tempdir().unwrap();
    for (name, page, args) in PICTURES {
        let file = format!("layout-{name}.svg");
        let page = fs::read_to_string(book.join(page)).unwrap();
        let shown = page.contains(&format!("]({file})")) || page.contains(&format!("](../{file})"));
        assert!(shown, "the page shows {file}");
        let mut all = vec!["layout"];
        all.extend(*args);
        all.extend(["--svg", &file]);
        let (ok, found) = run(folder.path(), &all);
        assert!(ok, "{found}");
        is_current(&file, &fs::read_to_string(folder.path().join(&file)).unwrap());
    }
}

#[test]
fn the_timelines_of_the_book_are_current() {
    let sources = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..");
    let book = sources.join("docs/book/src");
    let machine = fs::read_to_string(book.join("asynchronous.md")).unwrap();
    let gallery: String = ["pipelines", "products", "attention"]
        .map(|page| fs::read_to_string(book.join(format!("gallery/{page}.md"))).unwrap())
        .concat();
    let folder = tempfile::tempdir().unwrap();
    // The ring is a block of its page.
    let ring = machine
        .split("```python\n")
        .find(|block| block.contains("def ring("))
        .unwrap();
    let ring = ring.split("```").next().unwrap();
    fs::write(
        folder.path().join("ring.py"),
        format!("from tvm.script import tirx as T\n{ring}"),
    )
    .unwrap();
    for (kernel, entry, values, tensors) in TIMELINES {
        let file = format!("timeline-{entry}.svg");
        let shown = gallery.contains(&format!("](../{file})")) || machine.contains(&format!("]({file})"));
        assert!(shown, "a page shows {file}");
        let path = match *entry {
            "ring" => folder.path().join(kernel),
            _ => sources.join("kernels").join(kernel),
        };
        let mut all: Vec<String> = ["sim", path.to_str().unwrap(), "--entry", entry]
            .map(String::from)
            .into();
        for value in values.split_whitespace() {
            all.extend(["-D".into(), value.into()]);
        }
        for tensor in *tensors {
            all.extend(["--out".into(), format!("{tensor}=tensor.npy")]);
        }
        if *entry == "scale_tma" {
            all.extend(["--scalar".into(), "alpha=2.0".into()]);
        }
        if kernel.starts_with("blackwell") {
            all.extend(["--arch".into(), "sm_100a".into()]);
        }
        all.extend(["--timeline".into(), file.clone()]);
        let all: Vec<&str> = all.iter().map(String::as_str).collect();
        let (ok, found) = run(folder.path(), &all);
        assert!(ok, "{found}");
        is_current(&file, &fs::read_to_string(folder.path().join(&file)).unwrap());
    }
}
