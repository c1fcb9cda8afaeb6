use super::*;
use crate::ir::{Buffer, ExprKind, Var};

const NAMES: [&str; 17] = [
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "float16",
    "float32",
    "float64",
    "bfloat16",
    "bool",
    "float8_e4m3fn",
    "float8_e5m2",
    "float6_e2m3fn",
    "float4_e2m1fn",
];
const SHORT: [&str; 17] = [
    "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "f16", "f32", "f64", "bf", "b", "e4", "e5", "f6",
    "f4",
];
/// The dtype of `a + b` for each pair, as TVM 0.26 gives it; `-` where it refuses.
const SUM: [&str; 17] = [
    // i8
    "i8 i16 i32 i64 u8 u16 u32 u64 f16 f32 f64 bf i8 e4 e5 f6 f4",
    // i16
    "i16 i16 i32 i64 i16 u16 u32 u64 f16 f32 f64 bf i16 e4 e5 f6 f4",
    // i32
    "i32 i32 i32 i64 i32 i32 u32 u64 f16 f32 f64 bf i32 e4 e5 f6 f4",
    // i64
    "i64 i64 i64 i64 i64 i64 i64 u64 f16 f32 f64 bf i64 e4 e5 f6 f4",
    // u8
    "u8 i16 i32 i64 u8 u16 u32 u64 f16 f32 f64 bf u8 e4 e5 f6 f4",
    // u16
    "u16 u16 i32 i64 u16 u16 u32 u64 f16 f32 f64 bf u16 e4 e5 f6 f4",
    // u32
    "u32 u32 u32 i64 u32 u32 u32 u64 f16 f32 f64 bf u32 e4 e5 f6 f4",
    // u64
    "u64 u64 u64 u64 u64 u64 u64 u64 f16 f32 f64 bf u64 e4 e5 f6 f4",
    // f16
    "f16 f16 f16 f16 f16 f16 f16 f16 f16 f32 f64 f16 f16 f16 f16 f16 f16",
    // f32
    "f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f64 f32 f32 f32 f32 f32 f32",
    // f64
    "f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 f64",
    // bf
    "bf bf bf bf bf bf bf bf f16 f32 f64 bf bf bf bf bf bf",
    // b
    "i8 i16 i32 i64 u8 u16 u32 u64 f16 f32 f64 bf b e4 e5 f6 f4",
    // e4
    "e4 e4 e4 e4 e4 e4 e4 e4 f16 f32 f64 bf e4 e4 - e4 e4",
    // e5
    "e5 e5 e5 e5 e5 e5 e5 e5 f16 f32 f64 bf e5 - e5 e5 e5",
    // f6
    "f6 f6 f6 f6 f6 f6 f6 f6 f16 f32 f64 bf f6 e4 e5 f6 f6",
    // f4
    "f4 f4 f4 f4 f4 f4 f4 f4 f16 f32 f64 bf f4 e4 e5 f6 f4",
];

fn dtype(name: &str) -> DType {
    name.parse().unwrap()
}

fn var(name: &str, of: &str) -> Operand {
    Operand::Expr(Expr::var(&Var::new(name, dtype(of))))
}

fn x() -> Operand {
    var("x", "int32")
}

/// A compact form of an expression for comparison: operators, constants, casts, names.
fn show(e: &Expr) -> String {
    let args = |list: &[Expr]| list.iter().map(show).collect::<Vec<_>>().join(", ");
    match &e.kind {
        ExprKind::Var(v) => v.name().to_string(),
        ExprKind::Int(v) if e.dtype == DType::INT32 => v.to_string(),
        ExprKind::Int(v) => format!("{}({v})", e.dtype),
        ExprKind::Float(v) => format!("{}({v})", e.dtype),
        ExprKind::Cast(a) => format!("{}[{}]", e.dtype, show(a)),
        ExprKind::Binary(op, a, b) => format!("{op:?}({}, {})", show(a), show(b)),
        ExprKind::Not(a) => format!("Not({})", show(a)),
        ExprKind::Broadcast { value, lanes } => format!("Broadcast({}, {lanes})", show(value)),
        ExprKind::Ramp { base, stride, lanes } => format!("Ramp({}, {}, {lanes})", show(base), show(stride)),
        ExprKind::Select(c, a, b) => format!("Select({}, {}, {})", show(c), show(a), show(b)),
        ExprKind::Call { op, args: list } => format!("{}({})", op.info().script, args(list)),
        other => format!("{other:?}"),
    }
}

fn ok(result: Result<Expr>) -> String {
    match result {
        Ok(e) => show(&e),
        Err(e) => format!("error: {}", e.message),
    }
}

fn bin(op: Arithmetic, a: Operand, b: Operand) -> String {
    ok(binary(op, a, b, Span::NONE))
}

#[test]
fn sums_have_tvms_dtypes() {
    for (i, row) in SUM.iter().enumerate() {
        for (j, want) in row.split(' ').enumerate() {
            let got = binary(
                Arithmetic::Add,
                var("a", NAMES[i]),
                var("b", NAMES[j]),
                Span::NONE,
            );
            let got = match got {
                Ok(e) => SHORT[NAMES.iter().position(|n| *n == e.dtype.to_string()).unwrap()],
                Err(_) => "-",
            };
            assert_eq!(got, want, "{} + {}", NAMES[i], NAMES[j]);
        }
    }
}

#[test]
fn literals_are_promoted_like_operands() {
    use Arithmetic::*;
    use Operand::{Bool, Float, Int};
    let h = || var("h", "float16");
    let u = || var("u", "uint32");
    let y4 = || var("y4", "float32x4");
    for (got, want) in [
        (bin(Add, x(), Float(1.5)), "Add(float32[x], float32(1.5))"),
        (bin(Mul, h(), Int(2)), "Mul(h, float16(2))"),
        (bin(Mul, h(), Float(2.5)), "Mul(float32[h], float32(2.5))"),
        (bin(Add, var("l", "int64"), Int(1)), "Add(l, int64(1))"),
        (bin(Add, u(), Int(1)), "Add(u, uint32(1))"),
        (
            bin(Add, x(), Int(0xFFFF_FFFF)),
            "Add(int64[x], int64(4294967295))",
        ),
        (bin(Add, var("b", "bool"), Int(1)), "Add(int32[b], 1)"),
        (bin(Add, x(), Bool(true)), "Add(x, 1)"),
        (bin(Add, var("i8", "int8"), Int(200)), "Add(int32[i8], 200)"),
        (bin(Add, var("d", "float64"), Float(0.1)), "Add(d, float64(0.1))"),
        (bin(Mul, y4(), Int(2)), "Mul(y4, Broadcast(float32(2), 4))"),
        (bin(Add, y4(), x()), "Add(y4, Broadcast(float32[x], 4))"),
        (
            bin(Add, var("y", "float32"), var("v", "int32x4")),
            "Add(Broadcast(y, 4), float32x4[v])",
        ),
        (bin(BitwiseAnd, x(), Int(0xFFFF_FFFF)), "bitwise_and(x, -1)"),
        (
            bin(BitwiseAnd, u(), Int(0xFFFF_FFFF)),
            "bitwise_and(u, uint32(4294967295))",
        ),
        (bin(BitwiseAnd, u(), Int(0xFF)), "bitwise_and(u, uint32(255))"),
        (bin(Max, Int(3), Int(4)), "4"),
        (bin(Max, x(), Float(2.5)), "Max(float32[x], float32(2.5))"),
        (bin(Add, u(), Int(-1)), "error: -1 does not fit uint32"),
        (
            bin(Add, var("v", "int32x4"), var("w", "int32x2")),
            "error: `+` cannot combine int32x4 and int32x2",
        ),
    ] {
        assert_eq!(got, want);
    }
}

#[test]
fn division_asks_for_a_rounding() {
    use Arithmetic::*;
    use Operand::{Float, Int};
    assert_eq!(
        bin(TrueDiv, x(), Int(2)),
        "error: `/` on two integers (int32 and int32) is ambiguous"
    );
    assert_eq!(bin(TrueDiv, x(), Float(2.0)), "Div(float32[x], float32(2))");
    assert_eq!(bin(TrueDiv, var("u", "uint32"), Int(2)), "Div(u, uint32(2))");
    assert_eq!(bin(FloorDiv, x(), Int(0)), "error: division by zero in `//`");
    assert_eq!(
        bin(FloorMod, var("y", "float32"), Int(2)),
        "error: `%` needs integer operands, got float32 and int32"
    );
    assert_eq!(bin(TruncMod, x(), Int(3)), "Mod(x, 3)");
    assert_eq!(bin(TruncMod, x(), var("b", "bool")), "Mod(x, int32[b])");
    assert_eq!(bin(TruncMod, var("y", "float32"), x()), "Mod(y, float32[x])");
    assert_eq!(
        ok(ceildiv(x(), Int(4), Span::NONE)),
        "FloorDiv(Sub(Add(x, 4), 1), 4)"
    );
    assert_eq!(ok(ceildiv(Int(10), Int(4), Span::NONE)), "3");
}

#[test]
fn arithmetic_folds_as_tvm_folds() {
    use Arithmetic::*;
    use Operand::{Float, Int};
    let c = |v| Operand::Expr(Expr::int32(v));
    let y = || var("y", "float32");
    let f16 = |v| Operand::Expr(Expr::float(DType::FLOAT16, v));
    for (got, want) in [
        (bin(Add, c(i32::MAX), c(1)), "-2147483648"),
        (bin(Sub, x(), Int(0)), "x"),
        (bin(Sub, Int(0), x()), "Sub(0, x)"),
        (bin(Mul, x(), Int(0)), "0"),
        (bin(FloorMod, x(), Int(1)), "0"),
        (bin(FloorDiv, c(-7), c(2)), "-4"),
        (bin(TruncDiv, c(-7), c(2)), "-3"),
        (bin(Add, y(), Float(0.0)), "y"),
        (bin(Mul, y(), Float(0.0)), "float32(0)"),
        (bin(Add, Float(0.1), Float(0.2)), "float32(0.30000001192092896)"),
        (bin(Add, f16(0.5), f16(0.25)), "Add(float16(0.5), float16(0.25))"),
        (bin(Mul, f16(1.0), f16(0.25)), "float16(0.25)"),
        (bin(Min, f16(0.5), f16(0.25)), "float16(0.25)"),
        (bin(ShiftLeft, c(4), c(1)), "8"),
        (bin(ShiftLeft, x(), Int(0)), "x"),
        (bin(ShiftLeft, x(), Int(32)), "error: shift by 32 of int32"),
        (
            bin(ShiftLeft, c(1), c(31)),
            "error: 2147483648 does not fit int32",
        ),
        (
            bin(
                ShiftLeft,
                var("i8", "int8"),
                Operand::Expr(Expr::constant(DType::INT8, 0)),
            ),
            "shift_left(i8, int8(0))",
        ),
        (bin(BitwiseAnd, x(), Int(0)), "bitwise_and(x, 0)"),
        (bin(Pow, Float(2.0), Float(3.0)), "pow(float32(2), float32(3))"),
        (
            bin(Pow, x(), Int(2)),
            "error: T.pow needs float16, float32 or float64 operands, got int32 and int32",
        ),
        (ok(neg(x(), Span::NONE)), "Mul(x, -1)"),
        (ok(neg(c(3), Span::NONE)), "-3"),
        (
            ok(neg(var("u", "uint32"), Span::NONE)),
            "error: unary `-` does not apply to uint32",
        ),
        (ok(abs(x(), Span::NONE)), "Select(Ge(x, 0), x, Sub(0, x))"),
        (ok(abs(y(), Span::NONE)), "fabs(y)"),
        (ok(invert(x(), Span::NONE)), "bitwise_not(x)"),
        (
            ok(invert(y(), Span::NONE)),
            "error: unary `~` needs an integer or bool operand, got float32",
        ),
    ] {
        assert_eq!(got, want);
    }
    let v = Var::new("v", DType::INT32);
    assert_eq!(bin(Max, Expr::var(&v).into(), Expr::var(&v).into()), "v");
}

#[test]
fn comparisons_and_logic_convert_and_fold_nothing() {
    use Operand::{Bool, Float, Int};
    let cmp = |op, a, b| ok(compare(op, a, b, Span::NONE));
    let b = || var("b", "bool");
    let y = || var("y", "float32");
    for (got, want) in [
        (cmp(BinOp::Lt, x(), Int(5)), "Lt(x, 5)"),
        (cmp(BinOp::Lt, Int(5), x()), "Lt(5, x)"),
        (cmp(BinOp::Lt, Operand::Expr(Expr::int32(3)), Int(5)), "Lt(3, 5)"),
        (cmp(BinOp::Lt, y(), Int(2)), "Lt(y, float32(2))"),
        (cmp(BinOp::Lt, var("l", "int64"), Int(5)), "Lt(l, int64(5))"),
        (cmp(BinOp::Eq, b(), Int(1)), "Eq(b, bool(1))"),
        (
            cmp(BinOp::Lt, var("v", "int32x4"), Int(3)),
            "Lt(v, Broadcast(3, 4))",
        ),
        (
            cmp(BinOp::Lt, x(), Float(2.5)),
            "error: `<` cannot compare int32 with a float literal",
        ),
        (
            cmp(BinOp::Lt, x(), y()),
            "error: `<` needs operands of one dtype, got int32 and float32",
        ),
        (
            cmp(BinOp::Lt, var("u", "uint32"), Int(-1)),
            "error: -1 does not fit uint32",
        ),
        (
            ok(logical(BinOp::And, b(), Bool(true), Span::NONE)),
            "And(b, bool(1))",
        ),
        (
            ok(logical(BinOp::Or, b(), x(), Span::NONE)),
            "error: `or` needs bool operands, got int32",
        ),
        (ok(not(b(), Span::NONE)), "Not(b)"),
        (
            ok(not(x(), Span::NONE)),
            "error: `not` needs bool operands, got int32",
        ),
    ] {
        assert_eq!(got, want);
    }
}

#[test]
fn casts_fold_constants_and_check_ranges() {
    use Operand::{Bool, Float, Int};
    let to = |a, d: &str| ok(cast(a, dtype(d), Span::NONE));
    for (got, want) in [
        (to(x(), "int32"), "x"),
        (to(x(), "float32"), "float32[x]"),
        (to(Int(5), "float32"), "float32(5)"),
        (to(Float(-2.7), "int32"), "-2"),
        (to(Bool(true), "int32"), "1"),
        (to(Int(300), "int8"), "error: 300 does not fit int8"),
        (to(Int(-1), "uint8"), "error: -1 does not fit uint8"),
        (to(Int(2), "bool"), "error: 2 does not fit bool"),
        (to(Int(0xFFFF_FFFF), "uint32"), "uint32(4294967295)"),
        (
            to(Float(1e6), "float16"),
            "error: 1e6 exceeds the range of float16",
        ),
        (to(Float(f64::INFINITY), "float16"), "float16(inf)"),
        (
            to(Float(1e40), "float32"),
            "error: 1e40 exceeds the range of float32",
        ),
        (
            to(Float(3.40282350e38), "float32"),
            "float32(340282346638528860000000000000000000000)",
        ),
        (to(x(), "int32x4"), "Broadcast(x, 4)"),
        (to(Int(3), "float32x4"), "Broadcast(float32(3), 4)"),
        (
            to(var("v", "int32x4"), "float32"),
            "error: cannot cast int32x4 to float32",
        ),
        (
            to(
                Expr::ramp(Expr::var(&Var::new("x", DType::INT32)), Expr::int32(1), 4).into(),
                "int64x4",
            ),
            "Ramp(int64[x], int64(1), 4)",
        ),
        (
            to(var("p", "handle"), "int64"),
            "error: cannot cast handle to int64",
        ),
        (
            ok(max_value(DType::UINT64, Span::NONE)),
            "large_uint_imm(uint32(4294967295), uint32(4294967295))",
        ),
        (ok(min_value(DType::INT8, Span::NONE)), "int8(-128)"),
        (
            ok(max_value(dtype("float8_e4m3fn"), Span::NONE)),
            "float8_e4m3fn(448)",
        ),
    ] {
        assert_eq!(got, want);
    }
}

#[test]
fn choices_promote_or_refuse() {
    use Operand::{Bool, Float, Int};
    let b = || var("b", "bool");
    let ite = |c, x, y| ok(if_then_else(c, x, y, Span::NONE));
    assert_eq!(ite(b(), x(), Int(1)), "if_then_else(b, x, 1)");
    assert_eq!(
        ite(b(), Int(1), Float(2.0)),
        "if_then_else(b, float32(1), float32(2))"
    );
    assert_eq!(ite(Bool(true), x(), var("l", "int64")), "int64[x]");
    assert_eq!(
        ite(x(), x(), x()),
        "error: T.if_then_else needs a bool condition, got int32"
    );
    let sel = ok(select(b(), x(), var("l", "int64"), Span::NONE));
    assert_eq!(
        sel,
        "error: T.Select needs two values of one dtype, got int32 and int64"
    );
}

#[test]
fn results_carry_the_span_of_their_text() {
    let span = Span::new(crate::source::FileId(1), 3, 8);
    let e = binary(Arithmetic::Add, x(), Operand::Int(1), span).unwrap();
    assert_eq!(e.span, span);
    let buffer = Buffer::fresh("A", vec![Expr::int32(4)], DType::INT32, "global", Span::NONE);
    let load = Expr::load(&buffer, vec![Expr::int32(0)]);
    let e = compare(BinOp::Lt, load.into(), Operand::Int(3), span).unwrap();
    assert_eq!(e.span, span);
}
