//! The book's table of contents: `SUMMARY.md` by mdBook's convention.
//!
//! A heading begins a part. A list item is a chapter, two more spaces before it make it a section of the chapter above. A link
//! outside of a list is a page without a number, such as an introduction.

use crate::process::Result;

/// A page in the order of the book.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// The title in the table of contents.
    pub title: String,
    /// The page's file below `src`, with `/`.
    pub file: String,
    /// 0 for a chapter, 1 for its sections, …
    pub depth: usize,
    /// The part that begins before this page.
    pub part: Option<String>,
}

/// The pages that a table of contents lists.
///
/// # Errors
/// A line of another form.
pub(super) fn entries(text: &str) -> Result<Vec<Entry>> {
    let mut found: Vec<Entry> = Vec::new();
    let mut part = None;
    for (number, line) in text.lines().enumerate() {
        let trimmed = line.trim();
        if trimmed.is_empty() || trimmed == "# Summary" {
            continue;
        }
        if let Some(title) = trimmed.strip_prefix("# ") {
            part = Some(title.to_string());
            continue;
        }
        let item = trimmed.strip_prefix("- ");
        let link = item.unwrap_or(trimmed);
        let parts = link
            .strip_prefix('[')
            .and_then(|rest| rest.strip_suffix(')'))
            .and_then(|rest| rest.split_once("]("));
        let Some((title, file)) = parts else {
            return Err(format!("SUMMARY.md:{}: neither a part nor a link: {line}", number + 1).into());
        };
        found.push(Entry {
            title: title.into(),
            file: file.into(),
            depth: match item {
                Some(_) => (line.len() - line.trim_start().len()) / 2,
                None => 0,
            },
            part: part.take(),
        });
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chapters_sections_and_parts() {
        let text = "# Summary\n\n[Intro](a.md)\n\n# Part\n\n- [B](b.md)\n  - [C](c/d.md)\n";
        let found = entries(text).unwrap();
        let short: Vec<(&str, usize, Option<&str>)> = found
            .iter()
            .map(|entry| (entry.file.as_str(), entry.depth, entry.part.as_deref()))
            .collect();
        assert_eq!(
            short,
            [("a.md", 0, None), ("b.md", 0, Some("Part")), ("c/d.md", 1, None)]
        );
        assert!(entries("- B (b.md)\n").is_err());
    }
}
