//! `T.ptx.cvt`: as users write it, with keywords, and as it is printed, with all arguments in order.

use super::super::eval::{Interpreter, Param, Value, keyword};
use super::call::{Call, Function, variadic};
use super::convert;
use crate::diagnostic::Result;
use crate::intrin::Op;
use crate::intrin::convert::{Conversion, FLAGS, FORMATS, Format, ROUNDINGS, SCALES};
use crate::ir::Expr;

const CVT: &[Param] = &[
    keyword("dtype"),
    keyword("atype"),
    keyword("rounding"),
    keyword("ftz"),
    keyword("sat"),
    keyword("relu"),
    keyword("satfinite"),
    keyword("scaled"),
    keyword("rbits"),
    keyword("scale_factor"),
];

pub(super) static FUNCTIONS: &[Function] = &[variadic("T.ptx.cvt", CVT, cvt)];

fn cvt(_interp: &mut Interpreter, call: &mut Call) -> Result<Value> {
    let args = if call.get("atype").is_some() {
        written(call)?
    } else {
        call.rest_args()?
    };
    // What else the instruction does not have is said when it is written; printed IR holds what it holds.
    let to = args.len().checked_sub(Conversion::MODIFIERS).filter(|n| *n > 0);
    let to = to.and_then(|n| args[n + 3].as_str());
    let Some(to) = to.and_then(Format::named) else {
        return call.fail_with(
            "takes the dtype, the values, and atype=",
            "T.ptx.cvt(\"f16x2\", x, y, atype=\"f32\", rounding=\"rn\")",
        );
    };
    Ok(Value::Expr(
        Expr::call(Op::PtxCvt, to.carrier, args).at(call.span),
    ))
}

/// One of the names that there are.
fn choice(call: &Call, what: &str, name: &str, known: &[&str]) -> Result<Expr> {
    if !known.contains(&name) {
        let known: Vec<String> = known.iter().map(|k| format!("\"{k}\"")).collect();
        return call.fail(format!(
            "{what} must be one of {}, found \"{name}\"",
            known.join(", ")
        ));
    }
    Ok(Expr::string(name).at(call.span))
}

/// The arguments in order, from what the user wrote.
fn written(call: &Call) -> Result<Vec<Expr>> {
    let types: Vec<&str> = FORMATS.iter().map(|f| f.name).collect();
    let (to, values) = match call.get("dtype") {
        Some(_) => (call.text("dtype")?, &call.rest[..]),
        None => match call.rest.split_first() {
            Some(((first, _), rest)) if convert::text(first).is_some() => {
                (convert::text(first).unwrap_or_default(), rest)
            }
            _ => return call.fail("the first argument must be the type to convert to, such as \"f16x2\""),
        },
    };
    let mut args = Vec::new();
    for (value, span) in values {
        args.push(convert::argument(value, span.or(call.span), call.function)?);
    }
    let count = args.len() as i32;
    let rounding = call.text_or("rounding", "")?;
    let scaled = call.text_or("scaled", "")?;
    let (random, scale) = (call.get("rbits").is_some(), call.get("scale_factor").is_some());
    if random != (&*rounding == "rs") {
        return call.fail("rbits= goes with rounding=\"rs\", and only with it");
    }
    if scale == scaled.is_empty() {
        return call.fail("scale_factor= goes with scaled=, and only with it");
    }
    for (given, name) in [(random, "rbits"), (scale, "scale_factor")] {
        if given {
            args.push(call.argument(name)?);
        }
    }
    args.extend([count, random.into(), scale.into()].map(|n| Expr::int32(n).at(call.span)));
    args.push(choice(call, "the type to convert to", &to, &types)?);
    args.push(choice(call, "atype", &call.text("atype")?, &types)?);
    args.push(choice(call, "rounding", &rounding, ROUNDINGS)?);
    for flag in FLAGS {
        args.push(Expr::int32(call.flag(flag, false)?.into()).at(call.span));
    }
    args.push(choice(call, "scaled", &scaled, SCALES)?);
    Ok(args)
}
