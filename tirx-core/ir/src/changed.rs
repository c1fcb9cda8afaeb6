//! Lists with some elements replaced. Most rewrites leave most lists as they are, and these need no copy.

/// The list with each element replaced that `f` gives another one for; `None` if there is none.
pub(crate) fn map_changed<T: Clone>(list: &[T], mut f: impl FnMut(&T) -> Option<T>) -> Option<Vec<T>> {
    let mut changed: Option<Vec<T>> = None;
    for (i, old) in list.iter().enumerate() {
        match (f(old), &mut changed) {
            (None, None) => {}
            (new, Some(changed)) => changed.push(new.unwrap_or_else(|| old.clone())),
            (Some(new), None) => {
                let mut copy = Vec::with_capacity(list.len());
                copy.extend_from_slice(&list[..i]);
                copy.push(new);
                changed = Some(copy);
            }
        }
    }
    changed
}
