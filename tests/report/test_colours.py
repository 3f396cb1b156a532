"""WCAG's contrast of at least 4.5, computed from the colours that the page is written in."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from plackett.experiments.study import read_study
from plackett.report import colours, render
from tests.experiments.runs import write_run

THEMES = {"light": colours.LIGHT, "dark": colours.DARK, "print": colours.PRINT}


def channels(colour: str) -> list[float]:
    return [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]


def luminance(rgb: list[float]) -> float:
    linear = [v / 12.92 if v <= 0.03928 else ((v + 0.055) / 1.055) ** 2.4 for v in rgb]
    return sum(v * weight for v, weight in zip(linear, (0.2126, 0.7152, 0.0722), strict=True))


def contrast(a: list[float], b: list[float]) -> float:
    high, low = sorted((luminance(a), luminance(b)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def over(colour: str, paper: str, alpha: float) -> list[float]:
    return [alpha * c + (1 - alpha) * p for c, p in zip(channels(colour), channels(paper), strict=True)]


@pytest.mark.parametrize("theme", THEMES)
def test_every_colour_of_letters_and_lines_can_be_read(theme: str) -> None:
    held = THEMES[theme]
    for name in ("ink", "muted", "accent", "second", "third", "fourth"):
        for ground in ("paper", "wash"):
            assert contrast(channels(held[name]), channels(held[ground])) >= 4.5, (name, ground)


@pytest.mark.parametrize("theme", THEMES)
def test_letters_on_bars_and_in_matrices_can_be_read(theme: str) -> None:
    held = THEMES[theme]
    paper, ink = held["paper"], channels(held["ink"])
    for bar in ("second", "accent"):
        assert contrast(channels(paper), over(held[bar], paper, 0.9)) >= 4.5, bar
    assert contrast(ink, over(held["muted"], paper, 0.5)) >= 4.5
    assert contrast(ink, over(held["accent"], paper, 0.42)) >= 4.5
    assert contrast(ink, over(held["second"], paper, 0.45)) >= 4.5


def test_the_page_is_written_in_these_colours_and_no_others(tmp_path: Path) -> None:
    write_run(tmp_path, 0, {"CE": 0.8, "PLD": 0.9})
    text = render(read_study(tmp_path))
    for held in THEMES.values():
        assert colours.variables(held) in text
    known = {value for held in THEMES.values() for value in held.values()}
    assert set(re.findall(r"#[0-9a-f]{6}(?:[0-9a-f]{2})?\b", text)) <= known


def test_a_drawing_names_its_colours_by_what_they_are_for() -> None:
    assert colours.in_page("fill: #0f5fa8; stroke: #16191d") == "fill: var(--accent); stroke: var(--ink)"
