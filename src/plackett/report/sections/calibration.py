"""Reliability diagrams of the students."""

from __future__ import annotations

from typing import Any

from plackett.experiments.tables import methods
from plackett.report.material import Case, Material
from plackett.report.reliability import diagram
from plackett.report.tables import Table

TITLE = "Calibration"


def context(material: Material) -> dict[str, Any] | None:
    cases = []
    for case in material.shown:
        found = [(name, _records(case, name)) for name in methods(case.runs)]
        panels = [diagram(case.title, name, records) for name, records in found if records][: material.panels]
        if panels:
            cases.append({"title": case.title, "panels": panels, "table": _table(case)})
    return {"cases": cases} if cases else None


def _records(case: Case, method: str) -> list[Any]:
    return [
        run.results.students[method].calibration
        for run in case.runs
        if run.results is not None and method in run.results.students
    ]


def _table(case: Case) -> Table:
    """For the file only."""
    sheet: list[list[object]] = [["method", "seed", "bin", "pictures", "confidence", "accuracy"]]
    for run in case.runs:
        for method, result in (run.results.students if run.results else {}).items():
            held = result.calibration
            bins = zip(held.counts, held.confidence, held.accuracy, strict=True)
            sheet += [[method, run.record.seed, i, *each] for i, each in enumerate(bins, 1)]
    return Table(f"bins {case.title}", case.title, [], [], sheet=sheet)
