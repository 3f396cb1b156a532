"""What runs made by hand keep beside their results."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from plackett.experiments import predictions
from plackett.experiments.predictions import Predictions
from plackett.experiments.records import write_json
from plackett.experiments.transfer import COSTS, TRANSFER, Alignment, ClassRecord, Costs, LatencyRecord, Transfer
from tests.experiments.runs import CALIBRATION

SHARES = {"both": 0.7, "only_teacher": 0.2, "only_student": 0.04, "neither": 0.06}
FIGURES = ("forward_kl", "reverse_kl", "js", "top1", "top5", "spearman", "kendall", "weighted", "first_choice_weight",
           "teacher_first_choice_weight", "accuracy", "teacher_accuracy")  # fmt: skip


def keep(
    folder: Path, students: Sequence[str], *, classes: int = 2, pictures: int = 40, side: int = 8, teacher: bool = True
) -> None:
    """Every student takes the pictures of class 0 for class 1, one in four; the teacher is always right."""
    targets = np.arange(pictures) % classes
    right = np.eye(classes, dtype=np.float32)[targets]
    said = targets.copy()
    said[np.flatnonzero(targets == 0)[::4]] = 1
    wrong = np.eye(classes, dtype=np.float32)[said]
    which = np.flatnonzero(said != targets)[:48]
    pixels = np.random.default_rng(0).integers(0, 256, (len(which), side, side, 3), np.uint8)
    predictions.write(
        folder,
        Predictions(targets, dict.fromkeys(students, wrong), right if teacher else None, which, pixels)
        if teacher
        else Predictions(targets, dict.fromkeys(students, wrong)),
    )
    latency = LatencyRecord(median_ms=0.5, n=50, batch=1)
    write_json(
        folder / COSTS,
        Costs(
            seconds=12.5, epochs=3, steps=30, students=list(students), peak_mib=700.0, peak_of="process",
            latency=dict.fromkeys(students, latency), parameters=dict.fromkeys(students, 10), threads=1,
            teacher_latency=latency.model_copy(update={"median_ms": 2.0}) if teacher else None,
            teacher_parameters=100 if teacher else None,
        ),
    )  # fmt: skip
    if teacher:
        aligned = Alignment(
            pictures=pictures, ranked=pictures, calibration=CALIBRATION, teacher_calibration=CALIBRATION,
            classes=[ClassRecord(count=1, teacher=1.0, student=1.0)] * classes, **SHARES, **dict.fromkeys(FIGURES, 0.5),
        )  # fmt: skip
        write_json(folder / TRANSFER, Transfer(students=dict.fromkeys(students, aligned)))
