//! Buffers of a random kernel, and accesses that stay within bounds and do not race.

use tirx_core::ir::DType;

use super::bounds::Bounds;
use super::program::{Expr, Node, Piece, pieces};
use super::{Generator, Value};

/// An extent.
#[derive(Clone, Debug)]
pub(super) enum Extent {
    /// Known.
    Const(i64),
    /// A name of a dtype, positive, at most so much.
    Symbol(String, i64, DType),
}

/// How the elements that belong to one thread are indexed; `owner` is the thread's number among `owners`.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum ElementOrder {
    /// `[owner * each + j]`.
    Flat,
    /// `[j * owners + owner]`.
    Interleaved,
    /// `[owner, j]`.
    Rows,
    /// `[j, owner]`.
    Columns,
}

/// Access rules of a buffer.
#[derive(Clone, Debug)]
pub(super) enum Access {
    /// Every thread reads everywhere.
    Read,
    /// Private memory of a thread: it reads and writes everywhere.
    Private,
    /// Each thread reads and writes its own elements.
    Own {
        form: ElementOrder,
        owner: Expr,
        owners: i64,
        each: i64,
    },
    /// Every thread reads everywhere; each writes its own elements, between barriers.
    Shared {
        form: ElementOrder,
        owner: Expr,
        owners: i64,
        each: i64,
    },
    /// Every thread reads everywhere, except while the storage is written.
    View,
    /// One element without an index, which every thread reads and the thread `writer` writes, between barriers.
    Single { thread: Expr, writer: i64 },
    /// Atomic additions only.
    Count,
}

/// A buffer.
#[derive(Clone, Debug)]
pub(super) struct Array {
    pub(super) name: String,
    pub(super) dtype: DType,
    pub(super) bounds: Bounds,
    pub(super) shape: Vec<Extent>,
    pub(super) access: Access,
    /// The buffer whose storage it is.
    pub(super) storage: String,
    /// Its memory.
    pub(super) scope: Scope,
    /// Whether its elements fill its storage in order.
    pub(super) dense: bool,
}

/// The memory of a buffer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Scope {
    /// In memory of the device.
    Global,
    /// In memory of the block.
    Shared,
    /// In memory of the thread.
    Local,
}

/// The shape in which a thread's elements are arranged.
pub(super) fn shape_of(form: &ElementOrder, owners: i64, each: i64) -> Vec<i64> {
    match form {
        ElementOrder::Flat | ElementOrder::Interleaved => vec![owners * each],
        ElementOrder::Rows => vec![owners, each],
        ElementOrder::Columns => vec![each, owners],
    }
}

impl Generator {
    /// An index below an extent.
    pub(super) fn index(&mut self, extent: &Extent, depth: u32) -> Expr {
        match extent {
            Extent::Const(n) => {
                let n = *n as i128;
                let bounds = Bounds::Int(0, n - 1);
                let fitting: Vec<Expr> = self
                    .values
                    .iter()
                    .map(|v| &v.expr)
                    .filter(|e| e.dtype == DType::INT32 && bounds.holds(e.bounds))
                    .filter(|e| e.uniform || !self.uniform_only)
                    .cloned()
                    .collect();
                if !fitting.is_empty() && self.random.chance(50) {
                    return self.random.pick(&fitting).clone();
                }
                if self.random.chance(15) {
                    let value = self.random.between(0, n - 1);
                    return self.int_literal(DType::INT32, value);
                }
                let dtype = if self.random.chance(8) {
                    DType::INT64
                } else {
                    DType::INT32
                };
                let e = self.expr(dtype, depth.min(2));
                self.fit(e, bounds)
            }
            Extent::Symbol(name, most, dtype) => {
                let below: Vec<Expr> = self
                    .values
                    .iter()
                    .filter(|v| v.below.as_ref() == Some(name))
                    .map(|v| v.expr.clone())
                    .filter(|e| e.uniform || !self.uniform_only)
                    .collect();
                if !below.is_empty() && self.random.chance(60) {
                    return self.random.pick(&below).clone();
                }
                let e = self.expr(*dtype, depth.min(2));
                let bounds = Bounds::Int(0, *most as i128 - 1);
                if self.random.chance(50) {
                    return Expr::new(*dtype, bounds, pieces!["(", e, format!(" % {name})")]);
                }
                let e = self.fit(e, Bounds::Int(0, 1000));
                let one = self.int_literal(*dtype, 1);
                Expr::new(
                    *dtype,
                    bounds,
                    pieces!["T.min(", e, format!(", {name} - "), one, ")"],
                )
            }
        }
    }

    fn readable(&self, array: &Array) -> bool {
        let allowed = match array.access {
            Access::Read => true,
            Access::Single { .. } => true,
            Access::Private | Access::Own { .. } | Access::Shared { .. } | Access::View => !self.uniform_only,
            Access::Count => false,
        };
        allowed && !self.unreadable.contains(&array.storage)
    }

    /// An element of some buffer.
    pub(super) fn load(&mut self, dtype: DType, depth: u32) -> Option<Expr> {
        let fitting: Vec<Array> = self
            .arrays
            .iter()
            .filter(|a| a.dtype == dtype && self.readable(a))
            .cloned()
            .collect();
        if fitting.is_empty() || self.loads >= 2 {
            return None;
        }
        let array = self.random.pick(&fitting).clone();
        let d = depth.saturating_sub(1);
        self.loads += 1;
        let indices = match &array.access {
            Access::Own { .. } => self.own_indices(&array, d),
            _ => array.shape.iter().map(|e| self.index(e, d)).collect(),
        };
        self.loads -= 1;
        Some(access(&array, indices))
    }

    /// The indices of an element that belongs to the thread.
    pub(super) fn own_indices(&mut self, array: &Array, depth: u32) -> Vec<Expr> {
        let (Access::Own {
            form,
            owner,
            owners,
            each,
        }
        | Access::Shared {
            form,
            owner,
            owners,
            each,
        }) = &array.access
        else {
            return array.shape.iter().map(|e| self.index(e, depth)).collect();
        };
        let j = self.index(&Extent::Const(*each), depth);
        // A 64-bit index makes the sum 64-bit.
        let dtype = j.dtype;
        let size = Bounds::Int(0, (*owners * *each - 1) as i128);
        let (owner, j) = (owner.clone(), j);
        match form {
            ElementOrder::Rows => vec![owner, j],
            ElementOrder::Columns => vec![j, owner],
            ElementOrder::Flat if *each == 1 && self.random.chance(50) => vec![owner],
            ElementOrder::Flat => {
                vec![Expr::new(dtype, size, pieces!["(", owner, format!(" * {each} + "), j, ")"]).fixed()]
            }
            ElementOrder::Interleaved => {
                vec![
                    Expr::new(
                        dtype,
                        size,
                        pieces!["(", j, format!(" * {owners} + "), owner, ")"],
                    )
                    .fixed(),
                ]
            }
        }
    }

    /// A statement that stores to an element of the thread's own; `None` where there is no such buffer.
    pub(super) fn store(&mut self, depth: u32) -> Option<Node> {
        let fitting: Vec<Array> = self
            .arrays
            .iter()
            .filter(|a| matches!(a.access, Access::Own { .. } | Access::Private))
            .cloned()
            .collect();
        if fitting.is_empty() {
            return None;
        }
        let array = self.random.pick(&fitting).clone();
        Some(self.store_to(&array, depth))
    }

    /// `array[own] = expression`.
    pub(super) fn store_to(&mut self, array: &Array, depth: u32) -> Node {
        let indices = self.own_indices(array, 2);
        let value = self.expr(array.dtype, depth);
        let value = self.fit(value, array.bounds);
        self.assign(array, indices, value)
    }

    /// Fills an array of the thread: every element before any is read.
    pub(super) fn fill(&mut self, array: &Array, extents: &[i64]) -> Node {
        let names: Vec<String> = extents.iter().map(|_| self.fresh("i")).collect();
        let mark = self.values.len();
        for (name, extent) in names.iter().zip(extents) {
            self.values.push(Value::new(counter(name, *extent), None));
        }
        let value = self.expr(array.dtype, 2);
        let value = self.fit(value, array.bounds);
        self.values.truncate(mark);
        let indices: Vec<Expr> = match &array.access {
            Access::Own {
                form,
                owner,
                owners,
                each,
            }
            | Access::Shared {
                form,
                owner,
                owners,
                each,
            } => {
                let (owner, j) = (owner.clone(), counter(&names[0], *each));
                match form {
                    ElementOrder::Rows => vec![owner, j],
                    ElementOrder::Columns => vec![j, owner],
                    ElementOrder::Flat => vec![
                        Expr::new(
                            DType::INT32,
                            Bounds::Int(0, (owners * each - 1) as i128),
                            pieces!["(", owner, format!(" * {each} + "), j, ")"],
                        )
                        .fixed(),
                    ],
                    ElementOrder::Interleaved => vec![
                        Expr::new(
                            DType::INT32,
                            Bounds::Int(0, (owners * each - 1) as i128),
                            pieces!["(", j, format!(" * {owners} + "), owner, ")"],
                        )
                        .fixed(),
                    ],
                }
            }
            _ => names.iter().zip(extents).map(|(n, e)| counter(n, *e)).collect(),
        };
        let store = self.assign_always(array, indices, value);
        let head = match extents {
            [one] => {
                let kind = *self
                    .random
                    .pick(&["range", "T.serial", "T.unroll", "T.vectorized"]);
                pieces![format!("for {} in {kind}({one}):", names[0])]
            }
            many => {
                let list: Vec<String> = many.iter().map(i64::to_string).collect();
                pieces![format!(
                    "for {} in T.grid({}):",
                    names.join(", "),
                    list.join(", ")
                )]
            }
        };
        Node::Block {
            head,
            body: vec![store],
            otherwise: Vec::new(),
        }
    }

    /// Declares an array of the thread, filled.
    pub(super) fn local_array(&mut self) -> Node {
        let dtype = self.any_dtype();
        let name = self.fresh("local");
        let extents: Vec<i64> = match self.random.below(3) {
            0 => vec![self.random.between(1, 3) as i64, self.random.between(2, 4) as i64],
            _ => vec![*self.random.pick(&[1, 2, 3, 4, 5, 8, 16])],
        };
        let layout = self.layout(&extents);
        let array = Array {
            name: name.clone(),
            dtype,
            bounds: Bounds::stored(dtype),
            shape: extents.iter().map(|e| Extent::Const(*e)).collect(),
            access: Access::Private,
            storage: name.clone(),
            scope: Scope::Local,
            dense: layout.is_empty(),
        };
        let shape = tuple(&extents);
        let declared = Node::Line(pieces![match self.random.below(3) {
            0 => format!("{name} = T.alloc_local({shape}, \"{dtype}\"{layout})"),
            1 if layout.is_empty() => {
                let list: Vec<String> = extents.iter().map(i64::to_string).collect();
                format!("{name}: T.{dtype}[{}]", list.join(", "))
            }
            _ => format!("{name} = T.alloc_buffer({shape}, \"{dtype}\", scope=\"local\"{layout})"),
        }]);
        let filled = self.fill(&array, &extents);
        self.arrays.push(array);
        Node::Group(vec![declared, filled])
    }

    /// `, layout=…` for a buffer, or nothing: row-major with a padded row, or column-major.
    pub(super) fn layout(&mut self, extents: &[i64]) -> String {
        if extents.len() != 2 || self.random.chance(60) {
            return String::new();
        }
        let (rows, columns) = (extents[0], extents[1]);
        let strides = match self.random.below(2) {
            0 => format!("(1, {rows})"),
            _ => format!("({}, 1)", columns + self.random.between(0, 3) as i64),
        };
        format!(", layout=TileLayout(S[({rows}, {columns}):{strides}])")
    }
}

/// `array[indices]` as a value.
pub(super) fn access(array: &Array, indices: Vec<Expr>) -> Expr {
    if let Access::Single { .. } = array.access {
        return Expr::new(array.dtype, array.bounds, pieces![array.name.clone()]);
    }
    let mut list: Vec<Piece> = pieces![format!("{}[", array.name)];
    for (i, index) in indices.into_iter().enumerate() {
        if i > 0 {
            list.push(", ".into());
        }
        list.push(index.into());
    }
    list.push("]".into());
    let mut e = Expr::new(array.dtype, array.bounds, list);
    e.uniform &= matches!(array.access, Access::Read);
    e
}

/// `place = value`; the place is not an expression that could be simplified away.
pub(super) fn assign(place: Expr, value: Expr) -> Node {
    let mut list = place.pieces;
    list.push(" = ".into());
    list.push(value.into());
    Node::Line(list)
}

/// A loop variable.
pub(super) fn counter(name: &str, extent: i64) -> Expr {
    Expr::new(
        DType::INT32,
        Bounds::Int(0, extent as i128 - 1),
        pieces![name.to_string()],
    )
}

/// A Python tuple.
pub(super) fn tuple(extents: &[i64]) -> String {
    let list: Vec<String> = extents.iter().map(i64::to_string).collect();
    match list.len() {
        1 => format!("({},)", list[0]),
        _ => format!("({})", list.join(", ")),
    }
}
