"""Rows as a table on a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.table import Table
from rich.text import Text

from plackett.experiments.statistics import Finding
from plackett.experiments.tables import Row

WORDS = {Finding.HIGHER: "better", Finding.LOWER: "worse", Finding.UNCLEAR: "cannot tell", None: ""}


def comparison(title: str, rows: Sequence[Row], baseline: str) -> Table:
    """Mean ± std, n, and the paired difference to the baseline with its 95 % interval."""
    table = Table(title=Text(title, "bold"), title_justify="left", box=box.SIMPLE_HEAD)
    table.add_column("method")
    for heading in ("test accuracy, %", "n", f"difference to {baseline} [95 %]"):
        table.add_column(Text(heading), justify="right")
    table.add_column("")
    for row in rows:
        difference = row.difference.text(100) if row.difference else ""
        words = WORDS[row.finding] if row.method != baseline else "baseline"
        cells = (row.method, row.accuracy.text(100), str(row.accuracy.n), difference, words)
        table.add_row(*map(Text, cells))  # as text: a method's name may look like markup
    return table
