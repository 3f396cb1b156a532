"""What methods cost: a cohort's time is shared, and only one of one is a method's own."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest

from plackett.experiments import cells, cost_table
from plackett.experiments.cells import Cell
from plackett.experiments.cost_table import gather
from plackett.experiments.demo import TINY, run
from tests.cli import calling


def cell(method: str, seconds: float | None, cohort: tuple[str, ...], seed: int = 0, **changes: object) -> Cell:
    given: dict[str, object] = {
        "recipe": "cifar100", "pair": "resnet56-resnet20", "method": method, "title": method, "seed": seed,
        "accuracy": 0.5, "epochs": 250, "test": 10_000, "config": {}, "cohort": list(cohort), "seconds": seconds,
        "mode": "", "device": "cuda: x", "versions": {}, "finished": "",
    }  # fmt: skip
    return Cell.model_validate({**given, **changes})


def written(folder: Path, *made: Cell) -> Path:
    path = folder / "cells.jsonl"
    cells.append(path, made)
    return path


def call(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    return calling.call(capsys, "cost", *arguments)


def test_alone_a_method_is_compared_and_the_paper_stands_beside_it(tmp_path: Path) -> None:
    made = [cell("ce", 100.0 + seed, ("ce",), seed) for seed in (0, 2)] + [cell("pld", 151.5, ("pld",))]
    (table,) = gather([written(tmp_path, *made)])
    ce, pld = table.lines
    assert (ce.seconds.mean, ce.seconds.n, ce.times) == (101.0, 2, 1.0)
    assert pld.times == pytest.approx(1.5)
    assert (pld.paper, pld.paper_times) == (33.42, pytest.approx(33.42 / 22.97))
    assert (pld.peak, pld.latency) == (None, None)
    assert "1.50" in cost_table.text(table)
    assert not any("--per-cohort 1" in note for note in cost_table.notes([table]))


def test_a_cohorts_time_is_no_methods_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    both = ("ce", "pld")
    path = written(tmp_path, *(cell(method, 300.0, both) for method in both))
    (table,) = gather([path])
    assert [(line.cohort, line.times) for line in table.lines] == [(2, None), (2, None)]
    code, out, _ = call(capsys, str(path))
    assert code == 0
    line = next(line for line in out.splitlines() if line.startswith("pld"))
    assert line.split()[:6] == ["pld", "2", "300.0", "1", "150.0", "shared"]
    assert "A method alone: the same command with --per-cohort 1" in out


def test_devices_and_cohort_sizes_are_not_mixed(tmp_path: Path) -> None:
    both = ("ce", "pld")
    made = [cell("ce", 10.0, ("ce",)), cell("ce", 50.0, both, 1), cell("pld", 50.0, both, 1)]
    made += [cell("pld", 99.0, ("pld",), 0, device="cpu: y"), cell("pld", None, ("pld",), 5)]
    tables = gather([written(tmp_path, *made)])
    assert [(table.device, [(x.method, x.cohort) for x in table.lines]) for table in tables] == [
        ("cuda: x", [("ce", 1), ("ce", 2), ("pld", 2)]), ("cpu: y", [("pld", 1)]),
    ]  # fmt: skip
    assert tables[1].lines[0].times is None


def test_run_folders_give_memory_and_latency_as_well(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(tmp_path / "demo", seeds=2, size=TINY)
    code, out, _ = call(capsys, str(tmp_path / "demo"), "--format", "csv")
    assert code == 0
    rows = [row for row in csv.DictReader(io.StringIO(out)) if row["method"] == "KD"]
    assert [(row["pair"], row["cohort"], row["n"], row["parameters"]) for row in rows] == [
        ("150 labels", "6", "2", "2410"), ("all labels", "6", "2", "2410"),
    ]  # fmt: skip
    assert all(float(row["peak_mib"]) > 10 and row["peak_of"] == "process" for row in rows)
    assert all(float(row["latency_ms"]) > 0 for row in rows)
    _, out, _ = call(capsys, str(tmp_path / "demo"))
    assert "The peak of a process is all that it ever held" in out


def test_mistakes_are_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, cell("ce", None, ("ce",)))
    for arguments, sentence in (
        ([str(path)], f"No cell in {path} says how long it took.\n"),
        (
            [str(path), "--base", "cee"],
            "There is no cell of 'cee' to compare with; did you mean 'ce'? (choices: ce).\n",
        ),
        ([str(path), "--format", "txt"], "There is no format 'txt'; did you mean 'text'?"),
        ([str(tmp_path / "no")], f"There is no {tmp_path / 'no'}; a table is made of run folders or .jsonl files.\n"),
    ):
        code, _, err = call(capsys, *arguments)
        assert code == 2
        assert err.startswith(sentence)


def test_the_papers_run_times_are_of_the_methods_of_its_table() -> None:
    from plackett.experiments.cell_table import paper

    accuracies = paper()[1]
    assert {pair: set(of) for pair, of in cost_table.paper().items()} == {p: set(of) for p, of in accuracies.items()}
