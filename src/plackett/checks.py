"""What a loss is given, checked before anything is computed: every mistake gets a sentence.

Shapes and dtypes are always checked. Values (labels out of range, soft targets that do not sum to 1, ...) need the
data: they are read in eager mode on the CPU, elsewhere only under `plackett.debug(True)`, because looking would make
the host wait for the device; while compiling they are skipped.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch
from torch import Tensor

from plackett.choice import WEIGHTS
from plackett.errors import InputError, did_you_mean
from plackett.losses.registry import Loss
from plackett.losses.rows import rows_that_count

_debug = False


class debug:
    """Turns checks that need the data on everywhere, or off again; also a context manager.

    >>> with debug(True):
    ...     pass
    """

    def __init__(self, on: bool = True) -> None:
        global _debug
        self._before, _debug = _debug, on

    def __enter__(self) -> None:
        return None

    def __exit__(self, *_: object) -> None:
        global _debug
        _debug = self._before


def values_are_read(tensor: Tensor) -> bool:
    """Whether a check may look at the data behind `tensor`."""
    return not torch.compiler.is_compiling() and (_debug or tensor.device.type == "cpu")


def call(entry: Loss, given: Mapping[str, Any], options: Mapping[str, Any]) -> None:
    """Checks one call of a loss. Feature losses look at their own lists, which have nothing to do with classes."""
    option_values(entry, options)
    if not entry.features:
        _logit_tensors(entry, given, options)


def _logit_tensors(entry: Loss, given: Mapping[str, Any], options: Mapping[str, Any]) -> None:
    who = entry.name
    for name in entry.tensors:
        value = given.get(name)
        if value is None and name not in entry.optional:
            raise InputError(f"{who} needs a {name}; it got none.")
        if value is not None and not isinstance(value, Tensor):
            raise InputError(f"{who}: {name} must be a tensor, not {type(value).__name__}.")
    student, teacher, target = given["student"], given.get("teacher"), given.get("target")
    _logits(who, "student", student)
    if teacher is not None:
        _same_logits(who, student, teacher)
    if target is not None:
        _target(entry, student, teacher, target, options)
    mask = options.get("mask")
    if mask is not None:
        if not isinstance(mask, Tensor) or mask.dtype != torch.bool:
            raise InputError(f"{who}: mask must be a bool tensor, True where a row counts; it is {_kind(mask)}.")
        if mask.shape != student.shape[:-1]:
            raise InputError(
                f"{who}: mask has shape {_shape(mask)}, but the student's rows are {_shape(student)[:-1]}; "
                "give one bool a row."
            )
    weights = options.get("weights")
    if isinstance(weights, Tensor) and weights.numel() != student.shape[-1]:
        raise InputError(
            f"{who}: weights has {weights.numel()} entries, but there are {student.shape[-1]} classes; give one a rank."
        )
    if teacher is not None and teacher.numel() and values_are_read(teacher):
        _offers_something(who, teacher, _rows_that_count(target, options))
    if target is None and options.get("label_weight") is not None:
        raise InputError(f"{who}: label_weight raises the label's own choice, so it needs a target; target is None.")


def option_values(entry: Loss, options: Mapping[str, Any]) -> None:
    """Checks options: those whose type lists their values, and those that mean the same in every loss, by name."""
    for name, value in options.items():
        if value is None:
            continue
        if name in entry.choices:
            _one_of(entry.name, name, value, entry.choices[name])
        elif name in _OPTION_CHECKS:
            _OPTION_CHECKS[name](entry.name, name, value)


def _logits(who: str, name: str, logits: Tensor) -> None:
    if not logits.is_floating_point():
        raise InputError(f"{who}: {name} logits must be floating point, not {logits.dtype}; give logits, not labels.")
    if logits.dim() == 0 or logits.shape[-1] == 0:
        raise InputError(f"{who}: {name} logits need at least one class in their last dimension, not {_shape(logits)}.")


def _same_logits(who: str, student: Tensor, teacher: Tensor) -> None:
    _logits(who, "teacher", teacher)
    if teacher.shape[-1] != student.shape[-1]:
        raise InputError(
            f"Teacher has {teacher.shape[-1]} classes, student {student.shape[-1]}. {who} compares them class by "
            "class: give both the same classes in the same order, with -inf in the teacher where it does not offer one."
        )
    if teacher.shape != student.shape:
        raise InputError(
            f"{who}: teacher logits have shape {_shape(teacher)}, student logits {_shape(student)}; "
            "they must be of the same batch."
        )
    if teacher.device != student.device:
        raise InputError(f"{who}: teacher logits are on {teacher.device}, the student's on {student.device}; move one.")


def _target(entry: Loss, student: Tensor, teacher: Tensor | None, target: Tensor, options: Mapping[str, Any]) -> None:
    who, classes = entry.name, student.shape[-1]
    if target.device != student.device:
        raise InputError(f"{who}: target is on {target.device}, student logits on {student.device}; move one.")
    if target.is_floating_point():
        if not entry.soft_targets:
            raise InputError(
                f"{who} takes integer labels only, not {target.dtype}: it splits the classes into the label and the "
                "rest, which a soft target does not say. Give labels, or use pld, cross_entropy or kd."
            )
        if target.shape != student.shape:
            raise InputError(
                f"{who}: a {target.dtype} target is a probability a class and must have the student's shape "
                f"{_shape(student)}, not {_shape(target)}; for labels use torch.int64."
            )
        if values_are_read(target):
            _soft_target(who, target, options)
        return
    if target.dtype in (torch.bool, torch.complex64, torch.complex128):
        raise InputError(f"{who}: target must hold integer labels or float probabilities, not {target.dtype}.")
    if target.shape != student.shape[:-1]:
        raise InputError(
            f"{who}: target has shape {_shape(target)}, but the student's logits {_shape(student)} need one label "
            f"a row, {_shape(student)[:-1]}."
        )
    if values_are_read(target) and target.numel():
        _labels(entry, classes, teacher, target, options)


def _labels(entry: Loss, classes: int, teacher: Tensor | None, target: Tensor, options: Mapping[str, Any]) -> None:
    who = entry.name
    ignore_index = options.get("ignore_index", -100)
    low, high = int(target.min()), int(target.max())
    if high >= classes or low < 0:
        wrong = (target != ignore_index) & ((target < 0) | (target >= classes))
        if options.get("mask") is not None:
            wrong = wrong & options["mask"]
        if wrong.any():
            where = [int(i) for i in wrong.nonzero()[0]]
            value = int(target[wrong][0])
            raise InputError(
                f"{who}: label {value} at {where} is out of range: the logits have {classes} classes, so labels go "
                f"from 0 to {classes - 1} (or {ignore_index}, which is ignored)."
            )
    if entry.picks_the_label and teacher is not None and options.get("label_weight") is None:
        _label_is_offered(entry, teacher, target, _rows_that_count(target, options))


def _rows_that_count(target: Tensor | None, options: Mapping[str, Any]) -> Tensor | None:
    return rows_that_count(target, options.get("mask"), options.get("ignore_index", -100))


def _label_is_offered(entry: Loss, teacher: Tensor, target: Tensor, counts: Tensor | None) -> None:
    counts = torch.ones_like(target, dtype=torch.bool) if counts is None else counts
    label = torch.where(counts, target, 0).long().unsqueeze(-1)
    missing = counts & (teacher.detach().gather(-1, label).squeeze(-1) == -torch.inf)
    if missing.any():
        where = [int(i) for i in missing.nonzero()[0]]
        use = "" if "label_weight" in entry.options else "use pld and "
        raise InputError(
            f"{entry.name}: the teacher does not offer label {int(target[missing][0])} (its logit at {where} is -inf), "
            f"so its weight for it is 0; {use}say what that pick is worth with label_weight, e.g. label_weight=1.0."
        )


def _offers_something(who: str, teacher: Tensor, counts: Tensor | None) -> None:
    empty = teacher.detach().amax(-1) == -torch.inf
    if counts is not None:
        empty = empty & counts
    if empty.any():
        where = [int(i) for i in empty.nonzero()[0]]
        raise InputError(f"{who}: the teacher offers no class in row {where} (all its logits are -inf); mask that row.")


def _soft_target(who: str, target: Tensor, options: Mapping[str, Any]) -> None:
    p = target.detach().float()
    if options.get("mask") is not None:
        p = p[options["mask"]]
    if p.numel() == 0:
        return
    if bool(p.amin() < 0):
        raise InputError(f"{who}: a soft target holds {float(p.amin()):g}; probabilities cannot be negative.")
    total = p.sum(-1)
    worst = float(total[(total - 1).abs().argmax()])
    if abs(worst - 1) > 1e-2:
        raise InputError(f"{who}: a soft target's row sums to {worst:.4g}; probabilities sum to 1.")
    max_labels = options.get("max_labels")
    if max_labels is not None and max_labels < p.shape[-1]:
        shares = p - p.amin(-1, keepdim=True)
        beyond = float((shares.sum(-1) - shares.topk(max_labels, dim=-1).values.sum(-1)).max())
        if beyond > 1e-3:
            raise InputError(
                f"{who}: a soft target has {beyond:.3g} of its mass beyond its {max_labels} largest classes, which "
                "would go uncharged; raise max_labels."
            )


def _positive(who: str, name: str, value: Any) -> None:
    if isinstance(value, Tensor | bool) or not isinstance(value, int | float):
        raise InputError(f"{who}: {name} must be a number, not {_kind(value)}.")
    if not (value > 0 and math.isfinite(value)):
        raise InputError(f"{who}: {name} must be above 0 and finite, not {value}; 1 leaves the logits as they are.")


def _one_of(who: str, name: str, value: object, choices: Iterable[str]) -> None:
    choices = list(choices)
    if value not in choices:
        raise InputError(f"{who}: unknown {name} {value!r}; {did_you_mean(value, choices)}.")


def _weights(who: str, name: str, value: Any) -> None:
    if not isinstance(value, Tensor):
        _one_of(who, name, value, WEIGHTS)
    elif value.dim() != 1 or not value.is_floating_point():
        raise InputError(f"{who}: {name} must be one float weight a rank, [C], not {_kind(value)}.")
    elif values_are_read(value) and bool((value < 0).any()):
        raise InputError(f"{who}: {name} holds {float(value.min()):g}; with a negative weight the loss is not convex.")


def _label_weight(who: str, name: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not (value >= 0 and math.isfinite(value)):
        raise InputError(f"{who}: {name} must be a finite number, at least 0, or None; not {value!r}.")


def _count(who: str, name: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise InputError(f"{who}: {name} must be a whole number, at least 1; not {value!r}.")


def _num_items(who: str, name: str, value: Any) -> None:
    if not isinstance(value, Tensor) and not (isinstance(value, int | float) and value > 0):
        raise InputError(f"{who}: {name} must be above 0 (how many rows the loss is divided by); not {value!r}.")


def _share(who: str, name: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise InputError(f"{who}: {name} must be between 0 and 1; not {value!r}.")


_OPTION_CHECKS: dict[str, Callable[[str, str, Any], None]] = {
    "temperature": _positive,
    "weights": _weights,
    "label_weight": _label_weight,
    "top_k": _count,
    "max_labels": _count,
    "num_items": _num_items,
    "label_smoothing": _share,
}


def _shape(tensor: Tensor) -> list[int]:
    return list(tensor.shape)


def _kind(value: object) -> str:
    return f"{value.dtype} of shape {_shape(value)}" if isinstance(value, Tensor) else type(value).__name__
