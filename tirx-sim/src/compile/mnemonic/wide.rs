//! Registers of 128 bits: a variable of them is two words of 64 bits in the thread's memory.

use tirx_ir::intrin::Op;
use tirx_ir::intrin::mnemonic::InstructionCall;
use tirx_ir::intrin::mnemonic::call::space_of;
use tirx_ir::{BinOp, DType, Expr, ExprKind, Stmt};
use tirx_source::diagnostic::Result;

use super::super::Compiler;
use super::as_dtype;
use super::simulated::{NotSimulated, reasons};
use tirx_sim_machine::bytecode::AsyncInst;

/// A word of a variable of 128 bits: 0 is the low one.
fn word(e: &Expr, which: i32) -> Option<Expr> {
    if let Some([inner]) = e.as_call(Op::AddressOf) {
        return word(inner, which);
    }
    let ExprKind::BufferLoad { buffer, indices, .. } = &e.kind else {
        return None;
    };
    let [index] = indices.as_slice() else { return None };
    if buffer.dtype.bits != 128 || buffer.dtype.lanes != 1 {
        return None;
    }
    let two = Expr::constant(index.dtype, 2);
    let words = buffer.with(|node| {
        node.dtype = DType::UINT64;
        node.shape = node.shape.iter().map(|n| twice(n.clone())).collect();
        node.elem_offset = node.elem_offset.clone().map(twice);
    });
    let index = Expr::binary(BinOp::Mul, index.clone(), two.clone());
    let index = Expr::binary(BinOp::Add, index, Expr::constant(two.dtype, which.into()));
    Some(Expr::load(&words, vec![index]).at(e.span))
}

fn twice(e: Expr) -> Expr {
    let two = Expr::constant(e.dtype, 2);
    Expr::binary(BinOp::Mul, e, two)
}

/// Both words of a variable of 128 bits.
fn words(e: &Expr) -> Option<[Expr; 2]> {
    Some([word(e, 0)?, word(e, 1)?])
}

/// Why a narrower access is not simulated: its row does not have it.
fn narrow(call: &InstructionCall) -> &'static NotSimulated {
    match call.tokens.has("mmio") {
        true => &reasons::NARROW_MMIO,
        false => &reasons::VOLATILE_LOCAL,
    }
}

fn address(e: Expr) -> Expr {
    let span = e.span;
    Expr::call(Op::AddressOf, DType::HANDLE, vec![e]).at(span)
}

impl Compiler<'_> {
    /// A load into a register of 128 bits: others have a row.
    pub(super) fn wide_load(&mut self, call: &InstructionCall) -> Result<()> {
        let tokens = &call.tokens;
        let Some(d) = call.get("d").and_then(words).filter(|_| tokens.has("b128")) else {
            return self.refuse(call, narrow(call));
        };
        let addr = self.named_operand(call, "addr")?;
        let op = match () {
            () if tokens.has("mmio") || tokens.has("nc") => return self.refuse(call, &reasons::WIDE),
            () if tokens.has("acquire") => Op::PtxLdAcquire,
            () if tokens.has("relaxed") => Op::PtxLdRelaxed,
            () if tokens.has("volatile") => Op::PtxLdVolatile,
            () => Op::PtxLd,
        };
        let mut load = op
            .call()
            .list("dst", d.map(address))
            .set("addr", addr.clone())
            .set("return_type", "uint64");
        if matches!(op, Op::PtxLdAcquire | Op::PtxLdRelaxed) {
            load = load.set("scope", tokens.get("scope"));
        }
        let load = load
            .set("space", space_of(tokens))
            .set("vec", "v2")
            .set("ptx_type", "u64");
        self.statement(&load.at(self.span).stmt())
    }

    /// A store of a register of 128 bits: others have a row.
    pub(super) fn wide_store(&mut self, call: &InstructionCall) -> Result<()> {
        let tokens = &call.tokens;
        let Some(value) = call.get("value").and_then(words).filter(|_| tokens.has("b128")) else {
            return self.refuse(call, narrow(call));
        };
        let addr = self.named_operand(call, "addr")?;
        let op = match () {
            () if tokens.has("mmio") => return self.refuse(call, &reasons::WIDE),
            () if tokens.has("release") => Op::PtxStRelease,
            () if tokens.has("relaxed") => Op::PtxStRelaxed,
            () if tokens.has("volatile") => Op::PtxStVolatile,
            () => Op::PtxSt,
        };
        let mut store = op.call().set("address", addr.clone()).list("values", value);
        if matches!(op, Op::PtxStRelease | Op::PtxStRelaxed) {
            store = store.set("scope", tokens.get("scope"));
        }
        let store = store
            .set("space", space_of(tokens))
            .set("vec", "v2")
            .set("ptx_type", "u64");
        self.statement(&store.at(self.span).stmt())
    }

    /// Packs or unpacks a register.
    pub(super) fn wide_move(&mut self, call: &InstructionCall) -> Result<()> {
        let (sources, targets) = (call.list("a"), call.list("d"));
        let bits = u8::try_from(128 / sources.len().max(targets.len())).unwrap_or(64);
        let part = DType::uint(bits);
        let shift = |i: usize| Expr::constant(DType::UINT64, i128::from(bits) * i as i128 % 64);
        let each = 64 / usize::from(bits);
        if let Some(d) = targets.first().and_then(words) {
            for (word, parts) in d.into_iter().zip(sources.chunks(each)) {
                let wide = |(i, e): (usize, &Expr)| {
                    let e = as_dtype(e.clone(), part).cast(DType::UINT64);
                    Expr::call(Op::ShiftLeft, DType::UINT64, vec![e, shift(i)])
                };
                let sum = parts.iter().enumerate().map(wide);
                let sum = sum.reduce(|a, b| Expr::call(Op::BitwiseOr, DType::UINT64, vec![a, b]));
                let (Some(sum), ExprKind::BufferLoad { buffer, indices, .. }) = (sum, &word.kind) else {
                    return self.refuse(call, &reasons::OPERANDS);
                };
                self.statement(&Stmt::store(buffer, indices.to_vec(), sum, self.span))?;
            }
            return Ok(());
        }
        let Some(a) = sources.first().and_then(words) else {
            return self.refuse(call, &reasons::OPERANDS);
        };
        let parts = (0..targets.len()).map(|i| {
            let word = a[i / each].clone();
            Expr::call(Op::ShiftRight, DType::UINT64, vec![word, shift(i)]).cast(part)
        });
        let parts = parts.collect();
        self.write(call, vec![("d", parts)])
    }

    /// `clusterlaunchcontrol.query_cancel`, of a response that was loaded into a register: what the simulator writes as the
    /// response is in words of 32 bits x of the block, y, z and whether there was one.
    pub(super) fn queried(&mut self, call: &InstructionCall) -> Result<()> {
        let Some([low, high]) = call.get("response").and_then(words) else {
            return self.refuse(call, &reasons::OPERANDS);
        };
        let shifted = |e: &Expr| {
            let by = Expr::constant(DType::UINT64, 32);
            Expr::call(Op::ShiftRight, DType::UINT64, vec![e.clone(), by]).cast(DType::UINT32)
        };
        let zero = Expr::constant(DType::UINT32, 0);
        let found = Expr::binary(BinOp::Ne, shifted(&high), zero);
        if call.get("p").is_some() {
            let condition = self.condition(&found)?;
            let found_in = self.vector(condition)?;
            self.push_async(AsyncInst::Queried { found: found_in })?;
            return self.write(call, vec![("p", vec![found])]);
        }
        let parts = [
            low.clone().cast(DType::UINT32),
            shifted(&low),
            high.clone().cast(DType::UINT32),
            shifted(&high),
        ];
        let first = match call.tokens.get("query") {
            "get_first_ctaid::y" => 1,
            "get_first_ctaid::z" => 2,
            _ => 0,
        };
        self.write(call, vec![("d", parts[first..].to_vec())])
    }
}
