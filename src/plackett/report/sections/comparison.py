"""The table: every method against the baseline, paired within a seed."""

from __future__ import annotations

from typing import Any

from plackett.experiments.study import Study
from plackett.experiments.tables import rows

TITLE = "Comparison"


def context(study: Study) -> dict[str, Any]:
    baseline = study.record.baseline
    cases = [{"title": c.title, "rows": rows(study.runs[c.group], baseline)} for c in study.record.cases]
    return {"cases": [case for case in cases if case["rows"]], "baseline": baseline}
