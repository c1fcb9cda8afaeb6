"""Paths as text: a kernel file reads no folders."""

import __host__.pathlib as _host


class PurePath:
    """A path with forward slashes."""

    def __init__(self, *parts):
        text = ""
        for part in parts:
            part = str(part)
            text = part if part.startswith("/") or not text else text.rstrip("/") + "/" + part
        while text.startswith("./"):
            text = text[2:]
        self._text = text or "."

    def __str__(self):
        return self._text

    def __repr__(self):
        return f"{type(self).__name__}({self._text!r})"

    def __fspath__(self):
        return self._text

    def as_posix(self):
        return self._text

    def __eq__(self, other):
        return isinstance(other, PurePath) and self._text == other._text

    def __hash__(self):
        return hash(self._text)

    def __truediv__(self, other):
        return type(self)(self._text, other)

    def __rtruediv__(self, other):
        return type(self)(other, self._text)

    def joinpath(self, *others):
        return type(self)(self._text, *others)

    @property
    def parts(self):
        parts = tuple(part for part in self._text.split("/") if part and part != ".")
        return ("/",) + parts if self._text.startswith("/") else parts

    @property
    def name(self):
        parts = self.parts
        return parts[-1] if parts and parts[-1] != "/" else ""

    @property
    def suffix(self):
        at = self.name.rfind(".")
        return self.name[at:] if 0 < at < len(self.name) - 1 else ""

    @property
    def stem(self):
        suffix = self.suffix
        return self.name[: len(self.name) - len(suffix)] if suffix else self.name

    @property
    def parent(self):
        above = self._text.rstrip("/").rpartition("/")
        return type(self)(above[0] or ("/" if above[1] else "."))

    @property
    def parents(self):
        found = []
        here = self
        while str(here.parent) != str(here):
            here = here.parent
            found.append(here)
        return tuple(found)

    def with_name(self, name):
        return self.parent / name

    def with_suffix(self, suffix):
        return self.parent / (self.stem + suffix)

    def is_absolute(self):
        return self._text.startswith("/")


class Path(PurePath):
    """A path of the host: what its files hold has no value in a kernel file."""

    def resolve(self, strict=False):
        return self

    def absolute(self):
        return self

    def expanduser(self):
        return self

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(_host.Path, name)
