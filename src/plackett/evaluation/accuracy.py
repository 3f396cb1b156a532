"""How often a classifier is right, and how often it says what its teacher says."""

from __future__ import annotations

from torch import Tensor

from plackett.errors import InputError


def accuracy(logits: Tensor, targets: Tensor, k: int = 1) -> float:
    """Share of pictures whose label is among the `k` highest logits.

    >>> import torch
    >>> accuracy(torch.tensor([[2.0, 1.0], [2.0, 1.0]]), torch.tensor([0, 1]))
    0.5
    """
    _check(logits, len(targets))
    if not 1 <= k <= logits.shape[-1]:
        raise InputError(
            f"Top-{k} accuracy of {logits.shape[-1]} classes does not exist; k runs from 1 to that number."
        )
    return (logits.topk(k, dim=-1).indices == targets.unsqueeze(-1)).any(-1).double().mean().item()


def agreement(student: Tensor, teacher: Tensor) -> float:
    """Share of pictures that both give the same first class."""
    _check(student, len(teacher))
    return (student.argmax(-1) == teacher.argmax(-1)).double().mean().item()


def _check(logits: Tensor, n: int) -> None:
    if len(logits) != n or n == 0:
        raise InputError(f"There are {len(logits)} predictions for {n} pictures; both must be the same and above 0.")
