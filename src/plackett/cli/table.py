"""`plackett table`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from plackett.cli.letters import spell


def table(
    places: Annotated[list[Path], typer.Argument(metavar="RUNS...", help="Run folders, or .jsonl files of cells.")],
    form: Annotated[str, typer.Option("--format", help="text, markdown, latex or csv.")] = "text",
    base: Annotated[str, typer.Option(help="The method that differences are to.")] = "kd",
) -> None:
    """Mean ± std, n, paired differences, and the paper's figures beside ours."""
    from plackett.experiments import cell_table, cells

    held = cells.gather(places)
    show(cell_table.render(cell_table.tables(held.values(), base), form))


def show(text: str) -> None:
    print(spell(text, sys.stdout.encoding or "utf-8"), end="")
