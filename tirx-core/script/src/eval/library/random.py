"""Random numbers of a seed: the Mersenne Twister of Matsumoto and Nishimura, 1998, with CPython's way to seed it."""

import __host__.random as _host

_N = 624
_M = 397
_LOW = 0xFFFFFFFF


def _init_by_number(seed):
    state = [seed & _LOW]
    for i in range(1, _N):
        before = state[-1]
        state.append((1812433253 * (before ^ (before >> 30)) + i) & _LOW)
    return state


def _init_by_words(words):
    state = _init_by_number(19650218)
    i, j = 1, 0
    for _ in range(max(_N, len(words))):
        state[i] = ((state[i] ^ ((state[i - 1] ^ (state[i - 1] >> 30)) * 1664525)) + words[j] + j) & _LOW
        i, j = i + 1, (j + 1) % len(words)
        if i >= _N:
            state[0], i = state[_N - 1], 1
    for _ in range(_N - 1):
        state[i] = ((state[i] ^ ((state[i - 1] ^ (state[i - 1] >> 30)) * 1566083941)) - i) & _LOW
        i += 1
        if i >= _N:
            state[0], i = state[_N - 1], 1
    state[0] = 0x80000000
    return state


class Random:
    """A generator; without a seed its numbers differ from run to run, so they have no value in a kernel file."""

    def __init__(self, x=None):
        self.seed(x)

    def seed(self, a=None):
        self._state = None
        if a is None:
            return
        if not isinstance(a, int):
            raise TypeError("a seed is an integer")
        a = abs(a)
        words = [a & _LOW]
        a >>= 32
        while a:
            words.append(a & _LOW)
            a >>= 32
        self._state = _init_by_words(words)
        self._at = _N

    def _word(self):
        if self._state is None:
            return _host.random()
        state = self._state
        if self._at >= _N:
            for i in range(_N):
                mixed = (state[i] & 0x80000000) | (state[(i + 1) % _N] & 0x7FFFFFFF)
                state[i] = state[(i + _M) % _N] ^ (mixed >> 1) ^ (0x9908B0DF if mixed & 1 else 0)
            self._at = 0
        word = state[self._at]
        self._at += 1
        word ^= word >> 11
        word ^= (word << 7) & 0x9D2C5680
        word ^= (word << 15) & 0xEFC60000
        return word ^ (word >> 18)

    def random(self):
        high = self._word() >> 5
        low = self._word() >> 6
        return (high * 67108864.0 + low) / 9007199254740992.0

    def uniform(self, a, b):
        return a + (b - a) * self.random()

    def getrandbits(self, k):
        value, shift = 0, 0
        while k > 0:
            word = self._word()
            if k < 32:
                word >>= 32 - k
            value |= word << shift
            shift, k = shift + 32, k - 32
        return value

    def _below(self, n):
        bits = n.bit_length()
        value = self.getrandbits(bits)
        while value >= n:
            value = self.getrandbits(bits)
        return value

    def randrange(self, start, stop=None, step=1):
        if stop is None:
            start, stop = 0, start
        count = len(range(start, stop, step))
        if count == 0:
            raise ValueError("empty range for randrange()")
        return start + step * self._below(count)

    def randint(self, a, b):
        return self.randrange(a, b + 1)

    def choice(self, seq):
        return seq[self._below(len(seq))]

    def shuffle(self, x):
        for i in reversed(range(1, len(x))):
            j = self._below(i + 1)
            x[i], x[j] = x[j], x[i]

    def sample(self, population, k):
        pool = list(population)
        n = len(pool)
        if not 0 <= k <= n:
            raise ValueError("sample larger than population or is negative")
        # CPython draws from the pool or remembers what was drawn, by which takes less memory; both draw differently.
        size = 21
        if k > 5:
            power = 1
            while power < k * 3:
                power *= 4
            size += power
        result = []
        if n <= size:
            for i in range(k):
                j = self._below(n - i)
                result.append(pool[j])
                pool[j] = pool[n - i - 1]
            return result
        drawn = set()
        for _ in range(k):
            j = self._below(n)
            while j in drawn:
                j = self._below(n)
            drawn.add(j)
            result.append(pool[j])
        return result
