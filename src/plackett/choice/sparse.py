"""A teacher of which only the first K choices are kept, and what they are worth beside all the others."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from plackett.choice.likelihood import Choices
from plackett.tracing import may_look


class SparseTeacher(NamedTuple):
    """A teacher's `values` and class `indices` `[..., K]`, the label's own logit, and log sum exp(t / tau) of the rest.

    The rest is every class that is not among the indices, at the temperature in use: K values cannot tell it at
    another. A rest of -inf says that no other class is offered. `label_logit` is None where no label is known.
    """

    values: Tensor
    indices: Tensor
    rest: Tensor
    label_logit: Tensor | None = None

    @classmethod
    def of(cls, teacher: Tensor, target: Tensor | None, k: int, temperature: float = 1.0) -> SparseTeacher:
        """What is kept of logits `[..., C]`. Labels out of range (ignored ones) get the first class's logit.

        >>> kept = SparseTeacher.of(torch.tensor([[3.0, 1.0, 2.0]]), torch.tensor([1]), k=1)
        >>> kept.indices, kept.rest, kept.label_logit
        (tensor([[0]]), tensor([2.3133]), tensor([1.]))
        """
        classes = teacher.shape[-1]
        teacher = teacher.detach()
        # Stable, so that ties at the end of the K go to the lower classes, as they do in the order itself.
        values, indices = torch.sort(teacher, dim=-1, descending=True, stable=True)
        values, indices = values[..., :k], indices[..., :k]
        wide = teacher.double() if teacher.dtype == torch.float64 else teacher.float()
        rest = (wide / temperature).scatter(-1, indices, -torch.inf).logsumexp(-1)
        if target is None:
            return cls(values, indices, rest)
        known = torch.where((target >= 0) & (target < classes), target.long(), 0)
        return cls(values, indices, rest, teacher.gather(-1, known.unsqueeze(-1)).squeeze(-1))


def sparse_choices(
    teacher: SparseTeacher, target: Tensor | None, classes: int, temperature: float, label_weight: float | None
) -> tuple[Choices, Tensor]:
    """The K charged choices of flat rows, and the weight that they leave uncharged `[N]`.

    The same as `teacher_order` and `choice_weights` give for the first K choices of the whole teacher.
    """
    values, indices, rest, label_logit = teacher
    values, indices = _in_order(values, indices)
    k = values.shape[-1]
    top = values[:, :1].clamp_min(torch.finfo(values.dtype).min)
    if label_logit is not None:
        top = torch.maximum(top, label_logit.unsqueeze(-1))
    top = top / temperature
    q = (values / temperature - top).exp()  # [N, K]
    rest_mass = (rest - top.squeeze(-1)).exp()
    norm = q.sum(-1) + rest_mass
    others = rest > -torch.inf  # whether the teacher offers more classes than it keeps
    known = may_look(values, rest, *(() if label_logit is None else (label_logit,)))
    full = known and bool((values > -torch.inf).all()) and (k == classes or bool(others.all()))
    offered = None if full else _offered(values, indices, others, classes)
    if target is None or label_logit is None:
        return Choices(indices, q / norm.unsqueeze(-1), offered, False), rest_mass / norm

    # The label first; where it is among the K the others close up, where it is not the last of the K gives way.
    label = target.unsqueeze(-1)
    is_label = indices == label
    kept = is_label.any(-1, keepdim=True)
    at = torch.where(kept, is_label.to(torch.uint8).argmax(-1, keepdim=True), k - 1)
    j = torch.arange(k - 1, device=values.device)
    source = j + (j >= at).long()
    order = torch.cat([label, indices.gather(-1, source)], dim=-1)
    q_label = (label_logit / temperature - top.squeeze(-1)).exp()
    charged = q.gather(-1, source)
    dropped = q[:, -1]
    left_out = torch.where(kept.squeeze(-1), rest_mass, (rest_mass - q_label).clamp_min(0.0) + dropped) / norm
    first = q_label / norm
    if label_weight is not None:
        first = torch.where(label_logit == -torch.inf, label_weight, first.clamp_min(label_weight))
    if offered is not None:
        offered = offered.scatter(-1, label, (label_logit != -torch.inf).unsqueeze(-1))
    elif bool((label_logit == -torch.inf).any()):
        offered = torch.ones(values.shape[0], classes, dtype=torch.bool, device=values.device)
        offered = offered.scatter(-1, label, (label_logit != -torch.inf).unsqueeze(-1))
    a = torch.cat([first.unsqueeze(-1), charged / norm.unsqueeze(-1)], dim=-1)
    return Choices(order, a, offered, True), left_out


def _in_order(values: Tensor, indices: Tensor) -> tuple[Tensor, Tensor]:
    """By falling logit, ties by class index."""
    indices, by_class = indices.sort(-1)
    values, by_value = values.gather(-1, by_class).sort(dim=-1, descending=True, stable=True)
    return values, indices.gather(-1, by_value)


def _offered(values: Tensor, indices: Tensor, others: Tensor, classes: int) -> Tensor:
    everyone = others.unsqueeze(-1).expand(-1, classes)
    return everyone.scatter(-1, indices, values != -torch.inf)
