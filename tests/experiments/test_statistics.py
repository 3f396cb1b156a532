"""Against the values that stand in printed tables, and by hand."""

from __future__ import annotations

import math
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import plackett
from plackett.errors import InputError
from plackett.experiments.statistics import Finding, median, paired, signed, summary, t_cdf, t_quantile

# Two-sided 95 % and 99 % points of Student's t, as printed in tables.
TABLE = {
    1: (12.706, 63.657), 2: (4.303, 9.925), 3: (3.182, 5.841), 4: (2.776, 4.604), 5: (2.571, 4.032),
    6: (2.447, 3.707), 7: (2.365, 3.499), 8: (2.306, 3.355), 9: (2.262, 3.250), 10: (2.228, 3.169),
    15: (2.131, 2.947), 20: (2.086, 2.845), 30: (2.042, 2.750), 60: (2.000, 2.660), 120: (1.980, 2.617),
}  # fmt: skip


@pytest.mark.parametrize("df", TABLE)
def test_quantiles_are_the_tables(df: int) -> None:
    assert t_quantile(0.975, df) == pytest.approx(TABLE[df][0], abs=5.1e-4)
    assert t_quantile(0.995, df) == pytest.approx(TABLE[df][1], abs=5.1e-4)


@given(st.floats(1e-4, 1 - 1e-4), st.integers(1, 300))
def test_the_quantile_inverts_the_distribution(p: float, df: int) -> None:
    assert t_cdf(t_quantile(p, df), df) == pytest.approx(p, abs=1e-9)


def test_one_and_two_degrees_of_freedom_in_closed_form() -> None:
    for t in (-3.0, 0.0, 0.5, 7.0):
        assert t_cdf(t, 1) == pytest.approx(0.5 + math.atan(t) / math.pi)
        assert t_cdf(t, 2) == pytest.approx(0.5 + t / (2 * math.sqrt(2 + t * t)))


def test_summary_by_hand() -> None:
    found = summary([2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0])  # squares of deviations sum to 32
    assert (found.n, found.mean) == (8, 5.0)
    assert found.std == pytest.approx(math.sqrt(32 / 7))


ROOMS = ("experiments", "report", "cli", "analysis")


def test_means_spreads_and_medians_are_computed_in_one_place() -> None:
    """Figures of several runs come from `statistics` alone; what is counted within one network's pictures does not."""
    source = Path(plackett.__file__).parent
    second = re.compile(
        r"(?<!/)/ len\((?!t\))|\)\[len\(|^(?:import|from) statistics|\.std\(|\.var\(|stdev|nanmean|fsum"
    )
    found = [
        f"{path.relative_to(source)}:{number}: {line.strip()}"
        for room in ROOMS
        for path in (source / room).rglob("*.py")
        if path.name != "statistics.py"
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if second.search(line)
    ]
    assert not found, found
    assert second.search("    return sum(values) / len(values)")
    assert second.search("    return sorted(times)[len(times) // 2]")


def test_the_median_of_an_even_number_lies_between_the_middle_two() -> None:
    assert median([4.0, 1.0, 3.0, 2.0]) == 2.5
    with pytest.raises(InputError, match="There are no figures to summarise"):
        median([])


def test_one_figure_has_no_spread() -> None:
    assert summary([0.5]).std is None
    assert summary([0.5]).text(100) == "50.0 (n = 1)"
    assert "±" not in summary([0.5]).text(100, digits=2)
    one = paired([0.6], [0.5])
    assert (one.low, one.high, one.finding) == (None, None, Finding.UNCLEAR)
    assert one.text(100) == "+10.0 (n = 1)"
    assert one.sentence("PLD", "CE") == "One seed cannot tell PLD from CE: a finding takes at least 3."


def test_two_seeds_find_nothing_however_far_apart() -> None:
    for resolution in (None, 1 / 719, 1e-9):
        two = paired([0.5, 0.51], [0.4, 0.41], resolution=resolution)
        assert two.finding is Finding.UNCLEAR
        assert two.sentence("PLD", "CE") == "Two seeds cannot tell PLD from CE: a finding takes at least 3."
    assert paired([0.5, 0.51], [0.4, 0.4101]).finding is Finding.UNCLEAR
    assert paired([0.4, 0.41], [0.5, 0.5101]).finding is Finding.UNCLEAR


def test_equal_differences_are_never_certain() -> None:
    """Two, of a step of 1/719: 12.706 / (719 sqrt(6) sqrt(2)) = 0.0051. Five, of one step each: 2.776 and sqrt(5)."""
    assert paired([0.5, 0.5], [0.4, 0.4], resolution=1 / 719).text(100) == "+10.0 [+9.5, +10.5]"
    step = 1 / 719
    five = paired([100 * step] * 5, [99 * step] * 5, resolution=step)
    assert five.high == pytest.approx(step * (1 + 2.7764 / math.sqrt(30)), rel=1e-4)
    assert five.low == pytest.approx(step * (1 - 2.7764 / math.sqrt(30)), rel=1e-4)
    assert paired([0.5] * 5, [0.4] * 5, level=1 - 0.05 / 5, resolution=step).finding is Finding.HIGHER


def test_equal_differences_of_unknown_resolution_have_no_interval() -> None:
    found = paired([0.5, 0.6, 0.7, 0.8], [0.4, 0.5, 0.6, 0.7])  # equal but for the last bits
    assert (found.low, found.high, found.finding) == (None, None, Finding.UNCLEAR)
    assert found.text(100) == "+10.0 (no interval)"
    assert found.sentence("PLD", "CE") == "These 4 seeds cannot tell PLD from CE: their differences are equal."
    assert paired([0.0, 0.0, 0.0], [0.0, 0.0, 0.0]).finding is Finding.UNCLEAR


@given(
    st.lists(st.tuples(st.integers(0, 719), st.integers(0, 719)), min_size=2, max_size=9), st.sampled_from((0.95, 0.99))
)
def test_the_resolution_only_ever_widens(counts: list[tuple[int, int]], level: float) -> None:
    pairs = [a / 719 for a, _ in counts], [b / 719 for _, b in counts]
    plain, floored = paired(*pairs, level=level), paired(*pairs, level=level, resolution=1 / 719)
    assert floored.low is not None
    assert floored.high is not None
    assert floored.high - floored.low >= 2 * t_quantile(0.5 + level / 2, len(counts) - 1) / math.sqrt(
        6 * len(counts)
    ) / 719 * (1 - 1e-9)
    if plain.low is not None and plain.high is not None:
        assert floored.high - floored.low >= plain.high - plain.low


def test_a_paired_difference_by_hand() -> None:
    """Differences 1, 2, 3: mean 2, std 1, half width 4.303 / sqrt(3) = 2.484."""
    found = paired([2.0, 4.0, 6.0], [1.0, 2.0, 3.0])
    assert (found.low, found.high) == (pytest.approx(2 - 2.4843, abs=1e-3), pytest.approx(2 + 2.4843, abs=1e-3))
    assert found.finding is Finding.UNCLEAR


def test_pairing_removes_what_the_seeds_share() -> None:
    base = [0.80, 0.90, 0.70]
    better = [v + d for v, d in zip(base, (0.010, 0.011, 0.012), strict=True)]
    assert paired(better, base).finding is Finding.HIGHER
    assert paired(base, better).finding is Finding.LOWER
    assert paired(better, [base[1], base[2], base[0]]).finding is Finding.UNCLEAR
    assert paired(base, base).finding is Finding.UNCLEAR


def test_sentences() -> None:
    base = [0.80, 0.90, 0.70]
    better = [v + d for v, d in zip(base, (0.010, 0.011, 0.012), strict=True)]
    assert paired(better, base).sentence("PLD", "CE") == (
        "PLD is 1.1 points higher than CE (95% interval +0.9 to +1.3, n = 3)."
    )
    assert paired(base, base[::-1]).sentence("PLD", "CE").startswith("These 3 seeds cannot tell PLD from CE (95%")


def test_a_number_that_rounds_to_nothing_has_no_sign() -> None:
    assert [signed(v) for v in (0.04, -0.04, 0.06, -0.06, 0.0)] == ["0.0", "0.0", "+0.1", "−0.1", "0.0"]


def test_mistakes_get_a_sentence() -> None:
    with pytest.raises(InputError, match="no figures"):
        summary([])
    with pytest.raises(InputError, match="come in pairs; got 1 and 2"):
        paired([1.0], [1.0, 2.0])
    with pytest.raises(InputError, match="at least 1 degree of freedom"):
        t_quantile(0.9, 0)
