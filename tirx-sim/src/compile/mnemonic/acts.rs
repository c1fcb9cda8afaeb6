//! Instructions that act: barriers, fences, products in tensor memory.

use tirx_ir::intrin::Op;
use tirx_ir::intrin::mnemonic::InstructionCall;
use tirx_ir::{DType, Expr};
use tirx_source::diagnostic::Result;

use super::super::Compiler;
use super::super::warp::Named;
use super::simulated::reasons;
use tirx_sim_machine::bytecode::{AsyncInst, Inst, Scope, ShuffleMode, Vote};
use tirx_sim_machine::numeric::Kind;

impl Compiler<'_> {
    pub(super) fn fence_by_mnemonic(&mut self, call: &InstructionCall) -> Result<()> {
        self.act(Inst::Fence {
            scope: Scope::from_modifier(call.tokens.get("scope")),
            sc: call.tokens.get("sem") == "sc",
        })
    }

    pub(super) fn fence_maps(&mut self, call: &InstructionCall) -> Result<()> {
        let acquires = call.tokens.has("acquire");
        self.push_async(AsyncInst::FenceMaps { acquires })
    }

    pub(super) fn sync_warp(&mut self, call: &InstructionCall) -> Result<()> {
        let mask = self.named_operand(call, "membermask")?;
        if mask.is_int(0xffff_ffff) {
            return self.act(Inst::WarpSync);
        }
        let here = self.bits(Kind::U32, 1)?;
        self.vote(ShuffleMode::Meet, mask, here).map(drop)
    }

    /// The barrier that a mnemonic names, and the threads that it is for.
    fn named<'e>(&self, call: &InstructionCall<'e>) -> Result<Named<'e>> {
        let tokens = &call.tokens;
        Ok(Named {
            id: self.named_operand(call, "a")?,
            threads: call.get("b"),
            aligned: tokens.instruction.family == "bar" || tokens.has("aligned"),
        })
    }

    /// A barrier of all threads of the block: one of some threads has a row.
    pub(super) fn sync_threads(&mut self, call: &InstructionCall) -> Result<()> {
        let named = self.named(call)?;
        match named.id.is_int(0) && named.aligned {
            true => {
                self.block_barrier();
                Ok(())
            }
            false => self.named_barrier(named, true),
        }
    }

    pub(super) fn arrive_at_barrier(&mut self, call: &InstructionCall) -> Result<()> {
        let named = self.named(call)?;
        self.named_barrier(named, false)
    }

    pub(super) fn vote_at_barrier(&mut self, call: &InstructionCall) -> Result<()> {
        let (named, condition) = (self.named(call)?, self.named_operand(call, "c")?);
        let (vote, dtype) = match call.tokens.get("op") {
            "and" => (Vote::All, DType::BOOL),
            "or" => (Vote::Any, DType::BOOL),
            _ => (Vote::Count, DType::UINT32),
        };
        let result = self.named_barrier_with_vote(named, condition, vote)?;
        let result = self.convert(result, if dtype.is_bool() { Kind::Bool } else { Kind::U32 })?;
        let result = self.known(dtype, vec![result]);
        self.write_one(call, result)
    }

    pub(super) fn try_cancel_by_mnemonic(&mut self, call: &InstructionCall) -> Result<()> {
        let handle = self.address_value(self.named_operand(call, "addr")?)?;
        let barrier = self.address_value(self.named_operand(call, "mbar")?)?;
        self.push_async(AsyncInst::TryCancel {
            handle,
            barrier,
            multicast: call.tokens.has("multicast::cluster::all"),
        })
    }

    /// `tcgen05.mma` in forms that no row has in full: `.ws` (with a mask of columns that are zero it is not simulated), and
    /// `.collector`. What the buffers of operands hold is what the operands are, so that they change no value.
    pub(super) fn tensor_product_by_mnemonic(&mut self, call: &InstructionCall) -> Result<()> {
        let tokens = &call.tokens;
        let scaled = tokens.has("block_scale");
        let (sums, elements) = match tokens.get("kind") {
            "kind::f16" => ("float32", "float16"),
            "kind::tf32" => ("float32", "tf32"),
            "kind::f8f6f4" | "kind::mxf8f6f4" => ("float32", "e4m3"),
            "kind::mxf4" | "kind::mxf4nvf4" => ("float32", "e2m1"),
            "kind::i8" => ("int32", "int8"),
            _ => return self.refuse(call, &reasons::NEW),
        };
        let masked = call.get("zero_col_mask").is_some_and(|mask| !mask.is_int(0));
        let (by_descriptor, in_memory) = (call.get("a_desc"), call.get("a"));
        if call.get("metadata").is_some() {
            return self.refuse(call, &reasons::SPARSE);
        }
        if masked {
            return self.refuse(call, &reasons::MASKED_COLUMNS);
        }
        if tokens.has("ashift") {
            return self.refuse(call, &reasons::SHIFTED);
        }
        let a = match by_descriptor.or(in_memory) {
            Some(a) => a,
            None => self.named_operand(call, "a")?,
        };
        let (d, b) = (
            self.named_operand(call, "d")?,
            self.named_operand(call, "b_desc")?,
        );
        let (descriptor, adds) = (
            self.named_operand(call, "idesc")?,
            self.named_operand(call, "enable_input_d")?,
        );
        let pair = tokens.has("cta_group::2");
        let op = match scaled {
            true => Op::PtxTcgen05MmaBlockScale,
            false => Op::PtxTcgen05Mma,
        };
        let mut product = op
            .call()
            .set("d_dtype", sums)
            .set("a_dtype", elements)
            .set("b_dtype", elements)
            .set("d_tmem_addr", d.clone())
            .set("a_operand", a.clone())
            .set("b_desc", b.clone())
            .set("i_desc", descriptor.clone())
            .set("use_a_tmem", by_descriptor.is_none())
            .set("cta_group", if pair { 2 } else { 1 })
            .set("enable_input_d", adds.clone().cast(DType::INT32));
        if scaled {
            let (left, right) = (self.named_operand(call, "sfa")?, self.named_operand(call, "sfb")?);
            let blocks_of_16 = tokens.has("block16") || tokens.has("scale_vec::4X");
            let factors = if blocks_of_16 { "e4m3" } else { "e8m0" };
            product = product
                .set("sfa_dtype", factors)
                .set("sfb_dtype", factors)
                .set("sfa_tmem_addr", left.clone())
                .set("sfb_tmem_addr", right.clone());
        } else {
            let off = call.list("disable_output_lane").to_vec();
            let none = vec![Expr::constant(DType::UINT32, 0); if pair { 8 } else { 4 }];
            product = product
                .set("weight_stationary", tokens.has("ws"))
                .list("disable_output_lane", if off.is_empty() { none } else { off });
        }
        // The mnemonic has a kind, whose formats the instruction descriptor chooses.
        self.any_formats = true;
        let done = self.statement(&product.at(self.span).stmt());
        self.any_formats = false;
        done
    }
}
