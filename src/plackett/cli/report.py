"""`plackett report`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def report(
    run: Annotated[Path, typer.Argument(help="A run folder, or a folder of several.")],
    out: Annotated[Path | None, typer.Option(help="The file to write; else report.html beside the runs.")] = None,
) -> None:
    """Write the report of runs that exist as one HTML file."""
    from plackett.report import write

    typer.echo(f"Report: {write(run, out)}")
