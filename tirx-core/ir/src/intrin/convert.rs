//! What does a `cvt` of PTX convert, and how? Its call holds the operands first, then the fields of the instruction's
//! text.
//!
//! The forms are those of `cvt` in the PTX ISA; the order of a call's arguments is TVM's.

use super::row::Release;
use super::{GpuSet, Op, Operands};
use crate::ir::{DType, Expr};

pub use tirx_dtype::{Element, FORMAT_NAMES, FORMATS, Format};

/// Roundings; "" for none.
pub const ROUNDINGS: &[&str] = &[
    "", "rni", "rzi", "rmi", "rpi", "rn", "rz", "rm", "rp", "rna", "rs",
];
/// Flags, and `scaled`, which has a value.
pub const FLAGS: &[&str] = &["ftz", "sat", "relu", "satfinite"];
/// Values of `scaled`.
pub const SCALES: &[&str] = &["", "n2::ue8m0"];

const FLOAT8X2: &[&str] = &["e4m3x2", "e5m2x2"];
const FLOAT4X2: &[&str] = &["e2m1x2"];
const FLOAT6X2: &[&str] = &["e2m3x2", "e3m2x2"];
const NARROWX2: &[&str] = &["e2m1x2", "e2m3x2", "e3m2x2"];
const ALL_NARROWX2: &[&str] = &["e4m3x2", "e5m2x2", "e2m1x2", "e2m3x2", "e3m2x2"];
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
    /// The GPUs that have it.
    arch: GpuSet,
    /// The first release of CUDA whose ptxas knows it.
    release: Release,
}

const fn line(
    to: &'static [&'static str],
    from: &'static [&'static str],
    values: usize,
    rounding: &'static [&'static str],
    modifiers: &'static [&'static str],
    arch: GpuSet,
) -> Line {
    Line {
        to,
        from,
        values,
        rounding,
        modifiers,
        arch,
        release: (12, 0),
    }
}

impl Line {
    const fn since(self, major: u32, minor: u32) -> Line {
        Line {
            release: (major, minor),
            ..self
        }
    }
}

const SM_80: GpuSet = GpuSet::least(80);
const SM_89: GpuSet = GpuSet::least(89);
const SM_90: GpuSet = GpuSet::least(90);
/// What has formats narrower than 8 bits.
pub(super) const NARROW: GpuSet = GpuSet::families(&[100, 110, 120]);
const FIXED_POINT: GpuSet = GpuSet::exact(&[100, 110, 120]);
/// What rounds by random bits.
const STOCHASTIC: GpuSet = GpuSet::exact(&[100]);

/// The first line whose types and rounding fit holds. GPUs and releases are what ptxas 13.0, 13.1 and 13.2 take.
#[rustfmt::skip]
static LINES: &[Line] = &[
    line(HALF, &["f32"], 1, &["rn", "rz"], &["relu", "satfinite"], SM_80),
    line(HALFX2, &["f32"], 2, &["rn", "rz"], &["relu", "satfinite"], SM_80),
    line(HALFX2, &["f32"], 2, &["rs"], &["relu", "satfinite"], STOCHASTIC),
    line(&["tf32"], &["f32"], 1, &["rna"], &["satfinite"], SM_80),
    line(&["tf32"], &["f32"], 1, &["rn", "rz"], &["satfinite", "relu"], SM_90),
    line(FLOAT8X2, &["f32"], 2, &["rn"], &["!satfinite", "relu"], SM_89),
    line(NARROWX2, &["f32"], 2, &["rn"], &["!satfinite", "relu"], NARROW),
    line(FLOAT8X2, &["f16x2"], 1, &["rn"], &["!satfinite", "relu"], SM_89),
    line(FLOAT4X2, &["f16x2"], 1, &["rn"], &["!satfinite", "relu"], NARROW),
    line(FLOAT6X2, &["f16x2"], 1, &["rn"], &["!satfinite", "relu"], NARROW).since(13, 1),
    line(ALL_NARROWX2, &["bf16x2"], 1, &["rn"], &["!satfinite", "relu"], NARROW).since(13, 1),
    line(&["f16x2"], FLOAT8X2, 1, &["rn"], &["relu"], SM_89),
    line(&["f16x2"], NARROWX2, 1, &["rn"], &["relu"], NARROW),
    line(&["bf16x2"], ALL_NARROWX2, 1, &["rn"], &["relu", "satfinite", "scaled"], NARROW).since(13, 2),
    line(FLOAT8X4, &["f32"], 4, &["rs"], &["relu", "!satfinite"], STOCHASTIC),
    line(&["ue8m0x2"], &["f32"], 2, &["rz", "rp"], &["satfinite"], NARROW),
    line(&["ue8m0x2"], &["bf16x2"], 1, &["rz", "rp"], &["satfinite"], NARROW),
    line(&["bf16x2"], &["ue8m0x2"], 1, &["rn"], &[], NARROW),
    line(&["s2f6x2"], &["f32"], 2, &["rn"], &["!satfinite", "relu", "scaled"], FIXED_POINT).since(13, 1),
    line(&["s2f6x2"], &["bf16x2"], 1, &["rn"], &["!satfinite", "relu", "scaled"], FIXED_POINT).since(13, 1),
    line(&["bf16x2"], &["s2f6x2"], 1, &["rn"], &["satfinite", "relu", "scaled"], FIXED_POINT).since(13, 1),
    line(BASIC, BASIC, 1, &["", "rni", "rzi", "rmi", "rpi", "rn", "rz", "rm", "rp"], &["ftz", "sat"], GpuSet::ANY),
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
    /// The GPUs that have it.
    pub arch: GpuSet,
    /// The first release of CUDA that knows it.
    pub release: Release,
}

impl<'a> Conversion<'a> {
    /// Reads the arguments of a call.
    ///
    /// # Errors
    /// What PTX does not have.
    pub fn from_args(args: &'a [Expr]) -> Result<Conversion<'a>, String> {
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
        let mut arch = line.arch;
        if line.to == BASIC {
            basic(to, from, rounding)?;
            arch = basic_modifiers(to, from, given("ftz"), given("sat"))?;
        } else if to.name == "tf32" && given("satfinite") && rounding != "rna" {
            arch = GpuSet::least(100);
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
        Conversion {
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
            arch,
            release: line.release,
        }
        .checked()
    }

    /// Refuses operands that no register of the instruction can hold.
    fn checked(self) -> Result<Conversion<'a>, String> {
        let bits = |d: DType| u32::from(d.bits) * u32::from(d.lanes);
        for (format, e) in self.operands() {
            let (given, carrier) = (e.dtype, format.carrier);
            let number = given.is_scalar() && (given.is_integer() || given.is_bool());
            let fits = match carrier.is_integer() {
                true => number || !given.is_handle() && bits(given) == bits(carrier),
                false => given.is_scalar() && (given.is_floating() || number),
            };
            if !fits || e.as_str().is_some() {
                return Err(format!(
                    "a {} is a value of {carrier}, found {given}{}",
                    format.name,
                    if given.is_handle() {
                        ": give the element, not its address"
                    } else {
                        ""
                    }
                ));
            }
        }
        Ok(self)
    }

    /// The operands as the instruction's registers hold them: floats by their bits.
    pub fn passed(&self) -> Vec<(&'static Format, Expr)> {
        let pass = |(format, e): (&'static Format, &Expr)| {
            let by_bits = format.carrier.is_integer() && !(e.dtype.is_integer() || e.dtype.is_bool());
            let vector = format.carrier.is_integer() && !e.dtype.is_scalar();
            let e = match by_bits || vector {
                true => Expr::call(Op::Reinterpret, format.carrier, vec![e.clone()]).at(e.span),
                false => e.clone(),
            };
            (format, e)
        };
        self.operands().into_iter().map(pass).collect()
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

/// Which modifiers conversions between integers and floats have, and the GPUs that have them.
fn basic_modifiers(to: &Format, from: &Format, ftz: bool, sat: bool) -> Result<GpuSet, String> {
    let name = format!("cvt.{}.{}", to.name, from.name);
    let either = |word: &str| to.name == word || from.name == word;
    if ftz && !either("f32") {
        return Err(format!("{name} has no .ftz: it is about float32"));
    }
    let (integer, bits) = (
        |f: &Format| f.element.is_integer(),
        |f: &Format| u32::from(f.carrier.bits),
    );
    if sat && integer(to) && integer(from) {
        let (signed, from_signed) = (to.name.starts_with('s'), from.name.starts_with('s'));
        let always = match (from_signed, signed) {
            (true, false) => false,
            (false, true) => bits(from) < bits(to),
            _ => bits(from) <= bits(to),
        };
        if always {
            return Err(format!("{name} has no .sat: every value fits"));
        }
    }
    if !either("bf16") {
        return Ok(GpuSet::ANY);
    }
    if sat {
        return Err(format!("{name} has no .sat"));
    }
    if either("u8") || either("s8") {
        return Err(format!("there is no {name}: convert by way of 16 or 32 bits"));
    }
    Ok(if to.name == "f32" && !ftz { SM_80 } else { SM_90 })
}

/// A form of the instruction as a call writes it: destination, source, how many values, rounding and flags.
pub type CvtForm = (&'static str, &'static str, usize, &'static str, Vec<&'static str>);

/// Every form of the grammar, with each set of optional modifiers; of the basic types those that exist.
pub fn forms() -> Vec<CvtForm> {
    let mut all = Vec::new();
    for line in LINES {
        for (to, from) in line
            .to
            .iter()
            .flat_map(|to| line.from.iter().map(move |from| (*to, *from)))
        {
            for rounding in line.rounding {
                for set in 0..1_usize << line.modifiers.len() {
                    let given = |(i, _): &(usize, &&str)| set >> i & 1 == 1;
                    let chosen = line.modifiers.iter().enumerate().filter(given);
                    let flags = chosen.map(|(_, m)| m.trim_start_matches('!')).collect();
                    all.push((to, from, line.values, *rounding, flags));
                }
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(to: &str, from: &str, values: usize, rounding: &str, flags: [i32; 4]) -> Result<String, String> {
        let mut args: Vec<Expr> = (0..values).map(|_| Expr::float(DType::FLOAT32, 1.0)).collect();
        args.extend([values as i32, 0, 0].map(Expr::int32));
        args.extend([to, from, rounding].map(Expr::string));
        args.extend(flags.map(Expr::int32));
        args.push(Expr::string(""));
        Conversion::from_args(&args).map(|c| c.text)
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
