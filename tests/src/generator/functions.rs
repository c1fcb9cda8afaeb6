//! Inline functions: at the top of the file and within the kernel, with loops, branches and other calls in them.

use tirx_core::ir::DType;

use super::bounds::Bounds;
use super::memory::{Array, access, assign};
use super::program::{Expr, Node, pieces};
use super::{Generator, Value};

/// The functions at the top of a file that has them.
pub(super) const AT_TOP: &str = "\
@T.inline
def put(buffer, index, value):
    buffer[index] = value

@T.inline
def put_if(condition, buffer, index, value, other=None):
    if condition:
        put(buffer, index, value)
    else:
        if other is not None:
            put(buffer, index, other)

@T.inline
def put_times(times, buffer, index, value):
    for turn in T.serial(times):
        put_if(turn < times, buffer, index, value=value)
";

/// A function within the kernel that may be called from here on.
#[derive(Clone, Debug)]
pub(super) struct Function {
    name: String,
    parameters: Vec<(DType, Bounds)>,
    /// Loop iterations of a call.
    turns: i64,
    /// Whether all threads of the block must call it together.
    together: bool,
}

impl Generator {
    /// `array[indices] = value` unconditionally, at times by an inline function.
    pub(super) fn assign_always(&mut self, array: &Array, mut indices: Vec<Expr>, value: Expr) -> Node {
        if !self.inline || indices.len() != 1 || !self.random.chance(25) {
            return assign(access(array, indices), value);
        }
        let (name, index) = (&array.name, indices.remove(0));
        Node::Line(match self.random.below(4) {
            0 => pieces![format!("put_times(2, {name}, "), index, ", ", value, ")"],
            _ => pieces![format!("put({name}, "), index, ", ", value, ")"],
        })
    }

    /// `array[indices] = value`, at times under a condition, at times by an inline function.
    pub(super) fn assign(&mut self, array: &Array, mut indices: Vec<Expr>, value: Expr) -> Node {
        if !self.inline || indices.len() != 1 || !self.random.chance(15) {
            return self.assign_always(array, indices, value);
        }
        let (name, index) = (&array.name, indices.remove(0));
        Node::Line(match self.random.below(2) {
            0 => {
                let condition = self.expr(DType::BOOL, 1);
                pieces![
                    "put_if(",
                    condition,
                    format!(", {name}, "),
                    index,
                    ", ",
                    value,
                    ")"
                ]
            }
            _ => {
                let condition = self.expr(DType::BOOL, 1);
                let other = self.expr(array.dtype, 1);
                let other = self.fit(other, array.bounds);
                pieces![
                    "put_if(",
                    condition,
                    format!(", {name}, "),
                    index,
                    ", ",
                    value,
                    ", other=",
                    other,
                    ")"
                ]
            }
        })
    }

    /// Defines a function in the kernel, and calls it.
    pub(super) fn function(&mut self, depth: u32) -> Node {
        let name = self.fresh("step");
        let mark = self.values.len();
        let mut parameters = Vec::new();
        let mut names = Vec::new();
        for _ in 0..self.random.below(3) {
            let dtype = self.any_dtype();
            let bounds = Bounds::stored(dtype);
            let parameter = self.fresh("x");
            let mut e = Expr::new(dtype, bounds, pieces![parameter.clone()]);
            e.uniform = false;
            self.values.push(Value::new(e, None));
            names.push(parameter);
            parameters.push((dtype, bounds));
        }
        // A jump out of an enclosing loop would depend on where the function is called.
        let loops = std::mem::take(&mut self.loops);
        let together = self.together && self.random.chance(50);
        let before = (std::mem::replace(&mut self.together, together), self.turns);
        self.turns *= 2;
        let count = 1 + self.random.below(3);
        let body = self.body(count, depth.saturating_sub(1));
        let turns = self.turns;
        (self.together, self.turns) = before;
        self.loops = loops;
        self.values.truncate(mark);
        self.functions.push(Function {
            name: name.clone(),
            parameters,
            turns,
            together,
        });
        let mut nodes = vec![
            Node::Line(pieces!["@T.inline"]),
            Node::Block {
                head: pieces![format!("def {name}({}):", names.join(", "))],
                body,
                otherwise: Vec::new(),
            },
        ];
        for _ in 0..1 + self.random.below(2) {
            nodes.extend(self.call());
        }
        Node::Group(nodes)
    }

    /// Calls a function of the kernel.
    pub(super) fn call(&mut self) -> Option<Node> {
        let fits = |f: &&Function| (self.together || !f.together) && self.turns * f.turns <= 96;
        let fitting: Vec<Function> = self.functions.iter().filter(fits).cloned().collect();
        let function = fitting.get(self.random.below(fitting.len()))?.clone();
        let mut line = pieces![format!("{}(", function.name)];
        // An argument replaces its parameter everywhere, so it must not read memory that the function may write.
        let loads = std::mem::replace(&mut self.loads, 2);
        for (i, (dtype, bounds)) in function.parameters.iter().enumerate() {
            if i > 0 {
                line.push(", ".into());
            }
            let value = match self.expr(*dtype, 2) {
                // A constant argument would turn expressions of the function into constants.
                e if e.constant => {
                    let of = self.random.below(self.values.len());
                    let value = self.values[of].expr.clone();
                    self.cast(value, *dtype)
                }
                e => e,
            };
            line.push(self.fit(value, *bounds).into());
        }
        self.loads = loads;
        line.push(")".into());
        Some(Node::Line(line))
    }
}
