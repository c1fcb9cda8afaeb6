//! `cargo tirx sim --coverage`: the lines, branches and barriers that runs of a kernel have exercised, as a summary and a table of gaps.

use tirx_sim::{Branch, LineCoverage};

use crate::observed::place_of;
use crate::table::Table;

/// Parts that were exercised, and all.
#[derive(Default)]
struct Ratio(u64, u64);

impl Ratio {
    fn add(&mut self, exercised: u64, all: u64) {
        self.0 += exercised;
        self.1 += all;
    }

    /// `3 of 4 lines run`; nothing if the kernel has no such parts.
    fn text(&self, what: &str) -> Option<String> {
        (self.1 > 0).then(|| format!("{} of {} {what}", self.0, self.1))
    }
}

/// The parts of the kernel that no run has exercised, behind a summary.
pub(crate) fn table(lines: &[LineCoverage]) -> String {
    let [mut run, mut branches, mut barriers, mut phases] = [(); 4].map(|()| Ratio::default());
    let mut table = Table::new(["line", "gap", "text"]);
    let mut gaps = 0;
    for line in lines {
        run.add(u64::from(line.run), 1);
        phases.add(line.phases.seen, line.phases.complete);
        let mut found = Vec::new();
        if !line.run {
            found.push("never run".to_string());
        }
        for (at, branch) in line.branches.iter().enumerate() {
            let both = branch.taken > 0 && branch.skipped > 0;
            branches.add(u64::from(both), 1);
            let number = match line.branches.len() {
                1 => String::new(),
                _ => format!(" {}", at + 1),
            };
            found.extend(direction(branch).map(|text| format!("branch{number} {text}")));
        }
        for reached in &line.barriers {
            barriers.add(u64::from(*reached), 1);
            if !reached && line.run {
                found.push("barrier never reached".to_string());
            }
        }
        let unseen = line.phases.complete - line.phases.seen;
        if unseen > 0 {
            let phases = if unseen == 1 { "phase" } else { "phases" };
            found.push(format!("{unseen} {phases} that nobody waited for"));
        }
        for gap in found {
            gaps += 1;
            table.row(vec![
                place_of(&line.location),
                gap,
                line.location.text.trim().to_string(),
            ]);
        }
    }
    let parts = [
        run.text("lines run"),
        branches.text("branches in both directions"),
        barriers.text("barriers reached"),
        phases.text("phases of mbarriers waited for"),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    let gaps = if gaps == 0 { String::new() } else { table.text() };
    format!("coverage: {}\n{gaps}", parts.join(", "))
}

/// The direction that a branch has always had; `None` for both, and for a branch to which no thread came.
fn direction(branch: &Branch) -> Option<&'static str> {
    match (branch.taken, branch.skipped) {
        (1.., 0) => Some("always taken"),
        (0, 1..) => Some("never taken"),
        _ => None,
    }
}
