//! Which combinations of modifiers does PTX not have, beyond what a line of the tables says?
//!
//! A rule gets the tokens of a call and says what is wrong with them.

use super::lookup::Tokens;
use super::types;

type Check = fn(&Tokens) -> Option<String>;

/// The rules by their names in the tables.
const CHECKS: &[(&str, Check)] = &[
    ("width", width),
    ("narrow", |t| {
        let bits = types::dtypes(t.get("type"))
            .first()
            .map_or(0, |d| usize::from(d.bits));
        let total = bits * t.number("vec", 0);
        (total > 128).then(|| {
            format!(
                "{} of {} are {total} bits: an access has up to 128",
                t.get("vec"),
                t.get("type")
            )
        })
    }),
    ("b128", |t| {
        (t.get("type") == "b128" && !t.get("cop").is_empty()).then(|| "b128 has no cache operator".into())
    }),
    ("scoped", scoped),
    ("order", order),
    ("bulk", bulk),
    ("relaxed", |t| {
        (t.has("relaxed") == t.get("scope").is_empty())
            .then(|| "relaxed and a scope are given together or not at all".into())
    }),
    ("layout", |_| None),
    ("rows", rows),
    ("policy", |_| None),
    ("override", attribute),
    ("override_policy", attribute),
    ("registers", |t| {
        let shape = t.get("shape");
        let most = match shape {
            "16x128b" => 64,
            "16x256b" => 32,
            _ => 128,
        };
        (t.number("num", 0) > most).then(|| format!("{shape} goes up to x{most}, found {}", t.get("num")))
    }),
    ("same", |t| {
        (t.get("dtype") != t.get("ctype"))
            .then(|| format!("{}: the types of D and C are the same", t.get("shape")))
    }),
    ("scale", scale),
    ("format", |t| {
        (t.has("b8x16") == t.get("format").is_empty())
            .then(|| "b8x16 and the format that is spread to it are given together or not at all".into())
    }),
    ("ashift", |t| {
        (t.has("ashift") && matches!(t.get("collector_a"), "collector::a::fill" | "collector::a::use"))
            .then(|| "ashift does not go with filling or using the collector of A".into())
    }),
    ("sparse_kind", |t| {
        (t.has("sp") && t.get("kind") != "kind::mxf8f6f4").then(|| {
            format!(
                "sparse products with a collector are of kind::mxf8f6f4, not {}",
                t.get("kind")
            )
        })
    }),
    ("spdecompress", decompress),
    ("cvt", convert),
    ("cvt_saturated", |t| {
        (!t.has("relu") && !t.has("satfinite")).then(|| "relu or satfinite".into())
    }),
    ("cvt_narrow", |t| {
        (t.get("rnd") == "rn" && !t.has("pzo") && !t.has("scaled::n1::ue8m0"))
            .then(|| "rn alone is the older conversion".into())
    }),
];

/// What is wrong with the tokens by a rule; a rule of an unknown name is a mistake of the tables, which a test finds.
pub(super) fn check(name: &str, tokens: &Tokens) -> Option<String> {
    let (_, check) = CHECKS.iter().find(|(known, _)| *known == name)?;
    check(tokens)
}

/// Whether there is a rule of this name.
#[cfg(test)]
pub(super) fn exists(name: &str) -> bool {
    CHECKS.iter().any(|(known, _)| *known == name)
}

/// The PTX ISA, ld and st: an access has up to 128 bits, or 256 of global memory.
fn width(tokens: &Tokens) -> Option<String> {
    let (vec, ty) = (tokens.get("vec"), tokens.get("type"));
    let bits = types::dtypes(ty).first().map_or(0, |d| usize::from(d.bits));
    let lanes = if vec.is_empty() {
        1
    } else {
        tokens.number("vec", 0)
    };
    let total = bits * lanes;
    if !vec.is_empty() && ty == "b128" {
        return Some("b128 is not in vectors".into());
    }
    let wide = total == 256 && matches!((vec, bits), ("v8", 32) | ("v4", 64));
    if !wide && (total > 128 || vec == "v8") {
        return Some(format!(
            "{vec} of {ty} are {total} bits: an access has up to 128, or 256 as v8 of 32 bits or v4 of 64"
        ));
    }
    if wide && !matches!(tokens.get("space"), "" | "global") {
        return Some("an access of 256 bits is of global memory".into());
    }
    let evicts = !tokens.get("l2").is_empty();
    if evicts && !wide {
        return Some(
            "a priority of eviction from L2 needs an access of 256 bits: v8 of 32 bits, v4 of 64".into(),
        );
    }
    let volatile = tokens.has("volatile");
    if volatile && !tokens.get("prefetch").is_empty() && !matches!(tokens.get("space"), "" | "global") {
        return Some("a prefetch size is for global memory".into());
    }
    None
}

fn scoped(tokens: &Tokens) -> Option<String> {
    let (sem, scope) = (tokens.get("sem"), tokens.get("scope"));
    match (sem, scope) {
        ("" | "weak", "") => None,
        ("" | "weak", _) => Some(format!("scope {scope} needs relaxed, acquire or release")),
        (_, "") => Some(format!("{sem} needs a scope: cta, cluster, gpu or sys")),
        _ => None,
    }
}

fn order(tokens: &Tokens) -> Option<String> {
    (tokens.get("sem").is_empty() != tokens.get("scope").is_empty()).then(|| {
        "the order (release, acquire, relaxed) and the scope are given together or not at all".into()
    })
}

fn bulk(tokens: &Tokens) -> Option<String> {
    let (sem, scope) = (tokens.get("sem"), tokens.get("scope"));
    if !scope.is_empty() && sem != "relaxed" {
        return Some(format!("scope {scope} needs relaxed"));
    }
    if sem == "relaxed" && scope.is_empty() {
        return Some("relaxed needs a scope: cta, cluster, gpu or sys".into());
    }
    ((sem == "relaxed") != tokens.has("b128"))
        .then(|| "relaxed and b128 are given together or not at all".into())
}

fn rows(tokens: &Tokens) -> Option<String> {
    let mode = tokens.get("mode");
    let four = matches!(mode, "tile::gather4" | "tile::scatter4");
    (four && tokens.get("dim") != "2d").then(|| format!("{mode} is of tensors of two dimensions: 2d"))
}

fn attribute(tokens: &Tokens) -> Option<String> {
    let one = tokens.get("dim") == "1d";
    match (tokens.get("attribute"), one) {
        ("override::global_dim", false) => Some("override::global_dim is for 1d".into()),
        ("override::global_dim_stride", true) => Some("override::global_dim_stride is for 2d to 5d".into()),
        _ => None,
    }
}

/// The PTX ISA, tcgen05.mma: sizes of the vectors that share a scale.
fn scale(tokens: &Tokens) -> Option<String> {
    let legal: &[&str] = match tokens.get("kind") {
        "kind::mxf8f6f4" => &["scale_vec::1X", "block32"],
        "kind::mxf4" => &["scale_vec::2X", "block32"],
        _ => &["scale_vec::2X", "scale_vec::4X", "block16", "block32"],
    };
    let vector = tokens.get("vector");
    (!legal.contains(&vector))
        .then(|| format!("{} has {}, not {vector}", tokens.get("kind"), legal.join(", ")))
}

fn decompress(tokens: &Tokens) -> Option<String> {
    let (stored, dense) = (tokens.number("factor", 0), tokens.number("factor", 1));
    let (size, index, num) = (
        tokens.number("elemsize", 0),
        tokens.number("idxsize", 0),
        tokens.number("num", 0),
    );
    let bits = dense * size * num;
    if stored * size > 32 {
        return Some("the stored elements of one step fit in 32 bits".into());
    }
    if 1 << index < dense {
        return Some(format!("{} cannot index {dense} elements", tokens.get("idxsize")));
    }
    (!(32..=4096).contains(&bits)).then(|| "the dense vector has 1 to 128 registers".into())
}

/// The PTX ISA, cvt of scalars: which conversions round, and how.
fn convert(tokens: &Tokens) -> Option<String> {
    let (d, a, rnd) = (tokens.get("dtype"), tokens.get("atype"), tokens.get("rnd"));
    let float = |ty: &str| matches!(ty, "bf16" | "f16" | "f32" | "f64");
    // Bits of significand and exponent of the floats.
    let format = |ty: &str| match ty {
        "f16" => (11, 5),
        "bf16" => (8, 8),
        "f32" => (24, 8),
        _ => (53, 11),
    };
    let integer_rounding = matches!(rnd, "rni" | "rzi" | "rmi" | "rpi");
    let float_rounding = !rnd.is_empty() && !integer_rounding;
    let (ftz, sat) = (tokens.has("ftz"), tokens.has("sat"));
    let bits = |ty: &str| ty[1..].parse::<u32>().unwrap_or(0);
    let covers = match (d.starts_with('s'), a.starts_with('s')) {
        (true, false) => bits(d) > bits(a),
        (false, true) => false,
        _ => bits(d) >= bits(a),
    };
    match (float(d), float(a)) {
        (true, true) => {
            let loses = format(d).0 < format(a).0 || format(d).1 < format(a).1;
            if loses && !float_rounding {
                return Some(format!("{a} to {d} rounds: one of rn, rz, rm, rp"));
            }
            if !loses && float_rounding {
                return Some(format!("{a} to {d} is exact and has no rounding"));
            }
            if integer_rounding && d != a {
                return Some(format!("{rnd} rounds to an integer within one type"));
            }
        }
        (false, true) if !integer_rounding => {
            return Some(format!(
                "{a} to {d} rounds to an integer: one of rni, rzi, rmi, rpi"
            ));
        }
        (true, false) if !float_rounding => return Some(format!("{a} to {d} rounds: one of rn, rz, rm, rp")),
        (false, false) if !rnd.is_empty() => return Some(format!("{a} to {d} does not round")),
        _ => {}
    }
    if ftz && d != "f32" && a != "f32" {
        return Some("ftz is for f32".into());
    }
    if sat && !float(d) && !float(a) && covers {
        return Some(format!("{d} holds every {a}: there is nothing to saturate"));
    }
    if sat && (d == "bf16" || a == "bf16") {
        return Some("there is no sat of bf16".into());
    }
    let byte = |ty: &str| matches!(ty, "u8" | "s8");
    if d == "bf16" && byte(a) || a == "bf16" && byte(d) {
        return Some("bf16 is not converted to or from integers of 8 bits".into());
    }
    None
}
