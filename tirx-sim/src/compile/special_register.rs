//! PTX's special registers: who and where a thread is.

use tirx_ir::{BinOp, at};
use tirx_source::diagnostic::{Result, error};

use super::Compiler;
use super::call::Call;
use super::registers::Val;
use tirx_sim_machine::alu::Bin;
use tirx_sim_machine::bytecode::{Axis, Special};
use tirx_sim_machine::numeric::Kind;

impl Compiler<'_> {
    /// `fetch_register`.
    pub(super) fn special_register(&mut self, call: &Call<'_>) -> Result<Val> {
        let register = self.text(&call.args[at!(PtxFetchRegister.reg_name)])?.to_string();
        let dim = |name: &str| match name {
            "x" => Some(0u8),
            "y" => Some(1),
            "z" => Some(2),
            _ => None,
        };
        let special = match register.rsplit_once('.') {
            None if register == "cluster_ctarank" => Some(Special::ClusterRank),
            Some((name, d)) => dim(d).and_then(|d| match name {
                "ctaid" => Some(Special::Index(Axis::Block(d))),
                "clusterid" => Some(Special::Index(Axis::Cluster(d))),
                "cluster_ctaid" => Some(Special::Index(Axis::ClusterCta(d))),
                "nctaid" => Some(Special::GridDim(d)),
                "ntid" => Some(Special::BlockDim(d)),
                "cluster_nctaid" => Some(Special::ClusterDim(d)),
                _ => None,
            }),
            None => None,
        };
        if let Some(special) = special {
            let register = self.special(special)?;
            return Ok(Val::scalar(Kind::I32, register));
        }
        if let Some(("tid", d)) = register.rsplit_once('.')
            && let Some(d) = dim(d)
        {
            return self.thread_index(d);
        }
        if register == "laneid" {
            return self.lane_id();
        }
        if let Some(mask) = register.strip_prefix("lanemask_") {
            let lane = self.lane_id()?;
            let (one, ones) = (
                self.integer(Kind::U32, 1)?,
                self.integer(Kind::U32, u32::MAX.into())?,
            );
            let bit = self.bit_operation(Bin::Shl, one, lane.with_kind(Kind::U32))?;
            let below = self.binary(BinOp::Sub, bit, one)?;
            let value = match mask {
                "eq" => bit,
                "lt" => below,
                "le" => self.bit_operation(Bin::Or, below, bit)?,
                "ge" => self.bit_operation(Bin::Xor, below, ones)?,
                "gt" => {
                    let up_to = self.bit_operation(Bin::Or, below, bit)?;
                    self.bit_operation(Bin::Xor, up_to, ones)?
                }
                _ => return error(self.span, format!("the simulator has no register %{register}")),
            };
            return Ok(value.with_kind(Kind::I32));
        }
        if register == "warpid" {
            let register = self.special(Special::WarpId)?;
            return Ok(Val::scalar(Kind::I32, register));
        }
        error(self.span, format!("the simulator has no register %{register}"))
    }

    fn lane_id(&mut self) -> Result<Val> {
        let rank = self.thread_rank()?;
        let mask = self.integer(Kind::I32, 31)?;
        self.bin(Bin::And, Kind::I32, Kind::I32, rank, mask)
    }

    /// Linear index of the thread in its block.
    pub(super) fn thread_rank(&mut self) -> Result<Val> {
        let mut rank = self.thread_index(0)?;
        let mut size = Val::scalar(Kind::I32, self.special(Special::BlockDim(0))?);
        for dim in 1..3u8 {
            if !self.scan.has_axis(Axis::Thread(dim)) {
                continue;
            }
            let index = self.thread_index(dim)?;
            let part = self.binary(BinOp::Mul, index, size)?;
            rank = self.binary(BinOp::Add, rank, part)?;
            let extent = Val::scalar(Kind::I32, self.special(Special::BlockDim(dim))?);
            size = self.binary(BinOp::Mul, size, extent)?;
        }
        Ok(rank)
    }
}
