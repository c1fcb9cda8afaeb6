//! Well-formed and ill-formed functions.

use super::verify_func;
use crate::intrin::Op;
use crate::ir::{Attrs, BinOp, Buffer, DType, Expr, ExprKind, PrimFunc, Stmt, StmtKind, Var};
use crate::source::Span;

fn func(body: Vec<Stmt>) -> PrimFunc {
    let body = Stmt::seq(body);
    PrimFunc {
        params: vec![],
        buffer_map: vec![],
        ret: None,
        attrs: Attrs::new(),
        body,
        span: Span::NONE,
    }
}

fn local(name: &str) -> (Buffer, Stmt) {
    let buffer = Buffer::fresh(name, vec![Expr::int32(4)], DType::FLOAT32, "local", Span::NONE);
    let alloc = Stmt::new(StmtKind::AllocBuffer(buffer.clone(), vec![]), Span::NONE);
    (buffer, alloc)
}

fn errors(body: Vec<Stmt>) -> String {
    verify_func("f", &func(body)).map_or_else(|e| e.to_string(), |()| "none".into())
}

#[test]
fn accepts_what_is_well_formed() {
    let (a, alloc) = local("a");
    let i = Var::new("i", DType::INT32);
    let body = Stmt::store(
        &a,
        vec![Expr::var(&i)],
        Expr::float(DType::FLOAT32, 1.0),
        Span::NONE,
    );
    let again = Stmt::for_serial(&i, Expr::int32(4), body.clone(), Span::NONE);
    assert_eq!(
        errors(vec![
            alloc,
            Stmt::for_serial(&i, Expr::int32(4), body, Span::NONE),
            again
        ]),
        "none"
    );
}

#[test]
fn names_what_is_wrong() {
    let (a, alloc) = local("a");
    let x = Var::new("x", DType::INT32);
    let one = || Expr::float(DType::FLOAT32, 1.0);
    let zero = || vec![Expr::int32(0)];
    let store = |value| Stmt::store(&a, zero(), value, Span::NONE);
    let bind = || Stmt::bind(&x, Expr::int32(1), Span::NONE);
    for (body, message) in [
        (vec![store(one())], "buffer a is used outside of its scope"),
        (
            vec![Stmt::evaluate(Expr::var(&x)), bind()],
            "variable x is used outside of its scope",
        ),
        (
            vec![
                Stmt::if_else(Expr::bool(true), bind(), None, Span::NONE),
                Stmt::evaluate(Expr::var(&x)),
            ],
            "variable x is used outside of its scope",
        ),
        (vec![bind(), bind()], "variable x is defined twice"),
        (
            vec![alloc.clone(), store(Expr::int32(1))],
            "a int32 is stored to a place of float32 in `",
        ),
        (
            vec![alloc.clone(), Stmt::store(&a, vec![], one(), Span::NONE)],
            "0 indices into the 1 dimensions",
        ),
        (
            vec![Stmt::if_else(Expr::int32(1), bind(), None, Span::NONE)],
            "condition `1` is int32",
        ),
        (
            vec![Stmt::evaluate(Expr::call(Op::BreakLoop, DType::VOID, vec![]))],
            "T.break_loop outside of a loop",
        ),
        (
            vec![Stmt::evaluate(Expr::call(Op::Exp, DType::FLOAT32, vec![]))],
            "T.exp: takes 1 argument, found 0",
        ),
        (
            vec![Stmt::evaluate(Expr::call(Op::Exp, DType::FLOAT64, vec![one()]))],
            "`T.exp(T.float32(1.0))` has dtype float64 but its operands give float32",
        ),
        (
            vec![Stmt::evaluate(Expr::new(
                ExprKind::Binary(BinOp::Add, Expr::int32(1), one()),
                DType::INT32,
                Span::NONE,
            ))],
            "Add of int32 and float32",
        ),
    ] {
        let found = errors(body);
        assert!(found.contains(message), "{found:?} does not say {message:?}");
    }
}
