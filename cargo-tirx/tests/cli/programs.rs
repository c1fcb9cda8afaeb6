//! `cargo tirx sanitize` and `profile`.

use std::fs;
use std::path::Path;

use tirx_test_tools::stand_in;

use super::Folder;

pub(super) fn script(folder: &Folder, name: &str, text: &str) -> String {
    let path = stand_in::script(folder.path(name), text);
    path.to_string_lossy().into_owned()
}

#[test]
fn without_a_gpu_a_program_runs_by_several_schedules() {
    let folder = Folder::new();
    // A program that fails by the third schedule.
    let cargo = script(
        &folder,
        "cargo",
        "echo \"$@ by $TIRX_SIM_SEED\"; [ $TIRX_SIM_SEED != 3 ]",
    );
    let variables = [("CARGO", cargo.as_str()), ("PATH", "/usr/bin:/bin")];
    let outcome = folder.run_with(
        &[
            "sanitize",
            "--simulator",
            "--schedules",
            "3",
            "--",
            "test",
            "--release",
        ],
        &variables,
    );
    assert_eq!(outcome.code, Some(0), "{}", outcome.err);
    assert_eq!(
        outcome.out,
        "test --release by 0\n3 schedules of the simulator: none fails\n"
    );
    let outcome = folder.run_with(&["sanitize", "--simulator"], &variables);
    assert_eq!(outcome.code, Some(1));
    assert!(outcome.err.contains("run by 3\n"), "{}", outcome.err);
    assert!(
        outcome.err.contains("schedule 3 fails (exit code 1)")
            && outcome.err.contains("`TIRX_SIM_SEED=3 cargo run`"),
        "{}",
        outcome.err
    );
    // No schedule is at fault where nothing could be built.
    let cargo = script(&folder, "cargo", "echo 'error: could not compile'; exit 101");
    let variables = [("CARGO", cargo.as_str()), ("PATH", "/usr/bin:/bin")];
    let outcome = folder.run_with(&["sanitize", "--simulator"], &variables);
    assert!(
        outcome.err.contains("whether the build or the program fails"),
        "{}",
        outcome.err
    );
}

#[test]
fn on_a_gpu_findings_are_at_the_kernels_lines() {
    let folder = Folder::new();
    let bin = folder.path("");
    script(&folder, "nvidia-smi", "echo '9.0, NVIDIA H100'");
    let finding = "=========     at add_kernel+0x110 in /proc/self/cwd/k.py:9";
    script(&folder, "compute-sanitizer", "exit 0");
    let cargo = script(
        &folder,
        "cargo",
        &format!(
            "[ \"$TIRX_LINEINFO\" = 1 ] || exit 2\ncase \"$2\" in *compute-sanitizer*racecheck*) ;; *) exit 3;; esac\necho '{finding}'; exit 86"
        ),
    );
    let path = format!("{}:/usr/bin:/bin", bin.display());
    let outcome = folder.run_with(
        &["sanitize", "--tool", "racecheck"],
        &[("CARGO", cargo.as_str()), ("PATH", &path)],
    );
    assert_eq!(outcome.code, Some(1));
    assert!(
        outcome
            .out
            .contains("in k.py:9\n=========         C[tx] = A[tx] + B[tx]\n"),
        "{}{}",
        outcome.out,
        outcome.err
    );
    assert!(outcome.err.contains("ended with exit code 86"), "{}", outcome.err);

    // A program that was built elsewhere runs without Cargo.
    script(
        &folder,
        "compute-sanitizer",
        &format!(
            "[ \"$1 $2 $3 $4\" = '--tool memcheck --error-exitcode 86' ] || exit 2; echo \"$5 $6\"; echo '{finding}'; exit 86"
        ),
    );
    let arguments = ["sanitize", "--program", "./app", "--", "--size", "small"];
    let outcome = folder.run_with(&arguments, &[("CARGO", "none"), ("PATH", &path)]);
    assert!(
        outcome.out.starts_with("./app --size\n"),
        "{}{}",
        outcome.out,
        outcome.err
    );
    assert!(outcome.out.contains("C[tx] = A[tx] + B[tx]"), "{}", outcome.out);
}

#[test]
fn records_of_a_profiler_are_a_timeline_and_a_table() {
    let folder = Folder::new();
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../kernels/profiled.py");
    let file = file.to_string_lossy();
    let outcome = folder.run(&[
        "sim",
        &file,
        "--entry",
        "scale_profiled",
        "-D",
        "M=1024",
        "-D",
        "WORDS=133",
        "--out",
        "X=x.npy",
        "--out",
        "Y=y.npy",
        "--out",
        "P=p.npy",
    ]);
    assert_eq!(outcome.code, Some(0), "{}", outcome.err);
    let outcome = folder.run(&[
        "profile",
        "p.npy",
        "--names",
        "wait,copy,scale",
        "--out",
        "trace.json",
    ]);
    assert_eq!(outcome.code, Some(0), "{}", outcome.err);
    for event in ["wait", "copy", "scale"] {
        assert!(outcome.out.contains(event), "{}", outcome.out);
    }
    let trace: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(folder.path("trace.json")).unwrap()).unwrap();
    assert!(
        trace["traceEvents"]
            .as_array()
            .unwrap()
            .iter()
            .any(|event| event["name"] == "scale")
    );
    let outcome = folder.run(&["profile", "x.npy"]);
    assert!(outcome.err.contains("records are of uint64"), "{}", outcome.err);
}
