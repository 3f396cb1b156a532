"""What sections are made of: each comparison with its rows, and what its runs keep beside their results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from plackett.errors import InputError
from plackett.experiments import predictions, transfer
from plackett.experiments.findings import CHECK, Checked, Findings
from plackett.experiments.predictions import PREDICTIONS, Array
from plackett.experiments.records import Document, Run, TeacherRecord
from plackett.experiments.statistics import median
from plackett.experiments.study import Study, baseline, is_plain
from plackett.experiments.tables import Row, rows
from plackett.experiments.transfer import COSTS, TRANSFER, Alignment, Costs, Transfer

MOST_CASES = 8  # comparisons that get figures; tables have all
MOST_PANELS = 24  # small figures of one kind
MOST_READ = 60_000_000  # logits that are read for the mistakes
D = TypeVar("D", bound=Document)


@dataclass(frozen=True)
class Pictures:
    """A few test pictures `[P, H, W, channels]`, and which they are."""

    which: Array
    pixels: Array
    targets: Array
    said: dict[str, Array]


@dataclass(frozen=True)
class Case:
    """One comparison. `answers`: labels and what was said, run by run, of `student`, the baseline and `teacher`.

    `student` is the distilled method with the highest mean accuracy: the one whose mistakes are shown.
    """

    title: str
    group: str
    runs: list[Run]
    baseline: str
    rows: list[Row]
    student: str
    teacher: TeacherRecord | None
    plain: bool
    alignments: dict[str, list[Alignment]]
    costs: list[tuple[Run, Costs]]
    answers: dict[str, list[tuple[Array, Array]]] = field(default_factory=dict)
    pictures: Pictures | None = None

    @property
    def distilled(self) -> list[Row]:
        return [row for row in self.rows if row.method != self.baseline]

    def row(self, method: str) -> Row | None:
        return next((row for row in self.rows if row.method == method), None)

    @property
    def tested(self) -> str:
        """What its last figures are of: "test", or "validation" where there were no others."""
        return self.runs[0].record.data.tested if self.runs else "test"

    @property
    def watched(self) -> str:
        """What students were tested on after each epoch."""
        return self.runs[0].record.data.watched if self.runs else "test"

    @property
    def classes(self) -> list[str]:
        return self.runs[0].record.data.classes if self.runs else []

    def latency(self, method: str | None) -> float | None:
        """Median of the runs' medians in ms, None being the teacher's."""
        found = [costs.teacher_latency if method is None else costs.latency.get(method) for _, costs in self.costs]
        times = [each.median_ms for each in found if each is not None]
        return median(times) if times else None

    def parameters(self, method: str | None) -> int | None:
        if method is None:
            return self.teacher.parameters if self.teacher else None
        results = [run.results.students[method] for run in self.runs if run.results and method in run.results.students]
        return results[0].parameters if results else None


@dataclass(frozen=True)
class Material:
    """All of a report. `shown` are the comparisons that get figures, `checked` what was found of the teacher before."""

    study: Study
    cases: list[Case]
    problems: list[str]
    checked: Findings | None = None

    @property
    def tested(self) -> str:
        """Of the first comparison, for what is said of all."""
        return self.cases[0].tested if self.cases else "test"

    @property
    def watched(self) -> str:
        return self.cases[0].watched if self.cases else "test"

    @property
    def shown(self) -> list[Case]:
        return self.cases[:MOST_CASES]

    @property
    def panels(self) -> int:
        """Small figures of one kind that each shown comparison may have."""
        return max(3, MOST_PANELS // max(1, len(self.shown)))


def gather(study: Study) -> Material:
    """Reads what the runs keep; what cannot be read is told in `problems`."""
    problems = list(study.problems)
    cases: list[Case] = []
    left = MOST_READ
    for record in study.record.cases:
        runs = study.runs[record.group]
        case = _case(record.title, record.group, runs, study.record.baseline, problems)
        if len(cases) < MOST_CASES:
            left = _answers(case, left, problems)
            case = _with_pictures(case, problems)
        cases.append(case)
    checked = _read(study.folder, CHECK, Checked, problems)
    noticed = {warning for run in study.all_runs if run.results for warning in run.results.warnings}
    left_over = [problem for problem in problems if problem not in noticed]
    return Material(study, cases, left_over, None if checked is None else checked.findings)


def _case(title: str, group: str, runs: list[Run], wanted: str, problems: list[str]) -> Case:
    base = baseline(runs, wanted)
    table = rows(runs, base)
    others = [row for row in table if row.method != base]
    finished = [run for run in runs if run.results is not None]
    aligned: dict[str, list[Alignment]] = {}
    for run in finished:
        kept = _read(run.folder, TRANSFER, Transfer, problems)
        for name, each in (kept.students if kept else {}).items():
            aligned.setdefault(name, []).append(each)
    costs = [(run, cost) for run in finished if (cost := _read(run.folder, COSTS, Costs, problems)) is not None]
    return Case(
        title=title,
        group=group,
        runs=runs,
        baseline=base,
        rows=table,
        student=max(others, key=lambda row: row.accuracy.mean).method if others else base,
        teacher=next((run.record.teacher for run in runs if run.record.teacher), None),
        plain=is_plain(base, runs),
        alignments=aligned,
        costs=costs,
    )


def _read(folder: Path, file: str, kind: type[D], problems: list[str]) -> D | None:
    try:
        return transfer.read(folder, file, kind)
    except InputError as error:
        problems.append(str(error))
        return None


def _answers(case: Case, left: int, problems: list[str]) -> int:
    """Fills `case.answers`, the first seeds first, while there is something left of what may be read."""
    names = list(dict.fromkeys([case.student, case.baseline, "teacher"]))
    for path in _files(case.runs):
        if left <= 0:
            break
        try:
            targets, said = predictions.answers(path, names)
        except InputError as error:
            problems.append(str(error))
            continue
        left -= len(targets) * len(said) * len(case.classes)
        for name, each in said.items():
            case.answers.setdefault(name, []).append((targets, each))
    return left


def _with_pictures(case: Case, problems: list[str]) -> Case:
    for path in _files(case.runs):
        try:
            which, pixels = predictions.pictures(path)
            targets, said = predictions.answers(path, [case.student, "teacher"]) if len(which) else (which, {})
        except InputError as error:
            if str(error) not in problems:
                problems.append(str(error))
            continue
        if len(which) and case.student in said:
            kept = Pictures(which, pixels, targets[which], {name: each[which] for name, each in said.items()})
            return Case(**{**vars(case), "pictures": kept})
    return case


def _files(runs: Sequence[Run]) -> list[Path]:
    ordered = sorted((run for run in runs if run.results is not None), key=lambda run: run.record.seed)
    return [path for run in ordered if (path := run.folder / PREDICTIONS).exists()]
