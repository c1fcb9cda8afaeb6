//! Tensor maps of host functions: the parsed `call_packed("runtime.cuTensorMapEncodeTiled", …)`, and the rules that its
//! arguments must satisfy.
//!
//! ```text
//! A_map: T.let[T.TensorMap()] = T.tvm_stack_alloca("tensormap", 1)
//! T.call_packed("runtime.cuTensorMapEncodeTiled", A_map, dtype, rank, address,
//!               shape…, strides in bytes of dimensions 1…, box…, element strides…,
//!               interleave, swizzle, L2 promotion, fill out of bounds [, data type of the driver])
//! ```
//!
//! Dimension 0 is the innermost one. The rules are those of the CUDA driver API, "Tensor Map Object Management", and of
//! TVM 0.26's runtime. They are given as conditions over the host function's expressions, so that every printer and the
//! simulator check the same; a rule that is known to fail at compile time is an error of MakePackedAPI.

mod numbers;

pub use self::numbers::Numbers;

use crate::at;
use crate::diagnostic::Diagnostic;
use crate::intrin::Op;
use crate::ir::{BinOp, DType, ELEMENT_TYPES, ElementType, Expr, ExprKind, Var};
use crate::source::Span;

/// The packed function that encodes a tensor map.
pub const ENCODE: &str = "runtime.cuTensorMapEncodeTiled";

/// Most dimensions of a tensor map.
pub const MAX_DIMENSIONS: usize = 5;

/// `CUtensorMapDataType` of a dtype's elements.
fn data_type(dtype: DType) -> Option<u32> {
    ElementType::from_dtype(dtype)
        .filter(|_| dtype.is_scalar())?
        .tensor_map
}

/// Whether tensor maps have elements of a dtype.
pub fn has_data_type(dtype: DType) -> bool {
    data_type(dtype).is_some()
}

/// `CU_TENSOR_MAP_DATA_TYPE_TFLOAT32`.
const TFLOAT32: u32 = 11;
/// `CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN8B`: two float4 to a byte in shared memory too.
const DENSE_FLOAT4: u32 = 13;
/// `CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN16B`.
const PACKED_FLOAT4: u32 = 14;

/// A tensor map that the host encodes.
#[derive(Clone, Debug)]
pub struct Encode<'a> {
    /// The variable of the map.
    pub map: &'a Var,
    /// Element dtype.
    pub dtype: DType,
    /// `CUtensorMapDataType`.
    pub data_type: u32,
    /// Address of the first element.
    pub address: Expr,
    /// Extents in elements, innermost first; as many as the rank.
    pub dims: Vec<Expr>,
    /// Bytes between indices of dimensions 1, 2, …
    pub strides: Vec<Expr>,
    /// Elements of a copy along each dimension.
    pub box_dims: Vec<Expr>,
    /// Steps in elements along each dimension.
    pub element_strides: Vec<Expr>,
    /// `CUtensorMapInterleave`.
    pub interleave: i128,
    /// `CUtensorMapSwizzle`.
    pub swizzle: i128,
    /// `CUtensorMapL2promotion`.
    pub l2_promotion: i128,
    /// `CUtensorMapFloatOOBfill`.
    pub oob_fill: i128,
    /// The span of the call.
    pub span: Span,
}

/// A rule of a map that holds where `condition` does.
#[derive(Clone, Debug)]
pub struct Rule {
    /// What must hold.
    pub condition: Expr,
    /// What the rule is about: `globalStrides[0]`.
    pub field: String,
    /// Its value.
    pub value: Expr,
    /// What it must be: `a multiple of 16 bytes`.
    pub expected: String,
}

/// Reads the arguments of a packed call (its name first). `None` for another function.
///
/// # Errors
/// Where an argument is missing or invalid.
pub fn encode<'a>(args: &'a [Expr], span: Span) -> Option<Result<Encode<'a>, Box<Diagnostic>>> {
    let name = args.get(at!(TvmCallPacked.func_name))?.as_str()?;
    (name == ENCODE).then(|| parse(&args[at!(TvmCallPacked.args)..], span))
}

fn parse(args: &[Expr], span: Span) -> Result<Encode<'_>, Box<Diagnostic>> {
    let fail = |at: Span, message: String| Err(Box::new(Diagnostic::new(at.or(span), message)));
    let [map, dtype_text, rank_expr, address, rest @ ..] = args else {
        return fail(
            span,
            format!(
                "{ENCODE} takes a tensor map, a dtype, the rank, an address, and the map's arrays and modes"
            ),
        );
    };
    let Some(map) = map.as_var().filter(|v| v.ty().is_tensor_map()) else {
        let help = "A_map: T.let[T.handle(\"tensormap\")] = T.tvm_stack_alloca(\"tensormap\", 1)";
        let message = "the first argument must be a variable that holds a tensor map";
        return Err(Box::new(
            Diagnostic::new(map.span.or(span), message).help(format!("declare it: `{help}`")),
        ));
    };
    let dtype = dtype_text.as_str().and_then(|text| text.parse::<DType>().ok());
    let known = dtype.and_then(|dtype| Some((dtype, data_type(dtype)?)));
    let Some((dtype, mut data_type)) = known else {
        let known = ELEMENT_TYPES.iter().filter(|row| row.tensor_map.is_some());
        let all: Vec<&str> = known.map(|row| row.name).collect();
        return fail(
            dtype_text.span,
            format!("a tensor map has elements of one of {}", all.join(", ")),
        );
    };
    let rank = match constant(rank_expr) {
        Some(rank @ 1..=5) => rank as usize,
        Some(rank) => {
            return fail(
                rank_expr.span,
                format!("a tensor map has 1 to {MAX_DIMENSIONS} dimensions, this one has {rank}"),
            );
        }
        None => return fail(rank_expr.span, "the rank of a tensor map must be constant".into()),
    };
    let arrays = rank * 4 - 1;
    if rest.len() != arrays + 4 && rest.len() != arrays + 5 {
        return fail(
            span,
            format!(
                "a tensor map of rank {rank} takes {rank} extents, {} strides, {rank} box extents, {rank} element \
                 strides and 4 modes after the address ({} values), found {}",
                rank - 1,
                arrays + 4,
                rest.len()
            ),
        );
    }
    let (dims, tail) = rest.split_at(rank);
    let (strides, tail) = tail.split_at(rank - 1);
    let (box_dims, tail) = tail.split_at(rank);
    let (element_strides, modes) = tail.split_at(rank);
    let mode = |position: usize, name: &str, most: i128, meaning: &str| match constant(&modes[position]) {
        Some(value) if (0..=most).contains(&value) => Ok(value),
        Some(value) => {
            let message = format!("the {name} of a tensor map is 0 to {most} ({meaning}), found {value}");
            Err(Box::new(Diagnostic::new(modes[position].span.or(span), message)))
        }
        None => {
            let message = format!("the {name} of a tensor map must be constant");
            Err(Box::new(Diagnostic::new(modes[position].span.or(span), message)))
        }
    };
    let interleave = mode(0, "interleave", 2, "none, 16 bytes, 32 bytes")?;
    let swizzle = mode(1, "swizzle", 3, "none, 32, 64, 128 bytes")?;
    let l2_promotion = mode(2, "L2 promotion", 3, "none, 64, 128, 256 bytes")?;
    let oob_fill = mode(3, "fill out of bounds", 1, "zeros, NaN")?;
    match modes.get(4).map(|forced| (constant(forced), forced.span)) {
        None | Some((Some(-1), _)) => {}
        Some((forced, at)) => {
            let other = match (dtype, data_type) {
                (DType::FLOAT32, _) => TFLOAT32,
                (_, PACKED_FLOAT4) => DENSE_FLOAT4,
                _ => data_type,
            };
            match forced.and_then(|number| u32::try_from(number).ok()) {
                Some(number) if [data_type, other].contains(&number) => data_type = number,
                _ => {
                    return fail(
                        at,
                        format!(
                            "a data type can be {TFLOAT32} (tfloat32) in a map of float32, and {DENSE_FLOAT4} (16U4_ALIGN8B) \
                             or {PACKED_FLOAT4} (16U4_ALIGN16B) in a map of float4_e2m1fn"
                        ),
                    );
                }
            }
        }
    }
    if let Err((mode, message)) = modes_fit(rank, dtype, data_type, [interleave, swizzle, oob_fill]) {
        return fail(modes[[0, 1, 3][mode]].span, message);
    }
    Ok(Encode {
        map,
        dtype,
        data_type,
        address: address.clone(),
        dims: dims.to_vec(),
        strides: strides.to_vec(),
        box_dims: box_dims.to_vec(),
        element_strides: element_strides.to_vec(),
        interleave,
        swizzle,
        l2_promotion,
        oob_fill,
        span,
    })
}

/// The error of a launch with blocks that takes the tensor map of a tensor without elements.
pub fn without_elements(map: &str) -> String {
    format!("tensor map `{map}`: its tensor has no elements, and the launch has blocks, which need a map")
}

/// Whether interleave, swizzle and fill go with one another and with the elements; else the number of the one that does not,
/// and why.
fn modes_fit(
    rank: usize,
    dtype: DType,
    data_type: u32,
    [interleave, swizzle, oob_fill]: [i128; 3],
) -> Result<(), (usize, String)> {
    let packed = data_type == PACKED_FLOAT4;
    if interleave != 0 && rank < 3 {
        let message = format!("an interleaved tensor map has at least 3 dimensions, this one has {rank}");
        return Err((0, message));
    }
    if interleave == 2 && swizzle != 1 {
        let message = format!("interleaving by 32 bytes needs the swizzle of 32 bytes (1), found {swizzle}");
        return Err((0, message));
    }
    if oob_fill == 1 && (!dtype.is_floating() || packed || data_type == 0) {
        let message =
            format!("NaN fills tensor maps of float16, bfloat16, float32 and float64 only, not of {dtype}");
        return Err((2, message));
    }
    if packed && !matches!(swizzle, 0 | 3) {
        let message = "a tensor map of packed float4 has no swizzle or that of 128 bytes";
        return Err((1, message.into()));
    }
    Ok(())
}

impl Encode<'_> {
    /// Whether the tensor has no elements: a condition, `None` where it always has some. No map of it can be encoded, and a
    /// launch that needs none, one without blocks, is no error.
    pub fn is_empty(&self) -> Option<Expr> {
        let open = self
            .dims
            .iter()
            .filter(|dim| constant(dim).is_none_or(|extent| extent == 0));
        let empty = open.map(|dim| equal(&wide(dim), 0));
        empty.reduce(|a, b| Expr::binary(BinOp::Or, a, b))
    }

    /// The map with its numbers computed in 64 bits, whatever the dtype of their parts: a stride of `n * 4` does not
    /// wrap where `n` is an int32. `named` gives the value of a name that the host binds to arithmetic.
    pub fn exact(mut self, named: &dyn Fn(&Expr) -> Expr) -> Self {
        let numbers = [
            &mut self.dims,
            &mut self.strides,
            &mut self.box_dims,
            &mut self.element_strides,
        ];
        for number in numbers.into_iter().flatten() {
            *number = wide(&named(number));
        }
        if let Some(args) = self.address.as_call(Op::HandleAddByteOffset) {
            let mut args = args.to_vec();
            if let Some(offset) = args.get_mut(at!(HandleAddByteOffset.byte_offset)) {
                *offset = wide(&named(offset));
            }
            self.address = Expr::call(Op::HandleAddByteOffset, self.address.dtype, args);
        }
        self
    }

    /// The rules over values, in the order in which they are checked.
    pub fn rules(&self) -> Vec<Rule> {
        let packed = self.data_type == PACKED_FLOAT4;
        let alignment = if packed || self.interleave == 2 { 32 } else { 16 };
        let mut rules = Vec::new();
        let mut rule = |condition: Expr, field: String, value: Expr, expected: String| {
            rules.push(Rule {
                condition,
                field,
                value,
                expected,
            });
        };
        let address = Expr::call(Op::Reinterpret, DType::UINT64, vec![self.address.clone()]);
        rule(
            multiple_of(&address, alignment),
            "globalAddress".into(),
            address,
            format!("a multiple of {alignment} bytes"),
        );
        for (i, dim) in self.dims.iter().enumerate() {
            let dim = wide(dim);
            rule(
                within(&dim, 1, 1 << 32),
                format!("globalDim[{i}]"),
                dim.clone(),
                "from 1 to 2^32".into(),
            );
            if self.data_type == DENSE_FLOAT4 && i == 0 {
                rule(
                    multiple_of(&dim, 2),
                    format!("globalDim[{i}]"),
                    dim.clone(),
                    "a multiple of 2 float4 elements".into(),
                );
            }
            if packed && i == 0 {
                rule(
                    multiple_of(&dim, 128),
                    format!("globalDim[{i}]"),
                    dim,
                    "a multiple of 128 packed float4 elements".into(),
                );
            }
        }
        for (i, stride) in self.strides.iter().enumerate() {
            let stride = wide(stride);
            let field = format!("globalStrides[{i}]");
            rule(
                within(&stride, 0, (1 << 40) - 1),
                field.clone(),
                stride.clone(),
                "from 0 to 2^40 - 1 bytes".into(),
            );
            let condition = multiple_of(&stride, alignment);
            rule(
                condition,
                field,
                stride,
                format!("a multiple of {alignment} bytes"),
            );
        }
        for (i, extent) in self.box_dims.iter().enumerate() {
            let extent = wide(extent);
            rule(
                within(&extent, 1, 256),
                format!("boxDim[{i}]"),
                extent,
                "from 1 to 256 elements".into(),
            );
        }
        for (i, step) in self.element_strides.iter().enumerate() {
            let step = wide(step);
            let field = format!("elementStrides[{i}]");
            match i {
                0 => rule(
                    equal(&step, 1),
                    field,
                    step,
                    "1, as of every innermost dimension".into(),
                ),
                _ => rule(within(&step, 1, 8), field, step, "from 1 to 8".into()),
            }
        }
        let inner = wide(&self.box_dims[0]);
        if packed {
            rule(
                equal(&inner, 128),
                "boxDim[0]".into(),
                inner,
                "128 packed float4 elements".into(),
            );
        } else if self.interleave == 0 {
            let inner = match self.dtype.bits {
                bits @ 0..8 => Expr::binary(BinOp::FloorDiv, inner, Expr::int64(8 / i64::from(bits.max(1)))),
                bits => Expr::binary(BinOp::Mul, inner, Expr::int64(i64::from(bits / 8))),
            };
            rule(
                multiple_of(&inner, 16),
                "the innermost box".into(),
                inner.clone(),
                "a multiple of 16 bytes".into(),
            );
            if self.swizzle != 0 {
                let span = 16i128 << self.swizzle;
                rule(
                    Expr::binary(BinOp::Le, inner.clone(), Expr::int64(span as i64)),
                    "the innermost box".into(),
                    inner,
                    format!("at most {span} bytes, the span of its swizzle"),
                );
            }
        }
        rules
    }
}

/// A constant, also in the widened form of LowerTVMBuiltin.
fn constant(e: &Expr) -> Option<i128> {
    match &e.kind {
        ExprKind::Cast(inner) => constant(inner),
        _ => e.as_int(),
    }
}

/// Converted to `int64` before the first operation. Unsigned arithmetic wraps on purpose, and so does a cast to fewer
/// bits.
fn wide(e: &Expr) -> Expr {
    use BinOp::{Add, Div, FloorDiv, FloorMod, Max, Min, Mod, Mul, Sub};
    match &e.kind {
        ExprKind::Int(v) => Expr::int64(*v as i64),
        _ if !e.dtype.is_int() => e.clone().cast(DType::INT64),
        ExprKind::Binary(op @ (Add | Sub | Mul | Div | Mod | FloorDiv | FloorMod | Min | Max), a, b) => {
            Expr::binary(*op, wide(a), wide(b)).at(e.span)
        }
        ExprKind::Cast(inner) if inner.dtype.is_int() && inner.dtype.bits <= e.dtype.bits => wide(inner),
        ExprKind::Call {
            op: op @ (Op::ShiftLeft | Op::ShiftRight),
            args,
        } => Expr::call(*op, DType::INT64, args.iter().map(wide).collect()),
        ExprKind::Call {
            op: Op::IfThenElse,
            args,
        } if args.len() == 3 => {
            let mut args = args.to_vec();
            for place in [at!(IfThenElse.t), at!(IfThenElse.f)] {
                if let Some(value) = args.get_mut(place) {
                    *value = wide(value);
                }
            }
            Expr::call(Op::IfThenElse, DType::INT64, args)
        }
        _ => e.clone().cast(DType::INT64),
    }
}

fn constant_like(e: &Expr, value: i128) -> Expr {
    Expr::constant(e.dtype, value)
}

fn equal(e: &Expr, value: i128) -> Expr {
    Expr::binary(BinOp::Eq, e.clone(), constant_like(e, value))
}

fn multiple_of(e: &Expr, value: i128) -> Expr {
    let remainder = Expr::binary(BinOp::FloorMod, e.clone(), constant_like(e, value));
    equal(&remainder, 0)
}

fn within(e: &Expr, low: i128, high: i128) -> Expr {
    let at_least = Expr::binary(BinOp::Ge, e.clone(), constant_like(e, low));
    let at_most = Expr::binary(BinOp::Le, e.clone(), constant_like(e, high));
    Expr::binary(BinOp::And, at_least, at_most)
}
