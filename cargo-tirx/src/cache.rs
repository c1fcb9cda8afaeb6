//! `cargo tirx cache`: the store of compiled kernels that all packages share: its place, size, and pruning.

use tirx_build::Environment;
use tirx_build::store::{self, Usage};

use crate::failure::{Result, usage, user};
use crate::output::{Output, out};

#[derive(clap::Args, Debug)]
pub(crate) struct Cache {
    #[command(subcommand)]
    command: Option<CacheCommand>,
}

#[derive(clap::Subcommand, Debug)]
enum CacheCommand {
    /// Prints the number of stored nvcc results and their size.
    Size,
    /// Prints the folder.
    Path,
    /// Removes the least recently used results.
    Prune {
        /// The size to keep, such as `500M`, `2G` or a number of bytes; defaults to the limit that builds use.
        #[arg(long, value_name = "SIZE")]
        keep: Option<String>,
    },
}

pub(crate) fn run(cache: &Cache, _: &Output) -> Result<()> {
    let environment = Environment::process();
    let folder = store::shared_dir(&environment).ok_or_else(|| {
        user("there is no shared store: TIRX_STORE is `none`, or there is no place for caches\n  = help: set TIRX_STORE to a folder")
    })?;
    let failed = |error: std::io::Error| user(format_args!("cannot read `{}`: {error}", folder.display()));
    match &cache.command {
        None | Some(CacheCommand::Size) => {
            let usage = store::usage(&folder).map_err(failed)?;
            let limit = shown(store::shared_limit(&environment));
            out(&format!(
                "{}: {}, at most {limit}\n",
                folder.display(),
                counted(usage)
            ))
        }
        Some(CacheCommand::Path) => out(&format!("{}\n", folder.display())),
        Some(CacheCommand::Prune { keep }) => {
            let limit = match keep {
                Some(text) => bytes(text).ok_or_else(|| {
                    usage(format_args!(
                        "`{text}` is no size\n  = help: write it as 500M or 2G"
                    ))
                })?,
                None => store::shared_limit(&environment),
            };
            let pruned = store::prune(&folder, limit).map_err(failed)?;
            let left = store::usage(&folder).map_err(failed)?;
            out(&format!("removed {}; {} left\n", counted(pruned), counted(left)))
        }
    }
}

fn counted(usage: Usage) -> String {
    let images = crate::output::counted(usage.entries, "image");
    format!("{images}, {}", shown(usage.bytes))
}

/// A number of bytes for people.
pub(crate) fn shown(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    let mut value = bytes as f64 / 1024.0;
    if bytes < 1024 {
        return format!("{bytes} bytes");
    }
    for unit in UNITS {
        if value < 1024.0 || unit == "TiB" {
            return format!("{value:.1} {unit}");
        }
        value /= 1024.0;
    }
    format!("{bytes} bytes")
}

fn bytes(text: &str) -> Option<u64> {
    let (number, factor) = match text.char_indices().last()? {
        (at, 'k' | 'K') => (&text[..at], 1u64 << 10),
        (at, 'm' | 'M') => (&text[..at], 1 << 20),
        (at, 'g' | 'G') => (&text[..at], 1 << 30),
        _ => (text, 1),
    };
    number.parse::<u64>().ok()?.checked_mul(factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_and_shown() {
        assert_eq!(
            (bytes("500M"), bytes("2g"), bytes("7")),
            (Some(500 << 20), Some(2 << 30), Some(7))
        );
        assert_eq!(
            (bytes("M"), bytes("-1"), bytes("99999999999G")),
            (None, None, None)
        );
        assert_eq!(
            (shown(5), shown(2048), shown(3 << 30)),
            ("5 bytes".into(), "2.0 KiB".into(), "3.0 GiB".into())
        );
    }
}
