"""Whether the teacher is fit to teach: how good it is, how sure, and how much of PLD's weight its label gets."""

from __future__ import annotations

from typing import Any

from plackett.experiments.records import TeacherRecord
from plackett.report.colours import ACCENT, MUTED
from plackett.report.figures import Drawing, Plate
from plackett.report.material import MOST_CASES, Material
from plackett.report.reliability import diagram
from plackett.report.tables import Cell, Table

TITLE = "Teacher check"


def context(material: Material) -> dict[str, Any] | None:
    held: list[tuple[TeacherRecord, int]] = []
    for run in material.study.all_runs:
        if run.record.teacher is not None and (pair := (run.record.teacher, len(run.record.data.classes))) not in held:
            held.append(pair)
    many = len(held) > 1
    teachers = [
        {
            "record": teacher,
            "name": f"{teacher.model} ({place})" if many else teacher.model,
            "classes": classes,
            "weights": _weights(teacher, classes, place),
            "table": _table(teacher, place),
            "reliability": diagram(f"teacher {place}", "reliability", [teacher.calibration], teacher=True),
        }
        for place, (teacher, classes) in enumerate(held[:MOST_CASES], 1)
    ]
    if not teachers:
        return None
    weighed = held[0][0].weighed_on
    return {"teachers": teachers, "left": len(held) - len(teachers), "weighed": weighed, "check": _check(material)}


def _check(material: Material) -> dict[str, Any] | None:
    """What was found of the teacher before it taught, where the experiment keeps it."""
    found = material.checked
    if found is None:
        return None
    top5 = any(look.top5 is not None for look in found.looks)
    rows: list[list[Cell | str]] = [
        [
            look.words,
            Cell(f"{100 * look.top1:.1f}", look.top1),
            *([Cell("–" if look.top5 is None else f"{100 * look.top5:.1f}", look.top5)] if top5 else []),
        ]
        for look in found.looks
    ]
    columns = ["the teacher is shown the pictures", "top-1, %", *(["top-5, %"] if top5 else [])]
    table = Table("teacher check", f"On {found.pictures:,} pictures of {found.data} ({found.split})", columns, rows)
    return {"findings": found, "table": table}


def _weights(teacher: TeacherRecord, classes: int, place: int) -> Plate | None:
    weights = dict(sorted(teacher.first_choice_weight.items()))
    if not weights:
        return None
    with Drawing(3.9, 2.25, left=0.42, right=0.35) as drawing:
        axes = drawing.axes
        axes.axhline(1 / classes, color=MUTED, linewidth=1, linestyle=(0, (3, 3)))
        axes.plot(list(weights), list(weights.values()), "o-", color=ACCENT, linewidth=1.7, markersize=5.5)
        for tau, weight in weights.items():
            axes.annotate(
                f"{weight:.3f}", (tau, weight), (3, 4), textcoords="offset points", ha="left",
                fontsize=8,
            )  # fmt: skip
        axes.set_xscale("log")
        axes.minorticks_off()
        axes.set_xticks(list(weights), [f"{tau:g}" for tau in weights])
        axes.set_ylim(0, 1.12)
        axes.set_yticks([0, 0.25, 0.5, 0.75, 1])
        axes.margins(x=0.06)
        axes.grid(axis="x", visible=False)
        axes.spines["left"].set_visible(False)
        axes.set_title("first-choice weight")
        axes.set_xlabel("temperature τ")
    said = ", ".join(f"{weight:.3f} at {tau:g}" for tau, weight in weights.items())
    return drawing.plate(
        f"first choice weight {place}", f"Teacher {place}: mean first-choice weight by temperature: {said}."
    )


def _table(teacher: TeacherRecord, place: int) -> Table:
    rows: list[list[Cell | str]] = [
        [f"{tau:g}", Cell(f"{weight:.3f}", weight)] for tau, weight in sorted(teacher.first_choice_weight.items())
    ]
    return Table(f"first choice weight {place}", "First-choice weight", ["temperature", "weight"], rows)
