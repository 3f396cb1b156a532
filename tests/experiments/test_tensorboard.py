"""What TensorBoard reads is what metrics.jsonl holds."""

from __future__ import annotations

from pathlib import Path

import pytest

from plackett.errors import MissingExtraError
from plackett.experiments import reproduce
from plackett.experiments.records import read_run
from plackett.experiments.tensorboard import board
from tests.experiments.test_reproduce import order


def test_every_epoch_of_every_student_is_written(tmp_path: Path) -> None:
    accumulators = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    told: list[str] = []
    reproduce.run(order(tmp_path, seeds=[0], tensorboard=True), lambda progress: told.append(progress.what))
    folder = tmp_path / "mlp" / "seed-0-ce+pld"
    run = read_run(folder)
    for method in ("ce", "pld"):
        held = accumulators.EventAccumulator(str(folder / "tensorboard" / method))
        held.Reload()
        assert set(held.Tags()["scalars"]) == {"accuracy/test", "accuracy/train", "loss/total", f"loss/{method}"}
        for title, field in (("accuracy/test", "accuracy"), ("loss/total", "loss")):
            seen = [(event.step, event.value) for event in held.Scalars(title)]
            expected = [(epoch.epoch + 1, getattr(epoch.students[method], field)) for epoch in run.metrics]
            assert seen == [(step, pytest.approx(value)) for step, value in expected]
            assert len(seen) == 2
    said = next(line for line in told if "epoch 2 of 2: ce " in line)
    last = run.metrics[-1].students["ce"]
    assert f"ce {100 * (last.accuracy or 0):.1f} % (loss {last.loss:.3g}), pld " in said
    assert said.endswith(" images/s")


def test_a_board_that_cannot_be_had_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "torch.utils.tensorboard", None)
    with pytest.raises(MissingExtraError) as error, board(tmp_path, True):
        pass
    assert str(error.value) == (
        "--tensorboard needs 'tensorboard', which is not installed: pip install 'plackett[tracking]'."
    )
