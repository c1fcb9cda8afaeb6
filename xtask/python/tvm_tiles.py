"""What Apache TVM makes of random tile primitives: tvm_tiles.py FOLDER COUNT SEED ARCH.

Writes FOLDER/N.py, a kernel file with one tile primitive that is looked at, and FOLDER/N.txt: `accepted VARIANT VECTOR` or
`declined REASON`. The vector is the number of elements that the variant moves or computes at a time, 0 where it has none.
"""

import importlib.util
import random
import re
import sys
import warnings
from pathlib import Path

import tvm
from tvm import tirx
from tvm.backend.cuda.tile_primitive.copy import vec_auto_gmem_smem, vec_auto_reg
from tvm.backend.cuda.tile_primitive.copy_async import ldgsts
from tvm.backend.cuda.tile_primitive.elementwise import smem
from tvm.tirx.operator.tile_primitive import dispatcher

SCOPES = {"thread": 1, "warp": 32, "wg": 128, "cta": None}
DTYPES = ["int8", "uint8", "float8_e4m3fn", "float16", "bfloat16", "int16", "int32", "float32", "uint64", "float64"]
FLOATS = ["float16", "bfloat16", "float32", "float64"]
UNARY = ["zero", "sqrt", "exp", "exp2", "log2", "reciprocal", "silu"]
BINARY = ["add", "sub", "mul", "fdiv", "maximum"]

chosen = []


def observe():
    """Notes which variant made the code, and with which vector."""
    vector = [0]

    def noting(module, name, pick):
        function = getattr(module, name)

        def noted(*args, **kwargs):
            result = function(*args, **kwargs)
            vector[0] = pick(result)
            return result

        setattr(module, name, noted)

    noting(vec_auto_gmem_smem, "align_layouts_gs", lambda r: r[2])
    noting(ldgsts, "align_layouts_gs", lambda r: r[2])
    noting(vec_auto_reg, "_choose_vec_len", lambda r: r)
    noting(smem, "_max_layout_vec", lambda r: r)
    for cases in dispatcher._DISPATCH_TABLE.values():
        for case in cases:

            def made(op, context, case=case, make=case.impl):
                vector[0] = 0
                result = make(op, context)
                chosen.append((case.variant, vector[0]))
                return result

            case.impl = made


def swizzle(pick, inner):
    length = pick.randint(1, 3)
    return f"ComposeLayout({pick.randint(0, 3)}, {length}, {length + pick.randint(0, 1)}, {inner})"


def shared_layout(pick, shape):
    """A layout of a shape in shared memory, as text."""
    plain = f"TileLayout(S[{shape}])"
    kind = pick.choice(["plain", "plain", "padded", "columns", "swizzle", "tiled"])
    if len(shape) != 2 or kind == "plain":
        return plain
    rows, columns = shape
    if kind == "padded":
        return f"TileLayout(S[{shape} : ({columns + pick.choice([1, 2, 4, 8])}, 1)])"
    if kind == "columns":
        return f"TileLayout(S[{shape} : (1, {rows})])"
    if kind == "tiled" and columns % 8 == 0:
        return f"TileLayout(S[({rows}, {columns // 8}, 8) : (8, {rows * 8}, 1)])"
    total = rows * columns
    return swizzle(pick, plain) if total & (total - 1) == 0 else plain


def slices(pick, whole, part):
    """A region of extents `part` somewhere in `whole`."""
    out = []
    for extent, wanted in zip(whole, part):
        begin = pick.choice([0, 0, pick.randint(0, extent - wanted)])
        out.append(f"{begin}:{begin + wanted}")
    return "[" + ", ".join(out) + "]"


class Case:
    def __init__(self, pick):
        self.pick = pick
        self.threads = pick.choice([32, 64, 128, 256])
        self.scope = pick.choice([s for s in SCOPES if s != "wg" or self.threads >= 128])
        self.count = SCOPES[self.scope] or self.threads
        self.lines = []

    def shape(self):
        """A shape that the threads mostly divide."""
        pick = self.pick
        if pick.random() < 0.2:
            return tuple(pick.choice([3, 5, 6, 7, 12]) for _ in range(pick.randint(1, 3)))
        columns = pick.choice([4, 8, 16, 32, 64])
        rows = max(1, self.count * pick.choice([1, 2, 4, 8]) // columns)
        if pick.random() < 0.2 and rows % 2 == 0:
            return (2, rows // 2, columns)
        return (rows, columns) if pick.random() < 0.85 else (rows * columns,)

    def around(self, shape):
        return tuple(e + self.pick.choice([0, 0, 0, 4, 8]) for e in shape)

    def buffer(self, name, shape, dtype, scope, layout):
        self.lines.append(
            f'{name} = T.alloc_buffer({shape}, "{dtype}", scope="{scope}", layout={layout})'
        )

    def registers(self, shape):
        """A layout over the scope's threads, by rows."""
        axis = {"thread": None, "warp": "laneid", "wg": "tid_in_wg", "cta": "tx"}[self.scope]
        if axis is None:
            return f"TileLayout(S[{shape}])"
        strides = [1] * len(shape)
        for at in range(len(shape) - 2, 0, -1):
            strides[at] = strides[at + 1] * shape[at + 1]
        text = ", ".join([f"1 @ {axis}", *(str(s) for s in strides[1:])])
        return f"TileLayout(S[{shape} : ({text},)])"

    def copy(self):
        pick = self.pick
        dtype = pick.choice(DTYPES)
        shape = self.shape()
        whole, held = self.around(shape), self.around(shape)
        far = pick.choice(["global", "global", "shared"])
        near = pick.choice(["shared", "local"]) if far == "global" else "local"
        if near == "local":
            shape = (self.count, pick.choice([1, 2, 4, 8, 16, 6]))
            whole, held = self.around(shape), shape
        params = [f'A: T.Buffer({whole}, "{dtype}")']
        if far == "shared":
            self.buffer("f", whole, dtype, "shared", shared_layout(pick, whole))
        layout = shared_layout(pick, held) if near == "shared" else self.registers(held)
        self.buffer("n", held, dtype, near, layout)
        there = ("A" if far == "global" else "f") + slices(pick, whole, shape)
        here = "n" + slices(pick, held, shape)
        asynchronous = (far, near) == ("global", "shared") and pick.random() < 0.3
        sides = (here, there) if asynchronous or pick.random() < 0.5 else (there, here)
        self.call(f"copy{'_async' if asynchronous else ''}({sides[0]}, {sides[1]})")
        return params

    def elementwise(self):
        pick = self.pick
        where = pick.choice(["shared", "shared", "local"])
        dtype = pick.choice(FLOATS)
        other = dtype if pick.random() < 0.7 else pick.choice(FLOATS)
        shape = self.shape() if where == "shared" else (self.count, pick.choice([1, 2, 4, 8, 6]))
        if len(shape) == 1:
            shape = (1, *shape)

        def layout(s):
            return shared_layout(pick, s) if where == "shared" else self.registers(s)

        whole = self.around(shape) if where == "shared" else shape
        self.buffer("d", whole, dtype, where, layout(whole))
        self.buffer("a", whole, other, where, layout(whole))
        d, a = "d" + slices(pick, whole, shape), "a" + slices(pick, whole, shape)
        kind = pick.choice(["unary", "unary", "binary", "binary", "fill", "cast", "fma", "scaled", "broadcast"])
        number = f"T.{other}({pick.choice([1.5, 2.0, -0.5])})"
        if kind == "unary":
            self.call(f"{pick.choice(UNARY)}({d}, {a})")
        elif kind == "scaled":
            bias = pick.choice([number, a, f"T.{dtype}(0.5)"])
            self.call(f"{pick.choice(['sqrt', 'exp', 'exp2', 'log2'])}({d}, {a}, {bias}, {number})")
        elif kind == "binary":
            x, y = pick.choice([(a, a), (a, number), (number, a), (d, a), (number, number)])
            self.call(f"{pick.choice(BINARY)}({d}, {x}, {y})")
        elif kind == "broadcast":
            small = tuple(pick.choice([e, 1]) for e in shape) if where == "shared" else (shape[0], 1)
            if pick.random() < 0.15:
                small = (*small[:-1], small[-1] + 1)
            if pick.random() < 0.2 and where == "shared":
                small = small[1:]
            self.buffer("b", small, other, where, layout(small))
            x, y = pick.choice([(a, "b"), ("b", a)])
            self.call(f"{pick.choice(BINARY)}({d}, {x}, {y})")
        elif kind == "fill":
            self.call(f"fill({d}, {number})")
        elif kind == "cast":
            self.call(f"cast({d}, {a})")
        else:
            self.call(f"fma({d}, {a}, {pick.choice([a, number])}, {pick.choice([a, d, number])})")
        return []

    def reduction(self):
        pick = self.pick
        dtype = pick.choice(FLOATS)
        op = pick.choice(["sum", "max", "min"])
        accum = pick.choice(["", ", accum=True"])
        if pick.random() < 0.5 or self.scope == "cta":
            shape = tuple(pick.choice([1, 2, 3, 4, 7, 8, 16, 32]) for _ in range(pick.randint(1, 3)))
            where = "shared" if self.scope != "thread" else pick.choice(["shared", "local"])
            axes = sorted(pick.sample(range(len(shape)), pick.randint(1, len(shape))))
            left = tuple(e for d, e in enumerate(shape) if d not in axes) or (1,)
            if pick.random() < 0.1:
                left = (*left[:-1], left[-1] + 1)
            self.buffer("s", shape, dtype, where, shared_layout(pick, shape))
            self.buffer("d", left, dtype, where, shared_layout(pick, left))
            axes = [a - pick.choice([0, len(shape)]) for a in axes]
            self.call(f"{op}(d, s, axes={axes}{accum})")
            return []
        lanes, wide = ("laneid", 32) if self.scope != "wg" else ("tid_in_wg", 128)
        inner = pick.choice([2, 4, 8])
        if self.scope == "thread":
            self.buffer("s", (inner, 8), dtype, "local", f"TileLayout(S[({inner}, 8)])")
            self.buffer("d", (inner,), dtype, "local", f"TileLayout(S[({inner},)])")
            self.call(f"{op}(d, s, axes=1{accum})")
        elif pick.random() < 0.5:
            self.buffer("s", (wide, inner), dtype, "local", f"TileLayout(S[({wide}, {inner}) : (1 @ {lanes}, 1)])")
            self.buffer("d", (wide, 1), dtype, "local", f"TileLayout(S[({wide}, 1) : (1 @ {lanes}, 1)])")
            self.call(f"{op}(d, s, axes=-1{accum})")
        else:
            rows = wide // 4
            self.buffer(
                "s",
                (rows, inner * 4),
                dtype,
                "local",
                f"TileLayout(S[({rows}, {inner}, 4) : (4 @ {lanes}, 1, 1 @ {lanes})])",
            )
            self.buffer("d", (rows, 4), dtype, "local", f"TileLayout(S[({rows}, 4) : (4 @ {lanes}, 1 @ {lanes})])")
            reduce = pick.choice(["", ", thread_reduce=True"])
            self.call(f"{op}(d, s, axes=-1{accum}{reduce})")
        return []

    def call(self, text):
        pick = self.pick
        narrow = ["w == 0", "l < 16", "l == 0", "w >= 1", "t == 0", "w != 0", "T.int32(0) == w"]
        if self.threads >= 128:
            narrow += ["g == 0"]
        condition = pick.choice(narrow) if pick.random() < 0.25 else None
        if condition:
            self.lines.append(f"if {condition}:")
        self.lines.append(("    " if condition else "") + f"Tx.{self.scope}.{text}")

    def text(self):
        params = self.pick.choice([self.copy, self.copy, self.elementwise, self.elementwise, self.reduction])()
        ids = [
            "T.cta_id([1])",
            f"w = T.warp_id([{self.threads // 32}])",
            "l = T.lane_id([32])",
            f"t = T.thread_id([{self.threads}])",
        ]
        if self.threads >= 128:
            ids += [f"g = T.warpgroup_id([{self.threads // 128}])", "T.warp_id_in_wg([4])", "T.thread_id_in_wg([128])"]
        axes = "laneid, tid_in_wg, tx"
        lines = [
            "from tvm.script import tirx as T",
            "from tvm.script.tirx import tile as Tx",
            "from tvm.tirx.layout import ComposeLayout, R, S, TileLayout, " + axes,
            "",
            "",
            "@T.prim_func",
            f"def k({', '.join(params)}):",
            "    T.device_entry()",
            *(f"    {line}" for line in [*ids, *self.lines]),
        ]
        return "\n".join(lines) + "\n"


def outcome(path, target):
    chosen.clear()
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
        with target:
            lowered = tirx.transform.BindTarget(target.with_host("llvm"))(tvm.IRModule({"main": module.k}))
            tirx.transform.LowerTIRx()(lowered)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # TVM's diagnostics are of many kinds, SystemExit among them.
        text = str(error)
        reasons = re.findall(r"(?:rejected|declined|exception) ?[^|]*", text)
        said = [r.strip() for r in reasons if "requires explicit" not in r]
        return "declined " + (" | ".join(said) or text.strip().splitlines()[-1])[:400].replace("\n", " ")
    variant, vector = chosen[-1]
    return f"accepted {variant} {vector}"


def main():
    folder, count, seed, arch = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
    warnings.simplefilter("ignore")
    observe()
    target = tvm.target.Target({"kind": "cuda", "arch": arch})
    for number in range(count):
        path = folder / f"{number}.py"
        path.write_text(Case(random.Random(seed * 1000003 + number)).text())
        path.with_suffix(".txt").write_text(outcome(path, target) + "\n")


main()
