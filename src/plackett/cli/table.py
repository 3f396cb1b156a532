"""`plackett table`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from plackett.cli import ready
from plackett.cli.letters import spell
from plackett.errors import InputError, did_you_mean

if TYPE_CHECKING:
    from plackett.experiments.cell_table import Table
    from plackett.experiments.cells import Cell


def table(
    places: Annotated[list[Path], typer.Argument(metavar="RUNS...", help="Run folders, or .jsonl files of cells.")],
    form: Annotated[str, typer.Option("--format", help="text, markdown, latex or csv.")] = "text",
    base: Annotated[str, typer.Option(help="The method that differences are to.")] = "kd",
    claims: Annotated[bool, typer.Option("--claims", help="The paper's claims instead, each seen or not.")] = False,
    plot: Annotated[
        Path | None, typer.Option(help="A folder for pictures of the differences, a .png and .svg a pair.")
    ] = None,
) -> None:
    """Mean ± std, n, paired differences, and the paper's figures beside ours."""
    if plot is not None:
        ready.folder(plot, "--plot")
        ready.extras("--plot", ["report"])
    from plackett.experiments import cell_table, cells

    held = cells.gather(places)
    if plot is not None:
        _draw(cell_table.tables(held.values(), base), plot)
    if claims:
        show(_claims(held.values(), form))
        return
    show(cell_table.render(cell_table.tables(held.values(), base), form))


def _draw(tables: Iterable[Table], folder: Path) -> None:
    from plackett.report import forest

    drawn = [path for table in tables for path in forest.draw(table, folder)]
    said = f"Written: {', '.join(map(str, drawn))}" if drawn else "No method has a difference to draw."
    print(said, file=sys.stderr)  # the table itself may go into a file


def _claims(held: Iterable[Cell], form: str) -> str:
    from plackett.experiments import cell_table, claims, plain

    forms: dict[str, Callable[[list[list[str]]], str]] = {
        "text": partial(plain.aligned, words=True),
        "markdown": plain.markdown,
        "csv": plain.comma_separated,
    }
    if form not in forms:
        raise InputError(f"Claims have no format {form!r}; {did_you_mean(form, forms)}.")
    said = claims.of_paper()
    found = claims.answers(held, said)
    if not found:
        epochs, test = cell_table.size()
        raise InputError(
            f"The claims are about the recipe {said.recipe} at {epochs} epochs and {test:,} test pictures, "
            "of which there is no cell here."
        )
    table = forms[form](claims.rows(found))
    return table if form == "csv" else f"{table}\n\n{claims.note(said)}\n"


def show(text: str) -> None:
    print(spell(text, sys.stdout.encoding or "utf-8"), end="")
