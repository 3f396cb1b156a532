"""`plackett cost`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from plackett.cli.letters import spell
from plackett.errors import InputError, did_you_mean

FORMATS = ("text", "markdown", "csv")


def cost(
    places: Annotated[list[Path], typer.Argument(metavar="RUNS...", help="Run folders, or .jsonl files of cells.")],
    form: Annotated[str, typer.Option("--format", help="text, markdown or csv.")] = "text",
    base: Annotated[str | None, typer.Option(help="What times are multiples of. [default: ce]")] = None,
) -> None:
    """Training time, memory and latency by method, from runs; beside the paper's run times where it has them."""
    if form not in FORMATS:
        raise InputError(f"There is no format {form!r}; {did_you_mean(form, FORMATS)}.")
    from plackett.experiments import cost_table, plain

    tables = cost_table.gather(places, base)
    if form == "csv":
        said = plain.comma_separated(cost_table.csv_rows(tables))
    else:
        parts = [*(cost_table.text(table, form) for table in tables), "\n".join(cost_table.notes(tables))]
        said = "\n\n".join(parts) + "\n"
    print(spell(said, sys.stdout.encoding or "utf-8"), end="")
