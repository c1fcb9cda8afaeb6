//! Attributes and annotations.

use std::sync::Arc;

use super::{Comparison, Outcome, Step};
use crate::ir::abi::keys;
use crate::ir::{AttrNode, AttrValue, Expr};

impl Comparison {
    pub(super) fn attrs<'a>(
        &mut self,
        a: impl IntoIterator<Item = (&'a Arc<str>, &'a AttrValue)>,
        b: impl IntoIterator<Item = (&'a Arc<str>, &'a AttrValue)>,
    ) -> Outcome {
        let sorted = |list: Vec<(&'a Arc<str>, &'a AttrValue)>| {
            let mut list = list;
            list.sort_by_key(|(k, _)| (*k).clone());
            list
        };
        let (a, b) = (sorted(a.into_iter().collect()), sorted(b.into_iter().collect()));
        let keys =
            |list: &[(&Arc<str>, &AttrValue)]| list.iter().map(|(k, _)| (*k).clone()).collect::<Vec<_>>();
        self.same(&keys(&a), &keys(&b))?;
        a.iter()
            .zip(&b)
            .try_for_each(|((key, x), (_, y))| self.at(Step::Name((*key).clone()), |s| s.attr_value(x, y)))
    }

    pub(super) fn attr_value(&mut self, a: &AttrValue, b: &AttrValue) -> Outcome {
        match (&a.plain(), &b.plain()) {
            // A function's attribute may keep the name of a parameter that a pass has replaced.
            (AttrValue::Expr(x), AttrValue::Expr(y)) => self.definition(x, y),
            (AttrValue::Float(x), AttrValue::Float(y)) if x.to_bits() == y.to_bits() => Ok(()),
            (AttrValue::List(x), AttrValue::List(y)) if x.len() == y.len() => x
                .iter()
                .zip(y)
                .enumerate()
                .try_for_each(|(i, (x, y))| self.at(Step::Index(i), |s| s.attr_value(x, y))),
            (AttrValue::Dict(x), AttrValue::Dict(y)) | (AttrValue::Target(x), AttrValue::Target(y)) => {
                self.attrs(x, y)
            }
            (x, y) => self.same(x, y),
        }
    }

    pub(super) fn attr_node(&mut self, key: &str, a: &AttrNode, b: &AttrNode) -> Outcome {
        match (a, b) {
            (AttrNode::None, AttrNode::None) => Ok(()),
            (AttrNode::Str(x), AttrNode::Str(y)) => self.same(x, y),
            (AttrNode::Buffer(x), AttrNode::Buffer(y)) => self.buffer_use(x, y),
            (AttrNode::Expr(x), AttrNode::Expr(y)) => self.expr(x, y),
            (AttrNode::Dict(x), AttrNode::Dict(y)) => {
                let (x, y) = (x.clone(), y.clone());
                self.attrs(x.iter().map(|(k, v)| (k, v)), y.iter().map(|(k, v)| (k, v)))
            }
            (AttrNode::IterVar(x), AttrNode::IterVar(y)) => {
                if key == keys::THREAD_EXTENT {
                    self.same(&x.thread_tag, &y.thread_tag)?;
                }
                self.var_or_bind(&x.var, &y.var)
            }
            // Printed text names the variable, not the index.
            (AttrNode::IterVar(x), AttrNode::Expr(y)) if y.as_var().is_some() => {
                self.expr(&Expr::var(&x.var), y)
            }
            (AttrNode::Expr(x), AttrNode::IterVar(y)) if x.as_var().is_some() => {
                self.expr(x, &Expr::var(&y.var))
            }
            _ => self.differ(format!("{a:?}"), format!("{b:?}")),
        }
    }
}
