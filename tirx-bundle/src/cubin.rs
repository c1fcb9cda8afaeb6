//! Machine code as nvcc writes it, an ELF file for each GPU: what each kernel in it takes of the GPU.
//!
//! The file is untrusted: every offset and count is checked before it is used. Registers and stack are in the
//! attributes of `.nv.info` (records of a format, a code, and a value or a sized payload); code, shared and constant memory
//! are the sizes of the sections that carry the kernel's name.

/// What a kernel takes of a GPU.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Resources {
    /// The kernel's symbol.
    pub symbol: String,
    /// Registers of a thread.
    pub registers: u32,
    /// Bytes of a thread's stack: local arrays, and registers that were spilled.
    pub stack: u32,
    /// Bytes of static shared memory of a block, without those that the system reserves.
    pub shared: u64,
    /// Bytes of constant memory: parameters, and constants of the code.
    pub constant: u64,
    /// Bytes of machine code.
    pub code: u64,
    /// Most threads of a block, as `__launch_bounds__` says.
    pub most_threads: Option<u64>,
}

/// Bytes of a block's shared memory that the system reserves, from Hopper on as a part of the section.
const RESERVED: u64 = 1024;
/// NVIDIA's number of a machine.
const MACHINE: u64 = 190;
/// Bytes of a section header, of a symbol.
const SECTION: usize = 64;
const SYMBOL: usize = 24;

/// Codes of attributes.
const FRAME_SIZE: u64 = 0x11;
const MAX_THREADS: u64 = 0x05;
const REGISTERS: u64 = 0x2f;
/// The format of an attribute with a payload; the others have a value of two bytes.
const SIZED: u64 = 4;

fn number(bytes: &[u8], at: usize, width: usize) -> Option<u64> {
    let field = bytes.get(at..at.checked_add(width)?)?;
    Some(
        field
            .iter()
            .rev()
            .fold(0, |value, byte| value << 8 | u64::from(*byte)),
    )
}

struct Section<'a> {
    name: &'a str,
    size: u64,
    /// The contents; none of a section without any in the file.
    bytes: &'a [u8],
    link: usize,
}

/// The text of a table of names that ends with a zero byte.
fn text(table: &[u8], at: u64) -> Option<&str> {
    let rest = table.get(usize::try_from(at).ok()?..)?;
    let end = rest.iter().position(|byte| *byte == 0)?;
    std::str::from_utf8(&rest[..end]).ok()
}

fn sections(bytes: &[u8]) -> Option<Vec<Section<'_>>> {
    let table = usize::try_from(number(bytes, 0x28, 8)?).ok()?;
    let (size, count, names) = (
        number(bytes, 0x3a, 2)?,
        number(bytes, 0x3c, 2)?,
        number(bytes, 0x3e, 2)?,
    );
    if size as usize != SECTION {
        return None;
    }
    // Name, contents, size, link.
    let header = |index: usize| {
        let at = table.checked_add(index.checked_mul(SECTION)?)?;
        let [name, kind, link] = [0, 4, 40].map(|field| number(bytes, at + field, 4));
        let [offset, size] = [24, 32].map(|field| number(bytes, at + field, 8));
        let (start, size) = (usize::try_from(offset?).ok()?, size?);
        // Kind 8 has no contents in the file.
        let length = if kind? == 8 {
            0
        } else {
            usize::try_from(size).ok()?
        };
        let contents = match length {
            0 => &bytes[..0],
            _ => bytes.get(start..start.checked_add(length)?)?,
        };
        Some((name?, contents, size, link? as usize))
    };
    // The offsets in a header are below the file's length, or there is no header.
    if table.checked_add((count as usize).checked_mul(SECTION)?)? > bytes.len() {
        return None;
    }
    let (_, names, _, _) = header(names as usize)?;
    (0..count as usize)
        .map(|index| {
            let (name, contents, size, link) = header(index)?;
            Some(Section {
                name: text(names, name)?,
                size,
                bytes: contents,
                link,
            })
        })
        .collect()
}

/// The attributes of a `.nv.info` section: code, payload (empty for those with a short value).
fn attributes(bytes: &[u8]) -> Option<Vec<(u64, &[u8])>> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let (format, code, value) = (
            number(bytes, at, 1)?,
            number(bytes, at + 1, 1)?,
            number(bytes, at + 2, 2)?,
        );
        at += 4;
        let payload = match format {
            SIZED => bytes.get(at..at + value as usize)?,
            _ => &bytes[..0],
        };
        at += payload.len().next_multiple_of(4);
        found.push((code, payload));
    }
    Some(found)
}

fn read(bytes: &[u8]) -> Option<Vec<Resources>> {
    let sections = sections(bytes)?;
    let find = |name: &str| sections.iter().find(|section| section.name == name);
    let size = |name: String| find(&name).map_or(0, |section| section.size);
    let reserves = find(".nv.shared.reserved.0").is_some();
    let symbols = find(".symtab")?;
    let names = sections.get(symbols.link)?.bytes;
    let name_of = |symbol: u64| {
        let at = usize::try_from(symbol).ok()?.checked_mul(SYMBOL)?;
        text(names, number(symbols.bytes, at, 4)?)
    };
    let mut kernels: Vec<Resources> = Vec::new();
    // A kernel has attributes of its own.
    for section in &sections {
        let Some(symbol) = section.name.strip_prefix(".nv.info.") else {
            continue;
        };
        let shared = size(format!(".nv.shared.{symbol}"));
        let own = format!(".{symbol}");
        let constant = sections
            .iter()
            .filter(|s| s.name.starts_with(".nv.constant") && s.name.ends_with(&own))
            .map(|s| s.size)
            .fold(0, u64::saturating_add);
        let threads = attributes(section.bytes)?
            .into_iter()
            .find(|(code, _)| *code == MAX_THREADS)
            .and_then(|(_, payload)| {
                [0, 4, 8]
                    .map(|at| number(payload, at, 4))
                    .into_iter()
                    .try_fold(1u64, |product, extent| product.checked_mul(extent?))
            });
        kernels.push(Resources {
            symbol: symbol.to_string(),
            shared: shared.saturating_sub(if reserves { RESERVED } else { 0 }),
            constant,
            code: size(format!(".text.{symbol}")),
            most_threads: threads,
            ..Resources::default()
        });
    }
    for (code, payload) in attributes(find(".nv.info")?.bytes)? {
        let (Some(symbol), Some(value)) = (number(payload, 0, 4), number(payload, 4, 4)) else {
            continue;
        };
        let Some(name) = name_of(symbol) else { continue };
        let Some(kernel) = kernels.iter_mut().find(|kernel| kernel.symbol == name) else {
            continue;
        };
        match code {
            REGISTERS => kernel.registers = value as u32,
            FRAME_SIZE => kernel.stack = value as u32,
            _ => {}
        }
    }
    Some(kernels)
}

/// What the kernels of an ELF file of machine code take, in its order.
///
/// # Errors
/// The error, as it follows "it" in a message.
pub fn resources(bytes: &[u8]) -> Result<Vec<Resources>, String> {
    let elf = bytes.starts_with(b"\x7fELF\x02\x01");
    if !elf || number(bytes, 0x12, 2) != Some(MACHINE) {
        return Err("is no machine code of an NVIDIA GPU".into());
    }
    read(bytes).ok_or_else(|| "is damaged: a table of its ELF file is not within it".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An ELF file with these sections: name, kind, contents, size in memory, link.
    fn elf(sections: &[(&str, u32, Vec<u8>, u64, u32)]) -> Vec<u8> {
        let mut names = vec![0u8];
        let mut body = vec![0u8; 64];
        let mut headers = Vec::new();
        let mut header = |name: u32, kind: u32, offset: u64, size: u64, link: u32| {
            headers.extend(name.to_le_bytes());
            headers.extend(kind.to_le_bytes());
            headers.extend([0u8; 16]);
            headers.extend(offset.to_le_bytes());
            headers.extend(size.to_le_bytes());
            headers.extend(link.to_le_bytes());
            headers.extend([0u8; 20]);
        };
        for (name, kind, contents, size, link) in sections {
            let at = names.len() as u32;
            names.extend(name.bytes().chain([0]));
            header(at, *kind, body.len() as u64, *size, *link);
            body.extend(contents);
        }
        header(0, 3, body.len() as u64, names.len() as u64, 0);
        body.extend(&names);
        let table = body.len() as u64;
        body.extend(&headers);
        body[..6].copy_from_slice(b"\x7fELF\x02\x01");
        body[0x12..0x14].copy_from_slice(&190u16.to_le_bytes());
        body[0x28..0x30].copy_from_slice(&table.to_le_bytes());
        body[0x3a..0x3c].copy_from_slice(&64u16.to_le_bytes());
        body[0x3c..0x3e].copy_from_slice(&(sections.len() as u16 + 1).to_le_bytes());
        body[0x3e..0x40].copy_from_slice(&(sections.len() as u16).to_le_bytes());
        body
    }

    fn words(words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    fn attribute(code: u8, payload: &[u32]) -> Vec<u8> {
        let mut bytes = vec![4, code];
        bytes.extend((payload.len() as u16 * 4).to_le_bytes());
        bytes.extend(words(payload));
        bytes
    }

    fn example() -> Vec<u8> {
        let section = |name, kind, bytes: Vec<u8>| (name, kind, bytes.clone(), bytes.len() as u64, 0);
        let mut symbol = words(&[1]);
        symbol.resize(SYMBOL, 0);
        let infos = [
            attribute(0x2f, &[0, 40]),
            attribute(0x11, &[0, 16]),
            vec![3, 0x1b, 255, 0],
        ];
        let own = [vec![2, 0x4c, 1, 0], attribute(0x05, &[16, 8, 2])];
        elf(&[
            section(".strtab", 3, b"\0kernel\0".to_vec()),
            (".symtab", 2, symbol.clone(), SYMBOL as u64, 0),
            section(".nv.info", 0x7000_0000, infos.concat()),
            section(".nv.info.kernel", 0x7000_0000, own.concat()),
            section(".text.kernel", 1, vec![0; 256]),
            (".nv.shared.kernel", 8, Vec::new(), 3072, 0),
            (".nv.shared.reserved.0", 8, Vec::new(), 0, 0),
            section(".nv.constant0.kernel", 1, vec![0; 548]),
            section(".nv.constant2.kernel", 1, vec![0; 8]),
        ])
    }

    #[test]
    fn what_a_kernel_takes_is_read() {
        let expected = Resources {
            symbol: "kernel".into(),
            registers: 40,
            stack: 16,
            shared: 2048,
            constant: 556,
            code: 256,
            most_threads: Some(256),
        };
        assert_eq!(resources(&example()), Ok(vec![expected]));
        assert!(resources(b"\x7fELF").unwrap_err().contains("no machine code"));
    }

    #[test]
    fn no_damage_is_followed() {
        let good = example();
        for length in 0..good.len() {
            assert!(resources(&good[..length]).is_err(), "{length}");
        }
        // Any byte may have any value: an answer or an error, never a panic.
        for at in 0..good.len() {
            for value in [0, 1, 0x7f, 0xff] {
                let mut bad = good.clone();
                bad[at] = value;
                let _ = resources(&bad);
            }
        }
    }
}
