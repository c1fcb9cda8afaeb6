//! The algebra against enumeration of the map, and against what TVM gives for a list of layouts.

use std::sync::Arc;

use proptest::prelude::*;

use tirx_ir::layout::{Axis, Iter, Layout, Swizzle, TileLayout};
use tirx_ir::{DType, Expr, Var};

use crate::Analyzer;

fn tile(iters: &[(i128, i128)]) -> TileLayout {
    TileLayout::of(iters.iter().map(|(e, s)| Iter::memory(*e, *s)).collect())
}

fn ints(list: &[i128]) -> Vec<Expr> {
    list.iter().map(|e| Expr::int32(*e as i32)).collect()
}

/// The place on the memory axis of the element with row-major number `flat`, by the definition.
fn place(layout: &TileLayout, mut flat: i128) -> i128 {
    let mut at = layout.offset_of("m").as_int().unwrap();
    for iter in layout.shard.iter().rev() {
        let extent = iter.extent.as_int().unwrap();
        at += flat % extent * iter.stride.as_int().unwrap();
        flat /= extent;
    }
    at
}

fn places(layout: &TileLayout) -> Vec<i128> {
    (0..layout.const_size().unwrap())
        .map(|f| place(layout, f))
        .collect()
}

fn pairs(layout: &TileLayout) -> Vec<(i128, i128)> {
    let pair = |i: &Iter| (i.extent.as_int().unwrap(), i.stride.as_int().unwrap());
    layout.shard.iter().map(pair).collect()
}

fn ranges(list: &[(i128, i128)]) -> Vec<(Expr, Expr)> {
    let range = |(begin, end): &(i128, i128)| (Expr::int32(*begin as i32), Expr::int32((end - begin) as i32));
    list.iter().map(range).collect()
}

type Slice<'a> = (&'a [(i128, i128)], Option<(&'a [(i128, i128)], i128)>);

#[test]
fn slices_are_those_of_tvm() {
    let layout = tile(&[(4, 8), (4, 32), (8, 1)]);
    let cases: [Slice<'_>; 6] = [
        (&[(4, 8), (2, 4)], Some((&[(1, 8), (4, 32), (2, 1)], 10))),
        (&[(2, 4), (2, 4)], Some((&[(1, 8), (2, 32), (2, 1)], 66))),
        (
            &[(2, 6), (2, 4)],
            Some((&[(1, 8), (2, -56), (2, 32), (2, 1)], 66)),
        ),
        (&[(2, 5), (0, 8)], None),
        (&[(3, 12), (0, 8)], None),
        (&[(0, 8), (0, 8)], Some((&[(2, 8), (4, 32), (8, 1)], 0))),
    ];
    for (part, expected) in cases {
        let found = layout.slice(&ints(&[16, 8]), &ranges(part), &mut Analyzer::new());
        let found = found.map(|l| (pairs(&l), l.offset_of("m").as_int().unwrap()));
        let expected = expected.map(|(iters, offset)| (iters.to_vec(), offset));
        assert_eq!(found, expected, "{part:?}");
    }
}

#[test]
fn groups_are_those_of_tvm() {
    let group = |iters: &[(i128, i128)], shape: &[i128]| {
        tile(iters).group_by(shape).map(|(l, starts)| (pairs(&l), starts))
    };
    assert_eq!(
        group(&[(16, 8), (8, 1)], &[4, 4, 8]),
        Some((vec![(4, 32), (4, 8), (8, 1)], vec![0, 1, 2, 3]))
    );
    assert_eq!(
        group(&[(16, 8), (8, 1)], &[2, 1, 64]),
        Some((vec![(2, 64), (1, 64), (8, 8), (8, 1)], vec![0, 1, 2, 4]))
    );
    assert_eq!(group(&[(4, 8), (4, 32), (8, 1)], &[6, 8]), None);
}

#[test]
fn canonical_forms_are_those_of_tvm() {
    assert_eq!(pairs(&tile(&[(4, 8), (8, 1)]).canonical(true)), [(32, 1)]);
    assert_eq!(
        pairs(&tile(&[(4, 16), (8, 1)]).canonical(true)),
        [(4, 16), (8, 1)]
    );
    assert_eq!(pairs(&tile(&[(1, 1), (1, 1)]).canonical(true)), [(1, 1)]);
    let on = |extent: i128, axis: &str| Iter {
        axis: Axis(axis.into()),
        ..Iter::memory(extent, 1)
    };
    let threads = |iters: Vec<Iter>| {
        let canonical = TileLayout::of(iters).canonical(true);
        canonical
            .shard
            .iter()
            .map(|i| i.axis.0.to_string())
            .collect::<Vec<_>>()
    };
    assert_eq!(threads(vec![on(4, "wid_in_wg"), on(32, "laneid")]), ["tid_in_wg"]);
    assert_eq!(threads(vec![on(8, "warpid"), on(32, "laneid")]), ["tx"]);
    assert_eq!(
        threads(vec![on(2, "wgid"), on(4, "wid_in_wg"), on(32, "laneid")]),
        ["tx"]
    );
}

#[test]
fn tilings_are_those_of_tvm() {
    let by = tile(&[(2, 3), (3, 1)]);
    let tiled = |inner: &[(i128, i128)]| {
        let tiled = tile(inner).tiled_by(&by, &ints(&[2, 3]), &ints(&[4, 8])).unwrap();
        pairs(&tiled)
    };
    assert_eq!(tiled(&[(4, 8), (8, 1)]), [(2, 96), (4, 8), (3, 32), (8, 1)]);
    assert_eq!(tiled(&[(4, 16), (8, 1)]), [(2, 168), (4, 16), (3, 56), (8, 1)]);
    let sum = tile(&[(4, 8), (8, 1)])
        .direct_sum(&by, &ints(&[2, 3]), &ints(&[4, 8]))
        .unwrap();
    assert_eq!(pairs(&sum), [(2, 3), (4, 8), (3, 1), (8, 1)]);
}

#[test]
fn a_swizzle_moves_places_as_in_tvm() {
    let swizzle = |inner| Swizzle {
        per_element: 2,
        swizzle_len: 3,
        atom_len: 3,
        inner,
    };
    assert_eq!([3, 70, 100].map(|at| swizzle(true).apply_const(at)), [3, 78, 104]);
    assert_eq!(
        [3, 70, 100].map(|at| swizzle(false).apply_const(at)),
        [3, 102, 68]
    );
}

#[test]
fn symbolic_bounds_and_strides() {
    let (i, n) = (Var::new("i", DType::INT32), Var::new("n", DType::INT32));
    let shape = [Expr::int32(32), Expr::var(&n)];
    let rows = Layout::row_major(&shape);
    let part = [(Expr::var(&i), Expr::int32(8)), (Expr::int32(0), Expr::int32(32))];
    let sliced = rows.slice(&shape, &part, &mut Analyzer::new()).unwrap();
    assert_eq!(sliced.tile().shard[0].stride, Expr::var(&n));
    assert_eq!(tirx_ir::print_expr(&sliced.tile().offset_of("m")), "i * n");
}

/// A shape and a layout of as many elements: its iterators in row-major order of some permutation of them, with gaps.
fn layouts() -> impl Strategy<Value = TileLayout> {
    let extents = prop::collection::vec(prop::sample::select(vec![1i128, 2, 3, 4, 6, 8]), 1..5);
    (extents, any::<u64>(), 0..3i128, 0..40i128).prop_map(|(extents, seed, gap, offset)| {
        let mut order: Vec<usize> = (0..extents.len()).collect();
        let mut state = seed | 1;
        for at in (1..order.len()).rev() {
            state = state
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            order.swap(at, (state >> 33) as usize % (at + 1));
        }
        let mut stride = 1;
        let mut strides = vec![0; extents.len()];
        for at in order {
            strides[at] = stride;
            stride = stride * extents[at] + gap;
        }
        let iters = extents.iter().zip(&strides).map(|(e, s)| Iter::memory(*e, *s));
        TileLayout::of(iters.collect()).shifted(&Axis::memory(), &Expr::int32(offset as i32))
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn the_canonical_form_has_the_same_map(layout in layouts()) {
        prop_assert_eq!(places(&layout.canonical(true)), places(&layout));
    }

    #[test]
    fn grouping_keeps_the_map(layout in layouts(), cut in 0..5usize) {
        let extents = layout.const_extents().unwrap();
        let cut = cut.min(extents.len());
        let shape = [extents[..cut].iter().product(), extents[cut..].iter().product()];
        let (grouped, starts) = layout.group_by(&shape).unwrap();
        prop_assert_eq!(places(&grouped), places(&layout));
        prop_assert_eq!(starts.len(), 3);
        let first: i128 = grouped.shard[..starts[1]].iter().map(|i| i.extent.as_int().unwrap()).product();
        prop_assert_eq!(first, shape[0]);
    }

    #[test]
    fn a_slice_is_a_part_of_the_map(layout in layouts(), cut in 0..5usize, picks in prop::array::uniform4(0..64i128)) {
        let extents = layout.const_extents().unwrap();
        let cut = cut.min(extents.len());
        let shape = [extents[..cut].iter().product::<i128>(), extents[cut..].iter().product()];
        let range = |extent: i128, a: i128, b: i128| {
            let begin = a % extent;
            (begin, begin + 1 + b % (extent - begin))
        };
        let part = [range(shape[0], picks[0], picks[1]), range(shape[1], picks[2], picks[3])];
        if let Some(sliced) = layout.slice(&ints(&shape), &ranges(&part), &mut Analyzer::new()) {
            let expected: Vec<i128> = (part[0].0..part[0].1)
                .flat_map(|i| (part[1].0..part[1].1).map(move |j| (i, j)))
                .map(|(i, j)| place(&layout, i * shape[1] + j))
                .collect();
            prop_assert_eq!(places(&sliced), expected);
        }
    }

    #[test]
    fn a_tiling_repeats_the_layout(inner in layouts(), outer in layouts()) {
        let inner = TileLayout { offset: vec![], ..inner };
        let outer = TileLayout { offset: vec![], ..outer };
        let (n, m) = (inner.const_size().unwrap(), outer.const_size().unwrap());
        let tiled = inner.tiled_by(&outer, &ints(&[m]), &ints(&[n])).unwrap();
        let span = Layout::Tile(Arc::new(inner.clone())).span_on(&Axis::memory()).as_int().unwrap();
        let expected: Vec<i128> = places(&outer)
            .into_iter()
            .flat_map(|o| places(&inner).into_iter().map(move |i| o * span + i))
            .collect();
        prop_assert_eq!(places(&tiled), expected);
    }

    #[test]
    fn carving_keeps_the_map(layout in layouts(), chunk in 1..17i128) {
        if let Some(iters) = TileLayout::carved(&layout.shard, chunk) {
            let carved = TileLayout { shard: iters, ..layout.clone() };
            prop_assert_eq!(places(&carved), places(&layout));
        }
    }

    #[test]
    fn a_swizzle_permutes_its_blocks(p in 0..4u32, len in 0..4u32, more in 0..3u32, inner in any::<bool>()) {
        let swizzle = Swizzle { per_element: p, swizzle_len: len, atom_len: len + more, inner };
        let period = 1i128 << swizzle.period_bits();
        let block = 1i128 << swizzle.block_bits();
        let mut seen: Vec<i128> = (0..period).map(|at| swizzle.apply_const(at)).collect();
        for (at, to) in seen.iter().enumerate() {
            prop_assert_eq!(at as i128 / block, to / block);
        }
        seen.sort_unstable();
        prop_assert!(seen.into_iter().eq(0..period));
    }
}
