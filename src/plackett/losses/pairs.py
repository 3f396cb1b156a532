"""What every feature loss is given: one feature or a list of them from each network, made comparable in one place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeGuard

import torch
import torch.nn.functional as F
from torch import Tensor

from plackett.errors import InputError
from plackett.losses.rows import compute_dtype

Features = Tensor | Sequence[Tensor]

_POOLS: dict[int, Callable[[Tensor, Any], Tensor]] = {
    1: F.adaptive_avg_pool1d,
    2: F.adaptive_avg_pool2d,
    3: F.adaptive_avg_pool3d,
}


class Pair(NamedTuple):
    """The student's and the teacher's feature of one layer, `[N, C, ...]`, float32 or float64, teacher detached."""

    student: Tensor
    teacher: Tensor


class Pairs(NamedTuple):
    """All layers of a call; `keep` `[N]` says which rows count, None where all do. Rows that do not count are 0."""

    layers: list[Pair]
    keep: Tensor | None
    rows: int | Tensor


def pair_up(who: str, student: Features, teacher: Features, mask: Tensor | None = None) -> Pairs:
    """Checks and matches what a feature loss is given; shapes only, so it never waits for a device.

    >>> pair_up("sp", torch.zeros(2, 3), [torch.zeros(2, 5), torch.zeros(2, 7)])
    Traceback (most recent call last):
    plackett.errors.InputError: sp: the student gives 1 feature, the teacher 2; give as many of each, layer by layer.
    """
    students, teachers = _listed(who, "student", student), _listed(who, "teacher", teacher)
    if len(students) != len(teachers):
        plural = "" if len(students) == 1 else "s"
        raise InputError(
            f"{who}: the student gives {len(students)} feature{plural}, the teacher {len(teachers)}; "
            "give as many of each, layer by layer."
        )
    batch = students[0].shape[0]
    for i, (s, t) in enumerate(zip(students, teachers, strict=True)):
        for name, x in (("student", s), ("teacher", t)):
            if x.shape[0] != batch:
                raise InputError(
                    f"{who}: the {name}'s feature {i} has {x.shape[0]} rows, {list(x.shape)}, but the student's first "
                    f"has {batch}; they must be of the same batch."
                )
            if x.device != students[0].device:
                raise InputError(f"{who}: the {name}'s feature {i} is on {x.device}, others on {students[0].device}.")
    if mask is not None and not isinstance(mask, Tensor):
        raise InputError(f"{who}: mask must be a bool tensor, one a row, not {_kind(mask)}.")
    if mask is not None and mask.device != students[0].device:
        raise InputError(f"{who}: mask is on {mask.device}, features on {students[0].device}; move one.")
    if mask is not None and (mask.dtype != torch.bool or mask.shape != (batch,)):
        raise InputError(
            f"{who}: mask must be one bool a row, [{batch}], True where it counts; it is {mask.dtype} of shape "
            f"{list(mask.shape)}."
        )
    layers = []
    for s, t in zip(students, teachers, strict=True):
        dtype = compute_dtype(s)
        layers.append(Pair(_keep(s.to(dtype), mask), _keep(t.detach().to(dtype), mask)))
    return Pairs(layers, mask, batch if mask is None else mask.sum())


def _listed(who: str, name: str, features: Features) -> list[Tensor]:
    if not isinstance(features, Tensor) and not _is_sequence(features):
        raise InputError(f"{who}: {name} features must be a tensor or a list of tensors, not {_kind(features)}.")
    listed = [features] if isinstance(features, Tensor) else list(features)
    if not listed:
        raise InputError(f"{who}: {name} features are an empty list; give at least one layer's.")
    for i, x in enumerate(listed):
        if not isinstance(x, Tensor):
            raise InputError(f"{who}: the {name}'s feature {i} must be a tensor, not {_kind(x)}.")
        if x.layout != torch.strided or x.is_nested:
            raise InputError(f"{who}: the {name}'s feature {i} must be a dense tensor; call to_dense() or pad it.")
        if x.dim() < 2 or not x.is_floating_point():
            raise InputError(
                f"{who}: the {name}'s feature {i} must be floats [N, C] or [N, C, ...], not {x.dtype} of shape "
                f"{list(x.shape)}."
            )
        if 0 in x.shape[1:]:
            raise InputError(f"{who}: the {name}'s feature {i} holds nothing to compare, {list(x.shape)}.")
    return listed


def _is_sequence(value: object) -> TypeGuard[Sequence[object]]:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _kind(value: object) -> str:
    return type(value).__name__


def _keep(x: Tensor, mask: Tensor | None) -> Tensor:
    return x if mask is None else torch.where(mask.view(-1, *[1] * (x.dim() - 1)), x, 0.0)


def same_space(who: str, layer: int, pair: Pair) -> Pair:
    """Pools the larger of two feature maps `[N, C, ...]` to the size of the smaller one, as published code does.

    >>> big, small = torch.zeros(1, 2, 8, 8), torch.zeros(1, 3, 4, 4)
    >>> [list(x.shape) for x in same_space("at", 0, Pair(big, small))]
    [[1, 2, 4, 4], [1, 3, 4, 4]]
    """
    s, t = pair
    of_student, of_teacher = s.shape[2:], t.shape[2:]
    if of_student == of_teacher:
        return pair
    comparable = len(of_student) == len(of_teacher) and len(of_student) in _POOLS
    if comparable and all(a >= b for a, b in zip(of_student, of_teacher, strict=True)):
        return Pair(_POOLS[len(of_teacher)](s, list(of_teacher)), t)
    if comparable and all(a <= b for a, b in zip(of_student, of_teacher, strict=True)):
        return Pair(s, _POOLS[len(of_student)](t, list(of_student)))
    raise InputError(
        f"{who}: feature {layer} has spatial size {list(of_student)} in the student and {list(of_teacher)} in the "
        "teacher; one must be at least as large as the other in every direction, so that it can be pooled."
    )


def unit(x: Tensor, eps: float = 0.0) -> Tensor:
    """x / (|x| + eps) along the last dimension; a zero vector stays zero and gets no gradient.

    (`F.normalize` divides a zero vector's gradient by 1e-12, and a bare norm makes it NaN.)

    >>> unit(torch.tensor([[3.0, 4.0], [0.0, 0.0]]))
    tensor([[0.6000, 0.8000],
            [0.0000, 0.0000]])
    """
    square = x.square().sum(-1, keepdim=True)
    zero = square == 0
    return torch.where(zero, 0.0, x / (torch.where(zero, 1.0, square).sqrt() + eps))
