//! Tensor maps: the arguments of `cuTensorMapEncodeTiled`, in the form that the copy engine reads.
//!
//! A map is 128 bytes that a kernel passes around by address, as on a GPU. The bytes here are the simulator's own: a
//! mark, the global address, extents, strides, box, element strides, and one byte for each mode.
//!
//! Source: CUDA driver API, "Tensor Map Object Management".

/// Most dimensions of a tensor map.
pub const MOST_DIMENSIONS: usize = 5;
/// Size of an encoded map.
pub const TENSOR_MAP_BYTES: usize = 128;

const MARK: [u8; 4] = *b"tmap";

/// Where the fields of an encoded map are, for those who change them in place (`tensormap.replace`): each is aligned to its
/// size.
#[doc(hidden)]
pub mod field {
    /// A byte each: the type, the rank, the interleaving, the swizzle, the promotion, the fill.
    pub const TYPE: u32 = 4;
    pub const RANK: u32 = 5;
    pub const INTERLEAVE: u32 = 6;
    pub const SWIZZLE: u32 = 7;
    pub const FILL: u32 = 9;
    /// 64 bits each.
    pub const ADDRESS: u32 = 16;
    pub const DIMS: u32 = 24;
    pub const STRIDES: u32 = 64;
    /// 16 bits each.
    pub const BOX_DIMS: u32 = 96;
    pub const ELEMENT_STRIDES: u32 = 106;
}

/// Type of the elements, in the order of `CUtensorMapDataType`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
#[allow(missing_docs, reason = "the names say it")]
pub enum TensorMapType {
    Uint8,
    Uint16,
    Uint32,
    Int32,
    Uint64,
    Int64,
    Float16,
    Float32,
    Float64,
    Bfloat16,
    Float32Ftz,
    TFloat32,
    TFloat32Ftz,
    /// Sixteen 4-bit elements in 8 bytes.
    U4Align8,
    /// Sixteen 4-bit elements in 16 bytes of shared memory.
    U4Align16,
    /// Sixteen 6-bit elements in 16 bytes of shared memory.
    U6Align16,
}

impl TensorMapType {
    const ALL: [TensorMapType; 16] = [
        TensorMapType::Uint8,
        TensorMapType::Uint16,
        TensorMapType::Uint32,
        TensorMapType::Int32,
        TensorMapType::Uint64,
        TensorMapType::Int64,
        TensorMapType::Float16,
        TensorMapType::Float32,
        TensorMapType::Float64,
        TensorMapType::Bfloat16,
        TensorMapType::Float32Ftz,
        TensorMapType::TFloat32,
        TensorMapType::TFloat32Ftz,
        TensorMapType::U4Align8,
        TensorMapType::U4Align16,
        TensorMapType::U6Align16,
    ];

    /// Bits of an element in global memory.
    pub fn bits(self) -> u32 {
        match self {
            TensorMapType::U4Align8 | TensorMapType::U4Align16 => 4,
            TensorMapType::U6Align16 => 6,
            TensorMapType::Uint8 => 8,
            TensorMapType::Uint16 | TensorMapType::Float16 | TensorMapType::Bfloat16 => 16,
            TensorMapType::Uint64 | TensorMapType::Int64 | TensorMapType::Float64 => 64,
            _ => 32,
        }
    }

    /// The type of a value of `CUtensorMapDataType`.
    pub fn from_value(value: u32) -> Option<TensorMapType> {
        TensorMapType::ALL.get(value as usize).copied()
    }
}

/// `CUtensorMapSwizzle`: how the 16-byte pieces of a row of the box are permuted in shared memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
#[allow(missing_docs, reason = "the names say it")]
pub enum TensorMapSwizzle {
    #[default]
    None,
    Bytes32,
    Bytes64,
    Bytes128,
}

impl TensorMapSwizzle {
    /// The mode of a value of `CUtensorMapSwizzle`.
    pub fn from_value(value: u32) -> Option<TensorMapSwizzle> {
        let all = [
            TensorMapSwizzle::None,
            TensorMapSwizzle::Bytes32,
            TensorMapSwizzle::Bytes64,
            TensorMapSwizzle::Bytes128,
        ];
        all.get(value as usize).copied()
    }

    /// Bytes of a line, empty without swizzle: for messages.
    pub(crate) fn name(self) -> &'static str {
        ["", "32", "64", "128"][self as usize]
    }

    /// Bytes after which the pattern repeats.
    pub(crate) fn repeat(self) -> u32 {
        128 << self as u32
    }

    /// Where the byte at `address` of shared memory goes: bits 4.. are xored with bits 7.. .
    pub fn apply(self, address: u32) -> u32 {
        let bits = self as u32;
        address ^ (address >> 7 & ((1 << bits) - 1)) << 4
    }
}

/// The arguments of `cuTensorMapEncodeTiled`. Dimension 0 is the innermost one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorMap {
    /// Type of the elements.
    pub dtype: TensorMapType,
    /// Address of the first element in global memory.
    pub address: u64,
    /// Extents in elements, 1 to 5 of them: the rank.
    pub dims: Vec<u64>,
    /// Bytes from one index to the next of dimensions 1, 2, …: one fewer than the rank.
    pub strides: Vec<u64>,
    /// Elements that a copy traverses along each dimension.
    pub box_dims: Vec<u32>,
    /// Steps in elements along each dimension: ones for a dense box.
    pub element_strides: Vec<u32>,
    /// `CUtensorMapInterleave`: 0 none, 1 16 bytes, 2 32 bytes.
    pub interleave: u8,
    /// How shared memory is permuted.
    pub swizzle: TensorMapSwizzle,
    /// `CUtensorMapL2promotion`; nothing here depends on it.
    pub l2_promotion: u8,
    /// Whether elements beyond the tensor read as NaN instead of zero.
    pub nan_fill: bool,
}

impl TensorMap {
    /// Number of dimensions.
    pub fn rank(&self) -> usize {
        self.dims.len()
    }

    /// The bytes of the map, as a kernel receives them.
    pub fn encode(&self) -> [u8; TENSOR_MAP_BYTES] {
        let mut out = [0; TENSOR_MAP_BYTES];
        let rank = self.rank().min(MOST_DIMENSIONS);
        let mut at = 0;
        let mut put = |bytes: &[u8]| {
            out[at..at + bytes.len()].copy_from_slice(bytes);
            at += bytes.len();
        };
        put(&MARK);
        let fill = self.nan_fill as u8;
        let (dtype, swizzle) = (self.dtype as u8, self.swizzle as u8);
        put(&[
            dtype,
            rank as u8,
            self.interleave,
            swizzle,
            self.l2_promotion,
            fill,
        ]);
        put(&[0; field::ADDRESS as usize - field::FILL as usize - 1]);
        put(&self.address.to_le_bytes());
        let get = |list: &[u64], i: usize| list.get(i).copied().unwrap_or(0);
        let narrow = |list: &[u32], i: usize| list.get(i).copied().unwrap_or(1);
        for d in 0..MOST_DIMENSIONS {
            put(&get(&self.dims, d).to_le_bytes());
        }
        for d in 0..MOST_DIMENSIONS - 1 {
            put(&get(&self.strides, d).to_le_bytes());
        }
        for d in 0..MOST_DIMENSIONS {
            put(&(narrow(&self.box_dims, d) as u16).to_le_bytes());
        }
        for d in 0..MOST_DIMENSIONS {
            put(&(narrow(&self.element_strides, d) as u16).to_le_bytes());
        }
        out
    }

    /// The map of its bytes; `None` for other bytes.
    pub fn decode(bytes: &[u8; TENSOR_MAP_BYTES]) -> Option<TensorMap> {
        let mut at = 0;
        let mut take = |count: usize| {
            let bytes = &bytes[at..at + count];
            at += count;
            bytes
                .iter()
                .rev()
                .fold(0, |value: u64, b| value << 8 | u64::from(*b))
        };
        if take(4) != u64::from(u32::from_le_bytes(MARK)) {
            return None;
        }
        let dtype = TensorMapType::from_value(take(1) as u32)?;
        let rank = take(1) as usize;
        if !(1..=MOST_DIMENSIONS).contains(&rank) {
            return None;
        }
        let interleave = take(1) as u8;
        let swizzle = TensorMapSwizzle::from_value(take(1) as u32)?;
        let l2_promotion = take(1) as u8;
        let nan_fill = take(1) != 0;
        take(field::ADDRESS as usize - field::FILL as usize - 1);
        let address = take(8);
        let mut dims: Vec<u64> = (0..MOST_DIMENSIONS).map(|_| take(8)).collect();
        let mut strides: Vec<u64> = (0..MOST_DIMENSIONS - 1).map(|_| take(8)).collect();
        let mut box_dims: Vec<u32> = (0..MOST_DIMENSIONS).map(|_| take(2) as u32).collect();
        let mut element_strides: Vec<u32> = (0..MOST_DIMENSIONS).map(|_| take(2) as u32).collect();
        dims.truncate(rank);
        strides.truncate(rank - 1);
        box_dims.truncate(rank);
        element_strides.truncate(rank);
        Some(TensorMap {
            dtype,
            address,
            dims,
            strides,
            box_dims,
            element_strides,
            interleave,
            swizzle,
            l2_promotion,
            nan_fill,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_map_survives_its_bytes() {
        let map = TensorMap {
            dtype: TensorMapType::Bfloat16,
            address: 0x7000_0000_1200,
            dims: vec![4096, 300, 7],
            strides: vec![8192, 8192 * 300],
            box_dims: vec![64, 128, 1],
            element_strides: vec![1, 2, 1],
            interleave: 0,
            swizzle: TensorMapSwizzle::Bytes128,
            l2_promotion: 2,
            nan_fill: true,
        };
        let bytes = map.encode();
        let word = |at: u32| u64::from_le_bytes(bytes[at as usize..][..8].try_into().unwrap());
        assert_eq!(word(field::ADDRESS), map.address);
        assert_eq!([word(field::DIMS + 8), word(field::STRIDES)], [300, 8192]);
        let half = |at: u32| u16::from_le_bytes(bytes[at as usize..][..2].try_into().unwrap());
        assert_eq!([half(field::BOX_DIMS), half(field::ELEMENT_STRIDES + 2)], [64, 2]);
        assert_eq!(
            [field::TYPE, field::RANK, field::SWIZZLE, field::FILL].map(|at| bytes[at as usize]),
            [9, 3, 3, 1]
        );
        assert_eq!(TensorMap::decode(&bytes), Some(map));
        assert_eq!(TensorMap::decode(&[0; TENSOR_MAP_BYTES]), None);
    }

    #[test]
    fn a_swizzle_permutes_pieces_of_16_bytes() {
        assert_eq!(TensorMapSwizzle::Bytes128.apply(0x0080), 0x0090);
        assert_eq!(TensorMapSwizzle::Bytes128.apply(0x0384), 0x03f4);
        assert_eq!(TensorMapSwizzle::Bytes64.apply(0x0384), 0x03b4);
        assert_eq!(TensorMapSwizzle::Bytes32.apply(0x0184), 0x0194);
        assert_eq!(TensorMapSwizzle::None.apply(0x0384), 0x0384);
    }
}
