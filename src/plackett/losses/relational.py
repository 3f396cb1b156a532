"""DIST: the student keeps the teacher's relations, between classes within a row and between rows within a class."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from plackett.losses.registry import Card, loss
from plackett.losses.rows import Reduction, compute_dtype, keep_rows, reduce_batch

# Values that span less than a few units in the last place differ by rounding alone: they are constant.
_ROUNDING = 4


@loss(
    Card(
        title="DIST: distillation from a stronger teacher",
        equation="""
        L = tau^2 [ beta (1 - mean_n corr(p_n, q_n)) + gamma (1 - mean_c corr(p_c, q_c)) ]
        p = softmax(s / tau), q = softmax(t / tau);  p_n a row, p_c a class's column, corr Pearson's
        """,
        paper="Huang et al.: Knowledge Distillation from A Stronger Teacher, NeurIPS 2022; the PLD paper's DIST row",
        defaults="""
        CE 1, beta = gamma = 2, tau = 4 on CIFAR-100; CE 0.1, beta = gamma = 0.45, tau = 1 on ImageNet (PLD paper)
        """,
        deviations="""
        tau^2 is in published code and not in the DIST paper: scale="tau2" is the default, scale=None the other.
        eps is in published code and not in the paper either; it mutes classes that are rare in a batch.
        A constant row or column has correlation 0 and no gradient. Classes that the teacher does not offer (-inf) are
        left out; a row that offers a single class has nothing to relate and adds 0.
        """,
    ),
    module="DISTLoss",
)
def dist(
    student: Tensor,
    teacher: Tensor,
    *,
    beta: float = 1.0,
    gamma: float = 1.0,
    temperature: float = 1.0,
    scale: Literal["tau2"] | None = "tau2",
    eps: float = 1e-8,
    mask: Tensor | None = None,
    num_items: float | Tensor | None = None,
    reduction: Reduction = "mean",
) -> Tensor:
    """Distance between the correlations of student and teacher, over classes in a row and over rows in a class.

    Args:
        student: logits `[..., C]`; all leading dimensions are rows of one batch.
        teacher: logits `[..., C]`, a constant; `-inf` is a class that it does not offer, left out of both softmaxes, of
            the row's correlation, and of that class's column.
        beta: weight of the inter-class term, over the classes of each row.
        gamma: weight of the intra-class term, over the rows of each class. A single row has no such relation: its
            term is 1, without gradient.
        temperature: tau, of both.
        scale: "tau2" multiplies by tau^2, as published code does; None does not, as the DIST paper.
        eps: added to the product of the two norms of a correlation, as published code does; 0 is Pearson's.
        mask: `[...]` bool, True = counts.
        num_items: divides the sum instead of the number of rows that count. The rows of a batch are coupled, so that
            accumulated batches come close to one large batch and do not equal it.
        reduction: "mean", or "sum": the mean times the number of rows that count. There is no value a row.

    >>> student = torch.tensor([[2.0, 1.0, 0.0], [0.0, 1.0, 0.0]])
    >>> teacher = torch.tensor([[3.0, 1.0, 2.0], [0.0, 3.0, 1.0]])
    >>> dist(student, teacher)
    tensor(0.7358)
    """
    classes = student.shape[-1]
    keep = None if mask is None else mask.reshape(-1)
    s = keep_rows(student.to(compute_dtype(student)).reshape(-1, classes), keep)
    t = keep_rows(teacher.detach().to(s.dtype).reshape(-1, classes), keep)
    if s.shape[0] == 0:
        return reduce_batch("dist", s.sum(), 0, reduction, num_items)
    rows: int | Tensor = s.shape[0] if keep is None else keep.sum()

    offered = t != -torch.inf
    p = torch.where(offered, s / temperature, -torch.inf).softmax(-1)  # [N, C]
    q = (t / temperature).softmax(-1)
    related = offered & (offered.sum(-1, keepdim=True) > 1)
    if keep is not None:
        related = related & keep.unsqueeze(-1)

    inter = _mean_distance(p, q, related, dim=1, of=rows, eps=eps)
    intra = _mean_distance(p, q, related, dim=0, of=related.any(0).sum(), eps=eps)
    value = beta * inter + gamma * intra
    if scale == "tau2":
        value = value * temperature**2
    return reduce_batch("dist", value, rows, reduction, num_items)


def _mean_distance(p: Tensor, q: Tensor, related: Tensor, *, dim: int, of: int | Tensor, eps: float) -> Tensor:
    """Mean of 1 - corr(p, q) along `dim`, over the `of` lines; a line without related entries adds 0."""
    count = related.sum(dim, keepdim=True).clamp_min(1)
    x, y = _centred(p, related, count, dim), _centred(q, related, count, dim)
    constant = _is_constant(p, related, dim) | _is_constant(q, related, dim)
    # sqrt has an infinite slope at 0: constant lines go around it.
    norm_x = torch.where(constant, 1.0, x.square().sum(dim)).sqrt()
    norm_y = torch.where(constant, 1.0, y.square().sum(dim)).sqrt()
    correlation = torch.where(constant, 0.0, (x * y).sum(dim) / (norm_x * norm_y + eps))
    distance = torch.where(related.any(dim), 1 - correlation, 0.0)
    return distance.sum() / (of.clamp_min(1) if isinstance(of, Tensor) else of)


def _centred(x: Tensor, related: Tensor, count: Tensor, dim: int) -> Tensor:
    x = torch.where(related, x, 0.0)
    return torch.where(related, x - x.sum(dim, keepdim=True) / count, 0.0)


def _is_constant(x: Tensor, related: Tensor, dim: int) -> Tensor:
    x = x.detach()
    high = torch.where(related, x, -torch.inf).amax(dim)
    low = torch.where(related, x, torch.inf).amin(dim)
    # A NaN is not constant: it must show. Where nothing is related, there is nothing to show.
    return (high - low <= _ROUNDING * torch.finfo(x.dtype).eps * high.abs()) | ~related.any(dim)
