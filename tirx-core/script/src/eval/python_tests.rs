//! Compile-time Python compared with the values that CPython gives.

use crate::source::SourceMap;
use crate::{KernelFile, NoImports};

/// Runs a file whose assertions must hold.
fn holds(text: &str) {
    let mut sources = SourceMap::new();
    if let Err(e) = KernelFile::load(&mut sources, "k.py", text, &NoImports) {
        panic!("{}", e.render(&sources));
    }
}

#[test]
fn bases_are_searched_in_c3_order() {
    holds(
        "
class A:
    def f(self): return 1
class B(A):
    def f(self): return 10 + super().f()
class C(A):
    def f(self): return 100 + super().f()
class D(B, C): pass
assert D().f() == 111
assert [c.__name__ for c in D.__mro__] == ['D', 'B', 'C', 'A', 'object'] and D.mro()[1] is B
assert isinstance(D(), object) and issubclass(D, A) and not issubclass(B, C)
class Old(D):
    def f(self): return super(D, self).f()
assert Old().f() == 111
class Counted(A):
    made = 0
    def __new__(cls, *args):
        cls.made += 1
        return super().__new__(cls)
    def __init__(self, n): self.n = n
assert Counted(4).n == 4 and Counted.made == 1
try:
    class Bad(A, B): pass
    assert False
except TypeError as e:
    pass
",
    );
}

#[test]
fn objects_of_a_class_stand_for_its_attributes() {
    holds(
        "
class Doubled:
    def __set_name__(self, owner, name):
        self.name, self.owner = name, owner
    def __get__(self, obj, owner=None):
        return self if obj is None else getattr(obj, '_' + self.name, 7)
    def __set__(self, obj, value):
        setattr(obj, '_' + self.name, 2 * value)
class Constant:
    def __get__(self, obj, owner=None):
        return owner.__name__
class A:
    d = Doubled()
    c = Constant()
class B(A): pass
a, b = A(), B()
a.d = 4
assert (a.d, b.d, a._d) == (8, 7, 8) and A.d.name == 'd' and B.d.owner is A
assert (A.c, a.c, b.c) == ('A', 'A', 'B')
a.c = 3
assert a.c == 3 and B.__bases__ == (A,) and [c.__name__ for c in A.__bases__] == ['object']
",
    );
}

#[test]
fn comprehensions_have_one_variable() {
    holds(
        "
fs = [lambda: i for i in range(3)]
assert [f() for f in fs] == [2, 2, 2]
ds = {k: (lambda: k) for k in 'ab'}
assert ds['a']() == 'b'
assert [(i, j) for i in range(3) for j in range(i) if j != 1] == [(1, 0), (2, 0)]
i = 7
assert [i for i in range(i)][-1] == 6 and i == 7
log = []
def note(a, b):
    log.append(b)
    return a
assert {note(10, 1): note(11, 2)} == {10: 11} and log == [1, 2]
",
    );
}

#[test]
fn numbers_round_as_in_python() {
    holds(
        "
import math
assert round(1234, -2) == 1200 and round(1250, -2) == 1200 and round(1350, -2) == 1400 and round(-1250, -2) == -1200
assert round(1234.5, -2) == 1200.0 and round(7, 2) == 7 and round(0.5) == 0
assert math.fsum([0.1] * 10) == 1.0 and math.fsum([1e100, 1.0, -1e100]) == 1.0 and math.fsum([]) == 0.0
assert math.fsum([1e-16, 1, 1e16]) == 10000000000000002.0
",
    );
}

#[test]
fn named_tuples_are_tuples() {
    holds(
        "
from collections import namedtuple
P = namedtuple('P', 'x y')
p = P(1, 2)
assert p == (1, 2) and (1, 2) == p and p != (1, 3) and p < (1, 3) and p + (3,) == (1, 2, 3)
assert p._asdict() == {'x': 1, 'y': 2} and P._fields == ('x', 'y') and P._make([3, 4]) == (3, 4)
assert isinstance(p, tuple) and {p: 5}[(1, 2)] == 5 and len(p) == 2 and p.index(2) == 1 and repr(p) == 'P(x=1, y=2)'
assert p._replace(y=5) == (1, 5)
class Q(P):
    def __new__(cls, x, y=9):
        return super().__new__(cls, x, y)
assert Q(1) == (1, 9)
",
    );
}

#[test]
fn exceptions_carry_what_they_were_given() {
    holds(
        "
class Err(ValueError):
    def __init__(self, code):
        super().__init__('code %d' % code)
        self.code = code
try:
    raise Err(3)
except ValueError as e:
    assert str(e) == 'code 3' and e.code == 3 and e.args == ('code 3',)
try:
    assert 1 == 2, 'msg'
except AssertionError as e:
    assert str(e) == 'msg' and e.args == ('msg',)
try:
    assert 1 == 2
except AssertionError as e:
    assert str(e) == ''
assert str(KeyError('k')) == \"'k'\" and repr(ValueError(1)) == 'ValueError(1)'
try:
    {}['k']
except KeyError as e:
    assert e.args == ('k',) and str(e) == \"'k'\"
try:
    try:
        1 // 0
    except ZeroDivisionError as e:
        raise RuntimeError('outer') from e
except RuntimeError as e:
    assert isinstance(e.__cause__, ZeroDivisionError) and e.__context__ is e.__cause__
assert ValueError().__cause__ is None
kinds = []
for bad in [lambda: no_such_name, lambda: (lambda x: x)(), lambda: (lambda: 1)(2), lambda: Err(), lambda: [][1]]:
    try:
        bad()
    except (NameError, TypeError, IndexError) as e:
        kinds.append(type(e).__name__)
assert kinds == ['NameError', 'TypeError', 'TypeError', 'TypeError', 'IndexError']
class Swallow:
    def __enter__(self): return self
    def __exit__(self, kind, e, trace):
        self.seen = (kind, str(e))
        return True
with Swallow() as s:
    raise ValueError('gone')
assert s.seen == (ValueError, 'gone')
class Keep(Swallow):
    def __exit__(self, *about):
        super().__exit__(*about)
k = Keep()
try:
    with k:
        raise ValueError('stays')
except ValueError as e:
    assert str(e) == 'stays' and k.seen[1] == 'stays'
",
    );
}

#[test]
fn dataclasses_compare_and_print_by_their_fields() {
    holds(
        "
import dataclasses
from dataclasses import dataclass, field
@dataclass
class A:
    x: int
    y: int = field(default=3, repr=False)
    z: int = field(default=0, compare=False)
assert repr(A(1)) == 'A(x=1, z=0)' and A(1, z=1) == A(1, z=2) and A(1) != A(2)
@dataclass(order=True)
class V:
    major: int
    minor: int = 0
assert V(1, 2) < V(1, 3) < V(2) and sorted([V(2), V(1)])[0] == V(1) and max(V(1), V(3)) == V(3) and V(1) <= V(1)
assert dataclasses.astuple(V(1, 2)) == (1, 2) and dataclasses.is_dataclass(V) and dataclasses.is_dataclass(V(1))
assert not dataclasses.is_dataclass(3)
@dataclass
class Outer:
    v: V
    vs: list
assert dataclasses.asdict(Outer(V(1), [V(2)])) == {'v': {'major': 1, 'minor': 0}, 'vs': [{'major': 2, 'minor': 0}]}
@dataclass(kw_only=True)
class K:
    a: int
    b: int = 2
assert K(a=1).b == 2
class Derived(V):
    def __init__(self, n):
        super().__init__(n, n + 1)
assert Derived(4).minor == 5 and repr(V(1)) == 'V(major=1, minor=0)'
@dataclass(eq=False)
class N:
    a: int
assert N(1) != N(1)
",
    );
}

#[test]
fn sets_and_enums_print_and_hash_as_in_python() {
    holds(
        "
import enum
assert repr(frozenset({1})) == 'frozenset({1})' and repr(frozenset()) == 'frozenset()' and type(frozenset()) is frozenset
assert {frozenset([1, 2]): 3}[frozenset([2, 1])] == 3 and frozenset([1]) == {1} and frozenset([1]) | {2} == {1, 2}
assert not hasattr(frozenset(), 'add') and isinstance(frozenset([1]) | {2}, frozenset)
class F(enum.Flag):
    R = 1
    W = 2
    X = 4
assert repr(F.R | F.W) == '<F.R|W: 3>' and str(F.R | F.W) == 'F.R|W' and repr(F(0)) == '<F: 0>' and F(5) == F.R | F.X
assert list(F.R | F.X) == [F.R, F.X] and len(F.R | F.X) == 2
class S(enum.StrEnum):
    RED = enum.auto()
    BLUE = 'b'
assert S.RED == 'red' and str(S.BLUE) == 'b' and f'{S.RED}!' == 'red!' and S('b') is S.BLUE and S.RED.upper() == 'RED'
assert isinstance(S.RED, str) and {'red': 1}[S.RED] == 1 and '-'.join([S.RED, S.BLUE]) == 'red-b'
class I(int, enum.Enum):
    A = 3
assert I.A + 1 == 4 and isinstance(I.A, int)
class Planet(enum.Enum):
    EARTH = (1, 2)
    def __init__(self, mass, radius):
        self.mass = mass
        self.radius = radius
assert Planet.EARTH.radius == 2
a = {1, 2, 3}
a.difference_update([1])
assert a == {2, 3}
a.intersection_update([3, 4])
assert a == {3}
b = a
b |= {9}
assert a == {3, 9}
",
    );
}

#[test]
fn special_methods() {
    holds(
        "
class N:
    def __init__(self, v): self.v = v
    def __iadd__(self, o):
        self.v += o
        return self
    def __ishl__(self, o): return NotImplemented
    def __abs__(self): return N(abs(self.v))
    def __float__(self): return self.v / 2
    def __index__(self): return self.v
    def __delitem__(self, i): self.gone = i
    def __class_getitem__(cls, i): return (cls.__name__, i)
    def __round__(self, n=None): return ('r', n)
n = m = N(3)
n += 4
assert m.v == 7 and n is m and abs(N(-2)).v == 2 and float(N(3)) == 1.5 and [5, 6, 7][N(1)] == 6 and int(N(4)) == 4
del n[5]
assert n.gone == 5 and N[int] == ('N', int) and round(N(1), 2) == ('r', 2)
del n.gone
assert not hasattr(n, 'gone')
d = {}
class Base:
    def __init_subclass__(cls, tag=None, **rest):
        super().__init_subclass__(**rest)
        d[cls.__name__] = tag
class Child(Base, tag='c'): pass
class Other(Base): pass
assert d == {'Child': 'c', 'Other': None}
class Guard:
    def __setattr__(self, name, value):
        super().__setattr__(name, value * 2)
g = Guard()
g.x = 4
assert g.x == 8
x = [1, 2, 3, 4, 5]
del x[1:3]
assert x == [1, 4, 5]
assert '{:>{w}}'.format(5, w=4) == '   5' and '{0[1]}-{a.v}'.format([1, 2], a=N(8)) == '2-8' and '{!r:>5}'.format('a') == \"  'a'\"
",
    );
}

#[test]
fn signatures_and_attributes_behind_a_class_are_pythons() {
    holds(
        "
import inspect
def f(a, /, b: int = 2, *rest, c, d=4, **more): pass
P = inspect.Parameter
parameters = inspect.signature(f).parameters
assert list(parameters) == ['a', 'b', 'rest', 'c', 'd', 'more'] and parameters.get('e') is None
kinds = [P.POSITIONAL_ONLY, P.POSITIONAL_OR_KEYWORD, P.VAR_POSITIONAL, P.KEYWORD_ONLY, P.KEYWORD_ONLY, P.VAR_KEYWORD]
assert [p.kind for p in parameters.values()] == kinds and all(p.kind is k for p, k in zip(parameters.values(), kinds))
assert [p.default for p in parameters.values()] == [P.empty, 2, P.empty, P.empty, 4, P.empty]
assert parameters['b'].annotation is int and parameters['a'].annotation is inspect.Signature.empty
class C:
    def m(self, x): pass
assert list(inspect.signature(C().m).parameters) == ['x'] and list(inspect.signature(C.m).parameters) == ['self', 'x']
assert list(inspect.signature(lambda x, y=1: x).parameters) == ['x', 'y']
class Proxy:
    __slots__ = ('_of',)
    def __init__(self, of):
        object.__setattr__(self, '_of', of)
    def __getattr__(self, name):
        return Proxy(object.__getattribute__(self, '_of') + '.' + name)
assert object.__getattribute__(Proxy('a').b.c, '_of') == 'a.b.c'
try:
    object.__getattribute__(Proxy('a'), 'missing')
except AttributeError:
    missing = True
assert missing
assert len(set().union(*[{i} for i in range(300)])) == 300
assert {1, 2, 3}.intersection(*[{2, 3, i} for i in range(4, 30)]) == {2, 3}
",
    );
}

#[test]
fn generators_run_when_they_are_asked() {
    holds(
        "
log = []
def gen():
    for i in range(3):
        log.append(i)
        yield i
g = gen()
assert log == []
assert next(g) == 0 and len(log) == 1
assert list(g) == [1, 2] and next(g, 'end') == 'end'
def count(n):
    while True:
        yield n
        n += 1
c = count(5)
assert [next(c), next(c)] == [5, 6]
for x in count(0):
    if x == 4:
        break
assert x == 4
def inner():
    a = yield 1
    b = yield a
    return (a, b)
def outer():
    got = yield from inner()
    yield ('got', got)
assert list(outer()) == [1, None, ('got', (None, None))]
g = inner()
assert next(g) == 1 and g.send('x') == 'x'
try:
    g.send('y')
except StopIteration as e:
    assert e.value == ('x', 'y')
def careful():
    try:
        yield 1
        yield 2
    except ValueError as e:
        yield str(e)
    else:
        yield 'else'
    finally:
        log.append('finally')
assert list(careful()) == [1, 2, 'else'] and log[-1] == 'finally'
g = careful()
next(g)
assert g.throw(ValueError('thrown')) == 'thrown'
log.clear()
g.close()
assert log == ['finally'] and list(g) == []
def nested(n):
    if n:
        yield from nested(n - 1)
        yield n
    elif n == 0:
        yield 0
    else:
        return
assert list(nested(3)) == [0, 1, 2, 3]
def twice():
    x = (yield 1) or 0
    while x < 2:
        x += 1
        if x == 1:
            continue
        yield [x, (yield 'in')]
    else:
        yield 'done'
assert list(twice()) == [1, 'in', [2, None], 'done']
",
    );
    holds(
        "
log = []
it = iter([1, 2, 3])
assert list(zip(it, it)) == [(1, 2)]
m = map(lambda x: log.append(x) or x, [1, 2, 3])
assert log == [] and next(m) == 1 and log == [1]
e = (log.append(x) or x for x in range(9) if x % 2)
assert log == [1] and next(e) == 1 and next(e) == 3 and log == [1, 1, 3]
def forever():
    while True: yield 1
a, b = zip([1, 2], forever())
assert (a, b) == ((1, 1), (2, 1)) and any(x == 1 for x in forever()) and 1 in forever()
n = iter([1])
assert next(n) == 1 and next(n, None) is None
x = [1, 2]
for i in x:
    if len(x) < 5: x.append(i)
assert x == [1, 2, 1, 2, 1]
state = [3, 2, 1]
assert list(iter(state.pop, 1)) == [] and list(iter(state.pop, 3)) == [2]
class Up:
    def __init__(self): self.n = 0
    def __iter__(self): return self
    def __next__(self):
        self.n += 1
        if self.n > 3: raise StopIteration
        return self.n
assert list(Up()) == [1, 2, 3] and [next(Up()) for i in range(2)] == [1, 1] and list(zip(Up(), 'ab')) == [(1, 'a'), (2, 'b')]
class Seq:
    def __getitem__(self, i):
        if i > 2: raise IndexError
        return i * i
assert list(Seq()) == [0, 1, 4]
class Ctx:
    def __enter__(self):
        log.append('enter')
        return 5
    def __exit__(self, *about):
        log.append('exit')
def managed():
    with Ctx() as v:
        yield v
log.clear()
g = managed()
assert next(g) == 5 and log == ['enter'] and next(g, None) is None and log == ['enter', 'exit']
",
    );
}

#[test]
fn modules_written_in_python() {
    holds(
        "
import itertools as it, functools, operator
from collections import Counter, deque, ChainMap
assert [(k, list(g)) for k, g in it.groupby([1, 1, 2, 3, 3, 1])] == [(1, [1, 1]), (2, [2]), (3, [3, 3]), (1, [1])]
assert [k for k, g in it.groupby('aAbB', key=str.lower)] == ['a', 'b']
assert list(it.islice(it.cycle('ab'), 5)) == ['a', 'b', 'a', 'b', 'a']
assert list(it.compress('abcd', [1, 0, 1, 0])) == ['a', 'c'] and list(it.filterfalse(lambda x: x % 2, range(5))) == [0, 2, 4]
assert list(it.combinations_with_replacement('ab', 2)) == [('a', 'a'), ('a', 'b'), ('b', 'b')]
a, b = it.tee(iter([1, 2, 3]))
assert next(a) == 1 and list(b) == [1, 2, 3] and list(a) == [2, 3]
assert list(it.islice(range(10), 2, 8, 3)) == [2, 5] and list(it.islice(it.count(3), 2)) == [3, 4] and list(it.repeat(1, 2)) == [1, 1]
s = iter(range(9))
assert list(it.islice(s, 0, 5, 3)) == [0, 3] and next(s) == 5
assert list(it.chain([1], 'a')) == [1, 'a'] and list(it.chain.from_iterable([[1], [2]])) == [1, 2] and next(it.chain(it.count())) == 0
assert list(it.accumulate([1, 2, 3])) == [1, 3, 6] and list(it.accumulate([2, 3], lambda a, b: a * b, initial=1)) == [1, 2, 6]
assert list(it.zip_longest([1, 2], [3], fillvalue=0)) == [(1, 3), (2, 0)] and list(it.pairwise([1, 2, 3])) == [(1, 2), (2, 3)]
assert list(it.takewhile(lambda x: x < 3, it.count())) == [0, 1, 2] and list(it.dropwhile(lambda x: x < 3, range(5))) == [3, 4]
assert list(it.starmap(pow, [(2, 3), (3, 2)])) == [8, 9] and list(it.batched('abcde', 2)) == [('a', 'b'), ('c', 'd'), ('e',)]
assert sorted([3, 1, 2], key=functools.cmp_to_key(lambda a, b: b - a)) == [3, 2, 1]
@functools.total_ordering
class V:
    def __init__(self, n): self.n = n
    def __eq__(self, o): return self.n == o.n
    def __lt__(self, o): return self.n < o.n
assert V(1) <= V(1) and V(2) > V(1) and not V(1) >= V(2)
assert operator.index(3) == 3 and operator.abs(-2) == 2 and operator.pos(4) == 4 and operator.inv(0) == -1 and operator.truth([]) is False
assert operator.contains([1], 1) and operator.getitem([5], 0) == 5 and operator.is_(None, None) and operator.is_not(1, None)
assert operator.concat([1], [2]) == [1, 2] and operator.methodcaller('upper')('a') == 'A'
x = [1]
operator.setitem(x, 0, 7)
assert x == [7]
c = Counter('abracadabra')
assert c['a'] == 5 and c['z'] == 0 and c.most_common(1) == [('a', 5)] and sum(c.values()) == 11 and dict(Counter('aab')) == {'a': 2, 'b': 1}
assert repr(Counter('aab')) == \"Counter({'a': 2, 'b': 1})\" and Counter('ab') + Counter('b') == Counter(a=1, b=2) and isinstance(c, dict)
c['q'] += 2
assert c['q'] == 2 and 'q' in c
d = deque([1, 2, 3], maxlen=3)
d.append(4)
d.appendleft(0)
assert list(d) == [0, 2, 3] and d.pop() == 3 and d.popleft() == 0 and repr(d) == 'deque([2], maxlen=3)' and len(d) == 1 and d[0] == 2
d.rotate(1)
m = ChainMap({'a': 1}, {'a': 2, 'b': 3})
assert m['a'] == 1 and m['b'] == 3 and dict(m) == {'a': 1, 'b': 3} and 'c' not in m and m.get('c', 4) == 4
",
    );
}

#[test]
fn mathematics() {
    holds(
        "
import math
from math import *
assert abs(cbrt(27) - 3.0) < 1e-15 and exp2(3) == 8.0 and ldexp(0.75, 3) == 6.0 and frexp(6.0) == (0.75, 3) and frexp(0.0) == (0.0, 0)
assert frexp(5e-324) == (0.5, -1073) and ldexp(0.5, -1073) == 5e-324 and ldexp(1.0, 1023) == 2.0 ** 1023 and ldexp(1.5, -1074) == 1e-323 and ldexp(0.0, 5000) == 0.0 and ldexp(inf, 1) == inf
assert modf(3.25) == (0.25, 3.0) and modf(-3.25) == (-0.25, -3.0) and remainder(7, 4) == -1.0 and remainder(6, 4) == -2.0 and remainder(5, 2) == 1.0
assert perm(5, 2) == 20 and perm(3) == 6 and perm(2, 5) == 0 and comb(5, 9) == 0 and dist([0, 0], [3, 4]) == 5.0
assert nextafter(1.0, 2.0) == 1.0000000000000002 and nextafter(1.0, 0.0) == 0.9999999999999999 and ulp(1.0) == 2.220446049250313e-16
assert abs(asinh(1.0) - 0.881373587019543) < 1e-15 and acosh(1.0) == 0.0 and abs(atanh(0.5) - 0.5493061443340548) < 1e-15
for x, want in [(0.0, 0.0), (0.5, 0.5204998778130465), (1.0, 0.8427007929497149), (2.0, 0.9953222650189527), (-3.0, -0.9999779095030014), (9.0, 1.0)]:
    assert abs(erf(x) - want) <= 3e-16, x
assert abs(erfc(3.0) / 2.209049699858544e-05 - 1) < 1e-14 and erfc(-9.0) == 2.0
assert isclose(1.0, 1.1, rel_tol=0.2) and isclose(0.0, 1e-12, abs_tol=1e-9) and not isclose(1.0, 1.1) and isclose(inf, inf)
for bad in [lambda: acosh(0.5), lambda: asin(2), lambda: exp(1000), lambda: fmod(1, 0)]:
    try:
        bad()
        assert False, 'no error'
    except (ValueError, OverflowError) as e:
        pass
",
    );
}

#[test]
fn texts_and_bytes() {
    holds(
        "
assert 'abcabc'.rindex('b') == 4 and 'abcabc'.find('a', 1) == 3 and 'abcabc'.rfind('c', 0, 4) == 2 and 'abcabc'.count('a', 1) == 1
assert 'abc'.startswith('b', 1) and 'abc'.endswith('b', 0, 2) and 'abc'.find('', 9) == -1 and 'abcabc'.index('c', -2) == 5
assert 'aBc'.swapcase() == 'AbC' and 'Straße'.casefold() == 'strasse' and 'a\\tb'.expandtabs(4) == 'a   b' and '\\t'.expandtabs() == ' ' * 8
assert 'abcd'.translate(str.maketrans('ab', 'xy', 'c')) == 'xyd' and 'ab'.translate(str.maketrans({'a': 'long', 98: None})) == 'long'
assert '{a}-{b}'.format_map({'a': 1, 'b': 2}) == '1-2' and 'ab'.center(5, '*') == '**ab*' and 'abc'.center(6) == ' abc  '
assert 'Ab Cd'.istitle() and 'abc'.isascii() and '12'.isdecimal()
assert list((258).to_bytes(2, 'little')) == [2, 1] and list((258).to_bytes(4, 'big')) == [0, 0, 1, 2] and list((-2).to_bytes(2, 'little', signed=True)) == [254, 255]
assert int.from_bytes([1, 2], 'big') == 258 and int.from_bytes([254, 255], 'little', signed=True) == -2
try:
    (300).to_bytes(1, 'little')
    assert False, 'no error'
except OverflowError:
    pass
assert (0.75).as_integer_ratio() == (3, 4) and (3).as_integer_ratio() == (3, 1)
assert '%(x)s-%(y)03d' % {'x': 1, 'y': 2} == '1-002' and '%5s|%-5s|%.2s' % ('a', 'b', 'cde') == '    a|b    |cd'
assert '%c%c' % ('a', 66) == 'aB' and '%e' % 12345.678 == '1.234568e+04' and '%+d % d' % (5, 6) == '+5  6' and '%d' % 3.7 == '3'
assert '%*d|%-*d|' % (4, 1, 4, 2) == '   1|2   |' and '%#x %X %o' % (255, 255, 8) == '0xff FF 10' and '%5.1f%%' % 2.25 == '  2.2%'
assert dict.fromkeys('ab', 0) == {'a': 0, 'b': 0}
",
    );
}

#[test]
fn objects_have_numbers_of_their_own() {
    holds(
        "
class Role: pass
a, b = Role(), Role()
assert id(a) == id(a) != id(b) and isinstance(id(a), int)
seen = {id(role) for role in [a, b, a]}
assert len(seen) == 2 and id(b) in seen and id([]) not in seen
",
    );
}

#[test]
fn a_private_name_of_the_library_is_there_by_its_name() {
    holds(
        "
from tvm.backend.cuda.lang.alloc_pool import _validate_mma_alloc_shape
from tvm.backend.cuda.tile_primitive.tma_utils import SwizzleMode
_validate_mma_alloc_shape([64, 64], 'float16', SwizzleMode.SWIZZLE_128B_ATOM)
try:
    _validate_mma_alloc_shape([64, 48], 'float16', SwizzleMode.SWIZZLE_128B_ATOM)
    assert False
except ValueError as e:
    assert 'SWIZZLE_32B_ATOM' in str(e)
",
    );
}

#[test]
fn functions_have_attributes_and_annotations() {
    holds(
        "
import inspect
def f(a: int, b=1) -> str: pass
assert f.__annotations__ == {'a': int, 'return': str} and (lambda x: x).__annotations__ == {}
f.__annotations__['b'] = float
assert inspect.signature(f).parameters['b'].annotation is float
f.__annotations__ = {'b': 5}
parameters = inspect.signature(f).parameters
assert parameters['a'].annotation is inspect.Parameter.empty and parameters['b'].annotation == 5
def counted():
    counted.calls += 1
    return counted.calls
counted.calls = 0
assert counted() + counted() == 3 and counted.calls == 2 and not hasattr(f, 'calls')
f.__name__ = 'g'
assert f.__name__ == 'g' and counted.__name__ == 'counted'
",
    );
}

#[test]
fn classes_of_the_language_are_known() {
    holds(
        "
import tvm
from tvm.script import tirx as T
from tvm.tirx.layout import ComposeLayout, Layout, S, TileLayout
x, p = T.int32(), T.handle('float32')
E, P = tvm.ir.Expr, tvm.ir.PrimType
assert isinstance(x, E) and isinstance(x, tvm.tirx.Var) and not isinstance(x, tvm.tirx.IntImm) and not isinstance(3, E)
assert isinstance(x.ty, P) and not isinstance(p.ty, P) and isinstance(p.ty, tvm.ir.PointerType) and not isinstance(x, P)
assert isinstance(x * 2, E) and isinstance(T.int32(2), tvm.tirx.IntImm) and not isinstance(x * 2, tvm.ir.Call)
tile = TileLayout(S[(4, 8)])
swizzled = ComposeLayout(3, 3, 3, TileLayout(S[(512,)]))
assert isinstance(tile, TileLayout) and not isinstance(tile, ComposeLayout)
assert isinstance(tile, Layout) and isinstance(swizzled, Layout) and not isinstance(1, Layout)
def kept(layout: Layout) -> Layout | None:
    return layout
assert isinstance(kept(tile), TileLayout)
assert isinstance(swizzled, ComposeLayout) and not isinstance(swizzled, TileLayout)
from tvm.tirx.analysis import undefined_vars
y = T.int32()
assert [v.same_as(w) for v, w in zip(undefined_vars(x + y * x), [x, y])] == [True, True]
assert undefined_vars(T.int32(3)) == [] and len(undefined_vars(x + y, [x])) == 1
c = [tvm.tirx.const(v, *t) for v, t in ((3, ()), (2**40, ()), (True, ()), (0.5, ()), (1, ('bool',)), (3, ('uint16',)))]
assert [str(v.ty.dtype) for v in c] == ['int32', 'int64', 'bool', 'float32', 'bool', 'uint16']
i, u, b, f = [tvm.DataType(name) for name in ('int8', 'uint32x4', 'bool', 'bfloat16')]
assert i.is_integer and u.is_integer and not b.is_integer and b.is_bool and f.is_float and not i.is_float
assert tvm.DataType('handle').is_handle and not f.is_handle and f.with_lanes(2) == 'bfloat16x2'
try:
    isinstance(x, T.ceildiv)
except TypeError as e:
    unknown = str(e)
assert 'ceildiv' in unknown
try:
    int(x)
except TypeError:
    symbolic = True
assert symbolic
",
    );
}
