# Python's containers that are not builtin types.


class Counter(dict):
    def __init__(self, iterable=None, **counts):
        self._counts = {}
        self.update(iterable, **counts)

    def _pairs(self, iterable, counts):
        pairs = []
        if isinstance(iterable, dict):
            pairs = list(iterable.items())
        elif iterable is not None:
            pairs = [(item, 1) for item in iterable]
        return pairs + list(counts.items())

    def update(self, iterable=None, /, **counts):
        for key, n in self._pairs(iterable, counts):
            self._counts[key] = self._counts.get(key, 0) + n

    def subtract(self, iterable=None, /, **counts):
        for key, n in self._pairs(iterable, counts):
            self._counts[key] = self._counts.get(key, 0) - n

    def most_common(self, n=None):
        pairs = sorted(self._counts.items(), key=lambda pair: pair[1], reverse=True)
        return pairs if n is None else pairs[:n]

    def elements(self):
        for key, n in self._counts.items():
            for _ in range(n):
                yield key

    def total(self):
        return sum(self._counts.values())

    def keys(self):
        return self._counts.keys()

    def values(self):
        return self._counts.values()

    def items(self):
        return self._counts.items()

    def get(self, key, default=None):
        return self._counts.get(key, default)

    def pop(self, *args):
        return self._counts.pop(*args)

    def setdefault(self, key, default=None):
        return self._counts.setdefault(key, default)

    def clear(self):
        self._counts.clear()

    def copy(self):
        return Counter(self._counts)

    def __getitem__(self, key):
        return self._counts.get(key, 0)

    def __setitem__(self, key, value):
        self._counts[key] = value

    def __delitem__(self, key):
        self._counts.pop(key, None)

    def __contains__(self, key):
        return key in self._counts

    def __iter__(self):
        return iter(self._counts)

    def __len__(self):
        return len(self._counts)

    def __eq__(self, other):
        if isinstance(other, Counter):
            return all([self[key] == other[key] for key in list(self) + list(other)])
        return self._counts == other

    def __repr__(self):
        if not self._counts:
            return "Counter()"
        return "Counter(" + repr(dict(self.most_common())) + ")"

    def _combine(self, other, function):
        out = Counter()
        for key in list(self) + [key for key in other if key not in self]:
            n = function(self[key], other[key])
            if n > 0:
                out[key] = n
        return out

    def __add__(self, other):
        return self._combine(other, lambda a, b: a + b)

    def __sub__(self, other):
        return self._combine(other, lambda a, b: a - b)

    def __and__(self, other):
        return self._combine(other, lambda a, b: min(a, b))

    def __or__(self, other):
        return self._combine(other, lambda a, b: max(a, b))


class deque:
    def __init__(self, iterable=(), maxlen=None):
        self.maxlen = maxlen
        self._items = []
        self.extend(iterable)

    def append(self, x):
        self._items.append(x)
        if self.maxlen is not None and len(self._items) > self.maxlen:
            self._items.pop(0)

    def appendleft(self, x):
        self._items.insert(0, x)
        if self.maxlen is not None and len(self._items) > self.maxlen:
            self._items.pop()

    def extend(self, iterable):
        for x in list(iterable):
            self.append(x)

    def extendleft(self, iterable):
        for x in list(iterable):
            self.appendleft(x)

    def pop(self):
        if not self._items:
            raise IndexError("pop from an empty deque")
        return self._items.pop()

    def popleft(self):
        if not self._items:
            raise IndexError("pop from an empty deque")
        return self._items.pop(0)

    def rotate(self, n=1):
        if self._items:
            n %= len(self._items)
            self._items = self._items[len(self._items) - n :] + self._items[: len(self._items) - n]

    def clear(self):
        self._items.clear()

    def copy(self):
        return deque(self._items, self.maxlen)

    def count(self, x):
        return self._items.count(x)

    def index(self, x):
        return self._items.index(x)

    def insert(self, i, x):
        self._items.insert(i, x)

    def remove(self, x):
        self._items.remove(x)

    def reverse(self):
        self._items.reverse()

    def __getitem__(self, i):
        return self._items[i]

    def __setitem__(self, i, x):
        self._items[i] = x

    def __delitem__(self, i):
        del self._items[i]

    def __contains__(self, x):
        return x in self._items

    def __iter__(self):
        return iter(self._items)

    def __len__(self):
        return len(self._items)

    def __eq__(self, other):
        return isinstance(other, deque) and self._items == other._items

    def __add__(self, other):
        return deque(self._items + other._items, self.maxlen)

    def __iadd__(self, other):
        self.extend(other)
        return self

    def __repr__(self):
        end = ")" if self.maxlen is None else f", maxlen={self.maxlen})"
        return "deque(" + repr(self._items) + end


class ChainMap:
    def __init__(self, *maps):
        self.maps = list(maps) or [{}]

    @property
    def parents(self):
        return ChainMap(*self.maps[1:])

    def new_child(self, m=None, **kwargs):
        return ChainMap({**(m or {}), **kwargs} if m is None or kwargs else m, *self.maps)

    def get(self, key, default=None):
        return self[key] if key in self else default

    def keys(self):
        return list(self)

    def values(self):
        return [self[key] for key in self]

    def items(self):
        return [(key, self[key]) for key in self]

    def __getitem__(self, key):
        for m in self.maps:
            if key in m:
                return m[key]
        raise KeyError(key)

    def __setitem__(self, key, value):
        self.maps[0][key] = value

    def __delitem__(self, key):
        del self.maps[0][key]

    def __contains__(self, key):
        return any([key in m for m in self.maps])

    def __iter__(self):
        names = {}
        for m in reversed(self.maps):
            names.update(dict.fromkeys(m))
        return iter(names)

    def __len__(self):
        return len(list(self))

    def __repr__(self):
        return "ChainMap(" + ", ".join([repr(m) for m in self.maps]) + ")"
