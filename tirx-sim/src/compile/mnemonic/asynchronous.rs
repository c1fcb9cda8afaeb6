//! mbarriers whose phases are named by states, stores that complete at an mbarrier, and addresses in other blocks.

use tirx_ir::intrin::mnemonic::InstructionCall;
use tirx_ir::{DType, Expr};
use tirx_source::diagnostic::Result;

use super::super::Compiler;
use super::super::registers::Val;
use super::{and, as_dtype, natural, operand, update_of};
use tirx_sim_machine::bytecode::{
    AsyncInst, BulkInst, Direction, Inst, MbarrierInst, MbarrierWhat, PENDING_BITS, StoreInst, TileInst,
};
use tirx_sim_machine::numeric::Kind;

impl Compiler<'_> {
    /// An instruction of this file; false where it is none.
    pub(super) fn asynchronous_mnemonic(&mut self, call: &InstructionCall) -> Result<bool> {
        let tokens = &call.tokens;
        match tokens.instruction.family {
            "mapa" => self.mapa_of_number(call),
            "cp" if tokens.has("tile::scatter4") && call.get("global_address").is_none() => {
                self.scatter(call)
            }
            "cp" if tokens.has("async") && !tokens.has("bulk") => self.copy_of_a_part(call),
            "cp" if !tokens.has("tensor") && !tokens.has("prefetch") => self.bulk_copy(call),
            "mbarrier" => self.mbarrier_mnemonic(call),
            "st" | "red" if tokens.has("async") && call.get("mbar").is_some() => self.store_to_mbarrier(call),
            _ => Ok(false),
        }
    }

    /// `cp.async` with the number of bytes that are read (`src_size`), or with a predicate by which none is (`ignore_src`);
    /// zeros are written in place of the others. Or neither, for 16 bytes through the first-level cache.
    fn copy_of_a_part(&mut self, call: &InstructionCall) -> Result<bool> {
        let (Some(to), Some(from)) = (call.get("dst_mem"), call.get("src_mem")) else {
            return Ok(false);
        };
        let Some(bytes) = call.get("cp_size").and_then(|size| size.as_int()) else {
            return Ok(false);
        };
        let (to, from) = (self.address_value(to)?, self.address_value(from)?);
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
        })?;
        Ok(true)
    }

    /// A bulk copy that no row has: one that reduces, or with a mask of bytes and no cache policy.
    fn bulk_copy(&mut self, call: &InstructionCall) -> Result<bool> {
        let tokens = &call.tokens;
        let (Some(to), Some(from), Some(size)) = (call.get("dst_mem"), call.get("src_mem"), call.get("size"))
        else {
            return Ok(false);
        };
        let reduces = match tokens.has("reduce") {
            false if call.get("byte_mask").is_none() => return Ok(false),
            false => None,
            true => {
                let op = match tokens.get("op") {
                    "" => "add",
                    op => op,
                };
                let (Some(op), Some(dtype)) = (update_of(op), natural(tokens.get("type"))) else {
                    return Ok(false);
                };
                Some((op, self.kind(dtype)?))
            }
        };
        let (to, from) = (self.address_value(to)?, self.address_value(from)?);
        let bytes = self.in_vector(size, Kind::U32)?;
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
        }))?;
        Ok(true)
    }

    /// A tensor copy of four rows to global memory.
    fn scatter(&mut self, call: &InstructionCall) -> Result<bool> {
        let (Some(map), Some(shared)) = (call.get("tmap"), call.get("src_mem")) else {
            return Ok(false);
        };
        let (map, shared) = (self.address_value(map)?, self.address_value(shared)?);
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
        }))?;
        Ok(true)
    }

    /// `mapa` of an address that is a number.
    fn mapa_of_number(&mut self, call: &InstructionCall) -> Result<bool> {
        let (Some(a), Some(rank)) = (call.get("a"), call.get("b")) else {
            return Ok(false);
        };
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
        self.write(call, vec![("d", vec![mapped])])?;
        Ok(true)
    }

    fn mbarrier_mnemonic(&mut self, call: &InstructionCall) -> Result<bool> {
        let tokens = &call.tokens;
        if tokens.has("pending_count") {
            self.code.counts_arrivals = true;
            let Some(state) = operand(call, "state") else {
                return Ok(false);
            };
            let mask = Expr::constant(state.dtype, (1 << PENDING_BITS) - 1);
            let pending = and(state, mask).cast(DType::UINT32);
            self.write(call, vec![("count", vec![pending])])?;
            return Ok(true);
        }
        let drops = tokens.has("arrive_drop");
        let arrives = drops || tokens.has("arrive");
        let what = match () {
            () if arrives && tokens.has("expect_tx") => MbarrierWhat::ArriveExpect,
            () if arrives && tokens.has("noComplete") => MbarrierWhat::ArriveNoComplete,
            () if arrives => MbarrierWhat::Arrive,
            () if tokens.has("test_wait") || tokens.has("try_wait") => MbarrierWhat::Test,
            () => return Ok(false),
        };
        // Reports, phases of other types and arrivals at several blocks are not simulated.
        let reports = call.get("report_predicate").is_some() || call.get("report_value").is_some();
        let unknown = ["phase_type::conditional", "multicast::cluster::32b"];
        let Some(addr) = call.get("addr").filter(|_| !reports) else {
            return Ok(false);
        };
        if unknown.iter().any(|token| tokens.has(token)) {
            return Ok(false);
        }
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
            drops,
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
            (None, None) => return Ok(true),
        };
        self.write(call, written)?;
        Ok(true)
    }

    /// `st.async` and `red.async` to shared memory of the cluster.
    fn store_to_mbarrier(&mut self, call: &InstructionCall) -> Result<bool> {
        let tokens = &call.tokens;
        let reduces = tokens.instruction.family == "red";
        let op = tokens.instruction.slots.iter().find_map(|slot| match slot.name {
            "op" => update_of(tokens.get("op")),
            "add" => update_of("add"),
            _ => None,
        });
        let (Some(dtype), Some(addr), Some(mbar)) =
            (natural(tokens.get("type")), call.get("addr"), call.get("mbar"))
        else {
            return Ok(false);
        };
        if reduces != op.is_some() {
            return Ok(false);
        }
        let kind = self.kind(dtype)?;
        let (to, barrier) = (self.address_value(addr)?, self.address_value(mbar)?);
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
        }))?;
        Ok(true)
    }
}
