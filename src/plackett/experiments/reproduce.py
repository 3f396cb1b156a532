"""A recipe carried out: a teacher for each pair, then one cohort a seed with every method that is still missing."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from plackett.errors import InputError
from plackett.evaluation import accuracy
from plackett.experiments import cells as records
from plackett.experiments import keep, surroundings, teachers
from plackett.experiments.cells import Cell, TeacherNote
from plackett.experiments.cohorts import Fitted, fit
from plackett.experiments.compare import student_result
from plackett.experiments.limit import Limit
from plackett.experiments.pupils import pupils, taught_by
from plackett.experiments.recipes import Recipe
from plackett.experiments.records import (
    RESULTS,
    RUN,
    DataRecord,
    Results,
    RunRecord,
    TeacherRecord,
    under_way,
    write_json,
)
from plackett.experiments.task import Task, load
from plackett.objectives import Objective
from plackett.training import Cohort, Problem, Student

COMMITTED = Path("results")


@dataclass(frozen=True)
class Order:
    """What was asked for.

    Args:
        out: where run folders, checkpoints and trained teachers go.
        results: the folder or .jsonl file of finished cells; those beside it count as there already.
        teacher: a file, for one pair.
        teachers: the folder of trained teachers; None is the one in `out`.
        train_teacher: train it where it is not in `out`; otherwise a teacher that is nowhere is an error.
        per_cohort: at most so many students at a time, for memory and for smaller checkpoints.
        tensorboard: write every epoch for TensorBoard too.
        limit: how long it may all take; `OutOfTime` ends it, with what is done saved.
        command: what was typed, for the run folders to keep.
    """

    recipe: Recipe
    pairs: Sequence[str]
    methods: Sequence[str]
    seeds: Sequence[int]
    out: Path
    results: Path
    data: Path | None = None
    device: str | None = None
    teacher: Path | None = None
    teachers: Path | None = None
    train_teacher: bool = False
    per_cohort: int | None = None
    tensorboard: bool = False
    limit: Limit = field(default_factory=Limit)
    command: str = ""

    def __post_init__(self) -> None:
        if not self.seeds or min(self.seeds) < 0:
            raise InputError(f"Seeds are whole numbers from 0 on, at least one; got {list(self.seeds)}.")
        if self.per_cohort is not None and self.per_cohort < 1:
            raise InputError(f"A cohort has at least 1 student, not {self.per_cohort}.")
        if self.teacher is not None and len(self.pairs) != 1:
            raise InputError(
                f"--teacher is the teacher of one pair, but there are {len(self.pairs)}; name it by --pair."
            )
        if self.teacher is not None and self.train_teacher:
            raise InputError("A teacher is either trained (--train-teacher) or read from a file (--teacher), not both.")
        if self.teacher is not None and not self.teacher.is_file():
            raise InputError(f"There is no teacher {self.teacher}.")


@dataclass(frozen=True)
class Progress:
    """`what` is said once; `done` of `total` are epochs of a student."""

    what: str
    done: int
    total: int


@dataclass
class _Work:
    order: Order
    task: Task
    held: dict[records.Key, Cell]
    watch: Callable[[Progress], None]
    total: int = 0
    done: int = 0
    stopped: list[str] = field(default_factory=list)

    def tell(self, prefix: str) -> Callable[[str, int], None]:
        def told(said: str, steps: int) -> None:
            self.done += steps
            self.watch(Progress(f"{prefix}, {said}" if said else prefix, self.done, max(self.total, self.done)))

        told("", 0)
        return told


def run(order: Order, watch: Callable[[Progress], None] = lambda progress: None) -> tuple[list[Cell], list[str]]:
    """Trains what is missing; every cell that was asked for, and the sentences of students that stopped."""
    task = load(order.recipe, order.data, order.device)
    work = _Work(order, task, records.read(records.files(order.results)), watch)
    work.total = _left(work)
    found: list[Cell] = []
    for pair in order.pairs:
        found += _pair(work, pair)
    return found, work.stopped


def _left(work: _Work) -> int:
    """Student epochs that are still to be done, teachers left out."""
    order = work.order
    missing = sum(
        (order.recipe.name, pair, method, seed) not in work.held
        for pair in order.pairs for method in order.methods for seed in order.seeds
    )  # fmt: skip
    return missing * order.recipe.training.epochs


def _pair(work: _Work, pair: str) -> Iterator[Cell]:
    order, task, recipe = work.order, work.task, work.order.recipe
    taps = getattr(task.network(recipe.pairs[pair].student), "taps", ())
    terms = {method: recipe.terms(method, pair, taps) for method in order.methods}
    objectives = {method: Objective(each) for method, each in terms.items()}
    reads = {method for method, objective in objectives.items() if objective.reads_teacher}
    teacher = _teacher(work, pair) if reads else None
    about: TeacherRecord | None = None
    for seed in order.seeds:
        cohort: dict[str, dict[str, Any]] = {}
        for method in order.methods:
            config = _config(work, pair, method, terms[method], teacher if method in reads else None)
            old = work.held.get((recipe.name, pair, method, seed))
            if old is None:
                cohort[method] = config
                continue
            records.check_same(old, old.model_copy(update={"config": config}), str(order.results))
            yield old
        names = list(cohort)
        size = order.per_cohort or max(1, len(names))
        for start in range(0, len(names), size):
            part = {name: cohort[name] for name in names[start : start + size]}
            if teacher is not None and about is None:
                about = teacher.record(task)
            yield from _train(work, pair, seed, part, teacher if reads & set(part) else None, about)


def _together(methods: Sequence[str]) -> str:
    """The methods of a cohort as part of a folder's name, which may not be of any length."""
    text = "+".join(methods)
    if len(text) <= 120:
        return text
    return f"{len(methods)}-methods-{hashlib.blake2b(text.encode(), digest_size=4).hexdigest()}"


def _config(
    work: _Work, pair: str, method: str, terms: Mapping[str, Any], teacher: teachers.Loaded | None
) -> dict[str, Any]:
    recipe = work.order.recipe
    return {
        "student": recipe.pairs[pair].student,
        "terms": dict(terms),
        "training": recipe.training_of(method).model_dump(),
        "teacher": None if teacher is None else {"network": teacher.name, "sha256": teacher.sha256},
        "data": work.task.fingerprint,
    }


def _teacher(work: _Work, pair: str) -> teachers.Loaded:
    order, task = work.order, work.task
    name = order.recipe.pairs[pair].teacher
    own = (order.teachers or order.out / "teachers") / f"{name}.safetensors"
    if order.train_teacher:
        training = order.recipe.for_teacher
        work.total += 0 if own.exists() else training.epochs
        path = teachers.train(
            name, task, training, 0, own, work.tell(f"teacher {name}"),
            every=order.recipe.evaluate_every, saves=order.recipe.checkpoint_every, tensorboard=order.tensorboard,
            limit=order.limit,
        )  # fmt: skip
        return teachers.load(path, name, task)
    places = [order.teacher] if order.teacher else [own, COMMITTED / order.recipe.teachers_of / "teachers" / own.name]
    for path in places:
        if path.is_file():
            return teachers.load(path, name, task)
    raise InputError(
        f"There is no teacher for {pair}: neither {places[0]} nor {places[-1]} exists. "
        "Train it with --train-teacher, or name a file with --teacher."
    )


def _train(
    work: _Work,
    pair: str,
    seed: int,
    configs: Mapping[str, dict[str, Any]],
    teacher: teachers.Loaded | None,
    about: TeacherRecord | None,
) -> list[Cell]:
    order, task, recipe = work.order, work.task, work.order.recipe
    order.limit.begin()
    folder = order.out / pair / f"seed-{seed}-{_together(list(configs))}"
    stream = task.stream(recipe.training, seed)
    asked = {method: (config["terms"], recipe.training_of(method)) for method, config in configs.items()}
    students = pupils(task, recipe.pairs[pair].student, asked, seed, len(stream))
    live = None if teacher is None else taught_by(teacher.network, task, students)

    def save(problem: Problem) -> None:
        problem.save(folder)

    keep.watch_memory(task.device)
    cohort = Cohort(students, stream, live, mode=task.mode, on_problem=save)
    config = {"pair": pair, "seed": seed, "methods": dict(configs)}
    record = _record(work, pair, seed, configs, about if teacher else None)
    with under_way(folder, record):
        fitted = fit(
            cohort, task, folder, config, recipe.training.epochs, recipe.evaluate_every, recipe.checkpoint_every,
            work.tell(f"{pair}, seed {seed}"), tensorboard=order.tensorboard, limit=order.limit,
        )  # fmt: skip
    made = [_cell(work, pair, seed, student, configs, fitted, teacher) for student in students]
    networks = {student.name: student.model for student in students}
    keep.keep(
        folder, keep.InMemory(task.test), {name: (networks[name], said) for name, said in fitted.logits.items()},
        None if teacher is None else (teacher.network, teacher.test_logits),
        seconds=fitted.seconds, epochs=recipe.training.epochs, steps=recipe.training.epochs * len(stream),
        spec=recipe.pairs[pair].student, sight=task.sight,
    )  # fmt: skip
    write_json(folder / RESULTS, _results(task, students, fitted, teacher))
    write_json(folder / RUN, record.model_copy(update={"status": "finished", "seconds": round(fitted.seconds, 2)}))
    records.append(records.target(order.results), made)
    work.stopped += [student.stopped for student in students if student.stopped is not None]
    return made


def _cell(
    work: _Work,
    pair: str,
    seed: int,
    student: Student,
    configs: Mapping[str, dict[str, Any]],
    fitted: Fitted,
    teacher: teachers.Loaded | None,
) -> Cell:
    recipe, method = work.order.recipe, student.name
    config = configs[method]
    best, best_epoch = fitted.best.get(method, (None, None))
    note = None
    if teacher is not None and config["teacher"] is not None:
        note = TeacherNote(network=teacher.name, sha256=teacher.sha256, accuracy=teacher.accuracy)
    return Cell(
        recipe=recipe.name,
        pair=pair,
        method=method,
        title=recipe.methods[method].title,
        seed=seed,
        accuracy=accuracy(fitted.logits[method], work.task.test.targets) if method in fitted.logits else None,
        best_accuracy=best,
        best_epoch=None if best_epoch is None else best_epoch + 1,
        stopped=student.stopped,
        epochs=recipe.training.epochs,
        test=len(work.task.test),
        config=config,
        teacher=note,
        cohort=list(configs),
        seconds=round(fitted.seconds, 1),
        mode=str(work.task.mode),
        device=work.task.where,
        versions=surroundings.versions(),
        commit=surroundings.commit(),
        finished=datetime.now(UTC).isoformat(timespec="seconds"),
    )


def _results(task: Task, students: Sequence[Student], fitted: Fitted, teacher: teachers.Loaded | None) -> Results:
    finished = {
        student.name: student_result(
            student,
            fitted.logits[student.name],
            task.test.targets,
            None if teacher is None else teacher.test_logits,
            fitted.best[student.name],
        )
        for student in students
        if student.stopped is None
    }
    return Results(students=finished, stopped={s.name: s.stopped for s in students if s.stopped is not None})


def _record(
    work: _Work, pair: str, seed: int, configs: Mapping[str, dict[str, Any]], about: TeacherRecord | None
) -> RunRecord:
    task, recipe = work.task, work.order.recipe
    return RunRecord(
        name=recipe.name,
        title=recipe.title,
        command=work.order.command,
        group=pair,
        status="running",
        seed=seed,
        students=list(configs),
        config={"recipe": recipe.training.model_dump(), "methods": dict(configs), "mode": str(task.mode)},
        data=DataRecord(
            name=recipe.data, fingerprint=task.fingerprint, classes=list(task.test.classes),
            train=len(task.train), test=len(task.test),
        ),
        teacher=about,
        versions=surroundings.versions(),
        device=task.where,
        commit=surroundings.commit(),
        started=datetime.now(UTC).isoformat(timespec="seconds"),
    )  # fmt: skip
