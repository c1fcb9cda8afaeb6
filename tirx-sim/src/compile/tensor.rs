//! Synchronous warp-wide instructions of tensor cores: `ldmatrix`, `stmatrix`, `mma.sync`.
//!
//! Operands in registers are named by pointers to elements of local arrays. They are loaded before and stored after, as
//! any access through a pointer is, so that what is between works on vector registers alone.

use tirx_ir::intrin::mnemonic::InstructionCall;
use tirx_ir::{DType, Expr, ExprKind};
use tirx_source::diagnostic::{Result, error};

use super::Compiler;
use super::call::Call;
use super::mnemonic::reasons;
use super::registers::Val;
use tirx_sim_machine::alu::Bin;
use tirx_sim_machine::bytecode::{
    Inst, LeftOperand, Operand, R, Region, TensorInst, UNNAMED_POINTER, WgmmaInst,
};
use tirx_sim_machine::numeric::Kind;
use tirx_sim_machine::tensor::format::Format;
use tirx_sim_machine::tensor::fragment::{Part, Shape, count};
use tirx_sim_machine::tensor::matrix::Accumulator;
use tirx_sim_machine::tensor::mma::{BitOp, Mma};
use tirx_sim_machine::tensor::rows::{RowMove, RowShape};
use tirx_sim_machine::tensor::wgmma::Wgmma;

impl Compiler<'_> {
    /// `wgmma.wait_group`.
    pub(super) fn wait_for_wgmma(&mut self, groups: &Expr) -> Result<()> {
        let n = self.whole(groups)?;
        self.push_tensor(TensorInst::WgmmaWait { n })
    }

    pub(super) fn push_tensor(&mut self, inst: TensorInst) -> Result<()> {
        let Ok(id) = u16::try_from(self.code.tensor.len()) else {
            return error(
                self.span,
                "the kernel has too many tensor core instructions for the simulator",
            );
        };
        self.code.tensor.push(inst);
        self.count(1);
        self.emit(Inst::Tensor { id });
        Ok(())
    }

    /// A constant non-negative integer argument.
    pub(super) fn whole(&self, e: &Expr) -> Result<usize> {
        match e.as_int().map(usize::try_from) {
            Some(Ok(value)) => Ok(value),
            _ => error(self.span, "this argument must be a constant from 0 on"),
        }
    }

    fn format(&self, name: &str) -> Result<Format> {
        match Format::named(name) {
            Some(format) => Ok(format),
            None => error(self.span, format!("tensor cores have no format \"{name}\"")),
        }
    }

    /// Values behind pointers, in consecutive registers.
    fn gather_registers(&mut self, pointers: &[Expr], kind: Kind) -> Result<R> {
        let first = self.temps(kind, pointers.len() as u16)?;
        for (i, pointer) in pointers.iter().enumerate() {
            let mark = self.registers.mark();
            let value = self.load_pointer(pointer, kind, 1)?[0];
            self.move_to(first + i as R, value, mark);
            self.registers.free_to(mark);
        }
        Ok(first)
    }

    /// Consecutive registers to what pointers name.
    fn scatter_registers(&mut self, pointers: &[Expr], kind: Kind, first: R) -> Result<()> {
        for (i, pointer) in pointers.iter().enumerate() {
            let mark = self.registers.mark();
            self.store_pointer(pointer, kind, &[Val::vector(kind, first + i as R)])?;
            self.registers.free_to(mark);
        }
        Ok(())
    }

    /// `ldmatrix` and `stmatrix`.
    pub(super) fn move_rows(&mut self, call: &Call<'_>, store: bool) -> Result<()> {
        let transposed = call.named.flag("trans");
        let matrices = self.number(call, "num")?;
        let dtype = call.named.text("dtype").trim_start_matches('.');
        let shape = match (dtype, if store { call.named.text("shape") } else { "m8n8" }) {
            ("b16", "m8n8") => RowShape::M8n8,
            ("b8", "m16n8") => RowShape::Bytes16,
            (dtype, shape) => {
                let name = if store { "stmatrix" } else { "ldmatrix" };
                return error(self.span, format!("{name} has no shape .{shape} of .{dtype}"));
            }
        };
        let rows = RowMove {
            shape,
            matrices,
            transposed,
            store,
        };
        let registers = call.named.list(if store { "src" } else { "dst" });
        if registers.len() != rows.registers() {
            return error(
                self.span,
                format!(
                    "{} registers per lane for {matrices} matrices, {} are needed",
                    registers.len(),
                    rows.registers()
                ),
            );
        }
        let address = self.address_value(self.argument(call, "smem_ptr")?)?;
        let access = self.access(Region::Pointer, Kind::U32, 4, UNNAMED_POINTER)?;
        let temp = self.temps(Kind::U32, 4)?;
        let held = if store {
            self.gather_registers(registers, Kind::U32)?
        } else {
            self.temps(Kind::U32, registers.len() as u16)?
        };
        self.push_tensor(TensorInst::Rows {
            rows,
            address,
            access,
            temp,
            registers: held,
        })?;
        if !store {
            self.scatter_registers(registers, Kind::U32, held)?;
        }
        Ok(())
    }

    /// `mma.sync`.
    pub(super) fn mma_sync(&mut self, call: &Call<'_>) -> Result<()> {
        let call = &call.named;
        let shape_text = call.text("shape");
        let Some(shape) = Shape::parse(shape_text) else {
            return error(self.span, format!("mma has no shape \"{shape_text}\""));
        };
        let turned = [call.text("a_layout") == "col", call.text("b_layout") == "row"];
        let [d, a, b, c] = ["d_type", "a_type", "b_type", "c_type"].map(|name| self.format(call.text(name)));
        let (d, a, b, c) = (d?, a?, b?, c?);
        let has_c = !call.flag("no_c_ptr");
        let pointers = ["d_ptrs", "a_ptrs", "b_ptrs", "c_ptrs"].map(|name| call.list(name));
        let [d_pointers, a_pointers, b_pointers, c_pointers] = pointers;
        let [d_count, a_count, b_count, c_count] = pointers.map(<[Expr]>::len);
        if a == Format::F64 {
            let expected = [Part::A, Part::B, Part::C].map(|part| count(shape, part));
            if [a_count, b_count, d_count] != expected {
                return self.wrong_counts([a_count, b_count, d_count, d_count], expected);
            }
            let a = self.gather_registers(a_pointers, Kind::U64)?;
            let b = self.gather_registers(b_pointers, Kind::U64)?;
            let c = match has_c {
                true => Some(self.gather_registers(c_pointers, Kind::U64)?),
                false => None,
            };
            let d = self.temps(Kind::U64, d_count as u16)?;
            self.push_tensor(TensorInst::MmaF64 { shape, a, b, c, d })?;
            return self.scatter_registers(d_pointers, Kind::U64, d);
        }
        let saturate = call.flag("saturate");
        let bit_op = call.get("bit_op").and_then(Expr::as_str);
        let accumulator = |format: Format| match format {
            Format::F32 => Some(Accumulator::F32),
            Format::F16 => Some(Accumulator::F16),
            Format::I32 => Some(Accumulator::I32 { saturate }),
            _ => None,
        };
        let (Some(sums), Some(before)) = (accumulator(d), accumulator(c)) else {
            return error(self.span, format!("mma has no accumulators of {d:?} and {c:?}"));
        };
        let mma = Mma {
            shape,
            a,
            b,
            d: sums,
            c: before,
            a_turned: turned[0],
            b_turned: turned[1],
            bit_op: if bit_op == Some("xor") {
                BitOp::Xor
            } else {
                BitOp::And
            },
            sparse: None,
        };
        let expected = mma.registers();
        let c_given = if has_c { c_count } else { expected[2] };
        if [a_count, b_count, c_given, d_count] != expected {
            return self.wrong_counts(
                [a_count, b_count, c_given, d_count],
                [expected[0], expected[1], expected[3]],
            );
        }
        let a = self.gather_registers(a_pointers, Kind::U32)?;
        let b = self.gather_registers(b_pointers, Kind::U32)?;
        let c = match has_c {
            true => Some(self.gather_registers(c_pointers, Kind::U32)?),
            false => None,
        };
        let d = self.temps(Kind::U32, d_count as u16)?;
        self.push_tensor(TensorInst::Mma {
            mma,
            a,
            b,
            c,
            d,
            metadata: None,
        })?;
        self.scatter_registers(d_pointers, Kind::U32, d)
    }

    /// `mma.sp.sync` of a sparse A: accumulators are added to in place.
    pub(super) fn mma_sparse(&mut self, call: &Call<'_>) -> Result<()> {
        let call = &call.named;
        let Some(shape) = Shape::parse(call.text("shape")) else {
            return error(
                self.span,
                format!("mma.sp has no shape \"{}\"", call.text("shape")),
            );
        };
        let formats = ["a_type", "b_type", "c_type"].map(|name| Format::named(call.text(name)));
        let [Some(a), Some(b), Some(c)] = formats else {
            return error(self.span, "mma.sp of a dtype that tensor cores do not have");
        };
        let sums = match c {
            Format::F32 => Accumulator::F32,
            Format::F16 => Accumulator::F16,
            Format::I32 => Accumulator::I32 {
                saturate: call.flag("saturate"),
            },
            _ => return error(self.span, format!("mma.sp has no accumulators of {c:?}")),
        };
        let mma = Mma {
            shape,
            a,
            b,
            d: sums,
            c: sums,
            a_turned: false,
            b_turned: false,
            bit_op: BitOp::And,
            sparse: call.int("selector").and_then(|s| u32::try_from(s).ok()),
        };
        let [acc, a_regs, b_regs] = ["acc", "a_regs", "b_regs"].map(|name| call.list(name).to_vec());
        let expected = mma.registers();
        if [a_regs.len(), b_regs.len(), acc.len(), acc.len()] != expected {
            let given = [a_regs.len(), b_regs.len(), acc.len(), acc.len()];
            return self.wrong_counts(given, [expected[0], expected[1], expected[3]]);
        }
        let Some(metadata) = call.get("metadata") else {
            return error(self.span, "mma.sp without metadata");
        };
        let a = self.gather_registers(&a_regs, Kind::U32)?;
        let b = self.gather_registers(&b_regs, Kind::U32)?;
        let d = self.gather_registers(&acc, Kind::U32)?;
        let metadata = Some(self.gather_registers(std::slice::from_ref(metadata), Kind::U32)?);
        self.push_tensor(TensorInst::Mma {
            mma,
            a,
            b,
            c: Some(d),
            d,
            metadata,
        })?;
        self.scatter_registers(&acc, Kind::U32, d)
    }

    /// A pointer to a register, which may be given as an element or by its address.
    pub(super) fn register_pointer(&mut self, e: &Expr) -> Result<Operand> {
        let pointer = match &e.kind {
            ExprKind::BufferLoad { .. } => self.address_of(e)?,
            _ => self.value(e)?,
        };
        Ok(pointer.at)
    }

    /// `wgmma.mma_async`, whose A is in shared memory or in registers.
    pub(super) fn wgmma(&mut self, call: &Call<'_>) -> Result<()> {
        let [m, n, k] = ["M", "N", "K"].map(|name| self.number(call, name));
        let (m, n, k) = (m?, n?, k?);
        let [input, output] = ["in_dtype", "out_dtype"].map(|name| self.format(call.named.text(name)));
        let (input, output) = (input?, output?);
        let mut wgmma = match Wgmma::new(m, n, k, input, output) {
            Ok(wgmma) => wgmma,
            Err(message) => return error(self.span, message),
        };
        (wgmma.turned_a, wgmma.turned_b) = (call.named.flag("transA"), call.named.flag("transB"));
        let negative = |name: &str| {
            let sign = call.named.get(name);
            sign.is_some_and(|e| e.as_int().is_some_and(|v| v < 0) || e.as_float().is_some_and(|v| v < 0.0))
        };
        (wgmma.negate_a, wgmma.negate_b) = (negative("scaleA"), negative("scaleB"));
        let descriptors = [call.named.list("descA"), call.named.list("descB")].concat();
        let registers = [call.named.list("a_regs"), call.named.list("accums")].concat();
        self.issue_wgmma(wgmma, self.argument(call, "scaleD")?, &descriptors, &registers)
    }

    /// A `wgmma.mma_async` whose A and B have formats of their own.
    pub(super) fn wgmma_of_formats(&mut self, call: &InstructionCall) -> Result<()> {
        let tokens = &call.tokens;
        let formats = ["atype", "btype", "dtype"].map(|slot| Format::named(tokens.get(slot)));
        let ([Some(a), Some(b), Some(d)], Some(keep)) = (formats, call.get("scale_d")) else {
            return self.refuse(call, &reasons::OPERANDS);
        };
        let [m, n, k] = [0, 1, 2].map(|at| tokens.number("shape", at));
        let mut wgmma = match Wgmma::new(m, n, k, a, d) {
            Ok(wgmma) => wgmma,
            Err(message) => return error(self.span, message),
        };
        wgmma.b = b;
        if let Accumulator::I32 { saturate } = &mut wgmma.d {
            *saturate = tokens.has("satfinite");
        }
        let number = |name: &str| call.get(name).and_then(Expr::as_int).unwrap_or(0);
        (wgmma.turned_a, wgmma.turned_b) = (number("trans_a") != 0, number("trans_b") != 0);
        (wgmma.negate_a, wgmma.negate_b) = (number("scale_a") < 0, number("scale_b") < 0);
        let descriptors = [call.list("a_desc"), call.list("b_desc")].concat();
        let registers = [call.list("a"), call.list("d")].concat();
        let is_register = |e: &Expr| matches!(e.kind, ExprKind::BufferLoad { .. }) || e.dtype.is_handle();
        if !registers.iter().all(is_register) {
            return self.refuse(call, &reasons::OPERANDS);
        }
        self.issue_wgmma(wgmma, keep, &descriptors, &registers)
    }

    /// A `wgmma.mma_async`: whether to add, descriptors (of A and B, or of B with A in registers), registers of A if it has some, and
    /// of the sums.
    pub(super) fn issue_wgmma(
        &mut self,
        wgmma: Wgmma,
        keep: &Expr,
        descriptors: &[Expr],
        registers: &[Expr],
    ) -> Result<()> {
        let keep = self.in_register(keep, Kind::U32)?;
        let mut words = Vec::new();
        for descriptor in descriptors {
            words.push(self.in_register(descriptor, Kind::U64)?);
        }
        let left_count = match descriptors.len() {
            2 => 0,
            _ => wgmma.left_registers(),
        };
        if registers.len() != left_count + wgmma.sums() {
            return error(
                self.span,
                format!(
                    "wgmma is given {} registers per thread, and m64n{}k{} has {left_count} of A and {} accumulators",
                    registers.len(),
                    wgmma.n,
                    wgmma.k(),
                    wgmma.sums()
                ),
            );
        }
        let mut pointers = Vec::new();
        for register in registers {
            pointers.push(self.register_pointer(register)?);
        }
        let sums = pointers.split_off(left_count);
        let left = match descriptors.len() {
            2 => LeftOperand::Shared(words[0]),
            _ => LeftOperand::Registers(pointers),
        };
        let right = words.pop().unwrap_or(0);
        self.push_tensor(TensorInst::Wgmma(WgmmaInst {
            wgmma,
            left,
            right,
            keep,
            sums,
        }))
    }

    /// `encode_matrix_descriptor`, whose offsets are in units of 16 bytes. `modes` are the field's values for the swizzles,
    /// `at` is where it stands, `fixed` is the rest that is set.
    pub(super) fn encode_descriptor(
        &mut self,
        call: &Call<'_>,
        modes: [u64; 5],
        at: u32,
        fixed: u64,
    ) -> Result<()> {
        let address = self.argument(call, "addr")?;
        let pointer = self.value(address)?;
        let start = match address.dtype == DType::UINT32 {
            true => pointer,
            false => self.shared_address(pointer)?,
        };
        let mut total = self.bits(Kind::U64, fixed)?;
        let four = self.integer(Kind::U64, 4)?;
        let start = self.convert(start, Kind::U64)?;
        let start = self.bin(Bin::ShrU, Kind::U64, Kind::U64, start, four)?;
        let mut fields = vec![(start, 0)];
        for (offset, at) in [("ldo", 16), ("sdo", 32)] {
            let value = self.value(self.argument(call, offset)?)?;
            fields.push((self.convert(value, Kind::U64)?, at));
        }
        let field_mask = self.integer(Kind::U64, 0x3fff)?;
        for (value, at) in fields {
            let value = self.bin(Bin::And, Kind::U64, Kind::U64, value, field_mask)?;
            let by = self.integer(Kind::U64, at)?;
            let value = self.bin(Bin::Shl, Kind::U64, Kind::U64, value, by)?;
            total = self.bin(Bin::Or, Kind::U64, Kind::U64, total, value)?;
        }
        let Some(mode) = modes.get(self.number(call, "swizzle")?) else {
            return error(
                self.span,
                "swizzles of matrix descriptors are numbered from 0 (none) to 4",
            );
        };
        let mode = self.bits(Kind::U64, mode << at)?;
        let total = self.bin(Bin::Or, Kind::U64, Kind::U64, total, mode)?;
        self.store_pointer(self.argument(call, "desc")?, Kind::U64, &[total])
    }

    fn wrong_counts(&self, given: [usize; 4], expected: [usize; 3]) -> Result<()> {
        let [a, b, c, d] = given;
        let [ea, eb, ed] = expected;
        error(
            self.span,
            format!(
                "mma is given {a} registers of A, {b} of B, {c} of C and {d} of D a lane, and this shape has {ea}, {eb}, \
                 {ed} and {ed}"
            ),
        )
    }
}
