"""What was transferred: how alike the students are to their teacher, and who is right where."""

from __future__ import annotations

from typing import Any

from plackett.experiments.statistics import summary
from plackett.experiments.transfer import FIGURES, table
from plackett.report.colours import ACCENT, INK, LINE, MUTED, PAPER, SERIES
from plackett.report.figures import Drawing, Plate, room, short
from plackett.report.material import Case, Material
from plackett.report.tables import Table

TITLE = "What was transferred"
# Who is right: the field, how it is told from its neighbours, and its words.
SHARES = (
    ("both", ACCENT, 0.9, "both right"),
    ("only_teacher", SERIES[1], 0.9, "only the teacher"),
    ("only_student", ACCENT, 0.9, "only the student"),
    ("neither", MUTED, 0.5, "neither"),
)


def context(material: Material) -> dict[str, Any] | None:
    cases = [
        {
            "title": case.title,
            "shares": _shares(case) if case in material.shown else None,
            "table": _table(case, case in material.shown),
            "pictures": next(iter(case.alignments.values()))[0].pictures,
        }
        for case in material.cases
        if case.alignments
    ]
    return {"cases": cases} if cases else None


def _shares(case: Case) -> Plate:
    """The part of the pictures on which the two differ, which is small, is what the scale begins with."""
    names = list(case.alignments)[:40]
    means = {
        name: [100 * summary([getattr(each, field) for each in case.alignments[name]]).mean for field, *_ in SHARES]
        for name in names
    }
    labels = [short(name) for name in names]
    most = max(sum(values[1:]) for values in means.values())
    with Drawing(7.2, 0.86 + 0.32 * len(names), left=room(labels), top=0.36, bottom=0.48, right=0.2) as drawing:
        axes = drawing.axes
        for place, name in enumerate(names):
            start = 0.0
            for (_, colour, alpha, words), value in list(zip(SHARES, means[name], strict=True))[1:]:
                axes.barh(
                    place, value, left=start, height=0.62, color=colour, alpha=alpha, linewidth=1.5, edgecolor=PAPER,
                    label=words if place == 0 else None,
                )  # fmt: skip
                if value > most / 16:
                    axes.text(
                        start + value / 2, place, f"{value:.1f}", ha="center", va="center", fontsize=8,
                        color=INK if words == "neither" else PAPER,
                    )  # fmt: skip
                start += value
        axes.set_yticks(range(len(labels)), labels)
        axes.tick_params(axis="y", labelcolor=INK, labelsize=9)
        axes.set_ylim(len(labels) - 0.5, -0.5)
        axes.grid(axis="y", visible=False)
        axes.spines["left"].set_color(LINE)
        axes.set_xlabel(f"{case.tested} pictures that not both get right, %")
        axes.legend(
            loc="lower left", bbox_to_anchor=(0, 1), ncols=3, borderaxespad=0.3, handlelength=1, handleheight=0.9,
            columnspacing=1.4, handletextpad=0.5, borderpad=0, labelcolor=MUTED,
        )  # fmt: skip
    said = "; ".join(
        f"{name}: " + ", ".join(f"{words} {v:.1f}" for (*_, words), v in zip(SHARES, values, strict=True))
        for name, values in means.items()
    )
    return drawing.plate(
        f"who is right {case.title}", f"{case.title}. Who is right, percent of the {case.tested} pictures: {said}."
    )


def _table(case: Case, drawn: bool) -> Table:
    found = case.alignments
    return Table(
        name=case.title,
        caption=case.title,
        columns=["figure", *found],
        rows=[[figure.title, *(figure.text(each) for each in found.values())] for figure in FIGURES],
        sheet=table(found),
        quiet=drawn,
        dense=True,
    )
