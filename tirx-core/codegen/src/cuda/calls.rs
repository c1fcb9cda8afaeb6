//! The text of intrinsic calls.

use super::analysis::effect;
use super::code::{Code, Width, level, string_literal};
use super::emitter::Emitter;
use super::helpers::{Header, Helper};
use super::threads::Shuffle;
use super::unit::RawSource;
use super::{math, types};
use crate::diagnostic::{Diagnostic, Result, error};
use crate::intrin::memory::MemoryInstruction;
use crate::intrin::row::CudaForm;
use crate::intrin::{Effect, Op, Operands};
use crate::ir::at;
use crate::ir::{DType, Expr, ExprKind};
use crate::source::Span;

impl Emitter<'_, '_> {
    /// A call with a scalar result, or without a result.
    pub(super) fn call(&mut self, e: &Expr, op: Op, args: &[Expr]) -> Result<Code> {
        // The flag is about this call only, not about calls among its arguments.
        let discards = std::mem::take(&mut self.discards_value);
        let row = op.row();
        if !matches!(row.cuda.form, CudaForm::Special) {
            return self.row(e, row, args, &mut None);
        }
        if let Err(message) = Operands::read(row, args) {
            return error(e.span, format!("T.{}: {message}", row.script));
        }
        let dtype = e.dtype;
        if math::find(op).is_some() {
            let codes = args.iter().map(|a| self.expr(a)).collect::<Result<Vec<_>>>()?;
            return self.math(op, dtype, codes, e.span);
        }
        // What the rows of the shuffles call their value and the other lane.
        macro_rules! shuffle {
            ($op:ident.$value:ident, $lane:ident) => {
                Shuffle {
                    mask: &args[at!($op.mask)],
                    value: &args[at!($op.$value)],
                    lane: &args[at!($op.$lane)],
                    width: &args[at!($op.width)],
                }
            };
        }
        match op {
            Op::PtxInstruction => self.mnemonic(e, args),
            Op::PtxAddr => error(
                e.span,
                "T.ptx.addr is an address in an instruction of PTX, and nothing else",
            ),
            Op::Sigmoid => {
                let one = Expr::constant(dtype, 1);
                let zero = Expr::constant(dtype, 0);
                let exp = Expr::call(Op::Exp, dtype, vec![zero - args[at!(Sigmoid.x)].clone()]);
                self.expr(&Expr::binary(crate::ir::BinOp::Div, one.clone(), one + exp))
            }
            Op::Ldexp => {
                let n = &args[at!(Ldexp.y)];
                let (x, n) = (self.expr(&args[at!(Ldexp.x)])?, self.expr(n)?.in_range(n.dtype));
                let name = if dtype.bits == 64 { "ldexp" } else { "ldexpf" };
                let x = self.widen_half(x, dtype);
                let code = Code::primary(format!("{name}({}, {})", x.text, n.text));
                self.narrow_half(code, dtype, e.span)
            }
            Op::Isnan | Op::Isinf | Op::Isfinite => self.classify(op, &args[at!(Isnan | Isinf | Isfinite.x)]),

            Op::BitwiseAnd => self.bits("&", level::BIT_AND, args, dtype),
            Op::BitwiseOr => match with_low_word(args) {
                Some((value, low)) => {
                    let (value, low) = (self.expr(value)?, self.expr(low)?);
                    self.unit.needs.helpers.insert(Helper::WithLowWord);
                    self.unit.needs.headers.insert(Header::Cstdint);
                    let call = format!("tirx_with_low_word({}, {})", value.text, low.text);
                    Ok(Code::primary(call))
                }
                None => self.bits("|", level::BIT_OR, args, dtype),
            },
            Op::BitwiseXor => self.bits("^", level::BIT_XOR, args, dtype),
            Op::ShiftLeft | Op::ShiftRight => {
                let left = op == Op::ShiftLeft;
                let x = self.expr(&args[at!(ShiftLeft | ShiftRight.x)])?;
                let x = if left { x } else { x.in_range(dtype) };
                let n = self.shift_amount(&args[at!(ShiftLeft | ShiftRight.y)])?;
                let sign = if left { "<<" } else { ">>" };
                let code = Code::new(format!("{} {sign} {n}", x.at(level::UNARY)), level::SHIFT);
                Ok(narrow(
                    code,
                    dtype,
                    if left { Width::Dirty } else { Width::Promoted },
                ))
            }
            Op::BitwiseNot => {
                let x = self.expr(&args[at!(BitwiseNot.x)])?;
                if dtype.is_bool() {
                    return Ok(Code::new(format!("!{}", x.at(level::UNARY)), level::UNARY));
                }
                Ok(narrow(
                    Code::new(format!("~{}", x.at(level::UNARY)), level::UNARY),
                    dtype,
                    Width::Dirty,
                ))
            }
            Op::Popcount | Op::Clz => self.count_bits(op, &args[at!(Popcount | Clz.x)], dtype),
            Op::LargeUintImm => match constant(e) {
                Some(value) => {
                    self.spell(dtype, e.span)?;
                    Ok(super::code::int_literal(dtype, dtype.wrap(value)))
                }
                None => error(e.span, "`large_uint_imm` takes two constants"),
            },
            Op::Dp4a => self.dot_of_bytes(e, args),

            Op::IfThenElse => {
                // ptxas generates shorter code for an `if` statement than for `?:` where an arm reads memory.
                let arms = [args[at!(IfThenElse.t)].clone(), args[at!(IfThenElse.f)].clone()];
                let statement = arms.iter().any(super::vector::reads_memory)
                    && arms.iter().all(|arm| effect(arm) <= Effect::ReadState);
                let [x, y] = arms;
                let (x, y) = (|s: &mut Self| s.expr(&x), |s: &mut Self| s.expr(&y));
                self.lazy_choice(&args[at!(IfThenElse.cond)], dtype, e.span, statement, x, y)
            }
            Op::Likely => {
                let code = self.expr(&args[at!(Likely.cond)])?;
                Ok(Code::primary(format!("__builtin_expect({}, 1)", code.text)))
            }
            Op::Assume => {
                let code = self.expr(&args[at!(Assume.cond)])?;
                Ok(Code::primary(format!("__builtin_assume({})", code.text)))
            }
            Op::Undef => {
                let ty = self.spell(dtype, e.span)?;
                let name = self.names.fresh("undefined");
                self.line(&format!("{ty} {name};"));
                Ok(Code::primary(name))
            }
            Op::BreakLoop => Ok(Code::primary("break")),
            Op::ContinueLoop => Ok(Code::primary("continue")),
            Op::Ret if self.returns_value => {
                let value = self.expr(&args[at!(Ret.value)])?;
                Ok(Code::primary(format!("return {}", value.text)))
            }
            Op::ThreadReturn | Op::Ret => Ok(Code::primary("return")),
            Op::Reinterpret => self.reinterpret(e, args),
            Op::IsNullptr => {
                let p = self.expr(&args[at!(IsNullptr.x)])?;
                Ok(Code::new(
                    format!("{} == nullptr", p.at(level::EQUAL)),
                    level::EQUAL,
                ))
            }

            Op::AddressOf => self.address_of(&args[at!(AddressOf.obj)]),
            Op::PtrByteOffset | Op::HandleAddByteOffset => self.moved_pointer(e, args),
            Op::TvmAccessPtr => self.access_pointer(e, args),
            Op::AtomicAdd => {
                let (to, value) = (&args[at!(AtomicAdd.pointer)], &args[at!(AtomicAdd.value)]);
                self.atomic_add(e, to, value, discards)
            }
            Op::CudaAtomicAdd => {
                let (to, value) = (
                    &args[at!(CudaAtomicAdd.res_addr)],
                    &args[at!(CudaAtomicAdd.value)],
                );
                self.atomic_add(e, to, value, discards)
            }
            Op::CudaAtomicCas => self.atomic_cas(e, args, discards),
            Op::CudaLdg => self.load_through_cache(e, args),

            Op::CallExtern | Op::CallPureExtern | Op::CallFunction => {
                let name = &args[at!(CallExtern | CallPureExtern | CallFunction.func_name)];
                let Some(name) = name.as_str() else {
                    return error(
                        name.span.or(e.span),
                        "the name of an external function is a string",
                    );
                };
                let rest = self.arguments(&args[at!(CallExtern | CallPureExtern | CallFunction.args)..])?;
                Ok(Code::primary(format!("{name}({rest})")))
            }
            Op::CudaFuncCall => {
                let text = |place: usize| args[place].as_str();
                let (Some(name), Some(source)) = (
                    text(at!(CudaFuncCall.func_name)),
                    text(at!(CudaFuncCall.source_code)),
                ) else {
                    return error(e.span, "`cuda.func_call` takes its name and source as strings");
                };
                self.raw_source(name, source, e.span)?;
                let rest = self.arguments(&args[at!(CudaFuncCall.args)..])?;
                Ok(Code::primary(format!("{name}({rest})")))
            }

            Op::TvmWarpShuffle => self.shuffle("__shfl_sync", e, shuffle!(TvmWarpShuffle.value, warp_id)),
            Op::CudaShflSync => self.shuffle("__shfl_sync", e, shuffle!(CudaShflSync.var, lane)),
            Op::TvmWarpShuffleUp => {
                self.shuffle("__shfl_up_sync", e, shuffle!(TvmWarpShuffleUp.value, offset))
            }
            Op::CudaShflUpSync => self.shuffle("__shfl_up_sync", e, shuffle!(CudaShflUpSync.var, delta)),
            Op::TvmWarpShuffleDown => {
                self.shuffle("__shfl_down_sync", e, shuffle!(TvmWarpShuffleDown.value, offset))
            }
            Op::CudaShflDownSync => {
                self.shuffle("__shfl_down_sync", e, shuffle!(CudaShflDownSync.var, delta))
            }
            Op::TvmWarpShuffleXor => {
                self.shuffle("__shfl_xor_sync", e, shuffle!(TvmWarpShuffleXor.value, lane_mask))
            }
            Op::CudaShflXorSync => {
                self.shuffle("__shfl_xor_sync", e, shuffle!(CudaShflXorSync.var, lane_mask))
            }

            Op::TvmStorageSync => match args[at!(TvmStorageSync.storage_scope)].as_str() {
                Some("shared" | "shared.dyn") => Ok(Code::primary("__syncthreads()")),
                Some("warp") => Ok(Code::primary("__syncwarp()")),
                scope => error(
                    e.span,
                    format!("no barrier over memory scope `{}` in CUDA", scope.unwrap_or("?")),
                ),
            },
            Op::CudaThreadRank => Ok(self.thread_rank()),
            Op::PtxFetchRegister => self.special_register(e, args),
            Op::CudaPrintf => self.printf(args),
            Op::CudaWarpReduce => self.warp_reduce(e, args),
            Op::CudaCtaReduce => self.cta_reduce(e, args),
            Op::PtxCvt => self.convert_instruction(e, args),
            _ => match MemoryInstruction::from_call(op, args) {
                Ok(Some(access)) => self.memory_instruction(&access, &mut None),
                Ok(None) => error(e.span, format!("`T.{}` cannot be compiled to CUDA", row.script)),
                Err(message) => error(e.span, format!("T.{}: {message}", row.script)),
            },
        }
    }

    /// A function of the table in [`math`].
    pub(super) fn math(&mut self, op: Op, dtype: DType, args: Vec<Code>, span: Span) -> Result<Code> {
        let dtype = dtype.element();
        let unsupported = || {
            Diagnostic::new(
                span,
                format!("`T.{}` has no CUDA form for `{dtype}`", op.info().script),
            )
        };
        let Some(row) = math::find(op) else {
            return Err(Box::new(unsupported()));
        };
        if dtype.is_integer() && op == Op::Fma {
            let [a, b, c] = <[Code; 3]>::try_from(args).map_err(|_| unsupported())?;
            let product = self.binary(crate::ir::BinOp::Mul, dtype, (a, None), (b, None), span)?;
            return self.binary(crate::ir::BinOp::Add, dtype, (product, None), (c, None), span);
        }
        if !dtype.is_floating() || (op == Op::Nextafter && dtype.bits < 32) {
            return Err(Box::new(unsupported()));
        }
        let list = |args: Vec<Code>| args.into_iter().map(|a| a.text).collect::<Vec<_>>().join(", ");
        if types::is_half(dtype) && !row.half.is_empty() {
            return Ok(Code::primary(format!("{}({})", row.half, list(args))));
        }
        if dtype.bits < 32 {
            let wide = args.into_iter().map(|a| a.cast("float")).collect();
            let code = Code::primary(format!("{}({})", row.names.0, list(wide)));
            return self.cast(code, DType::FLOAT32, dtype, span);
        }
        let name = if dtype.bits == 32 {
            row.names.0
        } else {
            row.names.1
        };
        Ok(Code::primary(format!("{name}({})", list(args))))
    }

    fn widen_half(&self, code: Code, dtype: DType) -> Code {
        if dtype.bits < 32 { code.cast("float") } else { code }
    }

    fn narrow_half(&mut self, code: Code, dtype: DType, span: Span) -> Result<Code> {
        if dtype.bits < 32 {
            self.cast(code, DType::FLOAT32, dtype, span)
        } else {
            Ok(code)
        }
    }

    fn classify(&mut self, op: Op, arg: &Expr) -> Result<Code> {
        let dtype = arg.dtype.element();
        if !dtype.is_floating() {
            return Ok(Code::primary(if op == Op::Isfinite { "true" } else { "false" }));
        }
        let x = self.expr(arg)?;
        let x = self.widen_half(x, dtype);
        if op == Op::Isnan {
            let wide = if dtype.bits < 32 { DType::FLOAT32 } else { dtype };
            // A name would need a statement, and an `&&` around it several: a cheap operand is written twice instead.
            let x = match &arg.kind {
                ExprKind::Var(_) => x,
                ExprKind::BufferLoad { indices, .. } if indices.iter().all(|i| i.size() <= 8) => x,
                _ => self.temporary("x", wide, x, arg.span)?,
            };
            return Ok(Code::new(format!("{} != {}", x.text, x.text), level::EQUAL));
        }
        let (name, infinity) = if dtype.bits == 64 {
            ("fabs", "(double)INFINITY")
        } else {
            ("fabsf", "INFINITY")
        };
        let (sign, at) = if op == Op::Isinf {
            ("==", level::EQUAL)
        } else {
            ("<", level::LESS)
        };
        Ok(Code::new(format!("{name}({}) {sign} {infinity}", x.text), at))
    }

    /// The dot product of four bytes and four bytes, added to a word.
    fn dot_of_bytes(&mut self, e: &Expr, args: &[Expr]) -> Result<Code> {
        let dtype = e.dtype;
        let (vec1, vec2) = (&args[at!(Dp4a.vec1)], &args[at!(Dp4a.vec2)]);
        let acc = &args[at!(Dp4a.acc)];
        // The sign bits are read from the bytes themselves.
        let word = if vec1.dtype.is_uint() {
            DType::UINT32
        } else {
            DType::INT32
        };
        if vec1.dtype.is_uint() != vec2.dtype.is_uint() {
            return error(e.span, "`dp4a` takes bytes that are all signed or all unsigned");
        }
        let a = self.bit_cast_text(vec1, word)?;
        let b = self.bit_cast_text(vec2, word)?;
        let c = self.expr(acc)?;
        let c = self.cast(c, acc.dtype, word, e.span)?;
        let dot = Code::primary(format!("__dp4a({a}, {b}, {})", c.text));
        self.cast(dot, word, dtype, e.span)
    }

    fn bits(&mut self, sign: &str, at: u8, args: &[Expr], dtype: DType) -> Result<Code> {
        let a = self.expr(&args[at!(BitwiseAnd | BitwiseOr | BitwiseXor.x)])?;
        let b = self.expr(&args[at!(BitwiseAnd | BitwiseOr | BitwiseXor.y)])?;
        let width = a.width.max(b.width).max(Width::Promoted);
        // A chain of one operator needs no parentheses for the reader; a mix does.
        let left = if a.level == at { a.text } else { a.at(level::UNARY) };
        let code = Code::new(format!("{left} {sign} {}", b.at(level::UNARY)), at);
        if dtype.is_bool() {
            return Ok(code.cast("bool"));
        }
        Ok(narrow(code, dtype, width))
    }

    fn shift_amount(&mut self, amount: &Expr) -> Result<String> {
        match amount.as_int() {
            Some(v) if v >= 0 => Ok(v.to_string()),
            _ => Ok(self.expr(amount)?.in_range(amount.dtype).at(level::UNARY)),
        }
    }

    fn count_bits(&mut self, op: Op, arg: &Expr, dtype: DType) -> Result<Code> {
        let x = self.expr(arg)?.in_range(arg.dtype);
        let bits = arg.dtype.bits as i64;
        let name = match (op, bits) {
            (Op::Popcount, 64) => "__popcll",
            (Op::Popcount, _) => "__popc",
            (_, 64) => "__clzll",
            _ => "__clz",
        };
        // The upper bits of a promoted value are copies of the sign.
        let x = if bits < 32 {
            Code::new(
                format!("{} & {:#x}", x.at(level::UNARY), (1u64 << bits) - 1),
                level::BIT_AND,
            )
        } else {
            x
        };
        let count = Code::primary(format!("{name}({})", x.text));
        let count = if op == Op::Clz && bits < 32 {
            Code::new(format!("{} - {}", count.text, 32 - bits), level::SUM)
        } else {
            count
        };
        Ok(match dtype.bits {
            32 if dtype.is_int() => count,
            _ if types::is_promoted(dtype) => count.with_width(Width::Promoted),
            _ => {
                let ty = self.spell(dtype, arg.span)?;
                count.cast(&ty)
            }
        })
    }

    pub(super) fn arguments(&mut self, args: &[Expr]) -> Result<String> {
        let mut out = Vec::with_capacity(args.len());
        for arg in args {
            out.push(self.expr(arg)?.in_range(arg.dtype).text);
        }
        Ok(out.join(", "))
    }

    fn raw_source(&mut self, name: &str, source: &str, span: Span) -> Result<()> {
        if let Some(known) = self.unit.raw.iter().find(|r| r.name == name) {
            if known.source != source {
                let diagnostic = Diagnostic::new(
                    span,
                    format!("two different sources are given for the CUDA function `{name}`"),
                )
                .note(known.span, "the other is given here")
                .help("give one of them another name");
                return Err(Box::new(diagnostic));
            }
            return Ok(());
        }
        self.unit.needs.headers.extend(Header::wanted_by(source));
        self.unit.raw.push(RawSource {
            name: name.into(),
            source: source.into(),
            span,
        });
        Ok(())
    }

    /// A special register of PTX.
    fn special_register(&mut self, e: &Expr, args: &[Expr]) -> Result<Code> {
        let (helper, name) = match args[at!(PtxFetchRegister.reg_name)].as_str() {
            Some("clusterid.x") => (Helper::ClusterIdX, "tirx_cluster_id_x()"),
            Some("clusterid.y") => (Helper::ClusterIdY, "tirx_cluster_id_y()"),
            Some("clusterid.z") => (Helper::ClusterIdZ, "tirx_cluster_id_z()"),
            Some("cluster_ctarank") => (Helper::ClusterCtaRank, "tirx_cluster_cta_rank()"),
            Some("cluster_ctaid.x") => (Helper::ClusterCtaIdX, "tirx_cluster_cta_id_x()"),
            Some("cluster_ctaid.y") => (Helper::ClusterCtaIdY, "tirx_cluster_cta_id_y()"),
            Some("cluster_ctaid.z") => (Helper::ClusterCtaIdZ, "tirx_cluster_cta_id_z()"),
            other => return self.any_register(e, other.unwrap_or_default()),
        };
        self.unit.needs.helpers.insert(helper);
        Ok(Code::primary(name))
    }

    fn printf(&mut self, args: &[Expr]) -> Result<Code> {
        let (format, values) = (&args[at!(CudaPrintf.fmt)], &args[at!(CudaPrintf.args)..]);
        let Some(text) = format.as_str() else {
            return error(format.span, "the format of `cuda.printf` is a string");
        };
        self.unit.needs.headers.insert(Header::Cstdio);
        let dtypes: Vec<DType> = values.iter().map(|arg| arg.dtype).collect();
        let format = crate::intrin::printf::sized(text, &dtypes);
        let mut text = format!("printf({}", string_literal(&format));
        for arg in values {
            let code = self.expr(arg)?.in_range(arg.dtype);
            let code = if arg.dtype.is_floating() && arg.dtype.bits < 32 {
                code.cast("float")
            } else {
                code
            };
            text.push_str(", ");
            text.push_str(&code.text);
        }
        text.push(')');
        Ok(Code::primary(text))
    }
}

fn narrow(code: Code, dtype: DType, width: Width) -> Code {
    if types::is_promoted(dtype) {
        code.with_width(width)
    } else {
        code
    }
}

/// `(value & 0xffffffff00000000) | uint64(low)`: 64 bits with another low word, as descriptors of matrices are moved.
fn with_low_word(args: &[Expr]) -> Option<(&Expr, &Expr)> {
    const HIGH: i128 = 0xffff_ffff_0000_0000;
    let (high, low) = (&args[at!(BitwiseOr.x)], &args[at!(BitwiseOr.y)]);
    let masked = high.as_call(Op::BitwiseAnd)?;
    let ExprKind::Cast(low) = &low.kind else {
        return None;
    };
    let is_low = low.dtype == DType::UINT32 && high.dtype == DType::UINT64;
    let keeps_high = constant(&masked[at!(BitwiseAnd.y)]) == Some(HIGH);
    (is_low && keeps_high).then_some((&masked[at!(BitwiseAnd.x)], low))
}

/// The value of a constant, of any width.
fn constant(e: &Expr) -> Option<i128> {
    match &e.kind {
        ExprKind::Call {
            op: Op::LargeUintImm,
            args,
        } => {
            let (low, high) = (&args[at!(LargeUintImm.low)], &args[at!(LargeUintImm.high)]);
            Some(high.as_int()? << 32 | low.as_int()?)
        }
        _ => e.as_int(),
    }
}
