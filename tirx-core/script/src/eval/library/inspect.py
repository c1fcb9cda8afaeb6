# What decorators of kernels ask Python's inspect for: the signature of a function.
from enum import IntEnum


class _Empty:
    """No default value, no annotation."""


class _ParameterKind(IntEnum):
    POSITIONAL_ONLY = 0
    POSITIONAL_OR_KEYWORD = 1
    VAR_POSITIONAL = 2
    KEYWORD_ONLY = 3
    VAR_KEYWORD = 4


class Parameter:
    empty = _Empty
    POSITIONAL_ONLY = _ParameterKind.POSITIONAL_ONLY
    POSITIONAL_OR_KEYWORD = _ParameterKind.POSITIONAL_OR_KEYWORD
    VAR_POSITIONAL = _ParameterKind.VAR_POSITIONAL
    KEYWORD_ONLY = _ParameterKind.KEYWORD_ONLY
    VAR_KEYWORD = _ParameterKind.VAR_KEYWORD

    def __init__(self, name, kind, *, default=_Empty, annotation=_Empty):
        self.name = name
        self.kind = kind
        self.default = default
        self.annotation = annotation


class Signature:
    empty = _Empty

    def __init__(self, parameters=()):
        self.parameters = {parameter.name: parameter for parameter in parameters}


def signature_of(described):
    parameters = []
    for name, kind, default, annotation in described:
        parameter = Parameter(name, _ParameterKind(kind))
        for value in default:
            parameter.default = value
        for value in annotation:
            parameter.annotation = value
        parameters.append(parameter)
    return Signature(parameters)
