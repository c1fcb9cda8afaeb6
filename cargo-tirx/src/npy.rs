//! Arrays in files: NumPy's `.npy` format, little-endian and in C order.
//!
//! The format is three lines of header and raw bytes; NumPy's documentation (`numpy.lib.format`) describes it. dtypes
//! that NumPy lacks travel as bits: bfloat16 as `uint16`, floats of 8 and 6 bits as `uint8`, or under the names that
//! ml_dtypes gives them (`<V2`, `|V1`, `<f1`). Elements of 4 bits have a byte each in files, in the lower half, and are packed in
//! memory, two to a byte.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use tirx_core::ir::{DType, ElementType};

/// An array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Array {
    /// NumPy's name of the element type: `<f4`.
    pub(crate) descr: String,
    /// Extents, outermost first.
    pub(crate) shape: Vec<usize>,
    /// The elements, row-major.
    pub(crate) bytes: Vec<u8>,
}

/// Elements of 4 bits as they are in memory, from a byte each. The upper halves are left out.
pub(crate) fn packed(bytes: &[u8]) -> Vec<u8> {
    let pair = |pair: &[u8]| pair[0] & 15 | pair.get(1).map_or(0, |high| high << 4);
    bytes.chunks(2).map(pair).collect()
}

/// `count` elements of 4 bits as a byte each, signed ones with their sign.
pub(crate) fn unpacked(bytes: &[u8], count: usize, signed: bool) -> Vec<u8> {
    let halves = bytes.iter().flat_map(|byte| [byte & 15, byte >> 4]);
    let element = |half: u8| match signed && half & 8 != 0 {
        true => half | 0xf0,
        false => half,
    };
    halves.take(count).map(element).collect()
}

const MAGIC: &[u8] = b"\x93NUMPY";

/// NumPy's name for a dtype; `None` for those that no array can hold.
pub(crate) fn descr(dtype: DType) -> Option<&'static str> {
    if !dtype.is_scalar() {
        return None;
    }
    ElementType::from_dtype(dtype)?.numpy
}

/// Whether an array of this element type can be read as `dtype`.
pub(crate) fn holds(array: &str, dtype: DType) -> bool {
    let kind = |name: &str| name.trim_start_matches(['<', '|', '=']).to_string();
    if dtype.bits == 4 {
        return matches!(&*kind(array), "V1" | "u1" | "i1");
    }
    let wanted = descr(dtype).map(kind);
    // ml_dtypes saves bfloat16 and most floats of a byte as void, float8_e5m2 as a float of one byte.
    let of_ml_dtypes: &[&str] = match wanted.as_deref() {
        Some("u2") if dtype.is_bfloat16() => &["V2"],
        Some("u1") if dtype.is_floating() => &["V1", "f1"],
        _ => &[],
    };
    wanted.is_some_and(|wanted| kind(array) == wanted) || of_ml_dtypes.contains(&&*kind(array))
}

/// Bytes of one element, by NumPy's name of its type.
pub(crate) fn element_bytes(descr: &str) -> Option<usize> {
    let rest = descr.strip_prefix(['<', '|', '='])?;
    let (kind, digits) = rest.split_at_checked(1)?;
    let bytes: usize = digits.parse().ok()?;
    ("biufV".contains(kind) && matches!(bytes, 1 | 2 | 4 | 8)).then_some(bytes)
}

/// Reads a file. The error is a sentence with the file's name.
pub(crate) fn read(path: &Path) -> Result<Array, String> {
    let bytes = fs::read(path).map_err(|error| format!("cannot read `{}`: {error}", path.display()))?;
    parse(&bytes).map_err(|reason| format!("`{}` {reason}", path.display()))
}

/// Writes a file.
pub(crate) fn write(path: &Path, array: &Array) -> Result<(), String> {
    fs::write(path, to_bytes(array)).map_err(|error| format!("cannot write `{}`: {error}", path.display()))
}

fn to_bytes(array: &Array) -> Vec<u8> {
    let mut shape = String::new();
    for extent in &array.shape {
        let _ = write!(shape, "{extent}, ");
    }
    let shape = if array.shape.len() == 1 {
        shape.trim_end()
    } else {
        shape.trim_end_matches(", ")
    };
    let mut header = format!(
        "{{'descr': '{}', 'fortran_order': False, 'shape': ({shape}), }}",
        array.descr
    );
    // Magic, version and length take 10 bytes; data begins at a multiple of 64, after a newline.
    while (10 + header.len() + 1) % 64 != 0 {
        header.push(' ');
    }
    header.push('\n');
    let mut out = MAGIC.to_vec();
    out.extend([1, 0]);
    // At most 32 dimensions of at most 20 digits each: far below 64 KiB.
    out.extend((header.len() as u16).to_le_bytes());
    out.extend(header.as_bytes());
    out.extend(&array.bytes);
    out
}

fn parse(bytes: &[u8]) -> Result<Array, String> {
    let short = || "ends before its header does".to_string();
    let rest = bytes.strip_prefix(MAGIC).ok_or("is no .npy file")?;
    let (version, rest) = rest.split_at_checked(2).ok_or_else(short)?;
    let (length, rest) = match version[0] {
        1 => {
            let (length, rest) = rest.split_at_checked(2).ok_or_else(short)?;
            (u16::from_le_bytes([length[0], length[1]]) as usize, rest)
        }
        2 | 3 => {
            let (length, rest) = rest.split_at_checked(4).ok_or_else(short)?;
            (
                u32::from_le_bytes([length[0], length[1], length[2], length[3]]) as usize,
                rest,
            )
        }
        other => return Err(format!("has format version {other}, which is not known")),
    };
    let (header, data) = rest.split_at_checked(length).ok_or_else(short)?;
    let header = std::str::from_utf8(header).map_err(|_| "has a header that is no text")?;
    let value = |key: &str| {
        let after = header.split_once(&format!("'{key}':"))?.1;
        Some(after.trim_start())
    };
    let descr = value("descr")
        .and_then(|v| v.strip_prefix('\''))
        .and_then(|v| v.split_once('\''))
        .ok_or("has elements that are no plain numbers")?
        .0
        .to_string();
    if descr.starts_with('>') {
        return Err(format!(
            "is big-endian (`{descr}`): save it with `array.astype('<{}')`",
            descr.trim_start_matches('>')
        ));
    }
    let element = element_bytes(&descr)
        .ok_or_else(|| format!("has elements of type `{descr}`, which no kernel takes"))?;
    match value("fortran_order") {
        Some(v) if v.starts_with("False") => {}
        Some(v) if v.starts_with("True") => {
            return Err("is in Fortran order: save it with `numpy.ascontiguousarray(array)`".to_string());
        }
        _ => return Err("has no `fortran_order` in its header".to_string()),
    }
    let shape = value("shape")
        .and_then(|v| v.strip_prefix('('))
        .and_then(|v| v.split_once(')'))
        .ok_or("has no `shape` in its header")?
        .0;
    let shape: Result<Vec<usize>, _> = shape
        .split(',')
        .map(str::trim)
        .filter(|s| !s.is_empty())
        .map(|s| s.trim_end_matches('L').parse())
        .collect();
    let shape = shape.map_err(|_| "has a shape that is no list of numbers")?;
    let size = shape
        .iter()
        .try_fold(element, |size, extent| size.checked_mul(*extent));
    if size != Some(data.len()) {
        return Err(format!(
            "holds {} bytes of data, which is not the size of its shape {shape:?} of `{descr}`",
            data.len()
        ));
    }
    Ok(Array {
        descr,
        shape,
        bytes: data.to_vec(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn array(shape: &[usize]) -> Array {
        let count: usize = shape.iter().product();
        Array {
            descr: "<f4".into(),
            shape: shape.to_vec(),
            bytes: (0..count).flat_map(|i| (i as f32).to_le_bytes()).collect(),
        }
    }

    #[test]
    fn narrow_floats_have_the_names_of_ml_dtypes() {
        let named = |name: &str| name.parse::<DType>().unwrap();
        for (descr, dtype, held) in [
            ("<f1", "float8_e5m2", true),
            ("|V1", "float8_e4m3fn", true),
            ("|u1", "float8_e8m0fnu", true),
            ("|V1", "float6_e3m2fn", true),
            ("<V2", "bfloat16", true),
            ("<f2", "bfloat16", false),
            ("|V1", "uint8", false),
            ("<V1", "float4_e2m1fn", true),
            ("<f1", "float4_e2m1fn", false),
            ("<V1", "int4", true),
        ] {
            assert_eq!(holds(descr, named(dtype)), held, "{descr} as {dtype}");
        }
    }

    #[test]
    fn elements_of_four_bits_share_bytes_in_memory() {
        assert_eq!(packed(&[1, 0xf2, 7]), [0x21, 7]);
        assert_eq!(unpacked(&[0x21, 7], 3, false), [1, 2, 7]);
        assert_eq!(unpacked(&[0xf9], 2, true), [0xf9, 0xff]);
    }

    #[test]
    fn arrays_round_trip() {
        for shape in [&[][..], &[3], &[2, 3], &[0, 4]] {
            let array = array(shape);
            let bytes = to_bytes(&array);
            assert_eq!(parse(&bytes).unwrap(), array);
            assert_eq!((bytes.len() - array.bytes.len()) % 64, 0);
        }
        let bytes = to_bytes(&array(&[3]));
        assert!(String::from_utf8_lossy(&bytes).contains("'shape': (3,), }"));
    }

    #[test]
    fn what_cannot_be_read_says_why() {
        let refused = |from: &str, to: &str| {
            let bytes = to_bytes(&array(&[2, 3]));
            let at = bytes
                .windows(from.len())
                .position(|w| w == from.as_bytes())
                .unwrap();
            let mut changed = bytes.clone();
            changed.splice(at..at + from.len(), to.bytes());
            parse(&changed).unwrap_err()
        };
        assert!(refused("False", "True ").contains("is in Fortran order"));
        assert!(refused("<f4", ">f4").contains("is big-endian"));
        assert!(refused("<f4", "<c8").contains("which no kernel takes"));
        assert!(refused("(2, 3)", "(2, 4)").contains("holds 24 bytes"));
        assert!(parse(b"PK\x03\x04").unwrap_err().contains("is no .npy file"));
        assert!(
            parse(b"\x93NUMPY\x01\x00\xff\xff")
                .unwrap_err()
                .contains("ends before")
        );
    }

    #[test]
    fn bits_stand_in_for_what_numpy_lacks() {
        assert!(holds("<f4", DType::FLOAT32) && !holds("<f8", DType::FLOAT32));
        assert!(holds("|V2", DType::BFLOAT16) && holds("<u2", DType::BFLOAT16));
        assert!(holds("|b1", DType::BOOL) && !holds("|u1", DType::BOOL));
        assert!(holds("|u1", "float8_e4m3fn".parse().unwrap()));
    }
}
