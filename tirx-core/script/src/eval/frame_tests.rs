//! An error that `try` catches leaves a function, a class, an import, a loop or a region in the middle: the code after it sees its own
//! names, file, mode and loops.

use std::collections::BTreeMap;

use crate::source::SourceMap;
use crate::{Imports, KernelFile, ModuleText, NoImports};

struct Files;

impl Imports for Files {
    fn read(&self, module: &str) -> Option<ModuleText> {
        let text = match module {
            "broken" => "before = 1\nfor i in range(3):\n    raise ValueError('broken')\n",
            "whole" => {
                "def f(x):\n    if x:\n        raise ValueError(f'{x}')\n    return 'whole'\nname = 'whole'\n"
            }
            _ => return None,
        };
        Some(ModuleText {
            name: format!("{module}.py"),
            text: text.into(),
            is_package: false,
        })
    }
}

/// Loads a file whose assertions must hold.
fn holds(text: &str) {
    let mut sources = SourceMap::new();
    if let Err(e) = KernelFile::load(&mut sources, "k.py", text, &Files) {
        panic!("{}", e.render(&sources));
    }
}

/// The IR of the only kernel of a file, or the message.
fn built(text: &str) -> Result<String, String> {
    let text = format!("from tvm.script import tirx as T\n{text}");
    let mut sources = SourceMap::new();
    let file = KernelFile::load(&mut sources, "k.py", &text, &NoImports).map_err(|e| e.render(&sources))?;
    let module = file.build(None, &BTreeMap::new());
    module
        .map(|module| crate::ir::print(&module))
        .map_err(|e| e.render(&sources))
}

/// The IR of a kernel with this body.
fn body(text: &str) -> Result<String, String> {
    let lines = text.lines().map(|line| format!("    {line}\n"));
    built(&format!(
        "class Stop(Exception): pass\n@T.prim_func\ndef k(A: T.Buffer((64,), \"int32\")):\n    T.device_entry()\n    \
         bx = T.cta_id([1]); tx = T.thread_id([64])\n{}",
        lines.collect::<String>()
    ))
}

#[test]
fn a_function_that_fails_leaves_the_names_and_the_loop_of_its_caller() {
    holds(
        "
x = 'outer'
def fail(x, deep):
    for i in range(2):
        y = [fail(z, deep - 1) for z in range(1)] if deep else None
        raise ValueError(x)
seen = []
for i in range(4):
    try:
        fail('inner', i)
    except ValueError as e:
        seen.append((i, x, str(e)))
        if i == 2:
            break
        continue
    assert False
assert seen == [(0, 'outer', 'inner'), (1, 'outer', '0'), (2, 'outer', '0')]
try:
    y
    assert False
except NameError: pass
",
    );
}

#[test]
fn failures_do_not_use_up_the_depth() {
    holds(
        "
def fail(n):
    if n == 0: raise ValueError()
    return fail(n - 1)
count = 0
for i in range(300):
    try: fail(20)
    except ValueError: count += 1
assert count == 300
",
    );
}

#[test]
fn a_class_that_fails_leaves_the_names_and_the_order_of_the_class_around_it() {
    holds(
        "
from enum import Enum
v = 1
class Outer(Enum):
    a = 1
    try:
        class Inner:
            lost = 2
            for i in range(3):
                raise ValueError()
    except ValueError: pass
    b = 3
assert [m.name for m in Outer][:1] == ['a'] and 'b' in [m.name for m in Outer] and 'lost' not in [m.name for m in Outer]
assert v == 1
class After(Enum):
    c = 1
assert [m.name for m in After] == ['c']
",
    );
}

#[test]
fn a_generator_that_fails_leaves_its_caller_and_is_at_its_end() {
    holds(
        "
x = 'outer'
def values():
    x = 'inner'
    try:
        raise KeyError('handled')
    except KeyError:
        yield 1
        raise ValueError(x)
seen = []
g = values()
for turn in range(3):
    try:
        seen.append(next(g))
    except ValueError as e:
        seen.append((x, str(e)))
    except StopIteration:
        seen.append('end')
assert seen == [1, ('outer', 'inner'), 'end']
try:
    raise
except Exception as e:
    assert 'nothing to raise again' in str(e)
",
    );
}

#[test]
fn a_comprehension_that_fails_leaves_the_names_around_it() {
    holds(
        "
i = 'outer'
def fail(v):
    raise ValueError(v)
for make in [lambda: [fail(i) for i in range(3)], lambda: {fail(i): 1 for i in range(3)}, lambda: [[fail(j) for j in range(i)] for i in range(1, 3)],
             lambda: list(fail(i) for i in range(3))]:
    try:
        make()
        assert False
    except ValueError: pass
    assert i == 'outer'
try:
    [fail(i) for i in (1, 2)]
    assert False
except ValueError: pass
assert i == 'outer'
",
    );
}

#[test]
fn an_import_that_fails_leaves_the_file_around_it() {
    holds(
        "
name = 'main'
for turn in range(2):
    try:
        import broken
        assert False
    except ValueError as e:
        assert str(e) == 'broken'
import whole
for turn in range(2):
    try:
        whole.f(7)
        assert False
    except ValueError: pass
assert name == 'main' and whole.name == 'whole' and whole.f(0) == 'whole'
def text(x): return f'{x}'
assert text(1) == '1'
",
    );
    // The message points at the main file.
    let mut sources = SourceMap::new();
    let text = "try:\n    import broken\nexcept ValueError: pass\nunknown_name\n";
    let error = KernelFile::load(&mut sources, "k.py", text, &Files).map(|_| ());
    let error = error.unwrap_err().render(&sources);
    assert!(
        error.contains("unknown name \"unknown_name\"") && error.contains("k.py:4:1"),
        "{error}"
    );
}

#[test]
fn an_annotation_that_fails_leaves_the_names_around_it() {
    holds(
        "
import inspect
x = 'outer'
def outer():
    x = 'inner'
    def f(a: fail()): pass
    return f
try:
    f = outer()
    f.__annotations__
except Exception: pass
assert x == 'outer'
try:
    inspect.signature(f)
except Exception: pass
assert x == 'outer'
",
    );
}

#[test]
fn an_error_in_a_layout_does_not_make_axes_of_names() {
    let error = body(
        "try:\n    L = T.TileLayout(T.S[(8, fail()) : (1 @ laneid, 1)])\nexcept Exception: pass\nA[tx] = laneid",
    )
    .unwrap_err();
    assert!(error.contains("laneid"), "{error}");
}

#[test]
fn a_function_of_python_that_fails_leaves_the_kernel_as_it_was() {
    let whole = body("A[tx] = 1\nA[tx] = 2").unwrap();
    let helper = "def fail():\n    for i in range(3):\n        raise Stop()\n";
    for text in [
        "A[tx] = 1\ntry:\n    raise Stop()\nexcept Stop: pass\nA[tx] = 2",
        "A[tx] = 1\nfor i in [1, 2]:\n    try:\n        for j in [3]:\n            raise Stop()\n    except Stop: break\nA[tx] = 2",
    ] {
        assert_eq!(body(text).unwrap(), whole, "{text}");
    }
    let called = built(&format!(
        "class Stop(Exception): pass\n{helper}@T.prim_func\ndef k(A: T.Buffer((64,), \"int32\")):\n    T.device_entry()\n    \
         bx = T.cta_id([1]); tx = T.thread_id([64])\n    A[tx] = 1\n    try:\n        fail()\n    except Stop: pass\n    A[tx] = 2\n"
    ));
    assert_eq!(called.unwrap(), whole);
}

#[test]
fn a_block_that_fails_is_dropped_and_the_statements_before_it_stay() {
    let whole = body("A[tx] = 1\nA[tx] = 2").unwrap();
    for block in [
        "if tx < 3:\n        A[tx] = 7\n        raise Stop()",
        "if tx < 3:\n        A[tx] = 7\n    else:\n        raise Stop()",
        "for i in T.serial(4):\n        A[tx] = 7\n        raise Stop()",
        "for i in T.serial(4):\n        for j in T.unroll(4):\n            if tx < i:\n                raise Stop()",
        "while A[tx] < 3:\n        A[tx] = 7\n        raise Stop()",
        "with T.If(tx < 3):\n        with T.Then():\n            A[tx] = 7\n            raise Stop()",
        "with T.attr({\"tirx.x\": 1}):\n        A[tx] = 7\n        raise Stop()",
    ] {
        let text = format!("A[tx] = 1\ntry:\n    {block}\nexcept Stop: pass\nA[tx] = 2");
        assert_eq!(body(&text).unwrap(), whole, "{text}");
    }
}

#[test]
fn a_loop_that_fails_is_not_the_loop_of_what_follows() {
    let error =
        body("try:\n    for i in T.serial(4):\n        raise Stop()\nexcept Stop: pass\nbreak").unwrap_err();
    assert!(error.contains("\"break\" outside of a loop"), "{error}");
    let jump = "for i in [1, 2]:\n    try:\n        while A[tx] < 3:\n            raise Stop()\n    except Stop: pass\n    break\nA[tx] = 2";
    assert_eq!(body(jump).unwrap(), body("A[tx] = 2").unwrap());
}

#[test]
fn a_name_of_a_block_that_failed_has_ended() {
    let error =
        body("try:\n    if tx < 3:\n        y = A[tx]\n        raise Stop()\nexcept Stop: pass\nA[tx] = y")
            .unwrap_err();
    assert!(error.contains("\"y\""), "{error}");
}

#[test]
fn a_kernel_that_fails_leaves_nothing_to_the_next_one() {
    let text = |first: &str| {
        format!(
            "from tvm.script import tirx as T\n{first}@T.prim_func\ndef good(A: T.Buffer((64,), \"int32\")):\n    T.device_entry()\n    \
             bx = T.cta_id([1]); tx = T.thread_id([64])\n    A[tx] = 2\n"
        )
    };
    let bad = "@T.prim_func\ndef bad(A: T.Buffer((64,), \"int32\")):\n    T.device_entry()\n    bx = T.cta_id([1]); tx = T.thread_id([64])\n    \
               for i in T.serial(4):\n        if tx < i:\n            A[tx] = unknown\n";
    let build = |text: &str| {
        let mut sources = SourceMap::new();
        let file = KernelFile::load(&mut sources, "k.py", text, &NoImports)
            .unwrap_or_else(|e| panic!("{}", e.render(&sources)));
        if text.contains("bad") {
            assert!(file.build(Some("bad"), &BTreeMap::new()).is_err());
        }
        crate::ir::print(&file.build(Some("good"), &BTreeMap::new()).unwrap())
    };
    assert_eq!(build(&text(bad)), build(&text("")));
}
