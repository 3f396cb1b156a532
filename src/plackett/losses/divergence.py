"""KD: a divergence between softened distributions of teacher and student."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from plackett.losses.registry import Card, loss
from plackett.losses.rows import Reduction, compute_dtype, keep_rows, reduce_rows, rows_that_count
from plackett.tracing import may_look

Divergence = Literal["forward", "reverse", "js"]


def log_probabilities(student: Tensor, teacher: Tensor, temperature: float) -> tuple[Tensor, Tensor, Tensor | None]:
    """log softmax(. / tau) of student and teacher over the classes that the teacher offers, and which those are.

    Where a class is not offered both are 0 and stand for nothing: sums must go over the offered ones; None means all.
    """
    offered = teacher != -torch.inf
    if may_look(teacher) and bool(offered.all()):
        return (student / temperature).log_softmax(-1), (teacher / temperature).log_softmax(-1), None
    log_p = torch.where(offered, student / temperature, -torch.inf).log_softmax(-1)
    log_q = (teacher / temperature).log_softmax(-1)
    return torch.where(offered, log_p, 0.0), torch.where(offered, log_q, 0.0), offered


def _surprise(log_p: Tensor, log_other: Tensor) -> Tensor:
    """p (log p - log other), which is 0 where p is 0, and has no gradient there."""
    gone = log_p == -torch.inf
    return torch.where(gone, 0.0, log_p.exp() * (torch.where(gone, 0.0, log_p) - log_other))


@loss(
    Card(
        title="Knowledge distillation",
        equation="""
        forward: L = tau^2 KL(q || p),  q = softmax(t / tau),  p = softmax(s / tau)
        reverse: L = tau^2 KL(p || q);  js: L = tau^2 [KL(q || m) + KL(p || m)] / 2,  m = (p + q) / 2
        """,
        paper="Hinton, Vinyals, Dean: Distilling the Knowledge in a Neural Network, 2015; the PLD paper's KD row",
        defaults="""
        alpha CE + (1 - alpha) KD; alpha = 0.1, tau = 2 on ImageNet (PLD paper); alpha = 0.1, tau = 4 on CIFAR-100
        """,
        deviations="""
        The PLD paper multiplies by tau^2 in its main text and not in its appendix: scale="tau2" is the default of all
        three divergences, scale=None the other. Classes that the teacher does not offer (-inf) are left out.
        """,
    ),
    module="KDLoss",
)
def kd(
    student: Tensor,
    teacher: Tensor,
    *,
    temperature: float = 4.0,
    divergence: Divergence = "forward",
    scale: Literal["tau2"] | None = "tau2",
    mask: Tensor | None = None,
    num_items: float | Tensor | None = None,
    reduction: Reduction = "mean",
) -> Tensor:
    """Divergence between the softened distributions of teacher and student, summed over classes, a value a row.

    Cross-entropy beside it is `Objective`'s work: `Objective({"ce": 0.1, "kd": {"weight": 0.9}})`.

    Args:
        student: logits `[..., C]`.
        teacher: logits `[..., C]`, a constant; `-inf` is a class that it does not offer, left out of both softmaxes.
        temperature: tau, of both.
        divergence: "forward" KL(teacher || student), "reverse" KL(student || teacher), or "js", Jensen-Shannon.
        scale: "tau2" multiplies by tau^2, so that gradients keep their size as tau grows; None does not.

    >>> kd(torch.tensor([[2.0, 1.0, 0.0]]), torch.tensor([[3.0, 1.0, 2.0]]), temperature=1.0)
    tensor(0.1547)
    """
    keep = rows_that_count(None, mask)
    s = keep_rows(student.to(compute_dtype(student)), keep)
    t = keep_rows(teacher.detach().to(s.dtype), keep)
    log_p, log_q, offered = log_probabilities(s, t, temperature)
    if divergence == "forward":
        terms = log_q.exp() * (log_q - log_p)
    elif divergence == "reverse":
        terms = _surprise(log_p, log_q)
    else:
        log_m = torch.logaddexp(log_p, log_q) - torch.log(log_p.new_tensor(2.0))
        terms = 0.5 * (_surprise(log_q, log_m) + _surprise(log_p, log_m))
    rows = (terms if offered is None else torch.where(offered, terms, 0.0)).sum(-1)
    if scale == "tau2":
        rows = rows * temperature**2
    return reduce_rows(rows, keep, reduction, num_items)
