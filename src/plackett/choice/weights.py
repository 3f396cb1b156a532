"""The weight a_k of each choice: how much the student pays for disagreeing with the k-th pick."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

WEIGHTS = ("teacher", "uniform", "position")


class ChoiceWeights(NamedTuple):
    """`a` is `[N, K]` by rank; `left_out` is `[N]`, the weight of the choices past K that nobody is charged for."""

    a: Tensor
    left_out: Tensor


def choice_weights(
    teacher: Tensor,
    order: Tensor,
    offered: Tensor | None = None,
    *,
    labelled: bool,
    weights: str | Tensor = "teacher",
    temperature: float = 1.0,
    label_weight: float | None = None,
) -> ChoiceWeights:
    """Weights by rank for the choices in `order` `[N, K]` of `teacher` `[N, C]`.

    With M the number of classes that the teacher offers in a row (all C, unless some logits are -inf):

        teacher    a_k = softmax(t / tau)[pi_k]                    the paper
        uniform    a_k = 1 / M                                     ListMLE, scaled
        position   a_k = (2^(M-k) - 1) / sum_j (2^(M-j) - 1)       p-ListMLE, Lan et al. 2014
        [C]        a_k as given, whatever its sum                  one weight a rank

    A label that the teacher does not offer adds one choice to the M of the last three, and its own weight is
    `label_weight` (0 when that is None). `label_weight=w` sets a_1 = max(a_1, w) elsewhere; nothing is renormalised.
    `offered` `[N, C]` says which classes are offered; None promises that all are.

    >>> t = torch.tensor([[2.0, 1.0, 0.0]])
    >>> order = torch.tensor([[0, 1, 2]])
    >>> choice_weights(t, order, labelled=True, weights="position").a
    tensor([[0.7500, 0.2500, 0.0000]])
    """
    kept, classes = order.shape[-1], teacher.shape[-1]
    label_offered = None if offered is None or not labelled else offered.gather(-1, order[:, :1])  # [N, 1]
    if isinstance(weights, str) and weights == "teacher":
        q = torch.softmax(teacher if temperature == 1 else teacher / temperature, dim=-1)  # 0 where not offered
        a = q.gather(-1, order)
        left_out = q.scatter_(-1, order, 0.0).sum(-1) if kept < classes else q.new_zeros(q.shape[0])
    else:
        choices = order.new_full((order.shape[0], 1), classes) if offered is None else offered.sum(-1, keepdim=True)
        if label_offered is not None:
            choices = choices + (~label_offered).to(choices.dtype)
        rank = torch.arange(1, kept + 1, device=teacher.device).unsqueeze(0)  # [1, K]
        by_rank, rest = _rank_weights(weights, rank, choices, teacher)
        a = torch.where(rank <= choices, by_rank, 0.0)
        left_out = torch.where(choices.squeeze(-1) > kept, rest, 0.0)
    if not labelled or (label_weight is None and label_offered is None):
        return ChoiceWeights(a, left_out)
    floor = 0.0 if label_weight is None else label_weight
    first = a[:, :1].clamp_min(floor)
    if label_offered is not None:
        first = torch.where(label_offered, first, floor)
    return ChoiceWeights(torch.cat([first, a[:, 1:]], dim=-1), left_out)


def _rank_weights(weights: str | Tensor, rank: Tensor, choices: Tensor, teacher: Tensor) -> tuple[Tensor, Tensor]:
    """The weight of `rank` `[1, K]` among `choices` `[N, 1]`, and the sum of the weights of the ranks past K, `[N]`."""
    kept = rank.shape[-1]
    m = choices.to(teacher.dtype)
    if isinstance(weights, Tensor):
        w = weights.to(device=teacher.device, dtype=teacher.dtype)
        past = torch.arange(1, w.shape[-1] + 1, device=teacher.device).unsqueeze(0)
        rest = torch.where((past > kept) & (past <= choices), w, 0.0).sum(-1)
        return w[:kept].expand(choices.shape[0], -1), rest
    if weights == "uniform":
        return (1.0 / m).expand(-1, kept), (m.squeeze(-1) - kept) / m.squeeze(-1)
    # Divided through by 2^M, so that nothing overflows: a_k = (2^-k - 2^-M) / (1 - (1 + M) 2^-M).
    # M = 1 would be 0 / 0: a single choice carries the whole weight.
    tail = torch.exp2(-m)
    total = torch.where(m > 1, 1 - (1 + m) * tail, 1.0)
    by_rank = torch.where(m > 1, (torch.exp2(-rank.to(teacher.dtype)) - tail) / total, 1.0)
    rest = ((2.0**-kept - tail - (m - kept) * tail) / total).squeeze(-1)
    return by_rank, rest
