//! What was a function of PTX in 0.26 and is one of TVM's library in 0.27, which a file has to import.

use super::calls::{Literal, OldCall, StatementForm};
use super::edit::{self, Edit};
use super::given::{Given, value_of};
use tirx_ir::intrin::Op;

/// Reads whether a launch was cancelled: several instructions.
const QUERY: &str = "query_cancel_first_ctaid_x";
const OLD_QUERY: &str = "T.ptx.clc_query_cancel(";
const IMPORT: &str = "from tvm.backend.cuda.lang.clc import query_cancel_first_ctaid_x\n";

/// A text with the import that its calls will need, and the line that each of its lines had.
pub(super) fn with_import(text: &str) -> (String, Vec<usize>) {
    let lines: Vec<usize> = (1..=text.matches('\n').count() + 1).collect();
    let first = ["from tvm", "import tvm"]
        .iter()
        .filter_map(|start| match text.starts_with(start) {
            true => Some(0),
            false => Some(text.find(&format!("\n{start}"))? + 1),
        })
        .min();
    // Without one it stands before the first statement.
    let before = text.find(|c: char| !c.is_whitespace()).map(|_| {
        let lines = text.split_inclusive('\n');
        let comments = lines.take_while(|line| line.starts_with('#') || line.trim().is_empty());
        comments.map(str::len).sum::<usize>()
    });
    let is_plain =
        |at: &usize| !text[*at..].starts_with(['"', '\'']) && !text[*at..].starts_with("from __future__");
    let first = first.or(before.filter(is_plain));
    match first {
        Some(at) if text.contains(OLD_QUERY) && !text.contains(IMPORT) => {
            edit::with_lines(text, &lines, &[(at..at, IMPORT.into())])
        }
        _ => (text.to_string(), lines),
    }
}

/// The new text without that import where no call needs it.
pub(super) fn without_unused_import(before: &str, after: &str) -> String {
    let is_used = after.contains(&format!("{QUERY}("));
    match is_used || before.contains(IMPORT) {
        true => after.to_string(),
        false => after.replacen(IMPORT, "", 1),
    }
}

/// A call of the library's function in the place of one of PTX.
pub(super) fn query(call: &OldCall, op: Op, given: &Given, temporary: &str) -> Vec<Edit> {
    let (Op::PtxClcQueryCancel, Some(around), Some(handle)) = (op, &call.around, value_of(given, "handle"))
    else {
        return Vec::new();
    };
    let keyword = match value_of(given, "use_ld_acquire").map(|value| value.known()) {
        Some(Some(Literal::Int(0))) => ", use_ld_acquire=False",
        _ => "",
    };
    let into = |target: &str| format!("{QUERY}({target}, {}{keyword})", handle.text);
    let mut out = Vec::new();
    match &around.form {
        // Only the name of a variable stands for the variable in that function.
        StatementForm::Assign { target } if !target.contains(['[', '.']) => {
            out.push(Edit::Statement(vec![into(target)]));
        }
        StatementForm::Declare { target, annotation } if !annotation.starts_with("T.let") => {
            out.push(Edit::Statement(vec![
                format!("{target}: {annotation}"),
                into(target),
            ]));
        }
        _ => {}
    }
    if around.bound.is_none() {
        let call = into(&around.variable(temporary));
        out.push(Edit::with_variable(around, temporary, "uint32", call));
    }
    out
}
