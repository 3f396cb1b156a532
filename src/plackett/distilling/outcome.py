"""What came out of a distillation, in a table and a few sentences, read from the folder that it left."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from plackett.experiments import plain, predictions, transfer
from plackett.experiments.predictions import PREDICTIONS
from plackett.experiments.records import Run
from plackett.experiments.statistics import FEWEST, Finding, signed
from plackett.experiments.study import is_plain, read_study
from plackett.experiments.tables import Row, rows, verdict
from plackett.experiments.transfer import COSTS, Costs
from plackett.intervals import wilson


class Outcome(NamedTuple):
    title: str
    table: str
    sentences: list[str]


def read(folder: Path) -> Outcome:
    """Of the folder that `plackett distill` wrote."""
    study = read_study(folder)
    runs = [run for run in study.all_runs if run.results is not None]
    if not runs:
        return Outcome("No student finished.", "", list(study.problems))
    about = runs[0].record
    title = f"On {about.data.test:,} pictures to {_verb(about.data.tested)} with, {len(about.data.classes)} classes"
    base = study.record.baseline
    made = rows(runs, base)
    said = _said(runs, base, made)
    before = {warning for run in runs if run.results is not None for warning in run.results.warnings}
    return Outcome(
        title, plain.aligned(_table(runs, base, made)), [*said, *(p for p in study.problems if p not in before)]
    )


def _verb(tested: str) -> str:
    return "validate" if tested == "validation" else "test"


def _table(runs: Sequence[Run], base: str, made: Sequence[Row]) -> list[list[str]]:
    """A row a network, without the columns that nobody fills; of one seed the intervals are over pictures."""
    one, run = len(runs) == 1, runs[0]
    head = [
        "network", "top-1, % [95 %]" if one else "top-1, %", "n", f"against {base} [95 %]", "like the teacher, %",
        "parameters", "ms a picture",
    ]  # fmt: skip
    table = [head]
    if (teacher := run.record.teacher) is not None:
        accuracy = _share(teacher.accuracy, run) if one else f"{100 * teacher.accuracy:.1f}"
        table.append(["teacher", accuracy, "", "", "", *_costs(run, None)])
    for row in made:
        difference = "" if row.difference is None else row.difference.text(100)
        table.append([
            row.method,
            _share(row.accuracy.mean, run) if one else row.accuracy.text(100),
            "" if one else str(row.accuracy.n),
            _change(run, row.method, base) if one else difference,
            "" if row.agreement is None else f"{100 * row.agreement.mean:.1f}",
            *_costs(run, row.method),
        ])  # fmt: skip
    filled = [place for place in range(len(head)) if any(line[place] for line in table[1:])]
    return [[line[place] for place in filled] for line in table]


def _costs(run: Run, method: str | None) -> tuple[str, str]:
    costs = transfer.read(run.folder, COSTS, Costs)
    if costs is None:
        return "", ""
    parameters = costs.teacher_parameters if method is None else costs.parameters.get(method)
    latency = costs.teacher_latency if method is None else costs.latency.get(method)
    return (
        "" if parameters is None else f"{parameters:,}",
        "" if latency is None else f"{latency.median_ms:.3g}",
    )


def _share(accuracy: float, run: Run) -> str:
    n = run.record.data.test
    share = wilson(round(accuracy * n), n)
    return f"{100 * share.value:.1f} [{100 * share.low:.1f}, {100 * share.high:.1f}]"


def _change(run: Run, method: str, base: str) -> str:
    """On the same pictures, one against the other."""
    if method == base:
        return ""
    targets, said = predictions.answers(run.folder / PREDICTIONS, [method, base])
    change = predictions.change(targets, said[method], said[base])
    low, mean, high = (signed(100 * value) for value in (change.low, change.value, change.high))
    return f"{mean} [{low}, {high}]"


def _said(runs: Sequence[Run], base: str, made: Sequence[Row]) -> list[str]:
    seeds = len(runs)
    if not made:
        return []
    if len(made) < 2:
        ours = made[0].method
        if is_plain(ours, runs):
            return []
        return [
            "What the teacher added is not known: train the same student on labels alone beside it "
            f"(--objective {ours.casefold()},ce), which costs little, for they share the teacher and the pictures."
        ]
    if seeds < FEWEST:
        which = "one seed" if seeds == 1 else f"{seeds} seeds"
        intervals = "Intervals are over pictures" if seeds == 1 else "So few seeds allow no finding"
        return [
            f"{intervals}: these very students, trained with {which}. Whether a method is better takes at least "
            f"{FEWEST} seeds (--seeds 0-2)."
        ]
    said = [verdict(made, base)]
    best = next((row for row in made if row.method != base and row.finding is not None), None)
    if is_plain(base, runs) and best is not None and best.difference is not None and best.finding is not None:
        opening = {Finding.HIGHER: "Distillation helped", Finding.LOWER: "Distillation hurt"}
        words = opening.get(best.finding, "No clear difference")
        said.insert(0, f"{words}: {best.method} {best.difference.text(100)} points against {base}.")
    return said if len(made) > 2 else said[:1]
