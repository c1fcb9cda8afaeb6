//! Conversions that the hardware does on several elements at once.

use super::super::code::Code;
use super::super::emitter::Emitter;
use super::super::helpers::Helper;
use super::super::types;
use crate::diagnostic::Result;
use crate::ir::{DType, Expr};
use crate::source::Span;

impl Emitter<'_, '_> {
    /// Conversions that the hardware does on several elements at once.
    pub(super) fn packed_cast(&mut self, e: &Expr, a: &Expr) -> Result<Option<Vec<Code>>> {
        let (from, to) = (a.dtype.element(), e.dtype.element());
        if !e.dtype.lanes.is_multiple_of(2) {
            return Ok(None);
        }
        let narrow = |d: DType| types::is_packed(d.with_lanes(2));
        let wide = |d: DType| d == DType::FLOAT32 || types::is_half(d);
        let (group, form) = match (narrow(from), narrow(to)) {
            (false, false) if from == DType::FLOAT32 && to == DType::FLOAT16 => {
                (2, "__floats2half2_rn".to_string())
            }
            (false, false) if from == DType::FLOAT32 && to == DType::BFLOAT16 => {
                (2, "__floats2bfloat162_rn".to_string())
            }
            (true, false) | (false, true) if wide(from) || wide(to) => {
                let four =
                    e.dtype.lanes.is_multiple_of(4) && (from == DType::FLOAT32 || to == DType::FLOAT32);
                let group = if four { 4 } else { 2 };
                if narrow(from) && to.is_bfloat16() {
                    return Ok(None);
                }
                (group, String::new())
            }
            _ => return Ok(None),
        };
        let whole = self.spell(to.with_lanes(group), e.span)?;
        if narrow(from) && group == 2 && types::is_packed(a.dtype) && a.dtype.lanes > 2 {
            return self.convert_pairs(a, to, &whole, e.span).map(Some);
        }
        let lanes = self.lanes(a)?;
        let mut out = Vec::with_capacity(lanes.len());
        for some in lanes.chunks_exact(group as usize) {
            let value = if !narrow(from) && !narrow(to) {
                format!("{form}({}, {})", some[0].text, some[1].text)
            } else {
                let joined = self.join(from.with_lanes(group), some.to_vec(), e.span)?.text;
                format!("({whole}){joined}")
            };
            let name = self.names.fresh("packed");
            self.line(&format!("const {whole} {name} = {value};"));
            out.extend(self.split(to.with_lanes(group), &Code::primary(name)));
        }
        Ok(Some(out))
    }

    /// Conversions of a packed type in pairs: the pairs are extracted whole.
    fn convert_pairs(&mut self, a: &Expr, to: DType, pair: &str, span: Span) -> Result<Vec<Code>> {
        self.unit.needs.helpers.extend([Helper::Vec, Helper::BitCast]);
        let code = self.vector(a)?;
        let value = self.temporary("v", a.dtype, code, span)?.text;
        let from = self.spell(a.dtype.with_lanes(2), span)?;
        let mut out = Vec::new();
        for i in 0..a.dtype.lanes / 2 {
            let name = self.names.fresh("packed");
            let two = format!(
                "tirx_bit_cast<tirx_vec<{from}, {}>>({value}).v[{i}]",
                a.dtype.lanes / 2
            );
            self.line(&format!("const {pair} {name} = ({pair}){two};"));
            out.extend(self.split(to.with_lanes(2), &Code::primary(name)));
        }
        Ok(out)
    }
}

/// Whether CUDA converts one vector type to the other.
pub(super) fn converts_whole(from: DType, to: DType) -> bool {
    let wide = |d: DType| d.element() == DType::FLOAT32 || d == DType::FLOAT16.with_lanes(2);
    types::is_packed(from) && wide(to) || wide(from) && types::is_packed(to)
}
