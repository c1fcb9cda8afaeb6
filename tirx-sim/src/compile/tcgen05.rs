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

impl Compiler<'_> {
    fn push_memory(&mut self, inst: TensorMemoryInst) -> Result<()> {
        self.push_tensor(TensorInst::Memory(inst))
    }

    fn in_register(&mut self, e: &Expr, kind: Kind) -> Result<R> {
        let value = self.value(e)?;
        let value = self.convert(value, kind)?;
        self.vector(value)
    }

    /// Arguments: where the address goes, how many columns, how many blocks.
    pub(super) fn alloc_columns(&mut self, args: &[Expr]) -> Result<()> {
        let to = self.address_value(&args[0])?;
        let columns = self.in_register(&args[1], Kind::U32)?;
        let access = self.access(Region::Pointer, Kind::U32, 1, UNNAMED_POINTER)?;
        let temp = self.temp(Kind::U32)?;
        self.push_memory(TensorMemoryInst::Alloc {
            to,
            access,
            columns,
            temp,
            group: self.whole(&args[2])?,
        })
    }

    /// Arguments: address, how many columns, how many blocks.
    pub(super) fn free_columns(&mut self, args: &[Expr]) -> Result<()> {
        let address = self.in_register(&args[0], Kind::U32)?;
        let columns = self.in_register(&args[1], Kind::U32)?;
        let group = self.whole(&args[2])?;
        self.push_memory(TensorMemoryInst::Dealloc {
            address,
            columns,
            group,
        })
    }

    /// Arguments: how many blocks.
    pub(super) fn relinquish_columns(&mut self, args: &[Expr]) -> Result<()> {
        let group = self.whole(&args[0])?;
        self.push_memory(TensorMemoryInst::Relinquish { group })
    }

    /// Arguments: address, how many blocks.
    pub(super) fn shift_columns(&mut self, args: &[Expr]) -> Result<()> {
        let address = self.in_register(&args[0], Kind::U32)?;
        let group = self.whole(&args[1])?;
        self.push_memory(TensorMemoryInst::Shift { group, address })
    }

    /// `tcgen05.ld` and `tcgen05.st`: address, row, column, shape, how many, whether packed, registers.
    pub(super) fn transfer(&mut self, args: &[Expr], stores: bool) -> Result<()> {
        let address = self.memory_address(&args[0], &args[1], &args[2])?;
        let packed = self.whole(&args[5])? != 0;
        let transfer = match Transfer::new(self.text(&args[3])?, self.whole(&args[4])?, packed) {
            Ok(transfer) => transfer,
            Err(message) => return error(self.span, message),
        };
        let given = &args[6..];
        if given.len() != transfer.registers() {
            return error(
                self.span,
                format!(
                    "{} registers, where {} are moved",
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

    /// `tcgen05.cp`: address, descriptor, shape, how many blocks, multicast, decompression, row, column.
    pub(super) fn copy_to_columns(&mut self, args: &[Expr]) -> Result<()> {
        let address = self.memory_address(&args[0], &args[6], &args[7])?;
        let descriptor = self.in_register(&args[1], Kind::U64)?;
        let copy = Copy::new(self.text(&args[2])?, self.text(&args[4])?, self.text(&args[5])?);
        let copy = match copy {
            Ok(copy) => copy,
            Err(message) => return error(self.span, message),
        };
        let group = self.whole(&args[3])?;
        self.push_memory(TensorMemoryInst::Copy {
            copy,
            group,
            address,
            descriptor,
        })
    }

    /// `tcgen05.commit`: mbarrier, how many blocks, mask of blocks, predicate.
    pub(super) fn commit(&mut self, args: &[Expr]) -> Result<()> {
        let barrier = self.address_value(&args[0])?;
        let ranks = match args[2].as_int() {
            Some(0) => None,
            _ => Some(self.in_register(&args[2], Kind::U32)?),
        };
        let predicate = match args.get(3) {
            Some(e) => Some(self.in_register(e, Kind::U32)?),
            None => None,
        };
        self.push_memory(TensorMemoryInst::Commit {
            barrier,
            ranks,
            predicate,
            group: self.whole(&args[1])?,
        })
    }

    /// An instruction descriptor, to where the first argument points.
    pub(super) fn encode_instruction(&mut self, call: &Call<'_>) -> Result<()> {
        let bits = self.instruction_descriptor(call)?;
        self.store_pointer(&call.args[0], Kind::U32, &[bits])
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
        match bits {
            Some(bits) => self.bits(Kind::U32, bits.into()),
            None => error(self.span, "this instruction descriptor has no encoding"),
        }
    }

    /// An address of tensor memory, moved by rows and columns.
    fn memory_address(&mut self, address: &Expr, row: &Expr, column: &Expr) -> Result<R> {
        let base = self.value(address)?;
        let mut total = self.convert(base, Kind::U32)?;
        for (offset, shift) in [(row, 16), (column, 0)] {
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
    pub(super) fn memory_address_within(&mut self, args: &[Expr]) -> Result<Val> {
        let words: Result<Vec<Val>> = args
            .iter()
            .map(|e| {
                let value = self.value(e)?;
                self.convert(value, Kind::U32)
            })
            .collect();
        let words = words?;
        let lane = self.integer(Kind::U32, 16)?;
        let half = self.integer(Kind::U32, 0xffff)?;
        let mut word = |op: Bin, a: Val, b: Val| self.bin(op, Kind::U32, Kind::U32, a, b);
        let column = word(Bin::Add, words[0], words[2])?;
        let column = word(Bin::And, column, half)?;
        let row = word(Bin::ShrU, words[0], lane)?;
        let row = word(Bin::Add, row, words[1])?;
        let row = word(Bin::Shl, row, lane)?;
        word(Bin::Or, row, column)
    }

    /// `runtime_instr_desc`: the byte of the scale factors in a descriptor, of A (bits 29 and 30) and of B (4 and 5).
    pub(super) fn scale_factor_ids(&mut self, args: &[Expr]) -> Result<()> {
        let before = self.load_pointer(&args[0], Kind::U32, 1)?[0];
        let id = self.value(&args[1])?;
        let id = self.convert(id, Kind::U32)?;
        let kept = self.integer(Kind::U32, i128::from(!0x6000_0030_u32))?;
        let shifts = [self.integer(Kind::U32, 29)?, self.integer(Kind::U32, 4)?];
        let mut bits = self.bin(Bin::And, Kind::U32, Kind::U32, before, kept)?;
        for shift in shifts {
            let field = self.bin(Bin::Shl, Kind::U32, Kind::U32, id, shift)?;
            bits = self.bin(Bin::Or, Kind::U32, Kind::U32, bits, field)?;
        }
        self.store_pointer(&args[0], Kind::U32, &[bits])
    }

    /// `tcgen05.mma`, dense or sparse, with scale factors or without.
    pub(super) fn tensor_product(&mut self, call: &Call<'_>, scaled: bool) -> Result<()> {
        let given = |name: &str| self.given(call, name);
        let (d, a, b) = (given("d_tmem_addr")?, given("a_operand")?, given("b_desc")?);
        let (descriptor, keep) = (given("i_desc")?, given("enable_input_d")?);
        let call = &call.named;
        let scale_dtype = scaled.then(|| call.text("sfa_dtype"));
        let kind = MmaKind::of(
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
        let inst = MmaInst {
            metadata,
            kind,
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
