//! The map of a layout: the place of each element, the conflicts of banks, and a picture.

use std::fmt::Write;

use tirx_core::diagnostic::{Level, Message};
use tirx_core::ir::{Buffer, Expr, StmtKind, Visitor};
use tirx_core::layout::Layout;
use tirx_core::layout::axes;
use tirx_core::script::Imports;

use crate::kernel::{Loaded, Result};

/// Most elements that are shown.
pub const MOST: i64 = 1 << 16;

fn user(text: impl Into<String>) -> Vec<Message> {
    vec![Message::new(Level::Error, text)]
}

/// The layout of the text, evaluated as the layout of a buffer.
///
/// # Errors
/// Errors of the text, and a shape that does not fit.
pub fn read(text: &str, shape: &[i64], imports: &dyn Imports) -> Result<(Layout, Vec<i64>)> {
    let text = text.trim();
    let text = if text.starts_with("S[") || text.starts_with("T.S[") {
        format!("TileLayout({text})")
    } else {
        text.to_string()
    };
    let kernel = |shape: &str| {
        format!(
            "from tvm.script import tirx as T\nfrom tvm.tirx.layout import *\n\n\n@T.prim_func\ndef shown():\n    \
             T.device_entry()\n    T.thread_id([32])\n    b = T.alloc_buffer({shape}, \"float32\", scope=\"local\", \
             layout={text})\n"
        )
    };
    let load = |shape: &str| -> Result<Buffer> {
        let loaded = Loaded::new("layout", &kernel(shape), imports)?;
        let built = loaded.build_all("shown", &Default::default())?;
        let buffer = built.iter().find_map(|b| allocated(&b.module));
        buffer.ok_or_else(|| user("the text gives no layout"))
    };
    let shape: Vec<i64> = if shape.is_empty() {
        let buffer = load("(1,)")?;
        let tile = buffer.layout.as_ref().map(|l| l.tile().const_extents());
        let Some(Some(extents)) = tile else {
            return Err(user("the extents of the layout are not constant: give --shape"));
        };
        extents.iter().map(|e| *e as i64).collect()
    } else {
        shape.to_vec()
    };
    if shape.iter().any(|e| *e < 1) {
        return Err(user("extents are positive"));
    }
    let list: Vec<String> = shape.iter().map(i64::to_string).collect();
    let buffer = load(&format!("({},)", list.join(", ")))?;
    let layout = buffer
        .layout
        .clone()
        .ok_or_else(|| user("the text gives no layout"))?;
    let size: i64 = shape.iter().product();
    match layout.tile().const_size() {
        Some(own) if own as i64 != size => {
            Err(user(format!("the layout has {own} elements, the shape {size}")))
        }
        _ => Ok((layout, shape)),
    }
}

fn allocated(module: &tirx_core::ir::IRModule) -> Option<Buffer> {
    struct Find(Option<Buffer>);
    impl Visitor for Find {
        fn visit_stmt(&mut self, stmt: &tirx_core::ir::Stmt) {
            if let StmtKind::AllocBuffer(buffer, _) = &stmt.kind {
                self.0 = Some(buffer.clone());
            }
            self.walk_stmt(stmt);
        }
    }
    let mut find = Find(None);
    module
        .functions
        .iter()
        .for_each(|(_, f)| find.visit_stmt(&f.body));
    find.0
}

/// The place of an element: a number on each axis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ElementLocation(pub Vec<(String, i128)>);

impl ElementLocation {
    /// The numbers, with slashes between them.
    pub fn text(&self) -> String {
        let numbers: Vec<String> = self.0.iter().map(|(_, n)| n.to_string()).collect();
        numbers.join("/")
    }

    fn on(&self, axis: &str) -> Option<i128> {
        self.0.iter().find(|(name, _)| name == axis).map(|(_, n)| *n)
    }

    /// The value that determines an element's colour: its thread, or its bank.
    fn owner(&self, bytes: i64) -> i128 {
        match self.0.iter().find(|(name, _)| name != axes::MEMORY.name) {
            Some((_, thread)) => *thread,
            None => self.on(axes::MEMORY.name).unwrap_or(0) * i128::from(bytes) / 4 % 32,
        }
    }
}

/// The place of each element, in row-major order.
///
/// # Errors
/// A layout that is not constant.
pub fn places(layout: &Layout, shape: &[i64]) -> Result<Vec<ElementLocation>> {
    let extents: Vec<Expr> = shape.iter().map(|e| Expr::int32(*e as i32)).collect();
    places_within(layout, &extents, shape)
}

/// The place of each element of the first part, of extents `shape`, of a buffer.
///
/// # Errors
/// A layout that is not constant.
pub fn places_within(layout: &Layout, extents: &[Expr], shape: &[i64]) -> Result<Vec<ElementLocation>> {
    let count: i64 = shape.iter().product();
    let mut analyzer = tirx_core::arith::Analyzer::new();
    (0..count)
        .map(|number| {
            let mut rest = number;
            let mut coordinate = vec![Expr::int32(0); shape.len()];
            for (dim, extent) in shape.iter().enumerate().rev() {
                coordinate[dim] = Expr::int32((rest % extent) as i32);
                rest /= extent;
            }
            let offsets = layout.offsets(&coordinate, extents);
            let place = offsets.iter().map(|(axis, at)| {
                let at = analyzer.simplify(at).as_int();
                at.map(|at| (axis.0.to_string(), at))
            });
            let place: Option<Vec<_>> = place.collect();
            place
                .map(ElementLocation)
                .ok_or_else(|| user("the layout is not constant"))
        })
        .collect()
}

/// The number of words of each bank that a warp touches when its lanes read the first elements of a line.
fn banks(line: &[ElementLocation], bytes: i64) -> [usize; 32] {
    let mut words: Vec<i128> = line
        .iter()
        .take(32)
        .filter_map(|p| p.on(axes::MEMORY.name))
        .map(|at| at * i128::from(bytes) / 4)
        .collect();
    words.sort_unstable();
    words.dedup();
    let mut counts = [0; 32];
    for word in words {
        counts[word.rem_euclid(32) as usize] += 1;
    }
    counts
}

/// The most words of one bank that a warp touches: the number of conflicting accesses.
pub fn conflicts(line: &[ElementLocation], bytes: i64) -> usize {
    banks(line, bytes).into_iter().max().unwrap_or(0).max(1)
}

/// The side of an element's cell.
const CELL: usize = 34;
/// The side of a bank's cell.
const BANK: usize = 22;

/// One cell per element, coloured by its thread or its bank; below elements of memory, the number of words of each bank
/// that a warp touches when it reads a row, and when it reads a column.
pub fn svg(places: &[ElementLocation], columns: usize, bytes: i64) -> String {
    let rows = places.len().div_ceil(columns);
    let in_memory = places
        .first()
        .is_some_and(|p| p.0.iter().all(|(axis, _)| axis == axes::MEMORY.name));
    let below = if in_memory { 3 * BANK + 16 } else { 0 };
    let width = if in_memory {
        (columns * CELL).max(32 * BANK + 70)
    } else {
        columns * CELL
    };
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{}\" height=\"{}\" font-family=\"monospace\" \
         font-size=\"9\" text-anchor=\"middle\">\n",
        width + 1,
        rows * CELL + 1 + below
    );
    let mut cell = |x: usize, y: usize, side: usize, fill: &str, text: &str| {
        let _ = writeln!(
            out,
            "<rect x=\"{x}\" y=\"{y}\" width=\"{side}\" height=\"{side}\" fill=\"{fill}\" \
             stroke=\"#555\"/><text x=\"{}\" y=\"{}\">{text}</text>",
            x + side / 2,
            y + side / 2 + 3,
        );
    };
    for (number, place) in places.iter().enumerate() {
        let (x, y) = (number % columns * CELL, number / columns * CELL);
        let hue = place.owner(bytes) * 137 % 360;
        cell(x, y, CELL, &format!("hsl({hue},60%,80%)"), &place.text());
    }
    if in_memory {
        let first: Vec<ElementLocation> = places.iter().step_by(columns).cloned().collect();
        let top = rows * CELL + 16;
        let row = places.chunks(columns).next().unwrap_or(&[]);
        let lines = [banks(row, bytes), banks(&first, bytes)];
        for (line, counts) in lines.into_iter().enumerate() {
            let y = top + BANK + line * BANK;
            for (bank, count) in counts.into_iter().enumerate() {
                if line == 0 {
                    cell(70 + bank * BANK, top, BANK, "white", &bank.to_string());
                }
                // Two words of one bank are a two-way conflict.
                let fill = match count {
                    0 => "white".to_string(),
                    1 => "hsl(120,60%,80%)".to_string(),
                    many => format!("hsl(0,80%,{}%)", 85_usize.saturating_sub(4 * many).max(45)),
                };
                cell(70 + bank * BANK, y, BANK, &fill, &count.to_string());
            }
        }
        for (line, name) in ["bank", "row", "column"].into_iter().enumerate() {
            let y = top + line * BANK + BANK / 2 + 3;
            let _ = writeln!(out, "<text x=\"34\" y=\"{y}\">{name}</text>");
        }
    }
    out.push_str("</svg>\n");
    out
}
