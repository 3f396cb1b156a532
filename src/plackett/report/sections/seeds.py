"""A dot for every seed, so that a mean does not hide what it is the mean of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from plackett.experiments.study import Study
from plackett.experiments.tables import Row, rows
from plackett.report.figures import ACCENT, INK, LINE, MUTED, PAPER, Drawing

TITLE = "Every seed"


def context(study: Study) -> dict[str, Any] | None:
    figures = []
    for case in study.record.cases:
        table = rows(study.runs[case.group], study.record.baseline)
        if table:
            figures.append({"title": case.title, "svg": _dots(case.title, table, study.record.baseline)})
    return {"figures": figures, "baseline": study.record.baseline} if figures else None


def _dots(title: str, table: Sequence[Row], baseline: str) -> Any:
    plain = next((row.accuracy.mean for row in table if row.method == baseline), None)
    with Drawing(4.5, 0.6 + 0.36 * len(table)) as drawing:
        axes = drawing.axes
        if plain is not None:
            axes.axvline(100 * plain, color=MUTED, linewidth=1, linestyle=(0, (3, 3)), zorder=1)
        for place, row in enumerate(table):
            colour = MUTED if row.method == baseline else ACCENT
            found = [100 * accuracy for accuracy in row.seeds.values()]
            axes.plot(found, [place] * len(found), "o", color=colour, markersize=6, alpha=0.45, markeredgewidth=0)
            axes.plot(100 * row.accuracy.mean, place, "|", color=PAPER, markersize=15, markeredgewidth=4.5, zorder=3)
            axes.plot(100 * row.accuracy.mean, place, "|", color=INK, markersize=14, markeredgewidth=2, zorder=4)
        axes.set_yticks(range(len(table)), [row.method for row in table])
        axes.tick_params(axis="y", labelcolor=INK, labelsize=9)
        axes.set_ylim(len(table) - 0.4, -0.6)
        axes.grid(axis="y", color=LINE, linewidth=0.6)
        axes.spines["left"].set_visible(False)
        axes.set_xlabel("test accuracy, %")
        axes.margins(x=0.06)
    means = "; ".join(f"{row.method} {row.accuracy.text(100)}" for row in table)
    return drawing.svg(f"{title}. Test accuracy in percent, one dot a seed, mean and standard deviation: {means}.")
