"""`plackett landscape`: figures and pictures on disk, over logits and around a student of a real run."""

from __future__ import annotations

import csv
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from plackett import models
from plackett.analysis.around import around
from plackett.analysis.weights import filter_normalised
from plackett.errors import InputError
from plackett.experiments import weights
from plackett.experiments.demo import TINY, run
from plackett.experiments.records import RESULTS
from tests.cli import calling


def call(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    return calling.call(capsys, "landscape", *arguments)


@pytest.fixture(scope="module")
def seed_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("demo")
    run(folder, seeds=1, size=TINY)
    return folder / "150-labels" / "seed-0"


def test_the_papers_three_are_drawn_measured_and_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = call(capsys, "--out", str(tmp_path), "--points", "15")
    assert code == 0
    words = {line.split()[0]: line.endswith("not convex") for line in out.splitlines() if "of 20,000" in line}
    assert words == {"DIST": True, "KD": False, "PLD": False}
    assert "100 classes, norm 1, seed 0, label the teacher's first class; ±5 in each direction" in out
    with (tmp_path / "landscape.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 3 * 15 * 15
    assert {row["loss"] for row in rows} == {"DIST", "KD", "PLD"}
    with (tmp_path / "landscape-convexity.csv").open() as file:
        figures = list(csv.DictReader(file))
    assert [row["convex"] for row in figures] == ["False", "True", "True"]
    # The corners of the eigenvalues' picture are lower than its middle, for the convex ones and for DIST.
    assert all(float(row["in_the_middle"]) > float(row["smallest_eigenvalue"]) for row in figures)
    assert (tmp_path / "landscape.png").read_bytes().startswith(b"\x89PNG")
    drawn = (tmp_path / "landscape.svg").read_text()
    assert all(f">{words}<" in drawn for words in ("DIST", "KD", "PLD", "teacher", "lowest point", "loss", "α", "β"))
    assert drawn.count(">convex here: smallest eigenvalue +") == 2
    assert drawn.count(">not convex: smallest eigenvalue \N{MINUS SIGN}") == 1
    assert (tmp_path / "landscape.png").stat().st_size < 300_000
    assert not re.search(r"<script|https?://(?!www\.w3\.org|purl\.org|creativecommons)", drawn)


@pytest.mark.parametrize("arguments", [(), ("--temperatures", "2,1,0.5,0.1")])
def test_the_page_shows_what_the_command_prints(
    arguments: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (Path(__file__).parents[2] / "docs" / "landscape.md").read_text()
    code, out, _ = call(capsys, *arguments, "--out", str(tmp_path), "--no-picture")
    assert code == 0
    told, table, _ = out.split("\n\n")
    assert f"```text\n{told}\n\n{table}\n" in page


def test_temperatures_and_losses_of_ones_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = call(capsys, "--temperatures", "2,0.1", "--out", str(tmp_path), "--points", "9", "--no-picture")
    assert code == 0
    assert "PLD, τ = 2 " in out
    assert sorted(p.name for p in tmp_path.iterdir()) == ["temperatures-convexity.csv", "temperatures.csv"]
    code, out, _ = call(capsys, "dkd", "{ce: 0.1, kd: 0.9}", "--classes", "10", "--out", str(tmp_path), "--no-picture")
    assert code == 0
    assert "{ce: 0.1, kd: 0.9} " in out


def test_what_rounding_hides_is_not_called_convex(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = call(capsys, "kd", "--norm", "1e9", "--out", str(tmp_path), "--points", "9", "--no-picture")
    assert code == 0
    assert "cannot be told" in out
    assert "convex here" not in out


def test_the_same_picture_is_the_same_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("one", "other"):
        assert call(capsys, "pld", "--out", str(tmp_path / name), "--points", "9")[0] == 0
    for path in (tmp_path / "one").iterdir():
        assert path.read_bytes() == (tmp_path / "other" / path.name).read_bytes(), path.name


def test_pictures_need_their_extra_and_figures_do_not(tmp_path: Path) -> None:
    code = "import sys; sys.modules['matplotlib'] = None; from plackett.cli import main; main(sys.argv[1:])"
    command = [sys.executable, "-c", code, "landscape", "pld", "--points", "9", "--out", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "The picture (leave it out with --no-picture) needs 'matplotlib', which is not installed: "
        "pip install 'plackett[report]'.\n"
    )
    done = subprocess.run([*command, "--no-picture"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_around_a_student_of_a_run(seed_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = ("--run", str(seed_folder), "--student", "PLD τ=4", "--points", "7", "--out", str(tmp_path))
    code, out, err = call(capsys, *given, "--pictures", "64")
    assert code == 0, err
    assert "PLD τ=4, as trained" in out
    assert "64 test pictures" in out
    assert "which no loss makes convex" in out
    assert (tmp_path / "weights-PLD-τ-4.png").exists() or (tmp_path / "weights-PLD-τ=4.png").exists()


def test_the_middle_of_the_plane_is_the_student_itself(seed_folder: Path) -> None:
    plane, own, _ = around(seed_folder, "KD", 32)
    objective = own.objective()
    assert set(objective.losses) == {"ce", "kd"}
    middle = plane.function(objective)(torch.zeros(1, 2))[0]
    logits = plane.network(plane.inputs)
    assert middle.item() == pytest.approx(objective(logits, plane.teacher, plane.targets).total.item(), rel=1e-12)
    assert plane.teacher is not None
    assert plane.teacher.dtype == torch.float64


def test_directions_are_as_long_as_the_filters_and_leave_norms_alone() -> None:
    network = models.create("resnet20", classes=10)
    direction = filter_normalised(network, 5)
    assert set(direction) == {name for name, p in network.named_parameters() if p.dim() > 1}
    for name, moved in direction.items():
        weight = dict(network.named_parameters())[name]
        assert torch.allclose(moved.flatten(1).norm(dim=1), weight.flatten(1).norm(dim=1), rtol=1e-5)


def test_what_a_run_cannot_give_is_said(seed_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, sentence in (
        (["--student", "KD"], "--student is a student of a run folder; name the folder with --run."),
        (["kd", "--temperatures", "2"], "--temperatures draws PLD at each of them, so name no losses beside it."),
        (["--temperatures", "hot"], "--temperatures 'hot' is not a list of numbers; write them with commas"),
        (["--run", str(seed_folder)], f"{seed_folder} has 6 students; say which with --student: CE, KD, DIST"),
        (["--run", str(seed_folder), "--student", "KDD"], f"{seed_folder} has no student 'KDD'; did you mean 'KD'?"),
        (["--run", str(tmp_path), "--student", "KD"], f"{tmp_path / 'run.json'} is missing"),
        (
            ["--run", str(seed_folder.parent), "--student", "KD"],
            f"{seed_folder.parent} is no run folder; it holds 1. Name one of them, such as {seed_folder}.\n",
        ),
        (
            ["--run", str(seed_folder.parent / "seed"), "--student", "KD"],
            f"There is no run folder {seed_folder.parent / 'seed'}; did you mean {seed_folder}?\n",
        ),
        (["--run", str(tmp_path / "no")], f"There is no run folder {tmp_path / 'no'}.\n"),
        (["--pictures", "3"], "--pictures is of a run's student; name the run's folder with --run, or leave it out.\n"),
        (["--radius", "2"], "--radius is of a run's student; name the run's folder with --run, or leave it out.\n"),
        (["--points", "2000"], "A grid needs at least 5 points a side and at most 1001, not 2000.\n"),
        (["--run", str(seed_folder), "--student", "KD", "--pictures", "0"], "There are 719 test pictures; take 1 to"),
    ):
        code, _, err = call(capsys, *arguments, "--out", str(tmp_path / "out"))
        assert code == 2
        assert err.startswith(sentence), err
        assert err.count("\n") == 1


def test_other_data_than_the_runs_are_noticed(seed_folder: Path, tmp_path: Path) -> None:
    import shutil

    copy = tmp_path / "run"
    shutil.copytree(seed_folder, copy)
    shutil.rmtree(weights.place(copy, "KD"))
    with pytest.raises(InputError, match=r"does not hold the weights of 'KD' .* Run its command again\."):
        around(copy, "KD", 8)
    shutil.copytree(weights.place(seed_folder, "DIST"), weights.place(copy, "KD"))
    with pytest.raises(InputError, match=r"'KD' in .* does not say of these pictures what the run has kept of it"):
        around(copy, "KD", 64)
    said = json.loads((copy / RESULTS).read_text())
    said["students"] = {}
    (copy / RESULTS).write_text(json.dumps(said))
    with pytest.raises(InputError, match="has no finished student"):
        around(copy, None, 8)
