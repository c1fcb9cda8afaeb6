"""Functions of `tvm.tirx` that are none of `T`."""

from tvm.script import tirx as T


def any(*args, span=None):
    if not args:
        raise ValueError("any() needs a condition")
    result = args[0]
    for condition in args[1:]:
        result = T.Or(result, condition)
    return result


def all(*args, span=None):
    if not args:
        raise ValueError("all() needs a condition")
    result = args[0]
    for condition in args[1:]:
        result = T.And(result, condition)
    return result
