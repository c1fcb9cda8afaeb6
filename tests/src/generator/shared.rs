//! Shared memory: separate buffers, pools of several, scalars, counters, and the barriers between accesses.

use tirx_core::ir::DType;

use super::bounds::Bounds;
use super::memory::{Access, Array, Extent, Scope, access, assign, shape_of, tuple};
use super::program::{Expr, Node, pieces};
use super::{Generator, Value};

fn barrier() -> Node {
    Node::Line(pieces!["T.cuda.cta_sync()"])
}

impl Generator {
    /// Declares buffers in shared memory and fills them; ends with a barrier.
    pub(super) fn shared_memory(&mut self, thread: &Expr) -> Vec<Node> {
        let mut nodes = Vec::new();
        for _ in 0..1 + self.random.below(2) {
            nodes.push(match self.random.below(10) {
                0 => self.shared_scalar(thread),
                1 => self.shared_counters(thread),
                2 | 3 if !self.dynamic => self.pool(thread),
                _ => self.shared(thread),
            });
        }
        nodes.push(barrier());
        nodes
    }

    /// A buffer in which elements belong to threads.
    fn shared_array(&mut self, thread: &Expr) -> Array {
        let form = self.form();
        let each = *self.random.pick(&[1i64, 1, 2, 4]);
        let dtype = self.any_dtype();
        let name = self.fresh("shared");
        Array {
            name: name.clone(),
            dtype,
            bounds: Bounds::stored(dtype),
            shape: shape_of(&form, self.threads, each)
                .into_iter()
                .map(Extent::Const)
                .collect(),
            access: Access::Shared {
                form,
                owner: thread.clone(),
                owners: self.threads,
                each,
            },
            storage: name,
            scope: Scope::Shared,
            dense: true,
        }
    }

    /// Writes every element of a shared buffer; only the thread's own are readable until the next barrier.
    fn shared_filled(&mut self, array: &Array) -> Node {
        let Access::Shared { each, .. } = array.access else {
            return Node::Group(Vec::new());
        };
        // The other shared buffers were written without a barrier since then.
        let shared = self.arrays.iter().filter(|a| a.scope == Scope::Shared);
        let others: Vec<String> = shared.map(|a| a.storage.clone()).collect();
        let before = std::mem::replace(&mut self.unreadable, others);
        let filled = self.fill(array, &[each]);
        self.unreadable = before;
        filled
    }

    fn shared(&mut self, thread: &Expr) -> Node {
        let mut array = self.shared_array(thread);
        let extents = extents(&array);
        let layout = self.layout(&extents);
        array.dense = layout.is_empty();
        let (name, dtype, shape) = (&array.name, array.dtype, tuple(&extents));
        let declared = if !self.dynamic && self.random.chance(10) {
            self.dynamic = true;
            format!("{name} = T.alloc_buffer({shape}, \"{dtype}\", scope=\"shared.dyn\"{layout})")
        } else if self.random.chance(70) {
            format!("{name} = T.alloc_shared({shape}, \"{dtype}\"{layout})")
        } else {
            format!("{name} = T.alloc_buffer({shape}, \"{dtype}\", scope=\"shared\"{layout})")
        };
        let filled = self.shared_filled(&array);
        self.arrays.push(array);
        Node::Group(vec![Node::Line(pieces![declared]), filled])
    }

    /// One to three buffers in one allocation, at times at the place of an earlier one.
    fn pool(&mut self, thread: &Expr) -> Node {
        self.dynamic = true;
        let pool = self.fresh("pool");
        let mut nodes = vec![Node::Line(pieces![format!("{pool} = T.SMEMPool()")])];
        let (mut end, mut most) = (0, 0);
        // A buffer that is read before others reuse its storage; the pool is committed once all are declared.
        let mut declared = |g: &mut Generator, nodes: &mut Vec<Node>| {
            let mut array = g.shared_array(thread);
            // Its pointer is that of the pool.
            array.storage = format!("{pool}.{}", array.name);
            let shape = extents(&array);
            let align = *g.random.pick(&[16i64, 32, 128, 1024]);
            let (name, dtype) = (&array.name, array.dtype);
            nodes.push(Node::Line(pieces![format!(
                "{name} = {pool}.alloc({}, \"{dtype}\", align={align})",
                tuple(&shape)
            )]));
            // An upper bound.
            end = (end + align) / align * align + shape.iter().product::<i64>() * dtype.bytes() as i64;
            (array, end)
        };
        let mut arrays = Vec::new();
        let reused = self.random.chance(25);
        let first = declared(self, &mut nodes).0;
        if reused {
            nodes.push(Node::Line(pieces![format!("{pool}.move_base_to(0)")]));
        } else {
            arrays.push(first.clone());
        }
        for _ in 0..1 + self.random.below(2) {
            let (array, end) = declared(self, &mut nodes);
            arrays.push(array);
            most = end + 1024;
            if self.random.chance(15) {
                let place = (end + 1023) / 1024 * 1024;
                nodes.push(Node::Line(pieces![format!("{pool}.move_base_to({place})")]));
            }
        }
        nodes.push(Node::Line(pieces![match self.random.chance(80) {
            true => format!("{pool}.commit()"),
            false => format!("{pool}.commit({most})"),
        }]));
        if reused {
            nodes.push(self.shared_filled(&first));
            nodes.push(barrier());
            let index: Vec<Expr> = first.shape.iter().map(|e| self.index(e, 1)).collect();
            let name = self.fresh("s");
            let value = access(&first, index);
            let mut kept = Expr::new(first.dtype, first.bounds, pieces![name.clone()]);
            kept.uniform = false;
            nodes.push(Node::Line(pieces![
                format!("{name}: T.{} = ", first.dtype),
                value
            ]));
            nodes.push(barrier());
            self.values.push(Value::new(kept, None));
        }
        for array in arrays {
            nodes.push(self.shared_filled(&array));
            self.arrays.push(array);
        }
        Node::Group(nodes)
    }

    /// A scalar that all threads share.
    fn shared_scalar(&mut self, thread: &Expr) -> Node {
        let dtype = self.any_dtype();
        let name = self.fresh("shared");
        let array = Array {
            name: name.clone(),
            dtype,
            bounds: Bounds::stored(dtype),
            shape: Vec::new(),
            access: Access::Single {
                thread: thread.clone(),
                writer: self.random.below(self.threads as usize) as i64,
            },
            storage: name.clone(),
            scope: Scope::Shared,
            dense: false,
        };
        let shared = self.arrays.iter().filter(|a| a.scope == Scope::Shared);
        let others: Vec<String> = shared.map(|a| a.storage.clone()).collect();
        let before = std::mem::replace(&mut self.unreadable, others);
        let stored = self.single_store(&array);
        self.unreadable = before;
        self.arrays.push(array);
        let declared = match self.random.below(2) {
            0 => format!("{name} = T.shared_scalar(\"{dtype}\")"),
            _ => format!("{name} = T.alloc_scalar(\"{dtype}\", scope=\"shared\")"),
        };
        Node::Group(vec![Node::Line(pieces![declared]), stored])
    }

    /// Its thread writes a shared scalar.
    fn single_store(&mut self, array: &Array) -> Node {
        let Access::Single { thread, writer } = &array.access else {
            return Node::Group(Vec::new());
        };
        let value = self.expr(array.dtype, 3);
        let value = self.fit(value, array.bounds);
        Node::Block {
            head: pieces!["if ", thread.clone(), format!(" == {writer}:")],
            body: vec![assign(access(array, Vec::new()), value)],
            otherwise: Vec::new(),
        }
    }

    /// Counters that the threads of a block add to.
    fn shared_counters(&mut self, thread: &Expr) -> Node {
        let dtype = *self
            .random
            .pick(&[DType::INT32, DType::UINT32, DType::UINT64, DType::FLOAT32]);
        let name = self.fresh("counts");
        let count = *self.random.pick(&[1i64, 2, 5]);
        let i = self.fresh("i");
        let zero = if dtype.is_integer() {
            Expr::constant(dtype, 0)
        } else {
            self.float_literal(dtype, 0.0)
        };
        self.arrays.push(Array {
            name: name.clone(),
            dtype,
            bounds: Bounds::from_dtype(dtype),
            shape: vec![Extent::Const(count)],
            access: Access::Count,
            storage: name.clone(),
            scope: Scope::Shared,
            dense: true,
        });
        Node::Group(vec![
            Node::Line(pieces![format!(
                "{name} = T.alloc_shared(({count},), \"{dtype}\")"
            )]),
            Node::Block {
                head: pieces!["if ", thread.clone(), " == 0:"],
                body: vec![Node::Block {
                    head: pieces![format!("for {i} in range({count}):")],
                    body: vec![Node::Line(pieces![format!("{name}[{i}] = "), zero])],
                    otherwise: Vec::new(),
                }],
                otherwise: Vec::new(),
            },
        ])
    }

    /// The results of the block's counters, in elements of the thread's own. All threads execute this together.
    pub(super) fn counted(&mut self, outputs: &[Array]) -> Vec<Node> {
        let counters: Vec<Array> = self
            .arrays
            .iter()
            .filter(|a| matches!(a.access, Access::Count) && a.scope == Scope::Shared)
            .cloned()
            .collect();
        let mut nodes = Vec::new();
        for counter in counters {
            let Some(to) = outputs.get(self.random.below(outputs.len())) else {
                return nodes;
            };
            let to = to.clone();
            nodes.push(barrier());
            let index = self.index(&counter.shape[0], 1);
            let mut sum = access(&counter, vec![index]);
            if !sum.dtype.is_integer() {
                sum.bounds = Bounds::Float(16e6);
            }
            let value = self.cast(sum, to.dtype);
            let value = self.fit(value, to.bounds);
            let indices = self.own_indices(&to, 0);
            nodes.push(assign(access(&to, indices), value));
        }
        nodes
    }

    /// Each thread writes its elements of shared memory, between two barriers.
    pub(super) fn shared_update(&mut self) -> Option<Node> {
        let fits = |a: &&Array| matches!(a.access, Access::Shared { .. } | Access::Single { .. });
        let fitting: Vec<Array> = self.arrays.iter().filter(fits).cloned().collect();
        let array = fitting.get(self.random.below(fitting.len()))?.clone();
        self.unreadable.push(array.storage.clone());
        let mut stores = Vec::new();
        for _ in 0..1 + self.random.below(2) {
            let store = match array.access {
                Access::Single { .. } => self.single_store(&array),
                _ if self.random.chance(20) => match self.vectorized_in(&array) {
                    Some(store) => store,
                    None => self.store_to(&array, 3),
                },
                _ => self.store_to(&array, 3),
            };
            stores.push(if self.random.chance(25) {
                let condition = self.expr(DType::BOOL, 2);
                Node::Block {
                    head: pieces!["if ", condition, ":"],
                    body: vec![store],
                    otherwise: Vec::new(),
                }
            } else {
                store
            });
        }
        self.unreadable.pop();
        let mut nodes = vec![barrier()];
        nodes.extend(stores);
        nodes.push(barrier());
        Some(Node::Group(nodes))
    }
}

fn extents(array: &Array) -> Vec<i64> {
    let known = array.shape.iter().filter_map(|e| match e {
        Extent::Const(n) => Some(*n),
        Extent::Symbol(..) => None,
    });
    known.collect()
}
