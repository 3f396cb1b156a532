"""What came out, in a sentence for each case, and the figures that it rests on."""

from __future__ import annotations

from typing import Any

from plackett.experiments.study import Study
from plackett.experiments.tables import rows, verdict

TITLE = "Verdict"


def context(study: Study) -> dict[str, Any]:
    baseline = study.record.baseline
    cases = []
    for case in study.record.cases:
        table = rows(study.runs[case.group], baseline)
        plain = next((row for row in table if row.method == baseline), None)
        cases.append({"title": case.title, "sentence": verdict(table, baseline), "plain": plain})
    runs = study.all_runs
    students = [result for run in runs if run.results for result in run.results.students.values()]
    teacher = next((run.record.teacher for run in runs if run.record.teacher), None)
    student = students[0].parameters if students else None
    return {
        "cases": cases,
        "teacher": teacher,
        "student_parameters": student,
        "times_smaller": round(teacher.parameters / student) if teacher and student else None,
        "data": runs[0].record.data,
    }
