"""The eager engine: every student takes a step on each batch, after one pass of the teacher over it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor

from plackett.data import Batch, Batches
from plackett.errors import InputError
from plackett.teachers import Signals, Teacher
from plackett.training.student import Metrics, Student


@dataclass(frozen=True)
class EpochReport:
    """What a cohort's callback is told after every epoch, counted from 0; a stopped student has no metrics."""

    epoch: int
    epochs: int
    metrics: dict[str, Metrics]


class Cohort:
    """Students that share a teacher and a stream of batches.

    Args:
        students: each with a name of its own.
        batches: the stream that all of them see.
        teacher: None where no objective reads one.
    """

    def __init__(self, students: Sequence[Student], batches: Batches, teacher: Teacher | None = None) -> None:
        names = [student.name for student in students]
        if not names or len(set(names)) < len(names):
            raise InputError(
                f"A cohort needs students with a name each, no name twice; got {', '.join(names) or 'none'}."
            )
        readers = [student.name for student in students if student.objective.reads_teacher]
        if teacher is None and readers:
            raise InputError(f"The objective of {readers[0]!r} reads a teacher, but the cohort has none.")
        classes = len(batches.pictures.classes)
        if teacher is not None and teacher.classes != classes:
            raise InputError(f"The teacher has {teacher.classes} classes, the data {classes}.")
        self.students, self.batches, self.teacher = list(students), batches, teacher

    def fit(self, epochs: int, on_epoch: Callable[[EpochReport], None] | None = None) -> None:
        """Trains all students. One whose loss is not finite stops (`student.stopped`), and the others go on."""
        for epoch in range(epochs):
            for student in self._going():
                with _random_numbers(student):
                    student.begin(epoch)
            for step, batch in enumerate(self.batches.epoch(epoch)):
                signals = None if self.teacher is None else self.teacher.signals(batch)
                for student in self._going():
                    self._step(student, batch, signals, epoch, step)
            for student in self._going():
                if not student.healthy():
                    student.stopped = (
                        f"Student {student.name!r} stopped after epoch {epoch + 1}: "
                        f"it has a weight that is not finite. {_ADVICE}"
                    )
            if on_epoch is not None:
                on_epoch(EpochReport(epoch, epochs, {s.name: s.metrics() for s in self._going()}))
            if not self._going():
                return

    def _going(self) -> list[Student]:
        return [student for student in self.students if student.stopped is None]

    def _step(self, student: Student, batch: Batch, signals: Signals | None, epoch: int, step: int) -> None:
        with _random_numbers(student):
            wrong = student.step(batch, signals)
        if wrong is not None:
            total = wrong.pop("loss")
            student.stopped = (
                f"Student {student.name!r} stopped in epoch {epoch + 1}, step {step + 1}: its loss is {total.item():g} "
                f"({_said(wrong)}). {_ADVICE}"
            )


_ADVICE = "Try a lower learning rate, or look at the term that is not finite."


def _said(terms: dict[str, Tensor]) -> str:
    return ", ".join(f"{name} {value.item():g}" for name, value in terms.items())


@contextmanager
def _random_numbers(student: Student) -> Iterator[None]:
    """Dropout and the like draw from the student's own random state, and leave the caller's as it was.

    The CPU's generator only: a cohort on another device is held to run-to-run noise, not to the bit.
    """
    outer = torch.get_rng_state()
    torch.set_rng_state(student.random_state)
    try:
        yield
    finally:
        student.random_state = torch.get_rng_state()
        torch.set_rng_state(outer)
