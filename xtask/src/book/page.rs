//! A page of the book: Markdown to HTML. Kernels become blocks that the page's script runs.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Component, Path, PathBuf};

use pulldown_cmark::{CodeBlockKind, CowStr, Event, HeadingLevel, Options, Parser, Tag, TagEnd, html};

use crate::process::Result;

/// Files that the book does not contain are links to the repository.
const REPOSITORY: &str = "https://github.com/tirx-rs/tirx/blob/main/";
/// The line that a kernel without an `import` begins with.
const IMPORT: &str = "from tvm.script import tirx as T\n\n";

/// The units of figures in tables.
const UNITS: [&str; 7] = ["TFLOP/s", "GB/s", "s", "ms", "us", "µs", "%"];

/// The places of a book.
#[derive(Clone, Debug)]
pub(super) struct Places {
    /// The repository's root.
    pub root: PathBuf,
    /// The folder with `SUMMARY.md`.
    pub src: PathBuf,
    /// The folder with the reference pages, which become `reference/` of the book.
    pub reference: PathBuf,
}

/// A rendered page.
#[derive(Debug)]
pub(super) struct Page {
    /// The first heading, without markup.
    pub title: String,
    /// Its sections: the headings of the second level, with their anchors.
    pub sections: Vec<(String, String)>,
    /// The content.
    pub html: String,
    /// Files that the page shows or links to, relative to `src`; they are copied.
    pub files: Vec<String>,
}

/// The path without `.` and `..`.
fn normal(path: &Path) -> PathBuf {
    let mut parts: Vec<Component> = Vec::new();
    for part in path.components() {
        match part {
            Component::ParentDir if matches!(parts.last(), Some(Component::Normal(_))) => {
                parts.pop();
            }
            Component::CurDir => {}
            other => parts.push(other),
        }
    }
    parts.iter().collect()
}

fn slashes(path: &Path) -> String {
    path.to_string_lossy().replace('\\', "/")
}

/// A heading's anchor, as Git hosts and the test of links make it.
fn anchor(heading: &str) -> String {
    let kept = heading.trim().to_lowercase();
    let kept = kept
        .chars()
        .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

/// A text inside an element or an attribute.
pub(super) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

/// The file that a line `{{#include FILE}}` stands for.
fn included(line: &str) -> Option<&str> {
    let file = line.trim().strip_prefix("{{#include ")?.strip_suffix("}}")?;
    Some(file.trim())
}

/// The text of an include of a page: a file, or `FILE:NAME`, its lines between the lines with `ANCHOR: NAME` and `ANCHOR_END: NAME`.
fn included_text(page: &Path, include: &str) -> Result<String> {
    let (file, anchor) = match include.split_once(':') {
        Some((file, anchor)) => (file, Some(anchor)),
        None => (include, None),
    };
    let file = page.with_file_name("").join(file);
    let failed = |what: &str| format!("{}: {}: {what}", page.display(), file.display());
    let text = fs::read_to_string(&file).map_err(|error| failed(&error.to_string()))?;
    let Some(anchor) = anchor else { return Ok(text) };
    let named = |line: &str, word: &str| {
        let name = line
            .split_once(word)
            .and_then(|(_, rest)| rest.split_whitespace().next());
        name == Some(anchor)
    };
    let lines = text
        .split_inclusive('\n')
        .skip_while(|line| !named(line, "ANCHOR:"))
        .skip(1);
    let part: String = lines.take_while(|line| !named(line, "ANCHOR_END:")).collect();
    match part.is_empty() {
        true => Err(failed(&format!(
            "no lines between ANCHOR: {anchor} and ANCHOR_END: {anchor}"
        ))
        .into()),
        false => Ok(part),
    }
}

/// The page with the files that it includes outside of code blocks.
fn with_includes(path: &Path) -> Result<String> {
    let text = fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let mut all = String::new();
    let mut fenced = false;
    for line in text.split_inclusive('\n') {
        fenced ^= line.trim_start().starts_with("```");
        match included(line).filter(|_| !fenced) {
            Some(include) => all += &included_text(path, include)?,
            None => all += line,
        }
    }
    Ok(all)
}

/// A code block with the files that it includes, and the Python files that these import.
fn block_with_includes(path: &Path, text: &str) -> Result<(String, BTreeMap<String, String>)> {
    let (mut all, mut files) = (String::new(), BTreeMap::new());
    for line in text.split_inclusive('\n') {
        let Some(include) = included(line) else {
            all += line;
            continue;
        };
        let own = included_text(path, include)?;
        if include.ends_with(".py") {
            add_imports(&path.with_file_name("").join(include), &own, &mut files)?;
        }
        all += &own;
    }
    Ok((all, files))
}

/// Adds the files beside a file that its text imports, and the files that these import.
fn add_imports(file: &Path, text: &str, files: &mut BTreeMap<String, String>) -> Result<()> {
    for line in text.lines() {
        let module = line
            .strip_prefix("from ")
            .or_else(|| line.strip_prefix("import "));
        let Some(module) = module.and_then(|rest| rest.split_whitespace().next()) else {
            continue;
        };
        let name = format!("{module}.py");
        let beside = file.with_file_name(&name);
        if files.contains_key(&name) || !beside.is_file() {
            continue;
        }
        let text = fs::read_to_string(&beside).map_err(|error| format!("{}: {error}", beside.display()))?;
        files.insert(name, text.clone());
        add_imports(&beside, &text, files)?;
    }
    Ok(())
}

/// The destination of a link in the built book, and the file that is copied for it.
///
/// # Errors
/// A destination that does not exist.
fn destination(places: &Places, page: &Path, to: &str) -> Result<(String, Option<String>)> {
    if to.contains("://") || to.starts_with("mailto:") || to.starts_with('#') {
        return Ok((to.into(), None));
    }
    let (file, heading) = to.split_once('#').map_or((to, None), |(file, h)| (file, Some(h)));
    let target = normal(&page.with_file_name("").join(file));
    if !target.exists() {
        return Err(format!("{}: {to}: no such file", page.display()).into());
    }
    let heading = heading.map(|heading| format!("#{heading}")).unwrap_or_default();
    let in_book = |path: &Path| -> Option<String> {
        if let Ok(inside) = path.strip_prefix(&places.src) {
            return Some(slashes(inside));
        }
        let inside = path.strip_prefix(&places.reference).ok()?;
        (inside.extension()? == "md").then(|| format!("reference/{}", slashes(inside)))
    };
    match (in_book(&target), in_book(page)) {
        (Some(to), Some(from)) => {
            let up = "../".repeat(from.matches('/').count());
            match to.strip_suffix(".md") {
                Some(name) => Ok((format!("{up}{name}.html{heading}"), None)),
                None => Ok((format!("{up}{to}"), Some(to))),
            }
        }
        _ => {
            let inside = target
                .strip_prefix(&places.root)
                .map_err(|_| format!("{}: {to} leaves the repository", page.display()))?;
            Ok((format!("{REPOSITORY}{}{heading}", slashes(inside)), None))
        }
    }
}

/// A code block. A Python block with kernels becomes a block that the page's script runs:
///
/// | attribute | content |
/// |---|---|
/// | `data-run` | `sim` if the block has `# sim:` lines, otherwise `check`: it is compiled only |
/// | `data-arch` | the GPU |
/// | `data-errors` | the texts that the message must have, separated by line breaks: the `# error:` lines |
///
/// Behind the kernel stand the files that it imports, each an element with the attribute `data-file`.
fn code(info: &str, text: &str, imports: &BTreeMap<String, String>) -> String {
    let mut words = info.split(',').map(str::trim);
    let language = words.next().unwrap_or_default();
    let words: Vec<&str> = words.collect();
    let is_kernel = language == "python"
        && !words.contains(&"host")
        && text.lines().any(|line| {
            let line = line.trim_start();
            line.starts_with("@T.prim_func") || line.starts_with("@T.jit") || line.starts_with("@I.ir_module")
        });
    if !is_kernel {
        return format!(
            "<pre><code class=\"language-{}\">{}</code></pre>\n",
            escaped(language),
            escaped(text)
        );
    }
    let directive = |line: &&str| {
        ["# error:", "# -D", "# entry:"]
            .iter()
            .any(|word| line.starts_with(word))
    };
    let head: Vec<&str> = text.lines().take_while(directive).collect();
    let errors: Vec<&str> = head
        .iter()
        .filter_map(|line| line.strip_prefix("# error:"))
        .map(str::trim)
        .collect();
    let body: String = text
        .split_inclusive('\n')
        .skip(head.len())
        .collect::<String>()
        .trim_start_matches('\n')
        .to_string();
    let import = if body.contains("import ") { "" } else { IMPORT };
    let named = |name: &str| {
        words
            .iter()
            .find_map(|word| word.strip_prefix(name)?.strip_prefix('='))
    };
    let files: String = imports
        .iter()
        .map(|(name, text)| {
            format!(
                "<details data-file=\"{name}\"><summary>imports <code>{name}</code></summary>\
                 <pre><code class=\"language-python\">{}</code></pre></details>",
                escaped(text),
                name = escaped(name),
            )
        })
        .collect();
    let run = if body.contains("# sim:") { "sim" } else { "check" };
    format!(
        "<div class=\"kernel\" data-run=\"{run}\" data-arch=\"{}\" data-errors=\"{}\"><pre><code class=\"language-python\">{}</code></pre>{files}</div>\n",
        escaped(named("arch").unwrap_or("sm_90a")),
        escaped(&errors.join("\n")),
        escaped(&format!("{import}{body}"))
    )
}

/// A text in which a number and its unit stay on one line.
fn with_units(text: &str) -> String {
    let mut all = String::new();
    for word in text.split_inclusive(' ') {
        let unit = word.trim_end_matches([' ', ',', ';', ')']);
        let behind_number = all.trim_end().ends_with(|c: char| c.is_ascii_digit());
        if behind_number && all.ends_with(' ') && UNITS.contains(&unit) {
            all.pop();
            all.push('\u{a0}');
        }
        all += word;
    }
    all
}

/// Renders a page.
///
/// # Errors
/// A page or an included file that cannot be read, a link to nothing, a page without a heading.
pub(super) fn render(places: &Places, path: &Path) -> Result<Page> {
    let text = with_includes(path)?;
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH;
    let mut files = Vec::new();
    let mut events: Vec<Event> = Vec::new();
    let mut title = None;
    let mut sections = Vec::new();
    let mut in_cell = false;
    let mut block: Option<(String, String)> = None;
    // The heading that is open: where its events begin, and its text.
    let mut heading: Option<(usize, String)> = None;
    for event in Parser::new_ext(&text, options) {
        match event {
            Event::Start(Tag::CodeBlock(kind)) => {
                let info = match kind {
                    CodeBlockKind::Fenced(info) => info.to_string(),
                    CodeBlockKind::Indented => "text".into(),
                };
                block = Some((info, String::new()));
            }
            Event::End(TagEnd::CodeBlock) => {
                if let Some((info, text)) = block.take() {
                    let (text, imports) = block_with_includes(path, &text)?;
                    events.push(Event::Html(code(&info, &text, &imports).into()));
                }
            }
            Event::Text(text) if block.is_some() => {
                if let Some((_, whole)) = &mut block {
                    whole.push_str(&text);
                }
            }
            Event::Start(Tag::Heading { .. }) => {
                heading = Some((events.len(), String::new()));
                events.push(event);
            }
            Event::End(TagEnd::Heading(level)) => {
                if let Some((at, text)) = heading.take() {
                    let id = anchor(&text);
                    events[at] = Event::Html(format!("<{level} id=\"{id}\"><a href=\"#{id}\">").into());
                    events.push(Event::Html(format!("</a></{level}>\n").into()));
                    if level == HeadingLevel::H2 {
                        sections.push((text.clone(), id));
                    }
                    title.get_or_insert(text);
                }
            }
            Event::Start(Tag::Link {
                link_type,
                dest_url,
                title,
                id,
            }) => {
                let (to, file) = destination(places, path, &dest_url)?;
                files.extend(file);
                events.push(Event::Start(Tag::Link {
                    link_type,
                    dest_url: CowStr::from(to),
                    title,
                    id,
                }));
            }
            Event::Start(Tag::Image {
                link_type,
                dest_url,
                title,
                id,
            }) => {
                let (to, file) = destination(places, path, &dest_url)?;
                files.extend(file);
                // Alone in its tab, a picture shows the texts of its parts under the cursor.
                events.push(Event::Html(format!("<a class=\"picture\" href=\"{to}\">").into()));
                events.push(Event::Start(Tag::Image {
                    link_type,
                    dest_url: CowStr::from(to),
                    title,
                    id,
                }));
            }
            Event::End(TagEnd::Image) => {
                events.push(event);
                events.push(Event::Html("</a>".into()));
            }
            Event::Start(Tag::TableCell) | Event::End(TagEnd::TableCell) => {
                in_cell = !in_cell;
                events.push(event);
            }
            Event::Text(text) if in_cell => events.push(Event::Text(with_units(&text).into())),
            other => {
                if let (Some((_, whole)), Event::Text(text) | Event::Code(text)) = (&mut heading, &other) {
                    whole.push_str(text);
                }
                events.push(other);
            }
        }
    }
    let mut rendered = String::new();
    html::push_html(&mut rendered, events.into_iter());
    // A wide table scrolls by itself.
    let rendered = rendered
        .replace("<table>", "<div class=\"table\"><table>")
        .replace("</table>", "</table></div>");
    Ok(Page {
        title: title.ok_or_else(|| format!("{}: no heading", path.display()))?,
        sections,
        html: rendered,
        files,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places() -> Places {
        let root = normal(&Path::new(env!("CARGO_MANIFEST_DIR")).join(".."));
        Places {
            src: root.join("docs/book/src"),
            reference: root.join("docs/reference"),
            root,
        }
    }

    #[test]
    fn links_lead_to_pages_of_the_book_or_to_the_repository() {
        let places = places();
        let to = |page: &str, link: &str| {
            destination(&places, &places.root.join(page), link).map(|(to, file)| (to, file.is_some()))
        };
        let from = "docs/book/src/introduction.md";
        assert_eq!(
            to(from, "start.md#requirements").unwrap().0,
            "start.html#requirements"
        );
        assert_eq!(
            to(from, "../../reference/language.md").unwrap().0,
            "reference/language.html"
        );
        assert_eq!(
            to("docs/reference/releases.md", "../book/src/from-tvm.md")
                .unwrap()
                .0,
            "../from-tvm.html"
        );
        assert_eq!(
            to(from, "../../../README.md").unwrap().0,
            format!("{REPOSITORY}README.md")
        );
        assert_eq!(
            to(from, "layout-rows.svg").unwrap(),
            ("layout-rows.svg".into(), true)
        );
        assert!(to(from, "nothing.md").is_err());
        assert!(to(from, "../../../../nothing.md").is_err());
    }

    #[test]
    fn a_kernel_is_a_block_that_runs_and_its_directives_are_attributes() {
        let code = |info: &str, text: &str| code(info, text, &BTreeMap::new());
        let html = code(
            "python,arch=sm_100a",
            "# error: a < b\n\n# sim: k\n@T.prim_func\ndef k():\n    pass\n",
        );
        assert!(html.contains("data-run=\"sim\" data-arch=\"sm_100a\" data-errors=\"a &lt; b\""));
        assert!(
            html.contains("<code class=\"language-python\">from tvm.script import tirx as T\n\n# sim: k")
        );
        assert!(code("python", "@T.jit\n").contains("data-run=\"check\""));
        assert!(!code("python,host", "@T.jit\n").contains("kernel"));
        assert!(!code("python", "x = 1\n").contains("kernel"));
    }

    #[test]
    fn a_number_and_its_unit_stay_together() {
        assert_eq!(
            with_units("697 TFLOP/s, 5 us (8 ms) a us"),
            "697\u{a0}TFLOP/s, 5\u{a0}us (8\u{a0}ms) a us"
        );
        assert_eq!(with_units("24 shapes "), "24 shapes ");
    }

    #[test]
    fn an_include_has_its_part_of_a_file_and_the_files_that_it_imports() {
        let places = places();
        let folder = places.root.join("target/xtask-book-test");
        fs::create_dir_all(&folder).unwrap();
        let write = |name: &str, text: &str| fs::write(folder.join(name), text).unwrap();
        write(
            "table.md",
            "a\n<!-- ANCHOR: one -->\n| b |\n<!-- ANCHOR_END: one -->\nc\n",
        );
        write(
            "k.py",
            "from tvm.script import tirx as T\nfrom first import f\n@T.jit\n",
        );
        write("first.py", "from second import g\n");
        write("second.py", "import first\n");
        let page = folder.join("page.md");
        write(
            "page.md",
            "{{#include table.md:one}}\n```python\n{{#include table.md:one}}\n```\n",
        );
        assert_eq!(
            with_includes(&page).unwrap(),
            "| b |\n```python\n{{#include table.md:one}}\n```\n"
        );
        assert!(included_text(&page, "table.md:two").is_err());
        let (text, files) = block_with_includes(&page, "# sim: k\n{{#include k.py}}\n").unwrap();
        assert!(text.starts_with("# sim: k\nfrom tvm"));
        assert_eq!(files.keys().collect::<Vec<_>>(), ["first.py", "second.py"]);
        assert!(code("python", &text, &files).contains("<details data-file=\"second.py\">"));
    }
}
