"""What is noticed of every student after an epoch, on the last batch and on the pictures that it is watched on.

The share of a term j in what moves the student is |grad w_j L_j| / sum over i of |grad w_i L_i|, norms over all of the
student's weights, on the last batch, in evaluation mode so that looking changes nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from plackett.data import Batch
from plackett.evaluation import accuracy, agreement
from plackett.experiments.sentences import OF_THE_GAP
from plackett.teachers import SeeingTeacher, Signals, first_choice_weight
from plackett.training import Cohort, EpochReport, Student

NOTHING = 1e-6  # a share of the gradient that changes nothing in single precision


class Monitor:
    """Told of every epoch that is tested; says each thing that is odd once, to `warn`.

    Args:
        cohort: the students.
        teacher: who must not move.
        temperatures: by student, where PLD reads the teacher.
        targets: of the pictures that students are watched on.
        said: what the teacher says of these.
        warn: told in sentences.
    """

    def __init__(
        self,
        cohort: Cohort,
        teacher: SeeingTeacher | None,
        temperatures: Mapping[str, float],
        targets: Tensor,
        said: Tensor | None,
        warn: Callable[[str], None],
    ) -> None:
        self.cohort, self.teacher, self.temperatures = cohort, teacher, temperatures
        self.targets, self.said, self._warn = targets, said, warn
        self._told: set[str] = set()
        self._first = True

    def __call__(self, report: EpochReport, logits: Mapping[str, Tensor]) -> dict[str, dict[str, Any]]:
        found: dict[str, dict[str, Any]] = {}
        for student in self.cohort.going():
            name = student.name
            found[name] = {"gradient_share": self._shares(student)}
            if self.said is not None:
                found[name]["agreement"] = agreement(logits[name], self.said)
            weight = self._first_choice(student)
            if weight is not None:
                found[name]["first_choice_weight"] = weight
            self._look(student, report, found[name]["gradient_share"], accuracy(logits[name], self.targets))
        if self.teacher is not None and (moved := self.teacher.moved()):
            self._once(
                f"The teacher has changed while it taught ({len(moved)} tensors, such as {moved[0]}): it is no longer "
                "the network that was checked. Whatever else runs in this process must leave it alone."
            )
        self._first = False
        return found

    def _shares(self, student: Student) -> dict[str, float]:
        if len(student.objective.losses) < 2 or self.cohort.seen is None:
            return dict.fromkeys(student.objective.losses, 1.0)
        batch, signals = self.cohort.seen
        norms = _norms(student, batch, signals, self.cohort)
        whole = sum(norms.values())
        if not math.isfinite(whole):
            return {}
        return {name: norm / whole if whole > 0 else 0.0 for name, norm in norms.items()}

    def _first_choice(self, student: Student) -> float | None:
        tau, seen = self.temperatures.get(student.name), self.cohort.seen
        if tau is None or seen is None or seen[1] is None:
            return None
        batch, logits = seen[0], seen[1].logits
        if batch.targets.is_floating_point():
            known = batch.targets.sum(-1) > 0
            return (batch.targets * (logits / tau).softmax(-1)).sum(-1)[known].mean().item() if known.any() else None
        known = batch.targets >= 0
        if not known.any():
            return None
        return first_choice_weight(logits[known], batch.targets[known], [tau])[tau]

    def _look(self, student: Student, report: EpochReport, shares: Mapping[str, float], right: float) -> None:
        name, epoch = student.name, report.epoch + 1
        terms = report.metrics[name].terms
        if not shares:
            self._once(
                f"{name}: the shares of its terms in the gradient are not known after epoch {epoch}, for on the last "
                "batch one is not finite: lower the learning rate, or take precision=float32."
            )
        for term in student.objective.losses:
            share = shares.get(term, 1.0)
            if terms.get(term) == 0:
                self._once(
                    f"{name}: its term {term!r} is exactly 0 after epoch {epoch}, so that it teaches nothing: look at "
                    "its options, and whether it is given what it reads."
                )
            elif len(shares) > 1 and share < NOTHING:
                self._once(
                    f"{name}: its term {term!r} has no part in the gradient after epoch {epoch} ({share:.1g} of it): "
                    "raise its weight, or leave it out."
                )
        if self._first:
            classes, n = len(self.cohort.batches.pictures.classes), len(self.targets)
            chance = 1 / classes
            error = math.sqrt(chance * (1 - chance) / n)
            if right <= chance + max(2 * error, OF_THE_GAP / 10 * (1 - chance)):
                self._once(
                    f"{name}: after epoch {epoch} it is right on {100 * right:.1f} % of {n:,} pictures, where guessing "
                    f"is on {100 * chance:.1f} %. If that stays so, lower the learning rate (or warm up longer), and "
                    "look at some training pictures and their labels."
                )

    def _once(self, sentence: str) -> None:
        mark = sentence.partition("after epoch")[0]
        if mark not in self._told:
            self._told.add(mark)
            self._warn(sentence)


def _norms(student: Student, batch: Batch, signals: Signals | None, cohort: Cohort) -> dict[str, float]:
    """Of each weighted term's gradient in the student's weights."""
    model, taps = student.model, student.taps
    training = model.training
    model.eval()
    try:
        with cohort.mode.precision(batch.inputs.device):
            said = model(batch.inputs, taps=taps) if taps else model(batch.inputs)
        logits, features = said if taps else (said, None)
        theirs = None if signals is None or signals.features is None else signals.features
        parts = student.objective.parts(
            logits,
            None if signals is None else signals.logits,
            batch.targets,
            student_features=features,
            teacher_features=None if theirs is None or not taps else {tap: theirs[tap] for tap in taps},
        )
        weights = [p for p in model.parameters() if p.requires_grad]
        return {name: _norm(part.weighted, weights) for name, part in parts.items()}
    finally:
        model.train(training)


def _norm(loss: Tensor, weights: list[torch.nn.Parameter]) -> float:
    if not loss.requires_grad:
        return 0.0
    gradients = torch.autograd.grad(loss, weights, retain_graph=True, allow_unused=True)
    squares = [gradient.float().square().sum() for gradient in gradients if gradient is not None]
    return math.sqrt(torch.stack(squares).sum().item()) if squares else 0.0
