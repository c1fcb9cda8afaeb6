//! Kernels that differ from another kernel of their file in a few places, most of them broken: written as the difference.
//!
//! ```text
//! # The copy is read before it has arrived.
//! # variant: without_wait of copies
//! #   without: "T.ptx.cp_async.wait_group(0)"
//! #   replace: "range(4)" -> "range(5)"
//! #   fault: race
//! ```
//!
//! | line | meaning |
//! |---|---|
//! | `without: "text"` | the line that holds the text is left out |
//! | `replace: "old" -> "new"` | the text is replaced |
//! | any other | a line of the variant's `# sim:`, in place of the kernel's line for the same argument |
//!
//! The texts are within the kernel's decorators and definition, `\n` is the end of a line; either quote
//! will do. A text that is not found, or
//! found several times, is an error; `without 2:` and `replace 2:` mean the second place, `without all:` and
//! `replace all:` every one. Changes apply one after the other. Arguments, and what must be in them after the run, are those
//! of the first `# sim:` of the kernel; `fault:` and `seeds:` are the variant's own. `# variant: NAME of KERNEL on sm_100a` runs
//! as that GPU; without `on` a variant runs as those of the kernel's `# sim:`.
//!
//! `expand` writes variants out at the end of the text, so that nothing else needs to know of them.

use std::fmt::Write as _;

/// A variant as it is written.
struct Variant<'a> {
    name: &'a str,
    of: &'a str,
    /// The GPUs that it runs as, where they are not those of the kernel.
    on: Option<&'a str>,
    changes: Vec<Change>,
    /// Lines of its `# sim:`.
    lines: Vec<&'a str>,
}

/// A change of the kernel's text.
struct Change {
    /// Whether whole lines are left out.
    lines: bool,
    which: Which,
    old: String,
    new: String,
}

/// Which of the places that hold a text change.
#[derive(Clone, Copy, PartialEq)]
enum Which {
    Only,
    Nth(usize),
    All,
}

/// The text with its variants written out behind it.
///
/// # Errors
/// What is wrong with a variant.
pub fn expand(text: &str) -> Result<String, String> {
    let mut out = text.to_string();
    for variant in read(text)? {
        let failed = |what: String| format!("variant {}: {what}", variant.name);
        let kernel = definition(text, variant.of)
            .ok_or_else(|| failed(format!("there is no kernel `{}` to change", variant.of)))?;
        let mut kernel = kernel.replacen(
            &format!("def {}(", variant.of),
            &format!("def {}(", variant.name),
            1,
        );
        for change in &variant.changes {
            kernel = change.apply(&kernel).map_err(failed)?;
        }
        let (head, arguments) = run_of(text, variant.of).unwrap_or(("", Vec::new()));
        let values = head.trim().strip_prefix(variant.of).unwrap_or_default();
        let (values, gpus) = values.split_once(" on ").unwrap_or((values, ""));
        let gpus = match variant.on.unwrap_or(gpus) {
            "" => String::new(),
            gpus => format!(" on {gpus}"),
        };
        out += "\n\n";
        if !(variant.lines.is_empty() && arguments.is_empty()) {
            let _ = writeln!(out, "# sim: {}{values}{gpus}", variant.name);
            let fails = variant.lines.iter().any(|line| line.starts_with("fault:"));
            let same =
                |line: &str, other: &str| argument(line).is_some() && argument(line) == argument(other);
            for line in arguments.iter().filter(|line| argument(line).is_some()) {
                let inherited = match line.split_once("->") {
                    Some((before, _)) if fails => before.trim_end(),
                    _ => line,
                };
                let own = variant.lines.iter().find(|own| same(own, line));
                let _ = writeln!(out, "#   {}", own.copied().unwrap_or(inherited));
            }
            let added = |own: &&&str| !arguments.iter().any(|line| same(own, line));
            for line in variant.lines.iter().filter(added) {
                let _ = writeln!(out, "#   {line}");
            }
        }
        out += &kernel;
    }
    Ok(out)
}

/// The variants of a text.
fn read(text: &str) -> Result<Vec<Variant<'_>>, String> {
    let mut variants: Vec<Variant<'_>> = Vec::new();
    let mut open = false;
    for line in text.lines() {
        if let Some(head) = line.strip_prefix("# variant:") {
            let (name, of) = head
                .split_once(" of ")
                .ok_or(format!("`{line}` is not `# variant: NAME of KERNEL`"))?;
            let (of, on) = match of.split_once(" on ") {
                Some((of, on)) => (of, Some(on.trim())),
                None => (of, None),
            };
            variants.push(Variant {
                name: name.trim(),
                of: of.trim(),
                on,
                changes: Vec::new(),
                lines: Vec::new(),
            });
            open = true;
        } else if let (true, Some(rest), Some(variant)) =
            (open, line.strip_prefix("#   "), variants.last_mut())
        {
            match Change::read(rest.trim()) {
                Some(change) => {
                    let change = change.map_err(|what| format!("variant {}: {what}", variant.name))?;
                    variant.changes.push(change);
                }
                None => variant.lines.push(rest.trim()),
            }
        } else {
            open = false;
        }
    }
    match variants.iter().find(|variant| variant.changes.is_empty()) {
        Some(variant) => Err(format!("variant {}: nothing is changed", variant.name)),
        None => Ok(variants),
    }
}

impl Change {
    /// `None` for a line that is no change.
    fn read(line: &str) -> Option<Result<Change, String>> {
        let (head, rest) = line.split_once(':')?;
        let mut words = head.split_whitespace();
        let lines = match words.next()? {
            "without" => true,
            "replace" => false,
            _ => return None,
        };
        let which = match words.next() {
            None => Some(Which::Only),
            Some("all") => Some(Which::All),
            Some(number) => number.parse().ok().filter(|n| *n > 0).map(Which::Nth),
        };
        let parts = match lines {
            true => quoted(rest).filter(|(_, rest)| rest.trim().is_empty()),
            false => quoted(rest),
        };
        let (Some(which), Some((old, rest))) = (which, parts) else {
            return Some(Err(wrong(line)));
        };
        let new = match lines {
            true => Some(String::new()),
            false => rest
                .trim_start()
                .strip_prefix("->")
                .and_then(quoted)
                .filter(|(_, rest)| rest.trim().is_empty())
                .map(|(new, _)| new),
        };
        let change = |new| Change {
            lines,
            which,
            old,
            new,
        };
        Some(new.map(change).ok_or_else(|| wrong(line)))
    }

    fn apply(&self, kernel: &str) -> Result<String, String> {
        let mut places: Vec<(usize, usize)> = Vec::new();
        if self.lines {
            let mut at = 0;
            for line in kernel.split_inclusive('\n') {
                if line.contains(&self.old) {
                    places.push((at, at + line.len()));
                }
                at += line.len();
            }
        } else {
            places.extend(
                kernel
                    .match_indices(&self.old)
                    .map(|(at, old)| (at, at + old.len())),
            );
        }
        let found = places.len();
        let chosen = match self.which {
            Which::All if found > 0 => places,
            Which::Only if found == 1 => places,
            Which::Nth(n) if n <= found => vec![places[n - 1]],
            _ => return Err(format!("{:?} is in {found} places of the kernel", self.old)),
        };
        let mut out = kernel.to_string();
        for (from, to) in chosen.into_iter().rev() {
            out.replace_range(from..to, &self.new);
        }
        Ok(out)
    }
}

fn wrong(line: &str) -> String {
    format!("`{line}` is neither `without: \"text\"` nor `replace: \"old\" -> \"new\"`")
}

/// The string literal that a text begins with, and what follows it.
fn quoted(text: &str) -> Option<(String, &str)> {
    let quote = text
        .trim_start()
        .chars()
        .next()
        .filter(|c| matches!(c, '"' | '\''))?;
    let inner = text.trim_start().strip_prefix(quote)?;
    let (mut out, mut chars) = (String::new(), inner.char_indices());
    while let Some((at, c)) = chars.next() {
        match c {
            c if c == quote => return Some((out, &inner[at + 1..])),
            '\\' => out.push(match chars.next()?.1 {
                'n' => '\n',
                escaped => escaped,
            }),
            c => out.push(c),
        }
    }
    None
}

/// Decorators and definition of a kernel.
fn definition<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let head = format!("\ndef {name}(");
    let def = text.find(&head)? + 1;
    let mut from = def;
    while let Some(above) = text[..from - 1].rfind('\n').map(|at| at + 1) {
        if !text[above..].starts_with('@') {
            break;
        }
        from = above;
    }
    // The body ends where a line begins at its margin, behind the signature.
    let mut to = def;
    for line in text[def..].split_inclusive('\n') {
        let inside = line.trim().is_empty() || line.starts_with([' ', ')']);
        if to > def && !inside {
            break;
        }
        to += line.len();
    }
    let kernel = &text[from..to];
    Some(&kernel[..kernel.trim_end().len() + 1.min(kernel.len() - kernel.trim_end().len())])
}

/// What follows `# sim:` in the first run of a kernel, and its lines.
fn run_of<'a>(text: &'a str, kernel: &str) -> Option<(&'a str, Vec<&'a str>)> {
    let named = |head: &str| head.split('(').next().is_some_and(|name| name.trim() == kernel);
    let mut lines = text.lines();
    let head = lines.find_map(|line| line.strip_prefix("# sim:").filter(|head| named(head)))?;
    let arguments = lines.map_while(|line| line.strip_prefix("#   ")).map(str::trim);
    Some((head, arguments.collect()))
}

/// The argument that a line of a run gives; `None` for `fault:` and `seeds:`.
fn argument(line: &str) -> Option<&str> {
    let name = line.split([':', '=']).next()?.trim();
    (!matches!(name, "fault" | "seeds")).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "from tvm.script import tirx as T\n\n\n\
        # sim: copies(N=2)\n#   A: int32[N] = i\n#   B: int32[N] = 0 -> i\n#   seeds: 3\n\
        @T.jit\ndef copies(A: T.Buffer((N,), \"int32\"), *,\n           N: T.constexpr):\n    wait()\n    sync()\n    wait()\n";

    fn expanded(changes: &str) -> Result<String, String> {
        expand(&format!("{FILE}\n\n# variant: broken of copies\n{changes}"))
    }

    #[test]
    fn variants_are_written_out_behind_the_text() {
        let text = expanded("#   without 2: \"wait()\"\n#   replace: \"sync()\" -> 'sync(\"x\")\\n    more()'\n#   A: int32[N] = 7\n#   fault: race\n").unwrap();
        let (_, added) = text.split_once("#   fault: race\n").unwrap();
        let expected = "\n\n# sim: broken(N=2)\n#   A: int32[N] = 7\n#   B: int32[N] = 0\n#   fault: race\n\
            @T.jit\ndef broken(A: T.Buffer((N,), \"int32\"), *,\n           N: T.constexpr):\n    wait()\n    sync(\"x\")\n    more()\n";
        assert_eq!(added, expected);
        assert!(
            expanded("#   without all: \"wait()\"\n")
                .unwrap()
                .ends_with(":\n    sync()\n")
        );
    }

    #[test]
    fn variants_run_as_the_gpus_of_their_kernel_or_as_their_own() {
        let file = FILE.replace("copies(N=2)", "copies(N=2) on sm_90a, sm_100a");
        for (on, expected) in [("", "on sm_90a, sm_100a"), (" on sm_120a", "on sm_120a")] {
            let text = expand(&format!(
                "{file}\n\n# variant: other of copies{on}\n#   without: \"sync()\"\n"
            ));
            let expected = format!("\n# sim: other(N=2) {expected}\n");
            assert!(text.unwrap().contains(&expected));
        }
    }

    #[test]
    fn what_is_wrong_with_a_variant_is_said() {
        for (changes, says) in [
            (
                "#   without: \"wait()\"\n",
                "variant broken: \"wait()\" is in 2 places of the kernel",
            ),
            ("#   replace 3: \"wait()\" -> \"\"\n", "is in 2 places"),
            ("#   replace: \"absent\" -> \"\"\n", "\"absent\" is in 0 places"),
            ("#   replace: \"sync()\"\n", "is neither"),
            ("#   fault: race\n", "nothing is changed"),
            ("# variant: other\n", "is not `# variant: NAME of KERNEL`"),
            (
                "#   without: \"sync()\"\n# variant: x of y\n#   without: \"z\"\n",
                "there is no kernel `y` to change",
            ),
        ] {
            let message = expanded(changes).unwrap_err();
            assert!(message.contains(says), "{message}");
        }
    }
}
