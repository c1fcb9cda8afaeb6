//! Tensor maps: the arguments of `cuTensorMapEncodeTiled`, in the form that the copy engine reads.
//!
//! A map is 128 bytes that a kernel passes around by address, as on a GPU. The bytes here are the simulator's own ([`field`]). All
//! lie in the first half: kernels that are in production copy that alone (those of CuTe DSL that change maps).
//!
//! Source: CUDA driver API, "Tensor Map Object Management".

/// Most dimensions of a tensor map.
pub const MAX_DIMENSIONS: usize = 5;
/// Size of an encoded map.
pub const TENSOR_MAP_BYTES: usize = 128;
/// The NaN that fills elements beyond a tensor, in units of 16 bits whatever the type: of float32 it is `0x7ff7_7ff7`.
///
/// `fma` with `.oob` makes a product with it zero. Source: measured on an H200 with all float types.
pub const FILLING_NAN: u16 = 0x7ff7;

/// The first byte of a map, without the promotion to the L2 cache in its two low bits.
const MARK: u8 = 0xa4;

/// Where the fields of an encoded map are, for those who change them in place (`tensormap.replace`): each is aligned to its
/// size.
#[doc(hidden)]
pub mod field {
    /// A byte each: the type, the rank, the interleaving, the swizzle, the fill.
    pub const TYPE: u32 = 1;
    pub const RANK: u32 = 2;
    pub const INTERLEAVE: u32 = 3;
    pub const SWIZZLE: u32 = 4;
    pub const FILL: u32 = 5;
    /// 8 bits each; 0 stands for 256.
    pub const BOX_DIMS: u32 = 6;
    /// 8 bits each.
    pub const ELEMENT_STRIDES: u32 = 11;
    /// 64 bits.
    pub const ADDRESS: u32 = 16;
    /// 32 bits each; 0 stands for 2^32.
    pub const DIMS: u32 = 24;
    /// 40 bits each: the low 32, and after those of all the others.
    pub const STRIDES: u32 = 44;
    pub const HIGH_STRIDES: u32 = 60;
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
        let mut put = |at: u32, bytes: &[u8]| {
            let at = at as usize;
            out[at..at + bytes.len()].copy_from_slice(bytes);
        };
        put(0, &[MARK | self.l2_promotion & 3]);
        put(field::TYPE, &[self.dtype as u8]);
        put(field::RANK, &[self.rank().min(MAX_DIMENSIONS) as u8]);
        put(field::INTERLEAVE, &[self.interleave]);
        put(field::SWIZZLE, &[self.swizzle as u8]);
        put(field::FILL, &[self.nan_fill.into()]);
        put(field::ADDRESS, &self.address.to_le_bytes());
        let get = |list: &[u64], d: u32| list.get(d as usize).copied().unwrap_or(0);
        let narrow = |list: &[u32], d: u32| list.get(d as usize).copied().unwrap_or(1) as u8;
        for d in 0..MAX_DIMENSIONS as u32 {
            put(field::DIMS + 4 * d, &(get(&self.dims, d) as u32).to_le_bytes());
            put(field::BOX_DIMS + d, &[narrow(&self.box_dims, d)]);
            put(field::ELEMENT_STRIDES + d, &[narrow(&self.element_strides, d)]);
        }
        for d in 0..MAX_DIMENSIONS as u32 - 1 {
            let stride = get(&self.strides, d);
            put(field::STRIDES + 4 * d, &(stride as u32).to_le_bytes());
            put(field::HIGH_STRIDES + d, &[(stride >> 32) as u8]);
        }
        out
    }

    /// The map of its bytes; `None` for other bytes.
    pub fn decode(bytes: &[u8; TENSOR_MAP_BYTES]) -> Option<TensorMap> {
        let byte = |at: u32| bytes[at as usize];
        let take = |at: u32, count: u32| {
            (at..at + count)
                .rev()
                .fold(0, |value, at| value << 8 | u64::from(byte(at)))
        };
        let rank = u32::from(byte(field::RANK));
        if byte(0) & !3 != MARK || !(1..=MAX_DIMENSIONS as u32).contains(&rank) {
            return None;
        }
        let all_or = |value: u64, all: u64| if value == 0 { all } else { value };
        let stride = |d| take(field::STRIDES + 4 * d, 4) | u64::from(byte(field::HIGH_STRIDES + d)) << 32;
        Some(TensorMap {
            dtype: TensorMapType::from_value(byte(field::TYPE).into())?,
            address: take(field::ADDRESS, 8),
            dims: (0..rank)
                .map(|d| all_or(take(field::DIMS + 4 * d, 4), 1 << 32))
                .collect(),
            strides: (0..rank - 1).map(stride).collect(),
            box_dims: (0..rank)
                .map(|d| all_or(byte(field::BOX_DIMS + d).into(), 256) as u32)
                .collect(),
            element_strides: (0..rank)
                .map(|d| byte(field::ELEMENT_STRIDES + d).into())
                .collect(),
            interleave: byte(field::INTERLEAVE),
            swizzle: TensorMapSwizzle::from_value(byte(field::SWIZZLE).into())?,
            l2_promotion: byte(0) & 3,
            nan_fill: byte(field::FILL) != 0,
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
            dims: vec![4096, 1 << 32, 7],
            strides: vec![8192, 0xab_1234_5670],
            box_dims: vec![64, 256, 1],
            element_strides: vec![1, 2, 1],
            interleave: 0,
            swizzle: TensorMapSwizzle::Bytes128,
            l2_promotion: 2,
            nan_fill: true,
        };
        let bytes = map.encode();
        let word = |at: u32| u32::from_le_bytes(bytes[at as usize..][..4].try_into().unwrap());
        assert_eq!([word(field::ADDRESS), word(field::ADDRESS + 4)], [0x1200, 0x7000]);
        assert_eq!([word(field::DIMS), word(field::STRIDES + 4)], [4096, 0x1234_5670]);
        assert_eq!(
            [
                field::TYPE,
                field::RANK,
                field::SWIZZLE,
                field::FILL,
                field::BOX_DIMS,
                field::ELEMENT_STRIDES + 1,
                field::HIGH_STRIDES + 1
            ]
            .map(|at| bytes[at as usize]),
            [9, 3, 3, 1, 64, 2, 0xab]
        );
        assert_eq!(bytes[TENSOR_MAP_BYTES / 2..], [0; TENSOR_MAP_BYTES / 2]);
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
