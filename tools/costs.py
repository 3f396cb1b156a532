"""Writes the cost tables of README from the committed benchmark results: every figure there is a row of a CSV."""

from __future__ import annotations

import csv
import pathlib

from tools.between import between

ROOT = pathlib.Path(__file__).parent.parent
README = ROOT / "README.md"
RESULTS = ROOT / "benchmarks" / "results"
LOSSES = ("CE", "KD", "KD compiled", "DIST", "DKD", "PLD as published", "PLD", "PLD, first 64")


def text() -> str:
    """README as it should be."""
    blocks = [_block(path) for path in sorted(RESULTS.glob("losses-*.csv"))]
    return between(README.read_text(), "costs", "\n\n".join(blocks))


def _block(path: pathlib.Path) -> str:
    with path.open() as file:
        rows = list(csv.DictReader(file))
    first = rows[0]
    shapes = list(dict.fromkeys((r["rows"], r["classes"], r["dtype"]) for r in rows))
    figures = {(r["rows"], r["classes"], r["dtype"], r["loss"]): r for r in rows}
    losses = [name for name in LOSSES if any(r["loss"] == name for r in rows)]
    threads = f", {first['threads']} threads" if first["threads"] else ""
    if first.get("clock") == "processor":
        threads += ", **the processor's time of all threads** (others used the machine too)"
    calls = sorted({int(r["n"]) for r in rows})
    head = [
        f"{first['device']}{threads}, torch {first['torch']}, float logits from `3 * randn`, n = {calls[0]} to "
        f"{calls[-1]} calls, {measured_at(first['commit'])}:",
        "",
        "| rows x classes | " + " | ".join(losses) + " |",
        "|---" * (len(losses) + 1) + "|",
    ]
    table = [*head, *(_row(shape, losses, figures) for shape in shapes)]
    if first["threads"]:
        table += ["", _times(shapes, figures)]
    return "\n".join(table)


def measured_at(commit: str) -> str:
    """
    >>> measured_at("0123456789+changes"), measured_at("0123456789")
    ('commit 0123456 and changes', 'commit 0123456')
    """
    return f"commit {commit[:7]}" + (" and changes" if commit.endswith("+changes") else "")


def _times(shapes: list[tuple[str, str, str]], figures: dict[tuple[str, ...], dict[str, str]]) -> str:
    """The published listing over ours, in words."""

    def over(shape: tuple[str, str, str], column: str) -> str:
        listing, ours = (float(figures[(*shape, name)][column]) for name in ("PLD as published", "PLD"))
        return f"{listing / ours:.1f} at {shape[0]} x {shape[1]}"

    time, memory = (", ".join(over(shape, column) for shape in shapes) for column in ("median_ms", "extra_mib"))
    return f"The published listing takes so many times PLD's time: {time}; and its memory: {memory}."


def _row(shape: tuple[str, str, str], losses: list[str], figures: dict[tuple[str, ...], dict[str, str]]) -> str:
    cells = []
    for name in losses:
        found = figures.get((*shape, name))
        cells.append("-" if found is None else f"{float(found['median_ms']):.3g} ({_mib(float(found['extra_mib']))})")
    rows, classes, dtype = shape
    return f"| {rows} x {classes} {dtype} | " + " | ".join(cells) + " |"


def _mib(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 else f"{value:.1f}"


if __name__ == "__main__":
    README.write_text(text())
