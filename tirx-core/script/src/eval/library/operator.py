# The functions of Python's operator that are not binary operators.

def pos(a):
    return +a


def inv(a):
    return ~a


def invert(a):
    return ~a


def truth(a):
    return bool(a)


def index(a):
    return int(a) if isinstance(a, int) else a.__index__()


def contains(a, b):
    return b in a


def countOf(a, b):
    return sum([1 for item in a if item is b or item == b])


def indexOf(a, b):
    for i, item in enumerate(a):
        if item is b or item == b:
            return i
    raise ValueError("sequence.index(x): x not in sequence")


def getitem(a, b):
    return a[b]


def setitem(a, b, c):
    a[b] = c


def delitem(a, b):
    del a[b]


def is_(a, b):
    return a is b


def is_not(a, b):
    return a is not b


def concat(a, b):
    return a + b


def matmul(a, b):
    return a @ b


def methodcaller(name, *args, **kwargs):
    return lambda obj: getattr(obj, name)(*args, **kwargs)


def iadd(a, b):
    a += b
    return a


def isub(a, b):
    a -= b
    return a


def imul(a, b):
    a *= b
    return a


def ior(a, b):
    a |= b
    return a


def iand(a, b):
    a &= b
    return a
