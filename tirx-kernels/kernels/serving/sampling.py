"""The next token of each row of logits: the most likely one, or a random one of the most likely ones. One block per row.

A logit, penalized and divided by the temperature, becomes a key: its distance from the row's maximum in steps of 2^-27, in 32 bits. Tokens
that are 32 and more behind the maximum, with less than 1e-13 of its probability, are left out. Limits of keys then select tokens, exactly
and without a sort: a histogram of 11 bits of the keys finds the bin of the limit, and two more find the key in it. Probabilities are added
as integers, so that results do not depend on the order of threads. For up to 1,024 tokens, the greatest logit of each of 1,024 threads gives a
first limit, so that few tokens are left to select from. The random choice adds Gumbel noise to each selected logit and takes the
maximum, so it needs no sum. The noise is Philox4x32-10 of seed, counter and token."""

from __future__ import annotations

from tvm.script import tirx as T

from rows import BY_NVCC, after_previous, load, load_vector, misaligned, vector

THREADS = 1024
BINS = 2048
NEAR = 2048                                  # tokens that fit into shared memory
AHEAD = 4                                    # vectors of a row that a thread has in flight
ONE = 2.0 ** 27
LOG2_E = 1.4426950408889634
FULL = 0xFFFFFFFF


@T.inline
def philox(block, first, second, low, high, out):
    """Philox4x32-10 of the counter (block, first, second, 0) and the key (low, high)."""
    out[0] = block
    out[1] = first
    out[2] = second
    out[3] = T.uint32(0)
    key_low: T.uint32 = low
    key_high: T.uint32 = high
    for r in range(10):
        one: T.uint64 = T.cast(out[0], "uint64") * T.uint64(0xD2511F53)
        two: T.uint64 = T.cast(out[2], "uint64") * T.uint64(0xCD9E8D57)
        out[0] = T.cast(two >> T.uint64(32), "uint32") ^ out[1] ^ key_low
        out[1] = T.cast(two & T.uint64(0xFFFFFFFF), "uint32")
        out[2] = T.cast(one >> T.uint64(32), "uint32") ^ out[3] ^ key_high
        out[3] = T.cast(one & T.uint64(0xFFFFFFFF), "uint32")
        key_low += T.uint32(0x9E3779B9)
        key_high += T.uint32(0xBB67AE85)


@T.inline
def fetch(raw, row, turn, turns, tid, columns, whole, dtype, count):
    """The thread's vectors of some turns of a row; `whole` is 1 for aligned rows of whole vectors."""
    if whole != 0:
        for u in T.unroll(turns):
            load_vector(raw, u * count, row, ((turn + u) * THREADS + tid) * count, columns, dtype, count)
    else:
        for u in T.unroll(turns):
            load(raw, u * count, row, ((turn + u) * THREADS + tid) * count, columns, False, dtype, count)


@T.inline
def take(best, best_token, score, token):
    if score > best[0] or (score == best[0] and token < best_token[0]):
        best[0] = score
        best_token[0] = token


@T.inline
def winner(best, best_token, parts, part_tokens, warp, lane):
    """The best token of the block; each thread gets it."""
    for step in T.unroll(5):
        other: T.float32 = T.tvm_warp_shuffle_xor(FULL, best[0], 16 >> step, 32, 32)
        its_token: T.int32 = T.tvm_warp_shuffle_xor(FULL, best_token[0], 16 >> step, 32, 32)
        take(best, best_token, other, its_token)
    T.cuda.cta_sync()
    if lane == 0:
        parts[warp] = best[0]
        part_tokens[warp] = best_token[0]
    T.cuda.cta_sync()
    # As many warps as lanes.
    best[0] = parts[lane]
    best_token[0] = part_tokens[lane]
    for step in T.unroll(5):
        other: T.float32 = T.tvm_warp_shuffle_xor(FULL, best[0], 16 >> step, 32, 32)
        its_token: T.int32 = T.tvm_warp_shuffle_xor(FULL, best_token[0], 16 >> step, 32, 32)
        take(best, best_token, other, its_token)


@T.jit
def sample(logits: T.handle, floats: T.handle, numbers: T.handle, seeds: T.handle, counters: T.handle, counts: T.handle, tokens: T.handle,
           *, dtype: T.constexpr):
    """`floats` has temperature, top-p, min-p and the penalties of repetition, presence and frequency of each row, `numbers` its top-k,
    `counts` (or nothing) how often each token has been chosen; the chosen one is added."""
    rows, columns, of_counts = T.int32(), T.int32(), T.int32()
    l0, c0 = T.int64(), T.int64()
    Logits = T.match_buffer(logits, (rows, columns), dtype, strides=(l0, 1))
    Floats = T.match_buffer(floats, (rows, 6), "float32")
    Numbers = T.match_buffer(numbers, (rows,), "int32")
    Seeds = T.match_buffer(seeds, (rows,), "uint64")
    Counters = T.match_buffer(counters, (rows,), "int32")
    Counts = T.match_buffer(counts, (of_counts, columns), "int32", strides=(c0, 1))
    Tokens = T.match_buffer(tokens, (rows,), "int32")
    VEC = T.meta_var(vector(dtype))
    T.device_entry()
    after_previous()
    row = T.cta_id([rows])
    tid = T.thread_id([THREADS])
    lane: T.let = tid % 32
    warp: T.let = tid // 32
    bin_counts = T.alloc_shared((BINS,), "uint32")
    bin_masses = T.alloc_shared((BINS,), "uint64")
    near_keys = T.alloc_shared((NEAR,), "uint32")
    near_tokens = T.alloc_shared((NEAR,), "int32")
    near_count = T.alloc_shared((1,), "int32")
    parts = T.alloc_shared((32,), "float32")
    part_tokens = T.alloc_shared((32,), "int32")
    found_bin = T.alloc_shared((1,), "uint32")
    found_count = T.alloc_shared((1,), "uint32")
    found_mass = T.alloc_shared((2,), "uint64")
    raw = T.alloc_local((AHEAD * VEC,), dtype)
    z = T.alloc_local((VEC,), "float32")
    key = T.alloc_local((VEC,), "uint32")
    inside = T.alloc_local((VEC,), "int32")
    random = T.alloc_local((4,), "uint32")
    best = T.alloc_local((1,), "float32")
    best_token = T.alloc_local((1,), "int32")
    top = T.alloc_local((1,), "float32")
    limit = T.alloc_local((1,), "uint32")
    total = T.alloc_local((1,), "uint64")
    gathered = T.alloc_local((1,), "int32")

    temperature: T.float32 = Floats[row, 0]
    top_p: T.float32 = Floats[row, 1]
    min_p: T.float32 = Floats[row, 2]
    repetition: T.float32 = Floats[row, 3]
    presence: T.float32 = Floats[row, 4]
    frequency: T.float32 = Floats[row, 5]
    top_k: T.int32 = Numbers[row]
    low: T.uint32 = T.cast(Seeds[row] & T.uint64(0xFFFFFFFF), "uint32")
    high: T.uint32 = T.cast(Seeds[row] >> T.uint64(32), "uint32")
    counter: T.uint32 = T.cast(Counters[row], "uint32")
    inverse: T.float32 = 1.0
    if temperature > T.float32(0):
        inverse = 1.0 / temperature
    whole: T.int32 = T.if_then_else(misaligned(Logits.ptr_to([row, 0])) == T.uint8(0) and columns % VEC == 0, 1, 0)
    Ls = T.decl_buffer((columns,), dtype, data=Logits.ptr_to([row, 0]), scope="global")
    turns: T.int32 = T.ceildiv(columns, THREADS * VEC * AHEAD) * AHEAD

    @T.inline
    def values(turn, u):
        """The thread's logits of a turn, penalized and divided by the temperature: number `u` of those that it has fetched."""
        for v in T.unroll(VEC):
            column: T.int32 = (turn * THREADS + tid) * VEC + v
            inside[v] = T.if_then_else(column < columns, 1, 0)
            value: T.float32 = T.cast(raw[u * VEC + v], "float32")
            if of_counts > 0 and column < columns:
                count: T.int32 = Counts[row, column]
                if count > 0:
                    value = T.if_then_else(value > T.float32(0), value / repetition, value * repetition)
                    value = value - presence - frequency * T.cast(count, "float32")
            z[v] = value * inverse

    @T.inline
    def keys_of_values():
        for v in T.unroll(VEC):
            distance: T.float32 = (top[0] - z[v]) * T.float32(ONE)
            key[v] = T.uint32(0)
            if inside[v] != 0 and distance < T.float32(4294967040.0):
                key[v] = T.cast(T.max(distance, T.float32(0)), "uint32")
            else:
                inside[v] = 0

    @T.inline
    def fetch_keys(turn):
        if gathered[0] == 0:
            fetch(raw, Ls, turn, 1, tid, columns, whole, dtype, VEC)

    @T.inline
    def keys(turn, u):
        """The thread's keys of a turn: from shared memory if the near tokens are there."""
        if gathered[0] != 0:
            for v in T.unroll(VEC):
                at: T.int32 = (turn * VEC + v) * THREADS + tid
                inside[v] = 0
                if at < near_count[0]:
                    inside[v] = 1
                    key[v] = near_keys[at]
        else:
            values(turn, u)
            keys_of_values()

    @T.inline
    def gumbel(distance, token, bits):
        """Takes a token with its logit and noise: -log(-log(u)) for u in (0, 1)."""
        u: T.float32 = (T.cast(bits >> T.uint32(8), "float32") + 0.5) * T.float32(2.0 ** -24)
        take(best, best_token, 0.0 - distance - T.log(0.0 - T.log(u)), token)

    @T.inline
    def find(by_mass, wanted_count, wanted_mass):
        """The first bin in which the count or the mass of all bins so far reaches the wanted one, with those of the bins before."""
        T.cuda.cta_sync()
        if warp == 0:
            count: T.uint32 = T.uint32(0)
            mass: T.uint64 = T.uint64(0)
            for e in range(BINS // 32):
                count += bin_counts[lane * (BINS // 32) + e]
                mass += bin_masses[lane * (BINS // 32) + e]
            before_count: T.uint32 = count
            before_mass: T.uint64 = mass
            for step in T.unroll(5):
                its_count: T.uint32 = T.tvm_warp_shuffle_up(FULL, before_count, 1 << step, 32, 32)
                its_mass: T.uint64 = T.tvm_warp_shuffle_up(FULL, before_mass, 1 << step, 32, 32)
                if lane >= 1 << step:
                    before_count += its_count
                    before_mass += its_mass
            reached: T.int32 = T.if_then_else(by_mass, before_mass >= wanted_mass, before_count >= wanted_count)
            before_count -= count
            before_mass -= mass
            reached_before: T.int32 = T.if_then_else(by_mass, before_mass >= wanted_mass, before_count >= wanted_count)
            if lane == 31 and reached == 0:
                found_bin[0] = T.uint32(BINS)                  # all bins together do not reach it
            if reached != 0 and reached_before == 0:
                e: T.int32 = lane * (BINS // 32)
                while T.if_then_else(by_mass, before_mass + bin_masses[e] < wanted_mass, before_count + bin_counts[e] < wanted_count):
                    before_count += bin_counts[e]
                    before_mass += bin_masses[e]
                    e += 1
                found_bin[0] = T.cast(e, "uint32")
                found_count[0] = before_count
                found_mass[0] = before_mass
                found_mass[1] = before_mass + bin_masses[e]
        T.cuda.cta_sync()

    @T.inline
    def gather():
        """Keeps the tokens up to the limit in shared memory, if they fit there."""
        T.cuda.cta_sync()
        if tid == 0:
            near_count[0] = 0
        T.cuda.cta_sync()
        for step in range(T.truncdiv(turns, 2)):
            fetch(raw, Ls, step * 2, 2, tid, columns, whole, dtype, VEC)
            for u in T.unroll(2):
                values(step * 2 + u, u)
                keys_of_values()
                for v in T.unroll(VEC):
                    if inside[v] != 0 and key[v] <= limit[0]:
                        place: T.int32 = T.cuda.atomic_add(near_count.ptr_to([0]), 1)
                        if place < NEAR:
                            near_keys[place] = key[v]
                            near_tokens[place] = ((step * 2 + u) * THREADS + tid) * VEC + v
        T.cuda.cta_sync()
        if near_count[0] <= NEAR:
            gathered[0] = 1

    @T.inline
    def select(by_mass, count, mass):
        """Lowers the limit to the least key that has the wanted count or mass of keys up to it; `total` is their mass."""
        wanted_count: T.uint32 = count
        wanted_mass: T.uint64 = mass
        done_mass: T.uint64 = T.uint64(0)
        prefix: T.uint32 = T.uint32(0)
        open: T.int32 = 1
        shift: T.uint32 = T.uint32(21)
        above: T.uint32 = T.uint32(31)                         # the lowest bit of the digit before
        for level in range(3):
            if open != 0:
                T.cuda.cta_sync()
                for e in T.unroll(BINS // THREADS):
                    bin_counts[e * THREADS + tid] = T.uint32(0)
                    bin_masses[e * THREADS + tid] = T.uint64(0)
                T.cuda.cta_sync()
                for turn in range(T.if_then_else(gathered[0] != 0, T.ceildiv(NEAR, THREADS * VEC), turns)):
                    fetch_keys(turn)
                    keys(turn, 0)
                    for v in T.unroll(VEC):
                        if inside[v] != 0 and key[v] <= limit[0]:
                            same: T.int32 = 1
                            if level > 0:
                                same = T.if_then_else(key[v] >> above == prefix, 1, 0)
                            if same != 0:
                                digit: T.int32 = T.cast((key[v] >> shift) & T.if_then_else(level < 2, T.uint32(BINS - 1), T.uint32(1023)), "int32")
                                p: T.float32 = T.exp2(T.cast(key[v], "float32") * T.float32(-LOG2_E / ONE))
                                T.evaluate(T.cuda.atomic_add(bin_counts.ptr_to([digit]), T.uint32(1)))
                                T.evaluate(T.cuda.atomic_add(bin_masses.ptr_to([digit]), T.cast(p * T.float32(2.0 ** 40), "uint64")))
                find(by_mass, wanted_count, wanted_mass)
                if found_bin[0] >= T.uint32(BINS):
                    open = 0
                else:
                    wanted_count -= found_count[0]
                    wanted_mass -= found_mass[0]
                    done_mass += found_mass[0]
                    if level == 0:
                        prefix = found_bin[0]
                        # The tokens up to the end of the bin, if they fit into shared memory.
                        if gathered[0] == 0 and found_count[0] + bin_counts[T.cast(found_bin[0], "int32")] <= T.uint32(NEAR):
                            limit[0] = T.min(limit[0], (prefix << T.uint32(21)) | T.uint32((1 << 21) - 1))
                            gather()
                    elif level == 1:
                        prefix = (prefix << T.uint32(11)) | found_bin[0]
                    else:
                        limit[0] = (prefix << T.uint32(10)) | found_bin[0]
                        total[0] = done_mass + (found_mass[1] - found_mass[0])
                    above = shift
                    shift = T.if_then_else(level == 0, T.uint32(10), T.uint32(0))

    best[0] = 0.0 - T.infinity("float32")
    best_token[0] = 0
    own_best: T.float32 = 0.0
    gathered[0] = 0
    limit[0] = T.uint32(0xFFFFFFFF)
    total[0] = T.uint64(0)
    if temperature <= T.float32(0) or top_k > 0 or top_p < T.float32(1) or min_p > T.float32(0):
        for step in range(T.truncdiv(turns, AHEAD)):
            fetch(raw, Ls, step * AHEAD, AHEAD, tid, columns, whole, dtype, VEC)
            for u in T.unroll(AHEAD, annotations=BY_NVCC):
                values(step * AHEAD + u, u)
                for v in T.unroll(VEC):
                    if inside[v] != 0:
                        take(best, best_token, z[v], ((step * AHEAD + u) * THREADS + tid) * VEC + v)
        own_best = best[0]
        winner(best, best_token, parts, part_tokens, warp, lane)
    if temperature > T.float32(0):
        filtered: T.int32 = 0
        if top_k > 0 or top_p < T.float32(1) or min_p > T.float32(0):
            filtered = 1
            top[0] = best[0]
            if min_p > T.float32(0):
                farthest: T.float32 = (0.0 - T.log(T.min(min_p, T.float32(1)))) * T.float32(ONE)
                if farthest < T.float32(4294967040.0):
                    limit[0] = T.cast(farthest, "uint32")
            if top_k > 0 and top_k < columns:
                for attempt in range(2):
                    if attempt == 1 or top_k <= THREADS:
                        if attempt == 0:
                            # As many of the threads' greatest logits are a limit that as many tokens keep.
                            z[0] = own_best
                            inside[0] = 1
                            for v in T.unroll(VEC - 1):
                                inside[v + 1] = 0
                            keys_of_values()
                            near_keys[tid] = T.if_then_else(inside[0] != 0, key[0], T.uint32(0xFFFFFFFF))
                            near_count[0] = THREADS
                            gathered[0] = 1
                        select(False, T.cast(top_k, "uint32"), T.uint64(0))
                        if attempt == 0:
                            gathered[0] = 0
                            total[0] = T.uint64(0)
                            gather()
            if top_p < T.float32(1):
                if total[0] == T.uint64(0):
                    # The mass of all keys up to the limit: more than all of them is wanted, so one level counts them.
                    mass = T.alloc_shared((1,), "uint64")
                    T.cuda.cta_sync()
                    if tid == 0:
                        mass[0] = T.uint64(0)
                    T.cuda.cta_sync()
                    own: T.uint64 = T.uint64(0)
                    for turn in range(T.if_then_else(gathered[0] != 0, T.ceildiv(NEAR, THREADS * VEC), turns)):
                        fetch_keys(turn)
                        keys(turn, 0)
                        for v in T.unroll(VEC):
                            if inside[v] != 0 and key[v] <= limit[0]:
                                own += T.cast(T.exp2(T.cast(key[v], "float32") * T.float32(-LOG2_E / ONE)) * T.float32(2.0 ** 40), "uint64")
                    for step in T.unroll(5):
                        own += T.tvm_warp_shuffle_xor(FULL, own, 16 >> step, 32, 32)
                    if lane == 0:
                        T.evaluate(T.cuda.atomic_add(mass.ptr_to([0]), own))
                    T.cuda.cta_sync()
                    total[0] = mass[0]
                wanted: T.uint64 = T.cast(T.cast(total[0], "float64") * T.cast(T.max(top_p, T.float32(0)), "float64"), "uint64")
                select(True, T.uint32(0), T.max(wanted, T.uint64(1)))
        best[0] = 0.0 - T.infinity("float32")
        best_token[0] = 0
        if gathered[0] != 0:
            for turn in range(T.ceildiv(NEAR, THREADS)):
                at: T.int32 = turn * THREADS + tid
                if at < near_count[0]:
                    if near_keys[at] <= limit[0]:
                        token: T.int32 = near_tokens[at]
                        philox(T.cast(token, "uint32") >> T.uint32(2), counter, T.uint32(0), low, high, random)
                        bits: T.uint32 = T.if_then_else(token % 2 == 0, T.if_then_else(token % 4 == 0, random[0], random[2]),
                                                        T.if_then_else(token % 4 == 1, random[1], random[3]))
                        gumbel(T.cast(near_keys[at], "float32") * T.float32(1 / ONE), token, bits)
        else:
            # The random numbers take longer than the loads.
            for turn in range(turns):
                fetch(raw, Ls, turn, 1, tid, columns, whole, dtype, VEC)
                values(turn, 0)
                if filtered != 0:
                    keys_of_values()
                for g in T.unroll(VEC // 4):
                    token: T.int32 = (turn * THREADS + tid) * VEC + g * 4
                    philox(T.cast(token, "uint32") >> T.uint32(2), counter, T.uint32(0), low, high, random)
                    for v in T.unroll(4):
                        if inside[g * 4 + v] != 0:
                            if filtered == 0:
                                gumbel(0.0 - z[g * 4 + v], token + v, random[v])
                            elif key[g * 4 + v] <= limit[0]:
                                gumbel(T.cast(key[g * 4 + v], "float32") * T.float32(1 / ONE), token + v, random[v])
        winner(best, best_token, parts, part_tokens, warp, lane)
    if tid == 0:
        Tokens[row] = best_token[0]
        if of_counts > 0:
            Counts[row, best_token[0]] += 1


@T.jit
def argmax(logits: T.handle, tokens: T.handle, *, dtype: T.constexpr):
    """The first greatest column of each row; 0 if the row has no number above minus infinity."""
    rows, columns = T.int32(), T.int32()
    l0 = T.int64()
    Logits = T.match_buffer(logits, (rows, columns), dtype, strides=(l0, 1))
    Tokens = T.match_buffer(tokens, (rows,), "int32")
    VEC = T.meta_var(vector(dtype))
    T.device_entry()
    after_previous()
    row = T.cta_id([rows])
    tid = T.thread_id([THREADS])
    lane: T.let = tid % 32
    warp: T.let = tid // 32
    parts = T.alloc_shared((32,), "float32")
    part_tokens = T.alloc_shared((32,), "int32")
    raw = T.alloc_local((AHEAD * VEC,), dtype)
    best = T.alloc_local((1,), "float32")
    best_token = T.alloc_local((1,), "int32")
    best[0] = 0.0 - T.infinity("float32")
    best_token[0] = 0
    whole: T.int32 = T.if_then_else(misaligned(Logits.ptr_to([row, 0])) == T.uint8(0) and columns % VEC == 0, 1, 0)
    Ls = T.decl_buffer((columns,), dtype, data=Logits.ptr_to([row, 0]), scope="global")
    for step in range(T.ceildiv(columns, THREADS * VEC * AHEAD)):
        fetch(raw, Ls, step * AHEAD, AHEAD, tid, columns, whole, dtype, VEC)
        for u in T.unroll(AHEAD, annotations=BY_NVCC):
            for v in T.unroll(VEC):
                column: T.int32 = ((step * AHEAD + u) * THREADS + tid) * VEC + v
                value: T.float32 = T.cast(raw[u * VEC + v], "float32")
                if column < columns and value > best[0]:
                    best[0] = value
                    best_token[0] = column
    winner(best, best_token, parts, part_tokens, warp, lane)
    if tid == 0:
        Tokens[row] = best_token[0]
