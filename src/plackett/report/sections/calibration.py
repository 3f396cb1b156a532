"""Reliability diagrams: how often a network is right when it says how sure it is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from plackett.experiments.records import CalibrationRecord
from plackett.experiments.study import Study
from plackett.experiments.tables import methods
from plackett.report.figures import ACCENT, INK, MUTED, Drawing

TITLE = "Calibration"


def context(study: Study) -> dict[str, Any] | None:
    cases = []
    teacher = next((run.record.teacher for run in study.all_runs if run.record.teacher), None)
    for case in study.record.cases:
        runs = [run for run in study.runs[case.group] if run.results is not None]
        panels = [_panel(case.title, "teacher", [teacher.calibration])] if teacher and runs else []
        for method in methods(runs):
            found = [r.results.students[method].calibration for r in runs if r.results and method in r.results.students]
            if found:
                panels.append(_panel(case.title, method, found))
        if panels:
            cases.append({"title": case.title, "panels": panels})
    return {"cases": cases} if cases else None


def _panel(title: str, name: str, records: Sequence[CalibrationRecord]) -> Any:
    bins = len(records[0].counts)
    centres, heights, shares = [], [], []
    total = sum(sum(record.counts) for record in records)
    for i in range(bins):
        counts = [record.counts[i] for record in records]
        if sum(counts):
            right = sum((record.accuracy[i] or 0.0) * record.counts[i] for record in records)
            centres.append((i + 0.5) / bins)
            heights.append(right / sum(counts))
            shares.append(sum(counts) / total)
    ece = sum(record.ece for record in records) / len(records)
    colour = MUTED if name == "teacher" else ACCENT
    with Drawing(2.2, 2.25) as drawing:
        axes = drawing.axes
        for centre, height, share in zip(centres, heights, shares, strict=True):
            strength = 0.2 + 0.7 * min(1.0, 4 * share)  # a bin of three pictures says little, and looks it
            axes.bar(centre, height, width=0.92 / bins, color=colour, alpha=strength, linewidth=0)
        axes.plot([0, 1], [0, 1], color=INK, linewidth=1, linestyle=(0, (3, 3)))
        axes.set_xlim(0, 1)
        axes.set_ylim(0, 1)
        axes.set_xticks([0, 0.5, 1], ["0", "50", "100"])
        axes.set_yticks([0, 0.5, 1], ["0", "50", "100"])
        axes.set_aspect("equal")
        axes.set_title(name)
        axes.set_xlabel("confidence, %")
        axes.set_ylabel("right, %")
        axes.set_title(f"ECE {100 * ece:.1f}", loc="right", color=MUTED, fontsize=8, fontweight="normal")
    return drawing.svg(f"{title}. Reliability of {name}: expected calibration error {100 * ece:.1f} percent.")
