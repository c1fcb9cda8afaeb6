//! Which candidate of a tuned kernel runs: measured times of this GPU, or a model without them.
//!
//! A tuned kernel is one kernel in several specializations, the candidates, which give equal results at different speeds. Generated
//! code keeps a [`Tuning`] for each tuned kernel. A choice takes no measurement and compiles nothing.
//!
//! **Records.** If there is a record for the device's name, each measured point (sizes, time of each candidate) votes with
//! the slowdown of each candidate at this point: its time divided by the shortest time. Votes are weighted by 1/d⁴, d is the distance of
//! the logarithms of the sizes. A measured point decides alone about its own sizes, so the choice there is the fastest measured candidate.
//! Sizes outside of the measured range count as its nearest bound.
//!
//! **Model.** Without a record, blocks decide. A candidate that launches B blocks for the sizes at hand, and in the limit of large sizes one
//! block for each w elements of work, keeps the busiest multiprocessor busy for ceil(B / multiprocessors) · w. This is the shortest time if a
//! multiprocessor's throughput limits the kernel: it counts waves, and the part of each tile that lies outside of the tensors. Candidates
//! within 5 % are considered equal; of these, the candidate with the fewest blocks runs, because large tiles load shared
//! operands less often. The model knows neither latencies nor caches, and nothing about kernels whose grid does not depend on the sizes:
//! there the first candidate runs.

use std::sync::{Mutex, PoisonError};

use crate::device::Stream;
use crate::host::Wide;
use crate::{Device, Error, Result};

/// The number of blocks that a candidate launches, by the sizes that matter for the choice.
pub type CandidateBlocks = fn(&[i64]) -> Wide;

/// A specialization that a tuned kernel may run.
#[derive(Clone, Copy, Debug)]
pub struct TuningCandidate {
    /// Its name in Rust: `tile128`.
    pub name: &'static str,
    /// The blocks that it launches; `None` if the sizes do not determine them.
    pub blocks: Option<CandidateBlocks>,
}

/// The times that were measured on one GPU.
#[derive(Clone, Copy, Debug)]
pub struct TuningRecord {
    /// The GPU's name, as [`Device::name`] gives it.
    pub device: &'static str,
    /// Sizes, and the time of each candidate in microseconds.
    pub times: &'static [(&'static [i64], &'static [f64])],
}

/// A tuned kernel: its candidates and their records.
#[derive(Debug)]
pub struct Tuning {
    sizes: &'static [&'static str],
    candidates: &'static [TuningCandidate],
    records: &'static [TuningRecord],
    known: Mutex<Vec<Known>>,
}

/// A choice that was made.
#[derive(Debug)]
struct Known {
    device: i32,
    sizes: Box<[i64]>,
    candidate: usize,
}

/// Most choices that are kept; a program with more sizes computes choices again.
const MAX_KNOWN: usize = 256;
/// Multiprocessors that the model assumes for a simulator: those of an H100.
const SIMULATED_MULTIPROCESSORS: u32 = 132;
/// The factor between the sizes at hand and the large sizes that give the work of a block.
const LARGE: i64 = 1 << 12;
/// Predicted times within this factor are considered equal.
const EQUAL: f64 = 1.05;

impl Tuning {
    /// A tuned kernel for which nothing is chosen yet. `sizes` names the sizes that matter; the first candidate is the default.
    pub const fn new(
        sizes: &'static [&'static str],
        candidates: &'static [TuningCandidate],
        records: &'static [TuningRecord],
    ) -> Tuning {
        Tuning {
            sizes,
            candidates,
            records,
            known: Mutex::new(Vec::new()),
        }
    }

    /// The names of the sizes that matter for the choice.
    pub fn sizes(&self) -> &'static [&'static str] {
        self.sizes
    }

    /// The candidates; the first is the default.
    pub fn candidates(&self) -> &'static [TuningCandidate] {
        self.candidates
    }

    /// The record for a device, if the program has one.
    pub fn record(&self, device: &Device) -> Option<&'static TuningRecord> {
        let name = device.name();
        self.records.iter().find(|record| record.device == name)
    }

    /// The number in [`candidates`](Tuning::candidates) of the candidate that runs on a stream's device for these sizes, in the order
    /// of [`sizes`](Tuning::sizes).
    ///
    /// # Errors
    /// [`Error::Shape`] for another number of sizes; the driver does not give the device's properties.
    pub fn choose(&self, stream: &Stream, sizes: &[i64]) -> Result<usize> {
        if sizes.len() != self.sizes.len() {
            return Err(Error::Shape(format!(
                "a choice takes a number for each of the sizes {:?}, not {sizes:?}",
                self.sizes
            )));
        }
        let device = stream.device();
        let id = device.id();
        let known = || self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(choice) = known().iter().find(|c| c.device == id && *c.sizes == *sizes) {
            return Ok(choice.candidate);
        }
        let candidate = match self.record(&device) {
            Some(record) => measured(record.times, sizes),
            None => {
                let properties = device.properties()?;
                let multiprocessors = properties.map_or(SIMULATED_MULTIPROCESSORS, |gpu| gpu.multiprocessors);
                modelled(self.candidates, sizes, multiprocessors)
            }
        };
        let mut all = known();
        if all.len() >= MAX_KNOWN {
            all.clear();
        }
        all.push(Known {
            device: id,
            sizes: sizes.into(),
            candidate,
        });
        Ok(candidate)
    }
}

/// The logarithm of a size; 0 counts as 1.
fn logarithm(size: i64) -> f64 {
    (size.max(1) as f64).ln()
}

/// The position of the smallest value, the first of equal ones.
fn smallest(values: &[f64]) -> usize {
    let mut best = 0;
    for (at, value) in values.iter().enumerate() {
        if *value < values[best] {
            best = at;
        }
    }
    best
}

/// The candidate that measured times recommend: see the [module](self).
fn measured(times: &[(&[i64], &[f64])], sizes: &[i64]) -> usize {
    let inside: Vec<f64> = (sizes.iter().enumerate())
        .map(|(dimension, size)| {
            let all = times.iter().filter_map(|(point, _)| point.get(dimension));
            let (least, most) = all.fold((i64::MAX, i64::MIN), |(least, most), size| {
                (least.min(*size), most.max(*size))
            });
            logarithm((*size).min(most).max(least))
        })
        .collect();
    let count = times.first().map_or(0, |(_, of_candidates)| of_candidates.len());
    let mut slowdown = vec![0.0; count];
    for (point, of_candidates) in times {
        let differences = point.iter().zip(&inside).map(|(p, at)| logarithm(*p) - at);
        let squared: f64 = differences.map(|difference| difference * difference).sum();
        if squared < 1e-18 {
            return smallest(of_candidates);
        }
        let shortest = of_candidates.iter().copied().fold(f64::INFINITY, f64::min);
        for (sum, time) in slowdown.iter_mut().zip(*of_candidates) {
            *sum += time / shortest / (squared * squared);
        }
    }
    smallest(&slowdown)
}

/// The candidate that the model recommends: see the [module](self).
fn modelled(candidates: &[TuningCandidate], sizes: &[i64], multiprocessors: u32) -> usize {
    let large: Vec<i64> = sizes
        .iter()
        .map(|size| size.max(&1).saturating_mul(LARGE))
        .collect();
    let predicted: Option<Vec<(f64, f64)>> = (candidates.iter())
        .map(|candidate| {
            let blocks = candidate.blocks?;
            let (here, there) = (blocks(sizes).get()?, blocks(&large).get()?);
            if here < 0 || there <= 0 {
                return None;
            }
            let rounds = (here as u64).div_ceil(u64::from(multiprocessors.max(1)));
            Some((rounds as f64 / there as f64, here as f64))
        })
        .collect();
    let Some(predicted) = predicted else { return 0 };
    let shortest = predicted
        .iter()
        .map(|(time, _)| *time)
        .fold(f64::INFINITY, f64::min);
    let blocks: Vec<f64> = (predicted.iter())
        .map(|(time, blocks)| {
            if *time <= shortest * EQUAL {
                *blocks
            } else {
                f64::INFINITY
            }
        })
        .collect();
    smallest(&blocks)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMES: &[(&[i64], &[f64])] = &[(&[1_000], &[1.0, 2.0, 3.0]), (&[1_000_000], &[9.0, 8.0, 16.0])];

    #[test]
    fn a_measured_size_has_its_fastest_candidate() {
        assert_eq!(measured(TIMES, &[1_000]), 0);
        assert_eq!(measured(TIMES, &[1_000_000]), 1);
        let equal: &[(&[i64], &[f64])] = &[(&[8], &[2.0, 2.0])];
        assert_eq!(measured(equal, &[8]), 0, "the default, if none is faster");
    }

    #[test]
    fn other_sizes_follow_their_neighbors() {
        // Outside of the range.
        assert_eq!(measured(TIMES, &[0]), 0);
        assert_eq!(measured(TIMES, &[1 << 40]), 1);
        // A small advantage near the larger size, a large one of the other near the smaller size.
        assert_eq!(measured(TIMES, &[2_000]), 0);
        assert_eq!(measured(TIMES, &[900_000]), 1);
        let plane: &[(&[i64], &[f64])] = &[
            (&[16, 4096], &[1.0, 5.0]),
            (&[4096, 4096], &[5.0, 1.0]),
            (&[4096, 16], &[5.0, 1.0]),
        ];
        assert_eq!(measured(plane, &[20, 3000]), 0);
        assert_eq!(measured(plane, &[3000, 30]), 1);
    }

    fn tiles(sizes: &[i64], tile: i64) -> Wide {
        let tiles = |size: i64| {
            Wide::from(size)
                .add(Wide::from(tile - 1))
                .floor_div(Wide::from(tile))
        };
        sizes
            .iter()
            .fold(Wide::from(1), |all, size| all.mul(tiles(*size)))
    }

    const TILES: &[TuningCandidate] = &[
        TuningCandidate {
            name: "tile256",
            blocks: Some(|sizes| tiles(sizes, 256)),
        },
        TuningCandidate {
            name: "tile64",
            blocks: Some(|sizes| tiles(sizes, 64)),
        },
    ];

    #[test]
    fn the_model_fills_the_gpu_and_prefers_large_tiles() {
        // 16 blocks of 132 multiprocessors, or 256.
        assert_eq!(modelled(TILES, &[1024, 1024], 132), 1);
        // Full waves with either tile.
        assert_eq!(modelled(TILES, &[16384, 16384], 132), 0);
        // A tile of 256 rows would be empty for the most part.
        assert_eq!(modelled(TILES, &[40, 1 << 20], 132), 1);
        // Fixed sizes: 100 blocks are one wave, 150 smaller ones are two.
        let fixed = |blocks: CandidateBlocks| TuningCandidate {
            name: "fixed",
            blocks: Some(blocks),
        };
        let few = [fixed(|_| Wide::from(150)), fixed(|_| Wide::from(100))];
        assert_eq!(modelled(&few, &[], 132), 1);
        // No blocks at all, and sizes beyond 64 bits.
        assert_eq!(modelled(TILES, &[0, 0], 132), 0);
        assert_eq!(modelled(TILES, &[i64::MAX / 2, i64::MAX / 2], 132), 0);
    }

    #[test]
    fn the_default_runs_if_the_grid_tells_nothing() {
        let fixed: &[TuningCandidate] = &[
            TuningCandidate {
                name: "persistent",
                blocks: Some(|_| Wide::from(132)),
            },
            TuningCandidate {
                name: "other",
                blocks: Some(|_| Wide::from(132)),
            },
        ];
        assert_eq!(modelled(fixed, &[4096], 132), 0);
        let unknown = [
            TILES[0],
            TuningCandidate {
                name: "x",
                blocks: None,
            },
        ];
        assert_eq!(modelled(&unknown, &[64, 64], 132), 0);
    }

    #[test]
    #[cfg(feature = "simulator")]
    fn another_number_of_sizes_is_refused() {
        static TWO: Tuning = Tuning::new(&["m", "n"], TILES, &[]);
        let stream = Device::simulator().default_stream();
        for sizes in [&[][..], &[1], &[1, 2, 3]] {
            let error = TWO.choose(&stream, sizes).unwrap_err().to_string();
            assert!(
                error.starts_with("a choice takes a number for each of the sizes [\"m\", \"n\"], not ["),
                "{error}"
            );
        }
        for sizes in [[-1, 5], [i64::MAX, i64::MIN], [0, 0]] {
            TWO.choose(&stream, &sizes).unwrap();
        }
    }

    #[test]
    #[cfg(feature = "simulator")]
    fn a_record_decides_on_its_device_alone() {
        static RECORDED: Tuning = Tuning::new(
            &["m", "n"],
            TILES,
            &[TuningRecord {
                device: "simulator",
                times: &[(&[16384, 16384], &[3.0, 2.0])],
            }],
        );
        static OTHER: Tuning = Tuning::new(
            &["m", "n"],
            TILES,
            &[TuningRecord {
                device: "NVIDIA H100 80GB HBM3",
                times: &[(&[16384, 16384], &[3.0, 2.0])],
            }],
        );
        let stream = Device::new_simulator().default_stream();
        for _ in 0..2 {
            assert_eq!(RECORDED.choose(&stream, &[16384, 16384]).unwrap(), 1);
            assert_eq!(OTHER.choose(&stream, &[16384, 16384]).unwrap(), 0);
        }
        // More sizes than are kept.
        for m in 0..2 * MAX_KNOWN as i64 {
            assert_eq!(RECORDED.choose(&stream, &[m, 7]).unwrap(), 1);
        }
    }
}
