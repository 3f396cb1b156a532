"""The other losses on logits `[N, C]`, as their papers write them: every class, every row, a mean over rows."""

from __future__ import annotations

import torch
from torch import Tensor


def cross_entropy(student: Tensor, target: Tensor, *, label_smoothing: float = 0.0) -> Tensor:
    """- sum_c y_c log p_c, with y one-hot for labels `[N]`; smoothed, y becomes (1 - eps) y + eps / C.

    >>> cross_entropy(torch.tensor([[2.0, 1.0, 0.0]]), torch.tensor([0]))
    tensor(0.4076)
    """
    classes = student.shape[-1]
    if target.is_floating_point():
        y = target.to(student.dtype)
    else:
        y = torch.zeros_like(student).scatter(-1, target.unsqueeze(-1), 1.0)
    y = (1 - label_smoothing) * y + label_smoothing / classes
    return -(y * student.log_softmax(-1)).sum(-1).mean()


def kd(
    student: Tensor,
    teacher: Tensor,
    *,
    temperature: float = 4.0,
    divergence: str = "forward",
    scale: str | None = "tau2",
) -> Tensor:
    """tau^2 KL(q || p) of Hinton et al.; "reverse" is KL(p || q), "js" the mean of both against (p + q) / 2.

    >>> kd(torch.tensor([[2.0, 1.0, 0.0]]), torch.tensor([[3.0, 1.0, 2.0]]), temperature=1.0)
    tensor(0.1547)
    """
    p, q = torch.softmax(student / temperature, -1), torch.softmax(teacher.detach() / temperature, -1)
    if divergence == "forward":
        rows = kl(q, p)
    elif divergence == "reverse":
        rows = kl(p, q)
    else:
        m = (p + q) / 2
        rows = (kl(q, m) + kl(p, m)) / 2
    return rows.mean() * (temperature**2 if scale == "tau2" else 1.0)


def kl(a: Tensor, b: Tensor) -> Tensor:
    """sum_c a_c log(a_c / b_c), a value a row; nothing where a_c is 0.

    >>> kl(torch.tensor([1.0, 0.0]), torch.tensor([0.5, 0.5]))
    tensor(0.6931)
    """
    return (torch.xlogy(a, a) - torch.xlogy(a, b)).sum(-1)


def dist(
    student: Tensor,
    teacher: Tensor,
    *,
    beta: float = 1.0,
    gamma: float = 1.0,
    temperature: float = 1.0,
    scale: str | None = "tau2",
) -> Tensor:
    """beta (1 - mean corr of rows) + gamma (1 - mean corr of columns), of Huang et al.

    >>> student = torch.tensor([[2.0, 1.0, 0.0], [0.0, 1.0, 0.0]])
    >>> teacher = torch.tensor([[3.0, 1.0, 2.0], [0.0, 3.0, 1.0]])
    >>> dist(student, teacher)
    tensor(0.7358)
    """
    p, q = torch.softmax(student / temperature, -1), torch.softmax(teacher.detach() / temperature, -1)
    value = beta * (1 - pearson(p, q).mean()) + gamma * (1 - pearson(p.T, q.T).mean())
    return value * (temperature**2 if scale == "tau2" else 1.0)


def pearson(x: Tensor, y: Tensor) -> Tensor:
    """cov(x, y) / (std x std y), a value a row.

    >>> pearson(torch.tensor([[1.0, 2.0, 3.0]]), torch.tensor([[2.0, 4.0, 6.0]]))
    tensor([1.0000])
    """
    x, y = x - x.mean(-1, keepdim=True), y - y.mean(-1, keepdim=True)
    norms = x.square().sum(-1).sqrt() * y.square().sum(-1).sqrt()
    return (x * y).sum(-1) / norms


def dkd(
    student: Tensor,
    teacher: Tensor,
    target: Tensor,
    *,
    alpha: float = 1.0,
    beta: float = 8.0,
    temperature: float = 4.0,
) -> Tensor:
    """tau^2 [alpha KL of (p_y, 1 - p_y) + beta KL of the others, renormalised], of Zhao et al.

    >>> dkd(torch.tensor([[2.0, 1.0, 0.0]]), torch.tensor([[3.0, 1.0, 2.0]]), torch.tensor([0]), beta=2.0)
    tensor(0.9948)
    """
    p, q = torch.softmax(student / temperature, -1), torch.softmax(teacher.detach() / temperature, -1)
    label = torch.zeros_like(p, dtype=torch.bool).scatter(-1, target.unsqueeze(-1), True)

    def binary(probabilities: Tensor) -> Tensor:
        of_label = torch.where(label, probabilities, 0.0).sum(-1)
        return torch.stack([of_label, torch.where(label, 0.0, probabilities).sum(-1)], dim=-1)

    def others(probabilities: Tensor) -> Tensor:
        return probabilities[~label].view(len(probabilities), -1) / binary(probabilities)[:, 1:]

    rows = alpha * kl(binary(q), binary(p)) + beta * kl(others(q), others(p))
    return rows.mean() * temperature**2


def standardize(logits: Tensor) -> Tensor:
    """(x - mean x) / std x of each row, of Sun et al.; std divides by C - 1.

    >>> standardize(torch.tensor([[1.0, 2.0, 3.0]]))
    tensor([[-1.,  0.,  1.]])
    """
    return (logits - logits.mean(-1, keepdim=True)) / logits.std(-1, keepdim=True)
