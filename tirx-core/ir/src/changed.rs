//! Lists with some elements replaced. Most rewrites leave most lists as they are, and these need no copy.

use super::Expr;

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

/// The list with `f` applied to each expression; `None` if all stay the same nodes.
pub(crate) fn map_exprs(list: &[Expr], mut f: impl FnMut(&Expr) -> Expr) -> Option<Vec<Expr>> {
    map_changed(list, |old| {
        let new = f(old);
        (!new.same_node(old)).then_some(new)
    })
}
