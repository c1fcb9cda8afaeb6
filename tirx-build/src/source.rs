//! Reads kernel files as UTF-8; an error names the position of an invalid byte.

use std::path::Path;
use std::{fs, io};

/// The text of a file.
///
/// # Errors
/// That of the file; for one that is no UTF-8, the line and the byte.
pub fn read(path: &Path) -> io::Result<String> {
    let bytes = fs::read(path)?;
    if bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]) {
        let message = "it is in UTF-16, as some editors of Windows save files; save it as UTF-8";
        return Err(io::Error::new(io::ErrorKind::InvalidData, message));
    }
    String::from_utf8(bytes).map_err(|error| {
        let valid = error.utf8_error().valid_up_to();
        let bytes = error.as_bytes();
        let line = 1 + bytes[..valid].iter().filter(|b| **b == b'\n').count();
        let start = bytes[..valid]
            .iter()
            .rposition(|b| *b == b'\n')
            .map_or(0, |at| at + 1);
        let message = format!(
            "line {line} is no UTF-8: byte 0x{:02x} at column {} (byte {valid} of the file)",
            bytes[valid],
            1 + String::from_utf8_lossy(&bytes[start..valid]).chars().count(),
        );
        io::Error::new(io::ErrorKind::InvalidData, message)
    })
}

#[cfg(test)]
mod tests {
    #[test]
    fn what_is_no_utf_8_is_named_by_line_and_byte() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("k.py");
        std::fs::write(&path, b"# \xc3\xa4\nx = 1\ny = \"\xe4\"\n").expect("written");
        let error = super::read(&path).expect_err("Latin-1").to_string();
        assert_eq!(
            error,
            "line 3 is no UTF-8: byte 0xe4 at column 6 (byte 16 of the file)"
        );
        for order in [u16::to_le_bytes, u16::to_be_bytes] {
            let text: Vec<u8> = "\u{feff}x = 1\n".encode_utf16().flat_map(order).collect();
            std::fs::write(&path, text).expect("written");
            let error = super::read(&path).expect_err("UTF-16").to_string();
            assert!(error.starts_with("it is in UTF-16"), "{error}");
        }
    }
}
