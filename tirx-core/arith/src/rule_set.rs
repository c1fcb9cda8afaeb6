//! Tables of rewrite rules: how rows are read, and which of them may match a node.
//!
//! A rule is three texts: a pattern, its replacement and conditions (joined by `&`). In them `c1 … c3` stand for
//! integer constants, other identifiers for any expression, `lanes` is the vector length of `ramp` and `bcast`, numbers
//! are themselves. A leading `~` means that the rule also holds with the operands of its commutative operators swapped;
//! those variants are made, as the rest of the row is read, when a node asks for the row. A condition `fits …` requires
//! that the bounds of the sum or product are within the dtype.
//!
//! Rows are grouped by the operator at the root. Which rows of a group accept an operand of a kind (constant, sum,
//! product, …) is a set of bits; the rows tried on a node are those in the sets of both operands, a few of up to a
//! hundred, so a node costs little even without optimization.

use std::sync::{Arc, OnceLock};

use super::overflow::may_overflow;
use super::pattern::{NAMES, Pattern, Rule};
use super::rule_text::read;
use crate::ir::{BinOp, Expr, ExprKind};

/// A group of the table: rules with one operator at the root.
#[derive(Default)]
pub(super) struct RuleSet {
    by_op: Vec<Group>,
    not: Vec<Rule>,
    select: Vec<Rule>,
}

/// Rules for one binary operator.
#[derive(Default)]
struct Group {
    rows: Vec<Row>,
    /// A set of rows for each kind of left operand, then for each kind of right operand: `rows.len()` bits in whole
    /// words.
    sets: Vec<u64>,
}

/// A row of the table, read when it is first tried: most programs need few rows.
struct Row {
    texts: Texts,
    /// The kinds of the root's operands.
    kinds: [u8; 2],
    /// The operands may also be swapped.
    swaps: bool,
    rules: OnceLock<Vec<Rule>>,
}

impl Row {
    fn rules(&self) -> &[Rule] {
        self.rules
            .get_or_init(|| read_rule(&self.texts).unwrap_or_default())
    }
}

/// Pattern, replacement and conditions.
pub(super) type Texts = (&'static str, &'static str, &'static str);

/// Number of kinds that [`kind_of`] distinguishes.
const KINDS: usize = 8 + BinOp::Or as usize + 1;

impl Group {
    fn words(&self) -> usize {
        self.rows.len().div_ceil(64)
    }

    /// Fills the sets from the rows.
    fn index(&mut self) {
        let words = self.words();
        self.sets = vec![0; 2 * KINDS * words];
        for (number, row) in self.rows.iter().enumerate() {
            let [a, b] = row.kinds;
            let swapped = row.swaps.then_some([b, a]);
            for kinds in std::iter::once([a, b]).chain(swapped) {
                for (side, kind) in kinds.into_iter().enumerate() {
                    let mut accept = |kind: usize| {
                        self.sets[(side * KINDS + kind) * words + number / 64] |= 1 << (number % 64);
                    };
                    match kind {
                        0 => (0..KINDS).for_each(accept),
                        kind => accept(kind as usize),
                    }
                }
            }
        }
    }

    /// The rows of word `word` that accept both kinds, one bit per row.
    fn candidates(&self, left: u8, right: u8, word: usize) -> u64 {
        let words = self.words();
        let set = |row: usize| self.sets.get(row * words + word).copied().unwrap_or(0);
        set(left as usize) & set(KINDS + right as usize)
    }
}

/// Walks the rules that may match a binary node, in the table's order.
pub(super) struct Candidates<'a> {
    group: &'a Group,
    left: u8,
    right: u8,
    word: usize,
    bits: u64,
    /// The remaining variants of the current row.
    rules: std::slice::Iter<'a, Rule>,
}

impl<'a> Iterator for Candidates<'a> {
    type Item = &'a Rule;

    fn next(&mut self) -> Option<&'a Rule> {
        loop {
            for rule in self.rules.by_ref() {
                let [left, right] = rule.kinds;
                if (left == 0 || left == self.left) && (right == 0 || right == self.right) {
                    return Some(rule);
                }
            }
            while self.bits == 0 {
                self.word += 1;
                if self.word >= self.group.words() {
                    return None;
                }
                self.bits = self.group.candidates(self.left, self.right, self.word);
            }
            let bit = self.bits.trailing_zeros() as usize;
            self.bits &= self.bits - 1;
            self.rules = self.group.rows[self.word * 64 + bit].rules().iter();
        }
    }
}

/// The kind of a node as a number, 0 for "any" in patterns.
fn kind_of(expr: &Expr) -> u8 {
    match &expr.kind {
        ExprKind::Int(_) => 1,
        ExprKind::Ramp { .. } => 2,
        ExprKind::Broadcast { .. } => 3,
        ExprKind::Not(_) => 4,
        ExprKind::Select(..) => 5,
        ExprKind::Binary(op, ..) => 8 + *op as u8,
        _ => 6,
    }
}

fn kind_of_pattern(pattern: &Pattern) -> u8 {
    match pattern {
        Pattern::Any(_) => 0,
        Pattern::Const(_) | Pattern::Number(_) | Pattern::Bool(_) => 1,
        Pattern::Ramp(_) => 2,
        Pattern::Broadcast(_) => 3,
        Pattern::Not(_) => 4,
        Pattern::Select(_) => 5,
        Pattern::Binary(op, ..) => 8 + *op as u8,
    }
}

impl RuleSet {
    /// Reads a table. A row that does not parse is left out; a test checks that all rows parse.
    pub(super) fn read(rows: &'static [Texts]) -> RuleSet {
        let mut set = RuleSet::default();
        set.by_op.resize_with(BinOp::Or as usize + 1, Group::default);
        for texts in rows {
            let (commuted, pattern) = commutes(texts.0);
            let rules = || read_rule(texts).unwrap_or_default();
            match read(pattern, &mut Vec::new()) {
                Some(Pattern::Binary(op, a, b)) => set.by_op[op as usize].rows.push(Row {
                    texts: *texts,
                    kinds: [kind_of_pattern(&a), kind_of_pattern(&b)],
                    swaps: commuted && op.is_commutative(),
                    rules: OnceLock::new(),
                }),
                Some(Pattern::Not(_)) => set.not.extend(rules()),
                Some(Pattern::Select(_)) => set.select.extend(rules()),
                _ => {}
            }
        }
        set.by_op.iter_mut().for_each(Group::index);
        set
    }

    /// The rules that may match a binary node of these operands, in the table's order.
    pub(super) fn binary(&self, op: BinOp, a: &Expr, b: &Expr) -> Candidates<'_> {
        let (group, left, right) = (&self.by_op[op as usize], kind_of(a), kind_of(b));
        Candidates {
            group,
            left,
            right,
            word: 0,
            bits: group.candidates(left, right, 0),
            rules: [].iter(),
        }
    }

    /// The rules for a negation.
    pub(super) fn negation(&self) -> &[Rule] {
        &self.not
    }

    /// The rules for a select.
    pub(super) fn select(&self) -> &[Rule] {
        &self.select
    }
}

/// Whether a pattern also holds with operands swapped, and the pattern itself.
fn commutes(pattern: &'static str) -> (bool, &'static str) {
    match pattern.strip_prefix('~') {
        Some(rest) => (true, rest),
        None => (false, pattern),
    }
}

/// A rule and its commuted variants; `None` if a text does not parse.
fn read_rule(&(pattern, replacement, condition): &Texts) -> Option<Vec<Rule>> {
    let (commuted, pattern) = commutes(pattern);
    let mut names = Vec::new();
    let pattern = read(pattern, &mut names)?;
    let replacement = Arc::new(read(replacement, &mut names)?);
    let (mut conditions, mut fits) = (Vec::new(), Vec::new());
    if !condition.is_empty() {
        for part in condition.split('&') {
            match part.trim_start().strip_prefix("fits ") {
                Some(value) => fits.push(read(value, &mut names)?),
                None => conditions.push(read(part, &mut names)?),
            }
        }
    }
    let variants = if commuted {
        commute(&pattern)
    } else {
        vec![pattern]
    };
    let conditions: Arc<[Pattern]> = conditions.into();
    let fits: Arc<[Pattern]> = fits.into();
    let mut rules: Vec<Rule> = Vec::with_capacity(variants.len());
    for pattern in variants {
        if rules.iter().any(|r| r.pattern == pattern) {
            continue;
        }
        let mut moved = 0;
        for name in 0..names.len().min(NAMES) as u8 {
            if count(&pattern, name) != 1 || count(&replacement, name) != 1 {
                moved |= 1 << name;
            }
        }
        let kinds = match &pattern {
            Pattern::Binary(_, a, b) => [kind_of_pattern(a), kind_of_pattern(b)],
            _ => [0; 2],
        };
        rules.push(Rule {
            pattern,
            kinds,
            replacement: replacement.clone(),
            condition: conditions.clone(),
            fits: fits.clone(),
            moved,
            computes: computes(&replacement),
        });
    }
    Some(rules)
}

/// Whether there is a sum, difference or product of more than constants in it.
fn computes(pattern: &Pattern) -> bool {
    match pattern {
        Pattern::Any(_) | Pattern::Const(_) | Pattern::Number(_) | Pattern::Bool(_) => false,
        Pattern::Binary(op, a, b) => {
            let constant = |p: &Pattern| (0..NAMES as u8).all(|name| count(p, name) == 0);
            may_overflow(*op) && !(constant(a) && constant(b)) || computes(a) || computes(b)
        }
        Pattern::Not(a) | Pattern::Broadcast(a) => computes(a),
        Pattern::Select(parts) => parts.iter().any(computes),
        Pattern::Ramp(parts) => parts.iter().any(computes),
    }
}

fn count(pattern: &Pattern, name: u8) -> usize {
    match pattern {
        Pattern::Any(n) => (*n == name) as usize,
        Pattern::Const(_) | Pattern::Number(_) | Pattern::Bool(_) => 0,
        Pattern::Binary(_, a, b) => count(a, name) + count(b, name),
        Pattern::Not(a) | Pattern::Broadcast(a) => count(a, name),
        Pattern::Select(parts) => parts.iter().map(|p| count(p, name)).sum(),
        Pattern::Ramp(parts) => parts.iter().map(|p| count(p, name)).sum(),
    }
}

/// The pattern with the operands of each commutative operator in both orders. Constants stay on the right.
fn commute(pattern: &Pattern) -> Vec<Pattern> {
    match pattern {
        Pattern::Binary(op, a, b) => {
            // The written order first, so that operands keep their order where they can.
            let (mut out, mut swapped) = (Vec::new(), Vec::new());
            for x in commute(a) {
                for y in commute(b) {
                    out.push(Pattern::Binary(*op, Box::new(x.clone()), Box::new(y.clone())));
                    let constant = matches!(y, Pattern::Const(_) | Pattern::Number(_));
                    if op.is_commutative() && !constant {
                        swapped.push(Pattern::Binary(*op, Box::new(y.clone()), Box::new(x.clone())));
                    }
                }
            }
            out.append(&mut swapped);
            out
        }
        Pattern::Not(a) => commute(a)
            .into_iter()
            .map(|p| Pattern::Not(Box::new(p)))
            .collect(),
        other => vec![other.clone()],
    }
}

#[cfg(test)]
pub(super) fn parses(row: &Texts) -> bool {
    read_rule(row).is_some()
}

#[cfg(test)]
mod tests {
    use super::super::pattern::Match;
    use super::*;
    use crate::ir::{DType, Var};

    #[test]
    fn a_rule_with_tilde_matches_commuted_operands() {
        let set = RuleSet::read(&[("~x * c1 + x", "x * (c1 + 1)", "c1 > 1")]);
        let x = Expr::var(&Var::new("x", DType::INT32));
        let product = Expr::binary(BinOp::Mul, x.clone(), Expr::int32(3));
        for (a, b) in [(&product, &x), (&x, &product)] {
            let rule = set.binary(BinOp::Add, a, b).next().unwrap();
            let found = Match::binary(rule, a, b).unwrap();
            assert_eq!(found.any(0), Some(&x));
            assert_eq!(found.constant(&rule.condition[0]), Some(1));
        }
        assert_eq!(set.binary(BinOp::Add, &x, &x).count(), 0);
    }
}
