"""Writes what the committed cells of CIFAR-100 say into README (tables) and docs/cifar100.md (tables and claims)."""

from __future__ import annotations

import pathlib

from plackett.experiments import cell_table, cells, claims, plain
from tools.between import between

ROOT = pathlib.Path(__file__).parent.parent
RESULTS = ROOT / "results" / "cifar100"
README, PAGE = ROOT / "README.md", ROOT / "docs" / "cifar100.md"
NOTHING = "No cell of this table has been run yet."


def held(folder: pathlib.Path) -> list[cells.Cell]:
    recipe = claims.of_paper().recipe
    return [cell for cell in cells.read(cells.files(folder)).values() if cell.recipe == recipe]


def tables(found: list[cells.Cell]) -> str:
    """Every pair's table, with device and versions."""
    if not found:
        return NOTHING
    made = cell_table.render(cell_table.tables(found), "markdown").strip()
    where = sorted({f"{cell.device}, torch {cell.versions.get('torch', 'unknown')}" for cell in found})
    return f"{made}\n\nRun on {'; '.join(where)}; every cell is a line of `results/cifar100/*.jsonl`."


def answered(found: list[cells.Cell]) -> str:
    """Every claim of the paper on every pair that has cells."""
    said = claims.of_paper()
    answers = claims.answers(found, said)
    return f"{plain.markdown(claims.rows(answers))}\n\n{claims.note(said)}" if answers else NOTHING


def readme(folder: pathlib.Path = RESULTS) -> str:
    return between(README.read_text(), "CIFAR-100", tables(held(folder)))


def page(folder: pathlib.Path = RESULTS) -> str:
    found = held(folder)
    text = between(PAGE.read_text(), "CIFAR-100", tables(found))
    return between(text, "claims", answered(found))


if __name__ == "__main__":
    README.write_text(readme())
    PAGE.write_text(page())
