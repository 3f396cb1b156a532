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
