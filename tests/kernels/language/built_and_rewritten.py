# test: cuda sm_90a
# A program rewrites the function that it has built: regions for one warp each, one after the other, become a chain.
import tvm
from tvm.script import tirx as T
from tvm.script.ir_builder import IRBuilder
from tvm.tirx.script.builder import ir as I


class Roles:
    def __init__(self, warp):
        self.warp = warp
        self.conditions = []

    def chain(self, function):
        def is_role(stmt):
            if not isinstance(stmt, tvm.tirx.IfThenElse) or stmt.else_case is not None:
                return False
            return any(stmt.condition.same_as(condition) for condition in self.conditions)

        def chained(stmt):
            if not isinstance(stmt, tvm.tirx.SeqStmt) or not all(is_role(one) for one in stmt.seq[-2:]):
                return None
            *before, first, second = stmt.seq
            both = tvm.tirx.IfThenElse(first.condition, first.then_case, second)
            return tvm.tirx.SeqStmt([*before, both])

        return function.with_body(tvm.tirx.stmt_functor.ir_transform(function.body, None, chained))


class Role:
    def __init__(self, roles, number):
        self.frames = [I.If(roles.warp == number), I.Then()]
        roles.conditions.append(self.frames[0].condition)

    def __enter__(self):
        for frame in self.frames:
            frame.__enter__()

    def __exit__(self, *exc):
        for frame in reversed(self.frames):
            frame.__exit__(*exc)
        return False


def build():
    with IRBuilder() as builder:
        with I.prim_func():
            I.func_name("two_roles")
            A = I.arg("A", I.buffer((2, 32), "int32"))
            I.device_entry()
            roles = Roles(I.warp_id([2]))
            lane = I.lane_id([32])
            with Role(roles, 0):
                I.buffer_store(A, lane, [0, lane])
            with Role(roles, 1):
                I.buffer_store(A, lane * T.int32(2), [1, lane])
    return roles.chain(builder.get())


# sim: two_roles
#   A: int32[2x32] = 0 -> j * (i + 1)
two_roles = build()
