//! Property tests: everything that the analyzer derives about an expression holds for its values.

use proptest::prelude::*;

use super::corpus_test::Vars;
use super::{Analyzer, ConstIntBound, fold};
use crate::intrin::Op;
use crate::ir::print_expr;
use crate::ir::{BinOp, DType, Expr, ExprKind};

/// The values of the corpus's variables, in their order.
type Values = [i128; 8];

/// What an expression evaluates to; `None` if it divides by zero.
fn eval(expr: &Expr, vars: &Vars, values: &Values) -> Option<i128> {
    Some(match &expr.kind {
        ExprKind::Int(v) => *v,
        ExprKind::Var(v) => values[vars.0.iter().position(|w| w == v).unwrap()],
        ExprKind::Binary(op, a, b) => {
            fold::eval_int(*op, a.dtype, eval(a, vars, values)?, eval(b, vars, values)?)?
        }
        ExprKind::Not(a) => (eval(a, vars, values)? == 0) as i128,
        ExprKind::Cast(a) => expr.dtype.wrap(eval(a, vars, values)?),
        ExprKind::Select(c, t, f) => {
            let chosen = if eval(c, vars, values)? != 0 { t } else { f };
            eval(chosen, vars, values)?
        }
        ExprKind::Call { op, args } => {
            let arg = |i: usize| eval(&args[i], vars, values);
            match op {
                Op::IfThenElse if arg(0)? != 0 => arg(1)?,
                Op::IfThenElse => arg(2)?,
                Op::BitwiseNot => !arg(0)?,
                Op::BitwiseAnd => arg(0)? & arg(1)?,
                Op::BitwiseOr => arg(0)? | arg(1)?,
                Op::BitwiseXor => arg(0)? ^ arg(1)?,
                Op::ShiftLeft => expr.dtype.wrap(arg(0)? << arg(1)?),
                Op::ShiftRight => arg(0)? >> arg(1)?,
                other => panic!("{other:?}"),
            }
        }
        other => panic!("{other:?}"),
    })
}

/// A tree that [`build`] makes well-typed.
#[derive(Clone, Debug)]
enum Tree {
    Var(usize),
    Int(i32),
    Binary(u8, Box<Tree>, Box<Tree>),
    Choice(u8, Box<Tree>, Box<Tree>, Box<Tree>, Box<Tree>),
    Bits(u8, Box<Tree>, u8),
    Detour(Box<Tree>),
}

fn trees() -> impl Strategy<Value = Tree> {
    let constants = prop_oneof![
        Just(0),
        Just(1),
        Just(2),
        Just(3),
        Just(4),
        Just(8),
        Just(16),
        Just(-1),
        Just(-3),
        -20..40i32
    ];
    let leaf = prop_oneof![3 => (0..7usize).prop_map(Tree::Var), 2 => constants.prop_map(Tree::Int)];
    leaf.prop_recursive(4, 24, 3, |inner| {
        let boxed = inner.prop_map(Box::new).boxed();
        prop_oneof![
            12 => (0..9u8, boxed.clone(), boxed.clone()).prop_map(|(op, a, b)| Tree::Binary(op, a, b)),
            2 => (0..14u8, boxed.clone(), boxed.clone(), boxed.clone(), boxed.clone())
                .prop_map(|(op, a, b, c, d)| Tree::Choice(op, a, b, c, d)),
            1 => (0..6u8, boxed.clone(), 0..5u8).prop_map(|(op, a, n)| Tree::Bits(op, a, n)),
            1 => boxed.prop_map(Tree::Detour),
        ]
    })
}

const ARITHMETIC: [BinOp; 9] = [
    BinOp::Add,
    BinOp::Sub,
    BinOp::Mul,
    BinOp::FloorDiv,
    BinOp::FloorMod,
    BinOp::Div,
    BinOp::Mod,
    BinOp::Min,
    BinOp::Max,
];
const COMPARISONS: [BinOp; 6] = [BinOp::Lt, BinOp::Le, BinOp::Gt, BinOp::Ge, BinOp::Eq, BinOp::Ne];

fn build(tree: &Tree, vars: &Vars) -> Expr {
    match tree {
        Tree::Var(i) => Expr::var(&vars.0[*i]),
        Tree::Int(v) => Expr::int32(*v),
        Tree::Binary(op, a, b) => Expr::binary(ARITHMETIC[*op as usize], build(a, vars), build(b, vars)),
        Tree::Choice(op, a, b, t, f) => {
            let condition = Expr::binary(COMPARISONS[*op as usize % 6], build(a, vars), build(b, vars));
            let (t, f) = (build(t, vars), build(f, vars));
            if *op < 7 {
                Expr::select(condition, t, f)
            } else {
                Expr::call(Op::IfThenElse, DType::INT32, vec![condition, t, f])
            }
        }
        Tree::Bits(5, a, _) => Expr::call(Op::BitwiseNot, DType::INT32, vec![build(a, vars)]),
        Tree::Bits(op, a, n) => {
            let op = [
                Op::BitwiseAnd,
                Op::BitwiseOr,
                Op::BitwiseXor,
                Op::ShiftLeft,
                Op::ShiftRight,
            ][*op as usize];
            Expr::call(op, DType::INT32, vec![build(a, vars), Expr::int32(*n as i32)])
        }
        Tree::Detour(a) => build(a, vars).cast(DType::INT64).cast(DType::INT32),
    }
}

fn values() -> impl Strategy<Value = Values> {
    let any = -30..60i128;
    (
        any.clone(),
        any.clone(),
        any.clone(),
        any.clone(),
        any.clone(),
        0..256i128,
        0..16i128,
        any,
    )
        .prop_map(|(x, y, z, n, m, a, b, p)| [x, y, z, n, m, a, b, p])
}

/// A sum, difference or product, whatever its dtype has.
fn exact(op: BinOp, x: i128, y: i128) -> i128 {
    match op {
        BinOp::Add => x + y,
        BinOp::Sub => x - y,
        _ => x * y,
    }
}

/// Whether evaluation stays within `int32`: overflow is assumed not to happen.
fn stays_in_range(expr: &Expr, vars: &Vars, values: &Values) -> bool {
    let wide = |e: &Expr| eval(e, vars, values).is_some_and(|v| v.abs() < 1 << 30);
    let here = match &expr.kind {
        ExprKind::Binary(op @ (BinOp::Add | BinOp::Sub | BinOp::Mul), a, b) => {
            let (Some(x), Some(y)) = (eval(a, vars, values), eval(b, vars, values)) else {
                return false;
            };
            exact(*op, x, y).abs() < 1 << 30
        }
        _ => wide(expr),
    };
    here && expr.operands().all(|e| stays_in_range(e, vars, values))
}

/// Whether a sum, difference or product that is evaluated leaves its dtype.
fn overflows(expr: &Expr, vars: &Vars, values: &Values) -> bool {
    let below = |e: &Expr| overflows(e, vars, values);
    if let ExprKind::Call {
        op: Op::IfThenElse,
        args,
    } = &expr.kind
    {
        let chosen = if eval(&args[0], vars, values) == Some(0) {
            2
        } else {
            1
        };
        return below(&args[0]) || below(&args[chosen]);
    }
    if expr.operands().any(below) {
        return true;
    }
    let ExprKind::Binary(op @ (BinOp::Add | BinOp::Sub | BinOp::Mul), a, b) = &expr.kind else {
        return false;
    };
    let (Some(x), Some(y)) = (eval(a, vars, values), eval(b, vars, values)) else {
        return false;
    };
    expr.dtype.wrap(exact(*op, x, y)) != exact(*op, x, y)
}

/// Whether bounds show that nothing in the expression leaves its dtype.
fn is_shown_within(analyzer: &Analyzer, expr: &Expr) -> bool {
    let quotient = match &expr.kind {
        ExprKind::Binary(op @ (BinOp::Div | BinOp::FloorDiv), a, b) => {
            ConstIntBound::of_binary(*op, analyzer.const_int_bound(a), analyzer.const_int_bound(b))
        }
        _ => ConstIntBound::exactly(0),
    };
    // A value that may be the least or the greatest of its dtype counts as unknown.
    let known = !matches!(expr.kind, ExprKind::Select(..) | ExprKind::Call { .. }) || analyzer.is_known(expr);
    quotient.is_within(ConstIntBound::of_dtype(expr.dtype))
        && known
        && analyzer.stays_within(expr)
        && expr.operands().all(|e| is_shown_within(analyzer, e))
}

/// Trees over large numbers.
fn large_trees() -> impl Strategy<Value = Tree> {
    let constants = prop_oneof![
        Just(0),
        Just(1),
        Just(2),
        Just(-1),
        Just(i32::MAX),
        Just(-i32::MAX),
        Just(1 << 30),
        -9..9i32,
        any::<i32>(),
    ];
    let leaf = prop_oneof![3 => (0..7usize).prop_map(Tree::Var), 2 => constants.prop_map(Tree::Int)];
    leaf.prop_recursive(4, 12, 3, |inner| {
        let boxed = inner.prop_map(Box::new).boxed();
        prop_oneof![
            6 => (0..9u8, boxed.clone(), boxed.clone()).prop_map(|(op, a, b)| Tree::Binary(op, a, b)),
            6 => (0..2u8, boxed.clone(), boxed.clone()).prop_map(|(op, a, b)| Tree::Binary(op, a, b)),
            1 => (0..14u8, boxed.clone(), boxed.clone(), boxed.clone(), boxed)
                .prop_map(|(op, a, b, c, d)| Tree::Choice(op, a, b, c, d)),
        ]
    })
}

/// A variable's bounds, and where between them its values are.
fn large_values() -> impl Strategy<Value = (ConstIntBound, [u32; 6])> {
    let end = || {
        prop_oneof![
            Just(0i128),
            Just(1 << 30),
            Just(-(1 << 30)),
            Just((1 << 30) - 1),
            Just(32768),
            Just(-32768),
            -9..9i128,
            (-(1i128 << 30)..1i128 << 30),
        ]
    };
    (end(), end(), any::<[u32; 6]>()).prop_map(|(a, b, at)| (ConstIntBound::new(a.min(b), a.max(b)), at))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, max_global_rejects: 100_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_stays_within_its_dtype_still_does(
        tree in large_trees(),
        comparison in 0..7usize,
        other in large_trees(),
        ranges in prop::collection::vec(large_values(), 8),
    ) {
        let vars = Vars::new();
        let mut expr = build(&tree, &vars);
        if let Some(op) = COMPARISONS.get(comparison) {
            expr = Expr::binary(*op, expr, build(&other, &vars));
        }
        let mut analyzer = Analyzer::new();
        for (var, (bound, _)) in vars.0.iter().zip(&ranges) {
            analyzer.set_bound(var, *bound);
        }
        prop_assume!(is_shown_within(&analyzer, &expr));
        let simplified = analyzer.simplify(&expr);
        let rewritten = analyzer.rewrite_simplify(&expr);
        let canonical = analyzer.canonical_simplify(&expr);
        for i in 0..6 {
            let point: Values = std::array::from_fn(|v| {
                let (bound, at) = &ranges[v];
                match at[i] % 4 {
                    0 => bound.min,
                    1 => bound.max,
                    _ => bound.min + i128::from(at[i]) % (bound.max - bound.min + 1),
                }
            });
            let Some(value) = eval(&expr, &vars, &point) else { continue };
            for (name, result) in [("simplify", &simplified), ("rewrite", &rewritten), ("canonical", &canonical)] {
                let text = || format!("{name}: {} became {} at {point:?}", print_expr(&expr), print_expr(result));
                prop_assert_eq!(eval(result, &vars, &point), Some(value), "{}", text());
                prop_assert!(!overflows(result, &vars, &point), "{}", text());
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn simplified_expressions_keep_their_value(tree in trees(), points in prop::collection::vec(values(), 12)) {
        let vars = Vars::new();
        let expr = build(&tree, &vars);
        let mut analyzer = vars.analyzer();
        let simplified = analyzer.simplify(&expr);
        let rewritten = analyzer.rewrite_simplify(&expr);
        let canonical = analyzer.canonical_simplify(&expr);
        let (bound, modular) = (analyzer.const_int_bound(&expr), analyzer.modular_set(&expr));
        for point in points.iter().filter(|p| stays_in_range(&expr, &vars, p)) {
            let value = eval(&expr, &vars, point).unwrap();
            for (name, result) in [("simplify", &simplified), ("rewrite", &rewritten), ("canonical", &canonical)] {
                prop_assert_eq!(eval(result, &vars, point), Some(value), "{}: {:?} at {:?}", name, result, point);
            }
            prop_assert!(bound.min <= value && value <= bound.max, "{bound:?} of {value}");
            if modular.coeff == 0 {
                prop_assert_eq!(modular.base, value);
            } else {
                prop_assert_eq!(fold::floor_mod(value, modular.coeff), modular.base, "{:?} of {}", modular, value);
            }
        }
    }

    #[test]
    fn what_is_proven_under_constraints_holds(
        given in (0..6usize, trees(), trees()),
        asked in (0..6usize, trees(), trees()),
        points in prop::collection::vec(values(), 12),
    ) {
        let vars = Vars::new();
        let compare = |(op, a, b): &(usize, Tree, Tree)| {
            Expr::binary(COMPARISONS[*op], build(a, &vars), build(b, &vars))
        };
        let (given, asked) = (compare(&given), compare(&asked));
        let both = Expr::binary(BinOp::And, given.clone(), asked.clone());
        let mut analyzer = vars.analyzer();
        let conjunction = analyzer.simplify(&both);
        let scope = analyzer.enter_constraint(&given);
        let (proven, simplified) = (analyzer.can_prove(&asked), analyzer.simplify(&asked));
        analyzer.leave(scope);
        prop_assert!(analyzer.literals.is_empty() && analyzer.facts.is_empty() && analyzer.constraint_depth == 0);
        for point in &points {
            if !stays_in_range(&both, &vars, point) {
                continue;
            }
            let value = eval(&asked, &vars, point);
            prop_assert_eq!(eval(&conjunction, &vars, point), eval(&both, &vars, point), "{:?}", conjunction);
            if eval(&given, &vars, point) == Some(1) {
                prop_assert!(!proven || value == Some(1), "claimed {asked:?} given {given:?} at {point:?}");
                prop_assert_eq!(eval(&simplified, &vars, point), value, "{:?} given {:?} at {:?}", asked, given, point);
            }
        }
    }
}

/// Bounds of bits of two values hold for every pair of values within small ranges, which end on both sides of zero.
#[test]
fn bounds_of_bits_hold_for_every_pair() {
    const ENDS: [i128; 8] = [-9, -8, -5, -1, 0, 1, 6, 8];
    let vars = Vars::new();
    let [x, y] = [0, 1].map(|v| Expr::var(&vars.0[v]));
    let ranges = || {
        ENDS.iter().flat_map(|min| {
            ENDS.iter()
                .filter(move |max| min <= max)
                .map(move |max| (*min, *max))
        })
    };
    for op in [Op::BitwiseAnd, Op::BitwiseOr, Op::BitwiseXor] {
        let expr = Expr::call(op, DType::INT32, vec![x.clone(), y.clone()]);
        for (a, b) in ranges().flat_map(|a| ranges().map(move |b| (a, b))) {
            let mut analyzer = Analyzer::new();
            analyzer.set_bound(&vars.0[0], ConstIntBound::new(a.0, a.1));
            analyzer.set_bound(&vars.0[1], ConstIntBound::new(b.0, b.1));
            let bound = analyzer.const_int_bound(&expr);
            for (i, j) in (a.0..=a.1).flat_map(|i| (b.0..=b.1).map(move |j| (i, j))) {
                let value = match op {
                    Op::BitwiseAnd => i & j,
                    Op::BitwiseOr => i | j,
                    _ => i ^ j,
                };
                assert!(
                    bound.min <= value && value <= bound.max,
                    "{op:?} of {i} and {j}: {value}, {bound:?}"
                );
            }
        }
    }
}
