//! The sources of a model's weights: `.safetensors` files and random numbers. GGUF files are in `gguf.rs`.

use std::collections::HashMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use safetensors::Dtype;
use safetensors::tensor::Metadata;
use tirx_kernels::quant::Format;
use tirx_rt::{bf16, f16};

use crate::Result;

/// The elements of a matrix, row by row.
#[derive(Clone, Debug, PartialEq)]
pub enum Elements {
    /// Numbers.
    Bf16(Vec<bf16>),
    /// Blocks of a format of GGUF files.
    Blocks(Format, Vec<u8>),
}

/// Weights by their names in `transformers`.
pub trait Source {
    /// The numbers of a tensor, row by row.
    ///
    /// # Errors
    /// A tensor that is missing, or whose number of elements differs.
    fn tensor(&self, name: &str, elements: usize) -> Result<Vec<bf16>>;

    /// The elements of a matrix in the form that the source has.
    ///
    /// # Errors
    /// As for [`Source::tensor`].
    fn matrix(&self, name: &str, rows: usize, columns: usize) -> Result<Elements> {
        Ok(Elements::Bf16(self.tensor(name, rows * columns)?))
    }
}

/// Random weights, the same for each name and seed, in a range that keeps a model's numbers near 1.
#[derive(Clone, Copy, Debug)]
pub struct Random {
    /// The seed.
    pub seed: u64,
    /// Elements of a token: the range of matrices is its square root.
    pub hidden: usize,
}

impl Source for Random {
    fn tensor(&self, name: &str, elements: usize) -> Result<Vec<bf16>> {
        let start = name
            .bytes()
            .fold(self.seed ^ 0xcbf2_9ce4_8422_2325, |hash, byte| {
                (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
            });
        let mut state = start | 1;
        let mut uniform = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 40) as f64 / f64::from(1 << 24) - 0.5
        };
        let norm = name.ends_with("norm.weight");
        let size = if norm {
            0.2
        } else {
            3.0 / (self.hidden as f64).sqrt()
        };
        // Random numbers are slower to make than to copy: a prime number of them is repeated.
        let block: Vec<bf16> = (0..elements.min(1_000_003))
            .map(|_| bf16::from_f64(uniform() * size + if norm { 1.0 } else { 0.0 }))
            .collect();
        let mut values = Vec::with_capacity(elements);
        while values.len() < elements {
            values.extend_from_slice(&block[..block.len().min(elements - values.len())]);
        }
        Ok(values)
    }
}

/// The `.safetensors` files of a folder.
#[derive(Debug)]
pub struct Files {
    tensors: HashMap<String, TensorLocation>,
}

#[derive(Debug)]
struct TensorLocation {
    file: PathBuf,
    dtype: Dtype,
    begin: u64,
    bytes: usize,
}

impl Files {
    /// The files of this folder.
    ///
    /// # Errors
    /// A folder without such files, or a file that cannot be read.
    pub fn in_folder(folder: &Path) -> Result<Files> {
        let mut tensors = HashMap::new();
        for entry in std::fs::read_dir(folder).map_err(|e| format!("{}: {e}", folder.display()))? {
            let path = entry?.path();
            if path.extension().is_some_and(|e| e == "safetensors") {
                read_header(&path, &mut tensors)
                    .map_err(|e| format!("{} is no file of safetensors: {e}", path.display()))?;
            }
        }
        if tensors.is_empty() {
            return Err(format!("{} has no .safetensors files", folder.display()).into());
        }
        Ok(Files { tensors })
    }
}

fn read_header(path: &Path, tensors: &mut HashMap<String, TensorLocation>) -> Result<()> {
    let mut file = File::open(path)?;
    let size = file.metadata()?.len();
    let mut length = [0; 8];
    file.read_exact(&mut length)?;
    let length = u64::from_le_bytes(length);
    // The tensors behind the header stay in the file.
    let begin = length.saturating_add(8);
    let Some(elements) = size.checked_sub(begin) else {
        return Err(format!("its header ends at byte {begin}, and the file has {size}").into());
    };
    let mut header = Vec::new();
    file.take(length).read_to_end(&mut header)?;
    let metadata: Metadata = serde_json::from_slice(&header)?;
    for (name, tensor) in metadata.tensors() {
        let (first, end) = tensor.data_offsets;
        if first > end || end as u64 > elements {
            return Err(format!("tensor {name} ends at byte {end} of {elements}").into());
        }
        let location = TensorLocation {
            file: path.to_path_buf(),
            dtype: tensor.dtype,
            begin: begin + first as u64,
            bytes: end - first,
        };
        tensors.insert(name, location);
    }
    Ok(())
}

impl Source for Files {
    fn tensor(&self, name: &str, elements: usize) -> Result<Vec<bf16>> {
        let location = self
            .tensors
            .get(name)
            .ok_or_else(|| format!("the files have no tensor {name}"))?;
        let read = |width: usize| {
            if location.bytes != elements * width {
                return Err(format!(
                    "tensor {name} has {} elements, not {elements}",
                    location.bytes / width
                )
                .into());
            }
            read_at(&location.file, location.begin, location.bytes)
        };
        match location.dtype {
            Dtype::F32 => Ok(from_f32(&read(4)?)),
            Dtype::F16 => Ok(from_f16(&read(2)?)),
            Dtype::BF16 => Ok(from_bf16(&read(2)?)),
            other => Err(format!("tensor {name} is of {other:?}: F32, F16 and BF16 are supported").into()),
        }
    }
}

/// Bytes of a file.
pub(crate) fn read_at(path: &Path, begin: u64, bytes: usize) -> Result<Vec<u8>> {
    let mut file = File::open(path)?;
    let size = file.metadata()?.len();
    let end = begin.saturating_add(bytes as u64);
    if end > size {
        return Err(format!("{}: a tensor ends at byte {end} of {size}", path.display()).into());
    }
    file.seek(SeekFrom::Start(begin))?;
    let mut found = vec![0; bytes];
    file.read_exact(&mut found)?;
    Ok(found)
}

pub(crate) fn from_bf16(bytes: &[u8]) -> Vec<bf16> {
    let pairs = bytes.as_chunks::<2>().0.iter();
    pairs.map(|b| bf16::from_bits(u16::from_le_bytes(*b))).collect()
}

pub(crate) fn from_f16(bytes: &[u8]) -> Vec<bf16> {
    let pairs = bytes.as_chunks::<2>().0.iter();
    pairs
        .map(|b| bf16::from_f32(f16::from_bits(u16::from_le_bytes(*b)).to_f32()))
        .collect()
}

pub(crate) fn from_f32(bytes: &[u8]) -> Vec<bf16> {
    let words = bytes.as_chunks::<4>().0.iter();
    words.map(|b| bf16::from_f32(f32::from_le_bytes(*b))).collect()
}
