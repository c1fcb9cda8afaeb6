//! Vectors: vectorized loops, vector loads and stores, arrays of vectors.

use tirx_core::ir::DType;

use super::bounds::{Bounds, most};
use super::memory::{Access, Array, ElementOrder, Extent, access, counter};
use super::program::{Expr, Node, pieces};
use super::{Generator, Value};

/// An array of vectors of the thread's own, or one vector by name.
#[derive(Clone, Debug)]
pub(super) struct Vectors {
    name: String,
    dtype: DType,
    lanes: i64,
    /// Of one value that cannot be assigned, zero.
    count: i64,
}

impl Generator {
    /// A buffer with `lanes` elements of the thread's own in a row, and the first index of such a row.
    fn row(&mut self, lanes: i64) -> Option<(Array, Expr)> {
        let fits = |a: &Array| match &a.access {
            Access::Own {
                form: ElementOrder::Flat,
                each,
                ..
            } => *each >= lanes,
            Access::Private => a.dense && matches!(a.shape[..], [Extent::Const(n)] if n >= lanes),
            _ => false,
        };
        let fitting: Vec<Array> = self.arrays.iter().filter(|a| fits(a)).cloned().collect();
        let array = fitting.get(self.random.below(fitting.len()))?.clone();
        let base = self.row_of(&array, lanes)?;
        Some((array, base))
    }

    /// The first index of `lanes` elements of the thread's own.
    fn row_of(&mut self, array: &Array, lanes: i64) -> Option<Expr> {
        Some(match &array.access {
            Access::Own {
                owner, owners, each, ..
            }
            | Access::Shared {
                owner, owners, each, ..
            } => {
                let rows = self.index(&Extent::Const(each / lanes), 1);
                let dtype = rows.dtype;
                let bounds = Bounds::Int(0, (owners * each - lanes) as i128);
                Expr::new(
                    dtype,
                    bounds,
                    pieces![
                        "(",
                        owner.clone(),
                        format!(" * {each} + "),
                        rows,
                        format!(" * {lanes})")
                    ],
                )
                .fixed()
            }
            _ => {
                let [Extent::Const(n)] = array.shape[..] else {
                    return None;
                };
                let rows = self.index(&Extent::Const(n / lanes), 1);
                let dtype = rows.dtype;
                Expr::new(
                    dtype,
                    Bounds::Int(0, (n - lanes) as i128),
                    pieces!["(", rows, format!(" * {lanes})")],
                )
                .fixed()
            }
        })
    }

    /// A vectorized loop over the thread's own elements of a shared buffer that no thread reads at present.
    pub(super) fn vectorized_in(&mut self, array: &Array) -> Option<Node> {
        let lanes = *self.random.pick(&[2i64, 4]);
        match array.access {
            Access::Shared {
                form: ElementOrder::Flat,
                each,
                ..
            } if each >= lanes => {}
            _ => return None,
        }
        let mark = self.unreadable.len();
        let written = |a: &&Array| matches!(a.access, Access::Own { .. } | Access::Private);
        let hidden: Vec<String> = (self.arrays.iter().filter(written).map(|a| a.storage.clone())).collect();
        self.unreadable.extend(hidden);
        let base = self.row_of(array, lanes);
        self.unreadable.truncate(mark);
        Some(self.vectorized_at(array, base?, lanes))
    }

    /// The same, where a loop is to store: the index reads nothing that the loop may write.
    fn unread_row(&mut self, lanes: i64) -> Option<(Array, Expr)> {
        let mark = self.unreadable.len();
        let written = |a: &&Array| matches!(a.access, Access::Own { .. } | Access::Private);
        let hidden: Vec<String> = (self.arrays.iter().filter(written).map(|a| a.storage.clone())).collect();
        self.unreadable.extend(hidden);
        let row = self.row(lanes);
        self.unreadable.truncate(mark);
        row
    }

    /// `for v in T.vectorized(…)` over elements of the thread's own.
    pub(super) fn vectorized(&mut self) -> Option<Node> {
        let lanes = *self.random.pick(&[2i64, 4, 4, 8, 3, 5, 6, 16]);
        let (array, base) = self.unread_row(lanes)?;
        Some(self.vectorized_at(&array, base, lanes))
    }

    fn vectorized_at(&mut self, array: &Array, base: Expr, lanes: i64) -> Node {
        let name = self.fresh("u");
        let v = counter(&name, lanes);
        let mark = self.values.len();
        self.values.push(Value::new(v.clone(), None));
        self.unreadable.push(array.storage.clone());
        let bounds = Bounds::Int(0, base.bounds.ints().1 + lanes as i128);
        let index = Expr::new(base.dtype, bounds, pieces!["(", base, " + ", v, ")"]).fixed();
        let value = if self.random.chance(40) {
            self.lanewise_load(array.dtype, &name, lanes)
        } else {
            self.expr(array.dtype, 3)
        };
        let value = self.fit(value, array.bounds);
        let mut store = self.assign(array, vec![index], value);
        if self.random.chance(15) {
            let condition = self.expr(DType::BOOL, 1);
            store = Node::Block {
                head: pieces!["if ", condition, ":"],
                body: vec![store],
                otherwise: Vec::new(),
            };
        }
        self.unreadable.pop();
        self.values.truncate(mark);
        Node::Block {
            head: pieces![format!("for {name} in T.vectorized({lanes}):")],
            body: vec![store],
            otherwise: Vec::new(),
        }
    }

    /// A load at `… * lanes + v`, of `dtype` or cast to it.
    fn lanewise_load(&mut self, dtype: DType, v: &str, lanes: i64) -> Expr {
        let fits = |a: &Array| {
            matches!(a.access, Access::Read | Access::Private)
                && matches!(a.shape[..], [Extent::Const(n)] if n >= lanes)
        };
        let fitting: Vec<Array> = self
            .arrays
            .iter()
            .filter(|a| fits(a) && !self.unreadable.contains(&a.storage))
            .cloned()
            .collect();
        let Some(array) = fitting.get(self.random.below(fitting.len())).cloned() else {
            return self.expr(dtype, 2);
        };
        let [Extent::Const(n)] = array.shape[..] else {
            return self.expr(dtype, 2);
        };
        let row = self.index(&Extent::Const(n / lanes), 1);
        let index = Expr::new(
            row.dtype,
            Bounds::Int(0, n as i128 - 1),
            pieces!["(", row, format!(" * {lanes} + "), counter(v, lanes), ")"],
        );
        let load = access(&array, vec![index]);
        let other = self.expr(dtype, 1);
        let load = self.cast(load, dtype);
        if !dtype.is_uint() || self.random.chance(50) {
            return load;
        }
        Expr::new(
            dtype,
            Bounds::from_dtype(dtype),
            pieces!["(", load, " + ", other, ")"],
        )
    }

    /// `A.vstore([…], …)` or `A[a:b] = …`.
    pub(super) fn vector_store(&mut self) -> Option<Node> {
        let lanes = *self.random.pick(&[2i64, 4]);
        let (array, base) = self.row(lanes)?;
        if array.dtype.is_bool() || array.dtype.is_float8() {
            return None;
        }
        self.unreadable.push(array.storage.clone());
        let value = self.vector(array.dtype, lanes, 2);
        self.unreadable.pop();
        let value = within(value, array.dtype, lanes);
        let name = &array.name;
        Some(Node::Line(if self.random.chance(50) {
            pieces![format!("{name}.vstore(["), base, "], ", value, ")"]
        } else {
            let text = base.text();
            pieces![format!("{name}[{text}:{text} + {lanes}] = "), value]
        }))
    }

    /// A vector.
    fn vector(&mut self, dtype: DType, lanes: i64, depth: u32) -> Expr {
        let wide = dtype.with_lanes(lanes as u16);
        let whole = Bounds::from_dtype(dtype);
        if depth > 0 && self.random.chance(15) {
            return self.vector_of_others(dtype, lanes, depth - 1);
        }
        let stored: Vec<Vectors> = (self.vectors.iter())
            .filter(|v| v.dtype == dtype && v.lanes == lanes)
            .cloned()
            .collect();
        if !stored.is_empty() && self.random.chance(50) {
            let from = self.random.pick(&stored).clone();
            if from.count == 0 {
                let mut e = Expr::new(wide, Bounds::stored(dtype), pieces![from.name]);
                e.uniform = false;
                return e;
            }
            let index = self.index(&Extent::Const(from.count), 1);
            let load = pieces![format!("{}[", from.name), index, "]"];
            let mut e = Expr::new(wide, Bounds::stored(dtype), load);
            e.uniform = false;
            return e;
        }
        if depth > 0 && self.random.chance(60) {
            let (a, b) = (
                self.vector(dtype, lanes, depth - 1),
                self.vector(dtype, lanes, depth - 1),
            );
            if dtype.is_floating() {
                let (x, y) = (a.bounds.magnitude(), b.bounds.magnitude());
                if x + y < most(dtype) && self.random.chance(60) {
                    let op = *self.random.pick(&[" + ", " - "]);
                    return Expr::new(wide, Bounds::Float(x + y), pieces!["(", a, op, b, ")"]);
                }
                if x * y < most(dtype) {
                    return Expr::new(wide, Bounds::Float(x * y), pieces!["(", a, " * ", b, ")"]);
                }
                let name = *self.random.pick(&["T.max(", "T.min("]);
                return Expr::new(wide, Bounds::Float(x.max(y)), pieces![name, a, ", ", b, ")"]);
            }
            if dtype.is_uint() && self.random.chance(60) {
                let op = *self.random.pick(&[" + ", " - ", " * "]);
                return Expr::new(wide, whole, pieces!["(", a, op, b, ")"]);
            }
            if self.random.chance(50) {
                let op = *self.random.pick(&[" & ", " | ", " ^ "]);
                return Expr::new(wide, whole, pieces!["(", a, op, b, ")"]);
            }
            let name = *self.random.pick(&["T.max(", "T.min("]);
            return Expr::new(wide, whole, pieces![name, a, ", ", b, ")"]);
        }
        let fits = |a: &&Array| {
            a.dtype == dtype
                && a.dense
                && matches!(a.access, Access::Read | Access::Private)
                && matches!(a.shape[..], [Extent::Const(n)] if n >= lanes)
        };
        let fitting: Vec<Array> = self
            .arrays
            .iter()
            .filter(fits)
            .filter(|a| !self.unreadable.contains(&a.storage))
            .cloned()
            .collect();
        let Some(array) = fitting.get(self.random.below(fitting.len())).cloned() else {
            let value = self.expr(dtype, 1);
            let bounds = value.bounds;
            return Expr::new(
                wide,
                bounds,
                pieces!["T.broadcast(", value, format!(", {lanes})")],
            );
        };
        let [Extent::Const(n)] = array.shape[..] else {
            return self.vector(dtype, lanes, 0);
        };
        let row = self.index(&Extent::Const(n / lanes), 1);
        let name = &array.name;
        if self.random.chance(50) {
            return Expr::new(
                wide,
                array.bounds,
                pieces![
                    format!("{name}.vload(["),
                    row,
                    format!(" * {lanes}], dtype=\"{dtype}x{lanes}\")")
                ],
            );
        }
        let text = row.text();
        let mut e = Expr::new(
            wide,
            array.bounds,
            pieces![format!("{name}[{text} * {lanes}:{text} * {lanes} + {lanes}]")],
        );
        e.uniform = false;
        e
    }

    /// A vector made of others, or of scalars.
    fn vector_of_others(&mut self, dtype: DType, lanes: i64, depth: u32) -> Expr {
        let wide = dtype.with_lanes(lanes as u16);
        let from = match dtype {
            DType::INT32 => DType::INT8,
            DType::FLOAT32 => *self.random.pick(&[DType::FLOAT16, DType::INT16, DType::BFLOAT16]),
            DType::INT64 => DType::INT32,
            DType::UINT32 => DType::UINT8,
            DType::FLOAT64 => DType::FLOAT32,
            _ => dtype,
        };
        if from != dtype && self.random.chance(50) {
            let value = self.vector(from, lanes, depth);
            let bounds = match value.bounds {
                Bounds::Int(a, b) if dtype.is_floating() => Bounds::Float(a.abs().max(b.abs()) as f64),
                other => other,
            };
            return Expr::new(wide, bounds, pieces!["T.cast(", value, format!(", \"{wide}\")")]);
        }
        if dtype == DType::INT32 && self.random.chance(40) {
            let base = self.expr(dtype, 1);
            let base = self.fit(base, Bounds::Int(0, 1000));
            let stride = self.random.between(-3, 3);
            let bounds = Bounds::Int(-3 * lanes as i128, 1000 + 3 * lanes as i128);
            return Expr::new(
                wide,
                bounds,
                pieces!["T.Ramp(", base, format!(", {stride}, {lanes})")],
            );
        }
        let (a, b) = (self.vector(dtype, lanes, depth), self.vector(dtype, lanes, depth));
        let (x, y) = (self.vector(dtype, lanes, 0), self.vector(dtype, lanes, 0));
        let op = *self.random.pick(&[" < ", " <= ", " > ", " >= "]);
        let bounds = a.bounds.union(b.bounds);
        Expr::new(
            wide,
            bounds,
            pieces!["T.Select(", x, op, y, ", ", a, ", ", b, ")"],
        )
    }

    /// An array of vectors of the thread's own, filled; or a store to one.
    pub(super) fn vector_array(&mut self) -> Option<Node> {
        let arrays: Vec<Vectors> = self.vectors.iter().filter(|v| v.count > 0).cloned().collect();
        if !arrays.is_empty() && self.random.chance(50) {
            let to = self.random.pick(&arrays).clone();
            let index = self.index(&Extent::Const(to.count), 1);
            let value = self.vector(to.dtype, to.lanes, 2);
            let value = within(value, to.dtype, to.lanes);
            return Some(Node::Line(pieces![format!("{}[", to.name), index, "] = ", value]));
        }
        let dtype = self.any_dtype();
        let lanes = *self.random.pick(&[2i64, 4]);
        if dtype.is_bool() || dtype.is_float8() || dtype.bits as i64 * lanes > 128 {
            return None;
        }
        let (name, count, i) = (
            self.fresh("packed"),
            self.random.between(1, 3) as i64,
            self.fresh("i"),
        );
        let value = self.vector(dtype, lanes, 1);
        let value = within(value, dtype, lanes);
        let count = if self.random.chance(40) { 0 } else { count };
        self.vectors.push(Vectors {
            name: name.clone(),
            dtype,
            lanes,
            count,
        });
        if count == 0 {
            return Some(Node::Line(pieces![format!("{name}: T.let = "), value]));
        }
        Some(Node::Group(vec![
            Node::Line(pieces![format!(
                "{name} = T.alloc_local(({count},), \"{dtype}x{lanes}\")"
            )]),
            Node::Block {
                head: pieces![format!("for {i} in range({count}):")],
                body: vec![Node::Line(pieces![format!("{name}[{i}] = "), value])],
                otherwise: Vec::new(),
            },
        ]))
    }
}

/// A vector limited to the range of buffers.
fn within(value: Expr, dtype: DType, lanes: i64) -> Expr {
    let bounds = Bounds::stored(dtype);
    if bounds.holds(value.bounds) {
        return value;
    }
    let most = bounds.magnitude();
    Expr::new(
        value.dtype,
        bounds,
        pieces![
            "T.max(T.min(",
            value,
            format!(", T.broadcast(T.{dtype}({most:?}), {lanes})), "),
            format!("T.broadcast(T.{dtype}({:?}), {lanes}))", -most)
        ],
    )
}
