//! `cvt` of PTX.

use tirx_ir::Expr;
use tirx_ir::intrin::convert::Conversion;
use tirx_source::diagnostic::{Result, error};

use super::Compiler;
use super::registers::Val;
use crate::bytecode::{CvtInst, Inst};
use crate::cvt::Cvt;

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
        let d = self.temp(kind)?;
        self.count(1);
        let Ok(id) = u16::try_from(self.code.conversions.len()) else {
            return error(self.span, "the kernel has too many conversions for the simulator");
        };
        self.code.conversions.push(CvtInst {
            cvt,
            operands,
            kind,
            d,
        });
        self.emit(Inst::Cvt { id });
        Ok(Val::vector(kind, d))
    }
}
