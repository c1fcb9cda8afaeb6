# The parser behind the syntax, as far as builders of functions ask for it: inline functions need none here.


class Source:
    def __init__(self, program):
        self.program = program


class Parser:
    def __init__(self, source, function_annotations=None):
        self.source = source
        self.dispatch_tokens = []
