//! Files as an editor names them.

use std::path::{Path, PathBuf};

use lsp_types::Uri;

/// The path of a file's URI.
pub(super) fn path_of(uri: &str) -> PathBuf {
    PathBuf::from(decoded(uri, cfg!(windows)))
}

/// The URI of a file.
pub(super) fn uri_of(path: &Path) -> Option<Uri> {
    encoded(&path.to_string_lossy(), cfg!(windows)).parse().ok()
}

/// The path as text. With drive letters `file:///c%3A/k.py` is `c:/k.py`, and `file://server/share/k.py` is
/// `//server/share/k.py`.
fn decoded(uri: &str, drives: bool) -> String {
    let path = uri.strip_prefix("file://").unwrap_or(uri);
    let mut bytes = Vec::new();
    let mut rest = path.bytes();
    while let Some(byte) = rest.next() {
        let escaped = || {
            let mut digits = rest.clone();
            let digits = [digits.next()?, digits.next()?];
            u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()
        };
        match byte {
            b'%' => match escaped() {
                Some(byte) => {
                    bytes.push(byte);
                    rest.nth(1);
                }
                None => bytes.push(b'%'),
            },
            byte => bytes.push(byte),
        }
    }
    let text = String::from_utf8_lossy(&bytes).into_owned();
    match text.as_bytes() {
        _ if !drives => text,
        [b'/', letter, b':', ..] if letter.is_ascii_alphabetic() => text[1..].to_string(),
        [b'/', ..] | [] => text,
        [letter, b':', ..] if letter.is_ascii_alphabetic() => text,
        _ => format!("//{text}"),
    }
}

/// The inverse of [`decoded`].
fn encoded(path: &str, drives: bool) -> String {
    let mut text = String::from("file://");
    let slashes = if drives {
        path.replace('\\', "/")
    } else {
        path.to_string()
    };
    let path = match slashes.strip_prefix("//") {
        Some(share) if drives => share.to_string(),
        _ if drives && slashes.as_bytes().get(1) == Some(&b':') => format!("/{slashes}"),
        _ => slashes,
    };
    for byte in path.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'_' | b'.' | b'~' => {
                text.push(char::from(byte))
            }
            byte => text += &format!("%{byte:02X}"),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_and_uris_are_each_other_s() {
        let path = PathBuf::from("/a b/ö/k.py");
        assert_eq!(path_of(uri_of(&path).unwrap().as_str()), path);
        assert_eq!(path_of("file:///a%2"), PathBuf::from("/a%2"));
    }

    #[test]
    fn drive_letters_and_shares_are_those_of_windows() {
        for (path, uri) in [
            (r"C:\kernels\a b.py", "file:///C%3A/kernels/a%20b.py"),
            (r"\\server\share\k.py", "file://server/share/k.py"),
        ] {
            assert_eq!(encoded(path, true), uri);
            assert_eq!(decoded(uri, true), path.replace('\\', "/"));
        }
        // As editors also write it.
        assert_eq!(decoded("file:///c:/k.py", true), "c:/k.py");
        assert_eq!(decoded("file:///c:/k.py", false), "/c:/k.py");
        assert!(encoded(r"C:\k.py", true).parse::<Uri>().is_ok());
    }
}
