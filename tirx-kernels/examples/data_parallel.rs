//! Training on several GPUs: each has a part of the data and a part of the weights.
//!
//! A linear layer, of which every rank keeps some rows. A step gathers the rows while it multiplies by them. The results and the expected ones give a
//! gradient on each rank; the step sums these, and each rank keeps its rows of the sum. The elementwise parts are on the CPU, to keep the
//! example short.
//!
//! ```sh
//! cargo run -p tirx-kernels --example data_parallel             # two simulated GPUs
//! cargo run -p tirx-kernels --example data_parallel -- 0 1      # GPUs 0 and 1
//! cargo run -p tirx-kernels --example data_parallel -- 0        # two ranks on GPU 0
//! ```

use tirx_kernels::ranks::{AllGatherMatmul, MatmulReduceScatter};
use tirx_rt::{Tensor, World, bf16};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

const OUTPUTS: usize = 32;
const INPUTS: usize = 64;
/// Rows of data on each rank.
const BATCH: usize = 64;
const STEPS: usize = 20;
const RATE: f32 = 0.5;

/// Numbers between -1 and 1.
fn numbers(count: usize, seed: u64) -> Vec<f32> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 40) as f32 / 8_388_608.0 - 1.0
    };
    (0..count).map(|_| next()).collect()
}

fn rounded(values: &[f32]) -> Vec<bf16> {
    values.iter().map(|value| bf16::from_f32(*value)).collect()
}

/// The transpose of a matrix with rows of `columns` numbers.
fn transposed(values: &[f32], columns: usize) -> Vec<f32> {
    (0..columns)
        .flat_map(|j| values[j..].iter().step_by(columns).copied())
        .collect()
}

fn world() -> Result<World> {
    let gpus = std::env::args()
        .skip(1)
        .map(|word| word.parse())
        .collect::<std::result::Result<Vec<usize>, _>>()?;
    Ok(match gpus[..] {
        [] => World::simulated(2)?,
        [only] => World::on_one_gpu(only, 2)?,
        _ => World::cuda(&gpus)?,
    })
}

fn main() -> Result<()> {
    train(&world()?)
}

/// Trains the layer, and fails if the loss does not fall.
pub(crate) fn train(world: &World) -> Result<()> {
    let ranks = world.ranks();
    if !OUTPUTS.is_multiple_of(ranks) {
        return Err(format!("{OUTPUTS} rows of weights cannot be divided by {ranks} ranks").into());
    }
    let rows = OUTPUTS / ranks;
    println!("{ranks} ranks on {}", world.device(0).name());

    // The data of each rank, and the weights to be found.
    let wanted = numbers(OUTPUTS * INPUTS, 1);
    let inputs: Vec<Vec<f32>> = (0..ranks)
        .map(|rank| numbers(BATCH * INPUTS, 100 + rank as u64))
        .collect();
    let expected: Vec<Vec<f32>> = inputs
        .iter()
        .map(|x| {
            let dot = |o: usize, b: usize| {
                (0..INPUTS)
                    .map(|i| wanted[o * INPUTS + i] * x[b * INPUTS + i])
                    .sum()
            };
            (0..OUTPUTS * BATCH).map(|k| dot(k / BATCH, k % BATCH)).collect()
        })
        .collect();
    let on_ranks = |shape: [usize; 2], values: &dyn Fn(usize) -> Vec<f32>| -> Result<Vec<Tensor<bf16>>> {
        (0..ranks)
            .map(|rank| {
                Ok(Tensor::from_slice(
                    world.stream(rank),
                    &rounded(&values(rank)),
                    shape,
                )?)
            })
            .collect()
    };
    let x = on_ranks([BATCH, INPUTS], &|rank| inputs[rank].clone())?;
    let x_transposed = on_ranks([INPUTS, BATCH], &|rank| transposed(&inputs[rank], INPUTS))?;

    let mut forward = AllGatherMatmul::new(world, rows, INPUTS)?;
    let mut backward = MatmulReduceScatter::new(world, rows, INPUTS)?;
    let mut weights = vec![vec![0.0f32; rows * INPUTS]; ranks];
    let mut results = on_ranks([OUTPUTS, BATCH], &|_| vec![0.0; OUTPUTS * BATCH])?;
    let mut gradients = on_ranks([rows, INPUTS], &|_| vec![0.0; rows * INPUTS])?;
    let mut losses = Vec::new();
    for step in 0..STEPS {
        for (rank, weights) in weights.iter().enumerate() {
            let part = Tensor::from_slice(world.stream(rank), &rounded(weights), [rows, INPUTS])?;
            forward.rows_mut(rank)?.copy_from(world.stream(rank), &part)?;
        }
        forward.run(world, &x, &mut results)?;
        let mut loss = 0.0;
        let mut errors = Vec::new();
        for (result, expected) in results.iter().zip(&expected) {
            let error: Vec<f32> = (result.to_vec()?.iter().zip(expected))
                .map(|(found, expected)| found.to_f32() - expected)
                .collect();
            loss += error.iter().map(|e| e * e).sum::<f32>() / (ranks * OUTPUTS * BATCH) as f32;
            errors.push(error);
        }
        let errors = on_ranks([OUTPUTS, BATCH], &|rank| errors[rank].clone())?;
        backward.run(world, &errors, &x_transposed, &mut gradients)?;
        for (weights, gradient) in weights.iter_mut().zip(&gradients) {
            for (weight, gradient) in weights.iter_mut().zip(gradient.to_vec()?) {
                *weight -= RATE * 2.0 / (ranks * BATCH) as f32 * gradient.to_f32();
            }
        }
        println!("step {step}: loss {loss:.4}");
        losses.push(loss);
    }
    let (first, last) = (losses[0], losses[STEPS - 1]);
    if last > 0.02 * first {
        return Err(format!("the loss fell from {first} to {last} only").into());
    }
    Ok(())
}
