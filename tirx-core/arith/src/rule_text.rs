//! The parser of rewrite rules.
//!
//! The notation is Python's, with its precedence (see [`super::pattern`]). A process reads the tables that it needs
//! once, a build script without optimization: operators are distinguished by their bytes, and operands are read by
//! precedence climbing rather than by one function per level.

use super::pattern::{CONSTANTS, NAMES, Pattern};
use crate::ir::BinOp;

/// Precedence of comparisons, the operators that `not` takes with its operand.
const COMPARISON: u8 = 2;

/// Reads an expression. Names are numbered as they appear, after those that are known; `None` if the text is not an
/// expression.
pub(super) fn read<'a>(text: &'a str, names: &mut Vec<&'a str>) -> Option<Pattern> {
    let mut reader = Reader { text, at: 0, names };
    let pattern = reader.expression(0)?;
    reader.rest().is_empty().then_some(pattern)
}

struct Reader<'a, 'n> {
    text: &'a str,
    /// The next byte.
    at: usize,
    names: &'n mut Vec<&'a str>,
}

/// A binary operator at the start of a text: what it is, how tightly it binds, its length.
fn operator(rest: &[u8]) -> Option<(BinOp, u8, usize)> {
    Some(match rest {
        [b'o', b'r', b' ', ..] => (BinOp::Or, 0, 2),
        [b'a', b'n', b'd', b' ', ..] => (BinOp::And, 1, 3),
        [b'=', b'=', ..] => (BinOp::Eq, COMPARISON, 2),
        [b'!', b'=', ..] => (BinOp::Ne, COMPARISON, 2),
        [b'<', b'=', ..] => (BinOp::Le, COMPARISON, 2),
        [b'>', b'=', ..] => (BinOp::Ge, COMPARISON, 2),
        [b'<', ..] => (BinOp::Lt, COMPARISON, 1),
        [b'>', ..] => (BinOp::Gt, COMPARISON, 1),
        [b'+', ..] => (BinOp::Add, 3, 1),
        [b'-', ..] => (BinOp::Sub, 3, 1),
        [b'*', ..] => (BinOp::Mul, 4, 1),
        [b'/', b'/', ..] => (BinOp::FloorDiv, 4, 2),
        [b'%', ..] => (BinOp::FloorMod, 4, 1),
        _ => return None,
    })
}

impl<'a> Reader<'a, '_> {
    /// The rest of the text, without leading spaces.
    fn rest(&mut self) -> &'a [u8] {
        let bytes = self.text.as_bytes();
        while bytes.get(self.at) == Some(&b' ') {
            self.at += 1;
        }
        bytes.get(self.at..).unwrap_or_default()
    }

    /// Whether the next byte is this one; consumes it if so.
    fn eat(&mut self, byte: u8) -> bool {
        let here = self.rest().first() == Some(&byte);
        self.at += usize::from(here);
        here
    }

    /// Operators of precedence `loosest` or higher.
    fn expression(&mut self, loosest: u8) -> Option<Pattern> {
        let mut left = self.atom()?;
        while let Some((op, binds, length)) = operator(self.rest())
            && binds >= loosest
        {
            self.at += length;
            let right = self.expression(binds + 1)?;
            left = Pattern::Binary(op, Box::new(left), Box::new(right));
        }
        Some(left)
    }

    /// `N` expressions and the closing bracket.
    fn arguments<const N: usize>(&mut self) -> Option<[Pattern; N]> {
        let mut parts = Vec::with_capacity(N);
        for i in 0..N {
            if i > 0 && !self.eat(b',') {
                return None;
            }
            parts.push(self.expression(0)?);
        }
        if !self.eat(b')') {
            return None;
        }
        parts.try_into().ok()
    }

    fn atom(&mut self) -> Option<Pattern> {
        if self.eat(b'(') {
            let [inner] = self.arguments()?;
            return Some(inner);
        }
        if self.eat(b'-') {
            return Some(match self.atom()? {
                Pattern::Number(v) => Pattern::Number(-v),
                other => Pattern::Binary(BinOp::Sub, Box::new(Pattern::Number(0)), Box::new(other)),
            });
        }
        let rest = self.rest();
        let end = rest.iter().position(|b| !b.is_ascii_alphanumeric());
        let end = self.at + end.unwrap_or(rest.len());
        let word = self.text.get(self.at..end)?;
        self.at = end;
        if self.text.as_bytes().get(end) == Some(&b'(') {
            self.at += 1;
            return self.call(word);
        }
        self.word(word)
    }

    fn call(&mut self, name: &str) -> Option<Pattern> {
        let op = match name {
            "min" => BinOp::Min,
            "max" => BinOp::Max,
            "div" => BinOp::Div,
            "mod" => BinOp::Mod,
            "select" => return Some(Pattern::Select(Box::new(self.arguments()?))),
            "ramp" => return Some(Pattern::Ramp(Box::new(self.arguments()?))),
            "bcast" => {
                let [value] = self.arguments()?;
                return Some(Pattern::Broadcast(Box::new(value)));
            }
            _ => return None,
        };
        let [a, b] = self.arguments()?;
        Some(Pattern::Binary(op, Box::new(a), Box::new(b)))
    }

    fn word(&mut self, word: &'a str) -> Option<Pattern> {
        match *word.as_bytes() {
            [] => return None,
            [b'0'..=b'9', ..] => return word.parse().ok().map(Pattern::Number),
            [b'c', digit @ b'0'..=b'9'] if usize::from(digit - b'0') < CONSTANTS => {
                return Some(Pattern::Const(digit - b'0'));
            }
            _ => {}
        }
        match word {
            "true" => return Some(Pattern::Bool(true)),
            "false" => return Some(Pattern::Bool(false)),
            "not" => {
                let operand = self.expression(COMPARISON)?;
                return Some(Pattern::Not(Box::new(operand)));
            }
            _ => {}
        }
        let index = match self.names.iter().position(|n| *n == word) {
            Some(index) => index,
            None if self.names.len() < NAMES => {
                self.names.push(word);
                self.names.len() - 1
            }
            None => return None,
        };
        Some(Pattern::Any(index as u8))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(pattern: &Pattern) -> String {
        match pattern {
            Pattern::Any(i) => format!("x{i}"),
            Pattern::Const(i) => format!("c{i}"),
            Pattern::Number(v) => v.to_string(),
            Pattern::Bool(v) => v.to_string(),
            Pattern::Binary(op, a, b) => format!("{op:?}({}, {})", tree(a), tree(b)),
            Pattern::Not(a) => format!("Not({})", tree(a)),
            Pattern::Broadcast(a) => format!("Broadcast({})", tree(a)),
            Pattern::Select(parts) => format!("Select({})", parts.each_ref().map(tree).join(", ")),
            Pattern::Ramp(parts) => format!("Ramp({})", parts.each_ref().map(tree).join(", ")),
        }
    }

    fn tree_of(text: &str) -> Option<String> {
        read(text, &mut Vec::new()).as_ref().map(tree)
    }

    #[test]
    fn precedence_is_python_s() {
        for (text, expected) in [
            (
                "x + y * c1 // c2 < 3 and not z",
                "And(Lt(Add(x0, FloorDiv(Mul(x1, c1), c2)), 3), Not(x2))",
            ),
            ("x - y - z", "Sub(Sub(x0, x1), x2)"),
            ("not x == y or z", "Or(Not(Eq(x0, x1)), x2)"),
            ("(x+y)%2>=-1", "Ge(FloorMod(Add(x0, x1), 2), -1)"),
            ("-x * y", "Mul(Sub(0, x0), x1)"),
            ("select(x, min(y, -1), true)", "Select(x0, Min(x1, -1), true)"),
            ("ramp(x, c1) != bcast(y)", "Ne(Ramp(x0, c1), Broadcast(x1))"),
            ("order + android", "Add(x0, x1)"),
        ] {
            assert_eq!(tree_of(text).as_deref(), Some(expected), "{text}");
        }
        for wrong in [
            "", "x + ", "(x", "x y", "foo(x)", "min(x)", "x ++", "c9 + 1a", "é",
        ] {
            assert_eq!(tree_of(wrong), None, "{wrong}");
        }
    }
}
