//! Semantics of compile-time Python, and its error messages.

use std::collections::BTreeMap;

use crate::source::SourceMap;
use crate::{ConstValue, EntryKind, Imports, KernelFile, ModuleText, NoImports};

/// Runs a file; the text of its errors.
fn run(text: &str) -> Result<(), String> {
    run_with(text, &NoImports)
}

fn run_with(text: &str, imports: &dyn Imports) -> Result<(), String> {
    let mut sources = SourceMap::new();
    KernelFile::load(&mut sources, "k.py", text, imports)
        .map(|_| ())
        .map_err(|d| d.render(&sources))
}

/// Each line must hold.
fn holds(preamble: &str, lines: &str) {
    for line in lines.lines().map(str::trim).filter(|l| !l.is_empty()) {
        if let Err(e) = run(&format!("{preamble}\nassert {line}\n")) {
            panic!("{line}\n{e}");
        }
    }
}

/// The error of a file has each of the parts.
fn fails(text: &str, parts: &[&str]) {
    let error = run(text).expect_err(text);
    for part in parts {
        assert!(error.contains(part), "{text}\nmisses {part:?}:\n{error}");
    }
}

#[test]
fn numbers() {
    holds(
        "",
        "7 // 2 == 3 and -7 // 2 == -4 and 7 // -2 == -4
        7 % 3 == 1 and -7 % 3 == 2 and 7 % -3 == -2
        7 / 2 == 3.5 and type(6 / 2) is float
        2 ** 10 == 1024 and 2 ** -1 == 0.5 and (-1) ** 3 == -1
        -2 ** 2 == -4
        0x10 == 16 and 0b11 == 3 and 1_000 == 1000
        1 << 40 == 1099511627776 and -1 >> 1 == -1
        5 & 3 == 1 and 5 | 3 == 7 and 5 ^ 3 == 6 and ~5 == -6
        (5 & 3) == 1
        7.5 // 2 == 3.0 and -7.5 % 2 == 0.5
        1 < 2 < 3 and not 1 < 2 > 3
        1 == 1.0 == True and True + True == 2
        0.1 + 0.2 != 0.3 and abs(-3) == 3 and abs(-2.5) == 2.5
        round(2.5) == 2 and round(3.5) == 4 and round(2.675, 2) == 2.67
        divmod(-7, 3) == (-3, 2) and pow(2, 5) == 32 and pow(3, 4, 5) == 1
        int('0x1f', 16) == 31 and int(' 12 ') == 12 and int(3.9) == 3 and int(-3.9) == -3
        float('1e3') == 1000.0 and bool('') is False
        min(3, 1, 2) == 1 and max([3, 1, 2]) == 3 and min('b', 'a') == 'a' and max((1, 2), (1, 3)) == (1, 3)
        min([], default=4) == 4 and max([1, -5], key=abs) == -5
        sum([1, 2, 3]) == 6 and sum([0.5], 1) == 1.5
        (3).bit_length() == 2 and (2.0).is_integer()
        hex(255) == '0xff' and bin(5) == '0b101' and ord('a') == 97 and chr(98) == 'b'",
    );
}

#[test]
fn texts() {
    holds(
        "n = 5; x = 3.14159; s = 'abc'",
        "f'{n}' == '5' and f'{n:03d}' == '005' and f'{x:.2f}' == '3.14' and f'{n!r}' == '5' and f'{s!r}' == \"'abc'\"
        f'{n=}' == 'n=5' and f'{{}}' == '{}' and f'{s:>5}|{s:<5}|{s:^5}' == '  abc|abc  | abc '
        f'{255:#x} {255:08b} {1234567:,}' == '0xff 11111111 1,234,567'
        f'{n * 2 + 1}' == '11' and f'{s[1]}' == 'b' and f'{s + \"d\"}' == 'abcd'
        f'{x:{n}.{n - 3}f}' == ' 3.14'
        str(1.0) == '1.0' and str(1e20) == '1e+20' and str(1e-7) == '1e-07' and str(True) == 'True'
        repr([1, 'a', (2,), None]) == \"[1, 'a', (2,), None]\" and str({'a': 1}) == \"{'a': 1}\"
        'a' 'b' == 'ab' and 'ab' * 2 == 'abab' and 'b' in 'abc' and s[-1] == 'c' and s[::-1] == 'cba' and s[:2] == 'ab'
        'a,b,c'.split(',') == ['a', 'b', 'c'] and ' a  b '.split() == ['a', 'b'] and 'a.b.c'.rsplit('.', 1) == ['a.b', 'c']
        '-'.join(['x', 'y']) == 'x-y' and 'Hello'.lower() == 'hello' and 'x'.upper() == 'X' and ' x '.strip() == 'x'
        'abc'.replace('b', 'X') == 'aXc' and 'abc'.startswith('ab') and 'abc'.endswith(('x', 'bc')) and 'abc'.find('z') == -1
        '%d-%s-%.1f' % (3, 'a', 2.55) == '3-a-2.5' and '{} {1} {a}'.format(0, 1, a=2) == '0 1 2'
        '7'.zfill(3) == '007' and 'a=b'.partition('=') == ('a', '=', 'b') and 'int8'.removeprefix('int') == '8'
        len('abc') == 3 and 'abc' < 'abd' and '12'.isdigit() and not 'a1'.isdigit() and 'float32x4'.split('x')[1] == '4'",
    );
}

#[test]
fn containers() {
    holds(
        "d = {'a': 1, 'b': 2}; xs = [3, 1, 2]; t = (1, 2, 3)",
        "xs[0] == 3 and xs[-1] == 2 and xs[1:] == [1, 2] and xs[::2] == [3, 2] and t[:-1] == (1, 2)
        sorted(xs) == [1, 2, 3] and sorted(xs, reverse=True) == [3, 2, 1] and sorted(['bb', 'a'], key=len) == ['a', 'bb']
        list(reversed(xs)) == [2, 1, 3] and list(zip(xs, t)) == [(3, 1), (1, 2), (2, 3)]
        list(enumerate('ab', start=1)) == [(1, 'a'), (2, 'b')] and list(map(lambda v: v * 2, t)) == [2, 4, 6]
        list(filter(lambda v: v > 1, t)) == [2, 3] and all([1, True]) and not all([0]) and any([0, 2]) and not any([])
        [i * j for i in range(3) for j in range(2) if i != j] == [0, 0, 0, 2] and {i % 2 for i in range(5)} == {0, 1}
        {k: v + 1 for k, v in d.items()} == {'a': 2, 'b': 3} and sum(i for i in range(4)) == 6
        d['a'] == 1 and d.get('z') is None and d.get('z', 5) == 5 and 'a' in d and 'z' not in d and list(d) == ['a', 'b']
        list(d.values()) == [1, 2] and {**d, 'c': 3} == {'a': 1, 'b': 2, 'c': 3} and (d | {'a': 9})['a'] == 9
        [*t, 4] == [1, 2, 3, 4] and (0, *t) == (0, 1, 2, 3) and t + (4,) == (1, 2, 3, 4) and [0] * 3 == [0, 0, 0]
        {1, 2} | {3} == {1, 2, 3} and {1, 2} & {2} == {2} and {1, 2} - {2} == {1} and {1} <= {1, 2}
        list(range(5, 0, -2)) == [5, 3, 1] and len(range(0, 10, 3)) == 4 and range(10)[2] == 2 and 4 in range(0, 10, 2)
        (1, 2) < (1, 3) and [1] < [1, 2] and t.index(2) == 1 and t.count(9) == 0 and tuple([1]) == (1,) and list('ab') == ['a', 'b']
        isinstance(1, int) and isinstance(True, int) and not isinstance(1, str) and isinstance('', (int, str)) and type(t) is tuple
        None is None and (1 if xs else 2) == 1 and (0 or 'x') == 'x' and (0 and 1) == 0 and not None
        slice(0, 32).stop == 32 and (slice(0, 2), 1) == (slice(0, 2), 1)",
    );
    run(
        "xs = [3, 1]\nxs.append(2); xs.sort(); xs[0] = 9; xs += [4]; del xs[1]\nassert xs == [9, 3, 4], xs\n",
    )
    .unwrap();
    run("a, *b, c = range(5)\nassert (a, b, c) == (0, [1, 2, 3], 4)\n(p, q), r = (1, 2), 3\nassert p + q + r == 6\n").unwrap();
    run("d = {}\nd['x'] = 1\nd.setdefault('y', []).append(2)\nassert d == {'x': 1, 'y': [2]}\nassert d.pop('x') == 1\n")
        .unwrap();
    run("if (n := 4) > 3:\n    m = n\nassert m == 4\n").unwrap();
}

#[test]
fn functions() {
    run("
def f(a, b=2, *rest, c, d=4, **more):
    return (a, b, rest, c, d, more)
assert f(1, c=3) == (1, 2, (), 3, 4, {})
assert f(1, 5, 6, 7, c=3, e=8) == (1, 5, (6, 7), 3, 4, {'e': 8})
assert f(*[1, 2], **{'c': 3}) == (1, 2, (), 3, 4, {})

def counter():
    n = 0
    def step():
        nonlocal n
        n += 1
        return n
    return step
c = counter()
assert (c(), c(), counter()()) == (1, 2, 1)

total = 0
def add(v):
    global total
    total += v
add(3); add(4)
assert total == 7

def fact(n):
    return 1 if n < 2 else n * fact(n - 1)
assert fact(20) == 2432902008176640000
adders = [lambda v, k=k: v + k for k in range(3)]
assert [g(10) for g in adders] == [10, 11, 12]
assert [g(0) for g in [lambda: 1, lambda: 2] if True] == [1, 2] if False else True

def gen(n):
    for i in range(n):
        yield i * i
assert list(gen(4)) == [0, 1, 4, 9]
def early(x):
    while True:
        x -= 1
        if x < 5:
            break
        if x % 2:
            continue
    else:
        x = 100
    for i in range(3):
        pass
    else:
        return x + i
assert early(10) == 6
")
    .unwrap();
}

#[test]
fn classes() {
    run("
from dataclasses import dataclass, field
from enum import Enum, IntEnum, auto
from typing import NamedTuple, Optional

class Base:
    scale = 2
    def __init__(self, n):
        self.n = n
    def size(self):
        return self.n * self.scale
    @property
    def double(self):
        return self.n * 2
    @staticmethod
    def make(n):
        return Base(n)
    @classmethod
    def of(cls, n):
        return cls(n)
    def __add__(self, other):
        return Base(self.n + other.n)
    def __eq__(self, other):
        return self.n == other.n
    def __len__(self):
        return self.n
    def __getitem__(self, i):
        if i >= self.n: raise IndexError(i)
        return i * 10
    def __call__(self, x):
        return self.n + x
    def __repr__(self):
        return f'Base({self.n})'

class Derived(Base):
    scale = 3
    def __init__(self, n, extra=1):
        super().__init__(n)
        self.extra = extra
    def size(self):
        return super().size() + self.extra

assert Base(4).size() == 8 and Derived(4).size() == 13 and Derived(4).double == 8
assert Base.make(3).n == 3 and Derived.of(5).extra == 1 and isinstance(Derived(1), Base)
assert (Base(1) + Base(2)).n == 3 and Base(1) == Base(1) and len(Base(3)) == 3 and Base(5)[4] == 40 and Base(1)(2) == 3
assert str(Base(7)) == 'Base(7)' and f'{Base(7)}' == 'Base(7)' and list(Base(3)) == [0, 10, 20]
assert hasattr(Base(1), 'n') and not hasattr(Base(1), 'q') and getattr(Base(1), 'q', 5) == 5

@dataclass
class Config:
    m: int
    n: int = 4
    tags: list = field(default_factory=list)
    def area(self):
        return self.m * self.n
c = Config(2, n=8)
assert c.area() == 16 and c == Config(2, 8) and c.tags == [] and str(c) == 'Config(m=2, n=8, tags=[])'
@dataclass(frozen=True)
class Point:
    x: int
    y: int = 0
assert {Point(1): 'a'}[Point(1, 0)] == 'a'

class Color(Enum):
    RED = 1
    BLUE = 'b'
class Level(IntEnum):
    LOW = auto()
    HIGH = auto()
assert Color.RED.value == 1 and Color.BLUE.name == 'BLUE' and Color(1) is Color.RED and Color['BLUE'] is Color.BLUE
assert [m.name for m in Color] == ['RED', 'BLUE'] and Color.RED != Color.BLUE and Color.RED == Color.RED
assert Level.HIGH == 2 and Level.LOW + 1 == 2 and Level.LOW < Level.HIGH
class Pair(NamedTuple):
    a: int
    b: int = 3
p = Pair(1)
assert p.b == 3 and p[0] == 1 and tuple(p) == (1, 3)
x, y = p
assert y == 3
class Guard:
    def __init__(self): self.log = []
    def __enter__(self):
        self.log.append('in'); return self
    def __exit__(self, *args):
        self.log.append('out')
with Guard() as g:
    g.log.append('body')
assert g.log == ['in', 'body', 'out']
")
    .unwrap();
}

#[test]
fn modules_of_python() {
    run("
from __future__ import annotations
import math, functools, itertools, operator
from functools import partial, reduce, lru_cache
from itertools import product
from collections import namedtuple
assert math.ceil(2.1) == 3 and math.floor(-2.1) == -3 and math.log2(8) == 3.0 and math.gcd(12, 18) == 6
assert math.prod([2, 3, 4]) == 24 and math.isqrt(17) == 4 and math.inf > 1e300 and abs(math.pi - 3.14159265) < 1e-6
assert partial(pow, 2)(5) == 32 and reduce(lambda a, b: a * b, [1, 2, 3, 4]) == 24
assert list(product([1, 2], 'ab')) == [(1, 'a'), (1, 'b'), (2, 'a'), (2, 'b')]
assert list(itertools.chain([1], (2, 3))) == [1, 2, 3] and list(itertools.chain.from_iterable([[1], [2]])) == [1, 2]
assert list(itertools.accumulate([1, 2, 3])) == [1, 3, 6] and list(itertools.combinations([1, 2, 3], 2)) == [(1, 2), (1, 3), (2, 3)]
assert list(zip('ab', itertools.count(5))) == [('a', 5), ('b', 6)] and operator.itemgetter(1)([7, 8]) == 8
@lru_cache(maxsize=None)
def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)
assert fib(60) == 1548008755920
P = namedtuple('P', 'x y')
assert P(1, y=2).y == 2
")
    .unwrap();
}

#[test]
fn flags_missing_keys_and_replaced_dataclasses() {
    run("
import dataclasses, enum
from collections import defaultdict
class F(enum.Flag):
    X = enum.auto()
    Y = enum.auto()
    Z = enum.auto()
    XZ = 5
assert [f.value for f in (F.X, F.Y, F.Z)] == [1, 2, 4]
both = F.X | F.Y
assert both.value == 3 and F.X in both and F.Z not in both and both & F.Y is F.Y and both ^ F.X is F.Y
assert (F.X | F.Z) is F.XZ and (~F.X).value == 6 and not (F.X & F.Y) and isinstance(both, F)
d = defaultdict(list)
for i in range(5):
    d[i % 2].append(i)
assert dict(d) == {0: [0, 2, 4], 1: [1, 3]} and 2 not in d and d.get(7) is None
n = defaultdict(int, a=3)
n['a'] += 1
n['b'] += 5
assert n['a'] == 4 and n['b'] == 5 and len(n) == 2
@dataclasses.dataclass(frozen=True)
class C:
    a: int
    def __post_init__(self):
        object.__setattr__(self, 'twice', self.a * 2)
assert dataclasses.replace(C(2), a=5).twice == 10
")
    .unwrap();
}

#[test]
fn exceptions() {
    run("
def check(f):
    try:
        f()
    except (KeyError, IndexError) as e:
        return 'lookup'
    except ZeroDivisionError:
        return 'zero'
    except Exception as e:
        return str(e)
    else:
        return 'fine'
def boom():
    raise ValueError('bad ' + 'thing')
assert check(lambda: {}['x']) == 'lookup' and check(lambda: [][1]) == 'lookup' and check(lambda: 1 // 0) == 'zero'
assert check(boom) == 'bad thing' and check(lambda: 1) == 'fine'
class Mine(RuntimeError):
    pass
log = []
try:
    try:
        raise Mine('x')
    finally:
        log.append('finally')
except RuntimeError as e:
    log.append(type(e).__name__)
assert log == ['finally', 'Mine']
")
    .unwrap();
    fails(
        "def f():\n    raise ValueError('no good')\nf()\n",
        &[
            "ValueError: no good",
            "k.py:2:5",
            "\"f\" is called from here",
            "k.py:3:1",
        ],
    );
}

#[test]
fn messages() {
    fails(
        "block = 3\nx = blok + 1\n",
        &["unknown name \"blok\"", "k.py:2:5", "did you mean \"block\"?"],
    );
    fails(
        "def f(a, b): pass\nf(1)\n",
        &["f() misses \"b\"", "\"f\" is defined here"],
    );
    fails(
        "def f(a): pass\nf(1, 2)\n",
        &["f() takes 1 positional argument but 2 were given", "k.py:2:6"],
    );
    fails(
        "def f(width): pass\nf(widht=1)\n",
        &["no parameter \"widht\"", "did you mean \"width\"?"],
    );
    fails("x = [1, 2][5]\n", &["index 5 is out of range for length 2"]);
    fails(
        "x = 1 + 'a'\n",
        &["unsupported operands of \"+\": int and str", "k.py:1:5"],
    );
    fails("x = {'a': 1}['b']\n", &["no key 'b'"]);
    fails("x = 1 / 0\n", &["division by zero"]);
    fails("a, b = 1, 2, 3\n", &["2 names on the left, 3 on the right"]);
    fails(
        "def f():\n    y = x\n    x = 1\nf()\n",
        &["\"x\" is used before it has a value"],
    );
    fails(
        "assert 1 == 2, 'numbers differ'\n",
        &["assertion failed: numbers differ"],
    );
    fails(
        "class Items(list):\n    pass\n",
        &["a class cannot inherit from list", "keep the list in a field"],
    );
    fails(
        "class K:\n    def __hash__(self):\n        return 1\nd = {K(): 2}\n",
        &["K, with __eq__ or __hash__ of its own, cannot be a key"],
    );
    fails("x = 10 ** 60\n", &["larger than 127 bits"]);
    fails("import math\nmath.sqroot(2)\n", &["unknown name \"math.sqroot\""]);
    fails(
        "'abc'.uper()\n",
        &["str has no attribute \"uper\"", "did you mean \"upper\"?"],
    );
}

#[test]
fn hostile_files_end_in_an_error() {
    let cases = [
        ("while True: pass\n", "steps"),
        ("x = [0]\nwhile True: x = x + x\n", "items"),
        ("x = 'a'\nwhile True: x += x\n", "items"),
        ("def f(): return f()\nf()\n", "calls within calls"),
        ("x = [0] * (10 ** 12)\n", "items"),
        ("x = list(range(10 ** 12))\n", "items"),
        ("x = []\nwhile True: x = [x]\n", "objects were made"),
        ("x = ()\nwhile True: x = (x,)\n", "objects were made"),
        (
            "x = 1\nwhile True:\n    def f(y=x): return y\n    x = f\n",
            "objects were made",
        ),
        (
            "class N:\n    def __init__(self, n): self.n = n\nx = 1\nwhile True: x = N(x)\n",
            "objects were made",
        ),
        (
            "def make(f):\n    def g(): return f\n    return g\nx = 1\nwhile True: x = make(x)\n",
            "objects were made",
        ),
        (
            "import functools\nfunctools.reduce(lambda a, b: {1: a}, range(400000))\n",
            "objects were made",
        ),
        ("x = []\nfor i in range(100000): x = [x]\ny = str(x)\n", "deep"),
        ("x = 1\nwhile True: x = x * x + 1\n", "127 bits"),
        ("def g():\n    while True: yield 1\nlist(g())\n", "steps"),
        ("f'{1:>{10**9}}'\n", "too wide"),
        ("x = []\nx.append(x)\nrepr(x)\n", "deep"),
        (
            "import itertools\nlist(itertools.product(range(1000), repeat=9))\n",
            "items",
        ),
        ("x = 'a' * 1000000\ny = x.replace('a', x)\n", "items"),
        ("try:\n    while True: pass\nexcept Exception: pass\n", "steps"),
        ("x = iter([])\nwhile True: x = map(str, x)\n", "objects were made"),
        (
            "x = iter([1])\nfor i in range(9999): x = map(str, x)\nnext(x)\n",
            "deep",
        ),
        (
            "def g(x):\n    yield from x\nx = []\nwhile True: x = g(x)\n",
            "objects were made",
        ),
        (
            "def g(x):\n    for y in x: yield 1\n    yield 2\nx = []\nwhile True:\n    x = g(x)\n    try: next(x)\n    except ValueError: pass\n",
            "calls within calls|objects were made",
        ),
        ("x = []\nwhile True: x = (y for y in x)\n", "objects were made"),
        (
            "def g():\n    yield next(me)\nme = g()\nnext(me)\n",
            "already running",
        ),
    ];
    for (text, part) in cases {
        let error = run(text).expect_err(text);
        assert!(part.split('|').any(|p| error.contains(p)), "{text}\n{error}");
    }
}

#[test]
fn host_code_is_skipped_and_its_names_say_so() {
    run("
import torch
import numpy as np
import tvm
from tvm.script import tirx as T, ir as I
x = torch.empty(3)
y, z = x.shape, 4
exe = tvm.compile(tvm.IRModule({'main': 1}), target='cuda')
exe(x, y)
def main():
    print(torch.rand(3))
if __name__ == '__main__':
    main()
for i in range(3):
    exe(x)
N = 4
")
    .unwrap();
    fails(
        "import torch\nn = torch.cuda.device_count()\ndef f():\n    return n + 1\nassert f() == 2\nclass A:\n    pass\nA(n)\n",
        &["A() takes no arguments"],
    );
}

struct Files;

impl Imports for Files {
    fn package(&self) -> String {
        "pkg.sub".into()
    }

    fn read(&self, module: &str) -> Option<ModuleText> {
        let text = match module {
            "helpers" => {
                "from shapes import TILE\nWIDTH = TILE * 2\ndef area(a, b=WIDTH):\n    return a * b\n"
            }
            "shapes" => "TILE = 16\n",
            "loop_a" => "FIRST = 1\nimport loop_b\nSECOND = loop_b.third()\n",
            "loop_b" => {
                "import loop_a\nfrom loop_a import FIRST\ndef third():\n    return loop_a.FIRST + 2\n"
            }
            "loop_c" => "import loop_d\nLATE = 1\n",
            "loop_d" => "from loop_c import LATE\n",
            "pkg" => "from .outer import WIDTH\nfrom . import outer as same\nfrom .named import named\n",
            "pkg.named" => "def named():\n    return 'a function'\n",
            "pkg.other" => "import pkg.named\nfrom .named import named as n\n",
            "pkg.outer" => "WIDTH = 5\n",
            "pkg.sub.near" => {
                "from ..outer import WIDTH as W\nfrom .. import WIDTH\nfrom . import nearest\nAREA = W * WIDTH\n"
            }
            "pkg.sub.nearest" => "NAME = 'nearest'\n",
            "outer" => "WIDTH = 'the wrong one'\n",
            "broken" => "x = 1 +\n",
            "pkg.inner" => "DEPTH = 3\n",
            "asked" => {
                "OWN = 1\ndef __getattr__(name):\n    if name == 'no':\n        raise AttributeError(name)\n    return name * 2\n"
            }
            "built" => "from .entry import kernel\nfrom .statements import Statements\n",
            "built.entry" => {
                "from tvm.script.ir_builder import IRBuilder\nfrom tvm.tirx.script.builder import ir as I\ndef kernel(function):\n    with IRBuilder() as builder:\n        with I.prim_func():\n            I.func_name(function.__name__)\n            A = I.arg('A', I.buffer((32,), 'int32'))\n            I.device_entry()\n            function(A, I.thread_id([32]))\n    return builder.get()\n"
            }
            "built.statements" => {
                "from tvm.script import tirx as T\nclass Statements:\n    def __init__(self, functions):\n        self.functions = functions\n    def __getattr__(self, name):\n        return Statements(getattr(self.functions, name))\n    def __call__(self, *args):\n        T.evaluate(self.functions(*args))\n"
            }
            "math" => "import math\npi = 4\n",
            "random" => "import random\nSEED = 7\n",
            _ => return None,
        };
        Some(ModuleText {
            name: format!("{}.py", module.replace('.', "/")),
            text: text.to_string(),
            is_package: matches!(module, "pkg" | "built"),
        })
    }
}

#[test]
fn imports_between_kernel_files() {
    run_with(
        "import helpers\nfrom helpers import area as product, WIDTH\nimport pkg.inner\nfrom pkg.inner import DEPTH\nassert WIDTH == 32 and helpers.TILE == 16 and product(2) == 64 and pkg.inner.DEPTH == DEPTH == 3\n",
        &Files,
    )
    .unwrap();
    // A kernel file may have the name of a library module; the library module keeps its meaning.
    run_with(
        "import math\nimport random\nassert math.pi < 3.2 and random.SEED == 7\n",
        &Files,
    )
    .unwrap();
    // A module may have a function for the names that it has not.
    run_with(
        "import asked\nfrom asked import far\nassert asked.OWN == 1 and asked.near == 'nearnear' and far == 'farfar' and not hasattr(asked, 'no')\n",
        &Files,
    )
    .unwrap();
    // Modules may import each other, as far as each has run.
    run_with("import loop_a\nassert loop_a.SECOND == 3\n", &Files).unwrap();
    let error = run_with("import loop_c\n", &Files).unwrap_err();
    assert!(
        error.contains("cannot import \"LATE\" from \"loop_c\", which is still running"),
        "{error}"
    );
    let error = run_with("import broken\n", &Files).unwrap_err();
    assert!(error.contains("broken.py:1"), "{error}");
    let error = run_with("from helpers import aria\n", &Files).unwrap_err();
    assert!(error.contains("did you mean \"area\"?"), "{error}");
}

#[test]
fn relative_imports_are_of_the_package() {
    run_with(
        "from .near import AREA\nfrom . import near\nfrom ..outer import WIDTH\nfrom .. import same\nimport pkg\n\
         assert AREA == 25 and near.nearest.NAME == 'nearest' and WIDTH == 5 and same.WIDTH == 5\n\
         assert pkg.outer is same and pkg.sub.near is near if hasattr(pkg, 'sub') else True\n\
         import pkg.other\nassert pkg.named() == pkg.other.n() == 'a function'\n",
        &Files,
    )
    .unwrap();
    let error = run_with("from ...outer import WIDTH\n", &Files).unwrap_err();
    assert!(
        error.contains("\"from ...outer import\" leaves the outermost package"),
        "{error}"
    );
    let error = run("from ..helpers import f\n").unwrap_err();
    assert!(error.contains("has an __init__.py"), "{error}");
}

const KERNELS: &str = "
from tvm.script import tirx as T

@T.prim_func
def one(n: T.int32):
    pass

@T.jit
def two(*, N: T.constexpr, flag: T.constexpr = True):
    pass

three = two.specialize(N=3)
";

#[test]
fn entries_are_listed_in_order() {
    let mut sources = SourceMap::new();
    let file = KernelFile::load(&mut sources, "k.py", KERNELS, &NoImports).unwrap();
    let list: Vec<(&str, EntryKind)> = file.entries().iter().map(|e| (e.name.as_str(), e.kind)).collect();
    assert_eq!(
        list,
        [
            ("one", EntryKind::PrimFunc),
            ("two", EntryKind::Jit),
            ("three", EntryKind::PrimFunc)
        ]
    );
    let two = &file.entries()[1];
    assert_eq!(
        (two.constexprs[0].name.as_str(), two.constexprs[0].required),
        ("N", true)
    );
    assert_eq!(two.constexprs[1].default, Some(ConstValue::Bool(true)));
}

#[test]
fn entries_and_constexprs_are_checked() {
    let mut sources = SourceMap::new();
    let file = KernelFile::load(&mut sources, "k.py", KERNELS, &NoImports).unwrap();
    let build = |entry: Option<&str>, values: &[(&str, i64)]| {
        let values: BTreeMap<String, ConstValue> = values
            .iter()
            .map(|(n, v)| (n.to_string(), ConstValue::Int(i128::from(*v))))
            .collect();
        file.build(entry, &values)
            .map(|m| m.functions[0].1.params.len())
            .map_err(|d| d.render(&sources))
    };
    assert_eq!(build(Some("one"), &[]), Ok(1));
    assert_eq!(build(Some("two"), &[("N", 4)]), Ok(0));
    assert_eq!(build(Some("three"), &[]), Ok(0));
    for (entry, values, parts) in [
        (
            None,
            vec![],
            vec!["more than one entry", "\"one\", \"two\", \"three\""],
        ),
        (
            Some("tow"),
            vec![],
            vec!["no entry \"tow\"", "did you mean", "\"one\", \"two\""],
        ),
        (
            Some("two"),
            vec![],
            vec!["needs a value for constexpr \"N\"", "-D N=…", "k.py:9:12"],
        ),
        (
            Some("two"),
            vec![("N", 1), ("flg", 2)],
            vec!["no constexpr \"flg\"", "did you mean \"flag\"?"],
        ),
        (
            Some("one"),
            vec![("n", 1)],
            vec!["\"n\" of kernel \"one\" is a run-time parameter"],
        ),
    ] {
        let error = build(entry, &values).unwrap_err();
        for part in parts {
            assert!(error.contains(part), "{part}: {error}");
        }
    }
}

#[test]
fn nothing_outlives_the_evaluation() {
    let texts = [
        "def f(): return f\ng = lambda: g\n",
        "class A:\n    def m(self): return A\na = A()\na.me = a\nx = []\nx.append(x)\n",
        "def outer():\n    def inner(): return inner\n    class B:\n        def m(self): return inner\n    return B()\nb = outer()\n",
        "import enum, dataclasses, functools\n\
         class E(enum.Enum):\n    X = 1\n    def m(self): return E.X\n\
         @dataclasses.dataclass\nclass D:\n    x: int = 1\n    def m(self): return D\n\
         @functools.lru_cache\ndef f(n): return D if n else E\nd = f(1)\np = functools.partial(f, 0)\n",
        "from tvm.script import tirx as T\n\
         @T.inline\ndef put(B, i): B[i] = T.float32(0)\n\
         @T.jit\ndef k(B: T.Buffer((N,), 'float32'), *, N: T.constexpr):\n\
         \x20   T.device_entry(); tx = T.thread_id([N])\n    put(B, tx)\n",
        "@I.ir_module\nclass Module:\n    @T.prim_func\n    def main(B: T.Buffer((4,), 'float32')):\n\
         \x20       T.device_entry(); tx = T.thread_id([4])\n        B[tx] = T.float32(0)\n",
        "x = 1 +\n",
        "def f(): raise ValueError(f)\nf()\n",
        "def g():\n    yield g\nh = g()\nnext(h)\ndef k():\n    me = []\n    x = (x for x in me)\n\
         \x20   me.append(x)\n    yield me\nb = next(k())\nimport collections\nc = collections.Counter([g, h])\n",
    ];
    for text in texts {
        let before = crate::eval::scope::living::count();
        let mut sources = SourceMap::new();
        if let Ok(file) = KernelFile::load(&mut sources, "k.py", text, &NoImports) {
            let defines = BTreeMap::from([("N".to_string(), ConstValue::Int(4))]);
            for entry in file.entries() {
                let wanted = if entry.kind == EntryKind::Jit {
                    defines.clone()
                } else {
                    BTreeMap::new()
                };
                file.build(Some(&entry.name), &wanted).unwrap();
            }
        }
        let after = crate::eval::scope::living::count();
        assert_eq!(after, before, "{text}");
    }
}

/// The lines of a kernel file that the statements of its function have.
#[test]
fn statements_that_a_library_emits_have_the_places_of_its_calls() {
    let text = "from built import Statements, kernel\nfrom tvm.script import tirx as T\nfrom helpers import area\n\n\
                cuda, ptx = Statements(T.cuda), Statements(T.ptx)\n\ndef twice():\n    cuda.warp_sync()\n\n@kernel\ndef k(A, tx):\n    cuda.cta_sync()\n    twice()\n    ptx.bar.warp.sync(T.uint32(7))\n    \
                T.buffer_store(A, tx, [tx])\n";
    let mut sources = SourceMap::new();
    let file = KernelFile::load(&mut sources, "k.py", text, &Files)
        .unwrap_or_else(|e| panic!("{}", e.render(&sources)));
    let module = file
        .build(None, &BTreeMap::new())
        .unwrap_or_else(|e| panic!("{}", e.render(&sources)));
    struct Places<'a>(&'a SourceMap, Vec<String>);
    impl crate::ir::Visitor for Places<'_> {
        fn visit_stmt(&mut self, stmt: &crate::ir::Stmt) {
            use crate::ir::StmtKind;
            if matches!(stmt.kind, StmtKind::Evaluate(_) | StmtKind::BufferStore { .. }) {
                self.1.push(self.0.text(stmt.span).to_string());
            }
            self.walk_stmt(stmt);
        }

        fn visit_expr(&mut self, expr: &crate::ir::Expr) {
            if matches!(expr.kind, crate::ir::ExprKind::Call { .. }) {
                self.1.push(self.0.text(expr.span).to_string());
            }
            self.walk_expr(expr);
        }
    }
    let mut places = Places(&sources, Vec::new());
    for (_, function) in &module.functions {
        // The function itself stands where the library was asked for it.
        assert_eq!(sources.locate(function.span).map(|place| place.line), Some(10));
        crate::ir::Visitor::visit_stmt(&mut places, &function.body);
    }
    assert_eq!(
        places.1,
        [
            "cuda.cta_sync()",
            "cuda.cta_sync()",
            "cuda.warp_sync()",
            "cuda.warp_sync()",
            "ptx.bar.warp.sync(T.uint32(7))",
            "ptx.bar.warp.sync(T.uint32(7))",
            "T.buffer_store(A, tx, [tx])"
        ]
    );
}
