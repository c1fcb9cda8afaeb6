//! Views of a buffer's storage: other shapes, permutations, parts, pointers, other dtypes.

use tirx_core::ir::DType;

use super::Generator;
use super::bounds::Bounds;
use super::memory::{Access, Array, Extent, Scope, tuple};
use super::program::{Node, pieces};

impl Generator {
    /// Another name for a buffer's storage; `None` where none fits.
    pub(super) fn alias(&mut self) -> Option<Node> {
        let known = |a: &&Array| a.shape.iter().all(|e| matches!(e, Extent::Const(_)));
        let seen = |a: &&Array| {
            matches!(
                a.access,
                Access::Read | Access::Private | Access::Shared { .. } | Access::View
            )
        };
        let fitting: Vec<Array> = self
            .arrays
            .iter()
            .filter(|a| a.dense)
            .filter(known)
            .filter(seen)
            .cloned()
            .collect();
        let array = fitting.get(self.random.below(fitting.len()))?.clone();
        let extents: Vec<i64> = array.shape.iter().map(constant).collect();
        let name = self.fresh("view");
        let part = self.part(&array, &extents, &name)?;
        let bounds = match part.dtype == array.dtype {
            true => array.bounds,
            false => Bounds::from_dtype(part.dtype),
        };
        let access = match array.access {
            Access::Read => Access::Read,
            // Bits of another dtype may be written only where they are not read as their original dtype.
            Access::Private if part.dtype == array.dtype => Access::Private,
            _ => Access::View,
        };
        self.arrays.push(Array {
            name,
            dtype: part.dtype,
            bounds,
            shape: part.shape.into_iter().map(Extent::Const).collect(),
            access,
            storage: array.storage,
            scope: array.scope,
            dense: part.dense,
        });
        let lines = part.lines.into_iter().map(|line| Node::Line(pieces![line]));
        Some(Node::Group(lines.collect()))
    }

    /// A declaration of `name` over storage of `array`.
    fn part(&mut self, array: &Array, extents: &[i64], name: &str) -> Option<Part> {
        let total: i64 = extents.iter().product();
        let (from, dtype) = (&array.name, array.dtype);
        // Its storage begins where the buffer does.
        let whole = array.storage == array.name;
        let declared = |shape: &[i64], dtype: DType, rest: &str| {
            format!(
                "{name} = T.decl_buffer({}, \"{dtype}\", data={from}.data{rest})",
                tuple(shape)
            )
        };
        let part = |lines: Vec<String>, shape: Vec<i64>, dtype: DType, dense: bool| {
            Some(Part {
                lines,
                shape,
                dtype,
                dense,
            })
        };
        match self.random.below(9) {
            0 => {
                let inner = (1..=total).rev().find(|k| total % k == 0 && *k <= 8).unwrap_or(1);
                let shape = vec![total / inner, inner];
                part(
                    vec![format!("{name} = {from}.view({})", list(&shape))],
                    shape,
                    dtype,
                    true,
                )
            }
            1 if extents.len() > 1 => {
                let mut order: Vec<usize> = (0..extents.len()).collect();
                order.rotate_left(1 + self.random.below(extents.len() - 1));
                let shape: Vec<i64> = order.iter().map(|d| extents[*d]).collect();
                let order: Vec<i64> = order.iter().map(|d| *d as i64).collect();
                part(
                    vec![format!("{name} = {from}.permute({})", list(&order))],
                    shape,
                    dtype,
                    false,
                )
            }
            2 if whole && !dtype.is_bool() => {
                let dtype = DType::uint(dtype.bits);
                part(vec![declared(&[total], dtype, "")], vec![total], dtype, true)
            }
            3 if whole && dtype.bits > 8 => {
                // Each element seen as two or more.
                let bits = *self.random.pick(&[8u8, 16, 32].map(|b| b.min(dtype.bits / 2)));
                let shape = vec![total * i64::from(dtype.bits / bits)];
                let dtype = DType::uint(bits);
                part(vec![declared(&shape, dtype, "")], shape, dtype, true)
            }
            4 => {
                // A box of it.
                let mut ranges = Vec::new();
                let mut shape = Vec::new();
                for extent in extents {
                    let first = self.random.below(*extent as usize) as i64;
                    let last = first + 1 + self.random.below((extent - first) as usize) as i64;
                    ranges.push(format!("{first}:{last}"));
                    shape.push(last - first);
                }
                let line = format!("{name} = {from}.sub[{}]", ranges.join(", "));
                part(vec![line], shape, dtype, false)
            }
            5 if whole => {
                let first = self.random.below(total as usize) as i64;
                let shape = vec![1 + self.random.below((total - first) as usize) as i64];
                let line = declared(&shape, dtype, &format!(", elem_offset={first}"));
                part(vec![line], shape, dtype, false)
            }
            6 if array.scope == Scope::Global => {
                // Behind a pointer to an element.
                let at: Vec<i64> = extents
                    .iter()
                    .map(|e| self.random.below(*e as usize) as i64)
                    .collect();
                let first = at.iter().zip(extents).fold(0, |sum, (i, e)| sum * e + i);
                let shape = vec![total - first];
                let pointer = self.fresh("pointer");
                let lines = vec![
                    format!("{pointer}: T.let = {from}.ptr_to([{}])", list(&at)),
                    format!(
                        "{name} = T.decl_buffer({}, \"{dtype}\", data={pointer})",
                        tuple(&shape)
                    ),
                ];
                part(lines, shape, dtype, false)
            }
            7 if whole => {
                // Rows that are further apart than they are long, or overlap.
                let columns = self.random.between(1, total.min(5) as i128) as i64;
                let stride = self.random.between(1, (columns + 2) as i128) as i64;
                let rows = 1 + self.random.below(((total - columns) / stride + 1) as usize) as i64;
                let layout = format!(", layout=TileLayout(S[({rows}, {columns}):({stride}, 1)])");
                // Elements that share a place are read-only.
                if stride < columns && !matches!(array.access, Access::Read) {
                    return None;
                }
                let shape = vec![rows, columns];
                part(vec![declared(&shape, dtype, &layout)], shape, dtype, false)
            }
            _ if whole => part(vec![declared(&[total], dtype, "")], vec![total], dtype, true),
            _ => None,
        }
    }
}

/// A declaration over the storage of another buffer.
struct Part {
    lines: Vec<String>,
    shape: Vec<i64>,
    dtype: DType,
    dense: bool,
}

fn list(numbers: &[i64]) -> String {
    let texts: Vec<String> = numbers.iter().map(i64::to_string).collect();
    texts.join(", ")
}

fn constant(extent: &Extent) -> i64 {
    match extent {
        Extent::Const(n) => *n,
        Extent::Symbol(_, most, _) => *most,
    }
}
