//! `copy` → `ldstmatrix`: between the registers of fragments and shared memory, by `ldmatrix` and `stmatrix`.
//!
//! **Idea.** A matrix of these instructions has 8 rows of 16 bytes in shared memory. In registers lane `4 r + c` holds word
//! `c` of row `r`, or, transposed, words of two 16-bit elements of neighbouring rows. A local layout is such a fragment where
//! the digits of its threads and of its memory have the strides in shared memory that this asks for; what remains of its
//! memory counts matrices, of which one instruction moves up to four: lane `8 i + r` gives the address of row `r` of matrix
//! `i`.
//!
//! **Conditions.** Scope warp, warpgroup or CTA, all of whose threads are active and hold a part; elements of 8, 16 or 32 bits (16
//! where transposed); rows at multiples of 16 bytes; a swizzle of chunks of at least 16 bytes. Stores need sm_90.
//!
//! **Cost.** One instruction for four 32-bit registers of each thread, without bank conflicts in swizzled tiles.

use super::super::build::{address, flat_view, repeat};
use super::super::call::PrimitiveCall;
use super::super::context::Context;
use super::super::decline::Decline;
use super::super::digits::{self, split};
use super::super::emit::Emit;
use super::super::multiples::is_multiple;
use super::super::operands::{bits, in_memory};
use super::super::registers::Held;
use super::super::swizzle::{Step, swizzled};
use super::super::variant::{Completion, Emits, Explanation, Plan};
use crate::arith::fold;
use crate::intrin::{GpuSet, Op};
use crate::ir::{BinOp, BufferRegion, ExecScope, Expr};
use crate::layout::apply::binary;
use crate::layout::axes::{self, AxisRow};
use crate::layout::{Swizzle, TileAlgebra};

/// The local and the shared side, and whether the local one is written.
fn sides<'a>(call: &PrimitiveCall<'a>) -> Result<(&'a BufferRegion, &'a BufferRegion, bool), Decline> {
    let (dst, src) = call.moved()?;
    let (to, from) = (dst.buffer.scope(), src.buffer.scope());
    match (from, to) {
        ("local", to) if to.starts_with("shared") => Ok((src, dst, false)),
        (from, "local") if from.starts_with("shared") => Ok((dst, src, true)),
        _ => Err(format!("matrices move between local and shared memory, found src={from} dst={to}").into()),
    }
}

pub(super) fn between_local_and_shared(call: &PrimitiveCall<'_>, _: &mut Context<'_>) -> Result<(), Decline> {
    sides(call).map(drop)
}

/// Digits with one stride on each side: among the scope's threads or in a thread's memory, and in shared memory.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Digits {
    own: i128,
    count: i128,
    shared: i128,
}

impl Digits {
    /// The first `count` digits, and the rest.
    fn split(self, count: i128) -> Option<(Digits, Digits)> {
        let rest = Digits {
            own: self.own * count,
            count: self.count / count,
            shared: self.shared * count,
        };
        (self.count % count == 0).then_some((Digits { count, ..self }, rest))
    }
}

/// Takes the digits from `own` on, `count` of them, out of a list; they must have one stride in shared memory, which it
/// gives.
fn take(digits: &mut Vec<Digits>, own: i128, count: i128) -> Option<i128> {
    let (mut next, mut left, mut first) = (own, count, None);
    while left > 1 {
        let at = digits.iter().position(|d| d.own == next)?;
        let found = digits.remove(at);
        let (here, rest) = match found.count <= left {
            true => (found, None),
            false => found.split(left).map(|(here, rest)| (here, Some(rest)))?,
        };
        let stride: i128 = *first.get_or_insert(here.shared);
        if left % here.count != 0 || here.shared != stride * (next / own) {
            return None;
        }
        digits.extend(rest);
        next *= here.count;
        left /= here.count;
    }
    first.or(Some(0))
}

/// How matrices lie on both sides.
#[derive(Debug, PartialEq)]
struct Fragments {
    transposed: bool,
    /// Elements between rows in shared memory.
    row: i128,
    /// Digits over warps.
    warps: Vec<Digits>,
    /// Digits over the matrices of one instruction, and over instructions.
    matrices: Vec<Digits>,
    instructions: Vec<Digits>,
}

impl Fragments {
    /// The matrices of a distribution: digits over the scope's threads and in each thread's memory, of elements of which
    /// `word` make 32 bits.
    fn from_digits(mut threads: Vec<Digits>, mut memory: Vec<Digits>, word: i128) -> Option<Fragments> {
        let in_word = take(&mut memory, 1, word)?;
        let columns = take(&mut threads, 1, 4)?;
        let rows = take(&mut threads, 4, 8)?;
        let aligned = |stride: i128| stride > 0 && stride % (4 * word) == 0;
        let (transposed, row) = if columns == word && (in_word == 1 || word == 1) && aligned(rows) {
            (false, rows)
        } else if word == 2 && rows == 1 && aligned(in_word) && columns == 2 * in_word {
            (true, in_word)
        } else {
            return None;
        };
        memory.sort_by_key(|d| d.own);
        if memory
            .iter()
            .any(|d| d.shared % (4 * word) != 0 || d.own % word != 0)
        {
            return None;
        }
        let total: i128 = memory.iter().map(|d| d.count).product();
        let mut left = match total {
            n if n % 4 == 0 => 4,
            n if n % 2 == 0 => 2,
            _ => 1,
        };
        let (mut matrices, mut instructions) = (Vec::new(), Vec::new());
        for digits in memory {
            let part = (1..=left)
                .rev()
                .find(|n| left % n == 0 && digits.count % n == 0)?;
            let (here, rest) = digits.split(part)?;
            left /= part;
            matrices.push(here);
            instructions.push(rest);
        }
        let several = |list: Vec<Digits>| list.into_iter().filter(|d| d.count > 1).collect();
        Some(Fragments {
            transposed,
            row,
            warps: several(threads),
            matrices: several(matrices),
            instructions: several(instructions),
        })
    }

    /// Matrices of one instruction.
    fn number(&self) -> i128 {
        self.matrices.iter().map(|d| d.count).product()
    }
}

/// What the axes of threads count: threads of the scope.
fn threads_per_step(axis: &str) -> i128 {
    axes::named(axis).and_then(AxisRow::threads).unwrap_or(1)
}

/// The digits of a distribution over threads, and in each thread's memory.
fn digits(held: &Held, shared: &crate::layout::TileLayout) -> Option<(Vec<Digits>, Vec<Digits>)> {
    let extents: Vec<Expr> = held.layout.shard.iter().map(|i| i.extent.clone()).collect();
    let (far, starts) = shared.group(&extents)?;
    let (mut threads, mut memory) = (Vec::new(), Vec::new());
    for (i, iter) in held.layout.shard.iter().enumerate() {
        let list = if Held::is_thread(iter) {
            &mut threads
        } else {
            &mut memory
        };
        let mut own = iter.stride.as_int()? * threads_per_step(&iter.axis.0);
        for part in far.shard[starts[i]..starts[i + 1]].iter().rev() {
            let (count, shared) = (part.extent.as_int()?, part.stride.as_int()?);
            if count > 1 {
                list.push(Digits { own, count, shared });
            }
            own *= count;
        }
    }
    Some((threads, memory))
}

/// Which matrices a warp moves.
struct Moves {
    local: BufferRegion,
    shared: BufferRegion,
    loads: bool,
    fragments: Fragments,
    swizzle: Option<Swizzle>,
    /// The place of the first element on each side.
    shared_at: Expr,
    local_at: Expr,
}

pub(super) fn plan(call: &PrimitiveCall<'_>, cx: &mut Context<'_>) -> Result<Plan, Decline> {
    let (local, shared, loads) = sides(call)?;
    if cx.scope == ExecScope::Thread {
        return Err("matrices are moved by whole warps, the scope is thread".into());
    }
    if !loads && cx.targets.iter().any(|t| !GpuSet::least(90).holds(t.gpu)) {
        return Err("a target is older than sm_90, which stmatrix needs".into());
    }
    let dtype = local.buffer.dtype;
    let bits = bits(dtype);
    if ![8, 16, 32].contains(&bits) {
        return Err(format!("matrices have elements of 8, 16 or 32 bits, found {dtype}").into());
    }
    let word = 32 / bits;
    let held = Held::from_region(local, cx)?;
    held.covers_scope(cx)?;
    if !held.layout.replica.is_empty() {
        return Err(format!("{} is held several times", local.buffer.name).into());
    }
    let buffer = &shared.buffer;
    let sliced = in_memory(shared, cx.facts)?;
    if !sliced.tile().replica.is_empty() {
        return Err(format!("the layout of {} holds elements several times", buffer.name).into());
    }
    let swizzle = sliced.swizzle().filter(|s| s.swizzle_len > 0);
    if swizzle.is_some_and(|s| bits << s.per_element < 128) {
        return Err("the swizzle moves chunks of fewer than 16 bytes, which are rows of matrices".into());
    }
    let fragments = digits(&held, sliced.tile())
        .and_then(|(threads, memory)| Fragments::from_digits(threads, memory, word))
        .ok_or("the registers are no fragments of 8x8 matrices with rows of 16 bytes in shared memory")?;
    let shared_at = sliced.tile().offset_in_memory();
    let local_at = held.layout.offset_in_memory();
    let mut rows = std::iter::once(&shared_at).chain(&buffer.elem_offset);
    let rows_are_aligned = rows.all(|e| is_multiple(e, 4 * word, cx.facts));
    if !rows_are_aligned || !is_multiple(&local_at, word, cx.facts) {
        return Err("the rows of the matrices are not aligned to 16 bytes".into());
    }
    Ok(Box::new(Moves {
        local: local.clone(),
        shared: shared.clone(),
        loads,
        fragments,
        swizzle,
        shared_at,
        local_at,
    }))
}

/// The digits of a number, innermost first.
fn split_digits<'d>(number: &Expr, digits: &'d [Digits]) -> impl Iterator<Item = (&'d Digits, Expr)> {
    let counts: Vec<i128> = digits.iter().rev().map(|d| d.count).collect();
    digits.iter().zip(split(number, &counts).into_iter().rev())
}

/// The digits of a number, innermost first, with their places in shared memory added up.
fn place(number: &Expr, digits: &[Digits], cx: &mut Context<'_>) -> (Expr, i128) {
    let (mut sum, mut last) = (Expr::int32(0), 0);
    for (d, digit) in split_digits(number, digits) {
        sum = binary(
            BinOp::Add,
            sum,
            binary(BinOp::Mul, digit, Expr::int32(d.shared as i32)),
        );
        last += (d.count - 1) * d.shared;
    }
    (cx.facts.simplify(&sum), last)
}

impl Moves {
    /// The part of the address that depends on the thread, and an exclusive bound of it.
    fn of_thread(&self, cx: &mut Context<'_>) -> (Expr, i128) {
        let thread = cx.thread_index();
        let constant = |v: i128| Expr::constant(thread.dtype, v);
        let lane = fold::floormod(thread.clone(), constant(32));
        let row = binary(
            BinOp::Mul,
            fold::floormod(lane.clone(), constant(8)),
            Expr::int32(self.fragments.row as i32),
        );
        // Of one or two matrices the first 8 or 16 lanes give the addresses.
        let matrix = fold::floordiv(lane, constant(8));
        let matrix = match self.fragments.number() {
            2 => fold::floormod(matrix, constant(2)),
            _ => matrix,
        };
        let (of_matrix, matrix_last) = place(&matrix, &self.fragments.matrices, cx);
        let mut sum = binary(BinOp::Add, row, of_matrix);
        let mut last = 7 * self.fragments.row + matrix_last;
        for d in &self.fragments.warps {
            let number = fold::floordiv(thread.clone(), constant(d.own));
            let digit = fold::floormod(number, constant(d.count));
            sum = binary(
                BinOp::Add,
                sum,
                binary(BinOp::Mul, digit, Expr::int32(d.shared as i32)),
            );
            last += (d.count - 1) * d.shared;
        }
        (cx.facts.simplify(&sum), last + 1)
    }
}

impl Emits for Moves {
    fn explain(&self) -> Explanation {
        let rounds: i128 = self.fragments.instructions.iter().map(|d| d.count).product();
        let number = self.fragments.number();
        let transposed = if self.fragments.transposed {
            ", transposed"
        } else {
            ""
        };
        Explanation {
            completion: self.loads.then_some(Completion::Done),
            ..Explanation::default()
        }
        .line(format!(
            "{rounds} times {number} matrices of 8 rows of 16 bytes{transposed}"
        ))
    }

    fn emit(self: Box<Self>, out: &mut Emit<'_, '_>) {
        let span = out.span();
        let (shared, declare_shared) = flat_view(&self.shared.buffer, span);
        let (local, declare_local) = flat_view(&self.local.buffer, span);
        let (base, end) = self.of_thread(out.cx);
        let f = &self.fragments;
        let rounds: i128 = f.instructions.iter().map(|d| d.count).product();
        let body = repeat("f", rounds, span, |round| {
            let (mut steps, mut near) = (Vec::new(), self.local_at.clone());
            let mut far = binary(BinOp::Add, base.clone(), self.shared_at.clone());
            for (d, digit) in split_digits(&round, &f.instructions) {
                let times = |by: i128| binary(BinOp::Mul, digit.clone(), Expr::int32(by as i32));
                near = binary(BinOp::Add, near, times(d.own));
                far = binary(BinOp::Add, far, times(d.shared));
                steps.push(Step {
                    digit: digit.clone(),
                    stride: Expr::int32(d.shared as i32),
                });
            }
            let far = match self.swizzle {
                Some(swizzle) => swizzled(swizzle, &base, Some(end), &self.shared_at, &steps, out.cx),
                None => far,
            };
            let registers = (0..f.number()).map(|matrix| {
                let own: Vec<(i128, i128)> = f.matrices.iter().rev().map(|d| (d.count, d.own)).collect();
                let at = Expr::int32(digits::place(matrix, own.iter()) as i32);
                let at = binary(BinOp::Add, near.clone(), at);
                address(&local, vec![at], span)
            });
            let (op, list) = match self.loads {
                true => (Op::PtxLdmatrix, "dst"),
                false => (Op::PtxStmatrix, "src"),
            };
            op.call()
                .set("trans", Expr::bool(f.transposed))
                .set("num", f.number() as i32)
                .set("dtype", ".b16")
                .set("smem_ptr", address(&shared, vec![far], span))
                .list(list, registers)
                .at(span)
                .stmt()
        });
        for stmt in [declare_shared, declare_local, body] {
            out.push(stmt);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digits(list: &[(i128, i128, i128)]) -> Vec<Digits> {
        let one = |(own, count, shared): &(i128, i128, i128)| Digits {
            own: *own,
            count: *count,
            shared: *shared,
        };
        list.iter().map(one).collect()
    }

    #[test]
    fn fragments_are_found_as_they_are_and_transposed() {
        // 16 x 16 elements of 16 bits in rows of 64, by one warp.
        let threads = digits(&[(4, 8, 64), (1, 4, 2)]);
        let memory = digits(&[(4, 2, 8), (2, 2, 512), (1, 2, 1)]);
        let found = Fragments::from_digits(threads.clone(), memory.clone(), 2).unwrap();
        assert_eq!((found.transposed, found.row, found.number()), (false, 64, 4));
        assert!(found.warps.is_empty() && found.instructions.is_empty());
        // The other way round.
        let threads = digits(&[(4, 8, 1), (1, 4, 128)]);
        let memory = digits(&[(2, 2, 8), (1, 2, 64)]);
        let found = Fragments::from_digits(threads, memory, 2).unwrap();
        assert_eq!((found.transposed, found.row, found.number()), (true, 64, 2));
        // Words of one float, and warps.
        let threads = digits(&[(1, 4, 1), (4, 32, 32)]);
        let found = Fragments::from_digits(threads, digits(&[(1, 8, 4)]), 1).unwrap();
        assert_eq!((found.transposed, found.row, found.number()), (false, 32, 4));
        assert_eq!(
            (found.warps, found.instructions),
            (digits(&[(32, 4, 256)]), digits(&[(4, 2, 16)]))
        );
        // Rows of 8 bytes.
        let threads = digits(&[(4, 8, 4), (1, 4, 2)]);
        assert_eq!(Fragments::from_digits(threads, digits(&[(1, 2, 1)]), 2), None);
    }
}
