"""The builder behind the syntax: for functions that are built statement by statement, and as far as helper classes ask for it."""

from tvm.tirx.script.builder import ir as _ir


class IRBuilder:
    """`with IRBuilder() as builder:` around `with I.prim_func():`, whose function `get` gives. Names that helper classes give to
    their variables have no effect: here a variable is named where it is made."""

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        return False

    def get(self):
        return _ir._finished()

    @property
    def frames(self):
        """The regions that are open, outermost first."""
        return _ir._frames()

    @staticmethod
    def current():
        return IRBuilder()

    @staticmethod
    def is_in_scope():
        return True

    @staticmethod
    def name(name, value):
        return value
