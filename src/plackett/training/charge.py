"""One pass of a student over a batch, and what its objective makes of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from torch import Tensor

from plackett.data import Batch
from plackett.objectives import Outcome
from plackett.teachers import Signals
from plackett.training.mode import Mode


class Charged(NamedTuple):
    """The weighted total with its graph, every term without, and the logits."""

    total: Tensor
    terms: tuple[Tensor, ...]
    logits: Tensor


class Ways(NamedTuple):
    """How a student's network and its objective are called: as they are, or compiled.

    `leaves` are what gradients are taken for, in the place of the trained parameters: in half precision, some of them.
    """

    forward: Callable[..., Any]
    objective: Callable[..., Outcome]
    leaves: Sequence[Tensor] | None = None


def charge(
    objective: Callable[..., Outcome],
    batch: Batch,
    signals: Signals | None,
    mode: Mode,
    forward: Callable[..., Any],
    taps: tuple[str, ...],
) -> Charged:
    """`taps` are what the objective reads besides logits."""
    with mode.precision(batch.inputs.device):
        said = forward(batch.inputs, taps=taps) if taps else forward(batch.inputs)
    logits, features = said if taps else (said, None)
    teacher = None if signals is None else signals.logits
    theirs = None if signals is None else _only(signals.features, taps)
    outcome = objective(logits, teacher, batch.targets, student_features=features, teacher_features=theirs)
    return Charged(outcome.total, tuple(outcome.terms.values()), logits)


def _only(features: Mapping[str, Tensor] | None, taps: tuple[str, ...]) -> dict[str, Tensor] | None:
    return None if features is None or not taps else {tap: features[tap] for tap in taps if tap in features}
