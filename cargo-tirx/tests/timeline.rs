//! `cargo tirx sim --timeline`: what the warps and the asynchronous operations of a block did, as a trace.

use std::path::Path;
use std::process::Command;

#[test]
fn a_timeline_shows_warps_operations_barriers_and_waits() {
    let folder = tempfile::tempdir().unwrap();
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../kernels/pipelines.py");
    let outcome = Command::new(env!("CARGO_BIN_EXE_cargo-tirx"))
        .current_dir(folder.path())
        .args(["tirx", "sim"])
        .arg(&file)
        .args(["--entry", "scale_tma", "-D", "M=512", "--scalar", "alpha=2.0"])
        .args(["--out", "X=x.npy", "--out", "Y=y.npy", "--timeline", "out.json"])
        .output()
        .unwrap();
    assert!(
        outcome.status.success(),
        "{}",
        String::from_utf8_lossy(&outcome.stderr)
    );
    let trace = std::fs::read_to_string(folder.path().join("out.json")).unwrap();
    let named = |name: &str| -> Vec<&str> {
        let quoted = format!("\"name\":\"{name}\"");
        trace.lines().filter(|line| line.contains(&quoted)).collect()
    };
    // A track for each warp, and one for what the first has issued.
    for track in ["warp 0", "warp 3", "operations of warp 0"] {
        assert_eq!(named(track).len(), 1, "{track}");
    }
    // Eight tiles are loaded and stored by tensor copies; each iteration has two barriers of four warps, and one is
    // before the first.
    assert_eq!(named("the tensor copy").len(), 16);
    assert_eq!(named("block barrier").len(), 4 * (2 * 8 + 1));
    assert!(!named("waits for an mbarrier").is_empty() && !named("runs").is_empty());
    // Each event has the line of the kernel.
    assert!(
        named("block barrier")
            .iter()
            .all(|l| l.contains("T.cuda.cta_sync()"))
    );
    // Operations are under way while warps run: the copy of the next tile has begun when one is scaled.
    let time = |line: &str, key: &str| -> u64 {
        let rest = line.split(&format!("\"{key}\":")).nth(1).unwrap();
        rest.split([',', '}']).next().unwrap().parse().unwrap()
    };
    let copies: Vec<(u64, u64)> = named("the tensor copy")
        .iter()
        .map(|l| (time(l, "ts"), time(l, "dur")))
        .collect();
    assert!(copies.iter().all(|(_, spent)| *spent > 0));
    let overlaps = |from: u64, to: u64| {
        copies
            .iter()
            .any(|(start, spent)| *start < to && from < start + spent)
    };
    assert!(
        named("runs")
            .iter()
            .any(|l| overlaps(time(l, "ts"), time(l, "ts") + time(l, "dur")))
    );
}
