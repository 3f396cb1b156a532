"""Cost over the number of classes: `python -m benchmarks.curve` measures on a GPU, `--plot` draws what was measured.

Rows shrink as classes grow, so that every point moves about the same bytes.
"""

from __future__ import annotations

import argparse
import csv
from pathlib import Path

import torch

from benchmarks import written
from benchmarks.losses import RESULTS, Shape, measure
from benchmarks.measure import copy_gb_s
from plackett.experiments import surroundings

CLASSES = (10, 30, 100, 300, 1000, 2048, 4096, 8192, 32000, 65536, 128256, 152064)
LOGITS = 1 << 27
NAMES = "^(KD compiled|PLD as published|PLD|PLD, first 64)$"


def run(path: Path) -> None:
    bandwidth = copy_gb_s("cuda")
    rows = []
    for classes in CLASSES:
        shape = Shape(max(256, min(65536, LOGITS // classes)), classes, torch.bfloat16)
        for row in measure(shape, "cuda", bandwidth, NAMES):
            row["device"], row["torch"] = torch.cuda.get_device_name(), torch.__version__
            row["commit"] = surroundings.commit() or ""
            rows.append(row)
            print(classes, shape.rows, row["loss"], row["median_ms"], row["extra_mib"], flush=True)
        written.write(rows, path)  # after each size: a run that is cut short keeps its points


def plot(path: Path, to: Path) -> None:
    import matplotlib.pyplot as plt

    with path.open() as file:
        rows = list(csv.DictReader(file))
    figure, axes = plt.subplots(figsize=(7, 4.2), layout="constrained")
    for name in dict.fromkeys(row["loss"] for row in rows):
        points = [row for row in rows if row["loss"] == name]
        cost = [float(r["median_ms"]) * 1e6 / (int(r["rows"]) * int(r["classes"])) for r in points]
        axes.loglog([int(r["classes"]) for r in points], cost, marker="o", label=name)
    axes.set_xlabel("classes")
    axes.set_ylabel("ns a logit, forward and backward")
    axes.set_title(f"{rows[0]['device']}, torch {rows[0]['torch'].split('+')[0]}, bfloat16", fontsize=10)
    axes.grid(which="both", alpha=0.25)
    axes.legend(frameon=False)
    to.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(to)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--csv", type=Path, default=RESULTS / "curve-nvidia-h200.csv")
    parser.add_argument("--plot", type=Path, help="draw the CSV to this file instead of measuring")
    given = parser.parse_args()
    if given.plot:
        plot(given.csv, given.plot)
    else:
        run(given.csv)


if __name__ == "__main__":
    main()
