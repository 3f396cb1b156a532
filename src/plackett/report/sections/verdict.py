"""What came out, in a sentence for each comparison, and the networks that it is about."""

from __future__ import annotations

from typing import Any

from plackett.experiments import predictions
from plackett.experiments.statistics import FEWEST, Finding, signed
from plackett.experiments.tables import Row, verdict
from plackett.report.material import Case, Material
from plackett.report.tables import Cell, Table

TITLE = "Verdict"
HELPED = {Finding.HIGHER: "helped", Finding.LOWER: "hurt", Finding.UNCLEAR: "no clear difference"}
COMPARED = {Finding.HIGHER: "better", Finding.LOWER: "worse", Finding.UNCLEAR: "no clear difference"}
KINDS = {Finding.HIGHER: "better", Finding.LOWER: "worse", Finding.UNCLEAR: ""}


def context(material: Material) -> dict[str, Any]:
    cases = [
        {"title": case.title, "sentence": sentence(case), "table": _table(case) if case in material.shown else None}
        for case in material.cases
    ]
    return {"cases": cases, "figures": _figures(material), "careful": any(map(_careful, material.shown))}


def _careful(case: Case) -> bool:
    """Whether words and intervals of the table seem to disagree."""
    return any(
        row.finding is Finding.UNCLEAR and row.difference.n >= FEWEST and row.difference.finding is not row.finding
        for row in case.distilled
        if row.difference is not None
    )


def sentence(case: Case) -> str:
    if not case.rows:
        return "No run of this comparison has finished, so there is nothing to say of it."
    if len(case.distilled) != 1:
        return verdict(case.rows, case.baseline)
    row = case.distilled[0]
    if row.difference is None or row.finding is None:
        return verdict(case.rows, case.baseline)
    said = row.difference.sentence(row.method, case.baseline)
    if row.difference.n == 1 and (here := _on_these(case, row.method)):
        return f"{here} {said}"
    if not case.plain or row.difference.n < FEWEST:
        return said
    opening = {
        Finding.HIGHER: "Distillation helped.",
        Finding.LOWER: "Distillation hurt.",
        Finding.UNCLEAR: "No clear difference.",
    }
    return f"{opening[row.finding]} {said}"


def _on_these(case: Case, method: str) -> str | None:
    """What can be said of one seed: of these very students, with an interval over pictures."""
    if method not in case.answers or case.baseline not in case.answers:
        return None
    (targets, ours), (_, theirs) = case.answers[method][0], case.answers[case.baseline][0]
    change = predictions.change(targets, ours, theirs)
    low, mean, high = (signed(100 * value) for value in (change.low, change.value, change.high))
    return (
        f"This {method} student is right on {mean} points of {len(targets):,} pictures against this {case.baseline} "
        f"student (95 % interval {low} to {high}, over pictures)."
    )


def word(case: Case, row: Row) -> Cell:
    """What the seeds say of a method, in a word or two."""
    if row.method == case.baseline:
        return Cell("baseline")
    if row.difference is None or row.finding is None:
        return Cell("not compared")
    if row.difference.n < FEWEST:
        return Cell("too few seeds to tell")
    return Cell((HELPED if case.plain else COMPARED)[row.finding], kind=KINDS[row.finding])


def _table(case: Case) -> Table | None:
    if not case.rows:
        return None
    rows: list[list[Cell | str]] = []
    if case.teacher is not None:
        accuracy = Cell(f"{100 * case.teacher.accuracy:.1f}", case.teacher.accuracy)
        rows.append(["teacher", accuracy, "", "", *_sizes(case, None)])
    for row in sorted(case.rows, key=lambda row: row.method != case.baseline):
        name = row.method
        if row.method == case.baseline and case.plain:
            name = f"plain student: {row.method}"
        accuracy = Cell(row.accuracy.text(100), row.accuracy.mean)
        difference = Cell(row.difference.text(100), row.difference.mean) if row.difference else Cell("")
        rows.append([name, accuracy, difference, word(case, row), *_sizes(case, row.method)])
    return Table(
        name=case.title,
        caption=case.title,
        columns=[
            "network", f"{case.tested} accuracy, %", f"against {case.baseline} [95 %]", "in words", "parameters",
            "ms a picture",
        ],
        words=(0, 3),
        rows=rows,
        kinds=["base"] * (len(rows) - len(case.distilled)),
    )  # fmt: skip


def _sizes(case: Case, method: str | None) -> list[Cell]:
    parameters, latency = case.parameters(method), case.latency(method)
    return [
        Cell("–" if parameters is None else f"{parameters:,}", parameters),
        Cell("–" if latency is None else f"{latency:.3g}", latency),
    ]


def _figures(material: Material) -> list[tuple[str, str, str]]:
    """What stands large: figure, what it is, and of what."""
    case = next((case for case in material.cases if case.rows and case.teacher), None)
    if case is None or case.teacher is None:
        return []
    found = [(f"{100 * case.teacher.accuracy:.1f} %", f"teacher’s {case.tested} accuracy", case.teacher.model)]
    own, fast, slow = case.parameters(case.student), case.latency(case.student), case.latency(None)
    if own and case.teacher.parameters > own:
        what = f"{own:,} parameters for {case.teacher.parameters:,}"
        found.append((f"{times(case.teacher.parameters / own)}×", "smaller student", what))
    if fast and slow and slow > fast:
        found.append((f"{times(slow / fast)}×", "faster student", f"{fast:.3g} ms for {slow:.3g}, one picture"))
    return found


def times(ratio: float) -> str:
    """
    >>> times(124.9), times(2.61)
    ('125', '2.6')
    """
    return f"{ratio:.0f}" if ratio >= 10 else f"{ratio:.1f}"
