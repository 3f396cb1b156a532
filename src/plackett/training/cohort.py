"""The engine: every student takes a step on each batch, after one pass of the teacher over it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

from plackett.data import Batch, Stream
from plackett.errors import InputError, PlackettError
from plackett.files import replacing
from plackett.teachers import LiveTeacher, Signals, Teacher
from plackett.training.ledger import DeviceLedger, Metrics, NotFinite
from plackett.training.mode import Mode
from plackett.training.processes import Processes
from plackett.training.spread import Spread
from plackett.training.student import Student


@dataclass(frozen=True)
class EpochReport:
    """What a cohort's callback is told after every epoch, counted from 0; a stopped student has no metrics."""

    epoch: int
    epochs: int
    metrics: dict[str, Metrics]


@dataclass(frozen=True)
class Problem:
    """A step that was not finite, and the batch on which it happened, made anew."""

    student: str
    epoch: int
    step: int
    found: NotFinite
    batch: Batch

    def save(self, folder: Path) -> Path:
        """Writes the batch into `folder`, to be looked at."""
        path = folder / f"not-finite-epoch-{self.epoch + 1}-step-{self.step + 1}.safetensors"
        held = {"inputs": self.batch.inputs, "targets": self.batch.targets, "indices": self.batch.indices}
        with replacing(path) as temporary:
            save_file({name: tensor.contiguous() for name, tensor in held.items()}, temporary)
        return path


class Cohort:
    """Students that share a teacher and a stream of batches.

    Args:
        students: each with a name of its own.
        batches: the stream that all of them see.
        teacher: None where no objective reads one.
        mode: how steps are carried out; eager float32 by default, which repeats to the bit on a CPU. Where torch's
            process group holds several processes, each takes a part of every batch.
        on_problem: told of a step that was not finite, with its batch; the student has stopped, the others go on.

    `seen` is a full batch of the epoch that went by, with what the teacher said of it; None inside a CUDA graph.
    """

    def __init__(
        self,
        students: Sequence[Student],
        batches: Stream,
        teacher: Teacher | None = None,
        *,
        mode: Mode | None = None,
        on_problem: Callable[[Problem], None] | None = None,
    ) -> None:
        _check(students, batches, teacher)
        self.students, self.batches, self.teacher = list(students), batches, teacher
        self.mode, self._on_problem = mode or Mode(), on_problem
        self._device = batches.pictures.device
        self.processes = Processes.here()
        self.mode.check(self._device, self.processes.world)
        self.processes.check(len(batches.pictures), batches.size, len(batches))
        if self.mode.graph and any(student.average is not None for student in self.students):
            raise InputError("A running average of the weights is not kept in a CUDA graph; use graph=False with it.")
        for student in self.students:
            if self.mode.graph and isinstance(student.ledger, DeviceLedger) and student.ledger.looks:
                which = type(student.optimiser).__name__
                raise InputError(
                    f"Student {student.name!r}: {which} asks the host at every step whether it may, which a CUDA graph "
                    "cannot; use graph=False with it, or adamw."
                )
        if self.mode.channels_last:
            for student in self.students:
                student.model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        if isinstance(teacher, LiveTeacher):
            teacher.tune(channels_last=self.mode.channels_last, compiled=self.mode.compile)
        self._ways = {student.name: student.tune(self.mode) for student in self.students}
        self._graph: Any = None
        self.seen: tuple[Batch, Signals | None] | None = None
        if self.processes.several:
            for student in self.students:
                student.spread = Spread(student.model, student.objective, self.processes)

    def fit(
        self,
        epochs: int,
        on_epoch: Callable[[EpochReport], None] | None = None,
        *,
        start: int = 0,
        done: int = 0,
        on_step: Callable[[int, int], None] | None = None,
    ) -> None:
        """Trains all students from epoch `start` on, of which `done` steps are taken already.

        One whose loss is not finite stops (`student.stopped`). `on_step` is told the epoch, and how many of its steps
        are taken, after each of them: between steps a checkpoint can be saved.
        """
        try:
            for epoch in range(start, epochs):
                if not self.going():
                    return
                with self.mode.compiling():
                    self._epoch(epoch, done if epoch == start else 0, on_step)
                if on_epoch is not None:
                    steps = (epoch + 1) * len(self.batches)
                    on_epoch(EpochReport(epoch, epochs, {s.name: s.metrics(steps) for s in self.going()}))
        except torch.OutOfMemoryError as error:
            raise PlackettError(self._too_little(str(error).splitlines()[0])) from error

    def _too_little(self, said: str) -> str:
        many = len(self.students) > 1
        who = f"{len(self.students)} students" if many else "a student"
        fewer = ", or fewer students at a time" if many else ""
        return (
            f"The device has too little memory for {who} and batches of {self.batches.size}: {said} Take a batch in "
            f"more parts, or smaller batches{fewer}."
        )

    def forget_graph(self) -> None:
        """What students were captured with is theirs no longer; the next epoch captures them anew."""
        self._graph = None

    def going(self) -> list[Student]:
        return [student for student in self.students if student.stopped is None]

    def _epoch(self, epoch: int, done: int, on_step: Callable[[int, int], None] | None) -> None:
        going = self.going()
        self.seen = None
        begun = {}
        for student in going:
            begun[student.name] = student.random_state
            if self.processes.several:
                student.random_state = self.processes.random_state(student.random_state, epoch)
            with _random_numbers(student):
                student.begin(epoch, done)
        if self.mode.graph and not done:
            self._graph = self._graph or _graphed(self)
            done = self._graph.epoch(epoch)
        for place, batch in enumerate(self.batches.epoch(epoch, done), done):
            step = epoch * len(self.batches) + place
            whole, batch = len(batch.targets), self.processes.part(batch)
            signals = self._signals(batch)
            for student in [s for s in going if s.stopped is None]:
                student.rate(step)
                if student.spread is not None:
                    student.spread.share = self.processes.share(len(batch.targets), whole)
                with _random_numbers(student):
                    # The odd batch that a graph leaves over would be compiled for its own shape.
                    ways = student.uncompiled if self.mode.graph else self._ways[student.name]
                    student.step(batch, signals, step, self.mode, ways)
                if self._device.type == "cpu":  # looking costs nothing here; elsewhere the host would wait
                    self._look(student)
            if self.seen is None or len(batch.targets) >= len(self.seen[0].targets):
                self.seen = batch, signals
            if on_step is not None:
                on_step(epoch, place + 1)
        for student in going:
            if self.processes.several:
                student.random_state = begun[student.name]
                student.ledger.add_up(self.processes.added)
            self._look(student)
            if student.stopped is None and not student.healthy():
                student.stopped = (
                    f"Student {student.name!r} stopped after epoch {epoch + 1}: "
                    f"it has a weight that is not finite. {_ADVICE}"
                )

    def _signals(self, batch: Batch) -> Signals | None:
        if self.teacher is None:
            return None
        with self.mode.precision(self._device):
            return self.teacher.signals(batch)

    def _look(self, student: Student) -> None:
        """Stops a student whose loss or gradient was not finite, and hands out the batch on which it happened."""
        if student.stopped is not None or (found := student.ledger.not_finite()) is None:
            return
        epoch, step = divmod(found.step, len(self.batches))
        terms = ", ".join(f"{name} {value:g}" for name, value in found.terms.items())
        student.stopped = (
            f"Student {student.name!r} stopped in epoch {epoch + 1}, step {step + 1}: "
            f"its loss is {found.loss:g} ({terms}){_gradient(found)}. {_ADVICE}"
        )
        if self._on_problem is not None:
            batch = next(iter(self.batches.epoch(epoch, step)))
            self._on_problem(Problem(student.name, epoch, step, found, batch))


_ADVICE = "Try a lower learning rate, or look at the term that is not finite."


def _gradient(found: NotFinite) -> str:
    finite = abs(found.loss) < float("inf")
    return ", and its gradient is not finite" if finite else ""


def _graphed(cohort: Cohort) -> Any:
    from plackett.training.graphed import Graphed

    return Graphed(cohort.going(), cohort.batches, cohort._signals, cohort._ways, cohort.mode)


def _check(students: Sequence[Student], batches: Stream, teacher: Teacher | None) -> None:
    names = [student.name for student in students]
    if not names or len(set(names)) < len(names):
        raise InputError(f"A cohort needs students with a name each, no name twice; got {', '.join(names) or 'none'}.")
    readers = [student.name for student in students if student.objective.reads_teacher]
    if teacher is None and readers:
        raise InputError(f"The objective of {readers[0]!r} reads a teacher, but the cohort has none.")
    for student in students:
        if not student.objective.reads_features:
            continue
        if not student.taps:
            raise InputError(f"The objective of {student.name!r} reads features, but its network has no taps.")
        if missing := [tap for tap in student.taps if tap not in getattr(teacher, "taps", ())]:
            raise InputError(
                f"The objective of {student.name!r} reads the feature {missing[0]!r}, which the teacher does not give; "
                f"make it with taps=({', '.join(map(repr, student.taps))},)."
            )
    classes = len(batches.pictures.classes)
    if teacher is not None and teacher.classes != classes:
        raise InputError(f"The teacher has {teacher.classes} classes, the data {classes}.")


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
