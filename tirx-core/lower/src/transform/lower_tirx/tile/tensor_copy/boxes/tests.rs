use super::*;
use crate::ir::{Buffer, Var};
use crate::layout::TileLayout;
use crate::source::Span;

fn buffer(scope: &str, shape: &[i32], dtype: DType) -> Buffer {
    let shape = shape.iter().map(|e| Expr::int32(*e)).collect();
    Buffer::fresh("A", shape, dtype, scope, Span::NONE)
}

fn shared(shape: &[i32], iters: &[(i128, i128)], swizzle: u32, dtype: DType) -> BufferRegion {
    let shard = iters.iter().map(|(e, s)| Iter::memory(*e, *s)).collect();
    let tile = TileLayout::from_shard(shard).into();
    let layout = match swizzle {
        0 => Layout::Tile(tile),
        bits => Layout::Compose(
            Swizzle {
                per_element: (128 / u32::from(dtype.bits)).ilog2(),
                swizzle_len: bits,
                atom_len: 3,
                inner: true,
            },
            tile,
        ),
    };
    BufferRegion::whole(&buffer("shared", shape, dtype).with(|n| n.layout = Some(layout)))
}

fn region(buffer: &Buffer, ranges: Vec<(Expr, i32)>) -> BufferRegion {
    BufferRegion {
        buffer: buffer.clone(),
        ranges: ranges.into_iter().map(|(b, e)| (b, Expr::int32(e))).collect(),
    }
}

/// Extent, box and coordinate of each dimension, and count and step of each loop.
type Summary = (Vec<(Option<i128>, i128, Expr)>, Vec<(i128, usize, i128)>);

fn summary(boxes: &Boxes) -> Summary {
    let dims = boxes
        .dims
        .iter()
        .map(|d| (d.extent.as_int(), d.size, d.at.clone()));
    let turns = boxes.turns.iter().map(|t| (t.count, t.dim, t.step));
    (dims.collect(), turns.collect())
}

fn dims(list: &[(i128, i128, &Expr)]) -> Vec<(Option<i128>, i128, Expr)> {
    list.iter()
        .map(|(e, s, a)| (Some(*e), *s, (*a).clone()))
        .collect()
}

fn int(value: i32) -> Expr {
    Expr::int32(value)
}

#[test]
fn tiles_side_by_side_are_a_dimension_of_their_own() {
    // 64 rows of 128 halves, as two tiles of rows of 128 bytes.
    let s = shared(&[64, 128], &[(64, 64), (2, 4096), (64, 1)], 3, DType::FLOAT16);
    let a = buffer("global", &[256, 512], DType::FLOAT16);
    let row = Var::new("r", DType::INT32);
    let mut facts = Analyzer::new();
    let g = region(&a, vec![(Expr::var(&row), 64), (Expr::int32(128), 128)]);
    let found = boxes(&g, &s, true, &mut facts).unwrap();
    let expected = dims(&[(64, 64, &int(0)), (256, 64, &Expr::var(&row)), (8, 2, &int(2))]);
    assert_eq!(summary(&found), (expected, vec![]));
    assert_eq!((found.bytes(), found.swizzle), (64 * 128 * 2, 3));
    // A column that may be no multiple of 64: two copies.
    let column = Var::new("c", DType::INT32);
    let g = region(&a, vec![(Expr::var(&row), 64), (Expr::var(&column), 128)]);
    let found = boxes(&g, &s, true, &mut facts).unwrap();
    let expected = dims(&[(512, 64, &Expr::var(&column)), (256, 64, &Expr::var(&row))]);
    assert_eq!(summary(&found), (expected, vec![(2, 0, 64)]));
    // So does a matrix of 500 columns, whose last tile is cut within a row of the swizzle.
    let ragged = buffer("global", &[256, 504], DType::FLOAT16);
    let g = region(&ragged, vec![(Expr::var(&row), 64), (Expr::int32(384), 128)]);
    let found = boxes(&g, &s, true, &mut facts).unwrap();
    let expected = dims(&[(504, 64, &int(384)), (256, 64, &Expr::var(&row))]);
    assert_eq!(summary(&found), (expected, vec![(2, 0, 64)]));
}

#[test]
fn long_runs_are_cut_and_short_ones_merged() {
    let mut facts = Analyzer::new();
    let s = shared(&[4096], &[(4096, 1)], 0, DType::FLOAT32);
    let a = buffer("global", &[8, 8192], DType::FLOAT32);
    let g = region(&a, vec![(Expr::int32(3), 1), (Expr::int32(4096), 4096)]);
    let found = boxes(&g, &s, true, &mut facts).unwrap();
    let expected = dims(&[(256, 256, &int(0)), (32, 16, &int(16)), (8, 1, &int(3))]);
    assert_eq!(summary(&found), (expected, vec![]));
    // Whole rows of 8 floats.
    let s = shared(&[16, 8], &[(16, 8), (8, 1)], 0, DType::FLOAT32);
    let a = buffer("global", &[64, 8], DType::FLOAT32);
    let row = Var::new("r", DType::INT32);
    let g = region(&a, vec![(Expr::var(&row), 16), (Expr::int32(0), 8)]);
    let found = boxes(&g, &s, true, &mut facts).unwrap();
    assert_eq!(
        summary(&found),
        (dims(&[(512, 128, &(Expr::var(&row) * int(8)))]), vec![])
    );
}

#[test]
fn short_rows_become_long_ones() {
    let mut facts = Analyzer::new();
    let a = buffer("global", &[4096, 16], DType::UINT8);
    let row = Var::new("r", DType::INT32);
    let begin = Expr::var(&row) * int(128);
    let g = region(&a, vec![(begin, 128), (int(0), 16)]);
    let s = shared(&[128, 16], &[(128, 16), (16, 1)], 0, DType::UINT8);
    let found = boxes(&g, &s, true, &mut facts).unwrap();
    let expected = dims(&[(256, 256, &int(0)), (256, 8, &(Expr::var(&row) * int(8)))]);
    assert_eq!(summary(&found), (expected, vec![]));
    // A run that begins anywhere: four copies, or one of words of 64 bits.
    let a = buffer("global", &[4096], DType::FLOAT16);
    let g = region(&a, vec![(Expr::var(&row) * int(8), 1024)]);
    let s = shared(&[1024], &[(1024, 1)], 0, DType::FLOAT16);
    let found = boxes(&g, &s, true, &mut facts).unwrap();
    assert_eq!(found.unit.dtype, DType::UINT64);
    assert_eq!(
        summary(&found),
        (dims(&[(1024, 256, &(Expr::var(&row) * int(2)))]), vec![])
    );
    // Numbers that are added stay what they are.
    let found = boxes(&g, &s, false, &mut facts).unwrap();
    assert_eq!((found.unit.dtype, found.copies()), (DType::FLOAT16, 4));
}

#[test]
fn gaps_in_shared_memory_are_loops() {
    let mut facts = Analyzer::new();
    // Two tiles of 8 rows, 4096 elements apart.
    let s = shared(&[2, 8, 64], &[(2, 4096), (8, 64), (64, 1)], 0, DType::FLOAT16);
    let a = buffer("global", &[16, 64], DType::FLOAT16);
    let g = BufferRegion::whole(&a);
    let found = boxes(&g, &s, true, &mut facts).unwrap();
    let expected = dims(&[(64, 64, &int(0)), (16, 8, &int(0))]);
    assert_eq!(summary(&found), (expected, vec![(2, 1, 8)]));
    assert_eq!(found.turns[0].shared, 4096);
}

#[test]
fn nibbles_are_counted_in_bytes() {
    let fp4 = "float4_e2m1fn".parse::<DType>().unwrap();
    let mut facts = Analyzer::new();
    let s = shared(&[8, 256], &[(8, 256), (256, 1)], 3, fp4);
    let a = buffer("global", &[64, 512], fp4);
    let g = region(&a, vec![(Expr::int32(8), 8), (Expr::int32(256), 256)]);
    let found = boxes(&g, &s, true, &mut facts).unwrap();
    assert_eq!(found.unit.dtype, DType::UINT8);
    assert_eq!(
        summary(&found).0,
        dims(&[(256, 128, &int(128)), (64, 8, &int(8))])
    );
    assert!(found.dims[1].stride.is_int(256));
}

#[test]
fn reasons_name_what_the_hardware_does_not_take() {
    let mut facts = Analyzer::new();
    let mut reason = |s: &BufferRegion, a: &Buffer, ranges| {
        let g = region(a, ranges);
        boxes(&g, s, true, &mut facts).unwrap_err()
    };
    let zero = || Expr::int32(0);
    let s = shared(&[8, 4], &[(8, 4), (4, 1)], 0, DType::FLOAT16);
    let a = buffer("global", &[64, 64], DType::FLOAT16);
    assert!(reason(&s, &a, vec![(zero(), 8), (zero(), 4)]).contains("8 contiguous bytes"));
    let s = shared(&[8, 64], &[(8, 1), (64, 8)], 0, DType::FLOAT16);
    assert!(reason(&s, &a, vec![(zero(), 8), (zero(), 64)]).contains("not contiguous in global memory"));
    let odd = buffer("global", &[64, 63], DType::FLOAT16);
    let s = shared(&[8, 8], &[(8, 8), (8, 1)], 0, DType::FLOAT16);
    assert!(reason(&s, &odd, vec![(zero(), 8), (zero(), 8)]).contains("multiples of 16 bytes"));
}
