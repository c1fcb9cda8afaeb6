//! The text of shuffles, thread ranks and reductions.

use super::code::{Code, Width, level};
use super::emitter::Emitter;
use super::helpers::{Header, Helper};
use super::types;
use crate::diagnostic::{Result, error};
use crate::ir::at;
use crate::ir::{DType, Expr};

/// The operands of a shuffle.
pub(super) struct Shuffle<'e> {
    pub(super) mask: &'e Expr,
    pub(super) value: &'e Expr,
    /// The other lane, or how far away it is.
    pub(super) lane: &'e Expr,
    pub(super) width: &'e Expr,
}

impl Emitter<'_, '_> {
    /// A lane mask as 32 bits.
    pub(super) fn mask(&mut self, mask: &Expr) -> Result<String> {
        match mask.as_int() {
            Some(v) => Ok(format!("{:#x}U", v as u32)),
            None => Ok(self.expr(mask)?.text),
        }
    }

    /// A shuffle: a value of another lane, which `lane` tells.
    pub(super) fn shuffle(&mut self, name: &str, e: &Expr, shuffle: Shuffle<'_>) -> Result<Code> {
        let dtype = e.dtype;
        let mask = self.mask(shuffle.mask)?;
        let value = self.expr(shuffle.value)?;
        let lane = self.expr(shuffle.lane)?.in_range(shuffle.lane.dtype);
        let width = if shuffle.width.is_int(32) {
            String::new()
        } else {
            format!(", {}", self.expr(shuffle.width)?.text)
        };
        let call = |value: &str| Code::primary(format!("{name}({mask}, {value}, {}{width})", lane.text));
        if dtype.is_small_float() {
            self.unit.needs.helpers.insert(Helper::BitCast);
            self.unit.needs.headers.insert(Header::Cstdint);
            let ty = self.spell(dtype, e.span)?;
            let moved = call(&format!("(int)tirx_bit_cast<uint8_t>({})", value.text)).cast("uint8_t");
            return Ok(Code::primary(format!("tirx_bit_cast<{ty}>({})", moved.text)));
        }
        if types::is_promoted(dtype) {
            return Ok(call(&value.text).with_width(Width::Dirty));
        }
        let code = call(&value.text);
        Ok(if dtype.is_bool() { code.cast("bool") } else { code })
    }

    /// The linear index of the thread in its block, from the extents where they are constant.
    pub(super) fn thread_rank(&mut self) -> Code {
        let extent = |tag: &str| self.facts.extent(tag).map(|e| e.as_int());
        match (
            extent("threadIdx.x"),
            extent("threadIdx.y"),
            extent("threadIdx.z"),
        ) {
            (_, None | Some(Some(1)), None | Some(Some(1))) => Code::primary("threadIdx.x").cast("int"),
            (Some(Some(x)), Some(_), None | Some(Some(1))) => {
                Code::new(format!("(int)threadIdx.y * {x} + (int)threadIdx.x"), level::SUM)
            }
            (Some(Some(x)), Some(Some(y)), Some(_)) => Code::new(
                format!("((int)threadIdx.z * {y} + (int)threadIdx.y) * {x} + (int)threadIdx.x"),
                level::SUM,
            ),
            _ => {
                self.unit.needs.helpers.insert(Helper::ThreadRank);
                Code::primary("tirx_thread_rank()")
            }
        }
    }

    pub(super) fn reduction(&mut self, op: &Expr) -> Result<(&'static str, [Helper; 2])> {
        match op.as_str() {
            Some("sum" | "add") => Ok(("sum", [Helper::WarpSum, Helper::CtaSum])),
            Some("max") => Ok(("max", [Helper::WarpMax, Helper::CtaMax])),
            Some("min") => Ok(("min", [Helper::WarpMin, Helper::CtaMin])),
            other => error(
                op.span,
                format!(
                    "unknown reduction `{}`: one of sum, max, min",
                    other.unwrap_or("?")
                ),
            ),
        }
    }

    pub(super) fn warp_reduce(&mut self, e: &Expr, args: &[Expr]) -> Result<Code> {
        let (name, [warp, _]) = self.reduction(&args[at!(CudaWarpReduce.op)])?;
        let width = args[at!(CudaWarpReduce.width)].as_int();
        let Some(width) = width.filter(|w| (1..=32).contains(w) && w.count_ones() == 1) else {
            return error(
                e.span,
                "the width of a warp reduction is a constant power of two up to 32",
            );
        };
        self.unit.needs.helpers.insert(warp);
        let value = self.expr(&args[at!(CudaWarpReduce.value)])?.exact(e.dtype);
        Ok(Code::primary(format!(
            "tirx_warp_{name}<{width}>({})",
            value.text
        )))
    }

    pub(super) fn cta_reduce(&mut self, e: &Expr, args: &[Expr]) -> Result<Code> {
        let dtype = e.dtype;
        let (name, [_, cta]) = self.reduction(&args[at!(CudaCtaReduce.op)])?;
        let Some(warps) = args[at!(CudaCtaReduce.num_warps)]
            .as_int()
            .filter(|w| (1..=32).contains(w))
        else {
            return error(
                e.span,
                "the number of warps of a block reduction is a constant up to 32",
            );
        };
        self.unit.needs.helpers.insert(cta);
        let value = self.expr(&args[at!(CudaCtaReduce.value)])?.exact(dtype);
        let ty = self.spell(dtype, e.span)?;
        let scratch = self.typed_pointer(&args[at!(CudaCtaReduce.scratch)], dtype, &ty)?;
        let identity = match name {
            "sum" => Expr::constant(dtype, 0),
            "max" => extreme(dtype, true),
            _ => extreme(dtype, false),
        };
        let identity = self.expr(&identity)?.exact(dtype);
        let thread = self.thread_rank();
        Ok(Code::primary(format!(
            "tirx_cta_{name}<{warps}>({}, {}, {}, {})",
            value.text, scratch.text, identity.text, thread.text
        )))
    }
}

/// The neutral value of a minimum or maximum: every other value exceeds it (or is below it).
fn extreme(dtype: DType, least: bool) -> Expr {
    if dtype.is_floating() {
        return Expr::float(dtype, if least { f64::NEG_INFINITY } else { f64::INFINITY });
    }
    let value = if least { dtype.min_int() } else { dtype.max_int() };
    Expr::constant(dtype, value.unwrap_or(0))
}
