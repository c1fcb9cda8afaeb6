//! Instructions of tensor memory: `tcgen05`.

use tirx_ir::Expr;
use tirx_ir::intrin::row::Machine;
use tirx_source::diagnostic::{Result, error};

use super::Compiler;
use super::call::Call;
use super::registers::Val;
use tirx_sim_machine::alu::Bin;
use tirx_sim_machine::bytecode::{MmaInst, R, Region, TensorInst, TensorMemoryInst, UNNAMED_POINTER};
use tirx_sim_machine::numeric::Kind;
use tirx_sim_machine::tensor::format::Format;
use tirx_sim_machine::tensor::tcgen05::Kind as MmaKind;
use tirx_sim_machine::tensor::transfer::{Copy, Transfer};

/// The name of the number of blocks that execute an instruction together.
const GROUP: &str = "cta_group";

impl Compiler<'_> {
    fn push_memory(&mut self, inst: TensorMemoryInst) -> Result<()> {
        self.push_tensor(TensorInst::Memory(inst))
    }

    pub(super) fn in_register(&mut self, e: &Expr, kind: Kind) -> Result<R> {
        let value = self.value(e)?;
        let value = self.convert(value, kind)?;
        self.vector(value)
    }

    fn named_in_register(&mut self, call: &Call<'_>, name: &str, kind: Kind) -> Result<R> {
        let operand = self.argument(call, name)?;
        self.in_register(operand, kind)
    }

    /// `tcgen05.alloc`.
    pub(super) fn alloc_columns(&mut self, call: &Call<'_>) -> Result<()> {
        let to = self.address_value(self.argument(call, "dst_ptr")?)?;
        let columns = self.named_in_register(call, "n_cols", Kind::U32)?;
        let access = self.access(Region::Pointer, Kind::U32, 1, UNNAMED_POINTER)?;
        let temp = self.temp(Kind::U32)?;
        self.push_memory(TensorMemoryInst::Alloc {
            to,
            access,
            columns,
            temp,
            group: self.number(call, GROUP)?,
        })
    }

    /// `tcgen05.dealloc`.
    pub(super) fn free_columns(&mut self, call: &Call<'_>) -> Result<()> {
        let address = self.named_in_register(call, "taddr", Kind::U32)?;
        let columns = self.named_in_register(call, "n_cols", Kind::U32)?;
        let group = self.number(call, GROUP)?;
        self.push_memory(TensorMemoryInst::Dealloc {
            address,
            columns,
            group,
        })
    }

    /// `tcgen05.relinquish_alloc_permit`.
    pub(super) fn relinquish_columns(&mut self, call: &Call<'_>) -> Result<()> {
        let group = self.number(call, GROUP)?;
        self.push_memory(TensorMemoryInst::Relinquish { group })
    }

    /// `tcgen05.shift`.
    pub(super) fn shift_columns(&mut self, call: &Call<'_>) -> Result<()> {
        let address = self.named_in_register(call, "taddr", Kind::U32)?;
        let group = self.number(call, GROUP)?;
        self.push_memory(TensorMemoryInst::Shift { group, address })
    }

    /// `tcgen05.ld` and `tcgen05.st`.
    pub(super) fn transfer(&mut self, call: &Call<'_>, stores: bool) -> Result<()> {
        let (address, packs) = match stores {
            true => ("dst_addr", "unpack"),
            false => ("src_addr", "pack"),
        };
        let address = self.memory_address(call, address)?;
        let num = self.number(call, "num")?;
        let transfer = match Transfer::new(call.named.text("shape"), num, call.named.flag(packs)) {
            Ok(transfer) => transfer,
            Err(message) => return error(self.span, message),
        };
        let given = call.named.list("regs");
        if given.len() != transfer.registers() {
            return error(
                self.span,
                format!(
                    "{} registers, but {} are moved",
                    given.len(),
                    transfer.registers()
                ),
            );
        }
        let mut registers = Vec::new();
        for register in given {
            registers.push(self.register_pointer(register)?);
        }
        self.push_memory(match stores {
            true => TensorMemoryInst::Store {
                transfer,
                address,
                registers,
            },
            false => TensorMemoryInst::Load {
                transfer,
                address,
                registers,
            },
        })
    }

    /// `tcgen05.cp`.
    pub(super) fn copy_to_columns(&mut self, call: &Call<'_>) -> Result<()> {
        let address = self.memory_address(call, "taddr")?;
        let descriptor = self.named_in_register(call, "src_desc", Kind::U64)?;
        let [shape, multicast, decompress] =
            ["shape", "multicast", "decompress"].map(|name| call.named.text(name));
        let copy = match Copy::new(shape, multicast, decompress) {
            Ok(copy) => copy,
            Err(message) => return error(self.span, message),
        };
        let group = self.number(call, GROUP)?;
        self.push_memory(TensorMemoryInst::Copy {
            copy,
            group,
            address,
            descriptor,
        })
    }

    /// `tcgen05.commit`.
    pub(super) fn commit(&mut self, call: &Call<'_>) -> Result<()> {
        let barrier = self.address_value(self.argument(call, "bar")?)?;
        let ranks = match call.named.int("cta_mask") {
            Some(0) => None,
            _ => Some(self.named_in_register(call, "cta_mask", Kind::U32)?),
        };
        let predicate = match call.named.get("pred") {
            Some(e) => Some(self.in_register(e, Kind::U32)?),
            None => None,
        };
        self.push_memory(TensorMemoryInst::Commit {
            barrier,
            ranks,
            predicate,
            group: self.number(call, GROUP)?,
        })
    }

    /// An instruction descriptor, to where `desc` points.
    pub(super) fn encode_instruction(&mut self, call: &Call<'_>) -> Result<()> {
        let bits = self.instruction_descriptor(call)?;
        self.store_pointer(self.argument(call, "desc")?, Kind::U32, &[bits])
    }

    /// The bits that the row's own encoder computes.
    fn instruction_descriptor(&mut self, call: &Call<'_>) -> Result<Val> {
        let words = call.op.row().cuda.words;
        let words = words.and_then(|words| words(&call.named, Machine { capability: 100 }).ok());
        let bits = words.and_then(|words| {
            let (_, text) = words.texts.into_iter().find(|(name, _)| *name == "bits")?;
            let digits = text.trim_start_matches("0x").trim_end_matches('u');
            u32::from_str_radix(digits, 16).ok()
        });
        let formats = ["a_dtype", "b_dtype", "d_dtype"].map(|name| Format::named(call.named.text(name)));
        if let (Some(bits), [Some(a), Some(b), Some(d)]) = (bits, formats) {
            self.code.descriptors.push((bits, [a, b, d]));
        }
        match bits {
            Some(bits) => self.bits(Kind::U32, bits.into()),
            None => error(self.span, "this instruction descriptor has no encoding"),
        }
    }

    /// An address of tensor memory, moved by `row` and `col`.
    fn memory_address(&mut self, call: &Call<'_>, address: &str) -> Result<R> {
        let base = self.value(self.argument(call, address)?)?;
        let mut total = self.convert(base, Kind::U32)?;
        for (offset, shift) in [("row", 16), ("col", 0)] {
            let offset = self.argument(call, offset)?;
            if offset.as_int() == Some(0) {
                continue;
            }
            let value = self.value(offset)?;
            let value = self.convert(value, Kind::U32)?;
            let by = self.integer(Kind::U32, shift)?;
            let value = self.bin(Bin::Shl, Kind::U32, Kind::U32, value, by)?;
            total = self.bin(Bin::Add, Kind::U32, Kind::U32, total, value)?;
        }
        self.vector(total)
    }

    /// `get_tmem_addr`: lane and column are moved apart, each within 16 bits.
    pub(super) fn memory_address_within(&mut self, call: &Call<'_>) -> Result<Val> {
        let mut named = |name: &str| {
            let value = self.value(self.argument(call, name)?)?;
            self.convert(value, Kind::U32)
        };
        let (address, rows, columns) = (named("addr")?, named("row_offset")?, named("col_offset")?);
        let lane = self.integer(Kind::U32, 16)?;
        let half = self.integer(Kind::U32, 0xffff)?;
        let mut word = |op: Bin, a: Val, b: Val| self.bin(op, Kind::U32, Kind::U32, a, b);
        let column = word(Bin::Add, address, columns)?;
        let column = word(Bin::And, column, half)?;
        let row = word(Bin::ShrU, address, lane)?;
        let row = word(Bin::Add, row, rows)?;
        let row = word(Bin::Shl, row, lane)?;
        word(Bin::Or, row, column)
    }

    /// `runtime_instr_desc`: the byte of the scale factors in a descriptor, of A (bits 29 and 30) and of B (4 and 5).
    pub(super) fn scale_factor_ids(&mut self, call: &Call<'_>) -> Result<()> {
        let descriptor = self.argument(call, "desc")?;
        let before = self.load_pointer(descriptor, Kind::U32, 1)?[0];
        let id = self.value(self.argument(call, "sf_id")?)?;
        let id = self.convert(id, Kind::U32)?;
        let kept = self.integer(Kind::U32, i128::from(!0x6000_0030_u32))?;
        let shifts = [self.integer(Kind::U32, 29)?, self.integer(Kind::U32, 4)?];
        let mut bits = self.bin(Bin::And, Kind::U32, Kind::U32, before, kept)?;
        for shift in shifts {
            let field = self.bin(Bin::Shl, Kind::U32, Kind::U32, id, shift)?;
            bits = self.bin(Bin::Or, Kind::U32, Kind::U32, bits, field)?;
        }
        self.store_pointer(descriptor, Kind::U32, &[bits])
    }

    /// `tcgen05.mma`, dense or sparse, with scale factors or without.
    pub(super) fn tensor_product(&mut self, call: &Call<'_>, scaled: bool) -> Result<()> {
        let given = |name: &str| self.given(call, name);
        let (d, a, b) = (given("d_tmem_addr")?, given("a_operand")?, given("b_desc")?);
        let (descriptor, keep) = (given("i_desc")?, given("enable_input_d")?);
        let call = &call.named;
        let scale_dtype = scaled.then(|| call.text("sfa_dtype"));
        let kind = MmaKind::from_dtypes(
            call.text("d_dtype"),
            call.text("a_dtype"),
            call.text("b_dtype"),
            scale_dtype,
        );
        let kind = match kind {
            Ok(kind) => kind,
            Err(message) => return error(self.span, message),
        };
        let blocks = match (kind, scale_dtype.and_then(Format::named)) {
            (MmaKind::Mxf8f6f4, _) => 1,
            (MmaKind::Mxf4, _) | (MmaKind::Mxf4nvf4, Some(Format::Ue8m0)) => 2,
            _ => 4,
        };
        let left_in_memory = call.flag("use_a_tmem");
        let number = |name: &str| call.int(name).and_then(|v| u32::try_from(v).ok()).unwrap_or(0);
        let (group, scale) = (number("cta_group").max(1) as usize, number("scale_input_d"));
        let weight_stationary = call.int("weight_stationary").is_some_and(|v| v != 0);
        let masks: Vec<&Expr> = call.list("disable_output_lane").iter().collect();
        let mut off = Vec::new();
        if masks.iter().any(|m| m.as_int() != Some(0)) {
            for mask in masks {
                off.push(self.in_register(mask, Kind::U32)?);
            }
        }
        let factors = match (call.get("sfa_tmem_addr"), call.get("sfb_tmem_addr")) {
            (Some(a), Some(b)) if scaled => {
                Some([self.in_register(a, Kind::U32)?, self.in_register(b, Kind::U32)?])
            }
            _ => None,
        };
        let predicate = match call.get("pred") {
            Some(e) => Some(self.in_register(e, Kind::U32)?),
            None => None,
        };
        let metadata = match call.get("sp_tmem_addr") {
            Some(e) => Some(self.in_register(e, Kind::U32)?),
            None => None,
        };
        let formats = ["a_dtype", "b_dtype", "d_dtype"].map(|name| Format::named(call.text(name)));
        let named = match formats {
            [Some(a), Some(b), Some(d)] if !self.any_formats => Some([a, b, d]),
            _ => None,
        };
        let inst = MmaInst {
            metadata,
            kind,
            named,
            group,
            weight_stationary,
            blocks,
            scale,
            left_in_memory,
            left: self.in_register(a, Kind::U64)?,
            right: self.in_register(b, Kind::U64)?,
            d: self.in_register(d, Kind::U32)?,
            descriptor: self.in_register(descriptor, Kind::U32)?,
            keep: self.in_register(keep, Kind::U32)?,
            off,
            factors,
            predicate,
        };
        self.push_memory(TensorMemoryInst::Mma(inst))
    }
}
