//! Rust names for the kernel's names: snake case, no keywords, unique.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::ir::Var;

/// Generates the names of one function.
#[derive(Clone, Debug, Default)]
pub(super) struct Names {
    taken: FxHashSet<String>,
    of: FxHashMap<Var, String>,
}

impl Names {
    /// Names in use.
    pub(super) fn reserving(names: &[&str]) -> Names {
        Names {
            taken: names.iter().map(|n| n.to_string()).collect(),
            of: FxHashMap::default(),
        }
    }

    /// A new name like `wanted`.
    pub(super) fn fresh(&mut self, wanted: &str) -> String {
        let base = snake_case(wanted);
        let mut name = base.clone();
        let mut number = 1;
        while !self.taken.insert(name.clone()) {
            number += 1;
            name = format!("{base}_{number}");
        }
        name
    }

    /// The name of a variable, made on first use.
    pub(super) fn name(&mut self, var: &Var) -> String {
        if let Some(name) = self.of.get(var) {
            return name.clone();
        }
        let name = self.fresh(var.name());
        self.of.insert(var.clone(), name.clone());
        name
    }
}

/// Rust's words that cannot name a variable, function or module.
const KEYWORDS: &[&str] = &[
    "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "crate", "do", "dyn",
    "else", "enum", "extern", "false", "final", "fn", "for", "gen", "if", "impl", "in", "let", "loop",
    "macro", "match", "mod", "move", "mut", "override", "priv", "pub", "ref", "return", "self", "static",
    "struct", "super", "trait", "true", "try", "type", "typeof", "unsafe", "unsized", "use", "virtual",
    "where", "while", "yield",
];

/// Whether a word is reserved in Rust.
pub fn is_keyword(word: &str) -> bool {
    KEYWORDS.contains(&word)
}

/// `wanted` as a Rust variable: `A` → `a`, `weightQ` → `weight_q`, `in` → `in_`.
pub fn snake_case(wanted: &str) -> String {
    let mut name = String::new();
    let mut previous_lower = false;
    for c in wanted.chars() {
        if c.is_ascii_uppercase() {
            if previous_lower {
                name.push('_');
            }
            name.push(c.to_ascii_lowercase());
        } else if c.is_ascii_alphanumeric() || c == '_' {
            name.push(c);
        } else {
            name.push('_');
        }
        previous_lower = c.is_ascii_lowercase() || c.is_ascii_digit();
    }
    if name.trim_matches('_').is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
        name.insert(0, 'v');
    }
    if is_keyword(&name) {
        name.push('_');
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::DType;

    #[test]
    fn names_are_rust_names_and_unique() {
        for (kernel, rust) in [
            ("A", "a"),
            ("weightQ", "weight_q"),
            ("A_ptr", "a_ptr"),
            ("in", "in_"),
            ("_", "v_"),
            ("N2D", "n2_d"),
            ("x.y", "x_y"),
            ("ABC", "abc"),
        ] {
            assert_eq!(snake_case(kernel), rust);
        }
        let mut names = Names::reserving(&["stream"]);
        let (a, b) = (Var::new("A", DType::INT32), Var::new("a", DType::INT32));
        assert_eq!(
            (names.name(&a), names.name(&b)),
            ("a".to_string(), "a_2".to_string())
        );
        assert_eq!(names.name(&a), "a");
        assert_eq!(names.fresh("stream"), "stream_2");
    }
}
