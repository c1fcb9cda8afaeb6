//! The function `host` in two parts: the checks of the arguments, and the launches.
//!
//! Specializations of a kernel often have the same checks and different launches. They share a function of the checks, so
//! that rustc compiles it once.

use std::collections::BTreeSet;

use super::line::{Line, LineKind};

/// The function `host`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// The number of arguments.
    arguments: usize,
    /// The statements that check the arguments. They act on nothing, and read only the arguments and `KERNEL`.
    checks: String,
    /// The variables that they define and the launches read, with their types.
    values: Vec<(String, &'static str)>,
    /// The statements that launch.
    launches: String,
}

const ERROR: &str = "::tirx_rt::Error";

impl Host {
    pub(super) fn from_lines(arguments: usize, lines: Vec<Line>) -> Host {
        let (checks, launches) = divided(lines);
        let read: BTreeSet<&String> = launches.iter().flat_map(|line| &line.reads).collect();
        let values = checks
            .iter()
            .filter_map(|line| match (&line.defines, &line.kind) {
                (Some(name), LineKind::Value(Some(ty))) if read.contains(name) => Some((name.clone(), *ty)),
                _ => None,
            })
            .collect();
        Host {
            arguments,
            checks: text(&checks),
            values,
            launches: text(&launches),
        }
    }

    /// The function.
    pub fn function(&self) -> String {
        let body = format!("{}{}", self.checks, self.launches);
        format!("{} {{\n{body}Ok(())\n}}\n", self.header(&body))
    }

    /// The function, with a call of the function `checked` in place of the checks.
    pub fn function_with_call(&self) -> String {
        let names: String = self.values.iter().map(|(name, _)| format!("{name}, ")).collect();
        let body = match names.is_empty() {
            true => format!("checked(KERNEL, args)?;\n{}", self.launches),
            false => format!("let ({names}) = checked(KERNEL, args)?;\n{}", self.launches),
        };
        format!("{} {{\n{body}Ok(())\n}}\n", self.header(&body))
    }

    /// The function of the checks for [`function_with_call`](Self::function_with_call), under a name; none if nothing is checked.
    pub fn checks(&self, name: &str) -> Option<String> {
        let types: String = self.values.iter().map(|(_, ty)| format!("{ty}, ")).collect();
        let names: String = self.values.iter().map(|(name, _)| format!("{name}, ")).collect();
        (!self.checks.is_empty()).then(|| {
            format!(
                "fn {name}(KERNEL: &'static str, {}: {}) -> Result<({types}), {ERROR}> {{\n{}Ok(({names}))\n}}\n",
                arguments_name(&self.checks),
                self.arguments_type(),
                self.checks
            )
        })
    }

    /// The text of the function before a body.
    pub fn header(&self, body: &str) -> String {
        format!(
            "pub(super) fn host(stream: &::tirx_rt::Stream, {}: {}) -> Result<(), {ERROR}>",
            arguments_name(body),
            self.arguments_type()
        )
    }

    fn arguments_type(&self) -> String {
        format!("&[::tirx_rt::host::Arg<'_>; {}]", self.arguments)
    }
}

fn arguments_name(body: &str) -> &'static str {
    match body.contains("args") {
        true => "args",
        false => "_args",
    }
}

fn text(lines: &[Line]) -> String {
    lines.iter().map(|line| format!("{}\n", line.text)).collect()
}

/// The checks and the launches. Checks of tensor maps stand between the preparations of launches; they move before them. A check behind a launch
/// stays there, as does one in a block with a launch.
fn divided(lines: Vec<Line>) -> (Vec<Line>, Vec<Line>) {
    let (mut checks, mut launches): (Vec<Line>, Vec<Line>) = (Vec::new(), Vec::new());
    let mut lines = lines.into_iter();
    while let Some(first) = lines.next() {
        let mut statement = vec![first];
        let mut depth = usize::from(statement[0].kind == LineKind::Open);
        while depth > 0
            && let Some(line) = lines.next()
        {
            match line.kind {
                LineKind::Open => depth += 1,
                LineKind::Close => depth -= 1,
                _ => {}
            }
            statement.push(line);
        }
        let known = |name: &String| {
            let defines = |line: &Line| line.defines.as_ref() == Some(name);
            statement.iter().any(defines) || !launches.iter().any(defines)
        };
        let is_check = statement.iter().all(|line| {
            let is_allowed = match line.kind {
                LineKind::Value(ty) => ty.is_some(),
                LineKind::Check | LineKind::Open | LineKind::Else | LineKind::Close => true,
                LineKind::Return | LineKind::Prepare | LineKind::Launch => false,
            };
            is_allowed && line.reads.iter().all(known)
        });
        let before_launches = launches.iter().all(|line| line.kind == LineKind::Prepare);
        match is_check && before_launches {
            true => checks.extend(statement),
            false => launches.extend(statement),
        }
    }
    (checks, launches)
}
