//! Stand-ins for raw CUDA functions: their calls, and their accesses to memory, bytes at an address.

use std::sync::PoisonError;

use super::Trap;
use super::place::Spot;
use super::run::Machine;
use crate::alu::LANES;
use crate::bytecode::{Access, Region, UNNAMED_POINTER};
use crate::fault::FaultKind;
use crate::numeric::Kind;
use crate::stand_in::{PointerAccess, StandInCall};

impl Machine<'_, '_> {
    /// Raw functions may synchronize in ways the simulator cannot see: each is ordered behind those before it.
    pub(super) fn order_raw(&mut self, mask: u32) {
        let order = &mut self.shared.order;
        let mut raw = self.ctx.raw.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(before) = &*raw {
            order.acquire(self.id, mask, before);
        }
        let released = order.release(self.id, mask);
        match &mut *raw {
            Some(all) => all.join(&released),
            none => *none = Some(released),
        }
    }

    pub(super) fn call_stand_in(&mut self, id: u16, mask: u32) -> Result<(), Box<Trap>> {
        let ctx = self.ctx;
        let call = &ctx.code.calls[id as usize];
        let first = mask.trailing_zeros() & 31;
        let Some(function) = ctx.stand_ins.get(&call.name) else {
            let parameters: Vec<String> = ('a'..='z')
                .zip(&call.args)
                .map(|(name, (kind, _))| format!("{name}: {}", kind.rust()))
                .collect();
            let message = format!(
                "the simulator cannot run the raw CUDA function `{0}`: give it a Rust function in its place, \
                 `device.stand_in(\"{0}\", |{1}| …)`",
                call.name,
                parameters.join(", ")
            );
            return Err(Trap::new(FaultKind::StandIn, first, message));
        };
        for lane in (0..LANES as u32).filter(|l| mask >> l & 1 != 0) {
            let value = |kind: Kind, register: u16| {
                if kind.wide() {
                    self.warp.v64[register as usize][lane as usize]
                } else {
                    kind.store(self.warp.v32[register as usize][lane as usize] as u64)
                }
            };
            let args: Vec<u64> = call.args.iter().map(|(kind, r)| value(*kind, *r)).collect();
            let thread = super::thread_of(ctx, self.id as u32 * 32 + lane);
            let block = self.shared.index;
            let mut request = StandInCall::new(&call.name, &args, block, thread, self, lane);
            let result = function(&mut request);
            let bits = result.map_err(|message| {
                Trap::new(FaultKind::StandIn, lane, format!("`{}`: {message}", call.name))
            })?;
            if let Some((kind, d)) = call.result {
                let value = kind.load(kind.truncate(bits));
                if kind.wide() {
                    self.warp.v64[d as usize][lane as usize] = value;
                } else {
                    self.warp.v32[d as usize][lane as usize] = value as u32;
                }
            }
        }
        Ok(())
    }
}

impl PointerAccess for Machine<'_, '_> {
    fn read(&mut self, lane: u32, address: u64, out: &mut [u8]) -> Result<(), String> {
        let access = raw_bytes();
        for (i, byte) in out.iter_mut().enumerate() {
            let at = address.wrapping_add(i as u64) as i64;
            let spot = self.locate(&access, lane, at, "reads");
            let bits = spot.and_then(|spot| match spot {
                Spot::Global(storage, offset) => Ok(storage.load(offset, 8)),
                spot => self.read_spot(self.call, &access, lane, at, &spot, 0),
            });
            *byte = bits.map_err(|trap| trap.message)? as u8;
        }
        Ok(())
    }

    fn write(&mut self, lane: u32, address: u64, bytes: &[u8]) -> Result<(), String> {
        let access = raw_bytes();
        for (i, byte) in bytes.iter().enumerate() {
            let at = address.wrapping_add(i as u64) as i64;
            let spot = self.locate(&access, lane, at, "writes");
            let done = spot.and_then(|spot| match spot {
                Spot::Global(storage, offset) => {
                    storage.store(offset, 8, *byte as u64);
                    Ok(())
                }
                spot => self.write_spot(self.call, &access, lane, at, &spot, 0, *byte as u64),
            });
            done.map_err(|trap| trap.message)?;
        }
        Ok(())
    }
}

/// Single bytes through a pointer.
fn raw_bytes() -> Access {
    Access {
        region: Region::Pointer,
        kind: Kind::U8,
        count: 1,
        align: 8,
        poll: false,
        polled: false,
        swapped: false,
        constant: false,
        window: false,
        name: UNNAMED_POINTER.to_string(),
    }
}
