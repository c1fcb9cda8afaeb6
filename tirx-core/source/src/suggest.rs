//! Suggestions for misspelt names.

/// Longest name that is compared: a comparison takes memory proportional to the product of the lengths.
const LONGEST: usize = 100;

/// The closest of `known` to `name`, if it is close: one edit for short names, a third of the length for long ones.
pub fn suggest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let limit = (name.chars().count() / 3).max(1);
    // For a one-letter name every letter would be a suggestion; names of kilobytes are no typing mistakes.
    if !(2..=LONGEST).contains(&name.chars().count()) {
        return None;
    }
    let mut best: Option<(usize, &str)> = None;
    for candidate in known {
        if candidate == name || candidate.len().abs_diff(name.len()) > limit {
            continue;
        }
        let d = distance(name, candidate);
        // Of several equally close names the first in alphabetical order, so that messages are stable.
        if d <= 2 * limit && best.is_none_or(|(b, c)| (d, candidate) < (b, c)) {
            best = Some((d, candidate));
        }
    }
    best.map(|(_, c)| c)
}

/// Twice the edits (insert, delete, replace, swap of neighbours) from `a` to `b`; a letter's case is half an edit.
fn distance(a: &str, b: &str) -> usize {
    let exact = strsim::osa_distance(a, b);
    let folded = strsim::osa_distance(&a.to_lowercase(), &b.to_lowercase());
    exact + folded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_nearest_name() {
        let known = ["alloc_shared", "alloc_local", "exp", "exp2"];
        assert_eq!(suggest("aloc_shared", known), Some("alloc_shared"));
        assert_eq!(suggest("alloc_lcoal", known), Some("alloc_local"));
        assert_eq!(suggest("Exp", known), Some("exp"));
        assert_eq!(suggest("sqrt", known), None);
        // Another case is closer than another letter.
        assert_eq!(suggest("sm_90A", ["sm_90", "sm_90a"]), Some("sm_90a"));
        assert_eq!(suggest("M", ["N"]), None);
        assert_eq!(suggest(&"x".repeat(1 << 20), [&*"y".repeat(1 << 20)]), None);
    }
}
