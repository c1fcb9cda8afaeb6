//! What errors say and where, and what is read in spite of them. Trees are compared with ruff's in the tests across crates.

use crate::{Limits, parse_module};

/// The errors of a text: the text at the place of each, and its message.
fn errors(text: &str) -> Vec<(&str, String)> {
    let errors = parse_module(text, Limits::STACK).err().unwrap_or_default();
    let shown = |e: crate::SyntaxError| (&text[e.range.to_usize()], e.message);
    errors.into_iter().map(shown).collect()
}

#[test]
fn errors_say_what_was_found_and_what_is_expected() {
    for (text, place, message) in [
        ("if a b:\n    pass\n", "b", "expected `:`, found the name `b`"),
        (
            "if a\n    pass\n",
            "\n",
            "expected `:`, found the end of the line",
        ),
        (
            "if a:\npass\n",
            "pass",
            "expected an indented block after `if`, found the keyword `pass`",
        ),
        (
            "if a:\n",
            "",
            "expected an indented block after `if`, found the end of the text",
        ),
        (
            "  a\n",
            "  ",
            "this line is indented more than the one before, which opens no block",
        ),
        (
            "if a:\n    b\n  c\n",
            "",
            "this line is indented less than its block and more than the block around it",
        ),
        (
            "if a:\n        b\n\tc\n",
            "\t",
            "tabs and spaces are mixed: how deep this line is depends on the width of a tab",
        ),
        ("x = (1\ny = 2\n", "(", "`(` is never closed"),
        ("x = f(a, [b\n", "[", "`[` is never closed"),
        ("x = (1]\n", "]", "expected `,` or `)`, found `]`"),
        ("x = f(a b)\n", "b", "expected `,` or `)`, found the name `b`"),
        (
            "x = a.1\n",
            ".1",
            "expected the end of the statement, found the number `.1`",
        ),
        (
            "x = 1 +\n",
            "\n",
            "expected an expression, found the end of the line",
        ),
        (
            "def f(a=1, b):\n    pass\n",
            "b",
            "a parameter without default cannot follow one with a default",
        ),
        (
            "def f(if):\n    pass\n",
            "if",
            "expected a parameter, found `if`, which is a keyword and cannot be a name",
        ),
        (
            "f(a=1, b)\n",
            "b",
            "a positional argument cannot follow a keyword argument",
        ),
        (
            "f(a.b=1)\n",
            "a.b",
            "the left side of `=` in arguments must be the name of a parameter",
        ),
        ("f() = 1\n", "f()", "the result of a call cannot be assigned to"),
        (
            "a + 1 += 2\n",
            "a + 1",
            "the result of an operator cannot be assigned to with `+=`",
        ),
        ("del f()\n", "f()", "the result of a call cannot be deleted"),
        (
            "x = 012\n",
            "012",
            "a decimal integer does not start with `0`; an octal one starts with `0o`",
        ),
        (
            "x = 'a\n",
            "'a",
            "this string is not closed: `'` is missing before the end of the line",
        ),
        (
            "x = \"\"\"a\n",
            "\"\"\"",
            "this string is never closed: `\"\"\"` is missing",
        ),
        (
            "x = f'{a'\n",
            "'",
            "this string is not closed: `'` is missing before the end of the line",
        ),
        (
            "x = f'{a b}'\n",
            "b",
            "expected `!`, `:` or `}`, found the name `b`",
        ),
        (
            "x = f'{}'\n",
            "}",
            "expected an expression in the field of the f-string, found `}`",
        ),
        (
            "x = f'}'\n",
            "}",
            "a single `}` in an f-string: write `}}` for the character",
        ),
        (
            "x = a ? b : c\n",
            "?",
            "`?` means nothing in Python outside strings",
        ),
        (
            "x = \u{201c}a\u{201d}\n",
            "\u{201c}",
            "`\u{201c}` (U+201C) means nothing in Python outside strings",
        ),
        (
            "\u{b5} = 1\n",
            "\u{b5}",
            "Python replaces `\u{b5}` (U+00B5) in names by another character: write that one",
        ),
        ("x = 'a\\xg'\n", "\\x", "`\\x` takes 2 hexadecimal digits"),
        (
            "try:\n    a\nb\n",
            "b",
            "expected `except` or `finally` after the block of `try`, found the name `b`",
        ),
        (
            "with (a as b, c as d)\n    e\n",
            "\n",
            "expected `:`, found the end of the line",
        ),
        (
            "match a:\n    case b.c | *d:\n        pass\n",
            "*",
            "`*` stands in a sequence of patterns, in `[…]`, `(…)` or between commas",
        ),
        (
            "@a\nb = 1\n",
            "b",
            "expected `def`, `async def` or `class` after a decorator, found the name `b`",
        ),
    ] {
        let found = errors(text);
        assert_eq!(found.first(), Some(&(place, message.to_string())), "{text}");
    }
}

#[test]
fn reading_goes_on_after_an_error() {
    for (text, places) in [
        // The block of a line with an error is read, and is no error itself.
        ("def f(:\n    a = b c\n    d = 1\ne = f g\n", &[":", "c", "g"][..]),
        // A bracket that is never closed ends where the next statement starts.
        ("a = f(1,\nb = 2\ndef g(:\n    pass\n", &["(", ":"]),
        ("f(a b,\n  c,\n  d e)\ng h\n", &["b", "h"]),
        ("a b; c d\ne f\n", &["b", "f"]),
        ("if a:\n    x y\nelse:\n    z w\n", &["y", "w"]),
    ] {
        let found: Vec<_> = errors(text).into_iter().map(|(place, _)| place).collect();
        assert_eq!(found, places, "{text}");
    }
}

#[test]
fn deep_text_is_refused_on_a_small_stack_and_what_is_within_the_limits_is_read() {
    let chains: [(&str, &str, &str); 9] = [
        ("", "(", ")"),
        ("", "f(", ")"),
        ("", "[", "]"),
        ("", "-", ""),
        ("", "not ", ""),
        ("", "lambda: ", ""),
        ("a", "", ".b"),
        ("a", "", " + b"),
        ("a", "", " if b else c"),
    ];
    let text = |(first, before, after): (&str, &str, &str), count: usize| {
        let operand = if first.is_empty() { "a" } else { first };
        format!("{}{operand}{}\n", before.repeat(count), after.repeat(count))
    };
    let run = std::thread::Builder::new().stack_size(1 << 20).spawn(move || {
        for chain in chains {
            let found = errors(&text(chain, 100_000)).len();
            assert_eq!(found, 1, "{chain:?}");
            assert!(errors(&text(chain, 29)).is_empty(), "{chain:?}");
        }
        let sum = format!("a{}\n", " + b".repeat(Limits::STACK.levels as usize - 1));
        let module = parse_module(&sum, Limits::STACK).expect("within the limits");
        drop(module.clone());
        let blocks =
            |count: usize| -> String { (0..count).map(|i| format!("{}if a:\n", " ".repeat(i))).collect() };
        assert!(errors(&blocks(1000))[0].1.contains("nested more than 60 deep"));
        assert!(errors(&format!("{}{}pass\n", blocks(60), " ".repeat(60))).is_empty());
        let clauses = format!("if a:\n  b\n{}", "elif a:\n  b\n".repeat(10_000));
        assert!(errors(&clauses).is_empty());
    });
    run.expect("a thread").join().expect("no overflow");
}

#[test]
fn a_deep_tree_is_freed_without_recursion() {
    let limits = Limits {
        levels: 200_000,
        ..Limits::STACK
    };
    let run = std::thread::Builder::new().stack_size(1 << 20).spawn(move || {
        let sum = format!("a{}\n", " + b".repeat(100_000));
        let mut module = parse_module(&sum, limits).expect("within the limits");
        crate::free(&mut module);
        assert!(module.body.is_empty());
    });
    run.expect("a thread").join().expect("no overflow");
}
