"""Accuracy over a key: a line a series, its mean with the 95 % interval, and every method that stays as it is."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from plackett.experiments.sweep_table import Line, Swept
from plackett.report import need
from plackett.report.surfaces import STYLE, save

# Okabe and Ito's, which the colour-blind tell apart; markers differ as well.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#000000")
MARKERS = "osD^vP"
_ACROSS = 4  # names in a row of the legend


def draw(swept: Swept, out: Path) -> list[Path]:
    """`out` with .png and .svg; numbers stand where they belong, words side by side."""
    matplotlib = need("matplotlib", what="The picture")
    figures = need("matplotlib.figure", what="The picture")
    with matplotlib.rc_context({**STYLE, "axes.spines.top": False, "axes.spines.right": False}):
        figure = figures.Figure(figsize=(5.6, 3.4), layout="constrained", dpi=110)
        axes = figure.add_subplot()
        values = list(dict.fromkeys(line.value for line in swept.lines if line.value))
        numbers = _numbers(values)
        places = numbers or {value: float(i) for i, value in enumerate(values)}
        count = len(swept.series)
        width = (max(places.values()) - min(places.values()) or 1.0) / 120
        for i, (series, lines) in enumerate(swept.series.items()):
            colour, marker = COLOURS[i % len(COLOURS)], MARKERS[i % len(MARKERS)]
            seen = [line for line in lines if line.of is not None]
            if not seen:
                continue
            if not seen[0].value:
                _level(axes, seen[0], colour)
                continue
            seen = sorted(seen, key=lambda line: places[line.value])
            x = [places[line.value] + (i - (count - 1) / 2) * width for line in seen]
            y = [100 * line.of.mean for line in seen if line.of]
            axes.errorbar(
                x, y, yerr=_half(seen), color=colour, marker=marker, markersize=4, capsize=2.5, linewidth=1.2,
                linestyle="-" if numbers else "", label=f"{series} (n = {_n(seen)})",
            )  # fmt: skip
        axes.set_xticks(list(places.values()), list(places))
        axes.set_xlabel(swept.key)
        axes.set_ylabel("test accuracy, %")
        rows = -(-len(swept.series) // _ACROSS)  # of the legend, which lies between title and axes: nothing is below it
        axes.set_title(f"{swept.pair}: mean and 95 % interval", pad=6 + 14 * rows)
        axes.grid(axis="y", color="#dddddd", linewidth=0.6)
        axes.set_axisbelow(True)
        axes.legend(
            loc="lower left", bbox_to_anchor=(-0.01, 1.0), ncols=_ACROSS, frameon=False, fontsize=7.5,
            handletextpad=0.5, columnspacing=1.4, borderpad=0.2,
        )  # fmt: skip
        return save(figure, out)


def _level(axes: object, line: Line, colour: str) -> None:
    """A method that has no value of the key: a line all across."""
    assert line.of is not None
    label = f"{line.series} (n = {line.of.n})"
    axes.axhline(100 * line.of.mean, color=colour, linewidth=1, linestyle="--", label=label)  # type: ignore[attr-defined]
    if line.ends is not None:
        low, high = (100 * end for end in line.ends)
        axes.axhspan(low, high, color=colour, alpha=0.12, linewidth=0)  # type: ignore[attr-defined]


def _half(seen: Sequence[Line]) -> list[float]:
    return [0.0 if line.ends is None else 100 * (line.ends[1] - line.ends[0]) / 2 for line in seen]


def _n(seen: Sequence[Line]) -> str:
    counts = sorted({line.of.n for line in seen if line.of})
    return str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"


def _numbers(values: Sequence[str]) -> dict[str, float] | None:
    try:
        return {value: float(value) for value in values}
    except ValueError:
        return None
