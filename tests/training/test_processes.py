"""Real processes, as torchrun starts them, against one."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from plackett.data import Batch
from plackett.errors import InputError
from plackett.training import Mode
from plackett.training.processes import Processes
from tests.training import divided

ROOT = Path(__file__).parents[2]


def torchrun(folder: Path, *how: str, processes: int = 2) -> None:
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={processes}",
               "-m", "tests.training.divided", str(folder), *how]  # fmt: skip
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stderr[-3000:]


def read(folder: Path, name: str) -> Any:
    return json.loads((folder / name).read_text())


def test_two_processes_take_the_steps_of_one(tmp_path: Path) -> None:
    """Losses that are means over rows, an odd batch, a loss with parameters, accumulation and clipping."""
    one, two = tmp_path / "one", tmp_path / "two"
    one.mkdir(), two.mkdir()
    divided.train(one, 4)
    torchrun(two)
    expected, found = load_file(one / "weights.safetensors"), load_file(two / "weights.safetensors")
    begun = {f"{s.name} {i}": p.detach() for s in divided.cohort().students for i, p in enumerate(s.trained)}
    assert set(found) == set(expected) == set(begun)
    for name, weight in expected.items():
        torch.testing.assert_close(found[name], weight, rtol=1e-4, atol=1e-5, msg=name)
        assert not torch.equal(found[name], begun[name])
    for mine, theirs in zip(read(two, "told.json"), read(one, "told.json"), strict=True):
        for name in divided.OBJECTIVES:
            assert mine[name] == pytest.approx(theirs[name], rel=1e-4, abs=1e-5)


def test_processes_go_on_from_a_checkpoint(tmp_path: Path) -> None:
    whole, halves = tmp_path / "whole", tmp_path / "halves"
    whole.mkdir(), halves.mkdir()
    torchrun(whole)
    torchrun(halves, "resume")
    expected, found = load_file(whole / "weights.safetensors"), load_file(halves / "weights.safetensors")
    assert all(torch.equal(found[name], expected[name]) for name in expected)


def test_a_student_that_breaks_in_one_process_stops_in_all(tmp_path: Path) -> None:
    torchrun(tmp_path, "break")
    stopped = read(tmp_path, "stopped.json")
    assert stopped["KD"].startswith("Student 'KD' stopped in epoch 1, step 1: its loss is nan ")
    assert [name for name, said in stopped.items() if said is None] == ["CE", "PLD τ=4", "FitNet"]


def test_a_batch_is_divided_without_a_rest() -> None:
    batch = Batch(torch.arange(5.0), torch.arange(5), torch.arange(5), 0)
    parts = [Processes(rank, 2).part(batch).indices.tolist() for rank in range(2)]
    assert parts == [[0, 2, 4], [1, 3]]
    assert sum(Processes(rank, 2).share(len(part), 5) for rank, part in enumerate(parts)) == 2
    assert Processes().part(batch) is batch


def test_every_process_and_epoch_draws_its_own() -> None:
    state = torch.get_rng_state()
    drawn = [Processes(rank, 2).random_state(state, epoch) for rank in (0, 1) for epoch in (0, 1)]
    assert len({each.numpy().tobytes() for each in drawn}) == 4
    assert torch.equal(drawn[0], Processes(0, 2).random_state(state, 0))


def test_what_does_not_go_with_several_processes_is_said() -> None:
    with pytest.raises(InputError, match=r"^A CUDA graph is for one process, and there are 4; use graph=False\.$"):
        Mode(graph=True).check(torch.device("cuda"), 4)
    with pytest.raises(InputError) as error:
        Processes(0, 4).check(pictures=35, size=8, steps=5)
    assert str(error.value) == (
        "A batch of 3 pictures cannot be divided among 4 processes; "
        "take larger batches, fewer processes, or drop_last=True."
    )
