"""PLD of the first K choices from a teacher that kept nothing else."""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor

from plackett.choice import attach_gradient, choice_likelihood, wants_gradient
from plackett.choice.sparse import SparseTeacher, sparse_choices
from plackett.losses.plackett_luce import Rows
from plackett.losses.rows import Reduction, compute_dtype, labels_that_count, reduce_rows, rows_that_count


class SparseRowsFunction(Protocol):
    """One implementation over flat rows, as `RowsFunction` is for whole teachers."""

    def __call__(
        self,
        student: Tensor,
        teacher: SparseTeacher,
        target: Tensor | None,
        keep: Tensor | None,
        *,
        temperature: float,
        label_weight: float | None,
        gradient: bool,
    ) -> Rows: ...


def eager_sparse_rows(
    student: Tensor,
    teacher: SparseTeacher,
    target: Tensor | None,
    keep: Tensor | None,
    *,
    temperature: float,
    label_weight: float | None,
    gradient: bool,
) -> Rows:
    """In PyTorch operations, on any device."""
    dtype = compute_dtype(student)
    target = None if target is None else labels_that_count(target, keep)
    indices = teacher.indices.long()
    if keep is not None:  # whatever stands in the other rows
        indices = torch.where(keep.unsqueeze(-1), indices, torch.arange(indices.shape[-1], device=indices.device))
    kept = SparseTeacher(
        teacher.values.to(dtype),
        indices,
        teacher.rest.to(dtype),
        None if teacher.label_logit is None else teacher.label_logit.to(dtype),
    )
    choices, left_out = sparse_choices(kept, target, student.shape[-1], temperature, label_weight)
    loss, slope = choice_likelihood(student.to(dtype), choices, gradient)
    if keep is not None:
        loss, left_out = torch.where(keep, loss, 0.0), torch.where(keep, left_out, 0.0)
        slope = None if slope is None else torch.where(keep.unsqueeze(-1), slope, 0.0)
    return Rows(loss, None if slope is None else slope.to(student.dtype), left_out)


def flat(teacher: SparseTeacher) -> SparseTeacher:
    """Its rows in one dimension, and no gradient."""
    values, indices, rest, label_logit = teacher
    k = values.shape[-1]
    return SparseTeacher(
        values.detach().reshape(-1, k),
        indices.reshape(-1, k),
        rest.detach().reshape(-1),
        None if label_logit is None else label_logit.detach().reshape(-1),
    )


def sparse_pld(
    student: Tensor,
    teacher: SparseTeacher,
    target: Tensor | None = None,
    *,
    temperature: float = 1.0,
    label_weight: float | None = None,
    return_left_out: bool = False,
    mask: Tensor | None = None,
    num_items: float | Tensor | None = None,
    ignore_index: int = -100,
    reduction: Reduction = "mean",
    impl: SparseRowsFunction = eager_sparse_rows,
) -> Tensor | tuple[Tensor, Tensor]:
    classes = student.shape[-1]
    shape = student.shape[:-1]
    s = student.reshape(-1, classes)
    keep = rows_that_count(target, mask, ignore_index)
    flat_keep = None if keep is None else keep.reshape(-1)
    y = None if target is None else target.reshape(-1)
    gradient = wants_gradient(student)
    with torch.no_grad():
        rows = impl(
            s.detach(),
            flat(teacher),
            y,
            flat_keep,
            temperature=temperature,
            label_weight=None if y is None else label_weight,
            gradient=gradient,
        )
    value = rows.loss if rows.gradient is None else attach_gradient(s, rows.loss, rows.gradient)
    result = reduce_rows(value.reshape(shape), keep, reduction, num_items)
    return (result, rows.left_out.reshape(shape)) if return_left_out else result
