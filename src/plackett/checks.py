"""What a loss is given, checked before anything is computed: every mistake gets a sentence.

Shapes and dtypes are always checked. Values (labels out of range, soft targets that do not sum to 1, ...) need the
data: they are read in eager mode on the CPU, elsewhere only under `plackett.debug(True)`, because looking would make
the host wait for the device; while compiling they are skipped.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch
from torch import Tensor

from plackett.choice import WEIGHTS
from plackett.errors import InputError, did_you_mean
from plackett.losses.registry import Loss, OptionType
from plackett.losses.rows import labels_that_count, rows_that_count
from plackett.tracing import has_numbers, may_look

_debug = False

# What a loss takes; PyTorch calls float8 floating point too, and computes nothing in it.
COMPUTABLE = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


class debug:
    """Turns checks that need the data on everywhere, or off again; also a context manager.

    >>> with debug(True):
    ...     pass
    """

    def __init__(self, on: bool = True) -> None:
        global _debug
        if not isinstance(on, bool):
            raise InputError(f"debug takes True or False, not {on!r}.")
        self._before, _debug = _debug, on

    def __enter__(self) -> None:
        return None

    def __exit__(self, *_: object) -> None:
        global _debug
        _debug = self._before


def values_are_read(*tensors: Tensor | None) -> bool:
    """Whether a check may look at the data behind all of `tensors`."""
    return all(tensor is None or may_look(tensor) or (_debug and has_numbers(tensor)) for tensor in tensors)


def call(entry: Loss, given: Mapping[str, Any], options: Mapping[str, Any]) -> None:
    """Checks one call of a loss. Feature losses look at their own lists, which have nothing to do with classes."""
    option_values(entry, options)
    for name in entry.tensors:
        if given.get(name) is None and name not in entry.optional:
            raise InputError(f"{entry.called} needs a {name}; it got none.")
    if not entry.features:
        _logit_tensors(entry, given, options)


def _logit_tensors(entry: Loss, given: Mapping[str, Any], options: Mapping[str, Any]) -> None:
    who = entry.called
    for name in entry.tensors:
        if given.get(name) is not None:
            is_tensor(who, name, given[name])
    student, teacher, target = given["student"], given.get("teacher"), given.get("target")
    float_logits(who, "student", student)
    if teacher is not None:
        same_logits(who, student, teacher)
    row_mask(who, student, options.get("mask"))
    if target is not None:
        _target(entry, student, teacher, target, options)
    weights = options.get("weights")
    if isinstance(weights, Tensor) and weights.numel() != student.shape[-1]:
        raise InputError(
            f"{who}: weights has {weights.numel()} entries, but there are {student.shape[-1]} classes; give one a rank."
        )
    if isinstance(weights, Tensor) and weights.is_meta and not student.is_meta:
        raise InputError(f"{who}: weights is on {weights.device}, student logits on {student.device}; move one.")
    if teacher is not None and teacher.numel() and values_are_read(teacher, target, options.get("mask")):
        _teacher_values(who, teacher, _rows_that_count(target, options))
    if target is None and options.get("label_weight") is not None:
        raise InputError(f"{who}: label_weight raises the label's own choice, so it needs a target; target is None.")


def is_tensor(who: str, name: str, value: object) -> None:
    if not isinstance(value, Tensor):
        raise InputError(f"{who}: {name} must be a tensor, not {type(value).__name__}.")
    if value.layout != torch.strided or value.is_nested:
        kind = "nested" if value.is_nested else str(value.layout).removeprefix("torch.")
        raise InputError(
            f"{who}: {name} must be a dense tensor, not a {kind} one; pad it and mask, or call to_dense()."
        )


def row_mask(who: str, student: Tensor, mask: Any) -> None:
    if mask is None:
        return
    if not isinstance(mask, Tensor) or mask.dtype != torch.bool:
        raise InputError(f"{who}: mask must be a bool tensor, True where a row counts; it is {_kind(mask)}.")
    if mask.shape != student.shape[:-1]:
        raise InputError(
            f"{who}: mask has shape {_shape(mask)}, but the student's rows are {_shape(student)[:-1]}; "
            "give one bool a row."
        )
    if mask.device != student.device:
        raise InputError(f"{who}: mask is on {mask.device}, student logits on {student.device}; move one.")


def option_values(entry: Loss, options: Mapping[str, Any]) -> None:
    """Checks options by what their annotation allows, and by name those that mean the same in every loss."""
    who = entry.called
    for name, value in options.items():
        allowed = entry.types.get(name, OptionType())
        if value is None:
            if name in entry.types and not allowed.optional:
                raise InputError(f"{who}: {name} cannot be None; leave it out for its default.")
        elif allowed.values:
            one_of(who, name, value, allowed.values)
        elif allowed.flag:
            flag(who, name, value)
        elif name == "weights":
            _weights(who, name, value)
        elif name == "impl":
            if not isinstance(value, str) and not callable(value):
                raise InputError(f"{who}: impl must be a name, not {_kind(value)}; see plackett.kernels.why.")
        elif not torch.compiler.is_compiling() and (name in _NUMBERS or allowed.number is not None):
            # A traced number is a symbol; what it stands for was checked when the module was made.
            number(who, name, value, allowed.number or float)


def flag(who: str, name: str, value: Any) -> None:
    if not isinstance(value, bool):
        raise InputError(f"{who}: {name} must be True or False, not {value!r}.")


def float_logits(who: str, name: str, logits: Tensor) -> None:
    if not logits.is_floating_point():
        raise InputError(f"{who}: {name} logits must be floating point, not {logits.dtype}; give logits, not labels.")
    if logits.dtype not in COMPUTABLE:
        raise InputError(f"{who}: {name} logits are {logits.dtype}, which holds too few digits to compute with; "
                         "convert them, e.g. with .bfloat16().")  # fmt: skip
    if logits.dim() == 0 or logits.shape[-1] == 0:
        raise InputError(f"{who}: {name} logits need at least one class in their last dimension, not {_shape(logits)}.")


def same_logits(who: str, student: Tensor, teacher: Tensor) -> None:
    float_logits(who, "teacher", teacher)
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
    who, classes, mask = entry.called, student.shape[-1], options.get("mask")
    if target.is_floating_point() and not entry.soft_targets:
        raise InputError(
            f"{who} takes integer labels only, not {target.dtype}: it splits the classes into the label and the "
            "rest, which a soft target does not say. Give labels, or use pld, cross_entropy or kd."
        )
    fitting_target(who, student, target)
    if target.is_floating_point():
        if values_are_read(target, mask):
            _soft_target(entry, teacher, target, options)
    elif values_are_read(target, mask) and target.numel():
        _labels(entry, classes, teacher, target, options)


def fitting_target(who: str, student: Tensor, target: Tensor) -> None:
    """A target of a kind and shape that goes with the student's logits, whatever stands in it."""
    if target.device != student.device:
        raise InputError(f"{who}: target is on {target.device}, student logits on {student.device}; move one.")
    if target.is_floating_point():
        if target.shape != student.shape:
            raise InputError(
                f"{who}: a {target.dtype} target is a probability a class and must have the student's shape "
                f"{_shape(student)}, not {_shape(target)}; for labels use torch.int64."
            )
        if target.dtype not in COMPUTABLE:
            raise InputError(
                f"{who}: a soft target must be float16, bfloat16, float32 or float64, not {target.dtype}; convert it."
            )
        return
    if target.dtype == torch.bool or target.is_complex():
        raise InputError(f"{who}: target must hold integer labels or float probabilities, not {target.dtype}.")
    if target.shape != student.shape[:-1]:
        raise InputError(
            f"{who}: target has shape {_shape(target)}, but the student's logits {_shape(student)} need one label "
            f"a row, {_shape(student)[:-1]}."
        )


def _labels(entry: Loss, classes: int, teacher: Tensor | None, target: Tensor, options: Mapping[str, Any]) -> None:
    who = entry.called
    ignore_index = options.get("ignore_index", -100)
    target = target.long()
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
    if (
        entry.picks_the_label
        and values_are_read(teacher)
        and teacher is not None
        and options.get("label_weight") is None
    ):
        _label_is_offered(entry, teacher, target, _rows_that_count(target, options))


def _rows_that_count(target: Tensor | None, options: Mapping[str, Any]) -> Tensor | None:
    return rows_that_count(target, options.get("mask"), options.get("ignore_index", -100))


def _label_is_offered(entry: Loss, teacher: Tensor, target: Tensor, counts: Tensor | None) -> None:
    label = labels_that_count(target, counts).unsqueeze(-1)
    missing = teacher.detach().gather(-1, label).squeeze(-1) == -torch.inf
    missing = missing if counts is None else missing & counts
    if missing.any():
        where = [int(i) for i in missing.nonzero()[0]]
        raise InputError(
            f"{entry.called}: the teacher does not offer label {int(target[missing][0])} (its logit at {where} is "
            f"-inf), so its weight for it is 0; {_use_label_weight(entry)}."
        )


def _teacher_values(who: str, teacher: Tensor, counts: Tensor | None) -> None:
    top = teacher.detach().amax(-1)
    if bool(top.isfinite().all()):
        return
    empty, broken = top == -torch.inf, ~(top < torch.inf)
    for rows, wrong in ((empty, "offers no class"), (broken, "has NaN or inf")):
        found = rows if counts is None else rows & counts
        if found.any():
            where = [int(i) for i in found.nonzero()[0]]
            what = "all its logits are -inf" if rows is empty else "its logits are not finite"
            raise InputError(f"{who}: the teacher {wrong} in row {where} ({what}); look at it, or mask that row.")


def _soft_target(entry: Loss, teacher: Tensor | None, target: Tensor, options: Mapping[str, Any]) -> None:
    who = entry.called
    p = target.detach().float()
    mask = options.get("mask")
    if mask is not None:
        p = p[mask]
    if p.numel() == 0:
        return
    if bool(p.isnan().any()):
        raise InputError(f"{who}: a soft target holds NaN; look at what made it, or mask that row.")
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
    if (
        entry.picks_the_label
        and teacher is not None
        and options.get("label_weight") is None
        and values_are_read(teacher)
    ):
        t = teacher.detach() if mask is None else teacher.detach()[mask]
        missing = (p - p.amin(-1, keepdim=True) > 1e-6) & (t == -torch.inf)
        if missing.any():
            where = [int(i) for i in missing.nonzero()[0]]
            raise InputError(
                f"{who}: a soft target gives class {where[-1]} a share, which the teacher does not offer (its logit is "
                f"-inf), so its weight for it is 0; {_use_label_weight(entry)}."
            )


def _use_label_weight(entry: Loss) -> str:
    use = "" if "label_weight" in entry.options else "use pld and "
    return f"{use}say what that pick is worth with label_weight, e.g. label_weight=1.0"


def _number(who: str, name: str, value: Any, kind: type) -> None:
    whole = kind is int
    expected = numbers.Integral if whole else numbers.Real
    if isinstance(value, bool) or not isinstance(value, expected):
        raise InputError(f"{who}: {name} must be a {'whole ' if whole else ''}number, not {_kind(value)}.")
    if not -math.inf < float(value) < math.inf and name != "temperature":
        raise InputError(f"{who}: {name} must be finite, not {value}.")


def number(who: str, name: str, value: Any, kind: type) -> None:
    """A number of its kind, within what an option of that name may be."""
    _number(who, name, value, kind)
    _NUMBERS.get(name, _anything)(who, name, value)


def _anything(who: str, name: str, value: Any) -> None:
    pass


def _positive(who: str, name: str, value: Any) -> None:
    if not 0 < value < math.inf:
        raise InputError(f"{who}: {name} must be above 0 and finite, not {value}; 1 leaves the logits as they are.")
    if not _LEAST <= value <= 1 / _LEAST:
        raise InputError(
            f"{who}: {name} must be from {_LEAST:g} to {1 / _LEAST:g}, whose squares float32 holds; not {value}."
        )


def _at_least_one(who: str, name: str, value: Any) -> None:
    if value < 1:
        raise InputError(f"{who}: {name} must be at least 1, not {value}.")


def _not_negative(who: str, name: str, value: Any) -> None:
    if value < 0:
        raise InputError(f"{who}: {name} must be at least 0, not {value}.")


def one_of(who: str, name: str, value: object, choices: Iterable[str]) -> None:
    choices = list(choices)
    if value not in choices:
        raise InputError(f"{who}: unknown {name} {value!r}; {did_you_mean(value, choices)}.")


def _weights(who: str, name: str, value: Any) -> None:
    if isinstance(value, str):
        one_of(who, name, value, WEIGHTS)
    elif not isinstance(value, Tensor) or value.dim() != 1 or not value.is_floating_point():
        raise InputError(f"{who}: {name} must be a name or one float weight a rank, a tensor [C], not {_kind(value)}.")
    elif value.requires_grad:
        raise InputError(f"{who}: {name} are constants here, and no gradient goes to them; give {name}.detach().")
    elif values_are_read(value) and not bool((value >= 0).all()):
        raise InputError(
            f"{who}: {name} holds {float(value.min()):g}; a weight is at least 0, or the loss is not convex."
        )
    elif values_are_read(value) and not bool((value < math.inf).all()):
        raise InputError(f"{who}: {name} holds inf; a weight must be finite.")


def _count(who: str, name: str, value: Any) -> None:
    if value < 1:
        raise InputError(f"{who}: {name} must be a whole number, at least 1; not {value!r}.")


def _share(who: str, name: str, value: Any) -> None:
    if not 0 <= value <= 1:
        raise InputError(f"{who}: {name} must be between 0 and 1; not {value!r}.")


_LEAST = 1e-18  # of a temperature

_NUMBERS: dict[str, Callable[[str, str, Any], None]] = {
    "temperature": _positive,
    "p": _at_least_one,
    "label_weight": _not_negative,
    "eps": _not_negative,
    "top_k": _count,
    "chunk": _count,
    "max_labels": _count,
    "label_smoothing": _share,
}


def _shape(tensor: Tensor) -> list[int]:
    return list(tensor.shape)


def _kind(value: object) -> str:
    return f"{value.dtype} of shape {_shape(value)}" if isinstance(value, Tensor) else type(value).__name__
