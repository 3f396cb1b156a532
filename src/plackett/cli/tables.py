"""Rows as a table on a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.markup import escape
from rich.table import Table

from plackett.experiments.statistics import Finding
from plackett.experiments.tables import Row

WORDS = {Finding.HIGHER: "better", Finding.LOWER: "worse", Finding.UNCLEAR: "cannot tell", None: ""}


def comparison(title: str, rows: Sequence[Row], baseline: str) -> Table:
    """Mean ± std, n, and the paired difference to the baseline with its 95 % interval."""
    table = Table(title=escape(title), title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, pad_edge=True)
    table.add_column("method")
    for heading in ("test accuracy, %", "n", f"difference to {escape(baseline)} [95 %]"):
        table.add_column(heading.replace("[95", r"\[95"), justify="right")
    table.add_column("")
    for row in rows:
        difference = escape(row.difference.text(100)) if row.difference else ""
        words = WORDS[row.finding] if row.method != baseline else "baseline"
        table.add_row(escape(row.method), row.accuracy.text(100), str(row.accuracy.n), difference, words)
    return table
