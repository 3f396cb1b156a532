"""What the training cost, by cohort: its students were trained side by side."""

from __future__ import annotations

from typing import Any

from plackett.experiments.statistics import summary
from plackett.experiments.transfer import Costs
from plackett.report.material import Case, Material
from plackett.report.tables import Cell, Table

TITLE = "Cost"


def context(material: Material) -> dict[str, Any] | None:
    found = [(case, costs) for case in material.cases for costs in _cohorts(case)]
    return {"table": _table(found)} if found else None


def _cohorts(case: Case) -> list[list[Costs]]:
    """Runs with the same students and length, together."""
    held: dict[tuple[Any, ...], list[Costs]] = {}
    for _, costs in case.costs:
        held.setdefault((*costs.students, costs.epochs, costs.steps, costs.peak_of), []).append(costs)
    return list(held.values())


def _table(found: list[tuple[Case, list[Costs]]]) -> Table:
    rows: list[list[Cell | str]] = []
    for case, costs in found:
        one = costs[0]
        seconds = summary([each.seconds for each in costs])
        students = max(1, len(one.students))
        each_epoch = summary([each.seconds / each.epochs for each in costs if each.epochs] or [0.0])
        each_step = summary([1000 * each.seconds / each.steps / students for each in costs if each.steps] or [0.0])
        memory = summary([each.peak_mib for each in costs])
        rows.append([
            case.title, Cell(", ".join(one.students)), Cell(str(len(costs)), len(costs)),
            Cell(str(one.epochs), one.epochs), Cell(seconds.text(), seconds.mean),
            Cell(f"{each_epoch.mean:.3g}", each_epoch.mean), Cell(f"{each_step.mean:.3g}", each_step.mean),
            Cell(f"{memory.mean:,.0f}, {one.peak_of}", memory.mean),
        ])  # fmt: skip
    return Table(
        name="training",
        caption="Training, a cohort at a time",
        columns=[
            "comparison", "students side by side", "runs", "epochs", "s a run", "s an epoch",
            "ms a student’s step", "peak MiB, of the",
        ],
        words=(0, 1),
        rows=rows,
        dense=True,
    )  # fmt: skip
