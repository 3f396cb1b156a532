"""A student's result in a cohort is its result alone, bit for bit on the CPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
import torch
from torch import nn

from plackett import models
from plackett.data import Batches, Pictures, Shift
from plackett.errors import InputError
from plackett.objectives import Objective
from plackett.teachers import LiveTeacher
from plackett.training import Cohort, EpochReport, Recipe, Student
from tests.training import small

RECIPE = Recipe(epochs=3, batch_size=8, learning_rate=1e-2, weight_decay=0.01)
OBJECTIVES: dict[str, dict[str, Any]] = {
    "CE": {"ce": 1.0},
    "KD": {"ce": 0.1, "kd": {"weight": 0.9, "temperature": 4.0}},
    "PLD": {"pld": {"temperature": 4.0}},
}


def build() -> nn.Module:
    """With dropout: its random numbers must be the student's own."""
    return nn.Sequential(nn.Flatten(), nn.Linear(16, 12), nn.ReLU(), nn.Dropout(0.3), nn.Linear(12, 3))


def data() -> Pictures:
    generator = torch.Generator().manual_seed(1)
    inputs = torch.randn(30, 1, 4, 4, generator=generator)
    return Pictures(inputs, (inputs.mean((1, 2, 3)) > 0).long() + (inputs[:, 0, 0, 0] > 1).long(), ("a", "b", "c"))


def teacher() -> LiveTeacher:
    torch.manual_seed(5)
    return LiveTeacher(build(), 3)


def students(names: Sequence[str], seed: int = 0, **changes: Any) -> list[Student]:
    return [
        Student.make(name, build, Objective({**OBJECTIVES, **changes}[name]), RECIPE, steps_per_epoch=4, seed=seed)
        for name in names
    ]


def fit(cohort: list[Student], source: LiveTeacher | None) -> list[EpochReport]:
    reports: list[EpochReport] = []
    Cohort(cohort, Batches(data(), 8, seed=2, augment=Shift()), source).fit(RECIPE.epochs, reports.append)
    return reports


def weights(student: Student) -> list[torch.Tensor]:
    return [p.detach() for p in student.model.parameters()]


def same(one: Student, other: Student) -> bool:
    return all(torch.equal(a, b) for a, b in zip(weights(one), weights(other), strict=True))


def test_a_student_in_a_cohort_equals_the_student_alone() -> None:
    together = students(list(OBJECTIVES))
    reports = fit(together, teacher())
    for place, name in enumerate(OBJECTIVES):
        (alone,) = students([name])
        torch.rand(place)  # what else draws random numbers is of no consequence
        own = fit([alone], teacher())
        assert same(alone, together[place])
        assert [r.metrics[name] for r in own] == [r.metrics[name] for r in reports]


def test_methods_of_one_seed_start_from_the_same_weights_and_seeds_do_not() -> None:
    ce, kd = students(["CE", "KD"])
    assert same(ce, kd)
    assert not same(ce, students(["CE"], seed=1)[0])


def test_training_leaves_the_callers_random_numbers_alone() -> None:
    source, cohort = teacher(), students(["CE", "PLD"])
    before = torch.get_rng_state()
    fit(cohort, source)
    assert torch.equal(before, torch.get_rng_state())


def test_metrics_are_means_over_the_epochs_pictures() -> None:
    """The last batch is smaller, so a mean of batches would differ. With a rate of nearly 0 the loss keeps still."""
    slow = Recipe(epochs=1, batch_size=8, learning_rate=1e-30)
    model = nn.Sequential(nn.Flatten(), nn.Linear(16, 3))
    objective = Objective(OBJECTIVES["KD"])
    student = Student.make("KD", lambda: model, objective, slow, steps_per_epoch=4, seed=0)
    source, pictures = teacher(), data()
    reports: list[EpochReport] = []
    Cohort([student], Batches(pictures, 8, seed=0), source).fit(1, reports.append)
    logits = model(pictures.inputs)
    total, terms = objective(logits, source.logits(pictures.inputs), pictures.targets)
    found = reports[0].metrics["KD"]
    assert found.loss == pytest.approx(total.item(), rel=1e-5)
    assert found.terms == pytest.approx({name: value.item() for name, value in terms.items()}, rel=1e-5)
    assert found.accuracy == pytest.approx((logits.argmax(-1) == pictures.targets).float().mean().item())


def test_a_student_whose_loss_is_not_finite_stops_with_a_sentence_and_the_others_go_on() -> None:
    cohort = students(["CE", "bad", "PLD"], bad={"ce": 1e30, "kd": 1.0})
    healthy = students(["CE", "PLD"])
    for student in cohort:
        if student.name == "bad":
            with torch.no_grad():
                student.model[1].weight.fill_(float("inf"))
    reports = fit(cohort, teacher())
    fit(healthy, teacher())
    assert cohort[1].stopped is not None
    assert cohort[1].stopped.startswith("Student 'bad' stopped in epoch 1, step 1: its loss is nan (ce nan, kd nan).")
    assert cohort[0].stopped is None
    assert same(cohort[0], healthy[0])
    assert same(cohort[2], healthy[1])
    assert [sorted(report.metrics) for report in reports] == [["CE", "PLD"]] * 3


def test_weights_that_become_infinite_are_noticed_at_the_end_of_the_epoch() -> None:
    (student,) = students(["CE"])

    class Breaks(Batches):
        def epoch(self, epoch: int, start: int = 0) -> Any:
            yield from super().epoch(epoch, start)
            with torch.no_grad():
                student.model[1].weight[0, 0] = float("nan")

    Cohort([student], Breaks(data(), 8, seed=0)).fit(3)
    assert student.stopped is not None
    assert student.stopped.startswith("Student 'CE' stopped after epoch 1: it has a weight that is not finite.")


def test_features_reach_the_objectives_that_read_them() -> None:
    pictures = Pictures(torch.randn(8, 3, 16, 16), torch.arange(8) % 3, ("a", "b", "c"))
    batches = Batches(pictures, 4, seed=0)
    recipe = Recipe(epochs=1, batch_size=4)
    objectives = {
        "AT": Objective({"ce": 1.0, "at": 10.0}),
        "FitNet": Objective({"fitnet": {"student_channels": 64, "teacher_channels": 64, "taps": "stage1"}, "kd": 1.0}),
    }
    cohort = [
        Student.make(n, lambda: models.create("resnet8x4", classes=3), o, recipe, steps_per_epoch=2, seed=0)
        for n, o in objectives.items()
    ]
    assert [student.taps for student in cohort] == [("stage1", "stage2", "stage3"), ("stage1",)]
    source = LiveTeacher(models.create("resnet8x4", classes=3), 3, taps=("stage1", "stage2", "stage3"))
    reports: list[EpochReport] = []
    before = objectives["FitNet"].losses["fitnet"].state_dict()
    before = {name: value.clone() for name, value in before.items()}
    Cohort(cohort, batches, source).fit(1, reports.append)
    assert reports[0].metrics["AT"].terms["at"] > 0
    after = objectives["FitNet"].losses["fitnet"].state_dict()
    assert not all(torch.equal(before[name], after[name]) for name in before)
    with pytest.raises(
        InputError, match=r"'AT' reads the feature 'stage1', .* make it with taps=\('stage1', 'stage2', "
    ):
        Cohort(cohort, batches, LiveTeacher(models.create("resnet8x4", classes=3), 3))
    (plain,) = (Student.make("x", build, objectives["AT"], recipe, steps_per_epoch=1, seed=0),)
    with pytest.raises(InputError, match="The objective of 'x' reads features, but its network has no taps"):
        Cohort([plain], batches, source)


def test_an_objectives_own_parameters_are_trained() -> None:
    recipe = Recipe(epochs=1, batch_size=8)
    objective = Objective({"ce": 1.0})
    objective.own = nn.Parameter(torch.ones(2))
    student = Student.make("x", build, objective, recipe, steps_per_epoch=1, seed=0)
    assert any(p is objective.own for group in student.optimiser.param_groups for p in group["params"])


def test_the_schedule_ends_at_zero() -> None:
    (student,) = students(["CE"])
    reports = fit([student], None)
    rates = [report.metrics["CE"].learning_rate for report in reports]
    assert rates[0] < 1e-2
    assert rates == sorted(rates, reverse=True)
    assert rates[-1] == pytest.approx(0.0, abs=1e-12)


def test_mistakes_get_a_sentence() -> None:
    batches = Batches(data(), 8, seed=0)
    with pytest.raises(InputError, match="The objective of 'PLD' reads a teacher, but the cohort has none"):
        Cohort(students(["CE", "PLD"]), batches)
    with pytest.raises(InputError, match="no name twice; got CE, CE"):
        Cohort([*students(["CE"]), *students(["CE"])], batches)
    with pytest.raises(InputError, match="got none"):
        Cohort([], batches)
    with pytest.raises(InputError, match="The teacher has 7 classes, the data 3"):
        Cohort(students(["PLD"]), batches, LiveTeacher(nn.Linear(16, 7), 7))
    with pytest.raises(InputError, match="epochs must be at least 1, not 0"):
        Recipe(epochs=0, batch_size=1)
    with pytest.raises(InputError, match="learning_rate must be above 0"):
        Recipe(epochs=1, batch_size=1, learning_rate=float("nan"))


def test_a_frozen_layer_stays_as_it_is() -> None:
    def build() -> nn.Module:
        net = small.plain()
        net.get_submodule("conv").requires_grad_(False)
        return net

    (student,) = small.students(["KD"], build=build)
    before = small.weights(student)
    Cohort([student], small.stream(), small.teacher()).fit(1)
    after = small.weights(student)
    assert torch.equal(after["conv.weight"], before["conv.weight"])
    assert not torch.equal(after["fc.weight"], before["fc.weight"])
