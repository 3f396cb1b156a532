"""Rows as a table on a terminal, and as a list where a table does not fit."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from plackett.cli.letters import spell
from plackett.experiments.statistics import Finding
from plackett.experiments.tables import Row

WORDS = {Finding.HIGHER: "better", Finding.LOWER: "worse", Finding.UNCLEAR: "cannot tell", None: ""}
PLAIN_HEAD = box.Box("\n".join(["    ", "    ", " -- ", *["    "] * 5, ""]), ascii=True)


def comparison(console: Console, title: str, rows: Sequence[Row], baseline: str) -> RenderableType:
    """Mean ± std, n, and the paired difference to the baseline with its 95 % interval, as `console` can show them."""
    encoding = console.encoding
    heading = Text(spell(title, encoding), "bold")
    cells = [[spell(cell, encoding) for cell in _cells(row, baseline)] for row in rows]
    headings = [spell(words, encoding) for words in ("test accuracy, %", "n", f"difference to {baseline} [95 %]")]
    table = _table(heading, headings, cells, encoding)
    wide = console.options.update(width=10_000)
    if console.measure(table, options=wide).maximum <= console.width:
        return table
    return _list(heading, headings, cells)


def _cells(row: Row, baseline: str) -> list[str]:
    difference = row.difference.text(100) if row.difference else ""
    words = WORDS[row.finding] if row.method != baseline else "baseline"
    return [row.method, row.accuracy.text(100), str(row.accuracy.n), difference, words]


def _table(title: Text, headings: Sequence[str], cells: Sequence[Sequence[str]], encoding: str) -> Table:
    style = box.SIMPLE_HEAD if encoding.startswith("utf") else PLAIN_HEAD
    table = Table(title=title, title_justify="left", box=style)
    table.add_column("method")
    for heading in headings:
        table.add_column(Text(heading), justify="right")
    table.add_column("")
    for row in cells:
        table.add_row(*map(Text, row))  # as text: a method's name may look like markup
    return table


def _list(title: Text, headings: Sequence[str], cells: Sequence[Sequence[str]]) -> Text:
    """Two lines a method, so that no figure is cut."""
    accuracy, n, difference = headings
    lines = [title, Text(f"{accuracy} ({n});\n{difference}\n")]
    for method, mean, seeds, against, words in cells:
        of = "" if "n = " in mean else f" (n = {seeds})"
        lines += [Text(f"{method}: {mean}{of}"), Text("  " + "  ".join(filter(None, (against, words))))]
    return Text("\n").join([*lines, Text()])
