"""Everything needed to get these numbers again."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from plackett.experiments.records import RESULTS, Run
from plackett.report.material import MOST_CASES, Material
from plackett.report.tables import Cell, Table

TITLE = "Reproduce"


def context(material: Material) -> dict[str, Any] | None:
    study = material.study
    records = [run.record for run in study.all_runs]
    if not records:
        return None
    first = [(case.title, case.runs[0].record) for case in material.cases if case.runs]
    places = {(record.device, record.commit, *sorted(record.versions.items())) for record in records}
    return {
        "record": first[0][1],
        "commands": study.record.command.splitlines(),
        "seeds": sorted({record.seed for record in records}),
        "seconds": study.record.seconds,
        "started": min(record.started for record in records),
        "mixed": len(places) > 1,
        "configurations": [
            (title, record, json.dumps(record.config, indent=2, ensure_ascii=False))
            for title, record in first[:MOST_CASES]
        ],
        "table": _table(material),
    }


def _table(material: Material) -> Table:
    rows: list[list[Cell | str]] = []
    for case in material.cases:
        for run in case.runs:
            record = run.record
            seconds = Cell("–" if record.seconds is None else f"{record.seconds:,.1f}", record.seconds)
            rows.append([
                str(run.folder), case.title, Cell(str(record.seed), record.seed), record.status, seconds,
                record.started, _digest(run),
            ])  # fmt: skip
    return Table(
        name="runs",
        caption="Runs",
        columns=["folder", "comparison", "seed", "status", "seconds", "started", "SHA-256 of results.json"],
        words=(0, 1, 3, 5, 6),
        rows=rows,
        dense=True,
    )


def _digest(run: Run) -> Cell:
    """results.json holds no times, so that equal runs have equal ones."""
    try:
        found = hashlib.sha256((run.folder / RESULTS).read_bytes()).hexdigest()
    except OSError:
        return Cell("–", "")
    return Cell(f"{found[:16]}…", found)
