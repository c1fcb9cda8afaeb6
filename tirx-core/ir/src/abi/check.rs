//! Argument checks of host functions: what is checked, and the message that says so.
//!
//! MakePackedAPI asserts what a host function expects of its arguments. An assertion's message is a list of parts,
//! whose wording and division are TVM's; it is the only form of a check that printed IR has. [`Check`] is the check as
//! data: [`Check::message`] writes the parts and [`Check::read`] reads them, both from [`What::form`].

use std::sync::{Arc, LazyLock};

/// The text between the description of the error and the argument's position.
const ON_ARGUMENT: &str = " on argument #";
/// The text before the signature in a message.
pub const WHEN_CALLING: &str = " when calling:\n  `";

/// The property of an argument that a check is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// That it is a tensor, a pointer or a number.
    Type,
    /// A tensor's number of dimensions.
    Rank,
    /// A tensor's element type.
    DType,
    /// That a tensor's strides are those of a compact one.
    Compact,
    /// The kind of device that holds a tensor.
    DeviceType,
    /// That the indices can address every element of a tensor.
    Reach,
    /// That the data pointer is not null where there are elements.
    Data,
    /// The alignment of the data, in bytes.
    Alignment,
    /// The alignment of the first element, in bytes.
    OffsetAlignment,
    /// That a field (`shape[0]`) equals another field.
    Agrees(String),
    /// That a field has a value.
    Equals(String),
}

/// The fixed text of a message.
struct MessageForm {
    /// Text before the argument's name.
    verb: &'static str,
    /// Text after the name; `None` for a message without a name, or whose field is computed.
    field: Option<&'static str>,
    /// Text before the expected value.
    expected: &'static str,
    /// Text after it.
    unit: &'static str,
    /// The error class.
    error: &'static str,
    /// The field's name in a launcher.
    name: &'static str,
}

const IS: &str = "`,\n  expected ";
const MATCH: &str = "`,\n  expected to match ";
const ALIGNMENT: &str = "`,\n  expected data alignment=";

impl What {
    /// The forms about a field whose name is known.
    const FIXED: [What; 9] = [
        What::Type,
        What::Rank,
        What::DType,
        What::Compact,
        What::DeviceType,
        What::Reach,
        What::Data,
        What::Alignment,
        What::OffsetAlignment,
    ];

    fn form(&self) -> MessageForm {
        let form = |verb, field, expected, name| MessageForm {
            verb,
            field,
            expected,
            unit: "",
            error: "ValueError",
            name,
        };
        match self {
            What::Type => MessageForm {
                error: "TypeError",
                ..form("Mismatched type", None, IS, "type")
            },
            What::Rank => form("Mismatched ", Some(".ndim"), IS, "ndim"),
            What::DType => MessageForm {
                error: "TypeError",
                ..form("Mismatched ", Some(".dtype"), IS, "dtype")
            },
            What::Compact => form(
                "Mismatched ",
                Some(".strides"),
                "`,\n  expected to be compact array",
                "strides",
            ),
            What::DeviceType => form("Mismatched ", Some(".device_type"), IS, "device_type"),
            What::Reach => form("Invalid ", Some(".shape"), IS, "shape"),
            What::Data => form(
                "",
                Some(" data pointer is NULL"),
                "`,\n  expected non-NULL data pointer",
                "data",
            ),
            What::Alignment => MessageForm {
                unit: " bytes",
                ..form("Misaligned ", Some(".data"), ALIGNMENT, "data")
            },
            What::OffsetAlignment => MessageForm {
                unit: " bytes",
                ..form("Misaligned Tensor data", None, ALIGNMENT, "offset")
            },
            What::Agrees(_) => form("Mismatched ", None, MATCH, ""),
            What::Equals(_) => form("Invalid ", None, IS, ""),
        }
    }

    fn texts(&self) -> &'static Texts {
        static ALL: LazyLock<Vec<Texts>> = LazyLock::new(|| {
            let computed = [What::Agrees(String::new()), What::Equals(String::new())];
            What::FIXED
                .iter()
                .chain(&computed)
                .map(Texts::from_what)
                .collect()
        });
        let at = match self {
            What::Agrees(_) => What::FIXED.len(),
            What::Equals(_) => What::FIXED.len() + 1,
            fixed => What::FIXED.iter().position(|w| w == fixed).unwrap_or_default(),
        };
        &ALL[at]
    }

    /// What the check is about: `shape[0]`, `ndim`, `dtype`, `strides`, `data`, `type`, …
    pub fn field(&self) -> &str {
        match self {
            What::Agrees(field) | What::Equals(field) => field,
            fixed => fixed.form().name,
        }
    }

    /// The error that a failed check is: `TypeError`, `ValueError`.
    pub fn error(&self) -> Arc<str> {
        self.texts().error.clone()
    }
}

/// The parts of a message that do not depend on the argument. Each function has dozens of messages, which share them.
struct Texts {
    /// What stands by itself before the argument's name.
    verb: Option<Arc<str>>,
    /// What stands before the argument's position.
    subject: Arc<str>,
    when_calling: Arc<str>,
    expected: Arc<str>,
    unit: Option<Arc<str>>,
    error: Arc<str>,
}

impl Texts {
    fn from_what(what: &What) -> Texts {
        let form = what.form();
        let some = |text: &str| (!text.is_empty()).then(|| Arc::from(text));
        // TVM joins the description and " on argument #" into one part where neither is computed.
        let (verb, subject) = match (what, form.field) {
            (What::Agrees(_) | What::Equals(_), _) => (some(form.verb), ON_ARGUMENT.into()),
            (_, Some(field)) => (some(form.verb), format!("{field}{ON_ARGUMENT}").into()),
            (_, None) => (None, format!("{}{ON_ARGUMENT}", form.verb).into()),
        };
        Texts {
            verb,
            subject,
            when_calling: WHEN_CALLING.into(),
            expected: form.expected.into(),
            unit: some(form.unit),
            error: form.error.into(),
        }
    }
}

/// An argument check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// Position of the argument.
    pub index: u32,
    /// Its name in the kernel.
    pub argument: String,
    /// What is checked.
    pub what: What,
    /// The expected value in the kernel's words (`A.shape[0]`, `256`); empty where there is none.
    pub expected: String,
}

impl Check {
    /// The parts of its message, for a kernel with this signature.
    pub fn message(&self, signature: &Arc<str>) -> Vec<Arc<str>> {
        let texts = self.what.texts();
        let mut parts: Vec<Arc<str>> = Vec::with_capacity(9);
        parts.extend(texts.verb.clone());
        match &self.what {
            What::Agrees(field) | What::Equals(field) => {
                parts.push(format!("{}.{field}", self.argument).into());
            }
            what if what.form().field.is_some() => parts.push(self.argument.as_str().into()),
            _ => {}
        }
        parts.push(texts.subject.clone());
        parts.push(self.index.to_string().into());
        parts.push(texts.when_calling.clone());
        parts.push(signature.clone());
        parts.push(texts.expected.clone());
        parts.extend((!self.expected.is_empty()).then(|| Arc::from(self.expected.as_str())));
        parts.extend(texts.unit.clone());
        parts
    }

    /// Reads the parts of an assertion's message; `None` where it is not about an argument. `names` are the kernel's
    /// parameter names, for messages that give a position only.
    pub fn read(parts: &[Arc<str>], names: &[String]) -> Option<Check> {
        let marked = parts.iter().position(|part| part.ends_with(ON_ARGUMENT))?;
        let index: u32 = parts.get(marked + 1)?.parse().ok()?;
        let subject: String = parts[..=marked].concat();
        let subject = subject.strip_suffix(ON_ARGUMENT)?;
        let phrase = &**parts.get(marked + 4)?;
        let (argument, what) = What::FIXED
            .into_iter()
            .find_map(|what| Some((named(&what.form(), subject)?.to_string(), what)))
            .or_else(|| {
                let path = |verb: &str| subject.strip_prefix(verb)?.split_once('.');
                let (what, (argument, field)) = match phrase {
                    MATCH => (What::Agrees as fn(String) -> What, path("Mismatched ")?),
                    _ => (What::Equals as fn(String) -> What, path("Invalid ")?),
                };
                Some((argument.to_string(), what(field.to_string())))
            })?;
        let expected: String = parts.get(marked + 5..)?.concat();
        let unit = what.form().unit;
        Some(Check {
            index,
            argument: match argument.is_empty() {
                true => names.get(index as usize).cloned().unwrap_or_default(),
                false => argument,
            },
            expected: expected.strip_suffix(unit).unwrap_or(&expected).to_string(),
            what,
        })
    }
}

/// The argument that the beginning of a message names in a form; empty where the form has no name.
fn named<'a>(form: &MessageForm, subject: &'a str) -> Option<&'a str> {
    match form.field {
        Some(field) => subject.strip_prefix(form.verb)?.strip_suffix(field),
        None => (subject == form.verb).then_some(""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_read_as_what_they_were_made_from() {
        let names = vec!["A".to_string(), "s".to_string()];
        let signature: Arc<str> = "k(A: Tensor([256], float32), s: float32)".into();
        let expected = |what: &What| match what {
            What::Compact | What::Data => "",
            What::Alignment | What::OffsetAlignment => "16",
            _ => "A.shape[0] * 2",
        };
        let computed = [What::Agrees("device_id".into()), What::Equals("shape[0]".into())];
        for what in What::FIXED.into_iter().chain(computed) {
            let check = Check {
                index: 0,
                argument: "A".into(),
                expected: expected(&what).into(),
                what,
            };
            let parts = check.message(&signature);
            assert_eq!(Check::read(&parts, &names), Some(check), "{parts:?}");
        }
    }

    #[test]
    fn messages_are_cut_as_tvm_cuts_them() {
        let check = |what, expected: &str| Check {
            index: 1,
            argument: "B".into(),
            what,
            expected: expected.into(),
        };
        let parts = check(What::Rank, "2").message(&"k(B)".into());
        let expected = [
            "Mismatched ",
            "B",
            ".ndim on argument #",
            "1",
            WHEN_CALLING,
            "k(B)",
            IS,
            "2",
        ];
        assert_eq!(parts, expected.map(Arc::from));
        let parts = check(What::Equals("shape[0]".into()), "4").message(&"k(B)".into());
        let expected = [
            "Invalid ",
            "B.shape[0]",
            " on argument #",
            "1",
            WHEN_CALLING,
            "k(B)",
            IS,
            "4",
        ];
        assert_eq!(parts, expected.map(Arc::from));
        let parts = check(What::Alignment, "16").message(&"k(B)".into());
        assert_eq!(
            parts[4..],
            [WHEN_CALLING, "k(B)", ALIGNMENT, "16", " bytes"].map(Arc::from)[..]
        );
    }

    #[test]
    fn other_messages_are_no_checks() {
        let parts = ["Expected ", "3", " arguments", WHEN_CALLING, "k(A)", "`"].map(Arc::from);
        assert_eq!(Check::read(&parts, &[]), None);
        assert_eq!(Check::read(&["my words".into()], &[]), None);
    }
}
