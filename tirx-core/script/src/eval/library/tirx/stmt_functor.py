# Checks that a library runs over its own finished functions. A kernel file sees no statements of a function, so that they find nothing.


class StmtVisitor:
    def __call__(self, node):
        return None


class ExprVisitor(StmtVisitor):
    pass


class StmtExprVisitor(StmtVisitor):
    pass
