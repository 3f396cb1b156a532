"""The cells of a sweep -> a line a point, in series over the key with the most values; without torch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from plackett.experiments import plain
from plackett.experiments.cells import Cell, Key
from plackett.experiments.statistics import Difference, Summary, interval, paired, summary
from plackett.experiments.sweep import Plan, Point

COLUMNS = (
    *("recipe", "pair", "series", "key", "value", "n", "mean", "std", "low", "high", "base", "difference"),
    *("difference_low", "difference_high", "stopped"),
)


@dataclass(frozen=True)
class Line:
    """One point. `low` and `high` are the 95 % interval of the mean; `difference` is to the series' base."""

    series: str
    value: str
    point: Point
    of: Summary | None
    ends: tuple[float, float] | None
    difference: Difference | None
    is_base: bool
    stopped: int


@dataclass(frozen=True)
class Swept:
    """One pair of networks: `key` is what the series run over; a line without a value is of a method as it is."""

    pair: str
    key: str
    lines: list[Line]

    @property
    def series(self) -> dict[str, list[Line]]:
        found: dict[str, list[Line]] = {}
        for line in self.lines:
            found.setdefault(line.series, []).append(line)
        return found


def gather(plan: Plan, cells: Iterable[Cell], pair: str) -> Swept:
    """The points of one pair, whose base is what the recipe says, or else the first value."""
    held: dict[Key, Cell] = {cell.key: cell for cell in cells}
    seeds = sorted({seed for _, _, _, seed in held})
    key = max(plan.keys, key=lambda each: len(each.values)).option
    groups: dict[str, list[Point]] = {}
    for point in plan.points:
        others = [f"{option} {value}" for option, value in point.settings.items() if option != key]
        title = point.of if point.method != point.of else point.recipe.methods[point.of].title
        groups.setdefault(", ".join([title, *others]), []).append(point)
    lines = []
    for series, points in groups.items():
        base = next((point for point in points if point.usual), points[0])
        lines += [_line(series, key, point, base, held, seeds, pair) for point in points]
    return Swept(pair, key, lines)


def _line(
    series: str, key: str, point: Point, base: Point, held: Mapping[Key, Cell], seeds: Sequence[int], pair: str
) -> Line:
    def of(which: Point) -> dict[int, Cell]:
        keys = {seed: (which.recipe.name, pair, which.method, seed) for seed in seeds}
        return {seed: held[each] for seed, each in keys.items() if each in held}

    mine, theirs = of(point), of(base)
    right = {seed: cell.accuracy for seed, cell in mine.items() if cell.accuracy is not None}
    others = {seed: cell.accuracy for seed, cell in theirs.items() if cell.accuracy is not None}
    resolution = 1 / min((cell.test for cell in mine.values()), default=1)
    both = sorted(right.keys() & others.keys())
    difference = None
    if both and point is not base:
        difference = paired([right[s] for s in both], [others[s] for s in both], resolution=resolution)
    values = list(right.values())
    return Line(
        series,
        point.settings.get(key, ""),
        point,
        summary(values) if values else None,
        interval(values, resolution=resolution) if values else None,
        difference,
        point is base,
        sum(cell.stopped is not None for cell in mine.values()),
    )


def text(swept: Swept, title: str) -> str:
    """The table that a person reads, and what it is of."""
    rows = [["", swept.key, "last epoch", "n", "95 % interval", "difference [95 %]"]]
    for line in swept.lines:
        n = "0" if line.of is None else str(line.of.n)
        ends = "-" if line.ends is None else f"{100 * line.ends[0]:.2f} to {100 * line.ends[1]:.2f}"
        mean = "stopped" if line.of is None else line.of.text(100, 2)
        alone = len(swept.series[line.series]) == 1
        against = "base" if line.is_base else line.difference.text(100, 2) if line.difference else "-"
        rows.append([line.series, line.value or "-", mean, n, ends, "-" if alone else against])
    return f"{swept.pair}: {title}\n\n{plain.aligned(rows)}"


NOTE = (
    "Test accuracy in %, mean ± standard deviation over seeds, after the last epoch; its interval is Student's t. "
    "Differences are paired by seed, to the base of each series: the recipe's own value where it is among them, else "
    "the first. Intervals stand for themselves alone: the best of many values looks better than it is, and a value to "
    "use is chosen by plackett tune, on pictures that are no test."
)


def extremes(swept: Swept) -> list[str]:
    """A sentence a series: its highest mean, and whether these seeds tell it from the base."""
    said = []
    for series, lines in swept.series.items():
        seen = [line for line in lines if line.of is not None]
        if len(seen) < 2:
            continue
        best = max(seen, key=lambda line: line.of.mean if line.of else 0.0)
        base = next(line for line in lines if line.is_base)
        where = f"{series}: highest at {swept.key} {best.value}"
        if best is base or best.difference is None:
            said.append(f"{where}, the base.")
        else:
            said.append(f"{where}. " + best.difference.sentence(f"{swept.key} {best.value}", f"{base.value}"))
    return said


def csv_rows(recipe: str, swept: Sequence[Swept]) -> list[Sequence[object]]:
    """Figures in %, unrounded."""
    rows: list[Sequence[object]] = [COLUMNS]
    for one in swept:
        for line in one.lines:
            diff, of = line.difference, line.of
            figures = [
                *((None, None) if of is None else (of.mean, of.std)),
                *(line.ends or (None, None)),
            ]
            differences = (None, None, None) if diff is None else (diff.mean, diff.low, diff.high)
            shown = [None if x is None else f"{100 * x:.6g}" for x in figures]
            against = [None if x is None else f"{100 * x:.6g}" for x in differences]
            n = of.n if of else 0
            rows.append(
                [recipe, one.pair, line.series, one.key, line.value, n, *shown, line.is_base, *against, line.stopped]
            )
    return rows
