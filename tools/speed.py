"""Writes the table of training speed in docs/cifar100.md from the committed results of `benchmarks.training`."""

from __future__ import annotations

import csv
import pathlib

from tools.between import between
from tools.costs import RESULTS, measured_at

HEADINGS = ("teacher - student", "what", "batch", "s an epoch", "s an epoch and student", "over the ordinary loop",
            "images/s", "MiB")  # fmt: skip
PAGE = RESULTS.parents[1] / "docs" / "cifar100.md"


def text() -> str:
    """The page as it should be."""
    return between(PAGE.read_text(), "speed", "\n\n".join(_block(p) for p in sorted(RESULTS.glob("training-*.csv"))))


def _block(path: pathlib.Path) -> str:
    with path.open() as file:
        rows = list(csv.DictReader(file))
    first = rows[0]
    ordinary = {r["pair"]: float(r["seconds_a_student"]) for r in rows if r["what"].startswith("ordinary")}
    workers = sorted({r["what"].removeprefix("ordinary loop, ") for r in rows if r["what"].startswith("ordinary")})
    how = next(r["what"] for r in rows if not r["what"].startswith("ordinary"))
    lines = [
        f"{first['device']}, torch {first['torch']}, {measured_at(first['commit'])}. A cohort is {how}; the ordinary "
        f"loop has a DataLoader with {' and '.join(workers)}, in float32.",
        "",
        f"| {' | '.join(HEADINGS)} |",
        "|" + "---|" * len(HEADINGS),
    ]
    for row in rows:
        plain = row["what"].startswith("ordinary")
        many = f"cohort of {row['students']}" if row["students"] != "1" else "one student"
        times = ordinary[row["pair"]] / float(row["seconds_a_student"])
        cells = [
            row["pair"],
            "ordinary loop" if plain else many,
            row["batch"],
            f"{float(row['seconds_an_epoch']):.2f}",
            f"{float(row['seconds_a_student']):.3f}",
            "1" if plain else f"{times:.1f} times as fast",
            f"{int(row['images_a_second']):,}",
            f"{int(row['peak_mib']):,}",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    PAGE.write_text(text())
