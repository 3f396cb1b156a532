"""A cohort from its first epoch, or its last checkpoint, to its end: tested now and then, kept now and then."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from torch import Tensor, nn

from plackett.evaluation import accuracy
from plackett.experiments.limit import Limit
from plackett.experiments.records import EpochRecord, MetricsFile, StudentEpoch
from plackett.experiments.tensorboard import board
from plackett.training import Checkpoints, Cohort, EpochReport, Pause, Paused

Watch = Callable[[str, int], None]  # what is being done, and the student epochs that were
# What else is noticed of each student after an epoch, as fields of its `StudentEpoch`.
Notice = Callable[[EpochReport, Mapping[str, Tensor]], Mapping[str, Mapping[str, Any]]]
SAVE_SECONDS = 300.0  # within a long epoch


class Tested(Protocol):
    """Pictures that networks are tested on, wherever they lie."""

    @property
    def targets(self) -> Tensor: ...

    def predictions(self, networks: Mapping[str, nn.Module]) -> dict[str, Tensor]: ...


@dataclass(frozen=True)
class Fitted:
    """`best` and `logits` are of the students that finished; `seconds` include those before a stop."""

    best: dict[str, tuple[float, int]]
    logits: dict[str, Tensor]
    seconds: float


def fit(
    cohort: Cohort,
    tested: Tested,
    folder: Path,
    config: Mapping[str, Any],
    epochs: int,
    evaluate_every: int,
    checkpoint_every: int,
    watch: Watch,
    notice: Notice | None = None,
    tensorboard: bool = False,
    limit: Limit | None = None,
    *,
    pause: Pause | None = None,
    save_seconds: float = SAVE_SECONDS,
    stepped: Callable[[int, int], None] | None = None,
) -> Fitted:
    """Trains to the end; a run that was killed goes on from its last checkpoint, and one that is finished is read.

    Args:
        cohort: the students.
        tested: what they are tested on.
        folder: where checkpoints and metrics go.
        config: with what; going on with another is refused.
        epochs: how many in all.
        evaluate_every: tests them after every so many epochs.
        checkpoint_every: saves everything after every so many epochs, and within one every `save_seconds`.
        watch: told what was done.
        notice: asked what else is to be written of an epoch.
        tensorboard: write every epoch for TensorBoard too.
        limit: where it says that another epoch would end too late, the last one is saved, and `OutOfTime` raised.
        pause: where it gives a reason, everything is saved after the step, and `Paused` raised.
        stepped: told the epoch and how many of its steps are taken.
    """
    limit = limit or Limit()
    checkpoints = Checkpoints(folder, config)
    start, notes = checkpoints.restore(cohort)
    history: list[dict[str, Any]] = notes.get("history", [])
    before, begun = float(notes.get("seconds", 0.0)), time.perf_counter()
    pause, saved, within = pause or Pause(), begun, checkpoints.done
    watch("", start * len(cohort.students))

    def save(epoch: int, done: int | None = None) -> None:
        nonlocal saved
        saved = time.perf_counter()
        seconds = before + saved - begun
        checkpoints.save(cohort, epoch, notes={"history": history, "seconds": seconds}, done=done)

    def stop(epoch: int, done: int) -> None:
        raise Paused(f"{pause.reason} after step {done:,} of {len(cohort.batches):,} of epoch {epoch + 1}")

    def step(epoch: int, done: int) -> None:
        if stepped is not None:
            stepped(epoch, done)
        if done == len(cohort.batches) or cohort.processes.several:
            return  # the epoch's end saves
        if pause.reason is not None or time.perf_counter() - saved > save_seconds:
            save(epoch, done)
            if pause.reason is not None:
                stop(epoch, done)

    def predictions() -> dict[str, Tensor]:
        return tested.predictions({student.name: student.kept for student in cohort.going()})

    with MetricsFile(folder) as metrics, board(folder, tensorboard) as show:

        def write(epoch: EpochRecord) -> None:
            metrics.append(epoch)
            show(epoch)

        for line in history:
            write(EpochRecord.model_validate(line))

        pace = _Pace(cohort)

        def after(report: EpochReport) -> None:
            pace.epoch_over()
            done = report.epoch + 1
            last, said = done == epochs, ""
            scores: dict[str, float] = {}
            if last or done % evaluate_every == 0:
                said_of = predictions()
                scores = right = {name: accuracy(logits, tested.targets) for name, logits in said_of.items()}
                noticed = notice(report, said_of) if notice is not None else {}
                lines = {
                    name: StudentEpoch(
                        loss=seen.loss,
                        terms=seen.terms,
                        train_accuracy=seen.accuracy,
                        accuracy=right[name],
                        **noticed.get(name, {}),
                    )
                    for name, seen in report.metrics.items()
                }
                record = EpochRecord(epoch=report.epoch, students=lines)
                write(record)
                history.append(record.model_dump(mode="json"))
                figures = ", ".join(
                    f"{name} {100 * value:.1f} % (loss {report.metrics[name].loss:.3g})"
                    for name, value in right.items()
                )
                said = f"epoch {done} of {epochs}: {figures}; {pace.images:,} images/s"
            checkpoints.keep_best(cohort, report.epoch, scores)
            limit.epoch_over(compiled=cohort.mode.compile or cohort.mode.graph)
            late = not last and cohort.processes.any(limit.next_passes(), cohort.batches.pictures.device)
            pausing = pause.reason is not None and not last
            if last or late or pausing or done % checkpoint_every == 0:
                save(report.epoch)
            watch(said, len(cohort.students))
            if pausing:
                stop(report.epoch, len(cohort.batches))
            if late:
                raise limit.out_of_time(done, epochs, folder)
            pace.epoch_begins()

        with pause.while_training():
            cohort.fit(epochs, after, start=start, done=within, on_step=step)
    best: dict[str, tuple[float, int]] = {}
    for student in cohort.going():
        seen = [(line["students"][student.name]["accuracy"], -line["epoch"]) for line in history]
        score, epoch = max(seen)
        best[student.name] = (score, -epoch)
    seconds = before if start >= epochs else before + time.perf_counter() - begun
    return Fitted(best, predictions(), seconds)


class _Pace:
    """Pictures that all students together learn from in a second; tests and checkpoints do not count."""

    def __init__(self, cohort: Cohort) -> None:
        self._cohort, self._pictures, self._seconds = cohort, 0, 0.0
        self.epoch_begins()

    def epoch_begins(self) -> None:
        self._begun = time.perf_counter()

    def epoch_over(self) -> None:
        self._seconds += time.perf_counter() - self._begun
        batches = self._cohort.batches
        self._pictures += min(len(batches) * batches.size, len(batches.pictures)) * len(self._cohort.students)

    @property
    def images(self) -> int:
        return round(self._pictures / max(self._seconds, 1e-9))
