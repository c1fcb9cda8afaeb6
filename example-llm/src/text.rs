//! How does text become tokens, and tokens text?

use std::path::Path;

use tokenizers::Tokenizer;

use crate::Result;

/// The errors of the crate can go to another thread.
fn plain(error: tokenizers::Error) -> Box<dyn std::error::Error> {
    error
}

/// A tokenizer, and the token that begins each text if its rules do not give one.
#[derive(Debug)]
pub struct Text {
    tokenizer: Tokenizer,
    begin: Option<i32>,
}

impl Text {
    /// That of a `tokenizer.json`.
    ///
    /// # Errors
    /// A file that cannot be read.
    pub fn from_file(path: &Path) -> Result<Text> {
        let text = std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
        Text::from_json(&text, None).map_err(|e| format!("{}: {e}", path.display()).into())
    }

    /// That of the text of a `tokenizer.json`, with a token that begins each text.
    ///
    /// # Errors
    /// A text that describes no tokenizer.
    pub fn from_json(json: &str, begin: Option<i32>) -> Result<Text> {
        Ok(Text {
            tokenizer: Tokenizer::from_bytes(json).map_err(plain)?,
            begin,
        })
    }

    /// The tokens of a text, with those that begin and end it.
    ///
    /// # Errors
    /// A text that has no tokens.
    pub fn tokens(&self, text: &str) -> Result<Vec<i32>> {
        let found = self.tokenizer.encode(text, true).map_err(plain)?;
        let ids = found.get_ids().iter().map(|id| *id as i32);
        Ok(self.begin.into_iter().chain(ids).collect())
    }

    /// The text of tokens, without those that control. A character whose bytes are not complete is left out at the end.
    ///
    /// # Errors
    /// A tokenizer that cannot decode.
    pub fn text(&self, tokens: &[i32]) -> Result<String> {
        let ids: Vec<u32> = tokens.iter().map(|id| *id as u32).collect();
        let text = self.tokenizer.decode(&ids, true).map_err(plain)?;
        Ok(text.trim_end_matches('\u{fffd}').to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::Text;

    #[test]
    fn characters_become_text_when_their_bytes_are_complete() {
        let json = r#"{"version":"1.0","added_tokens":[{"id":9,"content":"<s>","special":true,"single_word":false,"lstrip":false,"rstrip":false,
            "normalized":false}],"pre_tokenizer":{"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true,"use_regex":true},
            "decoder":{"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true,"use_regex":true},
            "model":{"type":"BPE","vocab":{"a":0,"b":1,"Ġ":2,"ab":3,"Ġa":4,"Ġab":5,"Ã":6,"©":7,"é":8},"merges":["a b","Ġ ab","Ġ a"]}}"#;
        let text = Text::from_json(json, Some(9)).unwrap();
        assert_eq!(text.tokens("ab ab a").unwrap(), [9, 3, 5, 4]);
        assert_eq!(text.text(&[9, 3, 5, 4]).unwrap(), "ab ab a");
        assert_eq!(text.tokens("é").unwrap(), [9, 6, 7]);
        assert_eq!(text.text(&[0, 6]).unwrap(), "a");
        assert_eq!(text.text(&[0, 6, 7]).unwrap(), "aé");
        assert!(Text::from_json("{}", None).is_err());
    }
}
