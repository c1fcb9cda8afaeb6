//! Every order of synchronizing operations that can make a difference.

use std::collections::HashMap;

use tirx_core::diagnostic::{Level, Message};
use tirx_sim::{Exploration, LineCoverage, Program};

use super::Simulate;
use super::arguments::Prepared;
use super::once::{Ran, once, write_outs};
use crate::coverage;
use crate::failure::{Failure, Result};
use crate::observed;
use crate::output::{Output, out, say};

/// Runs the kernel in every order that can make a difference.
pub(super) fn every_order(
    command: &Simulate,
    output: &Output,
    prepared: &Prepared,
    seed: u64,
    most: u64,
    programs: &mut HashMap<String, Program>,
) -> Result<()> {
    let exploration = Exploration::new(most);
    let mut first: Option<Ran> = None;
    let mut differs = None;
    let mut covered = Vec::new();
    while exploration.more() {
        let mut ran = once(command, prepared, seed, programs, Some(&exploration))?;
        LineCoverage::merge(&mut covered, std::mem::take(&mut ran.coverage));
        if let Some(mut messages) = ran.fault.take() {
            let runs = exploration.explored().runs;
            let text = format!("orders that were run before and do not fail: {runs}");
            if let Some(message) = messages.last_mut() {
                message.children.push(Message::new(Level::Note, text));
            }
            out(&ran.printed)?;
            output.show(&ran.findings);
            if command.counters {
                out(&observed::table(&ran.counts))?;
            }
            if command.coverage {
                out(&coverage::table(&covered))?;
            }
            return Err(Failure::User(messages));
        }
        if exploration.left() {
            continue;
        }
        match &first {
            None => first = Some(ran),
            Some(first) => differs = differs.or(first.first_difference(&ran)),
        }
    }
    let explored = exploration.explored();
    if let Some(ran) = &first {
        out(&ran.printed)?;
        output.show(&ran.findings);
        if command.counters {
            out(&observed::table(&ran.counts))?;
        }
        if command.coverage {
            out(&coverage::table(&covered))?;
        }
        write_outs(&ran.bound)?;
    }
    let orders = match explored.runs {
        1 => "1 order".to_string(),
        runs => format!("{runs} orders"),
    };
    let repeated = match explored.redundant {
        0 => String::new(),
        runs => format!(" ({runs} further runs were left out because they repeat earlier runs)"),
    };
    let what = format!(
        "{orders} of at most {} synchronizing operations{repeated}",
        explored.longest
    );
    let results = match differs {
        None => "the results are the same in all of them".to_string(),
        Some(name) => format!("the results differ, the first in `{name}`"),
    };
    say(&match explored.cut {
        None => format!(
            "ran every order that can make a difference for these arguments: {what}; no order has a race, a deadlock or \
             another fault, and {results}\n"
        ),
        Some(why) => format!("did not run every order: {why}; ran {what}, no order fails, and {results}\n"),
    });
    Ok(())
}
