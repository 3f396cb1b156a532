"""Cells in files of JSON lines: merged, held to their configuration, and whole again after a kill."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from plackett.errors import InputError, PlackettError
from plackett.experiments import cell_table, cells
from plackett.experiments.cells import Cell, TeacherNote


def cell(method: str = "kd", seed: int = 0, accuracy: float | None = 0.7, **changes: Any) -> Cell:
    given: dict[str, Any] = {
        "recipe": "cifar100", "pair": "resnet56-resnet20", "method": method, "title": method.upper(), "seed": seed,
        "accuracy": accuracy, "best_accuracy": accuracy, "best_epoch": 9, "epochs": 250, "test": 10_000,
        "config": {"terms": {method: 1.0}, "training": {"epochs": 250}},
        "teacher": TeacherNote(network="resnet56", sha256="ab", accuracy=0.7245), "cohort": [method], "seconds": 9.0,
        "mode": "eager", "device": "cpu: test", "versions": {"torch": "2.11.0"}, "finished": "2026-11-19T00:00:00",
    }  # fmt: skip
    return Cell(**{**given, **changes})


def said(error: pytest.ExceptionInfo[BaseException]) -> str:
    return str(error.value)


def test_what_is_appended_is_read_and_files_of_machines_merge(tmp_path: Path) -> None:
    cells.append(tmp_path / "a.jsonl", [cell(seed=0), cell(seed=1)])
    cells.append(tmp_path / "b.jsonl", [cell(seed=1, accuracy=0.8), cell("pld")])
    held = cells.read(cells.files(tmp_path))
    assert [(c.method, c.seed, c.accuracy) for c in held.values()] == [("kd", 0, 0.7), ("kd", 1, 0.8), ("pld", 0, 0.7)]
    assert cells.gather([tmp_path]) == held
    assert cells.target(tmp_path) == tmp_path / "cells.jsonl"
    assert cells.files(tmp_path / "new.jsonl") == cells.files(tmp_path)


def test_a_torn_last_line_is_passed_over_and_the_next_one_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "cells.jsonl"
    cells.append(path, [cell(seed=0), cell(seed=1)])
    path.write_bytes(path.read_bytes()[:-40])
    assert list(cells.read([path])) == [cell(seed=0).key]
    cells.append(path, [cell(seed=1)])
    assert list(cells.read([path])) == [cell(seed=0).key, cell(seed=1).key]


def test_a_student_that_stopped_never_replaces_one_that_finished(tmp_path: Path) -> None:
    cells.append(tmp_path / "a.jsonl", [cell(), cell(accuracy=None, best_accuracy=None, stopped="It stopped.")])
    assert cells.read([tmp_path / "a.jsonl"])[cell().key].stopped is None
    cells.append(tmp_path / "a.jsonl", [cell(accuracy=0.9)])
    assert cells.read([tmp_path / "a.jsonl"])[cell().key].accuracy == 0.9


def test_two_configurations_of_one_cell_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "cells.jsonl"
    cells.append(path, [cell(), cell(config={"terms": {"kd": 1.0}, "training": {"epochs": 100}})])
    with pytest.raises(InputError) as error:
        cells.read([path])
    assert said(error) == (
        f"{path}: the cell cifar100, resnet56-resnet20, kd, seed 0 was made by another configuration: "
        "training.epochs was 250 and is 100. Keep the two in different folders, or take one of them away."
    )


@pytest.mark.parametrize(("line", "words"), [
    ('{"recipe": "cifar100"}', r"line 2, is not a cell \(pair: Field required\)\. Take the line away"),
    ("not JSON}", r"line 2, is not a cell \(Invalid JSON"),
    (cell(schema_version=7).model_dump_json(), r"line 2, has schema version 7; this reads 1\."),
])  # fmt: skip
def test_a_line_that_is_no_cell_is_said(tmp_path: Path, line: str, words: str) -> None:
    path = tmp_path / "cells.jsonl"
    cells.append(path, [cell()])
    path.write_text(path.read_text() + line + "\n")
    with pytest.raises(InputError, match=words):
        cells.read([path])


def test_where_there_is_nothing_it_is_said(tmp_path: Path) -> None:
    with pytest.raises(InputError) as error:
        cells.gather([tmp_path / "none"])
    assert said(error) == f"There is no {tmp_path / 'none'}; a table is made of run folders or .jsonl files."
    (tmp_path / "empty.jsonl").write_text("")
    with pytest.raises(InputError, match=r"^There is no finished cell in .*empty\.jsonl\.$"):
        cells.gather([tmp_path / "empty.jsonl"])


def test_a_disk_that_is_full_is_said_and_the_old_lines_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "cells.jsonl"
    cells.append(path, [cell()])

    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(cells.os, "fsync", full)
    with pytest.raises(PlackettError) as error:
        cells.append(path, [cell(seed=1)])
    assert said(error) == (
        f"The results could not be written to {path} (No space left on device). The checkpoint of the last epoch is "
        "kept: make room and run the same command again."
    )
    assert cell().key in cells.read([path])


MADE = [
    *(cell("kd", seed, a) for seed, a in enumerate((0.694, 0.696, 0.698))),
    *(cell("pld", seed, a, title="PLD τ=4") for seed, a in enumerate((0.700, 0.703, 0.706))),
    cell("ce", 0, 0.676, teacher=None),
    cell("rkd", 0, None, best_accuracy=None, best_epoch=None, stopped="It stopped."),
]


def test_a_table_has_ours_the_difference_and_the_papers() -> None:
    text = cell_table.render(cell_table.tables(MADE), "text").splitlines()
    assert text[0] == "resnet56-resnet20 (cifar100; teacher resnet56 72.45 %; 250 epochs; seeds 0, 1, 2)"
    rows = {line.split("  ")[0]: " ".join(line.split()) for line in text[4:8]}
    # The differences are 0.6, 0.7 and 0.8 points: 0.70 with t(2) * 0.1 / sqrt(3) = 4.3027 * 0.0577 = 0.25.
    assert rows["PLD τ=4"] == "PLD τ=4 70.30 ± 0.30 3 +0.70 [+0.45, +0.95] 70.30 ± 0.30 70.28 ± 0.21"
    assert rows["KD"] == "KD 69.60 ± 0.20 3 base 69.60 ± 0.20 69.45 ± 0.24"
    assert rows["CE"] == "CE 67.60 (n = 1) 1 −1.80 (n = 1) 67.60 (n = 1) 67.57 ± 0.25"
    assert rows["RKD"] == "RKD stopped 0 - - 68.53 ± 0.18"
    notes = "\n".join(text[9:])
    assert "resnet56-resnet20: RKD stopped with 1 of its seeds." in notes
    assert "its text calls the ± a standard deviation, its checklist a standard error." in notes


def test_the_other_forms_hold_the_same_figures() -> None:
    made = cell_table.tables(MADE)
    markdown = cell_table.render(made, "markdown")
    assert "| PLD τ=4 | 70.30 ± 0.30 | 3 | +0.70 [+0.45, +0.95] | 70.30 ± 0.30 | 70.28 ± 0.21 |" in markdown
    latex = cell_table.render(made, "latex")
    assert (
        r"PLD $\tau$=4 & 70.30 $\pm$ 0.30 & 3 & +0.70 [+0.45, +0.95] & 70.30 $\pm$ 0.30 & 70.28 $\pm$ 0.21 \\" in latex
    )
    assert r"KD & 69.60 $\pm$ 0.20 & 3 & base" in latex
    assert "% Test accuracy in %" in latex
    head, *rows = (line.split(",") for line in cell_table.render(made, "csv").splitlines())
    pld = dict(zip(head, next(row for row in rows if row[2] == "pld"), strict=True))
    assert (pld["n"], pld["mean"], pld["std"], pld["base"], pld["difference"]) == ("3", "70.3", "0.3", "kd", "0.7")
    assert math.isclose(float(pld["low"]), 0.7 - 4.302653 * 0.1 / math.sqrt(3), abs_tol=1e-4)
    one = dict(zip(head, next(row for row in rows if row[2] == "ce"), strict=True))
    assert (one["n"], one["std"], one["low"]) == ("1", "", "")


def test_another_base_and_what_is_not_there() -> None:
    table = cell_table.tables(MADE, "pld")[0]
    assert [line.difference is None for line in table.lines] == [False, True, False, True]
    with pytest.raises(InputError, match=r"^There is no cell of 'dist' to compare with; "):
        cell_table.tables(MADE, "dist")
    with pytest.raises(InputError, match=r"^There is no format 'html'; choices: csv, latex, markdown, text\.$"):
        cell_table.render(cell_table.tables(MADE), "html")
