# The ordering functions of Python's functools.


def cmp_to_key(mycmp):
    class K:
        def __init__(self, obj):
            self.obj = obj

        def __lt__(self, other):
            return mycmp(self.obj, other.obj) < 0

        def __gt__(self, other):
            return mycmp(self.obj, other.obj) > 0

        def __le__(self, other):
            return mycmp(self.obj, other.obj) <= 0

        def __ge__(self, other):
            return mycmp(self.obj, other.obj) >= 0

        def __eq__(self, other):
            return mycmp(self.obj, other.obj) == 0

    return K


def total_ordering(cls):
    def define(name, function):
        if not hasattr(cls, name):
            setattr(cls, name, function)

    if hasattr(cls, "__lt__"):
        define("__gt__", lambda self, other: not (self < other or self == other))
        define("__le__", lambda self, other: self < other or self == other)
        define("__ge__", lambda self, other: not self < other)
    elif hasattr(cls, "__le__"):
        define("__ge__", lambda self, other: not self <= other or self == other)
        define("__lt__", lambda self, other: self <= other and not self == other)
        define("__gt__", lambda self, other: not self <= other)
    elif hasattr(cls, "__gt__"):
        define("__lt__", lambda self, other: not (self > other or self == other))
        define("__ge__", lambda self, other: self > other or self == other)
        define("__le__", lambda self, other: not self > other)
    elif hasattr(cls, "__ge__"):
        define("__le__", lambda self, other: not self >= other or self == other)
        define("__gt__", lambda self, other: self >= other and not self == other)
        define("__lt__", lambda self, other: not self >= other)
    else:
        raise ValueError("must define at least one ordering operation: < > <= >=")
    return cls
