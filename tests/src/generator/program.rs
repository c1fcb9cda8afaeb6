//! A random kernel as a tree: its text, and the smaller kernels it can be cut down to.

use tirx_core::ir::DType;

use super::bounds::Bounds;

/// Text with expressions in it.
#[derive(Clone, Debug)]
pub enum Piece {
    /// Fixed text.
    Text(String),
    /// An expression.
    Expr(Expr),
}

impl From<&str> for Piece {
    fn from(text: &str) -> Piece {
        Piece::Text(text.to_string())
    }
}

impl From<String> for Piece {
    fn from(text: String) -> Piece {
        Piece::Text(text)
    }
}

impl From<Expr> for Piece {
    fn from(expr: Expr) -> Piece {
        Piece::Expr(expr)
    }
}

/// Makes a list of [`Piece`]s.
macro_rules! pieces {
    ($($piece:expr),* $(,)?) => { vec![$($crate::generator::program::Piece::from($piece)),*] };
}
pub(crate) use pieces;

/// An expression: its text and what is known of it.
#[derive(Clone, Debug)]
pub struct Expr {
    /// Its dtype.
    pub dtype: DType,
    /// Its values.
    pub bounds: Bounds,
    /// Whether it is uniform over the threads of a block.
    pub uniform: bool,
    /// Whether it is computed from constants alone, so that it may be folded.
    pub constant: bool,
    /// Whether it selects an element that belongs to the thread: replacing it would cause a race.
    pub fixed: bool,
    /// Its text.
    pub pieces: Vec<Piece>,
}

impl Expr {
    /// Uniform if its parts are.
    pub fn new(dtype: DType, bounds: Bounds, pieces: Vec<Piece>) -> Expr {
        let mut parts = pieces.iter().filter_map(|p| match p {
            Piece::Text(_) => None,
            Piece::Expr(e) => Some(e),
        });
        let uniform = parts.clone().all(|e| e.uniform);
        let constant = parts.clone().next().is_some() && parts.all(|e| e.constant);
        Expr {
            dtype,
            bounds,
            uniform,
            constant,
            fixed: false,
            pieces,
        }
    }

    /// Marks it as not replaceable by a simpler one.
    pub(super) fn fixed(self) -> Expr {
        Expr { fixed: true, ..self }
    }

    /// Marks it as constant if one of its parts is: the other parts may be simplified away.
    pub(super) fn folding(self) -> Expr {
        let constant = self
            .pieces
            .iter()
            .any(|p| matches!(p, Piece::Expr(e) if e.constant));
        Expr { constant, ..self }
    }

    /// A constant of a dtype.
    pub fn constant(dtype: DType, value: i128) -> Expr {
        let text = if dtype.is_bool() {
            format!("T.bool({})", if value != 0 { "True" } else { "False" })
        } else {
            format!("T.{dtype}({value})")
        };
        Expr::literal(dtype, Bounds::Int(value, value), text)
    }

    /// A constant with its text.
    pub(super) fn literal(dtype: DType, bounds: Bounds, text: String) -> Expr {
        Expr {
            constant: true,
            ..Expr::new(dtype, bounds, pieces![text])
        }
    }

    /// Whether it may replace `other`.
    fn replaces(&self, other: &Expr) -> bool {
        self.dtype == other.dtype && other.bounds.holds(self.bounds) && (self.uniform || !other.uniform)
    }

    /// Subexpressions of any depth that may replace it, and constants.
    fn simpler(&self) -> Vec<Expr> {
        if self.fixed {
            return Vec::new();
        }
        fn descend<'a>(e: &'a Expr, out: &mut Vec<&'a Expr>) {
            for piece in &e.pieces {
                if let Piece::Expr(child) = piece {
                    out.push(child);
                    descend(child, out);
                }
            }
        }
        let mut inside = Vec::new();
        descend(self, &mut inside);
        if inside.is_empty() {
            return Vec::new();
        }
        let mut found: Vec<Expr> = Vec::new();
        if let (Bounds::Int(low, high), true) = (self.bounds, self.dtype.is_scalar()) {
            let value = 0.clamp(low, high);
            let mut constant = Expr::constant(self.dtype, value);
            constant.bounds = Bounds::Int(value, value);
            found.push(constant);
        }
        found.extend(inside.into_iter().filter(|e| e.replaces(self)).cloned());
        found
    }

    /// Each kernel with one expression made simpler is one step.
    fn shrink(&self, out: &mut dyn FnMut(Expr) -> bool) -> bool {
        for simpler in self.simpler() {
            if out(simpler) {
                return true;
            }
        }
        for (i, piece) in self.pieces.iter().enumerate() {
            if let Piece::Expr(child) = piece {
                let found = child.shrink(&mut |new| {
                    let mut copy = self.clone();
                    copy.pieces[i] = Piece::Expr(new);
                    out(copy)
                });
                if found {
                    return true;
                }
            }
        }
        false
    }

    fn write(&self, out: &mut String) {
        write_pieces(&self.pieces, out);
    }

    /// Its text.
    pub fn text(&self) -> String {
        let mut text = String::new();
        self.write(&mut text);
        text
    }
}

fn write_pieces(pieces: &[Piece], out: &mut String) {
    for piece in pieces {
        match piece {
            Piece::Text(t) => out.push_str(t),
            Piece::Expr(e) => e.write(out),
        }
    }
}

/// A statement.
#[derive(Clone, Debug)]
pub enum Node {
    /// One line.
    Line(Vec<Piece>),
    /// Lines that belong together, dropped together.
    Group(Vec<Node>),
    /// A head, its body, and what follows `else:`.
    Block {
        /// `for …:`, `if …:`, `while …:`.
        head: Vec<Piece>,
        /// Indented.
        body: Vec<Node>,
        /// Indented under `else:`; empty for none.
        otherwise: Vec<Node>,
    },
}

impl Node {
    fn write(&self, indent: usize, out: &mut String) {
        match self {
            Node::Line(pieces) => {
                out.push_str(&"    ".repeat(indent));
                write_pieces(pieces, out);
                out.push('\n');
            }
            Node::Group(nodes) => nodes.iter().for_each(|n| n.write(indent, out)),
            Node::Block {
                head,
                body,
                otherwise,
            } => {
                out.push_str(&"    ".repeat(indent));
                write_pieces(head, out);
                out.push('\n');
                write_body(body, indent + 1, out);
                if !otherwise.is_empty() {
                    out.push_str(&"    ".repeat(indent));
                    out.push_str("else:\n");
                    write_body(otherwise, indent + 1, out);
                }
            }
        }
    }
}

fn write_body(nodes: &[Node], indent: usize, out: &mut String) {
    let before = out.len();
    nodes.iter().for_each(|n| n.write(indent, out));
    if out.len() == before {
        out.push_str(&"    ".repeat(indent));
        out.push_str("T.evaluate(0)\n");
    }
}

/// An argument of the kernel.
#[derive(Clone, Debug)]
pub enum Argument {
    /// A compact tensor and its first content.
    Tensor {
        /// Its name in the kernel.
        name: String,
        /// Its elements.
        dtype: DType,
        /// Its extents.
        shape: Vec<i64>,
        /// Its content.
        bytes: Vec<u8>,
    },
    /// An integer or truth value.
    Int {
        /// Its dtype.
        dtype: DType,
        /// Its value.
        value: i64,
    },
    /// A number.
    Float {
        /// Its value.
        value: f64,
    },
}

/// A kernel, its arguments and where it came from.
#[derive(Clone, Debug)]
pub struct Kernel {
    /// The seed that made it.
    pub seed: u64,
    /// The lines before the body.
    pub head: Vec<String>,
    /// The body.
    pub body: Vec<Node>,
    /// What it is called with.
    pub arguments: Vec<Argument>,
}

impl Kernel {
    /// No kernel: for a seed that makes none.
    pub fn empty(seed: u64) -> Kernel {
        Kernel {
            seed,
            head: Vec::new(),
            body: Vec::new(),
            arguments: Vec::new(),
        }
    }

    /// The kernel file.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for line in &self.head {
            text.push_str(line);
            text.push('\n');
        }
        write_body(&self.body, 1, &mut text);
        text
    }

    /// The smallest kernel found by dropping statements, unwrapping blocks and simplifying expressions for which
    /// `fails` still holds. Calls `fails` at most `budget` times.
    pub fn shrink(&self, budget: usize, fails: &mut dyn FnMut(&Kernel) -> bool) -> Kernel {
        let mut best = self.clone();
        let mut left = budget;
        loop {
            let mut next: Option<Vec<Node>> = None;
            shrink_body(&best.body, &mut |body| {
                if left == 0 {
                    return true;
                }
                left -= 1;
                let candidate = Kernel { body, ..best.clone() };
                if fails(&candidate) {
                    next = Some(candidate.body);
                    return true;
                }
                false
            });
            match next {
                Some(body) => best.body = body,
                None => return best,
            }
        }
    }
}

/// Offers smaller bodies until one is taken.
fn shrink_body(body: &[Node], out: &mut dyn FnMut(Vec<Node>) -> bool) -> bool {
    // Large parts first.
    let mut size = body.len() / 2;
    while size >= 1 {
        let mut start = 0;
        while start < body.len() {
            let end = (start + size).min(body.len());
            let rest = [&body[..start], &body[end..]].concat();
            if out(rest) {
                return true;
            }
            start = end;
        }
        size /= 2;
    }
    if body.len() == 1 && out(Vec::new()) {
        return true;
    }
    for (i, node) in body.iter().enumerate() {
        let replaced = |with: Vec<Node>| [&body[..i], &with[..], &body[i + 1..]].concat();
        match node {
            Node::Group(nodes) => {
                if nodes.len() > 1 && shrink_body(nodes, &mut |new| out(replaced(vec![Node::Group(new)]))) {
                    return true;
                }
                if nodes.len() == 1 && out(replaced(nodes.clone())) {
                    return true;
                }
            }
            Node::Line(pieces) => {
                if shrink_pieces(pieces, &mut |new| out(replaced(vec![Node::Line(new)]))) {
                    return true;
                }
            }
            Node::Block {
                head,
                body: inner,
                otherwise,
            } => {
                if out(replaced(inner.clone())) || (!otherwise.is_empty() && out(replaced(otherwise.clone())))
                {
                    return true;
                }
                let with = |head: &[Piece], body: Vec<Node>, otherwise: Vec<Node>| {
                    replaced(vec![Node::Block {
                        head: head.to_vec(),
                        body,
                        otherwise,
                    }])
                };
                if !otherwise.is_empty() && out(with(head, inner.clone(), Vec::new())) {
                    return true;
                }
                if shrink_body(inner, &mut |new| out(with(head, new, otherwise.clone())))
                    || shrink_body(otherwise, &mut |new| out(with(head, inner.clone(), new)))
                    || shrink_pieces(head, &mut |new| out(with(&new, inner.clone(), otherwise.clone())))
                {
                    return true;
                }
            }
        }
    }
    false
}

fn shrink_pieces(pieces: &[Piece], out: &mut dyn FnMut(Vec<Piece>) -> bool) -> bool {
    for (i, piece) in pieces.iter().enumerate() {
        if let Piece::Expr(e) = piece {
            let found = e.shrink(&mut |new| {
                let mut copy = pieces.to_vec();
                copy[i] = Piece::Expr(new);
                out(copy)
            });
            if found {
                return true;
            }
        }
    }
    false
}
