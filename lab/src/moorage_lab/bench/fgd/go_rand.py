"""The generator of Go's ``math/rand`` v1, so that published experiments can be replayed.

An additive lagged Fibonacci generator: x(n) = x(n-607) + x(n-273), modulo 2**64. Its 607 constants
are the state of the same generator after 7.8e12 steps. They are not shipped: they are computed
once, as a power of t modulo t**607 - t**334 - 1.

Rules mirrored: Go 1.16 ``src/math/rand/{rng,rand}.go``.
"""

from __future__ import annotations

from collections.abc import MutableSequence
from functools import cache
from typing import Any, Final

_LENGTH: Final = 607
_LAG: Final = 273
_WORD: Final = (1 << 64) - 1
_BITS63: Final = (1 << 63) - 1
_STEPS: Final = 7_800_000_000_000
_PRIME: Final = (1 << 31) - 1
_LIMB: Final = 160  # bits of a packed coefficient: a sum of 607 products of two words has 138


class GoRand:
    """A source of random numbers that draws what Go draws from the same seed.

    Parameters
    ----------
    seed
        Any integer.
    """

    def __init__(self, seed: int) -> None:
        words = _seeded(seed, (40, 20, 0))
        self._words = [word ^ constant for word, constant in zip(words, _constants(), strict=True)]
        self._tap = 0
        self._feed = _LENGTH - _LAG

    def bits63(self) -> int:
        """Return the next 63 random bits."""
        self._tap = (self._tap - 1) % _LENGTH
        self._feed = (self._feed - 1) % _LENGTH
        word = (self._words[self._feed] + self._words[self._tap]) & _WORD
        self._words[self._feed] = word
        return word & _BITS63

    def below(self, limit: int) -> int:
        """Return a number from 0 to `limit` - 1, as ``Intn``; `limit` is at most 2**31 - 1."""
        value = self.bits63() >> 32
        if limit & (limit - 1) == 0:
            return value & (limit - 1)
        most = (1 << 31) - 1 - (1 << 31) % limit
        while value > most:
            value = self.bits63() >> 32
        return value % limit

    def shuffle(self, items: MutableSequence[Any]) -> None:
        """Shuffle in place, as ``Shuffle`` with a swap."""
        for last in range(len(items) - 1, 0, -1):
            other = self._below_by_product(last + 1)
            items[last], items[other] = items[other], items[last]

    def permutation(self, length: int) -> list[int]:
        """Return a permutation of the numbers below `length`, as ``Perm``."""
        order = [0] * length
        for position in range(length):
            other = self.below(position + 1)
            order[position] = order[other]
            order[other] = position
        return order

    def _below_by_product(self, limit: int) -> int:
        product = (self.bits63() >> 31) * limit
        low = product & 0xFFFFFFFF
        if low < limit:
            least = (1 << 32) % limit
            while low < least:
                product = (self.bits63() >> 31) * limit
                low = product & 0xFFFFFFFF
        return product >> 32


def _seeded(seed: int, shifts: tuple[int, int, int]) -> list[int]:
    """Return 607 words of a multiplicative generator, each made of three of its numbers."""
    number = seed % _PRIME or 89_482_311
    for _ in range(20):
        number = number * 48_271 % _PRIME
    words = []
    for _ in range(_LENGTH):
        word = 0
        for shift in shifts:
            number = number * 48_271 % _PRIME
            word ^= number << shift
        words.append(word & _WORD)
    return words


@cache
def _constants() -> tuple[int, ...]:
    """Return the words of the generator after 7.8e12 steps from seed 1."""
    power = _power(_STEPS)
    # The word of step m lies at index (334 - m) modulo 607; the words of the seed are the steps
    # -606 to 0.
    start = _seeded(1, (20, 10, 0))
    feed = _LENGTH - _LAG
    by_step = [start[(feed + _LENGTH - 1 - step) % _LENGTH] for step in range(_LENGTH)]
    for step in range(_LENGTH, 2 * _LENGTH):
        by_step.append((by_step[step - _LENGTH] + by_step[step - _LAG]) & _WORD)
    state = [0] * _LENGTH
    for after in range(_LENGTH):
        step = _STEPS - _LENGTH + 1 + after
        terms = zip(power, by_step[after : after + _LENGTH], strict=True)
        state[(feed - step) % _LENGTH] = sum(a * b for a, b in terms) & _WORD
    return tuple(state)


def _power(exponent: int) -> list[int]:
    """Return t**exponent modulo t**607 - t**334 - 1: 607 coefficients modulo 2**64."""
    polynomial = [1] + [0] * (_LENGTH - 1)
    for bit in bin(exponent)[2:]:
        square = _packed(polynomial) ** 2
        polynomial = _reduced(square.to_bytes(2 * _LENGTH * _LIMB // 8, "little"))
        if bit == "1":
            top = polynomial.pop()
            polynomial.insert(0, top)
            polynomial[_LENGTH - _LAG] = (polynomial[_LENGTH - _LAG] + top) & _WORD
    return polynomial


def _packed(coefficients: list[int]) -> int:
    return int.from_bytes(
        b"".join(each.to_bytes(_LIMB // 8, "little") for each in coefficients), "little"
    )


def _reduced(packed: bytes) -> list[int]:
    size = _LIMB // 8
    terms = [
        int.from_bytes(packed[start : start + 8], "little") for start in range(0, len(packed), size)
    ]
    for degree in range(len(terms) - 1, _LENGTH - 1, -1):
        top = terms.pop()
        terms[degree - _LENGTH] += top
        terms[degree - _LAG] += top
    return [each & _WORD for each in terms]
