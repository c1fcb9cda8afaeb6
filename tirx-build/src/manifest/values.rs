//! The specializations of a kernel: `specialize` lists them, `specialize-grid` gives every combination of its values.

use std::collections::BTreeMap;

use tirx_core::diagnostic::Diagnostic;
use tirx_core::script::ConstValue;
use tirx_core::source::Span;
use toml::Spanned;
use toml::de::DeValue;

use super::read::Reader;
use crate::document::{FromToml, Wrong, integer, wrong};

/// A table of values for compile-time parameters; `None` for a value that cannot be one.
pub(crate) struct Values(pub(crate) BTreeMap<String, Option<ConstValue>>);

impl From<BTreeMap<String, ConstValue>> for Values {
    fn from(values: BTreeMap<String, ConstValue>) -> Values {
        Values(
            values
                .into_iter()
                .map(|(name, value)| (name, Some(value)))
                .collect(),
        )
    }
}

impl FromToml for Values {
    const WORDS: (&'static str, &'static str) = ("a table", "tables");

    fn from_toml(value: &Spanned<DeValue<'_>>) -> Result<Values, Wrong> {
        let DeValue::Table(table) = value.get_ref() else {
            return wrong(value);
        };
        let values = table
            .iter()
            .map(|(name, value)| (name.get_ref().to_string(), const_value(value)));
        Ok(Values(values.collect()))
    }
}

impl Reader {
    pub(super) fn specializations(
        &mut self,
        kernel: &str,
        raw: Option<Spanned<Vec<Spanned<Values>>>>,
        header: Span,
    ) -> (Vec<BTreeMap<String, ConstValue>>, Vec<Span>) {
        let Some(raw) = raw else {
            return (Vec::new(), Vec::new());
        };
        if raw.get_ref().is_empty() {
            let span = self.span(&raw).or(header);
            self.error(
                span,
                format!("`specialize` of kernel `{kernel}` is empty"),
                "give at least one: `specialize = [{ N = 256 }]`",
            );
        }
        let mut all: Vec<BTreeMap<String, ConstValue>> = Vec::new();
        let mut spans: Vec<Span> = Vec::new();
        for table in raw.into_inner() {
            let span = self.span(&table);
            let mut values = BTreeMap::new();
            for (key, value) in table.into_inner().0 {
                match value {
                    Some(value) => {
                        values.insert(key, value);
                    }
                    None => self.error(
                        span,
                        format!("`{key}` cannot be a compile-time value"),
                        "use an integer, a number, a bool, a string, or a list or a table of these",
                    ),
                }
            }
            if let Some(first) = all.iter().position(|other| *other == values) {
                let error = Diagnostic::new(span, format!("kernel `{kernel}` has this specialization twice"))
                    .note(spans[first], "the first is here");
                self.errors.push(error);
                continue;
            }
            all.push(values);
            spans.push(span);
        }
        (all, spans)
    }

    /// Adds every combination of the values of `specialize-grid`.
    pub(super) fn grid(
        &mut self,
        kernel: &str,
        grid: Spanned<Values>,
        all: &mut Vec<BTreeMap<String, ConstValue>>,
        spans: &mut Vec<Span>,
    ) {
        let span = self.span(&grid);
        let combinations = self.combinations("specialize-grid", kernel, span, grid.into_inner());
        for values in combinations.into_iter().filter(|values| !values.is_empty()) {
            if let Some(first) = all.iter().position(|other| *other == values) {
                let error = Diagnostic::new(span, format!("kernel `{kernel}` has a specialization twice"))
                    .note(spans[first], "the first is here");
                self.errors.push(error);
                return;
            }
            all.push(values);
            spans.push(span);
        }
    }

    /// Every combination of the values of a key, the last parameter's changing fastest; none after an error.
    pub(super) fn combinations(
        &mut self,
        key: &str,
        kernel: &str,
        span: Span,
        grid: Values,
    ) -> Vec<BTreeMap<String, ConstValue>> {
        /// Most specializations of one kernel; more are considered a mistake.
        const MOST: usize = 4096;
        let mut combinations: Vec<BTreeMap<String, ConstValue>> = vec![BTreeMap::new()];
        for (name, values) in grid.0 {
            let items = match values {
                Some(ConstValue::List(items)) if !items.is_empty() => items,
                Some(other) => {
                    let is = match other {
                        ConstValue::List(_) => "has no values",
                        _ => "is no list of values",
                    };
                    self.error(
                        span,
                        format!("`{name}` of `{key}` {is}"),
                        format!("write it as `{name} = [256, 512]`"),
                    );
                    return Vec::new();
                }
                None => {
                    self.error(
                        span,
                        format!("`{name}` cannot be a compile-time value"),
                        "use an integer, a number, a bool, a string, or a list or a table of these",
                    );
                    return Vec::new();
                }
            };
            if combinations.len() * items.len() > MOST {
                self.error(
                    span,
                    format!("`{key}` of kernel `{kernel}` has more than {MOST} combinations"),
                    "each is compiled by itself: give fewer values",
                );
                return Vec::new();
            }
            combinations = combinations
                .iter()
                .flat_map(|given| {
                    items.iter().map(|item| {
                        let mut given = given.clone();
                        given.insert(name.clone(), item.clone());
                        given
                    })
                })
                .collect();
        }
        combinations
    }
}

fn const_value(value: &Spanned<DeValue<'_>>) -> Option<ConstValue> {
    Some(match value.get_ref() {
        DeValue::String(text) => ConstValue::Str(text.to_string()),
        DeValue::Integer(_) => ConstValue::Int(integer(value.get_ref())?.into()),
        DeValue::Float(number) => ConstValue::Float(number.as_str().parse().ok()?),
        DeValue::Boolean(truth) => ConstValue::Bool(*truth),
        DeValue::Array(items) => ConstValue::List(items.iter().map(const_value).collect::<Option<_>>()?),
        DeValue::Table(table) => ConstValue::Dict(
            table
                .iter()
                .map(|(name, value)| Some((name.get_ref().to_string(), const_value(value)?)))
                .collect::<Option<_>>()?,
        ),
        DeValue::Datetime(_) => return None,
    })
}
