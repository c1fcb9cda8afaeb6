//! `cargo tirx layout 'S[(8, 4):(4, 1)]' --shape 8,4`: the map of a layout as a table and as a picture.

use std::fmt::Write;
use std::path::PathBuf;

use tirx_build::compile::FileImports;
use tirx_core::layout::axes;
use tirx_services::layout::{ElementLocation, MOST, conflicts, places, read, svg};

use crate::failure::{Failure, Result, usage, user};
use crate::output::{Output, out};

#[derive(clap::Args, Debug)]
pub(crate) struct Show {
    /// A layout in kernel syntax: `S[(8, 32):(32, 1)]`, `TileLayout(…)`, `ComposeLayout(…)`.
    layout: String,
    /// The buffer's shape; defaults to the extents of the layout's iterators.
    #[arg(long, value_name = "N,M", value_delimiter = ',')]
    shape: Vec<i64>,
    /// Bytes per element, used to compute bank conflicts.
    #[arg(long, value_name = "BYTES", default_value_t = 4)]
    bytes: i64,
    /// The picture to write; `-` writes none.
    #[arg(long, value_name = "FILE", default_value = "layout.svg")]
    svg: PathBuf,
}

pub(crate) fn run(command: &Show, _: &Output) -> Result<()> {
    out(&shown(command)?)
}

fn shown(command: &Show) -> Result<String> {
    let imports = FileImports::new(std::path::Path::new(""), String::new());
    let (layout, shape) = read(&command.layout, &command.shape, &imports).map_err(Failure::User)?;
    let count: i64 = shape.iter().product();
    if count > MOST {
        return Err(usage(format_args!(
            "{count} elements are too many for a table: at most {MOST}"
        )));
    }
    let places = places(&layout, &shape).map_err(Failure::User)?;
    let columns = shape.last().copied().unwrap_or(1).max(1) as usize;
    let mut out = String::new();
    let width = places.iter().map(|p| p.text().len()).max().unwrap_or(1);
    let names: Vec<&str> = places
        .first()
        .map_or(vec![], |p| p.0.iter().map(|(n, _)| &**n).collect());
    let _ = writeln!(out, "each element: {}", names.join("/"));
    for row in places.chunks(columns) {
        let cells: Vec<String> = row.iter().map(|p| format!("{:>width$}", p.text())).collect();
        let _ = writeln!(out, "{}", cells.join(" "));
    }
    if names == [axes::MEMORY.name] {
        let rows = conflicts(places.chunks(columns).next().unwrap_or(&[]), command.bytes);
        let first: Vec<ElementLocation> = places.iter().step_by(columns).cloned().collect();
        let columns = conflicts(&first, command.bytes);
        let _ = writeln!(
            out,
            "bank conflicts of a warp, one element per lane: {rows}-way along a row, {columns}-way along a column"
        );
    }
    if command.svg.as_os_str() != "-" {
        let picture = svg(&places, columns, command.bytes);
        std::fs::write(&command.svg, picture)
            .map_err(|error| user(format_args!("cannot write `{}`: {error}", command.svg.display())))?;
        let _ = writeln!(out, "picture: {}", command.svg.display());
    }
    Ok(out)
}
