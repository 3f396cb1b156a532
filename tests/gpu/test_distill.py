"""`plackett distill` on a GPU: bfloat16 and channels-last by default, compiled where asked, stopped and resumed."""

from __future__ import annotations

from pathlib import Path

import pytest

from plackett.cli import main
from plackett.experiments.records import read_run
from tests.distilling import pets

pytestmark = pytest.mark.gpu
pytest.importorskip("timm")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("distill")
    pets.folder(root / "pets", {"train": 24, "val": 6, "test": 8})
    pets.teacher(root / "pets", root / "teacher")
    return root


def run(place: Path, out: Path, *more: str) -> int:
    with pytest.raises(SystemExit) as end:
        main([
            "distill", "--teacher", str(place / "teacher"), "--student", "resnet8x4", "--data", str(place / "pets"),
            "--student-sight", "size=16,mean=0.5,std=0.25,crop=1", "--workers", "2", "--out", str(out), "--device",
            "cuda", "batch_size=12", *more,
        ])  # fmt: skip
    return int(end.value.code or 0)


@pytest.mark.parametrize("more", [(), ("compile=true",), ("mixup=0.5", "average=0.9", "clip=1.0", "parts=2")])
def test_from_a_folder_to_a_student(place: Path, tmp_path: Path, more: tuple[str, ...]) -> None:
    assert run(place, tmp_path / "run", "--objective", "pld,kd,fitnet,ce", "epochs=12", *more) == 0
    found = read_run(tmp_path / "run" / "seed-0")
    assert found.results is not None
    assert "bfloat16" in found.record.config["mode"]
    assert found.record.device.startswith("cuda: ")
    assert found.results.students["PLD"].accuracy > 0.6  # three classes of one colour each
    assert (tmp_path / "run/student/model.safetensors").exists()
    assert (tmp_path / "run/report.html").exists()


def test_it_goes_on_where_time_ran_out(place: Path, tmp_path: Path) -> None:
    codes = [run(place, tmp_path / "run", "--no-report", "epochs=6", "--minutes", "0.0001") for _ in range(8)]
    assert 75 in codes
    assert codes[-1] == 0
