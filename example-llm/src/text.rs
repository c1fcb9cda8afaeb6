//! How does text become tokens, and tokens text?
//!
//! The tokenizers of Llama 3 and Qwen are byte-pair encodings of bytes: a text is cut into words, and within a word the pair of neighbors
//! with the earliest merge becomes one token, again and again. `tokenizer.json` has the tokens and the merges. It writes a byte as a
//! character: printable ones as themselves, the others from U+0100 on.

use std::collections::HashMap;
use std::path::Path;

use serde_json::Value;

use crate::Result;

/// A byte-level byte-pair encoding.
#[derive(Debug)]
pub struct Text {
    tokens: HashMap<Vec<u8>, i32>,
    bytes: HashMap<i32, Vec<u8>>,
    /// The order of merges of pairs of tokens.
    merges: HashMap<(i32, i32), usize>,
    /// Tokens that stand for themselves in a text, such as the begin of a text, by their texts.
    special: Vec<(String, i32)>,
    /// Digits of a word of digits, at most.
    digits: usize,
}

/// The byte that a character of `tokenizer.json` stands for.
fn bytes_of_characters() -> HashMap<char, u8> {
    let printable = |b: &u8| matches!(b, b'!'..=b'~' | 0xa1..=0xac | 0xae..=0xff);
    let shown = (0..=255u8).filter(printable).map(|b| (char::from(b), b));
    let others = (0..=255u8).filter(|b| !printable(b)).zip(0x100u32..);
    let others = others.filter_map(|(b, c)| Some((char::from_u32(c)?, b)));
    shown.chain(others).collect()
}

impl Text {
    /// The encoding of a `tokenizer.json`.
    ///
    /// # Errors
    /// A file that cannot be read, or another kind of tokenizer.
    pub fn from_file(path: &Path) -> Result<Text> {
        Text::from_json(&std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?)
    }

    /// That of the text of a `tokenizer.json`.
    ///
    /// # Errors
    /// A kind of tokenizer that is not supported.
    pub fn from_json(text: &str) -> Result<Text> {
        let json: Value = serde_json::from_str(text)?;
        let model = &json["model"];
        let vocabulary = model["vocab"]
            .as_object()
            .ok_or("the tokenizer has no vocabulary")?;
        let characters = bytes_of_characters();
        let raw = |token: &str| {
            token
                .chars()
                .map(|c| characters.get(&c).copied())
                .collect::<Option<Vec<u8>>>()
        };
        let mut found = Text {
            tokens: HashMap::new(),
            bytes: HashMap::new(),
            merges: HashMap::new(),
            special: Vec::new(),
            // Qwen's words of digits have one, Llama's up to three.
            digits: if json["pre_tokenizer"].to_string().contains("{1,3}") {
                3
            } else {
                1
            },
        };
        for (token, id) in vocabulary {
            let (Some(bytes), Some(id)) = (raw(token), id.as_i64()) else {
                return Err(
                    "this is no byte-level tokenizer: those of Llama 3 and Qwen are supported".into(),
                );
            };
            found.tokens.insert(bytes.clone(), id as i32);
            found.bytes.insert(id as i32, bytes);
        }
        for (order, merge) in model["merges"].as_array().into_iter().flatten().enumerate() {
            let pair = match merge {
                Value::String(pair) => pair.split_once(' '),
                pair => pair[0].as_str().zip(pair[1].as_str()),
            };
            let ids =
                pair.and_then(|(a, b)| Some((*found.tokens.get(&raw(a)?)?, *found.tokens.get(&raw(b)?)?)));
            found
                .merges
                .insert(ids.ok_or("a merge names a token that there is not")?, order);
        }
        for token in json["added_tokens"].as_array().into_iter().flatten() {
            if let (Some(text), Some(id)) = (token["content"].as_str(), token["id"].as_i64()) {
                found.special.push((text.to_string(), id as i32));
                found.bytes.insert(id as i32, text.as_bytes().to_vec());
            }
        }
        Ok(found)
    }

    /// The tokens of a text.
    ///
    /// # Errors
    /// A byte that is no token.
    pub fn tokens(&self, text: &str) -> Result<Vec<i32>> {
        let mut tokens = Vec::new();
        let mut rest = text;
        while !rest.is_empty() {
            // The next special token, and the text before.
            let next = self
                .special
                .iter()
                .filter_map(|(s, id)| Some((rest.find(s.as_str())?, s.len(), *id)));
            let next = next
                .filter(|(_, length, _)| *length > 0)
                .min_by_key(|(at, length, _)| (*at, usize::MAX - length));
            let (plain, length, id) = match next {
                Some((at, length, id)) => (&rest[..at], length, Some(id)),
                None => (rest, 0, None),
            };
            for word in words(plain, self.digits) {
                tokens.extend(self.word(word)?);
            }
            tokens.extend(id);
            rest = &rest[plain.len() + length..];
        }
        Ok(tokens)
    }

    fn word(&self, word: &str) -> Result<Vec<i32>> {
        if let Some(id) = self.tokens.get(word.as_bytes()) {
            return Ok(vec![*id]);
        }
        let byte = |b: &u8| {
            self.tokens
                .get([*b].as_slice())
                .copied()
                .ok_or_else(|| format!("byte {b} is no token"))
        };
        let mut parts = word
            .as_bytes()
            .iter()
            .map(byte)
            .collect::<std::result::Result<Vec<_>, _>>()?;
        loop {
            let merges = parts.windows(2).enumerate();
            let merges = merges.filter_map(|(at, pair)| Some((*self.merges.get(&(pair[0], pair[1]))?, at)));
            let Some((_, at)) = merges.min() else {
                return Ok(parts);
            };
            let joined = [&self.bytes[&parts[at]][..], &self.bytes[&parts[at + 1]]].concat();
            let id = self.tokens.get(&joined).ok_or("a merge gives no token")?;
            parts.splice(at..at + 2, [*id]);
        }
    }

    /// The text of tokens. A character whose bytes are not complete is left out at the end.
    pub fn text(&self, tokens: &[i32]) -> String {
        let bytes: Vec<u8> = tokens
            .iter()
            .filter_map(|t| self.bytes.get(t))
            .flatten()
            .copied()
            .collect();
        match std::str::from_utf8(&bytes) {
            Err(error) if error.error_len().is_none() => {
                String::from_utf8_lossy(&bytes[..error.valid_up_to()]).into_owned()
            }
            _ => String::from_utf8_lossy(&bytes).into_owned(),
        }
    }
}

/// The words of a text: an English contraction; letters with one other character before; digits; other characters with a space before and
/// line ends behind; white space up to its last line end, and without the space before a word.
fn words(text: &str, digits: usize) -> Vec<&str> {
    let mut words = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (word, behind) = rest.split_at(word_length(rest, digits));
        words.push(word);
        rest = behind;
    }
    words
}

/// The bytes of the characters at the begin of a text for which a condition holds.
fn run(text: &str, condition: impl Fn(char) -> bool) -> usize {
    text.find(|c| !condition(c)).unwrap_or(text.len())
}

fn word_length(text: &str, digits: usize) -> usize {
    let mut characters = text.chars();
    let first = characters.next().map_or(0, char::len_utf8);
    let (one, two) = (text.chars().next().unwrap_or(' '), characters.next());
    let lower = |text: &str, end: &str| text.get(..end.len()).is_some_and(|t| t.eq_ignore_ascii_case(end));
    if let Some(end) = ["'s", "'t", "'re", "'ve", "'m", "'ll", "'d"]
        .iter()
        .find(|end| lower(text, end))
    {
        return end.len();
    }
    let line_end = |c: char| c == '\r' || c == '\n';
    let other = |c: char| !c.is_whitespace() && !c.is_alphabetic() && !c.is_numeric();
    if one.is_alphabetic() {
        return run(text, char::is_alphabetic);
    }
    if !line_end(one) && !one.is_numeric() && two.is_some_and(char::is_alphabetic) {
        return first + run(&text[first..], char::is_alphabetic);
    }
    if one.is_numeric() {
        return text
            .chars()
            .take(digits)
            .take_while(|c| c.is_numeric())
            .map(char::len_utf8)
            .sum();
    }
    if other(one) || one == ' ' && two.is_some_and(other) {
        let begin = if other(one) { 0 } else { 1 };
        let length = begin + run(&text[begin..], other);
        return length + run(&text[length..], line_end);
    }
    let white = run(text, char::is_whitespace);
    if let Some(at) = text[..white].rfind(line_end) {
        return at + 1;
    }
    // The last space belongs to the word behind.
    match text[..white].char_indices().next_back() {
        Some((last, _)) if white < text.len() && last > 0 => last,
        _ => white,
    }
}

#[cfg(test)]
mod tests {
    use super::{Text, words};

    #[test]
    fn texts_are_cut_into_words() {
        let cut = |text| words(text, 3);
        assert_eq!(cut("Hello world"), ["Hello", " world"]);
        assert_eq!(
            cut("I'm 12345 years  old!!\n\n  x"),
            [
                "I", "'m", " ", "123", "45", " years", " ", " old", "!!\n\n", " ", " x"
            ]
        );
        assert_eq!(cut("a \n b (c)"), ["a", " \n", " b", " (", "c", ")"]);
        assert_eq!(cut("é\u{4e2d}1"), ["é\u{4e2d}", "1"]);
        assert_eq!(cut("x  "), ["x", "  "]);
        assert_eq!(words("12", 1), ["1", "2"]);
    }

    #[test]
    fn earlier_merges_come_first() {
        let json = r#"{"added_tokens":[{"id":9,"content":"<s>"}],"model":{"vocab":{"a":0,"b":1,"Ġ":2,"ab":3,"Ġa":4,"Ġab":5,"Ã":6,"©":7,"é":8},
            "merges":["a b",["Ġ","ab"],["Ġ","a"]]}}"#;
        let text = Text::from_json(json).unwrap();
        assert_eq!(text.tokens("<s>ab ab a").unwrap(), [9, 3, 5, 4]);
        assert_eq!(text.text(&[9, 3, 5, 4]), "<s>ab ab a");
        assert_eq!(text.tokens("é").unwrap(), [6, 7]);
        assert_eq!(
            (text.text(&[0, 6]), text.text(&[0, 6, 7])),
            ("a".to_string(), "aé".to_string())
        );
        assert_eq!(text.tokens("c").unwrap_err().to_string(), "byte 99 is no token");
        assert!(Text::from_json("{}").is_err());
    }
}
