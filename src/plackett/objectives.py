"""A weighted sum of losses built from a mapping, with every term reported by name.

>>> import torch
>>> objective = Objective({"ce": 0.1, "kd": {"weight": 0.9, "temperature": 2.0}})
>>> student, teacher = torch.tensor([[2.0, 1.0, 0.0]]), torch.tensor([[3.0, 1.0, 2.0]])
>>> total, terms = objective(student, teacher, torch.tensor([0]))
>>> round(total.item(), 4), {name: round(value.item(), 4) for name, value in terms.items()}
(0.2583, {'ce': 0.4076, 'kd': 0.2417})
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor, nn

from plackett import checks, losses, modules
from plackett.errors import InputError, did_you_mean
from plackett.losses import registry
from plackett.losses.registry import Loss
from plackett.losses.rows import is_number, rows_that_count, rows_with_label
from plackett.losses.standardize import standardize
from plackett.tracing import may_look

# What a term may say besides its loss's own options.
_OWN_KEYS = ("loss", "weight", "warmup_epochs", "standardize", "taps")
_STANDARDIZE = ("student", "teacher", "both")

_UNLABELLED = ("ignore", "teacher")

Features = Mapping[str, Tensor] | Sequence[Tensor] | Tensor


class Part(NamedTuple):
    """One term of an objective: before its weight, and as it is added up."""

    value: Tensor
    weighted: Tensor


class Outcome(NamedTuple):
    """What an objective returns: the weighted `total` to differentiate, and each term before its weight."""

    total: Tensor
    terms: dict[str, Tensor]


@dataclass(frozen=True)
class _Term:
    loss: Loss
    weight: float
    warmup_epochs: float
    standardize: str | None
    taps: tuple[str, ...]


class Objective(nn.Module):
    """A weighted sum of losses.

    Args:
        terms: name -> weight, or name -> `{"weight": w, ...options of the loss}`. Besides the loss's own options a term
            takes `warmup_epochs` (its weight grows linearly to w over so many epochs, as DKD was published),
            `standardize` ("student", "teacher" or "both": z-score those logits first), `taps` (which named features a
            feature loss reads, in order; all by default) and `loss` (where the term's name is not the loss's).
        ignore_index: label of rows of which none is known; in a soft target those are rows of zeros.
        unlabelled: what they count in. "ignore": in no term, as padding. "teacher": in every term that can do without a
            label: KD, DIST and the like, and feature losses, as any other row; PLD and ListMLE in the teacher's own
            order (`target=None`), as part of one mean over all rows. CE and DKD stay means over the labelled rows.

    A FitNet or VID term has parameters of its own: give the optimiser `objective.parameters()` too.
    """

    def __init__(
        self,
        terms: Mapping[str, float | Mapping[str, Any]],
        *,
        ignore_index: int = -100,
        unlabelled: Literal["ignore", "teacher"] = "ignore",
    ) -> None:
        super().__init__()
        if not isinstance(terms, Mapping) or not terms:
            raise InputError('An objective needs at least one term, e.g. Objective({"pld": 1.0}).')
        if unlabelled not in _UNLABELLED:
            raise InputError(
                f"An objective cannot take unlabelled rows as {unlabelled!r}; {did_you_mean(unlabelled, _UNLABELLED)}."
            )
        checks.number("objective", "ignore_index", ignore_index, int)
        self.ignore_index, self.unlabelled = ignore_index, unlabelled
        self._terms: dict[str, _Term] = {}
        self.losses = nn.ModuleDict()
        self._without_label = nn.ModuleDict()
        for name, given in terms.items():
            self._terms[name], options = _parse(name, given)
            entry = self._terms[name].loss
            if "ignore_index" in entry.options:
                options.setdefault("ignore_index", ignore_index)
            self.losses[name] = modules.create(entry.name, **options)
            if unlabelled == "teacher" and "target" in entry.optional:
                # There is no label's own choice to be raised.
                options.pop("label_weight", None)
                self._without_label[name] = modules.create(entry.name, **options)
        # On the device, so that a schedule reaches a captured graph; not saved: `set_epoch` restores it.
        self.register_buffer("warmup", torch.ones(len(self._terms)), persistent=False)
        self.warmup: Tensor
        self.set_epoch(0)

    @property
    def reads_teacher(self) -> bool:
        return any(term.loss.reads_teacher for term in self._terms.values())

    @property
    def reads_teacher_logits(self) -> bool:
        return any(term.loss.reads_teacher and not term.loss.features for term in self._terms.values())

    @property
    def reads_features(self) -> bool:
        return any(term.loss.features for term in self._terms.values())

    @property
    def taps(self) -> tuple[str, ...]:
        """Every feature named by a term, once."""
        return tuple(dict.fromkeys(tap for term in self._terms.values() for tap in term.taps))

    def set_epoch(self, epoch: float) -> None:
        """Tells scheduled weights which epoch begins, counted from 0."""
        checks.number("objective", "epoch", epoch, float)
        for i, term in enumerate(self._terms.values()):
            if term.warmup_epochs:
                self.warmup[i].fill_(min(1.0, max(0.0, epoch + 1) / term.warmup_epochs))

    def forward(
        self,
        student: Tensor,
        teacher: Tensor | None = None,
        target: Tensor | None = None,
        *,
        student_features: Features | None = None,
        teacher_features: Features | None = None,
        mask: Tensor | None = None,
        num_items: float | Tensor | None = None,
    ) -> Outcome:
        """The total and every term, of logits `[..., C]` and, where a term reads them, features."""
        parts = self.parts(
            student,
            teacher,
            target,
            student_features=student_features,
            teacher_features=teacher_features,
            mask=mask,
            num_items=num_items,
        )
        first, *others = (part.weighted for part in parts.values())
        for other in others:
            first = first + other
        return Outcome(first, {name: part.value.detach() for name, part in parts.items()})

    def parts(
        self,
        student: Tensor,
        teacher: Tensor | None = None,
        target: Tensor | None = None,
        *,
        student_features: Features | None = None,
        teacher_features: Features | None = None,
        mask: Tensor | None = None,
        num_items: float | Tensor | None = None,
    ) -> dict[str, Part]:
        """As `forward`, term by term, each with its graph."""
        checks.is_tensor("objective", "student", student)
        for which, given in (("teacher", teacher), ("target", target), ("mask", mask)):
            if given is not None:
                checks.is_tensor("objective", which, given)
        if teacher is not None and self.reads_teacher_logits:
            checks.same_logits("objective", student, teacher)
        checks.row_mask("objective", student, mask)
        if target is not None:
            checks.fitting_target("objective", student, target)
        counts = mask if self.unlabelled == "teacher" else rows_that_count(target, mask, self.ignore_index)
        parts: dict[str, Part] = {}
        for i, (name, term) in enumerate(self._terms.items()):
            if term.loss.features:
                pair = _features(name, term, student_features, teacher_features)
                tensors: dict[str, Any] = dict(zip(("student", "teacher"), pair, strict=True))
                rows = counts if counts is not None and counts.dim() == 1 else None
                value = self.losses[name](**tensors, mask=rows, num_items=num_items)
            else:
                logits = _standardized(term, student, teacher)
                tensors = {n: v for n, v in {**logits, "target": target}.items() if n in term.loss.tensors}
                # A loss that reads the target finds the ignored rows in it; one that does not is told.
                rows = mask if term.loss.reads_target else counts
                value = self._value(name, tensors, rows, num_items)
            weighted = value * term.weight
            if term.warmup_epochs:
                weighted = weighted * self.warmup[i]
            parts[name] = Part(value, weighted)
        return parts

    def _value(
        self, name: str, tensors: dict[str, Any], mask: Tensor | None, num_items: float | Tensor | None
    ) -> Tensor:
        loss, target = self.losses[name], tensors.get("target")
        result: Tensor
        if self.unlabelled == "ignore" or target is None:
            result = loss(**tensors, mask=mask, num_items=num_items)
            return result
        known = rows_with_label(target, self.ignore_index)
        if target.is_floating_point():
            if name in self._without_label:
                # A uniform target says nothing of the label, and is charged in the teacher's own order.
                tensors["target"] = torch.where(known.unsqueeze(-1), target, 1 / target.shape[-1])
            else:
                mask = known if mask is None else mask & known
        elif name in self._without_label and not (may_look(known) and bool(known.all())):
            if num_items is None:
                num_items = known.numel() if mask is None else mask.sum().clamp_min(1)
            unknown = ~known if mask is None else mask & ~known
            own_order = self._without_label[name](**{**tensors, "target": None}, mask=unknown, num_items=num_items)
            result = loss(**tensors, mask=mask, num_items=num_items) + own_order
            return result
        result = loss(**tensors, mask=mask, num_items=num_items)
        return result

    def extra_repr(self) -> str:
        shown = [f"{n}: {t.weight:g}" + (f" after {t.warmup_epochs:g} epochs" if t.warmup_epochs else "")
                 for n, t in self._terms.items()]  # fmt: skip
        return "weights: " + ", ".join(shown)


def _parse(name: str, given: float | Mapping[str, Any]) -> tuple[_Term, dict[str, Any]]:
    if not isinstance(name, str) or not name.isidentifier() or hasattr(nn.ModuleDict(), name):
        raise InputError(
            f"Objective term {name!r} needs another name: a word of letters, digits and _, like 'kd_soft'."
        )
    said: dict[str, Any] = dict(given) if isinstance(given, Mapping) else {"weight": given}
    own: dict[str, Any] = {key: said.pop(key) for key in _OWN_KEYS if key in said}
    loss_name = own.get("loss", name)
    if "loss" not in own and name not in losses.names() and name != "cross_entropy":
        raise InputError(
            f"Objective term {name!r} is not the name of a loss; {did_you_mean(name, losses.names())}. "
            "For a name of your own add 'loss'."
        )
    entry = registry.get(loss_name)
    known = [*entry.options, *_OWN_KEYS]
    for key in said:
        if key not in entry.options:
            raise InputError(f"Objective term {name!r} has no option {key!r}; {did_you_mean(key, known)}.")
    for key, allowed in (("reduction", ("mean", "sum")), ("return_left_out", (False,))):
        if said.get(key, allowed[0]) not in allowed:
            raise InputError(f"Objective term {name!r}: {key}={said[key]!r} does not give one number to add up.")
    weight = _number(name, "weight", own.get("weight", 1.0))
    warmup = _number(name, "warmup_epochs", own.get("warmup_epochs", 0))
    if warmup < 0:
        raise InputError(f"Objective term {name!r}: warmup_epochs must be at least 0, not {warmup:g}.")
    which = own.get("standardize")
    if which is not None and entry.features:
        raise InputError(f"Objective term {name!r} reads features, not logits; take 'standardize' away.")
    if which is not None and which not in _STANDARDIZE:
        raise InputError(
            f"Objective term {name!r}: unknown standardize {which!r}; {did_you_mean(which, _STANDARDIZE)}."
        )
    taps = own.get("taps", ())
    if taps and not entry.features:
        raise InputError(f"Objective term {name!r} reads logits, not features; take 'taps' away.")
    taps = (taps,) if isinstance(taps, str) else taps
    if not isinstance(taps, Sequence) or not all(isinstance(tap, str) for tap in taps):
        raise InputError(f"Objective term {name!r}: taps must be a list of features' names, not {taps!r}.")
    return _Term(entry, weight, warmup, which, tuple(taps)), said


def _number(name: str, key: str, value: Any) -> float:
    if not is_number(value):
        raise InputError(f"Objective term {name!r}: {key} must be a finite number, not {value!r}.")
    return float(value)


def _standardized(term: _Term, student: Tensor, teacher: Tensor | None) -> dict[str, Tensor | None]:
    if term.standardize in ("student", "both"):
        student = standardize(student, offered=None if teacher is None else teacher != -torch.inf)
    if term.standardize in ("teacher", "both") and teacher is not None:
        teacher = standardize(teacher)
    return {"student": student, "teacher": teacher}


def _features(name: str, term: _Term, student: Features | None, teacher: Features | None) -> tuple[Any, Any]:
    if student is None or teacher is None:
        raise InputError(
            f"Objective term {name!r} reads features; call the objective with student_features and teacher_features."
        )
    # By name also where the two mappings are in another order.
    wanted = term.taps or (tuple(student) if isinstance(student, Mapping) else ())
    if not term.taps and isinstance(student, Mapping) and isinstance(teacher, Mapping):
        for tap in teacher:
            if tap not in student:
                raise InputError(
                    f"Objective term {name!r}: teacher_features has {tap!r}, which student_features has not; say with "
                    "'taps' which features are compared."
                )
    first = _pick(name, term, wanted, "student_features", student)
    return first, _pick(name, term, wanted, "teacher_features", teacher)


def _pick(name: str, term: _Term, wanted: tuple[str, ...], which: str, features: Features) -> Any:
    if not isinstance(features, Mapping):
        if term.taps:
            raise InputError(
                f"Objective term {name!r} names its taps, so {which} must be a mapping from name to feature."
            )
        return features
    wanted = wanted or tuple(features)
    for tap in wanted:
        if tap not in features:
            raise InputError(f"Objective term {name!r}: {which} has no {tap!r}; {did_you_mean(tap, features)}.")
    return [features[tap] for tap in wanted]
