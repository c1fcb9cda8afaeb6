//! One kernel of a bundle: `add-n256.tirxk`.
//!
//! ```text
//! "TIRXKRN1", SHA-256 of what follows
//! name, signature, hash                       texts: length, UTF-8
//! functions: count, each: symbol, parameters: count, each: 0 for a pointer, 128 for a tensor map, else the
//!            bits of a scalar
//! images:    count, each: target (`sm_90a`, `compute_90`), fat binary (packed: length, deflate)
//! IR (packed)
//! ```

use crate::fatbin;
use crate::problem::Problem;
use crate::reader::{Reader, Writer};
use crate::seal::{self, unseal};

/// The file extension of a kernel.
pub const EXTENSION: &str = "tirxk";

/// The kind of a parameter that is not a scalar.
const TENSOR_MAP: u8 = 128;

/// A parameter of a device function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Param {
    /// A device pointer.
    Pointer,
    /// A value of 8, 16, 32 or 64 bits.
    Scalar(u8),
    /// A tensor map, by value.
    TensorMap,
}

/// A device function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// Its symbol in the images.
    pub symbol: String,
    /// Its parameters, in order.
    pub params: Vec<Param>,
}

/// A compiled kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// Its path in Rust: `add::n256`.
    pub name: String,
    /// Hash of a launcher's behaviour: arguments, checks, launch dimensions. A launcher compiled into a program can
    /// launch this kernel if the hashes are equal.
    pub signature: String,
    /// Hash of all inputs of the kernel.
    pub hash: String,
    /// Its device functions.
    pub functions: Vec<Function>,
    /// A fat binary for each target, in the manifest's order.
    pub images: Vec<(String, Vec<u8>)>,
    /// The device functions for the simulator.
    pub ir: Vec<u8>,
}

impl Kernel {
    /// The file's bytes: the same for the same kernel.
    pub fn encode(&self) -> Vec<u8> {
        let mut body = Writer::default();
        for text in [&self.name, &self.signature, &self.hash] {
            body.text(text);
        }
        body.u32(self.functions.len());
        for function in &self.functions {
            body.text(&function.symbol);
            body.u32(function.params.len());
            body.out.extend(function.params.iter().map(|param| match param {
                Param::Pointer => 0,
                Param::Scalar(bits) => *bits,
                Param::TensorMap => TENSOR_MAP,
            }));
        }
        body.u32(self.images.len());
        for (target, image) in &self.images {
            body.text(target);
            body.packed(image);
        }
        body.packed(&self.ir);
        seal::seal(seal::KERNEL, &body.out)
    }

    /// Reads a file's bytes.
    ///
    /// # Errors
    /// They are not a whole, undamaged kernel.
    pub fn decode(file: &[u8]) -> Result<Kernel, Problem> {
        let content = unseal(seal::KERNEL, file, "is no kernel of a bundle")?;
        let mut reader = Reader::new(content);
        let (name, signature, hash) = (reader.text()?, reader.text()?, reader.text()?);
        let mut functions = Vec::new();
        for _ in 0..reader.count(8)? {
            let symbol = reader.text()?;
            let count = reader.count(1)?;
            let params = (0..count).map(|_| match reader.u8()? {
                0 => Ok(Param::Pointer),
                bits @ (8 | 16 | 32 | 64) => Ok(Param::Scalar(bits)),
                TENSOR_MAP => Ok(Param::TensorMap),
                _ => Err(Problem::new("has a parameter of no known kind")),
            });
            let params = params.collect::<Result<_, _>>()?;
            functions.push(Function { symbol, params });
        }
        let mut images: Vec<(String, Vec<u8>)> = Vec::new();
        for _ in 0..reader.count(20)? {
            let target = reader.text()?;
            let image = reader.packed()?;
            fatbin::check(&image)
                .map_err(|reason| Problem::new(format!("has an image for {target} that {reason}")))?;
            if images.iter().any(|(known, _)| *known == target) {
                return Err(Problem::new(format!("has two images for {target}")));
            }
            images.push((target, image));
        }
        let ir = reader.packed()?;
        reader.end()?;
        Ok(Kernel {
            name,
            signature,
            hash,
            functions,
            images,
            ir,
        })
    }

    /// The hash of its images and their targets, as lock files have it.
    pub fn hash_of_images(&self) -> String {
        let mut parts: Vec<&[u8]> = Vec::new();
        for (target, image) in &self.images {
            parts.push(target.as_bytes());
            parts.push(image);
        }
        crate::hash_of_parts(&parts)
    }

    /// Bytes of all images.
    pub fn image_bytes(&self) -> usize {
        self.images.iter().map(|(_, image)| image.len()).sum()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn kernel() -> Kernel {
        Kernel {
            name: "add::n256".into(),
            signature: "s".into(),
            hash: "h".into(),
            functions: vec![Function {
                symbol: "add_kernel".into(),
                params: vec![Param::Pointer, Param::Scalar(32), Param::TensorMap],
            }],
            images: vec![
                ("sm_90a".into(), fatbin::tests::fatbin(b"machine code")),
                ("compute_90".into(), fatbin::tests::fatbin(&[b'p'; 300])),
            ],
            ir: vec![9; 1000],
        }
    }

    #[test]
    fn a_kernel_comes_back_and_damage_is_found() {
        let file = kernel().encode();
        assert_eq!(Kernel::decode(&file), Ok(kernel()));
        assert_eq!(file, kernel().encode());
        assert!(file.len() < kernel().image_bytes() + 1000, "it is packed");
        for length in 0..file.len() {
            assert!(Kernel::decode(&file[..length]).is_err(), "{length}");
        }
        for at in 0..file.len() {
            let mut damaged = file.clone();
            damaged[at] ^= 4;
            assert!(Kernel::decode(&damaged).is_err(), "{at}");
        }
        assert!(
            Kernel::decode(b"hello, world")
                .unwrap_err()
                .reason
                .contains("no kernel")
        );
        let mut newer = file.clone();
        newer[7] = b'2';
        assert!(
            Kernel::decode(&newer)
                .unwrap_err()
                .reason
                .contains("another version")
        );
    }

    /// An attacker can make the hash fit, so that the lengths are read.
    #[test]
    fn lengths_that_lie_are_found() {
        let file = kernel().encode();
        for at in seal::HEADER..file.len().saturating_sub(4) {
            for value in [u32::MAX, 0x7fff_ffff, 0] {
                let mut lying = file.clone();
                lying[at..at + 4].copy_from_slice(&value.to_le_bytes());
                lying = seal::seal(seal::KERNEL, &lying[seal::HEADER..]);
                // Some changes affect only a text: what matters is that decoding ends without a panic.
                let _ = Kernel::decode(&lying);
            }
        }
    }

    /// The message for a kernel whose content was changed, behind a valid hash.
    fn refused(kernel: &Kernel, change: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut content = kernel.encode()[seal::HEADER..].to_vec();
        change(&mut content);
        Kernel::decode(&seal::seal(seal::KERNEL, &content))
            .unwrap_err()
            .reason
    }

    /// Where a content has these bytes.
    fn find(content: &[u8], bytes: &[u8]) -> usize {
        content.windows(bytes.len()).position(|w| w == bytes).unwrap()
    }

    #[test]
    fn each_damage_has_its_message() {
        let good = kernel();
        let same = |_: &mut Vec<u8>| {};
        let no_text = refused(&good, |c| {
            let at = find(c, b"add::n256");
            c[at] = 0xff;
        });
        assert_eq!(no_text, "has a text that is no UTF-8");
        let no_kind = refused(&good, |c| {
            let at = find(c, &[0, 32, TENSOR_MAP]);
            c[at] = 77;
        });
        assert_eq!(no_kind, "has a parameter of no known kind");
        let counted = refused(&good, |c| {
            let at = find(c, b"add_kernel") - 8;
            c[at..at + 4].fill(0xff);
        });
        assert_eq!(counted, "is cut off, or a count in it is wrong");
        assert_eq!(refused(&good, |c| c.push(0)), "is longer than its content");
        assert_eq!(
            refused(&good, |c| c.truncate(20)),
            "is cut off, or a length in it is wrong"
        );
        // Offset behind the target: the unpacked length of the image.
        let length = |c: &mut Vec<u8>, length: u64| {
            let at = find(c, b"sm_90a") + 6;
            c[at..at + 8].copy_from_slice(&length.to_le_bytes());
        };
        assert_eq!(refused(&good, |c| length(c, 1 << 40)), "has an impossible length");
        assert_eq!(refused(&good, |c| length(c, 1 << 20)), "has an impossible length");
        assert_eq!(
            refused(&good, |c| length(c, 90)),
            "has a content that cannot be unpacked"
        );
        let image = |target: &str, bytes: &[u8]| (target.to_string(), bytes.to_vec());
        let twice = Kernel {
            images: vec![good.images[0].clone(), good.images[0].clone()],
            ..kernel()
        };
        assert_eq!(refused(&twice, same), "has two images for sm_90a");
        let no_code = Kernel {
            images: vec![image("sm_90a", b"junk")],
            ..kernel()
        };
        assert_eq!(
            refused(&no_code, same),
            "has an image for sm_90a that is no fat binary: its first bytes are wrong"
        );
    }
}
