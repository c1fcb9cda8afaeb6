//! The candidates of a tuned kernel: every combination of the values in `[kernel.tune]` that its predicate keeps.

use std::collections::BTreeMap;

use tirx_core::script::{ConstValue, KernelFile, NoImports};
use tirx_core::source::{SourceMap, Span};
use toml::Spanned;

use super::raw::RawTune;
use super::read::Reader;
use super::values::Values;
use crate::document::Record;

/// The sizes by which a launcher chooses between the specializations of a kernel: `[kernel.tune]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TunedSizes {
    /// Their names, in the alphabet's order.
    pub names: Vec<String>,
    /// The points to measure, each in the order of `names`.
    pub points: Vec<Vec<i64>>,
    /// The position of the values.
    pub span: Span,
    /// The position of the sizes, or of the values if all sizes are fixed.
    pub sizes_span: Span,
}

/// The parts of a `[kernel.tune]`, of the manifest or a build script, unchecked.
pub(crate) struct TuneParts {
    pub(crate) values: Values,
    pub(crate) span: Span,
    pub(crate) predicate: Option<(String, Span)>,
    /// `None` for a kernel whose sizes are all fixed.
    pub(crate) sizes: Option<Vec<(Values, Span)>>,
    pub(crate) sizes_span: Span,
}

/// A candidate's compile-time values.
pub(crate) type Candidate = BTreeMap<String, ConstValue>;

impl Reader {
    /// The parts of a table of the manifest.
    pub(super) fn tune_parts(&self, raw: Spanned<Record<RawTune>>) -> TuneParts {
        let raw = raw.into_inner().0;
        let span = self.span(&raw.values);
        TuneParts {
            span,
            values: raw.values.into_inner(),
            predicate: raw
                .predicate
                .map(|text| (text.get_ref().clone(), self.span(&text))),
            sizes_span: raw.sizes.as_ref().map_or(span, |sizes| self.span(sizes)),
            sizes: raw.sizes.map(|sizes| {
                let table = |table: Spanned<Values>| (self.span(&table), table.into_inner());
                let tables = sizes.into_inner().into_iter().map(table);
                tables.map(|(span, table)| (table, span)).collect()
            }),
        }
    }

    /// The candidates of a kernel and the sizes that choose between them; `None` after an error. `has_others` says that the kernel has
    /// other specializations.
    pub(crate) fn tune(
        &mut self,
        kernel: &str,
        parts: TuneParts,
        has_others: bool,
    ) -> Option<(Vec<Candidate>, TunedSizes)> {
        let TuneParts {
            values,
            span,
            predicate,
            sizes,
            sizes_span,
        } = parts;
        if has_others {
            self.error(
                span,
                format!("kernel `{kernel}` has both specializations and `[kernel.tune]`"),
                "move their values into `values` of `[kernel.tune]`, or declare a second kernel of this source",
            );
            return None;
        }
        self.check_kinds(span, &values);
        let before = self.errors.len();
        let candidates = self.combinations("values", kernel, span, values);
        if self.errors.len() == before && candidates.iter().all(BTreeMap::is_empty) {
            self.error(
                span,
                format!("`values` of kernel `{kernel}` is empty"),
                "give at least one parameter: `values = { TILE = [128, 64] }`",
            );
        }
        let (names, points) = match sizes {
            Some(sizes) => self.sizes(kernel, sizes_span, sizes),
            None => (Vec::new(), vec![Vec::new()]),
        };
        if self.errors.len() > before {
            return None;
        }
        let candidates = match predicate {
            None => candidates,
            Some((predicate, span)) => self.kept(kernel, span, &predicate, candidates)?,
        };
        let sizes = TunedSizes {
            names,
            points,
            span,
            sizes_span,
        };
        Some((candidates, sizes))
    }

    /// All values of a parameter are of one kind.
    fn check_kinds(&mut self, span: Span, values: &Values) {
        for (name, values) in &values.0 {
            let Some(ConstValue::List(items)) = values else {
                continue;
            };
            let Some((first, other)) = items
                .first()
                .and_then(|first| Some((first, items.iter().find(|item| kind(item) != kind(first))?)))
            else {
                continue;
            };
            self.error(
                span,
                format!(
                    "the values of `{name}` are of different types: {} and {}",
                    kind(first),
                    kind(other)
                ),
                "a compile-time parameter has values of one type",
            );
        }
    }

    /// The names and values of the sizes to measure.
    fn sizes(&mut self, kernel: &str, span: Span, raw: Vec<(Values, Span)>) -> (Vec<String>, Vec<Vec<i64>>) {
        let example = "write them as `sizes = [{ n = 1000 }, { n = 1_000_000 }]`";
        let mut names: Option<Vec<String>> = None;
        let mut all: Vec<Vec<i64>> = Vec::new();
        let mut wrong_sizes = false;
        for (table, span) in raw {
            let (own, values): (Vec<String>, Vec<_>) = table.0.into_iter().unzip();
            let wrong = own.iter().zip(&values).find(
                |(_, value)| !matches!(value, Some(ConstValue::Int(size)) if (0..1 << 40).contains(size)),
            );
            if let Some((name, _)) = wrong {
                self.error(
                    span,
                    format!("`{name}` of `sizes` is no size: an integer from 0 to 2**40 - 1"),
                    example,
                );
                wrong_sizes = true;
                continue;
            }
            let known = names.get_or_insert_with(|| own.clone());
            if *known != own {
                let message = format!(
                    "`sizes` of kernel `{kernel}` name different sizes: {} and {}",
                    known.join(", "),
                    own.join(", ")
                );
                self.error(span, message, "every table gives all sizes");
                continue;
            }
            let sizes = values.iter().filter_map(|value| match value {
                Some(ConstValue::Int(size)) => i64::try_from(*size).ok(),
                _ => None,
            });
            all.push(sizes.collect());
        }
        let names = names.unwrap_or_default();
        let repeated = |at: usize| all[..at].contains(&all[at]);
        if names.is_empty() {
            if !wrong_sizes {
                self.error(span, format!("`sizes` of kernel `{kernel}` is empty"), example);
            }
        } else if (1..all.len()).any(repeated) {
            self.error(
                span,
                format!("`sizes` of kernel `{kernel}` has a point twice"),
                "remove one of them",
            );
        }
        (names, all)
    }

    /// The candidates for which a predicate is true; `None` after an error.
    fn kept(
        &mut self,
        kernel: &str,
        span: Span,
        predicate: &str,
        candidates: Vec<Candidate>,
    ) -> Option<Vec<Candidate>> {
        let parameters: Vec<String> = candidates
            .first()
            .map_or_else(Vec::new, |c| c.keys().cloned().collect());
        let help = format!(
            "it is a Python expression over {}: `TILE * STAGES <= 256`",
            parameters.join(", ")
        );
        let truths = match truths(predicate, &parameters, &candidates) {
            Ok(truths) => truths,
            Err(reason) => {
                self.error(span, format!("`predicate` of kernel `{kernel}`: {reason}"), help);
                return None;
            }
        };
        let count = candidates.len();
        let kept: Vec<Candidate> = (candidates.into_iter().zip(truths))
            .filter_map(|(candidate, kept)| kept.then_some(candidate))
            .collect();
        if kept.is_empty() {
            let all = match count {
                1 => "the only combination".to_string(),
                count => format!("all {count} combinations"),
            };
            self.error(
                span,
                format!("`predicate` of kernel `{kernel}` excludes {all}"),
                "it is true for the combinations that are candidates",
            );
            return None;
        }
        Some(kept)
    }
}

/// The name of a value's type.
fn kind(value: &ConstValue) -> &'static str {
    match value {
        ConstValue::Int(_) | ConstValue::Float(_) => "a number",
        ConstValue::Bool(_) => "a truth value",
        ConstValue::Str(_) => "a string",
        ConstValue::List(_) => "a list",
        ConstValue::Dict(_) => "a table",
        ConstValue::None => "none",
    }
}

/// The value of a predicate for each candidate, or the reason why it has none.
fn truths(predicate: &str, parameters: &[String], candidates: &[Candidate]) -> Result<Vec<bool>, String> {
    let calls: Vec<String> = (candidates.iter())
        .map(|candidate| {
            let values: Vec<String> = candidate.values().map(python).collect();
            format!("keeps({})", values.join(", "))
        })
        .collect();
    let program = format!(
        "def keeps({}):\n    return (\n{predicate}\n)\nkept = [{}]\n",
        parameters.join(", "),
        calls.join(", ")
    );
    let mut sources = SourceMap::new();
    let file = KernelFile::load(&mut sources, "predicate", &program, &NoImports);
    let kept = file.and_then(|file| file.constant("kept")).map_err(|errors| {
        let first = errors.messages(&sources).into_iter().next();
        first.map_or_else(|| "it has no value".to_string(), |first| first.text)
    })?;
    let Some(ConstValue::List(kept)) = kept else {
        return Err("it has no value".to_string());
    };
    kept.iter()
        .map(|value| match value {
            ConstValue::Bool(value) => Ok(*value),
            other => Err(format!("it gives {}, not a truth value", kind(other))),
        })
        .collect()
}

/// A value as Python writes it.
fn python(value: &ConstValue) -> String {
    let list = |items: &[ConstValue]| items.iter().map(python).collect::<Vec<_>>().join(", ");
    match value {
        ConstValue::None => "None".to_string(),
        ConstValue::Bool(true) => "True".to_string(),
        ConstValue::Bool(false) => "False".to_string(),
        ConstValue::Int(value) => value.to_string(),
        ConstValue::Float(value) if value.is_finite() => format!("{value:?}"),
        ConstValue::Float(value) => format!("float(\"{value}\")"),
        ConstValue::Str(text) => text_literal(text),
        ConstValue::List(items) => format!("[{}]", list(items)),
        ConstValue::Dict(items) => {
            let pair =
                |(name, value): &(String, ConstValue)| format!("{}: {}", text_literal(name), python(value));
            format!("{{{}}}", items.iter().map(pair).collect::<Vec<_>>().join(", "))
        }
    }
}

fn text_literal(text: &str) -> String {
    let character = |c: char| match c {
        '"' | '\\' => format!("\\{c}"),
        c if c.is_ascii_graphic() || c == ' ' => c.to_string(),
        c => format!("\\U{:08x}", u32::from(c)),
    };
    format!("\"{}\"", text.chars().map(character).collect::<String>())
}
