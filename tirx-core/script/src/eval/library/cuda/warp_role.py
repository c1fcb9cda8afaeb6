"""Warps and warpgroups that take different parts of a kernel."""

from tvm.script import tirx as T


class _Role:
    """`with role:` runs its body in the threads of the role, with a number of registers of their own."""

    def _condition(self):
        raise NotImplementedError

    def __enter__(self):
        self._if = T.If(self._condition())
        self._if.__enter__()
        self._then = T.Then()
        self._then.__enter__()
        if self.regs is not None:
            T.evaluate(T.ptx.setmaxnreg(self.increase, self.regs))
        return self

    def __exit__(self, *exc):
        self._then.__exit__(*exc)
        self._if.__exit__(*exc)
        return False


class WarpRole(_Role):
    """One warp."""

    def __init__(self, warp_id_var, warp_id_val, regs=None, increase=False):
        self.warp_id_var = warp_id_var
        self.warp_id_val = warp_id_val
        self.regs = regs
        self.increase = increase

    def _condition(self):
        return self.warp_id_var == self.warp_id_val


class WarpgroupRole(_Role):
    """One warpgroup, or those from the first of a pair up to the second."""

    def __init__(self, wg_id_var, wg_id_val, regs=None, increase=False):
        self.wg_id_var = wg_id_var
        self.wg_id_val = wg_id_val
        self.regs = regs
        self.increase = increase

    def _condition(self):
        if isinstance(self.wg_id_val, tuple):
            first, end = self.wg_id_val
            return T.And(first <= self.wg_id_var, self.wg_id_var < end)
        return self.wg_id_var == self.wg_id_val
