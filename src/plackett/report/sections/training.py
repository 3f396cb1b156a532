"""Curves: one small panel a method, the baseline behind each; and what the losses' terms did meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from plackett.experiments.records import Run, StudentEpoch
from plackett.experiments.statistics import summary
from plackett.experiments.tables import methods
from plackett.report.colours import ACCENT, MUTED, SERIES
from plackett.report.figures import Drawing, Plate, short
from plackett.report.material import Case, Material
from plackett.report.tables import Table

TITLE = "Training"
DASHES: tuple[Any, ...] = ("-", (0, (5, 1.6)), (0, (1.4, 1.4)), (0, (5, 1.4, 1.2, 1.4)))

Curve = dict[int, list[float]]  # epoch -> figures of the seeds that reached it


def context(material: Material) -> dict[str, Any] | None:
    cases = [made for case in material.shown if (made := _case(case, material.panels))]
    warnings = list(dict.fromkeys(w for run in material.study.all_runs if run.results for w in run.results.warnings))
    tables = [table for case in material.cases if (table := _table(case))]
    if not cases and not warnings:
        return None
    return {"cases": cases, "warnings": warnings, "tables": tables}


def _case(case: Case, most: int) -> dict[str, Any] | None:
    names = methods(case.runs)
    curves = {name: curve for name in names if (curve := _curve(case.runs, name, lambda e: 100 * e.accuracy))}
    if not curves:
        return None
    chosen = dict(list(curves.items())[:most])
    kinds = {
        "Losses, term by term": [_terms(case, name) for name in chosen],
        "Gradient shares": [_shares(case, name) for name in chosen],
        "On the way": [_monitored(case, name) for name in chosen],
    }
    return {
        "title": case.title,
        "panels": _panels(case, chosen),
        "baseline": case.baseline,
        "left": len(curves) - len(chosen),
        "more": {title: found for title, panels in kinds.items() if (found := [p for p in panels if p])},
    }


def _curve(runs: Sequence[Run], method: str, of: Callable[[StudentEpoch], float | None]) -> Curve:
    curve: Curve = {}
    for run in runs:
        for epoch in run.metrics:
            if method in epoch.students and (value := of(epoch.students[method])) is not None:
                curve.setdefault(epoch.epoch + 1, []).append(value)
    return dict(sorted(curve.items()))


def _panels(case: Case, curves: dict[str, Curve]) -> list[Plate]:
    finals = [value for curve in curves.values() for value in curve[max(curve)]]
    top = max(value for curve in curves.values() for values in curve.values() for value in values)
    bottom = max(0.0, min(finals) - 2.0 * max(top - min(finals), 1.5))
    plain = curves.get(case.baseline)
    return [_panel(case, name, curve, plain, (bottom, top + 1)) for name, curve in curves.items()]


def _panel(case: Case, method: str, curve: Curve, plain: Curve | None, limits: tuple[float, float]) -> Plate:
    with _Epochs(method) as drawing:
        axes = drawing.axes
        if plain is not None and method != case.baseline:
            axes.plot(list(plain), _means(plain), color=MUTED, linewidth=1.2, linestyle=(0, (3, 2)))
        epochs = list(curve)
        low, high = [min(v) for v in curve.values()], [max(v) for v in curve.values()]
        colour = MUTED if method == case.baseline else ACCENT
        axes.fill_between(epochs, low, high, color=colour, alpha=0.18, linewidth=0)
        axes.plot(epochs, _means(curve), color=colour, linewidth=1.7, marker="o" if len(epochs) == 1 else None)
        axes.set_ylim(*limits)
    last = _means(curve)[-1]
    return drawing.plate(
        f"accuracy {case.title} {method}",
        f"{case.title}. {method}: mean {case.watched} accuracy {last:.1f} % after epoch {epochs[-1]}.",
    )


def _terms(case: Case, method: str) -> Plate | None:
    names = _names(case, method, lambda epoch: epoch.terms)
    lines = {name: _curve(case.runs, method, lambda e, name=name: e.terms.get(name)) for name in names}  # type: ignore[misc]
    if len(names) > 1:
        lines = {"sum": _curve(case.runs, method, lambda e: e.loss), **lines}
    return _lines(case, method, "loss", lines)


def _shares(case: Case, method: str) -> Plate | None:
    names = _names(case, method, lambda epoch: epoch.gradient_share)
    lines = {
        name: _curve(case.runs, method, lambda e, name=name: _percent(e.gradient_share.get(name)))  # type: ignore[misc]
        for name in names
    }
    return _lines(case, method, "gradient shares, %", lines, (0, 100))


def _monitored(case: Case, method: str) -> Plate | None:
    lines = {
        "like the teacher": _curve(case.runs, method, lambda e: _percent(e.agreement)),
        "first-choice weight": _curve(
            case.runs, method, lambda e: _percent(getattr(e, "first_choice_weight", None))
        ),
    }  # fmt: skip
    return _lines(case, method, "agreement, first-choice weight, %", lines, (0, 100))


def _lines(
    case: Case, method: str, what: str, lines: Mapping[str, Curve], limits: tuple[float, float] | None = None
) -> Plate | None:
    drawn = {name: curve for name, curve in lines.items() if curve}
    if not drawn:
        return None
    with _Epochs(method) as drawing:
        axes = drawing.axes
        for place, (name, curve) in enumerate(drawn.items()):
            axes.plot(
                list(curve), _means(curve), color=SERIES[place % len(SERIES)], linestyle=DASHES[place % len(DASHES)],
                linewidth=1.5, label=short(name, 18), marker="o" if len(curve) == 1 else None,
            )  # fmt: skip
        values = [value for curve in drawn.values() for value in _means(curve)]
        if limits is not None:
            axes.set_ylim(*limits)
        elif min(values) > 0 and max(values) > 30 * min(values):
            axes.set_yscale("log")
            axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
            axes.minorticks_off()
        else:
            axes.locator_params(axis="y", nbins=5)
        if len(drawn) > 1:
            axes.legend(loc="best", handlelength=2.4, labelcolor=MUTED, borderaxespad=0.2)
    ends = ", ".join(f"{name} {_means(curve)[-1]:.3g}" for name, curve in drawn.items())
    return drawing.plate(f"{what} {case.title} {method}", f"{case.title}. {method}, {what}: in the end {ends}.")


class _Epochs(Drawing):
    """A small panel over epochs."""

    def __init__(self, title: str) -> None:
        super().__init__(2.9, 1.9, left=0.45)
        self._title = title

    def __enter__(self) -> _Epochs:
        super().__enter__()
        axes = self.axes
        axes.grid(axis="x", visible=False)
        axes.spines["left"].set_visible(False)
        axes.set_title(short(self._title, 30))
        axes.set_xlabel("epoch")
        axes.locator_params(nbins=5)
        axes.xaxis.get_major_locator().set_params(integer=True)
        return self

    def __exit__(self, *error: object) -> None:
        self.axes.set_xlim(left=0)
        super().__exit__(*error)


def _table(case: Case) -> Table | None:
    """What the curves are drawn of, for the file only."""
    sheet: list[list[object]] = [["method", "seed", "epoch", "what", "value"]]
    for run in case.runs:
        for epoch in run.metrics:
            for method, each in epoch.students.items():
                figures = {"accuracy": each.accuracy, "train accuracy": each.train_accuracy, "loss": each.loss}
                figures |= {f"term {name}": value for name, value in each.terms.items()}
                figures |= {f"gradient share {name}": value for name, value in each.gradient_share.items()}
                figures |= {} if each.agreement is None else {"agreement": each.agreement}
                sheet += [[method, run.record.seed, epoch.epoch + 1, what, value] for what, value in figures.items()]
    return Table(f"curves {case.title}", case.title, [], [], sheet=sheet) if len(sheet) > 1 else None


def _names(case: Case, method: str, of: Callable[[StudentEpoch], Mapping[str, float]]) -> list[str]:
    epochs = (epoch.students[method] for run in case.runs for epoch in run.metrics if method in epoch.students)
    return list(dict.fromkeys(name for epoch in epochs for name in of(epoch)))


def _percent(share: float | None) -> float | None:
    return None if share is None else 100 * share


def _means(curve: Curve) -> list[float]:
    return [summary(values).mean for values in curve.values()]
