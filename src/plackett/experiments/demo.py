"""The demo: six objectives on real digits, once with few labels and once with all of them.

One recipe serves every objective. It was chosen by the mean accuracy of all six on training pictures that the student
had not seen (928 with few labels, 216 with all), never on the test pictures: the shortest within half a point of the
best (`python -m benchmarks.demo_recipe`). The objectives' own numbers are the published ones.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from plackett import models, presets
from plackett.data import Batches, Pictures, Shift, derive, digits
from plackett.errors import InputError
from plackett.evaluation import accuracy, predict
from plackett.experiments.compare import Case, Taught, calibration_record, compare
from plackett.experiments.records import TeacherRecord, read_document, write_json
from plackett.experiments.study import STUDY, CaseRecord, StudyRecord
from plackett.objectives import Objective
from plackett.teachers import LiveTeacher, first_choice_weight
from plackett.training import Cohort, EpochReport, Recipe, Student

BASELINE = "CE"
# Digits have no presets of their own: CIFAR-100's, and ImageNet's temperature of PLD beside it.
METHODS: dict[str, Mapping[str, Any]] = {
    "CE": presets.get("cifar100", "ce"),
    "KD": presets.get("cifar100", "kd"),
    "DIST": presets.get("cifar100", "dist"),
    "DKD": presets.get("cifar100", "dkd"),
    "PLD τ=1": presets.get("imagenet", "pld"),
    "PLD τ=4": presets.get("cifar100", "pld"),
}
TEMPERATURES = (0.5, 1.0, 2.0, 4.0, 8.0)
TEACHER_STEP = 4  # a teacher's step takes about as long as this many steps of a student


@dataclass(frozen=True)
class Size:
    """How long each network trains, in epochs."""

    teacher: int = 120
    few_labels: int = 100
    all_labels: int = 40


TINY = Size(teacher=12, few_labels=6, all_labels=2)


@dataclass(frozen=True)
class Progress:
    """How far the demo is: `done` of `total`, in steps of a student."""

    what: str
    done: int
    total: int


def run(
    out: Path,
    *,
    seeds: int = 5,
    size: Size | None = None,
    command: str = "plackett demo",
    watch: Callable[[Progress], None] = lambda progress: None,
) -> None:
    """Runs the demo into `out`: an `experiment.json` and one run folder for each case and seed.

    A demo that was stopped on its way goes on with the seeds that are missing. One thread, so that the same seeds give
    the same numbers on any number of cores.
    """
    if seeds < 1:
        raise InputError(f"The demo needs at least 1 seed, not {seeds}.")
    begun = time.perf_counter()
    size = size or Size()
    data = digits.load()
    cases = _cases(data, size)
    cells = [(case, seed) for case in cases for seed in range(seeds)]
    folders = {(case.group, seed): f"{case.group.replace(' ', '-')}/seed-{seed}" for case, seed in cells}
    record = StudyRecord(
        name="demo",
        title="What distillation does for a small network, on handwritten digits",
        question=(
            f"A teacher of 301,066 parameters learned from {len(data.teacher):,} labelled digits. Does its knowledge "
            f"help a student of 2,410 parameters, which learns from {len(data.student)} of them, or from all of them?"
        ),
        command=command,
        status="running",
        baseline=BASELINE,
        cases=[CaseRecord(group=case.group, title=case.name) for case in cases],
        runs=list(folders.values()),
    )
    reuse = _was_stopped(out)
    write_json(out / STUDY, record)

    recipe = Recipe(size.teacher, 128, learning_rate=3e-3, weight_decay=0.01)
    teacher_steps = TEACHER_STEP * size.teacher * -(-len(data.teacher) // recipe.batch_size)
    total = teacher_steps + seeds * sum(case.steps() for case in cases)
    done = 0

    def tell(what: str) -> Callable[[int], None]:
        def advance(steps: int) -> None:
            nonlocal done
            done += steps
            watch(Progress(what, done, total))

        advance(0)
        return advance

    try:
        with _one_thread():
            taught = _teach(data, recipe, tell("teacher"))
            for case, seed in cells:
                told = tell(f"{case.group}, seed {seed + 1} of {seeds}")
                compare(case, taught, seed, out / folders[case.group, seed], told, reuse=reuse)
    except BaseException:
        with suppress(OSError):
            write_json(out / STUDY, record.model_copy(update={"status": "interrupted"}))
        raise
    seconds = round(time.perf_counter() - begun, 1)
    write_json(out / STUDY, record.model_copy(update={"status": "finished", "seconds": seconds}))


def _cases(data: digits.Digits, size: Size) -> list[Case]:
    def case(name: str, group: str, train: Pictures, recipe: Recipe) -> Case:
        return Case(
            name, group, "scikit-learn digits", train, data.test, "mlp_student", METHODS, recipe, sight=digits.SIGHT
        )

    few = Recipe(size.few_labels, 50, learning_rate=3e-2, weight_decay=0.01)
    everything = Recipe(size.all_labels, 128, learning_rate=3e-2, weight_decay=0.01)
    return [
        case(f"Few labels: {len(data.student)} pictures", f"{len(data.student)} labels", data.student, few),
        case(f"All labels: {len(data.teacher):,} pictures", "all labels", data.teacher, everything),
    ]


def _teach(data: digits.Digits, recipe: Recipe, tell: Callable[[int], None]) -> Taught:
    classes = len(data.teacher.classes)
    batches = Batches(data.teacher, recipe.batch_size, derive(0, "teacher batches"), Shift(1))
    student = Student.make(
        "teacher",
        lambda: models.create("mlp_teacher", classes=classes),
        Objective({"ce": 1.0}),
        recipe,
        steps_per_epoch=len(batches),
        seed=derive(0, "teacher"),
    )

    def after_epoch(report: EpochReport) -> None:
        tell(TEACHER_STEP * len(batches))

    Cohort([student], batches).fit(recipe.epochs, after_epoch)
    teacher = LiveTeacher(student.model, classes)
    logits = predict(teacher.network, data.test)
    record = TeacherRecord(
        model="mlp_teacher",
        parameters=models.parameters(teacher.network),
        accuracy=accuracy(logits, data.test.targets),
        calibration=calibration_record(logits, data.test.targets),
        first_choice_weight=first_choice_weight(
            teacher.logits(data.teacher.inputs), data.teacher.targets, TEMPERATURES
        ),
    )
    config = {"model": "mlp_teacher", "recipe": recipe.as_dict(), "augment": repr(batches.augment), "seed": 0}
    return Taught(teacher, record, config, logits)


def _was_stopped(out: Path) -> bool:
    try:
        return read_document(out / STUDY, StudyRecord).status != "finished"
    except InputError:
        return False


@contextmanager
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
