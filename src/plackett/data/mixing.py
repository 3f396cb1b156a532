"""Mixup and CutMix: two pictures in one, whose label is then a share of each.

mixup   x = l x_i + (1 - l) x_j,                          y = l y_i + (1 - l) y_j,   l ~ Beta(alpha, alpha)
CutMix  x = x_i but for a rectangle of x_j, of 1 - l of the area as far as it lies inside;  y likewise
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from plackett.data.source import NO_LABEL
from plackett.errors import InputError

Box = tuple[int, int, int, int]


@dataclass(frozen=True)
class Blend:
    """How a batch is mixed: each picture's own share, and for CutMix the rectangle (top, bottom, left, right)."""

    share: float
    box: Box | None = None


@dataclass(frozen=True)
class Mix:
    """Mixup, CutMix or both, as timm defines them for a batch: the first picture with the last, and so on.

    Args:
        mixup: alpha of mixup; 0 leaves it out.
        cutmix: alpha of CutMix; 0 leaves it out.
        probability: how often a batch is mixed at all.
        switch: how often it is by CutMix, where both are there.

    A picture without a label is mixed with another such one only; a pair of which one has a label stays as it is.
    """

    mixup: float = 0.8
    cutmix: float = 1.0
    probability: float = 1.0
    switch: float = 0.5

    def __post_init__(self) -> None:
        for name in ("mixup", "cutmix"):
            if not 0 <= getattr(self, name) < math.inf:
                raise InputError(f"The alpha of {name} is at least 0, not {getattr(self, name):g}.")
        if not self.mixup and not self.cutmix:
            raise InputError("Mixing needs an alpha above 0 for mixup or for cutmix.")
        for name in ("probability", "switch"):
            if not 0 <= getattr(self, name) <= 1:
                raise InputError(f"{name} is how often it happens, from 0 to 1, not {getattr(self, name):g}.")

    def blend(self, key: int, side: int) -> Blend:
        """Drawn from `key`, for pictures of `side` pixels a side."""
        draws = random.Random(key)
        if draws.random() >= self.probability:
            return Blend(1.0)
        cut = self.cutmix > 0 and (not self.mixup or draws.random() < self.switch)
        alpha = self.cutmix if cut else self.mixup
        share = draws.betavariate(alpha, alpha)
        if not cut:
            return Blend(share)
        length = int(side * math.sqrt(1 - share))
        top, bottom = _span(draws.randrange(side), length, side)
        left, right = _span(draws.randrange(side), length, side)
        return Blend(1 - (bottom - top) * (right - left) / side**2, (top, bottom, left, right))


def _span(centre: int, length: int, side: int) -> tuple[int, int]:
    return max(0, centre - length // 2), min(side, centre + (length + 1) // 2)


def soft(targets: Tensor, classes: int) -> Tensor:
    """`[B, classes]` float32: 1 at the label, and nothing at all where there is none.

    >>> soft(torch.tensor([1, NO_LABEL]), 3)
    tensor([[0., 1., 0.],
            [0., 0., 0.]])
    """
    known = (targets >= 0).unsqueeze(-1)
    return F.one_hot(targets.clamp(min=0), classes).float() * known


def mixed(
    own: tuple[Tensor, Tensor], other: tuple[Tensor, Tensor], blend: Blend, classes: int
) -> tuple[Tensor, Tensor]:
    """Pictures `[B, C, H, W]` float and soft targets `[B, classes]`, of `own` and `other` pictures and labels `[B]`."""
    (x, labels), (z, theirs) = own, other
    labels, theirs = labels.to(x.device), theirs.to(x.device)
    y, w = soft(labels, classes), soft(theirs, classes)
    if blend.share == 1:
        return x, y
    together = (labels == NO_LABEL) == (theirs == NO_LABEL)
    if blend.box is None:
        both = x * blend.share + z * (1 - blend.share)
    else:
        top, bottom, left, right = blend.box
        both = x.clone(memory_format=torch.preserve_format)
        both[:, :, top:bottom, left:right] = z[:, :, top:bottom, left:right]
    x = torch.where(together[:, None, None, None], both, x)
    return x, torch.where(together[:, None], y * blend.share + w * (1 - blend.share), y)
