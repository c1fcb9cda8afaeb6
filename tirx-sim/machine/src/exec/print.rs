//! `printf` from the device: C's formats, one line per lane.

use super::run::Machine;
use crate::alu::LANES;
use crate::numeric::{Kind, convert};

/// Most text one block may print, in bytes.
const MAX_OUTPUT: usize = 1 << 22;

impl Machine<'_, '_> {
    pub(super) fn print(&mut self, id: u16, mask: u32) {
        let print = &self.ctx.code.prints[id as usize];
        for lane in (0..LANES).filter(|l| mask >> l & 1 != 0) {
            let args: Vec<(Kind, u64)> = print
                .args
                .iter()
                .map(|(kind, r)| {
                    let value = if kind.wide() {
                        self.warp.v64[*r as usize][lane]
                    } else {
                        self.warp.v32[*r as usize][lane] as u64
                    };
                    (*kind, value)
                })
                .collect();
            if self.shared.output.len() < MAX_OUTPUT {
                format(&mut self.shared.output, &print.format, &args);
            }
        }
    }
}

/// Appends the values in C's format.
pub(super) fn format(out: &mut String, format: &str, args: &[(Kind, u64)]) {
    let mut args = args.iter();
    let mut rest = format.chars().peekable();
    while let Some(c) = rest.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        let mut spec = String::new();
        while let Some(&c) = rest.peek() {
            rest.next();
            if !matches!(c, 'l' | 'h' | 'z' | 'j' | 't') {
                spec.push(c);
            }
            if c.is_ascii_alphabetic() && !matches!(c, 'l' | 'h' | 'z' | 'j' | 't') || c == '%' {
                break;
            }
        }
        let Some(conversion) = spec.pop() else { break };
        if conversion == '%' {
            out.push('%');
            continue;
        }
        // A width or precision that is an argument stands before the value.
        while let Some(at) = spec.find('*') {
            let Some((kind, value)) = args.next() else { break };
            let number = convert(*kind, Kind::I64, *value) as i64;
            spec.replace_range(at..=at, &number.to_string());
        }
        let Some((kind, value)) = args.next() else {
            out.push_str("%?");
            continue;
        };
        let left = spec.contains('-');
        let digits = spec.trim_start_matches(['-', '+', ' ', '#', '0']);
        let zero = spec.trim_start_matches(['-', '+', ' ', '#']).starts_with('0') && !left;
        let (width, precision) = match digits.split_once('.') {
            Some((width, precision)) => (width, Some(precision.parse().unwrap_or(0))),
            None => (digits, None),
        };
        let width: usize = width.parse().unwrap_or(0).min(256);
        let mut text = value_text(conversion, *kind, *value, precision.map(|p: usize| p.min(64)));
        if spec.contains('+') && !text.starts_with('-') {
            text.insert(0, '+');
        }
        let missing = width.saturating_sub(text.chars().count());
        if left {
            out.push_str(&text);
            out.extend(std::iter::repeat_n(' ', missing));
        } else if zero {
            let (sign, digits) = text.split_at(text.starts_with(['-', '+']) as usize);
            out.push_str(sign);
            out.extend(std::iter::repeat_n('0', missing));
            out.push_str(digits);
        } else {
            out.extend(std::iter::repeat_n(' ', missing));
            out.push_str(&text);
        }
    }
}

fn value_text(conversion: char, kind: Kind, value: u64, precision: Option<usize>) -> String {
    let float = || f64::from_bits(convert(kind, Kind::F64, value));
    let integer = || convert(kind, Kind::I64, value) as i64;
    match conversion {
        'd' | 'i' => integer().to_string(),
        'u' if kind.wide() => value.to_string(),
        'u' => (integer() as u32).to_string(),
        'x' if kind.wide() => format!("{value:x}"),
        'x' => format!("{:x}", integer() as u32),
        'X' if kind.wide() => format!("{value:X}"),
        'X' => format!("{:X}", integer() as u32),
        'o' if kind.wide() => format!("{value:o}"),
        'o' => format!("{:o}", integer() as u32),
        'p' => format!("{value:#x}"),
        'c' => char::from(integer() as u8).to_string(),
        'f' | 'F' => format!("{:.*}", precision.unwrap_or(6), float()),
        'e' | 'E' => scientific(float(), precision.unwrap_or(6)),
        'g' | 'G' => general(float(), precision.unwrap_or(6).max(1)),
        _ => format!("%{conversion}"),
    }
}

/// C's `%e`: a sign and at least two digits in the exponent.
fn scientific(value: f64, precision: usize) -> String {
    let text = format!("{value:.precision$e}");
    match text.split_once('e') {
        Some((digits, exponent)) => {
            let (sign, exponent) = match exponent.strip_prefix('-') {
                Some(exponent) => ('-', exponent),
                None => ('+', exponent),
            };
            format!("{digits}e{sign}{exponent:0>2}")
        }
        None => text,
    }
}

/// C's `%g`: `%e` or `%f`, whichever is shorter, without trailing zeros.
fn general(value: f64, precision: usize) -> String {
    if value == 0.0 || !value.is_finite() {
        return format!("{value}");
    }
    let text = scientific(value, precision - 1);
    let exponent: i32 = text
        .split_once('e')
        .and_then(|(_, e)| e.parse().ok())
        .unwrap_or(0);
    let trim = |s: &str| {
        if s.contains('.') {
            s.trim_end_matches('0').trim_end_matches('.').to_string()
        } else {
            s.to_string()
        }
    };
    if exponent < -4 || exponent >= precision as i32 {
        let (digits, exponent) = text.split_once('e').unwrap_or((&text, "+00"));
        return format!("{}e{exponent}", trim(digits));
    }
    let decimals = (precision as i32 - 1 - exponent).max(0) as usize;
    trim(&format!("{value:.decimals$}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_as_c_does() {
        let f = |x: f32| (Kind::F32, x.to_bits() as u64);
        let i = |x: i32| (Kind::I32, x as u32 as u64);
        type Case<'a> = (&'a str, &'a [(Kind, u64)], &'a str);
        let cases: &[Case] = &[
            (
                "%d|%5d|%-5d|%05d",
                &[i(-3), i(42), i(42), i(-42)],
                "-3|   42|42   |-0042",
            ),
            ("%u %x %%", &[i(-1), i(255)], "4294967295 ff %"),
            (
                "%f %.2f %e",
                &[f(1.5), f(-0.125), f(12345.0)],
                "1.500000 -0.12 1.234500e+04",
            ),
            ("%g %g %g", &[f(0.5), f(1e10), f(100.0)], "0.5 1e+10 100"),
            ("%lld", &[(Kind::I64, -5i64 as u64)], "-5"),
            ("%X %o", &[(Kind::I64, 0xab_cdef_0123), i(8)], "ABCDEF0123 10"),
            ("%*d|%.*f", &[i(4), i(7), i(1), f(0.5)], "   7|0.5"),
            ("%d", &[], "%?"),
        ];
        for (text, args, expected) in cases {
            let mut out = String::new();
            format(&mut out, text, args);
            assert_eq!(out, *expected, "{text}");
        }
    }
}
