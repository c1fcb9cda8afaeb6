//! AnnotateEntryFunc: marks the function that callers see with `tirx.is_entry_func`.
//!
//! A module of one function has that one as its entry; in a module of several the entry is the only one that is
//! exported (has a `global_symbol`), if there is exactly one. Already marked modules stay as they are.

use super::PassContext;
use crate::diagnostic::Diagnostics;
use crate::ir::abi::runs_on_device;
use crate::ir::{AttrValue, IRModule};

/// The attribute.
pub const IS_ENTRY_FUNC: &str = "tirx.is_entry_func";

/// Marks the entry function.
pub fn run(mut module: IRModule, _context: &PassContext) -> Result<IRModule, Diagnostics> {
    if module
        .functions
        .iter()
        .any(|(_, f)| f.attr(IS_ENTRY_FUNC).is_some())
    {
        return Ok(module);
    }
    let on_host = module.functions.iter_mut().filter(|(_, f)| !runs_on_device(f));
    let mut candidates: Vec<_> = on_host.collect();
    let alone = candidates.len() == 1;
    let mut exported = candidates
        .iter_mut()
        .filter(|(_, f)| alone || f.global_symbol().is_some());
    if let (Some((_, entry)), None) = (exported.next(), exported.next()) {
        entry.attrs.insert(IS_ENTRY_FUNC.into(), AttrValue::Bool(true));
    }
    Ok(module)
}

#[cfg(test)]
mod tests {
    use super::super::{Options, Target};
    use super::*;
    use crate::ir::{Attrs, PrimFunc, Stmt};
    use crate::source::{SourceMap, Span};

    #[test]
    fn only_an_unambiguous_entry_is_marked() {
        let func = || PrimFunc {
            params: vec![],
            buffer_map: vec![],
            ret: None,
            attrs: Attrs::new(),
            body: Stmt::nop(),
            span: Span::NONE,
        };
        let context = PassContext::new(Target::SM_90A, &Options::default());
        let single = run(IRModule::single("main", func(), SourceMap::new()), &context).unwrap();
        assert!(single.functions[0].1.attr(IS_ENTRY_FUNC).is_some());

        let exported = |name: &str| func().with_attr("global_symbol", AttrValue::Str(name.into()));
        let mut two = IRModule::single("f", exported("f"), SourceMap::new());
        two.functions.push(("g".into(), exported("g")));
        let two = run(two, &context).unwrap();
        assert!(two.functions.iter().all(|(_, f)| f.attr(IS_ENTRY_FUNC).is_none()));
    }
}
