//! Names that C and C++ programs cannot give, or should not give, to something else.
//!
//! `words.txt` has the words that nothing may be called: keywords of both languages, and macros that standard headers
//! define for values. `names.txt` has the functions, types and objects of the headers of C, POSIX and the GNU C library: a kernel of such a
//! name would not compile beside the header, or take the place of the library's function in the program.

/// Words that no parameter and no function may be called.
const WORDS: &str = include_str!("words.txt");

/// Names that the headers of C's library declare.
const NAMES: &str = include_str!("names.txt");

/// What the names of functions for a type of floats of fixed width end in: `tanhf64`.
const WIDTHS: [&str; 5] = ["f128", "f32", "f32x", "f64", "f64x"];

/// Whether nothing may have this name.
pub(super) fn is_word(name: &str) -> bool {
    WORDS.split_whitespace().any(|word| word == name)
}

/// Whether no function may have this name: it is a word, a name of C's library, or one of the generated files' own.
pub(super) fn is_taken(name: &str) -> bool {
    let of_library = |name: &str| NAMES.split_whitespace().any(|known| known == name);
    is_word(name)
        || name == "tirx"
        || name.starts_with("tirx_")
        || of_library(name)
        || WIDTHS
            .iter()
            .any(|width| name.strip_suffix(width).is_some_and(of_library))
}
