//! Images of modules built by hand: round trips, and corrupted bytes.

use std::sync::Arc;

use super::{decode, encode};
use crate::intrin::Op;
use crate::ir::*;
use crate::layout::{Layout, Swizzle};
use crate::source::{SourceMap, Span};

/// A module with each kind of node, over two source files.
fn sample() -> IRModule {
    let mut sources = SourceMap::new();
    let unused = sources.add("unused.py", "never\n");
    let file = sources.add("kernels/k.py", "first line\n  second é line\nthird\n");
    assert_ne!(unused, file);
    let span = Span::new(file, 13, 19);
    let v = |name: &str| Var::at(name, DType::INT32, span);
    let (n, i, x, t, y) = (v("n"), v("i"), v("x"), v("t"), v("y"));
    let c = Expr::int32;
    let a = Buffer::fresh("A", vec![Expr::var(&n), c(4)], DType::FLOAT16, "global", span);
    let s = Buffer::fresh("S", vec![c(64)], DType::FLOAT32, "shared", span);
    let flat = Buffer::new(BufferNode {
        elem_offset: Some(c(8)),
        strides: vec![c(1)],
        align: 16,
        view: Some(Arc::new(View {
            name: "W".into(),
            start: 32,
            bytes: 128,
            element: 32,
            shape: vec![4, 8],
            steps: vec![(4, 8), (8, 1)],
            first: 1,
            swizzle: Some(Swizzle {
                per_element: 2,
                swizzle_len: 3,
                atom_len: 3,
                inner: true,
            }),
        })),
        ..BufferNode::flat("V", s.data.clone(), DType::FLOAT32, vec![c(32)], span)
    });
    let iter_var = IterVar {
        var: t.clone(),
        dom: Some((c(0), c(32))),
        kind: IterKind::ThreadIndex,
        thread_tag: "threadIdx.x".into(),
    };
    let stmt = |kind| Stmt::new(kind, span);
    let ramp = Expr::ramp(c(0), c(1), 4);
    let vector = Expr::load(&s, vec![ramp.clone()]);
    let loop_body = Stmt::seq([
        Stmt::store(
            &s,
            vec![ramp],
            Expr::broadcast(Expr::float(DType::FLOAT32, -0.0), 4),
            span,
        ),
        Stmt::evaluate(Expr::call(Op::BreakLoop, DType::VOID, vec![])),
    ]);
    let value = Expr::select(
        Expr::binary(BinOp::Lt, Expr::var(&x), c(3)),
        Expr::let_in(&y, c(7), Expr::var(&y) + c(1)),
        Expr::var(&i),
    );
    let body = Stmt::seq([
        stmt(StmtKind::ScopeId(ScopeIdDef {
            kind: ScopeIdKind::CtaId,
            vars: vec![x.clone()],
            extents: Some(vec![c(2)]),
            preferred: None,
        })),
        stmt(StmtKind::AllocBuffer(
            s.clone(),
            vec![("k".into(), AttrValue::List(vec![AttrValue::Float(0.5)]))],
        )),
        stmt(StmtKind::DeclBuffer(flat)),
        Stmt::bind(&i, Expr::constant(DType::INT32, i32::MIN as i128).at(span), span),
        stmt(StmtKind::For(ForLoop {
            var: v("j"),
            min: c(0),
            extent: c(9),
            kind: ForKind::Unrolled,
            thread: None,
            annotations: vec![("u".into(), AttrValue::Bool(true))],
            step: Some(c(2)),
            body: loop_body,
        })),
        stmt(StmtKind::While(Expr::bool(false), Stmt::nop())),
        Stmt::if_else(
            Expr::logical_not(Expr::bool(true)),
            Stmt::nop(),
            Some(Stmt::evaluate(value)),
            span,
        ),
        stmt(StmtKind::Assert(Assert {
            condition: Expr::bool(true),
            kind: "ValueError".into(),
            message: vec!["a".into(), "b".into()],
        })),
        Stmt::evaluate(Expr::new(
            ExprKind::Shuffle {
                vectors: vec![vector],
                indices: vec![c(2)],
            },
            DType::FLOAT32,
            span,
        )),
        Stmt::evaluate(Expr::load(&a, vec![c(0), c(1)]).cast(DType::FLOAT32)),
        Stmt::evaluate(Expr::constant(DType::UINT64, u64::MAX as i128)),
    ]);
    let body = Stmt::attr(AttrNode::IterVar(iter_var), "thread_extent", c(32), body, span);
    let param = Var::new("A_handle", DType::HANDLE);
    let attrs = [
        ("global_symbol".into(), AttrValue::Str("k".into())),
        (
            "target".into(),
            AttrValue::Target([("arch".into(), AttrValue::Str("sm_90a".into()))].into()),
        ),
        ("x".into(), AttrValue::None),
    ];
    let func = PrimFunc {
        params: vec![param.clone(), n],
        buffer_map: vec![(param, a)],
        ret: Some(Type::Prim(DType::INT32)),
        attrs: attrs.into(),
        body,
        span,
    };
    IRModule::single("main", func, sources)
}

#[test]
fn what_is_encoded_comes_back() {
    let module = sample();
    let bytes = encode(&module);
    let back = decode(&bytes).unwrap();
    structural_equal(&module, &back).unwrap();
    assert_eq!(structural_hash(&module), structural_hash(&back));
    assert_eq!(crate::ir::print(&module), crate::ir::print(&back));
    // Only the line that spans point to, under the file's name.
    let span = back.functions[0].1.span;
    let at = back.sources.locate(span).unwrap();
    assert_eq!(
        (at.file, at.line, at.column, at.line_text),
        ("kernels/k.py", 2, 3, "  second é line")
    );
    assert_eq!(back.sources.text(span), "second");
    assert_eq!(back.sources.files().count(), 1);
    assert!(!String::from_utf8_lossy(&bytes).contains("third"));
    // Encoding is stable over a round trip.
    assert_eq!(encode(&back), bytes);
    let views = |module: &IRModule| {
        struct Views(Vec<Arc<View>>);
        impl Mutator for Views {
            fn buffer_def(&mut self, buffer: &Buffer) -> Buffer {
                self.0.extend(buffer.view.clone());
                buffer.clone()
            }
        }
        let mut views = Views(Vec::new());
        views.stmt(&module.functions[0].1.body);
        views.0
    };
    assert_eq!(views(&module), views(&back));
    assert_eq!(views(&back).len(), 1);
}

#[test]
fn names_do_not_count_in_hashes_and_structure_does() {
    let module = sample();
    let renamed = module.clone().map(|mut f| {
        let n = f.params[1].clone();
        let m = n.renamed("m");
        let substitute = |e: &Expr| substitute(e, &|v| (*v == n).then(|| Expr::var(&m)));
        let (param, a) = f.buffer_map[0].clone();
        let b = a.with(|node| {
            node.name = "B".into();
            node.shape = node.shape.iter().map(substitute).collect();
            node.layout = node
                .layout
                .as_ref()
                .map(|l: &Layout| l.map_exprs(&mut |e| substitute(e)));
        });
        struct Swap(Buffer, Buffer);
        impl Mutator for Swap {
            fn buffer_use(&mut self, buffer: &Buffer) -> Buffer {
                if *buffer == self.0 {
                    self.1.clone()
                } else {
                    buffer.clone()
                }
            }
        }
        f.params[1] = m.clone();
        struct WithoutViews;
        impl Mutator for WithoutViews {
            fn buffer_use(&mut self, buffer: &Buffer) -> Buffer {
                match buffer.view {
                    Some(_) => buffer.with(|node| node.view = None),
                    None => buffer.clone(),
                }
            }
            fn buffer_def(&mut self, buffer: &Buffer) -> Buffer {
                self.buffer_use(buffer)
            }
        }
        f.body = WithoutViews.stmt(&f.body);
        f.body = Swap(a, b.clone()).stmt(&f.body);
        f.buffer_map = vec![(param, b)];
        f
    });
    structural_equal(&module, &renamed).unwrap();
    assert_eq!(structural_hash(&module), structural_hash(&renamed));

    let changed = module.clone().map(|mut f| {
        f.body = substitute_stmt(&f.body, &|v| (v.name() == "x").then(|| Expr::int32(5)));
        f
    });
    assert_ne!(structural_hash(&module), structural_hash(&changed));
    let mismatch = structural_equal(&module, &changed).unwrap_err();
    assert_eq!(
        mismatch.to_string(),
        "at main.body.body[6].else.condition.a: `x` is not `5`"
    );
}

#[test]
fn broken_bytes_are_an_error() {
    let bytes = encode(&sample());
    assert!(decode(&[]).is_err());
    assert!(decode(b"ELF\x7f....").is_err());
    for length in 0..bytes.len() {
        assert!(decode(&bytes[..length]).is_err(), "{length} bytes");
    }
    let mut longer = bytes.clone();
    longer.push(0);
    assert!(decode(&longer).unwrap_err().message.contains("after the module"));
    // Any change of any byte gives an error or some module, never a panic; a module that decodes can be printed and
    // verified.
    let mut state = 7u32;
    for at in 0..bytes.len() {
        for _ in 0..8 {
            state = state.wrapping_mul(1664525).wrapping_add(1013904223);
            let mut broken = bytes.clone();
            broken[at] = (state >> 16) as u8;
            if let Ok(module) = decode(&broken) {
                let _ = verify(&module);
                let _ = crate::ir::print(&module);
            }
        }
    }
}

#[test]
fn deep_nesting_is_an_error() {
    let nested = |levels: u32| {
        let mut e = Expr::bool(true);
        for _ in 0..levels {
            e = Expr::logical_not(e);
        }
        let func = PrimFunc {
            params: vec![],
            buffer_map: vec![],
            ret: None,
            attrs: Attrs::new(),
            body: Stmt::evaluate(e),
            span: Span::NONE,
        };
        decode(&encode(&IRModule::single("main", func, SourceMap::new())))
    };
    assert!(nested(MAX_LEVELS).is_ok());
    assert!(nested(MAX_LEVELS + 3000).unwrap_err().message.contains("nesting"));
}
