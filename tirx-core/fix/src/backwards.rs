//! Which calls by mnemonic could be this call of TVM 0.26?
//!
//! Each line of the tables that names the call's row is tried (`line`), with the arguments as they are and in the other ways that say
//! the same in 0.27. What the arguments leave open gives several alternatives, the shortest mnemonics first.

use super::calls::{Argument, Literal, OldCall, StatementForm};
use super::edit::Edit;
use super::given::{DESTINATION, Given, bound, same_as, value_of};
use super::line::{Line, MOST};
use super::{absent, library, products, registers, values};
use tirx_ir::intrin::Op;
use tirx_ir::intrin::cache_policy;
use tirx_ir::intrin::mnemonic::instructions;
use tirx_ir::intrin::mnemonic::syntax::RowCall;

/// Functions that have another name in 0.27, with the same arguments.
const RENAMED: &[(&str, &str)] = &[
    ("ptx.ldmatrix_legacy", "ptx_legacy.ldmatrix"),
    ("ptx.mma.legacy", "ptx_legacy.mma"),
    ("ptx.cp_async.legacy", "s_tir.cp_async_raw"),
];

/// Functions of 0.26 that are rows with an argument more.
const SPECIAL: &[(&str, &str, &str, Literal)] = &[(
    "ptx.cp_async.mbarrier.arrive.noinc",
    "ptx.cp_async.mbarrier.arrive",
    "noinc",
    Literal::Int(1),
)];

/// What may become of a call.
pub(super) struct Alternatives {
    /// The best first.
    pub(super) edits: Vec<Edit>,
    /// Why there is none.
    pub(super) reason: String,
    /// An argument whose value decides between them and is not known.
    pub(super) undecided: Option<String>,
}

/// What may become of a call; `temporary` is the name of a variable for its value.
pub(super) fn alternatives(call: &OldCall, temporary: &str) -> Alternatives {
    let script = &call.name["T.".len()..];
    let mut out = Alternatives {
        edits: Vec::new(),
        reason: "no mnemonic is known to be the same operation with these arguments".into(),
        undecided: None,
    };
    let renamed = RENAMED
        .iter()
        .filter(|(old, _)| *old == script)
        .map(|(_, new)| *new);
    let special = SPECIAL.iter().find(|(name, ..)| *name == script);
    let op = Op::from_script(special.map_or(script, |(_, row, ..)| row));
    let other = op
        .into_iter()
        .flat_map(|op| op.row().also.iter().copied().chain([op.row().script]));
    for name in renamed.chain(other.filter(|name| !name.starts_with("ptx."))) {
        out.edits.push(Edit::Call(format!("T.{name}{}", call.arguments)));
    }
    let Some(op) = op else {
        if let Some(reason) = absent::function(script) {
            out.reason = reason.into();
            return out;
        }
        out.edits.push(as_it_is(call));
        return out;
    };
    out.edits.extend(mapped(call, op, temporary));
    let Some(mut given) = bound(op, call) else {
        out.reason = "its arguments are not written one by one".into();
        out.edits.push(as_it_is(call));
        return out;
    };
    if let Some(reason) = absent::reason(op, &given) {
        out.reason = reason.into();
        out.edits.clear();
        return out;
    }
    let op = same_as(op);
    let values = written(call, op, &given, temporary, &mut out.reason);
    out.edits.extend(values);
    out.edits.extend(values::in_pair(call, op, &given, temporary));
    out.edits.extend(library::query(call, op, &given, temporary));
    out.edits
        .extend(products::filled(op, &given).into_iter().map(Edit::Call));
    out.edits
        .extend(products::stationary(op, &given).into_iter().map(Edit::Call));
    out.edits
        .extend(values::acquiring(op, &given).into_iter().map(Edit::Call));
    if let Some((_, _, argument, value)) = special {
        set(&mut given, argument, Argument::from_literal(value.clone()));
    }
    for Variant { given, before } in variants(given, temporary) {
        for instruction in instructions() {
            let Some(row) = &instruction.row else { continue };
            let Some(line) = Line::from_call(instruction, row, op.row().script) else {
                continue;
            };
            let Some(line) = line.solved(row, &given) else {
                continue;
            };
            out.undecided = out.undecided.or_else(|| line.undecided().map(str::to_string));
            let is_given = |name: &str| given.iter().any(|(known, _)| *known == name);
            let stores = match row.result {
                Some(result) => Some(result).filter(|_| !is_given("dst")),
                None => destination(row).filter(|_| !is_given(DESTINATION)),
            };
            for edit in edits(call, &line, &given, stores, temporary, &mut out.reason) {
                let Some(edit) = edit.after(&before, call) else {
                    continue;
                };
                if out.edits.len() < MOST && !out.edits.contains(&edit) {
                    out.edits.push(edit);
                }
            }
        }
    }
    out.edits.push(as_it_is(call));
    out
}

/// The call as it is: some calls are of both releases.
fn as_it_is(call: &OldCall) -> Edit {
    Edit::Call(format!("{}{}", call.name, call.arguments))
}

/// The operand that a call of 0.26 writes to, or gives as its value without a destination.
fn destination(row: &RowCall) -> Option<&'static str> {
    let (_, operand) = row.args.iter().find(|(name, _)| *name == DESTINATION)?;
    Some(operand)
}

/// A call that gives a value, as the instruction that writes it.
fn written(call: &OldCall, op: Op, given: &Given, temporary: &str, reason: &mut String) -> Vec<Edit> {
    let Some(around) = &call.around else {
        return Vec::new();
    };
    let into = |target: &str| values::written(op, given, target);
    let mut out = Vec::new();
    match &around.form {
        StatementForm::Assign { target } => out.extend(into(target).map(|call| Edit::Statement(vec![call]))),
        StatementForm::Declare { target, annotation } if !annotation.starts_with("T.let") => {
            let declared = format!("{target}: {annotation}");
            out.extend(into(target).map(|call| Edit::Statement(vec![declared, call])));
        }
        _ => {}
    }
    match around.bound {
        Some(why) => *reason = why.into(),
        None => {
            let call = into(&around.variable(temporary));
            out.extend(call.map(|call| Edit::with_variable(around, temporary, "float32", call)));
        }
    }
    out
}

/// `mapa` of a number: 0.26 takes a pointer, 0.27 the address in shared memory.
fn mapped(call: &OldCall, op: Op, temporary: &str) -> Vec<Edit> {
    let (Op::PtxMapa, Some(given), Some(around)) = (op, bound(op, call), &call.around) else {
        return Vec::new();
    };
    let is_number =
        value_of(&given, "ptx_type").is_some_and(|ty| ty.known() == Some(&Literal::Text("u32".into())));
    let (Some(pointer), Some(rank)) = (value_of(&given, "ptr"), value_of(&given, "rank")) else {
        return Vec::new();
    };
    if !is_number || around.bound.is_some() {
        return Vec::new();
    }
    let into = |target: &str| mapa(target, pointer, rank);
    let mut out = Vec::new();
    match &around.form {
        StatementForm::Assign { target } => {
            out.extend(into(target).map(|call| Edit::Statement(vec![call])));
        }
        StatementForm::Declare { target, annotation } if !annotation.starts_with("T.let") => {
            let declared = format!("{target}: {annotation}");
            out.extend(into(target).map(|call| Edit::Statement(vec![declared.clone(), call])));
        }
        _ => {}
    }
    let all = into(&around.variable(temporary));
    out.extend(all.map(|call| Edit::with_variable(around, temporary, "uint32", call)));
    out
}

/// The address in shared memory of what `pointer` is in another block of the cluster, with the block's number as it is written and
/// converted to what 0.27 takes.
fn mapa(target: &str, pointer: &Argument, rank: &Argument) -> [String; 2] {
    let converted = match rank.literal {
        Some(_) => rank.text.clone(),
        None => format!("T.uint32({})", rank.text),
    };
    [rank.text.clone(), converted].map(|rank| {
        format!(
            "T.ptx[\"mapa.shared::cluster.u32\"]({target}, T.cuda.cvta_generic_to_shared({}), {rank})",
            pointer.text
        )
    })
}

/// The calls of a line in the place of a call; `result` is the operand that its value is written to.
fn edits(
    call: &OldCall,
    line: &Line,
    given: &Given,
    result: Option<&'static str>,
    temporary: &str,
    reason: &mut String,
) -> Vec<Edit> {
    let Some(result) = result else {
        let calls = line.calls(given, None);
        return calls.into_iter().map(|call| Edit::Call(call.text)).collect();
    };
    let Some(around) = &call.around else {
        *reason = "its value is used outside of a kernel".into();
        return Vec::new();
    };
    let into = |target: &str| line.calls(given, Some((result, target)));
    let mut out = Vec::new();
    match &around.form {
        StatementForm::Assign { target } => {
            out.extend(
                into(target)
                    .into_iter()
                    .map(|call| Edit::Statement(vec![call.text])),
            );
        }
        StatementForm::Declare { target, annotation } if !annotation.starts_with("T.let") => {
            let declared = format!("{target}: {annotation}");
            let calls = into(target).into_iter();
            out.extend(calls.map(|call| Edit::Statement(vec![declared.clone(), call.text])));
        }
        _ => {}
    }
    if let Some(why) = around.bound {
        *reason = why.into();
        return out;
    }
    let target = around.variable(temporary);
    for new in into(&target) {
        let dtypes = new.dtypes(call, result);
        out.extend(dtypes.map(|dtype| Edit::with_variable(around, temporary, &dtype, new.text.clone())));
    }
    let is_pointer = call.name == "T.ptx.map_shared_rank" && !call.is_reinterpreted;
    let pointers = out.iter().filter(|_| is_pointer).filter_map(as_pointer);
    let pointers: Vec<Edit> = pointers.collect();
    [pointers, out].concat()
}

/// An address that is written to a variable as a pointer, which instructions of 0.27 take: an address of 64 bits they refuse.
fn as_pointer(edit: &Edit) -> Option<Edit> {
    let Edit::Value { before, value } = edit else {
        return None;
    };
    Some(Edit::Value {
        before: before.clone(),
        value: format!("T.reinterpret(\"handle\", {value})"),
    })
}

/// The arguments of a call in a way that 0.27 may have, and the statements that they need before.
struct Variant {
    given: Given,
    before: Vec<String>,
}

/// The arguments as they are, or in another way that says the same where 0.27 has only that.
fn variants(given: Given, temporary: &str) -> Vec<Variant> {
    let mut given = with_two_lists(with_single_block(with_guard(with_policy(given))));
    // A predicate that holds.
    given.retain(|(name, values)| {
        *name != "pred" || !matches!(&values[..], [one] if one.known() == Some(&Literal::Int(1)))
    });
    let before = in_other_block(&mut given, temporary);
    let mut all = vec![given];
    all.extend(one_address(&all[0]));
    all.extend(registers::of_elements(&all[0]));
    let all = all.into_iter().flat_map(|given| {
        let variants = before.iter().map(move |before| Variant {
            given: given.clone(),
            before: before.clone(),
        });
        variants.collect::<Vec<_>>()
    });
    all.collect()
}

/// A copy under a condition by a predicated instruction, where 0.26 has a keyword for it.
fn with_guard(mut given: Given) -> Given {
    let fills =
        value_of(&given, "fill_mode").is_some_and(|fill| fill.known() != Some(&Literal::Text(String::new())));
    let condition =
        value_of(&given, "predicate").filter(|condition| condition.known() != Some(&Literal::Int(-1)));
    if let Some(condition) = condition.filter(|_| !fills).cloned() {
        set(&mut given, "pred", condition);
        set(&mut given, "predicate", Argument::from_literal(Literal::Int(-1)));
    }
    given
}

/// A copy for the blocks of a mask where the mask names one alone: 0.26 leaves the multicast out.
fn with_single_block(mut given: Given) -> Given {
    let number = |given: &Given, name: &str| match value_of(given, name)?.known() {
        Some(Literal::Int(value)) => Some(*value),
        _ => None,
    };
    let is_one = number(&given, "cta_mask").is_some_and(|mask| mask.count_ones() == 1);
    if is_one && value_of(&given, "multicast").is_none() {
        set(&mut given, "cta_mask", Argument::from_literal(Literal::Int(0)));
    }
    given
}

/// The registers of A and those of the sum, which 0.26 takes as one list.
fn with_two_lists(mut given: Given) -> Given {
    let Some(at) = given.iter().position(|(name, _)| *name == "reg_list") else {
        return given;
    };
    let (_, all) = given.remove(at);
    // A list stands for all registers of A, else there are four of them.
    let of_a = match all.first() {
        Some(first) if first.text.starts_with('*') => 1,
        _ => all.len().min(4),
    };
    let (a, accums) = all.split_at(of_a);
    given.push(("a_regs", a.to_vec()));
    given.push(("accums", accums.to_vec()));
    given
}

fn set(given: &mut Given, name: &'static str, value: Argument) {
    given.retain(|(known, _)| *known != name);
    given.push((name, vec![value]));
}

/// A cache policy by its number, where 0.26 takes a name.
fn with_policy(mut given: Given) -> Given {
    let hint = value_of(&given, "cache_hint").and_then(|hint| match hint.known() {
        Some(Literal::Text(name)) => cache_policy(name),
        _ => None,
    });
    if let Some(bits) = hint.filter(|_| value_of(&given, "cache_policy").is_none()) {
        set(
            &mut given,
            "cache_hint",
            Argument::from_literal(Literal::Text(String::new())),
        );
        set(
            &mut given,
            "cache_policy",
            Argument::from_text(&format!("T.uint64(0x{bits:016x})")),
        );
    }
    given
}

/// A barrier of another block of the cluster by its address there, where 0.26 takes the block's number. The result are the ways to
/// get it; one of no statements where the barrier is of this block.
fn in_other_block(given: &mut Given, temporary: &str) -> Vec<Vec<String>> {
    let (Some(bar), Some(rank)) = (value_of(given, "bar"), value_of(given, "remote")) else {
        return vec![Vec::new()];
    };
    let before = mapa(temporary, bar, rank).map(|call| vec![format!("{temporary}: T.uint32"), call]);
    let before = before.to_vec();
    given.retain(|(name, _)| *name != "remote");
    set(given, "bar", Argument::from_text(temporary));
    set(
        given,
        "space",
        Argument::from_literal(Literal::Text("shared::cluster".into())),
    );
    before
}

/// An address of tensor memory that is given in parts, as one.
fn one_address(given: &Given) -> Option<Given> {
    let part = |name: &str| given.iter().find(|(known, _)| *known == name);
    let address = ["src_addr", "dst_addr", "taddr"].into_iter().find_map(part)?;
    let text = |name: &str| Some(part(name)?.1.first()?.text.clone());
    let (row, col) = (text("row")?, text("col")?);
    if (row.as_str(), col.as_str()) == ("0", "0") {
        return None;
    }
    let sum = format!("T.cuda.get_tmem_addr({}, {row}, {col})", address.1.first()?.text);
    let zero = || vec![Argument::from_literal(Literal::Int(0))];
    let parts = given.iter().map(|(name, values)| match *name {
        name @ ("row" | "col") => (name, zero()),
        name if name == address.0 => (name, vec![Argument::from_text(&sum)]),
        name => (name, values.clone()),
    });
    Some(parts.collect())
}
