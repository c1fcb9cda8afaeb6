//! Lays generated Rust out for readers: a statement a line, indented, and broken at its brackets where it is long.
//!
//! It knows tokens, brackets and where statements end, not Rust's grammar, and keeps the spaces of the text within a line. What
//! it is given is this crate's own text, which has spaces around operators and none within `<…>`. `syn` and `prettyplease`
//! would do it too, for a twentieth of a user's clean build; a test holds the tokens against those of `syn`.

/// Columns of a line, where it can be broken.
const WIDTH: usize = 100;
const INDENT: usize = 4;
/// Groups of so many characters are not worth a break.
const SHORT: usize = 16;

/// A token, or a group of brackets with what is in them.
enum Tree {
    /// `///` and the rest of its line.
    Doc(String),
    Token {
        text: String,
        space: bool,
    },
    Group {
        open: char,
        items: Vec<Tree>,
        space: bool,
    },
}

impl Tree {
    fn is(&self, token: &str) -> bool {
        matches!(self, Tree::Token { text, .. } if text == token)
    }

    /// Whether the text has a space before it.
    fn space(&self) -> bool {
        match self {
            Tree::Doc(_) => true,
            Tree::Token { space, .. } | Tree::Group { space, .. } => *space,
        }
    }

    fn is_group(&self, bracket: char) -> bool {
        matches!(self, Tree::Group { open, .. } if *open == bracket)
    }
}

fn closing(open: char) -> char {
    match open {
        '(' => ')',
        '[' => ']',
        _ => '}',
    }
}

/// The text, laid out.
pub(super) fn format(text: &str) -> String {
    let mut reader = Reader { text, at: 0 };
    let mut out = String::new();
    let mut trees = Vec::new();
    while !reader.rest().is_empty() {
        trees.extend(reader.trees());
        // A bracket that closes nothing stands as it is; the compiler says so.
        if let Some(stray) = reader.rest().chars().next() {
            reader.at += stray.len_utf8();
            trees.push(Tree::Token {
                text: stray.to_string(),
                space: false,
            });
        }
    }
    for row in rows(&trees, '{') {
        lay(&mut out, row, 0);
    }
    out
}

struct Reader<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Reader<'t> {
    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    /// The trees up to a closing bracket, which stays.
    fn trees(&mut self) -> Vec<Tree> {
        let mut trees = Vec::new();
        loop {
            let rest = self.rest();
            let start = rest.trim_start();
            let space = start.len() < rest.len();
            self.at += rest.len() - start.len();
            let Some(first) = start.chars().next() else {
                return trees;
            };
            if let Some(doc) = start.strip_prefix("///") {
                let line = doc.lines().next().unwrap_or_default();
                self.at += "///".len() + line.len();
                trees.push(Tree::Doc(line.trim_end().to_string()));
                continue;
            }
            match first {
                '(' | '[' | '{' => {
                    self.at += 1;
                    let items = self.trees();
                    if self.rest().starts_with(closing(first)) {
                        self.at += 1;
                    }
                    trees.push(Tree::Group {
                        open: first,
                        items,
                        space,
                    });
                }
                ')' | ']' | '}' => return trees,
                _ => {
                    let length = token(start);
                    self.at += length;
                    trees.push(Tree::Token {
                        text: start[..length].to_string(),
                        space,
                    });
                }
            }
        }
    }
}

/// The length of the first token of a text.
fn token(text: &str) -> usize {
    let word = |c: char| c.is_alphanumeric() || c == '_';
    let mut chars = text.char_indices();
    let Some((_, first)) = chars.next() else {
        return 0;
    };
    if first == '"' {
        let mut escaped = false;
        for (at, c) in chars {
            match c {
                _ if escaped => escaped = false,
                '\\' => escaped = true,
                '"' => return at + 1,
                _ => {}
            }
        }
        return text.len();
    }
    if word(first) {
        // A decimal point is of the number, the dots of a range or a call are not.
        let number = first.is_ascii_digit();
        let bytes = text.as_bytes();
        let inside = |(at, c): (usize, char)| {
            word(c) || (number && c == '.' && bytes.get(at + 1).is_some_and(u8::is_ascii_digit))
        };
        return chars.find(|c| !inside(*c)).map_or(text.len(), |(at, _)| at);
    }
    first.len_utf8()
}

/// The parts of a group's contents that have lines of their own: elements of a list, statements of a block. Each has its
/// `,` or `;` with it.
fn rows(trees: &[Tree], open: char) -> Vec<&[Tree]> {
    /// Operators and such that go on after a block.
    const GOES_ON: [&str; 9] = ["else", ".", "?", ",", ";", "=", "&", "|", "as"];
    let mut rows = Vec::new();
    let (mut start, mut angles, mut closure, mut assigns) = (0, 0, false, false);
    for (at, tree) in trees.iter().enumerate() {
        let before = &trees[start..at];
        let next = trees.get(at + 1);
        let mut ends = false;
        match tree {
            Tree::Token { text, .. } => match text.as_str() {
                "<" if next.is_some_and(|next| !next.space() && !next.is("=") && !next.is("<")) => {
                    angles += 1
                }
                ">" if angles > 0 && !before.last().is_some_and(|t| t.is("-") || t.is("=")) => angles -= 1,
                "|" if closure => closure = false,
                // The parameters of a closure: what is before it begins an expression.
                "|" => closure = before.last().is_none_or(|t| t.is("=") || t.is("move")),
                "=" => assigns |= is_assignment(before.last(), next),
                "," => ends = angles == 0 && !closure,
                ";" => ends = open == '{',
                _ => {}
            },
            Tree::Group { open: '{', .. } if open == '{' => {
                let value = assigns || before.iter().any(|t| t.is("return") || t.is("let"));
                ends = !value && !next.is_some_and(|next| GOES_ON.iter().any(|word| next.is(word)));
            }
            Tree::Group { .. } | Tree::Doc(_) => {}
        }
        if ends || at + 1 == trees.len() {
            rows.push(&trees[start..=at]);
            (start, angles, closure, assigns) = (at + 1, 0, false, false);
        }
    }
    rows
}

/// Whether a `=` stands by itself, and is no part of `==`, `!=`, `<=`, `>=` or `=>`.
fn is_assignment(before: Option<&Tree>, next: Option<&Tree>) -> bool {
    let comparison = before.is_some_and(|t| ["=", "!", "<", ">"].iter().any(|token| t.is(token)));
    !comparison && !next.is_some_and(|t| !t.space() && (t.is("=") || t.is(">")))
}

/// Trees on one line; `None` where there is documentation, or a block of several statements.
fn flat(trees: &[Tree]) -> Option<String> {
    let mut line = String::new();
    for (at, tree) in trees.iter().enumerate() {
        if at > 0 && tree.space() {
            line.push(' ');
        }
        match tree {
            Tree::Doc(_) => return None,
            Tree::Token { text, .. } => line.push_str(text),
            Tree::Group { open, items, .. } => {
                if *open == '{' && items.iter().any(|item| item.is(";")) {
                    return None;
                }
                let inside = flat(items)?;
                let inside = inside
                    .strip_suffix(',')
                    .filter(|_| *open != '(')
                    .unwrap_or(&inside);
                let pad = if *open == '{' && !inside.is_empty() {
                    " "
                } else {
                    ""
                };
                line.extend([&open.to_string(), pad, inside, pad, &closing(*open).to_string()]);
            }
        }
    }
    Some(line)
}

/// Writes a row: its documentation and attributes, then the rest on one line, or broken.
fn lay(out: &mut String, row: &[Tree], indent: usize) {
    let margin = " ".repeat(indent);
    let mut row = row;
    loop {
        match row {
            [Tree::Doc(line), rest @ ..] => {
                out.push_str(&format!("{margin}///{line}\n"));
                row = rest;
            }
            [hash, attribute, rest @ ..] if hash.is("#") && attribute.is_group('[') => {
                lay_line(out, &row[..2], indent);
                row = rest;
            }
            [] => return,
            rest => return lay_line(out, rest, indent),
        }
    }
}

fn lay_line(out: &mut String, row: &[Tree], indent: usize) {
    out.push_str(&" ".repeat(indent));
    if let Some(line) = flat(row).filter(|line| indent + line.chars().count() <= WIDTH) {
        out.push_str(&line);
        out.push('\n');
        return;
    }
    // What is before a block is not broken where it fits.
    let block = row.iter().position(|tree| tree.is_group('{')).unwrap_or(0);
    let head = flat(&row[..block]).filter(|head| indent + head.chars().count() + " {".len() <= WIDTH);
    let skip = head.as_ref().map_or(0, |_| block);
    out.push_str(&head.unwrap_or_default());
    let column = |out: &String| {
        let start = out.rfind('\n').map_or(0, |at| at + 1);
        out[start..].chars().count()
    };
    let length = |trees: &[Tree]| flat(trees).map_or(0, |text| text.chars().count());
    let deeper = format!("\n{}", " ".repeat(indent + INDENT));
    for (at, tree) in row.iter().enumerate().skip(skip) {
        let (before, after) = (&row[..at], &row[at + 1..]);
        let next = after.first();
        let operator = next.is_some_and(|next| {
            ["&", "|"].iter().any(|o| tree.is(o) && next.is(o)) && tree.space() && !next.space()
        });
        // The call with its arguments has to fit as well.
        let call = after
            .iter()
            .position(|t| matches!(t, Tree::Group { .. }))
            .map_or(after.len(), |p| p + 1);
        let method = tree.is(".")
            && matches!(before, [.., Tree::Group { .. }])
            && column(out) + length(&row[at..at + 1 + call]) > WIDTH;
        if operator || method {
            out.push_str(&deeper);
        } else if at > 0 && tree.space() {
            out.push(' ');
        }
        match tree {
            Tree::Doc(line) => out.push_str(&format!("{deeper}///{line}{deeper}")),
            Tree::Token { text, .. } => out.push_str(text),
            Tree::Group { open, items, .. } => {
                // With what can only stand behind it, such as a function's result.
                let stops = |t: &Tree| t.is_group('{') || [".", "&", "|"].iter().any(|token| t.is(token));
                let tail = after.iter().position(stops).unwrap_or(after.len());
                let tail = length(&after[..tail]);
                let fits = flat(std::slice::from_ref(tree)).filter(|text| {
                    let own = text.chars().count();
                    own <= SHORT || column(out) + own + tail <= WIDTH
                });
                match fits {
                    Some(text) => out.push_str(&text),
                    None => lay_group(out, *open, items, indent),
                }
            }
        }
    }
    out.push('\n');
}

fn lay_group(out: &mut String, open: char, items: &[Tree], indent: usize) {
    out.push(open);
    let rows = rows(items, open);
    // What holds nothing but a call is broken at the call's brackets.
    if let (
        [_],
        [
            head @ ..,
            Tree::Group {
                open: inner, items, ..
            },
        ],
    ) = (rows.as_slice(), items)
        && open != '{'
        && let Some(head) = flat(head)
    {
        out.push_str(&head);
        lay_group(out, *inner, items, indent);
        out.push(closing(open));
        return;
    }
    out.push('\n');
    for row in &rows {
        lay(out, row, indent + INDENT);
    }
    // After the last element of a list, as after the others. `..base` of a struct has none.
    let listed = rows.len() > 1
        && rows[..rows.len() - 1]
            .iter()
            .all(|row| row.last().is_some_and(|t| t.is(",")));
    let last = rows.last().and_then(|row| Some((row.first()?, row.last()?)));
    if let Some((first, last)) = last
        && listed
        && !first.is(".")
        && !last.is(",")
        && !(open == '{' && last.is_group('{'))
    {
        out.pop();
        out.push_str(",\n");
    }
    out.push_str(&" ".repeat(indent));
    out.push(closing(open));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What another printer makes of a text, without spaces and commas after last elements.
    fn tokens(text: &str) -> String {
        let file = syn::parse_file(text).unwrap_or_else(|error| panic!("{error}: {text}"));
        let printed: String = prettyplease::unparse(&file).split_whitespace().collect();
        printed.replace(",)", ")").replace(",}", "}").replace(",]", "]")
    }

    #[test]
    fn lines_are_broken_at_brackets_and_keep_their_tokens() {
        let text = r#"/// Kernels: "a{".
#[allow(dead_code, clippy::all)]
pub mod kernels {
pub fn add(stream: &::tirx_rt::Stream, a: &impl ::tirx_rt::AsTensor<f32>, b: &mut impl ::tirx_rt::AsTensorMut<f32>) -> Result<(), ::tirx_rt::Error> { add::host(stream, &[::tirx_rt::host::Arg::tensor(a), ::tirx_rt::host::Arg::tensor_mut(b)]) }
/// The layers below.
pub mod add {
pub static IMAGE: Image = Image { name: "}", functions: &[], range: 0..1, part: 1.5, ..Image::new() };
pub fn host<A, B: Into<A>>(args: &[Arg<'_>; 2]) -> Result<(), Error> where A: Copy, B: Copy {
if args[0].ndim() != 1 { return Err(mismatch(KERNEL, 0, "a", "ndim, which is long", "of some other dimension", args[0].ndim())); }
else if n < 1 && args[0].stride(1) > 2 || n >> 2 > 3 { let f = |x: i32, y: i32| x + y; f(1, 2); }
if !Wide::from(i64::from(n)).mul(Wide::from(2_i64)).mul(Wide::from(4_i64)).equals(Wide::from(0_i64)) && args[1].data() == 0 { return Err(1); }
match LOADED.choose(stream)? { 0 => sm_90a::host(stream, args), 1 => { one() } _ => sm_100a::host(stream, args), }
}
pub trait Element: ::tirx_rt::Element { #[doc(hidden)] fn launch(stream: &Stream) -> Result<(), Error>; }
impl Element<A, B> for (A, B) { fn launch(stream: &Stream) -> Result<(), Error> { <(A, B) as Element<A, B>>::launch(stream) } }
}
}
"#;
        let laid = format(text);
        assert_eq!(tokens(text), tokens(&laid), "{laid}");
        assert_eq!(format(&laid), laid);
        let expected = r#"/// Kernels: "a{".
#[allow(dead_code, clippy::all)]
pub mod kernels {
    pub fn add(
        stream: &::tirx_rt::Stream,
"#;
        assert!(laid.starts_with(expected), "{laid}");
        assert!(
            laid.contains("            ..Image::new()\n        };\n"),
            "{laid}"
        );
        assert!(
            laid.contains("                0 => sm_90a::host(stream, args),\n"),
            "{laid}"
        );
        assert!(
            laid.lines().all(|line| line.chars().count() <= WIDTH + SHORT),
            "{laid}"
        );
    }

    #[test]
    fn a_text_that_is_no_rust_is_laid_out_too() {
        for text in ["", "}", "(", "\"abc", "a ) b", "#", "/// x", "fn f( {", "é \\ '"] {
            let squeezed = |text: &str| text.split_whitespace().collect::<String>();
            let laid = squeezed(&format(text));
            assert!(laid.starts_with(&squeezed(text)), "{text}: {laid}");
        }
    }
}
