# Python's context managers that need no class of their own.


class nullcontext:
    def __init__(self, enter_result=None):
        self.enter_result = enter_result

    def __enter__(self):
        return self.enter_result

    def __exit__(self, *about):
        return False


class _Generated:
    def __init__(self, steps):
        self.steps = steps

    def __enter__(self):
        return next(self.steps)

    def __exit__(self, kind, exception, trace):
        if kind is None:
            next(self.steps, None)
        return False


def contextmanager(function):
    def make(*args, **kwargs):
        return _Generated(function(*args, **kwargs))

    return make
