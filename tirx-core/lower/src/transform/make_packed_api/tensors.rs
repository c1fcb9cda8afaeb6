//! The descriptors of tensor arguments: the variables that they define, and the conditions that they must satisfy.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::arguments::{Arguments, equal, extent_text};
use super::fields::{Field, get, is_null};
use crate::arith::{Analyzer, fold};
use crate::intrin::Op;
use crate::ir::abi::{DEVICE_CUDA, What, dlpack_code};
use crate::ir::{BinOp, Buffer, DType, Expr, Stmt, StmtKind, Type, Var, substitute};
use crate::source::Span;

/// Checks under construction.
pub(super) struct Tensors<'a> {
    arguments: &'a mut Arguments,
    symbol: &'a str,
    /// The device number of the first tensor.
    pub(super) device: Option<Var>,
    first: Arc<str>,
    /// Defined variables, with the field or parameter that defines each.
    defined: FxHashMap<Var, Arc<str>>,
    /// Second part: agreement between several arguments.
    agreement: Vec<Stmt>,
    /// Third part: constants and expressions.
    values: Vec<Stmt>,
    /// Data pointers.
    data: Vec<Stmt>,
}

/// The current tensor.
struct Subject<'b> {
    index: usize,
    buffer: &'b Buffer,
    handle: Expr,
    span: Span,
}

impl<'a> Tensors<'a> {
    pub(super) fn new(arguments: &'a mut Arguments, symbol: &'a str) -> Tensors<'a> {
        let scalars = arguments.statements.iter().filter_map(|s| match &s.kind {
            StmtKind::Bind(var, _) => Some((var.clone(), var.name_arc())),
            _ => None,
        });
        let defined = scalars.collect();
        Tensors {
            arguments,
            symbol,
            device: None,
            first: "".into(),
            defined,
            agreement: Vec::new(),
            values: Vec::new(),
            data: Vec::new(),
        }
    }

    /// Whether the arguments so far define a variable.
    pub(super) fn defines(&self, var: &Var) -> bool {
        self.defined.contains_key(var)
    }

    /// The second and third part and the data pointers.
    pub(super) fn finish(self) -> Vec<Stmt> {
        let mut all = self.agreement;
        all.extend(self.values);
        all.extend(self.data);
        all
    }

    /// All checks of one tensor. `align` is the required alignment of its data pointer, in bytes.
    pub(super) fn tensor(&mut self, index: usize, buffer: &Buffer, align: u32) {
        let Some(Some(handle)) = self.arguments.handles.get(index).cloned() else {
            return;
        };
        let subject = Subject {
            index,
            buffer,
            handle: Expr::var(&handle),
            span: buffer.span,
        };
        self.rank_and_dtype(&subject);
        let field = |name: &str| {
            Var::at(
                format!("{}_{}_{name}", self.symbol, buffer.name),
                Type::pointer(DType::INT64, "global"),
                subject.span,
            )
        };
        let (shape, strides) = (field("shape"), field("strides"));
        self.arguments.bind(
            &shape,
            get(&subject.handle, 0, Field::Shape, DType::HANDLE),
            subject.span,
        );
        let shape = Expr::var(&shape);
        for (dimension, extent) in buffer.shape.iter().enumerate() {
            let actual = element(&shape, dimension, extent.dtype);
            self.value(&subject, extent, actual, &format!("shape[{dimension}]"));
        }
        self.arguments.bind(
            &strides,
            get(&subject.handle, 0, Field::Strides, DType::HANDLE),
            subject.span,
        );
        self.strides(&subject, &shape, &Expr::var(&strides));
        self.offset(&subject);
        self.device(&subject);
        self.data(&subject, align);
    }

    fn rank_and_dtype(&mut self, subject: &Subject<'_>) {
        let Subject {
            index,
            buffer,
            handle,
            span,
        } = subject;
        let present = Expr::logical_not(is_null(handle.clone()));
        self.arguments.type_check(present, *index, "Tensor", *span);
        let rank = buffer.shape.len();
        let right_rank = equal(
            Expr::int32(rank as i32),
            get(handle, 0, Field::Ndim, DType::INT32),
        );
        let name = &*buffer.name;
        let check = self
            .arguments
            .check((*index, name), What::Rank, &rank.to_string(), right_rank, *span);
        self.arguments.statements.push(check);
        let part = |field: Field, dtype: DType, value: i128| {
            equal(get(handle, 0, field, dtype), Expr::constant(dtype, value))
        };
        let dtype = buffer.dtype;
        let conditions = [
            part(Field::TypeCode, DType::UINT8, dlpack_code(dtype).into()),
            part(Field::TypeBits, DType::UINT8, dtype.bits as i128),
            part(Field::TypeLanes, DType::UINT16, dtype.lanes as i128),
        ];
        let right_dtype = conditions
            .into_iter()
            .reduce(|a, b| Expr::binary(BinOp::And, a, b))
            .unwrap_or_else(|| Expr::bool(true));
        let check = self.arguments.check(
            (*index, name),
            What::DType,
            &dtype.to_string(),
            right_dtype,
            *span,
        );
        self.arguments.statements.push(check);
    }

    /// `declared` is the declared value of a field: an unknown variable is defined by it, a known one must agree,
    /// anything else must equal it.
    fn value(&mut self, subject: &Subject<'_>, declared: &Expr, actual: Expr, field: &str) {
        let name = &subject.buffer.name;
        let path: Arc<str> = format!("{name}.{field}").into();
        if let Some(var) = declared.as_var() {
            match self.defined.get(var) {
                None => {
                    self.arguments.bind(var, actual, subject.span);
                    self.defined.insert(var.clone(), path);
                }
                Some(source) => {
                    let agree = equal(declared.clone(), actual);
                    let check = self.check(subject, What::Agrees(field.into()), source, agree);
                    self.agreement.push(check);
                }
            }
            return;
        }
        let expected = self.describe(declared);
        let condition = match declared.as_int() {
            Some(_) => equal(actual, declared.clone()),
            None => equal(Analyzer::new().simplify(declared), actual),
        };
        let check = self.check(subject, What::Equals(field.into()), &expected, condition);
        self.values.push(check);
    }

    /// The assertion of a check of the current tensor.
    fn check(&self, subject: &Subject<'_>, what: What, expected: &str, condition: Expr) -> Stmt {
        let argument = (subject.index, &*subject.buffer.name);
        self.arguments
            .check(argument, what, expected, condition, subject.span)
    }

    /// An expression in a message, its variables named by the fields that define them.
    fn describe(&self, expr: &Expr) -> String {
        // Printed text can contain identifiers only, so each variable is replaced by one with a unique name.
        let mut sources: Vec<(String, Arc<str>)> = Vec::new();
        let stand_ins = std::cell::RefCell::new(&mut sources);
        let named = substitute(expr, &|v| {
            let source = self.defined.get(v)?;
            let mut sources = stand_ins.borrow_mut();
            let name = format!("tirx_field_{}_of_argument", sources.len());
            sources.push((name.clone(), source.clone()));
            Some(Expr::var(&v.renamed(name)))
        });
        let text = extent_text(&named);
        sources
            .iter()
            .fold(text, |text, (name, source)| text.replace(name, source))
    }

    fn strides(&mut self, subject: &Subject<'_>, shape: &Expr, strides: &Expr) {
        let buffer = subject.buffer;
        if buffer.strides.is_empty() {
            self.compact(subject, strides);
            return;
        }
        // What a missing stride array means: compact row-major of the actual shape.
        let mut compact: Option<Expr> = None;
        for (dimension, stride) in buffer.strides.iter().enumerate().rev() {
            let dtype = stride.dtype;
            let implied = compact
                .clone()
                .map_or_else(|| Expr::constant(dtype, 1), |c| fold::cast(c, dtype));
            let actual = Expr::call(
                Op::IfThenElse,
                dtype,
                vec![
                    is_null(strides.clone()),
                    implied,
                    element(strides, dimension, dtype),
                ],
            );
            self.value(subject, stride, actual, &format!("strides[{dimension}]"));
            let extent = element(shape, dimension, dtype);
            compact = Some(match compact {
                None => extent,
                Some(c) => fold::mul(fold::cast(c, dtype), extent),
            });
        }
    }

    /// Where strides are given they must be those of a compact tensor; those of unit dimensions do not matter.
    fn compact(&mut self, subject: &Subject<'_>, strides: &Expr) {
        let mut condition: Option<Expr> = None;
        let mut expected: Option<Expr> = None;
        let index_type = subject.buffer.shape.first().map_or(DType::INT32, |e| e.dtype);
        for (dimension, extent) in subject.buffer.shape.iter().enumerate().rev() {
            let stride = expected.clone().unwrap_or_else(|| Expr::constant(index_type, 1));
            if !extent.is_int(1) {
                let actual = element(strides, dimension, stride.dtype);
                let right = equal(stride.clone(), actual);
                let right = match extent.as_int() {
                    Some(_) => right,
                    None => {
                        let unit = equal(extent.clone(), Expr::constant(extent.dtype, 1));
                        Expr::binary(BinOp::Or, unit, right)
                    }
                };
                condition = Some(match condition {
                    None => right,
                    Some(c) => Expr::binary(BinOp::And, c, right),
                });
            }
            expected = Some(crate::layout::apply::binary(BinOp::Mul, stride, extent.clone()));
        }
        let Some(condition) = condition else { return };
        let check = self.check(subject, What::Compact, "", condition);
        let given = Expr::logical_not(is_null(strides.clone()));
        self.agreement
            .push(Stmt::if_else(given, check, None, subject.span));
    }

    fn offset(&mut self, subject: &Subject<'_>) {
        let buffer = subject.buffer;
        let element_bytes = (buffer.dtype.bytes() as i128).max(1);
        let actual = get(&subject.handle, 0, Field::ByteOffset, DType::UINT64);
        let Some(offset) = buffer.elem_offset.as_ref().filter(|o| o.as_int().is_none()) else {
            let elements = buffer.elem_offset.as_ref().and_then(Expr::as_int).unwrap_or(0);
            let bytes = Expr::constant(DType::UINT64, elements * element_bytes);
            let expected = extent_text(&bytes);
            let what = What::Equals("byte_offset".into());
            let check = self.check(subject, what, &expected, equal(bytes, actual));
            self.values.push(check);
            return;
        };
        let elements = fold::cast(
            Expr::binary(BinOp::Div, actual, Expr::constant(DType::UINT64, element_bytes)),
            offset.dtype,
        );
        self.value(subject, offset, elements, "elem_offset");
        if buffer.offset_factor > 1 {
            let factor = buffer.offset_factor as i128;
            let rest = Expr::binary(BinOp::Mod, offset.clone(), Expr::constant(offset.dtype, factor));
            let aligned = equal(rest, Expr::constant(offset.dtype, 0));
            let bytes = (factor * element_bytes).to_string();
            let check = self.check(subject, What::OffsetAlignment, &bytes, aligned);
            self.arguments.statements.push(check);
        }
    }

    fn device(&mut self, subject: &Subject<'_>) {
        let device_type = get(&subject.handle, 0, Field::DeviceType, DType::INT32);
        let right = equal(device_type, Expr::constant(DType::INT32, DEVICE_CUDA));
        let check = self.check(subject, What::DeviceType, "cuda", right);
        self.arguments.statements.push(check);
        let actual = get(&subject.handle, 0, Field::DeviceId, DType::INT32);
        match &self.device {
            None => {
                let device = Var::at("dev_id", DType::INT32, subject.span);
                self.arguments.bind(&device, actual, subject.span);
                self.device = Some(device);
                self.first = subject.buffer.name.clone();
            }
            Some(device) => {
                let source = format!("{}.device_id", self.first);
                let same = equal(Expr::var(device), actual);
                let check = self.check(subject, What::Agrees("device_id".into()), &source, same);
                self.agreement.push(check);
            }
        }
    }

    fn data(&mut self, subject: &Subject<'_>, align: u32) {
        let buffer = subject.buffer;
        let pointer = Expr::call(
            Op::Reinterpret,
            DType::HANDLE,
            vec![get(&subject.handle, 0, Field::Data, DType::HANDLE)],
        );
        let present = Expr::logical_not(is_null(pointer.clone()));
        let elements = buffer
            .shape
            .iter()
            .cloned()
            .reduce(|a, b| crate::layout::apply::binary(BinOp::Mul, a, b));
        let present = match elements {
            // An empty tensor may have no data.
            Some(count) if count.as_int().is_none_or(|c| c == 0) => {
                let empty = equal(count.clone(), Expr::constant(count.dtype, 0));
                Expr::binary(BinOp::Or, empty, present)
            }
            _ => present,
        };
        let check = self.check(subject, What::Data, "", present);
        self.agreement.push(check);

        self.data.push(Stmt::bind(&buffer.data, pointer, subject.span));
        self.data
            .push(Stmt::new(StmtKind::DeclBuffer(buffer.clone()), subject.span));
        if align > 1 {
            let address = Expr::call(Op::Reinterpret, DType::UINT64, vec![Expr::var(&buffer.data)]);
            let divisor = Expr::constant(DType::UINT64, align as i128);
            let rest = Expr::binary(BinOp::Mod, address, divisor);
            let aligned = equal(rest, Expr::constant(DType::UINT64, 0));
            let check = self.check(subject, What::Alignment, &align.to_string(), aligned);
            self.data.push(check);
        }
        if let Some(within) = within_reach(buffer) {
            let most = "at most 2147483647 elements, which int32 indices reach";
            let check = self.check(subject, What::Reach, most, within);
            self.data.push(check);
        }
    }
}

/// The condition under which indices of 32 bits reach every element of a tensor whose extents are known only at launch;
/// `None` where the dtypes or the checks of the extents imply it.
pub(super) fn within_reach(buffer: &Buffer) -> Option<Expr> {
    let known = |list: &[Expr]| list.iter().all(|e| e.as_int().is_some());
    let compact = buffer.strides.is_empty();
    if buffer.shape.iter().any(|extent| extent.dtype.bits > 32)
        || buffer.shape.len() < 2 && compact
        || known(&buffer.shape) && known(&buffer.strides)
    {
        return None;
    }
    let most = Expr::int64(i32::MAX.into());
    let wide = |e: &Expr| fold::cast(e.clone(), DType::INT64);
    let count = if compact {
        // One more factor than needed is kept, so that no product of 64 bits overflows.
        let beyond = Expr::int64(1 << 31);
        let mut factors = buffer.shape.iter().map(wide);
        let first = factors.next()?;
        factors.enumerate().fold(first, |product, (i, extent)| match i {
            0 => fold::mul(product, extent),
            _ => fold::mul(Expr::binary(BinOp::Min, product, beyond.clone()), extent),
        })
    } else {
        let last =
            |(extent, step): (&Expr, &Expr)| fold::mul(fold::sub(wide(extent), Expr::int64(1)), wide(step));
        buffer
            .shape
            .iter()
            .zip(&buffer.strides)
            .map(last)
            .fold(Expr::int64(1), fold::add)
    };
    Some(Expr::binary(BinOp::Le, count, most))
}

/// Element `index` of an array of `int64`, as `dtype`.
fn element(array: &Expr, index: usize, dtype: DType) -> Expr {
    fold::cast(get(array, index, Field::Int64Element, DType::INT64), dtype)
}
