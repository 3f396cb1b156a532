"""What the monitor notices: shares of the gradient, the teacher's part, and everything that is odd, once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from plackett.data.folders import open_pictures
from plackett.data.loading import PictureBatches
from plackett.distilling.monitor import Monitor
from plackett.models.named import named
from plackett.objectives import Objective
from plackett.teachers import SeeingTeacher
from plackett.training import Cohort, EpochReport, Recipe, Student
from tests.distilling import pets


class Scene:
    """A cohort of one, after an epoch of two steps."""

    def __init__(self, place: Path, terms: dict[str, Any], rate: float = 1e-3) -> None:
        train = open_pictures(place / "pets").train
        assert train is not None
        self.batches = PictureBatches(train, 12, 0, pets.SIGHT, drop_last=True)
        self.teacher = SeeingTeacher(named(str(place / "teacher")), pets.SIGHT, train.classes)
        recipe = Recipe(1, 12, rate)
        self.student = Student.make("S", lambda: named("resnet8x4", classes=3).network, Objective(terms), recipe,
                                    steps_per_epoch=len(self.batches), seed=0)  # fmt: skip
        self.cohort = Cohort([self.student], self.batches, self.teacher)
        self.reports: list[EpochReport] = []
        self.cohort.fit(1, self.reports.append)
        self.sentences: list[str] = []

    def found(self, temperatures: dict[str, float] | None = None, logits: Tensor | None = None) -> dict[str, Any]:
        targets = torch.tensor([0, 1, 2] * 40)
        said = torch.eye(3)[targets]
        self.monitor = Monitor(self.cohort, self.teacher, temperatures or {}, targets, said, self.sentences.append)
        return self.monitor(self.reports[-1], {"S": said if logits is None else logits})["S"]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("monitor")
    pets.folder(root / "pets", {"train": 8, "val": 2})
    pets.teacher(root / "pets", root / "teacher")
    return root


def test_shares_are_those_of_the_gradients_norms(place: Path) -> None:
    scene = Scene(place, {"ce": 0.25, "kd": {"weight": 0.75, "temperature": 2.0}})
    shares = scene.found()["gradient_share"]
    assert scene.cohort.seen is not None
    batch, signals = scene.cohort.seen
    assert signals is not None
    model = scene.student.model.eval()
    norms = {}
    for name in ("ce", "kd"):
        logits = model(batch.inputs)
        if name == "ce":
            loss = 0.25 * torch.nn.functional.cross_entropy(logits, batch.targets)
        else:
            log_s, log_t = (logits / 2).log_softmax(-1), (signals.logits / 2).log_softmax(-1)
            loss = 0.75 * 4 * (log_t.exp() * (log_t - log_s)).sum(-1).mean()
        gradients = torch.autograd.grad(loss, list(model.parameters()))
        norms[name] = torch.cat([g.flatten() for g in gradients]).norm().item()
    whole = sum(norms.values())
    assert shares == pytest.approx({name: norm / whole for name, norm in norms.items()}, rel=1e-4)


def test_looking_changes_nothing(place: Path) -> None:
    scene = Scene(place, {"ce": 1.0, "kd": 1.0})
    scene.student.model.train()
    before = {name: tensor.clone() for name, tensor in scene.student.model.state_dict().items()}
    scene.found({"S": 1.0})
    assert scene.student.model.training
    assert all(torch.equal(before[name], tensor) for name, tensor in scene.student.model.state_dict().items())
    assert all(p.grad is None or torch.isfinite(p.grad).all() for p in scene.student.model.parameters())


def test_the_first_choice_weight_is_the_teachers_mean_probability_of_the_label(place: Path) -> None:
    scene = Scene(place, {"pld": {"temperature": 2.0}})
    found = scene.found({"S": 2.0})["first_choice_weight"]
    assert scene.cohort.seen is not None
    batch, signals = scene.cohort.seen
    assert signals is not None
    expected = (signals.logits / 2).softmax(-1)[torch.arange(len(batch.targets)), batch.targets].mean().item()
    assert found == pytest.approx(expected, rel=1e-6)
    assert "first_choice_weight" not in scene.found()


def test_a_term_that_teaches_nothing_is_told_once(place: Path) -> None:
    scene = Scene(place, {"ce": 1.0, "kd": {"weight": 0.0}})
    scene.found()
    assert scene.sentences == [
        "S: its term 'kd' has no part in the gradient after epoch 1 (0 of it): raise its weight, or leave it out."
    ]
    scene.monitor(scene.reports[-1], {"S": torch.eye(3)[torch.tensor([0, 1, 2] * 40)]})
    assert len(scene.sentences) == 1


def test_a_teacher_that_moves_is_told(place: Path) -> None:
    scene = Scene(place, {"pld": 1.0})
    with torch.no_grad():
        next(scene.teacher.network.parameters()).add_(1e-7)
    scene.found()
    assert len(scene.sentences) == 1
    assert scene.sentences[0].startswith("The teacher has changed while it taught (1 tensors, such as ")


def test_a_student_at_chance_is_told(place: Path) -> None:
    scene = Scene(place, {"pld": 1.0})
    scene.found(logits=torch.zeros(120, 3))
    assert scene.sentences == [
        "S: after epoch 1 it is right on 33.3 % of 120 pictures, where guessing is on 33.3 %. If that stays so, lower "
        "the learning rate (or warm up longer), and look at some training pictures and their labels."
    ]


def test_a_gradient_that_is_not_finite_has_no_shares_and_is_told(place: Path) -> None:
    """A record holds numbers only: shares that are not numbers would make all of the metrics unreadable."""
    scene = Scene(place, {"pld": {}, "ce": {}})
    with torch.no_grad():
        next(scene.student.model.parameters()).fill_(float("nan"))
    assert scene.found()["gradient_share"] == {}
    assert scene.sentences == [
        "S: the shares of its terms in the gradient are not known after epoch 1, for on the last batch one is not "
        "finite: lower the learning rate, or take precision=float32."
    ]
