//! Encoding of tensor maps by the driver.

use cudarc::driver::{CudaStream, sys};

use super::failed;
use crate::tensor_map::TensorMapSpec;
use crate::{Error, Result};

/// The driver's enumerations by their numbers.
const DATA_TYPES: [sys::CUtensorMapDataType; 15] = {
    use sys::CUtensorMapDataType::*;
    [
        CU_TENSOR_MAP_DATA_TYPE_UINT8,
        CU_TENSOR_MAP_DATA_TYPE_UINT16,
        CU_TENSOR_MAP_DATA_TYPE_UINT32,
        CU_TENSOR_MAP_DATA_TYPE_INT32,
        CU_TENSOR_MAP_DATA_TYPE_UINT64,
        CU_TENSOR_MAP_DATA_TYPE_INT64,
        CU_TENSOR_MAP_DATA_TYPE_FLOAT16,
        CU_TENSOR_MAP_DATA_TYPE_FLOAT32,
        CU_TENSOR_MAP_DATA_TYPE_FLOAT64,
        CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,
        CU_TENSOR_MAP_DATA_TYPE_FLOAT32_FTZ,
        CU_TENSOR_MAP_DATA_TYPE_TFLOAT32,
        CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ,
        CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN8B,
        CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN16B,
    ]
};
const INTERLEAVES: [sys::CUtensorMapInterleave; 3] = {
    use sys::CUtensorMapInterleave::*;
    [
        CU_TENSOR_MAP_INTERLEAVE_NONE,
        CU_TENSOR_MAP_INTERLEAVE_16B,
        CU_TENSOR_MAP_INTERLEAVE_32B,
    ]
};
const SWIZZLES: [sys::CUtensorMapSwizzle; 4] = {
    use sys::CUtensorMapSwizzle::*;
    [
        CU_TENSOR_MAP_SWIZZLE_NONE,
        CU_TENSOR_MAP_SWIZZLE_32B,
        CU_TENSOR_MAP_SWIZZLE_64B,
        CU_TENSOR_MAP_SWIZZLE_128B,
    ]
};
const PROMOTIONS: [sys::CUtensorMapL2promotion; 4] = {
    use sys::CUtensorMapL2promotion::*;
    [
        CU_TENSOR_MAP_L2_PROMOTION_NONE,
        CU_TENSOR_MAP_L2_PROMOTION_L2_64B,
        CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
        CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
    ]
};
const FILLS: [sys::CUtensorMapFloatOOBfill; 2] = {
    use sys::CUtensorMapFloatOOBfill::*;
    [
        CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
        CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA,
    ]
};

fn named<T: Copy>(all: &[T], number: u32, what: &str) -> Result<T> {
    let found = all.get(number as usize).copied();
    found.ok_or_else(|| Error::Shape(format!("{number} is no {what} of a tensor map")))
}

/// Encodes a map. The arrays have the lengths that the rank requires.
pub(crate) fn encode(stream: &CudaStream, spec: &TensorMapSpec<'_>) -> Result<[u64; 16]> {
    let context = stream.context();
    context.bind_to_thread().map_err(failed("binding the context"))?;
    let data_type = named(&DATA_TYPES, spec.data_type, "data type")?;
    let interleave = named(&INTERLEAVES, spec.interleave, "interleave")?;
    let swizzle = named(&SWIZZLES, spec.swizzle, "swizzle")?;
    let promotion = named(&PROMOTIONS, spec.l2_promotion, "L2 promotion")?;
    let fill = named(&FILLS, spec.oob_fill, "fill")?;
    // `CUtensorMap` is aligned to 64 bytes.
    let mut map = sys::CUtensorMap { opaque: [0; 16] };
    // SAFETY: the arrays hold as many elements as the rank says (one stride fewer); the driver reads them and writes
    // `map` during the call.
    let status = unsafe {
        sys::cuTensorMapEncodeTiled(
            &mut map,
            data_type,
            spec.dims.len() as u32,
            spec.address as *mut std::ffi::c_void,
            spec.dims.as_ptr(),
            spec.strides.as_ptr(),
            spec.box_dims.as_ptr(),
            spec.element_strides.as_ptr(),
            interleave,
            swizzle,
            promotion,
            fill,
        )
    };
    status.result().map_err(failed("encoding a tensor map"))?;
    Ok(map.opaque)
}
