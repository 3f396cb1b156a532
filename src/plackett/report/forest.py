"""Paired differences to the base, a row a method, with 95 % intervals: the picture beside a table of cells."""

from __future__ import annotations

import re
from pathlib import Path

from plackett.experiments.cell_table import Line, Table
from plackett.experiments.statistics import Finding
from plackett.report import need
from plackett.report.surfaces import STYLE, save

# Okabe and Ito's; what is not told from the base is an open ring as well.
COLOURS = {Finding.HIGHER: "#0072b2", Finding.LOWER: "#d55e00"}
OPEN = "#666666"
ROW, REST = 0.27, 0.9  # inches


def drawn(table: Table) -> list[Line]:
    """The methods that have a difference, in the table's order."""
    return [line for line in table.lines if line.difference is not None]


def stem(table: Table) -> str:
    return re.sub(r"[^A-Za-z0-9._=-]+", "-", f"{table.recipe}-{table.pair}-to-{table.base}")


def draw(table: Table, folder: Path) -> list[Path]:
    """The picture as .png and .svg in `folder`; none where no method can be compared."""
    lines = drawn(table)
    if not lines:
        return []
    matplotlib = need("matplotlib", what="The picture")
    figures = need("matplotlib.figure", what="The picture")
    sides = {"axes.spines.top": False, "axes.spines.right": False, "axes.spines.left": False}
    with matplotlib.rc_context({**STYLE, **sides}):
        figure = figures.Figure(figsize=(5.6, REST + ROW * len(lines)), layout="constrained", dpi=110)
        axes = figure.add_subplot()
        axes.axvline(0, color=OPEN, linewidth=1, linestyle="--", zorder=1)
        for place, line in enumerate(lines):
            found = line.difference
            assert found is not None
            colour = COLOURS.get(found.finding, OPEN)
            if found.low is not None and found.high is not None:
                axes.plot([100 * found.low, 100 * found.high], [place, place], color=colour, linewidth=1.6, zorder=2)
            inside = colour if found.finding in COLOURS else "#ffffff"
            axes.plot(100 * found.mean, place, "o", color=colour, markerfacecolor=inside, markersize=5, zorder=3)
        axes.set_yticks(range(len(lines)), [f"{line.title} (n = {_n(line)})" for line in lines])
        axes.set_ylim(len(lines) - 0.5, -0.5)
        axes.tick_params(axis="y", length=0)
        axes.grid(axis="x", color="#dddddd", linewidth=0.6)
        axes.set_axisbelow(True)
        axes.set_xlabel(f"difference to {table.base} in points, paired by seed, with 95 % intervals")
        axes.set_title(table.pair)
        return save(figure, folder / stem(table))


def _n(line: Line) -> int:
    assert line.difference is not None
    return line.difference.n
