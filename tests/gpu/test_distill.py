"""`plackett distill` on a GPU: bfloat16 and channels-last by default, compiled where asked, stopped and resumed."""

from __future__ import annotations

from pathlib import Path

import pytest

from plackett.experiments.records import read_run
from tests.cli.calling import call
from tests.distilling.command import asked, made

pytestmark = pytest.mark.gpu
pytest.importorskip("timm")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made(tmp_path_factory.mktemp("distill"), train=24)


def run(capsys: pytest.CaptureFixture[str], place: Path, out: Path, *more: str) -> int:
    return call(capsys, *asked(place, "--workers", 2, "--out", out, "--device", "cuda", *more))[0]


@pytest.mark.parametrize("more", [(), ("compile=true",), ("mixup=0.5", "average=0.9", "clip=1.0", "parts=2")])
def test_from_a_folder_to_a_student(
    place: Path, tmp_path: Path, more: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(capsys, place, tmp_path / "run", "--objective", "pld,kd,fitnet,ce", "epochs=12", *more) == 0
    found = read_run(tmp_path / "run" / "seed-0")
    assert found.results is not None
    assert "bfloat16" in found.record.config["mode"]
    assert found.record.device.startswith("cuda: ")
    assert found.results.students["PLD"].accuracy > 0.6  # three classes of one colour each
    assert (tmp_path / "run/student/model.safetensors").exists()
    assert (tmp_path / "run/report.html").exists()


def test_it_goes_on_where_time_ran_out(place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    codes = [run(capsys, place, tmp_path / "run", "--no-report", "epochs=6", "--minutes", "0.0001") for _ in range(8)]
    assert 75 in codes
    assert codes[-1] == 0
