"""What a table says, and what it must not."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from plackett.experiments.records import Run, read_run
from plackett.experiments.statistics import Finding
from plackett.experiments.tables import rows, verdict
from tests.experiments.runs import write_run


def runs(folder: Path, **accuracies: list[float]) -> list[Run]:
    """One run a seed; None in the lists: that seed has no such method."""
    n = max(map(len, accuracies.values()))
    return [
        read_run(write_run(folder / str(s), s, {name: v[s] for name, v in accuracies.items() if s < len(v)}))
        for s in range(n)
    ]


def test_differences_are_paired_by_seed_and_not_by_place(tmp_path: Path) -> None:
    found = runs(tmp_path, CE=[0.5, 0.9, 0.7], PLD=[0.51, 0.92, 0.71])
    (ce, pld) = rows(list(reversed(found)), "CE")
    assert ce.difference is None
    assert pld.difference is not None
    assert abs(pld.difference.mean - 0.04 / 3) < 1e-12
    assert pld.seeds == {0: 0.51, 1: 0.92, 2: 0.71}


def test_seeds_that_one_of_the_two_lacks_are_not_paired(tmp_path: Path) -> None:
    (_, pld) = rows(runs(tmp_path, CE=[0.5, 0.9, 0.7], PLD=[0.6, 0.95]), "CE")
    assert pld.accuracy.n == 2
    assert pld.difference is not None
    assert pld.difference.n == 2


def test_a_method_is_found_better_only_if_it_holds_among_all_that_are_compared(tmp_path: Path) -> None:
    """Differences 1 ± 0.8 points, five seeds: alone the 95 % interval is above 0, among six it is not enough."""
    ce = [0.80, 0.82, 0.84, 0.86, 0.88]
    pld = [c + d for c, d in zip(ce, (0.000, 0.020, 0.010, 0.015, 0.005), strict=True)]
    alone = rows(runs(tmp_path / "a", CE=ce, PLD=pld), "CE")[1]
    assert alone.finding is Finding.HIGHER
    names = {f"other{i}": ce for i in range(5)}
    among = rows(runs(tmp_path / "b", CE=ce, PLD=pld, **names), "CE")[1]
    assert among.difference == alone.difference
    assert among.finding is Finding.UNCLEAR


def test_verdicts(tmp_path: Path) -> None:
    ce = [0.80, 0.82, 0.84]
    up, down = [c + 0.05 + 0.001 * i for i, c in enumerate(ce)], [c - 0.05 - 0.001 * i for i, c in enumerate(ce)]
    noise = [0.85, 0.80, 0.82]

    def said(name: str, **accuracies: list[float]) -> str:
        return verdict(rows(runs(tmp_path / name, CE=ce, **accuracies), "CE"), "CE")

    assert said("1", A=up, B=down, C=noise) == (
        "A (+5.1) did better than CE; B (−5.1) did worse; these seeds cannot tell C from CE."
    )
    assert said("2", A=up, B=up) == "A (+5.1) and B (+5.1) did better than CE."
    assert said("3", C=noise) == "No method did better or worse than CE, as far as these seeds can tell."
    assert said("4", B=down) == "No method did better than CE; B (−5.1) did worse."
    assert said("5") == "There is nothing to compare with CE."
    one = rows(runs(tmp_path / "6", CE=[0.8], A=[0.9]), "CE")
    assert verdict(one, "CE") == "One seed cannot tell any method from CE: a finding takes at least 3."
    two = rows(runs(tmp_path / "7", CE=[0.8, 0.81], A=[0.9, 0.91], B=[0.7, 0.7101]), "CE")
    assert verdict(two, "CE") == "Two seeds cannot tell any method from CE: a finding takes at least 3."
    assert [row.finding for row in two] == [None, Finding.UNCLEAR, Finding.UNCLEAR]


def test_the_test_pictures_are_the_resolution_of_the_interval(tmp_path: Path) -> None:
    """10,000 test pictures in the runs of these tests: 4.3027 / (10,000 sqrt(6) sqrt(3)) beside equal differences."""
    found = rows(runs(tmp_path, CE=[0.80, 0.82, 0.84], A=[0.85, 0.87, 0.89]), "CE")[1].difference
    assert found is not None
    assert found.low == pytest.approx(0.05 - 4.3027e-4 / math.sqrt(18), rel=1e-6)
