"""`plackett align` on run folders and on files of one's own."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import numpy as np
import pytest

from plackett.experiments.demo import TINY, run
from plackett.experiments.predictions import PREDICTIONS
from tests.cli.calling import call


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("demo")
    run(folder, seeds=2, size=TINY)
    return folder


def test_every_student_of_a_folder_against_its_teacher(demo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = call(capsys, "align", str(demo))
    assert code == 0
    assert "students against their teacher, 719 test pictures, seeds: 2" in out
    line = next(line for line in out.splitlines() if line.startswith("KL(teacher || student)"))
    assert line.count("±") == 6
    assert "Largest changes of a class, PLD τ=4:" in out


def test_the_csv_has_every_figure_and_the_run_folders_what_it_is_made_of(
    demo: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, out, _ = call(capsys, "align", str(demo / "150-labels"), "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(out)))
    assert {row["method"] for row in rows} == {"CE", "KD", "DIST", "DKD", "PLD τ=1", "PLD τ=4"}
    assert {row["n"] for row in rows} == {"2"}
    stored = {row["figure"]: float(row["mean"]) for row in rows if row["method"] == "KD"}
    assert 0 < stored["forward_kl"] < 5
    assert stored["both"] if "both" in stored else stored["accuracy"] <= 1
    assert (demo / "150-labels" / "seed-0" / PREDICTIONS).stat().st_size < 200_000


def test_half_precision_predictions_give_nearly_the_stored_figures(
    demo: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    seed = demo / "150-labels" / "seed-0"
    _, stored, _ = call(capsys, "align", str(seed), "--format", "csv")
    _, again, _ = call(capsys, "align", f"{seed}:teacher", f"{seed}:KD", "--format", "csv")
    of = {(r["method"], r["figure"]): float(r["mean"]) for r in csv.DictReader(io.StringIO(stored))}
    for row in csv.DictReader(io.StringIO(again)):
        assert float(row["mean"]) == pytest.approx(of["KD", row["figure"]], abs=2e-3), row


def test_predictions_of_other_pictures_are_refused(
    demo: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    np.savez(tmp_path / "mine.npz", logits=np.zeros((2, 10)), targets=np.array([0, 1]))
    code, _, err = call(capsys, "align", str(tmp_path / "mine.npz"), f"{demo / '150-labels' / 'seed-0'}:KD")
    assert code == 2
    assert "are not of the same pictures: [2, 10] and [719, 10] logits" in err


def test_runs_that_say_nothing_and_formats_that_are_not(
    demo: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from tests.experiments.runs import write_run

    write_run(tmp_path / "old", 0, {"CE": 0.9})
    code, _, err = call(capsys, "align", str(tmp_path))
    assert code == 2
    assert f"No finished run in {tmp_path} says how alike student and teacher are" in err
    one = f"{demo / '150-labels' / 'seed-0'}:KD"
    code, _, err = call(capsys, "align", one)
    assert code == 2
    assert err == f"{one} is one network; name another one to compare it with, or a folder of runs alone.\n"
    code, _, err = call(capsys, "align", str(tmp_path / "nothing"))
    assert err == f"There is no run folder {tmp_path / 'nothing'}.\n"
    code, _, err = call(capsys, "align", str(demo), "--format", "tex")
    assert code == 2
    assert err.startswith("There is no format 'tex'; did you mean 'text'?")
