"""What a few seeds can tell, and when they cannot tell."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from plackett.errors import InputError


@dataclass(frozen=True)
class Summary:
    """Mean and sample standard deviation (n - 1) of `n` figures; `std` is None for n = 1."""

    n: int
    mean: float
    std: float | None

    def text(self, scale: float = 1.0, digits: int = 1) -> str:
        """
        >>> summary([0.9, 0.92]).text(scale=100), summary([0.9]).text(scale=100)
        ('91.0 ± 1.4', '90.0 (n = 1)')
        """
        mean = f"{self.mean * scale:.{digits}f}"
        return f"{mean} (n = 1)" if self.std is None else f"{mean} ± {self.std * scale:.{digits}f}"


class Finding(StrEnum):
    """What an interval of a difference says."""

    HIGHER = "higher"
    LOWER = "lower"
    UNCLEAR = "no clear difference"


FEWEST = 3  # pairs that a finding takes: the spread of two is one number, and may be small by luck


@dataclass(frozen=True)
class Difference:
    """The mean of paired differences and its Student t interval.

    `low` and `high` are None where no spread can be told: n = 1, or equal differences of unknown resolution.
    """

    n: int
    mean: float
    low: float | None
    high: float | None
    level: float = 0.95

    @property
    def finding(self) -> Finding:
        if self.n < FEWEST:
            return Finding.UNCLEAR
        if self.low is not None and self.low > 0:
            return Finding.HIGHER
        if self.high is not None and self.high < 0:
            return Finding.LOWER
        return Finding.UNCLEAR

    def text(self, scale: float = 1.0, digits: int = 1) -> str:
        """
        >>> paired([0.91, 0.92, 0.95], [0.90, 0.90, 0.92]).text(scale=100)
        '+2.0 [−0.5, +4.5]'
        """
        if self.low is None or self.high is None:
            return f"{signed(self.mean * scale, digits)} ({'n = 1' if self.n == 1 else 'no interval'})"
        low, mean, high = (signed(value * scale, digits) for value in (self.low, self.mean, self.high))
        return f"{mean} [{low}, {high}]"

    def sentence(self, what: str, than: str) -> str:
        """What can be said of `what` against `than`, in points of a hundred."""
        if self.n < FEWEST:
            return f"{too_few(self.n)} tell {what} from {than}: a finding takes at least {FEWEST}."
        if self.low is None or self.high is None:
            return f"These {self.n} seeds cannot tell {what} from {than}: their differences are equal."
        interval = f"{self.level:.0%} interval {signed(self.low * 100)} to {signed(self.high * 100)}, n = {self.n}"
        if self.finding is Finding.UNCLEAR:
            return f"These {self.n} seeds cannot tell {what} from {than} ({interval})."
        return f"{what} is {abs(self.mean) * 100:.1f} points {self.finding} than {than} ({interval})."


def too_few(n: int) -> str:
    """
    >>> too_few(1), too_few(2)
    ('One seed cannot', 'Two seeds cannot')
    """
    return "One seed cannot" if n == 1 else "Two seeds cannot"


def signed(value: float, digits: int = 1) -> str:
    """A number with its sign, the minus as wide as the plus; what rounds to 0 has none.

    >>> signed(1.25), signed(-0.31), signed(-0.01)
    ('+1.2', '−0.3', '0.0')
    """
    text = f"{value:+.{digits}f}".replace("-", "\N{MINUS SIGN}")
    return text if text.strip("+\N{MINUS SIGN}0.") else text[1:]


def summary(values: Sequence[float]) -> Summary:
    """
    >>> summary([1.0, 2.0, 3.0])
    Summary(n=3, mean=2.0, std=1.0)
    """
    if not values:
        raise InputError("There are no figures to summarise.")
    n, mean = len(values), math.fsum(values) / len(values)
    if n == 1:
        return Summary(1, mean, None)
    return Summary(n, mean, math.sqrt(math.fsum((v - mean) ** 2 for v in values) / (n - 1)))


def median(values: Sequence[float]) -> float:
    """
    >>> median([3.0, 1.0, 2.0]), median([1.0, 4.0])
    (2.0, 2.5)
    """
    if not values:
        raise InputError("There are no figures to summarise.")
    ordered, middle = sorted(values), len(values) // 2
    return ordered[middle] if len(values) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def interval(
    values: Sequence[float], level: float = 0.95, resolution: float | None = None
) -> tuple[float, float] | None:
    """Student's t interval of the mean; None of one figure. `resolution` is as in `paired`, a figure's step.

    >>> [round(end, 2) for end in interval([1.0, 2.0, 3.0])]
    [-0.48, 4.48]
    """
    of = summary(values)
    if of.std is None:
        return None
    half = t_quantile(0.5 + level / 2, of.n - 1) * max(of.std, (resolution or 0.0) / math.sqrt(12)) / math.sqrt(of.n)
    return of.mean - half, of.mean + half


def paired(
    values: Sequence[float], base: Sequence[float], level: float = 0.95, resolution: float | None = None
) -> Difference:
    """The difference `values - base`, each pair from one seed: what the seeds share does not count as noise.

    `resolution` is the step that the figures come in, 1/719 for accuracies on 719 pictures. A figure on such a grid is
    uncertain by step/sqrt(12), the std of rounding, and so a difference of two by step/sqrt(6): the std is taken to be
    at least that, and equal differences are not certain ones. Where no step is known, they have no interval.
    """
    if len(values) != len(base):
        raise InputError(f"Paired figures come in pairs; got {len(values)} and {len(base)}.")
    differences = summary([v - b for v, b in zip(values, base, strict=True)])
    if differences.std is None:
        return Difference(1, differences.mean, None, None, level)
    std = max(differences.std, (resolution or 0.0) / math.sqrt(6))
    if std <= 1e-12 * max(map(abs, [*values, *base])):  # nothing but the last bits of the figures
        return Difference(differences.n, differences.mean, None, None, level)
    half = t_quantile(0.5 + level / 2, differences.n - 1) * std / math.sqrt(differences.n)
    return Difference(differences.n, differences.mean, differences.mean - half, differences.mean + half, level)


def t_quantile(p: float, df: int) -> float:
    """The p-quantile of Student's t with `df` degrees of freedom.

    >>> round(t_quantile(0.975, 4), 3)
    2.776
    """
    if not 0 < p < 1 or df < 1:
        raise InputError(f"Student's t has a quantile for 0 < p < 1 and at least 1 degree of freedom, not {p:g}, {df}.")
    if p < 0.5:
        return -t_quantile(1 - p, df)
    low, high = 0.0, 1.0
    while t_cdf(high, df) < p:
        low, high = high, 2 * high
    for _ in range(200):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        low, high = (middle, high) if t_cdf(middle, df) < p else (low, middle)
    return (low + high) / 2


def t_cdf(t: float, df: int) -> float:
    """P(T <= t): with theta = atan(t / sqrt(df)), a finite sum of cosines (Abramowitz and Stegun 26.7.3, 26.7.4)."""
    theta = math.atan(t / math.sqrt(df))
    cosine, sine = math.cos(theta), math.sin(theta)
    if df % 2:
        term, total = cosine, cosine if df > 1 else 0.0
        for k in range(2, df - 1, 2):
            term *= cosine * cosine * k / (k + 1)
            total += term
        inside = 2 / math.pi * (theta + sine * total)
    else:
        term, total = 1.0, 1.0
        for k in range(1, df - 1, 2):
            term *= cosine * cosine * k / (k + 1)
            total += term
        inside = sine * total
    return 0.5 + inside / 2
