"""Optimisers by name: what decays, how the rate warms up, and states that a checkpoint holds exactly."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import nn

from plackett.errors import InputError
from plackett.training import Checkpoints, Cohort, Recipe, Student
from plackett.training.optimise import USUAL
from tests.training import small


def cohort(recipe: Recipe) -> Cohort:
    return Cohort(small.students(["CE", "PLD τ=4"], recipe=recipe), small.stream(), small.teacher())


@pytest.mark.parametrize("name", [*USUAL, "lambc", "madgrad", "muon"])
def test_a_checkpoint_holds_every_optimisers_state_exactly(name: str, tmp_path: Path) -> None:
    recipe = replace(small.RECIPE, optimiser=name, learning_rate=1e-3, warmup_epochs=1, decay_all=False)
    whole, first, second = cohort(recipe), cohort(recipe), cohort(recipe)
    before = small.weights(whole.students[0])
    whole.fit(3)
    checkpoints = Checkpoints(tmp_path)

    def stop(epoch: int, done: int) -> None:
        if (epoch, done) == (1, 3):
            checkpoints.save(first, epoch, done=done)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        first.fit(3, on_step=stop)
    start, _ = checkpoints.restore(second)
    assert (start, checkpoints.done) == (1, 3)
    second.fit(3, start=start, done=checkpoints.done)
    assert all(small.same(one, other) for one, other in zip(whole.students, second.students, strict=True))
    assert any(not torch.equal(before[name], tensor) for name, tensor in small.weights(whole.students[0]).items())


def test_an_epoch_that_was_left_has_the_figures_of_a_whole_one(tmp_path: Path) -> None:
    whole, first, second = cohort(small.RECIPE), cohort(small.RECIPE), cohort(small.RECIPE)
    expected, found = [], []
    whole.fit(2, lambda report: expected.append(report.metrics))
    checkpoints = Checkpoints(tmp_path)

    def stop(epoch: int, done: int) -> None:
        if (epoch, done) == (1, 2):
            checkpoints.save(first, epoch, done=done)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        first.fit(2, on_step=stop)
    start, _ = checkpoints.restore(second)
    second.fit(2, lambda report: found.append(report.metrics), start=start, done=checkpoints.done)
    assert found == expected[1:]


def test_norms_and_biases_decay_only_where_that_is_asked() -> None:
    network = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))
    usual = Recipe(1, 1, weight_decay=0.1).make(network.parameters())
    spared = Recipe(1, 1, weight_decay=0.1, decay_all=False).make(network.parameters())
    decays = [[(p.dim(), g["weight_decay"]) for g in o.param_groups for p in g["params"]] for o in (usual, spared)]
    assert decays == [[(2, 0.1), (1, 0.1), (1, 0.1), (1, 0.1)], [(2, 0.1), (1, 0.0), (1, 0.0), (1, 0.0)]]


def test_options_reach_the_optimiser_and_a_wrong_one_is_named() -> None:
    made = Recipe(1, 1, optimiser="sgd", options={"momentum": 0.5}).make([nn.Parameter(torch.zeros(2, 2))])
    assert made.param_groups[0]["momentum"] == 0.5
    with pytest.raises(InputError, match=r"The optimiser 'adan' cannot be made with {'momentun': 1}: .*momentun"):
        Recipe(1, 1, optimiser="adan", options={"momentun": 1}).make([nn.Parameter(torch.zeros(2))])
    with pytest.raises(InputError, match=r"The optimiser 'adamw' cannot be made with {'momentum': 1}: .*momentum"):
        Recipe(1, 1, options={"momentum": 1}).make([nn.Parameter(torch.zeros(2))])


def test_a_warm_up_as_long_as_the_training_is_refused() -> None:
    with pytest.raises(InputError, match=r"warmup_epochs must be at least 0 and below its 3 epochs, not 3\."):
        Recipe(3, 8, warmup_epochs=3)


def test_what_is_at_its_default_leaves_no_trace_in_a_record() -> None:
    assert Recipe(3, 8).as_dict() == {
        "optimiser": "AdamW", "schedule": "cosine", "epochs": 3, "batch_size": 8, "learning_rate": 1e-3,
        "weight_decay": 0.0,
    }  # fmt: skip
    assert Recipe(3, 8, optimiser="lamb", warmup_epochs=1).as_dict()["warmup_epochs"] == 1


def test_a_student_of_another_optimiser_is_made_from_the_same_seed() -> None:
    one, other = (small.students(["CE"], recipe=replace(small.RECIPE, optimiser=name))[0] for name in ("adamw", "sgd"))
    assert isinstance(one, Student)
    assert small.same(one, other)
