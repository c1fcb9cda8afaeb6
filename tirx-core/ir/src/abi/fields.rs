//! The structures that packed arguments are made of: which field has which number, and the numbers of kinds.
//!
//! They are those of `tvm_struct_get` in TVM 0.26 and of DLPack.

use crate::ir::DType;

/// A field that `tvm_struct_get` reads (its third argument), of a tensor or of the argument array.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Field {
    /// Data pointer.
    Data,
    /// Pointer to the extents.
    Shape,
    /// Pointer to the strides; null for a compact tensor.
    Strides,
    /// Number of dimensions.
    Ndim,
    /// DLPack's type code of an element.
    TypeCode,
    /// Bits of an element.
    TypeBits,
    /// Lanes of an element.
    TypeLanes,
    /// Bytes from the data pointer to the first element.
    ByteOffset,
    /// Number of the device.
    DeviceId,
    /// DLPack's device type.
    DeviceType,
    /// Which kind of value an argument is.
    ArgType,
    /// Four bytes of an argument that are zero.
    Padding,
    /// An argument's value: 8 bytes, read as the call's dtype.
    ArgValue,
    /// An element of an array of `int64`.
    Int64Element,
}

impl Field {
    const NUMBERS: [(Field, i32); 14] = [
        (Field::Data, 1),
        (Field::Shape, 2),
        (Field::Strides, 3),
        (Field::Ndim, 4),
        (Field::TypeCode, 5),
        (Field::TypeBits, 6),
        (Field::TypeLanes, 7),
        (Field::ByteOffset, 8),
        (Field::DeviceId, 9),
        (Field::DeviceType, 10),
        (Field::ArgType, 13),
        (Field::Padding, 14),
        (Field::ArgValue, 15),
        (Field::Int64Element, 17),
    ];

    /// The field of a number.
    pub fn from_number(number: i128) -> Option<Field> {
        let found = Field::NUMBERS.iter().find(|(_, n)| i128::from(*n) == number);
        found.map(|(field, _)| *field)
    }

    /// Its number.
    pub fn number(self) -> i32 {
        let found = Field::NUMBERS.iter().find(|(field, _)| *field == self);
        found.map_or(0, |(_, number)| *number)
    }
}

/// What `Field::ArgType` gives for each kind of argument.
pub mod arg_type {
    /// Nothing; a null pointer.
    pub const NONE: i128 = 0;
    /// An integer.
    pub const INT: i128 = 1;
    /// A truth value.
    pub const BOOL: i128 = 2;
    /// A number.
    pub const FLOAT: i128 = 3;
    /// A pointer.
    pub const POINTER: i128 = 4;
    /// A pointer to a tensor's descriptor.
    pub const TENSOR_POINTER: i128 = 7;
    /// A C string.
    pub const STRING: i128 = 8;
    /// The first kind that is an object.
    pub const FIRST_OBJECT: i128 = 64;
    /// A tensor.
    pub const TENSOR: i128 = 70;
}

/// DLPack's number of the CUDA device type.
pub const DEVICE_CUDA: i128 = 2;

/// DLPack's code of a dtype's elements.
pub fn dlpack_code(dtype: DType) -> u8 {
    dtype.code.dlpack()
}
