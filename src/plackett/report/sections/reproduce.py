"""Everything needed to get these numbers again."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from plackett.experiments.records import RESULTS, Run
from plackett.experiments.study import terms_of
from plackett.experiments.tables import methods
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
        "objectives": _objectives(material),
        "table": _table(material),
    }


def _objectives(material: Material) -> Table | None:
    """What the methods' names stand for."""
    rows: list[list[Cell | str]] = []
    for case in material.cases:
        for method in methods(case.runs):
            found = next((terms for run in case.runs if (terms := terms_of(run, method))), None)
            if found is not None and [method, objective(found)] not in rows:
                rows.append([method, objective(found)])
    if not rows:
        return None
    return Table("objectives", "What each method minimises", ["method", "objective"], rows, words=(0, 1), dense=True)


def objective(terms: Mapping[str, Any]) -> str:
    """
    >>> objective({"ce": 0.1, "kd": {"weight": 0.9, "temperature": 4.0}, "pld": {"label_weight": None}})
    '0.1 ce + 0.9 kd (temperature 4) + pld'
    """
    return " + ".join(_term(name, said) for name, said in terms.items())


def _term(name: str, said: Any) -> str:
    options = dict(said) if isinstance(said, Mapping) else {"weight": said}
    weight = _short(options.pop("weight", 1.0))
    rest = ", ".join(f"{key} {_short(value)}" for key, value in options.items() if value is not None)
    return f"{'' if weight == '1' else f'{weight} '}{name}{f' ({rest})' if rest else ''}"


def _short(value: Any) -> str:
    return f"{value:g}" if isinstance(value, int | float) and not isinstance(value, bool) else str(value)


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
