//! `copy_async` → `tma_auto`, `tma_explicit`: tensor copies between global and shared memory by the copy engine (TMA).
//!
//! **Idea.** One thread issues a copy of a box of a tensor; the copy engine computes the addresses. The tensor, the box and
//! the swizzle of shared memory are described by a tensor map, which the host encodes before the launch. `tma_auto`
//! derives map and boxes from both layouts ([`boxes`]), and issues several copies where one box does not suffice;
//! `tma_explicit` takes the global buffer's dimensions and the region as they are, for one copy ([`explicit`]).
//!
//! **Conditions.** Scope thread: every thread that comes to the call issues the copy. From global to shared memory with
//! `mbar=`, or from shared to global memory without. Layouts in memory, contiguous rows of a multiple of 16 bytes, strides of
//! multiples of 16 bytes; what is not known when the kernel is compiled is checked by the host before the launch.
//!
//! **Cost.** One instruction for each box, issued by one thread. The caller announces the bytes at the mbarrier
//! (`arrive.expect_tx`) and waits there; after a store it commits and waits for a bulk group. Writes by threads to the source
//! of a store need `T.ptx.fence.proxy_async("shared::cta")` before it.

mod boxes;
mod explicit;
mod options;

use self::boxes::Boxes;
pub(super) use self::boxes::{SharedSide, common_runs};
use self::options::Options;
use super::build::{address, flat_view};
use super::call::PrimitiveCall;
use super::context::Context;
use super::decline::Decline;
use super::emit::{Emit, TensorMap};
use super::operands::bits;
use super::option::{OptionKind, TileOption};
use super::predicates::ONE_THREAD;
use super::variant::{Completion, Emits, Explanation, Plan, Predicate, Variant};
use crate::intrin::{GpuSet, Op};
use crate::ir::{BinOp, BufferRegion, DType, Expr, ForKind, ForLoop, Stmt, TileOp, Var};
use crate::layout::apply::binary;
use crate::source::Span;

pub(super) static VARIANTS: &[Variant] = &[
    Variant {
        ops: &[TileOp::CopyAsync],
        name: "tma_auto",
        arch: GpuSet::least(90),
        options: OPTIONS,
        predicates: &[ONE_THREAD, GLOBAL_SHARED],
        completion: Completion::Mbarrier { bytes: None },
        plan: plan_auto,
        doc: "tensor copies (TMA) with boxes derived from both layouts",
        ..Variant::DEFAULT
    },
    Variant {
        ops: &[TileOp::CopyAsync],
        name: "tma_explicit",
        arch: GpuSet::least(90),
        options: EXPLICIT_OPTIONS,
        predicates: &[ONE_THREAD, GLOBAL_SHARED],
        completion: Completion::Mbarrier { bytes: None },
        plan: explicit::plan,
        doc: "one tensor copy (TMA) of the region as it is written",
        ..Variant::DEFAULT
    },
];

/// Names of the L2 promotion of tensor maps, in the order of `CUtensorMapL2promotion`.
const PROMOTIONS: [&str; 4] = ["L2::none", "L2::64B", "L2::128B", "L2::256B"];

const fn option(
    name: &'static str,
    kind: OptionKind,
    default: &'static str,
    doc: &'static str,
) -> TileOption {
    TileOption {
        name,
        kind,
        default,
        doc,
    }
}

macro_rules! common_options {
    ($($more:expr),*) => {
        &[
            option("mbar", OptionKind::Pointer, "none", "the mbarrier at which the bytes of a load arrive"),
            option("mbarrier_addr", OptionKind::Any, "False", "accepted: both forms of the address are one instruction here"),
            option("cta_group", OptionKind::Int, "1", "2: the mbarrier may be the other block's of the pair"),
            option("cta_mask", OptionKind::Value, "0", "blocks of the cluster that receive the data of a load"),
            option("cache_hint", OptionKind::Any, "none", "evict_first, evict_normal, evict_last, or a policy of 64 bits"),
            option("tensormap_l2_promotion", OptionKind::Any, "L2::128B", "L2::none, L2::64B, L2::128B, L2::256B, or 0 to 3"),
            option("prefetch_tensormap", OptionKind::Flag, "False", "prefetch the tensor map when the kernel begins"),
            option("tma_dtype", OptionKind::Word(&["tf32", "tfloat32"]), "none", "round float32 to tf32"),
            option(
                "use_tma_reduce",
                OptionKind::Word(&["add", "min", "max", "inc", "dec", "and", "or", "xor"]),
                "none",
                "combine with global memory instead of a store",
            ),
            option("oob", OptionKind::Word(&["zero", "nan"]), "zero", "the value that a load gives beyond the tensor"),
            $($more),*
        ]
    };
}

static OPTIONS: &[TileOption] = common_options!();
static EXPLICIT_OPTIONS: &[TileOption] = common_options!(
    option(
        "gather4",
        OptionKind::Any,
        "none",
        "four rows of a tensor of two dimensions"
    ),
    option(
        "src_selector",
        OptionKind::Any,
        "none",
        "(condition, buffer) pairs: the first that holds replaces the source"
    )
);

const GLOBAL_SHARED: Predicate = Predicate {
    name: "between global and shared memory",
    holds: |call, _| Sides::from_call(call).map(drop),
};

/// The two sides of a copy.
struct Sides<'a> {
    global: &'a BufferRegion,
    shared: &'a BufferRegion,
    /// Whether it is from global to shared memory.
    load: bool,
}

impl<'a> Sides<'a> {
    fn from_call(call: &PrimitiveCall<'a>) -> Result<Sides<'a>, Decline> {
        let (dst, src) = call.moved()?;
        let (to, from) = (dst.buffer.scope(), src.buffer.scope());
        let (global, shared, load) = match (to, from) {
            (to, "global") if to.starts_with("shared") => (src, dst, true),
            ("global", from) if from.starts_with("shared") => (dst, src, false),
            _ => {
                return Err(format!(
                    "tensor copies are between global and shared memory, found src={from} dst={to}"
                )
                .into());
            }
        };
        Ok(Sides { global, shared, load })
    }
}

fn plan_auto(call: &PrimitiveCall<'_>, cx: &mut Context<'_>) -> Result<Plan, Decline> {
    let sides = Sides::from_call(call)?;
    let options = Options::read(call, &sides)?;
    let (to, from) = (sides.shared.buffer.dtype, sides.global.buffer.dtype);
    if to != from {
        return Err(format!("dtypes differ: shared memory has {to}, global memory {from}").into());
    }
    let boxes = boxes::boxes(sides.global, sides.shared, options.only_moves(), cx.facts)?;
    let map = tensor_map(sides.global, &boxes, &options, cx)?;
    Ok(Box::new(Copies {
        shared: sides.shared.clone(),
        load: sides.load,
        maps: vec![(None, map)],
        bytes: boxes.bytes() * boxes.copies(),
        boxes,
        gather: None,
        options,
    }))
}

/// The tensor map of a buffer and its boxes.
fn tensor_map(
    global: &BufferRegion,
    boxes: &Boxes,
    options: &Options,
    cx: &mut Context<'_>,
) -> Result<TensorMap, Decline> {
    let buffer = &global.buffer;
    let bits = bits(buffer.dtype);
    let scaled = |e: &Expr, by: i128| binary(BinOp::Mul, e.clone(), Expr::constant(e.dtype.element(), by));
    let mut first = buffer.elem_offset.clone().unwrap_or_else(|| Expr::int32(0));
    if let Some(layout) = crate::layout::Layout::from_buffer(buffer) {
        first = binary(BinOp::Add, first, layout.tile().offset_in_memory());
    }
    let first = cx.facts.simplify(&first);
    let first = match bits {
        ..8 => binary(
            BinOp::FloorDiv,
            first.clone(),
            Expr::constant(first.dtype, 8 / bits),
        ),
        bits => scaled(&first, bits / 8),
    };
    let first = host(&first, cx)?;
    let data = cx.on_host(&Expr::var(&buffer.data))?;
    let address = match first.as_int() {
        Some(0) => data,
        Some(bytes) if bytes % 16 != 0 => {
            return Err(format!(
                "{} begins {bytes} bytes behind its pointer, a tensor map begins at a multiple of 16",
                buffer.name
            )
            .into());
        }
        _ => Expr::call(Op::HandleAddByteOffset, DType::HANDLE, vec![data, first]),
    };
    let mut dims = Vec::with_capacity(boxes.dims.len());
    let mut strides = Vec::with_capacity(boxes.dims.len());
    let mut box_dims = Vec::with_capacity(boxes.dims.len());
    for (i, dim) in boxes.dims.iter().enumerate() {
        dims.push(host(&dim.extent, cx)?);
        if i > 0 {
            let bytes = scaled(&dim.stride, boxes.unit.bytes());
            strides.push(host(&bytes, cx)?);
        }
        box_dims.push(dim.size);
    }
    Ok(TensorMap {
        name: buffer.name.to_string(),
        dtype: boxes.unit.dtype,
        address,
        element_strides: vec![1; dims.len()],
        dims,
        strides,
        box_dims,
        interleave: 0,
        swizzle: boxes.swizzle as i32,
        l2_promotion: options.l2_promotion,
        oob_fill: options.nan.into(),
        data_type: options.tf32.then_some(TFLOAT32),
    })
}

/// An expression in its simplest form, as the host computes it.
fn host(e: &Expr, cx: &mut Context<'_>) -> Result<Expr, Decline> {
    let simple = cx.facts.simplify(e);
    cx.on_host(&simple)
}

/// `CU_TENSOR_MAP_DATA_TYPE_TFLOAT32`.
const TFLOAT32: i32 = 11;

/// More copies than this are issued by a loop that stays one.
const UNROLLED: i128 = 64;

/// The copies of a call.
struct Copies {
    shared: BufferRegion,
    load: bool,
    /// The tensor map; before it others, each for the case that its condition holds.
    maps: Vec<(Option<Expr>, TensorMap)>,
    boxes: Boxes,
    /// The rows of a gather.
    gather: Option<[Expr; 4]>,
    options: Options,
    /// Bytes of all copies.
    bytes: i128,
}

impl Emits for Copies {
    fn explain(&self) -> Explanation {
        let sizes: Vec<String> = self.boxes.dims.iter().map(|d| d.size.to_string()).collect();
        let dtype = self.boxes.unit.dtype;
        let swizzle = match self.boxes.swizzle {
            0 => "no swizzle".to_string(),
            mode => format!("swizzle of {} bytes", 16 << mode),
        };
        let copies = match self.boxes.copies() {
            1 => "one copy".to_string(),
            n => format!("{n} copies"),
        };
        Explanation {
            completion: Some(match self.load {
                true => Completion::Mbarrier {
                    bytes: Some(self.bytes),
                },
                false => Completion::BulkGroup,
            }),
            ..Explanation::default()
        }
        .line(format!(
            "{copies} of a box of {} elements of {dtype}, innermost first, {swizzle}",
            sizes.join(" x ")
        ))
    }

    fn emit(self: Box<Self>, out: &mut Emit<'_, '_>) {
        let span = out.span();
        let map = self.map(out);
        let (flat, declare) = flat_view(&self.shared.buffer, span);
        out.push(declare);
        // A loop for each of the turns, outermost first.
        let serial = self.boxes.copies() > UNROLLED;
        let turns = &self.boxes.turns;
        let vars: Vec<Var> = turns.iter().map(|_| Var::at("box", DType::INT32, span)).collect();
        let mut place = self.boxes.shared_at.clone();
        let mut at: Vec<Expr> = self.boxes.dims.iter().map(|d| d.at.clone()).collect();
        for (turn, var) in turns.iter().zip(&vars) {
            let digit = Expr::var(var);
            let elements = turn.shared * self.boxes.unit.elements;
            let times = |by: i128| binary(BinOp::Mul, digit.clone(), Expr::int32(by as i32));
            place = binary(BinOp::Add, place, times(elements));
            let moved = binary(BinOp::Add, at[turn.dim].clone(), times(turn.step));
            at[turn.dim] = moved;
        }
        let at = at
            .into_iter()
            .map(|e| out.cx.facts.simplify(&e).cast(DType::INT32).at(span));
        let mut coords: Vec<Expr> = at.collect();
        if let Some(rows) = &self.gather {
            coords.truncate(1);
            coords.extend(rows.iter().map(|r| r.clone().cast(DType::INT32)));
        }
        let shared = address(&flat, vec![out.cx.facts.simplify(&place)], span);
        let mut body = self.instruction(shared, map, coords, span);
        for (turn, var) in turns.iter().zip(&vars).rev() {
            let kind = if serial {
                ForKind::Serial
            } else {
                ForKind::Unrolled
            };
            body = Stmt::new(
                ForLoop::new(kind, var, Expr::int32(turn.count as i32), body),
                span,
            );
        }
        out.push(body);
    }
}

impl Copies {
    /// The address of the tensor map.
    fn map(&self, out: &mut Emit<'_, '_>) -> Expr {
        let span = out.span();
        let mut chosen: Option<Expr> = None;
        for (condition, map) in self.maps.iter().rev() {
            let key = format!("prefetch of {map:?}");
            let here = out.tensor_map(map.clone());
            if self.options.prefetch
                && let Some(threads) = out.cx.threads
            {
                let prefetch = Op::PtxPrefetchTensormap
                    .call()
                    .set("tensormap_addr", &here)
                    .at(span)
                    .stmt();
                let zero = Expr::constant(threads.index.dtype, 0);
                let first = Expr::binary(BinOp::Eq, threads.index.clone(), zero).at(span);
                out.entry(key, Stmt::if_else(first, prefetch, None, span));
            }
            chosen = Some(match (condition, chosen) {
                (Some(condition), Some(other)) => Expr::select(condition.clone(), here, other),
                _ => here,
            });
        }
        let chosen = chosen.unwrap_or_else(|| Expr::constant(DType::UINT64, 0));
        if self.maps.len() == 1 {
            return chosen;
        }
        let var = Var::at("tensor_map", DType::UINT64, span);
        out.push(Stmt::bind(&var, chosen, span));
        Expr::var(&var).at(span)
    }

    fn instruction(&self, shared: Expr, map: Expr, coords: Vec<Expr>, span: Span) -> Stmt {
        let options = &self.options;
        let policy = options.cache_policy.clone();
        let call = match (&options.mbar, &options.reduce) {
            (Some(mbar), _) => Op::PtxCpAsyncBulkTensorG2sCluster
                .call()
                .set("dst_ptr", shared)
                .set("mbar", mbar)
                .set("cta_mask", &options.cta_mask)
                .set("multicast", options.multicast())
                .set("cta_group", options.cta_group)
                .set(
                    "load_mode",
                    if self.gather.is_some() {
                        "tile_gather4"
                    } else {
                        "tile"
                    },
                ),
            (None, Some(reduce)) => Op::PtxCpAsyncBulkTensorS2gReduce
                .call()
                .set("src_ptr", shared)
                .set("red_op", reduce),
            (None, None) => Op::PtxCpAsyncBulkTensorS2g.call().set("src_ptr", shared),
        };
        call.set("dim", self.boxes.dims.len() as i32)
            .set("tensormap_addr", map)
            .set("has_cache_policy", policy.is_some())
            .set(
                "cache_policy",
                policy.unwrap_or_else(|| Expr::constant(DType::UINT64, 0)),
            )
            .list("coords", coords)
            .at(span)
            .stmt()
    }
}
