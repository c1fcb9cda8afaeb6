//! The text of pointers, reinterpreted memory and atomics.

use super::code::{Code, level};
use super::emitter::{Emitter, Pointer};
use super::helpers::Helper;
use super::{defects, types};
use crate::diagnostic::{Result, error};
use crate::intrin::Op;
use crate::ir::at;
use crate::ir::{DType, ElementType, Expr, ExprKind, Type, Var};
use crate::source::Span;

impl Emitter<'_, '_> {
    /// The bits of a value as another type of the same size.
    pub(super) fn reinterpret(&mut self, e: &Expr, args: &[Expr]) -> Result<Code> {
        let value = &args[at!(Reinterpret.value)];
        let (from, to) = (value.dtype, e.dtype);
        if from.is_handle() || to.is_handle() {
            let code = self.expr(value)?;
            let ty = if to.is_handle() {
                "void*".into()
            } else {
                self.spell(to, e.span)?
            };
            return Ok(if from.is_handle() && to.is_handle() {
                code
            } else {
                code.cast(&ty)
            });
        }
        let text = self.bit_cast_text(value, to)?;
        Ok(Code::primary(text))
    }

    pub(super) fn bit_cast_text(&mut self, arg: &Expr, to: DType) -> Result<String> {
        let from = arg.dtype;
        let code = self.expr(arg)?.exact(from);
        if from == to {
            return Ok(code.text);
        }
        let same_size_integers = from.is_integer() && to.is_integer() && from.is_scalar() && to.is_scalar();
        let ty = self.spell(to, arg.span)?;
        if from.bytes() != to.bytes() {
            return error(
                arg.span,
                format!("`{from}` cannot be reinterpreted as `{to}`: they differ in size"),
            );
        }
        if same_size_integers {
            return Ok(code.cast(&ty).text);
        }
        // CUDA has them between floats and integers of one size; there is none of `unsigned long long`.
        let brief = |dtype: DType| {
            ElementType::from_dtype(dtype)
                .filter(|_| dtype.is_scalar())?
                .cuda_brief
        };
        let known = match (brief(from), brief(to)) {
            (Some(from_name), Some(to_name)) if from.is_integer() != to.is_integer() => {
                format!("__{from_name}_as_{to_name}")
            }
            _ => {
                self.unit.needs.helpers.insert(Helper::BitCast);
                format!("tirx_bit_cast<{ty}>")
            }
        };
        Ok(format!("{known}({})", code.text))
    }

    /// `&A[i]`.
    pub(super) fn address_of(&mut self, place: &Expr) -> Result<Code> {
        let ExprKind::BufferLoad { buffer, indices, .. } = &place.kind else {
            return match &place.kind {
                ExprKind::Var(var) if var.ty().is_tensor_map() => {
                    let code = Code::new(format!("&{}", self.expr(place)?.at(level::UNARY)), level::UNARY);
                    Ok(code.cast("unsigned long long"))
                }
                ExprKind::Var(_) => self.expr(place),
                _ => error(place.span, "`address_of` takes an element of a buffer"),
            };
        };
        let index = self.single_index(buffer, indices, place.span)?;
        let index = match index.map(|i| (i, &i.kind)) {
            Some((_, ExprKind::Ramp { base, .. })) => Some(base),
            Some((i, _)) => Some(i),
            None => None,
        };
        if buffer.dtype.is_float4() && buffer.dtype.is_scalar() {
            let base = self.pointer(&buffer.data, place.span)?.name;
            let index = self.index(index)?;
            return Ok(Code::new(format!("{base} + ({index}) / 2"), level::SUM));
        }
        let element = self.element(buffer, index, place.span)?;
        Ok(Code::new(format!("&{}", element.at(level::UNARY)), level::UNARY))
    }

    /// The C++ pointee type of a pointer expression, where it is known.
    pub(super) fn pointee(&self, e: &Expr) -> Option<DType> {
        match &e.kind {
            ExprKind::Var(var) => match var.ty() {
                Type::Pointer { element, .. } => Some(*element),
                Type::Prim(_) | Type::TensorMap => None,
            },
            ExprKind::Call { op, args } => match op {
                Op::AddressOf => match &args[at!(AddressOf.obj)].kind {
                    ExprKind::BufferLoad { buffer, .. } => Some(buffer.dtype),
                    ExprKind::Var(_) => self.pointee(&args[at!(AddressOf.obj)]),
                    _ => None,
                },
                Op::TvmAccessPtr => Some(args[at!(TvmAccessPtr.ptype)].dtype),
                Op::PtrByteOffset => {
                    let annotation = &args[at!(PtrByteOffset.dtype)];
                    match &annotation.kind {
                        ExprKind::Str(s) => s.parse().ok(),
                        _ if annotation.dtype.is_handle() => None,
                        _ => Some(annotation.dtype),
                    }
                }
                _ => None,
            },
            _ => None,
        }
    }

    /// A pointer expression as `ty*`, where `ty` spells `element`.
    pub(super) fn typed_pointer(&mut self, e: &Expr, element: DType, ty: &str) -> Result<Code> {
        let code = self.expr(e)?;
        let known = match e.as_var().and_then(|v| self.pointers.get(v)) {
            Some(pointer) => pointer.element == ty,
            None => self.pointee(e) == Some(element),
        };
        Ok(if known { code } else { code.cast(&format!("{ty}*")) })
    }

    /// A pointer variable bound to a pointer expression.
    pub(super) fn bind_pointer(&mut self, var: &Var, code: Code, span: Span) -> Result<()> {
        let element = match var.ty() {
            Type::Pointer { element, .. } => self.spell(*element, span)?,
            Type::Prim(_) | Type::TensorMap => "void".into(),
        };
        let name = self.names.fresh(var.name());
        let value = code.cast(&format!("{element}*"));
        self.line(&format!("{element}* const {name} = {};", value.text));
        let pointer = Pointer {
            name: name.into(),
            element,
            constant: false,
        };
        self.pointers.insert(var.clone(), pointer);
        Ok(())
    }

    /// A pointer moved by bytes.
    pub(super) fn moved_pointer(&mut self, e: &Expr, args: &[Expr]) -> Result<Code> {
        let ty = match self.pointee(e) {
            Some(element) => format!("{}*", self.spell(element, e.span)?),
            None => "void*".into(),
        };
        let p = self.expr(&args[at!(PtrByteOffset | HandleAddByteOffset.data)])?;
        let n = &args[at!(PtrByteOffset | HandleAddByteOffset.byte_offset)];
        let n = self.expr(n)?.in_range(n.dtype);
        let moved = Code::new(
            format!("(char*){} + {}", p.at(level::UNARY), n.at(level::PRODUCT)),
            level::SUM,
        );
        Ok(moved.cast(&ty))
    }

    /// A pointer into a buffer.
    pub(super) fn access_pointer(&mut self, e: &Expr, args: &[Expr]) -> Result<Code> {
        let element = args[at!(TvmAccessPtr.ptype)].dtype;
        let ty = self.spell(element, e.span)?;
        let start = self.typed_pointer(&args[at!(TvmAccessPtr.data)], element, &ty)?;
        let offset = &args[at!(TvmAccessPtr.offset)];
        if offset.is_int(0) {
            return Ok(start);
        }
        let offset = self.expr(offset)?.in_range(offset.dtype);
        Ok(Code::new(
            format!("{} + {}", start.at(level::SUM), offset.at(level::PRODUCT)),
            level::SUM,
        ))
    }

    /// `__ldg`: a load of memory that is only read.
    pub(super) fn load_through_cache(&mut self, e: &Expr, args: &[Expr]) -> Result<Code> {
        let dtype = e.dtype;
        let ty = self.spell(dtype, e.span)?;
        let p = self.expr(&args[at!(CudaLdg.addr)])?;
        let p = if self.pointee(&args[at!(CudaLdg.addr)]) == Some(dtype) {
            p
        } else {
            p.cast(&format!("const {ty}*"))
        };
        if dtype.is_bool() || dtype.is_small_float() || ty.starts_with("tirx_vec") {
            // `__ldg` has no such overload; a cast to a `const __restrict__` pointer has the same effect.
            return Ok(Code::new(format!("*{}", p.at(level::UNARY)), level::UNARY));
        }
        Ok(Code::primary(format!("__ldg({})", p.text)))
    }

    pub(super) fn atomic_add(
        &mut self,
        e: &Expr,
        pointer: &Expr,
        value: &Expr,
        discards: bool,
    ) -> Result<Code> {
        let dtype = value.dtype;
        let native = match (dtype.is_integer(), dtype.lanes) {
            (true, 1) => dtype.bits >= 32,
            (false, 1) => dtype.is_float() || dtype.is_bfloat16(),
            (_, 2) => dtype.element() == DType::FLOAT32 || types::is_half(dtype),
            (_, 4) => dtype.element() == DType::FLOAT32,
            _ => false,
        };
        if !native {
            return error(e.span, format!("there is no atomic addition of `{dtype}`"));
        }
        // The 64-bit overload is that of `unsigned long long`; two's complement makes it serve both.
        let wide = dtype.is_integer() && dtype.bits == 64;
        let spins = defects::spins(pointer, dtype, &self.facts);
        let ty = if wide {
            "unsigned long long".into()
        } else {
            self.spell(dtype, e.span)?
        };
        let pointer = if wide {
            self.expr(pointer)?.cast("unsigned long long*")
        } else {
            self.typed_pointer(pointer, dtype, &ty)?
        };
        let value = self.expr(value)?;
        let value = if wide { value.cast(&ty) } else { value };
        let function = if spins {
            self.unit.needs.helpers.insert(Helper::AtomicAdd);
            "tirx_atomic_add"
        } else {
            "atomicAdd"
        };
        let code = Code::primary(format!("{function}({}, {})", pointer.text, value.text));
        if !wide || discards {
            return Ok(code);
        }
        let ty = self.spell(dtype, e.span)?;
        Ok(code.cast(&ty))
    }

    pub(super) fn atomic_cas(&mut self, e: &Expr, args: &[Expr], discards: bool) -> Result<Code> {
        let address = &args[at!(CudaAtomicCas.ptr)];
        let (old, new) = (
            &args[at!(CudaAtomicCas.old_val)],
            &args[at!(CudaAtomicCas.new_val)],
        );
        let dtype = old.dtype;
        if dtype.lanes != 1 || dtype.bits < 16 || dtype.is_bool() || dtype.is_handle() {
            return error(
                e.span,
                format!("there is no atomic compare-and-swap of `{dtype}`"),
            );
        }
        // Overloads exist for these; other types are passed as their bits.
        let (ty, bits) = match dtype.bits {
            16 => ("unsigned short", DType::UINT16),
            32 if dtype.is_int() => ("int", DType::INT32),
            32 => ("unsigned int", DType::UINT32),
            _ => ("unsigned long long", DType::UINT64),
        };
        let pointer = self.expr(address)?;
        let pointer = if dtype.bits == 32 && dtype.is_integer() {
            self.typed_pointer(address, dtype, ty)?
        } else {
            pointer.cast(&format!("{ty}*"))
        };
        let same = dtype == bits;
        let compare = self.bit_cast_text(old, bits)?;
        let value = self.bit_cast_text(new, bits)?;
        let code = Code::primary(format!("atomicCAS({}, {compare}, {value})", pointer.text));
        if same && dtype.bits == 32 || discards || dtype == DType::INT32 {
            return Ok(code);
        }
        let old = self.temporary("old", bits, code, e.span)?;
        let var = Var::new("old", bits);
        self.vars.insert(var.clone(), old);
        Ok(Code::primary(self.bit_cast_text(&Expr::var(&var), dtype)?))
    }
}
