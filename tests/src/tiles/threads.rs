//! Random programs of what threads do: copies between memories and registers of random layouts, computations, reductions.

use std::fmt::Write;

use tirx_core::ir::DType;

use super::{TileProgram, bytes};
use crate::generator::random::Random;
use crate::machine::Argument;

const DTYPES: [DType; 8] = [
    DType::FLOAT32,
    DType::FLOAT16,
    DType::BFLOAT16,
    DType::INT32,
    DType::INT8,
    DType::FLOAT64,
    DType::INT16,
    DType::INT64,
];

/// The largest integer up to which a dtype has all.
fn most(dtype: DType) -> i64 {
    match dtype {
        DType::INT8 => 127,
        DType::BFLOAT16 => 256,
        DType::FLOAT16 => 2048,
        DType::INT16 => 1 << 12,
        _ => 1 << 20,
    }
}

/// The memory of a buffer.
#[derive(Clone, Copy, PartialEq)]
enum Home {
    Global,
    Shared,
    /// Spread over all threads by rows.
    Registers,
}

/// A buffer with its elements as numbers.
#[derive(Clone)]
struct Array {
    name: String,
    home: Home,
    dtype: DType,
    rows: usize,
    columns: usize,
    values: Vec<i64>,
}

impl Array {
    fn largest(&self) -> i64 {
        self.values.iter().map(|v| v.abs()).max().unwrap_or(0)
    }

    fn contents(&self) -> Vec<u8> {
        self.values.iter().flat_map(|v| bytes(self.dtype, *v)).collect()
    }
}

/// A region: first row and column, and number of rows and columns.
#[derive(Clone, Copy)]
struct Part {
    row: usize,
    rows: usize,
    column: usize,
    columns: usize,
}

impl Part {
    fn text(&self, array: &Array) -> String {
        format!(
            "{}[{}:{}, {}:{}]",
            array.name,
            self.row,
            self.row + self.rows,
            self.column,
            self.column + self.columns
        )
    }

    fn places(&self, array: &Array) -> Vec<usize> {
        let columns = array.columns;
        let (row, column) = (self.row, self.column);
        (0..self.rows)
            .flat_map(|i| (0..self.columns).map(move |j| (i, j)))
            .map(|(i, j)| (row + i) * columns + column + j)
            .collect()
    }
}

struct Builder {
    random: Random,
    threads: usize,
    arrays: Vec<Array>,
    body: String,
    /// The kinds of the first steps, the first one last; the other steps are of random kinds.
    turns: Vec<usize>,
}

/// How many kinds of steps there are; functions are one of them.
const KINDS: usize = 22;

/// Functions with an argument and its value. CUDA's logarithm of 64 bits misses the 3 by a bit: it has arguments of its own.
const FUNCTIONS: [(&str, i64, i64); 6] = [
    ("sqrt", 4, 2),
    ("exp", 0, 1),
    ("exp2", 3, 8),
    ("log2", 8, 3),
    ("reciprocal", -1, -1),
    ("silu", 0, 0),
];

/// Kinds of steps where each function is one.
const TURNS: usize = KINDS + FUNCTIONS.len();

/// Copies and computations of threads, in memory and registers. With a turn, the first steps are of the kind whose turn it is,
/// every other time of float32.
pub(super) fn of_threads(mut random: Random, turn: Option<u64>) -> TileProgram {
    let threads = *random.pick(&[32usize, 64, 128, 256]);
    let rows = threads * *random.pick(&[1usize, 1, 2]) / *random.pick(&[1usize, 2, 4]);
    // Now and then the threads do not divide the elements.
    let rows = rows - usize::from(random.chance(20));
    // Three buffers of the widest dtype, padded, fit a block's shared memory.
    let columns = loop {
        let columns = *random.pick(&[8usize, 16, 32, 64, 24, 4, 2]);
        if rows * columns <= 1024 || columns == 2 {
            break columns;
        }
    };
    let mut dtype = *random.pick(&DTYPES);
    if turn.is_some_and(|turn| (turn / TURNS as u64).is_multiple_of(2)) {
        dtype = DType::FLOAT32;
    }
    let mut builder = Builder {
        random,
        threads,
        arrays: Vec::new(),
        body: String::new(),
        turns: turn.map_or(Vec::new(), |turn| vec![turn as usize % TURNS; 2]),
    };
    for name in ["A", "B"] {
        let values = (0..rows * columns)
            .map(|_| builder.random.between(-3, 3) as i64)
            .collect();
        builder.arrays.push(Array {
            name: name.into(),
            home: Home::Global,
            dtype,
            rows,
            columns,
            values,
        });
    }
    let arguments = builder.arrays.clone();
    let count = 2 + builder.random.below(2);
    for i in 0..count {
        builder.declare(i, rows, columns, dtype);
    }
    let steps = 2 + builder.random.below(6);
    for _ in 0..steps {
        builder.step();
    }
    for i in 2..builder.arrays.len() {
        if builder.arrays[i].dtype == dtype {
            builder.copy_whole(1, i);
        }
    }
    let mut text = String::from(
        "from tvm.script import tirx as T\nfrom tvm.script.tirx import tile as Tx\n\
         from tvm.tirx.layout import ComposeLayout, R, S, TileLayout, tid_in_wg, tx, laneid\n\n\n@T.prim_func\n",
    );
    let tensor = format!("T.Buffer(({rows}, {columns}), \"{dtype}\")");
    let _ = writeln!(text, "def program(A: {tensor}, B: {tensor}):");
    let _ = writeln!(text, "    T.device_entry()\n    T.cta_id([1])");
    let _ = writeln!(text, "    wid = T.warp_id([{}])", threads / 32);
    let _ = writeln!(
        text,
        "    lane = T.lane_id([32])\n    tid = T.thread_id([{threads}])"
    );
    text.push_str(&builder.body);
    let argument = |a: &Array| {
        let argument = Argument::Tensor {
            dtype: a.dtype,
            shape: vec![a.rows as i64, a.columns as i64],
            bytes: a.contents(),
        };
        (a.name.clone(), argument)
    };
    TileProgram {
        text,
        arguments: arguments.iter().map(argument).collect(),
        expected: builder.arrays[..2].iter().map(Array::contents).collect(),
        arch: None,
    }
}

impl Builder {
    fn line(&mut self, text: &str) {
        let _ = writeln!(self.body, "    {text}");
    }

    fn barrier(&mut self) {
        self.line("T.cuda.cta_sync()");
    }

    /// A buffer with the elements of `A`.
    fn declare(&mut self, number: usize, rows: usize, columns: usize, tensors: DType) {
        let name = format!("s{number}");
        let registers = rows.is_multiple_of(self.threads) && self.random.chance(40);
        let dtype = if self.random.chance(20) {
            *self.random.pick(&DTYPES)
        } else {
            tensors
        };
        let (home, layout) = if registers {
            let per = rows / self.threads;
            let layout = match per {
                1 => format!("TileLayout(S[({rows}, {columns}) : (1 @ tx, 1)])"),
                _ => format!(
                    "TileLayout(S[({per}, {}, {columns}) : ({columns}, 1 @ tx, 1)])",
                    self.threads
                ),
            };
            (Home::Registers, layout)
        } else {
            let layout = match self.random.below(4) {
                0 => format!("TileLayout(S[({rows}, {columns}) : ({}, 1)])", columns + 2),
                1 => format!("TileLayout(S[({rows}, {columns}) : (1, {rows})])"),
                2 if columns.is_power_of_two() && columns >= 8 => {
                    let chunk = (16 / dtype.bytes()).max(1).trailing_zeros();
                    let bits = self.random.between(1, 3);
                    format!("ComposeLayout({chunk}, {bits}, 3, TileLayout(S[({rows}, {columns})]))")
                }
                _ => format!("TileLayout(S[({rows}, {columns})])"),
            };
            (Home::Shared, layout)
        };
        let scope = if home == Home::Shared { "shared" } else { "local" };
        self.line(&format!(
            "{name} = T.alloc_buffer(({rows}, {columns}), \"{dtype}\", scope=\"{scope}\", layout={layout})"
        ));
        self.arrays.push(Array {
            name,
            home,
            dtype,
            rows,
            columns,
            values: vec![0; rows * columns],
        });
        let last = self.arrays.len() - 1;
        if dtype == tensors {
            self.copy_whole(last, 0);
        } else {
            let value = self.random.between(-3, 3) as i64;
            let whole = self.whole(last);
            self.line(&format!(
                "Tx.cta.fill({}, {value})",
                whole.text(&self.arrays[last])
            ));
            self.arrays[last].values.fill(value);
            self.barrier();
        }
    }

    fn whole(&self, array: usize) -> Part {
        Part {
            row: 0,
            rows: self.arrays[array].rows,
            column: 0,
            columns: self.arrays[array].columns,
        }
    }

    fn copy_whole(&mut self, to: usize, from: usize) {
        let part = self.whole(to);
        self.copy(to, from, part);
    }

    /// The scope of a call: all threads, or a warp, a warpgroup or a thread where no operand is distributed over
    /// threads.
    fn caller(&mut self, operands: &[usize]) -> String {
        let spread = operands.iter().any(|i| self.arrays[*i].home == Home::Registers);
        if spread || self.random.chance(60) {
            return "Tx.cta.".into();
        }
        match self.random.below(4) {
            0 => format!("if tid == {}:\n        Tx.", self.random.below(self.threads)),
            1 if self.threads >= 128 => {
                let first = self.random.below(self.threads / 128) * 128;
                format!("if tid >= {first} and tid < {}:\n        Tx.wg.", first + 128)
            }
            _ => format!(
                "if wid == {}:\n        Tx.warp.",
                self.random.below(self.threads / 32)
            ),
        }
    }

    fn copy(&mut self, to: usize, from: usize, part: Part) {
        let (dst, src) = (part.text(&self.arrays[to]), part.text(&self.arrays[from]));
        let caller = self.caller(&[to, from]);
        let homes = (self.arrays[from].home, self.arrays[to].home);
        if homes == (Home::Global, Home::Shared) && self.random.chance(30) {
            // Declined where cp.async has no contiguous four bytes; the run counts such cases.
            self.line(&format!("{caller}copy_async({dst}, {src})"));
            self.line("T.ptx.cp_async.commit_group()");
            self.line("T.ptx.cp_async.wait_group(0)");
        } else {
            self.line(&format!("{caller}copy({dst}, {src})"));
        }
        for place in part.places(&self.arrays[to]) {
            self.arrays[to].values[place] = self.arrays[from].values[place];
        }
        self.barrier();
    }

    /// A region whose size the threads are likely to divide.
    fn part(&mut self, array: usize) -> Part {
        let Array {
            rows, columns, home, ..
        } = self.arrays[array];
        let mut part = self.whole(array);
        if self.random.chance(50) {
            return part;
        }
        if home != Home::Registers && rows >= 4 {
            part.rows = rows / 2;
            part.row = self.random.below(rows / 2 + 1);
        }
        if self.random.chance(60) {
            part.columns = columns / 2;
            part.column = *self.random.pick(&[0, columns / 2, 1]);
            part.column = part.column.min(columns - part.columns);
        }
        part
    }

    fn step(&mut self) {
        let dst = 2 + self.random.below(self.arrays.len() - 2);
        let part = self.part(dst);
        let home = self.arrays[dst].home;
        let dtype = self.arrays[dst].dtype;
        let alike: Vec<usize> = (2..self.arrays.len())
            .filter(|i| self.arrays[*i].home == home && self.arrays[*i].dtype == dtype)
            .collect();
        let a = *self.random.pick(&alike);
        let b = *self.random.pick(&alike);
        let limit = most(dtype) / 4;
        let (x, y) = (self.arrays[a].largest(), self.arrays[b].largest());
        let places = part.places(&self.arrays[dst]);
        let text = |i: usize, this: &Builder| part.text(&this.arrays[i]);
        let c = self.random.between(-3, 3) as i64;
        let scalar = if dtype.is_floating() {
            format!("T.{dtype}({c}.0)")
        } else {
            format!("T.{dtype}({c})")
        };
        let (d, s, t) = (text(dst, self), text(a, self), text(b, self));
        let binary = |this: &mut Builder, line: String, f: &dyn Fn(i64, i64) -> i64| {
            let caller = this.caller(&[dst, a, b]);
            this.line(&line.replace("Tx.cta.", &caller));
            let values: Vec<i64> = places
                .iter()
                .map(|p| f(this.arrays[a].values[*p], this.arrays[b].values[*p]))
                .collect();
            for (place, value) in places.iter().zip(values) {
                this.arrays[dst].values[*place] = value;
            }
            this.barrier();
        };
        let kind = self.turns.pop().unwrap_or_else(|| self.random.below(KINDS));
        match kind {
            0 if x + y < limit => binary(self, format!("Tx.cta.add({d}, {s}, {t})"), &|x, y| x + y),
            1 if x + y < limit => binary(self, format!("Tx.cta.sub({d}, {s}, {t})"), &|x, y| x - y),
            2 if x * y < limit => binary(self, format!("Tx.cta.mul({d}, {s}, {t})"), &|x, y| x * y),
            3 => binary(self, format!("Tx.cta.maximum({d}, {s}, {t})"), &|x, y| x.max(y)),
            4 => binary(self, format!("Tx.cta.minimum({d}, {s}, {t})"), &|x, y| x.min(y)),
            5 if x * 3 + y < limit => {
                binary(self, format!("Tx.cta.fma({d}, {s}, {scalar}, {t})"), &|x, y| {
                    x * c + y
                });
            }
            6 if x + 3 < limit => binary(self, format!("Tx.cta.add({d}, {s}, {scalar})"), &|x, _| x + c),
            7 => binary(self, format!("Tx.cta.fill({d}, {scalar})"), &|_, _| c),
            8 => binary(self, format!("Tx.cta.zero({d})"), &|_, _| 0),
            13 if x + 3 < limit => binary(self, format!("Tx.cta.sub({d}, {scalar}, {s})"), &|x, _| c - x),
            14 if x + y + 3 < limit => {
                let line = format!("Tx.cta.binary_chain({d}, {s}, {scalar}, {t}, \"sub\", \"maximum\")");
                binary(self, line, &|x, y| (c - x).max(y));
            }
            15 if (x + 3) * y < limit => {
                let line =
                    format!("Tx.cta.binary_chain({d}, {s}, {scalar}, {t}, \"add\", \"mul\", reverse1=True)");
                binary(self, line, &|x, y| y * (c + x));
            }
            // Rows of the part, reduced to its first column.
            10 | 11 if x * 64 < limit && part.columns > 1 => {
                let op = *self.random.pick(&["sum", "max", "min"]);
                let first = Part { columns: 1, ..part };
                let accum = self.random.chance(40);
                let negated = !accum && self.random.chance(30);
                let keeps = if accum { "True" } else { "False" };
                let caller = self.caller(&[dst, a]);
                if dst == a {
                    return;
                }
                let to = first.text(&self.arrays[dst]);
                self.line(&match negated {
                    true => format!("{caller}reduce_negate({to}, {s}, \"{op}\")"),
                    false => format!("{caller}{op}({to}, {s}, axes=-1, accum={keeps})"),
                });
                let columns = part.columns;
                for (row, place) in first.places(&self.arrays[dst]).into_iter().enumerate() {
                    let own = &places[row * columns..(row + 1) * columns];
                    let old = accum.then(|| self.arrays[dst].values[place]);
                    let values = own.iter().map(|p| self.arrays[a].values[*p]).chain(old);
                    let value = match op {
                        "sum" => values.sum(),
                        "max" => values.max().unwrap_or(0),
                        _ => values.min().unwrap_or(0),
                    };
                    self.arrays[dst].values[place] = if negated { -value } else { value };
                }
                self.barrier();
            }
            // Functions of a constant, of which the value is exact.
            16 | KINDS.. if dtype.is_floating() => {
                let (op, from, to) = match kind {
                    16 => *self.random.pick(&FUNCTIONS),
                    turn => FUNCTIONS[turn - KINDS],
                };
                let (from, to) = match (op, dtype.bits) {
                    ("log2", 64) => (1, 0),
                    _ => (from, to),
                };
                self.line(&format!("Tx.cta.memset({d}, T.{dtype}({from}.0))"));
                self.barrier();
                self.line(&format!("Tx.cta.{op}({d}, {d})"));
                places.iter().for_each(|p| self.arrays[dst].values[*p] = to);
                self.barrier();
            }
            17 if dtype.is_floating() => {
                let sign = *self.random.pick(&[1, -1]);
                let line = format!("Tx.cta.fdiv({d}, {s}, T.{dtype}({sign}.0))");
                binary(self, line, &|x, _| x * sign);
            }
            18 => {
                let others: Vec<usize> = (2..self.arrays.len())
                    .filter(|i| self.arrays[*i].home == home && self.arrays[*i].largest() < limit)
                    .collect();
                if others.is_empty() {
                    return;
                }
                let from = *self.random.pick(&others);
                let (caller, text) = (self.caller(&[dst, from]), text(from, self));
                self.line(&format!("{caller}cast({d}, {text})"));
                for place in &places {
                    self.arrays[dst].values[*place] = self.arrays[from].values[*place];
                }
                self.barrier();
            }
            // Two operations by one call, of which the second reduces what the first has left.
            19 if part.columns > 1 && dst != a && x + y < limit => {
                let caller = self.caller(&[dst, a, b]);
                let first = Part { columns: 1, ..part };
                let to = first.text(&self.arrays[a]);
                let unary = dtype.is_floating() && self.random.chance(50);
                let values: Vec<i64> = match unary {
                    true => {
                        self.line(&format!("Tx.cta.memset({t}, T.{dtype}(-1.0))"));
                        self.barrier();
                        places.iter().for_each(|p| self.arrays[b].values[*p] = -1);
                        self.line(&format!(
                            "{caller}unary_reduce({d}, {to}, {t}, \"reciprocal\", \"sum\", None, None, -1)"
                        ));
                        vec![-1; places.len()]
                    }
                    false => {
                        self.line(&format!(
                            "{caller}binary_reduce({d}, {to}, {s}, {t}, \"add\", \"max\", -1)"
                        ));
                        let sum = |p: &usize| self.arrays[a].values[*p] + self.arrays[b].values[*p];
                        places.iter().map(sum).collect()
                    }
                };
                for (place, value) in places.iter().zip(&values) {
                    self.arrays[dst].values[*place] = *value;
                }
                for (place, row) in first
                    .places(&self.arrays[a])
                    .into_iter()
                    .zip(values.chunks(part.columns))
                {
                    let most = row.iter().copied().max().unwrap_or(0);
                    self.arrays[a].values[place] = if unary { row.iter().sum() } else { most };
                }
                self.barrier();
            }
            20 => {
                let line = format!(
                    "with Tx.cta.compose_op():\n        Tx.cta.maximum({d}, {s}, {t})\n        Tx.cta.minimum({d}, {d}, {scalar})"
                );
                self.line(&line);
                let value = |p: &usize| self.arrays[a].values[*p].max(self.arrays[b].values[*p]).min(c);
                let values: Vec<i64> = places.iter().map(value).collect();
                for (place, value) in places.iter().zip(values) {
                    self.arrays[dst].values[*place] = value;
                }
                self.barrier();
            }
            9 => {
                let line = format!("Tx.cta.select({d}, {s}, {t}, lambda i, j: i < j)");
                self.line(&line);
                let columns = part.columns;
                let values: Vec<i64> = places
                    .iter()
                    .enumerate()
                    .map(|(n, p)| {
                        let chosen = if n / columns < n % columns { a } else { b };
                        self.arrays[chosen].values[*p]
                    })
                    .collect();
                for (place, value) in places.iter().zip(values) {
                    self.arrays[dst].values[*place] = value;
                }
                self.barrier();
            }
            _ => {
                // Between the two kinds of memory, and within shared memory.
                let others: Vec<usize> = (2..self.arrays.len())
                    .filter(|i| *i != dst && (self.arrays[*i].home != home || home == Home::Shared))
                    .collect();
                if others.is_empty() {
                    return;
                }
                let from = *self.random.pick(&others);
                if self.arrays[from].dtype == dtype {
                    self.copy(dst, from, part);
                }
            }
        }
    }
}
