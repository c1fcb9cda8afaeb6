//! How is a call of an intrinsic written?

use super::code::{Code, Width, level, string_literal};
use super::helpers::{Header, Helper};
use super::{Emitter, Pointer, RawSource, math, types};
use crate::diagnostic::{Diagnostic, Result, error};
use crate::intrin::Op;
use crate::ir::{DType, Expr, ExprKind, Type, Var};
use crate::source::Span;

impl Emitter<'_> {
    /// A call with a scalar value, or none.
    pub(super) fn call(&mut self, e: &Expr, op: Op, args: &[Expr]) -> Result<Code> {
        // It speaks of this call, not of those among its arguments.
        let discards = std::mem::take(&mut self.discards_value);
        let info = op.info();
        if args.len() < info.arity.0 as usize {
            return error(
                e.span,
                format!(
                    "`{}` takes {} arguments, {} given",
                    info.script,
                    info.arity.0,
                    args.len()
                ),
            );
        }
        let dtype = e.dtype;
        if math::find(op).is_some() {
            let codes = args.iter().map(|a| self.expr(a)).collect::<Result<Vec<_>>>()?;
            return self.math(op, dtype, codes, e.span);
        }
        match op {
            Op::Sigmoid => {
                let one = Expr::constant(dtype, 1);
                let zero = Expr::constant(dtype, 0);
                let exp = Expr::call(Op::Exp, dtype, vec![zero - args[0].clone()]);
                self.expr(&Expr::binary(crate::ir::BinOp::Div, one.clone(), one + exp))
            }
            Op::Ldexp => {
                let (x, n) = (self.expr(&args[0])?, self.expr(&args[1])?.in_range(args[1].dtype));
                let name = if dtype.bits == 64 { "ldexp" } else { "ldexpf" };
                let x = self.widen_half(x, dtype);
                let code = Code::primary(format!("{name}({}, {})", x.text, n.text));
                self.narrow_half(code, dtype, e.span)
            }
            Op::Isnan | Op::Isinf | Op::Isfinite => self.classify(op, &args[0]),

            Op::BitwiseAnd => self.bits("&", level::BIT_AND, args, dtype),
            Op::BitwiseOr => self.bits("|", level::BIT_OR, args, dtype),
            Op::BitwiseXor => self.bits("^", level::BIT_XOR, args, dtype),
            Op::ShiftLeft | Op::ShiftRight => {
                let left = op == Op::ShiftLeft;
                let x = self.expr(&args[0])?;
                let x = if left { x } else { x.in_range(dtype) };
                let n = self.shift_amount(&args[1])?;
                let sign = if left { "<<" } else { ">>" };
                let code = Code::new(format!("{} {sign} {n}", x.at(level::UNARY)), level::SHIFT);
                Ok(narrow(
                    code,
                    dtype,
                    if left { Width::Dirty } else { Width::Promoted },
                ))
            }
            Op::BitwiseNot => {
                let x = self.expr(&args[0])?;
                if dtype.is_bool() {
                    return Ok(Code::new(format!("!{}", x.at(level::UNARY)), level::UNARY));
                }
                Ok(narrow(
                    Code::new(format!("~{}", x.at(level::UNARY)), level::UNARY),
                    dtype,
                    Width::Dirty,
                ))
            }
            Op::Popcount | Op::Clz => self.count_bits(op, &args[0], dtype),
            Op::LargeUintImm => match (args[0].as_int(), args[1].as_int()) {
                (Some(low), Some(high)) => {
                    self.spell(dtype, e.span)?;
                    Ok(super::code::int_literal(dtype, dtype.wrap(high << 32 | low)))
                }
                _ => error(e.span, "`large_uint_imm` takes two constants"),
            },
            Op::Dp4a => {
                let a = self.bit_cast_text(
                    &args[0],
                    if dtype.is_uint() {
                        DType::UINT32
                    } else {
                        DType::INT32
                    },
                )?;
                let b = self.bit_cast_text(
                    &args[1],
                    if dtype.is_uint() {
                        DType::UINT32
                    } else {
                        DType::INT32
                    },
                )?;
                let c = self.expr(&args[2])?;
                Ok(Code::primary(format!("__dp4a({a}, {b}, {})", c.text)))
            }

            Op::IfThenElse => {
                let (x, y) = (args[1].clone(), args[2].clone());
                self.lazy_choice(&args[0], dtype, e.span, |s| s.expr(&x), |s| s.expr(&y))
            }
            Op::Likely => {
                let code = self.expr(&args[0])?;
                Ok(Code::primary(format!("__builtin_expect({}, 1)", code.text)))
            }
            Op::Assume => {
                let code = self.expr(&args[0])?;
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
            Op::ThreadReturn | Op::Ret => Ok(Code::primary("return")),
            Op::Reinterpret => self.reinterpret(e, args),
            Op::IsNullptr => {
                let p = self.expr(&args[0])?;
                Ok(Code::new(
                    format!("{} == nullptr", p.at(level::EQUAL)),
                    level::EQUAL,
                ))
            }

            Op::AddressOf => self.address_of(&args[0]),
            Op::PtrByteOffset | Op::HandleAddByteOffset => {
                let ty = match self.pointee(e) {
                    Some(element) => format!("{}*", self.spell(element, e.span)?),
                    None => "void*".into(),
                };
                let (p, n) = (self.expr(&args[0])?, self.expr(&args[1])?.in_range(args[1].dtype));
                let moved = Code::new(
                    format!("(char*){} + {}", p.at(level::UNARY), n.at(level::PRODUCT)),
                    level::SUM,
                );
                Ok(moved.cast(&ty))
            }
            Op::TvmAccessPtr => {
                let ty = self.spell(args[0].dtype, e.span)?;
                let start = self.typed_pointer(&args[1], args[0].dtype, &ty)?;
                if args[2].is_int(0) {
                    return Ok(start);
                }
                let offset = self.expr(&args[2])?.in_range(args[2].dtype);
                Ok(Code::new(
                    format!("{} + {}", start.at(level::SUM), offset.at(level::PRODUCT)),
                    level::SUM,
                ))
            }
            Op::AtomicAdd | Op::CudaAtomicAdd => self.atomic_add(e, args, discards),
            Op::CudaAtomicCas => self.atomic_cas(e, args, discards),
            Op::CudaLdg => {
                let ty = self.spell(dtype, e.span)?;
                let p = self.expr(&args[0])?;
                let p = if self.pointee(&args[0]) == Some(dtype) {
                    p
                } else {
                    p.cast(&format!("const {ty}*"))
                };
                if dtype.is_bool() || types::is_storage_only(dtype) || ty.starts_with("tirx_vec") {
                    // `__ldg` has no such overload; the cast to const of a restrict pointer says as much.
                    return Ok(Code::new(format!("*{}", p.at(level::UNARY)), level::UNARY));
                }
                Ok(Code::primary(format!("__ldg({})", p.text)))
            }

            Op::CallExtern | Op::CallPureExtern => {
                let Some(name) = args[0].as_str() else {
                    return error(
                        args[0].span.or(e.span),
                        "the name of an external function is a string",
                    );
                };
                let rest = self.arguments(&args[1..])?;
                Ok(Code::primary(format!("{name}({rest})")))
            }
            Op::CudaFuncCall => {
                let (Some(name), Some(source)) = (args[0].as_str(), args[1].as_str()) else {
                    return error(e.span, "`cuda.func_call` takes its name and source as strings");
                };
                self.raw_source(name, source, e.span)?;
                let rest = self.arguments(&args[2..])?;
                Ok(Code::primary(format!("{name}({rest})")))
            }

            Op::TvmWarpShuffle | Op::CudaShflSync => self.shuffle("__shfl_sync", e, args),
            Op::TvmWarpShuffleUp | Op::CudaShflUpSync => self.shuffle("__shfl_up_sync", e, args),
            Op::TvmWarpShuffleDown | Op::CudaShflDownSync => self.shuffle("__shfl_down_sync", e, args),
            Op::TvmWarpShuffleXor | Op::CudaShflXorSync => self.shuffle("__shfl_xor_sync", e, args),
            Op::TvmWarpActivemask | Op::CudaActivemask => Ok(Code::primary("__activemask()")),
            Op::CudaBallotSync => self.masked("__ballot_sync", args),
            Op::CudaReduceAddSyncU32 => self.masked("__reduce_add_sync", args),
            Op::CudaReduceMinSyncU32 => self.masked("__reduce_min_sync", args),
            Op::CudaFfsU32 => self.function("__ffs", args).map(|c| c.cast("unsigned int")),

            Op::TvmStorageSync => match args[0].as_str() {
                Some("shared" | "shared.dyn") => Ok(Code::primary("__syncthreads()")),
                Some("warp") => Ok(Code::primary("__syncwarp()")),
                scope => error(
                    e.span,
                    format!("no barrier over memory scope `{}` in CUDA", scope.unwrap_or("?")),
                ),
            },
            Op::CudaCtaSync => Ok(Code::primary("__syncthreads()")),
            Op::CudaWarpSync => Ok(Code::primary("__syncwarp()")),
            Op::CudaThreadFence => Ok(Code::primary("__threadfence()")),
            Op::CudaWarpgroupSync => {
                self.needs.helpers.insert(Helper::NamedBarrier);
                let barrier = self.expr(&args[0])?;
                Ok(Code::primary(format!(
                    "tirx_named_barrier({}, 128)",
                    barrier.text
                )))
            }
            Op::CudaClusterSync => {
                self.needs.helpers.insert(Helper::ClusterSync);
                Ok(Code::primary("tirx_cluster_sync()"))
            }
            Op::CudaGridSync => {
                self.needs.headers.insert(Header::CooperativeGroups);
                Ok(Code::primary("cooperative_groups::this_grid().sync()"))
            }
            Op::CudaSyncthreadsAnd => self.function("__syncthreads_and", args),
            Op::CudaSyncthreadsOr => self.function("__syncthreads_or", args),
            Op::CudaClock64 => self
                .spell(dtype, e.span)
                .map(|ty| Code::primary("clock64()").cast(&ty)),
            Op::CudaNanoSleep => self.function("__nanosleep", args),
            Op::CudaThreadRank => Ok(self.thread_rank()),
            Op::PtxFetchRegister => self.special_register(e, args),
            Op::CudaFdividef => self.function("__fdividef", args),
            Op::CudaFloatAsUint => self.function("__float_as_uint", args),
            Op::CudaUintAsFloat => self.function("__uint_as_float", args),
            Op::CudaHalf2float => self.function("__half2float", args),
            Op::CudaBfloat162float => self.function("__bfloat162float", args),
            Op::CudaPrintf => self.printf(args),
            Op::CudaTrapWhenAssertFailed => {
                self.needs.helpers.insert(Helper::TrapUnless);
                self.function("tirx_trap_unless", args)
            }
            Op::CudaWarpReduce => self.warp_reduce(e, args),
            Op::CudaCtaReduce => self.cta_reduce(e, args),
            _ => error(e.span, format!("`T.{}` cannot be compiled to CUDA", info.script)),
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
            let x = self.temporary("x", wide, x, arg.span)?;
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

    fn bits(&mut self, sign: &str, at: u8, args: &[Expr], dtype: DType) -> Result<Code> {
        let (a, b) = (self.expr(&args[0])?, self.expr(&args[1])?);
        let width = a.width.max(b.width).max(Width::Promoted);
        // A chain of one operator reads well without parentheses; a mix does not.
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

    /// `name(args…)` with values in range.
    fn function(&mut self, name: &str, args: &[Expr]) -> Result<Code> {
        Ok(Code::primary(format!("{name}({})", self.arguments(args)?)))
    }

    fn arguments(&mut self, args: &[Expr]) -> Result<String> {
        let mut out = Vec::with_capacity(args.len());
        for arg in args {
            out.push(self.expr(arg)?.in_range(arg.dtype).text);
        }
        Ok(out.join(", "))
    }

    /// A lane mask as 32 bits.
    fn mask(&mut self, mask: &Expr) -> Result<String> {
        match mask.as_int() {
            Some(v) => Ok(format!("{:#x}U", v as u32)),
            None => Ok(self.expr(mask)?.text),
        }
    }

    fn masked(&mut self, name: &str, args: &[Expr]) -> Result<Code> {
        let mask = self.mask(&args[0])?;
        let rest = self.arguments(&args[1..])?;
        Ok(Code::primary(format!("{name}({mask}, {rest})")))
    }

    fn shuffle(&mut self, name: &str, e: &Expr, args: &[Expr]) -> Result<Code> {
        let dtype = e.dtype;
        let mask = self.mask(&args[0])?;
        let value = self.expr(&args[1])?;
        let lane = self.expr(&args[2])?.in_range(args[2].dtype);
        let width = if args[3].is_int(32) {
            String::new()
        } else {
            format!(", {}", self.expr(&args[3])?.text)
        };
        let call = |value: &str| Code::primary(format!("{name}({mask}, {value}, {}{width})", lane.text));
        if types::is_storage_only(dtype) {
            self.needs.helpers.insert(Helper::BitCast);
            self.needs.headers.insert(Header::Cstdint);
            let ty = self.spell(dtype, e.span)?;
            let moved = call(&format!("(int)tirx_bit_cast<uint8_t>({})", value.text)).cast("uint8_t");
            return Ok(Code::primary(format!("tirx_bit_cast<{ty}>({})", moved.text)));
        }
        if types::is_promoted(dtype) {
            return Ok(call(&value.text).with_width(Width::Dirty));
        }
        let code = call(&value.text);
        Ok(if dtype.is_bool() { code.cast("bool") } else { code })
    }

    /// The bits of a value as another type of the same size.
    pub(super) fn reinterpret(&mut self, e: &Expr, args: &[Expr]) -> Result<Code> {
        let (from, to) = (args[0].dtype, e.dtype);
        if from.is_handle() || to.is_handle() {
            let code = self.expr(&args[0])?;
            let ty = if to.is_handle() {
                "void*".to_string()
            } else {
                self.spell(to, e.span)?
            };
            return Ok(if from.is_handle() && to.is_handle() {
                code
            } else {
                code.cast(&ty)
            });
        }
        let text = self.bit_cast_text(&args[0], to)?;
        Ok(Code::primary(text))
    }

    fn bit_cast_text(&mut self, arg: &Expr, to: DType) -> Result<String> {
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
        let known = match (from, to) {
            (DType::FLOAT32, DType::INT32) => "__float_as_int",
            (DType::FLOAT32, DType::UINT32) => "__float_as_uint",
            (DType::INT32, DType::FLOAT32) => "__int_as_float",
            (DType::UINT32, DType::FLOAT32) => "__uint_as_float",
            (DType::FLOAT64, DType::INT64) => "__double_as_longlong",
            (DType::INT64, DType::FLOAT64) => "__longlong_as_double",
            (DType::FLOAT16, DType::INT16) => "__half_as_short",
            (DType::FLOAT16, DType::UINT16) => "__half_as_ushort",
            (DType::INT16, DType::FLOAT16) => "__short_as_half",
            (DType::UINT16, DType::FLOAT16) => "__ushort_as_half",
            (DType::BFLOAT16, DType::INT16) => "__bfloat16_as_short",
            (DType::BFLOAT16, DType::UINT16) => "__bfloat16_as_ushort",
            (DType::INT16, DType::BFLOAT16) => "__short_as_bfloat16",
            (DType::UINT16, DType::BFLOAT16) => "__ushort_as_bfloat16",
            _ => {
                self.needs.helpers.insert(Helper::BitCast);
                return Ok(format!("tirx_bit_cast<{ty}>({})", code.text));
            }
        };
        Ok(format!("{known}({})", code.text))
    }

    /// `&A[i]`.
    fn address_of(&mut self, place: &Expr) -> Result<Code> {
        let ExprKind::BufferLoad { buffer, indices, .. } = &place.kind else {
            return match &place.kind {
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

    /// What the C++ type of a pointer expression points to, where that is known.
    pub(super) fn pointee(&self, e: &Expr) -> Option<DType> {
        match &e.kind {
            ExprKind::Var(var) => match var.ty() {
                Type::Pointer { element, .. } => Some(*element),
                Type::Prim(_) => None,
            },
            ExprKind::Call { op, args } => match op {
                Op::AddressOf => match &args.first()?.kind {
                    ExprKind::BufferLoad { buffer, .. } => Some(buffer.dtype),
                    ExprKind::Var(_) => self.pointee(&args[0]),
                    _ => None,
                },
                Op::TvmAccessPtr => Some(args.first()?.dtype),
                Op::PtrByteOffset => {
                    let annotation = args.get(2)?;
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
    fn typed_pointer(&mut self, e: &Expr, element: DType, ty: &str) -> Result<Code> {
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
            Type::Prim(_) => "void".into(),
        };
        let name = self.names.fresh(var.name());
        let value = code.cast(&format!("{element}*"));
        self.line(&format!("{element}* const {name} = {};", value.text));
        let pointer = Pointer {
            name,
            element,
            constant: false,
            scalar: false,
        };
        self.pointers.insert(var.clone(), pointer);
        Ok(())
    }

    fn atomic_add(&mut self, e: &Expr, args: &[Expr], discards: bool) -> Result<Code> {
        let dtype = args[1].dtype;
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
        let ty = if wide {
            "unsigned long long".to_string()
        } else {
            self.spell(dtype, e.span)?
        };
        let pointer = if wide {
            self.expr(&args[0])?.cast("unsigned long long*")
        } else {
            self.typed_pointer(&args[0], dtype, &ty)?
        };
        let value = self.expr(&args[1])?;
        let value = if wide { value.cast(&ty) } else { value };
        let code = Code::primary(format!("atomicAdd({}, {})", pointer.text, value.text));
        if !wide || discards {
            return Ok(code);
        }
        let ty = self.spell(dtype, e.span)?;
        Ok(code.cast(&ty))
    }

    fn atomic_cas(&mut self, e: &Expr, args: &[Expr], discards: bool) -> Result<Code> {
        let dtype = args[1].dtype;
        if dtype.lanes != 1 || dtype.bits < 16 || dtype.is_bool() || dtype.is_handle() {
            return error(
                e.span,
                format!("there is no atomic compare-and-swap of `{dtype}`"),
            );
        }
        // Overloads exist for these; others go by their bits.
        let (ty, bits) = match dtype.bits {
            16 => ("unsigned short", DType::UINT16),
            32 if dtype.is_int() => ("int", DType::INT32),
            32 => ("unsigned int", DType::UINT32),
            _ => ("unsigned long long", DType::UINT64),
        };
        let pointer = self.expr(&args[0])?;
        let pointer = if dtype.bits == 32 && dtype.is_integer() {
            self.typed_pointer(&args[0], dtype, ty)?
        } else {
            pointer.cast(&format!("{ty}*"))
        };
        let same = dtype == bits;
        let compare = self.bit_cast_text(&args[1], bits)?;
        let value = self.bit_cast_text(&args[2], bits)?;
        let code = Code::primary(format!("atomicCAS({}, {compare}, {value})", pointer.text));
        if same && dtype.bits == 32 || discards || dtype == DType::INT32 {
            return Ok(code);
        }
        let old = self.temporary("old", bits, code, e.span)?;
        let var = Var::new("old", bits);
        self.vars.insert(var.clone(), old);
        Ok(Code::primary(self.bit_cast_text(&Expr::var(&var), dtype)?))
    }

    fn raw_source(&mut self, name: &str, source: &str, span: Span) -> Result<()> {
        if let Some(known) = self.raw.iter().find(|r| r.name == name) {
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
        self.needs.headers.extend(Header::wanted_by(source));
        self.raw.push(RawSource {
            name: name.into(),
            source: source.into(),
            span,
        });
        Ok(())
    }

    /// The linear index of the thread in its block, from the extents where they are constant.
    fn thread_rank(&mut self) -> Code {
        let extent = |tag: &str| self.facts.extent(tag).map(|e| e.as_int());
        match (
            extent("threadIdx.x"),
            extent("threadIdx.y"),
            extent("threadIdx.z"),
        ) {
            (_, None | Some(Some(1)), None | Some(Some(1))) => Code::primary("threadIdx.x").cast("int"),
            (Some(Some(x)), Some(_), None | Some(Some(1))) => {
                Code::new(format!("(int)threadIdx.y * {x} + (int)threadIdx.x"), level::SUM)
            }
            (Some(Some(x)), Some(Some(y)), Some(_)) => Code::new(
                format!("((int)threadIdx.z * {y} + (int)threadIdx.y) * {x} + (int)threadIdx.x"),
                level::SUM,
            ),
            _ => {
                self.needs.helpers.insert(Helper::ThreadRank);
                Code::primary("tirx_thread_rank()")
            }
        }
    }

    /// `T.ptx.fetch_register(bits, name)`.
    fn special_register(&mut self, e: &Expr, args: &[Expr]) -> Result<Code> {
        let (helper, name) = match args.iter().find_map(Expr::as_str) {
            Some("clusterid.x") => (Helper::ClusterIdX, "tirx_cluster_id_x()"),
            Some("clusterid.y") => (Helper::ClusterIdY, "tirx_cluster_id_y()"),
            Some("clusterid.z") => (Helper::ClusterIdZ, "tirx_cluster_id_z()"),
            Some("cluster_ctarank") => (Helper::ClusterCtaRank, "tirx_cluster_cta_rank()"),
            Some("cluster_ctaid.x") => (Helper::ClusterCtaIdX, "tirx_cluster_cta_id_x()"),
            Some("cluster_ctaid.y") => (Helper::ClusterCtaIdY, "tirx_cluster_cta_id_y()"),
            Some("cluster_ctaid.z") => (Helper::ClusterCtaIdZ, "tirx_cluster_cta_id_z()"),
            other => {
                return error(
                    e.span,
                    format!("special register `{}` cannot be read yet", other.unwrap_or("?")),
                );
            }
        };
        self.needs.helpers.insert(helper);
        Ok(Code::primary(name))
    }

    fn printf(&mut self, args: &[Expr]) -> Result<Code> {
        let Some(format) = args[0].as_str() else {
            return error(args[0].span, "the format of `cuda.printf` is a string");
        };
        self.needs.headers.insert(Header::Cstdio);
        let mut text = format!("printf({}", string_literal(format));
        for arg in &args[1..] {
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

    fn reduction(&mut self, op: &Expr) -> Result<(&'static str, [Helper; 2])> {
        match op.as_str() {
            Some("sum" | "add") => Ok(("sum", [Helper::WarpSum, Helper::CtaSum])),
            Some("max") => Ok(("max", [Helper::WarpMax, Helper::CtaMax])),
            Some("min") => Ok(("min", [Helper::WarpMin, Helper::CtaMin])),
            other => error(
                op.span,
                format!(
                    "unknown reduction `{}`: one of sum, max, min",
                    other.unwrap_or("?")
                ),
            ),
        }
    }

    fn warp_reduce(&mut self, e: &Expr, args: &[Expr]) -> Result<Code> {
        let (name, [warp, _]) = self.reduction(&args[1])?;
        let width = args.get(2).map_or(Some(32), Expr::as_int);
        let Some(width) = width.filter(|w| (1..=32).contains(w) && w.count_ones() == 1) else {
            return error(
                e.span,
                "the width of a warp reduction is a constant power of two up to 32",
            );
        };
        self.needs.helpers.insert(warp);
        let value = self.expr(&args[0])?.exact(e.dtype);
        Ok(Code::primary(format!(
            "tirx_warp_{name}<{width}>({})",
            value.text
        )))
    }

    fn cta_reduce(&mut self, e: &Expr, args: &[Expr]) -> Result<Code> {
        let dtype = e.dtype;
        let (name, [_, cta]) = self.reduction(&args[1])?;
        let Some(warps) = args[2].as_int().filter(|w| (1..=32).contains(w)) else {
            return error(
                e.span,
                "the number of warps of a block reduction is a constant up to 32",
            );
        };
        self.needs.helpers.insert(cta);
        let value = self.expr(&args[0])?.exact(dtype);
        let ty = self.spell(dtype, e.span)?;
        let scratch = self.typed_pointer(&args[3], dtype, &ty)?;
        let identity = match name {
            "sum" => Expr::constant(dtype, 0),
            "max" => extreme(dtype, true),
            _ => extreme(dtype, false),
        };
        let identity = self.expr(&identity)?.exact(dtype);
        let thread = self.thread_rank();
        Ok(Code::primary(format!(
            "tirx_cta_{name}<{warps}>({}, {}, {}, {})",
            value.text, scratch.text, identity.text, thread.text
        )))
    }
}

/// The value that every other exceeds (or that exceeds every other).
fn extreme(dtype: DType, least: bool) -> Expr {
    if dtype.is_floating() {
        return Expr::float(dtype, if least { f64::NEG_INFINITY } else { f64::INFINITY });
    }
    let value = if least { dtype.min_int() } else { dtype.max_int() };
    Expr::constant(dtype, value.unwrap_or(0))
}

fn narrow(code: Code, dtype: DType, width: Width) -> Code {
    if types::is_promoted(dtype) {
        code.with_width(width)
    } else {
        code
    }
}
