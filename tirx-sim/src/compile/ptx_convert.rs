//! Instructions of PTX that round as their modifiers say: `cvt`, and `add`, `sub`, `mul`, `fma`.

use tirx_ir::Expr;
use tirx_ir::intrin::convert::{Conversion, Element, Format};
use tirx_source::diagnostic::{Result, error};

use super::Compiler;
use super::registers::Val;
use tirx_sim_machine::bytecode::{Exact, ExactInst, Inst, R};
use tirx_sim_machine::cvt::{Cvt, Rounding};
use tirx_sim_machine::numeric::Kind;
use tirx_sim_machine::rounded::Rounded;

impl Compiler<'_> {
    /// The value of a conversion.
    pub(super) fn ptx_convert(&mut self, args: &[Expr]) -> Result<Val> {
        let conversion = match Conversion::from_args(args) {
            Ok(conversion) => conversion,
            Err(message) => return error(self.span, format!("T.ptx.cvt: {message}")),
        };
        let cvt = match cvt(&conversion) {
            Ok(cvt) => cvt,
            Err(message) => return error(self.span, message),
        };
        let mut operands = Vec::new();
        for (format, operand) in conversion.passed() {
            let kind = self.kind(format.carrier)?;
            let value = self.value(&operand)?;
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

/// What the machine does for a conversion; an error says what the simulator does not do.
fn cvt(conversion: &Conversion<'_>) -> std::result::Result<Cvt, String> {
    let rounding = Rounding::from_modifier(conversion.rounding)?;
    let fixed = |f: &Format| f.element == Element::S2f6;
    if conversion.scale.is_some() || fixed(conversion.to) || fixed(conversion.from) {
        return Err("the simulator has neither scaled conversions nor s2f6".into());
    }
    Ok(Cvt {
        to: conversion.to,
        from: conversion.from,
        rounding,
        whole: conversion.rounding.ends_with('i'),
        ftz: conversion.ftz,
        sat: conversion.sat,
        relu: conversion.relu,
        satfinite: conversion.satfinite,
    })
}
