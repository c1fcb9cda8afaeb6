//! The rules of a tensor map over numbers: of one that a caller encodes.

use super::{Encode, MAX_DIMENSIONS, modes_fit};
use crate::at;
use crate::fold::eval_int;
use crate::intrin::Op;
use crate::ir::{BinOp, DType, ELEMENT_TYPES, ElementType, Expr, ExprKind, Type, Var};
use crate::source::Span;

/// A tensor map of a caller: numbers in place of the expressions of [`Encode`].
#[derive(Clone, Copy, Debug)]
pub struct Numbers<'a> {
    /// `CUtensorMapDataType`.
    pub data_type: u32,
    /// Address of the first element.
    pub address: u64,
    /// Extents in elements, innermost first; as many as the rank.
    pub dims: &'a [u64],
    /// Bytes between indices of dimensions 1, 2, …
    pub strides: &'a [u64],
    /// Elements of a copy along each dimension.
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

impl Numbers<'_> {
    /// Checks the rules of a map.
    ///
    /// # Errors
    /// What is wrong, for the first rule that is broken.
    pub fn check(&self) -> Result<(), String> {
        let rank = self.dims.len();
        let arrays = [
            self.strides.len() + 1,
            self.box_dims.len(),
            self.element_strides.len(),
        ];
        if !(1..=MAX_DIMENSIONS).contains(&rank) || arrays != [rank; 3] {
            return Err(format!(
                "a tensor map has 1 to {MAX_DIMENSIONS} extents, one stride fewer, and as many box extents and element \
                 strides; found {rank}, {}, {} and {}",
                self.strides.len(),
                self.box_dims.len(),
                self.element_strides.len()
            ));
        }
        let dtype = elements(self.data_type);
        let dtype = dtype.ok_or_else(|| format!("{} is no data type of a tensor map", self.data_type))?;
        for (value, most, what) in [
            (self.interleave, 2, "interleave"),
            (self.swizzle, 3, "swizzle"),
            (self.l2_promotion, 3, "L2 promotion"),
            (self.oob_fill, 1, "fill"),
        ] {
            if value > most {
                return Err(format!("{value} is no {what} of a tensor map"));
            }
        }
        let modes = [self.interleave, self.swizzle, self.oob_fill].map(i128::from);
        modes_fit(rank, dtype, self.data_type, modes).map_err(|(_, message)| message)?;
        let number = |value: u64| Expr::constant(DType::UINT64, value.into());
        let wide = |values: &[u64]| values.iter().map(|value| number(*value)).collect();
        let narrow = |values: &[u32]| values.iter().map(|value| number((*value).into())).collect();
        let map = Var::new("map", Type::TensorMap);
        let encode = Encode {
            map: &map,
            dtype,
            data_type: self.data_type,
            address: number(self.address),
            dims: wide(self.dims),
            strides: wide(self.strides),
            box_dims: narrow(self.box_dims),
            element_strides: narrow(self.element_strides),
            interleave: modes[0],
            swizzle: modes[1],
            l2_promotion: 0,
            oob_fill: modes[2],
            span: Span::NONE,
        };
        for rule in encode.rules() {
            if value_of(&rule.condition) == Some(0) {
                let value = value_of(&rule.value).unwrap_or_default();
                return Err(format!("{} is {value}, expected {}", rule.field, rule.expected));
            }
        }
        Ok(())
    }
}

/// Values of `CUtensorMapDataType` that no element type has by itself: float32 that becomes something else on the way, and
/// float4 with eight bytes in a row.
const OTHER_DATA_TYPES: [(u32, &str); 4] = [
    (10, "float32"),
    (11, "float32"),
    (12, "float32"),
    (13, "float4_e2m1fn"),
];

/// The elements of a value of `CUtensorMapDataType`; of bits that have several types, the unsigned integer.
fn elements(data_type: u32) -> Option<DType> {
    let rows = || {
        ELEMENT_TYPES
            .iter()
            .filter(|row| row.tensor_map == Some(data_type))
    };
    let unsigned = rows().find(|row| row.dtype().is_uint()).or(rows().next());
    let other = || OTHER_DATA_TYPES.iter().find(|(number, _)| *number == data_type);
    let row = unsigned.or_else(|| ElementType::named(other()?.1))?;
    Some(row.dtype())
}

/// The value of an expression of constants.
fn value_of(e: &Expr) -> Option<i128> {
    match &e.kind {
        ExprKind::Int(value) => Some(*value),
        ExprKind::Cast(inner) => Some(e.dtype.wrap(value_of(inner)?)),
        ExprKind::Binary(BinOp::And, a, b) => Some(i128::from(value_of(a)? != 0 && value_of(b)? != 0)),
        ExprKind::Binary(op, a, b) => eval_int(*op, a.dtype, value_of(a)?, value_of(b)?),
        ExprKind::Call {
            op: Op::Reinterpret,
            args,
        } => value_of(args.get(at!(Reinterpret.value))?),
        _ => None,
    }
}
