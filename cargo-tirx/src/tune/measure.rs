//! How long does each candidate take, compared fairly?
//!
//! The GPU's clock and temperature drift, so candidates take turns: each round measures every candidate once, and a candidate's time is its
//! median. A runoff measures the two fastest in pairs, in alternating order; the median of the ratios within the pairs decides, because a pair
//! sees the same clock.

use std::time::Duration;

use crate::bench::repetition::WARM_UP;
use crate::failure::Result;

/// The seconds of a call of each of `count` candidates; `time` measures one of them.
pub(super) fn compared(
    count: usize,
    samples: usize,
    time: &mut dyn FnMut(usize) -> Result<f64>,
) -> Result<Vec<f64>> {
    let start = std::time::Instant::now();
    while start.elapsed() < WARM_UP {
        for candidate in 0..count {
            time(candidate)?;
        }
    }
    let mut all: Vec<Vec<f64>> = vec![Vec::new(); count];
    for _ in 0..samples {
        for (candidate, seconds) in all.iter_mut().enumerate() {
            seconds.push(time(candidate)?);
        }
    }
    let mut medians: Vec<f64> = all.iter_mut().map(|seconds| median(seconds)).collect();
    if count > 1 {
        runoff(&mut medians, samples, time)?;
    }
    let least = Duration::from_nanos(1).as_secs_f64();
    Ok(medians.iter().map(|seconds| seconds.max(least)).collect())
}

/// Decides between the two fastest candidates. The winner gets the smaller of both times, the other its time by the ratio.
fn runoff(medians: &mut [f64], samples: usize, time: &mut dyn FnMut(usize) -> Result<f64>) -> Result<()> {
    let first = fastest(medians);
    let without: Vec<f64> = (medians.iter().enumerate())
        .map(|(at, seconds)| if at == first { f64::INFINITY } else { *seconds })
        .collect();
    let second = fastest(&without);
    let mut ratios = Vec::new();
    for sample in 0..samples {
        let (of_first, of_second) = match sample % 2 {
            0 => (time(first)?, time(second)?),
            _ => {
                let of_second = time(second)?;
                (time(first)?, of_second)
            }
        };
        ratios.push(of_second / of_first);
    }
    let ratio = median(&mut ratios);
    let least = medians[first];
    match ratio < 1.0 {
        true => (medians[second], medians[first]) = (least, least / ratio),
        false => medians[second] = least * ratio,
    }
    Ok(())
}

/// The position of the smallest time, the first of equal ones.
pub(super) fn fastest(times: &[f64]) -> usize {
    let mut best = 0;
    for (at, time) in times.iter().enumerate() {
        if *time < times[best] {
            best = at;
        }
    }
    best
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A timer of candidates whose times grow as the clock falls.
    fn drifting(times: &[f64]) -> impl FnMut(usize) -> Result<f64> {
        let mut calls = 0;
        move |candidate| {
            calls += 1;
            // After the warm-up's thousands of calls the clock falls by half within some hundred calls.
            let clock = 1.0 - 0.5 * (f64::from(calls % 500) / 500.0);
            Ok(times[candidate] / clock)
        }
    }

    #[test]
    fn the_order_is_that_of_the_candidates_though_the_clock_drifts() {
        let seconds = compared(4, 31, &mut drifting(&[3e-6, 1.0e-6, 1.01e-6, 2e-6])).unwrap();
        assert_eq!(fastest(&seconds), 1, "{seconds:?}");
        assert!(seconds[2] < seconds[3] && seconds[3] < seconds[0], "{seconds:?}");
        assert!((seconds[2] / seconds[1] - 1.01).abs() < 0.01, "{seconds:?}");
        assert_eq!(compared(1, 3, &mut |_| Ok(5.0)).unwrap(), [5.0]);
    }

    #[test]
    fn a_runoff_can_reverse_the_order() {
        // The first was lucky before.
        let mut medians = [1.0, 1.02, 7.0];
        runoff(&mut medians, 5, &mut |candidate| Ok([1.1, 1.0, 7.0][candidate])).unwrap();
        assert_eq!(fastest(&medians), 1);
        assert!(
            (medians[0] - 1.1).abs() < 1e-9 && medians[2] == 7.0,
            "{medians:?}"
        );
    }
}
