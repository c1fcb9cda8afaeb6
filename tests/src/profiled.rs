//! A kernel that profiles its roles: its arguments.

use tirx_core::ir::DType;
use tirx_core::script::ConstValue;

use crate::asynchronous::Prepared;
use crate::machine::Argument;
use crate::{build, stages};

/// The names of its events by number.
pub const EVENTS: [&str; 3] = ["wait", "copy", "scale"];
/// Its blocks, its groups of threads in a block, and the tiles of each block.
pub const BLOCKS: u32 = 2;
/// Groups in a block.
pub const GROUPS: u32 = 2;
/// Tiles of a block.
pub const TILES: usize = 8;

const ROWS: usize = BLOCKS as usize * TILES * 64;
/// A header word, and for each group two records per event and one for the end.
const WORDS: usize = 1 + (BLOCKS * GROUPS) as usize * (TILES * 4 + 1);

/// The kernel, lowered, with its arguments: what it scales, the result, the records.
pub fn prepare(arch: &str) -> Result<Prepared, String> {
    let text = include_str!("../../kernels/profiled.py");
    let defines = [("M", ROWS), ("WORDS", WORDS)]
        .map(|(name, value)| (name.to_string(), ConstValue::Int(value as i128)))
        .into();
    let mut built = build("kernels/profiled.py", text, &["scale_profiled"], &defines)?;
    let (_, module) = built.pop().ok_or("no kernel")?;
    let module = stages(&module, arch, &mut |_, _| Ok(()))?;
    let tensor = |dtype, shape: Vec<i64>, bytes| Argument::Tensor { dtype, shape, bytes };
    let x: Vec<u8> = (0..ROWS * 32).flat_map(|i| (i as f32).to_le_bytes()).collect();
    let shape = vec![ROWS as i64, 32];
    let zeros = vec![0; x.len()];
    let arguments = vec![
        ("X".to_string(), tensor(DType::FLOAT32, shape.clone(), x)),
        ("Y".to_string(), tensor(DType::FLOAT32, shape, zeros)),
        (
            "P".to_string(),
            tensor(DType::UINT64, vec![WORDS as i64], vec![0; WORDS * 8]),
        ),
    ];
    Ok(Prepared::from_module(module, arguments))
}

/// The records, where the result is right.
pub fn records(contents: &[Vec<u8>]) -> Result<Vec<u64>, String> {
    let [_, y, records] = contents else {
        return Err("three tensors".to_string());
    };
    for (i, bytes) in y.chunks_exact(4).enumerate() {
        let value = f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        if value != i as f32 * 2.0 {
            return Err(format!("element {i} is {value}"));
        }
    }
    let words = records.as_chunks::<8>().0;
    Ok(words.iter().map(|word| u64::from_le_bytes(*word)).collect())
}
