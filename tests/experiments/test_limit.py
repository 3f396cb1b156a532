"""Work that ends by itself before a given time, and goes on with the same command."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from plackett.errors import InputError
from plackett.experiments import reproduce
from plackett.experiments.limit import Limit, OutOfTime
from plackett.experiments.records import read_run
from tests.experiments.test_recipes import TEXT
from tests.experiments.test_reproduce import order

COMMAND = [sys.executable, "-c", "from plackett.cli import main; main()"]


class Clock:
    """Shows what it is told."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_an_epoch_that_would_pass_is_not_begun() -> None:
    clock = Clock()
    limit = Limit(1, clock)
    limit.begin()
    for end, passes in ((120, False), (140, False), (141, True)):
        clock.now = end
        limit.epoch_over()
        assert limit.next_passes() is passes


def test_an_epoch_that_compiles_says_nothing_of_the_next_but_of_other_cohorts() -> None:
    clock = Clock()
    limit = Limit(10, clock)
    limit.begin()
    clock.now += 400
    limit.epoch_over(compiled=True)
    assert not limit.next_passes()
    clock.now += 2
    limit.epoch_over(compiled=True)
    assert not limit.next_passes()
    with pytest.raises(OutOfTime, match=r"^Stopped after 6\.7 of 10 minutes\. The same command does the rest\.$"):
        limit.begin()


def test_without_a_limit_nothing_passes() -> None:
    clock = Clock()
    limit = Limit(None, clock)
    clock.now += 1e9
    limit.epoch_over()
    limit.begin()
    assert not limit.next_passes()


@pytest.mark.parametrize(("minutes", "said"), [(0.0, "0"), (-3.0, "-3"), (float("nan"), "nan"), (float("inf"), "inf")])
def test_a_time_that_is_none_is_a_sentence(minutes: float, said: str) -> None:
    with pytest.raises(InputError) as error:
        Limit(minutes)
    assert str(error.value) == f"--minutes is a time above 0, not {said}."


def test_stopped_at_every_turn_it_ends_with_the_same_weights(tmp_path: Path) -> None:
    """No time at all: every call takes one epoch, or what is left of a cohort."""
    asked = order(tmp_path / "parts", seeds=[0])
    said = []
    for _ in range(10):
        try:
            found, _ = reproduce.run(replace(asked, limit=Limit(1e-6)))
            break
        except OutOfTime as stop:
            said.append(re.sub(r"^Stopped after [0-9.]+ of 1e-06 minutes\. ", "", str(stop)))
        if len(said) == 3:
            assert read_run(tmp_path / "parts/mlp/seed-0-ce+pld").record.status == "interrupted"
    assert said == [
        f"Epoch 1 of 2 is saved in {tmp_path}/parts/teachers/training-mlp_teacher; the same command goes on.",
        "The same command does the rest.",
        f"Epoch 1 of 2 is saved in {tmp_path}/parts/mlp/seed-0-ce+pld; the same command goes on.",
    ]
    whole, _ = reproduce.run(order(tmp_path / "whole", seeds=[0]))
    assert [cell.accuracy for cell in found] == [cell.accuracy for cell in whole]
    for name in ("teachers/training-mlp_teacher", "mlp/seed-0-ce+pld"):
        mine, theirs = (torch.load(tmp_path / each / name / "last.ckpt", weights_only=True)["students"]
                        for each in ("parts", "whole"))  # fmt: skip
        assert set(mine) == set(theirs)
        for student, state in mine.items():
            assert all(torch.equal(t, theirs[student]["model"][key]) for key, t in state["model"].items())


@pytest.mark.parametrize("arguments", [
    ["train", "mlp_student", "--out", "t"],
    ["compare", "--out", "c"],
    ["sweep", "objective.pld.temperature=1,2", "--out", "s", "--no-picture"],
], ids=lambda given: given[0])  # fmt: skip
@pytest.mark.slow
def test_commands_end_with_a_code_of_their_own(tmp_path: Path, arguments: list[str]) -> None:
    (tmp_path / "mine.yaml").write_text(TEXT)
    verb, *rest = arguments
    recipe = [*rest[:1], "--recipe", "mine.yaml", *rest[1:]] if verb == "train" else ["mine.yaml", *rest]
    command = [*COMMAND, verb, *recipe, "--minutes", "0.0001", "--device", "cpu"]
    codes, said = [], ""
    for _ in range(12):
        done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=120)
        codes.append(done.returncode)
        if not done.returncode:
            break
        said = done.stderr
    assert codes == [75] * (len(codes) - 1) + [0]
    assert len(codes) > 1
    assert said.startswith("Stopped after ")
    assert len(said.splitlines()) == 1


def test_reproduce_takes_it_too() -> None:
    done = subprocess.run([*COMMAND, "reproduce", "cifar100", "--minutes", "0"], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (2, "--minutes is a time above 0, not 0.\n")
