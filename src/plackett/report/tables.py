"""A table: as HTML in the page, and as CSV beside it with the figures unrounded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from plackett.experiments.plain import comma_separated


@dataclass(frozen=True)
class Cell:
    """What a table shows, and what its file holds of it; `kind` is a class of style.css."""

    text: str
    value: object = None
    kind: str = ""

    @property
    def raw(self) -> object:
        return self.text if self.value is None else self.value


@dataclass(frozen=True)
class Table:
    """`columns` are titles; the first cell of a row is its head. `words` are the columns that are not figures.

    `sheet` is what the file holds where that is more than the cells: a head and its rows.
    `quiet`: the caption stands above it already; `dense`: many columns.
    """

    name: str
    caption: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell | str]]
    words: Sequence[int] = (0,)
    kinds: Sequence[str] = ()
    sheet: Sequence[Sequence[object]] | None = None
    quiet: bool = False
    dense: bool = False

    @property
    def cells(self) -> list[tuple[str, list[Cell]]]:
        """Each row with its kind."""
        kinds = [*self.kinds, *[""] * (len(self.rows) - len(self.kinds))]
        made = [[cell if isinstance(cell, Cell) else Cell(cell) for cell in row] for row in self.rows]
        return list(zip(kinds, made, strict=True))

    def csv(self) -> bytes:
        sheet: Sequence[Sequence[object]] = self.sheet or [
            list(self.columns),
            *([cell.raw for cell in row] for _, row in self.cells),
        ]
        return comma_separated([[figure(value) for value in row] for row in sheet]).encode("utf-8", "replace")


def figure(value: Any) -> object:
    """A number as a file holds it: six digits; nothing where there is none.

    >>> figure(1 / 3), figure(None), figure(7)
    ('0.333333', '', 7)
    """
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else value
