"""Run folders made by hand, small and complete."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

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
    write_json,
)

CALIBRATION = CalibrationRecord(ece=0.1, counts=[0, 4], confidence=[None, 0.9], accuracy=[None, 1.0])


def record(seed: int, students: list[str], group: str = "g", classes: tuple[str, ...] = ("a", "b")) -> RunRecord:
    return RunRecord(
        name="By hand",
        group=group,
        status="finished",
        seed=seed,
        students=students,
        config={"methods": dict.fromkeys(students, "?")},
        data=DataRecord(name="none", fingerprint="00", classes=list(classes), train=4, test=10_000),
        teacher=TeacherRecord(
            model="t", parameters=100, accuracy=0.95, calibration=CALIBRATION, first_choice_weight={1.0: 0.9, 4.0: 0.5}
        ),
        versions={"plackett": "0", "torch": "0"},
        device="cpu: none",
        started="2026-01-01T00:00:00+00:00",
    )


def write_run(folder: Path, seed: int, accuracies: Mapping[str, float], *, group: str = "g", epochs: int = 3) -> Path:
    """A finished run whose students end with the given accuracies."""
    write_json(folder / RUN, record(seed, list(accuracies), group))
    with MetricsFile(folder) as metrics:
        for epoch in range(epochs):
            students = {
                name: StudentEpoch(loss=1.0 / (epoch + 1), terms={"ce": 1.0}, train_accuracy=0.5, accuracy=value)
                for name, value in accuracies.items()
            }
            metrics.append(EpochRecord(epoch=epoch, students=students))
    results = {
        name: StudentResult(
            parameters=10, accuracy=value, best_accuracy=value, best_epoch=0, agreement=0.9, calibration=CALIBRATION
        )
        for name, value in accuracies.items()
    }
    write_json(folder / RESULTS, Results(students=results))
    return folder
