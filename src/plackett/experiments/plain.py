"""Rows of words and figures as text: aligned, Markdown, or CSV; the first row is the head."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

Rows = Sequence[Sequence[str]]


def aligned(rows: Rows, *, words: bool = False) -> str:
    """Names from the left edge on and figures up to the right one; of `words`, every column from the left.

    >>> print(aligned([["method", "n"], ["ce", "5"]]))
    method  n
    ---------
    ce      5
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = zip(row, widths, strict=True)
        lines.append(
            "  ".join(c.ljust(w) if words or i == 0 else c.rjust(w) for i, (c, w) in enumerate(cells)).rstrip()
        )
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
