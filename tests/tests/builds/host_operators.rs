//! Each row of the host operators, each conversion and each reinterpretation on edge values, three ways: as Rust, as C and as the
//! simulator runs it. One program in each language computes all of them.

use std::fmt::Write;
use std::process::Command;

use tirx_core::codegen::host::host::operators::{
    HOST_OPERATORS, HostOperation, HostOperator, Meaning, Scalar,
};
use tirx_core::codegen::{c, rust};
use tirx_core::intrin::Op;
use tirx_core::ir::{DType, ElementType, Expr, Var};
use tirx_sim::host;

use crate::throw_away::{ScratchPackages, texts};

/// An expression of one or two variables of one dtype.
struct Case {
    expr: Expr,
    variables: Vec<Var>,
    /// The results are compared up to the last bits.
    is_rounded: bool,
}

fn dtypes() -> Vec<DType> {
    let named = |name: &str| name.parse().unwrap();
    let mut dtypes = vec![DType::BOOL, DType::FLOAT16, DType::FLOAT32, DType::FLOAT64];
    dtypes.push(named("bfloat16"));
    for bits in [8, 16, 32, 64] {
        dtypes.extend([named(&format!("int{bits}")), named(&format!("uint{bits}"))]);
    }
    dtypes
}

/// The edge values of a dtype.
fn edges(dtype: DType) -> Vec<Scalar> {
    if dtype.is_floating() {
        let values = [
            0.0,
            -0.0,
            1.0,
            -1.0,
            0.5,
            2.5,
            -3.5,
            7.75,
            300.0,
            4e9,
            -4e9,
            3e19,
            1e-3,
            f64::INFINITY,
            f64::NEG_INFINITY,
            f64::NAN,
        ];
        return values.iter().map(|v| Scalar::Float(*v).convert(dtype)).collect();
    }
    let (min, max) = match dtype.is_bool() {
        true => (0, 1),
        false => (dtype.min_int().unwrap(), dtype.max_int().unwrap()),
    };
    let middle = [
        -33,
        -7,
        -2,
        -1,
        0,
        1,
        2,
        3,
        7,
        31,
        32,
        33,
        63,
        64,
        65,
        1000,
        (1 << 53) + 1,
        (1 << 62) + 1,
    ];
    let mut values: Vec<i128> = [min, min + 1, max - 1, max].into_iter().chain(middle).collect();
    values.retain(|v| (min..=max).contains(v));
    values.sort_unstable();
    values.dedup();
    values.into_iter().map(Scalar::Int).collect()
}

fn constant(dtype: DType, value: Scalar) -> Expr {
    match value {
        Scalar::Int(v) => Expr::constant(dtype, v),
        Scalar::Float(v) => Expr::float(dtype, v),
    }
}

/// The operation without folding; `None` for a unary operation with a second operand.
fn operation(row: &HostOperator, a: Expr, b: Option<Expr>) -> Option<Expr> {
    Some(match (row.operation, b) {
        (HostOperation::Binary(op), Some(b)) => Expr::binary(op, a, b),
        (HostOperation::Not, None) => Expr::logical_not(a),
        (HostOperation::Call(op), b) => {
            let binary = matches!(
                op,
                Op::BitwiseAnd | Op::BitwiseOr | Op::BitwiseXor | Op::ShiftLeft | Op::ShiftRight | Op::Pow
            );
            if binary != b.is_some() {
                return None;
            }
            let dtype = a.dtype;
            Expr::call(op, dtype, [a].into_iter().chain(b).collect())
        }
        _ => return None,
    })
}

fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for dtype in dtypes() {
        let half = dtype.is_floating() && dtype.bits == 16;
        let (a, b) = (Var::new("a", dtype), Var::new("b", dtype));
        for row in HOST_OPERATORS {
            let computed = if half { DType::FLOAT64 } else { dtype };
            let found = HostOperator::find(row.operation, computed);
            if !found.is_some_and(|found| std::ptr::eq(found, row)) {
                continue;
            }
            // Bools have logic, comparisons and bits; the language promotes them for everything else.
            let logical = row
                .binary()
                .is_none_or(|op| op.is_comparison() || op.is_logical());
            let counts = |op| matches!(op, Op::ShiftLeft | Op::ShiftRight | Op::Popcount | Op::Clz);
            if dtype.is_bool() && (!logical || matches!(row.operation, HostOperation::Call(op) if counts(op)))
            {
                continue;
            }
            let is_rounded = matches!(row.meaning, Meaning::Library);
            let mut add = |expr: Option<Expr>, variables: &[&Var]| {
                let variables = variables.iter().map(|var| (*var).clone()).collect();
                cases.extend(expr.map(|expr| Case {
                    expr,
                    variables,
                    is_rounded,
                }));
            };
            add(operation(row, Expr::var(&a), None), &[&a]);
            add(operation(row, Expr::var(&a), Some(Expr::var(&b))), &[&a, &b]);
            // Constants have shorter forms.
            for value in [1.0, 3.0, 33.0, -2.0, f64::NAN] {
                let value = Scalar::Float(value).convert(dtype);
                add(operation(row, Expr::var(&a), Some(constant(dtype, value))), &[&a]);
            }
        }
        for to in dtypes().into_iter().filter(|to| *to != dtype) {
            let same_bits = to.bits == dtype.bits && !to.is_bool() && !dtype.is_bool();
            let reinterpreted = Expr::call(Op::Reinterpret, to, vec![Expr::var(&a)]);
            for expr in [Some(Expr::var(&a).cast(to)), same_bits.then_some(reinterpreted)] {
                let variables = vec![a.clone()];
                cases.extend(expr.map(|expr| Case {
                    expr,
                    variables,
                    is_rounded: false,
                }));
            }
        }
    }
    cases
}

impl Case {
    fn named(&self) -> Vec<(Var, String)> {
        self.variables
            .iter()
            .map(|var| (var.clone(), var.name().to_string()))
            .collect()
    }

    /// The values of the variables, in the order of the programs.
    fn inputs(&self) -> Vec<Vec<(Var, Scalar)>> {
        let mut all = vec![Vec::new()];
        for var in &self.variables {
            let extended = |inputs: &Vec<(Var, Scalar)>| {
                let inputs = inputs.clone();
                edges(var.dtype())
                    .into_iter()
                    .map(move |v| [&inputs[..], &[(var.clone(), v)]].concat())
            };
            all = all.iter().flat_map(extended).collect();
        }
        all
    }
}

const NOTHING: &str = "trap";

/// The bits of a value in a host language.
fn rust_bits(dtype: DType) -> &'static str {
    match dtype.is_floating() {
        true => "v.to_bits() as u64",
        false => "v as u64",
    }
}

fn rust_program(cases: &[Case]) -> String {
    let mut text = String::from("#![allow(warnings)]\nconst KERNEL: &str = \"k\";\n");
    let ty = |dtype| {
        ElementType::from_dtype(dtype)
            .and_then(|e| e.rust)
            .unwrap_or("bool")
    };
    for (number, case) in cases.iter().enumerate() {
        let params: Vec<String> = (case.named().iter())
            .map(|(v, name)| format!("{name}: {}", ty(v.dtype())))
            .collect();
        let body = rust::expression(&case.expr, &case.named()).unwrap();
        let result = case.expr.dtype;
        let _ = writeln!(
            text,
            "fn f{number}({}) -> tirx_rt::Result<{}> {{ Ok({body}) }}",
            params.join(", "),
            ty(result)
        );
    }
    text.push_str(
        "fn show(v: Option<u64>) { match v { Some(v) => println!(\"{v}\"), None => println!(\"trap\") } }\n",
    );
    for dtype in dtypes() {
        let list: Vec<String> = (edges(dtype).iter())
            .map(|value| match value.to_bits(dtype) {
                bits if dtype.is_floating() => format!("{}::from_bits({bits})", ty(dtype)),
                bits if dtype.is_bool() => (bits != 0).to_string(),
                bits => format!("{bits}_u64 as {}", ty(dtype)),
            })
            .collect();
        let _ = writeln!(
            text,
            "static {dtype}: [{}; {}] = [{}];",
            ty(dtype),
            list.len(),
            list.join(", ")
        );
    }
    let mut main = String::from("fn main() {\n");
    for (number, case) in cases.iter().enumerate() {
        let mut head = String::new();
        for var in &case.variables {
            let _ = write!(head, "for {} in {} {{ ", var.name(), var.dtype());
        }
        let args: Vec<&str> = case.variables.iter().map(Var::name).collect();
        let bits = rust_bits(case.expr.dtype);
        let close = "}".repeat(args.len());
        let _ = writeln!(
            text,
            "fn all{number}() {{ {head}show(f{number}({}).ok().map(|v| {bits})); {close} }}",
            args.join(", ")
        );
        let _ = writeln!(main, "all{number}();");
    }
    text + &main + "}\n"
}

fn c_program(cases: &[Case]) -> String {
    let mut text = String::from("#include <stdio.h>\n#include \"tirx_runtime.h\"\n");
    let ty = |dtype| c::c_scalar(dtype).unwrap();
    for (number, case) in cases.iter().enumerate() {
        let params: Vec<String> = (case.named().iter())
            .map(|(v, name)| format!("{} {name}", ty(v.dtype())))
            .collect();
        let body = c::expression(&case.expr, &case.named()).unwrap();
        let _ = writeln!(
            text,
            "static bool f{number}({}, {}* out) {{ bool divided_by_zero = false; *out = {body}; return !divided_by_zero; }}",
            params.join(", "),
            ty(case.expr.dtype)
        );
    }
    text.push_str(
        "static void show(bool known, uint64_t bits) { if (known) printf(\"%llu\\n\", (unsigned long long)bits); else puts(\"trap\"); }\n",
    );
    for dtype in dtypes() {
        let list: Vec<String> = (edges(dtype).iter())
            .map(|value| format!("UINT64_C({})", value.to_bits(dtype)))
            .collect();
        let _ = writeln!(
            text,
            "static const uint64_t {dtype}_s[] = {{{}}};",
            list.join(", ")
        );
    }
    let mut main = String::from("int main(void) {\n");
    for (number, case) in cases.iter().enumerate() {
        let mut head = String::new();
        for var in &case.variables {
            let (name, dtype) = (var.name(), var.dtype());
            let _ = write!(
                head,
                "for (int {name}i = 0; {name}i < {}; ++{name}i) {{ {} {name}; memcpy(&{name}, &{dtype}_s[{name}i], sizeof {name}); ",
                edges(dtype).len(),
                ty(dtype)
            );
        }
        let args: Vec<&str> = case.variables.iter().map(Var::name).collect();
        let (out, close) = (ty(case.expr.dtype), "}".repeat(args.len()));
        let _ = writeln!(
            text,
            "static void all{number}(void) {{ {head}{out} out; bool known = f{number}({}, &out); uint64_t bits = 0; \
             memcpy(&bits, &out, sizeof out); show(known, bits); {close} }}",
            args.join(", ")
        );
        let _ = writeln!(main, "all{number}();");
    }
    text + &main + "return 0; }\n"
}

/// Whether a program's answer is the value.
fn agrees(answer: &str, value: &Result<Scalar, String>, case: &Case) -> bool {
    let dtype = case.expr.dtype;
    let (Ok(value), Ok(bits)) = (value, answer.parse::<u64>()) else {
        return value.is_err() && answer == NOTHING;
    };
    let width = if dtype.is_bool() { 8 } else { u32::from(dtype.bits) };
    match (
        *value,
        Scalar::from_bits(dtype, bits & (u64::MAX >> (64 - width))),
    ) {
        (Scalar::Float(a), Scalar::Float(b)) if a.is_nan() || b.is_nan() => a.is_nan() && b.is_nan(),
        (Scalar::Float(a), Scalar::Float(b)) if case.is_rounded && a != b => {
            let last = [(16, 1e-2), (32, 1e-6)]
                .iter()
                .find(|(bits, _)| *bits == dtype.bits);
            (a - b).abs() <= a.abs().max(b.abs()) * last.map_or(1e-14, |(_, last)| *last)
        }
        // Zeros have signs.
        (Scalar::Float(a), Scalar::Float(b)) => a.to_bits() == b.to_bits(),
        (a, b) => a == b,
    }
}

#[test]
fn both_host_languages_and_the_simulator_compute_the_same_values() {
    let cases = cases();
    let place = ScratchPackages::new();
    place.manifest(
        "operators",
        "[dependencies]\ntirx-rt = { path = \"…/tirx-rt\" }\n",
    );
    place.write("operators/src/main.rs", &rust_program(&cases));
    let (success, rust_answers, err) = place.cargo("operators", &["run", "--quiet"]);
    assert!(success, "{err}");

    let runtime = concat!(env!("CARGO_MANIFEST_DIR"), "/../tirx-build/src/c_api/runtime");
    place.write("c/main.c", &c_program(&cases));
    let program = place.path("c/program");
    // As launchers are compiled: integers wrap.
    let mut compile = Command::new("cc");
    compile
        .args(["-std=c11", "-fwrapv", "-I", runtime])
        .arg(place.path("c/main.c"));
    compile
        .arg(format!("{runtime}/tirx_runtime.c"))
        .args(["-ldl", "-lm", "-o"])
        .arg(&program);
    let (success, _, err) = texts(compile.output().unwrap());
    assert!(success, "{err}");
    let (success, c_answers, err) = texts(Command::new(&program).output().unwrap());
    assert!(success, "{err}");

    let (mut rust_answers, mut c_answers) = (rust_answers.lines(), c_answers.lines());
    let (mut count, mut different) = (0, Vec::new());
    for case in &cases {
        for inputs in case.inputs() {
            let value = host::evaluate(&case.expr, &inputs);
            let (rust, c) = (rust_answers.next().unwrap(), c_answers.next().unwrap());
            count += 1;
            if !agrees(rust, &value, case) || !agrees(c, &value, case) {
                let inputs: Vec<String> = inputs
                    .iter()
                    .map(|(v, x)| format!("{} = {x:?}", v.name()))
                    .collect();
                let dtype = case.variables[0].dtype();
                different.push(format!(
                    "{dtype} {:?} -> {}: {}: simulator {value:?}, Rust {rust}, C {c}",
                    case.expr.kind,
                    case.expr.dtype,
                    inputs.join(", ")
                ));
            }
        }
    }
    assert!(count > 20_000 && rust_answers.next().is_none() && c_answers.next().is_none());
    assert!(
        different.is_empty(),
        "{} of {count}:\n{}",
        different.len(),
        different[..different.len().min(40)].join("\n")
    );
}
