"""Checkpoints: `last.ckpt` holds everything needed to go on, `best-<student>.safetensors` the best weights so far.

Each is replaced at once or not at all, after an epoch or within one; a run that is killed does again what came after
the last one, and on a CPU ends with the same bits.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

from plackett.differences import differences
from plackett.errors import InputError, PlackettError
from plackett.files import replacing
from plackett.training.cohort import Cohort
from plackett.training.student import Student

LAST, FORMAT = "last.ckpt", "plackett checkpoint 2"
WHOLE = "plackett checkpoint 1"  # an older one, always of a whole epoch


@dataclass
class Checkpoints:
    """The checkpoints of one run.

    Args:
        folder: where they lie.
        config: what the run was configured with, as JSON has it; going on with another is refused.

    `done` is how many steps of the epoch to go on with were taken already, after `restore`.
    """

    folder: Path
    config: Mapping[str, Any] = field(default_factory=dict)
    best: dict[str, tuple[float, int]] = field(default_factory=dict, init=False)  # score and epoch
    done: int = field(default=0, init=False)

    def save(
        self,
        cohort: Cohort,
        epoch: int,
        scores: Mapping[str, float] | None = None,
        notes: Mapping[str, Any] | None = None,
        done: int | None = None,
    ) -> None:
        """After `epoch`, counted from 0: each student whose score is its highest is kept, and the whole cohort.

        `done`: within that epoch, after so many of its steps; of one process only.

        `notes` (as JSON has them) come back from `restore`: what the caller must know to go on. Of several processes
        the first writes.
        """
        self.keep_best(cohort, epoch, scores or {})
        if cohort.processes.first and (done is None or not cohort.processes.several):
            with self._told(epoch):
                self._save_last(cohort, epoch, notes or {}, done)

    def keep_best(self, cohort: Cohort, epoch: int, scores: Mapping[str, float]) -> None:
        """Each student whose score is its highest so far."""
        for student in cohort.students:
            score = scores.get(student.name)
            if score is not None and score > self.best.get(student.name, (float("-inf"), 0))[0]:
                self.best[student.name] = (score, epoch)
                if cohort.processes.first:
                    with self._told(epoch):
                        self._save_best(student, score, epoch)

    @contextmanager
    def _told(self, epoch: int) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise PlackettError(
                f"The checkpoint of epoch {epoch + 1} could not be saved in {self.folder} ({error.strerror or error}); "
                "the last good one is intact. Make room and run the same command again."
            ) from error

    def restore(self, cohort: Cohort) -> tuple[int, dict[str, Any]]:
        """Brings the cohort to where it was: the epoch to go on with, and the notes. (0, {}) where nothing is saved."""
        path = self.folder / LAST
        for left in (*self.folder.glob(f".{LAST}.*"), *self.folder.glob(".best-*.safetensors.*")):
            left.unlink(missing_ok=True)  # half-written by a run that was killed
        if not path.exists():
            return 0, {}
        held = _read(path, cohort)
        if changes := list(differences(json.loads(held["config"]), _plain(self.config))):
            raise InputError(
                f"{path} was made by another configuration: {'; '.join(changes)}. "
                "Go on with the old one, or take another folder."
            )
        if missing := [s.name for s in cohort.students if s.name not in held["students"]]:
            raise InputError(f"{path} has no student {missing[0]!r}; it has {', '.join(held['students'])}.")
        cohort.forget_graph()
        for student in cohort.students:
            try:
                student.load(held["students"][student.name])
            except (RuntimeError, ValueError, KeyError) as error:
                reason = str(error).splitlines()[0]
                raise InputError(
                    f"{path} holds another network or optimiser for {student.name!r} ({reason})."
                ) from error
        self.best = {name: (float(score), int(epoch)) for name, (score, epoch) in json.loads(held["best"]).items()}
        notes: dict[str, Any] = json.loads(held["notes"])
        within = held.get("done")
        self.done = int(within or 0)
        return int(held["epoch"]) + (within is None), notes

    def best_path(self, student: str) -> Path:
        return self.folder / f"best-{re.sub(r'[^A-Za-z0-9._=-]+', '-', student)}.safetensors"

    def _save_best(self, student: Student, score: float, epoch: int) -> None:
        weights = {name: tensor.detach().contiguous() for name, tensor in student.kept.state_dict().items()}
        with replacing(self.best_path(student.name)) as temporary:
            save_file(weights, temporary, metadata={"student": student.name, "score": repr(score), "epoch": str(epoch)})

    def _save_last(self, cohort: Cohort, epoch: int, notes: Mapping[str, Any], done: int | None) -> None:
        held = {
            "format": FORMAT,
            "epoch": epoch,
            "done": done,
            "config": json.dumps(self.config),
            "notes": json.dumps(notes),
            "best": json.dumps(self.best),
            "students": {student.name: student.state() for student in cohort.students},
        }
        # Into memory first: torch reports a full disk as something else than it is.
        buffer = io.BytesIO()
        torch.save(held, buffer)
        with replacing(self.folder / LAST) as temporary:
            temporary.write_bytes(buffer.getbuffer())


def _read(path: Path, cohort: Cohort) -> dict[str, Any]:
    device = cohort.batches.pictures.device
    try:
        held: dict[str, Any] = torch.load(path, map_location=device, weights_only=True)
        said = held["format"]
    except Exception as error:  # a damaged file can end in nearly any of them
        raise InputError(f"{path} cannot be read ({type(error).__name__}); delete it to begin anew.") from error
    if said not in (FORMAT, WHOLE):
        raise InputError(f"{path} says it is {said!r}, not {FORMAT!r}; delete it to begin anew.")
    for state in held["students"].values():
        state["random_state"] = state["random_state"].cpu()
    return held


def _plain(config: Mapping[str, Any]) -> Any:
    return json.loads(json.dumps(config))
