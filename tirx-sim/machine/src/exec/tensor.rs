//! Synchronous tensor core instructions of a warp: matrix rows and `mma.sync`.

use super::access::Check;
use super::run::Machine;
use super::{Status, Trap};
use crate::alu::{FULL, LANES};
use crate::bytecode::{R, TensorInst};
use crate::fault::FaultKind;
use crate::tensor::mma::compute_f64;
use crate::tensor::rows::RowMove;

impl Machine<'_, '_> {
    /// Runs an instruction for all lanes of the warp. Gives what it waits for, if it does: the strand repeats it then.
    pub(super) fn tensor(&mut self, pc: usize, id: u16, mask: u32, scalars: &[u64]) -> Check<Option<Status>> {
        let code = self.ctx.code;
        if let TensorInst::Memory(inst) = &code.tensor[id as usize] {
            return self.tensor_memory(pc, inst, mask, scalars).map(|()| None);
        }
        self.whole_warp(mask)?;
        match &code.tensor[id as usize] {
            TensorInst::Memory(_) => {}
            TensorInst::WgmmaFence => self.wgmma_fence(pc, mask)?,
            TensorInst::WgmmaCommit => self.wgmma_commit(pc, mask)?,
            TensorInst::WgmmaWait { n } => return self.wgmma_wait(pc, mask, *n),
            TensorInst::Wgmma(inst) => self.wgmma_issue(pc, id, inst, mask, scalars)?,
            TensorInst::Rows {
                rows,
                address,
                access,
                temp,
                registers,
            } => self.rows(pc, rows, [*address, *temp, *registers], *access)?,
            TensorInst::Mma {
                mma,
                a,
                b,
                c,
                d,
                metadata,
            } => {
                let shades = match self.warp.shadows.is_some() {
                    true => self.shade_mma(mma, [*a, *b], *c, *metadata),
                    false => None,
                };
                let [a_count, b_count, c_count, _] = mma.registers();
                let v32 = &mut self.warp.v32;
                let of = |first: R, count: usize| first as usize..first as usize + count;
                let none = vec![[0; LANES]; c_count];
                let c = c.map_or(&none[..], |c| &v32[of(c, c_count)]);
                let metadata = metadata.map_or([0; LANES], |r| v32[r as usize]);
                let out = mma
                    .compute(&v32[of(*a, a_count)], &v32[of(*b, b_count)], c, &metadata)
                    .map_err(|message| Trap::new(FaultKind::Asynchronous, 0, message))?;
                v32[of(*d, out.len())].copy_from_slice(&out);
                if let Some(shades) = shades {
                    self.shade_mma_after(pc, mma, *d, shades);
                }
            }
            TensorInst::MmaF64 { shape, a, b, c, d } => {
                use crate::tensor::fragment::{Part, count};
                let v64 = &mut self.warp.v64;
                let of = |first: R, part| first as usize..first as usize + count(*shape, part);
                let c = c.map_or(&[][..], |c| &v64[of(c, Part::C)]);
                let out = compute_f64(*shape, &v64[of(*a, Part::A)], &v64[of(*b, Part::B)], c);
                v64[of(*d, Part::C)].copy_from_slice(&out);
            }
        }
        Ok(None)
    }

    /// `.sync.aligned`: every lane of the warp must be here.
    pub(super) fn whole_warp(&self, mask: u32) -> Check {
        if mask == FULL {
            return Ok(());
        }
        let missing = (!mask).trailing_zeros();
        let why = if self.warp.exist >> missing & 1 == 0 {
            "does not exist"
        } else if self.warp.alive >> missing & 1 == 0 {
            "has ended"
        } else {
            "is elsewhere"
        };
        let message = format!(
            "{} lanes are at an instruction (.sync.aligned) that all 32 lanes of the warp do together: lane {missing} {why}",
            mask.count_ones()
        );
        Err(Trap::new(
            FaultKind::InvalidLanes,
            mask.trailing_zeros() & 31,
            message,
        ))
    }

    fn rows(&mut self, pc: usize, rows: &RowMove, [address, temp, registers]: [R; 3], access: u16) -> Check {
        let code = self.ctx.code;
        let access = &code.accesses[access as usize];
        let lanes = if rows.rows() >= LANES {
            FULL
        } else {
            (1 << rows.rows()) - 1
        };
        let at = self.warp.v64[address as usize].map(|a| a as i64);
        if !rows.store {
            self.load_each(pc, temp, access, lanes, &|i| at[i])?;
        }
        // Rows beyond 32 (x4 of .b8) do not exist: TIRx has none of them.
        let mut bytes = vec![[0u8; 16]; LANES];
        if !rows.store {
            for (lane, row) in bytes.iter_mut().enumerate() {
                for (w, word) in row.chunks_exact_mut(4).enumerate() {
                    word.copy_from_slice(&self.warp.v32[temp as usize + w][lane].to_le_bytes());
                }
            }
        }
        for lane in 0..LANES {
            for r in 0..rows.registers() {
                let word = &mut self.warp.v32[registers as usize + r][lane];
                let mut parts = word.to_le_bytes();
                for (b, part) in parts.iter_mut().enumerate() {
                    let (row, byte) = rows.place(lane, r, b);
                    let Some(there) = bytes.get_mut(row) else { continue };
                    if rows.store {
                        there[byte] = *part;
                    } else {
                        *part = there[byte];
                    }
                }
                *word = u32::from_le_bytes(parts);
            }
        }
        if self.warp.shadows.is_some() && !rows.store {
            self.shade_rows(rows, temp, registers);
        }
        if rows.store {
            for (lane, row) in bytes.iter().enumerate() {
                for (w, word) in row.chunks_exact(4).enumerate() {
                    let word = u32::from_le_bytes([word[0], word[1], word[2], word[3]]);
                    self.warp.v32[temp as usize + w][lane] = word;
                }
            }
            self.shared.changes += 1;
            if self.warp.shadows.is_some() {
                self.shade_rows(rows, temp, registers);
            }
            self.store_each(pc, temp, access, lanes, &|i| at[i])?;
        }
        Ok(())
    }
}
