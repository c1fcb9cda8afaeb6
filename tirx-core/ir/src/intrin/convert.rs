//! What does a `cvt` of PTX convert, and how? Its call holds the operands first, then the fields of the instruction's
//! text.
//!
//! The forms are those of `cvt` in the PTX ISA; the order of a call's arguments is TVM's.

use super::{Op, Operands};
use crate::ir::Expr;

pub use tirx_dtype::{Element, FORMAT_NAMES, FORMATS, Format};

/// Roundings; "" for none.
pub const ROUNDINGS: &[&str] = &[
    "", "rni", "rzi", "rmi", "rpi", "rn", "rz", "rm", "rp", "rna", "rs",
];
/// Flags, and `scaled`, which has a value.
pub const FLAGS: &[&str] = &["ftz", "sat", "relu", "satfinite"];
/// Values of `scaled`.
pub const SCALES: &[&str] = &["", "n2::ue8m0"];

const FLOAT8X2: &[&str] = &["e4m3x2", "e5m2x2", "e2m1x2", "e2m3x2", "e3m2x2"];
const FLOAT8X4: &[&str] = &["e4m3x4", "e5m2x4", "e2m1x4", "e2m3x4", "e3m2x4"];
const HALF: &[&str] = &["f16", "bf16"];
const HALFX2: &[&str] = &["f16x2", "bf16x2"];
const BASIC: &[&str] = &[
    "u8", "u16", "u32", "u64", "s8", "s16", "s32", "s64", "bf16", "f16", "f32", "f64",
];

/// A line of the instruction's grammar. Modifiers stand in its order; those with an exclamation mark are required.
struct Line {
    to: &'static [&'static str],
    from: &'static [&'static str],
    values: usize,
    rounding: &'static [&'static str],
    modifiers: &'static [&'static str],
}

const fn line(
    to: &'static [&'static str],
    from: &'static [&'static str],
    values: usize,
    rounding: &'static [&'static str],
    modifiers: &'static [&'static str],
) -> Line {
    Line {
        to,
        from,
        values,
        rounding,
        modifiers,
    }
}

/// The first line whose types and rounding fit holds.
static LINES: &[Line] = &[
    line(HALF, &["f32"], 1, &["rn", "rz"], &["relu", "satfinite"]),
    line(HALFX2, &["f32"], 2, &["rn", "rz", "rs"], &["relu", "satfinite"]),
    line(&["tf32"], &["f32"], 1, &["rna"], &["satfinite"]),
    line(&["tf32"], &["f32"], 1, &["rn", "rz"], &["satfinite", "relu"]),
    line(FLOAT8X2, &["f32"], 2, &["rn"], &["!satfinite", "relu"]),
    line(FLOAT8X2, HALFX2, 1, &["rn"], &["!satfinite", "relu"]),
    line(&["f16x2"], FLOAT8X2, 1, &["rn"], &["relu"]),
    line(
        &["bf16x2"],
        FLOAT8X2,
        1,
        &["rn"],
        &["relu", "satfinite", "scaled"],
    ),
    line(FLOAT8X4, &["f32"], 4, &["rs"], &["relu", "!satfinite"]),
    line(&["ue8m0x2"], &["f32"], 2, &["rz", "rp"], &["satfinite"]),
    line(&["ue8m0x2"], &["bf16x2"], 1, &["rz", "rp"], &["satfinite"]),
    line(&["bf16x2"], &["ue8m0x2"], 1, &["rn"], &[]),
    line(
        &["s2f6x2"],
        &["f32"],
        2,
        &["rn"],
        &["!satfinite", "relu", "scaled"],
    ),
    line(
        &["s2f6x2"],
        &["bf16x2"],
        1,
        &["rn"],
        &["!satfinite", "relu", "scaled"],
    ),
    line(
        &["bf16x2"],
        &["s2f6x2"],
        1,
        &["rn"],
        &["satfinite", "relu", "scaled"],
    ),
    line(
        BASIC,
        BASIC,
        1,
        &["", "rni", "rzi", "rmi", "rpi", "rn", "rz", "rm", "rp"],
        &["ftz", "sat"],
    ),
];

/// A parsed call of `cvt`.
#[derive(Clone, Debug)]
pub struct Conversion<'a> {
    /// The instruction without its operands: `cvt.rn.satfinite.e4m3x2.f32`.
    pub text: String,
    /// The dtype of the result.
    pub to: &'static Format,
    /// Format of each result value.
    pub from: &'static Format,
    /// The source operands: one value, or one for each that is packed.
    pub values: &'a [Expr],
    /// Random bits, where the rounding is `rs`.
    pub random: Option<&'a Expr>,
    /// Two exponents (`ue8m0x2`), where the values are scaled.
    pub scale: Option<&'a Expr>,
    /// One of [`ROUNDINGS`].
    pub rounding: &'static str,
    /// Flush subnormal float32 to zero.
    pub ftz: bool,
    /// Saturate: to the integer's range, or to [0, 1].
    pub sat: bool,
    /// Negative values become zero.
    pub relu: bool,
    /// Values that are too large become the largest finite value.
    pub satfinite: bool,
}

impl<'a> Conversion<'a> {
    /// Reads the arguments of a call.
    ///
    /// # Errors
    /// What PTX does not have.
    pub fn of(args: &'a [Expr]) -> Result<Conversion<'a>, String> {
        Conversion::read(&Operands::read(Op::PtxCvt.row(), args)?)
    }

    /// Reads the operands of a call.
    ///
    /// # Errors
    /// What PTX does not have.
    pub fn read(call: &Operands<'a>) -> Result<Conversion<'a>, String> {
        let named = |name: &str| {
            let text = call.text(name);
            Format::named(text).ok_or_else(|| format!("there is no type \"{text}\""))
        };
        let (to, from) = (named("dtype")?, named("atype")?);
        let rounding = ROUNDINGS.iter().find(|r| **r == call.text("rounding")).copied();
        let rounding =
            rounding.ok_or_else(|| format!("there is no rounding \"{}\"", call.text("rounding")))?;
        let scale = call.text("scaled");
        let given = |name: &str| match FLAGS.contains(&name) {
            true => call.flag(name),
            false => !scale.is_empty(),
        };
        // The lines of the first types that fit; those of all basic types come last.
        let fits = |line: &&Line| line.to.contains(&to.name) && line.from.contains(&from.name);
        let first = LINES.iter().find(fits).map(|l| (l.to, l.from));
        let types = |line: &&Line| first == Some((line.to, line.from));
        let Some(line) = LINES
            .iter()
            .filter(types)
            .find(|l| l.rounding.contains(&rounding))
        else {
            let known: Vec<&str> = LINES
                .iter()
                .filter(types)
                .flat_map(|l| l.rounding)
                .copied()
                .collect();
            return Err(if known.is_empty() {
                format!("there is no cvt.{}.{}", to.name, from.name)
            } else {
                format!(
                    "cvt.{}.{} rounds by {}, not by \"{rounding}\"",
                    to.name,
                    from.name,
                    known.join(", ")
                )
            });
        };
        let said: Vec<&str> = line.modifiers.iter().map(|m| m.trim_start_matches('!')).collect();
        if let Some(extra) = FLAGS
            .iter()
            .chain(&["scaled"])
            .find(|m| given(m) && !said.contains(*m))
        {
            return Err(format!("cvt.{}.{} has no .{extra}", to.name, from.name));
        }
        let always = line.modifiers.iter().filter_map(|m| m.strip_prefix('!'));
        if let Some(missing) = always.into_iter().find(|m| !given(m)) {
            return Err(format!("cvt.{}.{} needs {missing}=True", to.name, from.name));
        }
        if line.to == BASIC {
            basic(to, from, rounding)?;
        }
        let (random, scaled) = (rounding == "rs", !scale.is_empty());
        let (rbits, factor, values) = (call.get("rbits"), call.get("scale_factor"), call.list("values"));
        if rbits.is_some() != random {
            return Err("rbits= goes with rounding=\"rs\", and only with it".into());
        }
        if factor.is_some() != scaled {
            return Err("scale_factor= goes with scaled=, and only with it".into());
        }
        if values.len() != line.values {
            return Err(format!(
                "cvt.{}.{} takes {} values, found {}",
                to.name,
                from.name,
                line.values,
                values.len()
            ));
        }
        let mut text = String::from("cvt");
        for word in std::iter::once(rounding).chain(said.iter().copied().filter(|m| given(m))) {
            match word {
                "" => {}
                "scaled" => text.push_str(&format!(".scaled::{scale}")),
                word => text.push_str(&format!(".{word}")),
            }
        }
        text.push_str(&format!(".{}.{}", to.name, from.name));
        Ok(Conversion {
            text,
            to,
            from,
            values,
            random: rbits,
            scale: factor,
            rounding,
            ftz: given("ftz"),
            sat: given("sat"),
            relu: given("relu"),
            satfinite: given("satfinite"),
        })
    }

    /// The operands in order, with the formats of their registers.
    pub fn operands(&self) -> Vec<(&'static Format, &'a Expr)> {
        let format = |name| Format::named(name).unwrap_or(self.from);
        let mut all: Vec<_> = self.values.iter().map(|v| (self.from, v)).collect();
        all.extend(self.random.map(|e| (format("u32"), e)));
        all.extend(self.scale.map(|e| (format("u16"), e)));
        all
    }
}

/// Which rounding conversions between integers and floats require.
fn basic(to: &Format, from: &Format, rounding: &str) -> Result<(), String> {
    let precision = |f: &Format| match f.name {
        "bf16" => (8, 8),
        "f16" => (11, 5),
        "f32" => (24, 8),
        _ => (53, 11),
    };
    let wider = |a: (u32, u32), b: (u32, u32)| a.0 >= b.0 && a.1 >= b.1;
    let (to_integer, from_integer) = (to.element.is_integer(), from.element.is_integer());
    let wanted: &[&str] = match (from_integer, to_integer) {
        (true, true) => &[""],
        (true, false) => &["rn", "rz", "rm", "rp"],
        (false, true) => &["rni", "rzi", "rmi", "rpi"],
        (false, false) if to.name == from.name => &["", "rni", "rzi", "rmi", "rpi"],
        (false, false) if wider(precision(to), precision(from)) => &[""],
        (false, false) => &["rn", "rz", "rm", "rp"],
    };
    if wanted.contains(&rounding) {
        return Ok(());
    }
    let known: Vec<String> = wanted.iter().map(|r| format!("\"{r}\"")).collect();
    Err(format!(
        "cvt.{}.{} takes rounding={}, not \"{rounding}\"",
        to.name,
        from.name,
        known.join(" or ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::DType;

    fn read(to: &str, from: &str, values: usize, rounding: &str, flags: [i32; 4]) -> Result<String, String> {
        let mut args: Vec<Expr> = (0..values).map(|_| Expr::float(DType::FLOAT32, 1.0)).collect();
        args.extend([values as i32, 0, 0].map(Expr::int32));
        args.extend([to, from, rounding].map(Expr::string));
        args.extend(flags.map(Expr::int32));
        args.push(Expr::string(""));
        Conversion::of(&args).map(|c| c.text)
    }

    #[test]
    fn modifiers_stand_in_the_order_of_each_form() {
        let text = |t: &str| Ok(t.to_string());
        let pack = read("e4m3x2", "f32", 2, "rn", [0, 0, 1, 1]);
        assert_eq!(pack, text("cvt.rn.satfinite.relu.e4m3x2.f32"));
        let half = read("f16x2", "f32", 2, "rz", [0, 0, 1, 1]);
        assert_eq!(half, text("cvt.rz.relu.satfinite.f16x2.f32"));
        let byte = read("u8", "f32", 1, "rni", [1, 1, 0, 0]);
        assert_eq!(byte, text("cvt.rni.ftz.sat.u8.f32"));
        assert_eq!(read("f64", "f32", 1, "", [0; 4]), text("cvt.f64.f32"));
    }

    #[test]
    fn what_ptx_does_not_have_is_refused() {
        let cases = [
            (read("e4m3x2", "f32", 2, "rn", [0; 4]), "needs satfinite=True"),
            (
                read("e4m3x2", "f32", 1, "rn", [0, 0, 0, 1]),
                "takes 2 values, found 1",
            ),
            (read("u32", "f32", 1, "", [0; 4]), "takes rounding=\"rni\""),
            (read("s32", "u8", 1, "rn", [0; 4]), "takes rounding=\"\""),
            (read("f16", "f32", 1, "rm", [0; 4]), "rounds by rn, rz"),
            (
                read("e4m3x2", "u32", 1, "rn", [0; 4]),
                "there is no cvt.e4m3x2.u32",
            ),
            (read("u32", "u8", 1, "", [0, 0, 1, 0]), "has no .relu"),
        ];
        for (found, message) in cases {
            assert!(found.as_ref().is_err_and(|e| e.contains(message)), "{found:?}");
        }
    }
}
