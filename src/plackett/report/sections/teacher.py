"""What the teacher is, and how much of PLD's weight its label gets at each temperature."""

from __future__ import annotations

from typing import Any

from plackett.experiments.records import TeacherRecord
from plackett.experiments.study import Study

TITLE = "Teacher"


def context(study: Study) -> dict[str, Any] | None:
    teachers: list[TeacherRecord] = []
    for run in study.all_runs:
        if run.record.teacher is not None and run.record.teacher not in teachers:
            teachers.append(run.record.teacher)
    return {"teachers": teachers, "classes": len(study.all_runs[0].record.data.classes)} if teachers else None
