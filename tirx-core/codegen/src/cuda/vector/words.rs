//! Vectors that are read and computed in 32-bit words.
//!
//! Four bytes fill a register: sums and bit operations on them take one or a few instructions, where nvcc would extract
//! each byte.

use super::super::code::{Code, int_literal, level};
use super::super::emitter::Emitter;
use super::super::helpers::Helper;
use super::consecutive;
use crate::diagnostic::Result;
use crate::intrin::Op;
use crate::ir::at;
use crate::ir::{BinOp, DType, Expr, ExprKind};

impl Emitter<'_, '_> {
    /// The lanes of a vector in memory, read in words of 32 bits where possible.
    pub(super) fn lanes_of_words(&mut self, e: &Expr) -> Result<Vec<Code>> {
        match self.words(e)? {
            Some(words) => {
                self.unit.needs.helpers.insert(Helper::BitCast);
                let ty = self.spell(e.dtype, e.span)?;
                let code = Code::primary(format!("tirx_bit_cast<{ty}>({})", words.text));
                let value = self.temporary("v", e.dtype, code, e.span)?;
                Ok(self.split(e.dtype, &value))
            }
            None => self.lanes(e),
        }
    }

    /// Consecutive elements in memory as a vector of words, where they fill one.
    pub(super) fn words(&mut self, e: &Expr) -> Result<Option<Code>> {
        match (&e.kind, words_of(e.dtype)) {
            (
                ExprKind::BufferLoad {
                    buffer,
                    indices,
                    predicate: None,
                },
                Some(words),
            ) => match &indices[..] {
                [index] if buffer.dtype.is_scalar() => match consecutive(index) {
                    Some(base) => self.elements(buffer, base, words, e.span).map(Some),
                    None => Ok(None),
                },
                _ => Ok(None),
            },
            _ => Ok(None),
        }
    }

    /// Whether a load of four bytes that are used separately is done as one word: where the bytes are operands of
    /// arithmetic, because nvcc then packs them with fewer instructions, and for signed bytes from Blackwell on.
    pub(super) fn reads_word(&self, dtype: DType) -> bool {
        is_four_bytes(dtype)
            && (self.byte_arithmetic || dtype.is_int() && self.gpu.is_some_and(|gpu| gpu.number() >= 100))
    }

    /// Four bytes at once in one 32-bit register: sums, differences and bit operations.
    pub(super) fn four_bytes(&mut self, e: &Expr) -> Result<Option<Code>> {
        if !is_four_bytes(e.dtype) {
            return Ok(None);
        }
        let (name, a, b) = match &e.kind {
            ExprKind::Binary(BinOp::Add, a, b) => ("__vadd4", a, b),
            ExprKind::Binary(BinOp::Sub, a, b) => ("__vsub4", a, b),
            ExprKind::Call { op, args } => {
                let sign = match op {
                    Op::BitwiseAnd => "&",
                    Op::BitwiseOr => "|",
                    Op::BitwiseXor => "^",
                    _ => return Ok(None),
                };
                let x = &args[at!(BitwiseAnd | BitwiseOr | BitwiseXor.x)];
                (sign, x, &args[at!(BitwiseAnd | BitwiseOr | BitwiseXor.y)])
            }
            _ => return Ok(None),
        };
        // Bytes that are computed separately are not packed for this.
        if !is_word(a) || !is_word(b) {
            return Ok(None);
        }
        let x = self.as_word(a)?;
        let y = self.as_word(b)?;
        Ok(Some(if name.starts_with('_') {
            Code::primary(format!("{name}({}, {})", x.text, y.text))
        } else {
            let text = format!("{} {name} {}", x.at(level::UNARY), y.at(level::UNARY));
            Code::new(text, level::BIT_OR)
        }))
    }

    /// A vector of four bytes as `unsigned int`.
    fn as_word(&mut self, e: &Expr) -> Result<Code> {
        if let Some(word) = self.four_bytes(e)? {
            return Ok(word);
        }
        if let ExprKind::Broadcast { value, .. } = &e.kind
            && let Some(v) = value.as_int()
        {
            let word = (v as u8 as i128) * 0x0101_0101;
            return Ok(int_literal(DType::UINT32, word));
        }
        if let ExprKind::BufferLoad {
            buffer,
            indices,
            predicate: None,
        } = &e.kind
            && let [index] = &indices[..]
            && let Some(base) = consecutive(index)
            && buffer.dtype.is_scalar()
        {
            return self.elements(buffer, base, DType::UINT32, e.span);
        }
        self.unit.needs.helpers.insert(Helper::BitCast);
        let code = self.vector(e)?;
        Ok(Code::primary(format!(
            "tirx_bit_cast<unsigned int>({})",
            code.text
        )))
    }
}

pub(super) fn is_four_bytes(dtype: DType) -> bool {
    dtype.is_integer() && dtype.bits == 8 && dtype.lanes == 4
}

/// The vector of 32-bit words that represents a vector, where CUDA has one.
pub(super) fn words_of(dtype: DType) -> Option<DType> {
    let bits = u32::from(dtype.bits) * u32::from(dtype.lanes);
    match bits / 32 {
        words @ (1 | 2 | 4) if bits % 32 == 0 => Some(DType::UINT32.with_lanes(words as u16)),
        _ => None,
    }
}

/// Whether four bytes already form one word: from memory, a constant, or sums and bit operations of such.
fn is_word(e: &Expr) -> bool {
    match &e.kind {
        ExprKind::Broadcast { value, .. } => value.as_int().is_some(),
        ExprKind::BufferLoad {
            buffer,
            indices,
            predicate: None,
        } => buffer.dtype.is_vector() || matches!(&indices[..], [index] if consecutive(index).is_some()),
        ExprKind::Binary(BinOp::Add | BinOp::Sub, a, b) => is_word(a) && is_word(b),
        ExprKind::Call {
            op: Op::BitwiseAnd | Op::BitwiseOr | Op::BitwiseXor,
            args,
        } => args.iter().all(is_word),
        _ => false,
    }
}

/// Whether bytes are added, subtracted or multiplied one by one.
pub(super) fn computes_bytes(e: &Expr) -> bool {
    let here = is_four_bytes(e.dtype)
        && matches!(e.kind, ExprKind::Binary(BinOp::Add | BinOp::Sub | BinOp::Mul, ..));
    here || e.operands().any(computes_bytes)
}
