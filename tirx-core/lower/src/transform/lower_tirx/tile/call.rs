//! A call, as variants read it: its operands by the names of the operation's parameters, its options by theirs.

use super::decline::Decline;
use super::option::{OptionKind, TileOption};
use crate::ir::{AttrValue, BufferRegion, DType, ExecScope, Expr, TileArg, TileCall, TileOp, Var};
use crate::source::Span;
use tirx_source::suggest;

/// An input that is a region or one scalar for all elements.
#[derive(Clone)]
pub(super) enum Operand {
    /// A region.
    Region(BufferRegion),
    /// One scalar for all elements.
    Scalar(Expr),
}

impl Operand {
    /// The dtype of its elements.
    pub(super) fn dtype(&self) -> DType {
        match self {
            Operand::Region(region) => region.buffer.dtype,
            Operand::Scalar(e) => e.dtype,
        }
    }
}

/// See the [module](self).
pub(super) struct PrimitiveCall<'a> {
    /// The statement.
    pub(super) tile: &'a TileCall,
    /// Which tile primitive.
    pub(super) op: TileOp,
    /// Who computes it.
    pub(super) scope: ExecScope,
    /// Its place.
    pub(super) span: Span,
}

impl<'a> PrimitiveCall<'a> {
    pub(super) fn new(tile: &'a TileCall, span: Span) -> PrimitiveCall<'a> {
        PrimitiveCall {
            tile,
            op: tile.op,
            scope: tile.scope,
            span,
        }
    }

    /// The variant that `dispatch=` names.
    pub(super) fn dispatch(&self) -> Option<&'a str> {
        self.tile.dispatch.as_deref()
    }

    fn arg(&self, name: &str) -> Option<&'a TileArg> {
        let params = self.op.info().params;
        let at = params.iter().position(|(param, _)| *param == name);
        debug_assert!(at.is_some(), "{} has no parameter {name}", self.op.name());
        self.tile.args.get(at?)
    }

    /// The region of a parameter.
    ///
    /// # Errors
    /// The argument is no region.
    pub(super) fn region(&self, name: &str) -> Result<&'a BufferRegion, Decline> {
        let not = || Decline::from(format!("{name} is no region"));
        self.arg(name).and_then(TileArg::as_region).ok_or_else(not)
    }

    /// The region of a parameter that may be left out.
    pub(super) fn optional_region(&self, name: &str) -> Option<&'a BufferRegion> {
        self.arg(name)?.as_region()
    }

    /// A region or a scalar; `None` where the argument is left out.
    pub(super) fn operand(&self, name: &str) -> Option<Operand> {
        match self.arg(name)? {
            TileArg::Region(region) => Some(Operand::Region(region.clone())),
            TileArg::Expr(e) => Some(Operand::Scalar(e.clone())),
            _ => None,
        }
    }

    /// A scalar; `None` where the argument is left out.
    pub(super) fn scalar(&self, name: &str) -> Option<&'a Expr> {
        self.arg(name)?.as_expr()
    }

    /// A truth value that is known when the kernel is compiled.
    ///
    /// # Errors
    /// It is not known.
    pub(super) fn flag(&self, name: &str) -> Result<bool, Decline> {
        match self.scalar(name) {
            None => Ok(false),
            Some(e) => match e.as_int() {
                Some(value) => Ok(value != 0),
                None => Err(format!("{name} is not known when the kernel is compiled").into()),
            },
        }
    }

    /// Dimensions, as written: counted from the end where negative.
    pub(super) fn axes(&self, name: &str) -> &'a [i64] {
        match self.arg(name) {
            Some(TileArg::Axes(axes)) => axes,
            _ => &[],
        }
    }

    /// Another operation.
    ///
    /// # Errors
    /// The argument names none.
    pub(super) fn operation(&self, name: &str) -> Result<TileOp, Decline> {
        match self.arg(name) {
            Some(TileArg::Operation(op)) => Ok(*op),
            _ => Err(format!("{name} is no operation").into()),
        }
    }

    /// The argument of a parameter as it stands; [`TileArg::None`] where it is left out.
    pub(super) fn argument(&self, name: &str) -> TileArg {
        self.arg(name).cloned().unwrap_or(TileArg::None)
    }

    /// A function of coordinates.
    pub(super) fn lambda(&self, name: &str) -> Option<(&'a [Var], &'a Expr)> {
        match self.arg(name)? {
            TileArg::Lambda(vars, body) => Some((vars, body)),
            _ => None,
        }
    }

    /// Output and input of a copy, a cast or a reduction.
    ///
    /// # Errors
    /// One of them is no region.
    pub(super) fn moved(&self) -> Result<(&'a BufferRegion, &'a BufferRegion), Decline> {
        Ok((self.region("dst")?, self.region("src")?))
    }

    /// All regions, in the order of the parameters.
    pub(super) fn regions(&self) -> impl Iterator<Item = &'a BufferRegion> {
        self.tile.args.iter().filter_map(TileArg::as_region)
    }

    /// An option's value; `None` where it is left out or `None`.
    pub(super) fn option(&self, name: &str) -> Option<&'a AttrValue> {
        self.tile
            .config
            .get(name)
            .filter(|v| !matches!(v, AttrValue::None))
    }

    /// An option that is a text; empty where it is left out.
    pub(super) fn option_text(&self, name: &str) -> &'a str {
        self.option(name).and_then(AttrValue::as_str).unwrap_or_default()
    }

    /// An option that is an integer.
    pub(super) fn option_int(&self, name: &str) -> Option<i64> {
        self.option(name).and_then(AttrValue::as_int)
    }

    /// An option that is a truth value; false where it is left out.
    pub(super) fn option_flag(&self, name: &str) -> bool {
        self.option_int(name).is_some_and(|v| v != 0)
    }

    /// An option that is an expression; integers are int32.
    pub(super) fn option_expr(&self, name: &str) -> Option<Expr> {
        match self.option(name)? {
            AttrValue::Expr(e) => Some(e.clone()),
            value => {
                let value = i32::try_from(value.as_int()?).ok()?;
                Some(Expr::int32(value).at(self.span))
            }
        }
    }
}

/// Checks a call's options: each is one that some variant of the operation reads, and has a value of its kind.
///
/// # Errors
/// The mistake.
pub(super) fn check_options<'o>(
    call: &PrimitiveCall<'_>,
    known: impl Iterator<Item = &'o TileOption> + Clone,
) -> Result<(), Decline> {
    let op = call.op.name();
    for (name, value) in call.tile.config.iter() {
        let Some(option) = known.clone().find(|o| *o.name == **name) else {
            let names = || known.clone().map(|o| o.name);
            // `dispatch` is written beside the options.
            let help = match suggest(name, names().chain(["dispatch"])) {
                Some(near) => format!("did you mean \"{near}\"?"),
                None => {
                    let mut names: Vec<&str> = names().collect();
                    names.sort_unstable();
                    names.dedup();
                    match names.is_empty() {
                        true => format!("{op} has no options"),
                        false => format!("the options of {op} are {}", names.join(", ")),
                    }
                }
            };
            return Err(Decline::mistake(format!("{op} has no option \"{name}\""), help));
        };
        if matches!(value, AttrValue::None) {
            continue;
        }
        let int = value.as_int();
        let expected = match option.kind {
            OptionKind::Flag if matches!(int, Some(0 | 1)) => None,
            OptionKind::Flag => Some("True or False, known when compiling".to_string()),
            OptionKind::Int if int.is_some() => None,
            OptionKind::Int => Some("an integer that is known when compiling".to_string()),
            OptionKind::Word(words) if value.as_str().is_some_and(|text| words.contains(&text)) => None,
            OptionKind::Word(words) => Some(list(words)),
            OptionKind::Text if value.as_str().is_some() => None,
            OptionKind::Text => Some("a text".to_string()),
            OptionKind::Value => match value {
                AttrValue::Expr(e) if e.dtype.is_integer() || e.dtype.is_bool() => None,
                _ if int.is_some() => None,
                _ => Some("an integer".to_string()),
            },
            OptionKind::Pointer => match value {
                AttrValue::Expr(e) if e.dtype.is_handle() || e.dtype.is_integer() => None,
                _ => Some("a pointer such as bar.ptr_to([0])".to_string()),
            },
            OptionKind::Any => None,
        };
        if let Some(expected) = expected {
            let found = match value.as_str() {
                Some(text) => format!(", found \"{text}\""),
                None => int.map_or(String::new(), |v| format!(", found {v}")),
            };
            return Err(Decline::mistake(
                format!("{op}: {name} must be {expected}{found}"),
                format!("{name}: {}", option.doc),
            ));
        }
    }
    Ok(())
}

/// `"a", "b" or "c"`.
fn list(words: &[&str]) -> String {
    let quoted: Vec<String> = words.iter().map(|w| format!("\"{w}\"")).collect();
    match quoted.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        Some((last, _)) => last.clone(),
        None => "nothing".to_string(),
    }
}
