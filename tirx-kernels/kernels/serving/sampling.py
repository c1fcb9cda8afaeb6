"""The next token of each row of logits: the most likely one, or a random one of the most likely ones. A row has a block or a cluster.

The greatest logits of the threads at the beginning of a row give a lower limit of its k-th logit, or of its most likely tokens. One pass over the row
keeps all tokens above the limit in shared memory, and the rest of the work is mostly on these tokens. The blocks of a cluster divide the row, and each
gets the tokens of all.

A logit, penalized and divided by the temperature, becomes a key: its distance from the row's maximum in steps of 2^-27, in 32 bits. Tokens that are 32
and more behind the maximum, with less than 1e-13 of its probability, are left out. Limits of keys select tokens, exactly and without a sort: a
histogram of 11 bits of the keys finds the bin of the limit, and up to two more find the key in it. Probabilities are added as integers, so that results do not
depend on the order of threads.

The random choice adds Gumbel noise to each selected logit and takes the maximum, so it needs no sum. The noise is Philox4x32-10 of seed, counter and
token. It has a greatest value, so most tokens of a peaked row need no random number, and most random numbers no logarithm.

If top-p selects too many tokens for shared memory, the block draws a token first, and adds the probabilities of the more likely ones. The token stays if
their sum is less than p. Otherwise the limit is above the token, and the block draws again above it."""

from __future__ import annotations

from tvm.script import tirx as T

from keys import FARTHEST, LEAST, LOG2_E, MOST_NOISE, ONE, below, distance_of, end_of, fixed, key_of, lowered, noise, philox, probability, whole_of, word
from rows import BY_NVCC, added, after_previous, load, load_vector, misaligned, vector

THREADS = 1024
# nvcc leaves the loop as it is: long bodies run once or twice.
ROLLED = {"disable_unroll": True}
BINS = 2048
NEAR = 2048                                  # tokens that fit into shared memory
AHEAD = 4                                    # vectors of a row that a thread of `argmax` has in flight, and of the beginning of a row
SPARE = 16                                   # tokens more than wanted that a limit may keep while it is one of the row's beginning
PAIR = 2                                     # vectors that a thread of `sample` has in flight while it works on as many others
POSTS = 8                                    # words that a block of a cluster tells the others
# The stages of `sample`; each goes over the row, or over the tokens in shared memory if they are known to suffice.
BEGIN = 0                                    # the maximum and the greatest logits of the threads, of the row's beginning
FIRST = 1                                    # the limit that as many of them have as tokens are wanted
GATHER = 2                                   # the tokens above the limit, to shared memory
COUNT = 3                                    # the key of the k-th token, by counts
PICK = 4                                     # the key of the last token with the share top-p, by probabilities
SHARE = 5                                    # the sum of probabilities, and a draw
REST = 6                                     # a draw below a limit, or the sum of the tokens above the drawn one
END = 7
FULL = 0xFFFFFFFF


@T.inline
def fetch(raw, row, turn, turns, tid, columns, whole, dtype, count):
    """The thread's vectors of some turns of a row; `whole` is 1 for aligned rows of whole vectors."""
    if whole != 0:
        for u in T.unroll(turns):
            load_vector(raw, u * count, row, ((turn + u) * THREADS + tid) * count, columns, dtype, count)
    else:
        for u in T.unroll(turns):
            load(raw, u * count, row, ((turn + u) * THREADS + tid) * count, columns, False, dtype, count)


def bits(row, column, columns, dtype):
    """The bits of an element, 0 behind the end of the row."""
    of_bits = "uint32" if dtype == "float32" else "uint16"
    return T.if_then_else(column < columns, T.cast(T.reinterpret(of_bits, row[column]), "uint32"), T.uint32(0))


@T.inline
def fetch_words(words, row, turn, turns, place, span, columns, vectors, whole, dtype, count):
    """As `fetch`, as words: nvcc takes a register for each element of 16 bits."""
    for u in T.unroll(turns):
        number: T.int32 = (turn + u) * span + place
        if whole != 0:
            here = T.decl_buffer((columns // count,), "uint32x4", data=row.data, scope="global")
            there = T.decl_buffer((turns,), "uint32x4", data=words.data, scope="local")
            there[u] = here[T.min(number, vectors - 1)]
        else:
            column: T.int32 = number * count
            for w in T.unroll(4):
                if count == 4:
                    words[u * 4 + w] = bits(row, column + w, columns, dtype)
                else:
                    words[u * 4 + w] = bits(row, column + w * 2, columns, dtype) | (bits(row, column + w * 2 + 1, columns, dtype) << T.uint32(16))


def value_of(words, v, dtype):
    """Element v of a vector."""
    if dtype == "float32":
        return T.reinterpret("float32", words[v])
    return T.cast(T.reinterpret(dtype, T.cast(words[v // 2] >> T.uint32(v % 2 * 16), "uint16")), "float32")


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


@T.inline
def reduced(combine, result, parts, warp, lane):
    """A number of each thread of the block, combined; each thread gets the result."""
    for step in T.unroll(5):
        result[0] = combine(result[0], T.tvm_warp_shuffle_xor(FULL, result[0], 16 >> step, 32, 32))
    T.cuda.cta_sync()
    if lane == 0:
        parts[warp] = result[0]
    T.cuda.cta_sync()
    result[0] = parts[lane]
    for step in T.unroll(5):
        result[0] = combine(result[0], T.tvm_warp_shuffle_xor(FULL, result[0], 16 >> step, 32, 32))


def maximum(numbers, begin, count):
    return numbers[begin] if count == 1 else T.max(maximum(numbers, begin, count // 2), maximum(numbers, begin + count // 2, count // 2))


@T.jit
def sample(logits: T.handle, floats: T.handle, numbers: T.handle, seeds: T.handle, counters: T.handle, counts: T.handle, tokens: T.handle,
           *, dtype: T.constexpr, BLOCKS: T.constexpr = 1):
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
    SPAN = T.meta_var(BLOCKS * THREADS)
    if BLOCKS > 1:
        block = T.cta_id([rows * BLOCKS])
        T.cta_id_in_cluster([BLOCKS])
        row: T.let = block // BLOCKS
        rank: T.let = block % BLOCKS
    else:
        row = T.cta_id([rows])
        rank: T.let = 0
    tid = T.thread_id([THREADS])
    place: T.let = rank * THREADS + tid                        # of the thread in the cluster
    lane: T.let = tid % 32
    warp: T.let = tid // 32
    # A bin's sum is low + high 2^20.
    bins_low = T.alloc_shared((BINS,), "uint32")
    bins_high = T.alloc_shared((BINS,), "uint32")
    near = T.alloc_shared((NEAR,), "float32")
    near_tokens = T.alloc_shared((NEAR,), "int32")
    near_count = T.alloc_shared((1,), "int32")
    parts = T.alloc_shared((32,), "float32")
    part_tokens = T.alloc_shared((32,), "int32")
    part_sums = T.alloc_shared((32,), "uint64")
    found_bin = T.alloc_shared((1,), "uint32")
    found_sum = T.alloc_shared((2,), "uint64")                 # that before the bin, and with it
    if BLOCKS > 1:
        posts = T.alloc_shared((2, BLOCKS, POSTS), "uint32")
    words = T.alloc_local((PAIR * 4,), "uint32")
    following = T.alloc_local((PAIR * 4,), "uint32")
    z = T.alloc_local((VEC,), "float32")
    upper = T.alloc_local((1,), "uint32")
    lower = T.alloc_local((1,), "uint32")
    score = T.alloc_local((1,), "float32")
    random = T.alloc_local((4,), "uint32")
    best = T.alloc_local((1,), "float32")
    best_token = T.alloc_local((1,), "int32")
    own = T.alloc_local((1,), "float32")
    top = T.alloc_local((1,), "float32")
    floor = T.alloc_local((1,), "float32")
    limit = T.alloc_local((1,), "uint32")
    mass = T.alloc_local((1,), "uint64")
    pushed_from = T.alloc_local((1,), "float32")
    farthest_drawn = T.alloc_local((1,), "float32")
    farthest_counted = T.alloc_local((1,), "float32")

    temperature: T.float32 = Floats[row, 0]
    top_p: T.float32 = Floats[row, 1]
    min_p: T.float32 = Floats[row, 2]
    top_k: T.int32 = Numbers[row]
    low: T.uint32 = T.cast(Seeds[row] & T.uint64(0xFFFFFFFF), "uint32")
    high: T.uint32 = T.cast(Seeds[row] >> T.uint64(32), "uint32")
    counter: T.uint32 = T.cast(Counters[row], "uint32")
    inverse: T.float32 = 1.0
    if temperature > T.float32(0):
        inverse = 1.0 / temperature
    # nvcc would compute the condition again at each use; the result of a shuffle it keeps.
    whole: T.int32 = T.tvm_warp_shuffle(FULL, T.if_then_else(misaligned(Logits.ptr_to([row, 0])) == T.uint8(0) and columns % VEC == 0, 1, 0), 0, 32, 32)
    vectors: T.int32 = columns // VEC
    Ls = T.decl_buffer((columns,), dtype, data=Logits.ptr_to([row, 0]), scope="global")

    @T.inline
    def penalize(to, at, column):
        count: T.int32 = Counts[row, column]
        if count > 0:
            repetition: T.float32 = Floats[row, 3]
            to[at] = T.if_then_else(to[at] > T.float32(0), to[at] / repetition, to[at] * repetition)
            to[at] = to[at] - Floats[row, 4] - Floats[row, 5] * T.cast(count, "float32")

    @T.inline
    def values(turn):
        """The thread's logits of a turn, penalized and divided by the temperature."""
        begin: T.int32 = (turn * SPAN + place) * VEC
        for v in T.unroll(VEC):
            z[v] = value_of(words, v, dtype)
        if of_counts > 0:
            for v in T.unroll(VEC):
                if begin + v < columns:
                    penalize(z, v, begin + v)
        for v in T.unroll(VEC):
            z[v] = z[v] * inverse
        if begin + VEC > columns:
            for v in T.unroll(VEC):
                if begin + v >= columns:
                    z[v] = 0.0 - T.infinity("float32")

    @T.inline
    def count_key(value):
        """Adds a token to its bin, if its key has the digits that are known."""
        if distance_of(top[0], value) < T.float32(FARTHEST):
            key: T.uint32 = key_of(top[0], value)
            of_level: T.uint32 = T.if_then_else(level == 0, key >> T.uint32(21), T.if_then_else(
                level == 1, key >> T.uint32(10), key))
            if key <= limit[0] and of_level - prefix < T.uint32(BINS):
                digit: T.int32 = T.cast(of_level - prefix, "int32")
                if stage == PICK:
                    upper[0] = T.uint32(0)
                    lower[0] = T.uint32(0)
                    fixed(probability(distance_of(top[0], value)), upper, lower)
                    share: T.uint64 = whole_of(upper[0], lower[0], 1)
                    T.evaluate(T.cuda.atomic_add(bins_low.ptr_to([digit]), T.cast(share & T.uint64((1 << 20) - 1), "uint32")))
                    T.evaluate(T.cuda.atomic_add(bins_high.ptr_to([digit]), T.cast(share >> T.uint64(20), "uint32")))
                else:
                    T.evaluate(T.cuda.atomic_add(bins_low.ptr_to([digit]), T.uint32(1)))

    @T.inline
    def push(turn):
        """Keeps the thread's tokens from a logit on in shared memory."""
        if T.ptx.any_sync(FULL, maximum(z, 0, VEC) >= pushed_from[0]) != 0:
            for v in T.serial(VEC, annotations=ROLLED):
                lanes: T.uint32 = T.cuda.ballot_sync(FULL, z[0] >= pushed_from[0])
                if lanes != T.uint32(0):
                    at: T.int32 = 0
                    if lane == 0:
                        at = T.cuda.atomic_add(near_count.ptr_to([0]), T.cast(T.popcount(lanes), "int32"))
                    at = T.tvm_warp_shuffle(FULL, at, 0, 32, 32)
                    if at >= NEAR:
                        pushed_from[0] = T.infinity("float32")                   # they do not fit
                    at += T.cast(T.popcount(lanes & ((T.uint32(1) << T.cast(lane, "uint32")) - T.uint32(1))), "int32")
                    if z[0] >= pushed_from[0] and at < NEAR:
                        near[at] = z[0]
                        near_tokens[at] = (turn * SPAN + place) * VEC + v
                for w in T.unroll(VEC - 1):
                    z[w] = z[w + 1]

    @T.inline
    def take_greatest(turn):
        """Takes the first of the greatest of the thread's logits."""
        most: T.float32 = maximum(z, 0, VEC)
        if most > best[0]:
            best[0] = most
            for v in T.unroll(VEC):
                if z[VEC - 1 - v] == most:
                    best_token[0] = (turn * SPAN + place) * VEC + (VEC - 1 - v)

    @T.inline
    def draw(turn):
        """Takes the best of the thread's tokens up to a distance, with their noise."""
        for g in T.serial(VEC // 4, annotations=ROLLED):
            for v in T.unroll(4):
                z[v] = T.if_then_else(distance_of(top[0], z[v]) < farthest_drawn[0], z[v] - top[0], 0.0 - T.infinity("float32"))
            most: T.float32 = maximum(z, 0, 4)
            if most >= T.float32(LEAST) and most + T.float32(MOST_NOISE) >= floor[0]:
                token: T.int32 = (turn * SPAN + place) * VEC + g * 4
                philox(T.cast(token, "uint32") >> T.uint32(2), counter, T.uint32(0), low, high, random)
                for v in T.unroll(4):
                    # The noise is below -log(1 - u), and 1 - u is above (the complement of the bits) 2^-24.
                    if z[v] >= T.float32(LEAST) and T.cast((random[v] >> T.uint32(8)) ^ T.uint32(0xFFFFFF), "float32") <= T.ptx.exp2(
                            (z[v] - floor[0]) * T.float32(LOG2_E) + T.float32(24)):
                        noise(score, random[v])
                        if filtered != 0:
                            z[v] = 0.0 - T.cast(key_of(T.float32(0), z[v]), "float32") * T.float32(1 / ONE)
                        take(best, best_token, z[v] + score[0], token + v)
                        floor[0] = T.max(floor[0], below(best[0]))
            for w in T.unroll(VEC - 4):
                z[w] = z[w + 4]
        # The block's best, after 1, 2, 4, ... turns.
        if T.bitwise_and(turn, turn + 1) == 0:
            score[0] = best[0]
            reduced(T.max, score, parts, warp, lane)
            floor[0] = T.max(floor[0], below(score[0]))

    @T.inline
    def add():
        """Adds the probabilities of the thread's tokens up to a distance."""
        upper[0] = T.uint32(0)
        lower[0] = T.uint32(0)
        for v in T.unroll(VEC):
            distance: T.float32 = distance_of(top[0], z[v])
            fixed(T.if_then_else(distance < farthest_counted[0], probability(distance), T.float32(0)), upper, lower)
        mass[0] += whole_of(upper[0], lower[0], VEC)

    @T.inline
    def exchange():
        """The blocks of the cluster tell each other what they found, and each takes the best or the sum of all."""
        if started == 0:
            T.ptx.barrier.cluster.wait()
            started = 1
        if tid < BLOCKS:
            there = T.decl_buffer((POSTS,), "uint32", data=T.reinterpret("handle", T.ptx.map_shared_rank(posts.ptr_to([parity, rank, 0]), tid)))
            there[0] = T.reinterpret("uint32", top[0])
            there[1] = T.reinterpret("uint32", from_logit)
            there[2] = T.cast(gathered, "uint32")
            there[3] = T.cast(complete, "uint32")
            there[4] = T.reinterpret("uint32", best[0])
            there[5] = T.cast(best_token[0], "uint32")
            there[6] = T.cast(mass[0] & T.uint64(0xFFFFFFFF), "uint32")
            there[7] = T.cast(mass[0] >> T.uint64(32), "uint32")
        # The barrier of the cluster orders the posts alone; racecheck knows that of the block.
        T.cuda.cta_sync()
        T.cuda.cluster_sync()
        own_gathered: T.int32 = gathered
        gathered = 0
        mass[0] = T.uint64(0)
        for r in T.serial(BLOCKS, annotations=ROLLED):
            gathered += T.cast(posts[parity, r, 2], "int32")
            mass[0] += (T.cast(posts[parity, r, 7], "uint64") << T.uint64(32)) | T.cast(posts[parity, r, 6], "uint64")
            take(best, best_token, T.reinterpret("float32", posts[parity, r, 4]), T.cast(posts[parity, r, 5], "int32"))
            top[0] = T.max(top[0], T.reinterpret("float32", posts[parity, r, 0]))
            from_logit = T.max(from_logit, T.reinterpret("float32", posts[parity, r, 1]))
            complete = T.min(complete, T.cast(posts[parity, r, 3], "int32"))
        if stage != GATHER:
            gathered = own_gathered
        elif gathered <= NEAR:
            # Four warps copy the tokens of each other block.
            from_rank: T.int32 = warp % BLOCKS
            to: T.int32 = own_gathered
            for r in T.serial(BLOCKS, annotations=ROLLED):
                if r < from_rank and r != rank:
                    to += T.cast(posts[parity, r, 2], "int32")
            if from_rank != rank:
                its_near = T.decl_buffer((NEAR,), "float32", data=T.reinterpret("handle", T.ptx.map_shared_rank(near.ptr_to([0]), from_rank)))
                its_tokens = T.decl_buffer((NEAR,), "int32", data=T.reinterpret("handle", T.ptx.map_shared_rank(near_tokens.ptr_to([0]), from_rank)))
                count: T.int32 = T.cast(posts[parity, from_rank, 2], "int32")
                at: T.int32 = T.truncdiv(warp, BLOCKS) * 32 + lane
                while at < count:
                    near[to + at] = its_near[at]
                    near_tokens[to + at] = its_tokens[at]
                    at += THREADS // BLOCKS
            T.cuda.cta_sync()
            T.cuda.cluster_sync()
        parity = 1 - parity

    @T.inline
    def clear_bins():
        """Empties the histogram."""
        T.cuda.cta_sync()
        for e in T.unroll(BINS // THREADS):
            bins_low[e * THREADS + tid] = T.uint32(0)
            bins_high[e * THREADS + tid] = T.uint32(0)
        if tid == 0:
            found_bin[0] = T.uint32(BINS)
        T.cuda.cta_sync()

    @T.inline
    def over_gathered(choosing):
        """Counts the tokens in shared memory, or adds their probabilities."""
        for e in T.serial(NEAR // THREADS, annotations=ROLLED):
            if e * THREADS + tid < gathered:
                if choosing != 0:
                    count_key(near[e * THREADS + tid])
                else:
                    z[0] = near[e * THREADS + tid]
                    if distance_of(top[0], z[0]) < end_of(limit[0]):
                        upper[0] = T.uint32(0)
                        lower[0] = T.uint32(0)
                        fixed(probability(distance_of(top[0], z[0])), upper, lower)
                        mass[0] += whole_of(upper[0], lower[0], 1)
        if stage == SHARE:
            reduced(added, mass, part_sums, warp, lane)
            # If the tokens in shared memory have the share, as far as one can guess, they need no draw from the row.
            others: T.float32 = T.ptx.exp2((from_logit - top[0]) * T.float32(LOG2_E)) * (T.cast(columns, "float32") * T.float32(2.0 ** 34))
            these: T.float32 = T.cast(mass[0], "float32")
            if these > Floats[row, 1] * (these + others):
                drawing = 0

    @T.inline
    def work_on(turn):
        """A stage's work on a vector of the row."""
        values(turn)
        for w in T.unroll(PAIR * 4 - 4):
            words[w] = words[w + 4]
        own[0] = T.max(own[0], maximum(z, 0, VEC))
        if stage == GATHER:
            push(turn)
        if stage == COUNT:
            if maximum(z, 0, VEC) >= pushed_from[0]:
                for v in T.serial(VEC, annotations=ROLLED):
                    count_key(z[0])
                    for w in T.unroll(VEC - 1):
                        z[w] = z[w + 1]
        if stage >= SHARE:
            if adding != 0:
                add()
            if BLOCKS > 1 and greedy != 0:
                take_greatest(turn)
            elif drawing != 0:
                draw(turn)

    @T.inline
    def over_row():
        """One pass over the row, or over its beginning. The next vectors are in flight meanwhile."""
        until: T.int32 = T.ceildiv(columns, SPAN * VEC)
        if stage == BEGIN and again != 0:
            until = T.min(until, AHEAD)
        pushed_from[0] = from_logit
        farthest_drawn[0] = T.if_then_else(filtered != 0, end_of(limit[0]), T.infinity("float32"))
        farthest_counted[0] = end_of(counted)
        if stage >= SHARE:
            mass[0] = T.uint64(0)
            if drawing != 0:
                best[0] = 0.0 - T.infinity("float32")
                best_token[0] = 0
                floor[0] = 0.0 - T.infinity("float32")
        for step in T.serial(T.ceildiv(until, PAIR) + 1, annotations=ROLLED):
            if step > 0:
                for w in T.unroll(PAIR * 4):
                    words[w] = following[w]
            if step * PAIR < until:
                fetch_words(following, Ls, step * PAIR, PAIR, place, SPAN, columns, vectors, whole, dtype, VEC)
            if step > 0:
                for u in T.serial(PAIR, annotations=ROLLED):
                    turn: T.int32 = (step - 1) * PAIR + u
                    work_on(turn)
        if stage >= SHARE:
            if drawing != 0:
                winner(best, best_token, parts, part_tokens, warp, lane)
            if adding != 0:
                reduced(added, mass, part_sums, warp, lane)
        elif stage != COUNT:
            top[0] = own[0]
            reduced(T.max, top, parts, warp, lane)
            if stage == GATHER:
                gathered = near_count[0]
        if BLOCKS > 1:
            if stage == GATHER or stage >= SHARE:
                exchange()

    @T.inline
    def find_bin():
        """Finds the bin with the `left`-th token or share, and the number that is left in it."""
        T.cuda.cta_sync()
        # A thread has two bins. The sum up to its second bin, over its warp and over the warps before.
        first: T.uint64 = (T.cast(bins_high[tid * 2], "uint64") << T.uint64(20)) + T.cast(bins_low[tid * 2], "uint64")
        second: T.uint64 = (T.cast(bins_high[tid * 2 + 1], "uint64") << T.uint64(20)) + T.cast(bins_low[tid * 2 + 1], "uint64")
        if BLOCKS > 1:
            if stage == COUNT and exact == 0:
                T.cuda.cluster_sync()
                first = T.uint64(0)
                second = T.uint64(0)
                for r in T.serial(BLOCKS, annotations=ROLLED):
                    its_bins = T.decl_buffer((2,), "uint32", data=T.reinterpret("handle", T.ptx.map_shared_rank(bins_low.ptr_to([tid * 2]), r)))
                    first += T.cast(its_bins[0], "uint64")
                    second += T.cast(its_bins[1], "uint64")
                T.cuda.cluster_sync()
        both: T.uint64 = first + second
        through: T.uint64 = both
        for step in T.unroll(5):
            its_sum: T.uint64 = T.tvm_warp_shuffle_up(FULL, through, 1 << step, 32, 32)
            if lane >= 1 << step:
                through += its_sum
        if lane == 31:
            part_sums[warp] = through
        T.cuda.cta_sync()
        of_warps: T.uint64 = T.if_then_else(lane < warp, part_sums[lane], T.uint64(0))
        for step in T.unroll(5):
            of_warps += T.tvm_warp_shuffle_xor(FULL, of_warps, 16 >> step, 32, 32)
        through += of_warps
        before: T.uint64 = through - both
        if before < left and left <= through:
            found_bin[0] = T.cast(tid * 2 + T.if_then_else(before + first < left, 1, 0), "uint32")
            found_sum[0] = T.if_then_else(before + first < left, before + first, before)
            found_sum[1] = T.if_then_else(before + first < left, through, before + first)
        T.cuda.cta_sync()
        reached = 0
        if found_bin[0] < T.uint32(BINS):
            reached = 1
            left -= found_sum[0]
            prefix = prefix + found_bin[0]

    @T.inline
    def use_greatest_of_threads():
        """Takes the threads' greatest logits as the tokens in shared memory, and asks for as many of them as tokens are wanted."""
        # As many of the threads' greatest logits are a limit that as many tokens keep.
        near[tid] = own[0]
        gathered = THREADS
        limit[0] = T.uint32(0xFFFFFFFF)
        left = T.cast(kept, "uint64")
        if kept == 0 and by_share != 0:
            left = T.cast(T.max(T.min(T.truncdiv(NEAR // 2 * THREADS, T.truncdiv(columns, VEC * AHEAD) + 1), NEAR // (2 * BLOCKS) if BLOCKS > 1 else THREADS // 2), 1), "uint64")

    @T.inline
    def start_gathering(soft):
        """The next pass gathers the tokens from a logit on, or from the farthest one that may be selected."""
        hard: T.float32 = top[0] - farthest * T.float32(1 / ONE)
        complete = T.if_then_else(kept > 0 or T.max(hard, T.float32(LEAST)) >= soft, 1, 0)
        from_logit = lowered(T.max(hard, soft))
        T.cuda.cta_sync()
        if tid == 0:
            near_count[0] = 0
        T.cuda.cta_sync()

    @T.inline
    def select_by_key():
        """The tokens in shared memory are known, or do not fit: their keys select from now on."""
        if distance_of(top[0], from_logit) < T.float32(FARTHEST):
            beyond = key_of(top[0], from_logit)
        limit[0] = T.if_then_else(farthest < T.float32(FARTHEST), T.cast(farthest, "uint32"), T.uint32(0xFFFFFFFF))
        left = T.cast(kept, "uint64")
        next = T.if_then_else(exact != 0 and by_share == 0, END, SHARE)
        if kept > 0:
            next = COUNT
            if exact == 0:
                gathered = 0

    @T.inline
    def judge():
        """Keeps the drawn token, or adds the probabilities of the more likely ones."""
        # The drawn token stays if the more likely ones do not have the share.
        z[0] = T.cast(Logits[row, best_token[0]], "float32")
        if of_counts > 0:
            penalize(z, 0, best_token[0])
        key: T.uint32 = key_of(top[0], z[0] * inverse)
        next = END
        if key > T.uint32(0) and (gathered == 0 or key >= beyond):
            counted = key - T.uint32(1)
            drawing = 0
            adding = 1
            next = REST

    parity: T.int32 = 0
    started: T.int32 = 0                                       # whether all blocks of the cluster have started
    if BLOCKS > 1:
        T.ptx.barrier.cluster.arrive()
    greedy: T.int32 = T.if_then_else(temperature <= T.float32(0), 1, 0)
    filtered: T.int32 = T.if_then_else(greedy == 0 and (top_k > 0 or top_p < T.float32(1) or min_p > T.float32(0)), 1, 0)
    by_share: T.int32 = T.if_then_else(greedy == 0 and top_p < T.float32(1), 1, 0)
    kept: T.int32 = T.if_then_else(top_k > 0 and top_k < columns, top_k, 0)
    # The farthest distance from the maximum.
    farthest: T.float32 = T.float32(FARTHEST)
    if min_p > T.float32(0):
        farthest = T.min((0.0 - T.log(T.min(min_p, T.float32(1)))) * T.float32(ONE), farthest)
    top[0] = T.float32(0)
    own[0] = 0.0 - T.infinity("float32")
    best[0] = 0.0 - T.infinity("float32")
    best_token[0] = 0
    limit[0] = T.uint32(0xFFFFFFFF)
    gathered: T.int32 = 0                                      # tokens in shared memory; 0 if they do not fit
    exact: T.int32 = 0                                         # whether all tokens that may be selected are among them
    complete: T.int32 = 0                                      # whether all of them are from `from_logit` on
    # 1 while the limit may be that of the row's beginning, 0 if it is that of the whole row, -1 if it is a bin of the histogram. With many tokens wanted, the
    # beginning gives no limit that few tokens reach.
    again: T.int32 = T.if_then_else(BLOCKS == 1 and T.cast(kept, "int64") * T.cast(columns, "int64") > T.int64(NEAR * 12288), 0, 1)
    from_logit: T.float32 = T.float32(LEAST)                   # all tokens from this logit on are in shared memory,
    beyond: T.uint32 = T.uint32(0xFFFFFFFF)                    # and all with keys below this one
    counted: T.uint32 = T.uint32(0xFFFFFFFF)                   # the last key whose probabilities are added
    wanted: T.uint64 = T.uint64(0)                             # the share top-p of their sum
    # The search for a key by its digits: the digits that are known, and the tokens or the share to the key that is wanted.
    level: T.int32 = 0
    prefix: T.uint32 = T.uint32(0)
    left: T.uint64 = T.uint64(0)
    reached: T.int32 = 0                                       # whether there are so many
    drawing: T.int32 = 1                                       # whether a pass draws a token, and adds probabilities
    adding: T.int32 = by_share
    stage: T.int32 = T.if_then_else(filtered != 0, BEGIN, SHARE)
    next: T.int32 = END
    if BLOCKS == 1:
        if greedy != 0:
            stage = END
            many = T.alloc_local((AHEAD * 4,), "uint32")
            for step in T.serial(T.ceildiv(columns, THREADS * VEC * AHEAD), annotations=ROLLED):
                fetch_words(many, Ls, step * AHEAD, AHEAD, place, SPAN, columns, vectors, whole, dtype, VEC)
                for u in T.unroll(AHEAD):
                    for w in T.unroll(4):
                        words[w] = many[u * 4 + w]
                    values(step * AHEAD + u)
                    take_greatest(step * AHEAD + u)
            winner(best, best_token, parts, part_tokens, warp, lane)
    while stage != END:
        choosing: T.int32 = T.if_then_else(stage == FIRST or stage == COUNT or stage == PICK, 1, 0)
        if choosing != 0:
            clear_bins()
        mass[0] = T.uint64(0)
        if (choosing != 0 or stage == SHARE) and gathered > 0:
            over_gathered(choosing)
        if stage == BEGIN or stage == GATHER or (exact == 0 and stage != FIRST and stage != PICK):
            over_row()
        if choosing != 0:
            find_bin()
        next = END
        # The last key of the bin, and a logit that its tokens are not below.
        last: T.uint32 = T.if_then_else(level == 0, (prefix << T.uint32(21)) + T.uint32((1 << 21) - 1), T.if_then_else(
            level == 1, (prefix << T.uint32(10)) + T.uint32((1 << 10) - 1), prefix))
        of_bin: T.float32 = top[0] - (T.cast(last, "float32") + 1.0) * T.float32(1 / ONE)
        # Whether the tokens up to the end of the bin fit into shared memory, and whether they are those that are wanted, or few more.
        fit: T.int32 = 0
        found: T.int32 = T.if_then_else(level == 2, 1, 0)
        if (stage == COUNT or stage == FIRST) and reached != 0:
            if stage == COUNT and exact == 0 and level == 0 and again >= 0 and found_sum[1] <= T.uint64(NEAR):
                fit = 1
            if found_sum[1] - found_sum[0] <= left + T.if_then_else(stage == FIRST, T.uint64(SPARE), T.uint64(0)):
                found = 1
        if choosing != 0 and reached != 0 and found == 0 and fit == 0:
            if stage == COUNT and exact == 0 and level == 0:
                # Greater keys do not count any more.
                from_logit = lowered(of_bin)
            prefix = prefix << T.if_then_else(level == 0, T.uint32(11), T.uint32(10))
            level += 1
            next = stage
        else:
            # What follows the stage: tokens are gathered, those in shared memory are selected from, or a draw is judged.
            before_gather: T.int32 = 0
            soft: T.float32 = T.float32(LEAST)                 # a logit that the wanted tokens are not below
            after_gather: T.int32 = 0
            judging: T.int32 = 0
            if stage == BEGIN or stage == GATHER:
                if stage == GATHER:
                    after_gather = 1
                    exact = complete
                    if gathered > NEAR:
                        gathered = 0
                        exact = 0
                        # With the greatest logits of all the row the limit may be higher.
                        if again == 1 and kept > 0 and kept <= THREADS and columns > SPAN * VEC * AHEAD:
                            again = 0
                            after_gather = 0
                if after_gather == 0:
                    use_greatest_of_threads()
                    next = FIRST
                    if left < T.uint64(2) or left > T.uint64(THREADS):
                        before_gather = 1
                        if left == T.uint64(1):
                            soft = top[0]
            elif stage == FIRST:
                before_gather = 1
                if reached != 0:
                    soft = of_bin
            elif fit != 0:
                before_gather = 1
                again = -1
                soft = of_bin
            elif stage == COUNT:
                if reached != 0:
                    limit[0] = T.min(limit[0], last)
                next = T.if_then_else(exact != 0 and by_share == 0, END, SHARE)
            elif stage == SHARE:
                if by_share != 0:
                    wanted = T.max(T.cast(T.cast(mass[0], "float64") * T.cast(Floats[row, 1], "float64"), "uint64"), T.uint64(1))
                    left = wanted
                    next = PICK
                    if gathered == 0:
                        judging = 1
            elif stage == PICK:
                if exact != 0 or (reached != 0 and prefix < beyond):
                    exact = 1
                    if reached != 0:
                        limit[0] = prefix
                elif drawing != 0:
                    judging = 1
                else:
                    drawing = 1
                    adding = 0
                    next = REST
            elif drawing != 0:
                judging = 1
            elif mass[0] >= wanted:
                # The more likely tokens have the share without the drawn one.
                limit[0] = counted
                drawing = 1
                adding = 0
                next = REST
            if before_gather != 0:
                start_gathering(soft)
                next = GATHER
                if BLOCKS == 1 and fit == 0 and again == 0 and kept > THREADS * 2 // 3:
                    # Too many for shared memory: a bin first.
                    after_gather = 1
                    gathered = 0
                    exact = 0
            if after_gather != 0:
                select_by_key()
            if judging != 0:
                judge()
            if next == SHARE:
                counted = limit[0]
            level = 0
            prefix = T.uint32(0)
        stage = next
    if exact != 0:
        best[0] = 0.0 - T.infinity("float32")
        best_token[0] = 0
        for e in T.serial(NEAR // THREADS, annotations=ROLLED):
            at: T.int32 = e * THREADS + tid
            if at < gathered:
                if distance_of(top[0], near[at]) < end_of(limit[0]):
                    token: T.int32 = near_tokens[at]
                    philox(T.cast(token, "uint32") >> T.uint32(2), counter, T.uint32(0), low, high, random)
                    noise(score, word(random, token))
                    take(best, best_token, score[0] - T.cast(key_of(top[0], near[at]), "float32") * T.float32(1 / ONE), token)
        winner(best, best_token, parts, part_tokens, warp, lane)
    if of_counts > 0:
        # All threads have read the token's count.
        T.cuda.cta_sync()
        if BLOCKS > 1:
            T.cuda.cluster_sync()
    if tid == 0 and rank == 0:
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
