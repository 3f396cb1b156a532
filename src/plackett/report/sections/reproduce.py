"""Everything needed to get these numbers again."""

from __future__ import annotations

import json
from typing import Any

from plackett.experiments.study import Study

TITLE = "Reproduce"


def context(study: Study) -> dict[str, Any]:
    first = [study.runs[case.group][0].record for case in study.record.cases if study.runs[case.group]]
    records = [run.record for run in study.all_runs]
    places = {(record.device, record.commit, *sorted(record.versions.items())) for record in records}
    return {
        "record": first[0],
        "seeds": sorted({record.seed for record in records}),
        "seconds": study.record.seconds,
        "started": min(record.started for record in records),
        "mixed": len(places) > 1,
        "configurations": [(record, json.dumps(record.config, indent=2, ensure_ascii=False)) for record in first],
    }
