//! The arguments of a call node by name: the flat list, divided as its row describes.

use super::row::{Arg, ArgKind, CudaForm, Many, Row, Space, Ty};
use crate::ir::{DType, Expr, ExprKind};

/// The arguments of a call by the names of its row. One that is left out is an empty list.
#[derive(Clone, Debug)]
pub struct Operands<'a> {
    /// The row.
    pub row: &'static Row,
    /// One list for each argument of the row.
    parts: Vec<&'a [Expr]>,
}

/// Another number of values than a list takes.
fn miscounted(list: &Arg, takes: usize, found: usize) -> String {
    let register = match list.kind {
        ArgKind::Element(_, ty) | ArgKind::Register(_, ty) => Some(ty),
        _ => None,
    };
    let what = if register.is_some() {
        "registers"
    } else {
        "arguments"
    };
    let mut message = format!(
        "takes {takes} {what} for {}, each by itself, found {found}",
        list.name
    );
    let of_32_bits = register.is_some_and(|ty| matches!(ty, Ty::B32 | Ty::F32 | Ty::FromWords));
    for (many, bits) in [(2, 16), (4, 8)] {
        if of_32_bits && takes > 0 && found == many * takes {
            message.push_str(&format!(
                ": a register of 32 bits holds {many} elements of {bits} bits"
            ));
        }
    }
    message
}

impl<'a> Operands<'a> {
    /// Reads a flat list.
    ///
    /// # Errors
    /// Too few or too many arguments.
    pub fn read(row: &'static Row, args: &'a [Expr]) -> Result<Operands<'a>, String> {
        let variable = |a: &Arg| !matches!(a.many, Many::One);
        if row.args.len() == args.len() && !row.args.iter().any(variable) {
            let parts = args.chunks_exact(1).collect();
            return Ok(Operands { row, parts });
        }
        let head = row.args.iter().position(variable).unwrap_or(row.args.len());
        let tail = match row.args.iter().rposition(variable) {
            Some(last) => row.args.len() - 1 - last,
            None => 0,
        };
        let wrong = || {
            let least = row.args.iter().filter(|a| !variable(a)).count();
            let optional = row
                .args
                .iter()
                .filter(|a| matches!(a.many, Many::Optional))
                .count();
            let lists = row.args.len() > least + optional;
            let wanted = match (least, optional, lists) {
                (1, 0, false) => "1 argument".to_string(),
                (n, 0, false) => format!("{n} arguments"),
                (n, most, false) => format!("{n} to {} arguments", n + most),
                (n, ..) => format!("at least {n} arguments"),
            };
            format!("takes {wanted}, found {}", args.len())
        };
        if args.len() < head + tail {
            return Err(wrong());
        }
        let mut out = Operands {
            row,
            parts: vec![&[]; row.args.len()],
        };
        for (i, part) in out.parts[..head].iter_mut().enumerate() {
            *part = &args[i..=i];
        }
        for i in 0..tail {
            let at = args.len() - tail + i;
            let part = row.args.len() - tail + i;
            out.parts[part] = &args[at..=at];
        }
        let mut left = &args[head..args.len() - tail];
        let middle = head..row.args.len() - tail;
        for i in middle.clone() {
            // The minimum number of arguments that the later names need.
            let behind = row.args[i + 1..middle.end]
                .iter()
                .filter(|a| !variable(a))
                .count();
            let count = match row.args[i].many {
                Many::One => 1,
                Many::Optional => match out.has(row.args[i].name) {
                    Some(has) => usize::from(has),
                    None => usize::from(left.len() > behind),
                },
                Many::List(None) => match out.counted(row.args[i].name) {
                    Some(count) => count,
                    None => left.len().saturating_sub(behind),
                },
                Many::List(Some(len)) => len(&out),
            };
            if left.len() < count {
                return Err(match row.args[i].many {
                    Many::List(_) => miscounted(&row.args[i], count, left.len()),
                    _ => wrong(),
                });
            }
            let (part, rest) = left.split_at(count);
            out.parts[i] = part;
            left = rest;
        }
        if left.is_empty() {
            return Ok(out);
        }
        let list = row
            .args
            .iter()
            .zip(&out.parts)
            .find(|(a, _)| matches!(a.many, Many::List(_)));
        Err(match list {
            Some((list, part)) => miscounted(list, part.len(), part.len() + left.len()),
            None => wrong(),
        })
    }

    fn has(&self, name: &str) -> Option<bool> {
        let at = self
            .row
            .args
            .iter()
            .position(|a| matches!(a.kind, ArgKind::Has(of) if of == name))?;
        let flag = self.parts[at].first()?;
        Some(!flag.is_int(0))
    }

    fn counted(&self, name: &str) -> Option<usize> {
        let at = self
            .row
            .args
            .iter()
            .position(|a| matches!(a.kind, ArgKind::Count(of) if of == name))?;
        usize::try_from(self.parts[at].first()?.as_int()?).ok()
    }

    /// All arguments given for a name.
    pub fn list(&self, name: &str) -> &'a [Expr] {
        let at = self.row.args.iter().position(|a| a.name == name);
        at.map_or(&[], |at| self.parts[at])
    }

    /// An argument, if it is there.
    pub fn get(&self, name: &str) -> Option<&'a Expr> {
        self.list(name).first()
    }

    /// The text of an argument; empty where it is absent.
    pub fn text(&self, name: &str) -> &'a str {
        self.get(name).and_then(Expr::as_str).unwrap_or_default()
    }

    /// The integer value of an argument, if it is constant.
    pub fn int(&self, name: &str) -> Option<i128> {
        self.get(name).and_then(Expr::as_int)
    }

    /// Whether a flag is set.
    pub fn flag(&self, name: &str) -> bool {
        self.int(name).is_some_and(|v| v != 0)
    }

    /// The row's arguments with the values given for each.
    pub fn each(&self) -> impl Iterator<Item = (&'static Arg, &'a [Expr])> + '_ {
        self.row.args.iter().zip(self.parts.iter().copied())
    }

    /// The arguments at a position of the row's list.
    pub fn at(&self, position: usize) -> &'a [Expr] {
        self.parts[position]
    }
}

impl Row {
    /// Reads the arguments of a call and checks them. An operand that must be a constant need not be one yet: loops may be
    /// unrolled later ([`Row::read_settled`]).
    ///
    /// # Errors
    /// What is wrong, without the name of the function.
    pub fn read<'a>(&'static self, args: &'a [Expr]) -> Result<Operands<'a>, String> {
        self.read_at(args, self.constants_may_come_later())
    }

    /// Reads the arguments of a call that is printed or run, and checks them: operands that must be constants are
    /// constants.
    ///
    /// # Errors
    /// What is wrong, without the name of the function.
    pub fn read_settled<'a>(&'static self, args: &'a [Expr]) -> Result<Operands<'a>, String> {
        self.read_at(args, false)
    }

    fn read_at<'a>(&'static self, args: &'a [Expr], early: bool) -> Result<Operands<'a>, String> {
        let operands = Operands::read(self, args)?;
        let mut settled = true;
        for (arg, part) in operands.each() {
            for e in part {
                if early && arg.may_settle(e) {
                    settled = false;
                } else {
                    arg.accepts(e)?;
                }
            }
        }
        if let Some(check) = self.check
            && settled
        {
            check(&operands)?;
        }
        Ok(operands)
    }

    /// Whether the other operands can be told apart without the values of the constants: none of these counts a list.
    fn constants_may_come_later(&self) -> bool {
        let counts = |a: &Arg| matches!(a.many, Many::List(Some(_)));
        !matches!(self.cuda.form, CudaForm::Special) && !self.args.iter().any(counts)
    }
}

impl Arg {
    /// Whether an expression is not the constant that the argument must be, but may become one.
    fn may_settle(&self, e: &Expr) -> bool {
        let number = e.dtype.is_scalar() && (e.dtype.is_integer() || e.dtype.is_bool());
        matches!(self.kind, ArgKind::Immediate(..) | ArgKind::Flag | ArgKind::Bool)
            && number
            && e.as_int().is_none()
    }

    /// Checks that an expression is valid for the argument.
    ///
    /// # Errors
    /// What it must be.
    pub fn accepts(&self, e: &Expr) -> Result<(), String> {
        let name = self.name;
        let integer = e.dtype.is_scalar() && (e.dtype.is_integer() || e.dtype.is_bool());
        let expected = |what: &str| {
            let found = match &e.kind {
                ExprKind::Str(text) => format!("\"{text}\""),
                ExprKind::Int(value) => value.to_string(),
                _ => e.dtype.to_string(),
            };
            Err(format!("\"{name}\" must be {what}, found {found}"))
        };
        match self.kind {
            ArgKind::Value(dtype) if dtype.is_integer() => match integer {
                true => Ok(()),
                false => expected("an integer"),
            },
            ArgKind::Value(dtype) => match e.dtype == dtype {
                true => Ok(()),
                false => expected(&dtype.to_string()),
            },
            ArgKind::Any => match e.as_str().is_none() && !e.dtype.is_void() {
                true => Ok(()),
                false => expected("a value"),
            },
            ArgKind::Node => Ok(()),
            ArgKind::Condition | ArgKind::Mask => match integer {
                true => Ok(()),
                false => expected("an integer or a bool"),
            },
            ArgKind::Array(_) => match e.dtype.is_handle() && e.as_str().is_none() {
                true => Ok(()),
                false => expected("a pointer such as A.data"),
            },
            ArgKind::Pointer(space) => {
                let pointer = e.dtype.is_handle() && e.as_str().is_none();
                let address = match space {
                    Space::FromModifiers => e.dtype == DType::UINT32,
                    Space::Shared => matches!(e.dtype, DType::UINT32 | DType::UINT64 | DType::INT32),
                    Space::Global | Space::Generic => matches!(e.dtype, DType::UINT64 | DType::INT64),
                };
                match pointer || address && e.as_int().is_none() {
                    true => Ok(()),
                    false => expected("a pointer such as A.ptr_to([i])"),
                }
            }
            ArgKind::Register(..) => match e.dtype.is_handle() && e.as_str().is_none() {
                true => Ok(()),
                false => expected("the address of a variable, such as T.address_of(x) or A.ptr_to([i])"),
            },
            ArgKind::Element(..) => match e.dtype.is_handle() && e.as_str().is_none() {
                true => Ok(()),
                false => expected("an element of a buffer, such as acc[i]"),
            },
            ArgKind::Text(known) => match e.as_str() {
                Some(text) if known.contains(&text) => Ok(()),
                _ => {
                    let known: Vec<String> = known.iter().map(|k| format!("\"{k}\"")).collect();
                    expected(&format!("one of {}", known.join(", ")))
                }
            },
            ArgKind::DTypeName => match e.as_str() {
                Some(_) => Ok(()),
                None => expected("the name of a dtype"),
            },
            ArgKind::DType => match e.as_str().map(str::parse::<DType>) {
                Some(Ok(_)) => Ok(()),
                _ => expected("a dtype such as \"uint32\""),
            },
            ArgKind::Name => match e.as_str() {
                Some(_) => Ok(()),
                None => expected("a text"),
            },
            ArgKind::Flag | ArgKind::Bool | ArgKind::Has(_) => match e.as_int() {
                Some(0 | 1) => Ok(()),
                _ => expected("True or False, known when compiling"),
            },
            ArgKind::Count(_) => match e.as_int() {
                Some(_) => Ok(()),
                _ => expected("an integer constant"),
            },
            ArgKind::Immediate(low, high) => match e.as_int() {
                Some(v) if (low.into()..=high.into()).contains(&v) => Ok(()),
                _ if low == high => expected(&low.to_string()),
                _ => expected(&format!("an integer constant from {low} to {high}")),
            },
        }
    }
}
