//! Which release of TVM is a kernel file written for?
//!
//! TVM 0.26 and 0.27 differ in what stands behind `T.ptx`: functions with keyword arguments in 0.26 (`T.ptx.ld(pointer, "uint32",
//! "u32")`), mnemonics in 0.27 (`T.ptx.ld.global_.u32(value, pointer)`). A file says which it is by a use that only one of them
//! has. Some spellings are in both, with the same operands but not always with the same meaning
//! (`T.ptx.barrier.cluster.arrive()` is `.aligned` in 0.26), so that the release of a file is found before it runs.

use std::ops::Range;

use tirx_python as ast;
use tirx_python::visitor::{Visitor, walk_expr};
use tirx_python::{Ranged, TextRange};

use super::lang;
use super::parse::span_of;
use crate::diagnostic::Diagnostic;
use crate::intrin::Op;
use crate::intrin::mnemonic::lookup::{Tokens, unescape};
use crate::intrin::mnemonic::{Lookup, spelling};
use crate::source::FileId;

/// Comments at the beginning of a file that may be the imports of printed IR. TVM 0.27 names `TypeVar` before its own modules.
const HEADER: usize = 32;

/// A release of TVM whose language a file is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Release {
    /// 0.26: `T.ptx.ld(pointer, "uint32", "u32")`.
    V26,
    /// 0.27: `T.ptx.ld.global_.u32(value, pointer)`.
    V27,
}

impl Release {
    /// The release of a version number: `0.26` or `0.27`.
    pub fn named(text: &str) -> Option<Release> {
        match text {
            "0.26" => Some(Release::V26),
            "0.27" => Some(Release::V27),
            _ => None,
        }
    }

    /// Its version number.
    pub fn name(self) -> &'static str {
        match self {
            Release::V26 => "0.26",
            Release::V27 => "0.27",
        }
    }
}

/// What a file says about its release.
#[derive(Clone, Debug, Default)]
pub(crate) struct Evidence {
    /// The first use that only 0.26 has.
    old: Option<(TextRange, String)>,
    /// The first use that only 0.27 has.
    new: Option<(TextRange, String)>,
    /// The release that the build names.
    named: Option<Release>,
}

impl Evidence {
    /// Reads a module. Printed IR has operations of both kinds: each is written as what it is.
    pub(crate) fn from_module(module: &ast::ModModule, text: &str) -> Evidence {
        let mut found = Evidence::default();
        if has_both(text) {
            return found;
        }
        module.body.iter().for_each(|stmt| found.visit_stmt(stmt));
        found
    }

    /// The release; `None` where the file is valid in both.
    pub(crate) fn release(&self) -> Option<Release> {
        match (&self.old, &self.new) {
            (Some(_), None) => Some(Release::V26),
            (None, Some(_)) => Some(Release::V27),
            _ => self.named,
        }
    }

    /// Says for which release the file is; the error where it is written for the other one.
    pub(crate) fn name(&mut self, release: Release, file: FileId) -> Option<Diagnostic> {
        self.named = Some(release);
        let (other, found) = match release {
            Release::V26 => (Release::V27, &self.new),
            Release::V27 => (Release::V26, &self.old),
        };
        let (at, name) = found.as_ref()?;
        let message = format!(
            "{name} is of TVM {}, but the manifest or the command line says {}",
            other.name(),
            release.name()
        );
        let help = format!(
            "say `tvm = \"{}\"` in the manifest or `--tvm {0}`, or leave it out: the compiler finds the release from names like this",
            other.name()
        );
        Some(Diagnostic::new(span_of(file, *at), message).help(help))
    }

    /// Where the first use of 0.26 and the first one of 0.27 are, in a file that has both.
    pub(crate) fn both(&self) -> Option<(Range<usize>, Range<usize>)> {
        let bytes = |range: &TextRange| range.start().to_usize()..range.end().to_usize();
        Some((bytes(&self.old.as_ref()?.0), bytes(&self.new.as_ref()?.0)))
    }

    /// The error of a file that has uses of both; `advice` says how the other release writes them.
    pub(crate) fn mixed(&self, file: FileId, advice: &[String]) -> Option<Diagnostic> {
        let ((old_at, old), (new_at, new)) = (self.old.as_ref()?, self.new.as_ref()?);
        let message = format!("the file is written for two releases of TVM: {new} is of 0.27, {old} of 0.26");
        let mut help = String::from("write all of it for one release");
        for spelled in advice {
            help += &format!("; {spelled}");
        }
        help += "; `docs/reference/intrinsics.md` has the names of both";
        let diagnostic = Diagnostic::new(span_of(file, *new_at), message);
        Some(
            diagnostic
                .note(span_of(file, *old_at), format!("{old} is of 0.26"))
                .help(help),
        )
    }

    fn say(place: &mut Option<(TextRange, String)>, range: TextRange, name: String) {
        place.get_or_insert((range, name));
    }

    /// A path behind `T.ptx`, which is called or not.
    fn path(&mut self, path: &[&str], called: bool, range: TextRange) {
        let Some(first) = path.first() else { return };
        let name = format!("T.ptx.{}", path.join("."));
        let script = &name["T.".len()..];
        let old = lang::is_old_ptx(&name, called);
        // Only the first use of each release is said, so that the tables of mnemonics are read where they decide.
        let said = if old { &self.old } else { &self.new };
        if said.is_some() {
            return;
        }
        let start = Lookup::family(first);
        let lookup = path[1..].iter().try_fold(start, |lookup, word| {
            let next = lookup?.token(&unescape(word)).ok()?;
            Some(Some(next))
        });
        let new = match lookup.flatten() {
            Some(lookup) => !called || lookup.candidates.iter().any(|c| c.missing().is_none()),
            None => matches!(script, "ptx.SINK" | "ptx.pred" | "ptx.addr"),
        };
        match (old, new) {
            (true, false) => Evidence::say(&mut self.old, range, name),
            (false, true) => Evidence::say(&mut self.new, range, name),
            _ => {}
        }
    }
}

/// More attributes in a chain than any name of the language has. The bound keeps the walk over a chain of thousands linear.
const LONGEST_PATH: usize = 64;

/// The function of 0.26 that a chain of 0.27 is: ``0.26 has `T.ptx.fence` for `T.ptx.fence.acq_rel.gpu` ``.
pub(crate) fn name_in_v26(chain: &str) -> Option<String> {
    let mut words = chain.strip_prefix("T.ptx.")?.split('.');
    let start = Lookup::family(words.next()?)?;
    let lookup = words.try_fold(start, |lookup, word| lookup.token(&unescape(word)).ok())?;
    let complete = lookup.candidates.iter().filter(|c| c.missing().is_none());
    let op = complete.filter_map(Tokens::row).next()?;
    Some(format!("0.26 has `T.{}` for `{chain}`", op.info().script))
}

/// The mnemonics of 0.27 that a function of 0.26 is: ``0.27 has `T.ptx["mapa.…"](d, addr, cta)` for `T.ptx.mapa` ``.
pub(crate) fn names_in_v27(function: &str) -> Option<String> {
    let op = Op::from_script(function.strip_prefix("T.")?)?;
    let lines = spelling::from_op(op).into_iter().take(MAX_SPELLINGS);
    let lines: Vec<String> = lines.map(|line| format!("`{line}`")).collect();
    (!lines.is_empty()).then(|| format!("0.27 has {} for `{function}`", lines.join(" or ")))
}

/// Lines of the table that a message names.
const MAX_SPELLINGS: usize = 3;

/// The first line of a text with calls of both releases.
pub const BOTH: &str = "# calls of both releases\n";

/// Whether a text may have operations of both releases, as printed IR does.
pub(crate) fn has_both(text: &str) -> bool {
    text.starts_with(BOTH) || is_printed(text)
}

/// Whether a text begins as printed IR does: with its imports as comments.
pub(crate) fn is_printed(text: &str) -> bool {
    let comments = text.lines().map_while(|line| line.strip_prefix('#'));
    comments
        .take(HEADER)
        .any(|line| line.starts_with(" from tvm.script import"))
}

/// The names behind `T.ptx` of a chain of attributes.
pub fn ptx_path(e: &ast::Expr) -> Option<Vec<&str>> {
    let mut path = Vec::new();
    let mut e = e;
    while let ast::Expr::Attribute(a) = e {
        if let ast::Expr::Name(root) = &*a.value {
            let is_ptx = root.id.as_str() == "T" && a.attr.as_str() == "ptx";
            path.reverse();
            return is_ptx.then_some(path);
        }
        if path.len() == LONGEST_PATH {
            return None;
        }
        path.push(a.attr.as_str());
        e = &a.value;
    }
    None
}

impl<'a> Visitor<'a> for Evidence {
    fn visit_expr(&mut self, e: &'a ast::Expr) {
        match e {
            ast::Expr::Call(call) => {
                if let Some(path) = ptx_path(&call.func) {
                    // The form in which 0.27 prints a call.
                    let last = call
                        .arguments
                        .args
                        .last()
                        .and_then(|arg| arg.as_string_literal_expr());
                    if last.is_some_and(|text| lang::is_ptx_mark(text.value.to_str()))
                        && path.first().is_some_and(|first| Lookup::family(first).is_some())
                    {
                        // A function of 0.26 may end with a string, too: such a call says nothing.
                        let name = format!("T.ptx.{}", path.join("."));
                        if !lang::is_old_ptx(&name, true) {
                            Evidence::say(&mut self.new, call.func.range(), name);
                        }
                        self.visit_arguments(&call.arguments);
                        return;
                    }
                    self.path(&path, true, call.func.range());
                    self.visit_arguments(&call.arguments);
                    return;
                }
            }
            ast::Expr::Subscript(s) if ptx_path(&s.value).is_some_and(|path| path.is_empty()) => {
                Evidence::say(&mut self.new, s.range(), "T.ptx[…]".into());
            }
            ast::Expr::Attribute(a) => {
                if let Some(path) = ptx_path(e) {
                    self.path(&path, false, e.range());
                    return;
                }
                if a.attr.as_str() == "ptx_legacy" {
                    Evidence::say(&mut self.new, e.range(), "T.ptx_legacy".into());
                }
            }
            _ => {}
        }
        walk_expr(self, e);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel_file::{Imports, KernelFile, ModuleText};
    use crate::source::SourceMap;
    use std::collections::BTreeMap;

    struct Said(Option<Release>);

    impl Imports for Said {
        fn read(&self, _: &str) -> Option<ModuleText> {
            None
        }

        fn release(&self) -> Option<Release> {
            self.0
        }
    }

    fn printed(call: &str, said: Option<Release>) -> Result<String, String> {
        built(call, said).map(|(text, _)| text)
    }

    /// The IR of a kernel with a call, and the messages of the lints.
    fn built(call: &str, said: Option<Release>) -> Result<(String, Vec<String>), String> {
        let text = format!(
            "@T.prim_func\ndef k(A: T.Buffer((64,), \"uint32\")):\n    T.device_entry()\n    cx = T.cta_id_in_cluster([2])\n    \
             bx = T.cta_id([2])\n    tx = T.thread_id([32])\n    {call}\n    A[tx] = T.uint32(1)\n"
        );
        let mut sources = SourceMap::new();
        let shown = |d: crate::diagnostic::Diagnostics, sources: &SourceMap| d.render(sources);
        let file =
            KernelFile::load(&mut sources, "k.py", &text, &Said(said)).map_err(|d| shown(d, &sources))?;
        let module = file
            .build(None, &BTreeMap::new())
            .map_err(|d| shown(d, &sources))?;
        let lints = file
            .lints()
            .into_iter()
            .map(|lint| lint.diagnostic.message.to_string());
        Ok((crate::ir::print(&module), lints.collect()))
    }

    #[test]
    fn a_file_that_is_valid_in_both_releases_is_of_the_one_that_the_build_names() {
        let call = "T.ptx.barrier.cluster.arrive()";
        let old = printed(call, None).unwrap();
        assert_eq!(printed(call, Some(Release::V26)).unwrap(), old);
        let new = printed(call, Some(Release::V27)).unwrap();
        assert_ne!(new, old);
        let aligned = printed("T.ptx.barrier.cluster.arrive.aligned()", Some(Release::V27)).unwrap();
        assert_eq!(aligned, old);
    }

    struct Beside(&'static str);

    impl Imports for Beside {
        fn read(&self, module: &str) -> Option<ModuleText> {
            (module == "beside").then(|| ModuleText {
                name: "beside.py".into(),
                text: format!("from tvm.script import tirx as T\ndef f(A):\n    {}\n", self.0),
                is_package: false,
            })
        }
    }

    #[test]
    fn a_file_that_is_valid_in_both_releases_is_of_the_one_that_its_imports_show() {
        let call = "T.ptx.barrier.cluster.arrive()";
        let beside = |text: &'static str| {
            let kernel = format!(
                "import beside\n@T.prim_func\ndef k(A: T.Buffer((64,), \"uint32\")):\n    T.device_entry()\n    \
                 cx = T.cta_id_in_cluster([2])\n    bx = T.cta_id([2])\n    tx = T.thread_id([32])\n    {call}\n    A[tx] = T.uint32(1)\n"
            );
            let mut sources = SourceMap::new();
            let shown =
                |d: crate::diagnostic::Diagnostics, sources: &SourceMap| -> String { d.render(sources) };
            let file = KernelFile::load(&mut sources, "k.py", &kernel, &Beside(text))
                .unwrap_or_else(|d| panic!("{}", shown(d, &sources)));
            let module = file
                .build(None, &BTreeMap::new())
                .unwrap_or_else(|d| panic!("{}", shown(d, &sources)));
            (crate::ir::print(&module), file.lints().len())
        };
        let of = |release| printed(call, Some(release)).unwrap();
        assert_eq!(
            beside("T.ptx.ld.global_.u32(A[0], A.ptr_to([1]))"),
            (of(Release::V27), 0)
        );
        assert_eq!(
            beside("T.ptx.mbarrier.init(A.ptr_to([0]), 1)"),
            (of(Release::V26), 0)
        );
        assert_eq!(beside("pass"), (of(Release::V26), 1));
    }

    #[test]
    fn a_call_with_two_meanings_is_reported_where_nothing_says_which_is_meant() {
        let lints = |call: &str, said: Option<Release>| built(call, said).unwrap().1;
        let call = "T.ptx.barrier.cluster.arrive()";
        let [message] = &lints(call, None)[..] else {
            panic!("one lint is expected: {:?}", lints(call, None));
        };
        assert!(message.contains("takes it as 0.26"), "{message}");
        assert!(lints(call, Some(Release::V26)).is_empty());
        assert!(lints(call, Some(Release::V27)).is_empty());
        // One meaning in both.
        assert!(lints("T.ptx.cp_async.commit_group()", None).is_empty());
        // The rest of the file says it.
        let both = "T.ptx.barrier.cluster.arrive.aligned()\n    T.ptx.barrier.cluster.wait()";
        assert!(lints(both, None).is_empty());
    }

    #[test]
    fn a_file_of_both_releases_is_an_error_that_shows_both_spellings() {
        let both = "T.ptx.barrier.cluster.arrive.aligned()\n    T.ptx.mbarrier.init(A.ptr_to([0]), 1)";
        let message = printed(both, None).unwrap_err();
        assert!(
            message.contains("0.27 has `T.ptx[\"mbarrier.init{.<layout>}{.<space>}.b64\"](addr, count)` for `T.ptx.mbarrier.init`"),
            "{message}"
        );
        assert!(
            message.contains(
                "0.26 has `T.ptx.barrier.cluster.arrive` for `T.ptx.barrier.cluster.arrive.aligned`"
            ),
            "{message}"
        );
    }

    #[test]
    fn a_file_of_another_release_than_the_named_one_is_an_error() {
        let message = printed("T.ptx.barrier.cluster.arrive.aligned()", Some(Release::V26)).unwrap_err();
        assert!(
            message.contains("is of TVM 0.27, but the manifest or the command line says 0.26"),
            "{message}"
        );
        assert!(message.contains("--tvm 0.27"), "{message}");
        let message = printed("T.ptx.mbarrier.init(A.ptr_to([0]), 1)", Some(Release::V27)).unwrap_err();
        assert!(message.contains("is of TVM 0.26"), "{message}");
    }
}
