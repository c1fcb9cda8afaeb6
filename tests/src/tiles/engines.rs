//! Random programs of the tile primitives that engines and tensor cores do: tensor copies, copies to another block, fragments
//! of matrices, tensor memory and [`products`]. Each program is one of a few forms, of random sizes, dtypes, layouts and places; as in
//! [`tiles`](super), what it must compute is done a second time on plain numbers.

use std::fmt::Write;

use tirx_core::ir::{DType, TypeCode};

use super::{TileProgram, contents, products};
use crate::generator::random::Random;
use crate::machine::Argument;

pub(super) const E2M1: DType = DType::scalar(TypeCode::Float4_e2m1fn, 4);

pub(super) const HOPPER: &str = "sm_90a";
pub(super) const BLACKWELL: &str = "sm_100a";

/// What the forms share: the imports, and functions for barriers, fences and layouts.
const HEAD: &str = r#"from tvm.backend.cuda.tile_primitive.gemm_async.tcgen05 import sf_smem_layout
from tvm.backend.cuda.tile_primitive.tma_utils import SwizzleMode, mma_shared_layout
from tvm.script import tirx as T
from tvm.script.tirx import tile as Tx
from tvm.tirx.layout import S, TCol, TileLayout, TLane, laneid, tid_in_wg, wid_in_wg


def fragments(rows, k, per_word):
    shape = (rows // 16, 2, 8, k // (4 * per_word), 4, per_word)
    return TileLayout(S[shape : (k // 2, per_word, 4 @ laneid, 2 * per_word, 1 @ laneid, 1)])


def columns_of_b(k, columns):
    return TileLayout(S[(k // 8, 4, 2, columns // 8, 8) : (2, 1 @ laneid, 1, k // 4, 4 @ laneid)])


def sums(rows, columns):
    shape = (rows // 64, 4, 2, 8, columns // 8, 4, 2)
    return TileLayout(S[shape : (columns // 2, 1 @ wid_in_wg, 2, 4 @ laneid, 4, 1 @ laneid, 1)])


@T.inline
def begin(bar, tx):
    if tx == 0:
        T.ptx.mbarrier.init(bar.ptr_to([0]), 1)
        T.ptx.fence.mbarrier_init()
    T.ptx.fence.proxy_async("shared::cta")
    T.cuda.cta_sync()


@T.inline
def turn():
    T.ptx.tcgen05.fence.before_thread_sync()
    T.cuda.cta_sync()
    T.ptx.tcgen05.fence.after_thread_sync()


@T.inline
def end(tmem_pool):
    T.ptx.tcgen05.fence.before_thread_sync()
    T.cuda.cta_sync()
    tmem_pool.dealloc()


"#;

/// A tensor with its numbers before and after the run.
pub(super) struct Tensor {
    name: &'static str,
    pub(super) dtype: DType,
    shape: Vec<usize>,
    pub(super) before: Vec<i64>,
    pub(super) after: Vec<i64>,
}

impl Tensor {
    /// A tensor that the program only reads.
    pub(super) fn input(name: &'static str, dtype: DType, shape: &[usize], random: &mut Random) -> Tensor {
        let count = shape.iter().product();
        let values: Vec<i64> = (0..count).map(|_| random.between(-3, 3) as i64).collect();
        Tensor {
            name,
            dtype,
            shape: shape.to_vec(),
            before: values.clone(),
            after: values,
        }
    }

    /// A tensor that begins with one number and holds others afterwards.
    pub(super) fn output(
        name: &'static str,
        dtype: DType,
        shape: &[usize],
        begin: i64,
        after: Vec<i64>,
    ) -> Tensor {
        Tensor {
            name,
            dtype,
            shape: shape.to_vec(),
            before: vec![begin; shape.iter().product()],
            after,
        }
    }

    fn parameter(&self) -> String {
        let shape: Vec<String> = self.shape.iter().map(ToString::to_string).collect();
        format!(
            "{}: T.Buffer(({},), \"{}\")",
            self.name,
            shape.join(", "),
            self.dtype
        )
    }
}

/// A program of its lines.
pub(super) fn program(arch: &'static str, threads: usize, tensors: &[Tensor], lines: &str) -> TileProgram {
    let parameters: Vec<String> = tensors.iter().map(Tensor::parameter).collect();
    let mut text = format!("{HEAD}@T.prim_func\ndef program({}):\n", parameters.join(", "));
    let ids = "T.device_entry()\nbx = T.cta_id([BLOCKS])\nwarp = T.warp_id([WARPS])\nlane = T.lane_id([32])\ntx = T.thread_id([THREADS])";
    let blocks = if lines.contains("cta_id_in_cluster") {
        "2"
    } else {
        "1"
    };
    let ids = ids
        .replace("BLOCKS", blocks)
        .replace("WARPS", &(threads / 32).to_string())
        .replace("THREADS", &threads.to_string());
    for line in ids.lines().chain(lines.lines()) {
        let _ = writeln!(text, "    {line}");
    }
    let argument = |tensor: &Tensor| {
        let argument = Argument::Tensor {
            dtype: tensor.dtype,
            shape: tensor.shape.iter().map(|extent| *extent as i64).collect(),
            bytes: contents(tensor.dtype, &tensor.before),
        };
        (tensor.name.to_string(), argument)
    };
    TileProgram {
        text,
        arguments: tensors.iter().map(argument).collect(),
        expected: tensors.iter().map(|t| contents(t.dtype, &t.after)).collect(),
        arch: Some(arch),
    }
}

type ProgramGenerator = fn(&mut Random) -> TileProgram;

const FORMS: &[ProgramGenerator] = &[
    tensor_copies,
    to_the_other_block,
    matrix_fragments,
    permuted,
    products::of_a_warp,
    products::on_hopper,
    products::on_blackwell,
    products::of_pairs,
    products::scaled,
    through_tensor_memory,
    filled_tensor_memory,
];

/// Forms that have a turn beside these. Random programs are without them, so that the seeds of known figures keep their programs.
const OF_ONE_THREAD: &[ProgramGenerator] = &[vectors_of_a_thread, reductions_of_a_thread];

/// A program of a random form.
pub(super) fn generate(random: &mut Random) -> TileProgram {
    let form = *random.pick(FORMS);
    form(random)
}

/// A program of one of the forms, which take turns.
pub(super) fn in_turn(random: &mut Random, turn: u64) -> TileProgram {
    let forms = [FORMS, OF_ONE_THREAD].concat();
    forms[turn as usize % forms.len()](random)
}

/// The layout of a tile in shared memory that tensor copies and tensor cores know, as an argument of an allocation; nothing for
/// rows without a swizzle.
fn swizzle(random: &mut Random, dtype: DType, rows: usize, columns: usize) -> String {
    let bytes = columns * dtype.bytes();
    let modes: Vec<usize> = (1..=3).filter(|mode| bytes == 16 << mode).collect();
    match random.chance(60) && rows.is_multiple_of(8) && !modes.is_empty() {
        true => format!(
            ", layout=mma_shared_layout(\"{dtype}\", {}, ({rows}, {columns}))",
            random.pick(&modes)
        ),
        false => String::new(),
    }
}

/// A part of a matrix, which may reach beyond its last row, into shared memory and out to another matrix.
fn tensor_copies(random: &mut Random) -> TileProgram {
    let dtypes = [
        DType::FLOAT32,
        DType::FLOAT16,
        DType::BFLOAT16,
        DType::INT32,
        DType::FLOAT64,
    ];
    let dtype = *random.pick(&dtypes);
    let unit = 16 / dtype.bytes();
    let columns = unit * *random.pick(&[1, 2, 4, 8]);
    let rows = *random.pick(&[1, 5, 8, 16, 32]);
    let (width, height) = (columns + unit * random.below(3), rows + random.below(9));
    let beyond = if random.chance(30) { rows / 2 } else { 0 };
    let mut place = || {
        let row = random.below(height + beyond - rows + 1);
        (row, random.below((width - columns) / unit + 1) * unit)
    };
    let ((row, column), (to_row, to_column)) = (place(), place());
    let a = Tensor::input("A", dtype, &[height, width], random);
    let mut after = vec![-1; height * width];
    for i in (0..rows).filter(|i| to_row + i < height) {
        for j in 0..columns {
            let inside = row + i < height;
            let from = (row + i) * width + column + j;
            after[(to_row + i) * width + to_column + j] = if inside { a.before[from] } else { 0 };
        }
    }
    let b = Tensor::output("B", dtype, &[height, width], -1, after);
    let layout = swizzle(random, dtype, rows, columns);
    let size = rows * columns * dtype.bytes();
    let (end, to_end) = (row + rows, to_row + rows);
    let (right, to_right) = (column + columns, to_column + columns);
    let lines = format!(
        "s = T.alloc_shared(({rows}, {columns}), \"{dtype}\", align=1024{layout})
bar = T.alloc_shared((1,), \"uint64\")
begin(bar, tx)
if tx == 0:
    T.ptx.mbarrier.arrive.expect_tx(bar.ptr_to([0]), {size})
    Tx.copy_async(s, A[{row}:{end}, {column}:{right}], mbar=bar.ptr_to([0]))
T.ptx.mbarrier.try_wait(bar.ptr_to([0]), 0)
if tx == 0:
    Tx.copy_async(B[{to_row}:{to_end}, {to_column}:{to_right}], s)
    T.ptx.cp_async.bulk.commit_group()
    T.ptx.cp_async.bulk.wait_group(0, False)"
    );
    let arch = *random.pick(&[HOPPER, BLACKWELL]);
    program(arch, *random.pick(&[32, 64]), &[a, b], &lines)
}

/// Rows of a tile of one block to the other block of its cluster.
fn to_the_other_block(random: &mut Random) -> TileProgram {
    let dtype = *random.pick(&[DType::FLOAT32, DType::FLOAT16, DType::INT8, DType::INT64]);
    let columns = 16 / dtype.bytes() * *random.pick(&[1, 2, 4, 8]);
    let rows = *random.pick(&[8, 16, 24]);
    let moved = *random.pick(&[rows, 8]);
    let first = random.below((rows - moved) / 8 + 1) * 8;
    let a = Tensor::input("A", dtype, &[2, rows, columns], random);
    let mut after = vec![-1; a.before.len()];
    for block in 0..2 {
        for at in first * columns..(first + moved) * columns {
            after[block * rows * columns + at] = a.before[(1 - block) * rows * columns + at];
        }
    }
    let b = Tensor::output("B", dtype, &[2, rows, columns], -1, after);
    let layout = swizzle(random, dtype, rows, columns);
    let size = moved * columns * dtype.bytes();
    let last = first + moved;
    let lines = format!(
        "rank = T.cta_id_in_cluster([2])
s = T.alloc_shared(({rows}, {columns}), \"{dtype}\", align=1024{layout})
d = T.alloc_shared(({rows}, {columns}), \"{dtype}\", align=1024{layout})
bar = T.alloc_shared((1,), \"uint64\")
Tx.cta.copy(s, A[bx, :, :])
begin(bar, tx)
T.cuda.cluster_sync()
if tx == 0:
    T.ptx.mbarrier.arrive.expect_tx(bar.ptr_to([0]), {size})
    Tx.copy_async(d[{first}:{last}, :], s[{first}:{last}, :], mbar=bar.ptr_to([0]), remote_cta_id=1 - rank)
T.ptx.mbarrier.try_wait(bar.ptr_to([0]), 0)
Tx.cta.copy(B[bx, {first}:{last}, :], d[{first}:{last}, :])
T.cuda.cluster_sync()"
    );
    let arch = *random.pick(&[HOPPER, BLACKWELL]);
    program(arch, 32, &[a, b], &lines)
}

/// Fragments of a tile to registers and to another tile, of other rows or layout.
fn matrix_fragments(random: &mut Random) -> TileProgram {
    let dtype = *random.pick(&[DType::FLOAT16, DType::BFLOAT16]);
    let (rows, columns) = (*random.pick(&[16, 32]), *random.pick(&[16, 32, 64]));
    let a = Tensor::input("A", dtype, &[rows, columns], random);
    let b = Tensor::output("B", dtype, &[rows, columns], -1, a.before.clone());
    let (from, to) = (
        swizzle(random, dtype, rows, columns),
        swizzle(random, dtype, rows, columns),
    );
    let part = *random.pick(&[16, columns]);
    let steps = columns / part;
    let lines = format!(
        "s = T.alloc_shared(({rows}, {columns}), \"{dtype}\", align=1024{from})
d = T.alloc_shared(({rows}, {columns}), \"{dtype}\", align=1024{to})
Tx.warp.copy(s, A)
T.cuda.warp_sync()
r = T.alloc_buffer(({rows}, {part}), \"{dtype}\", scope=\"local\", layout=fragments({rows}, {part}, 2))
for k in T.unroll({steps}):
    Tx.warp.copy(r, s[:, k * {part} : k * {part} + {part}])
    Tx.warp.copy(d[:, k * {part} : k * {part} + {part}], r)
T.cuda.warp_sync()
Tx.warp.copy(B, d)"
    );
    let arch = *random.pick(&[HOPPER, BLACKWELL]);
    program(arch, 32, &[a, b], &lines)
}

/// From rows to columns and back by a warp.
fn permuted(random: &mut Random) -> TileProgram {
    let dtype = *random.pick(&[DType::FLOAT16, DType::INT32, DType::FLOAT32, DType::INT8]);
    let (rows, columns) = (*random.pick(&[4, 8, 16]), *random.pick(&[8, 24, 32]));
    let a = Tensor::input("A", dtype, &[rows, columns], random);
    let b = Tensor::output("B", dtype, &[rows, columns], -1, a.before.clone());
    let lines = format!(
        "rows = T.alloc_buffer(({rows}, {columns}), \"{dtype}\", scope=\"shared\")
columns = T.alloc_buffer(({rows}, {columns}), \"{dtype}\", scope=\"shared\", layout=TileLayout(S[({rows}, {columns}) : (1, {rows})]))
Tx.warp.copy(rows, A)
T.cuda.warp_sync()
Tx.warp.permute_layout(columns, rows)
Tx.warp.permute_layout(rows, columns)
Tx.warp.copy(B, rows)"
    );
    program(HOPPER, 32, &[a, b], &lines)
}

/// Columns of tensor memory, directly and by a view, written as a whole and read in part.
fn through_tensor_memory(random: &mut Random) -> TileProgram {
    let dtypes = [DType::FLOAT32, DType::INT32, DType::FLOAT16, DType::INT8, E2M1];
    let dtype = *random.pick(&dtypes);
    let per_column = 32 / usize::from(dtype.bits);
    let columns = per_column * (1 + random.below(40));
    let width = per_column * (1 + random.below(columns / per_column));
    let first = per_column * random.below((columns - width) / per_column + 1);
    let a = Tensor::input("A", dtype, &[128, columns], random);
    let part = |row: usize| row * columns + first..row * columns + first + width;
    let after = (0..128).flat_map(|row| a.before[part(row)].to_vec()).collect();
    let b = Tensor::output("B", dtype, &[128, width], -1, after);
    let by = if random.chance(50) { ".sub" } else { "" };
    let last = first + width;
    let lines = format!(
        "pool = T.SMEMPool()
tmem_pool = T.TMEMPool(pool, total_cols=64)
pool.commit()
tmem_pool.alloc((128, 8), \"float32\")
cells = tmem_pool.alloc((128, {columns}), \"{dtype}\")
tmem_pool.commit()
turn()
r = T.wg_reg_tile({columns}, dtype=\"{dtype}\")
Tx.wg.copy(r, A)
Tx.wg.copy_async(cells, r)
T.ptx.tcgen05.wait.st()
q = T.wg_reg_tile({width}, dtype=\"{dtype}\")
Tx.wg.copy_async(q, cells{by}[:, {first}:{last}])
T.ptx.tcgen05.wait.ld()
Tx.wg.copy(B, q)
end(tmem_pool)"
    );
    program(BLACKWELL, 128, &[a, b], &lines)
}

/// Shared memory copied to tensor memory by the tensor cores' own copy.
fn filled_tensor_memory(random: &mut Random) -> TileProgram {
    let columns = 8 * (1 + random.below(4));
    let a = Tensor::input("A", DType::FLOAT32, &[128, columns], random);
    let b = Tensor::output("B", DType::FLOAT32, &[128, columns], -1, a.before.clone());
    let lines = format!(
        "pool = T.SMEMPool()
tmem_pool = T.TMEMPool(pool, total_cols=64)
bar = pool.alloc((1,), \"uint64\", align=8)
As = pool.alloc_tcgen05_mma_AB((128, {columns}), \"float32\", swizzle_mode=\"none\")
pool.commit()
tmem_pool.alloc((128, {}), \"float32\")
cells = tmem_pool.alloc((128, {columns}), \"float32\")
tmem_pool.commit()
Tx.cta.copy(As, A)
begin(bar, tx)
turn()
if warp == 0:
    if T.ptx.elect_sync():
        Tx.copy_async(cells, As)
        T.ptx.tcgen05.commit(bar.ptr_to([0]))
T.ptx.mbarrier.try_wait(bar.ptr_to([0]), 0)
T.ptx.tcgen05.fence.after_thread_sync()
r = T.wg_reg_tile({columns})
Tx.wg.copy_async(r, cells)
T.ptx.tcgen05.wait.ld()
Tx.wg.copy(B, r)
end(tmem_pool)",
        4 * (1 + random.below(4)),
    );
    program(BLACKWELL, 128, &[a, b], &lines)
}

/// A row for each thread, moved as a whole through its registers: as wide as one instruction moves at once.
fn vectors_of_a_thread(random: &mut Random) -> TileProgram {
    let dtype = *random.pick(&[DType::FLOAT16, DType::FLOAT32, DType::INT8]);
    let columns = *random.pick(&[2, 4, 8, 16, 32]) / dtype.bytes();
    let columns = columns.max(1);
    let a = Tensor::input("A", dtype, &[32, columns], random);
    let b = Tensor::output("B", dtype, &[32, columns], -1, a.before.clone());
    let lines = format!(
        "r = T.alloc_local(({columns},), \"{dtype}\")
Tx.copy(r, A[tx, :])
Tx.copy(B[tx, :], r)"
    );
    program(BLACKWELL, 32, &[a, b], &lines)
}

/// A sum, a maximum and a minimum of each thread's own row, with the instructions of sm_100.
fn reductions_of_a_thread(random: &mut Random) -> TileProgram {
    let columns = 8 + random.below(20);
    let a = Tensor::input("A", DType::FLOAT32, &[32, columns], random);
    let reduced = |row: &[i64]| {
        let most = row.iter().copied().max().unwrap_or(0);
        [row.iter().sum(), most, row.iter().copied().min().unwrap_or(0)]
    };
    let after = a.before.chunks(columns).flat_map(reduced).collect();
    let b = Tensor::output("B", DType::FLOAT32, &[32, 3], -1, after);
    let lines = format!(
        "r = T.alloc_local(({columns},), \"float32\")
q = T.alloc_local((3,), \"float32\")
Tx.copy(r, A[tx, :])
Tx.sum(q[0:1], r)
Tx.max(q[1:2], r)
Tx.min(q[2:3], r)
Tx.copy(B[tx, :], q)"
    );
    program(BLACKWELL, 32, &[a, b], &lines)
}
