"""The z-score of logits: Sun et al., Logit Standardization in Knowledge Distillation, CVPR 2024."""

from __future__ import annotations

import torch
from torch import Tensor

from plackett.losses.rows import compute_dtype


def standardize(logits: Tensor, *, eps: float = 1e-7) -> Tensor:
    """z = (x - mean x) / (std x + eps) over the classes of each row, for the teacher, the student or both.

    The standard deviation divides by C - 1, as the authors' code does. Classes at -inf are not offered: they stay
    -inf and count in neither mean nor deviation. A constant row gives zeros, and no gradient.

    >>> standardize(torch.tensor([[1.0, 2.0, 3.0]]))
    tensor([[-1.0000,  0.0000,  1.0000]])
    """
    x = logits.to(compute_dtype(logits))
    offered = x > -torch.inf
    count = offered.sum(-1, keepdim=True)
    zeroed = torch.where(offered, x, 0.0)
    mean = zeroed.sum(-1, keepdim=True) / count.clamp_min(1)
    centred = torch.where(offered, zeroed - mean, 0.0)
    variance = centred.square().sum(-1, keepdim=True) / (count - 1).clamp_min(1)
    constant = variance == 0
    # sqrt has an infinite slope at 0: constant rows go around it.
    std = torch.where(constant, 1.0, variance).sqrt()
    z = torch.where(constant, 0.0, centred / (std + eps))
    return torch.where(offered, z, -torch.inf).to(logits.dtype)
