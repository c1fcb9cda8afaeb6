//! TOML documents read as typed tables, with the position of every value.
//!
//! Without serde: its derives, and the `syn` that they need, were an eighth of a user's clean build, and a mistake that
//! is found here knows its key and its position, where serde's is a text.

use std::fmt;
use std::ops::Range;
use std::path::PathBuf;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Why a document is not what is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mistake {
    pub(crate) kind: MistakeKind,
    pub(crate) span: Range<usize>,
}

/// A kind of mistake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum MistakeKind {
    /// It is no TOML: the first line of the reader's message.
    Syntax(String),
    /// A key that is not there, and those that are.
    Unknown {
        key: String,
        known: &'static [&'static str],
    },
    /// A key is left out.
    Missing(&'static str),
    /// The value of a key has another type.
    Form {
        key: &'static str,
        form: String,
        found: String,
    },
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            MistakeKind::Syntax(message) => f.write_str(message),
            MistakeKind::Unknown { key, .. } => write!(f, "unknown key `{key}`"),
            MistakeKind::Missing(key) => write!(f, "missing key `{key}`"),
            MistakeKind::Form { key, form, found } => write!(f, "`{key}` is {form}, found {found}"),
        }
    }
}

/// The tree of a document.
pub(crate) fn parse(text: &str) -> Result<Spanned<DeTable<'_>>, Mistake> {
    DeTable::parse(text).map_err(|error| {
        let message = error.message().lines().next().unwrap_or("invalid TOML");
        Mistake {
            kind: MistakeKind::Syntax(message.to_string()),
            span: error.span().unwrap_or(0..0),
        }
    })
}

/// A document as a value.
pub(crate) fn read<T: FromTable>(text: &str) -> Result<T, Mistake> {
    let document = parse(text)?;
    T::from_table(&Fields::new(document.get_ref(), document.span(), T::KEYS)?)
}

/// A type that a table is read as.
pub(crate) trait FromTable: Sized {
    /// Its keys; a table with another one is refused.
    const KEYS: &'static [&'static str];

    fn from_table(fields: &Fields<'_, '_>) -> Result<Self, Mistake>;
}

/// A table whose values are taken by key.
pub(crate) struct Fields<'t, 'i> {
    table: &'t DeTable<'i>,
    span: Range<usize>,
}

impl<'t, 'i> Fields<'t, 'i> {
    /// A table whose keys are all known.
    ///
    /// # Errors
    /// The first key in the text that is not among `known`.
    pub(crate) fn new(
        table: &'t DeTable<'i>,
        span: Range<usize>,
        known: &'static [&'static str],
    ) -> Result<Fields<'t, 'i>, Mistake> {
        let unknown = table
            .keys()
            .filter(|key| !known.contains(&key.get_ref().as_ref()));
        match unknown.min_by_key(|key| key.span().start) {
            None => Ok(Fields { table, span }),
            Some(key) => Err(Mistake {
                kind: MistakeKind::Unknown {
                    key: key.get_ref().to_string(),
                    known,
                },
                span: key.span(),
            }),
        }
    }

    /// The value of a key that may be left out.
    pub(crate) fn optional<T: FromToml>(&self, key: &'static str) -> Result<Option<T>, Mistake> {
        let Some((name, value)) = self.table.get_key_value(key) else {
            return Ok(None);
        };
        T::from_toml(value).map(Some).map_err(|wrong| match wrong {
            Wrong::Inside(mistake) => mistake,
            Wrong::Form(found, span) => Mistake {
                kind: MistakeKind::Form {
                    key,
                    form: T::form(),
                    found,
                },
                // A table that has a header of its own is marked at its name in there.
                span: if span.start <= name.span().start {
                    name.span()
                } else {
                    span
                },
            },
        })
    }

    /// The value of a key that must be there.
    pub(crate) fn required<T: FromToml>(&self, key: &'static str) -> Result<T, Mistake> {
        self.optional(key)?.ok_or_else(|| Mistake {
            kind: MistakeKind::Missing(key),
            span: self.span.clone(),
        })
    }

    /// The value of a key, or the type's default.
    pub(crate) fn or_default<T: FromToml + Default>(&self, key: &'static str) -> Result<T, Mistake> {
        Ok(self.optional(key)?.unwrap_or_default())
    }
}

/// Why a value is not what is read.
pub(crate) enum Wrong {
    /// It is of another type: what is there, and where.
    Form(String, Range<usize>),
    /// It is a table with a mistake.
    Inside(Mistake),
}

/// A type that a value is read as.
pub(crate) trait FromToml: Sized {
    /// One of it, and many, in messages.
    const WORDS: (&'static str, &'static str);

    fn from_toml(value: &Spanned<DeValue<'_>>) -> Result<Self, Wrong>;

    /// What it is, in messages.
    fn form() -> String {
        Self::WORDS.0.to_string()
    }
}

/// A value of another type.
pub(crate) fn wrong<T>(value: &Spanned<DeValue<'_>>) -> Result<T, Wrong> {
    let found = match value.get_ref() {
        DeValue::String(text) => format!("the string {text:?}"),
        DeValue::Integer(number) => format!("`{number}`"),
        DeValue::Float(number) => format!("`{number}`"),
        DeValue::Boolean(truth) => format!("`{truth}`"),
        DeValue::Datetime(time) => format!("the time `{time}`"),
        DeValue::Array(_) => "a list".to_string(),
        DeValue::Table(_) => "a table".to_string(),
    };
    Err(Wrong::Form(found, value.span()))
}

/// The number of an integer; `None` where it is none of 64 bits with a sign, as TOML's are.
pub(crate) fn integer(value: &DeValue<'_>) -> Option<i64> {
    let number = value.as_integer()?;
    i64::from_str_radix(number.as_str(), number.radix()).ok()
}

impl FromToml for String {
    const WORDS: (&'static str, &'static str) = ("a string", "strings");

    fn from_toml(value: &Spanned<DeValue<'_>>) -> Result<String, Wrong> {
        value
            .get_ref()
            .as_str()
            .map_or_else(|| wrong(value), |text| Ok(text.to_string()))
    }
}

impl FromToml for PathBuf {
    const WORDS: (&'static str, &'static str) = String::WORDS;

    fn from_toml(value: &Spanned<DeValue<'_>>) -> Result<PathBuf, Wrong> {
        String::from_toml(value).map(PathBuf::from)
    }
}

impl FromToml for bool {
    const WORDS: (&'static str, &'static str) = ("`true` or `false`", "truth values");

    fn from_toml(value: &Spanned<DeValue<'_>>) -> Result<bool, Wrong> {
        value.get_ref().as_bool().map_or_else(|| wrong(value), Ok)
    }
}

macro_rules! integers {
    ($($ty:ty)*) => {$(
        impl FromToml for $ty {
            const WORDS: (&'static str, &'static str) = ("an integer of 0 or more", "integers of 0 or more");

            fn from_toml(value: &Spanned<DeValue<'_>>) -> Result<$ty, Wrong> {
                let number = integer(value.get_ref()).and_then(|number| number.try_into().ok());
                number.map_or_else(|| wrong(value), Ok)
            }
        }
    )*};
}
integers!(u32 usize);

impl FromToml for i64 {
    const WORDS: (&'static str, &'static str) = ("an integer", "integers");

    fn from_toml(value: &Spanned<DeValue<'_>>) -> Result<i64, Wrong> {
        integer(value.get_ref()).map_or_else(|| wrong(value), Ok)
    }
}

impl FromToml for f64 {
    const WORDS: (&'static str, &'static str) = ("a number", "numbers");

    fn from_toml(value: &Spanned<DeValue<'_>>) -> Result<f64, Wrong> {
        let number = match value.get_ref() {
            DeValue::Float(number) => number.as_str().parse().ok(),
            other => integer(other).map(|number| number as f64),
        };
        number.map_or_else(|| wrong(value), Ok)
    }
}

/// A value with its position.
impl<T: FromToml> FromToml for Spanned<T> {
    const WORDS: (&'static str, &'static str) = T::WORDS;

    fn from_toml(value: &Spanned<DeValue<'_>>) -> Result<Spanned<T>, Wrong> {
        Ok(Spanned::new(value.span(), T::from_toml(value)?))
    }

    fn form() -> String {
        T::form()
    }
}

impl<T: FromToml> FromToml for Vec<T> {
    const WORDS: (&'static str, &'static str) = ("a list", "lists");

    fn from_toml(value: &Spanned<DeValue<'_>>) -> Result<Vec<T>, Wrong> {
        match value.get_ref() {
            DeValue::Array(items) => items.iter().map(T::from_toml).collect(),
            _ => wrong(value),
        }
    }

    fn form() -> String {
        format!("a list of {}", T::WORDS.1)
    }
}

/// A list of two.
impl<A: FromToml, B: FromToml> FromToml for (A, B) {
    const WORDS: (&'static str, &'static str) = ("a pair", "pairs");

    fn from_toml(value: &Spanned<DeValue<'_>>) -> Result<(A, B), Wrong> {
        match value.get_ref().as_array().map(|items| &items[..]) {
            Some([first, second]) => Ok((A::from_toml(first)?, B::from_toml(second)?)),
            _ => wrong(value),
        }
    }
}

/// A table with known keys.
#[derive(Default)]
pub(crate) struct Record<T>(pub(crate) T);

impl<T: FromTable> FromToml for Record<T> {
    const WORDS: (&'static str, &'static str) = ("a table", "tables");

    fn from_toml(value: &Spanned<DeValue<'_>>) -> Result<Record<T>, Wrong> {
        let DeValue::Table(table) = value.get_ref() else {
            return wrong(value);
        };
        let fields = Fields::new(table, value.span(), T::KEYS).map_err(Wrong::Inside)?;
        T::from_table(&fields).map(Record).map_err(Wrong::Inside)
    }
}

pub(crate) use tirx_bundle::lock::{quoted, quoted_list};

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq)]
    struct Place {
        name: String,
        size: Option<u32>,
        sides: Vec<(String, usize)>,
    }

    impl FromTable for Place {
        const KEYS: &'static [&'static str] = &["name", "size", "sides"];

        fn from_table(fields: &Fields<'_, '_>) -> Result<Place, Mistake> {
            Ok(Place {
                name: fields.required("name")?,
                size: fields.optional("size")?,
                sides: fields.or_default("sides")?,
            })
        }
    }

    #[test]
    fn tables_are_read_and_mistakes_have_their_key_and_place() {
        let place = read::<Place>("name = 'a'\nsize = 0x1_0\nsides = [['x', 1]]\n").unwrap();
        let (name, sides) = ("a".to_string(), vec![("x".to_string(), 1)]);
        assert_eq!(
            place,
            Place {
                name,
                size: Some(16),
                sides
            }
        );
        for (text, said, at) in [
            ("size = 1\n", "missing key `name`", 0),
            ("b = 1\na = 1\n", "unknown key `b`", 0),
            (
                "name = 'a'\nsize = -1\n",
                "`size` is an integer of 0 or more, found `-1`",
                18,
            ),
            (
                "name = 'a'\nsize = 99999999999999999999\n",
                "`size` is an integer of 0 or more, found `99999999999999999999`",
                18,
            ),
            (
                "name = 'a'\nsides = [['x', 'y']]\n",
                "`sides` is a list of pairs, found the string \"y\"",
                26,
            ),
            (
                "name = 'a'\nsides = [['x']]\n",
                "`sides` is a list of pairs, found a list",
                20,
            ),
            (
                "name = 1979-05-27\n",
                "`name` is a string, found the time `1979-05-27`",
                7,
            ),
            ("[name]\n", "`name` is a string, found a table", 1),
            ("name = 'a'\nname = 'b'\n", "duplicate key", 11),
        ] {
            let mistake = read::<Place>(text).unwrap_err();
            assert_eq!(
                (mistake.to_string().as_str(), mistake.span.start),
                (said, at),
                "{text}"
            );
        }
    }

    #[test]
    fn quoted_texts_come_back() {
        for text in ["", "plain", "a \"b\" \\", "it's \"x\"", "two\nlines\t\u{7f}", "Ä"] {
            let document = format!("name = {}\n", quoted(text));
            assert_eq!(read::<Place>(&document).unwrap().name, text, "{document}");
        }
    }
}
