//! The sources of a model's weights: files and random numbers.

use std::collections::HashMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use serde_json::Value;
use tirx_rt::{bf16, f16};

use crate::Result;

/// Weights by their names in `transformers`.
pub trait Source {
    /// The numbers of a tensor, row by row.
    ///
    /// # Errors
    /// A tensor that is missing, or whose number of elements differs.
    fn tensor(&self, name: &str, elements: usize) -> Result<Vec<bf16>>;
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

/// The `.safetensors` files of a folder: eight bytes with the length of a header in JSON, the header, the elements.
#[derive(Debug)]
pub struct Files {
    tensors: HashMap<String, TensorLocation>,
}

#[derive(Debug)]
struct TensorLocation {
    file: PathBuf,
    dtype: String,
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
        for entry in std::fs::read_dir(folder)? {
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
    if length > size.saturating_sub(8) {
        return Err("its header is longer than the file".into());
    }
    let mut header = vec![0; usize::try_from(length)?];
    file.read_exact(&mut header)?;
    let header: Value = serde_json::from_slice(&header)?;
    for (name, tensor) in header.as_object().ok_or("its header is no object")? {
        let (Some(dtype), Some(begin), Some(end)) = (
            tensor["dtype"].as_str(),
            tensor["data_offsets"][0].as_u64(),
            tensor["data_offsets"][1].as_u64(),
        ) else {
            continue; // `__metadata__`
        };
        let elements = size - 8 - length;
        if begin > end || end > elements {
            return Err(format!("tensor {name} ends at byte {end} of {elements}").into());
        }
        let place = TensorLocation {
            file: path.to_path_buf(),
            dtype: dtype.to_string(),
            begin: 8 + length + begin,
            bytes: usize::try_from(end - begin)?,
        };
        tensors.insert(name.clone(), place);
    }
    Ok(())
}

impl Source for Files {
    fn tensor(&self, name: &str, elements: usize) -> Result<Vec<bf16>> {
        let place = self
            .tensors
            .get(name)
            .ok_or_else(|| format!("the files have no tensor {name}"))?;
        let width = match place.dtype.as_str() {
            "F32" => 4,
            "BF16" | "F16" => 2,
            other => {
                return Err(format!("tensor {name} is of {other}: F32, F16 and BF16 are supported").into());
            }
        };
        if place.bytes != elements * width {
            return Err(format!(
                "tensor {name} has {} elements, not {elements}",
                place.bytes / width
            )
            .into());
        }
        let mut file = File::open(&place.file)?;
        file.seek(SeekFrom::Start(place.begin))?;
        let mut bytes = vec![0; place.bytes];
        file.read_exact(&mut bytes)?;
        let pairs = || bytes.as_chunks::<2>().0.iter().map(|b| u16::from_le_bytes(*b));
        Ok(match place.dtype.as_str() {
            "BF16" => pairs().map(bf16::from_bits).collect(),
            "F16" => pairs()
                .map(|b| bf16::from_f32(f16::from_bits(b).to_f32()))
                .collect(),
            _ => bytes
                .as_chunks::<4>()
                .0
                .iter()
                .map(|b| bf16::from_f32(f32::from_le_bytes(*b)))
                .collect(),
        })
    }
}
