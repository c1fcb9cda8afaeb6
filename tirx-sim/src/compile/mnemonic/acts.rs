//! Instructions that act: barriers, fences, copies, atomics.

use tirx_ir::intrin::Op;
use tirx_ir::intrin::mnemonic::InstructionCall;
use tirx_ir::{BinOp, DType, Expr};
use tirx_source::diagnostic::Result;

use super::super::Compiler;
use super::super::warp::Named;
use tirx_sim_machine::bytecode::{AsyncInst, Inst, Scope, ShuffleMode, Vote};
use tirx_sim_machine::numeric::Kind;

/// Instructions that change where data is cached, and nothing that can be observed.
const HINTS: &[&str] = &["prefetch", "prefetchu", "applypriority", "discard"];

impl Compiler<'_> {
    /// An instruction that acts; false where it is none of these.
    pub(super) fn acts(&mut self, call: &InstructionCall) -> Result<bool> {
        let tokens = &call.tokens;
        let family = tokens.instruction.family;
        match family {
            _ if HINTS.contains(&family) => {}
            "wgmma" if tokens.has("mma_async") => return self.wgmma_of_formats(call),
            "cp" if tokens.has("prefetch") => {}
            "fence" => {
                let scope = tokens.get("scope");
                if tokens.has("proxy") {
                    if tokens.has("tensormap::generic") {
                        let acquires = tokens.has("acquire");
                        self.push_async(AsyncInst::FenceMaps { acquires })?;
                    }
                    if tokens.has("alias") {
                        self.emit(Inst::FenceAliases);
                    }
                    if tokens.has("async") {
                        let global = tokens.has("global");
                        let shared = tokens.has("shared::cta") || tokens.has("shared::cluster");
                        self.emit(Inst::FenceProxy {
                            shared: shared || !global,
                            global: global || !shared,
                        });
                    }
                    return Ok(true);
                }
                let sc = tokens.get("sem") == "sc";
                self.emit(Inst::Fence {
                    scope: Scope::of(scope),
                    sc,
                });
            }
            "bar" if tokens.has("warp") => {
                let Some(mask) = call.get("membermask") else {
                    return Ok(false);
                };
                if mask.is_int(0xffff_ffff) {
                    self.emit(Inst::WarpSync);
                } else {
                    let here = self.bits(Kind::U32, 1)?;
                    self.vote(ShuffleMode::Meet, mask, here)?;
                }
            }
            "bar" | "barrier" if tokens.has("sync") && call.get("b").is_none() => {
                let Some(id) = call.get("a") else { return Ok(false) };
                let aligned = family == "bar" || tokens.has("aligned");
                match id.is_int(0) && aligned {
                    true => self.block_barrier(),
                    false => self.named_barrier(
                        Named {
                            id,
                            threads: None,
                            aligned,
                        },
                        true,
                    )?,
                }
            }
            "bar" | "barrier" if tokens.has("arrive") || tokens.has("red") => {
                let Some(id) = call.get("a") else { return Ok(false) };
                let named = Named {
                    id,
                    threads: call.get("b"),
                    aligned: family == "bar" || tokens.has("aligned"),
                };
                if tokens.has("arrive") {
                    self.named_barrier(named, false)?;
                    return Ok(true);
                }
                let Some(condition) = call.get("c") else {
                    return Ok(false);
                };
                let (vote, dtype) = match tokens.get("op") {
                    "and" => (Vote::All, DType::BOOL),
                    "or" => (Vote::Any, DType::BOOL),
                    _ => (Vote::Count, DType::UINT32),
                };
                let condition = condition.clone();
                let result = self.named_barrier_with_vote(named, &condition, vote)?;
                let result = self.convert(result, if dtype.is_bool() { Kind::Bool } else { Kind::U32 })?;
                let result = self.known(dtype, vec![result]);
                self.write(call, vec![("d", vec![result])])?;
            }
            "clusterlaunchcontrol" if tokens.has("try_cancel") => {
                let (Some(handle), Some(barrier)) = (call.get("addr"), call.get("mbar")) else {
                    return Ok(false);
                };
                let (handle, barrier) = (self.address_value(handle)?, self.address_value(barrier)?);
                self.push_async(AsyncInst::TryCancel {
                    handle,
                    barrier,
                    multicast: tokens.has("multicast::cluster::all"),
                })?;
            }
            "cp" if tokens.has("async")
                && (call.get("src_size").is_some() || call.get("ignore_src").is_some()) =>
            {
                return self.filled_copy(call);
            }
            "tcgen05" if tokens.has("mma") => return self.product(call),
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// `tcgen05.mma` in forms that no row has in full: `.ws` (with a mask of columns that are zero it is not simulated), and
    /// `.collector`. What the buffers of operands hold is what the operands are, so that they change no value.
    fn product(&mut self, call: &InstructionCall) -> Result<bool> {
        let tokens = &call.tokens;
        let scaled = tokens.has("block_scale");
        let (sums, elements) = match tokens.get("kind") {
            "kind::f16" => ("float32", "float16"),
            "kind::tf32" => ("float32", "tf32"),
            "kind::f8f6f4" | "kind::mxf8f6f4" => ("float32", "e4m3"),
            "kind::mxf4" | "kind::mxf4nvf4" => ("float32", "e2m1"),
            "kind::i8" => ("int32", "int8"),
            _ => return Ok(false),
        };
        let masked = call.get("zero_col_mask").is_some_and(|mask| !mask.is_int(0));
        let (by_descriptor, in_memory) = (call.get("a_desc"), call.get("a"));
        let (Some(a), Some(d), Some(b), Some(descriptor), Some(adds)) = (
            by_descriptor.or(in_memory),
            call.get("d"),
            call.get("b_desc"),
            call.get("idesc"),
            call.get("enable_input_d"),
        ) else {
            return Ok(false);
        };
        if masked || call.get("metadata").is_some() || tokens.has("ashift") {
            return Ok(false);
        }
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
            let (Some(left), Some(right)) = (call.get("sfa"), call.get("sfb")) else {
                return Ok(false);
            };
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
        done?;
        Ok(true)
    }

    /// `cp.async` that fills with zeros what it does not read: all of it or nothing.
    fn filled_copy(&mut self, call: &InstructionCall) -> Result<bool> {
        let (Some(to), Some(from), Some(size)) =
            (call.get("dst_mem"), call.get("src_mem"), call.get("cp_size"))
        else {
            return Ok(false);
        };
        let reads = match (call.get("src_size"), call.get("ignore_src")) {
            (Some(count), _) => {
                let zero = Expr::constant(count.dtype, 0);
                let all = size.clone().cast(count.dtype);
                let nothing = Expr::binary(BinOp::Eq, count.clone(), zero.clone());
                let everything = Expr::binary(BinOp::Eq, count.clone(), all);
                let known = Expr::binary(BinOp::Or, nothing, everything);
                self.assertion(
                    &known,
                    "the simulator copies all bytes of a cp.async or none: src-size is cp-size or 0".into(),
                )?;
                Expr::binary(BinOp::Ne, count.clone(), zero)
            }
            (None, Some(ignore)) => Expr::logical_not(ignore.clone()),
            _ => return Ok(false),
        };
        let copy = Op::PtxCpAsync
            .call()
            .set("dst_ptr", to)
            .set("src_ptr", from)
            .set("cp_size", size)
            .set("has_cache_policy", 0)
            .set("predicate", reads.cast(DType::INT32))
            .set("fill_mode", "zero");
        self.evaluate(&copy.at(self.span).build())?;
        Ok(true)
    }
}
