//! Checks the links of every page, and that the picture of README shows text that README's tested blocks hold.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use tirx_tests::pages::read;
use tirx_tests::root;

/// Folders without pages of ours.
const SKIPPED: [&str; 4] = ["target", "node_modules", ".git", "gpu-kit"];

fn pages(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_string();
        if path.is_dir() {
            if !SKIPPED.contains(&name.as_str()) {
                pages(&path, found);
            }
        } else if name.ends_with(".md") {
            found.push(path);
        }
    }
}

/// The lines of a page outside of its code blocks, with their numbers.
fn prose(text: &str) -> Vec<(usize, &str)> {
    let mut fenced = false;
    let mut lines = Vec::new();
    for (number, line) in text.lines().enumerate() {
        match line.trim_start().starts_with("```") {
            true => fenced = !fenced,
            false if !fenced => lines.push((number + 1, line)),
            false => {}
        }
    }
    lines
}

/// A heading's anchor, as Git hosts make it: lower case, words joined by hyphens, without punctuation.
fn anchor(heading: &str) -> String {
    let kept = heading.trim().to_lowercase();
    let kept = kept
        .chars()
        .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

fn anchors(text: &str) -> BTreeSet<String> {
    let headings = prose(text)
        .into_iter()
        .filter(|(_, line)| line.starts_with('#'))
        .map(|(_, line)| anchor(line.trim_start_matches('#')));
    headings.collect()
}

/// The destinations of a line's links and images: `[text](destination)`. Code between backticks has none.
fn destinations(line: &str) -> Vec<&str> {
    let in_code = |at: usize| line[..at].matches('`').count() % 2 == 1;
    let starts = line
        .match_indices("](")
        .filter(|(at, _)| !in_code(*at))
        .map(|(at, _)| &line[at + 2..]);
    starts
        .filter_map(|rest| rest.split_once(')').map(|(to, _)| to))
        .collect()
}

#[test]
fn links_lead_to_pages_and_headings() {
    let root = root();
    let mut all = Vec::new();
    pages(&root, &mut all);
    assert!(all.len() > 20, "the pages were not found");
    let mut wrong = Vec::new();
    let mut links = 0;
    for page in &all {
        let text = fs::read_to_string(page).unwrap();
        for (number, line) in prose(&text) {
            for to in destinations(line) {
                if to.contains("://") || to.starts_with("mailto:") {
                    continue;
                }
                links += 1;
                let (file, heading) = to.split_once('#').unwrap_or((to, ""));
                let target = match file {
                    "" => page.clone(),
                    _ => page.parent().unwrap().join(file),
                };
                let place = format!("{}:{number}: {to}", page.strip_prefix(&root).unwrap().display());
                if !target.exists() {
                    wrong.push(format!("{place}: no such file"));
                } else if !heading.is_empty()
                    && !anchors(&fs::read_to_string(&target).unwrap()).contains(heading)
                {
                    wrong.push(format!("{place}: no such heading"));
                }
            }
        }
    }
    assert!(links > 50, "the links were not found");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_page_of_the_book_and_reference_is_reached_from_the_front_page() {
    let linked = |page: &str| -> BTreeSet<PathBuf> {
        let folder = root().join(page).with_file_name("");
        let text = fs::read_to_string(root().join(page)).unwrap();
        let all = prose(&text)
            .into_iter()
            .flat_map(|(_, line)| destinations(line))
            .map(|to| folder.join(to));
        all.collect()
    };
    let readme = linked("README.md");
    for entry in fs::read_dir(root().join("docs/reference")).unwrap() {
        let page = entry.unwrap().path();
        assert!(
            readme.contains(&page),
            "README.md does not link to {}",
            page.display()
        );
    }
    assert!(readme.contains(&root().join("docs/book/src/introduction.md")));
    let contents = linked("docs/book/src/SUMMARY.md");
    for page in tirx_tests::pages::book() {
        assert!(
            contents.contains(&page),
            "SUMMARY.md does not list {}",
            page.display()
        );
    }
}

/// The sources of the crates whose messages users see.
fn sources() -> String {
    fn add(folder: &Path, all: &mut String) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                if !path.ends_with("target") && !path.ends_with("tests") {
                    add(&path, all);
                }
            } else if path.extension().is_some_and(|end| end == "rs") {
                *all += &fs::read_to_string(&path).unwrap();
            }
        }
    }
    let mut all = String::new();
    for folder in ["tirx-core", "tirx-sim", "tirx-expect", "tirx-rt"] {
        add(&root().join(folder), &mut all);
    }
    // Texts continue behind a line's end.
    let mut joined = String::new();
    for line in all.lines() {
        match line.trim_end().strip_suffix('\\') {
            Some(part) => joined += part.trim_start(),
            None => {
                joined += line.trim_start();
                joined.push('\n');
            }
        }
    }
    joined
}

#[test]
fn the_messages_of_the_book_are_those_of_the_sources() {
    let page = fs::read_to_string(root().join("docs/book/src/messages.md")).unwrap();
    let sources = sources();
    let rows = page
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split_once("` |"));
    let mut count = 0;
    for (message, _) in rows {
        count += 1;
        for part in message.split('…').map(str::trim).filter(|part| part.len() > 3) {
            assert!(sources.contains(part), "no source has {part:?} of `{message}`");
        }
    }
    assert!(count > 25, "the messages were not found");
}

/// The visible lines of an SVG picture.
fn visible(svg: &str) -> Vec<String> {
    let mut lines = Vec::new();
    for part in svg.split("<text ").skip(1) {
        let body = part.split_once('>').unwrap().1.split("</text>").next().unwrap();
        let mut line = String::new();
        let mut tag = false;
        for c in body.chars() {
            match c {
                '<' => tag = true,
                '>' => tag = false,
                _ if !tag => line.push(c),
                _ => {}
            }
        }
        lines.push(
            line.replace("&lt;", "<")
                .replace("&gt;", ">")
                .replace("&amp;", "&"),
        );
    }
    lines
}

#[test]
fn the_picture_of_the_front_page_shows_what_the_tested_blocks_hold() {
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let readme = words(&fs::read_to_string(root().join("README.md")).unwrap());
    let picture = fs::read_to_string(root().join("docs/images/front.svg")).unwrap();
    let lines = visible(&picture);
    // The last rows are the captions of the steps of a build.
    let steps = lines.iter().position(|line| line == "cargo build").unwrap();
    let code: Vec<&String> = lines[..steps]
        .iter()
        .filter(|line| !line.contains(" · "))
        .collect();
    assert!(code.len() > 20, "the picture's lines were not found");
    for line in code {
        assert!(
            readme.contains(&words(line)),
            "README.md does not hold the picture's line `{line}`"
        );
    }
}

#[test]
fn the_pages_of_the_crates_show_the_kernel_of_the_front_page() {
    let named = |page: &str| -> Vec<(String, String)> {
        let blocks = read(&root().join(page)).unwrap();
        let named = blocks
            .into_iter()
            .filter_map(|block| Some((block.file()?.to_string(), block.text.clone())));
        named.collect()
    };
    let front = named("README.md");
    assert_eq!(front.len(), 4, "kernel, manifest, build script, program");
    for page in ["tirx-rt/README.md", "tirx-build/README.md"] {
        for (file, text) in &front {
            let shown = named(page).into_iter().find(|(name, _)| name == file);
            assert_eq!(shown.map(|(_, text)| text).as_ref(), Some(text), "{page}: {file}");
        }
    }
}

#[test]
fn an_anchor_is_made_of_a_heading() {
    assert_eq!(
        anchor(" Seeds, and `what` a run-off proves"),
        "seeds-and-what-a-run-off-proves"
    );
    assert_eq!(destinations("see [a](b.md#c), ![d](e.svg)"), ["b.md#c", "e.svg"]);
}
