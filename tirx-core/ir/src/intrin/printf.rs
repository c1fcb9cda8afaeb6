//! Formats of `printf`: which arguments they take, and how the CUDA text has to spell them.

use super::operands::Operands;
use crate::ir::DType;

/// The conversions of a format of `printf`, each with what it takes.
fn conversions(format: &str) -> Result<Vec<(String, &'static str)>, String> {
    let mut found = Vec::new();
    let mut rest = format.chars();
    while let Some(c) = rest.next() {
        if c != '%' {
            continue;
        }
        let mut conversion = String::from("%");
        loop {
            let Some(c) = rest.next() else {
                return Err(format!(
                    "the format ends within \"{conversion}\": a percent sign is written %%"
                ));
            };
            conversion.push(c);
            let takes = match c {
                '-' | '+' | ' ' | '#' | '0'..='9' | '.' | 'l' | 'h' | 'z' | 'j' | 't' | 'L' => continue,
                '%' => break,
                // A width or precision that is an argument; the conversion goes on.
                '*' | 'd' | 'i' | 'u' | 'x' | 'X' | 'o' | 'c' => INTEGER,
                'e' | 'E' | 'f' | 'F' | 'g' | 'G' | 'a' | 'A' => FLOAT,
                's' => TEXT,
                'p' => POINTER,
                _ => {
                    return Err(format!(
                        "printf has no \"{conversion}\": a percent sign is written %%"
                    ));
                }
            };
            found.push((conversion.clone(), takes));
            if c != '*' {
                break;
            }
        }
    }
    Ok(found)
}

const INTEGER: &str = "an integer";
const FLOAT: &str = "a float";
const TEXT: &str = "a text that is known when compiling";
const POINTER: &str = "a pointer";

/// Checks the arguments of `printf` against its format. Widths of integers are not compared: [`sized`] fits the format to them.
pub(super) fn printed(call: &Operands) -> Result<(), String> {
    let (wanted, args) = (conversions(call.text("fmt"))?, call.list("args"));
    for (i, (conversion, takes)) in wanted.iter().enumerate() {
        let Some(arg) = args.get(i) else {
            return Err(format!(
                "\"{conversion}\" of the format has no argument: {} given",
                args.len()
            ));
        };
        let (text, dtype) = (arg.as_str().is_some(), arg.dtype);
        let fits = dtype.is_scalar()
            && match *takes {
                INTEGER => dtype.is_integer() || dtype.is_bool(),
                FLOAT => dtype.is_floating(),
                POINTER => !text && dtype.is_handle() || dtype.is_integer() && dtype.bits == 64,
                _ => text || dtype.is_handle(),
            };
        if !fits {
            let found = if text {
                "a text".to_string()
            } else {
                dtype.to_string()
            };
            return Err(format!(
                "\"{conversion}\" of the format takes {takes}, argument {} is {found}",
                i + 1
            ));
        }
    }
    match args.len() - wanted.len() {
        0 => Ok(()),
        more => Err(format!(
            "the format has {} conversions, and {more} more arguments are given",
            wanted.len()
        )),
    }
}

/// A format in which the conversions of integers have the length of their arguments: `%d` is `%lld` where the argument has 64
/// bits, since `printf` on a GPU takes as many bytes as the conversion says, and reads all later arguments from wrong places
/// otherwise. Formats that fit their arguments stay as they are.
pub fn sized(format: &str, dtypes: &[DType]) -> String {
    const LENGTHS: [char; 5] = ['l', 'z', 'j', 't', 'L'];
    let mut dtypes = dtypes.iter();
    let mut text = String::with_capacity(format.len());
    let mut rest = format.chars();
    while let Some(c) = rest.next() {
        text.push(c);
        if c != '%' {
            continue;
        }
        let mut flags = String::new();
        let mut length = String::new();
        for c in rest.by_ref() {
            let dtype = match c {
                'l' | 'z' | 'j' | 't' | 'L' | 'h' => {
                    length.push(c);
                    continue;
                }
                '*' => {
                    dtypes.next();
                    None
                }
                c if c.is_ascii_alphabetic() => dtypes.next(),
                '%' => None,
                c => {
                    flags.push(c);
                    continue;
                }
            };
            if let (Some(dtype), 'd' | 'i' | 'u' | 'x' | 'X' | 'o') = (dtype, c) {
                let (wide, said) = (dtype.bits == 64, length.contains(LENGTHS));
                match (wide, said) {
                    (true, false) => length = "ll".to_string(),
                    (false, true) => length.clear(),
                    _ => {}
                }
            }
            text.push_str(&std::mem::take(&mut flags));
            text.push_str(&std::mem::take(&mut length));
            text.push(c);
            if c != '*' {
                break;
            }
        }
        text.push_str(&flags);
        text.push_str(&length);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conversions_have_the_length_of_their_arguments() {
        let (narrow, wide, float) = (DType::INT32, DType::INT64, DType::FLOAT32);
        for (format, dtypes, expected) in [
            ("%d of %d\n", vec![narrow, narrow], "%d of %d\n"),
            ("%d of %d\n", vec![wide, narrow], "%lld of %d\n"),
            ("%lld %ld %lu", vec![narrow, wide, wide], "%d %ld %lu"),
            ("%-8u|%08x|%+.3f", vec![wide, wide, float], "%-8llu|%08llx|%+.3f"),
            ("100%% %*d %s", vec![narrow, wide], "100%% %*lld %s"),
            ("%hd %zu %5", vec![narrow, narrow], "%hd %u %5"),
        ] {
            assert_eq!(sized(format, &dtypes), expected);
        }
    }
}
