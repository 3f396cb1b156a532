"""What accuracy costs: against the time of one picture, and against the number of parameters, teacher included."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from plackett.report.colours import ACCENT, INK, LINE, MUTED
from plackett.report.figures import EM, Drawing, Plate, short
from plackett.report.material import Case, Material
from plackett.report.tables import Cell, Table

TITLE = "Trade-off"
MOST_NAMES = 14
WIDTH, HEIGHT = 4.5, 2.9
LETTERS = 8.0  # points


class Point(NamedTuple):
    """A network; the teacher's `kind` is `teacher`."""

    name: str
    kind: str
    accuracy: float
    parameters: int | None
    latency: float | None


def context(material: Material) -> dict[str, Any] | None:
    cases = []
    for case in material.shown:
        points = _points(case)
        if points:
            plates = [
                _scatter(case, points, [point.latency for point in points], "latency", "ms a picture"),
                _scatter(case, points, [point.parameters for point in points], "parameters", "parameters"),
            ]
            if drawn := [plate for plate in plates if plate]:
                cases.append({"title": case.title, "plates": drawn, "table": _table(case, points)})
    if not cases:
        return None
    return {"cases": cases, "devices": sorted({run.record.device for run in material.study.all_runs})}


def _points(case: Case) -> list[Point]:
    rows = [
        Point(row.method, "plain" if row.method == case.baseline else "student", 100 * row.accuracy.mean,
              case.parameters(row.method), case.latency(row.method))
        for row in case.rows
    ]  # fmt: skip
    if case.teacher is not None and rows:
        accuracy = 100 * case.teacher.accuracy
        rows.append(Point("teacher", "teacher", accuracy, case.parameters(None), case.latency(None)))
    return rows


def _scatter(
    case: Case, points: Sequence[Point], values: Sequence[float | None], what: str, label: str
) -> Plate | None:
    known = [(point, float(value)) for point, value in zip(points, values, strict=True) if value]
    if len(known) < 2:
        return None
    with Drawing(WIDTH, HEIGHT, left=0.5, top=0.15, right=0.15, bottom=0.5) as drawing:
        axes = drawing.axes
        for point, value in known:
            teacher = point.kind == "teacher"
            axes.plot(
                value, point.accuracy, marker="s" if teacher else "o", markersize=7, color=_colour(point),
                alpha=0.9, markeredgewidth=0, zorder=3,
            )  # fmt: skip
        low, high = min(value for _, value in known), max(value for _, value in known)
        axes.set_xscale("log")
        stretch = max(high / low, 1.5)
        axes.set_xlim(low / stretch**0.14, low * stretch**1.14)
        axes.margins(y=0.14)
        _ticks(axes, low, low * stretch)
        axes.set_xlabel(label)
        axes.set_ylabel("accuracy, %")
        _name(axes, known)
    said = "; ".join(f"{point.name} {point.accuracy:.1f} % at {value:,.6g}" for point, value in known)
    return drawing.plate(f"{what} {case.title}", f"{case.title}. Test accuracy against {label}: {said}.")


def _colour(point: Point) -> str:
    return ACCENT if point.kind == "student" else INK if point.kind == "teacher" else MUTED


def _ticks(axes: Any, low: float, high: float) -> None:
    """1, 2 and 5 times powers of ten; only the first of each where those would be many."""
    steps = (1, 2, 5) if high / low < 40 else (1,)
    powers = range(-9, 13)
    inside = [m * 10.0**p for p in powers for m in steps if low / 1.3 <= m * 10.0**p <= high * 1.3]
    inside = inside if len(inside) > 1 else [low, high]
    axes.minorticks_off()
    axes.set_xticks(inside, [_count(value) for value in inside])


def _count(value: float) -> str:
    """
    >>> _count(0.02), _count(5000.0), _count(2_000_000.0)
    ('0.02', '5 k', '2 M')
    """
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:.3g} {letter}"
    return f"{value:.3g}"


def _name(axes: Any, known: Sequence[tuple[Point, float]]) -> None:
    """Names beside the points, those of the left half in one column to their right, and the other way round.

    Points of nearly one size lie on top of each other: their names are moved apart, and a thin line leads to each.
    """
    transform, back = axes.transData, axes.transAxes.inverted()
    places = [(point, *back.transform(transform.transform((value, point.accuracy)))) for point, value in known]
    for right in (False, True):
        half = sorted((p for p in places if (p[1] > 0.5) == right), key=lambda p: p[2])
        chosen = _chosen(half)
        if not chosen:
            continue
        edge = min(p[1] for p in half) - 0.06 if right else max(p[1] for p in half) + 0.06
        gap = LETTERS * 1.45 / 72 / (HEIGHT - 0.65)
        for (point, x, y), spot in zip(chosen, spread([p[2] for p in chosen], gap), strict=True):
            axes.plot([x, edge], [y, spot], color=LINE, linewidth=0.9, transform=axes.transAxes, zorder=1)
            axes.text(
                edge + (-0.012 if right else 0.012), spot, short(point.name, int(1.9 / (EM * LETTERS))),
                transform=axes.transAxes, ha="right" if right else "left", va="center_baseline", fontsize=LETTERS,
                color=INK if point.kind == "teacher" else _colour(point),
            )  # fmt: skip


def _chosen(places: Sequence[tuple[Point, float, float]]) -> list[tuple[Point, float, float]]:
    """Of too many, those at the ends of the scale, and the baseline."""
    if len(places) <= MOST_NAMES:
        return list(places)
    half = MOST_NAMES // 2
    return [p for i, p in enumerate(places) if i < half or i >= len(places) - half or p[0].kind == "plain"]


def spread(wanted: Sequence[float], gap: float) -> list[float]:
    """Rising places as near to the wanted ones as a gap between neighbours lets them be, within 0.04 to 0.96.

    >>> [round(y, 2) for y in spread([0.5, 0.5, 0.9], 0.1)]
    [0.45, 0.55, 0.9]
    """
    groups: list[list[float]] = []  # sum of wanted - offsets, number
    for y in wanted:
        groups.append([y, 1.0])
        while len(groups) > 1:
            (a, n), (b, m) = groups[-2:]
            if a / n + gap * (n + m) / 2 <= b / m:
                break
            groups[-2:] = [[a + b, n + m]]
    found: list[float] = []
    for total, n in groups:
        half = gap * (n - 1) / 2
        middle = min(max(total / n, 0.04 + half), max(0.96 - half, 0.5))
        found += [middle - half + gap * i for i in range(int(n))]
    return found


def _table(case: Case, points: Sequence[Point]) -> Table:
    """For the file only: the verdict shows these figures."""
    rows: list[list[Cell | str]] = [
        [p.name, Cell("", p.accuracy / 100), Cell("", p.parameters), Cell("", p.latency)] for p in points
    ]  # fmt: skip
    return Table(case.title, case.title, ["network", "accuracy", "parameters", "ms a picture"], rows)
