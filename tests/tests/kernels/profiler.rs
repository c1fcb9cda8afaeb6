//! A kernel with `CudaProfiler` on the simulator: its records are a trace and a table.

use super::profile;
use tirx_tests::machine::{self, Simulator};
use tirx_tests::profiled;

#[test]
fn a_profiled_kernel_is_a_trace_and_a_table() {
    let prepared = profiled::prepare("sm_90a").unwrap();
    let contents = machine::run(&mut Simulator::default(), &prepared.module, &prepared.arguments).unwrap();
    let profile = profile::decoded(&profiled::records(&contents).unwrap());
    // The second group waits for the copies of the first.
    let first = |group: u32, name: &str| {
        let mut own = profile.events.iter().filter(|e| e.block == 0 && e.group == group);
        own.find(|e| e.name == name).unwrap().time
    };
    assert!(first(0, "copy") < first(1, "scale"));
    let trace = profile.to_perfetto();
    for part in [
        "\"traceEvents\"",
        "block 1",
        "\"name\":\"scale\"",
        "\"name\":\"wait\"",
    ] {
        assert!(trace.contains(part), "{part} is not in {trace}");
    }
    let summary = profile.summary();
    for event in profiled::EVENTS {
        assert!(summary.lines().any(|line| line.contains(event)), "{summary}");
    }
}
