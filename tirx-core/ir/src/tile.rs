//! Tile primitives: operations that the threads of an execution scope perform together on regions of buffers.
//!
//! A [`TileCall`] says what is computed (a [`TileOp`] on [`BufferRegion`]s and scalars) and who computes it (an
//! [`ExecScope`]); LowerTIRx chooses how. It writes its outputs from its inputs as if all inputs were read first,
//! element by element of the logical regions: the layouts of the buffers only say where elements lie.
//!
//! What the operations are called and which arguments they take is listed once, in [`OPERATIONS`]; the parser, the
//! printer and the verifier read it.

use std::sync::Arc;

use super::{Attrs, Buffer, Expr, Stmt, Var};

/// The name of the warning about a copy that runs in a single thread because no other variant applies;
/// `# tirx: allow(name)` turns it off.
pub const COPY_BY_ONE_THREAD: &str = "copy-by-one-thread";

/// The threads that perform a tile primitive together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs, reason = "the names are the language's: Tx.thread, Tx.warp, …")]
pub enum ExecScope {
    Thread,
    Warp,
    Warpgroup,
    Cta,
    Cluster,
}

impl ExecScope {
    /// All scopes, narrowest first.
    pub const ALL: [ExecScope; 5] = [
        ExecScope::Thread,
        ExecScope::Warp,
        ExecScope::Warpgroup,
        ExecScope::Cta,
        ExecScope::Cluster,
    ];

    /// Its full name: `warpgroup`.
    pub fn name(self) -> &'static str {
        match self {
            ExecScope::Thread => "thread",
            ExecScope::Warp => "warp",
            ExecScope::Warpgroup => "warpgroup",
            ExecScope::Cta => "cta",
            ExecScope::Cluster => "cluster",
        }
    }

    /// The namespace that TVM prints it with: `T.tile.copy`, `T.wg.copy`.
    pub fn namespace(self) -> &'static str {
        match self {
            ExecScope::Thread => "tile",
            ExecScope::Warpgroup => "wg",
            other => other.name(),
        }
    }

    /// The scope that a namespace denotes: `wg` and `warpgroup` are the same.
    pub fn from_namespace(name: &str) -> Option<ExecScope> {
        ExecScope::ALL
            .into_iter()
            .find(|s| s.name() == name || s.namespace() == name)
    }
}

/// What a parameter of a tile primitive takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TileParam {
    /// A region that is written.
    Output,
    /// A region that is written and, where the operation accumulates, read.
    InOut,
    /// A region that is read.
    Input,
    /// A region that is read; the first output where it is left out.
    InputOrOutput,
    /// A region that is read, or nothing.
    OptionalInput,
    /// A region that is read, or a scalar.
    Operand,
    /// A region that is read, a scalar, or nothing.
    OptionalOperand,
    /// A scalar.
    Scalar,
    /// A scalar, or nothing.
    OptionalScalar,
    /// A truth value with its default.
    Flag,
    /// Dimensions that are reduced: an integer or a list, the last one where left out.
    Axes,
    /// Another tile primitive by name.
    Operation,
    /// A condition over the coordinates of the output: a lambda.
    Predicate,
    /// The statements of a `with` block.
    Body,
}

/// Which tile primitive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs, reason = "what each does is said in OPERATIONS")]
pub enum TileOp {
    Zero,
    Fill,
    Memset,
    Cast,
    Sqrt,
    Exp,
    Exp2,
    Log2,
    Reciprocal,
    Silu,
    Add,
    Sub,
    Mul,
    Fdiv,
    Maximum,
    Minimum,
    Fma,
    Select,
    Copy,
    CopyAsync,
    PermuteLayout,
    Gemm,
    GemmAsync,
    Sum,
    Max,
    Min,
    ReduceNegate,
    BinaryReduce,
    UnaryReduce,
    BinaryChain,
    ComposeOp,
}

/// A row of [`OPERATIONS`].
pub struct Operation {
    /// The operation.
    pub op: TileOp,
    /// Its name in the language.
    pub name: &'static str,
    /// Its arguments in the order in which they are stored and printed.
    pub params: &'static [(&'static str, TileParam)],
    /// What it computes.
    pub doc: &'static str,
}

use TileParam::*;

const UNARY: &[(&str, TileParam)] = &[("dst", Output), ("src", InputOrOutput)];
const UNARY_SCALED: &[(&str, TileParam)] = &[
    ("dst", Output),
    ("src", InputOrOutput),
    ("bias", OptionalOperand),
    ("scale", OptionalScalar),
];
const BINARY: &[(&str, TileParam)] = &[("dst", Output), ("src1", Operand), ("src2", Operand)];
const FILL: &[(&str, TileParam)] = &[("dst", Output), ("value", Scalar)];
const MOVE: &[(&str, TileParam)] = &[("dst", Output), ("src", Input)];
const REDUCE: &[(&str, TileParam)] = &[("dst", InOut), ("src", Input), ("axes", Axes), ("accum", Flag)];

/// Every tile primitive, in the order of [`TileOp`].
pub const OPERATIONS: [Operation; 31] = {
    const fn row(
        op: TileOp,
        name: &'static str,
        params: &'static [(&'static str, TileParam)],
        doc: &'static str,
    ) -> Operation {
        Operation {
            op,
            name,
            params,
            doc,
        }
    }
    [
        row(TileOp::Zero, "zero", UNARY, "dst = 0"),
        row(TileOp::Fill, "fill", FILL, "dst = value"),
        row(TileOp::Memset, "memset", FILL, "dst = value"),
        row(TileOp::Cast, "cast", MOVE, "dst = src, converted to dst's dtype"),
        row(
            TileOp::Sqrt,
            "sqrt",
            UNARY_SCALED,
            "dst = sqrt(src * scale + bias)",
        ),
        row(TileOp::Exp, "exp", UNARY_SCALED, "dst = exp(src * scale + bias)"),
        row(
            TileOp::Exp2,
            "exp2",
            UNARY_SCALED,
            "dst = 2 ** (src * scale + bias)",
        ),
        row(
            TileOp::Log2,
            "log2",
            UNARY_SCALED,
            "dst = log2(src * scale + bias)",
        ),
        row(TileOp::Reciprocal, "reciprocal", UNARY, "dst = 1 / src"),
        row(TileOp::Silu, "silu", UNARY, "dst = src / (1 + exp(-src))"),
        row(TileOp::Add, "add", BINARY, "dst = src1 + src2"),
        row(TileOp::Sub, "sub", BINARY, "dst = src1 - src2"),
        row(TileOp::Mul, "mul", BINARY, "dst = src1 * src2"),
        row(TileOp::Fdiv, "fdiv", BINARY, "dst = src1 / src2"),
        row(TileOp::Maximum, "maximum", BINARY, "dst = max(src1, src2)"),
        row(TileOp::Minimum, "minimum", BINARY, "dst = min(src1, src2)"),
        row(
            TileOp::Fma,
            "fma",
            &[
                ("dst", Output),
                ("src", Input),
                ("scale", Operand),
                ("bias", Operand),
            ],
            "dst = src * scale + bias",
        ),
        row(
            TileOp::Select,
            "select",
            &[
                ("dst", Output),
                ("true_value", Operand),
                ("false_value", Operand),
                ("pred", Predicate),
            ],
            "dst[i, …] = true_value[i, …] if pred(i, …) else false_value[i, …]",
        ),
        row(TileOp::Copy, "copy", MOVE, "dst = src"),
        row(
            TileOp::CopyAsync,
            "copy_async",
            MOVE,
            "dst = src, complete when its completion mechanism says so",
        ),
        row(
            TileOp::PermuteLayout,
            "permute_layout",
            MOVE,
            "dst = src, between two layouts of the same storage or of two",
        ),
        row(
            TileOp::Gemm,
            "gemm",
            &[
                ("D", Output),
                ("A", Input),
                ("B", Input),
                ("C", Input),
                ("transpose_A", Flag),
                ("transpose_B", Flag),
                ("alpha", Scalar),
                ("beta", Scalar),
            ],
            "D = alpha * A @ B + beta * C",
        ),
        row(
            TileOp::GemmAsync,
            "gemm_async",
            &[
                ("C", InOut),
                ("A", Input),
                ("B", Input),
                ("SFA", OptionalInput),
                ("SFB", OptionalInput),
                ("transA", Flag),
                ("transB", Flag),
                ("accum", Flag),
            ],
            "C = A @ B, or C += A @ B, on the tensor cores, asynchronously",
        ),
        row(TileOp::Sum, "sum", REDUCE, "dst = sum of src over axes"),
        row(TileOp::Max, "max", REDUCE, "dst = maximum of src over axes"),
        row(TileOp::Min, "min", REDUCE, "dst = minimum of src over axes"),
        row(
            TileOp::ReduceNegate,
            "reduce_negate",
            &[
                ("output", InOut),
                ("input", Input),
                ("reduce_axes", Axes),
                ("accum", Flag),
                ("reduce_op", TileParam::Operation),
            ],
            "output = -(input reduced over reduce_axes)",
        ),
        row(
            TileOp::BinaryReduce,
            "binary_reduce",
            &[
                ("binary_output", Output),
                ("reduce_output", Output),
                ("binary_input1", Operand),
                ("binary_input2", Operand),
                ("binary_op", TileParam::Operation),
                ("reduce_op", TileParam::Operation),
                ("reduce_axes", Axes),
            ],
            "binary_output = binary_input1 op binary_input2; reduce_output = binary_output reduced",
        ),
        row(
            TileOp::UnaryReduce,
            "unary_reduce",
            &[
                ("unary_output", Output),
                ("reduce_output", Output),
                ("unary_input", Input),
                ("unary_op", TileParam::Operation),
                ("reduce_op", TileParam::Operation),
                ("bias", OptionalOperand),
                ("scale", OptionalScalar),
                ("reduce_axes", Axes),
            ],
            "unary_output = op(unary_input * scale + bias); reduce_output = unary_output reduced",
        ),
        row(
            TileOp::BinaryChain,
            "binary_chain",
            &[
                ("output", Output),
                ("data", Input),
                ("operand0", Operand),
                ("operand1", Operand),
                ("op0", TileParam::Operation),
                ("op1", TileParam::Operation),
                ("reverse1", Flag),
            ],
            "output = (operand0 op0 data) op1 operand1, the last two exchanged if reverse1",
        ),
        row(
            TileOp::ComposeOp,
            "compose_op",
            &[("body", Body)],
            "the tile primitives of its body as one",
        ),
    ]
};

impl TileOp {
    /// Its row.
    pub fn info(self) -> &'static Operation {
        &OPERATIONS[self as usize]
    }

    /// Its name in the language.
    pub fn name(self) -> &'static str {
        self.info().name
    }

    /// The operation of this name.
    pub fn from_name(name: &str) -> Option<TileOp> {
        OPERATIONS.iter().find(|o| o.name == name).map(|o| o.op)
    }
}

/// A rectangular part of a buffer.
#[derive(Clone, Debug, PartialEq)]
pub struct BufferRegion {
    /// The buffer.
    pub buffer: Buffer,
    /// First coordinate and extent of each dimension.
    pub ranges: Vec<(Expr, Expr)>,
}

impl BufferRegion {
    /// All of a buffer.
    pub fn whole(buffer: &Buffer) -> BufferRegion {
        BufferRegion {
            buffer: buffer.clone(),
            ranges: buffer
                .shape
                .iter()
                .map(|extent| (Expr::constant(extent.dtype, 0), extent.clone()))
                .collect(),
        }
    }

    /// The extents.
    pub fn extents(&self) -> Vec<Expr> {
        self.ranges.iter().map(|(_, extent)| extent.clone()).collect()
    }

    /// The first coordinates.
    pub fn starts(&self) -> Vec<Expr> {
        self.ranges.iter().map(|(min, _)| min.clone()).collect()
    }

    /// The extents where all are constants.
    pub fn const_extents(&self) -> Option<Vec<i128>> {
        self.ranges.iter().map(|(_, extent)| extent.as_int()).collect()
    }

    /// Its expressions: starts and extents.
    pub fn exprs(&self) -> impl Iterator<Item = &Expr> {
        self.ranges.iter().flat_map(|(min, extent)| [min, extent])
    }

    /// The region with its expressions changed by `f`, over `buffer`.
    pub fn map(&self, buffer: Buffer, mut f: impl FnMut(&Expr) -> Expr) -> BufferRegion {
        let ranges = self.ranges.iter().map(|(min, extent)| (f(min), f(extent)));
        BufferRegion {
            buffer,
            ranges: ranges.collect(),
        }
    }
}

/// An argument of a tile primitive.
#[derive(Clone, Debug)]
pub enum TileArg {
    /// Left out.
    None,
    /// A region.
    Region(BufferRegion),
    /// A scalar or a flag.
    Expr(Expr),
    /// Dimensions, counted from the end where negative.
    Axes(Vec<i64>),
    /// Another operation.
    Operation(TileOp),
    /// A function of coordinates.
    Lambda(Vec<Var>, Expr),
    /// Statements.
    Body(Stmt),
}

impl TileArg {
    /// The region, where it is one.
    pub fn as_region(&self) -> Option<&BufferRegion> {
        match self {
            TileArg::Region(region) => Some(region),
            _ => None,
        }
    }

    /// The scalar, where it is one.
    pub fn as_expr(&self) -> Option<&Expr> {
        match self {
            TileArg::Expr(e) => Some(e),
            _ => None,
        }
    }
}

/// A tile primitive with its arguments.
#[derive(Clone, Debug)]
pub struct TileCall {
    /// What is computed.
    pub op: TileOp,
    /// Who computes it.
    pub scope: ExecScope,
    /// One argument per parameter of the operation.
    pub args: Vec<TileArg>,
    /// Buffers that the caller lends for intermediate results.
    pub workspace: Vec<(Arc<str>, Buffer)>,
    /// Keyword options for lowering.
    pub config: Attrs,
    /// The name of the variant that must lower it (`dispatch=`).
    pub dispatch: Option<Arc<str>>,
}

impl TileCall {
    /// Calls `f` with every expression, in order of the arguments. Bodies of `compose_op` are not entered.
    pub fn for_each_expr<'a>(&'a self, mut f: impl FnMut(&'a Expr)) {
        for arg in &self.args {
            match arg {
                TileArg::Region(region) => region.exprs().for_each(&mut f),
                TileArg::Expr(e) | TileArg::Lambda(_, e) => f(e),
                TileArg::None | TileArg::Axes(_) | TileArg::Operation(_) | TileArg::Body(_) => {}
            }
        }
        for value in self.config.values() {
            value.for_each_expr(&mut |e| f(e));
        }
    }

    /// Every buffer it names.
    pub fn buffers(&self) -> impl Iterator<Item = &Buffer> {
        let regions = self.args.iter().filter_map(|a| a.as_region().map(|r| &r.buffer));
        regions.chain(self.workspace.iter().map(|(_, b)| b))
    }

    /// The region of a parameter.
    pub fn region(&self, param: usize) -> Option<&BufferRegion> {
        self.args.get(param)?.as_region()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_stand_in_order() {
        for (i, row) in OPERATIONS.iter().enumerate() {
            assert_eq!(row.op as usize, i, "{}", row.name);
            assert_eq!(TileOp::from_name(row.name), Some(row.op));
        }
    }

    #[test]
    fn namespaces_name_scopes() {
        assert_eq!(ExecScope::from_namespace("wg"), Some(ExecScope::Warpgroup));
        assert_eq!(ExecScope::from_namespace("warpgroup"), Some(ExecScope::Warpgroup));
        assert_eq!(ExecScope::from_namespace("tile"), Some(ExecScope::Thread));
        assert_eq!(ExecScope::from_namespace("block"), None);
    }
}
