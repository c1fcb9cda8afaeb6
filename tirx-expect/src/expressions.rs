//! Simulator runs written beside the kernel, as expressions.
//!
//! ```text
//! # sim: scale
//! #   A: float32[64] = i * 0.5
//! #   B: float32[64] = 0 -> A[i] * s
//! #   s = 3.0
//! @T.prim_func
//! def scale(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32"), s: T.float32): …
//! ```
//!
//! `# sim: scale on sm_90a, sm_100a` lowers and runs the kernel for each of these GPUs.
//!
//! A kernel with compile-time parameters gets their values in parentheses, `# sim: scale(N=64)`; expressions and shapes see
//! them. The lines stand at the beginning of a line anywhere in the file. A tensor has a dtype, a shape and the expression of
//! an element, a scalar has its value; arguments have the names of parameters. `i`, `j`, `k`, `l`, `m`, `n` are an element's
//! coordinates, one more for the lanes of a vector. What follows `->` must be there after the run, to a
//! relative difference of what follows `+-`; without it the tensor must be as before. Expected values are computed
//! from what all arguments were before the run. `fault: text` is a part of the message that the run ends with; with
//! `seeds: n` the run is made once for each schedule from 0 on, and one of them at least ends with the fault.
//!
//! `error: B 1e-6` bounds the relative error of the float tensor `B` against the same computation in double precision.
//!
//! `ranks: n` runs the kernel on n devices at once. Its tensors are symmetric memory, and expressions see `rank`. A name of an
//! argument is then a list with an element for each rank: `B: float32[4] = 0 -> A[(rank + 1) % 2][i]`. The text `"B@1"` is the address of
//! `B` on rank 1, and `"B@*"` that of its multicast window: `P: uint64[2] = "B@" + str(i)`.
//!
//! Expressions are Python, computed by the compiler's evaluator as numbers of double precision: neither lowering nor the
//! simulator takes part. They see the names of the file, so that a function of the file may be the reference.

use std::collections::BTreeMap;

use tirx_core::diagnostic::Diagnostics;
use tirx_core::ir::DType;
use tirx_core::script::{ConstValue, Imports, KernelFile, NoImports};
use tirx_core::source::SourceMap;
use tirx_core::suggest;

use crate::runs::{self, Run};

const COORDINATES: [&str; 6] = ["i", "j", "k", "l", "m", "n"];

/// The name of the list of generated functions.
const RESULT: &str = "__runs";

/// Precedes, in a generated line, the number of the line that it is made of.
const MADE_OF: &str = "  # of line ";

struct Described<'a> {
    kernel: &'a str,
    /// The names and values in parentheses.
    values: Vec<(&'a str, &'a str)>,
    /// The GPUs behind `on`.
    archs: Vec<&'a str>,
    /// The line of the file, from 1.
    line: usize,
    lines: Vec<&'a str>,
}

/// The runs that the comments of a kernel file describe.
///
/// # Errors
/// What is wrong with a line or an expression.
pub fn read(name: &str, text: &str) -> Result<Vec<Run>, String> {
    read_with(name, text, &NoImports)
}

/// The same for a file that imports others.
///
/// # Errors
/// As of [`read`].
pub fn read_with(name: &str, text: &str, imports: &dyn Imports) -> Result<Vec<Run>, String> {
    let described = describe(text)?;
    if described.is_empty() {
        return Ok(Vec::new());
    }
    // Together the file is loaded once; but the steps of an evaluation are limited.
    evaluate(name, text, imports, &described).or_else(|_| {
        let mut runs = Vec::with_capacity(described.len());
        for run in described.chunks(1) {
            runs.extend(evaluate(name, text, imports, run)?);
        }
        Ok(runs)
    })
}

/// A kernel as a run describes it: its compile-time values, and the GPUs.
#[derive(Clone, Debug, PartialEq)]
pub struct Selected {
    /// The kernel.
    pub kernel: String,
    /// Values of its compile-time parameters.
    pub values: BTreeMap<String, ConstValue>,
    /// The GPUs; none if the run names none.
    pub archs: Vec<String>,
}

/// The kernels that the runs of a file are of, without the values of tensors, which take longer.
///
/// # Errors
/// As of [`read`].
pub fn selected(name: &str, text: &str, imports: &dyn Imports) -> Result<Vec<Selected>, String> {
    let mut described = describe(text)?;
    // Literals, which most values are, need no evaluation of the file.
    let literals = |run: &Described<'_>| -> Option<Selected> {
        let values = run.values.iter();
        let values = values.map(|(name, value)| Some((name.to_string(), literal(value)?)));
        Some(Selected {
            kernel: run.kernel.to_string(),
            values: values.collect::<Option<_>>()?,
            archs: run.archs.iter().map(ToString::to_string).collect(),
        })
    };
    if let Some(selected) = described.iter().map(literals).collect() {
        return Ok(selected);
    }
    described.iter_mut().for_each(|run| run.lines.clear());
    let runs = evaluate(name, text, imports, &described)?.into_iter();
    let selected = runs.map(|run| Selected {
        kernel: run.kernel,
        values: run.values,
        archs: run.archs,
    });
    Ok(selected.collect())
}

/// The value of a literal of Python: a decimal integer, a name of a constant, a text without escapes.
fn literal(text: &str) -> Option<ConstValue> {
    let quoted = || {
        let quote = text.chars().next().filter(|c| matches!(c, '"' | '\''))?;
        let inner = text.strip_prefix(quote)?.strip_suffix(quote)?;
        (!inner.contains([quote, '\\'])).then(|| ConstValue::Str(inner.to_string()))
    };
    match text {
        "True" => Some(ConstValue::Bool(true)),
        "False" => Some(ConstValue::Bool(false)),
        "None" => Some(ConstValue::None),
        _ if text.bytes().all(|c| c.is_ascii_digit()) => text.parse().ok().map(ConstValue::Int),
        _ => quoted(),
    }
}

/// Evaluates runs in one program, the file with a function for each.
fn evaluate(
    name: &str,
    text: &str,
    imports: &dyn Imports,
    described: &[Described<'_>],
) -> Result<Vec<Run>, String> {
    let mut program = format!("{text}\n\n");
    let mut calls = Vec::new();
    let mut values = Vec::new();
    for (number, run) in described.iter().enumerate() {
        for (at, (_, value)) in run.values.iter().enumerate() {
            program += &format!("__value_{number}_{at} = ({value}){MADE_OF}{}\n", run.line);
            values.push(format!("__value_{number}_{at}"));
        }
        program += &function(number, run).map_err(|e| format!("sim: {}: {e}", run.kernel))?;
        calls.push(format!("__run_{number}()"));
    }
    // One constant, for each constant that is asked for evaluates the file.
    let (calls, values) = (calls.join(", "), values.join(", "));
    program += &format!("{RESULT} = [\"\\n\".join([{calls}]), [{values}]]\n");
    let mut sources = SourceMap::new();
    let file =
        KernelFile::load(&mut sources, name, &program, imports).map_err(|e| told(&e, &sources, text))?;
    let result = file.constant(RESULT).map_err(|e| told(&e, &sources, text))?;
    let (mut runs, values) = match result {
        Some(ConstValue::List(parts)) => match <[ConstValue; 2]>::try_from(parts) {
            Ok([ConstValue::Str(text), ConstValue::List(values)]) => (runs::read(&text)?, values),
            other => return Err(format!("the runs are no text: {other:?}")),
        },
        _ => return Err(not_constant(&file, described)),
    };
    let mut values = values.into_iter();
    for (run, described) in runs.iter_mut().zip(described) {
        run.line = described.line;
        let lines = described
            .lines
            .iter()
            .enumerate()
            .filter(|(_, line)| !is_end(line));
        run.lines = lines.map(|(at, _)| described.line + 1 + at).collect();
        run.archs = described.archs.iter().map(ToString::to_string).collect();
        for ((name, _), value) in described.values.iter().zip(&mut values) {
            run.values.insert((*name).to_string(), value);
        }
    }
    Ok(runs)
}

/// The first compile-time value that is no constant.
fn not_constant(file: &KernelFile, described: &[Described<'_>]) -> String {
    for (number, run) in described.iter().enumerate() {
        for (at, (_, value)) in run.values.iter().enumerate() {
            if !matches!(file.constant(&format!("__value_{number}_{at}")), Ok(Some(_))) {
                return format!("sim: {}: `{value}` is no constant", run.kernel);
            }
        }
    }
    "the runs are no text".to_string()
}

/// The report of an error: one in a generated line is shown at the line of the file that it is made of.
fn told(e: &Diagnostics, sources: &SourceMap, text: &str) -> String {
    let whole = || e.render(sources);
    let Some((message, location)) =
        e.0.first()
            .and_then(|d| Some((&d.message, sources.locate(d.span)?)))
    else {
        return whole();
    };
    let number = location.line_text.rsplit_once(MADE_OF).map(|(_, number)| number);
    let Some(number) = number.and_then(|number| number.trim().parse::<usize>().ok()) else {
        return whole();
    };
    let line = text.lines().nth(number - 1).unwrap_or_default();
    let margin = " ".repeat(number.to_string().len());
    let mut report = format!(
        "error: {message}\n{margin}--> {}:{number}:1\n{margin} |\n{number} | {line}\n",
        location.file
    );
    if let Some(help) = names_of(line) {
        report += &format!("  = help: {help}\n");
    }
    report
}

/// Which names an expression of a line can use.
fn names_of(line: &str) -> Option<String> {
    let (_, kind) = line.split_once('=')?.0.split_once(':')?;
    let coordinates = &COORDINATES[..extents(kind.trim()).ok()?.len()];
    Some(format!(
        "the expression of an element can use {} (its coordinates), the arguments, and names of the file",
        coordinates.join(", ")
    ))
}

/// The lines of each `# sim: KERNEL`.
fn describe<'a>(text: &'a str) -> Result<Vec<Described<'a>>, String> {
    let mut runs: Vec<Described<'a>> = Vec::new();
    let mut open = false;
    for (number, line) in text.lines().enumerate() {
        if let Some(kernel) = line.strip_prefix("# sim:") {
            let (kernel, archs) = match kernel.rsplit_once(" on ") {
                Some((kernel, archs)) => (kernel, archs.split(',').map(str::trim).collect()),
                None => (kernel, Vec::new()),
            };
            if let Some(wrong) = archs.iter().find(|arch: &&&str| !is_gpu(arch)) {
                return Err(format!("`{line}`: {wrong:?} is no GPU such as sm_90a"));
            }
            let (kernel, values) = match kernel.trim().strip_suffix(')').and_then(|k| k.split_once('(')) {
                Some((kernel, values)) => (kernel.trim(), parted(values)),
                None => (kernel.trim(), Vec::new()),
            };
            if kernel.is_empty() || !kernel.chars().all(is_of_name) {
                return Err(format!("`{line}` names no kernel"));
            }
            let value = |text: &'a str| {
                let (name, value) = text.split_once('=')?;
                let (name, value) = (name.trim(), value.trim());
                (!name.is_empty() && !value.is_empty() && name.chars().all(is_of_name))
                    .then_some((name, value))
            };
            let values: Option<Vec<_>> = values.into_iter().map(value).collect();
            let values = values.ok_or(format!("`{line}`: compile-time values are written NAME=VALUE"))?;
            runs.push(Described {
                kernel,
                values,
                archs,
                line: number + 1,
                lines: Vec::new(),
            });
            open = true;
        } else if let Some(word) = mistyped(line)
            && text.lines().nth(number + 1).is_some_and(is_argument)
        {
            let next = text.lines().nth(number + 1).unwrap_or_default();
            return Err(format!(
                "line {}: `{word}` over `{next}` describes no run\n  = help: write `# sim: KERNEL`",
                number + 1
            ));
        } else if let Some(rest) = line.strip_prefix("#   ").filter(|_| open) {
            runs.last_mut()
                .into_iter()
                .for_each(|run| run.lines.push(rest.trim()));
        } else {
            open = false;
        }
    }
    Ok(runs)
}

/// The beginning of a comment that is almost `# sim:`: another word of about these letters, capitals, other spaces, no colon.
fn mistyped(line: &str) -> Option<&str> {
    let comment = line.trim_start().strip_prefix('#')?;
    let word = comment.trim_start();
    let end = word.find(|c: char| !is_of_name(c)).unwrap_or(word.len());
    let (word, rest) = word.split_at(end);
    let is_near = word.eq_ignore_ascii_case("sim") || suggest(word, ["sim"]).is_some();
    let length = line.len() - rest.len() + usize::from(rest.starts_with(':'));
    is_near.then(|| &line[..length])
}

/// Whether a comment gives an argument its values: `#   A: float32[64] = …`.
fn is_argument(line: &str) -> bool {
    let head = line.strip_prefix('#').and_then(|line| line.split_once('='));
    let Some((head, _)) = head else { return false };
    match head.trim().split_once(':') {
        Some((name, kind)) => !name.is_empty() && name.chars().all(is_of_name) && extents_like(kind.trim()),
        None => false,
    }
}

/// Whether a text is a dtype with a shape, whose extents may be names.
fn extents_like(kind: &str) -> bool {
    let parts = kind.strip_suffix(']').and_then(|kind| kind.split_once('['));
    parts.is_some_and(|(dtype, shape)| {
        dtype.trim().parse::<DType>().is_ok() && shape.chars().all(|c| is_of_name(c) || c == ' ')
    })
}

fn is_gpu(arch: &str) -> bool {
    let number = arch.strip_prefix("sm_").unwrap_or_default();
    number.starts_with(|c: char| c.is_ascii_digit()) && number.chars().all(is_of_name)
}

fn is_of_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The parts of a list at its commas, outside of brackets and strings.
fn parted(list: &str) -> Vec<&str> {
    let (mut parts, mut start, mut depth, mut quote) = (Vec::new(), 0, 0i32, None);
    for (at, c) in list.char_indices() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(c),
            (None, '(' | '[' | '{') => depth += 1,
            (None, ')' | ']' | '}') => depth -= 1,
            (None, ',') if depth == 0 => {
                parts.push(&list[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&list[start..]);
    parts.retain(|part| !part.trim().is_empty());
    parts
}

/// A Python function that gives the run in the form of `kernels/NAME.sim.txt`.
fn function(number: usize, run: &Described<'_>) -> Result<String, String> {
    let (mut before, mut after, mut ends) = (String::new(), String::new(), Vec::new());
    for (at, (name, _)) in run.values.iter().enumerate() {
        before += &format!("    {name} = __value_{number}_{at}\n");
    }
    let mut parts: Vec<String> = vec![format!("\"kernel {}\"", run.kernel)];
    let ranks = ranks(&run.lines)?;
    if let Some(ranks) = ranks {
        parts.push(format!("\"ranks: {ranks}\""));
    }
    let mut seen: BTreeMap<&str, ()> = BTreeMap::new();
    for (at, line) in run.lines.iter().enumerate() {
        let made_of = format!("{MADE_OF}{}", run.line + 1 + at);
        if line.starts_with(RANKS) {
            continue;
        }
        if is_end(line) {
            ends.push(format!("{line:?}"));
            continue;
        }
        let (head, value) = line.split_once('=').ok_or(format!(
            "`{line}` is neither `NAME: DTYPE[SHAPE] = …` nor `NAME = …`"
        ))?;
        let (name, kind) = match head.trim().split_once(':') {
            Some((name, kind)) => (name.trim(), Some(kind.trim())),
            None => (head.trim(), None),
        };
        if seen.insert(name, ()).is_some() {
            return Err(format!("{name} is given twice"));
        }
        let Some(kind) = kind else {
            before += &format!("    {name} = {}{made_of}\n", elements(value.trim(), ranks, &[]));
            parts.push(match ranks {
                None => format!("\"{name} = \" + str({name})"),
                Some(_) => format!("\"{name} = \" + \" \".join([str(__0) for __0 in {name}])"),
            });
            continue;
        };
        let (value, tolerance) = match value.rsplit_once("+-") {
            Some((value, tolerance)) => (value, format!(" +- {}", tolerance.trim())),
            None => (value, String::new()),
        };
        let (first, expected) = match value.split_once("->") {
            Some((first, expected)) => (first, Some(expected)),
            None => (value, None),
        };
        let kind = &with_values(kind, &run.values);
        let extents = extents(kind)?;
        before += &format!(
            "    {name} = {}{made_of}\n",
            elements(first.trim(), ranks, &extents)
        );
        let depth = extents.len() + usize::from(ranks.is_some());
        parts.push(format!("\"{name} {kind} \" + {}", flat(name, depth)));
        if let Some(expected) = expected {
            let result = format!("__{name}");
            after += &format!(
                "    {result} = {}{made_of}\n",
                elements(expected.trim(), ranks, &extents)
            );
            parts.push(format!("\" -> \" + {} + \"{tolerance}\"", flat(&result, depth)));
        }
    }
    parts.extend(ends);
    // The initial and expected values of a tensor, on its line.
    let text = parts
        .join(" + \"\\n\" + ")
        .replace("\"\\n\" + \" -> \"", "\" -> \"");
    Ok(format!(
        "def __run_{number}():\n{before}{after}    return {text}\n\n\n"
    ))
}

/// `float32[NxM]` with the compile-time values in place of names.
fn with_values(kind: &str, values: &[(&str, &str)]) -> String {
    let Some((dtype, shape)) = kind.strip_suffix(']').and_then(|k| k.split_once('[')) else {
        return kind.to_string();
    };
    let named = |extent: &str| {
        let value = values.iter().find(|(name, _)| *name == extent.trim());
        value.map_or(extent, |(_, value)| value).trim().to_string()
    };
    let extents: Vec<String> = shape.split('x').map(named).collect();
    format!("{dtype}[{}]", extents.join("x"))
}

/// `[4, 8]` of `float32[4x8]`, and the lanes of a vector.
fn extents(kind: &str) -> Result<Vec<i64>, String> {
    let wrong = || format!("`{kind}` is no dtype with a shape, like float32[4x8]");
    let (dtype, shape) = kind
        .strip_suffix(']')
        .and_then(|k| k.split_once('['))
        .ok_or_else(wrong)?;
    let dtype: DType = dtype.trim().parse().map_err(|_| wrong())?;
    let shape: Result<Vec<i64>, _> = shape.split('x').map(|e| e.trim().parse()).collect();
    let mut extents = shape.map_err(|_| wrong())?;
    if dtype.lanes > 1 {
        extents.push(dtype.lanes.into());
    }
    if extents.len() > COORDINATES.len() {
        return Err(format!("`{kind}` has more than {} dimensions", COORDINATES.len()));
    }
    Ok(extents)
}

/// Whether a line says how the run ends, rather than what an argument is.
fn is_end(line: &str) -> bool {
    ["fault:", "seeds:", "error:", RANKS]
        .iter()
        .any(|word| line.starts_with(word))
}

/// The line with the number of devices.
const RANKS: &str = "ranks:";

/// How many devices the lines ask for.
fn ranks(lines: &[&str]) -> Result<Option<u32>, String> {
    let Some(line) = lines.iter().find(|line| line.starts_with(RANKS)) else {
        return Ok(None);
    };
    let count = line[RANKS.len()..].trim().parse();
    let count = count.ok().filter(|count| (1..=runs::MAX_RANKS).contains(count));
    let count = count.ok_or(format!(
        "`{line}`: the number of ranks is from 1 to {}",
        runs::MAX_RANKS
    ))?;
    Ok(Some(count))
}

/// Nested lists with the values of an expression, one for each rank if there are several.
fn elements(expression: &str, ranks: Option<u32>, extents: &[i64]) -> String {
    let mut text = format!("({expression})");
    for (extent, coordinate) in extents.iter().zip(COORDINATES).rev() {
        text = format!("[{text} for {coordinate} in range({extent})]");
    }
    match ranks {
        Some(ranks) => format!("[{text} for rank in range({ranks})]"),
        None => text,
    }
}

/// The values of nested lists, one after the other, as text.
fn flat(name: &str, depth: usize) -> String {
    let mut loops = String::new();
    let mut list = name.to_string();
    for level in 0..depth {
        let item = format!("__{level}");
        loops += &format!(" for {item} in {list}");
        list = item;
    }
    // Truth values are written as numbers.
    format!("\" \".join([str(int({list}) if isinstance({list}, bool) else {list}){loops}])")
}

#[cfg(test)]
mod tests;
