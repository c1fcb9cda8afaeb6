# Python's itertools, as far as they are plain loops; the others are written in Rust.


def repeat(object, times=None):
    if times is None:
        while True:
            yield object
    for _ in range(times):
        yield object


def cycle(iterable):
    saved = []
    for item in iterable:
        yield item
        saved.append(item)
    while saved:
        yield from saved


def accumulate(iterable, func=None, *, initial=None):
    total = initial
    first = initial is None
    if not first:
        yield total
    for item in iterable:
        if first:
            total = item
            first = False
        elif func is None:
            total = total + item
        else:
            total = func(total, item)
        yield total


def zip_longest(*iterables, fillvalue=None):
    sources = [iter(i) for i in iterables]
    going = [True] * len(sources)
    ended = _Ended()
    while True:
        row = []
        for i, source in enumerate(sources):
            item = next(source, ended) if going[i] else ended
            if item is ended:
                going[i] = False
                item = fillvalue
            row.append(item)
        if not any(going):
            return
        yield tuple(row)


class _Ended:
    pass


def islice(iterable, *bounds):
    if not 1 <= len(bounds) <= 3:
        raise TypeError("islice() takes 2 to 4 arguments")
    if len(bounds) == 1:
        start, stop, step = 0, bounds[0], 1
    else:
        start, stop, step = (*bounds, None)[:3]
    start = 0 if start is None else start
    step = 1 if step is None else step
    if start < 0 or step < 1 or (stop is not None and stop < 0):
        raise ValueError("bounds of islice() must be None or an integer that is not negative")
    return _islice(iter(iterable), start, stop, step)


def _islice(source, start, stop, step):
    at = 0
    wanted = start
    while stop is None or wanted < stop:
        for item in source:
            at += 1
            if at > wanted:
                break
        else:
            return
        yield item
        wanted += step
    if stop is not None:
        # Items before the end are consumed, too.
        while at < stop:
            for item in source:
                at += 1
                break
            else:
                return


def pairwise(iterable):
    source = iter(iterable)
    for before in source:
        break
    else:
        return
    for item in source:
        yield before, item
        before = item


def starmap(function, iterable):
    for row in iterable:
        yield function(*row)


def takewhile(predicate, iterable):
    for item in iterable:
        if not predicate(item):
            break
        yield item


def dropwhile(predicate, iterable):
    source = iter(iterable)
    for item in source:
        if not predicate(item):
            yield item
            break
    yield from source


def filterfalse(predicate, iterable):
    for item in iterable:
        if not (item if predicate is None else predicate(item)):
            yield item


def compress(data, selectors):
    for item, selected in zip(data, selectors):
        if selected:
            yield item


def groupby(iterable, key=None):
    source = iter(iterable)
    ended = _Ended()
    # The key and the item that come next.
    state = [None, ended]

    def advance():
        item = next(source, ended)
        state[1] = item
        if item is not ended:
            state[0] = item if key is None else key(item)

    def group(own):
        while state[1] is not ended and state[0] == own:
            item = state[1]
            advance()
            yield item

    advance()
    while state[1] is not ended:
        own = state[0]
        yield own, group(own)
        while state[1] is not ended and state[0] == own:
            advance()


def combinations_with_replacement(iterable, r):
    pool = tuple(iterable)
    picks = [()]
    for _ in range(r):
        picks = [pick + (i,) for pick in picks for i in range(pick[-1] if pick else 0, len(pool))]
    for pick in picks:
        yield tuple([pool[i] for i in pick])


def tee(iterable, n=2):
    source = iter(iterable)
    ended = _Ended()
    waiting = [[] for _ in range(n)]

    def copy(own):
        while True:
            if not own:
                item = next(source, ended)
                if item is ended:
                    return
                for other in waiting:
                    other.append(item)
            yield own.pop(0)

    return tuple([copy(own) for own in waiting])


def batched(iterable, n, *, strict=False):
    if n < 1:
        raise ValueError("n must be at least one")
    batch = []
    for item in iterable:
        batch.append(item)
        if len(batch) == n:
            yield tuple(batch)
            batch = []
    if batch:
        if strict:
            raise ValueError("batched(): incomplete batch")
        yield tuple(batch)
