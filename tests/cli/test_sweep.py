"""`plackett sweep` as a process: killed and run again, resumed cell by cell, and its files."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

COMMAND = [sys.executable, "-c", "from plackett.cli import main; main()", "sweep", "digits"]
KEY = "objective.pld.temperature=1,4"


def run(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    done = subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, cwd=cwd, timeout=300)
    assert done.returncode == 0, done.stderr
    return done


def cells(folder: Path) -> list[dict[str, Any]]:
    path = folder / "cells.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole")
    done = run(KEY, "--methods", "ce", "--seeds", "0-2", "--epochs", "5", "--out", "s", cwd=folder)
    assert "highest at temperature" in done.stdout
    assert "mlp: objective.pld.temperature=1,4" in done.stdout
    return folder / "s"


def test_table_picture_and_figures_are_left(whole: Path) -> None:
    stem = "digits-objective.pld.temperature"
    assert (whole / f"{stem}.png").read_bytes().startswith(b"\x89PNG")
    drawn = (whole / f"{stem}.svg").read_text()
    assert all(words in drawn for words in ("temperature", "test accuracy, %", "pld (n = 3)", "CE (n = 3)"))
    with (whole / f"{stem}.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [(row["series"], row["value"], row["n"]) for row in rows] == [
        ("pld", "1", "3"), ("pld", "4", "3"), ("CE", "", "3"),
    ]  # fmt: skip


def test_every_run_keeps_the_command_as_it_was_typed(whole: Path) -> None:
    records = [json.loads(path.read_text()) for path in whole.rglob("run.json")]
    assert {record["seed"] for record in records} == {0, 1, 2}
    command = f"plackett sweep digits {KEY} --methods ce --seeds 0-2 --epochs 5 --out s"
    assert {record["command"] for record in records} == {command}
    assert {record["title"] for record in records} == {"Handwritten digits, 150 labels"}


def test_killed_and_run_again_it_does_the_rest_and_nothing_twice(whole: Path, tmp_path: Path) -> None:
    arguments = [KEY, "--methods", "ce", "--seeds", "0-2", "--epochs", "5", "--out", "s", "--no-picture"]
    child = subprocess.Popen([*COMMAND, *arguments], cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 120
    while not cells(tmp_path / "s") and time.monotonic() < deadline and child.poll() is None:
        time.sleep(0.01)
    child.kill()
    child.wait()
    before = cells(tmp_path / "s")
    assert 0 < len(before) < 9, "it was killed between its seeds"
    run(*arguments, cwd=tmp_path)
    after = cells(tmp_path / "s")
    assert after[: len(before)] == before
    keys = [(cell["method"], cell["seed"]) for cell in after]
    assert len(keys) == len(set(keys)) == 9
    expected = {(cell["method"], cell["seed"]): cell["accuracy"] for cell in cells(whole)}
    assert {(cell["method"], cell["seed"]): cell["accuracy"] for cell in after} == expected


def test_what_is_there_is_not_trained_again_and_more_values_are_added(whole: Path) -> None:
    before = cells(whole)
    wider = "objective.pld.temperature=1.0,2,4"
    run(wider, "--seeds", "0-2", "--epochs", "5", "--out", str(whole), "--no-picture", cwd=whole)
    after = cells(whole)
    assert after[: len(before)] == before
    assert [cell["method"] for cell in after[len(before) :]] == ["pld-temperature=2"] * 3


def test_epochs_are_cohorts_of_their_own_with_one_teacher(tmp_path: Path) -> None:
    given = ["training.epochs=2,4", "--methods", "ce,kd", "--seeds", "0", "--out", "s", "--no-picture"]
    done = run(*given, cwd=tmp_path)
    made = cells(tmp_path / "s")
    assert [(cell["recipe"], cell["method"], cell["epochs"]) for cell in made] == [
        ("digits-epochs=2", "ce", 2), ("digits-epochs=2", "kd", 2), ("digits-epochs=4", "ce", 4),
        ("digits-epochs=4", "kd", 4),
    ]  # fmt: skip
    assert len({cell["teacher"]["sha256"] for cell in made if cell["method"] == "kd"}) == 1
    assert len(list((tmp_path / "s").rglob("mlp_teacher.safetensors"))) == 1
    assert "One seed cannot tell" in done.stdout


def test_many_methods_still_have_a_folder(tmp_path: Path) -> None:
    values = ",".join(str(1 + i / 10) for i in range(12))
    run(f"objective.kd.temperature={values}", "--seeds", "0", "--epochs", "1", "--out", "s", "--no-picture",
        cwd=tmp_path)  # fmt: skip
    (folder,) = (tmp_path / "s" / "mlp").iterdir()
    assert folder.name.startswith("seed-0-12-methods-")
    assert len(json.loads((folder / "run.json").read_text())["students"]) == 12


@pytest.mark.parametrize(("arguments", "sentence"), [
    (["objective.pdl.temperature=1"], "The recipe digits has no method 'pdl'; did you mean 'pld'? (choices: "),
    (["objective.pld.tau=1"], "Objective term 'pld' has no option 'tau'; "),
    ([KEY, "--methods", "kdd"], "The recipe digits has no method 'kdd'; did you mean 'kd'?"),
    ([], "There is nothing to sweep; write KEY=VALUE,VALUE"),
    ([KEY, "--out", "/dev/null"], "/dev/null is not a folder"),
])  # fmt: skip
def test_a_mistake_is_one_sentence_and_exit_code_2(tmp_path: Path, arguments: list[str], sentence: str) -> None:
    done = subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, cwd=tmp_path, timeout=120)
    assert done.returncode == 2
    assert done.stderr.startswith(sentence), done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_the_picture_needs_its_extra(tmp_path: Path) -> None:
    code = "import sys; sys.modules['matplotlib'] = None; from plackett.cli import main; main(sys.argv[1:])"
    done = subprocess.run([sys.executable, "-c", code, "sweep", "digits", KEY], capture_output=True, text=True,
                          cwd=tmp_path)  # fmt: skip
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("The picture (leave it out with --no-picture) needs 'matplotlib', which is not")
