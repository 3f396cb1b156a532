"""One seed of a distillation: its cohort from the first step, or the last checkpoint, to what it leaves."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from torch import Tensor, nn

from plackett.data import derive
from plackett.data.loading import Augmentation, Bad, Mix, PictureBatches
from plackett.differences import differences
from plackett.distilling import terms
from plackett.distilling.asked import Asked
from plackett.distilling.monitor import Monitor
from plackett.distilling.work import Work, as_json
from plackett.errors import InputError
from plackett.evaluation import accuracy
from plackett.experiments import keep, surroundings
from plackett.experiments.cohorts import Fitted, fit
from plackett.experiments.compare import student_result
from plackett.experiments.records import (
    RESULTS,
    RUN,
    DataRecord,
    Results,
    RunRecord,
    read_run,
    under_way,
    write_json,
)
from plackett.objectives import Objective
from plackett.teachers import SeeingTeacher
from plackett.training import Checkpoints, Cohort, Problem, Recipe, Stepping, Student
from plackett.training.checkpoint import LAST

Methods = Mapping[str, Mapping[str, Any]]


def train(work: Work, seed: int, methods: Methods) -> None:
    """Trains every method with one seed, where that is not done already."""
    folder = work.folder(seed)
    record = _record(work, seed, methods)
    if _finished(folder, record):
        return
    noticed = _Noticed(work)
    work.order.limit.begin()
    with under_way(folder, record):
        with _cast(work, seed, methods, noticed) as cast:
            keep.watch_memory(work.device)
            fitted = _fit(work, seed, methods, cast, noticed)
            final = _final(work, folder, cast, fitted)
            _leave(work, folder, cast, fitted, final)
        seconds = round(fitted.seconds, 2)
        readable = record.data.model_copy(update={"test": len(work.tested)})
        done = record.model_copy(update={
            "status": "finished", "seconds": seconds, "data": readable, "teacher": work.teacher_record,
        })  # fmt: skip
    write_json(folder / RESULTS, _results(work, cast, fitted, final, noticed))
    write_json(folder / RUN, done)
    for student in cast.students:
        if student.stopped is not None:
            work.telling.say(student.stopped)


@dataclass
class _Noticed:
    """Warnings, and pictures to train on that could not be read; each is said at once."""

    work: Work
    sentences: list[str] = field(default_factory=list)
    bad: list[str] = field(default_factory=list)

    def warn(self, sentence: str) -> None:
        self.sentences.append(sentence)
        self.work.telling.say(f"Warning: {sentence}")

    def unreadable(self, bad: Bad) -> None:
        self.bad.append(bad.name)
        self.work.telling.say(f"{bad.name} cannot be read ({bad.why}); another of its class stands in for it.")

    def all(self) -> list[str]:
        found = [*self.sentences]
        if self.bad:
            found.append(
                f"{len(self.bad)} pictures to train on could not be read, and others of their class stood in for them: "
                f"{_named(self.bad)}."
            )
        if left_out := self.work.left_out:
            found.append(f"{len(left_out)} pictures to test on could not be read and are left out: {_named(left_out)}.")
        return found


def _named(pictures: Sequence[str]) -> str:
    more = f" and {len(pictures) - 5} more" if len(pictures) > 5 else ""
    return f"{', '.join(pictures[:5])}{more}"


@dataclass(frozen=True)
class _Cast:
    """Who takes part."""

    students: list[Student]
    batches: PictureBatches
    teacher: SeeingTeacher | None

    @property
    def going(self) -> dict[str, Student]:
        return {student.name: student for student in self.students if student.stopped is None}

    @property
    def reads_teacher(self) -> bool:
        return any(student.objective.reads_teacher for student in self.students)


@contextmanager
def _cast(work: Work, seed: int, methods: Methods, noticed: _Noticed) -> Iterator[_Cast]:
    found, asked = work.found, work.asked
    taps = terms.reads(methods, found.stages)
    batches = PictureBatches(
        found.train, min(asked.training.batch_size, len(found.train)), derive(seed, "batches"), found.sight,
        device=work.device, workers=work.workers, augment=_augmentation(asked), mix=_mix(asked),
        drop_last=True, bad_limit=asked.bad_limit, on_bad=noticed.unreadable,
    )  # fmt: skip
    students = _students(work, methods, taps, seed, batches)
    teacher = found.seeing(taps)
    if teacher is not None:
        teacher.network.to(work.device)
    try:
        yield _Cast(students, batches, teacher)
    finally:
        batches.close()


def _students(work: Work, methods: Methods, taps: tuple[str, ...], seed: int, batches: PictureBatches) -> list[Student]:
    learning, made = work.asked.training, []
    recipe = _recipe(work.asked, batches.size)
    for name, each in methods.items():
        with torch.random.fork_rng(devices=[]):  # some objectives have weights of their own
            torch.manual_seed(derive(seed, "objective", name))
            objective = Objective(each, unlabelled="teacher")
        made.append(
            Student.make(
                name, work.found.builder(taps if objective.reads_features else ()), objective, recipe,
                steps_per_epoch=len(batches), seed=seed, device=work.device,
                stepping=Stepping(learning.parts, learning.clip, learning.average),
            )
        )  # fmt: skip
    return made


def _fit(work: Work, seed: int, methods: Methods, cast: _Cast, noticed: _Noticed) -> Fitted:
    folder, asked = work.folder(seed), work.asked

    def save(problem: Problem) -> None:
        problem.save(folder)

    teacher = cast.teacher if cast.reads_teacher else None
    cohort = Cohort(cast.students, cast.batches, teacher, mode=work.mode, on_problem=save)
    said = work.said(cast.teacher, work.watched)
    temperatures = {name: tau for name, each in methods.items() if (tau := terms.temperature(each)) is not None}
    monitor = Monitor(cohort, teacher, temperatures, work.watched.targets, said, noticed.warn)
    epochs, steps = asked.training.epochs, len(cast.batches)
    before = work.asked.seeds.index(seed) * epochs * steps
    total = len(work.asked.seeds) * epochs * steps
    named, place = f"seed {seed}, " if len(work.asked.seeds) > 1 else "", [before]
    what = [f"{named}epoch 1 of {epochs}"]

    def stepped(epoch: int, done: int) -> None:
        place[0] = before + epoch * steps + done
        work.telling.progress(what[0], place[0], total)

    def told(words: str, _: int) -> None:
        if words:
            what[0] = f"{named}{words}"
            work.telling.progress(what[0], place[0], total)

    return fit(
        cohort, work.watched, folder, _config(work, seed, methods), epochs, asked.evaluate_every, 1, told, monitor,
        tensorboard=work.order.tensorboard, limit=work.order.limit, pause=work.order.pause, stepped=stepped,
    )  # fmt: skip


@dataclass(frozen=True)
class _Final:
    """Of the last epoch, on `tested`: logits by student, the teacher's as it taught, and the best epochs' accuracy."""

    logits: dict[str, Tensor]
    teacher: Tensor | None
    best: dict[str, float]


def _final(work: Work, folder: Path, cast: _Cast, fitted: Fitted) -> _Final:
    networks: dict[str, nn.Module] = {name: student.kept for name, student in cast.going.items()}
    logits = work.tested.predictions(networks) if networks else {}
    theirs = work.said(cast.teacher, work.tested)
    best = {name: fitted.best[name][0] for name in networks}
    if work.found.test is not None and networks:
        # The epoch was chosen by the pictures to validate with; its figure is of the test pictures, as the others.
        kept = {name: _best(folder, student) for name, student in cast.going.items()}
        best = {name: accuracy(said, work.tested.targets) for name, said in work.tested.predictions(kept).items()}
    return _Final(logits, theirs, best)


def _best(folder: Path, student: Student) -> nn.Module:
    network = copy.deepcopy(student.kept)
    network.load_state_dict(load_file(Checkpoints(folder).best_path(student.name)))
    return network.to(student.device)


def _leave(work: Work, folder: Path, cast: _Cast, fitted: Fitted, final: _Final) -> None:
    epochs = work.asked.training.epochs
    teacher = None if cast.teacher is None or final.teacher is None else (cast.teacher.network, final.teacher)
    keep.keep(
        folder, work.tested, {name: (cast.going[name].kept, said) for name, said in final.logits.items()},
        teacher, seconds=fitted.seconds, epochs=epochs, steps=epochs * len(cast.batches),
        spec=work.found.student.spec, sight=work.found.sight, options=work.asked.student_options,
    )  # fmt: skip


def _results(work: Work, cast: _Cast, fitted: Fitted, final: _Final, noticed: _Noticed) -> Results:
    targets = work.tested.targets
    return Results(
        students={
            name: student_result(
                cast.going[name], said, targets, final.teacher, (final.best[name], fitted.best[name][1])
            )
            for name, said in final.logits.items()
        },
        stopped={student.name: student.stopped for student in cast.students if student.stopped is not None},
        warnings=noticed.all(),
    )


# Of what is asked these change nothing that is learned: where pictures lie is in their fingerprints, for example.
_WITHOUT_EFFECT = {"data", "splits", "unlabelled", "objective", "changes", "seeds", "check_pictures", "bad_limit",
                   "teacher_classes", "teacher_weights"}  # fmt: skip


def _config(work: Work, seed: int, methods: Methods) -> dict[str, Any]:
    """All that a result follows from, as JSON has it."""
    found = work.found
    return as_json({
        **work.asked.model_dump(mode="json", exclude=_WITHOUT_EFFECT),
        "teacher": "" if found.teacher is None else found.teacher.spec,
        "teacher_sha256": found.teacher_sha256,
        "teacher_sight": None if found.teacher is None else found.teacher.sight.as_dict(),
        "student_sight": found.sight.as_dict(),
        "pictures": found.fingerprint,
        "methods": {name: dict(each) for name, each in methods.items()},
        "seed": seed,
        "mode": str(work.mode),
    })  # fmt: skip


def _finished(folder: Path, wanted: RunRecord) -> bool:
    """Whether the run is there already; one of another configuration is refused, unless it left nothing."""
    if not (folder / RUN).exists():
        return False
    run = read_run(folder)
    if run.results is None and not (folder / LAST).exists():
        return False
    besides = {"threads", "workers"}
    held, asked = ({k: v for k, v in record.config.items() if k not in besides} for record in (run.record, wanted))
    if changes := list(differences(held, asked)):
        raise InputError(
            f"{folder} was made by another configuration: {'; '.join(changes)}. Go on with the old one, or take "
            "another folder with --out."
        )
    return run.results is not None


def _record(work: Work, seed: int, methods: Methods) -> RunRecord:
    found, asked = work.found, work.asked
    config = {**_config(work, seed, methods), "threads": torch.get_num_threads(), "workers": work.workers}
    return RunRecord(
        name=title(asked),
        command=work.order.command,
        group=asked.student,  # not the pictures, whose folder may be called otherwise when it goes on
        status="running",
        seed=seed,
        students=list(methods),
        config=config,
        data=DataRecord(
            name=asked.data,
            fingerprint=":".join(found.fingerprint.values()),
            classes=list(found.classes),
            train=len(found.train),
            test=len(found.tested),
            watched="validation",
            tested="validation" if found.test is None else "test",
        ),
        versions=surroundings.versions(),
        device=work.where,
        commit=surroundings.commit(),
        started=datetime.now(UTC).isoformat(timespec="seconds"),
    )


def title(asked: Asked) -> str:
    return f"{asked.student} on {Path(asked.data).name or asked.data}"


def check(asked: Asked) -> None:
    """Values that no training takes are told before anything takes time."""
    _augmentation(asked), _mix(asked)
    _recipe(asked, asked.training.batch_size).make([nn.Parameter(torch.zeros(2, 2))])


def _recipe(asked: Asked, size: int) -> Recipe:
    learning = asked.training
    warmup = learning.epochs / 20 if learning.warmup_epochs is None else learning.warmup_epochs
    return Recipe(
        learning.epochs, size, learning.learning_rate, learning.weight_decay, learning.optimiser,
        learning.optimiser_options, warmup, learning.decay_norms,
    )  # fmt: skip


def _augmentation(asked: Asked) -> Augmentation:
    return Augmentation(**asked.augment.model_dump())


def _mix(asked: Asked) -> Mix | None:
    mixing = asked.mix
    return Mix(**mixing.model_dump()) if mixing.mixup or mixing.cutmix else None
