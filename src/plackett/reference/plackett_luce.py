"""PLD as its definition reads, and as the paper's listing computes it."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor


def pld(
    student: Tensor,
    teacher: Tensor,
    target: Tensor | None = None,
    *,
    temperature: float = 1.0,
    weights: str | Tensor = "teacher",
    label_weight: float | None = None,
    top_k: int | None = None,
    return_left_out: bool = False,
    max_labels: int = 8,
    mask: Tensor | None = None,
    num_items: float | Tensor | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
) -> Tensor | tuple[Tensor, Tensor]:
    """What `plackett.functional.pld` promises, written down for reading; every argument means the same there.

    Autograd differentiates it, any number of times. Half precision is computed in float32, float64 stays.

    >>> s, t = torch.tensor([[2.0, 1.0, 0.0]]), torch.tensor([[3.0, 1.0, 2.0]])
    >>> pld(s, t, torch.tensor([0]))
    tensor(0.5925)
    >>> pld(s, t, torch.tensor([0]), top_k=1, return_left_out=True)
    (tensor(0.2712), tensor([0.3348]))
    """
    shape, classes = student.shape[:-1], student.shape[-1]
    dtype = torch.float64 if student.dtype == torch.float64 else torch.float32
    s, t = student.reshape(-1, classes).to(dtype), teacher.detach().reshape(-1, classes).to(dtype)

    counts = torch.ones(shape, dtype=torch.bool, device=s.device).reshape(-1)
    soft = target is not None and target.is_floating_point()
    if target is not None and not soft:
        counts = counts & (target.reshape(-1) != ignore_index)
    if mask is not None:
        counts = counts & mask.reshape(-1)
    s = torch.where(counts.unsqueeze(-1), s, 0.0)
    t = torch.where(counts.unsqueeze(-1), t, 0.0)

    def choose(y: Tensor | None) -> tuple[Tensor, Tensor]:
        return _rows(s, t, y, temperature, weights, None if y is None else label_weight, top_k)

    if target is None:
        loss, left_out = choose(None)
    elif soft:
        p = torch.where(counts.unsqueeze(-1), target.reshape(-1, classes).to(dtype), 0.0)
        floor = p.amin(-1)
        # The uniform part of p says nothing of the label; what a class has above it is charged with that label.
        loss, left_out = (classes * floor * part for part in choose(None))
        above, labels = (p - floor.unsqueeze(-1)).topk(min(max_labels, classes), dim=-1)
        for share, label in zip(above.unbind(-1), labels.unbind(-1), strict=True):
            part, part_left_out = choose(label)
            loss, left_out = loss + share * part, left_out + share * part_left_out
    else:
        loss, left_out = choose(torch.where(counts, target.reshape(-1).long(), 0))

    loss = torch.where(counts, loss, 0.0)
    left_out = torch.where(counts, left_out, 0.0).reshape(shape)
    if reduction == "none":
        result = loss.reshape(shape)
    elif reduction == "sum":
        result = loss.sum()
    else:
        result = loss.sum() / (counts.sum().clamp_min(1) if num_items is None else num_items)
    return (result, left_out) if return_left_out else result


def order(teacher: Tensor, target: Tensor | None) -> Tensor:
    """pi `[N, C]`: the label, then every other class by falling teacher logit, ties by class index.

    >>> order(torch.tensor([[3.0, 1.0, 1.0, 2.0]]), torch.tensor([2]))
    tensor([[2, 0, 3, 1]])
    """
    falling = torch.sort(teacher, dim=-1, descending=True, stable=True).indices
    if target is None:
        return falling
    not_label = (falling != target.unsqueeze(-1)).to(torch.uint8)
    # False before True, everything else as it was.
    label_first = torch.sort(not_label, dim=-1, stable=True).indices
    return falling.gather(-1, label_first)


def choice_weights(
    teacher: Tensor,
    pi: Tensor,
    labelled: bool,
    temperature: float,
    weights: str | Tensor,
    label_weight: float | None,
) -> Tensor:
    """a `[N, C]` by rank; 0 for the ranks that no choice fills, because the teacher does not offer those classes.

    >>> choice_weights(torch.zeros(1, 3), torch.tensor([[0, 1, 2]]), True, 1.0, "position", None)
    tensor([[0.7500, 0.2500, 0.0000]])
    """
    offered = (teacher > -torch.inf).gather(-1, pi)  # [N, C] by rank
    filled = offered.clone()
    if labelled:
        filled[:, 0] = True
    if isinstance(weights, Tensor):
        a = weights.to(teacher).expand_as(teacher)
    elif weights == "teacher":
        a = torch.softmax(teacher / temperature, dim=-1).gather(-1, pi)
    else:
        m = filled.sum(-1, keepdim=True).to(teacher.dtype)  # how many choices there are
        if weights == "uniform":
            a = (1 / m).expand_as(teacher)
        else:
            # a_k proportional to 2^(M-k) - 1; divided by 2^M, so that it does not overflow
            k = torch.arange(1, teacher.shape[-1] + 1, device=teacher.device, dtype=teacher.dtype)
            raw = torch.where(filled, torch.exp2(-k) - torch.exp2(-m), 0.0)
            only = torch.where(k == 1, 1.0, 0.0).to(teacher.dtype).expand_as(raw)  # M = 1 would be 0 / 0
            raw = torch.where(m == 1, only, raw)
            a = raw / raw.sum(-1, keepdim=True)
    a = torch.where(filled, a, 0.0)
    if labelled:
        w = 0.0 if label_weight is None else label_weight
        first = torch.where(offered[:, 0], a[:, 0].clamp_min(w), torch.full_like(a[:, 0], w))
        a = torch.cat([first.unsqueeze(-1), a[:, 1:]], dim=-1)
    return a


def _rows(
    s: Tensor,
    t: Tensor,
    y: Tensor | None,
    temperature: float,
    weights: str | Tensor,
    label_weight: float | None,
    top_k: int | None,
) -> tuple[Tensor, Tensor]:
    """The loss `[N]` and the weight that is not charged `[N]`, for one label a row or none."""
    pi = order(t, y)
    a = choice_weights(t, pi, y is not None, temperature, weights, label_weight)
    kept = s.shape[-1] if top_k is None else min(top_k, s.shape[-1])

    z = s.gather(-1, pi)
    offered = (t > -torch.inf).gather(-1, pi)
    # phi_k = log of the sum of exp(s) over what is left at choice k: the offered classes not yet chosen ...
    phi = suffix_logsumexp(torch.where(offered, z, _nothing(z)))
    if y is not None:  # ... but the label's own choice is among all of the student's classes
        phi = torch.cat([torch.logsumexp(s, dim=-1, keepdim=True), phi[:, 1:]], dim=-1)
    # L = sum_k a_k (phi_k - s_pi_k)
    terms = torch.where(a > 0, a * (phi - z), 0.0)
    return terms[:, :kept].sum(-1), a[:, kept:].sum(-1)


def suffix_logsumexp(z: Tensor) -> Tensor:
    """phi_k = log sum_{l >= k} exp(z_l) along the last dimension.

    By doubling: after j rounds an entry covers 2^j terms. torch.logcumsumexp would do for the loss, but its second
    derivative is wrong where a choice weighs nothing (torch 2.11); torch.logsumexp has all of them.

    >>> suffix_logsumexp(torch.zeros(4)).exp()
    tensor([4., 3., 2., 1.])
    """
    length, step = z.shape[-1], 1
    while step < length:
        beyond = F.pad(z[..., step:], (0, step), value=_nothing(z))
        z = torch.logsumexp(torch.stack([z, beyond]), dim=0)
        step *= 2
    return z


def _nothing(z: Tensor) -> float:
    """The logit of no class: so low that exp gives 0, and finite, because -inf has no derivative."""
    return torch.finfo(z.dtype).min / 4


def published_pld(student: Tensor, teacher: Tensor, labels: Tensor, temperature: float = 1.0) -> Tensor:
    """The operations of the paper's listing, step by step, for comparisons and benchmarks; logits `[N, C]`.

    The order among tied teacher logits is whatever an unstable sort gives.

    >>> s, t = torch.tensor([[2.0, 1.0, 0.0]]), torch.tensor([[3.0, 1.0, 2.0]])
    >>> published_pld(s, t, torch.tensor([0]))
    tensor(0.5925)
    """
    classes = teacher.size(-1)
    label = labels.unsqueeze(-1)
    worst_first = torch.sort(teacher, dim=-1, descending=False).indices  # [N, C]
    others = worst_first != label
    # A host synchronisation, and so is the boolean index under it: both are the listing's.
    if not bool(torch.all(others.sum(dim=-1) == classes - 1)):
        raise ValueError("Every row must have exactly one label among its classes.")
    ranking = torch.cat([worst_first[others].view(-1, classes - 1), label], dim=-1)  # the label last
    s = torch.gather(student, dim=-1, index=ranking)
    t = torch.gather(teacher, dim=-1, index=ranking)
    charge = torch.logcumsumexp(s, dim=-1) - s
    return (charge * F.softmax(t / temperature, dim=-1)).sum(dim=-1).mean()
