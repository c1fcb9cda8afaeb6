//! Launches and regions: scope ids, `T.device_entry`, `T.attr`, `T.func_attr`, `T.launch_thread`.

use std::rc::Rc;
use std::sync::Arc;

use super::super::eval::{Frame, Interpreter, Param, Value, optional, required};
use super::super::typing;
use super::call::{Function, MatchedCall, function};
use super::convert;
use crate::diagnostic::{Diagnostic, Result};
use crate::ir::abi::keys::{
    COOPERATIVE_LAUNCH, DYNAMIC_SHARED_MEMORY, KERNEL_LAUNCH_PARAMS, PROGRAMMATIC_LAUNCH,
};
use crate::ir::abi::{LaunchParam, keys};
use crate::ir::{
    AttrNode, AttrValue, DType, Expr, ExprKind, HINT, HINT_MESSAGE, IterKind, IterVar, ScopeIdDef,
    ScopeIdKind, Stmt, StmtKind, Var,
};
use crate::source::Span;

const EXTENTS: &[Param] = &[optional("extents"), optional("dtype")];
const EXTENTS_PREFERRED: &[Param] = &[optional("extents"), optional("preferred"), optional("dtype")];
const SCOPE_ID: &[Param] = &[
    required("extents"),
    required("parent"),
    required("cur"),
    optional("dtype"),
];
const ATTR: &[Param] = &[required("node_or_dict"), optional("attr_key"), optional("value")];
const ATTRS: &[Param] = &[required("attrs")];
const LAUNCH: &[Param] = &[required("thread"), required("extent")];
const ENV: &[Param] = &[required("thread_tag"), optional("dtype")];
const WORDS: &[Param] = &[optional("message")];

pub(super) static FUNCTIONS: &[Function] = &[
    function("T.device_entry", &[], device_entry),
    function("T.cluster_id", EXTENTS, |i, c| {
        scope_id(i, c, ScopeIdKind::ClusterId)
    }),
    function("T.cta_id", EXTENTS_PREFERRED, |i, c| {
        scope_id(i, c, ScopeIdKind::CtaId)
    }),
    function("T.cta_id_in_cluster", EXTENTS_PREFERRED, |i, c| {
        scope_id(i, c, ScopeIdKind::CtaIdInCluster)
    }),
    function("T.cta_id_in_pair", const { &[optional("dtype")] }, cta_id_in_pair),
    function("T.warpgroup_id", EXTENTS, |i, c| {
        scope_id(i, c, ScopeIdKind::WarpgroupId)
    }),
    function("T.warp_id", EXTENTS, |i, c| scope_id(i, c, ScopeIdKind::WarpId)),
    function("T.warp_id_in_wg", EXTENTS, |i, c| {
        scope_id(i, c, ScopeIdKind::WarpIdInWg)
    }),
    function("T.lane_id", EXTENTS, |i, c| scope_id(i, c, ScopeIdKind::LaneId)),
    function("T.thread_id", EXTENTS, |i, c| {
        scope_id(i, c, ScopeIdKind::ThreadId)
    }),
    function("T.thread_id_in_wg", EXTENTS, |i, c| {
        scope_id(i, c, ScopeIdKind::ThreadIdInWg)
    }),
    function("T.scope_id", SCOPE_ID, any_scope_id),
    function("T.attr", ATTR, attr),
    function("T.func_attr", ATTRS, func_attr),
    function("T.launch_thread", LAUNCH, launch_thread),
    function("T.env_thread", ENV, env_thread),
    function("T.hint", WORDS, hint),
];

fn device_entry(interp: &mut Interpreter, call: &mut MatchedCall) -> Result<Value> {
    let span = call.span;
    let function = interp.function_mut("T.device_entry()", span)?;
    function.on_device = true;
    if let Some(before) = function.returned {
        let message = "\"return\" before T.device_entry() ends the host function: nothing would be launched";
        let d = Diagnostic::new(before, message).note(span, "the kernel begins here");
        return Err(Box::new(
            d.help("remove it, or return within the kernel to end a thread"),
        ));
    }
    let wrap = move |body: Stmt| {
        let on = Expr::bool(true).at(span);
        Stmt::attr(AttrNode::None, keys::DEVICE_ENTRY, on, body, span)
    };
    interp.emit_flat(span, Box::new(wrap))?;
    Ok(Value::None)
}

fn extents(call: &MatchedCall, name: &str) -> Result<Option<Vec<Expr>>> {
    const EXPECTED: &str = "a list of one to three extents, such as [128]";
    let Some((value, _)) = call.get(name) else {
        return Ok(None);
    };
    // A string would name a symbolic extent, which would have no value here.
    let text = |items: &[Value]| items.iter().any(|item| matches!(item, Value::Str(_)));
    match value.as_items() {
        None => return call.expected(name, EXPECTED),
        Some(items) if text(&items) => return call.fail("an extent must be an integer, found a text"),
        Some(_) => {}
    }
    let extents = call.shape(name)?;
    if extents.is_empty() || extents.len() > 3 {
        return call.expected(name, EXPECTED);
    }
    if extents.iter().any(|e| e.is_int(0)) {
        return call.fail("an extent must be at least 1, found 0");
    }
    extents.iter().try_for_each(|e| fits(call, e))?;
    Ok(Some(extents))
}

/// An extent that is known fits the 32 bits that launches have.
fn fits(call: &MatchedCall, extent: &Expr) -> Result<()> {
    match extent.as_int() {
        Some(v) if v > i128::from(i32::MAX) => call.fail(format!("an extent must fit 32 bits, found {v}")),
        Some(v) if v < 0 => call.fail(format!("an extent must be at least 1, found {v}")),
        _ => Ok(()),
    }
}

fn scope_id(interp: &mut Interpreter, call: &mut MatchedCall, kind: ScopeIdKind) -> Result<Value> {
    let extents = extents(call, "extents")?;
    let preferred = extents_of_same_length(call, extents.as_deref())?;
    declare(interp, call, kind, extents, preferred)
}

fn extents_of_same_length(call: &MatchedCall, given: Option<&[Expr]>) -> Result<Option<Vec<Expr>>> {
    let preferred = extents(call, "preferred")?;
    match (&preferred, given) {
        (Some(p), Some(e)) if p.len() != e.len() => call.fail(format!(
            "{} preferred extents were given for {} extents",
            p.len(),
            e.len()
        )),
        _ => Ok(preferred),
    }
}

fn declare(
    interp: &mut Interpreter,
    call: &MatchedCall,
    kind: ScopeIdKind,
    extents: Option<Vec<Expr>>,
    preferred: Option<Vec<Expr>>,
) -> Result<Value> {
    // Without extents the number of dimensions is that of the unpacked names.
    let count = match &extents {
        Some(e) => e.len(),
        None if call.names.names_are_tuple => call.names.names.len().clamp(1, 3),
        None => 1,
    };
    let dtype = call.index_dtype()?.unwrap_or(DType::INT32);
    let vars: Vec<Var> = (0..count)
        .map(|i| Var::at(call.names.name_at(i, count, kind.name()), dtype, call.span))
        .collect();
    let values: Vec<Value> = vars
        .iter()
        .map(|v| Value::Expr(Expr::var(v).at(call.span)))
        .collect();
    let def = ScopeIdDef {
        kind,
        vars,
        extents,
        preferred,
    };
    interp.emit(Stmt::new(StmtKind::ScopeId(def), call.span))?;
    Ok(match <[Value; 1]>::try_from(values) {
        Ok([single]) if !call.names.names_are_tuple => single,
        Ok([single]) => Value::list(vec![single]),
        Err(several) => Value::list(several),
    })
}

fn cta_id_in_pair(interp: &mut Interpreter, call: &mut MatchedCall) -> Result<Value> {
    declare(interp, call, ScopeIdKind::CtaIdInPair, None, None)
}

fn any_scope_id(interp: &mut Interpreter, call: &mut MatchedCall) -> Result<Value> {
    let (parent, cur) = (call.text("parent")?, call.text("cur")?);
    let kind = match (&*parent, &*cur) {
        ("kernel", "cluster") => ScopeIdKind::ClusterId,
        ("kernel", "cta") => ScopeIdKind::CtaId,
        ("cluster", "cta") => ScopeIdKind::CtaIdInCluster,
        ("cta", "warpgroup") => ScopeIdKind::WarpgroupId,
        ("cta", "warp") => ScopeIdKind::WarpId,
        ("warpgroup", "warp") => ScopeIdKind::WarpIdInWg,
        ("cta", "thread") => ScopeIdKind::ThreadId,
        ("warpgroup", "thread") => ScopeIdKind::ThreadIdInWg,
        ("warp", "thread") => ScopeIdKind::LaneId,
        _ => return call.fail(format!("there is no scope id from \"{parent}\" to \"{cur}\"")),
    };
    let extents = extents(call, "extents")?;
    declare(interp, call, kind, extents, None)
}

/// A region for `with …:` or, as a statement of its own, for the rest of its block.
fn region(value: Value, wrap: impl Fn(Stmt) -> Stmt + 'static) -> Rc<Frame> {
    Rc::new(Frame::Region {
        value,
        wrap: Box::new(wrap),
    })
}

/// The value of an attribute region: an expression or a string.
fn attr_value(value: &Value, span: Span) -> Result<Expr> {
    match value {
        Value::Str(s) => Ok(Expr::string(&**s).at(span)),
        other => convert::expr(other, span),
    }
}

/// Attributes of TIRx that a pass reads.
const KEYS: [&str; 8] = [
    keys::KERNEL_LAUNCH_PARAMS,
    keys::DYNAMIC_SHARED_MEMORY,
    keys::PROGRAMMATIC_LAUNCH,
    keys::COOPERATIVE_LAUNCH,
    keys::MIN_BLOCKS_PER_SM,
    keys::MAX_BLOCKS_PER_CLUSTER,
    keys::MAX_REGISTERS,
    keys::DEVICE_ENTRY,
];

/// Finds an attribute key of [`KEYS`] that is a near miss.
fn lint_key(interp: &mut Interpreter, key: &str, span: Span) {
    if KEYS.contains(&key) || !key.starts_with("tirx.") {
        return;
    }
    if let Some(near) = super::super::eval::suggest(key, KEYS) {
        let message = format!("nothing reads the attribute \"{key}\"");
        interp.lint(
            "unread-option",
            span,
            message,
            &format!("did you mean \"{near}\"?"),
        );
    }
}

fn attr(interp: &mut Interpreter, call: &mut MatchedCall) -> Result<Value> {
    interp.function_mut("T.attr", call.span)?;
    let span = call.span;
    let (node, at) = call.need("node_or_dict", "a dictionary or a node")?;
    if let Value::Dict(dict) = node {
        if call.get("attr_key").is_some() {
            return call.fail("a dictionary stands alone");
        }
        let mut frames = Vec::new();
        for (key, value) in dict.borrow().iter() {
            let Some(key) = convert::text(key) else {
                return call.fail("keys must be strings");
            };
            lint_key(interp, &key, at.or(span));
            let value = attr_value(value, at.or(span))?;
            frames.push(region(Value::None, move |body| {
                Stmt::attr(AttrNode::None, key.clone(), value.clone(), body, span)
            }));
        }
        return Ok(Value::Frame(match <[Rc<Frame>; 1]>::try_from(frames) {
            Ok([single]) => single,
            Err(frames) => Rc::new(Frame::Many(frames)),
        }));
    }
    let node = match node {
        Value::Str(s) => AttrNode::Str((&**s).into()),
        Value::Buffer(b) => AttrNode::Buffer(b.clone()),
        Value::Object(_) => return call.expected("node_or_dict", "a dictionary or a node"),
        value if convert::const_int(value) == Some(0) => AttrNode::None,
        value => match environment(interp, value) {
            Some(iter) => AttrNode::IterVar(iter),
            None => AttrNode::Expr(convert::expr(value, at.or(span))?),
        },
    };
    let key = call.text("attr_key")?;
    let (value, at) = call.need("value", "an expression or a string")?;
    let value = attr_value(value, at.or(span))?;
    Ok(Value::Frame(region(Value::None, move |body| {
        Stmt::attr(node.clone(), key.clone(), value.clone(), body, span)
    })))
}

fn func_attr(interp: &mut Interpreter, call: &mut MatchedCall) -> Result<Value> {
    let (value, at) = call.need("attrs", "a dictionary")?;
    let attrs = convert::attr_dict(value, at.or(call.span))?;
    for key in attrs.keys() {
        lint_key(interp, key, at.or(call.span));
    }
    let function = interp.function_mut("T.func_attr", call.span)?;
    for (key, value) in attrs {
        if function.attrs.contains_key(&key) && &*key != "global_symbol" {
            return call.fail(format!("the attribute \"{key}\" is set twice"));
        }
        if function.is_private && &*key == "global_symbol" {
            return call.fail_with(
                "a private function has no \"global_symbol\"",
                "remove private=True, or the attribute",
            );
        }
        if &*key == "global_symbol" && value.as_str().is_none() {
            return call.fail("\"global_symbol\" is a name: a string");
        }
        if &*key == KERNEL_LAUNCH_PARAMS {
            check_launch_params(call, &value)?;
        }
        function.attrs.insert(key, value);
    }
    Ok(Value::None)
}

/// Launch parameters are hardware indices and flags.
fn check_launch_params(call: &MatchedCall, value: &AttrValue) -> Result<()> {
    let items = value.as_list();
    let texts: Option<Vec<&str>> = items.and_then(|items| items.iter().map(AttrValue::as_str).collect());
    let Some(texts) = texts else {
        return call.fail(format!("\"{KERNEL_LAUNCH_PARAMS}\" must be a list of strings"));
    };
    let mut unknown = texts
        .into_iter()
        .filter(|text| LaunchParam::from_tag(text).is_none());
    let Some(text) = unknown.next() else {
        return Ok(());
    };
    let flags = [PROGRAMMATIC_LAUNCH, COOPERATIVE_LAUNCH, DYNAMIC_SHARED_MEMORY];
    let help = match super::super::eval::suggest(text, TAGS.into_iter().chain(flags)) {
        Some(near) => format!("did you mean \"{near}\"?"),
        None => format!(
            "flags are {}; the rest are indices such as blockIdx.x",
            flags.join(", ")
        ),
    };
    call.fail_with(format!("unknown launch parameter \"{text}\""), help)
}

/// Known hardware indices.
const TAGS: [&str; 20] = [
    "blockIdx.x",
    "blockIdx.y",
    "blockIdx.z",
    "threadIdx.x",
    "threadIdx.y",
    "threadIdx.z",
    "clusterCtaIdx.x",
    "clusterCtaIdx.y",
    "clusterCtaIdx.z",
    "preferredClusterCtaIdx.x",
    "preferredClusterCtaIdx.y",
    "preferredClusterCtaIdx.z",
    "clusterIdx.x",
    "clusterIdx.y",
    "clusterIdx.z",
    "vthread",
    "vthread.x",
    "vthread.y",
    "vthread.z",
    "cthread",
];

/// Refuses an unknown hardware index.
pub(super) fn check_tag(call: &MatchedCall, tag: &str) -> Result<()> {
    if TAGS.contains(&tag) {
        return Ok(());
    }
    let help = match super::super::eval::suggest(tag, TAGS) {
        Some(near) => format!("did you mean \"{near}\"?"),
        None => "indices are blockIdx.x/y/z, threadIdx.x/y/z, clusterCtaIdx.x/y/z and vthread".to_string(),
    };
    call.fail_with(format!("unknown thread index \"{tag}\""), help)
}

/// A thread index with its variable.
pub(super) fn thread_iter(var: Var, tag: Arc<str>) -> IterVar {
    IterVar {
        var,
        dom: None,
        kind: IterKind::ThreadIndex,
        thread_tag: tag,
    }
}

fn launch_thread(interp: &mut Interpreter, call: &mut MatchedCall) -> Result<Value> {
    interp.function_mut("T.launch_thread", call.span)?;
    let span = call.span;
    let extent = call.expr("extent")?;
    if !extent.dtype.is_integer() {
        return call.expected("extent", "an integer");
    }
    fits(call, &extent)?;
    let (thread, _) = call.need("thread", "a thread index such as \"threadIdx.x\"")?;
    let iter = match convert::text(thread) {
        Some(tag) => {
            check_tag(call, &tag)?;
            let default = tag.replace('.', "_");
            let var = Var::at(call.names.name_or(&default), extent.dtype, span);
            Some(thread_iter(var, tag))
        }
        None => environment(interp, thread),
    };
    let Some(iter) = iter else {
        return call.expected("thread", "a thread index such as \"threadIdx.x\"");
    };
    let extent = typing::cast(extent.into(), iter.var.dtype(), span)?;
    let key = if iter.thread_tag.starts_with("vthread") {
        keys::VIRTUAL_THREAD
    } else {
        keys::THREAD_EXTENT
    };
    let value = Value::Expr(Expr::var(&iter.var).at(span));
    Ok(Value::Frame(region(value, move |body| {
        Stmt::attr(AttrNode::IterVar(iter.clone()), key, extent.clone(), body, span)
    })))
}

/// The hardware index of a variable of `T.env_thread`.
fn environment(interp: &Interpreter, value: &Value) -> Option<IterVar> {
    let ExprKind::Var(var) = &value.as_expr()?.kind else {
        return None;
    };
    interp.env_thread(var).cloned()
}

/// `T.env_thread("threadIdx.x")`: the variable of a hardware index before it has an extent.
fn env_thread(interp: &mut Interpreter, call: &mut MatchedCall) -> Result<Value> {
    let tag = call.text("thread_tag")?;
    check_tag(call, &tag)?;
    let dtype = call.dtype_or("dtype", DType::INT32)?;
    let var = Var::at(call.names.name_or(&tag.replace('.', "_")), dtype, call.span);
    let value = Value::Expr(Expr::var(&var).at(call.span));
    let function = interp.function_mut("T.env_thread", call.span)?;
    function.env_threads.push(thread_iter(var, tag));
    Ok(value)
}

/// `T.hint("message", key=value)`: notes for readers of the kernel. They have no effect and stay in the IR.
fn hint(interp: &mut Interpreter, call: &mut MatchedCall) -> Result<Value> {
    interp.function_mut("T.hint", call.span)?;
    let message = call.text_or("message", "")?;
    let mut words: Vec<(Arc<str>, AttrValue)> = vec![(HINT_MESSAGE.into(), AttrValue::Str(message))];
    for (name, value, at) in &call.words {
        words.push(((&**name).into(), convert::attr(value, at.or(call.span))?));
    }
    let span = call.span;
    Ok(Value::Frame(region(Value::None, move |body| {
        let on = Expr::int32(1).at(span);
        Stmt::attr(AttrNode::Dict(words.clone()), HINT, on, body, span)
    })))
}
