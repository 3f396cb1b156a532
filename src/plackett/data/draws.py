"""Random numbers for one picture, as many as are asked for: a hash of its key and of how many came before."""

from __future__ import annotations

from plackett.data.counter import mix

_STEP, _ALL = 0x9E3779B9, 1 << 32


class Draws:
    """The same numbers from the same 32-bit `key`, in any process.

    >>> draws = Draws(1)
    >>> draws.below(10), round(draws.uniform(-1, 1), 4), Draws(1).below(10)
    (5, -0.4103, 5)
    """

    def __init__(self, key: int) -> None:
        self._key, self._taken = key, 0

    def bits(self) -> int:
        self._taken += 1
        return mix(self._key ^ mix((self._taken * _STEP) % _ALL))

    def uniform(self, low: float = 0.0, high: float = 1.0) -> float:
        return low + (high - low) * (self.bits() / _ALL)

    def below(self, n: int) -> int:
        return (self.bits() * n) >> 32

    def happens(self, probability: float) -> bool:
        return self.bits() < probability * _ALL
