"""`plackett report`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from plackett.cli import ready
from plackett.cli.stopped import at_once


def report(
    run: Annotated[list[Path], typer.Argument(help="Run folders, or folders of several.")],
    out: Annotated[Path | None, typer.Option(help="The file to write; else report.html beside the runs.")] = None,
    files: Annotated[
        bool, typer.Option("--files/--no-files", help="Every plot as PNG and SVG, every table as CSV, beside it.")
    ] = True,
) -> None:
    """Write the report of runs that exist as one HTML file."""
    ready.extras("The report", ["report"])
    if out is not None:
        ready.file(out)
    with at_once():
        from plackett.report import need, write

        need("jinja2"), need("matplotlib")

    page = write(run, out, beside=files)
    print(f"Report: {page}")
    if files:
        print(f"Plots and tables: {page.with_name(f'{page.stem}-files')}")
