//! Fat binaries: checking one, joining several, and taking one apart.
//!
//! Each target has a fat binary of its own, so that a target that is added is the only one to be compiled. The container is a header of
//! 16 bytes (magic, version, the header's size, the size of the entries) and entries, each with a header of its own.
//! One run of nvcc for several targets writes the entries of single runs behind each other, so joined fat binaries have the same bytes.

/// The first four bytes.
const MAGIC: [u8; 4] = [0x50, 0xed, 0x55, 0xba];
/// Bytes of the container's header.
const HEADER: usize = 16;
/// Bytes of an entry's header that are read here.
const ENTRY: usize = 16;
/// Flags of an entry that is compressed, by one or another method.
const COMPRESSED: u64 = 0xf000;

fn number(bytes: &[u8], at: usize, width: usize) -> Option<u64> {
    let field = bytes.get(at..at.checked_add(width)?)?;
    Some(
        field
            .iter()
            .rev()
            .fold(0, |value, byte| value << 8 | u64::from(*byte)),
    )
}

/// Whether these bytes are a whole fat binary with something in it.
///
/// # Errors
/// The error, as it follows "it" in a message.
pub fn check(bytes: &[u8]) -> Result<(), String> {
    if bytes.is_empty() {
        return Err("is empty".into());
    }
    if !bytes.starts_with(&MAGIC) {
        return Err("is no fat binary: its first bytes are wrong".into());
    }
    let header = number(bytes, 6, 2);
    let size = number(bytes, 8, 8).and_then(|size| usize::try_from(size).ok());
    if header != Some(HEADER as u64) || size.and_then(|s| s.checked_add(HEADER)) != Some(bytes.len()) {
        return Err(format!(
            "is cut off or damaged: its header does not fit {} bytes",
            bytes.len()
        ));
    }
    let mut at = HEADER;
    if at == bytes.len() {
        return Err("holds no code".into());
    }
    while at < bytes.len() {
        let entry = (
            number(bytes, at, 2),
            number(bytes, at + 4, 4),
            number(bytes, at + 8, 8),
        );
        let (Some(kind @ (1 | 2)), Some(head), Some(body)) = entry else {
            return Err("is damaged: an entry is neither PTX nor machine code".into());
        };
        let end = usize::try_from(head).ok().zip(usize::try_from(body).ok());
        let end = end.and_then(|(head, body)| at.checked_add(head)?.checked_add(body));
        let Some(end) = end.filter(|end| *end <= bytes.len() && head as usize >= ENTRY && body > 0) else {
            return Err("is damaged: an entry is longer than the file".into());
        };
        let payload = &bytes[at + head as usize..end];
        // Compressed code has a flag, and no ELF header to look at.
        let plain = number(bytes, at + 40, 8).is_some_and(|flags| flags & COMPRESSED == 0);
        if kind == 2 && plain && !payload.starts_with(b"\x7fELF") {
            return Err("is damaged: its machine code is no ELF file".into());
        }
        at = end;
    }
    Ok(())
}

/// The code of one target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Code<'a> {
    /// Whether it is PTX rather than machine code.
    pub ptx: bool,
    /// The GPU's number: 90 of `sm_90a`.
    pub arch: u32,
    /// The text or the ELF file; `None` where it is compressed.
    pub body: Option<&'a [u8]>,
    /// The whole entry: its header and its code.
    entry: &'a [u8],
}

/// The code of each target in a fat binary, in its order.
///
/// # Errors
/// As of [`check`].
pub fn codes(bytes: &[u8]) -> Result<Vec<Code<'_>>, String> {
    check(bytes)?;
    let mut codes = Vec::new();
    let mut at = HEADER;
    // The lengths were checked.
    while let (Some(kind), Some(head), Some(body)) = (
        number(bytes, at, 2),
        number(bytes, at + 4, 4),
        number(bytes, at + 8, 8),
    ) {
        let end = at + head as usize + body as usize;
        let plain = number(bytes, at + 40, 8).is_some_and(|flags| flags & COMPRESSED == 0);
        codes.push(Code {
            ptx: kind == 1,
            arch: number(bytes, at + 28, 4).unwrap_or(0) as u32,
            body: bytes.get(at + head as usize..end).filter(|_| plain),
            entry: &bytes[at..end],
        });
        at = end;
    }
    Ok(codes)
}

/// A fat binary with the PTX of another one, or with its machine code.
///
/// # Errors
/// As of [`check`]; there is none.
pub fn part(bytes: &[u8], ptx: bool) -> Result<Vec<u8>, String> {
    let entries: Vec<&[u8]> = codes(bytes)?
        .iter()
        .filter(|code| code.ptx == ptx)
        .map(|code| code.entry)
        .collect();
    match entries.is_empty() {
        true => Err(format!("holds no {}", if ptx { "PTX" } else { "machine code" })),
        false => Ok(from_entries(&entries)),
    }
}

/// One fat binary with the entries of several. All were checked.
pub fn join(parts: &[&[u8]]) -> Vec<u8> {
    let entries: Vec<&[u8]> = parts
        .iter()
        .map(|part| part.get(HEADER..).unwrap_or_default())
        .collect();
    from_entries(&entries)
}

fn from_entries(entries: &[&[u8]]) -> Vec<u8> {
    let size: usize = entries.iter().map(|entry| entry.len()).sum();
    let mut bytes = Vec::with_capacity(HEADER + size);
    bytes.extend(MAGIC);
    bytes.extend(1u16.to_le_bytes());
    bytes.extend((HEADER as u16).to_le_bytes());
    bytes.extend((size as u64).to_le_bytes());
    entries.iter().for_each(|entry| bytes.extend(*entry));
    bytes
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A fat binary with one PTX entry.
    pub(crate) fn fatbin(payload: &[u8]) -> Vec<u8> {
        let mut entry = vec![1, 0, 1, 1, 64, 0, 0, 0];
        entry.extend((payload.len() as u64).to_le_bytes());
        entry.resize(64, 0);
        entry.extend(payload);
        let mut bytes = MAGIC.to_vec();
        bytes.extend([1, 0, 16, 0]);
        bytes.extend((entry.len() as u64).to_le_bytes());
        bytes.extend(entry);
        bytes
    }

    #[test]
    fn whole_ones_are_told_from_others() {
        let good = fatbin(b"ptx");
        assert_eq!(check(&good), Ok(()));
        assert_eq!(check(&join(&[&good, &good])), Ok(()));
        assert_eq!(join(&[&good]), good);
        let mut machine = fatbin(b"\x7fELF");
        machine[HEADER] = 2;
        let both = join(&[&machine, &good]);
        assert_eq!(
            (part(&both, false), part(&both, true)),
            (Ok(machine), Ok(good.clone()))
        );
        assert_eq!(part(&good, false).unwrap_err(), "holds no machine code");
        assert_eq!(check(&[]).unwrap_err(), "is empty");
        assert!(check(b"hello").unwrap_err().contains("no fat binary"));
        for length in 1..good.len() {
            assert!(check(&good[..length]).is_err(), "{length}");
        }
        assert_eq!(
            check(&good[..70]).unwrap_err(),
            "is cut off or damaged: its header does not fit 70 bytes"
        );
        let mut neither = good.clone();
        neither[16] = 3;
        assert_eq!(
            check(&neither).unwrap_err(),
            "is damaged: an entry is neither PTX nor machine code"
        );
        let both = join(&[&good, &good]);
        let found = codes(&both).unwrap();
        assert_eq!(
            found,
            [Code {
                ptx: true,
                arch: 0,
                body: Some(b"ptx"),
                entry: &good[HEADER..]
            }; 2]
        );
        assert!(codes(&good[..30]).is_err());
        assert!(check(&join(&[])).unwrap_err().contains("no code"));
        let mut elf = good.clone();
        elf[16] = 2;
        assert!(check(&elf).unwrap_err().contains("no ELF"));
        let mut long = good;
        long[16 + 8] = 200;
        assert!(check(&long).unwrap_err().contains("longer than the file"));
    }
}
