"""Writes what the committed cells of CIFAR-100 say: README (tables), docs/cifar100.md (tables and claims), pictures."""

from __future__ import annotations

import pathlib

from plackett.experiments import cell_table, cells, claims, plain
from plackett.report import forest
from tools.between import between

ROOT = pathlib.Path(__file__).parent.parent
RESULTS = ROOT / "results" / "cifar100"
README, PAGE, PICTURES = ROOT / "README.md", ROOT / "docs" / "cifar100.md", ROOT / "docs" / "images"
NOTHING = "No cell of this table has been run yet."


def held(folder: pathlib.Path) -> list[cells.Cell]:
    recipe = claims.of_paper().recipe
    return [cell for cell in cells.read(cells.files(folder)).values() if cell.recipe == recipe]


def tables(found: list[cells.Cell], beside: pathlib.Path) -> str:
    """Every pair's table, with device and versions, and its picture, as a page in the folder `beside` names it."""
    if not found:
        return NOTHING
    every = cell_table.tables(found)
    made = cell_table.render(every, "markdown").strip()
    for table in filter(forest.drawn, every):
        where = (PICTURES / f"{forest.stem(table)}.svg").relative_to(beside)
        made += f"\n\n![Paired differences to {table.base}, {table.pair}]({where})"
    where = sorted({f"{cell.device}, torch {cell.versions.get('torch', 'unknown')}" for cell in found})
    return f"{made}\n\nRun on {'; '.join(where)}; every cell is a line of `results/cifar100/*.jsonl`."


def answered(found: list[cells.Cell]) -> str:
    """Every claim of the paper on every pair that has cells."""
    said = claims.of_paper()
    answers = claims.answers(found, said)
    return f"{plain.markdown(claims.rows(answers))}\n\n{claims.note(said)}" if answers else NOTHING


def readme(folder: pathlib.Path = RESULTS) -> str:
    return between(README.read_text(), "CIFAR-100", tables(held(folder), README.parent))


def page(folder: pathlib.Path = RESULTS) -> str:
    found = held(folder)
    text = between(PAGE.read_text(), "CIFAR-100", tables(found, PAGE.parent))
    return between(text, "claims", answered(found))


if __name__ == "__main__":
    README.write_text(readme())
    PAGE.write_text(page())
    for each in cell_table.tables(held(RESULTS)):
        forest.draw(each, PICTURES)
