"""What a table or a report is made of: run folders, gathered by group, read without torch."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from plackett.errors import InputError
from plackett.experiments.records import RUN, SCHEMA, Document, Run, find_runs, read_document, read_run

STUDY = "experiment.json"


class CaseRecord(Document):
    """One comparison of an experiment: `group` is what its runs carry, `title` what people read."""

    group: str
    title: str


class StudyRecord(Document):
    """`experiment.json`: which runs belong together, and the method that the others are compared with."""

    schema_version: int = SCHEMA
    name: str
    title: str
    question: str
    command: str
    status: Literal["running", "finished", "interrupted"]
    baseline: str
    cases: list[CaseRecord]
    runs: list[str]
    seconds: float | None = None


class Study(Document):
    """Runs by group, and in sentences what could not be read."""

    folder: Path
    record: StudyRecord
    runs: dict[str, list[Run]]
    problems: list[str]

    @property
    def all_runs(self) -> list[Run]:
        return [run for runs in self.runs.values() for run in runs]


def read_study(folder: Path) -> Study:
    """The experiment in `folder`, or, where there is no `experiment.json`, every run folder at or below it."""
    if not folder.is_dir():
        raise InputError(f"There is no run folder {folder}.")
    if (folder / STUDY).exists():
        record = read_document(folder / STUDY, StudyRecord)
        folders = [folder / name for name in record.runs]
    else:
        folders = find_runs(folder)
        record = None
    problems: list[str] = []
    if record is not None and record.status != "finished":
        problems.append(f"{folder} is not finished: its status is {record.status!r}. Run its command again to go on.")
    runs: list[Run] = []
    for path in folders:
        try:
            runs.append(read_run(path))
        except InputError as error:
            problems.append(str(error))
    if not runs:
        raise InputError(f"There is no readable run in {folder}. " + " ".join(problems[:3]))
    record = record or _gathered(folder, runs)
    groups = [case.group for case in record.cases]
    by_group = {group: [run for run in runs if run.record.group == group] for group in groups}
    problems += [problem for run in runs for problem in run.problems]
    return Study(folder=folder, record=record, runs=by_group, problems=problems)


def _gathered(folder: Path, runs: list[Run]) -> StudyRecord:
    groups = list(dict.fromkeys(run.record.group for run in runs))
    students = runs[0].record.students
    return StudyRecord(
        name=folder.resolve().name,
        title=runs[0].record.name,
        question="",
        command="",
        status="finished",
        baseline="CE" if "CE" in students else students[0],
        cases=[CaseRecord(group=group, title=group) for group in groups],
        runs=[str(run.folder) for run in runs],
    )


__all__ = ["RUN", "STUDY", "CaseRecord", "Study", "StudyRecord", "read_study"]
