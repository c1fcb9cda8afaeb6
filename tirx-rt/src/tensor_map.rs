//! Tensor maps: how a kernel's bulk copies see a tensor, encoded on the host.
//!
//! A map is 128 opaque bytes. On a GPU the driver's `cuTensorMapEncodeTiled` makes them; on the simulator they are the
//! simulator's own. Generated launchers check the rules of a map first (a broken one is named) and keep what they
//! encoded, so that a launch with the same tensors encodes nothing. Where a kernel takes a map as an argument, the program
//! makes it: with [`TensorMap::of`] from a tensor, or with [`TensorMap::tiled`] from numbers.

mod of_tensor;

use std::sync::{Arc, Mutex, PoisonError};

pub use self::of_tensor::{Swizzle, TensorMapBuilder};
use crate::cuda;
use crate::device::{Stream, StreamKind};
use crate::storage::Storage;
use crate::{Error, Result};

/// Size of an encoded map in 8-byte words.
const WORDS: usize = 16;

/// An encoded tensor map: `CUtensorMap`.
#[derive(Clone)]
#[repr(C, align(64))]
pub struct TensorMap {
    words: [u64; WORDS],
    device: i32,
    /// Of a map that was made from a tensor: launches with the map use its memory.
    storage: Option<Arc<Storage>>,
    /// Of a tensor without elements, which has no map: the error of a launch that needs one.
    missing: Option<&'static str>,
}

impl PartialEq for TensorMap {
    fn eq(&self, other: &TensorMap) -> bool {
        (self.words, self.device, self.missing) == (other.words, other.device, other.missing)
    }
}
impl Eq for TensorMap {}

impl std::fmt::Debug for TensorMap {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "TensorMap(device {})", self.device)
    }
}

/// The arguments of `cuTensorMapEncodeTiled`. Dimension 0 is the innermost one; modes are numbered as in the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TensorMapSpec<'a> {
    /// `CUtensorMapDataType`.
    pub data_type: u32,
    /// Address of the first element.
    pub address: u64,
    /// Extents in elements, 1 to 5 of them.
    pub dims: &'a [u64],
    /// Bytes from one index to the next of dimensions 1, 2, …
    pub strides: &'a [u64],
    /// Elements that a copy traverses along each dimension.
    pub box_dims: &'a [u32],
    /// Steps in elements along each dimension.
    pub element_strides: &'a [u32],
    /// `CUtensorMapInterleave`.
    pub interleave: u32,
    /// `CUtensorMapSwizzle`.
    pub swizzle: u32,
    /// `CUtensorMapL2promotion`.
    pub l2_promotion: u32,
    /// `CUtensorMapFloatOOBfill`.
    pub oob_fill: u32,
}

impl TensorMapSpec<'_> {
    /// Checks the rules of a map. Without the feature `simulator` only the lengths of the arrays: the driver checks the rest.
    fn check(&self) -> std::result::Result<(), String> {
        #[cfg(feature = "simulator")]
        return tirx_ir::abi::tensor_map::Numbers {
            data_type: self.data_type,
            address: self.address,
            dims: self.dims,
            strides: self.strides,
            box_dims: self.box_dims,
            element_strides: self.element_strides,
            interleave: self.interleave,
            swizzle: self.swizzle,
            l2_promotion: self.l2_promotion,
            oob_fill: self.oob_fill,
        }
        .check();
        #[cfg(not(feature = "simulator"))]
        {
            let rank = self.dims.len();
            let arrays = [
                self.strides.len() + 1,
                self.box_dims.len(),
                self.element_strides.len(),
            ];
            match (1..=5).contains(&rank) && arrays == [rank; 3] {
                true => Ok(()),
                false => Err("a tensor map has 1 to 5 extents, one stride fewer, and as many box extents and element strides".into()),
            }
        }
    }
}

impl TensorMap {
    /// Encodes a map for the stream's device, of memory that the caller keeps and whose uses it orders itself; see
    /// [`TensorMap::of`] for one that does both.
    ///
    /// # Errors
    /// [`Error::Shape`] where a rule of tensor maps is broken, [`Error::Driver`] where the driver refuses.
    ///
    /// # Safety
    /// On a GPU: whenever a kernel that takes the map runs, the memory from `address` on is as large as the map says, and no
    /// other work uses it in a way that the kernel does not allow.
    pub unsafe fn tiled(stream: &Stream, spec: &TensorMapSpec<'_>) -> Result<TensorMap> {
        TensorMap::encode(stream, spec)
    }

    pub(crate) fn encode(stream: &Stream, spec: &TensorMapSpec<'_>) -> Result<TensorMap> {
        spec.check().map_err(Error::Shape)?;
        let words = match &stream.0 {
            StreamKind::Cuda(stream) => cuda::tensor_map::encode(stream, spec)?,
            #[cfg(feature = "simulator")]
            StreamKind::Simulator(_) => crate::simulator::encode_tensor_map(spec)?,
        };
        Ok(TensorMap {
            words,
            device: stream.device_id(),
            storage: None,
            missing: None,
        })
    }

    /// In generated code: the map of a tensor without elements. A launch with blocks gives the error.
    #[doc(hidden)]
    pub const fn without_elements(error: &'static str) -> TensorMap {
        TensorMap {
            words: [0; WORDS],
            device: i32::MIN,
            storage: None,
            missing: Some(error),
        }
    }

    /// Why it cannot be used by a launch with blocks.
    pub(crate) fn missing(&self) -> Option<&'static str> {
        self.missing
    }

    /// The memory of the tensor that it was made from.
    pub(crate) fn storage(&self) -> Option<&Arc<Storage>> {
        self.storage.as_ref()
    }

    /// The encoded bytes as words.
    pub(crate) fn words(&self) -> &[u64; WORDS] {
        &self.words
    }

    /// The number of the device it was encoded for.
    pub fn device_id(&self) -> i32 {
        self.device
    }
}

/// The inputs that a cached map was encoded from.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Key {
    device: i32,
    modes: [u32; 5],
    address: u64,
    dims: [u64; 5],
    strides: [u64; 4],
    box_dims: [u32; 5],
    element_strides: [u32; 5],
}

impl Key {
    fn from_spec(device: i32, spec: &TensorMapSpec<'_>) -> Key {
        fn padded<T: Copy + Default, const N: usize>(values: &[T]) -> [T; N] {
            let mut all = [T::default(); N];
            for (slot, value) in all.iter_mut().zip(values) {
                *slot = *value;
            }
            all
        }
        Key {
            device,
            modes: [
                spec.data_type,
                spec.interleave,
                spec.swizzle,
                spec.l2_promotion,
                spec.oob_fill,
            ],
            address: spec.address,
            dims: padded(spec.dims),
            strides: padded(spec.strides),
            box_dims: padded(spec.box_dims),
            element_strides: padded(spec.element_strides),
        }
    }
}

/// The tensor maps that one call site has encoded, most recently used first. Generated code keeps one in a `static`.
pub struct TensorMapCache {
    entries: Mutex<Vec<(Key, TensorMap)>>,
}

/// Most cached maps; a launcher that cycles through more tensors encodes again.
const KEPT: usize = 16;

impl TensorMapCache {
    /// An empty cache.
    pub const fn new() -> TensorMapCache {
        TensorMapCache {
            entries: Mutex::new(Vec::new()),
        }
    }

    /// In generated code: the map of `spec`, encoded if it is not known. Its rules have been checked, and its memory is that of
    /// tensors of the launch that takes the map.
    ///
    /// # Errors
    /// [`Error::Check`] where the driver refuses all the same.
    #[doc(hidden)]
    pub fn encode(
        &self,
        stream: &Stream,
        kernel: &'static str,
        name: &str,
        spec: &TensorMapSpec<'_>,
    ) -> Result<TensorMap> {
        let key = Key::from_spec(stream.device_id(), spec);
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = entries.iter().position(|(known, _)| *known == key) {
            entries.swap(0, at);
            return Ok(entries[0].1.clone());
        }
        let map = TensorMap::encode(stream, spec).map_err(|error| Error::Check {
            kernel,
            message: format!("tensor map `{name}`: {error} ({spec:?})"),
        })?;
        entries.truncate(KEPT - 1);
        entries.insert(0, (key, map.clone()));
        Ok(map)
    }
}

impl Default for TensorMapCache {
    fn default() -> TensorMapCache {
        TensorMapCache::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Device;

    fn spec<'a>(dims: &'a [u64], strides: &'a [u64], box_dims: &'a [u32]) -> TensorMapSpec<'a> {
        TensorMapSpec {
            data_type: 7,
            address: 0x1000,
            dims,
            strides,
            box_dims,
            element_strides: &[1, 1],
            interleave: 0,
            swizzle: 0,
            l2_promotion: 0,
            oob_fill: 0,
        }
    }

    #[test]
    fn arrays_must_fit_each_other() {
        let stream = Device::simulator().default_stream();
        let error = TensorMap::encode(&stream, &spec(&[8, 8], &[], &[8, 8])).unwrap_err();
        assert!(error.to_string().contains("found 2, 0, 2 and 2"), "{error}");
    }

    #[test]
    fn a_map_is_encoded_once_for_the_same_tensor() {
        let stream = Device::simulator().default_stream();
        let cache = TensorMapCache::new();
        let first = cache
            .encode(&stream, "k", "A_map", &spec(&[8, 8], &[32], &[8, 8]))
            .unwrap();
        let again = cache
            .encode(&stream, "k", "A_map", &spec(&[8, 8], &[32], &[8, 8]))
            .unwrap();
        let other = cache
            .encode(&stream, "k", "A_map", &spec(&[8, 16], &[32], &[8, 8]))
            .unwrap();
        assert!(first == again && first != other);
        assert_eq!(cache.entries.lock().unwrap().len(), 2);
        for rows in 0..40 {
            let dims = [8, rows + 1];
            cache
                .encode(&stream, "k", "A_map", &spec(&dims, &[32], &[8, 8]))
                .unwrap();
        }
        assert_eq!(cache.entries.lock().unwrap().len(), KEPT);
    }
}
