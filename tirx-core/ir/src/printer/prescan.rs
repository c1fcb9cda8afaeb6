//! Facts about a function that must be known before its first line is printed: which one-element buffers may be printed
//! as scalars, and which hardware indices are declared ahead of the regions that share them.

use crate::ir::abi::keys;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::ir::{
    Attr, AttrNode, Buffer, BufferStore, DEFAULT_ALIGN, DType, Expr, ExprKind, ForLoop, IterVar, Stmt,
    StmtKind, Var, Visitor,
};

/// The results.
#[derive(Default)]
pub(super) struct Prescan {
    /// Data pointers and buffers with uses that cannot be printed for a scalar.
    not_scalar: FxHashSet<Var>,
    /// By the address of a body: hardware indices to declare at its start.
    env_threads: FxHashMap<usize, Vec<IterVar>>,
}

impl Prescan {
    pub(super) fn from_body(body: &Stmt) -> Prescan {
        let mut walk = Walk {
            declared: FxHashSet::default(),
            path: vec![address(body)],
            ..Walk::default()
        };
        walk.visit_stmt(body);
        let mut result = Prescan {
            not_scalar: walk.not_scalar,
            ..Prescan::default()
        };
        for var in walk.order {
            let Some(uses) = walk.threads.remove(&var) else {
                continue;
            };
            if uses.regions < 2 && !uses.outside {
                continue;
            }
            if let Some(at) = uses.path.last() {
                result.env_threads.entry(*at).or_default().push(uses.iter_var);
            }
        }
        result
    }

    /// Hardware indices to declare at the start of `body`.
    pub(super) fn env_threads(&self, body: &Stmt) -> &[IterVar] {
        self.env_threads.get(&address(body)).map_or(&[], |v| v)
    }

    /// Whether the body uses a parameter as a pointer.
    pub(super) fn uses_pointer(&self, param: &Var) -> bool {
        self.not_scalar.contains(param)
    }

    /// Whether an allocated buffer has the form of a scalar and is only read and written whole.
    pub(super) fn is_scalar(&self, buffer: &Buffer) -> bool {
        buffer.shape.len() == 1
            && buffer.shape[0].is_int(1)
            && buffer.shape[0].dtype == DType::INT32
            && buffer.scope() == "local"
            && buffer.align == DEFAULT_ALIGN
            && buffer.offset_factor == 1
            && buffer.strides.is_empty()
            && buffer.elem_offset.is_none()
            && buffer.allocated_addr.is_empty()
            && !buffer.dtype.is_handle()
            && !buffer.dtype.is_void()
            && buffer
                .layout
                .as_ref()
                .is_some_and(|l| l.is_row_major(&buffer.shape))
            && !self.not_scalar.contains(&buffer.data)
    }
}

fn address(stmt: &Stmt) -> usize {
    let node: &crate::ir::StmtNode = stmt;
    std::ptr::from_ref(node) as usize
}

struct ThreadUses {
    iter_var: IterVar,
    /// Bodies that hold all uses, outermost first.
    path: Vec<usize>,
    regions: usize,
    /// Used outside every region that binds it.
    outside: bool,
}

#[derive(Default)]
struct Walk {
    not_scalar: FxHashSet<Var>,
    declared: FxHashSet<Buffer>,
    threads: FxHashMap<Var, ThreadUses>,
    order: Vec<Var>,
    bound: Vec<Var>,
    path: Vec<usize>,
}

impl Walk {
    fn access(&mut self, buffer: &Buffer, indices: &[Expr], predicate: &Option<Expr>) {
        let whole = indices.len() == 1 && indices[0].is_int(0) && indices[0].dtype == DType::INT32;
        if !whole || predicate.is_some() || !self.declared.contains(buffer) {
            self.not_scalar.insert(buffer.data.clone());
        }
    }

    fn body(&mut self, body: &Stmt) {
        self.path.push(address(body));
        self.visit_stmt(body);
        self.path.pop();
    }

    fn thread(&mut self, iter_var: &IterVar, region: bool) {
        let outside = !region && !self.bound.contains(&iter_var.var);
        match self.threads.get_mut(&iter_var.var) {
            None => {
                let uses = ThreadUses {
                    iter_var: iter_var.clone(),
                    path: self.path.clone(),
                    regions: region as usize,
                    outside,
                };
                self.order.push(iter_var.var.clone());
                self.threads.insert(iter_var.var.clone(), uses);
            }
            Some(uses) => {
                let common = uses
                    .path
                    .iter()
                    .zip(&self.path)
                    .take_while(|(a, b)| a == b)
                    .count();
                uses.path.truncate(common);
                uses.regions += region as usize;
                uses.outside |= outside;
            }
        }
    }
}

impl Visitor for Walk {
    fn visit_expr(&mut self, expr: &Expr) {
        match &expr.kind {
            ExprKind::Var(var) if var.dtype().is_handle() => {
                self.not_scalar.insert(var.clone());
            }
            ExprKind::BufferLoad {
                buffer,
                indices,
                predicate,
            } => self.access(buffer, indices, predicate),
            _ => {}
        }
        self.walk_expr(expr);
    }

    fn visit_stmt(&mut self, stmt: &Stmt) {
        match &stmt.kind {
            StmtKind::AllocBuffer(buffer, annotations) => {
                self.declared.insert(buffer.clone());
                if !annotations.is_empty() {
                    self.not_scalar.insert(buffer.data.clone());
                }
            }
            StmtKind::DeclBuffer(buffer) => {
                self.not_scalar.insert(buffer.data.clone());
            }
            StmtKind::Tile(call) => {
                self.not_scalar.extend(call.buffers().map(|b| b.data.clone()));
                self.walk_tile(call);
                return;
            }
            StmtKind::BufferStore(BufferStore {
                buffer,
                indices,
                predicate,
                ..
            }) => self.access(buffer, indices, predicate),
            StmtKind::Attr(Attr {
                node,
                key,
                value,
                body,
            }) => {
                self.visit_expr(value);
                match node {
                    AttrNode::IterVar(iter_var) => {
                        let region = &**key == keys::THREAD_EXTENT
                            || (&**key == keys::VIRTUAL_THREAD && !self.bound.contains(&iter_var.var));
                        self.thread(iter_var, region);
                        self.bound.push(iter_var.var.clone());
                        self.body(body);
                        self.bound.pop();
                        return;
                    }
                    AttrNode::Buffer(buffer) => {
                        self.not_scalar.insert(buffer.data.clone());
                    }
                    AttrNode::Expr(e) => self.visit_expr(e),
                    AttrNode::Dict(items) => items
                        .iter()
                        .for_each(|(_, v)| v.for_each_expr(&mut |e| self.visit_expr(e))),
                    AttrNode::None | AttrNode::Str(_) => {}
                }
                self.body(body);
                return;
            }
            StmtKind::For(ForLoop {
                min,
                extent,
                step,
                body,
                ..
            }) => {
                self.visit_expr(min);
                self.visit_expr(extent);
                step.iter().for_each(|e| self.visit_expr(e));
                self.body(body);
                return;
            }
            StmtKind::While(condition, body) => {
                self.visit_expr(condition);
                self.body(body);
                return;
            }
            StmtKind::If(condition, then, otherwise) => {
                self.visit_expr(condition);
                self.body(then);
                otherwise.iter().for_each(|s| self.body(s));
                return;
            }
            _ => {}
        }
        self.walk_stmt(stmt);
    }
}
