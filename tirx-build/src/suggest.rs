//! "Did you mean": the nearest of a few names.

/// Letters of a word that is looked at: comparing takes as many steps as the product of the lengths.
const LONGEST: usize = 100;

/// The candidate nearest to `word`, if it is near enough to be a slip: at most a third of the letters differ.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let length = word.chars().count();
    // Any letter is one edit from any other; and nobody slips in a name of kilobytes.
    if !(2..=LONGEST).contains(&length) {
        return None;
    }
    let limit = length.max(3).div_ceil(3);
    candidates
        .into_iter()
        .filter(|candidate| candidate.len() <= LONGEST * 2)
        .map(|candidate| (distance(word, candidate), candidate))
        .filter(|(distance, _)| *distance <= limit)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Letters to insert, delete or replace to make one word the other (Levenshtein's distance).
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_found_and_strangers_are_not() {
        assert_eq!(nearest("sorce", ["source", "script", "entry"]), Some("source"));
        assert_eq!(nearest("entyr", ["source", "script", "entry"]), Some("entry"));
        assert_eq!(nearest("banana", ["source", "script", "entry"]), None);
        assert_eq!(nearest("M", ["N"]), None);
        assert_eq!(nearest(&"x".repeat(1 << 20), [&*"y".repeat(1 << 20)]), None);
        assert_eq!(distance("kitten", "sitting"), 3);
    }
}
