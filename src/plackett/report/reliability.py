"""A reliability diagram: how often a network is right when it says how sure it is."""

from __future__ import annotations

from collections.abc import Sequence

from plackett.experiments.records import CalibrationRecord
from plackett.experiments.statistics import summary
from plackett.report.colours import ACCENT, INK, MUTED
from plackett.report.figures import Drawing, Plate, short


def diagram(title: str, name: str, records: Sequence[CalibrationRecord], *, teacher: bool = False) -> Plate:
    """All seeds together; the paler a bar, the fewer its pictures."""
    bins = len(records[0].counts)
    total = max(1, sum(sum(record.counts) for record in records))
    ece = summary([record.ece for record in records]).mean
    with Drawing(2.3, 2.25, left=0.52, right=0.14) as drawing:
        axes = drawing.axes
        for i in range(bins):
            count = sum(record.counts[i] for record in records)
            if count:
                right = sum((record.accuracy[i] or 0.0) * record.counts[i] for record in records) / count
                strength = 0.2 + 0.7 * min(1.0, 4 * count / total)  # a bin of three pictures says little, and looks it
                axes.bar(
                    (i + 0.5) / bins, right, width=0.92 / bins, color=MUTED if teacher else ACCENT, alpha=strength,
                    linewidth=0,
                )  # fmt: skip
        axes.plot([0, 1], [0, 1], color=INK, linewidth=1, linestyle=(0, (3, 3)))
        axes.set_xlim(0, 1)
        axes.set_ylim(0, 1)
        axes.set_xticks([0, 0.5, 1], ["0", "50", "100"])
        axes.set_yticks([0, 0.5, 1], ["0", "50", "100"])
        axes.set_title(short(name, 15))
        axes.set_xlabel("confidence, %")
        axes.set_ylabel("right, %")
        axes.set_title(f"ECE {100 * ece:.1f}", loc="right", color=MUTED, fontsize=8, fontweight="normal")
    said = f"{title}. Reliability of {name}: expected calibration error {100 * ece:.1f} percent."
    return drawing.plate(f"{title} {name}", said)
