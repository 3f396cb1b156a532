"""Curves: one small panel a method, the baseline behind each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from plackett.experiments.records import Run
from plackett.experiments.study import Study
from plackett.experiments.tables import methods
from plackett.report.figures import ACCENT, MUTED, Drawing

TITLE = "Training"

Curve = dict[int, list[float]]  # epoch -> accuracies of the seeds that reached it


def context(study: Study) -> dict[str, Any] | None:
    cases = []
    for case in study.record.cases:
        runs = study.runs[case.group]
        curves = {method: curve for method in methods(runs) if (curve := _curve(runs, method))}
        if curves:
            panels = _panels(case.title, curves, study.record.baseline)
            cases.append({"title": case.title, "panels": panels})
    return {"cases": cases, "baseline": study.record.baseline} if cases else None


def _curve(runs: Sequence[Run], method: str) -> Curve:
    curve: Curve = {}
    for run in runs:
        for epoch in run.metrics:
            if method in epoch.students:
                curve.setdefault(epoch.epoch + 1, []).append(100 * epoch.students[method].accuracy)
    return curve


def _panels(title: str, curves: dict[str, Curve], baseline: str) -> list[Any]:
    finals = [value for curve in curves.values() for value in curve[max(curve)]]
    top = max(value for curve in curves.values() for values in curve.values() for value in values)
    bottom = max(0.0, min(finals) - 2.0 * max(top - min(finals), 1.5))
    limits = (bottom, top + 1)
    return [_panel(title, name, curve, curves.get(baseline), baseline, limits) for name, curve in curves.items()]


def _panel(
    title: str, method: str, curve: Curve, plain: Curve | None, baseline: str, limits: tuple[float, float]
) -> Any:
    with Drawing(2.9, 1.9) as drawing:
        axes = drawing.axes
        if plain is not None and method != baseline:
            axes.plot(list(plain), _means(plain), color=MUTED, linewidth=1.2, linestyle=(0, (3, 2)))
        epochs = list(curve)
        low, high = [min(v) for v in curve.values()], [max(v) for v in curve.values()]
        colour = MUTED if method == baseline else ACCENT
        axes.fill_between(epochs, low, high, color=colour, alpha=0.18, linewidth=0)
        axes.plot(epochs, _means(curve), color=colour, linewidth=1.7)
        axes.set_ylim(*limits)
        axes.set_xlim(left=0)
        axes.grid(axis="x", visible=False)
        axes.spines["left"].set_visible(False)
        axes.set_title(method)
        axes.set_xlabel("epoch")
        axes.locator_params(nbins=5)
    last = _means(curve)[-1]
    return drawing.svg(f"{title}. {method}: mean test accuracy {last:.1f} % after epoch {epochs[-1]}.")


def _means(curve: Curve) -> list[float]:
    return [sum(values) / len(values) for values in curve.values()]
