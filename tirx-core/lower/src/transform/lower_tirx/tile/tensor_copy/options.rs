//! The options of tensor copies, read and checked.

use super::super::call::PrimitiveCall;
use super::super::decline::Decline;
use super::{PROMOTIONS, Sides};
use crate::intrin::cache_policy;
use crate::ir::{AttrValue, DType, Expr};

/// See the [module](self).
pub(super) struct Options {
    /// The mbarrier of a load; none for a store.
    pub(super) mbar: Option<Expr>,
    pub(super) cta_group: i32,
    /// Blocks of the cluster that receive a load, a bit each.
    pub(super) cta_mask: Expr,
    /// A cache policy.
    pub(super) cache_policy: Option<Expr>,
    /// `CUtensorMapL2promotion`.
    pub(super) l2_promotion: i32,
    /// Whether a load gives NaN beyond the tensor.
    pub(super) nan: bool,
    pub(super) tf32: bool,
    pub(super) prefetch: bool,
    /// The operation of a reduction.
    pub(super) reduce: Option<String>,
}

impl Options {
    pub(super) fn read(call: &PrimitiveCall<'_>, sides: &Sides<'_>) -> Result<Options, Decline> {
        let mbar = call.option_expr("mbar");
        if sides.load
            && mbar.is_none()
            && call
                .option("mbarrier_addr")
                .is_some_and(|v| v.as_int() != Some(0))
        {
            return Err(Decline::mistake(
                "mbarrier_addr describes mbar=, and there is no mbar=",
                "give the mbarrier: mbar=bar.ptr_to([0])",
            ));
        }
        if sides.load && mbar.is_none() {
            return Err(
                "a tensor copy into shared memory needs mbar=, the mbarrier that counts its bytes".into(),
            );
        }
        let reduce = call.option("use_tma_reduce").and_then(AttrValue::as_str);
        if !sides.load {
            for name in [
                "mbar",
                "mbarrier_addr",
                "cta_mask",
                "oob",
                "gather4",
                "src_selector",
            ] {
                let zero = |v: &AttrValue| v.as_int() == Some(0);
                if call.option(name).is_some_and(|v| !zero(v)) {
                    return Err(Decline::mistake(
                        format!("{name} is an option of copies into shared memory, this one is out of it"),
                        "a copy out of shared memory is waited for by T.ptx.cp_async.bulk.commit_group() and wait_group(n)",
                    ));
                }
            }
        } else if reduce.is_some() {
            return Err(Decline::mistake(
                "use_tma_reduce is an option of copies out of shared memory, this one is into it",
                "combine by threads, or into global memory",
            ));
        }
        if let Some(operation) = reduce {
            let dtype = sides.global.buffer.dtype;
            if !combined(dtype).contains(&operation) {
                return Err(cannot_combine(dtype, operation));
            }
        }
        let cta_group = match call.option_int("cta_group") {
            None => 1,
            Some(n @ (1 | 2)) => n as i32,
            Some(n) => {
                return Err(Decline::mistake(
                    format!("cta_group must be 1 or 2, found {n}"),
                    "cta_group=2 is for the two blocks of a pair",
                ));
            }
        };
        let cta_mask = call.option_expr("cta_mask").unwrap_or_else(|| Expr::int32(0));
        if let Some(mask) = cta_mask.as_int().filter(|m| !(0..=0xffff).contains(m)) {
            return Err(Decline::mistake(
                format!("cta_mask has a bit for each of 16 blocks of a cluster, found {mask:#x}"),
                "cta_mask=0b11 is for the first two blocks of the cluster",
            ));
        }
        let tf32 = call.option("tma_dtype").is_some();
        if tf32 && sides.global.buffer.dtype != DType::FLOAT32 {
            return Err(Decline::mistake(
                format!("tma_dtype rounds float32, found {}", sides.global.buffer.dtype),
                "leave tma_dtype out",
            ));
        }
        let nan = call.option_text("oob") == "nan";
        let dtype = sides.global.buffer.dtype;
        if nan
            && !matches!(
                dtype,
                DType::FLOAT16 | DType::BFLOAT16 | DType::FLOAT32 | DType::FLOAT64
            )
        {
            return Err(Decline::mistake(
                format!("NaN fills float16, bfloat16, float32 and float64 only, not {dtype}"),
                "leave oob out: zeros are filled in",
            ));
        }
        Ok(Options {
            mbar,
            cta_group,
            cta_mask,
            cache_policy: policy(call)?,
            l2_promotion: l2_promotion(call)?,
            nan,
            tf32,
            prefetch: call.option_flag("prefetch_tensormap"),
            reduce: reduce.map(str::to_string),
        })
    }

    /// Whether the data is copied as it is, whatever its dtype.
    pub(super) fn only_moves(&self) -> bool {
        !self.tf32 && !self.nan && self.reduce.is_none()
    }

    /// Whether a load may go to several blocks.
    pub(super) fn multicast(&self) -> bool {
        self.cta_mask.as_int().is_none_or(|mask| mask.count_ones() > 1)
    }
}

/// The operations by which the copy engine combines elements with global memory.
///
/// Source: measured on an H100; every other pair is an illegal instruction there.
fn combined(dtype: DType) -> &'static [&'static str] {
    match dtype {
        DType::UINT32 => &["add", "min", "max", "inc", "dec", "and", "or", "xor"],
        DType::INT32 | DType::UINT64 => &["add", "min", "max", "and", "or", "xor"],
        DType::INT64 => &["min", "max"],
        DType::FLOAT16 | DType::BFLOAT16 => &["add", "min", "max"],
        DType::FLOAT32 | DType::FLOAT64 => &["add"],
        _ => &[],
    }
}

fn cannot_combine(dtype: DType, operation: &str) -> Decline {
    let unsigned = DType::uint(dtype.bits);
    let help = match combined(dtype) {
        // These give the same bits whether the numbers have a sign or not.
        _ if dtype == DType::INT64 && combined(unsigned).contains(&operation) => {
            format!("both buffers seen as {unsigned}, by view(\"{unsigned}\"), give the same bits")
        }
        [] => "uint32, int32, uint64, int64, float16, bfloat16, float32 and float64 are combined".to_string(),
        there => format!("it combines {dtype} by {}", there.join(", ")),
    };
    Decline::mistake(
        format!("the copy engine cannot combine elements of {dtype} by \"{operation}\""),
        help,
    )
}

fn policy(call: &PrimitiveCall<'_>) -> Result<Option<Expr>, Decline> {
    let help = "evict_first, evict_normal, evict_last, or a policy: T.uint64(0x14F0000000000000)";
    match call.option("cache_hint") {
        None => Ok(None),
        Some(AttrValue::Str(name)) if name.is_empty() => Ok(None),
        Some(AttrValue::Str(name)) => match cache_policy(name) {
            Some(bits) => Ok(Some(Expr::constant(DType::UINT64, bits.into()))),
            None => Err(Decline::mistake(
                format!("there is no cache_hint \"{name}\""),
                help,
            )),
        },
        Some(AttrValue::Expr(e)) if e.dtype.is_integer() => Ok(Some(e.clone().cast(DType::UINT64))),
        Some(AttrValue::Int(v)) => Ok(Some(Expr::constant(DType::UINT64, (*v as u64).into()))),
        Some(_) => Err(Decline::mistake(
            "cache_hint must be a name or a policy of 64 bits",
            help,
        )),
    }
}

fn l2_promotion(call: &PrimitiveCall<'_>) -> Result<i32, Decline> {
    let given = match call.option("tensormap_l2_promotion") {
        None => Some(2),
        Some(AttrValue::Str(name)) if &**name == "none" => Some(0),
        Some(AttrValue::Str(name)) => PROMOTIONS.iter().position(|p| *p == &**name).map(|p| p as i32),
        Some(value) => value.as_int().filter(|v| (0..=3).contains(v)).map(|v| v as i32),
    };
    given.ok_or_else(|| {
        Decline::mistake(
            "tensormap_l2_promotion must be the name of a promotion, or 0 to 3",
            format!("the names are {}", PROMOTIONS.join(", ")),
        )
    })
}
