"""`plackett report`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from plackett.cli import ready
from plackett.cli.stopped import at_once


def report(
    run: Annotated[Path, typer.Argument(help="A run folder, or a folder of several.")],
    out: Annotated[Path | None, typer.Option(help="The file to write; else report.html beside the runs.")] = None,
) -> None:
    """Write the report of runs that exist as one HTML file."""
    ready.extras("The report", ["report"])
    if out is not None:
        ready.file(out)
    with at_once():
        from plackett.report import need, write

        need("jinja2"), need("matplotlib")

    print(f"Report: {write(run, out)}")
