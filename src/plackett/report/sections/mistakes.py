"""What goes wrong: what is taken for what, which classes changed most, and pictures that only the teacher gets."""

from __future__ import annotations

from typing import Any

import numpy as np

from plackett.experiments.predictions import Array
from plackett.report.colours import ACCENT, INK, MUTED, SERIES
from plackett.report.figures import Drawing, Plate, room, short
from plackett.report.material import Case, Material
from plackett.report.pictures import data_uri
from plackett.report.tables import Cell, Table

TITLE = "Mistakes"
MATRIX = 20  # classes that a matrix is legible with
MOST_CHANGES, MOST_PAIRS, MOST_PICTURES = 10, 12, 24
MOST_PIXELS = 1_500_000  # characters of pictures on the page


def context(material: Material) -> dict[str, Any] | None:
    cases = []
    left = MOST_PIXELS
    for case in material.shown:
        if case.answers.get(case.student):
            counts = {name: confusion(case, name) for name in case.answers}
            most = max([1.0, *(_wrong(counts[name]) for name in _order(case))])
            pictures = _pictures(case, left)
            left -= sum(len(picture["uri"]) for picture in pictures)
            few = len(case.classes) <= MATRIX
            cases.append({
                "case": case.title,
                "student": case.student,
                "among": len(case.distilled),
                "seeds": len(case.answers[case.student]),
                "pictures": pictures,
                "matrices": [_matrix(case, name, counts[name], most) for name in _order(case)] if few else [],
                "pairs": None if few else _pairs(case, counts),
                "changes": _changes(case, counts),
                "files": [_sheet(case, name, counts[name]) for name in _order(case)],
                "tables": [_classes(case, counts)],
            })  # fmt: skip
    return {"cases": cases} if cases else None


def confusion(case: Case, name: str) -> Array:
    """`[labels, said]`, all runs together."""
    classes = len(case.classes)
    total = np.zeros((classes, classes), np.int64)
    for targets, said in case.answers[name]:
        np.add.at(total, (targets, said), 1)
    return total


def _wrong(counts: Array) -> float:
    """The share of the most frequent mistake, in % of its class."""
    shares = 100 * counts / np.maximum(1, counts.sum(1, keepdims=True))
    return float(shares[~np.eye(len(counts), dtype=bool)].max(initial=0.0))


def _order(case: Case) -> list[str]:
    """Each once: where nothing is distilled, the student is the baseline."""
    return [name for name in dict.fromkeys(("teacher", case.baseline, case.student)) if name in case.answers]


def _matrix(case: Case, name: str, counts: Array, most: float) -> Plate:
    """`most`: the share of the most frequent mistake of all matrices, which is the darkest in each."""
    classes = [short(each, 12) for each in case.classes]
    shares = 100 * counts / np.maximum(1, counts.sum(1, keepdims=True))
    left, small = room(classes, 7.5), len(classes) > 12
    side = 2.75 if len(classes) <= 12 else 3.6
    long = max(map(len, classes)) > 2
    with Drawing(side + left + 0.25, side + 0.85 + (left if long else 0), left=left + 0.2, top=0.35, right=0.05,
                 bottom=0.5 + (left - 0.1 if long else 0)) as drawing:  # fmt: skip
        axes = drawing.axes
        for i, j in zip(*np.nonzero(counts), strict=True):
            right = i == j
            alpha = 0.12 + 0.3 * shares[i, j] / 100 if right else 0.07 + 0.38 * min(1.0, shares[i, j] / most)
            axes.barh(
                i, 0.96, left=j - 0.48, height=0.96, color=ACCENT if right else SERIES[1], alpha=alpha, linewidth=0
            )
            if shares[i, j] >= 0.5:
                axes.text(
                    j, i, f"{shares[i, j]:.0f}", ha="center", va="center", fontsize=5.5 if small else 7, color=INK
                )  # fmt: skip
        axes.set_xlim(-0.5, len(classes) - 0.5)
        axes.set_ylim(len(classes) - 0.5, -0.5)
        axes.set_xticks(range(len(classes)), classes, rotation=90 if long else 0, fontsize=7.5)
        axes.set_yticks(range(len(classes)), classes, fontsize=7.5)
        axes.grid(visible=False)
        for spine in axes.spines.values():
            spine.set_visible(False)
        axes.set_title(short(name, 24))
        axes.set_xlabel("said")
        axes.set_ylabel("true")
    accuracy = 100 * np.trace(counts) / max(1, counts.sum())
    worst = _worst(counts, 3)
    said = ", ".join(f"{case.classes[i]} taken for {case.classes[j]} {shares[i, j]:.1f}" for i, j in worst) or "none"
    return drawing.plate(
        f"confusion {case.title} {name}",
        f"{case.title}. Confusion matrix of {name}, {accuracy:.1f} percent right. Most frequent mistakes in percent of "
        f"the class: {said}.",
    )


def _worst(counts: Array, most: int) -> list[tuple[int, int]]:
    """Pairs of label and another class that was said, by the share of the label's pictures."""
    shares = counts / np.maximum(1, counts.sum(1, keepdims=True))
    np.fill_diagonal(shares, 0.0)
    order = np.argsort(-shares, axis=None, kind="stable")[:most]
    pairs = [divmod(int(place), len(counts)) for place in order]
    return [(i, j) for i, j in pairs if counts[i, j]]


def _pairs(case: Case, counts: dict[str, Array]) -> Table:
    rows: list[list[Cell | str]] = []
    names = _order(case)
    shares = {name: counts[name] / np.maximum(1, counts[name].sum(1, keepdims=True)) for name in names}
    for i, j in _worst(counts[case.student], MOST_PAIRS):
        found = [float(shares[name][i, j]) for name in names]
        rows.append([case.classes[i], case.classes[j], *(Cell(f"{100 * share:.1f}", share) for share in found)])
    return Table(
        name=f"pairs {case.title}",
        caption=f"{case.student}: most confused pairs, % of the true class",
        columns=["true", "said", *(f"{name}, %" for name in names)],
        words=(0, 1),
        rows=rows,
    )


def _changes(case: Case, counts: dict[str, Array]) -> Plate | None:
    """The classes that distillation changed most, against the baseline, or where there is none, the teacher."""
    base = case.baseline if case.distilled and case.baseline in counts else "teacher"
    if base not in counts:
        return None
    old, new = (_right(counts[name]) for name in (base, case.student))
    differences = new - old
    chosen = [int(i) for i in np.argsort(-np.abs(differences), kind="stable")[:MOST_CHANGES] if differences[i]]
    if not chosen:
        return None
    chosen.sort(key=lambda i: -differences[i])
    labels = [short(case.classes[i], 22) for i in chosen]
    teacher = _right(counts["teacher"]) if "teacher" in counts and base != "teacher" else None
    with Drawing(7.2, 0.85 + 0.27 * len(chosen), left=room(labels), top=0.36, bottom=0.46, right=0.75) as drawing:
        axes = drawing.axes
        for place, i in enumerate(chosen):
            axes.plot([old[i], new[i]], [place, place], color=ACCENT, linewidth=2, alpha=0.55, zorder=2)
            first = place == 0
            if teacher is not None:
                axes.plot(
                    teacher[i], place, "|", color=INK, markersize=10, markeredgewidth=1.6, zorder=2, linestyle="none",
                    label="teacher" if first else None,
                )  # fmt: skip
            axes.plot(
                old[i], place, "o", color=MUTED, markersize=6, markeredgewidth=0, zorder=3, linestyle="none",
                label=short(base, 20) if first else None,
            )  # fmt: skip
            axes.plot(
                new[i], place, "o", color=ACCENT, markersize=7, markeredgewidth=0, zorder=4, linestyle="none",
                label=short(case.student, 20) if first else None,
            )  # fmt: skip
            change = f"{differences[i]:+.1f}".replace("-", "\N{MINUS SIGN}")
            axes.text(
                1.02, place, change, transform=axes.get_yaxis_transform(), ha="left", va="center", fontsize=8.5,
                color=INK,
            )  # fmt: skip
        axes.set_yticks(range(len(labels)), labels)
        axes.tick_params(axis="y", labelcolor=INK)
        axes.set_ylim(len(labels) - 0.5, -0.5)
        axes.grid(axis="y", visible=False)
        axes.spines["left"].set_visible(False)
        axes.set_xlabel("right, % of the class")
        axes.legend(
            loc="lower left", bbox_to_anchor=(0, 1), ncols=3, borderaxespad=0.3, handlelength=1, columnspacing=1.4,
            handletextpad=0.4, borderpad=0, labelcolor=MUTED,
        )  # fmt: skip
    said = ", ".join(f"{case.classes[i]} {differences[i]:+.1f}" for i in chosen)
    return drawing.plate(
        f"changes {case.title}",
        f"{case.title}. Classes that {case.student} changed most against {base}, in points: {said}.",
    )


def _right(counts: Array) -> Array:
    found: Array = 100 * np.diag(counts) / np.maximum(1, counts.sum(1))
    return found


def _classes(case: Case, counts: dict[str, Array]) -> Table:
    """For the file only: what every network gets right of every class."""
    names = _order(case)
    right = {name: _right(counts[name]) / 100 for name in names}
    sheet: list[list[object]] = [["class", "pictures", *names]]
    pictures = counts[case.student].sum(1) // max(1, len(case.answers[case.student]))
    sheet += [
        [label, int(pictures[i]), *(float(right[name][i]) for name in names)] for i, label in enumerate(case.classes)
    ]
    return Table(f"classes {case.title}", case.title, [], [], sheet=sheet)


def _sheet(case: Case, name: str, counts: Array) -> Table:
    """For the file only: what is not 0 of the confusion matrix."""
    rows: list[list[object]] = [["true", "said", "pictures"]]
    rows += [[case.classes[i], case.classes[j], int(counts[i, j])] for i, j in zip(*np.nonzero(counts), strict=True)]
    return Table(f"confusion {case.title} {name}", case.title, [], [], sheet=rows)


def _pictures(case: Case, left: int) -> list[dict[str, str]]:
    """The teacher is right and the student is not."""
    kept = case.pictures
    if kept is None or "teacher" not in kept.said:
        return []
    student, teacher = kept.said[case.student], kept.said["teacher"]
    shown = []
    for place in np.flatnonzero((teacher == kept.targets) & (student != kept.targets))[:MOST_PICTURES]:
        uri = data_uri(kept.pixels[place])
        left -= len(uri)
        if left < 0:
            break
        true, said = (case.classes[int(each[place])] for each in (kept.targets, student))
        shown.append({"uri": uri, "true": true, "said": said, "number": str(int(kept.which[place]))})
    return shown
