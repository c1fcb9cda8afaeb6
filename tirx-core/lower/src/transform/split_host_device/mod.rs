//! SplitHostDevice: each launch becomes a device function, and a call of it on the host.
//!
//! **Idea.** The outermost `thread_extent` attribute of a launch and everything in it moves to a function of its own.
//! Values that the region reads from outside become its parameters: first pointers, then scalars, each group in order
//! of names. Views that the host declares over those pointers are declared again at the top of the kernel. The host
//! calls it by name with the arguments followed by the launch parameters, one per tag of `tirx.kernel_launch_params`
//! that has a value.
//!
//! **Launch parameters** are the hardware indices in order of appearance; then the flags of `flags.rs`, which have no
//! value; then `tirx.use_dyn_shared_memory` with the bytes of the one `shared.dyn` allocation, or those
//! that a `tirx.dyn_smem_bytes` attribute says. What no GPU can launch is refused here (`limits.rs`).
//!
//! **Names.** The kernel of function `f` is `f_kernel`, further ones `f_kernel_1`, `f_kernel_2`, …
//!
//! **Invariants.** Runs after FlattenBuffer: buffers have no offset or strides, so a buffer's shape is not read by
//! its accesses; a variable that occurs in the shape of a view alone is no parameter and stays free there.
//! The device function shares no variable with the host function.
//!
//! **Cost.** Two walks of each region, one of the host part.

use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::hash_map::Entry;
use std::sync::Arc;

mod calls;
mod flags;
mod launch;
mod limits;

use self::calls::Callee;
use self::flags::Flags;
use self::launch::LaunchParameters;
use super::{PassContext, Target};
use crate::diagnostic::{Diagnostic, Diagnostics, Result};
use crate::intrin::Op;
use crate::ir::abi::keys;
pub use crate::ir::abi::keys::{
    COOPERATIVE_LAUNCH, DEVICE_KERNEL_LAUNCH, DYNAMIC_SHARED_MEMORY, KERNEL_LAUNCH_PARAMS,
    MAX_BLOCKS_PER_CLUSTER, MAX_REGISTERS, MIN_BLOCKS_PER_SM, PROGRAMMATIC_LAUNCH,
};
use crate::ir::abi::runs_on_device;
use crate::ir::{
    Attr, AttrNode, AttrValue, Attrs, Buffer, BufferStore, DType, Expr, ExprKind, IRModule, Mutator,
    PrimFunc, Stmt, StmtKind, Var, Visitor, substitute_stmt,
};
use crate::source::Span;

/// Splits every function that has a launch.
pub fn run(module: IRModule, context: &PassContext) -> Result<IRModule, Diagnostics> {
    let mut names: FxHashSet<Arc<str>> = module.functions.iter().map(|(n, _)| n.clone()).collect();
    let mut functions = Vec::with_capacity(module.functions.len() * 2);
    let mut module = module;
    let callees = calls::kernels(&mut module, context)?;
    for (name, func) in module.functions {
        if runs_on_device(&func) || func.attr("calling_conv").is_some() {
            functions.push((name, func));
            continue;
        }
        let mut split = Split {
            prefix: format!("{}_kernel", func.global_symbol().unwrap_or(&name)),
            targets: context.targets(&func),
            span: func.span,
            flags: Flags::of_function(&func.attrs),
            names: &mut names,
            kernels: Vec::new(),
            declared: (func.buffer_map.iter())
                .map(|(_, buffer)| (buffer.data.clone(), buffer.clone()))
                .collect(),
            callees: &callees,
            failed: None,
        };
        let body = split.stmt(&func.body);
        if let Some(error) = split.failed {
            return Err(error.into());
        }
        calls::refuse(&body)?;
        functions.append(&mut split.kernels);
        functions.push((name, PrimFunc { body, ..func }));
    }
    Ok(IRModule { functions, ..module })
}

struct Split<'a> {
    prefix: String,
    targets: Vec<Target>,
    span: Span,
    /// Flags from the host part around a launch.
    flags: Flags,
    names: &'a mut FxHashSet<Arc<str>>,
    kernels: Vec<(Arc<str>, PrimFunc)>,
    /// The last buffer that the host declares over each pointer.
    declared: FxHashMap<Var, Buffer>,
    /// Kernels that the host may call by name.
    callees: &'a FxHashMap<Arc<str>, Callee>,
    failed: Option<Box<Diagnostic>>,
}

impl Split<'_> {
    fn fresh_name(&mut self) -> Arc<str> {
        let mut name: Arc<str> = self.prefix.as_str().into();
        let mut number = 0;
        while !self.names.insert(name.clone()) {
            number += 1;
            name = format!("{}_{number}", self.prefix).into();
        }
        name
    }

    /// Makes the kernel of a launch; gives the call.
    fn kernel(&mut self, region: &Stmt) -> Result<Stmt> {
        let mut launch = LaunchParameters::default();
        let body = launch.stmt(region);
        if let Some(error) = launch.failed {
            return Err(error);
        }
        launch.check_pool()?;
        limits::check(&launch, &body, &self.targets)?;
        let mut reads = Reads {
            declared: std::mem::take(&mut self.declared),
            ..Reads::default()
        };
        reads.visit_stmt(&body);
        self.declared = std::mem::take(&mut reads.declared);
        let extents = launch
            .extents
            .iter()
            .map(|(tag, extent, span)| (format!("the extent of {tag}"), extent, *span));
        let memory = launch
            .dynamic_bytes()
            .map(|(bytes, span)| ("the size of dynamic shared memory".to_string(), bytes, *span));
        for (what, value, span) in extents.chain(memory) {
            let mut inner = Reads::default();
            inner.visit_expr(value);
            if inner.order.iter().any(|v| reads.bound.contains(v)) || inner.loads {
                return Err(Box::new(
                    Diagnostic::new(span, format!("{what} is computed inside the launch"))
                        .label("the host computes a launch's extents and sizes before the kernel runs"),
                ));
            }
        }

        // Parameters: pointers first, each group by name; equal names in order of first use.
        let mut outer: Vec<Var> = reads
            .order
            .into_iter()
            .filter(|v| !reads.bound.contains(v))
            .collect();
        outer.sort_by(|a, b| {
            let key = |v: &Var| !v.dtype().is_handle();
            key(a).cmp(&key(b)).then_with(|| a.name().cmp(b.name()))
        });
        // As TVM declares them: the first accessed comes last.
        let mut views: Vec<Buffer> = reads.buffers;
        views.reverse();

        // Fresh variables: for the parameters, and for those that only a view's shape mentions.
        let mut fresh: FxHashMap<Var, Var> = outer
            .iter()
            .map(|v| (v.clone(), v.renamed(v.name_arc())))
            .collect();
        for view in &views {
            let mut shape = Reads::default();
            view.for_each_expr(|e| shape.visit_expr(e));
            for var in shape.order {
                fresh
                    .entry(var.clone())
                    .or_insert_with(|| var.renamed(var.name_arc()));
            }
        }
        let params: Vec<Var> = outer.iter().map(|v| fresh[v].clone()).collect();
        let declarations = views
            .into_iter()
            .map(|b| Stmt::new(StmtKind::DeclBuffer(b.clone()), b.span));
        let body = Stmt::seq(declarations.chain([body]));
        let body = substitute_stmt(&body, &|v| fresh.get(v).map(Expr::var));

        let name = self.fresh_name();
        let mut args = vec![Expr::string(name.clone())];
        args.extend(outer.iter().map(|v| Expr::var(v).at(reads.places[v])));
        let mut attrs = Attrs::new();
        if let Some(target) = self.targets.first() {
            attrs.insert("target".into(), target.device_attr());
        }
        attrs.insert("tirx.noalias".into(), AttrValue::Bool(true));
        args.extend(launch.describe(self.flags.or(launch.flags), name.clone(), &mut attrs));
        let kernel = PrimFunc {
            params,
            buffer_map: Vec::new(),
            ret: None,
            attrs,
            body,
            span: self.span,
        };
        self.kernels.push((name, kernel));
        let call = Expr::call(Op::TvmCallPacked, DType::INT32, args).at(region.span);
        Ok(Stmt::new(StmtKind::Evaluate(call), region.span))
    }
}

impl Mutator for Split<'_> {
    fn expr(&mut self, expr: &Expr) -> Expr {
        expr.clone()
    }

    fn stmt(&mut self, stmt: &Stmt) -> Stmt {
        match &stmt.kind {
            _ if self.failed.is_some() => stmt.clone(),
            StmtKind::Attr(Attr {
                node: AttrNode::IterVar(_),
                key,
                ..
            }) if &**key == keys::THREAD_EXTENT => self.kernel(stmt).unwrap_or_else(|error| {
                self.failed = Some(error);
                stmt.clone()
            }),
            StmtKind::Attr(Attr { key, .. }) if &**key == keys::VIRTUAL_THREAD => {
                let error = Diagnostic::new(stmt.span, "a virtual thread is no axis of a launch")
                    .label("no pass lowers virtual threads")
                    .help("write a loop within the launch: `for vt in T.unroll(2):`");
                self.failed = Some(Box::new(error));
                stmt.clone()
            }
            StmtKind::DeclBuffer(buffer) => {
                self.declared.insert(buffer.data.clone(), buffer.clone());
                stmt.clone()
            }
            StmtKind::Evaluate(_) => calls::launch(stmt, self.callees).unwrap_or_else(|| stmt.clone()),
            StmtKind::Attr(Attr { key, value, body, .. }) if Flags::of_attribute(key, value).is_some() => {
                let inside = self.flags.or(Flags::of_attribute(key, value).unwrap_or_default());
                let outside = std::mem::replace(&mut self.flags, inside);
                let body = self.stmt(body);
                self.flags = outside;
                body
            }
            _ => self.walk_stmt(stmt),
        }
    }
}

/// Variables and buffers that a region reads, in order of first use, and the variables it binds.
#[derive(Default)]
struct Reads {
    order: Vec<Var>,
    /// The first read of each.
    places: FxHashMap<Var, Span>,
    bound: FxHashSet<Var>,
    /// Buffers accessed that the region does not declare.
    buffers: Vec<Buffer>,
    known: FxHashSet<Buffer>,
    /// The buffer declared outside over each pointer: a read of the pointer counts as an access to it.
    declared: FxHashMap<Var, Buffer>,
    loads: bool,
}

impl Reads {
    fn read(&mut self, var: &Var, span: Span) {
        if let Entry::Vacant(place) = self.places.entry(var.clone()) {
            place.insert(span);
            self.order.push(var.clone());
        }
    }

    fn access(&mut self, buffer: &Buffer) {
        if self.known.insert(buffer.clone()) {
            self.buffers.push(buffer.clone());
        }
    }

    /// A read of a pointer outside of buffer accesses.
    fn pointer(&mut self, var: &Var, span: Span) {
        self.read(var, span);
        if let Some(buffer) = self.declared.get(var).cloned() {
            self.access(&buffer);
        }
    }
}

impl Visitor for Reads {
    fn visit_expr(&mut self, expr: &Expr) {
        match &expr.kind {
            ExprKind::Var(v) => self.pointer(v, expr.span),
            ExprKind::BufferLoad { .. } => self.loads = true,
            _ => {}
        }
        self.walk_expr(expr);
    }

    fn visit_stmt(&mut self, stmt: &Stmt) {
        match &stmt.kind {
            StmtKind::AllocBuffer(buffer, _) => {
                // The size of dynamic shared memory may depend on a parameter.
                buffer.shape.iter().for_each(|e| self.visit_expr(e));
                self.bound.insert(buffer.data.clone());
                self.known.insert(buffer.clone());
            }
            StmtKind::BufferStore(BufferStore {
                buffer,
                indices,
                value,
                predicate,
            }) => {
                self.visit_buffer_use(buffer);
                self.visit_expr(value);
                indices.iter().chain(predicate).for_each(|e| self.visit_expr(e));
            }
            StmtKind::DeclBuffer(buffer) => {
                self.pointer(&buffer.data, stmt.span);
                buffer.allocated_addr.iter().for_each(|e| self.visit_expr(e));
                // A view whose description reads memory needs that memory, though no access may read it.
                let reading = buffer.exprs().into_iter().filter(|e| !e.is_pure());
                reading.for_each(|e| self.visit_expr(e));
                self.known.insert(buffer.clone());
            }
            _ => self.walk_stmt(stmt),
        }
    }

    fn visit_var_def(&mut self, var: &Var) {
        self.bound.insert(var.clone());
    }

    fn visit_buffer_use(&mut self, buffer: &Buffer) {
        self.read(&buffer.data, buffer.span);
        self.access(buffer);
    }
}

#[cfg(test)]
mod tests {
    use super::super::Options;
    use super::*;
    use crate::ir::{IterKind, IterVar, Type};
    use crate::source::SourceMap;

    fn launch(tag: &str, extent: Expr, body: impl FnOnce(&Var) -> Stmt) -> Stmt {
        let var = Var::new(tag.replace('.', "_"), DType::INT32);
        let body = body(&var);
        let iter = IterVar {
            var,
            dom: None,
            kind: IterKind::ThreadIndex,
            thread_tag: tag.into(),
        };
        Stmt::attr(AttrNode::IterVar(iter), "thread_extent", extent, body, Span::NONE)
    }

    fn split(func: PrimFunc) -> Result<IRModule, Diagnostics> {
        let context = PassContext::new(Target::SM_90A, &Options::default());
        run(IRModule::single("main", func, SourceMap::new()), &context)
    }

    fn shared(name: &str, elements: i32) -> Stmt {
        let buffer = Buffer::fresh(
            name,
            vec![Expr::int32(elements)],
            DType::FLOAT32,
            "shared.dyn",
            Span::NONE,
        );
        Stmt::new(StmtKind::AllocBuffer(buffer, vec![]), Span::NONE)
    }

    fn kernel_file(dynamic: &[i32]) -> PrimFunc {
        let b = Buffer::fresh("B", vec![Expr::int32(64)], DType::FLOAT32, "global", Span::NONE);
        let a = Buffer::fresh("A", vec![Expr::int32(64)], DType::FLOAT32, "global", Span::NONE);
        let (n, m) = (Var::new("n", DType::INT32), Var::new("m", DType::INT32));
        let view = a.with(|n| n.layout = None);
        let region = launch("blockIdx.x", Expr::var(&n), |_| {
            launch("threadIdx.x", Expr::int32(64), |t| {
                let load = Expr::load(&b, vec![Expr::var(t)]);
                let store = Stmt::store(&view, vec![Expr::var(t) + Expr::var(&m)], load, Span::NONE);
                let body = Stmt::seq(dynamic.iter().map(|d| shared("S", *d)).chain([store]));
                Stmt::attr(
                    AttrNode::None,
                    MIN_BLOCKS_PER_SM,
                    Expr::int32(2),
                    body,
                    Span::NONE,
                )
            })
        });
        let pointers = [Var::new("b", DType::HANDLE), Var::new("a", DType::HANDLE)];
        PrimFunc {
            params: vec![pointers[0].clone(), pointers[1].clone(), n, m],
            buffer_map: pointers.into_iter().zip([b, a]).collect(),
            ret: None,
            attrs: Attrs::new(),
            body: Stmt::seq([Stmt::new(StmtKind::DeclBuffer(view), Span::NONE), region]),
            span: Span::NONE,
        }
        .with_attr("global_symbol", AttrValue::Str("copy".into()))
    }

    #[test]
    fn a_launch_becomes_a_kernel_and_a_call() {
        let module = split(kernel_file(&[100])).unwrap();
        let names: Vec<&str> = module.functions.iter().map(|(n, _)| &**n).collect();
        assert_eq!(names, ["copy_kernel", "main"]);
        let kernel = module.get("copy_kernel").unwrap();
        let params: Vec<&str> = kernel.params.iter().map(Var::name).collect();
        assert_eq!(params, ["A_ptr", "B_ptr", "m", "n"]);
        assert_eq!(*kernel.params[0].ty(), Type::pointer(DType::FLOAT32, "global"));
        assert_eq!(kernel.attr(MIN_BLOCKS_PER_SM), Some(&AttrValue::Int(2)));
        let tags: Vec<&str> = kernel
            .attr(KERNEL_LAUNCH_PARAMS)
            .unwrap()
            .as_list()
            .unwrap()
            .iter()
            .filter_map(AttrValue::as_str)
            .collect();
        assert_eq!(tags, ["blockIdx.x", "threadIdx.x", DYNAMIC_SHARED_MEMORY]);

        let host = module.get("main").unwrap();
        let StmtKind::Evaluate(call) = &host.body.as_slice()[1].kind else {
            panic!()
        };
        let args = call.as_call(Op::TvmCallPacked).unwrap();
        assert_eq!(args[0].as_str(), Some("copy_kernel"));
        assert_eq!(args.len(), 1 + 4 + 3);
        assert!(args[7].is_int(400) && args[7].dtype == DType::INT64);
        // No variable is shared between host and device.
        assert!(host.params.iter().all(|p| !kernel.params.contains(p)));
    }

    #[test]
    fn dynamic_shared_memory_is_one_allocation() {
        let error = split(kernel_file(&[4, 8])).unwrap_err();
        assert_eq!(
            error.0[0].message,
            "a kernel has at most one dynamic shared memory allocation"
        );
    }
}
