"""PLD by the fused kernels, as a registered operator, so that `torch.compile` keeps one graph around it."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from plackett.choice import After
from plackett.kernels.launch import launch_exact, launch_topk, reachable
from plackett.kernels.launch_after import launch_times, launch_total
from plackett.kernels.launch_long import launch_long
from plackett.losses.plackett_luce import Rows, eager_rows
from plackett.tracing import is_transformed

TAKEN = (torch.float32, torch.bfloat16, torch.float16)
_LABELS = (torch.int64, torch.int32)
ON_CHIP = 8192  # classes
LONGEST = 1 << 20
FEW = 256  # choices
_SELECTED = 2048  # up to so many classes, sorting them all costs less than finding the first few
_SHARE = 8  # and below so many classes a choice


def plan(classes: int, top_k: int | None) -> tuple[str, str]:
    """Which kernel takes rows of so many classes, and why."""
    if top_k is not None and top_k <= FEW and (classes > max(_SELECTED, _SHARE * top_k) or classes > ON_CHIP):
        return "topk", f"the first {top_k} of {classes} classes are selected, not sorted"
    if classes <= ON_CHIP:
        return "exact", f"a row of {classes} classes is sorted on chip, its loss and gradient written in one launch"
    if classes <= LONGEST:
        return "long", f"a row of {classes} classes is sorted in runs, then taken in parts that fit on chip"
    return "eager", (
        f"a row has {classes} classes, the kernels take at most {LONGEST}, so PyTorch operations compute it; "
        f"top_k up to {FEW} has a kernel at any size."
    )


Launch = Callable[..., tuple[Tensor, Tensor, Tensor]]
_AFTER = After(launch_times, launch_total)
LAUNCHES: dict[str, Launch] = {"exact": launch_exact, "topk": launch_topk, "long": launch_long}


@torch.library.custom_op("plackett::rows", mutates_args=())
def rows_op(
    student: Tensor,
    teacher: Tensor,
    target: Tensor | None,
    keep: Tensor | None,
    temperature: float,
    weights: str,
    rank_weights: Tensor | None,
    label_weight: float | None,
    kept: int,
    want_gradient: bool,
    kernel: str,
) -> tuple[Tensor, Tensor, Tensor]:
    """Loss, gradient (empty where not wanted) and the weight left out, of rows that a kernel can take."""
    return LAUNCHES[kernel](
        student, teacher, target, keep, temperature, weights, rank_weights, label_weight, kept, want_gradient
    )


@rows_op.register_fake
def _(
    student: Tensor,
    teacher: Tensor,
    target: Tensor | None,
    keep: Tensor | None,
    temperature: float,
    weights: str,
    rank_weights: Tensor | None,
    label_weight: float | None,
    kept: int,
    want_gradient: bool,
    kernel: str,
) -> tuple[Tensor, Tensor, Tensor]:
    loss = student.new_empty(student.shape[0], dtype=torch.float32)
    gradient = student.new_empty(student.shape if want_gradient else (0,))
    return loss, gradient, torch.empty_like(loss)


def fused_rows(
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
    """PLD in one launch; in PyTorch operations where `plan` finds no kernel for the rows, and under `torch.func`."""
    classes = student.shape[1]
    kernel, _ = plan(classes, top_k)
    tensors = (student, teacher, target, keep)
    if kernel == "eager" or any(x is not None and is_transformed(x) for x in tensors):
        return eager_rows(
            student,
            teacher,
            target,
            keep,
            temperature=temperature,
            weights=weights,
            label_weight=label_weight,
            top_k=top_k,
            gradient=gradient,
        )
    if teacher.dtype not in TAKEN:
        teacher = teacher.float()
    if target is not None and target.dtype not in _LABELS:
        target = target.long()
    student, teacher = reachable(student), reachable(teacher)
    name, given = (weights, None) if isinstance(weights, str) else ("given", weights.to(student.device).contiguous())
    kept = classes if top_k is None else min(top_k, classes)
    compiling = torch.compiler.is_compiling()
    if compiling:
        parts = rows_op(student, teacher, target, keep, temperature, name, given, label_weight, kept, gradient, kernel)
    else:  # the operator's own bookkeeping costs more than a small launch
        parts = LAUNCHES[kernel](student, teacher, target, keep, temperature, name, given, label_weight, kept, gradient)
    loss, slope, left_out = parts
    return Rows(loss, slope if gradient else None, left_out, None if compiling else _AFTER)
