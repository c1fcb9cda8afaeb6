//! Instructions of PTX that round as their modifiers say: `cvt`, and `add`, `sub`, `mul`, `fma`.

use tirx_ir::Expr;
use tirx_ir::intrin::convert::Conversion;
use tirx_source::diagnostic::{Result, error};

use super::Compiler;
use super::registers::Val;
use crate::bytecode::{Exact, ExactInst, Inst, R};
use crate::cvt::Cvt;
use crate::numeric::Kind;
use crate::rounded::Rounded;

impl Compiler<'_> {
    /// The value of a conversion.
    pub(super) fn ptx_convert(&mut self, args: &[Expr]) -> Result<Val> {
        let conversion = match Conversion::of(args) {
            Ok(conversion) => conversion,
            Err(message) => return error(self.span, format!("T.ptx.cvt: {message}")),
        };
        let cvt = match Cvt::of(&conversion) {
            Ok(cvt) => cvt,
            Err(message) => return error(self.span, message),
        };
        let mut operands = Vec::new();
        for (format, operand) in conversion.operands() {
            let kind = self.kind(format.carrier)?;
            let value = self.value(operand)?;
            let value = self.convert(value, kind)?;
            operands.push((kind, self.vector(value)?));
        }
        let kind = self.kind(conversion.to.carrier)?;
        self.exact(Exact::Cvt(cvt), operands, kind)
    }

    /// A sum or product of one kind.
    pub(super) fn rounded(&mut self, rounded: Rounded, values: &[Val], kind: Kind) -> Result<Val> {
        let mut operands = Vec::new();
        for value in values {
            operands.push((kind, self.vector(*value)?));
        }
        self.exact(Exact::Rounded(rounded), operands, kind)
    }

    fn exact(&mut self, what: Exact, operands: Vec<(Kind, R)>, kind: Kind) -> Result<Val> {
        let d = self.temp(kind)?;
        self.count(1);
        let Ok(id) = u16::try_from(self.code.exact.len()) else {
            return error(self.span, "the kernel has too many conversions for the simulator");
        };
        self.code.exact.push(ExactInst {
            what,
            operands,
            kind,
            d,
        });
        self.emit(Inst::Exact { id });
        Ok(Val::vector(kind, d))
    }
}
