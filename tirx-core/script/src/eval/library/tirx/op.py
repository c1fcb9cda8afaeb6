"""Functions of `tvm.tirx` that are none of `T`."""

from tvm.script import tirx as T


def any(*args, span=None):
    if not args:
        raise ValueError("any() needs a condition")
    result = args[0]
    for condition in args[1:]:
        result = T.Or(result, condition)
    return result


def const(value, dtype=None, span=None):
    """A constant of a dtype; without one a bool, an int32, an int64 where that is too narrow, or a float32."""
    if dtype is None:
        if isinstance(value, bool):
            dtype = "bool"
        elif isinstance(value, int):
            dtype = "int32" if -(2**31) <= value < 2**31 else "int64"
        else:
            dtype = "float32"
    return T.cast(value, str(dtype))


def all(*args, span=None):
    if not args:
        raise ValueError("all() needs a condition")
    result = args[0]
    for condition in args[1:]:
        result = T.And(result, condition)
    return result
