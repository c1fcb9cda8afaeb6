//! The memory of an operand, as far as the choice of a kernel depends on it.

use tirx_rt::{Element, Tensor};

/// The dimension of a matrix along which elements are neighbors in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Contiguous {
    /// Along its rows: the last dimension.
    Columns,
    /// Along its columns: the dimension before.
    Rows,
    /// Neither, or rows begin at addresses that are not multiples of 16 bytes.
    Neither,
}

/// The memory of a matrix, or of a batch of matrices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Operand {
    pub(super) contiguous: Contiguous,
}

impl Operand {
    /// That of a tensor with two or three dimensions.
    pub(super) fn from_tensor<T: Element>(tensor: &Tensor<T>) -> Operand {
        let (batch, row, column) = match *tensor.strides() {
            [row, column] => (0, row, column),
            [batch, row, column] => (batch, row, column),
            _ => (1, 1, 1),
        };
        let unit = 16 / size_of::<T>();
        let aligned = tensor.address().is_multiple_of(16) && batch.is_multiple_of(unit);
        let contiguous = match (row, column) {
            (row, 1) if aligned && row.is_multiple_of(unit) => Contiguous::Columns,
            (1, column) if aligned && column.is_multiple_of(unit) => Contiguous::Rows,
            _ => Contiguous::Neither,
        };
        Operand { contiguous }
    }

    /// That of the transpose.
    pub(super) fn turned(self) -> Operand {
        let contiguous = match self.contiguous {
            Contiguous::Columns => Contiguous::Rows,
            Contiguous::Rows => Contiguous::Columns,
            Contiguous::Neither => Contiguous::Neither,
        };
        Operand { contiguous }
    }
}

/// Whether rows can be accessed by 16 bytes.
pub(super) fn has_vectors<O: Element>(tensor: &Tensor<O>) -> bool {
    let (last, others) = tensor.strides().split_last().unwrap_or((&1, &[]));
    let unit = 16 / size_of::<O>();
    *last == 1 && others.iter().all(|stride| stride % unit == 0) && tensor.address().is_multiple_of(16)
}
