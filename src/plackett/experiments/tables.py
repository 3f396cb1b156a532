"""Runs -> rows of a table, and the sentence that they allow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from plackett.experiments.records import Run
from plackett.experiments.statistics import FEWEST, Difference, Finding, Summary, paired, signed, summary, too_few


@dataclass(frozen=True)
class Row:
    """One method of a group. `seeds` maps a seed to its accuracy; `difference` is paired with the baseline's seeds.

    `finding` allows for the number of methods that are compared at once (Bonferroni), which the 95 % interval of
    `difference` does not: among five methods that change nothing, such an interval misses 0 more often than it seems.
    """

    method: str
    accuracy: Summary
    difference: Difference | None
    finding: Finding | None
    best: Summary
    agreement: Summary | None
    ece: Summary
    seeds: dict[int, float]


def methods(runs: Sequence[Run]) -> list[str]:
    """Every method of the runs, in the order in which they name them."""
    return list(dict.fromkeys(name for run in runs for name in run.record.students))


def rows(runs: Sequence[Run], baseline: str) -> list[Row]:
    """A row for each method that has a result; what has none is told by the runs' problems."""
    of = {
        method: {
            run.record.seed: run.results.students[method]
            for run in runs
            if run.results is not None and method in run.results.students
        }
        for method in methods(runs)
    }
    compared = max(1, sum(method != baseline for method in of))
    resolution = 1 / max(1, min((run.record.data.test for run in runs), default=1))  # accuracies are multiples of it
    table = []
    for method, results in of.items():
        if not results:
            continue
        both = sorted(results.keys() & of.get(baseline, {}).keys())
        difference = finding = None
        if both and method != baseline:
            pairs = [results[s].accuracy for s in both], [of[baseline][s].accuracy for s in both]
            difference = paired(*pairs, resolution=resolution)
            finding = paired(*pairs, level=1 - 0.05 / compared, resolution=resolution).finding
        agreements = [r.agreement for r in results.values() if r.agreement is not None]
        table.append(
            Row(
                method=method,
                accuracy=summary([r.accuracy for r in results.values()]),
                difference=difference,
                finding=finding,
                best=summary([r.best_accuracy for r in results.values()]),
                agreement=summary(agreements) if agreements else None,
                ece=summary([r.calibration.ece for r in results.values()]),
                seeds={seed: results[seed].accuracy for seed in sorted(results)},
            )
        )
    return table


def verdict(table: Sequence[Row], baseline: str) -> str:
    """What the paired differences of one group say, and no more."""
    compared = [row for row in table if row.difference is not None]
    if not compared:
        return f"There is nothing to compare with {baseline}."
    most = max(row.difference.n for row in compared if row.difference)
    if most < FEWEST:
        return f"{too_few(most)} tell any method from {baseline}: a finding takes at least {FEWEST}."
    better, worse, unclear = (
        [row for row in compared if row.finding is finding]
        for finding in (Finding.HIGHER, Finding.LOWER, Finding.UNCLEAR)
    )
    if not better and not worse:
        return f"No method did better or worse than {baseline}, as far as these seeds can tell."
    parts = [f"{_named(better)} did better than {baseline}" if better else f"No method did better than {baseline}"]
    if worse:
        parts.append(f"{_named(worse)} did worse")
    if unclear:
        parts.append(f"these seeds cannot tell {_joined([row.method for row in unclear])} from {baseline}")
    return "; ".join(parts) + "."


def _named(table: Sequence[Row]) -> str:
    return _joined([f"{row.method} ({signed(row.difference.mean * 100)})" for row in table if row.difference])


def _joined(names: Sequence[str]) -> str:
    """
    >>> _joined(["KD", "DIST", "PLD"])
    'KD, DIST and PLD'
    """
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
