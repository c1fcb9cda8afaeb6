//! Removes instructions that do nothing new.
//!
//! - `CheckInit` and `MarkInit` of an element that every way to the instruction has marked: a forward analysis over the ways
//!   that one lane can take. A lane's marks are its own, so the lanes of the other side of a branch do not matter.
//! - Integer arithmetic that repeats an instruction of its basic block: the same destination and operands, nothing written in
//!   between. Index arithmetic does this for each element of a row.
//!
//! The number of operators that a block counts (`Step`) stays.

use tirx_sim_machine::alu::Bin;
use tirx_sim_machine::bytecode::{Code, Inst, Pc, R};

/// Most words of the analysis: a kernel beyond keeps its instructions.
const MAX_WORDS: usize = 1 << 24;

/// Removes them.
pub(super) fn remove(code: &mut Code) {
    let mut gone = repeated(code);
    settled(code, &mut gone);
    if gone.contains(&true) {
        compact(code, &gone);
    }
}

/// The instructions at which a way may join others.
fn leaders(code: &Code) -> Vec<bool> {
    let mut leads = vec![false; code.insts.len() + 2];
    for (at, inst) in code.insts.iter().enumerate() {
        let mut all = |pcs: &[Pc]| pcs.iter().for_each(|pc| leads[*pc as usize] = true);
        match inst {
            Inst::Jump { pc } | Inst::JumpIf { pc, .. } | Inst::JumpIfNot { pc, .. } => all(&[*pc]),
            Inst::ForStep32 { pc, .. } | Inst::ForStep64 { pc, .. } => all(&[*pc]),
            Inst::If { other, join, .. } => all(&[*other, *join, *join + 1]),
            Inst::LoopBegin { latch, exit } => all(&[*latch, *exit]),
            _ => continue,
        }
        leads[at + 1] = true;
    }
    leads
}

/// A register: its file (32-bit vector, 64-bit vector, scalar) and its number.
type Register = (u8, R);

/// What an instruction writes, and whether it may be left out if it repeats another one; `None` if it may write more.
fn effect(code: &Code, inst: &Inst) -> Option<(Option<Register>, bool)> {
    let integer = |op: Bin| !op.may_trap() && !is_float(op);
    Some(match *inst {
        Inst::Bin32 { op, d, .. } | Inst::Bin32S { op, d, .. } => (Some((0, d)), integer(op)),
        Inst::BinS32 { op, d, .. } | Inst::BinS64 { op, d, .. } => (Some((2, d)), integer(op)),
        Inst::Bin64 { op, d, .. } | Inst::Bin64S { op, d, .. } => (Some((1, d)), integer(op)),
        Inst::Mov32 { d, .. } | Inst::MulAdd { d, .. } => (Some((0, d)), false),
        Inst::Splat32 { d, .. } => (Some((0, d)), true),
        Inst::Splat64 { d, .. } => (Some((1, d)), true),
        Inst::Load { d, access, .. } if is_narrow(code, access) => (Some((0, d)), false),
        Inst::Store { .. }
        | Inst::StoreWide { .. }
        | Inst::StoreRow { .. }
        | Inst::Step { .. }
        | Inst::CheckInit { .. }
        | Inst::MarkInit { .. } => (None, false),
        _ => return None,
    })
}

/// Whether an access takes one 32-bit register.
pub(super) fn is_narrow(code: &Code, access: u16) -> bool {
    let access = &code.accesses[access as usize];
    access.count == 1 && !access.kind.wide()
}

fn is_float(op: Bin) -> bool {
    use Bin::{
        AddF, Atan2, Copysign, DivF, EqF, FloorDivF, FloorModF, Fmod, GeF, GtF, Hypot, Ldexp, LeF, LtF, MaxF,
        MinF, MulF, NeF, Nextafter, Pow, RDivF, RSubF, SubF,
    };
    matches!(
        op,
        AddF | SubF
            | RSubF
            | MulF
            | DivF
            | RDivF
            | MinF
            | MaxF
            | EqF
            | NeF
            | LtF
            | LeF
            | GtF
            | GeF
            | FloorDivF
            | FloorModF
            | Fmod
            | Pow
            | Atan2
            | Hypot
            | Copysign
            | Nextafter
            | Ldexp
    )
}

/// Whether arithmetic that may be left out reads a register.
fn reads(inst: &Inst, register: Register) -> bool {
    match *inst {
        Inst::Bin32 { a, b, .. } => [(0, a), (0, b)].contains(&register),
        Inst::Bin32S { a, s, .. } => [(0, a), (2, s)].contains(&register),
        Inst::Bin64 { a, b, .. } => [(1, a), (1, b)].contains(&register),
        Inst::Bin64S { a, s, .. } => [(1, a), (2, s)].contains(&register),
        Inst::BinS32 { a, b, .. } | Inst::BinS64 { a, b, .. } => [(2, a), (2, b)].contains(&register),
        Inst::Splat32 { s, .. } | Inst::Splat64 { s, .. } => register == (2, s),
        _ => true,
    }
}

/// Arithmetic that repeats another instruction of its basic block.
fn repeated(code: &Code) -> Vec<bool> {
    let leads = leaders(code);
    let mut gone = vec![false; code.insts.len()];
    // The last instruction that has written each register, as far as its operands are what they were.
    let mut known: Vec<(Register, Inst)> = Vec::new();
    for (at, inst) in code.insts.iter().enumerate() {
        if leads[at] {
            known.clear();
        }
        let Some((target, repeatable)) = effect(code, inst) else {
            known.clear();
            continue;
        };
        let Some(target) = target else { continue };
        if repeatable && known.contains(&(target, *inst)) {
            gone[at] = true;
            continue;
        }
        known.retain(|(register, other)| *register != target && !reads(other, target));
        if repeatable && !reads(inst, target) {
            known.push((target, *inst));
        }
    }
    gone
}

/// The ways on from each instruction, for one lane.
fn ways(code: &Code) -> Vec<Vec<usize>> {
    // A side of a branch that another side follows ends with an `Arrive` that leads behind both.
    let mut arrives = vec![None; code.insts.len()];
    // The innermost loop: its latch and its exit.
    let mut loops: Vec<(usize, usize)> = Vec::new();
    let mut all = Vec::with_capacity(code.insts.len());
    for (at, inst) in code.insts.iter().enumerate() {
        while loops.last().is_some_and(|(_, exit)| *exit <= at) {
            loops.pop();
        }
        let innermost = loops.last().copied();
        let next = at + 1;
        all.push(match *inst {
            Inst::Jump { pc } => vec![pc as usize],
            Inst::JumpIf { pc, .. } | Inst::JumpIfNot { pc, .. } => vec![next, pc as usize],
            Inst::ForStep32 { pc, .. } | Inst::ForStep64 { pc, .. } => vec![next, pc as usize],
            Inst::If { other, join, .. } => {
                if other != join
                    && let Some(arrive) = (other as usize).checked_sub(1)
                {
                    arrives[arrive] = Some(join as usize);
                }
                vec![next, other as usize]
            }
            Inst::Arrive => vec![arrives[at].unwrap_or(next)],
            Inst::LoopBegin { latch, exit } => {
                loops.push((latch as usize, exit as usize));
                vec![next]
            }
            Inst::LoopTest { .. } | Inst::LoopTestS { .. } | Inst::LoopLatch => std::iter::once(next)
                .chain(innermost.map(|(_, exit)| exit))
                .collect(),
            Inst::Break => innermost.map(|(_, exit)| exit).into_iter().collect(),
            Inst::Continue => innermost.map(|(latch, _)| latch).into_iter().collect(),
            Inst::Return | Inst::End => Vec::new(),
            _ => vec![next],
        });
    }
    all
}

/// Checks and marks of elements that are marked in any case.
fn settled(code: &Code, gone: &mut [bool]) {
    let words = code.init_bits.len().div_ceil(64);
    let count = code.insts.len();
    if words == 0 || words * count > MAX_WORDS {
        return;
    }
    let ways = ways(code);
    let set = |bits: &mut [u64], bit: u16, on: bool| {
        let (word, mask) = (bit as usize / 64, 1 << (bit % 64));
        match on {
            true => bits[word] |= mask,
            false => bits[word] &= !mask,
        }
    };
    // The elements that are marked before each instruction; all, as long as no way to it is known.
    let mut before = vec![u64::MAX; words * count];
    before[..words].fill(0);
    let mut out = vec![0; words];
    let mut changed = true;
    while std::mem::take(&mut changed) {
        for at in 0..count {
            out.copy_from_slice(&before[at * words..(at + 1) * words]);
            match code.insts[at] {
                Inst::MarkInit { bit } => set(&mut out, bit, true),
                Inst::ClearInit { bit } => set(&mut out, bit, false),
                _ => {}
            }
            for next in ways[at].iter().filter(|next| **next < count) {
                for (bits, new) in before[next * words..(next + 1) * words].iter_mut().zip(&out) {
                    changed |= *bits & !new != 0;
                    *bits &= new;
                }
            }
        }
    }
    for (at, inst) in code.insts.iter().enumerate() {
        if let Inst::CheckInit { bit } | Inst::MarkInit { bit } = inst {
            gone[at] |= before[at * words + *bit as usize / 64] >> (bit % 64) & 1 != 0;
        }
    }
}

/// Takes instructions out.
fn compact(code: &mut Code, gone: &[bool]) {
    // The new number of each instruction, or of the one that follows.
    let mut new: Vec<Pc> = Vec::with_capacity(gone.len() + 1);
    let mut count = 0;
    for gone in gone {
        new.push(count);
        count += Pc::from(!gone);
    }
    new.push(count);
    let moved = |pc: &mut Pc| *pc = new.get(*pc as usize).copied().unwrap_or(count);
    for inst in &mut code.insts {
        match inst {
            Inst::Jump { pc } | Inst::JumpIf { pc, .. } | Inst::JumpIfNot { pc, .. } => moved(pc),
            Inst::ForStep32 { pc, .. } | Inst::ForStep64 { pc, .. } => moved(pc),
            Inst::If { other, join, .. } => {
                moved(other);
                moved(join);
            }
            Inst::LoopBegin { latch, exit } => {
                moved(latch);
                moved(exit);
            }
            _ => {}
        }
    }
    fn keep<T: Copy>(all: &mut Vec<T>, gone: &[bool]) {
        let mut gone = gone.iter();
        all.retain(|_| !gone.next().copied().unwrap_or(false));
    }
    keep(&mut code.insts, gone);
    keep(&mut code.places, gone);
    keep(&mut code.charged, gone);
    code.branches.iter_mut().for_each(moved);
    for name in &mut code.names {
        moved(&mut name.range.0);
        moved(&mut name.range.1);
    }
    let wide = |at: &mut usize| {
        let mut pc = *at as Pc;
        moved(&mut pc);
        *at = pc as usize;
    };
    for barrier in &mut code.parted_barriers {
        wide(&mut barrier.pc);
        if barrier.end != usize::MAX {
            wide(&mut barrier.end);
        }
    }
    for (first, end) in &mut code.barriers_of_ranks {
        wide(first);
        wide(end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compiled(insts: Vec<Inst>, elements: usize) -> Vec<Inst> {
        let mut code = Code {
            places: vec![0; insts.len()],
            charged: vec![0; insts.len()],
            insts,
            init_bits: vec![String::new(); elements],
            ..Code::default()
        };
        remove(&mut code);
        assert_eq!(code.places.len(), code.insts.len());
        code.insts
    }

    const CHECK: Inst = Inst::CheckInit { bit: 0 };
    const MARK: Inst = Inst::MarkInit { bit: 0 };

    #[test]
    fn a_check_behind_both_sides_of_a_branch_goes_and_behind_one_side_stays() {
        let branch = |marks: [bool; 2]| {
            let side = |marks: bool| if marks { MARK } else { Inst::MarkInit { bit: 1 } };
            vec![
                Inst::If {
                    c: 0,
                    other: 3,
                    join: 4,
                },
                side(marks[0]),
                Inst::Arrive,
                side(marks[1]),
                Inst::Arrive,
                CHECK,
                Inst::End,
            ]
        };
        let both = compiled(branch([true, true]), 2);
        assert!(!both.contains(&CHECK), "{both:?}");
        for marks in [[true, false], [false, true]] {
            assert!(compiled(branch(marks), 2).contains(&CHECK));
        }
    }

    #[test]
    fn a_loop_that_may_not_run_marks_nothing_behind_it() {
        let insts = vec![
            Inst::JumpIfNot { s: 0, pc: 4 },
            MARK,
            CHECK,
            Inst::ForStep32 {
                i: 0,
                step: 1,
                end: 2,
                pc: 1,
            },
            CHECK,
            Inst::End,
        ];
        let left = compiled(insts, 1);
        assert_eq!(
            left,
            [
                Inst::JumpIfNot { s: 0, pc: 3 },
                MARK,
                Inst::ForStep32 {
                    i: 0,
                    step: 1,
                    end: 2,
                    pc: 1
                },
                CHECK,
                Inst::End
            ]
        );
    }

    #[test]
    fn lanes_that_break_before_the_mark_keep_the_check() {
        let insts = vec![
            Inst::LoopBegin { latch: 6, exit: 8 },
            Inst::LoopTest { c: 0 },
            Inst::If {
                c: 1,
                other: 4,
                join: 4,
            },
            Inst::Break,
            Inst::Arrive,
            MARK,
            Inst::LoopLatch,
            Inst::Jump { pc: 1 },
            CHECK,
            Inst::End,
        ];
        assert_eq!(compiled(insts.clone(), 1), insts);
    }

    #[test]
    fn arithmetic_goes_only_while_its_operands_stay() {
        let add = Inst::BinS32 {
            op: Bin::Add,
            d: 3,
            a: 1,
            b: 2,
        };
        let other = Inst::BinS32 {
            op: Bin::Mul,
            d: 1,
            a: 2,
            b: 2,
        };
        let float = Inst::Bin32 {
            op: Bin::AddF,
            d: 3,
            a: 1,
            b: 2,
        };
        assert_eq!(compiled(vec![add, add, Inst::End], 0), [add, Inst::End]);
        let changed = vec![add, other, add, Inst::End];
        assert_eq!(compiled(changed.clone(), 0), changed);
        let floats = vec![float, float, Inst::End];
        assert_eq!(
            compiled(floats.clone(), 0),
            floats,
            "errors of values are counted"
        );
        let own = Inst::BinS32 {
            op: Bin::Add,
            d: 1,
            a: 1,
            b: 2,
        };
        assert_eq!(compiled(vec![own, own, Inst::End], 0), [own, own, Inst::End]);
    }
}
