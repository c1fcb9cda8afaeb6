//! Simplifier results compared with those of TVM 0.26, and the notation of the corpus.
//!
//! A line of the corpus is `expression => what TVM's simplifier makes of it`. In it `x y z n m` are any `int32`,
//! `a` is in `0..256`, `b` in `0..16`, `p` any `int64`.

use super::Analyzer;
use crate::intrin::Op;
use crate::ir::{BinOp, DType, Expr, ExprKind, Var};

/// The variables of the corpus.
pub(super) struct Vars(pub(super) Vec<Var>);

impl Vars {
    pub(super) fn new() -> Vars {
        let names = ["x", "y", "z", "n", "m", "a", "b"];
        let mut vars: Vec<Var> = names.iter().map(|n| Var::new(*n, DType::INT32)).collect();
        vars.push(Var::new("p", DType::INT64));
        Vars(vars)
    }

    pub(super) fn get(&self, name: &str) -> &Var {
        self.0
            .iter()
            .find(|v| v.name() == name)
            .unwrap_or_else(|| panic!("{name}"))
    }

    pub(super) fn analyzer(&self) -> Analyzer {
        let mut analyzer = Analyzer::new();
        analyzer.bind(self.get("a"), &Expr::int32(0), &Expr::int32(256));
        analyzer.bind(self.get("b"), &Expr::int32(0), &Expr::int32(16));
        analyzer
    }
}

struct Reader<'a> {
    rest: &'a str,
    vars: &'a Vars,
}

const LEVELS: &[&[(&str, BinOp)]] = &[
    &[("or", BinOp::Or)],
    &[("and", BinOp::And)],
    &[
        ("==", BinOp::Eq),
        ("!=", BinOp::Ne),
        ("<=", BinOp::Le),
        (">=", BinOp::Ge),
        ("<", BinOp::Lt),
        (">", BinOp::Gt),
    ],
    &[("+", BinOp::Add), ("-", BinOp::Sub)],
    &[("*", BinOp::Mul), ("//", BinOp::FloorDiv), ("%", BinOp::FloorMod)],
];

impl Reader<'_> {
    fn eat(&mut self, token: &str) -> bool {
        self.rest = self.rest.trim_start();
        match self.rest.strip_prefix(token) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn level(&mut self, level: usize) -> Expr {
        let Some(operators) = LEVELS.get(level) else {
            return self.atom();
        };
        let mut left = self.level(level + 1);
        while let Some((_, op)) = operators.iter().find(|(t, _)| self.eat(t)) {
            let mut right = self.level(level + 1);
            if left.as_int().is_some() && left.dtype != right.dtype {
                left = Expr::constant(right.dtype, left.as_int().unwrap());
            } else if left.dtype != right.dtype {
                right = Expr::constant(left.dtype, right.as_int().unwrap());
            }
            left = Expr::binary(*op, left, right);
        }
        left
    }

    fn arguments(&mut self) -> Vec<Expr> {
        let mut out = vec![self.level(0)];
        while self.eat(",") {
            out.push(self.level(0));
        }
        assert!(self.eat(")"), "{}", self.rest);
        out
    }

    fn atom(&mut self) -> Expr {
        if self.eat("(") {
            return self.arguments().remove(0);
        }
        if self.eat("-") {
            let inner = self.atom();
            return Expr::constant(inner.dtype, -inner.as_int().expect("only constants are negated"));
        }
        self.rest = self.rest.trim_start();
        let end = self
            .rest
            .find(|c: char| !c.is_alphanumeric())
            .unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        if let Ok(value) = word.parse::<i128>() {
            return Expr::int32(value as i32);
        }
        if !self.eat("(") {
            return match word {
                "true" => Expr::bool(true),
                "false" => Expr::bool(false),
                name => Expr::var(self.vars.get(name)),
            };
        }
        let mut args = self.arguments();
        let binary = |op, mut args: Vec<Expr>| {
            let b = args.remove(1);
            let a = args.remove(0);
            let b = if a.dtype != b.dtype {
                Expr::constant(a.dtype, b.as_int().unwrap())
            } else {
                b
            };
            Expr::binary(op, a, b)
        };
        match word {
            "min" => binary(BinOp::Min, args),
            "max" => binary(BinOp::Max, args),
            "div" => binary(BinOp::Div, args),
            "mod" => binary(BinOp::Mod, args),
            "not" => Expr::logical_not(args.remove(0)),
            "i64" => {
                let arg = args.remove(0);
                match arg.as_int() {
                    Some(v) => Expr::constant(DType::INT64, v),
                    None => arg.cast(DType::INT64),
                }
            }
            "i32" => args.remove(0).cast(DType::INT32),
            "select" | "ite" => {
                let (c, t, f) = (args.remove(0), args.remove(0), args.remove(0));
                if word == "select" {
                    Expr::select(c, t, f)
                } else {
                    let dtype = t.dtype;
                    Expr::call(Op::IfThenElse, dtype, vec![c, t, f])
                }
            }
            other => panic!("{other}"),
        }
    }
}

/// Reads an expression of the corpus.
pub(super) fn read(text: &str, vars: &Vars) -> Expr {
    let mut reader = Reader { rest: text, vars };
    let expr = reader.level(0);
    assert_eq!(reader.rest.trim(), "", "in {text}");
    expr
}

/// Writes an expression in the corpus's notation.
pub(super) fn write(expr: &Expr) -> String {
    let list = |args: &[&Expr]| args.iter().map(|a| write(a)).collect::<Vec<_>>().join(", ");
    match &expr.kind {
        ExprKind::Var(v) => v.name().to_string(),
        ExprKind::Int(v) if expr.dtype.is_bool() => if *v != 0 { "true" } else { "false" }.to_string(),
        ExprKind::Int(v) if expr.dtype == DType::INT64 => format!("i64({v})"),
        ExprKind::Int(v) => v.to_string(),
        ExprKind::Binary(op, a, b) => {
            let call = match op {
                BinOp::Min => "min",
                BinOp::Max => "max",
                BinOp::Div => "div",
                BinOp::Mod => "mod",
                _ => {
                    let symbol = LEVELS
                        .iter()
                        .flat_map(|l| l.iter())
                        .find(|(_, o)| o == op)
                        .unwrap()
                        .0;
                    return format!("({} {symbol} {})", write(a), write(b));
                }
            };
            format!("{call}({})", list(&[a, b]))
        }
        ExprKind::Not(a) => format!("not({})", write(a)),
        ExprKind::Select(c, t, f) => format!("select({})", list(&[c, t, f])),
        ExprKind::Call { args, .. } => format!("ite({})", list(&args.iter().collect::<Vec<_>>())),
        ExprKind::Cast(a) => format!("i{}({})", expr.dtype.bits, write(a)),
        other => format!("{other:?}"),
    }
}

#[test]
fn results_are_those_of_tvm() {
    let vars = Vars::new();
    let text = match std::env::var("TIRX_ARITH_CORPUS") {
        Ok(path) => std::fs::read_to_string(path).unwrap(),
        Err(_) => include_str!("corpus.txt").to_string(),
    };
    let mut wrong = Vec::new();
    for line in text.lines().filter(|l| !l.starts_with('#') && !l.is_empty()) {
        let (input, expected) = line.split_once("=>").unwrap();
        let result = vars.analyzer().simplify(&read(input, &vars));
        if result != read(expected, &vars) {
            wrong.push(format!(
                "{input}\n     tvm {}\n    ours {}",
                expected.trim(),
                write(&result)
            ));
        }
    }
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn remainders_do_not_overflow_where_the_sum_did_not() {
    let vars = Vars::new();
    let simple = |text: &str| write(&vars.analyzer().simplify(&read(text, &vars)));
    // x may be anything: a larger weight could leave int32.
    let negated = simple("((x * -1) % 267)");
    assert!(!negated.contains("266"), "{negated}");
    // a is below 256.
    assert_eq!(simple("((a * -1) % 7)"), "((a * 6) % 7)");
    // The product of the divisors is no int32.
    let twice = "((x // 524288) // 2097152)";
    assert_eq!(simple(twice), twice);
    let both = "((x // 524288) % 2097152)";
    assert_eq!(simple(both), both);
    // The remainder is the dividend plus 2147483652, which is no int32; of the second plus 2147483646.
    let low = "(min(x, -2147483647) % 6)";
    assert_eq!(simple(low), low);
    let higher = "(max(min(x, -2147483644), -2147483645) % 6)";
    assert!(!simple(higher).contains('%'), "{}", simple(higher));
}

#[test]
fn comparisons_do_not_overflow_where_their_operands_did_not() {
    let vars = Vars::new();
    let simple = |text: &str| write(&vars.analyzer().simplify(&read(text, &vars)));
    // x and y may be anything: 2147483647 < 0 - 1 is false, but 2147483647 + 1 < 0 would be true.
    for (text, same) in [
        ("(x < (0 - y))", "(x < (0 - y))"),
        ("((3 - x) < y)", "((3 - x) < y)"),
        ("((x + -5) < y)", "((x + -5) < y)"),
        ("((x + 5) < (y + -5))", "((x + 5) < (y + -5))"),
    ] {
        assert_eq!(simple(text), simple(same));
        assert!(simple(text).contains('-'), "{text}");
    }
    // a is below 256.
    assert_eq!(simple("(a < (b - 5))"), "((a + 5) < b)");
}

#[test]
fn products_do_not_overflow_where_their_sum_did_not() {
    let vars = Vars::new();
    let simple = |text: &str| write(&vars.analyzer().simplify(&read(text, &vars)));
    // (65536 - 32768) * -32768 is an int32; 65536 * 32768 is none.
    let clamped = "min((((x % 65537) + -32768) * -32768), 1073741823)";
    assert!(!simple(clamped).contains("65537) * 32768"), "{}", simple(clamped));
    // Small ones are multiplied out.
    assert_eq!(simple("(((x % 7) + 3) * 5)"), "(((x % 7) * 5) + 15)");
    // 2147483648 is no int32.
    let least = "(a * -2147483648)";
    assert_eq!(simple("min((a * -2147483648), 0)"), least);
}

#[test]
fn constants_do_not_overflow_where_their_sum_did_not() {
    let vars = Vars::new();
    // -2147483649 is no int32, and 2147483647 is something else.
    let text = "(((a + -2147483648) - 1) // 7)";
    assert_eq!(write(&vars.analyzer().simplify(&read(text, &vars))), text);
}

#[test]
fn what_a_quotient_says_of_its_dividend() {
    let vars = Vars::new();
    // As TVM's StmtSimplify has it within an `if`.
    for (given, expr, expected) in [
        ("((x // 32) == 0)", "(x % 32)", "x"),
        ("((x // 32) == 0)", "((x // 4) % 8)", "(x // 4)"),
        ("(((x + n) // 4) == 0)", "((x + n) % 8)", "(x + n)"),
        ("((x // 32) == 2)", "(x < 100)", "true"),
        ("((x // 32) == 2)", "(x >= 64)", "true"),
        ("((x // 32) == 2)", "(x < 80)", "(x < 80)"),
        ("((a // 32) != 0)", "(a >= 32)", "true"),
        ("(((x // 4) // 8) == 0)", "(x % 32)", "x"),
        // A negative quotient, and a divisor that says nothing.
        ("((x // 4) == -1)", "(x < 0)", "true"),
        ("((x // -4) == 0)", "(x % 4)", "(x % 4)"),
        ("((x // n) == 0)", "(x % 4)", "(x % 4)"),
    ] {
        let result = vars
            .analyzer()
            .with_constraint(&read(given, &vars), |a| a.simplify(&read(expr, &vars)));
        assert_eq!(write(&result), expected, "{expr} given {given}");
    }
}

#[test]
fn both_of_two_truth_values_are_learned_from_their_bitwise_and() {
    let vars = Vars::new();
    let (a, b) = (read("((x // 4) == 1)", &vars), read("(x < 5)", &vars));
    let both = Expr::call(Op::BitwiseAnd, DType::BOOL, vec![a, b]);
    let known = vars
        .analyzer()
        .with_constraint(&both, |facts| facts.simplify(&read("x", &vars)));
    assert_eq!(known.as_int(), None);
    let known = vars
        .analyzer()
        .with_constraint(&both, |facts| facts.simplify(&read("(x == 4)", &vars)));
    assert_eq!(known.as_int(), Some(1));
}
