//! What is shown of machine code: where there is an nvcc, and without.

use std::fs;
use std::process::Command;

use serde_json::Value;

use super::programs::script;
use super::{Folder, Outcome, nvcc};

/// `many` keeps 96 values, and a thread of 1024 has 64 registers.
const KERNELS: &str = r#"from tvm.script import tirx as T


@T.prim_func
def sums(A: T.Buffer((5000, 256), "float32"), B: T.Buffer((256,), "float32")):
    T.device_entry(); tx = T.thread_id([256])
    s = T.alloc_shared((256,), "float32")
    s[tx] = T.float32(0)
    for i in range(5000):
        s[tx] = s[tx] + A[i, tx]
    T.cuda.cta_sync()
    B[tx] = s[255 - tx]


@T.prim_func
def many(A: T.Buffer((96, 1024), "float32"), B: T.Buffer((96, 1024), "float32")):
    T.device_entry(); tx = T.thread_id([1024])
    r = T.alloc_local((96,), "float32")
    for i in T.unroll(96):
        r[i] = A[i, tx]
    T.cuda.cta_sync()
    for i in T.unroll(96):
        for j in T.unroll(8):
            r[i] = r[i] * r[(i + 11 * j) % 96] + r[(i + 7 * j) % 96]
    for i in T.unroll(96):
        B[i, tx] = r[i]
"#;

const MANIFEST: &str = "[defaults]\ntargets = [\"sm_90a\"]\n\n[[kernel]]\nname = \"sums\"\nsource = \"k.py\"\n\n\
                        [[kernel]]\nname = \"many\"\nsource = \"k.py\"\nallow-spills = true\n";

/// A folder with a manifest, and the nvcc of this machine.
fn folder() -> Option<(Folder, String)> {
    let nvcc = nvcc()?;
    let folder = Folder::new();
    fs::write(folder.path("k.py"), KERNELS).unwrap();
    fs::write(folder.path("kernels.toml"), MANIFEST).unwrap();
    Some((folder, nvcc))
}

fn run(place: &(Folder, String), arguments: &[&str]) -> Outcome {
    place.0.run_with(arguments, &[("TIRX_NVCC", &place.1)])
}

fn json(place: &(Folder, String), arguments: &[&str]) -> Value {
    let outcome = run(place, arguments);
    assert_eq!(outcome.code, Some(0), "{}", outcome.err);
    serde_json::from_str(&outcome.out).unwrap()
}

#[test]
fn without_nvcc_there_is_nothing_to_show() {
    let folder = Folder::new();
    fs::write(folder.path("k.py"), KERNELS).unwrap();
    fs::write(folder.path("kernels.toml"), MANIFEST).unwrap();
    let outcome = folder.run_with(&["stats"], &[("TIRX_NVCC", "none")]);
    assert_eq!(outcome.code, Some(1));
    assert!(
        outcome.err.contains("there is no nvcc") && outcome.err.contains("help: "),
        "{}",
        outcome.err
    );
    let outcome = folder.run(&["stats", "--manifest", "none.toml"]);
    assert!(outcome.err.contains("cannot read `none.toml`"), "{}", outcome.err);
}

#[test]
fn stats_are_those_of_the_machine_code() {
    let Some(place) = folder() else { return };
    let all = json(&place, &["stats", "--json"]);
    let (sums, many) = (&all[0], &all[1]);
    assert_eq!(sums["kernel"], "sums");
    assert_eq!(sums["static_shared"], 1024);
    assert_eq!(
        (&sums["spill_stores"], &sums["stack"]),
        (&Value::from(0), &Value::from(0))
    );
    assert_eq!(
        (&sums["threads"], &sums["occupancy"]),
        (&Value::from(256), &Value::from(100))
    );
    assert_eq!(
        (&many["registers"], &many["limiter"]),
        (&Value::from(64), &Value::from("registers"))
    );
    let spilled = many["spill_stores"].as_u64().unwrap();
    assert!(spilled > 0 && many["stack"].as_u64().unwrap() > 0, "{many}");
    let table = run(&place, &["stats", "sums"]);
    assert!(
        table.out.starts_with("kernel  target  registers") && !table.out.contains("many"),
        "{}",
        table.out
    );
    assert!(
        run(&place, &["stats", "other"])
            .err
            .contains("no kernel of the manifest has `other`")
    );
}

/// Each thread keeps 64 values: without a limit it takes more than 64 registers.
const LIMITED: &str = r#"from tvm.script import tirx as T


@T.inline
def keep_64(A, tx):
    x = T.alloc_local((64,), "float32")
    for i in T.unroll(64):
        x[i] = A[i * 256 + tx]
    T.cuda.cta_sync()
    for i in T.unroll(64):
        A[i * 256 + tx] = x[(i + 1) % 64] * x[i]


@T.prim_func
def free(A: T.Buffer((16384,), "float32")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([256])
    keep_64(A, tx)


@T.prim_func
def bounded(A: T.Buffer((16384,), "float32")):
    T.device_entry()
    T.attr({"tirx.launch_bounds_min_blocks_per_sm": 1})
    bx = T.cta_id([1]); tx = T.thread_id([256])
    keep_64(A, tx)


@T.prim_func
def of_the_text(A: T.Buffer((16384,), "float32")):
    T.device_entry()
    T.attr({"tirx.max_registers": 40})
    bx = T.cta_id([1]); tx = T.thread_id([256])
    keep_64(A, tx)
"#;

#[test]
fn limits_of_registers_are_those_of_the_machine_code() {
    let Some(place) = folder() else { return };
    fs::write(place.0.path("k.py"), LIMITED).unwrap();
    // Name, function, limit of the manifest; what the machine code may use.
    let kernels = [
        ("free", "free", None, 65..=255),
        ("few", "free", Some(32), 1..=32),
        ("bounded", "bounded", None, 65..=255),
        ("bounded_few", "bounded", Some(32), 1..=32),
        ("of_the_text", "of_the_text", None, 1..=40),
    ];
    let entry = |(name, function, limit, _): &(&str, &str, Option<u32>, _)| {
        let limit = limit.map_or(String::new(), |limit| format!("max-registers = {limit}\n"));
        format!("[[kernel]]\nname = \"{name}\"\nsource = \"k.py\"\nentry = \"{function}\"\n{limit}")
    };
    let entries: String = kernels.iter().map(entry).collect();
    let manifest = format!("[defaults]\ntargets = [\"sm_90a\", \"sm_100a\"]\nallow-spills = true\n{entries}");
    fs::write(place.0.path("kernels.toml"), manifest).unwrap();
    let all = json(&place, &["stats", "--json"]);
    for (name, _, _, range) in &kernels {
        let of_it = all
            .as_array()
            .unwrap()
            .iter()
            .filter(|one| one["kernel"] == *name);
        let registers: Vec<u64> = of_it.map(|one| one["registers"].as_u64().unwrap()).collect();
        assert!(
            registers.len() == 2 && registers.iter().all(|count| range.contains(count)),
            "{name}: {registers:?}"
        );
    }
}

#[test]
fn a_budget_that_is_exceeded_is_an_error_at_the_kernel() {
    let Some(place) = folder() else { return };
    fs::write(
        place.0.path("kernels.toml"),
        MANIFEST.replace("allow-spills = true", "max-spills = 0\nmin-occupancy = 100"),
    )
    .unwrap();
    let outcome = run(&place, &["bundle"]);
    assert_eq!(outcome.code, Some(1));
    for part in [
        "kernel `many` for sm_90a spills registers: ",
        "`max-spills` is 0",
        "k.py:16:5",
    ] {
        assert!(outcome.err.contains(part), "{part}: {}", outcome.err);
    }
    fs::write(
        place.0.path("kernels.toml"),
        MANIFEST.replace("allow-spills = true", "allow-spills = true\nmin-occupancy = 90"),
    )
    .unwrap();
    let outcome = run(&place, &["bundle"]);
    assert!(
        outcome.err.contains("`min-occupancy` is 90") && outcome.err.contains("limited by registers"),
        "{}",
        outcome.err
    );
    fs::write(
        place.0.path("kernels.toml"),
        MANIFEST.replace("allow-spills = true", "max-spills = 100000"),
    )
    .unwrap();
    let outcome = run(&place, &["bundle"]);
    assert_eq!(
        (outcome.code, outcome.err.contains("spill")),
        (Some(0), false),
        "{}",
        outcome.err
    );
}

#[test]
fn two_states_are_compared() {
    let Some(place) = folder() else { return };
    assert_eq!(run(&place, &["bundle"]).code, Some(0));
    let git = |arguments: &[&str]| {
        let mut command = Command::new("git");
        command
            .args(["-c", "user.name=a", "-c", "user.email=a@b.c"])
            .args(arguments);
        let output = command.current_dir(place.0.path("")).output().unwrap();
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
    };
    git(&["init", "--quiet"]);
    git(&["add", "k.py", "kernels.toml"]);
    git(&["commit", "--quiet", "--message", "one"]);
    let file = place.0.path("k.py");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(
        &file,
        text.replace("s = T.alloc_shared((256,)", "s = T.alloc_shared((512,)"),
    )
    .unwrap();
    let manifest = fs::read_to_string(place.0.path("kernels.toml")).unwrap();
    fs::write(
        place.0.path("kernels.toml"),
        manifest.replace("name = \"many\"", "name = \"lots\"\nentry = \"many\""),
    )
    .unwrap();
    for other in ["kernels.bundle", "HEAD"] {
        let outcome = run(&place, &["stats", "--against", other]);
        assert_eq!(outcome.code, Some(0), "{}", outcome.err);
        assert!(outcome.out.contains("1024 -> 2048"), "{}", outcome.out);
        assert!(
            outcome.out.contains("lots (new)") && outcome.out.contains("many (gone)"),
            "{}",
            outcome.out
        );
    }
    let all = json(&place, &["stats", "--json", "--against", "HEAD"]);
    assert_eq!(
        (&all[0]["static_shared"], &all[0]["before"]["static_shared"]),
        (&2048.into(), &1024.into())
    );
    let outcome = run(&place, &["stats", "--against", "nowhere"]);
    assert!(
        outcome.err.contains("`nowhere` is no bundle here and no commit"),
        "{}",
        outcome.err
    );
}

#[test]
fn code_stands_beside_its_lines() {
    let Some(place) = folder() else { return };
    let cuda = run(&place, &["asm", "sums", "--cuda"]);
    assert_eq!(cuda.code, Some(0), "{}", cuda.err);
    let after = cuda
        .out
        .split("k.py:10  s[tx] = s[tx] + A[i, tx]\n")
        .nth(1)
        .unwrap();
    assert!(after.lines().next().unwrap().contains('='), "{}", cuda.out);
    let ptx = place.0.run_with(
        &["asm", "sums"],
        &[("TIRX_NVCC", &place.1), ("TIRX_NVDISASM", "none")],
    );
    assert!(ptx.err.contains("there is no nvdisasm"), "{}", ptx.err);
    for part in [
        "sums for sm_90a: sums_kernel, ",
        "  hot loop: ",
        "k.py:10  s[tx] = s[tx] + A[i, tx]",
        "ld.global",
        "bar.sync",
    ] {
        assert!(ptx.out.contains(part), "{part}: {}", ptx.out);
    }
    // A fake nvdisasm, for its form: the real one is not everywhere.
    let shown = ".text.sums_kernel:\n\t//## File \"/x/k.py\", line 10\n.L_x_0:\n        /*0010*/  LDG.E R2, [R4] ;\n        /*0020*/  @P0 BRA `(.L_x_0) ;\n";
    let body = format!("grep -q ELF \"$3\" && printf '%s' '{shown}'");
    let tool = script(&place.0, "nvdisasm", &body);
    let variables = [("TIRX_NVCC", place.1.as_str()), ("TIRX_NVDISASM", &tool)];
    let sass = place.0.run_with(&["asm", "sums"], &variables);
    assert_eq!(sass.code, Some(0), "{}", sass.err);
    assert!(
        sass.out
            .contains("hot loop: 2 instructions, line 10: global memory 1, branches 1"),
        "{}",
        sass.out
    );
    assert!(
        sass.out
            .contains("k.py:10  s[tx] = s[tx] + A[i, tx]\n  |     0010  LDG.E R2, [R4] ;\n"),
        "{}",
        sass.out
    );
    let summary = place.0.run_with(&["asm", "sums", "--summary"], &variables);
    assert!(!summary.out.contains("0010"), "{}", summary.out);
    let unknown = run(&place, &["asm", "sum"]);
    assert!(unknown.err.contains("did you mean `sums`?"), "{}", unknown.err);
    let other = run(&place, &["asm", "sums", "--cuda", "--target", "sm_80"]);
    assert!(other.err.contains("its targets are sm_90a"), "{}", other.err);
}

#[test]
fn lines_of_files_with_other_letters_and_blanks_are_shown() {
    let Some((folder, nvcc)) = folder() else { return };
    let name = "kernels ä/文 é.py";
    fs::create_dir(folder.path("kernels ä")).unwrap();
    fs::write(folder.path(name), KERNELS).unwrap();
    fs::write(folder.path("kernels.toml"), MANIFEST.replace("k.py", name)).unwrap();
    // What nvdisasm prints of the name that nvcc writes into line tables.
    let listing = "\t.section .text.sums_kernel\n.text.sums_kernel:\n\t//## File \"/proc/self/cwd/kernels \\303\\244/\\346\\226/207 \\303/251.py\", line 12\n\
                   \t/*0000*/ EXIT ;\n";
    let tool = script(&folder, "nvdisasm", &format!("cat <<'END'\n{listing}END"));
    let variables = [("TIRX_NVCC", nvcc.as_str()), ("TIRX_NVDISASM", tool.as_str())];
    let heading = format!("{name}:12  B[tx] = s[255 - tx]\n");
    for form in ["--sass", "--ptx", "--cuda"] {
        let shown = folder.run_with(&["asm", "sums", form], &variables);
        assert!(shown.out.contains(&heading), "{form}: {}{}", shown.out, shown.err);
    }
}
