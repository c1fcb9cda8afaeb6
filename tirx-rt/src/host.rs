//! Support for generated host functions: arguments as a packed call sees them, and their errors.
//!
//! Called by generated code only.

use std::fmt::Display;
use std::sync::Arc;

use crate::element::{Element, ElementType};
use crate::shape::Shape;
use crate::storage::{Storage, Turn};
use crate::{AsTensor, AsTensorMut, Error, Result, Stream, Tensor, TensorMap};

/// An argument of a packed call.
#[derive(Clone, Copy)]
pub struct Arg<'a>(ArgKind<'a>);

#[derive(Clone, Copy)]
enum ArgKind<'a> {
    Tensor(TensorArg<'a>),
    Int(i64),
    Float(f64),
    Bool(bool),
    TensorMap(&'a TensorMap),
}

#[derive(Clone, Copy)]
struct TensorArg<'a> {
    storage: &'a Arc<Storage>,
    shape: &'a Shape,
    /// As the launcher takes them.
    strides: Shape,
    /// Whether its strides are those of a compact tensor, also in dimensions of extent 1: a tensor map takes these, too.
    compact: bool,
    data: u64,
    byte_offset: u64,
    element: ElementType,
}

impl<'a> Arg<'a> {
    /// A tensor; the offset of a view is part of its address.
    #[inline]
    pub fn tensor<T: Element>(tensor: &'a impl AsTensor<T>) -> Arg<'a> {
        let tensor = tensor.tensor();
        Arg::new(tensor, tensor.address(), 0)
    }

    /// A tensor that the kernel writes.
    #[inline]
    pub fn tensor_mut<T: Element>(tensor: &'a mut impl AsTensorMut<T>) -> Arg<'a> {
        Arg::tensor(tensor.tensor_mut())
    }

    /// A tensor as base address and byte offset, for parameters with a declared `elem_offset`.
    #[inline]
    pub fn tensor_at_base<T: Element>(tensor: &'a impl AsTensor<T>) -> Arg<'a> {
        let tensor = tensor.tensor();
        let base = tensor.storage().address();
        Arg::new(tensor, base, tensor.address() - base)
    }

    /// As [`Arg::tensor_at_base`], for a tensor that the kernel writes.
    #[inline]
    pub fn tensor_mut_at_base<T: Element>(tensor: &'a mut impl AsTensorMut<T>) -> Arg<'a> {
        Arg::tensor_at_base(tensor.tensor_mut())
    }

    #[inline]
    fn new<T: Element>(tensor: &'a Tensor<T>, data: u64, byte_offset: u64) -> Arg<'a> {
        let (shape, mut strides) = (tensor.shape_ref(), *tensor.strides_ref());
        // A kernel may take contiguous rows alone, as those of one element are.
        if shape.last() == Some(&1) {
            strides = strides.replaced(shape.len() - 1, 1);
        }
        Arg(ArgKind::Tensor(TensorArg {
            storage: tensor.storage(),
            shape,
            strides,
            compact: strides == shape.compact_strides() || shape.contains(&0),
            data,
            byte_offset,
            element: T::TYPE,
        }))
    }

    /// An integer.
    #[inline]
    pub fn int(value: i64) -> Arg<'a> {
        Arg(ArgKind::Int(value))
    }

    /// A number.
    #[inline]
    pub fn float(value: f64) -> Arg<'a> {
        Arg(ArgKind::Float(value))
    }

    /// A truth value.
    #[inline]
    pub fn bool(value: bool) -> Arg<'a> {
        Arg(ArgKind::Bool(value))
    }

    /// A tensor map.
    #[inline]
    pub fn tensor_map(map: &'a TensorMap) -> Arg<'a> {
        Arg(ArgKind::TensorMap(map))
    }

    /// The tensor map.
    ///
    /// # Errors
    /// For another kind of argument, which generated code does not pass.
    #[inline]
    pub fn as_tensor_map(&self) -> Result<&'a TensorMap> {
        match self.0 {
            ArgKind::TensorMap(map) => Ok(map),
            _ => Err(Error::Shape("an argument is not a tensor map".to_string())),
        }
    }

    /// The type index of TVM's FFI: 1 int, 2 bool, 3 float, 4 pointer, 70 tensor.
    #[inline]
    pub fn type_index(&self) -> i32 {
        match self.0 {
            ArgKind::Tensor(_) => 70,
            ArgKind::Int(_) => 1,
            ArgKind::Bool(_) => 2,
            ArgKind::Float(_) => 3,
            ArgKind::TensorMap(_) => 4,
        }
    }

    /// The value as an integer: the bits of the packed call's 8-byte slot.
    #[inline]
    pub fn as_i64(&self) -> i64 {
        match self.0 {
            ArgKind::Int(v) => v,
            ArgKind::Bool(v) => v as i64,
            ArgKind::Float(v) => v as i64,
            ArgKind::Tensor(t) => t.data as i64,
            ArgKind::TensorMap(_) => 0,
        }
    }

    /// The value as a number.
    #[inline]
    pub fn as_f64(&self) -> f64 {
        match self.0 {
            ArgKind::Int(v) => v as f64,
            ArgKind::Bool(v) => v as i64 as f64,
            ArgKind::Float(v) => v,
            ArgKind::Tensor(_) | ArgKind::TensorMap(_) => f64::NAN,
        }
    }

    /// The memory that the argument refers to.
    #[inline]
    fn storage(&self) -> Option<&'a Arc<Storage>> {
        match self.0 {
            ArgKind::Tensor(tensor) => Some(tensor.storage),
            ArgKind::TensorMap(map) => map.storage(),
            _ => None,
        }
    }

    #[inline]
    fn as_tensor(&self) -> Option<&TensorArg<'a>> {
        match &self.0 {
            ArgKind::Tensor(t) => Some(t),
            _ => None,
        }
    }

    /// Dimensions; 0 for a scalar.
    #[inline]
    pub fn ndim(&self) -> i32 {
        self.as_tensor().map_or(0, |t| t.shape.len() as i32)
    }

    /// Extent of dimension `i`; 0 where there is none.
    #[inline]
    pub fn shape(&self, i: usize) -> i64 {
        self.as_tensor()
            .and_then(|t| t.shape.get(i))
            .map_or(0, |e| *e as i64)
    }

    /// Stride of dimension `i` in elements; 0 where there is none.
    #[inline]
    pub fn stride(&self, i: usize) -> i64 {
        self.as_tensor()
            .and_then(|t| t.strides.get(i))
            .map_or(0, |s| *s as i64)
    }

    /// Whether the tensor is compact row-major, so that its strides need no check.
    #[inline]
    pub fn strides_is_null(&self) -> bool {
        self.as_tensor().is_none_or(|t| t.compact)
    }

    /// Device address.
    #[inline]
    pub fn data(&self) -> u64 {
        self.as_tensor().map_or(0, |t| t.data)
    }

    /// Bytes from the address to the first element.
    #[inline]
    pub fn byte_offset(&self) -> u64 {
        self.as_tensor().map_or(0, |t| t.byte_offset)
    }

    /// DLPack's type code.
    #[inline]
    pub fn dtype_code(&self) -> u8 {
        self.as_tensor().map_or(0, |t| t.element.code)
    }

    /// Bits of an element.
    #[inline]
    pub fn dtype_bits(&self) -> u8 {
        self.as_tensor().map_or(0, |t| t.element.bits)
    }

    /// Lanes of an element: 1.
    #[inline]
    pub fn dtype_lanes(&self) -> u16 {
        1
    }

    /// DLPack's device type: 2, CUDA. A simulator reports the type of a CUDA device.
    #[inline]
    pub fn device_type(&self) -> i32 {
        2
    }

    /// The device's number (see [`crate::Device::id`]).
    #[inline]
    pub fn device_id(&self) -> i32 {
        self.as_tensor().map_or(0, |t| t.storage.device_id())
    }
}

/// The error of a failed check.
#[cold]
pub fn mismatch(
    kernel: &'static str,
    index: u32,
    argument: &'static str,
    field: &'static str,
    expected: impl Display,
    actual: impl Display,
) -> Error {
    Error::Argument {
        kernel,
        index,
        argument,
        field,
        expected: expected.to_string(),
        actual: actual.to_string(),
    }
}

/// The error of a check that is not about one argument.
#[cold]
pub fn check_failed(kernel: &'static str, message: impl Display) -> Error {
    Error::Check {
        kernel,
        message: message.to_string(),
    }
}

/// The error of a tensor map that breaks a rule.
#[cold]
pub fn tensor_map_rule(
    kernel: &'static str,
    map: &'static str,
    field: &'static str,
    expected: &'static str,
    actual: impl Display,
) -> Error {
    Error::Check {
        kernel,
        message: format!("tensor map `{map}`: {field} is {actual}, expected {expected}"),
    }
}

/// The error for a specialization that was requested at run time and not built.
#[cold]
pub fn not_built(kernel: &'static str, requested: impl Display, built: &'static [&'static str]) -> Error {
    Error::NotBuilt {
        kernel,
        requested: requested.to_string(),
        built,
    }
}

/// A launch extent as the driver takes it.
///
/// # Errors
/// [`Error::Launch`] for one that is negative or does not fit.
#[inline]
pub fn extent(kernel: &'static str, what: &'static str, value: i64) -> Result<u32> {
    u32::try_from(value).map_err(|_| Error::Launch {
        kernel,
        message: format!("{what} would be {value}"),
    })
}

/// A 64-bit integer for launch extents and checks; `None` after overflow or division by zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wide(Option<i64>);

impl From<i64> for Wide {
    #[inline]
    fn from(value: i64) -> Wide {
        Wide(Some(value))
    }
}

macro_rules! wide {
    ($($(#[$doc:meta])* $name:ident: |$a:ident, $b:ident| $value:expr;)*) => {
        #[allow(clippy::should_implement_trait, reason = "generated code calls them by name")]
        impl Wide {
            $($(#[$doc])*
            #[inline]
            #[must_use]
            pub fn $name(self, other: Wide) -> Wide {
                let (Some($a), Some($b)) = (self.0, other.0) else {
                    return Wide(None);
                };
                Wide($value)
            })*
        }
    };
}

wide! {
    /// The sum.
    add: |a, b| a.checked_add(b);
    /// The difference.
    sub: |a, b| a.checked_sub(b);
    /// The product.
    mul: |a, b| a.checked_mul(b);
    /// The quotient, rounded to zero.
    div: |a, b| a.checked_div(b);
    /// The remainder of [`Wide::div`].
    rem: |a, b| a.checked_rem(b);
    /// The quotient, rounded to minus infinity.
    floor_div: |a, b| a.checked_div(b).map(|q| q - i64::from(a % b != 0 && (a < 0) != (b < 0)));
    /// The remainder of [`Wide::floor_div`].
    floor_mod: |a, b| a.checked_rem(b).map(|r| if r != 0 && (r < 0) != (b < 0) { r + b } else { r });
    /// The smaller.
    min: |a, b| Some(a.min(b));
    /// The larger.
    max: |a, b| Some(a.max(b));
}

impl Wide {
    /// An unsigned value.
    #[inline]
    #[must_use]
    pub fn unsigned(value: u64) -> Wide {
        Wide(i64::try_from(value).ok())
    }

    /// Selects one of two.
    #[inline]
    #[must_use]
    pub fn choose(condition: bool, then: Wide, otherwise: Wide) -> Wide {
        if condition { then } else { otherwise }
    }

    /// Whether it equals this number; false after overflow.
    #[inline]
    #[must_use]
    pub fn equals(self, other: Wide) -> bool {
        self.0.is_some() && self.0 == other.0
    }

    /// Whether both are valid and it is less than or equal to the other.
    #[inline]
    #[must_use]
    pub fn at_most(self, other: Wide) -> bool {
        matches!((self.0, other.0), (Some(a), Some(b)) if a <= b)
    }

    /// Whether both are valid and it is less than the other.
    #[inline]
    #[must_use]
    pub fn below(self, other: Wide) -> bool {
        matches!((self.0, other.0), (Some(a), Some(b)) if a < b)
    }

    /// The number; `None` after overflow or division by zero.
    #[inline]
    #[must_use]
    pub fn get(self) -> Option<i64> {
        self.0
    }
}

impl Display for Wide {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            Some(value) => value.fmt(f),
            None => f.write_str("more than 64 bits hold"),
        }
    }
}

/// A launch extent as the driver takes it, from its value, its expression and the values of the expression's variables.
///
/// # Errors
/// [`Error::LaunchExtent`] for one that is negative or does not fit.
#[inline]
pub fn launch_extent(
    kernel: &'static str,
    what: &'static str,
    value: Wide,
    expression: &'static str,
    values: &[(&'static str, Wide)],
) -> Result<u32> {
    match value.0.map(u32::try_from) {
        Some(Ok(extent)) => Ok(extent),
        _ => Err(bad_extent(kernel, what, value, expression, values)),
    }
}

#[cold]
fn bad_extent(
    kernel: &'static str,
    what: &'static str,
    value: Wide,
    expression: &'static str,
    values: &[(&'static str, Wide)],
) -> Error {
    Error::LaunchExtent {
        kernel,
        what,
        value: value.0,
        expression,
        values: values
            .iter()
            .filter_map(|(name, value)| Some((*name, value.0?)))
            .collect(),
    }
}

/// The smaller float: the second, if a value is NaN or both are equal.
#[inline]
#[must_use]
pub fn min<T: PartialOrd>(a: T, b: T) -> T {
    if a < b { a } else { b }
}

/// The larger float: the second, if a value is NaN or both are equal.
#[inline]
#[must_use]
pub fn max<T: PartialOrd>(a: T, b: T) -> T {
    if a > b { a } else { b }
}

macro_rules! divisions {
    ($($(#[$doc:meta])* $name:ident: $ty:ty, $method:ident, $adjust:expr;)*) => {$(
        $(#[$doc])*
        ///
        /// # Errors
        /// [`Error::Check`] for a division by zero (or one that overflows).
        #[inline]
        pub fn $name(kernel: &'static str, a: $ty, b: $ty) -> Result<$ty> {
            let adjust: fn($ty, $ty, $ty) -> $ty = $adjust;
            a.$method(b)
                .map(|value| adjust(value, a, b))
                .ok_or_else(|| check_failed(kernel, format_args!("{a} divided by {b}")))
        }
    )*};
}

divisions! {
    /// `a / b`, rounded to zero.
    trunc_div: i64, checked_div, |q, _, _| q;
    /// The remainder of [`trunc_div`].
    trunc_mod: i64, checked_rem, |r, _, _| r;
    /// `a / b`, rounded to minus infinity.
    floor_div: i64, checked_div, |q, a, b| if a % b != 0 && (a < 0) != (b < 0) { q - 1 } else { q };
    /// The remainder of [`floor_div`].
    floor_mod: i64, checked_rem, |r, _, b| if r != 0 && (r < 0) != (b < 0) { r + b } else { r };
    /// The quotient of unsigned integers.
    unsigned_div: u64, checked_div, |q, _, _| q;
    /// The remainder of unsigned integers.
    unsigned_mod: u64, checked_rem, |r, _, _| r;
}

/// Before a launch: the tensors are on the stream's device, and the stream waits for earlier work on them.
///
/// Keep the result until the launches have been made.
///
/// # Errors
/// [`Error::Argument`] for the first tensor on another device.
#[inline]
pub fn begin<'s>(
    stream: &'s Stream,
    args: &[Arg<'_>],
    names: &[&'static str],
    kernel: &'static str,
) -> Result<Launching<'s>> {
    let device = stream.device_id();
    for (index, arg) in args.iter().enumerate() {
        match &arg.0 {
            ArgKind::TensorMap(map) if map.device_id() != device => {
                let argument = names.get(index).copied().unwrap_or("?");
                let (expected, actual) = (device, map.device_id());
                return Err(mismatch(
                    kernel,
                    index as u32,
                    argument,
                    "device_id",
                    expected,
                    actual,
                ));
            }
            ArgKind::Tensor(tensor) if tensor.storage.device_id() != device => {
                return Err(wrong_device(stream, tensor, index, names, kernel));
            }
            _ => {}
        }
    }
    let turn = Storage::order(args.iter().filter_map(Arg::storage), stream)?;
    #[cfg(feature = "simulator")]
    if stream.device_id() < 0 {
        let tensors = || args.iter().filter_map(|arg| arg.as_tensor());
        let mut windows: Vec<_> = tensors().filter_map(TensorArg::window).collect();
        // The simulator finds an argument's window by its address. A whole tensor that begins where a part of it begins has none.
        windows.retain(|(data, _)| tensors().all(|t| t.data != *data || t.window().is_some()));
        crate::simulator::set_windows(windows);
    }
    Ok(Launching { _turn: turn })
}

/// Alive while launches with checked arguments are made.
pub struct Launching<'a> {
    _turn: Turn<'a>,
}

#[cfg(feature = "simulator")]
impl Drop for Launching<'_> {
    fn drop(&mut self) {
        crate::simulator::set_windows(Vec::new());
    }
}

#[cfg(feature = "simulator")]
impl TensorArg<'_> {
    /// On the simulator, the part of its allocation that the tensor covers, where that is not all of it.
    fn window(&self) -> Option<(u64, tirx_sim::Window)> {
        let bits = u32::from(self.element.bits);
        let elements = self.shape.elements()?;
        let bytes = (elements as u64 * u64::from(bits)).div_ceil(8);
        let first = self.data + self.byte_offset;
        let whole = self.compact
            && first == self.storage.address()
            && bytes == self.storage.simulated_bytes()? as u64;
        let window = || tirx_sim::Window::new(first, bits, self.shape, &self.strides);
        (!whole).then(|| (self.data, window()))
    }
}

#[cold]
fn wrong_device(
    stream: &Stream,
    tensor: &TensorArg<'_>,
    index: usize,
    names: &[&'static str],
    kernel: &'static str,
) -> Error {
    let argument = names.get(index).copied().unwrap_or("?");
    let (expected, actual) = (stream.device(), tensor.storage.device());
    mismatch(
        kernel,
        index as u32,
        argument,
        "device",
        format!("{expected:?}"),
        format!("{actual:?}"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn divisions_round_as_named_and_never_panic() {
        assert_eq!(floor_div("k", -7, 2).ok(), Some(-4));
        assert_eq!(floor_mod("k", -7, 2).ok(), Some(1));
        assert_eq!(trunc_div("k", -7, 2).ok(), Some(-3));
        assert_eq!(trunc_mod("k", -7, 2).ok(), Some(-1));
        let error = floor_div("k", 5, 0).unwrap_err();
        assert_eq!(error.to_string(), "kernel `k`: 5 divided by 0");
        assert!(floor_div("k", i64::MIN, -1).is_err());
    }

    #[test]
    fn extents_must_fit() {
        assert_eq!(extent("k", "blockIdx.x", 7).ok(), Some(7));
        let error = extent("k", "blockIdx.x", -1).unwrap_err();
        assert_eq!(error.to_string(), "kernel `k`: blockIdx.x would be -1");
    }

    #[test]
    fn launch_extents_are_computed_in_64_bits() {
        let n = Wide::from(65536);
        let blocks = |n: Wide| n.mul(n).add(Wide::from(255)).floor_div(Wide::from(256));
        let extent =
            |n: Wide| launch_extent("k", "blockIdx.x", blocks(n), "T.ceildiv(n * n, 256)", &[("n", n)]);
        assert_eq!(extent(n).ok(), Some(16_777_216));
        let error = extent(Wide::from(1 << 31)).unwrap_err();
        assert_eq!(
            error.to_string(),
            "kernel `k` cannot be launched: blockIdx.x, `T.ceildiv(n * n, 256)`, would be 18014398509481984 \
             (n = 2147483648)"
        );
        let error = extent(Wide::from(1 << 40)).unwrap_err();
        assert!(
            error
                .to_string()
                .contains("does not fit 64 bits (n = 1099511627776)"),
            "{error}"
        );
        assert_eq!(Wide::from(-7).floor_mod(Wide::from(2)), Wide::from(1));
        let nothing = Wide::from(1).div(Wide::from(0));
        assert_eq!(nothing, Wide(None));
        assert!(n.equals(n) && n.at_most(n) && !n.below(n));
        assert!(!nothing.equals(nothing) && !nothing.at_most(n) && !n.below(nothing));
        assert_eq!(format!("{n} {nothing}"), "65536 more than 64 bits hold");
    }
}
