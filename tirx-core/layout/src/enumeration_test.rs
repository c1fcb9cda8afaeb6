//! The algebra against enumeration of the map, and against what TVM gives for a list of layouts.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;

use tirx_ir::layout::{Axis, Iter, Layout, Swizzle, TileLayout};
use tirx_ir::{DType, Expr, Var};

use tirx_arith::Analyzer;

use crate::{Composition, LayoutAlgebra, TileAlgebra, carved};

fn tile(iters: &[(i128, i128)]) -> TileLayout {
    TileLayout::from_shard(iters.iter().map(|(e, s)| Iter::memory(*e, *s)).collect())
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

/// Every place of an element on every axis, by the definition: shard, replicas, offset, then the swizzle.
fn all_places(layout: &Layout, mut flat: i128) -> Vec<Vec<(String, i128)>> {
    let tile = layout.tile();
    let mut first: BTreeMap<String, i128> = BTreeMap::new();
    for iter in tile.shard.iter().rev() {
        let extent = iter.extent.as_int().unwrap();
        *first.entry(iter.axis.0.to_string()).or_default() += flat % extent * iter.stride.as_int().unwrap();
        flat /= extent;
    }
    for (axis, by) in &tile.offset {
        *first.entry(axis.0.to_string()).or_default() += by.as_int().unwrap();
    }
    let mut all = vec![first];
    for iter in &tile.replica {
        let axis = iter.axis.0.to_string();
        let steps = 0..iter.extent.as_int().unwrap();
        let moved = |place: &BTreeMap<String, i128>, step: i128| {
            let mut place = place.clone();
            *place.entry(axis.clone()).or_default() += step * iter.stride.as_int().unwrap();
            place
        };
        all = steps
            .flat_map(|step| {
                all.iter()
                    .map(move |place| moved(place, step))
                    .collect::<Vec<_>>()
            })
            .collect();
    }
    let mut places: Vec<Vec<(String, i128)>> = all
        .into_iter()
        .map(|mut place| {
            if let (Some(swizzle), Some(at)) = (layout.swizzle(), place.get_mut("m")) {
                *at = swizzle.apply_const(*at);
            }
            place.into_iter().filter(|(_, at)| *at != 0).collect()
        })
        .collect();
    places.sort();
    places.dedup();
    places
}

fn every_place(layout: &Layout) -> Vec<Vec<Vec<(String, i128)>>> {
    let size = layout.tile().const_size().unwrap();
    (0..size).map(|flat| all_places(layout, flat)).collect()
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
        let canonical = TileLayout::from_shard(iters).canonical(true);
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
        TileLayout::from_shard(iters.collect()).shifted(&Axis::memory(), &Expr::int32(offset as i32))
    })
}

/// A layout with iterators on memory and threads, replicas, an offset and perhaps a swizzle.
fn full_layouts() -> impl Strategy<Value = Layout> {
    let axis = || prop::sample::select(vec!["m", "m", "m", "laneid", "warpid"]);
    let iter = move |most: usize| {
        (
            prop::sample::select(vec![1i128, 2, 3, 4, 6][..most].to_vec()),
            0..40i128,
            axis(),
        )
    };
    let swizzle = (0..3u32, 0..4u32, 0..3u32, any::<bool>());
    (
        prop::collection::vec(iter(5), 1..4),
        prop::collection::vec(iter(3), 0..3),
        prop::collection::vec((axis(), 0..30i128), 0..3),
        prop::option::of(swizzle),
    )
        .prop_map(|(shard, replica, offset, swizzle)| {
            let iters = |list: Vec<(i128, i128, &str)>| -> Vec<Iter> {
                let one = |(extent, stride, axis): (i128, i128, &str)| Iter {
                    axis: Axis(axis.into()),
                    ..Iter::memory(extent, stride)
                };
                list.into_iter().map(one).collect()
            };
            let mut tile = TileLayout {
                shard: iters(shard),
                replica: iters(replica),
                offset: vec![],
            };
            for (axis, by) in offset {
                tile = tile.shifted(&Axis(axis.into()), &Expr::int32(by as i32));
            }
            match swizzle {
                None => Layout::Tile(Arc::new(tile)),
                Some((per_element, swizzle_len, more, inner)) => Layout::Compose(
                    Swizzle {
                        per_element,
                        swizzle_len,
                        atom_len: swizzle_len + more,
                        inner,
                    },
                    Arc::new(tile),
                ),
            }
        })
}

/// Places on warps and lanes as places on threads.
fn on_threads(layout: &Layout) -> Vec<Vec<Vec<(String, i128)>>> {
    let on = |place: Vec<(String, i128)>| -> Vec<(String, i128)> {
        let mut all: BTreeMap<String, i128> = BTreeMap::new();
        for (axis, at) in place {
            let (axis, scale) = match &*axis {
                "laneid" => ("tx".to_string(), 1),
                "warpid" => ("tx".to_string(), 32),
                _ => (axis, 1),
            };
            *all.entry(axis).or_default() += at * scale;
        }
        all.into_iter().collect()
    };
    let element = |places: Vec<Vec<(String, i128)>>| {
        let mut places: Vec<_> = places.into_iter().map(on).collect();
        places.sort();
        places.dedup();
        places
    };
    every_place(layout).into_iter().map(element).collect()
}

/// The layout over a shape of two dimensions, cut at an iterator.
fn cut_at(layout: &TileLayout, cut: usize) -> [i128; 2] {
    let extents = layout.const_extents().unwrap();
    let cut = cut.min(extents.len());
    [extents[..cut].iter().product(), extents[cut..].iter().product()]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn canonical_forms_of_full_layouts_have_the_same_places(layout in full_layouts()) {
        // Places on threads may be written on other axes, if on all of them.
        prop_assert_eq!(on_threads(&layout.canonical(true)), on_threads(&layout));
        prop_assert_eq!(every_place(&layout.canonical(false)), every_place(&layout));
        prop_assert!(layout.same_map(&layout.canonical(true)));
    }

    #[test]
    fn coordinates_of_full_layouts_go_where_the_definition_says(layout in full_layouts(), cut in 0..5usize) {
        let shape = cut_at(layout.tile(), cut);
        let bare = Layout::clone(&layout).with_tile(TileLayout { replica: vec![], ..layout.tile().clone() });
        let mut analyzer = Analyzer::new();
        for (flat, expected) in every_place(&bare).into_iter().enumerate() {
            let at = [flat as i128 / shape[1], flat as i128 % shape[1]];
            let found = layout.offsets(&ints(&at), &ints(&shape));
            let mut found: Vec<(String, i128)> = found
                .into_iter()
                .map(|(axis, e)| (axis.0.to_string(), analyzer.simplify(&e).as_int().unwrap()))
                .filter(|(_, at)| *at != 0)
                .collect();
            found.sort();
            prop_assert_eq!(vec![found], expected);
        }
    }

    #[test]
    fn slices_of_full_layouts_are_parts_of_them(
        layout in full_layouts(), cut in 0..5usize, picks in prop::array::uniform4(0..64i128)
    ) {
        let shape = cut_at(layout.tile(), cut);
        let range = |extent: i128, a: i128, b: i128| (a % extent, a % extent + 1 + b % (extent - a % extent));
        let part = [range(shape[0], picks[0], picks[1]), range(shape[1], picks[2], picks[3])];
        if let Some(sliced) = layout.slice(&ints(&shape), &ranges(&part), &mut Analyzer::new()) {
            let numbers = (part[0].0..part[0].1).flat_map(|i| (part[1].0..part[1].1).map(move |j| i * shape[1] + j));
            let expected: Vec<_> = numbers.map(|flat| all_places(&layout, flat)).collect();
            prop_assert_eq!(every_place(&sliced), expected);
        }
    }

    #[test]
    fn groups_of_full_layouts_have_the_same_places(layout in full_layouts(), cut in 0..5usize) {
        let shape = cut_at(layout.tile(), cut);
        if let Some((grouped, starts)) = layout.tile().group_by(&shape) {
            prop_assert_eq!(every_place(&layout.with_tile(grouped.clone())), every_place(&layout));
            for (dim, run) in starts.windows(2).enumerate() {
                let size: i128 = grouped.shard[run[0]..run[1]].iter().map(|i| i.extent.as_int().unwrap()).product();
                prop_assert_eq!(size, shape[dim]);
            }
        }
    }

    #[test]
    fn a_sum_adds_places_and_gives_its_parts_back(
        left in full_layouts(), right in full_layouts(), cuts in prop::array::uniform2(0..5usize)
    ) {
        let (left, right) = (left.tile(), right.tile());
        let (a, b) = (cut_at(left, cuts[0]), cut_at(right, cuts[1]));
        let sum = right.direct_sum(left, &ints(&a), &ints(&b)).unwrap();
        let plain = |l: &TileLayout| Layout::Tile(Arc::new(TileLayout { replica: vec![], ..l.clone() }));
        let at = |l: &TileLayout, flat: i128| -> BTreeMap<String, i128> {
            all_places(&plain(l), flat).remove(0).into_iter().collect()
        };
        for flat in 0..sum.const_size().unwrap() {
            let (i, j) = (flat / (a[1] * b[1]), flat % (a[1] * b[1]));
            let mut expected = at(left, i / b[0] * a[1] + j / b[1]);
            for (axis, by) in at(right, i % b[0] * b[1] + j % b[1]) {
                *expected.entry(axis).or_default() += by;
            }
            prop_assert_eq!(at(&sum, flat), expected);
        }
        let same = |a: TileLayout, b: &TileLayout| on_threads(&Layout::Tile(Arc::new(a))) == on_threads(&Layout::Tile(Arc::new(b.clone())));
        let found = right.left_of_sum(&sum, &ints(&a), &ints(&b)).unwrap();
        prop_assert!(same(found, left));
        let found = left.right_of_sum(&sum, &ints(&a), &ints(&b)).unwrap();
        prop_assert!(same(found, right));
    }

    #[test]
    fn a_tiling_gives_its_parts_back(
        outer in layouts(), inner in layouts(), other in layouts(), cuts in prop::array::uniform2(0..5usize)
    ) {
        let outer = TileLayout { offset: vec![], ..outer };
        let (a, b) = (cut_at(&outer, cuts[0]), cut_at(&inner, cuts[1]));
        let tiled = inner.tiled_by(&outer, &ints(&a), &ints(&b)).unwrap();
        let found = inner.outer_of(&tiled, &ints(&a), &ints(&b)).unwrap();
        prop_assert_eq!(places(&found), places(&outer));
        let found = outer.inner_of(&tiled, &ints(&a), &ints(&b)).unwrap();
        prop_assert_eq!(places(&found), places(&inner));
        // The layout that is found, tiled, gives the tiling again.
        let c = cut_at(&other, cuts[1]);
        if c == b && let Some(found) = other.outer_of(&tiled, &ints(&a), &ints(&b)) {
            let again = other.tiled_by(&found, &ints(&a), &ints(&b)).unwrap();
            prop_assert_eq!(places(&again), places(&tiled));
        }
    }

    #[test]
    fn spans_end_behind_the_last_place(layout in layouts()) {
        let whole = Layout::Tile(Arc::new(layout.clone()));
        let last = places(&layout).into_iter().max().unwrap();
        prop_assert_eq!(whole.span_on(&Axis::memory()).as_int(), Some(last + 1));
        prop_assert_eq!(whole.memory_span().as_int(), Some(last + 1));
    }

    #[test]
    fn a_contiguous_run_is_contiguous(layout in layouts()) {
        let all = places(&layout);
        let run = layout.contiguous_run() as usize;
        for part in all.chunks(run) {
            prop_assert!(part.windows(2).all(|w| w[1] == w[0] + 1), "{:?} of {:?}", run, all);
        }
    }
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
        if let Some(iters) = carved(&layout.shard, chunk) {
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
