"""DKD: KD taken apart into the label against the rest, and the rest among themselves, each with a weight of its own."""

from __future__ import annotations

import torch
from torch import Tensor

from plackett.losses.registry import Card, loss
from plackett.losses.rows import Reduction, compute_dtype, keep_rows, labels_that_count, reduce_rows, rows_that_count


@loss(
    Card(
        title="Decoupled knowledge distillation",
        equation="""
        L = tau^2 [ alpha KL(b_t || b_s) + beta KL(q' || p') ]
        b = (p_y, 1 - p_y) of softmax(. / tau);  p', q' = softmax(. / tau) over the classes other than y
        """,
        paper="Zhao et al.: Decoupled Knowledge Distillation, CVPR 2022; the PLD paper's DKD row",
        defaults="""
        CE 1 beside it, alpha 1, tau 4, the weight growing over 20 epochs on CIFAR-100; beta 2 for ResNet-56 -> 20,
        6 for WRN-40-2 -> 40-1, 8 for ResNet-32x4 -> 8x4 and ResNet-50 -> MobileNetV2. ImageNet: tau 1, beta 0.5 for
        ResNet-34 -> 18 and 2 for ResNet-50 -> MobileNetV1, no warm-up (1 epoch)
        """,
        deviations="""
        log(1 - p_y) is the log-sum-exp of the others, where published code takes the log of a rounded sum, and nothing
        is subtracted 1000 from. Classes that the teacher does not offer (-inf) are left out; for a label among those,
        b is (0, 1) for both, so that only the second term is left.
        """,
    ),
    module="DKDLoss",
)
def dkd(
    student: Tensor,
    teacher: Tensor,
    target: Tensor,
    *,
    alpha: float = 1.0,
    beta: float = 8.0,
    temperature: float = 4.0,
    mask: Tensor | None = None,
    num_items: float | Tensor | None = None,
    ignore_index: int = -100,
    reduction: Reduction = "mean",
) -> Tensor:
    """Decoupled KD, times tau^2 and without the cross-entropy that is published beside it.

    Args:
        student: logits `[..., C]`.
        teacher: logits `[..., C]`, a constant; `-inf` is a class that it does not offer, left out of every softmax.
            A label among those is not compared at all: the first term is 0 on its row, the second is over all offered
            classes.
        target: labels `[...]`.
        alpha: weight of the first term, the label against the rest.
        beta: weight of the second term, the rest among themselves; 0 with two classes, which leave no rest to compare.
        temperature: tau, of both.
        mask: `[...]` bool, True = counts.
        num_items: divides instead of the number of rows that count, for gradient accumulation.
        ignore_index: label of rows that do not count.
        reduction: "mean" over the rows that count, "sum" or "none".

    >>> dkd(torch.tensor([[2.0, 1.0, 0.0]]), torch.tensor([[3.0, 1.0, 2.0]]), torch.tensor([0]), beta=2.0)
    tensor(0.9948)
    """
    keep = rows_that_count(target, mask, ignore_index)
    s = keep_rows(student.to(compute_dtype(student)), keep)
    t = keep_rows(teacher.detach().to(s.dtype), keep)
    y = labels_that_count(target, keep).unsqueeze(-1)  # [..., 1]
    offered = t != -torch.inf
    rest = offered.scatter(-1, y, False)

    log_p, log_p_rest, log_p_among = _split(s / temperature, y, offered, rest)
    log_q, log_q_rest, log_q_among = _split(t / temperature, y, offered, rest)
    label_term = log_q.exp() * (log_q - log_p) + log_q_rest.exp() * (log_q_rest - log_p_rest)
    rest_term = torch.where(rest, log_q_among.exp() * (log_q_among - log_p_among), 0.0).sum(-1)
    rows = (alpha * label_term + beta * rest_term) * temperature**2
    return reduce_rows(rows, keep, reduction, num_items)


def _split(z: Tensor, y: Tensor, offered: Tensor, rest: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """log p_y `[...]`, log(1 - p_y) `[...]`, and log softmax over the classes other than y `[..., C]`."""
    # Finite, so that 0 * log 0 is 0 and has a gradient; exp of it is 0 all the same.
    nothing = torch.finfo(z.dtype).min / 4
    z = torch.where(offered, z, nothing)
    others = torch.where(rest, z, nothing)
    everything, remainder = z.logsumexp(-1), others.logsumexp(-1)
    label = z.gather(-1, y).squeeze(-1)
    return label - everything, remainder - everything, others - remainder.unsqueeze(-1)
