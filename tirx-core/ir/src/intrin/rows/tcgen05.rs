//! Tensor cores and tensor memory of Blackwell: `tcgen05`.
//!
//! Tensor memory has 128 lanes (rows) and 512 columns of 32 bits. An address has the lane in its upper 16 bits and the
//! column in the lower. Columns are allocated by a warp. Matrix products run asynchronously from shared (and tensor) memory
//! into tensor memory; `commit` makes an mbarrier track them.

use super::dtypes::ptx_name;
use super::kinds::*;
use crate::intrin::gpu_set::GpuSet;
use crate::intrin::operands::Operands;
use crate::intrin::row::*;
use crate::ir::Expr;

const BLACKWELL: GpuSet = GpuSet::families(&[100, 110]);
/// Targets common to all families.
const EXACT: GpuSet = GpuSet::exact(&[100, 110]);
const GROUP: ArgKind = ArgKind::Immediate(1, 2);
const WARP: Traits = Traits::PLAIN.collective(Collective::Warp);
const ENGINE: Traits = Traits::PLAIN.by(Engine::Tcgen05);

/// The kind of matrix product for these dtypes: `.kind::f16`, ….
///
/// # Errors
/// Dtypes that no product takes.
pub fn mma_kind(d: &str, a: &str, b: &str, scales: Option<(&str, &str)>) -> Result<&'static str, String> {
    let name = |dtype: &str| ptx_name(dtype).unwrap_or_default();
    let narrow = |dtype: &str| matches!(name(dtype), "e4m3" | "e5m2" | "e2m3" | "e3m2" | "e2m1");
    let half = |dtype: &str| matches!(name(dtype), "f16" | "bf16");
    let byte = |dtype: &str| matches!(name(dtype), "s8" | "u8");
    let kind = match (name(d), scales) {
        ("f16", None) if name(a) == "f16" && name(b) == "f16" => "f16",
        ("f32", None) if half(a) && half(b) => "f16",
        ("f32", None) if name(a) == "tf32" && name(b) == "tf32" => "tf32",
        ("s32", None) if byte(a) && byte(b) => "i8",
        ("f32" | "f16", None) if narrow(a) && narrow(b) => "f8f6f4",
        ("f32", Some((sa, sb))) if narrow(a) && narrow(b) => {
            let small = name(a) == "e2m1" && name(b) == "e2m1";
            match (name(sa), name(sb)) {
                ("ue8m0", "ue8m0") if small => "mxf4",
                ("e4m3", "e4m3") if small => "mxf4nvf4",
                ("ue8m0", "ue8m0") => "mxf8f6f4",
                _ => "",
            }
        }
        _ => "",
    };
    if !kind.is_empty() {
        return Ok(kind);
    }
    let scaled = scales.map_or(String::new(), |(sa, sb)| format!(" scaled by {sa} and {sb}"));
    Err(format!(
        "no tcgen05.mma takes A of {a} and B of {b}{scaled} and gives {d}"
    ))
}

/// The instruction descriptor's fields for an MMA.
#[derive(Clone, Debug)]
pub struct Instruction<'a> {
    /// Dtypes of D, A and B, as intrinsics name them.
    pub dtypes: [&'a str; 3],
    /// Dtypes of the scale factors of A and B.
    pub scales: Option<(&'a str, &'a str)>,
    /// Extents of D, of all its CTAs together.
    pub m: i128,
    /// See `m`.
    pub n: i128,
    /// Elements of k.
    pub k: i128,
    /// Whether two CTAs work together.
    pub pair: bool,
    /// A is MN-major.
    pub trans_a: bool,
    /// B is MN-major.
    pub trans_b: bool,
    /// A is negated.
    pub neg_a: bool,
    /// B is negated.
    pub neg_b: bool,
    /// Integer sums saturate.
    pub sat_d: bool,
    /// A is sparse.
    pub sparse: bool,
}

impl<'a> Instruction<'a> {
    /// A dense product of K-major operands.
    pub fn dense(dtypes: [&'a str; 3], m: i128, n: i128, k: i128) -> Instruction<'a> {
        Instruction {
            dtypes,
            scales: None,
            m,
            n,
            k,
            pair: false,
            trans_a: false,
            trans_b: false,
            neg_a: false,
            neg_b: false,
            sat_d: false,
            sparse: false,
        }
    }

    /// The instruction that a call of an encoder describes.
    pub fn from_call(call: &Operands<'a>) -> Instruction<'a> {
        let at = |name: &str| call.int(name).unwrap_or(0);
        Instruction {
            dtypes: ["d_dtype", "a_dtype", "b_dtype"].map(|name| call.text(name)),
            scales: scales_of(call),
            m: at("M"),
            n: at("N"),
            k: at("K"),
            pair: at("n_cta_groups") == 2,
            trans_a: call.flag("trans_a"),
            trans_b: call.flag("trans_b"),
            neg_a: call.flag("neg_a"),
            neg_b: call.flag("neg_b"),
            sat_d: call.flag("sat_d"),
            sparse: call.flag("is_sparse"),
        }
    }

    /// Its kind: `f16`, ….
    ///
    /// # Errors
    /// Dtypes that no product takes.
    pub fn kind(&self) -> Result<&'static str, String> {
        let [d, a, b] = self.dtypes;
        mma_kind(d, a, b, self.scales)
    }

    /// The constraints on the extents, for its kind.
    fn check_shape(&self, kind: &str) -> Result<(), String> {
        let (m, n, k) = (self.m, self.n, self.k);
        let scaled = kind.starts_with("mx");
        let step = match (scaled, self.pair, m) {
            (true, false, 128) => 8,
            (true, true, 256) => 16,
            (true, true, 128) if !self.sparse => 16,
            (false, false, 64) if kind == "i8" => 16,
            (false, false, 64) => 8,
            (false, false, 128) => 16,
            // Weight stationary alone.
            (false, false, 32) if n != 192 => 64,
            (false, true, 128 | 256) => 32,
            _ => 0,
        };
        let odd = kind == "i8" && !self.pair && matches!(n, 8 | 24);
        let fits = step != 0 && (odd || (step..=256).contains(&n) && n % step == 0);
        let dense = elements_of_k(kind);
        let wanted = if self.sparse { 2 * dense } else { dense };
        if fits && k == wanted {
            return Ok(());
        }
        let columns = match step {
            0 => String::new(),
            _ if kind == "i8" && !self.pair => format!("N is 8, 24 or a multiple of {step} up to 256, "),
            _ => format!("N is a multiple of {step} up to 256, "),
        };
        Err(format!(
            "tcgen05.mma of kind {kind} with {} has no shape {m}x{n}x{k} ({columns}K is {wanted})",
            if self.pair { "a pair of CTAs" } else { "one CTA" }
        ))
    }

    fn check_major(&self, scaled: bool) -> Result<(), String> {
        let [_, a, b] = self.dtypes;
        for (name, flag, dtype) in [("trans_a", self.trans_a, a), ("trans_b", self.trans_b, b)] {
            let may = match ptx_name(dtype).unwrap_or_default() {
                "e4m3" | "e5m2" => true,
                "s8" | "u8" | "f16" | "bf16" | "tf32" => !scaled,
                _ => false,
            };
            if flag && !may {
                return Err(format!("{name} is not possible for {dtype}"));
            }
        }
        Ok(())
    }

    /// The bits of the descriptor.
    ///
    /// # Errors
    /// Forms that the tensor core does not have.
    pub fn descriptor(&self) -> Result<u32, String> {
        let kind = self.kind()?;
        self.check_shape(kind)?;
        let scaled = kind.starts_with("mx");
        self.check_major(scaled)?;
        if (self.neg_a || self.neg_b) && kind == "i8" {
            return Err("integers are not negated".into());
        }
        if self.sat_d && kind != "i8" {
            return Err("sat_d is for integers".into());
        }
        let format = |dtype: &str| match (kind, ptx_name(dtype).unwrap_or_default()) {
            ("mxf4" | "mxf4nvf4", _) => 1,
            (_, "e5m2" | "bf16" | "s8") => 1,
            (_, "tf32") => 2,
            (_, "e2m3") => 3,
            (_, "e3m2") => 4,
            (_, "e2m1") => 5,
            _ => 0,
        };
        let [d, a, b] = self.dtypes;
        let bit = |flag: bool, at: u32| u32::from(flag) << at;
        let extent = |extent: i128| u32::try_from(extent).unwrap_or(0);
        let common = bit(self.sparse, 2)
            | format(a) << 7
            | format(b) << 10
            | bit(self.neg_a, 13)
            | bit(self.neg_b, 14)
            | bit(self.trans_a, 15)
            | bit(self.trans_b, 16)
            | (extent(self.n) >> 3) << 17
            | (extent(self.m) >> 4) << 24;
        if let Some((sfa, _)) = self.scales {
            return Ok(common | bit(ptx_name(sfa) == Some("ue8m0"), 23));
        }
        let d = match ptx_name(d) {
            Some("f32") => 1,
            Some("s32") => 2,
            _ => 0,
        };
        Ok(common | bit(self.sat_d, 3) | d << 4)
    }
}

/// Elements of k of a dense product of a kind.
pub fn elements_of_k(kind: &str) -> i128 {
    match kind {
        "f16" => 16,
        "tf32" => 8,
        "mxf4" | "mxf4nvf4" => 64,
        _ => 32,
    }
}

fn scales_of<'a>(call: &Operands<'a>) -> Option<(&'a str, &'a str)> {
    call.get("sfa_dtype")
        .map(|_| (call.text("sfa_dtype"), call.text("sfb_dtype")))
}

fn kind_of(call: &Operands) -> Result<&'static str, String> {
    let [d, a, b] = ["d_dtype", "a_dtype", "b_dtype"].map(|name| call.text(name));
    mma_kind(d, a, b, scales_of(call))
}

fn descriptor_words(call: &Operands, _: Machine) -> Result<Words, String> {
    Ok(Words {
        texts: vec![(
            "bits",
            format!("{:#x}u", Instruction::from_call(call).descriptor()?),
        )],
        ..Words::default()
    })
}

fn descriptor_check(call: &Operands) -> Result<(), String> {
    Instruction::from_call(call).descriptor().map(drop)
}

/// Masks of output lanes that are not written: one for each 32 lanes of each CTA.
fn masks(call: &Operands) -> usize {
    if call.int("cta_group") == Some(2) { 8 } else { 4 }
}

fn complete_masks(given: &mut Given) -> Result<(), String> {
    if given.get("disable_output_lane").is_empty() {
        let count = if given.int("cta_group") == Some(2) { 8 } else { 4 };
        given.values.retain(|(name, _)| *name != "disable_output_lane");
        given
            .values
            .push(("disable_output_lane", vec![Expr::int32(0); count]));
    }
    Ok(())
}

/// Products of bytes are not of every GPU of the families.
fn mma_gpus(call: &Operands) -> Option<(&'static str, GpuSet)> {
    (kind_of(call) == Ok("i8")).then_some((" of int8", EXACT))
}

fn mma(call: &Operands) -> Result<(), String> {
    let kind = kind_of(call)?;
    let ws = call.flag("weight_stationary");
    if ws && call.int("cta_group") != Some(1) {
        return Err("weight_stationary needs cta_group=1".into());
    }
    if call.int("scale_input_d").is_some_and(|v| v > 0) {
        if !matches!(kind, "f16" | "tf32") {
            return Err(format!("scale_input_d is for kinds f16 and tf32, not {kind}"));
        }
        if ws {
            return Err("weight_stationary does not go with scale_input_d".into());
        }
    }
    Ok(())
}

fn mma_words(call: &Operands, _: Machine) -> Result<Words, String> {
    let kind = kind_of(call)?;
    let size = match (kind, ptx_name(call.text("sfa_dtype"))) {
        ("mxf8f6f4", _) => "1X",
        ("mxf4", _) => "2X",
        ("mxf4nvf4", Some("ue8m0")) => "2X",
        _ => "4X",
    };
    let scale = match call.int("scale_input_d") {
        Some(n) if n > 0 => format!(", {n}"),
        _ => String::new(),
    };
    let a = if call.flag("use_a_tmem") { Ty::B32 } else { Ty::B64 };
    Ok(Words {
        texts: vec![("kind", kind.into()), ("vector", size.into()), ("scale", scale)],
        types: vec![("a_operand", a)],
    })
}

/// The same with braces about the masks, which the product with stationary weights does not have.
fn dense_words(call: &Operands, machine: Machine) -> Result<Words, String> {
    let mut words = mma_words(call, machine)?;
    words
        .texts
        .extend([("open", "{".to_string()), ("close", "}".to_string())]);
    Ok(words)
}

/// Registers of a load or store of tensor memory.
fn registers(call: &Operands) -> usize {
    let num = usize::try_from(call.int("num").unwrap_or(0)).unwrap_or(0);
    match call.text("shape") {
        "16x128b" => 2 * num,
        "16x256b" => 4 * num,
        _ => num,
    }
}

fn ldst(call: &Operands) -> Result<(), String> {
    let num = call.int("num").unwrap_or(0);
    let most = match call.text("shape") {
        "16x128b" => 64,
        "16x256b" => 32,
        _ => 128,
    };
    if num < 1 || num > most || num.count_ones() != 1 {
        let shape = call.text("shape");
        return Err(format!(
            "num of shape {shape} must be a power of two up to {most}, found {num}"
        ));
    }
    Ok(())
}

/// Whether an address is moved by `row` and `col`, and the distance of the halves of shape 16x32bx2.
fn address_words(call: &Operands, _: Machine) -> Result<Words, String> {
    let still = |name: &str| call.get(name).is_some_and(|e| e.is_int(0));
    let moved = if still("row") && still("col") { "" } else { "1" };
    let packed = call.flag("pack") || call.flag("unpack");
    let num = call.int("num").unwrap_or(0) * if packed { 2 } else { 1 };
    let half = if call.text("shape") == "16x32bx2" {
        format!(", {num}")
    } else {
        String::new()
    };
    Ok(Words {
        texts: vec![("moved", moved.into()), ("half", half)],
        ..Words::default()
    })
}

fn cp(call: &Operands) -> Result<(), String> {
    let multicast = call.text("multicast");
    let fits = match call.text("shape") {
        "32x128b" => multicast == "warpx4",
        "64x128b" => multicast.starts_with("warpx2"),
        _ => multicast.is_empty(),
    };
    if fits {
        return Ok(());
    }
    Err(format!(
        "shape 32x128b has multicast=\"warpx4\", 64x128b \"warpx2::02_13\" or \"warpx2::01_23\", the others none; found {} with \"{multicast}\"",
        call.text("shape")
    ))
}

fn commit_words(call: &Operands, _: Machine) -> Result<Words, String> {
    let one = call.int("cta_mask").is_some_and(|mask| mask.count_ones() <= 1);
    Ok(Words {
        texts: vec![("multicast", if one { "" } else { "1" }.into())],
        ..Words::default()
    })
}

const SHAPES: ArgKind = ArgKind::Text(&["16x32bx2", "16x64b", "16x128b", "16x256b", "32x32b"]);

rows! { $ tcgen05 {
    /// Orders this thread's earlier `tcgen05` instructions before the instructions that follow its next synchronization
    /// with other threads.
    PtxTcgen05FenceBeforeThreadSync = Row::new("tirx.ptx.tcgen05_fence_before_thread_sync",
        "ptx.tcgen05.fence.before_thread_sync", ptx("tcgen05.fence::before_thread_sync;"))
        .traits(Traits::SYNC).section("tcgen05.fence");

    /// Orders this thread's later `tcgen05` instructions after the instructions that preceded its last synchronization
    /// with other threads.
    PtxTcgen05FenceAfterThreadSync = Row::new("tirx.ptx.tcgen05_fence_after_thread_sync",
        "ptx.tcgen05.fence.after_thread_sync", ptx("tcgen05.fence::after_thread_sync;"))
        .traits(Traits::SYNC).section("tcgen05.fence");

    /// Waits for this thread's `tcgen05.ld` instructions: their registers may be read afterwards.
    PtxTcgen05WaitLd = Row::new("tirx.ptx.tcgen05_wait_ld", "ptx.tcgen05.wait.ld", ptx("tcgen05.wait::ld.sync.aligned;"))
        .traits(Traits::WAIT.collective(Collective::Warp)).section("tcgen05.wait");

    /// Waits for this thread's `tcgen05.st` instructions.
    PtxTcgen05WaitSt = Row::new("tirx.ptx.tcgen05_wait_st", "ptx.tcgen05.wait.st", ptx("tcgen05.wait::st.sync.aligned;"))
        .traits(Traits::WAIT.collective(Collective::Warp)).section("tcgen05.wait");

    /// Allocates `n_cols` columns of tensor memory (a power of two from 32 to 512) and writes their address to shared memory
    /// `dst_ptr`; waits until they are free. One warp does it (of each CTA of a pair with `cta_group=2`).
    PtxTcgen05Alloc = Row::new("tirx.ptx.tcgen05_alloc", "ptx.tcgen05.alloc",
        ptx("tcgen05.alloc.cta_group::{cta_group}.sync.aligned.shared::cta.b32 [{dst_ptr}], {n_cols};"))
        .signature("(dst_ptr, n_cols, cta_group=1)")
        .args(&[arg("dst_ptr", SHARED), arg("n_cols", U32), arg("cta_group", GROUP)])
        .traits(Traits::WAIT.collective(Collective::Warp)).section("tcgen05.alloc");

    /// Frees the `n_cols` columns of tensor memory at `taddr`.
    PtxTcgen05Dealloc = Row::new("tirx.ptx.tcgen05_dealloc", "ptx.tcgen05.dealloc",
        ptx("tcgen05.dealloc.cta_group::{cta_group}.sync.aligned.b32 {taddr}, {n_cols};"))
        .signature("(taddr, n_cols, cta_group=1)")
        .args(&[arg("taddr", U32), arg("n_cols", U32), arg("cta_group", GROUP)])
        .traits(WARP).section("tcgen05.alloc");

    /// Promises that this CTA allocates no more tensor memory.
    PtxTcgen05RelinquishAllocPermit = Row::new("tirx.ptx.tcgen05_relinquish_alloc_permit",
        "ptx.tcgen05.relinquish_alloc_permit", ptx("tcgen05.relinquish_alloc_permit.cta_group::{cta_group}.sync.aligned;"))
        .signature("(cta_group=1)").args(&[arg("cta_group", GROUP)])
        .traits(WARP).section("tcgen05.alloc");

    /// Moves 32 bytes of each row of tensor memory at `taddr` down by one row.
    PtxTcgen05Shift = Row::new("tirx.ptx.tcgen05_shift", "ptx.tcgen05.shift",
        ptx("tcgen05.shift.cta_group::{cta_group}.down [{taddr}];"))
        .signature("(taddr, cta_group=1)").args(&[arg("taddr", U32), arg("cta_group", GROUP)])
        .arch(EXACT).traits(ENGINE).section("tcgen05.shift");

    /// Loads tensor memory at `src_addr` (moved by `row` and `col`) into registers of the warp: `regs` are the
    /// thread's registers; `shape` and `num` fix their number. A warp reaches the 32 lanes of its quarter. `pack` puts two 16-bit elements in a register. The
    /// registers are valid after `T.ptx.tcgen05.wait.ld`.
    PtxTcgen05Ld = Row::new("tirx.ptx.tcgen05_ld", "ptx.tcgen05.ld",
        ptx("{?moved:.reg .b32 at; shl.b32 at, {row}, 16; add.u32 at, at, {col}; add.u32 at, at, {src_addr}; }\
             tcgen05.ld.sync.aligned.{shape}.x{num}{?pack:.pack::16b}.b32 {{{regs}}}, \
             [{?moved:at}{!moved:{src_addr}}]{half};").words(address_words))
        .signature("(src_addr, *regs, shape, num, row=0, col=0, pack=False)")
        .args(&[
            arg("src_addr", U32), arg("row", I32), arg("col", I32), arg("shape", SHAPES), arg("num", ArgKind::Immediate(1, 128)),
            arg("pack", ArgKind::Bool), list("regs", ArgKind::Element(Access::Out, Ty::B32), registers),
        ])
        .checked(ldst)
        .traits(WARP.by(Engine::Tcgen05)).section("tcgen05.ld");

    /// Stores registers of the warp to tensor memory, as `T.ptx.tcgen05.ld` loads them. The store is complete after
    /// `T.ptx.tcgen05.wait.st`.
    PtxTcgen05St = Row::new("tirx.ptx.tcgen05_st", "ptx.tcgen05.st",
        ptx("{?moved:.reg .b32 at; shl.b32 at, {row}, 16; add.u32 at, at, {col}; add.u32 at, at, {dst_addr}; }\
             tcgen05.st.sync.aligned.{shape}.x{num}{?unpack:.unpack::16b}.b32 [{?moved:at}{!moved:{dst_addr}}]{half}, \
             {{{regs}}};").words(address_words))
        .signature("(dst_addr, *regs, shape, num, row=0, col=0, unpack=False)")
        .args(&[
            arg("dst_addr", U32), arg("row", I32), arg("col", I32), arg("shape", SHAPES), arg("num", ArgKind::Immediate(1, 128)),
            arg("unpack", ArgKind::Bool), list("regs", ArgKind::Element(Access::In, Ty::B32), registers),
        ])
        .checked(ldst)
        .traits(WARP.by(Engine::Tcgen05)).section("tcgen05.st");

    /// Copies a matrix in shared memory, given by its descriptor, to tensor memory at `taddr` (moved by `row` and `col`),
    /// asynchronously. `multicast` selects the warps whose lanes receive the data; `decompress` spreads 4- or 6-bit elements to bytes.
    PtxTcgen05Cp = Row::new("tirx.ptx.tcgen05_cp", "ptx.tcgen05.cp",
        ptx("{?moved:.reg .b32 at; shl.b32 at, {row}, 16; add.u32 at, at, {col}; add.u32 at, at, {taddr}; }\
             tcgen05.cp.cta_group::{cta_group}.{shape}{.multicast}{.decompress} [{?moved:at}{!moved:{taddr}}], {src_desc};")
        .words(address_words))
        .signature("(taddr, src_desc, *, shape, cta_group=1, multicast='', decompress='', row=0, col=0)")
        .args(&[
            arg("taddr", U32), arg("src_desc", U64),
            arg("shape", ArgKind::Text(&["32x128b", "4x256b", "128x128b", "128x256b", "64x128b"])), arg("cta_group", GROUP),
            arg("multicast", ArgKind::Text(&["", "warpx4", "warpx2::02_13", "warpx2::01_23"])),
            arg("decompress", ArgKind::Text(&["", "b8x16.b4x16_p64", "b8x16.b6x16_p32"])), arg("row", I32), arg("col", I32),
        ])
        .checked(cp)
        .traits(ENGINE).section("tcgen05.cp");

    /// Makes the mbarrier `bar` (of each CTA of `cta_mask`) track this thread's `tcgen05` instructions: it receives one
    /// arrival when they are complete. If `pred` is 0, nothing happens.
    PtxTcgen05Commit = Row::new("tirx.ptx.tcgen05_commit", "ptx.tcgen05.commit",
        ptx("{?pred:.reg .pred p; setp.ne.b32 p, {pred}, 0; @p }tcgen05.commit.cta_group::{cta_group}.mbarrier::arrive::one.\
             shared::cluster{?multicast:.multicast::cluster}.b64 [{bar}]{?multicast:, {cta_mask}};").words(commit_words))
        .signature("(bar, cta_group=1, cta_mask=0, *, pred=None)")
        .args(&[arg("bar", SHARED), arg("cta_group", GROUP), arg("cta_mask", U16), optional("pred", I32)])
        .traits(Traits::SYNC.by(Engine::Tcgen05)).section("tcgen05.commit");

    /// Writes the descriptor of a matrix in shared memory to `desc`: its address, the byte offsets of the leading and the strided
    /// dimension in units of 16 bytes, and the swizzle (0 none, 1 of 32 bytes, 2 of 64, 3 of 128, 4 of 128 in atoms of 32).
    PtxTcgen05EncodeMatrixDescriptor = Row::new("tirx.ptx.tcgen05_encode_matrix_descriptor",
        "ptx.tcgen05.encode_matrix_descriptor",
        code("const unsigned long long start = ($addr$ >> 4) & 0x3fff;\n\
              const unsigned long long leading = ldo & 0x3fff, stride = sdo & 0x3fff;\n\
              const unsigned long long layout = swizzle == 0 ? 0 : swizzle == 4 ? 1 : 8 - 2 * swizzle;\n\
              $desc$ = start | leading << 16 | stride << 32 | 1ull << 46 | layout << 61;"))
        .args(&[arg("desc", OUT64), arg("addr", SHARED), arg("ldo", I32), arg("sdo", I32), arg("swizzle", I32)])
        .section("Shared memory descriptor of tcgen05").also(&["cuda.tcgen05.encode_matrix_descriptor"]);

    /// Writes the instruction descriptor of a `T.ptx.tcgen05.mma` to `desc`: dtypes, shape, which dimension is innermost, signs.
    PtxTcgen05EncodeInstrDescriptor = Row::new("tirx.ptx.tcgen05_encode_instr_descriptor",
        "ptx.tcgen05.encode_instr_descriptor", code("$desc$ = $bits$;").words(descriptor_words))
        .signature("(desc, *, d_dtype, a_dtype, b_dtype, M, N, K, trans_a, trans_b, n_cta_groups=1, neg_a=False, neg_b=False, \
                    sat_d=False, is_sparse=False)")
        .args(&[
            arg("desc", OUT32), arg("d_dtype", ArgKind::DTypeName), arg("a_dtype", ArgKind::DTypeName),
            arg("b_dtype", ArgKind::DTypeName), arg("M", ArgKind::Immediate(0, 256)), arg("N", ArgKind::Immediate(0, 256)),
            arg("K", ArgKind::Immediate(0, 256)), arg("trans_a", ArgKind::Bool), arg("trans_b", ArgKind::Bool),
            arg("n_cta_groups", GROUP), arg("neg_a", ArgKind::Bool), arg("neg_b", ArgKind::Bool), arg("sat_d", ArgKind::Bool),
            arg("is_sparse", ArgKind::Bool),
        ])
        .checked(descriptor_check)
        .section("Instruction descriptor of tcgen05").also(&["cuda.tcgen05.encode_instr_descriptor"]);

    /// Writes the instruction descriptor of a `T.ptx.tcgen05.mma.block_scale` to `desc`.
    PtxTcgen05EncodeInstrDescriptorBlockScaled = Row::new("tirx.ptx.tcgen05_encode_instr_descriptor_block_scaled",
        "ptx.tcgen05.encode_instr_descriptor_block_scaled", code("$desc$ = $bits$;").words(descriptor_words))
        .signature("(desc, *, d_dtype, a_dtype, b_dtype, sfa_dtype, sfb_dtype, sfa_tmem_addr, sfb_tmem_addr, M, N, K, trans_a, \
                    trans_b, n_cta_groups=1, neg_a=False, neg_b=False, is_sparse=False)")
        .args(&[
            arg("desc", OUT32), arg("d_dtype", ArgKind::DTypeName), arg("a_dtype", ArgKind::DTypeName),
            arg("b_dtype", ArgKind::DTypeName), arg("sfa_dtype", ArgKind::DTypeName), arg("sfb_dtype", ArgKind::DTypeName),
            arg("sfa_tmem_addr", U32), arg("sfb_tmem_addr", U32), arg("M", ArgKind::Immediate(0, 256)),
            arg("N", ArgKind::Immediate(0, 256)), arg("K", ArgKind::Immediate(0, 256)), arg("trans_a", ArgKind::Bool),
            arg("trans_b", ArgKind::Bool), arg("n_cta_groups", GROUP), arg("neg_a", ArgKind::Bool), arg("neg_b", ArgKind::Bool),
            arg("is_sparse", ArgKind::Bool),
        ])
        .checked(descriptor_check)
        .section("Instruction descriptor of tcgen05").also(&["cuda.tcgen05.encode_instr_descriptor_block_scaled"]);

    /// `D = A * B` (`enable_input_d` 0) or `D = A * B + D`, asynchronously, by one thread for its CTA (or pair): D is in tensor memory
    /// at `d_tmem_addr`, A in shared memory (`a_operand` is its descriptor) or tensor memory (`use_a_tmem`: its address), B in
    /// shared memory; `i_desc` is the instruction descriptor. `scale_input_d` divides D by a power of two first;
    /// `disable_output_lane` has masks of the lanes that are not written; nothing happens if `pred` is 0.
    PtxTcgen05Mma = Row::new("tirx.ptx.tcgen05_mma", "ptx.tcgen05.mma",
        ptx(".reg .pred p; setp.ne.b32 p, {enable_input_d}, 0; {?pred:.reg .pred issue; setp.ne.b32 issue, {pred}, 0; @issue }\
             tcgen05.mma{?weight_stationary:.ws}.cta_group::{cta_group}.kind::{kind} [{d_tmem_addr}], \
             {?use_a_tmem:[{a_operand}]}{!use_a_tmem:{a_operand}}, {b_desc}, {i_desc}, \
             {!weight_stationary:{open}{disable_output_lane}{close}, }p{scale}{?weight_stationary:, 0};")
        .words(dense_words))
        .signature("(d_tmem_addr, a_operand, b_desc, i_desc, *disable_output_lane, d_dtype, a_dtype, b_dtype, use_a_tmem, \
                    cta_group, enable_input_d=1, scale_input_d=0, weight_stationary=False, pred=None)")
        .args(&[
            arg("d_dtype", ArgKind::DTypeName), arg("a_dtype", ArgKind::DTypeName), arg("b_dtype", ArgKind::DTypeName),
            arg("d_tmem_addr", U32), arg("a_operand", ArgKind::Any), arg("b_desc", U64), arg("i_desc", U32),
            arg("use_a_tmem", ArgKind::Bool), arg("cta_group", GROUP), arg("enable_input_d", I32),
            arg("scale_input_d", ArgKind::Immediate(0, 15)), arg("weight_stationary", ArgKind::Flag),
            list("disable_output_lane", U32, masks), optional("pred", I32),
        ])
        .completed(&[], complete_masks).checked(mma)
        .needs_by(mma_gpus).traits(ENGINE).section("tcgen05.mma");

    /// The same for a sparse A: two of four elements are stored, chosen by the metadata at `sp_tmem_addr` in tensor
    /// memory.
    PtxTcgen05MmaSp = Row::new("tirx.ptx.tcgen05_mma_sp", "ptx.tcgen05.mma.sp",
        ptx(".reg .pred p; setp.ne.b32 p, {enable_input_d}, 0; tcgen05.mma.sp.cta_group::{cta_group}.kind::{kind} \
             [{d_tmem_addr}], {?use_a_tmem:[{a_operand}]}{!use_a_tmem:{a_operand}}, {b_desc}, [{sp_tmem_addr}], {i_desc}, \
             {{{disable_output_lane}}}, p{scale};").words(mma_words))
        .signature("(d_tmem_addr, a_operand, b_desc, sp_tmem_addr, i_desc, *disable_output_lane, d_dtype, a_dtype, b_dtype, \
                    use_a_tmem, cta_group, enable_input_d=1, scale_input_d=0)")
        .args(&[
            arg("d_dtype", ArgKind::DTypeName), arg("a_dtype", ArgKind::DTypeName), arg("b_dtype", ArgKind::DTypeName),
            arg("d_tmem_addr", U32), arg("a_operand", ArgKind::Any), arg("b_desc", U64), arg("sp_tmem_addr", U32),
            arg("i_desc", U32), arg("use_a_tmem", ArgKind::Bool), arg("cta_group", GROUP), arg("enable_input_d", I32),
            arg("scale_input_d", ArgKind::Immediate(0, 15)), list("disable_output_lane", U32, masks),
        ])
        .completed(&[], complete_masks).checked(mma)
        .arch(BLACKWELL).needs_by(mma_gpus).traits(ENGINE).section("tcgen05.mma.sp");

    /// As `T.ptx.tcgen05.mma` of A and B whose blocks are scaled: `sfa_tmem_addr` and `sfb_tmem_addr` are the scale factors, in tensor
    /// memory.
    PtxTcgen05MmaBlockScale = Row::new("tirx.ptx.tcgen05_mma_block_scale", "ptx.tcgen05.mma.block_scale",
        ptx(".reg .pred p; setp.ne.b32 p, {enable_input_d}, 0; \
             tcgen05.mma.cta_group::{cta_group}.kind::{kind}.block_scale.scale_vec::{vector} [{d_tmem_addr}], \
             {?use_a_tmem:[{a_operand}]}{!use_a_tmem:{a_operand}}, {b_desc}, {i_desc}, [{sfa_tmem_addr}], [{sfb_tmem_addr}], p;")
        .words(mma_words))
        .signature("(d_tmem_addr, a_operand, b_desc, sfa_tmem_addr, sfb_tmem_addr, i_desc, *, d_dtype, a_dtype, b_dtype, \
                    sfa_dtype, sfb_dtype, use_a_tmem, cta_group, enable_input_d=1)")
        .args(&[
            arg("d_dtype", ArgKind::DTypeName), arg("a_dtype", ArgKind::DTypeName), arg("b_dtype", ArgKind::DTypeName),
            arg("sfa_dtype", ArgKind::DTypeName), arg("sfb_dtype", ArgKind::DTypeName), arg("d_tmem_addr", U32),
            arg("a_operand", ArgKind::Any), arg("b_desc", U64), arg("sfa_tmem_addr", U32), arg("sfb_tmem_addr", U32),
            arg("i_desc", U32), arg("use_a_tmem", ArgKind::Bool), arg("cta_group", GROUP), arg("enable_input_d", I32),
        ])
        .checked(mma)
        .arch(EXACT).traits(ENGINE).section("tcgen05.mma");

    /// The same for a sparse A.
    PtxTcgen05MmaSpBlockScale = Row::new("tirx.ptx.tcgen05_mma_sp_block_scale", "ptx.tcgen05.mma.sp.block_scale",
        ptx(".reg .pred p; setp.ne.b32 p, {enable_input_d}, 0; \
             tcgen05.mma.sp.cta_group::{cta_group}.kind::{kind}.block_scale.scale_vec::{vector} [{d_tmem_addr}], \
             {?use_a_tmem:[{a_operand}]}{!use_a_tmem:{a_operand}}, {b_desc}, [{sp_tmem_addr}], {i_desc}, [{sfa_tmem_addr}], \
             [{sfb_tmem_addr}], p;").words(mma_words))
        .signature("(d_tmem_addr, a_operand, b_desc, sfa_tmem_addr, sfb_tmem_addr, sp_tmem_addr, i_desc, *, d_dtype, a_dtype, \
                    b_dtype, sfa_dtype, sfb_dtype, use_a_tmem, cta_group, enable_input_d=1)")
        .args(&[
            arg("d_dtype", ArgKind::DTypeName), arg("a_dtype", ArgKind::DTypeName), arg("b_dtype", ArgKind::DTypeName),
            arg("sfa_dtype", ArgKind::DTypeName), arg("sfb_dtype", ArgKind::DTypeName), arg("d_tmem_addr", U32),
            arg("a_operand", ArgKind::Any), arg("b_desc", U64), arg("sfa_tmem_addr", U32), arg("sfb_tmem_addr", U32),
            arg("sp_tmem_addr", U32), arg("i_desc", U32), arg("use_a_tmem", ArgKind::Bool), arg("cta_group", GROUP),
            arg("enable_input_d", I32),
        ])
        .checked(mma)
        .arch(EXACT).traits(ENGINE).section("tcgen05.mma.sp");

    /// An address of tensor memory moved by rows and columns.
    CudaGetTmemAddr = Row::new("tirx.cuda.get_tmem_addr", "cuda.get_tmem_addr",
        code("const unsigned int column = (addr + (unsigned int)col_offset) & 0xffff;\n\
              const unsigned int row = ((addr >> 16) + (unsigned int)row_offset) & 0xffff;\n\
              return row << 16 | column;"))
        .args(&[arg("addr", U32), arg("row_offset", I32), arg("col_offset", I32)])
        .gives(crate::ir::DType::UINT32).effect(crate::intrin::Effect::Pure)
        .section("Tensor memory addressing");

    /// Sets the scale factor ids of an instruction descriptor to `sf_id`.
    CudaRuntimeInstrDesc = Row::new("tirx.cuda.runtime_instr_desc", "cuda.runtime_instr_desc",
        code("$desc$ = ($desc$ & ~0x60000030u) | (sf_id << 29 | sf_id << 4);"))
        .args(&[arg("desc", ArgKind::Register(Access::InOut, Ty::B32)), arg("sf_id", U32)])
        .section("Instruction descriptor of tcgen05");
} }
