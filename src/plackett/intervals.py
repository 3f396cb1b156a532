"""How sure a share is, from how many pictures it was counted."""

from __future__ import annotations

import math
from typing import NamedTuple

from plackett.errors import InputError

Z95 = 1.959963984540054


class Share(NamedTuple):
    """`value` of `n` pictures, with the 95 % interval from `low` to `high`."""

    value: float
    low: float
    high: float
    n: int


def wilson(right: int, n: int) -> Share:
    """The share of `right` among `n` with Wilson's score interval, which stays within 0 and 1 even at few pictures.

    >>> share = wilson(719 - 17, 719)
    >>> print(f"{share.value:.3f} [{share.low:.3f}, {share.high:.3f}]")
    0.976 [0.962, 0.985]
    """
    if not 0 <= right <= n or n == 0:
        raise InputError(f"{right} of {n} pictures is not a share; at least one picture is needed.")
    p, z2 = right / n, Z95**2
    middle = (p + z2 / (2 * n)) / (1 + z2 / n)
    half = Z95 / (1 + z2 / n) * math.sqrt(p * (1 - p) / n + z2 / (4 * n * n))
    return Share(p, max(0.0, middle - half), min(1.0, middle + half), n)


class Change(NamedTuple):
    """How many more of the same pictures one network gets right than another, as a share, with the 95 % interval."""

    value: float
    low: float
    high: float


def on_the_same(won: int, lost: int, n: int) -> Change:
    """Of two given networks on the same `n` pictures, of which `won` only the first gets right, `lost` only the second.

    Agresti and Min (2005): Wald's interval with half a picture more in each cell. It says what other pictures of the
    kind would do to these two networks, and nothing of what another seed would train.

    >>> change = on_the_same(40, 25, 1000)
    >>> print(f"{change.value:+.3f} [{change.low:+.3f}, {change.high:+.3f}]")
    +0.015 [-0.001, +0.031]
    """
    if n < 1 or won < 0 or lost < 0 or won + lost > n:
        raise InputError(f"{won} won and {lost} lost of {n} pictures do not add up.")
    more, less, whole = won + 0.5, lost + 0.5, n + 2
    middle = (more - less) / whole
    half = Z95 * math.sqrt(more + less - (more - less) ** 2 / whole) / whole
    return Change((won - lost) / n, middle - half, middle + half)
