"""Whether a classifier that says 90 % is right nine times out of ten."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from plackett.errors import InputError


@dataclass(frozen=True)
class Calibration:
    """`ece`: the mean gap between confidence and accuracy, weighted by the pictures in each bin.

    The bins cut [0, 1] into equal parts; `confidence` and `accuracy` are None where a bin is empty.
    """

    ece: float
    counts: list[int]
    confidence: list[float | None]
    accuracy: list[float | None]


def calibration(logits: Tensor, targets: Tensor, bins: int = 10) -> Calibration:
    """Expected calibration error and reliability bins of the first class's softmax probability.

    >>> calibration(torch.tensor([[20.0, 0.0], [20.0, 0.0]]), torch.tensor([0, 1]), bins=2)
    Calibration(ece=0.49..., counts=[0, 2], confidence=[None, 0.99...], accuracy=[None, 0.5])
    """
    if bins < 1 or len(logits) != len(targets) or not len(targets):
        raise InputError(f"Cannot bin {len(logits)} predictions for {len(targets)} pictures into {bins} bins.")
    sure, first = logits.double().softmax(-1).max(-1)
    right = (first == targets).double()
    bin_of = (sure * bins).long().clamp(max=bins - 1)
    counts = torch.bincount(bin_of, minlength=bins).double()
    sums = torch.zeros(2, bins, dtype=torch.double, device=logits.device)
    sums[0].scatter_add_(0, bin_of, sure)
    sums[1].scatter_add_(0, bin_of, right)
    ece = ((sums[0] - sums[1]).abs().sum() / len(targets)).item()
    means = (sums / counts).tolist()
    whole = [int(n) for n in counts.tolist()]
    confidence, accuracy = ([m if n else None for m, n in zip(row, whole, strict=True)] for row in means)
    return Calibration(ece, whole, confidence, accuracy)
