"""Whether a teacher has something to teach."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from plackett.errors import InputError


def first_choice_weight(logits: Tensor, targets: Tensor, temperatures: Sequence[float]) -> dict[float, float]:
    """The mean of a_1 = softmax(t / tau)[y] over the pictures, at each tau: what PLD pays for the label's own choice.

    Near 1, PLD is nearly cross-entropy; near 1/C, the label hardly counts.

    >>> import torch
    >>> first_choice_weight(torch.tensor([[2.0, 0.0]]), torch.tensor([0]), [1.0, 4.0])
    {1.0: 0.8807..., 4.0: 0.6224...}
    """
    if any(tau <= 0 for tau in temperatures):
        raise InputError(f"A temperature must be above 0; got {', '.join(f'{tau:g}' for tau in temperatures)}.")
    label = targets.unsqueeze(-1)
    return {tau: (logits.float() / tau).softmax(-1).gather(-1, label).mean().item() for tau in temperatures}
