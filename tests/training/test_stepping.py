"""What a step does besides the optimiser's own."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from plackett.errors import InputError
from plackett.objectives import Objective
from plackett.training import Checkpoints, Cohort, Stepping, Student
from tests.training import small


class Plain(nn.Module):
    """Without a norm, whose statistics would be of a part."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.fc = nn.Conv2d(3, 6, 3), nn.Linear(6, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.fc(self.conv(x).relu().mean((2, 3)))


def student(stepping: Stepping, build: type[nn.Module] = Plain) -> Student:
    made = Student.make("PLD", build, Objective(small.OBJECTIVES["PLD τ=4"]), small.RECIPE, steps_per_epoch=5, seed=0)
    return Student(made.name, made.model, made.objective, made.optimiser, made.schedule, made.random_state,
                   stepping=stepping)  # fmt: skip


def trained(stepping: Stepping) -> Student:
    one = student(stepping)
    Cohort([one], small.stream(), small.teacher()).fit(2)
    return one


def test_parts_add_up_to_the_step() -> None:
    whole, parts = trained(Stepping()), trained(Stepping(parts=3))
    ours, theirs = small.weights(parts), small.weights(whole)
    assert all(torch.allclose(ours[name], theirs[name], rtol=1e-4, atol=1e-5) for name in theirs)
    assert parts.metrics(10).loss == pytest.approx(whole.metrics(10).loss, rel=1e-5)
    assert parts.metrics(10).accuracy == whole.metrics(10).accuracy


def test_a_clipped_gradient_has_the_norm_that_was_asked_for() -> None:
    one = trained(Stepping(clip=1e-3))
    norms = torch.stack([parameter.grad.norm() for parameter in one.trained if parameter.grad is not None])
    assert norms.norm().item() == pytest.approx(1e-3, rel=1e-3)


def test_the_average_is_what_is_kept_and_comes_back(tmp_path: object) -> None:
    from pathlib import Path

    folder = Path(str(tmp_path))
    one = trained(Stepping(average=0.9))
    assert one.kept is not one.model
    moved = [(a - b).abs().max() for a, b in zip(one.kept.parameters(), one.model.parameters(), strict=True)]
    assert max(moved) > 1e-4
    Checkpoints(folder).save(Cohort([one], small.stream(), small.teacher()), 1)
    again = student(Stepping(average=0.9))
    Checkpoints(folder).restore(Cohort([again], small.stream(), small.teacher()))
    for mine, theirs in zip(again.kept.parameters(), one.kept.parameters(), strict=True):
        assert torch.equal(mine, theirs)


def test_soft_targets_and_missing_labels_are_counted() -> None:
    from plackett.training.ledger import HostLedger

    logits = torch.tensor([[2.0, 0.0], [0.0, 2.0], [2.0, 0.0], [0.0, 2.0]])
    for targets in (torch.tensor([0, 0, 0, 1]), torch.tensor([[0.9, 0.1], [0.9, 0.1], [0.6, 0.4], [0.0, 1.0]])):
        ledger = HostLedger(["pld"])
        ledger.enter(0, [torch.tensor(1.0)] * 2, [torch.zeros(1)], logits, targets)
        assert ledger.metrics(0.1).accuracy == 0.75
    ledger = HostLedger(["pld"])
    ledger.enter(0, [torch.tensor(1.0)] * 2, [torch.zeros(1)], logits, torch.tensor([0, 0, -100, -100]))
    assert ledger.metrics(0.1).accuracy == 0.5


@pytest.mark.parametrize(("given", "sentence"), [
    ({"parts": 0}, "at least 1 part, not 0"),
    ({"clip": 0.0}, "a norm above 0, not 0"),
    ({"average": 1.0}, "between 0 and 1, not at 1"),
])  # fmt: skip
def test_what_makes_no_step(given: dict[str, float], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        Stepping(**given)  # type: ignore[arg-type]
