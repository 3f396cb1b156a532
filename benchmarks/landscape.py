"""The paper's landscapes over many teachers: `python -m benchmarks.landscape`, a minute on one core of a CPU.

One random teacher is one picture. Here each figure is a mean over ten of them, for teachers of unit norm, as the paper
has them, and for longer ones, whose softmax is as sure of a class as a trained network's is.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import torch

from benchmarks.losses import RESULTS
from plackett.analysis import LogitSlice, Surface
from plackett.analysis.given import PAPER, Given, over_temperatures
from plackett.experiments import plain
from plackett.experiments.records import write_text
from plackett.experiments.statistics import summary

SEEDS = range(10)
POINTS = 21
TEACHERS = ((100, 1.0), (1000, 1.0), (100, 10.0), (100, 30.0))  # classes, norm
LOSSES = (*PAPER[:2], *over_temperatures([2.0, 1.0, 0.5, 0.1]))
HEAD = (
    *("classes", "norm", "loss", "n", "convex", "segments_above", "smallest", "smallest_std", "middle", "middle_std"),
    *("off_middle", "off_middle_std", "largest_probability"),
)


def row(classes: int, norm: float, each: Given) -> list[object]:
    planes = [LogitSlice.random(classes, seed, norm=norm) for seed in SEEDS]
    found = [plane.survey(each.objective(), points=POINTS) for plane in planes]
    smallest, middle, off = (summary([of(s) for s in found]) for of in (_smallest, _middle, lambda s: _off(s, norm)))
    sure = summary([float(plane.teacher.softmax(-1).max()) for plane in planes]).mean
    return [
        classes, f"{norm:g}", each.title, len(found), sum(s.convexity.convex for s in found),
        f"{summary([s.convexity.share for s in found]).mean:.4f}",
        *(f"{x:.5f}" for of in (smallest, middle) for x in (of.mean, of.std)),
        *(f"{x:.2f}" for x in (off.mean, off.std)), f"{sure:.3f}",
    ]  # fmt: skip


def _smallest(surface: Surface) -> float:
    return surface.convexity.smallest


def _middle(surface: Surface) -> float:
    return surface.convexity.middle


def _off(surface: Surface, norm: float) -> float:
    """How far the lowest point of the grid lies from the teacher, in lengths of the teacher."""
    a, b = surface.lowest
    return float((a * a + b * b) ** 0.5 / norm)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=RESULTS / "landscape.csv")
    out = parser.parse_args().out
    torch.set_num_threads(1)
    rows = [list(HEAD), *(row(classes, norm, each) for classes, norm in TEACHERS for each in LOSSES)]
    write_text(out, plain.comma_separated(rows))
    shown = [[str(value) for value in line] for line in rows]
    print(plain.aligned([[line[i] for i in (0, 1, 2, 4, 5, 6, 8, 10, 12)] for line in shown]))
    print(f"\nMeans over {len(SEEDS)} random teachers, {POINTS} x {POINTS} points, float64. Written: {out}")


if __name__ == "__main__":
    main()
