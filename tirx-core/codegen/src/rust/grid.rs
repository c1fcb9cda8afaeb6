//! The number of blocks that a kernel launches, as a Rust expression over sizes.

use rustc_hash::FxHashMap;

use crate::intrin::Op;
use crate::ir::abi::host::checked::{Checked, CheckedSpelling, is_followed, unconverted, written_out};
use crate::ir::abi::{self, LaunchParam};
use crate::ir::{Expr, IRModule, Stmt, StmtKind, Var, Visitor, print_expr};

/// The blocks of all launches of a lowered kernel, as the text of a `::tirx_rt::host::Wide`; the size `names[i]` is `sizes[i]`,
/// an `i64`. `None` if the grid depends on anything else.
pub fn blocks(module: &IRModule, names: &[String]) -> Option<String> {
    let mut grids = Grids {
        module,
        values: FxHashMap::default(),
        launches: Vec::new(),
    };
    grids.visit_stmt(&abi::host_function(module, None)?.body);
    let mut sizes = Sizes(names);
    let mut launches = Vec::new();
    for extents in &grids.launches {
        let mut factors = Vec::new();
        for extent in extents {
            let bound = |var: &Var| grids.values.get(var).cloned();
            let extent = written_out(extent, &bound);
            let extent = Checked::from_expr(unconverted(&extent), &bound)?;
            factors.push(extent.spell(&mut sizes, &mut Vec::new())?);
        }
        launches.push(combined(&sizes, "mul", factors).unwrap_or_else(|| sizes.constant(1)));
    }
    combined(&sizes, "add", launches)
}

/// One number of several.
fn combined(sizes: &Sizes<'_>, operation: &str, numbers: Vec<String>) -> Option<String> {
    let both = |a: String, b: String| sizes.operation(operation, &a, &b);
    numbers.into_iter().reduce(both)
}

/// The launches of a host function.
struct Grids<'a> {
    module: &'a IRModule,
    /// Names that are bound to integer arithmetic.
    values: FxHashMap<Var, Expr>,
    /// The extents of each launch's grid.
    launches: Vec<Vec<Expr>>,
}

impl Visitor for Grids<'_> {
    fn visit_stmt(&mut self, stmt: &Stmt) {
        match &stmt.kind {
            StmtKind::Bind(var, value) if is_followed(value) => {
                self.values.insert(var.clone(), value.clone());
            }
            StmtKind::Evaluate(call) => {
                let args = call.as_call(Op::TvmCallPacked);
                if let Some(launch) = args.and_then(|args| abi::launch(self.module, args)) {
                    let extents = launch.params.iter().filter_map(|(param, _, value)| match param {
                        LaunchParam::Grid(_) => value.cloned(),
                        _ => None,
                    });
                    self.launches.push(extents.collect());
                }
            }
            _ => self.walk_stmt(stmt),
        }
    }
}

/// Spells numbers of sizes; other names have no text.
struct Sizes<'a>(&'a [String]);

impl CheckedSpelling for Sizes<'_> {
    fn constant(&self, value: i64) -> String {
        format!("::tirx_rt::host::Wide::from({value}_i64)")
    }

    fn value(&mut self, value: &Expr) -> Option<(String, bool)> {
        let name = value.as_var()?.name().to_string();
        let at = self.0.iter().position(|size| *size == name)?;
        Some((format!("::tirx_rt::host::Wide::from(sizes[{at}])"), false))
    }

    fn name(&self, value: &Expr) -> String {
        print_expr(value)
    }

    fn operation(&self, name: &str, a: &str, b: &str) -> String {
        format!("{a}.{name}({b})")
    }

    fn choice(&mut self, _: &Expr, _: &str, _: &str) -> Option<String> {
        None
    }
}
