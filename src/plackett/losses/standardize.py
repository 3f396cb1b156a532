"""The z-score of logits: Sun et al., Logit Standardization in Knowledge Distillation, CVPR 2024."""

from __future__ import annotations

import torch
from torch import Tensor

from plackett.errors import InputError
from plackett.losses.rows import compute_dtype, is_number


def standardize(logits: Tensor, *, offered: Tensor | None = None, eps: float = 1e-7) -> Tensor:
    """z = (x - mean x) / (std x + eps) over the classes of each row, for the teacher, the student or both.

    The standard deviation divides by C - 1, as the authors' code does. A constant row gives zeros, and no gradient.

    Args:
        logits: `[..., C]`; a class at -inf stays there and counts in neither mean nor deviation.
        offered: `[..., C]` bool, the classes whose mean and deviation are taken (for a student: those that its teacher
            offers); the others are moved along with them.
        eps: keeps a nearly constant row finite.

    >>> standardize(torch.tensor([[1.0, 2.0, 3.0]]))
    tensor([[-1.0000,  0.0000,  1.0000]])
    """
    if not isinstance(logits, Tensor) or not logits.is_floating_point():
        kind = logits.dtype if isinstance(logits, Tensor) else type(logits).__name__
        raise InputError(f"standardize takes a tensor of float logits, not {kind}.")
    if logits.dim() == 0:
        raise InputError("standardize takes logits [..., C], not a single number.")
    if offered is not None and (offered.dtype != torch.bool or offered.shape != logits.shape):
        raise InputError(
            f"standardize: offered must be one bool a class, {list(logits.shape)}, not {offered.dtype} of shape "
            f"{list(offered.shape)}."
        )
    if not is_number(eps) or eps < 0:
        raise InputError(f"standardize: eps must be a number, at least 0; not {eps!r}.")
    x = logits.to(compute_dtype(logits))
    finite = x != -torch.inf
    counted = finite if offered is None else finite & offered
    count = counted.sum(-1, keepdim=True)
    x = torch.where(finite, x, 0.0)
    mean = torch.where(counted, x, 0.0).sum(-1, keepdim=True) / count.clamp_min(1)
    centred = x - mean
    variance = torch.where(counted, centred, 0.0).square().sum(-1, keepdim=True) / (count - 1).clamp_min(1)
    constant = variance == 0
    # sqrt has an infinite slope at 0: constant rows go around it.
    std = torch.where(constant, 1.0, variance).sqrt()
    z = torch.where(constant, 0.0, centred / (std + eps))
    return torch.where(finite, z, -torch.inf).to(logits.dtype)
