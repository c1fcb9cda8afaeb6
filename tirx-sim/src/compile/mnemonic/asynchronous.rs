//! mbarriers whose phases are named by states, stores that complete at an mbarrier, and addresses in other blocks.

use tirx_ir::intrin::mnemonic::InstructionCall;
use tirx_ir::{DType, Expr};
use tirx_source::diagnostic::Result;

use super::super::Compiler;
use super::super::registers::Val;
use super::simulated::reasons;
use super::{and, as_dtype, natural, operand, update_of};
use tirx_sim_machine::bytecode::{
    AsyncInst, BulkInst, Direction, Inst, MbarrierInst, MbarrierWhat, PENDING_BITS, R, StoreInst, TileInst,
};
use tirx_sim_machine::numeric::Kind;

impl Compiler<'_> {
    /// `cp.async` with the number of bytes that are read (`src_size`), or with a predicate by which none is (`ignore_src`);
    /// zeros are written in place of the others. Or neither, for 16 bytes through the first-level cache.
    pub(super) fn copy_of_a_part(&mut self, call: &InstructionCall) -> Result<()> {
        let (to, from) = self.copied(call)?;
        let Some(bytes) = self.named_operand(call, "cp_size")?.as_int() else {
            return self.refuse(call, &reasons::UNKNOWN_NUMBER);
        };
        let read = match call.get("src_size") {
            Some(size) => Some(self.in_vector(size, Kind::U32)?),
            None => None,
        };
        let predicate = match call.get("ignore_src") {
            Some(ignored) => Some(self.in_vector(&Expr::logical_not(ignored.clone()), Kind::I32)?),
            None => None,
        };
        self.push_async(AsyncInst::Copy {
            to,
            from,
            bytes: bytes as u8,
            predicate,
            zeros: true,
            read,
        })
    }

    /// The addresses that a copy writes and reads.
    fn copied(&mut self, call: &InstructionCall) -> Result<(R, R)> {
        let to = self.address_value(self.named_operand(call, "dst_mem")?)?;
        Ok((to, self.address_value(self.named_operand(call, "src_mem")?)?))
    }

    /// A bulk copy that no row has: one that reduces, or with a mask of bytes and no cache policy.
    pub(super) fn bulk_copy(&mut self, call: &InstructionCall) -> Result<()> {
        let tokens = &call.tokens;
        let reduces = match tokens.has("reduce") {
            false if call.get("byte_mask").is_none() => return self.refuse(call, &reasons::ORDERED_COPY),
            false => None,
            true => {
                let op = match tokens.get("op") {
                    "" => "add",
                    op => op,
                };
                let (Some(op), Some(dtype)) = (update_of(op), natural(tokens.get("type"))) else {
                    return self.refuse(call, &reasons::OPERANDS);
                };
                Some((op, self.kind(dtype)?))
            }
        };
        let (to, from) = self.copied(call)?;
        let bytes = self.in_vector(self.named_operand(call, "size")?, Kind::U32)?;
        let barrier = match call.get("mbar") {
            Some(mbar) => Some(self.address_value(mbar)?),
            None => None,
        };
        let mask = match call.get("byte_mask") {
            Some(mask) => Some(self.in_vector(mask, Kind::U32)?),
            None => None,
        };
        self.push_async(AsyncInst::Bulk(BulkInst {
            to,
            from,
            bytes,
            barrier,
            ranks: None,
            mask,
            ignored: [None, None],
            reduces,
        }))
    }

    /// A tensor copy of four rows to global memory.
    pub(super) fn scatter(&mut self, call: &InstructionCall) -> Result<()> {
        let map = self.address_value(self.named_operand(call, "tmap")?)?;
        let shared = self.address_value(self.named_operand(call, "src_mem")?)?;
        let mut at = Vec::new();
        for coordinate in call.list("coords") {
            at.push(self.in_vector(coordinate, Kind::I32)?);
        }
        self.push_async(AsyncInst::Tile(TileInst {
            direction: Direction::Out,
            gather: true,
            map,
            shared,
            barrier: None,
            ranks: None,
            pair: false,
            at,
        }))
    }

    /// `mapa` of an address that is a number.
    pub(super) fn mapa_of_number(&mut self, call: &InstructionCall) -> Result<()> {
        let (a, rank) = (self.named_operand(call, "a")?, self.named_operand(call, "b")?);
        // A generic address has 64 bits, one of shared memory 32 that count.
        let shared = call.tokens.has("shared::cluster");
        let a = match shared {
            true => self.pointer_value(&a.clone().cast(DType::UINT32))?,
            false => self.pointer_value(a)?,
        };
        let rank = self.in_vector(rank, Kind::U32)?;
        let d = self.temp(Kind::U64)?;
        self.emit(Inst::Mapa { d, a, rank });
        let mapped = Val::vector(Kind::U64, d);
        let mapped = match shared {
            true => {
                let address = self.shared_address(mapped)?;
                let address = self.convert(address, Kind::U32)?;
                self.known(DType::UINT32, vec![address])
            }
            false => self.known(DType::UINT64, vec![mapped]),
        };
        self.write_one(call, mapped)
    }

    /// The arrivals that a phase waits for, by its state.
    pub(super) fn pending_count(&mut self, call: &InstructionCall) -> Result<()> {
        self.code.counts_arrivals = true;
        let [state] = self.operands(call, ["state"])?;
        let mask = Expr::constant(state.dtype, (1 << PENDING_BITS) - 1);
        let pending = and(state, mask).cast(DType::UINT32);
        self.write(call, vec![("count", vec![pending])])
    }

    /// An arrival at an mbarrier, with `.arrive_drop` or a state.
    pub(super) fn arrive_at_mbarrier(&mut self, call: &InstructionCall) -> Result<()> {
        let what = match () {
            () if call.tokens.has("expect_tx") => MbarrierWhat::ArriveExpect,
            () if call.tokens.has("noComplete") => MbarrierWhat::ArriveNoComplete,
            () => MbarrierWhat::Arrive,
        };
        self.mbarrier_of(call, what)
    }

    /// A test of a phase of an mbarrier, by its state or its parity.
    pub(super) fn test_mbarrier(&mut self, call: &InstructionCall) -> Result<()> {
        if call.get("report_predicate").is_some() || call.get("report_value").is_some() {
            return self.refuse(call, &reasons::REPORTS);
        }
        if call.tokens.has("phase_type::conditional") {
            return self.refuse(call, &reasons::CONDITIONAL_PHASES);
        }
        self.mbarrier_of(call, MbarrierWhat::Test)
    }

    /// An operation of an mbarrier.
    pub(super) fn mbarrier_of(&mut self, call: &InstructionCall, what: MbarrierWhat) -> Result<()> {
        let tokens = &call.tokens;
        let addr = self.named_operand(call, "addr")?;
        let barrier = self.address_value(addr)?;
        let count = ["count", "tx_count", "phase"]
            .into_iter()
            .find_map(|name| call.get(name));
        let count = match count {
            Some(count) => Some(self.in_vector(count, Kind::U32)?),
            None => None,
        };
        let tests = what == MbarrierWhat::Test;
        let state = match operand(call, "state") {
            Some(state) if tests => Some(self.in_vector(&state, Kind::U64)?),
            _ if call.get("state").is_some() => Some(self.temp(Kind::U64)?),
            _ => None,
        };
        let d = match tests {
            true => Some(self.temp(Kind::U32)?),
            false => None,
        };
        self.push_async(AsyncInst::Mbarrier(MbarrierInst {
            what,
            barrier,
            count,
            remote: None,
            predicate: None,
            relaxed: tokens.get("sem") == "relaxed",
            cluster: tokens.get("scope") == "cluster",
            drops: tokens.has("arrive_drop"),
            state,
            d,
        }))?;
        let written = match (d, state) {
            (Some(d), _) => {
                let complete = self.known(DType::UINT32, vec![Val::vector(Kind::U32, d)]);
                vec![("wait_complete", vec![complete])]
            }
            (None, Some(state)) => {
                let state = self.known(DType::UINT64, vec![Val::vector(Kind::U64, state)]);
                vec![("state", vec![state])]
            }
            (None, None) => return Ok(()),
        };
        self.write(call, written)
    }

    /// `st.async` and `red.async` to shared memory of the cluster.
    pub(super) fn store_to_mbarrier(&mut self, call: &InstructionCall) -> Result<()> {
        let tokens = &call.tokens;
        let reduces = tokens.instruction.family == "red";
        let op = tokens.instruction.slots.iter().find_map(|slot| match slot.name {
            "op" => update_of(tokens.get("op")),
            "add" => update_of("add"),
            _ => None,
        });
        let Some(dtype) = natural(tokens.get("type")) else {
            return self.refuse(call, &reasons::WIDE);
        };
        let kind = self.kind(dtype)?;
        let to = self.address_value(self.named_operand(call, "addr")?)?;
        let barrier = self.address_value(self.named_operand(call, "mbar")?)?;
        let mut values = Vec::new();
        for value in call.list(if reduces { "value" } else { "b" }) {
            values.push(self.in_vector(&as_dtype(value.clone(), dtype), kind)?);
        }
        self.push_async(AsyncInst::Store(StoreInst {
            to,
            barrier,
            kind,
            values,
            reduces: op,
        }))
    }
}
