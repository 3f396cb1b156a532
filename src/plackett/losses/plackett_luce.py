"""PLD and the list-wise losses that it contains."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from plackett.choice import (
    After,
    Choices,
    attach_gradient,
    attach_total,
    choice_likelihood,
    choice_weights,
    is_plain,
    teacher_order,
    wants_gradient,
)
from plackett.losses.registry import Card, loss
from plackett.losses.rows import Reduction, compute_dtype, labels_that_count, reduce_rows, rows_that_count
from plackett.tracing import is_transformed, may_look

# Rows are taken in blocks of about this many logits: on the CPU buffers then stay in the cache, and memory beyond
# the gradient does not grow with the batch.
_BLOCK = {"cpu": 1 << 16}
_BLOCK_ELSEWHERE = 1 << 26


class Rows(NamedTuple):
    """A loss a row `[N]`, its gradient `[N, C]` where it was asked for, and the weight not charged `[N]`.

    `after` is what the implementation's device has of its own for what comes next.
    """

    loss: Tensor
    gradient: Tensor | None
    left_out: Tensor
    after: After | None = None


class RowsFunction(Protocol):
    """One implementation of PLD over flat rows. Those not in `keep` `[N]` give 0, whatever stands in them."""

    def __call__(
        self,
        student: Tensor,
        teacher: Tensor,
        target: Tensor | None,
        keep: Tensor | None,
        *,
        temperature: float,
        weights: str | Tensor,
        label_weight: float | None,
        top_k: int | None,
        gradient: bool,
    ) -> Rows: ...


def eager_rows(
    student: Tensor,
    teacher: Tensor,
    target: Tensor | None,
    keep: Tensor | None,
    *,
    temperature: float,
    weights: str | Tensor,
    label_weight: float | None,
    top_k: int | None,
    gradient: bool,
) -> Rows:
    """PLD in PyTorch operations: the implementation for every device and for tracing."""
    dtype = compute_dtype(student)
    look = may_look(student, teacher, *(x for x in (target, keep) if x is not None))
    target = None if target is None else labels_that_count(target, keep)

    def block(rows: slice) -> Rows:
        s, t = student[rows].to(dtype), teacher[rows].to(dtype)
        y = None if target is None else target[rows]
        order = teacher_order(t, y, top_k)
        is_offered = t != -torch.inf  # a NaN is offered, and shows
        offered = None if look and bool(is_offered.all()) else is_offered
        a, left_out = choice_weights(
            t,
            order,
            offered,
            labelled=y is not None,
            weights=weights,
            temperature=temperature,
            label_weight=label_weight,
        )
        value, slope = choice_likelihood(s, Choices(order, a, offered, y is not None), gradient)
        if keep is not None:
            counts = keep[rows]
            value, left_out = torch.where(counts, value, 0.0), torch.where(counts, left_out, 0.0)
            slope = None if slope is None else torch.where(counts.unsqueeze(-1), slope, 0.0)
        return Rows(value, slope, left_out)

    n, classes = student.shape
    size = max(1, _BLOCK.get(student.device.type, _BLOCK_ELSEWHERE) // classes)
    # While compiling first: a traced number of rows must not be held to the size of a block.
    if torch.compiler.is_compiling() or n <= size or is_transformed(student):
        whole = block(slice(None))
        slope = whole.gradient
        return whole._replace(gradient=None if slope is None else slope.to(student.dtype))

    total = Rows(
        student.new_empty(n, dtype=dtype),
        torch.empty_like(student, memory_format=torch.contiguous_format) if gradient else None,
        student.new_empty(n, dtype=dtype),
    )
    for start in range(0, n, size):
        rows = slice(start, start + size)
        part = block(rows)
        total.loss[rows], total.left_out[rows] = part.loss, part.left_out
        if total.gradient is not None and part.gradient is not None:
            total.gradient[rows] = part.gradient
    return total


def soft_rows(
    implementation: Callable[[Tensor, Tensor, Tensor | None, Tensor | None], Rows],
    student: Tensor,
    teacher: Tensor,
    target: Tensor,
    keep: Tensor | None,
    max_labels: int,
    gradient: bool,
) -> Rows:
    """A soft target p `[N, C]` as an expectation over labels.

    Its uniform part C m, m = min_j p_j, says nothing of the label and is charged in the teacher's own order; each class
    j above it is charged (p_j - m) PLD(y = j), for the `max_labels` largest.
    """
    classes = student.shape[-1]
    p = target.to(compute_dtype(student))
    floor = p.amin(-1)
    shares, labels = (p - floor.unsqueeze(-1)).topk(min(max_labels, classes), dim=-1)
    parts: list[tuple[Tensor, Tensor | None]] = [(classes * floor, None)]
    parts += [(share, label) for share, label in zip(shares.unbind(-1), labels.unbind(-1), strict=True)]

    n = student.shape[0]
    total = Rows(p.new_zeros(n), None, p.new_zeros(n))
    look = may_look(student, p)
    for share, label in parts:
        if look and not share.any():
            continue
        counts = share > 0 if keep is None else keep & (share > 0)
        part = implementation(student, teacher, label, counts)
        slope = None if part.gradient is None else part.gradient * share.unsqueeze(-1)
        if total.gradient is not None and slope is not None:
            slope = total.gradient + slope
        total = Rows(total.loss + share * part.loss, slope, total.left_out + share * part.left_out)
    if gradient and total.gradient is None:  # nothing counts: a zero that still has a graph
        total = total._replace(gradient=torch.zeros_like(student))
    return total


@loss(
    Card(
        title="Plackett-Luce distillation",
        equation="""
        L = sum_k a_k [ logsumexp(s[pi_k], ..., s[pi_C]) - s[pi_k] ]
        pi = the label, then every other class by falling teacher logit;  a_k = softmax(t / tau)[pi_k]
        """,
        paper="Bassam, Zhu, Bian: PLD, A Choice-Theoretic List-Wise Knowledge Distillation, NeurIPS 2025",
        defaults="alone, weight 1, no cross-entropy beside it; tau = 1 on ImageNet, tau = 4 on CIFAR-100",
        deviations="""
        Ties in the teacher go to the lower class index (the listing's order is not defined there).
        -inf in the teacher, soft targets, target=None, label_weight and top_k are ours; without them it is the paper's.
        weights="position" is Lan et al.'s; the paper's p-ListMLE row is written as PLD itself.
        """,
    ),
    module="PLDLoss",
    soft_targets=True,
    picks_the_label=True,
)
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
    reduction: Reduction = "mean",
    impl: str | RowsFunction = "auto",
) -> Tensor | tuple[Tensor, Tensor]:
    """Plackett-Luce distillation: the student picks the classes in the teacher's order, the label first.

    Args:
        student: logits `[..., C]`, any float dtype.
        teacher: logits `[..., C]`, a constant; `-inf` is a class that the teacher does not offer. The label is chosen
            among all of the student's classes, the teacher's choices are made among the offered ones only.
        target: labels `[...]`; None where no label is known (the order is then the teacher's own); or probabilities
            `[..., C]` from mixup or label smoothing, a constant, charged as an expectation over labels.
        temperature: tau in the weights a_k = softmax(t / tau)[pi_k].
        weights: "teacher", "uniform" (1/C, ListMLE), "position" (p-ListMLE of Lan et al., a_k proportional to
            2^(C-k) - 1 and normalised; the paper's own row is written a_k = q_k / sum q, which would be PLD itself,
            so this is our reading), or `[C]` weights by rank.
        label_weight: at least this weight for the label's own choice, which nearly vanishes where the teacher is
            confidently wrong; None is the paper.
        top_k: charge only the first so many choices, each still against all that is left.
        return_left_out: return `(loss, left_out)`, with the weight a row that `top_k` left uncharged, `[...]`.
        max_labels: how many classes of a soft target are charged.
        mask: `[...]` bool, True = counts.
        num_items: divides instead of the number of rows that count, for gradient accumulation.
        ignore_index: label of rows that do not count.
        reduction: "mean" over the rows that count, "sum" or "none".
        impl: which implementation computes it; see `plackett.kernels.why`.

    Returns:
        The loss, float32 (float64 for float64 input).

    >>> student = torch.tensor([[2.0, 1.0, 0.0]])
    >>> teacher = torch.tensor([[3.0, 1.0, 2.0]])
    >>> pld(student, teacher, torch.tensor([0]))
    tensor(0.5925)
    """
    shape, classes = student.shape[:-1], student.shape[-1]
    s, t = student.reshape(-1, classes), teacher.detach().reshape(-1, classes)
    keep = rows_that_count(target, mask, ignore_index)
    flat_keep = None if keep is None else keep.reshape(-1)
    implementation = eager_rows if isinstance(impl, str) else impl
    gradient = wants_gradient(student)

    def run(s: Tensor, t: Tensor, y: Tensor | None, counts: Tensor | None) -> Rows:
        return implementation(
            s,
            t,
            y,
            counts,
            temperature=temperature,
            weights=weights,
            label_weight=None if y is None else label_weight,
            top_k=top_k,
            gradient=gradient,
        )

    with torch.no_grad():
        if target is None:
            rows = run(s.detach(), t, None, flat_keep)
        elif target.is_floating_point():
            p = target.detach().reshape(-1, classes)
            rows = soft_rows(run, s.detach(), t, p, flat_keep, max_labels, gradient)
        else:
            rows = run(s.detach(), t, target.reshape(-1), flat_keep)
    after = rows.after
    if after is not None and reduction != "none" and num_items is None and is_plain(student):
        mean = reduction == "mean"
        if rows.gradient is None:
            result, _ = after.total(rows.loss, flat_keep, mean)
        else:
            result = attach_total(s, rows.loss, rows.gradient, flat_keep, mean, after)
    else:
        times = None if after is None else after.times
        value = rows.loss if rows.gradient is None else attach_gradient(s, rows.loss, rows.gradient, times)
        result = reduce_rows(value.reshape(shape), keep, reduction, num_items)
    return (result, rows.left_out.reshape(shape)) if return_left_out else result


@loss(
    Card(
        title="ListMLE by choice",
        equation="PLD with a_k = 1 / C",
        paper="Xia et al.: Listwise approach to learning to rank, ICML 2008; a special case in the PLD paper",
        defaults="alone, weight 1",
        deviations="divided by C, as the PLD paper's uniform row is",
    ),
    module="ListMLELoss",
    soft_targets=True,
    picks_the_label=True,
)
def listmle(
    student: Tensor,
    teacher: Tensor,
    target: Tensor | None = None,
    *,
    top_k: int | None = None,
    max_labels: int = 8,
    mask: Tensor | None = None,
    num_items: float | Tensor | None = None,
    ignore_index: int = -100,
    reduction: Reduction = "mean",
    impl: str | RowsFunction = "auto",
) -> Tensor:
    """`pld(weights="uniform")`: every choice weighs 1/C.

    >>> listmle(torch.tensor([[2.0, 1.0, 0.0]]), torch.tensor([[3.0, 1.0, 2.0]]), torch.tensor([0]))
    tensor(0.5736)
    """
    result = pld(
        student,
        teacher,
        target,
        weights="uniform",
        top_k=top_k,
        max_labels=max_labels,
        mask=mask,
        num_items=num_items,
        ignore_index=ignore_index,
        reduction=reduction,
        impl=impl,
    )
    assert isinstance(result, Tensor)
    return result


@loss(
    Card(
        title="Position-aware ListMLE by choice",
        equation="PLD with a_k = (2^(C-k) - 1) / sum_j (2^(C-j) - 1)",
        paper="Lan et al.: Position-aware ListMLE, UAI 2014; a special case in the PLD paper",
        defaults="alone, weight 1",
        deviations="""
        Normalised to sum 1. The PLD paper writes its p-ListMLE row as a_k = q_k / sum q, which is PLD itself;
        this is the sequence that its text names.
        """,
    ),
    module="PositionListMLELoss",
    soft_targets=True,
    picks_the_label=True,
)
def position_listmle(
    student: Tensor,
    teacher: Tensor,
    target: Tensor | None = None,
    *,
    top_k: int | None = None,
    max_labels: int = 8,
    mask: Tensor | None = None,
    num_items: float | Tensor | None = None,
    ignore_index: int = -100,
    reduction: Reduction = "mean",
    impl: str | RowsFunction = "auto",
) -> Tensor:
    """`pld(weights="position")`: each choice weighs about half of the one before it.

    >>> position_listmle(torch.tensor([[2.0, 1.0, 0.0]]), torch.tensor([[3.0, 1.0, 2.0]]), torch.tensor([0]))
    tensor(0.6340)
    """
    result = pld(
        student,
        teacher,
        target,
        weights="position",
        top_k=top_k,
        max_labels=max_labels,
        mask=mask,
        num_items=num_items,
        ignore_index=ignore_index,
        reduction=reduction,
        impl=impl,
    )
    assert isinstance(result, Tensor)
    return result
