//! Builds the book into `target/book`, a folder of static files, and tests it.
//!
//! The pages follow mdBook's convention (`docs/book/src/SUMMARY.md`), so `mdbook build` makes plain pages of them. This task adds
//! an editor and *Run* to each kernel. Both come from the playground, which lies in `target/book/playground`: its WebAssembly
//! module, its workers and its editor. The pages of `docs/reference` become the last part.

mod page;
mod summary;

use std::fs;
use std::path::Path;

use crate::playground;
use crate::process::Result;
use page::{Places, escaped};
use summary::Entry;

/// `cargo xtask book [--test] [--pages]`.
pub(crate) fn build(root: &Path, args: &[String]) -> Result<()> {
    let (mut test, mut only_pages) = (false, false);
    for arg in args {
        match arg.as_str() {
            "--test" => test = true,
            "--pages" => only_pages = true,
            _ => return Err("usage: cargo xtask book [--test] [--pages]".into()),
        }
    }
    let site = root.join("target/book");
    let count = pages(&root.canonicalize()?, &site)?;
    println!("built {count} pages in {}", site.display());
    if only_pages {
        return Ok(());
    }
    playground::book(root, &site, test)
}

/// Writes the pages and the files that they show.
fn pages(root: &Path, site: &Path) -> Result<usize> {
    let places = Places {
        src: root.join("docs/book/src"),
        reference: root.join("docs/reference"),
        root: root.into(),
    };
    let contents = fs::read_to_string(places.src.join("SUMMARY.md"))?;
    let mut entries = summary::entries(&contents)?;
    let mut found = fs::read_dir(&places.reference)?
        .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
        .collect::<Result<Vec<String>>>()?;
    found.retain(|name| name.ends_with(".md"));
    found.sort();
    let mut part = Some("Reference".to_string());
    entries.extend(found.into_iter().map(|name| Entry {
        title: String::new(),
        file: format!("reference/{name}"),
        depth: 0,
        part: part.take(),
    }));
    let mut rendered = Vec::new();
    for entry in &mut entries {
        let source = match entry.file.strip_prefix("reference/") {
            Some(name) => places.reference.join(name),
            None => places.src.join(&entry.file),
        };
        let page = page::render(&places, &source)?;
        if entry.title.is_empty() {
            entry.title.clone_from(&page.title);
        }
        rendered.push(page);
    }
    for (at, page) in rendered.iter().enumerate() {
        let to = site.join(html_name(&entries[at].file));
        fs::create_dir_all(to.with_file_name(""))?;
        fs::write(&to, whole(&entries, at, page))?;
        for file in &page.files {
            let to = site.join(file);
            fs::create_dir_all(to.with_file_name(""))?;
            fs::copy(places.src.join(file), &to).map_err(|error| format!("{file}: {error}"))?;
        }
    }
    fs::write(
        site.join("index.html"),
        format!(
            "<!doctype html>\n<meta charset=\"utf-8\">\n<title>The tirx book</title>\n<meta http-equiv=\"refresh\" content=\"0; url={}\">\n",
            html_name(&entries[0].file)
        ),
    )?;
    fs::write(site.join(".nojekyll"), "")?;
    Ok(rendered.len())
}

fn html_name(file: &str) -> String {
    format!("{}.html", file.trim_end_matches(".md"))
}

/// The table of contents, with the page at `here` marked, and with the page's sections.
fn navigation(entries: &[Entry], here: usize, page: &page::Page, up: &str) -> String {
    let mut text = String::new();
    for (at, entry) in entries.iter().enumerate() {
        if let Some(part) = &entry.part {
            text += &format!("<h2>{}</h2>\n", escaped(part));
        }
        let current = if at == here { " aria-current=\"page\"" } else { "" };
        text += &format!(
            "<a class=\"depth{}\" href=\"{up}{}\"{current}>{}</a>\n",
            entry.depth,
            html_name(&entry.file),
            escaped(&entry.title)
        );
        if at == here {
            for (title, id) in &page.sections {
                text += &format!(
                    "<a class=\"section depth{}\" href=\"#{id}\">{}</a>\n",
                    entry.depth,
                    escaped(title)
                );
            }
        }
    }
    text
}

/// The whole page.
fn whole(entries: &[Entry], at: usize, page: &page::Page) -> String {
    let up = "../".repeat(entries[at].file.matches('/').count());
    let step = |to: Option<&Entry>, rel: &str, sign: &str| {
        to.map_or(String::new(), |entry| {
            format!(
                "<a rel=\"{rel}\" href=\"{up}{}\"><span aria-hidden=\"true\">{sign}</span> {}</a>",
                html_name(&entry.file),
                escaped(&entry.title)
            )
        })
    };
    let before = step(at.checked_sub(1).map(|before| &entries[before]), "prev", "←");
    let after = step(entries.get(at + 1), "next", "→");
    format!(
        r##"<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; worker-src blob:; connect-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; base-uri 'none'; form-action 'none'">
<title>{title} · The tirx book</title>
<link rel="icon" href="data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'%3E%3Crect width='16' height='16' rx='3' fill='%230f766e'/%3E%3Cpath d='M4 4h8v2H9v6H7V6H4z' fill='white'/%3E%3C/svg%3E">
<link rel="stylesheet" href="{up}book.css">
<script type="module" src="{up}book.js"></script>
</head>
<body data-root="{up}">
<a class="skip" href="#main">Skip to the text</a>
<header>
  <button id="menu" aria-expanded="false" aria-controls="contents">Contents</button>
  <a class="name" href="{up}{first}">The tirx book</a>
  <a href="{up}playground/index.html">Playground</a>
  <button id="theme" aria-label="Switch between dark and light">◐</button>
</header>
<nav id="contents" aria-label="Contents">
{navigation}</nav>
<main id="main">
{html}
<nav class="steps" aria-label="Pages before and after">{before}{after}</nav>
</main>
<p id="editor-help" class="hidden">Press Control and Enter to run, Escape and then Tab to leave the editor, F8 for the next message.</p>
</body>
</html>
"##,
        title = escaped(&page.title),
        first = html_name(&entries[0].file),
        navigation = navigation(entries, at, page, &up),
        html = page.html,
    )
}
