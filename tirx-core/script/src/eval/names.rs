//! Which known name a misspelt one was meant to be.

/// Letters of a name that is looked at: comparing takes as much memory as the product of the lengths.
const LONGEST: usize = 100;

/// The closest of `known` to `name`, if it is close: one edit for short names, a third of the length for long ones.
pub fn suggest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let limit = (name.chars().count() / 3).max(1);
    // Any letter is one edit from any other; and nobody slips in a name of kilobytes.
    if !(2..=LONGEST).contains(&name.chars().count()) {
        return None;
    }
    let mut best: Option<(usize, &str)> = None;
    for candidate in known {
        if candidate == name || candidate.len().abs_diff(name.len()) > limit {
            continue;
        }
        let d = distance(name, candidate);
        // The first name of several equally close ones in alphabetical order, so that messages are stable.
        if d <= limit && best.is_none_or(|(b, c)| (d, candidate) < (b, c)) {
            best = Some((d, candidate));
        }
    }
    best.map(|(_, c)| c)
}

/// Edits (insert, delete, replace, swap of neighbours) from `a` to `b`; case counts as half an edit, rounded up.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut rows = vec![vec![0; b.len() + 1]; a.len() + 1];
    for (i, row) in rows.iter_mut().enumerate() {
        row[0] = 2 * i;
    }
    for (j, cell) in rows[0].iter_mut().enumerate() {
        *cell = 2 * j;
    }
    for i in 1..=a.len() {
        for j in 1..=b.len() {
            let replace = match (a[i - 1], b[j - 1]) {
                (x, y) if x == y => 0,
                (x, y) if x.eq_ignore_ascii_case(&y) => 1,
                _ => 2,
            };
            let mut best = (rows[i - 1][j - 1] + replace)
                .min(rows[i - 1][j] + 2)
                .min(rows[i][j - 1] + 2);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(rows[i - 2][j - 2] + 2);
            }
            rows[i][j] = best;
        }
    }
    rows[a.len()][b.len()].div_ceil(2)
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
    }
}
