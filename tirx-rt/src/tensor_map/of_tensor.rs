//! Tensor maps made from tensors.

use std::sync::Arc;

use crate::element::{Element, ElementType};
use crate::shape::Shape;
use crate::storage::Storage;
use crate::{AsTensor, Error, Result, Stream, TensorMap, TensorMapSpec};

/// How a copy permutes the 16-byte pieces of the box's rows in shared memory (`CUtensorMapSwizzle`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Swizzle {
    /// Rows as they are.
    #[default]
    None,
    /// Rows of at most 32 bytes.
    Bytes32,
    /// Rows of at most 64 bytes.
    Bytes64,
    /// Rows of at most 128 bytes.
    Bytes128,
}

/// A tensor map in the making: [`TensorMap::of`].
#[derive(Clone)]
#[must_use = "a map is made by `encode`"]
pub struct TensorMapBuilder {
    storage: Arc<Storage>,
    address: u64,
    shape: Shape,
    strides: Shape,
    element: ElementType,
    box_shape: Vec<u32>,
    steps: Option<Vec<u32>>,
    data_type: Option<u32>,
    interleave: u32,
    swizzle: Swizzle,
    l2_promotion: u32,
    nan_fill: bool,
}

impl TensorMap {
    /// The map of a tensor or a view, for a kernel that takes one as an argument. `box_shape` is what one copy moves. It and
    /// all other lists are in the order of the tensor's shape: the innermost dimension is the last. (The driver counts from the
    /// innermost one, and so do the coordinates of a copy.)
    ///
    /// The map keeps the tensor's memory, and a launch that takes the map is ordered among the other uses of the tensor.
    ///
    /// ```
    /// use tirx_rt::{Device, Swizzle, Tensor, TensorMap};
    /// # if cfg!(feature = "simulator") {
    /// let stream = Device::simulator().default_stream();
    /// let a = Tensor::<f32>::zeros(&stream, [64, 128])?;
    /// let map = TensorMap::of(&a, [16, 32]).swizzle(Swizzle::Bytes128).encode(&stream)?;
    /// // `kernels::copy(&stream, &map, …)`
    /// let error = TensorMap::of(&a, [16, 512]).encode(&stream).unwrap_err();
    /// assert_eq!(error.to_string(), "boxDim[0] is 512, expected from 1 to 256 elements");
    /// # }
    /// # Ok::<(), tirx_rt::Error>(())
    /// ```
    pub fn of<T: Element>(tensor: &impl AsTensor<T>, box_shape: impl Into<Vec<u32>>) -> TensorMapBuilder {
        let tensor = tensor.tensor();
        TensorMapBuilder {
            storage: tensor.storage().clone(),
            address: tensor.address(),
            shape: *tensor.shape_ref(),
            strides: *tensor.strides_ref(),
            element: T::TYPE,
            box_shape: box_shape.into(),
            steps: None,
            data_type: None,
            interleave: 0,
            swizzle: Swizzle::None,
            l2_promotion: 0,
            nan_fill: false,
        }
    }
}

impl TensorMapBuilder {
    /// The permutation in shared memory.
    pub fn swizzle(self, swizzle: Swizzle) -> TensorMapBuilder {
        TensorMapBuilder { swizzle, ..self }
    }

    /// Bytes that are fetched into the L2 cache together: 0, 64, 128 or 256.
    pub fn l2_promotion(self, bytes: u32) -> TensorMapBuilder {
        TensorMapBuilder {
            l2_promotion: bytes,
            ..self
        }
    }

    /// Fills what lies outside of the tensor with NaN in place of zeros.
    pub fn nan_fill(self) -> TensorMapBuilder {
        TensorMapBuilder {
            nan_fill: true,
            ..self
        }
    }

    /// Interleaving by 16 or 32 bytes; 0 is none.
    pub fn interleave(self, bytes: u32) -> TensorMapBuilder {
        TensorMapBuilder {
            interleave: bytes,
            ..self
        }
    }

    /// Steps in elements along each dimension, 1 of each without it.
    pub fn steps(self, steps: impl Into<Vec<u32>>) -> TensorMapBuilder {
        TensorMapBuilder {
            steps: Some(steps.into()),
            ..self
        }
    }

    /// Another `CUtensorMapDataType` than that of the tensor's elements, by its number: 11 (`TFLOAT32`) rounds float32 on the
    /// way, 13 and 14 are the packed forms of 4-bit elements (14 without it).
    pub fn data_type(self, number: u32) -> TensorMapBuilder {
        TensorMapBuilder {
            data_type: Some(number),
            ..self
        }
    }

    /// Encodes the map for the stream's device.
    ///
    /// # Errors
    /// [`Error::Shape`] where a rule of tensor maps is broken, with the driver's name of what breaks it; where the tensor is on
    /// another device, or has no elements. [`Error::Driver`] where the driver refuses.
    pub fn encode(self, stream: &Stream) -> Result<TensorMap> {
        if self.storage.device_id() != stream.device_id() {
            return Err(Error::Shape(format!(
                "the tensor is on {:?}, the stream on {:?}",
                self.storage.device(),
                stream.device()
            )));
        }
        if !self.storage.is_kept() {
            return Err(Error::Shape(
                "a tensor map keeps its memory, and memory borrowed from cudarc is not kept: give it to a tensor \
                 (`Tensor::from_cudarc`)"
                    .to_string(),
            ));
        }
        let rank = self.shape.len();
        if self.shape.contains(&0) {
            return Err(Error::Shape(format!(
                "a tensor of shape {:?} has no tensor map: it has no elements",
                self.shape
            )));
        }
        let bits = u64::from(self.element.bits);
        let (mut dims, mut strides): (Vec<u64>, Vec<u64>) = (Vec::new(), Vec::new());
        for (extent, stride) in self.shape.iter().zip(self.strides.iter()).rev() {
            dims.push(*extent as u64);
            strides.push(*stride as u64 * bits / 8);
        }
        if self.strides.last().is_some_and(|stride| *stride != 1) && dims.first() != Some(&1) {
            return Err(Error::Shape(format!(
                "a tensor map needs contiguous elements in the last dimension, but the strides are {:?}",
                self.strides
            )));
        }
        let mut box_dims = self.box_shape;
        box_dims.reverse();
        let mut steps = self.steps.unwrap_or_else(|| vec![1; rank]);
        steps.reverse();
        let map = TensorMap::encode(
            stream,
            &TensorMapSpec {
                data_type: self.data_type.unwrap_or_else(|| data_type(self.element)),
                address: self.address,
                dims: &dims,
                strides: strides.get(1..).unwrap_or_default(),
                box_dims: &box_dims,
                element_strides: &steps,
                interleave: number("interleave", self.interleave, &[0, 16, 32])?,
                swizzle: self.swizzle as u32,
                l2_promotion: number("L2 promotion", self.l2_promotion, &[0, 64, 128, 256])?,
                oob_fill: self.nan_fill.into(),
            },
        )?;
        Ok(TensorMap {
            storage: Some(self.storage),
            ..map
        })
    }
}

/// The driver's number of a mode that is given in bytes.
fn number(what: &str, bytes: u32, known: &[u32]) -> Result<u32> {
    let place = known.iter().position(|one| *one == bytes);
    let number = place.and_then(|place| u32::try_from(place).ok());
    number.ok_or_else(|| {
        Error::Shape(format!(
            "a tensor map has no {what} of {bytes} bytes, but of {known:?}"
        ))
    })
}

/// `CUtensorMapDataType` of an element type, which is one of those of [`Element`].
fn data_type(element: ElementType) -> u32 {
    match (element.code, element.bits) {
        (0, 32) => 3,
        (0, 64) => 5,
        (_, 4) => 14,
        (_, 8) => 0,
        (4, 16) => 9,
        (2, 16) => 6,
        (_, 16) => 1,
        (2, 32) => 7,
        (_, 32) => 2,
        (2, 64) => 8,
        _ => 4,
    }
}

#[cfg(all(test, feature = "simulator"))]
mod tests {
    use super::*;
    use crate::{Device, Float4E2m1, Tensor, bf16, f16};

    #[test]
    fn elements_have_the_numbers_of_the_table() {
        fn check<T: Element>() {
            let dtype: tirx_ir::DType = T::NAME.parse().unwrap();
            let row = tirx_ir::ElementType::from_dtype(dtype).unwrap();
            assert_eq!(Some(data_type(T::TYPE)), row.tensor_map, "{}", T::NAME);
        }
        check::<i8>();
        check::<i16>();
        check::<i32>();
        check::<i64>();
        check::<u8>();
        check::<u16>();
        check::<u32>();
        check::<u64>();
        check::<f16>();
        check::<f32>();
        check::<f64>();
        check::<bf16>();
        check::<bool>();
        check::<Float4E2m1>();
    }

    #[test]
    fn a_map_has_the_view_and_keeps_its_memory() {
        let stream = Device::simulator().default_stream();
        let a = Tensor::<f32>::zeros(&stream, [8, 64]).unwrap();
        let of = |tensor: &Tensor<f32>| TensorMap::of(tensor, [4, 16]).encode(&stream);
        let whole = of(&a).unwrap();
        let rows = of(&a.slice(0, 4..8).unwrap()).unwrap();
        assert!(whole != rows);
        let spec = TensorMapSpec {
            data_type: 7,
            address: a.address() + 4 * 64 * 4,
            dims: &[64, 4],
            strides: &[256],
            box_dims: &[16, 4],
            element_strides: &[1, 1],
            interleave: 0,
            swizzle: 0,
            l2_promotion: 0,
            oob_fill: 0,
        };
        assert!(rows == TensorMap::encode(&stream, &spec).unwrap());
        let storage = whole.storage.clone().unwrap();
        drop((a, whole, rows));
        assert_eq!(Arc::strong_count(&storage), 1);
    }

    #[test]
    fn what_no_map_has_is_an_error() {
        let stream = Device::simulator().default_stream();
        let a = Tensor::<f32>::zeros(&stream, [8, 64]).unwrap();
        let said = |builder: TensorMapBuilder| builder.encode(&stream).unwrap_err().to_string();
        let narrow = Tensor::<f32>::zeros(&stream, [8, 3]).unwrap();
        let empty = Tensor::<f32>::zeros(&stream, [0, 64]).unwrap();
        for (builder, part) in [
            (TensorMap::of(&a, [8]), "found 2, 1, 1 and 2"),
            (
                TensorMap::of(&a, [8, 64]).swizzle(Swizzle::Bytes128),
                "at most 128 bytes",
            ),
            (
                TensorMap::of(&a, [8, 16]).l2_promotion(96),
                "no L2 promotion of 96 bytes",
            ),
            (TensorMap::of(&a, [8, 16]).data_type(15), "15 is no data type"),
            (TensorMap::of(&a, [8, 16]).interleave(16), "at least 3 dimensions"),
            (TensorMap::of(&a, [8, 16]).steps([9, 1]), "elementStrides[1] is 9"),
            (TensorMap::of(&narrow, [8, 4]), "globalStrides[0] is 12"),
            (TensorMap::of(&empty, [8, 16]), "has no elements"),
            (
                TensorMap::of(&a.permute(&[1, 0]).unwrap(), [16, 8]),
                "the strides are [1, 64]",
            ),
        ] {
            let text = said(builder);
            assert!(text.contains(part), "{part}: {text}");
        }
    }
}
