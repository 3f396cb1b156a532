"""Cross-entropy on the label: what every distillation is compared with."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor

from plackett.losses.registry import Card, loss
from plackett.losses.rows import Reduction, compute_dtype, keep_rows, labels_that_count, reduce_rows, rows_that_count


@loss(
    Card(
        title="Cross-entropy",
        equation="L = logsumexp(s) - s_y",
        paper="the first choice of a Plackett-Luce model; the paper's 'Student (CE)' row",
        defaults="alone, weight 1; label smoothing 0.1 in the paper's LS row on ImageNet",
    ),
    module="CrossEntropyLoss",
    name="ce",
    soft_targets=True,
)
def cross_entropy(
    student: Tensor,
    target: Tensor,
    *,
    label_smoothing: float = 0.0,
    mask: Tensor | None = None,
    num_items: float | Tensor | None = None,
    ignore_index: int = -100,
    reduction: Reduction = "mean",
) -> Tensor:
    """Cross-entropy of logits `[..., C]` with labels `[...]` or probabilities `[..., C]`.

    Args:
        target: labels, or probabilities, which are a constant: no gradient goes to them.
        label_smoothing: eps; the target becomes (1 - eps) of itself and eps / C of every class.

    >>> import torch
    >>> cross_entropy(torch.tensor([[2.0, 1.0, 0.0]]), torch.tensor([0]))
    tensor(0.4076)
    """
    keep = rows_that_count(target, mask, ignore_index)
    s = keep_rows(student.to(compute_dtype(student)), keep)
    classes = s.shape[-1]
    if target.is_floating_point():
        y = keep_rows(target.detach().to(s.dtype), keep).reshape(-1, classes)
    else:
        y = labels_that_count(target, keep).reshape(-1)
    flat = F.cross_entropy(s.reshape(-1, classes), y, reduction="none", label_smoothing=label_smoothing)
    return reduce_rows(flat.reshape(s.shape[:-1]), keep, reduction, num_items)
