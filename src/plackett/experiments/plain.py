"""Rows of words and figures as text: aligned, Markdown, or CSV; the first row is the head."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

Rows = Sequence[Sequence[str]]


def aligned(rows: Rows) -> str:
    """
    >>> print(aligned([["method", "n"], ["ce", "5"]]))
    method  n
    ---------
    ce      5
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join(
            cell.ljust(w) if i == 0 else cell.rjust(w) for i, (cell, w) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
    return "\n".join([lines[0], "-" * (sum(widths) + 2 * len(widths) - 2), *lines[1:]])


def markdown(rows: Rows) -> str:
    """
    >>> print(markdown([["method", "n"], ["ce", "5"]]))
    | method | n |
    | --- | ---: |
    | ce | 5 |
    """
    head, *rest = rows
    ruled = [head, ["---", *["---:"] * (len(head) - 1)], *rest]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in ruled)


def comma_separated(rows: Sequence[Sequence[object]]) -> str:
    """
    >>> comma_separated([["method", "n"], ["a, b", 5]])
    'method,n\\n"a, b",5\\n'
    """
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(rows)
    return out.getvalue()
