//! Texts as an editor shows them: positions, the name under the cursor, the call around it, all uses of a name.

use lsp_types::{Position, Range};

/// Whether a character is part of a name.
fn is_of_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The byte of a position, whose characters are UTF-16 units; the end of the line or text where it is beyond.
pub fn byte_of(text: &str, position: Position) -> usize {
    let mut start = 0;
    for _ in 0..position.line {
        match text[start..].find('\n') {
            Some(end) => start += end + 1,
            None => return text.len(),
        }
    }
    let line = text[start..].lines().next().unwrap_or_default();
    let mut units = 0;
    for (at, c) in line.char_indices() {
        if units >= position.character as usize {
            return start + at;
        }
        units += c.len_utf16();
    }
    start + line.len()
}

/// The position of a byte.
pub fn position_of(text: &str, byte: usize) -> Position {
    let before = text.get(..byte.min(text.len())).unwrap_or(text);
    let start = before.rfind('\n').map_or(0, |at| at + 1);
    Position {
        line: before.matches('\n').count() as u32,
        character: before[start..].encode_utf16().count() as u32,
    }
}

/// The range of two bytes.
pub fn range_of(text: &str, start: usize, end: usize) -> Range {
    Range {
        start: position_of(text, start),
        end: position_of(text, end),
    }
}

/// The dotted name that a byte is in, up to the part under the cursor: `T.ptx.ld` of `T.p|tx` is `T.ptx`. With its first byte
/// and the one behind it.
pub fn dotted_at(text: &str, byte: usize) -> Option<(&str, usize, usize)> {
    let start = text[..byte]
        .char_indices()
        .rev()
        .take_while(|(_, c)| is_of_name(*c) || *c == '.')
        .last()
        .map_or(byte, |(at, _)| at);
    let end = text[byte..]
        .char_indices()
        .find(|(_, c)| !is_of_name(*c))
        .map_or(text.len(), |(at, _)| byte + at);
    let name = text[start..end].trim_matches('.');
    let first = start + (text[start..end].len() - text[start..end].trim_start_matches('.').len());
    let proper = !name.is_empty() && !name.starts_with(|c: char| c.is_ascii_digit());
    proper.then_some((name, first, end))
}

/// What is completed at a byte: the path before the last dot and the beginning of the name behind it.
pub fn path_before(text: &str, byte: usize) -> Option<(&str, &str)> {
    let start = text[..byte]
        .char_indices()
        .rev()
        .take_while(|(_, c)| is_of_name(*c) || *c == '.')
        .last()
        .map_or(byte, |(at, _)| at);
    text[start..byte].rsplit_once('.')
}

/// The call that a byte is in: the dotted name before its parenthesis, and how many commas are before the byte.
pub fn call_around(text: &str, byte: usize) -> Option<(&str, usize)> {
    let (mut depth, mut commas) = (0, 0);
    // A call has at most some thousand characters.
    for (at, c) in text[..byte].char_indices().rev().take(4000) {
        match c {
            ')' | ']' | '}' => depth += 1,
            '(' if depth == 0 => {
                let before = text[..at].trim_end();
                return dotted_at(text, before.len()).map(|(name, _, _)| (name, commas));
            }
            '(' | '[' | '{' => {
                if depth == 0 {
                    commas = 0;
                } else {
                    depth -= 1;
                }
            }
            ',' if depth == 0 => commas += 1,
            _ => {}
        }
    }
    None
}

/// The bytes of the names of a text that are neither in strings and comments, nor attributes, nor keywords of calls.
fn names(text: &str) -> Vec<(usize, usize)> {
    let bytes = text.as_bytes();
    let mut found = Vec::new();
    let mut at = 0;
    let mut depth = 0i32;
    while at < bytes.len() {
        let rest = &text[at..];
        let c = rest.chars().next().unwrap_or(' ');
        match c {
            '#' => at += rest.find('\n').unwrap_or(rest.len()),
            '"' | '\'' => {
                let long = rest.len() >= 3 && rest.as_bytes()[1] == c as u8 && rest.as_bytes()[2] == c as u8;
                let quote = if long { &rest[..3] } else { &rest[..1] };
                let mut end = quote.len();
                while end < rest.len() && !rest[end..].starts_with(quote) {
                    let escaped = rest.as_bytes()[end] == b'\\';
                    let step = rest[end..]
                        .chars()
                        .take(1 + usize::from(escaped))
                        .map(char::len_utf8)
                        .sum::<usize>();
                    if !long && rest[end..].starts_with('\n') {
                        break;
                    }
                    end += step.max(1);
                }
                at += (end + quote.len()).min(rest.len());
            }
            c if c.is_alphabetic() || c == '_' => {
                let end = at + rest.find(|c: char| !is_of_name(c)).unwrap_or(rest.len());
                let attribute = text[..at].trim_end_matches([' ', '\t']).ends_with('.');
                let behind = text[end..].trim_start_matches([' ', '\t']);
                let keyword = depth > 0 && behind.starts_with('=') && !behind.starts_with("==");
                if !attribute && !keyword {
                    found.push((at, end));
                }
                at = end;
            }
            c => {
                match c {
                    '(' | '[' | '{' => depth += 1,
                    ')' | ']' | '}' => depth -= 1,
                    _ => {}
                }
                at += c.len_utf8();
            }
        }
    }
    found
}

/// Where a name is used in a text.
pub fn uses(text: &str, name: &str) -> Vec<Range> {
    let found = names(text)
        .into_iter()
        .filter(|(start, end)| &text[*start..*end] == name);
    found.map(|(start, end)| range_of(text, start, end)).collect()
}

/// Where a name that is used at a byte is defined: the last definition before it, else the first one.
pub fn definition(text: &str, name: &str, byte: usize) -> Option<Range> {
    let defines = |start: usize, end: usize| {
        let line_start = text[..start].rfind('\n').map_or(0, |at| at + 1);
        let head = text[line_start..start].trim_start();
        let tail = text[end..].trim_start_matches([' ', '\t']);
        let last = head.split_whitespace().last().unwrap_or_default();
        let assigned = tail.starts_with('=') && !tail.starts_with("==") || tail.starts_with(": T.let");
        let target = head.is_empty()
            || head.ends_with([',', ';'])
            || head.chars().all(|c| is_of_name(c) || c == ',' || c == ' ');
        matches!(last, "def" | "class" | "as" | "for") || assigned && target
            // A parameter, or one of several targets.
            || (head.starts_with("def ") || head.ends_with(['(', ','])) && tail.starts_with(':')
            || head.is_empty() && tail.starts_with(',') && text[end..].lines().next().is_some_and(|line| line.contains(" = "))
    };
    let all: Vec<(usize, usize)> = names(text)
        .into_iter()
        .filter(|(start, end)| &text[*start..*end] == name && defines(*start, *end))
        .collect();
    let before = all.iter().rev().find(|(start, _)| *start <= byte).or(all.first());
    before.map(|(start, end)| range_of(text, *start, *end))
}

/// A name of a `from … import` or `import` statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Imported {
    /// The module, with the dots before it: `..helpers`.
    pub module: String,
    /// The name in the module, and its bytes; `None` of `import module`.
    pub name: Option<(String, usize, usize)>,
    /// What the file calls it: `helpers.tiles` of `import helpers.tiles`.
    pub alias: String,
}

/// What a text imports; a name `*` stands for all names of a module.
pub fn imports(text: &str) -> Vec<Imported> {
    let all = names(text);
    let mut found = Vec::new();
    let mut behind = 0;
    for (at, (start, end)) in all.iter().copied().enumerate() {
        let line_start = text[..start].rfind('\n').map_or(0, |at| at + 1);
        // Within the statement before, or not at the beginning of one.
        if start < behind || !text[line_start..start].trim().is_empty() {
            continue;
        }
        let line = text[end..].lines().next().unwrap_or_default();
        let (module, list) = match &text[start..end] {
            "from" => match line.split_once(" import") {
                Some((module, _)) => (Some(module.trim()), end + module.len() + " import".len()),
                None => continue,
            },
            "import" => (None, end),
            _ => continue,
        };
        // A list goes on to the parenthesis that closes it, else to the end of its line.
        let rest = &text[list..];
        let length = match rest.trim_start().starts_with('(') {
            true => rest.find(')'),
            false => rest.find('\n'),
        };
        behind = list + length.unwrap_or(rest.len());
        if let (Some(module), "*") = (module, text[list..behind].trim()) {
            let star = list + rest.find('*').unwrap_or(0);
            found.push(Imported {
                module: module.to_string(),
                name: Some(("*".to_string(), star, star + 1)),
                alias: "*".to_string(),
            });
        }
        let mut words = all[at + 1..]
            .iter()
            .copied()
            .skip_while(|(start, _)| *start < list)
            .take_while(|(start, _)| *start < behind)
            .peekable();
        while let Some((start, end)) = words.next() {
            // `a.b` of `import a.b`.
            let whole = text[start..].find(|c: char| !is_of_name(c) && c != '.');
            let name = &text[start..whole.map_or(text.len(), |length| start + length)];
            let renamed = words.next_if(|(start, end)| &text[*start..*end] == "as");
            let alias = renamed.and_then(|_| words.next());
            found.push(Imported {
                module: module.unwrap_or(name).to_string(),
                name: module.map(|_| (name.to_string(), start, end)),
                alias: alias.map_or(name, |(start, end)| &text[start..end]).to_string(),
            });
        }
    }
    found
}

/// The module, and the name in it if there is one, that a name was imported from: `("helpers", Some("tile"))`.
pub fn imported(text: &str, name: &str) -> Option<(String, Option<String>)> {
    let found = imports(text).into_iter().find(|one| one.alias == name)?;
    Some((found.module, found.name.map(|(name, ..)| name)))
}

/// Whether a name is defined outside of all functions.
pub fn is_of_module(text: &str, name: &str) -> bool {
    text.lines().any(|line| {
        let rest = ["def ", "class "].iter().find_map(|word| line.strip_prefix(word));
        let rest = rest.unwrap_or(line).strip_prefix(name);
        rest.is_some_and(|rest| match line.starts_with(name) {
            true => {
                let tail = rest.trim_start();
                tail.starts_with(['=', ':', ',']) && !tail.starts_with("==")
            }
            false => !rest.starts_with(is_of_name),
        })
    })
}

/// The uses of a module's name behind the module: `name` of `module.name`.
pub fn attributes(text: &str, module: &str, name: &str) -> Vec<Range> {
    let whole = format!("{module}.{name}");
    let first = module.split('.').next().unwrap_or(module);
    let uses = names(text).into_iter().filter(|(start, end)| {
        let rest = text[*start..].strip_prefix(&whole);
        &text[*start..*end] == first && rest.is_some_and(|rest| !rest.starts_with(is_of_name))
    });
    uses.map(|(start, _)| range_of(text, start + module.len() + 1, start + whole.len()))
        .collect()
}

/// The language's own path of a dotted name, by what the file imports: `T.ptx.ld` for `tx.ptx.ld` after
/// `from tvm.script import tirx as tx`.
pub fn in_language(text: &str, dotted: &str) -> String {
    let (first, rest) = dotted
        .split_once('.')
        .map_or((dotted, ""), |(first, rest)| (first, rest));
    let root = match imported(text, first) {
        Some((module, name)) => match (module.as_str(), name.as_deref()) {
            (_, Some("tirx" | "tir")) => "T",
            (_, Some("tile")) => "Tx",
            (_, Some(_)) if module.ends_with("layout") => return format!("layout.{dotted}"),
            _ => first,
        },
        None => first,
    };
    match rest {
        "" => root.to_string(),
        rest => format!("{root}.{rest}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_utf_16() {
        let text = "a\nö😀b = 1\n";
        let at = Position {
            line: 1,
            character: 3,
        };
        assert_eq!(&text[byte_of(text, at)..][..1], "b");
        assert_eq!(position_of(text, byte_of(text, at)), at);
        assert_eq!(
            byte_of(
                text,
                Position {
                    line: 9,
                    character: 0
                }
            ),
            text.len()
        );
        assert_eq!(
            byte_of(
                text,
                Position {
                    line: 0,
                    character: 9
                }
            ),
            1
        );
    }

    #[test]
    fn names_calls_and_paths_are_found() {
        let text = "x = T.ptx.ld(a, f(b, c), d";
        assert_eq!(dotted_at(text, 7).map(|found| found.0), Some("T.ptx"));
        assert_eq!(call_around(text, text.len()), Some(("T.ptx.ld", 2)));
        assert_eq!(call_around(text, text.find('c').unwrap()), Some(("f", 1)));
        assert_eq!(path_before("y = T.ptx.mb", 12), Some(("T.ptx", "mb")));
        assert_eq!(path_before("y = T", 5), None);
        assert_eq!(
            in_language("from tvm.script import tirx as X\n", "X.ptx"),
            "T.ptx"
        );
        assert_eq!(
            in_language("from tvm.script.tirx import tile as q\n", "q.cta.copy"),
            "Tx.cta.copy"
        );
    }

    #[test]
    fn uses_leave_out_strings_comments_attributes_and_keywords() {
        let text = "from a import b as T\nT.x(T=1, y=T)  # T\ns = 'T' + \"\\\"T\" + T\nq.T = '''T\n'''\n";
        let lines: Vec<(u32, u32)> = uses(text, "T")
            .iter()
            .map(|r| (r.start.line, r.start.character))
            .collect();
        assert_eq!(lines, [(0, 19), (1, 0), (1, 11), (2, 18)]);
    }

    #[test]
    fn imports_have_their_names_and_places() {
        let text = "import a.b, c as d\nfrom ..e import (\n    f,  # first\n    g as h,\n)\nfrom i import *\n\ns = 'from x import y'\n";
        let found: Vec<String> = imports(text)
            .into_iter()
            .map(|one| match one.name {
                Some((name, start, end)) => {
                    format!("{} {name}={} {}", one.module, &text[start..end], one.alias)
                }
                None => format!("{} {}", one.module, one.alias),
            })
            .collect();
        assert_eq!(found, ["a.b a.b", "c d", "..e f=f f", "..e g=g h", "i *=* *"]);
        assert_eq!(imported(text, "h"), Some(("..e".into(), Some("g".into()))));
    }

    #[test]
    fn names_of_modules_and_behind_them_are_told_apart() {
        let text = "W = 1\ndef f(x):\n    y = W\n    return a.b.W + a.b.Wide + a.W\n";
        assert!(is_of_module(text, "W") && is_of_module(text, "f"));
        assert!(!is_of_module(text, "y") && !is_of_module(text, "x"));
        let found = attributes(text, "a.b", "W");
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].start.line, found[0].start.character), (3, 15));
    }

    #[test]
    fn definitions_are_the_last_before() {
        let text =
            "def f(a, b: int):\n    x = a\n    for i in range(x):\n        y, x = i, b\n    return x\n";
        let line = |name: &str, of: &str| {
            let byte = text.find(of).unwrap();
            definition(text, name, byte).map(|range| range.start.line)
        };
        assert_eq!(line("f", "return"), Some(0));
        assert_eq!(line("b", "return"), Some(0));
        assert_eq!(line("x", "range"), Some(1));
        assert_eq!(line("x", "return"), Some(3));
        assert_eq!(line("i", "return"), Some(2));
        assert_eq!(line("none", "return"), None);
    }
}
