//! Which workspace does a new package belong to, and how does it become a member?
//!
//! The text of the workspace's Cargo.toml is kept, comments included: an entry is inserted into `members`.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use toml::Spanned;

use crate::failure::{Result, user};
use crate::output::say;

/// The profile without which the simulator is slow.
const PROFILE: &str = "\n# Optimized, the simulator runs kernels 10 to 25 times faster.\n[profile.dev.package.tirx-sim-machine]\n\
    opt-level = 2\ndebug-assertions = false\noverflow-checks = false\n";

/// A workspace around a new package.
pub(super) struct Workspace {
    /// Its Cargo.toml.
    manifest: PathBuf,
    text: String,
    read: Root,
    /// The package's folder, from the workspace's.
    member: String,
}

/// What is read of a Cargo.toml.
#[derive(Deserialize)]
struct Root {
    workspace: Option<Spanned<Table>>,
    #[serde(default)]
    profile: toml::Table,
}

#[derive(Deserialize)]
struct Table {
    members: Option<Spanned<Vec<Spanned<String>>>>,
    #[serde(default)]
    exclude: Vec<String>,
}

/// The workspace that a new package in `folder` is in: the nearest Cargo.toml above that has one, unless it excludes the
/// folder.
///
/// # Errors
/// A Cargo.toml above that cannot be read.
pub(super) fn around(folder: &Path) -> Result<Option<Workspace>> {
    let wrong = |path: &Path, error: String| user(format_args!("cannot read `{}`: {error}", path.display()));
    let new = std::path::absolute(folder).map_err(|error| wrong(folder, error.to_string()))?;
    for above in new.ancestors().skip(1) {
        let manifest = above.join("Cargo.toml");
        if !manifest.is_file() {
            continue;
        }
        let text = fs::read_to_string(&manifest).map_err(|error| wrong(&manifest, error.to_string()))?;
        let read: Root = toml::from_str(&text).map_err(|error| wrong(&manifest, error.to_string()))?;
        let Some(table) = &read.workspace else {
            continue;
        };
        let member = new.strip_prefix(above).unwrap_or(&new);
        let parts: Vec<String> = member
            .iter()
            .map(|part| part.to_string_lossy().into_owned())
            .collect();
        // What is made in a build's folder is no part of its sources.
        if parts.iter().any(|part| part == "target") {
            return Ok(None);
        }
        let member = parts.join("/");
        let is_excluded =
            |excluded: &String| Path::new(&member).starts_with(excluded.trim_start_matches("./"));
        if table.get_ref().exclude.iter().any(is_excluded) {
            return Ok(None);
        }
        return Ok(Some(Workspace {
            manifest,
            text,
            read,
            member,
        }));
    }
    Ok(None)
}

impl Workspace {
    /// Makes the package a member.
    pub(super) fn join(&self, folder: &Path) -> Result<()> {
        let mut text = self.with_member();
        let has_profile = |table: &toml::Table| {
            let package = table.get("dev").and_then(|dev| dev.get("package"));
            package.is_some_and(|package| package.get("tirx-sim-machine").is_some())
        };
        if !has_profile(&self.read.profile) {
            if !text.ends_with('\n') {
                text.push('\n');
            }
            text += PROFILE;
        }
        if text == self.text {
            return Ok(());
        }
        fs::write(&self.manifest, &text).map_err(|error| {
            user(format_args!(
                "`{}` is not yet a member of the workspace: cannot write `{}`: {error}",
                folder.display(),
                self.manifest.display()
            ))
        })?;
        say(&format!(
            "made it a member of the workspace `{}`\n",
            self.manifest.display()
        ));
        Ok(())
    }

    /// The text with the package among the members.
    fn with_member(&self) -> String {
        let Some(table) = &self.read.workspace else {
            return self.text.clone();
        };
        let entry = format!("{:?}", self.member);
        let Some(members) = &table.get_ref().members else {
            // Behind the line of `[workspace]`.
            let line = self.text.lines().scan(0, |at, line| {
                let start = *at;
                *at += line.len() + 1;
                Some((start, line))
            });
            let head = line
                .into_iter()
                .find(|(_, line)| line.split('#').next().unwrap_or("").trim() == "[workspace]");
            let Some((start, line)) = head else {
                return format!("{}\n[workspace]\nmembers = [{entry}]\n", self.text);
            };
            let (before, after) = self.text.split_at((start + line.len()).min(self.text.len()));
            return format!("{before}\nmembers = [{entry}]{after}");
        };
        let known = members.get_ref().iter();
        if known
            .map(|known| known.get_ref().as_str())
            .any(|known| covers(known, &self.member))
        {
            return self.text.clone();
        }
        let (before, after) = match members.get_ref().last() {
            Some(last) => self.text.split_at(last.span().end),
            // Behind the opening bracket.
            None => self.text.split_at(members.span().start + 1),
        };
        let separator = match (members.get_ref().as_slice(), before.rsplit_once('\n')) {
            ([], _) => String::new(),
            // An entry on a line of its own is followed by another one.
            ([.., last], Some((_, line))) if line.trim() == &self.text[last.span()] => {
                let indent: String = line.chars().take_while(|c| c.is_whitespace()).collect();
                format!(",\n{indent}")
            }
            _ => ", ".to_string(),
        };
        format!("{before}{separator}{entry}{after}")
    }
}

/// Whether a member of the list, which may be a pattern (`crates/*`), is a folder. `*` and `?` stand for a part of a folder's name.
fn covers(pattern: &str, folder: &str) -> bool {
    fn matches(pattern: &[char], name: &[char]) -> bool {
        match (pattern, name) {
            ([], []) => true,
            (['*', rest @ ..], name) => (0..=name.len()).any(|taken| matches(rest, &name[taken..])),
            (['?', rest @ ..], [_, name @ ..]) => matches(rest, name),
            ([first, rest @ ..], [c, name @ ..]) => first == c && matches(rest, name),
            _ => false,
        }
    }
    let parts = |path: &str| -> Vec<Vec<char>> {
        let parts = path.split('/').filter(|part| !part.is_empty() && *part != ".");
        parts.map(|part| part.chars().collect()).collect()
    };
    let (pattern, folder) = (parts(pattern), parts(folder));
    pattern.len() == folder.len()
        && pattern
            .iter()
            .zip(&folder)
            .all(|(pattern, name)| matches(pattern, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn joined(text: &str, member: &str) -> String {
        let workspace = Workspace {
            manifest: PathBuf::new(),
            text: text.to_string(),
            read: toml::from_str(text).unwrap(),
            member: member.to_string(),
        };
        workspace.with_member()
    }

    #[test]
    fn members_are_added_and_the_rest_is_kept() {
        for (before, after) in [
            (
                "[workspace] # ours\nresolver = \"3\"\n",
                "[workspace] # ours\nmembers = [\"libs/new\"]\nresolver = \"3\"\n",
            ),
            (
                "[workspace]\nmembers = []\n",
                "[workspace]\nmembers = [\"libs/new\"]\n",
            ),
            (
                "[workspace]\nmembers = [\"a\", \"b\"] # two\n",
                "[workspace]\nmembers = [\"a\", \"b\", \"libs/new\"] # two\n",
            ),
            (
                "[workspace]\nmembers = [\n    \"a\", # one\n    \"b\",\n]\n",
                "[workspace]\nmembers = [\n    \"a\", # one\n    \"b\",\n    \"libs/new\",\n]\n",
            ),
            (
                "workspace = { resolver = \"3\", members = [\"a\"] }\n",
                "workspace = { resolver = \"3\", members = [\"a\", \"libs/new\"] }\n",
            ),
        ] {
            assert_eq!(joined(before, "libs/new"), after);
        }
        for covered in ["libs/*", "./libs/new", "l?bs/n*"] {
            let text = format!("[workspace]\nmembers = [{covered:?}]\n");
            assert_eq!(joined(&text, "libs/new"), text);
        }
        for other in ["*", "libs", "libs/*/new", "lib?"] {
            let text = format!("[workspace]\nmembers = [{other:?}]\n");
            assert_ne!(joined(&text, "libs/new"), text);
        }
    }
}
