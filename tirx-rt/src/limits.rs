//! Launch configurations that no device supports.
//!
//! The limits are those of the CUDA C++ Programming Guide, "Technical Specifications per Compute Capability", the same
//! for all GPUs that have clusters and for the simulator. Shared memory depends on the GPU: see [`shared_bytes`].

use crate::image::LaunchConfig;
use crate::{Error, Result};

const GRID: [u32; 3] = [i32::MAX as u32, 65_535, 65_535];
const BLOCK: [u32; 3] = [1024, 1024, 64];
const THREADS: u64 = 1024;
const CLUSTER: u64 = 16;
const ALONG_GRID: [&str; 3] = ["blocks along x", "blocks along y", "blocks along z"];
const ALONG_BLOCK: [&str; 3] = ["threads along x", "threads along y", "threads along z"];

fn total(extents: [u32; 3]) -> u64 {
    extents.iter().map(|e| u64::from(*e)).fold(1, u64::saturating_mul)
}

/// Rejects launches that the driver would reject without a reason.
///
/// # Errors
/// [`Error::LaunchLimit`] for an extent that is too large, [`Error::Launch`] for clusters that do not fit the grid.
#[inline]
pub(crate) fn check(kernel: &'static str, config: &LaunchConfig) -> Result<()> {
    for d in 0..3 {
        if config.grid[d] > GRID[d] || config.block[d] > BLOCK[d] {
            return Err(too_large(kernel, config));
        }
    }
    if total(config.block) > THREADS {
        return Err(too_large(kernel, config));
    }
    if config.cluster == [1; 3] && config.preferred_cluster == [1; 3] {
        return Ok(());
    }
    check_clusters(kernel, config)
}

#[cold]
fn too_large(kernel: &'static str, config: &LaunchConfig) -> Error {
    let along = |names: [&'static str; 3], extents: [u32; 3], limits: [u32; 3]| {
        let mut all = names.into_iter().zip(extents.into_iter().zip(limits));
        all.find(|(_, (extent, limit))| extent > limit)
            .map(|(name, (extent, limit))| (name, u64::from(extent), u64::from(limit)))
    };
    let (what, value, limit) = along(ALONG_GRID, config.grid, GRID)
        .or_else(|| along(ALONG_BLOCK, config.block, BLOCK))
        .unwrap_or(("threads per block", total(config.block), THREADS));
    Error::LaunchLimit {
        kernel,
        what,
        value,
        limit,
    }
}

fn check_clusters(kernel: &'static str, config: &LaunchConfig) -> Result<()> {
    let blocks = total(config.cluster);
    if blocks > CLUSTER {
        return Err(Error::LaunchLimit {
            kernel,
            what: "blocks per cluster",
            value: blocks,
            limit: CLUSTER,
        });
    }
    let dims = |[x, y, z]: [u32; 3]| format!("({x}, {y}, {z})");
    let (part, preferred) = (config.cluster, config.preferred_cluster);
    // An array: a launch allocates nothing.
    let pairs = [
        ("grid", config.grid, "clusters", part),
        ("grid", config.grid, "preferred clusters", preferred),
        ("preferred cluster", preferred, "clusters", part),
    ];
    let given = if preferred == [1; 3] { 2 } else { 3 };
    for (name, whole, parts, part) in pairs.into_iter().take(given) {
        if (0..3).any(|d| part[d] == 0 || !whole[d].is_multiple_of(part[d])) {
            let message = format!(
                "the {name} {} is not made of whole {parts} {}",
                dims(whole),
                dims(part)
            );
            return Err(Error::Launch { kernel, message });
        }
    }
    Ok(())
}

/// Refuses more dynamic shared memory than a device has for a block.
///
/// # Errors
/// [`Error::LaunchLimit`].
pub(crate) fn shared_bytes(kernel: &'static str, bytes: u32, limit: u32) -> Result<()> {
    if bytes <= limit {
        return Ok(());
    }
    Err(Error::LaunchLimit {
        kernel,
        what: "bytes of dynamic shared memory",
        value: u64::from(bytes),
        limit: u64::from(limit),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(change: impl FnOnce(&mut LaunchConfig)) -> String {
        let mut config = LaunchConfig::default();
        change(&mut config);
        check("k", &config).unwrap_err().to_string()
    }

    #[test]
    fn what_no_device_runs_is_refused_with_the_limit() {
        assert_eq!(
            refused(|c| c.grid = [1, 70_000, 1]),
            "kernel `k` cannot be launched with 70000 blocks along y: 65535 is the most"
        );
        assert_eq!(
            refused(|c| c.grid = [1 << 31, 1, 1]),
            "kernel `k` cannot be launched with 2147483648 blocks along x: 2147483647 is the most"
        );
        assert_eq!(
            refused(|c| c.block = [1, 1, 65]),
            "kernel `k` cannot be launched with 65 threads along z: 64 is the most"
        );
        assert_eq!(
            refused(|c| c.block = [64, 32, 1]),
            "kernel `k` cannot be launched with 2048 threads per block: 1024 is the most"
        );
        assert_eq!(
            refused(|c| (c.grid, c.cluster) = ([32, 1, 1], [32, 1, 1])),
            "kernel `k` cannot be launched with 32 blocks per cluster: 16 is the most"
        );
        assert_eq!(
            refused(|c| (c.grid, c.cluster) = ([5, 1, 1], [2, 1, 1])),
            "kernel `k`: the grid (5, 1, 1) is not made of whole clusters (2, 1, 1)"
        );
        assert_eq!(
            refused(|c| (c.grid, c.preferred_cluster) = ([6, 1, 1], [4, 1, 1])),
            "kernel `k`: the grid (6, 1, 1) is not made of whole preferred clusters (4, 1, 1)"
        );
        assert!(matches!(
            shared_bytes("k", 300_000, 232_448),
            Err(Error::LaunchLimit {
                value: 300_000,
                limit: 232_448,
                ..
            })
        ));
    }

    #[test]
    fn the_limits_themselves_are_allowed() {
        let config = LaunchConfig {
            grid: [i32::MAX as u32 - 15, 65_535, 65_535],
            block: [16, 1, 64],
            cluster: [16, 1, 1],
            ..LaunchConfig::default()
        };
        assert!(
            check(
                "k",
                &LaunchConfig {
                    cluster: [1; 3],
                    ..config
                }
            )
            .is_ok()
        );
        assert!(
            check(
                "k",
                &LaunchConfig {
                    grid: [32, 1, 1],
                    preferred_cluster: [16, 1, 1],
                    cluster: [8, 1, 1],
                    ..config
                }
            )
            .is_ok()
        );
    }
}
