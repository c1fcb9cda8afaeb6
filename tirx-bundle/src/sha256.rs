//! SHA-256, as FIPS 180-4 has it.
//!
//! Bundles and stored results are found and checked by it. The crate `sha2` needs ten others, three with build scripts of
//! their own, which is a thirtieth of a user's clean build.

/// The first 32 bits of the fractional parts of the cube roots of the first 64 primes.
#[rustfmt::skip]
const ROUNDS: [u32; 64] = [
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
];

/// The hash of bytes that come in parts.
#[derive(Clone, Debug)]
pub struct Sha256 {
    state: [u32; 8],
    /// Bytes that are not a whole block yet.
    rest: Vec<u8>,
    /// Bytes so far.
    length: u64,
}

const BLOCK: usize = 64;

impl Default for Sha256 {
    /// The square roots of the first eight primes, as in [`ROUNDS`].
    fn default() -> Sha256 {
        Sha256 {
            state: [
                0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab,
                0x5be0cd19,
            ],
            rest: Vec::new(),
            length: 0,
        }
    }
}

impl Sha256 {
    /// The hash of all of these bytes.
    pub fn of(bytes: &[u8]) -> [u8; 32] {
        let mut hash = Sha256::default();
        hash.update(bytes);
        hash.finish()
    }

    /// Adds bytes.
    pub fn update(&mut self, mut bytes: &[u8]) {
        self.length += bytes.len() as u64;
        if !self.rest.is_empty() {
            let (taken, left) = bytes.split_at(bytes.len().min(BLOCK - self.rest.len()));
            self.rest.extend(taken);
            bytes = left;
            let Ok(block) = <[u8; BLOCK]>::try_from(self.rest.as_slice()) else {
                return;
            };
            self.block(&block);
            self.rest.clear();
        }
        let (blocks, rest) = bytes.as_chunks::<BLOCK>();
        for block in blocks {
            self.block(block);
        }
        self.rest.extend(rest);
    }

    /// The hash of what was added.
    pub fn finish(mut self) -> [u8; 32] {
        let bits = self.length.wrapping_mul(8);
        // A one, zeros, and the length in bits at the end of a block.
        let zeros = (2 * BLOCK - 9 - self.rest.len()) % BLOCK;
        self.update(&[0x80]);
        self.update(&vec![0; zeros]);
        self.update(&bits.to_be_bytes());
        let mut hash = [0; 32];
        for (bytes, word) in hash.chunks_exact_mut(4).zip(self.state) {
            bytes.copy_from_slice(&word.to_be_bytes());
        }
        hash
    }

    fn block(&mut self, block: &[u8; BLOCK]) {
        let mut words = [0u32; 64];
        let (given, _) = block.as_chunks::<4>();
        for (word, bytes) in words.iter_mut().zip(given) {
            *word = u32::from_be_bytes(*bytes);
        }
        for at in 16..64 {
            let (early, late) = (words[at - 15], words[at - 2]);
            let early = early.rotate_right(7) ^ early.rotate_right(18) ^ (early >> 3);
            let late = late.rotate_right(17) ^ late.rotate_right(19) ^ (late >> 10);
            words[at] = words[at - 16]
                .wrapping_add(early)
                .wrapping_add(words[at - 7])
                .wrapping_add(late);
        }
        let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h] = self.state;
        for (word, round) in words.iter().zip(ROUNDS) {
            let sum = e.rotate_right(6) ^ e.rotate_right(11) ^ e.rotate_right(25);
            let choice = (e & f) ^ (!e & g);
            let first = h
                .wrapping_add(sum)
                .wrapping_add(choice)
                .wrapping_add(round)
                .wrapping_add(*word);
            let sum = a.rotate_right(2) ^ a.rotate_right(13) ^ a.rotate_right(22);
            let majority = (a & b) ^ (a & c) ^ (b & c);
            let second = sum.wrapping_add(majority);
            (h, g, f, e) = (g, f, e, d.wrapping_add(first));
            (d, c, b, a) = (c, b, a, first.wrapping_add(second));
        }
        for (state, value) in self.state.iter_mut().zip([a, b, c, d, e, f, g, h]) {
            *state = state.wrapping_add(value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Sha256;

    fn hex(hash: [u8; 32]) -> String {
        hash.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// The examples of FIPS 180 (NIST's "Examples with Intermediate Values").
    #[test]
    fn published_examples() {
        for (text, hash) in [
            (
                "",
                "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
            ),
            (
                "abc",
                "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
            ),
            (
                "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
                "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1",
            ),
        ] {
            assert_eq!(hex(Sha256::of(text.as_bytes())), hash, "{text}");
        }
        let million = vec![b'a'; 1_000_000];
        assert_eq!(
            hex(Sha256::of(&million)),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"
        );
    }

    /// Every length around the ends of blocks, in one part and in two, against another implementation.
    #[test]
    fn every_length_is_hashed_as_by_another_implementation() {
        use sha2::Digest;
        let bytes: Vec<u8> = (0..200u32).map(|i| (i * 7 + 3) as u8).collect();
        for length in 0..bytes.len() {
            let expected: [u8; 32] = sha2::Sha256::digest(&bytes[..length]).into();
            assert_eq!(Sha256::of(&bytes[..length]), expected, "{length}");
            for cut in [length / 3, length / 2] {
                let mut hash = Sha256::default();
                hash.update(&bytes[..cut]);
                hash.update(&bytes[cut..length]);
                assert_eq!(hash.finish(), expected, "{length} at {cut}");
            }
        }
    }
}
