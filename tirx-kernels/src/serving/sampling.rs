//! The next token of each row of logits, chosen on the device.
//!
//! All steps work on the exact values: temperature, then minimum probability, then the k most likely tokens, then the fewest of those with a
//! share p of their probability. Tokens with equal logits at a limit are all kept. The choice depends on seed, counter and logits alone, not
//! on the batch or the order of threads, so a run can be repeated. Tokens with less than 1e-13 of the greatest probability are left out if
//! there is a limit.

use tirx_rt::{AsTensor, AsTensorMut, Stream, Tensor};

use super::Element;
use super::rows::{has_shape, number};
use crate::generated::kernels;
use crate::machine::{Generation, Machine};
use crate::{Error, Result};

/// The blocks that share a row in `sample_in_clusters`.
const BLOCKS_OF_CLUSTER: usize = 4;
/// The least columns that are worth their exchange.
const COLUMNS_OF_CLUSTER: usize = 8192;

/// How a row's token is chosen. [`Options::greedy`] and [`Options::temperature`] begin.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Options {
    /// The divisor of logits. 0 chooses the most likely token; lower ones than 1e-20 count as that.
    pub temperature: f32,
    /// The most likely tokens that the choice is among; 0 for all.
    pub top_k: usize,
    /// The share of the probability that the chosen-from tokens have together: the fewest such tokens.
    pub top_p: f32,
    /// The least probability of a token as a share of the greatest.
    pub min_p: f32,
    /// The divisor of positive logits, and factor of negative ones, of tokens that occurred.
    pub repetition: f32,
    /// The number subtracted from logits of tokens that occurred.
    pub presence: f32,
    /// The number subtracted for each occurrence.
    pub frequency: f32,
    /// The seed of the random choice.
    pub seed: u64,
}

impl Options {
    /// The most likely token.
    pub fn greedy() -> Options {
        Options::temperature(0.0)
    }

    /// A random token, with logits divided by the temperature.
    pub fn temperature(temperature: f32) -> Options {
        Options {
            temperature,
            top_k: 0,
            top_p: 1.0,
            min_p: 0.0,
            repetition: 1.0,
            presence: 0.0,
            frequency: 0.0,
            seed: 0,
        }
    }

    /// Among the `top_k` most likely tokens.
    pub fn top_k(self, top_k: usize) -> Options {
        Options { top_k, ..self }
    }

    /// Among the fewest tokens that have this share of the probability.
    pub fn top_p(self, top_p: f32) -> Options {
        Options { top_p, ..self }
    }

    /// Among the tokens with at least this share of the greatest probability.
    pub fn min_p(self, min_p: f32) -> Options {
        Options { min_p, ..self }
    }

    /// With a penalty for tokens that occurred: positive logits are divided by it.
    pub fn repetition(self, repetition: f32) -> Options {
        Options { repetition, ..self }
    }

    /// With numbers subtracted from the logits of tokens that occurred: once, and for each occurrence.
    pub fn presence_and_frequency(self, presence: f32, frequency: f32) -> Options {
        Options {
            presence,
            frequency,
            ..self
        }
    }

    /// With this seed.
    pub fn seed(self, seed: u64) -> Options {
        Options { seed, ..self }
    }

    fn is_penalized(&self) -> bool {
        (self.repetition, self.presence, self.frequency) != (1.0, 0.0, 0.0)
    }

    fn floats(&self) -> [f32; 6] {
        // Logits divided by less would not be finite.
        let least = if self.temperature > 0.0 { 1e-20 } else { 0.0 };
        [
            self.temperature.max(least),
            self.top_p,
            self.min_p,
            self.repetition,
            self.presence,
            self.frequency,
        ]
    }

    fn check(&self) -> Result<()> {
        let numbers = self.temperature.is_finite() && self.floats().iter().all(|x| x.is_finite());
        if numbers
            && self.temperature >= 0.0
            && self.top_p > 0.0
            && self.min_p >= 0.0
            && self.repetition > 0.0
        {
            return Ok(());
        }
        Err(Error::Shape(format!(
            "temperature and min_p are at least 0, top_p and repetition above 0, and all numbers finite: {self:?}"
        )))
    }
}

/// The [`Options`] of each row, on the device.
#[derive(Debug)]
pub struct Parameters {
    floats: Tensor<f32>,
    numbers: Tensor<i32>,
    seeds: Tensor<u64>,
    penalized: Vec<bool>,
}

fn top_k(options: &Options) -> i32 {
    i32::try_from(options.top_k).unwrap_or(i32::MAX)
}

impl Parameters {
    /// Those of rows 0, 1, …
    ///
    /// # Errors
    /// [`Error::Shape`] if a number is out of its range; [`Error::Runtime`] for those of the copy.
    pub fn from_rows(stream: &Stream, rows: &[Options]) -> Result<Parameters> {
        rows.iter().try_for_each(Options::check)?;
        let floats: Vec<f32> = rows.iter().flat_map(Options::floats).collect();
        let numbers: Vec<i32> = rows.iter().map(top_k).collect();
        let seeds: Vec<u64> = rows.iter().map(|row| row.seed).collect();
        Ok(Parameters {
            floats: Tensor::from_slice(stream, &floats, [rows.len(), 6])?,
            numbers: Tensor::from_slice(stream, &numbers, [rows.len()])?,
            seeds: Tensor::from_slice(stream, &seeds, [rows.len()])?,
            penalized: rows.iter().map(Options::is_penalized).collect(),
        })
    }

    /// Changes those of one row: another request takes its place.
    ///
    /// # Errors
    /// As for [`Parameters::from_rows`]; [`Error::Shape`] if there is no such row.
    pub fn set(&mut self, stream: &Stream, row: usize, options: Options) -> Result<()> {
        options.check()?;
        let rows = self.penalized.len();
        let Some(penalized) = self.penalized.get_mut(row) else {
            return Err(Error::Shape(format!("there are {rows} rows, no row {row}")));
        };
        *penalized = options.is_penalized();
        let range = row..row + 1;
        self.floats
            .slice_mut(0, range.clone())?
            .copy_from_slice(stream, &options.floats())?;
        self.numbers
            .slice_mut(0, range.clone())?
            .copy_from_slice(stream, &[top_k(&options)])?;
        self.seeds
            .slice_mut(0, range)?
            .copy_from_slice(stream, &[options.seed])?;
        Ok(())
    }
}

/// Chooses a token for each row of logits `[rows, columns]`.
///
/// `counters[r]` is a number that differs between the choices of a row, such as the position of the token: with the seed it determines the
/// random numbers. It is on the device, so that a captured call makes a new choice each time.
///
/// ```
/// use tirx_kernels::sampling::{self, Options, Parameters};
/// # use tirx_rt::{Device, Tensor};
/// # fn main() -> tirx_kernels::Result<()> {
/// # let stream = Device::simulator().default_stream();
/// let logits = Tensor::from_slice(&stream, &[0.0f32, 9.0, 1.0, 8.0, 0.0, 0.0], [2, 3])?;
/// let rows = [Options::greedy(), Options::temperature(0.8).top_k(1).top_p(0.9).seed(7)];
/// let parameters = Parameters::from_rows(&stream, &rows)?;
/// let counters = Tensor::from_slice(&stream, &[0, 0], [2])?;
/// let mut tokens = Tensor::zeros(&stream, [2])?;
/// sampling::sample(&stream, &logits, &parameters, &counters, &mut tokens)?;
/// assert_eq!(tokens.to_vec()?, [1, 0]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`Error::Shape`] if the shapes do not fit each other, a row has no columns, or a row has penalties (use [`sample_with_counts`]);
/// [`Error::Runtime`] for those of the launch.
pub fn sample<T: Element>(
    stream: &Stream,
    logits: &impl AsTensor<T>,
    parameters: &Parameters,
    counters: &impl AsTensor<i32>,
    tokens: &mut impl AsTensorMut<i32>,
) -> Result<()> {
    if parameters.penalized.contains(&true) {
        return Err(Error::Shape(
            "a row has penalties, which need the counts of its tokens: use `sample_with_counts`".into(),
        ));
    }
    launch(
        stream,
        logits.tensor(),
        parameters,
        counters.tensor(),
        None,
        tokens.tensor_mut(),
    )
}

/// As [`sample`], with penalties: `counts`, `[rows, columns]`, has how often each token occurred in the row. The chosen token is counted.
///
/// # Errors
/// As for [`sample`].
pub fn sample_with_counts<T: Element>(
    stream: &Stream,
    logits: &impl AsTensor<T>,
    parameters: &Parameters,
    counters: &impl AsTensor<i32>,
    counts: &mut impl AsTensorMut<i32>,
    tokens: &mut impl AsTensorMut<i32>,
) -> Result<()> {
    let counts = Some(counts.tensor_mut());
    launch(
        stream,
        logits.tensor(),
        parameters,
        counters.tensor(),
        counts,
        tokens.tensor_mut(),
    )
}

fn check_logits<T: Element>(logits: &Tensor<T>, tokens: &Tensor<i32>) -> Result<[usize; 2]> {
    let &[rows, columns] = logits.shape() else {
        return Err(Error::Shape(format!(
            "logits have the shape [rows, columns], not {:?}",
            logits.shape()
        )));
    };
    has_shape("tokens", tokens.shape(), &[rows], "one for each row")?;
    if rows > 0 && columns == 0 {
        return Err(Error::Shape("rows of logits have at least one column".into()));
    }
    if columns > 1 && logits.strides()[1] != 1 {
        return Err(Error::Shape(format!(
            "rows of logits are contiguous; their strides are {:?}",
            logits.strides()
        )));
    }
    number(columns, "the number of columns")?;
    number(rows, "the number of rows")?;
    Ok([rows, columns])
}

fn launch<T: Element>(
    stream: &Stream,
    logits: &Tensor<T>,
    parameters: &Parameters,
    counters: &Tensor<i32>,
    counts: Option<&mut Tensor<i32>>,
    tokens: &mut Tensor<i32>,
) -> Result<()> {
    let [rows, columns] = check_logits(logits, tokens)?;
    has_shape("counters", counters.shape(), &[rows], "one for each row")?;
    if parameters.penalized.len() != rows {
        return Err(Error::Shape(format!(
            "the parameters are for {} rows; logits have {rows}",
            parameters.penalized.len()
        )));
    }
    if rows == 0 {
        return Ok(());
    }
    let Parameters {
        floats,
        numbers,
        seeds,
        ..
    } = parameters;
    // With few rows most multiprocessors would be idle.
    let machine = Machine::of_device(&stream.device())?;
    let clusters = machine.generation == Generation::Hopper
        && columns >= COLUMNS_OF_CLUSTER
        // Clusters lie within a group of multiprocessors, so that some of these stay idle.
        && (rows * (BLOCKS_OF_CLUSTER + 1)) as f64 <= machine.multiprocessors;
    macro_rules! run {
        ($counts:expr, $tokens:expr) => {
            match clusters {
                true => kernels::sample_in_clusters::<T>(
                    stream, logits, floats, numbers, seeds, counters, $counts, $tokens,
                )?,
                false => kernels::sample::<T>(
                    stream, logits, floats, numbers, seeds, counters, $counts, $tokens,
                )?,
            }
        };
    }
    match counts {
        Some(counts) => {
            has_shape("counts", counts.shape(), &[rows, columns], "that of the logits")?;
            run!(counts, tokens);
        }
        None => {
            let (mut tokens, mut nothing) = tokens.split_at_mut(0, rows)?;
            let mut nothing = nothing.reshape_mut([0, columns])?;
            run!(&mut nothing, &mut tokens);
        }
    }
    Ok(())
}

/// The first greatest column of each row of logits; 0 for a row without a number above minus infinity.
///
/// # Errors
/// As for [`sample`].
pub fn argmax<T: Element>(
    stream: &Stream,
    logits: &impl AsTensor<T>,
    tokens: &mut impl AsTensorMut<i32>,
) -> Result<()> {
    let (logits, tokens) = (logits.tensor(), tokens.tensor_mut());
    let [rows, _] = check_logits(logits, tokens)?;
    if rows > 0 {
        kernels::argmax::<T>(stream, logits, tokens)?;
    }
    Ok(())
}
