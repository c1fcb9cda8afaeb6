//! The rewrite rules, as a table: pattern, replacement, conditions (see [`super::pattern`] for the notation).
//!
//! `INDEX` holds for signed 32- and 64-bit scalars, which do not overflow; `LOGIC` for bool scalars; `VECTOR` lane by
//! lane for vectors of any integer dtype. Rules are tried in order, the first that holds is applied. Each makes the
//! expression smaller, moves constants to the right, or moves an operation towards the leaves, so rewriting ends.
//! Constants that a rule computes are checked to fit the dtype.

use std::sync::LazyLock;

use super::pattern::RuleSet;

/// Pattern, replacement, conditions.
type Row = (&'static str, &'static str, &'static str);

pub(super) static INDEX_RULES: LazyLock<RuleSet> = LazyLock::new(|| RuleSet::read(INDEX));
pub(super) static LOGIC_RULES: LazyLock<RuleSet> = LazyLock::new(|| RuleSet::read(LOGIC));
pub(super) static VECTOR_RULES: LazyLock<RuleSet> = LazyLock::new(|| RuleSet::read(VECTOR));

const INDEX: &[Row] = &[
    // Sums.
    ("c1 + x", "x + c1", ""),
    ("x + x", "x * 2", ""),
    ("~x * c1 + x", "x * (c1 + 1)", ""),
    ("x * c1 + x * c2", "x * (c1 + c2)", ""),
    ("(x - y) + (y - x)", "0", ""),
    ("(x - y) + (y - z)", "x - z", ""),
    ("(x - y) + (z - x)", "z - y", ""),
    ("~(x - y) + y", "x", ""),
    ("max(x, y - z) + z", "max(x + z, y)", ""),
    ("max(y - z, x) + z", "max(y, x + z)", ""),
    ("min(x, y - z) + z", "min(x + z, y)", ""),
    ("min(y - z, x) + z", "min(y, x + z)", ""),
    ("~max(x, y + c1) + c2", "max(x + c2, y)", "c1 + c2 == 0"),
    ("~min(x, y + c1) + c2", "min(x + c2, y)", "c1 + c2 == 0"),
    ("~max(x, y) + min(x, y)", "x + y", ""),
    ("~x // y * y + x % y", "x", ""),
    ("~x // y * y + x % y + z", "x + z", ""),
    ("~div(x, y) * y + mod(x, y)", "x", ""),
    ("~x // 2 + x % 2", "(x + 1) // 2", ""),
    ("~x * y + x * z", "(y + z) * x", ""),
    ("~x * y + x", "(y + 1) * x", ""),
    ("x + c1 + c2", "x + (c1 + c2)", ""),
    ("c1 - x + c2", "c1 + c2 - x", ""),
    ("c1 - x + y", "y - x + c1", ""),
    ("select(x, y, z) + select(x, v, w)", "select(x, y + v, z + w)", ""),
    ("x + (c1 - y)", "x - y + c1", ""),
    ("x + c1 + y", "x + y + c1", ""),
    ("x + (y + c1)", "x + y + c1", ""),
    // Differences.
    ("x - x", "0", ""),
    ("x - c1", "x + (0 - c1)", ""),
    ("0 - x * c1", "x * (0 - c1)", ""),
    ("~x + y - x", "y", ""),
    ("~x - (x + y)", "0 - y", ""),
    ("~(x + y) - (x + z)", "y - z", ""),
    ("x * c1 - x", "x * (c1 - 1)", ""),
    ("x - x * c1", "x * (1 - c1)", ""),
    ("x * c1 - x * c2", "x * (c1 - c2)", ""),
    ("x - y - (x - z)", "z - y", ""),
    ("x - y - (z - y)", "x - z", ""),
    ("x - (x - y)", "y", ""),
    ("x - y - x", "0 - y", ""),
    ("~x - x // y * y", "x % y", ""),
    ("~x // y * y - x", "0 - x % y", ""),
    ("~(x + y) // c1 * c1 - x", "y - (x + y) % c1", "c1 > 0"),
    ("~x - (x + y) // c1 * c1", "(x + y) % c1 - y", "c1 > 0"),
    ("~x * y - x * z", "(y - z) * x", ""),
    ("~x * y - x", "(y - 1) * x", ""),
    ("~min(x, y) - x", "min(0, y - x)", ""),
    ("~max(x, y) - x", "max(0, y - x)", ""),
    ("~x - min(x, y)", "max(0, x - y)", ""),
    ("~x - max(x, y)", "min(0, x - y)", ""),
    ("~min(x + y, z) - x", "min(y, z - x)", ""),
    ("~max(x + y, z) - x", "max(y, z - x)", ""),
    ("~x - min(x + y, z)", "max(0 - y, x - z)", ""),
    ("~x - max(x + y, z)", "min(0 - y, x - z)", ""),
    (
        "(x + c1) // c3 - (x + c2) // c3",
        "((x + c2) % c3 + (c1 - c2)) // c3",
        "c3 > 0 & c1 >= c2",
    ),
    (
        "(x + c1) // c3 - x // c3",
        "(x % c3 + c1) // c3",
        "c3 > 0 & c1 >= 0",
    ),
    ("x + c1 - y", "x - y + c1", ""),
    ("x - (y + c1)", "x - y + (0 - c1)", ""),
    ("x - (y - z)", "x + z - y", ""),
    ("select(x, y, z) - select(x, v, w)", "select(x, y - v, z - w)", ""),
    // Products.
    ("c1 * x", "x * c1", ""),
    ("x * c1 * c2", "x * (c1 * c2)", ""),
    ("x * c1 * y", "x * y * c1", ""),
    ("x * (y * c1)", "x * y * c1", ""),
    ("(x - y) * c1", "(y - x) * (0 - c1)", "c1 < 0"),
    ("~min(x, y) * max(x, y)", "x * y", ""),
    // Floored quotients.
    ("x // x", "1", ""),
    ("x // c1 // c2", "x // (c1 * c2)", "c1 > 0 & c2 > 0"),
    (
        "(x // c1 + c2) // c3",
        "(x + c1 * c2) // (c1 * c3)",
        "c1 > 0 & c3 > 0",
    ),
    ("x * c1 // c2", "x * (c1 // c2)", "c2 > 0 & c1 % c2 == 0"),
    (
        "x * c1 // c2",
        "x // (c2 // c1)",
        "c1 > 0 & c2 > 0 & c2 % c1 == 0",
    ),
    ("x * c1 // x", "c1", ""),
    ("~x * y // y", "x", ""),
    ("~x * z // (y * z)", "x // y", ""),
    (
        "~(x * c1 + y) // c2",
        "x * (c1 // c2) + y // c2",
        "c2 > 0 & c1 % c2 == 0",
    ),
    (
        "~(x * c1 + y) // c2",
        "x // (c2 // c1)",
        "c1 > 0 & c2 > 0 & c2 % c1 == 0 & y >= 0 & y < c1",
    ),
    (
        "(x * c1 - y) // c2",
        "x * (c1 // c2) + (0 - y) // c2",
        "c2 > 0 & c1 % c2 == 0",
    ),
    (
        "(y - x * c1) // c2",
        "y // c2 - x * (c1 // c2)",
        "c2 > 0 & c1 % c2 == 0",
    ),
    (
        "~(x * c1 + y + z) // c2",
        "x * (c1 // c2) + (y + z) // c2",
        "c2 > 0 & c1 % c2 == 0",
    ),
    (
        "~(x * c1 - y + z) // c2",
        "x * (c1 // c2) + (z - y) // c2",
        "c2 > 0 & c1 % c2 == 0",
    ),
    (
        "~(y - x * c1 + z) // c2",
        "(y + z) // c2 - x * (c1 // c2)",
        "c2 > 0 & c1 % c2 == 0",
    ),
    ("(x + c1) // c2", "x // c2 + c1 // c2", "c2 > 0 & c1 % c2 == 0"),
    ("~(x + y) // y", "x // y + 1", "y > 0"),
    ("~(x + y + z) // y", "(x + z) // y + 1", "y > 0"),
    ("~(x * y + z) // y", "x + z // y", "y > 0"),
    ("~(x * y + z + w) // y", "x + (z + w) // y", "y > 0"),
    (
        "min(x * c1, y) // c2",
        "min(x * (c1 // c2), y // c2)",
        "c2 > 0 & c1 % c2 == 0",
    ),
    (
        "min(y, x * c1) // c2",
        "min(y // c2, x * (c1 // c2))",
        "c2 > 0 & c1 % c2 == 0",
    ),
    (
        "max(x * c1, y) // c2",
        "max(x * (c1 // c2), y // c2)",
        "c2 > 0 & c1 % c2 == 0",
    ),
    (
        "max(y, x * c1) // c2",
        "max(y // c2, x * (c1 // c2))",
        "c2 > 0 & c1 % c2 == 0",
    ),
    // Floored remainders.
    ("x % x", "0", ""),
    ("x * c1 % c2", "0", "c2 > 0 & c1 % c2 == 0"),
    ("x * c1 % c2", "x * (c1 % c2) % c2", "c2 > 0 & c1 >= c2"),
    (
        "x * c1 % c2",
        "x * (c1 % c2) % c2",
        "c2 > 0 & c1 < 0 & fits x * (c1 % c2)",
    ),
    // What overflows is the same modulo a power of two.
    (
        "x * c1 % c2",
        "x * (c1 % c2) % c2",
        "c2 > 0 & c1 < 0 & 4611686018427387904 % c2 == 0",
    ),
    ("~x * y % y", "0", ""),
    ("x % c1 % c2", "x % c2", "c1 > 0 & c2 > 0 & c1 % c2 == 0"),
    ("~(x * c1 + y) % c2", "y % c2", "c2 > 0 & c1 % c2 == 0"),
    (
        "~(x * c1 + y) % c2",
        "x % (c2 // c1) * c1 + y",
        "c1 > 0 & c2 > 0 & c2 % c1 == 0 & y >= 0 & y < c1",
    ),
    ("(x * c1 - y) % c2", "(0 - y) % c2", "c2 > 0 & c1 % c2 == 0"),
    ("(y - x * c1) % c2", "y % c2", "c2 > 0 & c1 % c2 == 0"),
    ("~(x * c1 + y + z) % c2", "(y + z) % c2", "c2 > 0 & c1 % c2 == 0"),
    ("~(x * c1 - y + z) % c2", "(z - y) % c2", "c2 > 0 & c1 % c2 == 0"),
    ("~(y - x * c1 + z) % c2", "(y + z) % c2", "c2 > 0 & c1 % c2 == 0"),
    (
        "(x + c1) % c2",
        "(x + c1 % c2) % c2",
        "c2 > 0 & c1 < 0 or c1 >= c2",
    ),
    ("~(x + y) % y", "x % y", "y > 0"),
    ("~(x * y + z) % y", "z % y", "y > 0"),
    ("~(x * y + z + w) % y", "(z + w) % y", "y > 0"),
    // Truncated quotients and remainders.
    ("div(x, x)", "1", ""),
    ("div(div(x, c1), c2)", "div(x, c1 * c2)", "c1 > 0 & c2 > 0"),
    ("div(x * c1, c2)", "x * div(c1, c2)", "c2 > 0 & c1 % c2 == 0"),
    ("mod(x * c1, c2)", "0", "c2 > 0 & c1 % c2 == 0"),
    ("mod(x, x)", "0", ""),
    (
        "mod(mod(x, c1), c2)",
        "mod(x, c2)",
        "c1 > 0 & c2 > 0 & c1 % c2 == 0",
    ),
    // Minimum and maximum; that one operand is always the smaller is seen before.
    (
        "min(select(x, y, z), select(x, v, w))",
        "select(x, min(y, v), min(z, w))",
        "",
    ),
    (
        "max(select(x, y, z), select(x, v, w))",
        "select(x, max(y, v), max(z, w))",
        "",
    ),
    ("~min(max(x, y), x)", "x", ""),
    ("~max(min(x, y), x)", "x", ""),
    ("~min(min(x, y), x)", "min(x, y)", ""),
    ("~max(max(x, y), x)", "max(x, y)", ""),
    ("~min(max(x, y), max(x, z))", "max(min(y, z), x)", ""),
    ("~max(min(x, y), min(x, z))", "min(max(y, z), x)", ""),
    ("min(min(x, c1), c2)", "min(x, min(c1, c2))", ""),
    ("max(max(x, c1), c2)", "max(x, max(c1, c2))", ""),
    ("min(min(x, c1), y)", "min(min(x, y), c1)", ""),
    ("max(max(x, c1), y)", "max(max(x, y), c1)", ""),
    ("~min(x + y, x + z)", "min(y, z) + x", ""),
    ("~max(x + y, x + z)", "max(y, z) + x", ""),
    ("min(x - y, x - z)", "x - max(y, z)", ""),
    ("max(x - y, x - z)", "x - min(y, z)", ""),
    ("min(x - y, z - y)", "min(x, z) - y", ""),
    ("max(x - y, z - y)", "max(x, z) - y", ""),
    ("min(c1 - x, c2)", "c1 - max(x, c1 - c2)", ""),
    ("max(c1 - x, c2)", "c1 - min(x, c1 - c2)", ""),
    ("min(x * c1, y * c1)", "min(x, y) * c1", "c1 > 0"),
    ("max(x * c1, y * c1)", "max(x, y) * c1", "c1 > 0"),
    ("min(x * c1, y * c1)", "max(x, y) * c1", "c1 < 0"),
    ("max(x * c1, y * c1)", "min(x, y) * c1", "c1 < 0"),
    (
        "min(x * c1, c2)",
        "min(x, c2 // c1) * c1",
        "c1 > 0 & c2 % c1 == 0",
    ),
    (
        "max(x * c1, c2)",
        "max(x, c2 // c1) * c1",
        "c1 > 0 & c2 % c1 == 0",
    ),
    ("min(x // c1, y // c1)", "min(x, y) // c1", "c1 > 0"),
    ("max(x // c1, y // c1)", "max(x, y) // c1", "c1 > 0"),
    (
        "~max((x + c1) // c2 * c2, x)",
        "(x + c1) // c2 * c2",
        "c2 > 0 & c1 + 1 == c2",
    ),
    ("~min((x + c1) // c2 * c2, x)", "x", "c2 > 0 & c1 + 1 == c2"),
    ("~max(x // c2 * c2, x)", "x", "c2 > 0"),
    ("~min(x // c2 * c2, x)", "x // c2 * c2", "c2 > 0"),
    // Less.
    ("~x + y < x + z", "y < z", ""),
    ("~x < x + z", "0 < z", ""),
    ("~x + z < x", "z < 0", ""),
    ("x - y < x", "0 < y", ""),
    ("x < x - y", "y < 0", ""),
    ("y - x < z - x", "y < z", ""),
    ("x - y < x - z", "z < y", ""),
    // What crosses the sign must not leave the dtype where the operands did not.
    ("x + c1 < y + c2", "x < y + (c2 - c1)", "c2 > c1 & c1 >= 0"),
    ("x + c1 < y + c2", "x + (c1 - c2) < y", "c1 >= c2 & c2 >= 0"),
    (
        "x + c1 < y + c2",
        "x < y + (c2 - c1)",
        "c2 > c1 & fits y + (c2 - c1)",
    ),
    (
        "x + c1 < y + c2",
        "x + (c1 - c2) < y",
        "c1 >= c2 & fits x + (c1 - c2)",
    ),
    ("x + c1 < c2", "x < c2 - c1", ""),
    ("c1 < x + c2", "c1 - c2 < x", ""),
    ("c1 - x < c2", "c1 - c2 < x", ""),
    ("c1 < c2 - x", "x < c2 - c1", ""),
    ("c1 - x < y", "c1 < y + x", "fits y + x"),
    ("x < c1 - y", "x + y < c1", "fits x + y"),
    ("x < y + 1", "x <= y", ""),
    ("x < y + c1", "x + (0 - c1) < y", "c1 < 0 & fits x + (0 - c1)"),
    ("x + c1 < y", "x < y + (0 - c1)", "c1 < 0 & fits y + (0 - c1)"),
    ("x * c1 < y * c1", "x < y", "c1 > 0"),
    ("x * c1 < y * c1", "y < x", "c1 < 0"),
    ("x * c1 < y * c2", "x * (c1 // c2) < y", "c2 > 0 & c1 % c2 == 0"),
    ("x * c1 < y * c2", "x < y * (c2 // c1)", "c1 > 0 & c2 % c1 == 0"),
    ("x * c1 < c2", "x < (c2 - 1) // c1 + 1", "c1 > 0"),
    ("x * c1 < c2", "0 - (c2 - 1) // (0 - c1) - 1 < x", "c1 < 0"),
    ("c1 < x * c2", "c1 // c2 < x", "c2 > 0"),
    ("x // c1 < c2", "x < c1 * c2", "c1 > 0"),
    ("c1 < x // c2", "(c1 + 1) * c2 - 1 < x", "c2 > 0"),
    ("x // c1 * c1 < x", "0 < x % c1", "c1 > 0"),
    ("min(x, y) < z", "x < z or y < z", ""),
    ("max(x, y) < z", "x < z and y < z", ""),
    ("z < min(x, y)", "z < x and z < y", ""),
    ("z < max(x, y)", "z < x or z < y", ""),
    // Equal.
    ("c1 == x", "x == c1", ""),
    ("x + c1 == c2", "x == c2 - c1", ""),
    ("c1 - x == c2", "x == c1 - c2", ""),
    ("x * y == 0", "x == 0 or y == 0", ""),
];

const LOGIC: &[Row] = &[
    ("not (not x)", "x", ""),
    ("not (x and y)", "not x or not y", ""),
    ("not (x or y)", "not x and not y", ""),
    ("x and x", "x", ""),
    ("x or x", "x", ""),
    ("~x and not x", "false", ""),
    ("~x or not x", "true", ""),
    ("~x and (x or y)", "x", ""),
    ("~x or (x and y)", "x", ""),
    ("~x and (x and y)", "x and y", ""),
    ("~x or (x or y)", "x or y", ""),
    ("x and (y and z)", "x and y and z", ""),
    ("x or (y or z)", "x or y or z", ""),
    ("~x == y and x != y", "false", ""),
    ("~x == y or x != y", "true", ""),
    ("~x < y and y < x", "false", ""),
    ("~x <= y and y < x", "false", ""),
    ("~x <= y or y < x", "true", ""),
    ("~x < c1 and c2 < x", "false", "c1 <= c2 + 1"),
    ("~x <= c1 and c2 < x", "false", "c1 <= c2"),
    ("~x < c1 and c2 <= x", "false", "c1 <= c2"),
    ("~x <= c1 and c2 <= x", "false", "c1 < c2"),
    ("~x <= c1 and c1 <= x", "x == c1", ""),
    ("~x < c1 or c2 < x", "true", "c2 < c1"),
    ("~x <= c1 or c2 < x", "true", "c2 <= c1"),
    ("~x < c1 or c2 <= x", "true", "c2 <= c1"),
    ("~x <= c1 or c2 <= x", "true", "c2 <= c1 + 1"),
    ("~x == c1 and x == c2", "false", "c1 != c2"),
    ("~x != c1 or x != c2", "true", "c1 != c2"),
    ("~x == c1 and x != c2", "x == c1", "c1 != c2"),
    ("select(x, y, y)", "y", ""),
    ("select(x, true, false)", "x", ""),
    ("select(x, false, true)", "not x", ""),
];

const VECTOR: &[Row] = &[
    ("ramp(x, y) + ramp(z, w)", "ramp(x + z, y + w)", ""),
    ("ramp(x, y) + bcast(z)", "ramp(x + z, y)", ""),
    ("bcast(z) + ramp(x, y)", "ramp(z + x, y)", ""),
    ("ramp(x, y) - ramp(z, w)", "ramp(x - z, y - w)", ""),
    ("ramp(x, y) - bcast(z)", "ramp(x - z, y)", ""),
    ("bcast(z) - ramp(x, y)", "ramp(z - x, 0 - y)", ""),
    ("ramp(x, y) * bcast(z)", "ramp(x * z, y * z)", ""),
    ("bcast(z) * ramp(x, y)", "ramp(x * z, y * z)", ""),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_parses() {
        for row in INDEX.iter().chain(LOGIC).chain(VECTOR) {
            assert!(super::super::pattern::parses(row), "{row:?}");
        }
    }
}
