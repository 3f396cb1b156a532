"""A cohort on pictures that are read when wanted: mixed, unlabelled, and replayed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from plackett.data.folders import joined, open_pictures, unlabelled
from plackett.data.loading import Augmentation, Mix, PictureBatches
from plackett.data.sight import Sight
from plackett.data.source import Source
from plackett.objectives import Objective
from plackett.teachers import LiveTeacher
from plackett.training import Cohort, EpochReport, Recipe, Student
from tests.data import drawn

TERMS: dict[str, dict[str, Any]] = {
    "CE": {"ce": 1.0},
    "KD": {"ce": 0.1, "kd": {"weight": 0.9, "temperature": 4.0}},
    "DIST": {"ce": 1.0, "dist": 2.0},
    "PLD": {"pld": {"temperature": 4.0}},
    "PLD label": {"pld": {"temperature": 4.0, "label_weight": 0.5}},
}


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> tuple[Source, Source]:
    root: Path = tmp_path_factory.mktemp("pictures")
    train = open_pictures(drawn.folder(root / "pets")).train
    assert train is not None
    return train, joined(train, unlabelled(drawn.folder(root / "more", {"": 3})))


class Net(nn.Sequential):
    def __init__(self) -> None:
        super().__init__(nn.Conv2d(3, 8, 3, stride=2), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 49, 3))


def trained(source: Source, epochs: int = 2, **options: Any) -> tuple[list[Student], list[EpochReport]]:
    batches = PictureBatches(source, 6, 0, Sight(16), augment=Augmentation(scale=(0.5, 1.0)), **options)
    recipe = Recipe(epochs=epochs, batch_size=6, learning_rate=3e-3, weight_decay=0.01)
    students = [
        Student.make(name, Net, Objective(terms, unlabelled="teacher"), recipe, steps_per_epoch=len(batches), seed=0)
        for name, terms in TERMS.items()
    ]
    torch.manual_seed(1)
    reports: list[EpochReport] = []
    Cohort(students, batches, LiveTeacher(Net(), 3)).fit(epochs, reports.append)
    batches.close()
    return students, reports


@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize("mix", [None, Mix(), Mix(mixup=0.0), Mix(cutmix=0.0)])
def test_every_objective_learns_from_mixed_and_from_unlabelled_pictures(
    sources: tuple[Source, Source], which: int, mix: Mix | None
) -> None:
    students, reports = trained(sources[which], mix=mix)
    assert [student.stopped for student in students] == [None] * len(students)
    for report in reports:
        assert set(report.metrics) == set(TERMS)
        assert all(0 <= metrics.accuracy <= 1 for metrics in report.metrics.values())
    before = Student.make("CE", Net, Objective(TERMS["CE"]), Recipe(1, 6, 1e-3, 0.0), steps_per_epoch=1, seed=0)
    for student in students:
        assert any(
            not torch.equal(a, b) for a, b in zip(student.model.parameters(), before.model.parameters(), strict=True)
        )


def test_the_weights_do_not_depend_on_who_reads_the_pictures(sources: tuple[Source, Source]) -> None:
    here, there = (trained(sources[1], mix=Mix(), workers=workers)[0] for workers in (0, 2))
    for one, other in zip(here, there, strict=True):
        assert all(torch.equal(a, b) for a, b in zip(one.model.parameters(), other.model.parameters(), strict=True))
