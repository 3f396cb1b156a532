"""A run that is killed at any moment and started again ends with the same bits."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from plackett.errors import InputError, PlackettError
from plackett.training import Checkpoints, Cohort, EpochReport, Student, checkpoint
from tests.training import small

ROOT = Path(__file__).parents[2]


def run(folder: Path, kill_at: str | None = None) -> list[str]:
    """The lines that the run wrote; killed as soon as it writes `kill_at`."""
    folder.mkdir(exist_ok=True)
    command = [sys.executable, "-m", "tests.training.resumable", str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as child:
        lines = []
        assert child.stdout is not None
        for line in child.stdout:
            lines.append(line.strip())
            if line.strip() == kill_at:
                child.kill()
                return lines
    assert kill_at is None
    assert child.returncode == 0
    return lines


def test_a_run_killed_again_and_again_ends_with_the_same_bits(tmp_path: Path) -> None:
    undisturbed = run(tmp_path / "whole")
    killed = tmp_path / "killed"
    assert run(killed, "step 0 3")[0] == "start 0"  # before there is any checkpoint
    assert run(killed, "step 1 2")[0] == "start 0"
    assert run(killed, "replace last.ckpt")[0] == "start 1"  # the new one is written and not yet in its place
    assert run(killed, "step 2 4")[0] == "start 1"
    end = run(killed)
    assert end[0] == "start 2"
    assert end[-1] == undisturbed[-1]
    assert not list(killed.glob(".*"))
    expected, found = small.folder_weights(tmp_path / "whole"), small.folder_weights(killed)
    assert len(expected) == 3 * 8
    assert all(torch.equal(found[name], tensor) for name, tensor in expected.items())
    for best in sorted((tmp_path / "whole").glob("best-*")):
        mine, theirs = load_file(best), load_file(killed / best.name)
        assert all(torch.equal(mine[name], theirs[name]) for name in mine)


def saved(folder: Path, epochs: int = 2, config: Any = None) -> Cohort:
    cohort = Cohort(small.students(), small.stream(), small.teacher())
    checkpoints = Checkpoints(folder, config or {})
    cohort.fit(
        epochs, lambda report: checkpoints.save(cohort, report.epoch, {"KD": 1 - report.epoch}, {"n": report.epoch})
    )
    return cohort


def again() -> Cohort:
    return Cohort(small.students(), small.stream(), small.teacher())


def test_everything_needed_to_go_on_is_in_the_last_one(tmp_path: Path) -> None:
    whole, resumed = again(), again()
    whole.fit(4)
    saved(tmp_path)
    checkpoints = Checkpoints(tmp_path)
    start, notes = checkpoints.restore(resumed)
    assert (start, notes) == (2, {"n": 1})
    assert checkpoints.best == {"KD": (1.0, 0)}
    resumed.fit(4, start=start)
    assert all(small.same(one, other) for one, other in zip(whole.students, resumed.students, strict=True))


def test_the_best_is_the_first_with_the_highest_score(tmp_path: Path) -> None:
    cohort = again()
    checkpoints = Checkpoints(tmp_path)
    scores, kept = [0.3, 0.5, 0.5, 0.4], {}

    def after(report: EpochReport) -> None:
        checkpoints.save(cohort, report.epoch, {"PLD τ=4": scores[report.epoch]})
        kept[report.epoch] = small.weights(cohort.students[2])

    cohort.fit(4, after)
    assert checkpoints.best == {"PLD τ=4": (0.5, 1)}
    best = load_file(checkpoints.best_path("PLD τ=4"))
    assert checkpoints.best_path("PLD τ=4").name == "best-PLD-=4.safetensors"
    assert all(torch.equal(best[name], tensor) for name, tensor in kept[1].items())


def test_a_full_disk_leaves_the_last_good_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cohort = saved(tmp_path, epochs=1)
    before = (tmp_path / "last.ckpt").read_bytes()

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(
        PlackettError, match=r"epoch 2 could not be saved in .* \(No space left on device\); the last good"
    ):
        Checkpoints(tmp_path).save(cohort, 1)
    assert (tmp_path / "last.ckpt").read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["best-KD.safetensors", "last.ckpt"]


def test_a_stopped_student_stays_stopped(tmp_path: Path) -> None:
    cohort = again()
    cohort.students[0].stopped = "Student 'CE' stopped."
    before = small.weights(cohort.students[0])
    Checkpoints(tmp_path).save(cohort, 0)
    resumed = again()
    Checkpoints(tmp_path).restore(resumed)
    resumed.fit(2, start=1)
    assert resumed.students[0].stopped == "Student 'CE' stopped."
    assert all(torch.equal(before[name], tensor) for name, tensor in small.weights(resumed.students[0]).items())


def test_another_configuration_is_refused_with_what_differs(tmp_path: Path) -> None:
    saved(tmp_path, config={"recipe": {"learning_rate": 0.1, "epochs": 3}, "seed": 0})
    other = Checkpoints(tmp_path, {"recipe": {"learning_rate": 0.2, "epochs": 3}, "seed": 0, "data": "x"})
    with pytest.raises(
        InputError,
        match=r"another configuration: data was null and is \"x\"; recipe.learning_rate was 0.1 and is 0.2\. Go on",
    ):
        other.restore(again())


def test_what_does_not_fit_gets_a_sentence(tmp_path: Path) -> None:
    saved(tmp_path)
    path = tmp_path / "last.ckpt"
    checkpoints = Checkpoints(tmp_path)
    other = again()
    other.students[0].name = "other"
    with pytest.raises(InputError, match="has no student 'other'; it has CE, KD, PLD τ=4"):
        checkpoints.restore(other)
    bigger = small.students(build=lambda: torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(192, 4)))
    cohort = Cohort(bigger, small.stream(), small.teacher())
    with pytest.raises(InputError, match=r"holds another network or optimiser for 'CE' \(Error\(s\) in loading"):
        checkpoints.restore(cohort)
    whole = path.read_bytes()
    path.write_bytes(whole[:-100])
    with pytest.raises(InputError, match=r"last\.ckpt cannot be read \([A-Za-z]+\); delete it to begin anew"):
        checkpoints.restore(again())
    torch.save({"format": "another"}, path)
    with pytest.raises(InputError, match=r"says it is 'another', not 'plackett checkpoint 2'"):
        checkpoints.restore(again())


def test_nothing_pickled_is_loaded(tmp_path: Path) -> None:
    class Harmful:
        def __reduce__(self) -> Any:
            return print, ("this must not run",)

    torch.save({"format": checkpoint.FORMAT, "epoch": Harmful()}, tmp_path / "last.ckpt")
    with pytest.raises(InputError, match=r"cannot be read \(UnpicklingError\)"):
        Checkpoints(tmp_path).restore(again())


def test_an_empty_folder_is_a_beginning(tmp_path: Path) -> None:
    assert Checkpoints(tmp_path).restore(again()) == (0, {})


def test_moments_take_the_layout_of_their_weights() -> None:
    """As when a run on a CPU goes on with weights laid out channels-last."""
    (one,), (other,) = small.students(["CE"]), small.students(["CE"])
    Cohort([one], small.stream()).fit(1)
    other.model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    other.load(one.state())
    for parameter, held in other.optimiser.state.items():
        assert held["exp_avg"].stride() == parameter.stride()
    Cohort([other], small.stream()).fit(2, start=1)
    assert isinstance(other, Student)
