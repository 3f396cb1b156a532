"""The picture of paired differences, and what `plackett table` says beside the paper's figures."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from plackett.cli import main
from plackett.experiments import cell_table, cells
from plackett.report import forest
from tests.experiments.test_cells import cell


def held(**changes: object) -> list[cells.Cell]:
    figures = {"kd": (0.694, 0.696, 0.695), "pld": (0.703, 0.704, 0.705), "dist": (0.68, 0.71, 0.70), "ce": (0.67,)}
    return [cell(method, seed, value, **changes) for method, values in figures.items()
            for seed, value in enumerate(values)]  # fmt: skip


def test_every_method_that_can_be_compared_has_a_row(tmp_path: Path) -> None:
    [table] = cell_table.tables(held())
    paths = forest.draw(table, tmp_path)
    assert [path.name for path in paths] == [f"cifar100-resnet56-resnet20-to-kd.{kind}" for kind in ("png", "svg")]
    assert paths[0].read_bytes().startswith(b"\x89PNG")
    text = paths[1].read_text()
    assert [f"{name} (n = {n})" in text for name, n in (("PLD", 3), ("DIST", 3), ("CE", 1), ("KD", 3))] == [
        True, True, True, False,
    ]  # fmt: skip
    assert "difference to kd in points, paired by seed, with 95 % intervals" in text
    # Blue lies wholly above 0 and orange below; what is not told apart is an open ring of grey.
    marks = re.findall(r'style="fill: (#\w+); stroke: (#\w+)', text)
    assert marks.count(("#0072b2", "#0072b2")) == 1
    assert marks.count(("#ffffff", "#666666")) == 2
    again = forest.draw(table, tmp_path / "again")
    assert [path.read_bytes() for path in again] == [path.read_bytes() for path in paths]


def test_nothing_to_compare_with_is_no_picture(tmp_path: Path) -> None:
    [table] = cell_table.tables([cell("pld", 0, 0.7)])
    assert forest.draw(table, tmp_path) == []
    assert not list(tmp_path.iterdir())


def test_the_command_writes_it_beside_the_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cells.append(tmp_path / "a.jsonl", held())
    with pytest.raises(SystemExit) as end:
        main(["table", str(tmp_path), "--format", "csv", "--plot", str(tmp_path / "p")])
    said = capsys.readouterr()
    assert end.value.code == 0
    assert said.out.startswith("recipe,pair,method")
    assert (
        said.err
        == f"Written: {', '.join(f'{tmp_path}/p/cifar100-resnet56-resnet20-to-kd.{k}' for k in ('png', 'svg'))}\n"
    )
    with pytest.raises(SystemExit) as end:
        main(["table", str(tmp_path), "--plot", str(tmp_path / "a.jsonl")])
    assert end.value.code == 2
    assert "name a folder with --plot" in capsys.readouterr().err


@pytest.mark.parametrize(("changes", "said"), [
    ({"test": 200}, "ours are not: 250 epochs, 200 pictures."),
    ({"epochs": 2}, "ours are not: 2 epochs, 10,000 pictures."),
])  # fmt: skip
def test_smaller_runs_beside_the_papers_figures_are_said_to_be_smaller(changes: dict[str, int], said: str) -> None:
    notes = cell_table.notes(cell_table.tables(held(**changes)))
    assert f"the paper's are figures of 250 epochs and 10,000 test pictures; {said}" in notes
    assert "ours are not" not in cell_table.notes(cell_table.tables(held()))
