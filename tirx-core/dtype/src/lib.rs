//! Element types: what a value is made of, and what its bits mean.
//!
//! | file | what |
//! |---|---|
//! | `dtype` | dtypes: kind of element, bits, lanes; ranges of integers |
//! | `element` | the table of element types: names in every language, numbers in tensor maps, formats |
//! | `float16` | float16 and bfloat16 as Rust types |
//! | `minifloat` | floats of four, six and eight bits; rounding to odd |
//! | `packed` | types of PTX's `cvt`: which dtype carries them, and what they pack |

#![forbid(unsafe_code)]

mod dtype;
mod element;
mod float16;
mod minifloat;
mod packed;

pub use dtype::{DType, TypeCode, UnknownDType};
pub use element::{AsmRegister, CudaVector, ELEMENT_TYPES, ElementType};
pub use float16::{bf16, f16};
pub use minifloat::{Minifloat, odd_f32, odd_f64};
pub use packed::{Element, FORMAT_NAMES, FORMATS, Format};
