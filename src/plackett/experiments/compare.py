"""Objectives x seeds -> run folders: a cohort for every seed, its methods paired in it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from plackett import models
from plackett.data import Augment, Batches, Pictures, derive
from plackett.data.sight import Sight
from plackett.errors import PlackettError
from plackett.evaluation import accuracy, agreement, calibration, predict
from plackett.experiments import surroundings
from plackett.experiments.keep import InMemory, keep, watch_memory
from plackett.experiments.records import (
    RESULTS,
    RUN,
    CalibrationRecord,
    DataRecord,
    EpochRecord,
    MetricsFile,
    Results,
    RunRecord,
    StudentEpoch,
    StudentResult,
    TeacherRecord,
    read_run,
    under_way,
    write_json,
)
from plackett.objectives import Objective
from plackett.teachers import LiveTeacher
from plackett.training import Cohort, EpochReport, Recipe, Student

Watch = Callable[[int], None]  # told the number of student steps that an epoch took


@dataclass(frozen=True)
class Case:
    """One comparison: the same student, data and recipe for every method, which maps its name to an objective."""

    name: str
    group: str
    data: str
    train: Pictures
    test: Pictures
    student: str
    methods: Mapping[str, Mapping[str, Any]]
    recipe: Recipe
    augment: Augment | None = None
    sight: Sight | None = None

    def steps(self) -> int:
        """Student steps that one seed takes."""
        return self.recipe.epochs * -(-len(self.train) // self.recipe.batch_size) * len(self.methods)

    def config(self) -> dict[str, Any]:
        return {
            "student": self.student,
            "methods": {name: dict(terms) for name, terms in self.methods.items()},
            "recipe": self.recipe.as_dict(),
            "augment": None if self.augment is None else repr(self.augment),
        }


@dataclass(frozen=True)
class Taught:
    """A teacher with its record, its configuration and its logits on the test pictures."""

    teacher: LiveTeacher
    record: TeacherRecord
    config: dict[str, Any]
    test_logits: Tensor


def compare(case: Case, taught: Taught, seed: int, folder: Path, watch: Watch, *, reuse: bool = False) -> None:
    """Trains every method of `case` with one seed and leaves the run in `folder`.

    With `reuse` a finished run that was made in just the same way is kept.
    """
    record = _record(case, taught, seed)
    if reuse and _same(folder, record):
        watch(case.steps())
        return
    begun = time.perf_counter()
    with under_way(folder, record):
        results = _train(case, taught, seed, folder, watch)
    write_json(folder / RESULTS, results)
    seconds = round(time.perf_counter() - begun, 2)
    write_json(folder / RUN, record.model_copy(update={"status": "finished", "seconds": seconds}))


def calibration_record(logits: Tensor, targets: Tensor) -> CalibrationRecord:
    found = calibration(logits, targets)
    return CalibrationRecord(ece=found.ece, counts=found.counts, confidence=found.confidence, accuracy=found.accuracy)


def _train(case: Case, taught: Taught, seed: int, folder: Path, watch: Watch) -> Results:
    watch_memory(case.train.device)
    begun = time.perf_counter()
    batches = Batches(case.train, case.recipe.batch_size, derive(seed, "batches"), case.augment)
    students = [
        Student.make(
            name,
            lambda: models.create(case.student, classes=len(case.train.classes)),
            Objective(terms),
            case.recipe,
            steps_per_epoch=len(batches),
            seed=seed,
            device=case.train.device,
        )
        for name, terms in case.methods.items()
    ]
    history: dict[str, list[float]] = {student.name: [] for student in students}

    with MetricsFile(folder) as metrics:

        def after_epoch(report: EpochReport) -> None:
            lines = {}
            for student in students:
                if student.name not in report.metrics:
                    continue
                seen = report.metrics[student.name]
                right = accuracy(predict(student.model, case.test), case.test.targets)
                history[student.name].append(right)
                lines[student.name] = StudentEpoch(
                    loss=seen.loss, terms=seen.terms, train_accuracy=seen.accuracy, accuracy=right
                )
            metrics.append(EpochRecord(epoch=report.epoch, students=lines))
            watch(len(batches) * len(students))

        Cohort(students, batches, taught.teacher).fit(case.recipe.epochs, after_epoch)

    finished = {student.name: student for student in students if student.stopped is None}
    logits = {name: predict(student.model, case.test) for name, student in finished.items()}
    keep(
        folder, InMemory(case.test), {name: (finished[name].model, said) for name, said in logits.items()},
        (taught.teacher.network, taught.test_logits),
        seconds=time.perf_counter() - begun, epochs=case.recipe.epochs, steps=case.recipe.epochs * len(batches),
        spec=case.student, sight=case.sight,
    )  # fmt: skip
    return Results(
        students={
            name: student_result(student, logits[name], case.test.targets, taught.test_logits, _best(history[name]))
            for name, student in finished.items()
        },
        stopped={s.name: s.stopped for s in students if s.stopped is not None},
    )


def student_result(
    student: Student, logits: Tensor, targets: Tensor, teacher: Tensor | None, best: tuple[float, int]
) -> StudentResult:
    """Of the last epoch's logits, beside the teacher's; `best` is an accuracy and the epoch of it."""
    return StudentResult(
        parameters=models.parameters(student.model),
        accuracy=accuracy(logits, targets),
        best_accuracy=best[0],
        best_epoch=best[1],
        agreement=None if teacher is None else agreement(logits, teacher),
        calibration=calibration_record(logits, targets),
    )


def _best(history: Sequence[float]) -> tuple[float, int]:
    return max(history), max(range(len(history)), key=history.__getitem__)


def _record(case: Case, taught: Taught, seed: int) -> RunRecord:
    return RunRecord(
        name=case.name,
        group=case.group,
        status="running",
        seed=seed,
        students=list(case.methods),
        config={**case.config(), "teacher": taught.config, "threads": torch.get_num_threads()},
        data=DataRecord(
            name=case.data,
            fingerprint=_fingerprint(case.train, case.test),
            classes=list(case.train.classes),
            train=len(case.train),
            test=len(case.test),
        ),
        teacher=taught.record,
        versions=surroundings.versions(),
        device=surroundings.where(case.train.device),
        commit=surroundings.commit(),
        started=datetime.now(UTC).isoformat(timespec="seconds"),
    )


def _fingerprint(train: Pictures, test: Pictures) -> str:
    """One hash for what was trained on and what was tested on."""
    return f"{derive(train.fingerprint(), test.fingerprint()):016x}"


def _same(folder: Path, record: RunRecord) -> bool:
    """Whether `folder` holds a finished run of this very record; changed sources never count as the same."""
    if record.commit is not None and record.commit.endswith("+changes"):
        return False
    try:
        found = read_run(folder)
    except PlackettError:
        return False
    varies = {"status", "message", "started", "seconds"}
    mine = RunRecord.model_validate_json(record.model_dump_json())
    same = found.record.model_dump(exclude=varies) == mine.model_dump(exclude=varies)
    return same and found.results is not None and not found.problems
