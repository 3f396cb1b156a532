"""What the losses for vocabularies are given, checked as `checks` does for the others."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from plackett import checks
from plackett.choice.sparse import SparseTeacher
from plackett.errors import InputError
from plackett.losses.linear import LinearTeacher
from plackett.losses.rows import rows_that_count


def options(who: str, given: dict[str, Any], reduction: str, target: Tensor | bool | None) -> None:
    """Numbers by their kind and bounds, the reduction by name."""
    for name, value in given.items():
        if value is not None and not torch.compiler.is_compiling():
            checks.number(who, name, value, int if name in ("top_k", "chunk") else float)
    checks.one_of(who, "reduction", reduction, ("mean", "sum", "none"))
    if target is None and given.get("label_weight") is not None:
        raise InputError(f"{who}: label_weight raises the label's own choice, so it needs a target; target is None.")


def sparse_call(
    who: str, student: Any, teacher: Any, target: Tensor | None, mask: Tensor | None, ignore_index: int
) -> None:
    checks.is_tensor(who, "student", student)
    checks.float_logits(who, "student", student)
    if not isinstance(teacher, SparseTeacher):
        raise InputError(
            f"{who}: teacher must be a SparseTeacher, not {type(teacher).__name__}; "
            "make one of logits with SparseTeacher.of(logits, target, k), or call pld."
        )
    checks.row_mask(who, student, mask)
    _labels(who, student.shape[:-1], student.shape[-1], target, mask, ignore_index, student.device)
    _sparse(who, student.shape[:-1], student.shape[-1], teacher, target, mask, ignore_index, student.device)


def linear_call(
    who: str,
    hidden: Any,
    weight: Any,
    bias: Any,
    teacher: Any,
    target: Tensor | None,
    mask: Tensor | None,
    ignore_index: int,
    top_k: int | None,
) -> None:
    _layer(who, "", hidden, weight, bias)
    rows, classes = hidden.shape[:-1], weight.shape[0]
    checks.row_mask(who, hidden, mask)
    _labels(who, rows, classes, target, mask, ignore_index, hidden.device)
    if isinstance(teacher, SparseTeacher):
        if top_k is not None:
            raise InputError(f"{who}: a sparse teacher has its own K, {teacher.values.shape[-1]}; leave out top_k.")
        _sparse(who, rows, classes, teacher, target, mask, ignore_index, hidden.device)
        return
    if isinstance(teacher, LinearTeacher):
        _layer(who, "teacher ", teacher.hidden, teacher.weight, teacher.bias)
        found = [*teacher.hidden.shape[:-1], teacher.weight.shape[0]]
        device = teacher.hidden.device
    else:
        checks.is_tensor(who, "teacher", teacher)
        checks.float_logits(who, "teacher", teacher)
        found, device = shape_of(teacher), teacher.device
    if found != [*rows, classes]:
        raise InputError(
            f"{who}: the teacher's logits are {found}, the student's {[*rows, classes]}; "
            "they must be of the same tokens and the same vocabulary."
        )
    if device != hidden.device:
        raise InputError(f"{who}: the teacher is on {device}, the student on {hidden.device}; move one.")


def _layer(who: str, whose: str, hidden: Any, weight: Any, bias: Any) -> None:
    checks.is_tensor(who, f"{whose}hidden", hidden)
    checks.is_tensor(who, f"{whose}weight", weight)
    if weight.dim() != 2 or hidden.dim() == 0 or hidden.shape[-1] != weight.shape[-1]:
        raise InputError(
            f"{who}: {whose}hidden is {shape_of(hidden)} and {whose}weight {shape_of(weight)}; "
            "give [..., D] and [V, D], as nn.Linear keeps them."
        )
    if bias is not None and (not isinstance(bias, Tensor) or shape_of(bias) != [weight.shape[0]]):
        said = shape_of(bias) if isinstance(bias, Tensor) else type(bias).__name__
        raise InputError(f"{who}: {whose}bias is {said}; give one number a class, [{weight.shape[0]}].")
    cast = torch.is_autocast_enabled(hidden.device.type) and hidden.is_floating_point()
    if not cast and (not hidden.is_floating_point() or hidden.dtype != weight.dtype):
        raise InputError(
            f"{who}: {whose}hidden is {hidden.dtype}, {whose}weight {weight.dtype}; give both in one float dtype, "
            "or call it under torch.autocast."
        )


def _labels(
    who: str,
    rows: torch.Size,
    classes: int,
    target: Any,
    mask: Tensor | None,
    ignore_index: int,
    device: torch.device,
) -> None:
    if target is None:
        return
    checks.is_tensor(who, "target", target)
    if target.is_floating_point() or target.dtype == torch.bool:
        raise InputError(f"{who} takes integer labels, not {target.dtype}; for soft targets use pld.")
    if target.shape != rows:
        raise InputError(f"{who}: target has shape {shape_of(target)}, but needs one label a row, {list(rows)}.")
    if target.device != device:
        raise InputError(f"{who}: target is on {target.device}, the student on {device}; move one.")
    if checks.values_are_read(target) and target.numel():
        wrong = (target.long() < 0) | (target.long() >= classes)
        counts = rows_that_count(target, mask, ignore_index)
        wrong = wrong if counts is None else wrong & counts
        if wrong.any():
            where = [int(i) for i in wrong.nonzero()[0]]
            raise InputError(
                f"{who}: label {int(target[wrong][0])} at {where} is out of range: there are {classes} classes, so "
                f"labels go from 0 to {classes - 1} (or {ignore_index}, which is ignored)."
            )


def _sparse(
    who: str,
    rows: torch.Size,
    classes: int,
    teacher: SparseTeacher,
    target: Tensor | None,
    mask: Tensor | None,
    ignore_index: int,
    device: torch.device,
) -> None:
    values, indices, rest, label_logit = teacher
    for name, value in (("values", values), ("indices", indices), ("rest", rest)):
        checks.is_tensor(who, name, value)
    if values.shape[:-1] != rows or not 0 < values.shape[-1] <= classes:
        raise InputError(
            f"{who}: the teacher's values are {shape_of(values)}, the student's rows {list(rows)} of {classes} "
            "classes; give the first K of every row, [..., K]."
        )
    if indices.shape != values.shape or indices.is_floating_point():
        raise InputError(
            f"{who}: the teacher's indices are {shape_of(indices)} of {indices.dtype}; give one whole number a value, "
            f"{shape_of(values)}."
        )
    if rest.shape != rows:
        raise InputError(f"{who}: the teacher's rest is {shape_of(rest)}; give one number a row, {list(rows)}.")
    if target is not None and label_logit is None:
        raise InputError(
            f"{who}: there is a target, but the teacher has no label_logit; give its logit of every label, "
            f"{list(rows)}, since the label need not be among its K."
        )
    if label_logit is not None and label_logit.shape != rows:
        raise InputError(f"{who}: the teacher's label_logit is {shape_of(label_logit)}; give one a row, {list(rows)}.")
    if any(x is not None and x.device != device for x in teacher):
        raise InputError(f"{who}: the teacher is on {values.device}, the student on {device}; move one.")
    if not checks.values_are_read(indices) or not indices.numel():
        return
    counts = rows_that_count(target, mask, ignore_index)
    every = indices if counts is None else indices[counts]
    every = every.reshape(-1, indices.shape[-1]).long()
    if every.numel() and (int(every.min()) < 0 or int(every.max()) >= classes):
        wrong = int(every.max()) if int(every.max()) >= classes else int(every.min())
        raise InputError(f"{who}: the teacher's indices hold {wrong}, but classes go from 0 to {classes - 1}.")
    ordered = every.sort(-1).values
    if bool((ordered[:, 1:] == ordered[:, :-1]).any()):
        row = int((ordered[:, 1:] == ordered[:, :-1]).any(-1).nonzero()[0])
        raise InputError(f"{who}: the teacher's indices name a class twice, in counted row {row}; keep it once.")


def shape_of(tensor: Tensor) -> list[int]:
    return list(tensor.shape)
