# test: compile sm_90a
# test: compile sm_100a
# What a model runs between its products: a scan in one pass, block scales of four bits, stencils by shifted boxes.
from tvm.script import tirx as T

FULL = T.uint32(0xFFFFFFFF)
SOME, ALL = 1, 2


def before(x, i):
    return sum(x[k] for k in range(i + 1))


# Tiles are numbered in the order in which they start. A status holds a flag (1: the sum of the tile, 2: of all up to it) above the value;
# a warp looks back over 32 of them at a time.
# sim: scan_in_one_pass
#   X: int32[150] = (i * 7) % 11 - 5
#   Y: int32[150] = 0 -> before(X, i)
#   Status: uint64[5] = 0 -> 2 * 4294967296 + before(X, min(i * 32 + 31, 149)) % 4294967296
#   Ticket: uint32[1] = 0 -> 5
@T.prim_func
def scan_in_one_pass(x: T.handle, y: T.handle, status: T.handle, Ticket: T.Buffer((1,), "uint32")):
    n = T.int32()
    X = T.match_buffer(x, (n,), "int32")
    Y = T.match_buffer(y, (n,), "int32")
    Status = T.match_buffer(status, (T.ceildiv(n, 32),), "uint64")
    T.device_entry()
    T.cta_id([T.ceildiv(n, 32)])
    lane = T.thread_id([32])
    tile: T.int32 = 0
    if lane == 0:
        tile = T.cast(T.cuda.atomic_add(Ticket.ptr_to([0]), T.uint32(1)), "int32")
    tile = T.tvm_warp_shuffle(FULL, tile, 0, 32, 32)
    sum: T.int32 = 0
    if tile * 32 + lane < n:
        sum = X[tile * 32 + lane]
    for k in T.unroll(5):
        left: T.let = T.tvm_warp_shuffle_up(FULL, sum, 1 << k, 32, 32)
        if lane >= 1 << k:
            sum += left
    total: T.let = T.tvm_warp_shuffle(FULL, sum, 31, 32, 32)

    @T.inline
    def tell(flag, value):
        if lane == 0:
            word: T.let = (T.uint64(flag) << T.uint64(32)) | T.cast(T.reinterpret("uint32", value), "uint64")
            T.ptx.st_relaxed(Status.ptr_to([tile]), word, scope="gpu", ptx_type="u64")

    carry: T.int32 = 0
    if tile > 0:
        tell(SOME, total)
        last: T.int32 = tile - 1
        done: T.bool = False
        while not done:
            word: T.uint64 = T.uint64(ALL) << T.uint64(32)
            if last >= lane:
                word = T.ptx.ld_relaxed(Status.ptr_to([last - lane]), "uint64", "u64", scope="gpu")
                while (word >> T.uint64(32)) == T.uint64(0):
                    word = T.ptx.ld_relaxed(Status.ptr_to([last - lane]), "uint64", "u64", scope="gpu")
            ends: T.let = T.cuda.ballot_sync(FULL, T.cast((word >> T.uint64(32)) == T.uint64(ALL), "int32"))
            first: T.let = T.cast(T.cuda.ffs_u32(ends), "int32") - 1
            part: T.let = T.if_then_else(ends == T.uint32(0) or lane <= first, T.reinterpret("int32", T.cast(word, "uint32")), 0)
            carry += T.cuda.warp_sum(part)
            done = ends != T.uint32(0)
            last -= 32
    tell(ALL, carry + total)
    if tile * 32 + lane < n:
        Y[tile * 32 + lane] = carry + sum


def largest(x, i, block):
    return max(abs(x[i][block * 32 + k]) for k in range(32))


def exponent(x, i, block):
    e, top = 0, largest(x, i, block)
    while top >= 2.0 ** (e + 1):
        e += 1
    while top < 2.0 ** e:
        e -= 1
    return e + 127 - 2


# Of magnitudes below 6.5; ties go to the even code.
def code(v):
    top = abs(v)
    steps = [0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0]
    at = sum(1 for k, s in enumerate(steps) if (top >= s if k % 2 == 1 else top > s))
    return at + (8 if v < 0 else 0)


def packed(x, i, j):
    return sum(code(x[i][2 * j + k] / 2.0 ** (exponent(x, i, j // 16) - 127)) * 16 ** k for k in range(2))


# Blocks of 32 share a power of two; a byte has two elements of four bits.
# sim: block_scales
#   X: float32[4x64] = ((i * 37 + j * 13) % 29 - 14) * 0.25 * (1 + i * 3)
#   Q: uint8[4x32] = 0 -> packed(X, i, j)
#   S: uint8[4x2] = 0 -> exponent(X, i, j)
@T.prim_func
def block_scales(X: T.Buffer((4, 64), "float32"), Q: T.Buffer((4, 32), "uint8"), S: T.Buffer((4, 2), "uint8")):
    T.device_entry()
    T.cta_id([1])
    row, part = T.thread_id([4, 8])
    x = T.alloc_local((8,), "float32")
    for v in T.unroll(2):
        for e in T.vectorized(4):
            x[v * 4 + e] = X[row, part * 8 + v * 4 + e]
    top: T.float32 = 0.0
    for k in T.unroll(8):
        top = T.max(top, T.abs(x[k]))
    for k in T.unroll(2):
        top = T.max(top, T.tvm_warp_shuffle_xor(FULL, top, 4 << k, 32, 32))
    scale: T.let = T.cast((T.cuda.float_as_uint(top) >> T.uint32(23)) & T.uint32(255), "int32") - 2
    inverse: T.let = T.cuda.uint_as_float(T.cast(254 - scale, "uint32") << T.uint32(23))
    q = T.alloc_local((4,), "uint8")
    for k in T.unroll(4):
        low: T.let = T.cast(x[2 * k] * inverse, "float4_e2m1fn")
        high: T.let = T.cast(x[2 * k + 1] * inverse, "float4_e2m1fn")
        q[k] = T.reinterpret("uint8", low) | (T.reinterpret("uint8", high) << T.uint8(4))
    for e in T.vectorized(4):
        Q[row, part * 4 + e] = q[e]
    if part % 4 == 0:
        S[row, part // 4] = T.cast(scale, "uint8")


def around(x, i, j, k):
    near = lambda n, at: range(max(at - 1, 0), min(at + 2, n))
    return sum(x[a][b][c] for a in near(4, i) for b in near(9, j) for c in near(12, k))


# Boxes that begin before the tensor and end behind it are filled with zeros; a ring of four planes. Along a row a box begins
# at a multiple of 16 bytes.
# sim: neighbours
#   X: float32[4x9x12] = (i * 5 + j * 3 + k) % 13
#   Y: float32[4x9x12] = 0 -> around(X, i, j, k)
@T.prim_func
def neighbours(x: T.handle, y: T.handle):
    d, h, w = T.int32(), T.int32(), T.int32()
    X = T.match_buffer(x, (d, h, w), "float32", align=16)
    Y = T.match_buffer(y, (d, h, w), "float32")
    X_map: T.let[T.handle("tensormap")] = T.tvm_stack_alloca("tensormap", 1)
    T.call_packed("runtime.cuTensorMapEncodeTiled", X_map, "float32", 3, X.data, w, h, d, w * 4, w * h * 4, 16, 10, 1, 1, 1, 1, 0, 0, 0, 0)
    T.device_entry()
    bx, by = T.cta_id([T.ceildiv(w, 8), T.ceildiv(h, 8)])
    tx, ty = T.thread_id([8, 8])
    planes = T.alloc_shared((4, 160), "float32", align=128)
    bar = T.alloc_shared((4,), "uint64")

    @T.inline
    def fetch(z):
        if tx + ty == 0:
            T.ptx.mbarrier.arrive.expect_tx(bar.ptr_to([z % 4]), 16 * 10 * 4)
            T.ptx.cp_async.bulk.tensor.g2s_cluster(3, planes.ptr_to([z % 4, 0]), bar.ptr_to([z % 4]), T.address_of(X_map), 0, 1, "",
                                                   bx * 8 - 4, by * 8 - 1, z - 1)

    if tx + ty == 0:
        for s in T.unroll(4):
            T.ptx.mbarrier.init(bar.ptr_to([s]), 1)
        T.ptx.fence.mbarrier_init()
    T.cuda.cta_sync()
    for z in T.unroll(3):
        fetch(z)
    for z in range(d):
        if z < d - 1:
            fetch(z + 3)
        sum: T.float32 = 0.0
        for dz in T.unroll(3):
            T.ptx.mbarrier.try_wait(bar.ptr_to([(z + dz) % 4]), (z + dz) // 4 % 2)
            for dy, dx in T.grid(3, 3):
                sum += planes[(z + dz) % 4, (ty + dy) * 16 + tx + dx + 3]
        if by * 8 + ty < h and bx * 8 + tx < w:
            Y[z, by * 8 + ty, bx * 8 + tx] = sum
        T.cuda.cta_sync()
