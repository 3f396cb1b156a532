"""One distillation under way: what was asked, what was opened for it, and how it is carried out."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from plackett.data.loading import Bad
from plackett.data.sight import Sight
from plackett.data.source import Source
from plackett.distilling.asked import Asked
from plackett.distilling.gathered import Gathered, parameters
from plackett.distilling.shown import Shown
from plackett.errors import InputError
from plackett.evaluation import accuracy
from plackett.experiments import surroundings
from plackett.experiments.compare import calibration_record
from plackett.experiments.findings import CHECK, Checked, Findings
from plackett.experiments.limit import Limit
from plackett.experiments.preflight import preflight
from plackett.experiments.records import Document, TeacherRecord, read_document, write_json
from plackett.teachers import SeeingTeacher
from plackett.training import Mode, Pause

MOST_WORKERS = 16


@dataclass(frozen=True)
class Order:
    """What was asked for, and where and how it is carried out.

    Args:
        out: the folder of everything that is written.
        command: as it was typed, for the report.
        workers: processes that read pictures; None chooses.
        trust: also read pickled weights.
        allow_weak: go on with a teacher that is near chance.
        smoke: a few pictures and epochs, to see whether everything works.
        tensorboard: write every epoch for TensorBoard too.
        pause: a reason in it stops training after the next step, saved.
        limit: of time; training stops before it, after an epoch that is saved.
    """

    asked: Asked
    out: Path
    command: str = ""
    device: str | None = None
    workers: int | None = None
    trust: bool = False
    allow_weak: bool = False
    smoke: bool = False
    tensorboard: bool = False
    pause: Pause = field(default_factory=Pause)
    limit: Limit = field(default_factory=Limit)


@dataclass(frozen=True)
class Telling:
    """Who is told: of how far it is (`what`, done, total), and every sentence that a person should read."""

    progress: Callable[[str, int, int], None]
    say: Callable[[str], None]


@dataclass
class Work:
    order: Order
    asked: Asked
    found: Gathered
    device: torch.device
    telling: Telling
    left_out: list[str] = field(default_factory=list)  # pictures to test on that cannot be read
    _said: dict[Shown, Tensor] = field(default_factory=dict)

    @property
    def mode(self) -> Mode:
        learning, fast = self.asked.training, self.device.type == "cuda"
        bfloat16 = fast if learning.precision is None else learning.precision == "bfloat16"
        last = fast if learning.channels_last is None else learning.channels_last
        return Mode(bfloat16=bfloat16, channels_last=last, compile=learning.compile)

    @property
    def workers(self) -> int:
        return usual_workers(self.device) if self.order.workers is None else self.order.workers

    @property
    def where(self) -> str:
        return surroundings.where(self.device)

    def folder(self, seed: int) -> Path:
        return self.order.out / f"seed-{seed}"

    @cached_property
    def watched(self) -> Shown:
        """What students are tested on while they learn; read once for all seeds, as far as it fits into memory."""
        return self._shown(self.found.val, self.found.sight)

    @cached_property
    def tested(self) -> Shown:
        """What the last figures are of."""
        return self.watched if self.found.test is None else self._shown(self.found.test, self.found.sight)

    def said(self, teacher: SeeingTeacher | None, pictures: Shown) -> Tensor | None:
        """What the teacher says of them, as it teaches; it is asked once."""
        if teacher is not None and pictures not in self._said:
            self._said[pictures] = pictures.predictions({"teacher": teacher.network})["teacher"]
        return self._said.get(pictures)

    def close(self) -> None:
        for name in ("watched", "tested"):
            if name in vars(self):  # made at all
                getattr(self, name).close()

    def _shown(self, source: Source, sight: Sight) -> Shown:
        return Shown(
            source, sight, self.mode, device=self.device, workers=self.workers,
            size=max(64, self.asked.training.batch_size), bad_limit=self.asked.bad_limit, on_bad=self._bad,
        )  # fmt: skip

    def _bad(self, bad: Bad) -> None:
        if bad.name in self.left_out:
            return
        self.left_out.append(bad.name)
        self.telling.say(f"{bad.name} cannot be read ({bad.why}); it is left out.")

    @cached_property
    def findings(self) -> Findings | None:
        """What the pre-flight finds on pictures to validate with; kept for the next time."""
        found, asked = self.found, self.asked
        if found.teacher is None:
            return None
        key = as_json({
            "teacher": found.teacher.spec, "sha256": found.teacher_sha256, "sight": found.teacher.sight.as_dict(),
            "names": asked.teacher_classes, "student": found.student.spec, "seen": found.sight.as_dict(),
            "pictures": found.val.fingerprint(), "at_most": asked.check_pictures,
            "plackett": surroundings.versions()["plackett"],
        })  # fmt: skip
        path = self.order.out / CHECK
        with suppress(InputError):
            held = read_document(path, Checked)
            if held.key == key:
                return held.findings
        findings = preflight(
            found.teacher, found.val, student=found.sight, student_parameters=parameters(found.student),
            names=found.teacher_names, data=asked.data, split="val", limit=asked.check_pictures, workers=self.workers,
            device=self.device, watch=self.telling.progress,
        )  # fmt: skip
        write_json(path, Checked(key=key, findings=findings))
        return findings

    @cached_property
    def teacher_record(self) -> TeacherRecord | None:
        """The teacher as whoever uses it knows it: shown the test pictures its own way."""
        named, findings = self.found.teacher, self.findings
        if named is None or findings is None:
            return None
        own = SeeingTeacher(named, named.sight, self.found.classes, names=self.found.teacher_names)
        own.network.to(self.device)
        tested = self._shown(self.found.tested, named.sight)
        try:
            said = tested.predictions({"teacher": own.network})["teacher"]
        finally:
            tested.close()
        return TeacherRecord(
            model=self.asked.teacher,
            parameters=findings.parameters,
            accuracy=accuracy(said, tested.targets),
            calibration=calibration_record(said, tested.targets),
            first_choice_weight=findings.first_choice_weight,
            weighed_on="validation",
        )


class _Plain(Document):
    held: dict[str, Any]


def as_json(held: Mapping[str, Any]) -> dict[str, Any]:
    """With lists for tuples, as it comes back from a file."""
    return dict(_Plain(held=dict(held)).model_dump(mode="json")["held"])


def usual_workers(device: torch.device) -> int:
    """Processes that read pictures ahead; on a CPU training needs the cores itself."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(cores, MOST_WORKERS) if device.type == "cuda" else max(1, cores // 2)
