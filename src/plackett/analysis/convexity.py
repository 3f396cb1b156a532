"""Whether a function of two numbers is convex on a square, measured: by its curvature, and by random segments.

Curvature is the smaller eigenvalue of the Hessian by central differences. A convex function's is at least 0 everywhere;
a segment violates convexity where its middle lies above the mean of its ends.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from plackett.errors import InputError

Function = Callable[[Tensor], Tensor]  # points [M, 2] -> values [M]

# How far below 0 an eigenvalue may lie, as a share of the largest one: what central differences get wrong.
TRUNCATION = 1e-5
MOST = 1001  # points along a side
ROUNDING = 64  # units in the last place of the largest value: what summing over classes may get wrong


@dataclass(frozen=True)
class Convexity:
    """What was measured on one square.

    Args:
        smallest: the smallest eigenvalue of the Hessian over the grid, at the point `where`; `largest` the largest.
        middle: the smaller eigenvalue in the middle of the grid.
        eigenvalue_tolerance: what is no less than minus this counts as 0.
        segments: how many were drawn, of which `violating` have a middle above the mean of their ends.
        worst: by how much the worst middle lies above, where one does; 0 else.
        segment_tolerance: by how much a middle may lie above.
    """

    smallest: float
    where: tuple[float, float]
    middle: float
    largest: float
    eigenvalue_tolerance: float
    segments: int
    violating: int
    worst: float
    segment_tolerance: float

    @property
    def share(self) -> float:
        return self.violating / self.segments

    @property
    def told(self) -> bool:
        """Whether what differences get wrong is smaller than what they are to find."""
        return self.eigenvalue_tolerance < max(self.largest, -self.smallest)

    @property
    def convex(self) -> bool:
        return self.smallest >= -self.eigenvalue_tolerance and not self.violating


@dataclass(frozen=True)
class Surface:
    """`values` and the smaller eigenvalues `curvature`, `[points, points]`, row i at axis[i] of the first direction."""

    axis: Tensor
    values: Tensor
    curvature: Tensor
    convexity: Convexity

    @property
    def lowest(self) -> tuple[float, float]:
        """Where on the grid the smallest value is."""
        return _at(self.values.argmin(), self.axis)

    def numpy(self) -> tuple[Any, Any]:
        return self.axis.double().cpu().numpy(), self.values.double().cpu().numpy()


def survey(
    function: Function,
    radius: float,
    *,
    points: int = 51,
    step: float | None = None,
    segments: int = 20_000,
    seed: int = 0,
) -> Surface:
    """The surface of `function` over [-radius, radius]^2, and how convex it is there.

    Args:
        points: along each side of the grid.
        step: of the differences; None takes the grid's own spacing, for functions that are dear.
        segments: drawn at random, with ends and middle on the grid.

    >>> bowl = survey(lambda points: points.square().sum(-1), 1.0, points=11)
    >>> bowl.convexity.convex, bowl.lowest
    (True, (0.0, 0.0))
    >>> survey(lambda points: points.cos().sum(-1), 1.0, points=11).convexity.share
    1.0
    """
    if not 5 <= points <= MOST:
        raise InputError(f"A grid needs at least 5 points a side and at most {MOST}, not {points}.")
    if not radius > 0:
        raise InputError(f"A landscape reaches so far in each direction: a number above 0, not {radius:g}.")
    if segments < 1:
        raise InputError(f"At least 1 segment must be drawn, not {segments}.")
    spacing = 2 * radius / (points - 1)
    if step is None:  # one ring of points more, and every neighbour lies on the grid
        wide = _line(radius + spacing, points + 2)
        ringed = function(_pairs(wide)).reshape(points + 2, points + 2)
        values, around = ringed[1:-1, 1:-1], [_shifted(ringed, x, y) for x, y in _NEIGHBOURS]
        axis, step = wide[1:-1], spacing
    else:
        axis = _line(radius, points)
        centres = _pairs(axis)
        values = function(centres).reshape(points, points)
        around = [function(centres + step * centres.new_tensor(by)).reshape(points, points) for by in _NEIGHBOURS]
    if not bool(torch.isfinite(values).all()):
        raise InputError("The loss is not finite everywhere on this plane; take a smaller radius.")
    rounding = ROUNDING * torch.finfo(values.dtype).eps * float(values.abs().max())
    values, around = values.double(), [each.double() for each in around]
    low, high = _eigenvalues(values, around, step)
    largest = float(torch.maximum(low.abs(), high.abs()).max())
    above = _middles(values, segments, seed)
    convexity = Convexity(
        smallest=float(low.min()),
        where=_at(low.argmin(), axis),
        middle=float(low[points // 2, points // 2]),
        largest=float(high.max()),
        eigenvalue_tolerance=TRUNCATION * largest + 4 * rounding / step**2,
        segments=segments,
        violating=int((above > rounding).sum()),
        worst=max(0.0, float(above.max())) if bool((above > rounding).any()) else 0.0,
        segment_tolerance=rounding,
    )
    return Surface(axis, values, low, convexity)


_NEIGHBOURS = ((1, 0), (-1, 0), (0, 1), (0, -1), (1, 1), (-1, -1), (1, -1), (-1, 1))


def _line(radius: float, points: int) -> Tensor:
    """Symmetric to the bit, which linspace is not."""
    half = torch.arange(points, dtype=torch.float64) - (points - 1) / 2
    return half * (2 * radius / (points - 1))


def _pairs(axis: Tensor) -> Tensor:
    return torch.cartesian_prod(axis, axis)


def _shifted(ringed: Tensor, x: int, y: int) -> Tensor:
    n = len(ringed)
    return ringed[1 + x : n - 1 + x, 1 + y : n - 1 + y]


def _eigenvalues(values: Tensor, around: list[Tensor], step: float) -> tuple[Tensor, Tensor]:
    """f_aa = (f(a + h) - 2 f + f(a - h)) / h^2;  f_ab by the corners;  (f_aa + f_bb) / 2 -+ hypot(., f_ab)."""
    right, left, up, down, both, neither, one, other = around
    aa, bb = (right - 2 * values + left) / step**2, (up - 2 * values + down) / step**2
    ab = (both + neither - one - other) / (4 * step**2)
    mean, spread = (aa + bb) / 2, torch.hypot((aa - bb) / 2, ab)
    return mean - spread, mean + spread


def _middles(values: Tensor, segments: int, seed: int) -> Tensor:
    """How far the middles of random segments lie above the means of their ends."""
    n = len(values)
    generator = torch.Generator().manual_seed(seed)
    ends = torch.randint(n, (2 * segments + 64, 2, 2), generator=generator)  # [segments, end, coordinate]
    odd = (ends.sum(1) % 2).bool()  # the middle must be a point of the grid
    ends[:, 1] = torch.where(odd, torch.where(ends[:, 1] > 0, ends[:, 1] - 1, ends[:, 1] + 1), ends[:, 1])
    ends = ends[(ends[:, 0] != ends[:, 1]).any(-1)][:segments]  # a point is no segment; there are enough of others
    one, other, middle = ends[:, 0], ends[:, 1], ends.sum(1) // 2
    at = [values[point[:, 0], point[:, 1]] for point in (one, other, middle)]
    return at[2] - (at[0] + at[1]) / 2


def _at(place: Tensor, axis: Tensor) -> tuple[float, float]:
    row, column = divmod(int(place), len(axis))
    return float(axis[row]), float(axis[column])
