//! Random numbers of benches.

/// How many numbers repeat: a prime, so that the rows of a matrix differ.
pub(crate) const REPEATED: usize = 1_000_003;

/// [`REPEATED`] random normal numbers.
pub(crate) fn normal(seed: u64) -> Vec<f64> {
    let mut state = seed | 1;
    let mut uniform = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        ((state >> 11) as f64 + 0.5) / (1u64 << 53) as f64
    };
    (0..REPEATED)
        .map(|_| (-2.0 * uniform().ln()).sqrt() * (std::f64::consts::TAU * uniform()).cos())
        .collect()
}
