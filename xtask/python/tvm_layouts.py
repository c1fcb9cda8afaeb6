"""What Apache TVM makes of random layouts: tvm_layouts.py COUNT SEED.

Prints a line for each operation on each layout: an expression in the words of a kernel file, which is what TVM gave. An
operation that TVM refuses is a line that begins with `!`.
"""

import math
import random
import re
import sys

import tvm
from tvm.tirx import layout as L

THREADS = ("laneid", "wid_in_wg", "warpid", "tid_in_wg", "wgid", "tx")
WORDS = {name: getattr(L, name) for name in ("S", "R", "TileLayout", "ComposeLayout", *THREADS)}


# Operations whose results have strides of iterators of extent one, which have no effect.
FREE = re.compile(r"\.(slice|tile|tile_to|direct_sum|is_tile_\w+|is_direct_sum_\w+)\((?!.*\)\.)")


def axis(name):
    return "" if name == "m" else f" @ {name}"


def spec(iters):
    if not iters:
        return "[() : ()]"
    extents = ", ".join(str(e) for e, _, _ in iters)
    strides = ", ".join(f"{s}{axis(a)}" for _, s, a in iters)
    return f"[({extents},) : ({strides},)]"


def text(shard, replica, offset, swizzle):
    out = f"TileLayout(S{spec(shard)}"
    if replica:
        out += f" + R{spec(replica)}"
    for name, value in offset.items():
        out += f" + {value}{axis(name)}"
    out += ")"
    if swizzle:
        per_element, length, atom, inner = swizzle
        out = f"ComposeLayout({per_element}, {length}, {atom}, {out}, {inner})"
    return out


def iters(items):
    return [(int(i.extent), int(i.stride), str(i.axis.name)) for i in items]


def written(value):
    """A result as an expression of a kernel file."""
    if value is None or isinstance(value, bool):
        return repr(value)
    if isinstance(value, L.ComposeLayout):
        swizzle = [int(getattr(value, n)) for n in ("per_element", "swizzle_len", "atom_len")]
        tile = value.tile_layout
        return text(
            iters(tile.shard),
            iters(tile.replica),
            {str(a.name): int(v) for a, v in tile.offset.items() if int(v)},
            (*swizzle, bool(value.swizzle_inner)),
        )
    if isinstance(value, L.TileLayout):
        offset = {str(a.name): int(v) for a, v in value.offset.items() if int(v)}
        return text(iters(value.shard), iters(value.replica), offset, None)
    if isinstance(value, (list, tuple, tvm.ir.Array)):
        return "(" + "".join(f"{written(v)}, " for v in value) + ")"
    return str(int(value))


def factors(pick, n):
    """Numbers whose product is `n`."""
    out = []
    while n > 1 and len(out) < 3:
        divisors = [d for d in range(1, n + 1) if n % d == 0]
        out.append(pick.choice(divisors))
        n //= out[-1]
    out.append(n)
    pick.shuffle(out)
    return out


def random_tile(pick, threads=True, extra=True):
    extents = [pick.choice([1, 2, 2, 3, 4, 4, 5, 6, 8, 8, 16]) for _ in range(pick.randint(1, 4))]
    order = list(range(len(extents)))
    if pick.random() < 0.5:
        pick.shuffle(order)
    gap = pick.choice([0, 0, 0, 1, 4])
    strides, step = [0] * len(extents), 1
    for at in reversed(order):
        strides[at] = step
        step = step * extents[at] + gap
    names = ["m"] * len(extents)
    if threads and pick.random() < 0.4:
        for at in range(len(extents)):
            if pick.random() < 0.5 and extents[at] > 1:
                names[at] = pick.choice(THREADS)
                strides[at] = pick.choice([1, 1, 1, 2, 4])
    if {"wgid", "wid_in_wg"} <= set(names) and "laneid" not in names:
        # TVM counts these places in warpgroups and calls them warps.
        names = ["m" if n == "wgid" else n for n in names]
    shard = list(zip(extents, strides, names))
    replica, offset = [], {}
    if extra and pick.random() < 0.25:
        replica = [(pick.choice([2, 4]), pick.choice([1, 4]), pick.choice(["warpid", "laneid", "m"]))]
    if extra and pick.random() < 0.3:
        offset[pick.choice(["m", "m", "laneid"])] = pick.randint(1, 9)
    return shard, replica, offset


def case(pick):
    """A layout and an operation on it, as expressions."""
    shard, replica, offset = random_tile(pick)
    memory = all(a == "m" for _, _, a in shard)
    swizzle = None
    if memory and not replica and pick.random() < 0.3:
        length = pick.randint(0, 3)
        swizzle = (pick.randint(0, 3), length, length + pick.randint(0, 2), pick.random() < 0.7)
    layout = text(shard, replica, offset, swizzle)
    total = math.prod(e for e, _, _ in shard)
    shape = factors(pick, total)
    kind = pick.choice(
        ["canonicalize", "canonicalize", "group", "slice", "slice", "tile", "tile_to", "inner", "outer"]
        + ["direct_sum", "sum_right", "sum_left", "permute", "apply", "apply", "span", "size", "pack", "unpack"]
        + ["storage"]
    )
    if kind == "canonicalize":
        return f"{layout}.canonicalize()"
    if kind == "group":
        if pick.random() < 0.2:
            shape[0] += 1
        return f"{layout}.group({shape})"
    if kind == "slice":
        part = []
        for extent in shape:
            begin = pick.choice([0, pick.randrange(extent)])
            part.append((begin, pick.choice([extent, pick.randint(begin + 1, extent)])))
        return f"{layout}.slice({shape}, {part})"
    if kind in ("tile", "inner", "outer", "direct_sum", "sum_right", "sum_left"):
        left, more, by = random_tile(pick, threads=kind in ("direct_sum", "tile"), extra=False)
        outer_shape = factors(pick, math.prod(e for e, _, _ in left))
        rank = max(len(outer_shape), len(shape))
        outer_shape = [1] * (rank - len(outer_shape)) + outer_shape
        shape = [1] * (rank - len(shape)) + shape
        outer = text(left, more, by, None)
        whole = [a * b for a, b in zip(outer_shape, shape)]
        between = [e for pair in zip(outer_shape, shape) for e in pair]
        tiled = f"{layout}.tile({outer}, {outer_shape}, {shape})"
        sum_ = f"{layout}.direct_sum({outer}, {outer_shape}, {shape})"
        other = text(*random_tile(pick, threads=False, extra=False), None)
        return {
            "tile": tiled,
            "inner": f"{pick.choice([layout, layout, layout, other])}.is_tile_inner({tiled}, {whole}, {shape})",
            "outer": f"{pick.choice([outer, outer, outer, other])}.is_tile_outer({tiled}, {whole}, {outer_shape})",
            "direct_sum": sum_,
            "sum_right": f"{layout}.is_direct_sum_right({sum_}, {between}, {shape})",
            # TVM has no answer for a swizzled sum.
            "sum_left": sum_ if swizzle else f"{outer}.is_direct_sum_left({sum_}, {between}, {outer_shape})",
        }[kind]
    if kind == "tile_to":
        return f"{layout}.tile_to({[e * pick.choice([1, 2, 3]) for e in shape]}, {shape})"
    if kind == "permute":
        order = list(range(len(shard)))
        pick.shuffle(order)
        layout = text(shard, replica, offset, None)
        return f"{layout}.permute_dims({order})"
    if kind == "apply":
        name = pick.choice(sorted({a for _, _, a in shard}))
        if pick.random() < 0.5:
            return f"{layout}.apply({pick.randrange(total)})[{name!r}]"
        at = ", ".join(str(pick.randrange(e)) for e in shape)
        return f"{layout}.apply({at}, shape={shape})[{name!r}]" if len(shape) > 1 else f"{layout}.apply({at})[{name!r}]"
    if kind in ("span", "size"):
        name = pick.choice(["", "", "'m'", "'laneid'"])
        return f"{layout}.{kind}({name})"
    if kind in ("pack", "unpack"):
        return f"{layout}.{kind}({pick.choice([2, 4, 8])})"
    return f"{layout}.storage()"


def main():
    count, seed = int(sys.argv[1]), int(sys.argv[2])
    pick = random.Random(seed)
    with tvm.target.Target({"kind": "cuda", "arch": "sm_90a"}):
        for _ in range(count):
            expression = case(pick)
            try:
                value = eval(expression, dict(WORDS))
                if FREE.search(expression) and value is not None:
                    # Several notations of one map.
                    expression, value = f"{expression}.canonicalize()", value.canonicalize()
                if ".group(" in expression:
                    print(f"{expression}[0].canonicalize() == {written(value[0].canonicalize())}")
                    expression, value = f"{expression}[1]", value[1]
                print(f"{expression} == {written(value)}")
            except Exception as error:
                print(f"! {expression}  # {str(error).strip().splitlines()[-1][:100]}")


main()
