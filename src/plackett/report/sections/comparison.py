"""Every method against the baseline: a dot for every seed, the paired differences, and the table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from plackett.experiments.statistics import Finding
from plackett.experiments.tables import Row
from plackett.report.colours import ACCENT, INK, LINE, MUTED, PAPER
from plackett.report.figures import Drawing, Plate, room, short
from plackett.report.material import Case, Material
from plackett.report.sections.verdict import word
from plackett.report.tables import Cell, Table

TITLE = "Comparison"
MOST_ROWS = 40
ROW, TOP, BOTTOM = 0.34, 0.12, 0.48  # inches


def context(material: Material) -> dict[str, Any] | None:
    cases = []
    for case in material.cases:
        if case.rows:
            drawn = case in material.shown
            cases.append({
                "title": case.title,
                "table": _table(case, drawn),
                "dots": _dots(case) if drawn else None,
                "forest": _forest(case) if drawn else None,
                "baseline": case.baseline,
            })  # fmt: skip
    return {"cases": cases} if cases else None


def _dots(case: Case) -> Plate:
    table = case.rows[:MOST_ROWS]
    plain = case.row(case.baseline)
    with _Rows(table, f"{case.tested} accuracy, %") as drawing:
        axes = drawing.axes
        if plain is not None:
            axes.axvline(100 * plain.accuracy.mean, color=MUTED, linewidth=1, linestyle=(0, (3, 3)), zorder=1)
        for place, row in enumerate(table):
            colour = MUTED if row.method == case.baseline else ACCENT
            found = [100 * accuracy for accuracy in row.seeds.values()]
            mean = 100 * row.accuracy.mean
            if row.accuracy.std is not None:
                spread = 100 * row.accuracy.std
                axes.plot(
                    [mean - spread, mean + spread],
                    [place, place],
                    color=INK,
                    linewidth=1,
                    zorder=3,
                    solid_capstyle="butt",
                )
            axes.plot(found, [place] * len(found), "o", color=colour, markersize=6, alpha=0.5, markeredgewidth=0)
            axes.plot(mean, place, "|", color=PAPER, markersize=15, markeredgewidth=4.5, zorder=2.5)
            axes.plot(mean, place, "|", color=INK, markersize=14, markeredgewidth=2, zorder=4)
        axes.margins(x=0.06)
    means = "; ".join(f"{row.method} {row.accuracy.text(100)}" for row in table)
    return drawing.plate(
        f"dots {case.title}",
        f"{case.title}. Test accuracy in percent, one dot a seed, mean and standard deviation: {means}.",
    )


def _forest(case: Case) -> Plate | None:
    table = [row for row in case.rows[:MOST_ROWS] if row.difference is not None]
    if not table:
        return None
    counts = {row.difference.n for row in table if row.difference}
    same = f" (n = {counts.pop()})" if len(counts) == 1 else ""
    with _Rows(case.rows[:MOST_ROWS], f"difference to {short(case.baseline)}, points{same}") as drawing:
        axes = drawing.axes
        axes.axvline(0, color=MUTED, linewidth=1, linestyle=(0, (3, 3)), zorder=1)
        for place, row in enumerate(case.rows[:MOST_ROWS]):
            found = row.difference
            if found is None:
                axes.plot(0, place, marker="|", color=MUTED, markersize=10, markeredgewidth=1.5)
                continue
            clear = row.finding is not Finding.UNCLEAR
            if found.low is not None and found.high is not None:
                ends = [100 * found.low, 100 * found.high]
                axes.plot(ends, [place, place], color=ACCENT if clear else INK, linewidth=2 if clear else 1.2, zorder=2)
            axes.plot(
                100 * found.mean, place, marker="o", markersize=7, color=ACCENT if clear else INK, zorder=3,
                markerfacecolor=ACCENT if clear else PAPER, markeredgewidth=1.3,
            )  # fmt: skip
            if not same:
                axes.annotate(
                    f"n = {found.n}", (100 * found.mean, place), (0, 7), textcoords="offset points", ha="center",
                    fontsize=7.5, color=MUTED,
                )  # fmt: skip
        axes.margins(x=0.08)
    said = "; ".join(f"{row.method} {row.difference.text(100)}" for row in table if row.difference)
    return drawing.plate(
        f"differences {case.title}",
        f"{case.title}. Paired differences to {case.baseline} in points, with 95 percent intervals: {said}.",
    )


class _Rows(Drawing):
    """A row for every method, its name before it."""

    def __init__(self, table: Sequence[Row], label: str) -> None:
        self._names = [short(row.method) for row in table]
        self._label = label
        height = TOP + BOTTOM + ROW * len(table)
        super().__init__(4.5, height, left=room(self._names), top=TOP, bottom=BOTTOM)

    def __enter__(self) -> _Rows:
        super().__enter__()
        axes = self.axes
        axes.set_yticks(range(len(self._names)), self._names)
        axes.tick_params(axis="y", labelcolor=INK, labelsize=9)
        axes.set_ylim(len(self._names) - 0.5, -0.5)
        axes.grid(axis="y", color=LINE, linewidth=0.6)
        axes.spines["left"].set_visible(False)
        axes.set_xlabel(self._label)
        axes.locator_params(axis="x", nbins=7)
        return self


def _table(case: Case, drawn: bool) -> Table:
    rows: list[list[Cell | str]] = []
    sheet: list[list[object]] = [[
        "method", "n", "accuracy", "std", f"difference to {case.baseline}", "low", "high", "level", "finding",
        "agreement with the teacher", "ece", "best epoch's accuracy", *(f"seed {seed}" for seed in _seeds(case)),
    ]]  # fmt: skip
    for row in case.rows:
        found, alike = row.difference, row.agreement
        said = word(case, row)
        rows.append([
            row.method, row.accuracy.text(100), str(row.accuracy.n), found.text(100) if found else "–",
            alike.text(100) if alike else "–", row.ece.text(100), row.best.text(100),
        ])  # fmt: skip
        sheet.append([
            row.method, row.accuracy.n, row.accuracy.mean, row.accuracy.std,
            *((found.mean, found.low, found.high, found.level) if found else (None,) * 4), said.text,
            alike.mean if alike else None, row.ece.mean, row.best.mean, *(row.seeds.get(s) for s in _seeds(case)),
        ])  # fmt: skip
    return Table(
        name=case.title,
        caption=case.title,
        columns=[
            "method", f"{case.tested} accuracy, %", "n", f"difference to {case.baseline} [95 %]",
            "like the teacher, %", "ECE, %", "best epoch, %",
        ],
        rows=rows,
        kinds=["base" if row.method == case.baseline else "" for row in case.rows],
        sheet=sheet,
        quiet=drawn,
    )  # fmt: skip


def _seeds(case: Case) -> list[int]:
    return sorted({seed for row in case.rows for seed in row.seeds})
