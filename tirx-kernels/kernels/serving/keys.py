"""Keys, probabilities and random numbers of tokens, for `sampling.py`. A logit's distance from the greatest one is in steps of 2^-27."""

from __future__ import annotations

from tvm.script import tirx as T

ONE = 2.0 ** 27
FARTHEST = 4294967040.0                      # the greatest float below 2^32
LOG2_E = 1.4426950408889634
LEAST = -3.4028234663852886e38
MOST_NOISE = 17.34                           # -log(-log(u)) of the greatest u, 1 - 2^-25, is 17.33
MAGIC = 1.5 * 2.0 ** 23                      # x + MAGIC has the whole number next to x in its lower bits
MAGIC_BITS = 0x4B400000


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


def distance_of(top, value):
    """In steps of keys; a key is the whole number below it."""
    return (top - value) * T.float32(ONE)


def key_of(top, value):
    return T.cast(T.max(distance_of(top, value), T.float32(0)), "uint32")


def rounded_up(number):
    """The least float that is not below an integer."""
    nearest = T.cast(number, "float32")
    return T.if_then_else(T.cast(nearest, "uint64") < T.cast(number, "uint64"),
                          T.reinterpret("float32", T.reinterpret("uint32", nearest) + T.uint32(1)), nearest)


def end_of(key):
    """The least distance that is above those of a key."""
    return rounded_up(T.min(key, T.uint32(0xFFFFFEFF)) + T.uint32(1))


def below(score):
    """A bound that rounding does not lift above a score."""
    return score - (T.float32(1e-3) + T.abs(score) * T.float32(1e-6))


def lowered(limit):
    """A logit below those with the key of a limit: by the rounding of distances some are below the limit."""
    return T.max(limit - (T.float32(2.0 ** -16) + T.abs(limit) * T.float32(2.0 ** -21)), T.float32(LEAST))


def probability(distance):
    """Of a token, as a share of the greatest."""
    return T.ptx.exp2(distance * T.float32(-LOG2_E / ONE))


@T.inline
def fixed(share, upper, lower):
    """A share in steps of 2^-40, by additions alone: upper 2^23 + lower, each with `MAGIC_BITS` too much."""
    rounded: T.float32 = share * T.float32(2.0 ** 17) + T.float32(MAGIC)
    left: T.float32 = share * T.float32(2.0 ** 17) - (rounded - T.float32(MAGIC))
    upper[0] += T.reinterpret("uint32", rounded)
    lower[0] += T.reinterpret("uint32", left * T.float32(2.0 ** 23) + T.float32(MAGIC))


def whole_of(upper, lower, count):
    """The sum of `count` numbers of `fixed`."""
    return ((T.cast(upper - T.uint32(count * MAGIC_BITS & 0xFFFFFFFF), "uint64") << T.uint64(23))
            + T.cast(T.cast(T.cast(lower - T.uint32(count * MAGIC_BITS & 0xFFFFFFFF), "int32"), "int64"), "uint64"))


@T.inline
def noise(result, bits):
    """-log(-log(u)) of u = (the upper 24 bits + 1/2) 2^-24. Near 1, a float has fewer digits than 1 - u."""
    rest: T.float32 = (T.cast((bits >> T.uint32(8)) ^ T.uint32(0xFFFFFF), "float32") + 0.5) * T.float32(2.0 ** -24)
    result[0] = rest * (1.0 + rest * (0.5 + rest * T.float32(1 / 3)))
    if rest > T.float32(2.0 ** -8):
        result[0] = 0.0 - T.log((T.cast(bits >> T.uint32(8), "float32") + 0.5) * T.float32(2.0 ** -24))
    result[0] = 0.0 - T.log(result[0])


def word(random, token):
    """The random number of a token, of the four of its group."""
    return T.if_then_else(token % 2 == 0, T.if_then_else(token % 4 == 0, random[0], random[2]),
                          T.if_then_else(token % 4 == 1, random[1], random[3]))
