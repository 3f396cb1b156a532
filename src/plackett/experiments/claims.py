"""What a paper claims, and whether these cells show it: each comparison seen, not seen or undecided; without torch.

A claim about several methods is seen where it beats every one of them, and not seen where it loses to one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from plackett import yamls
from plackett.experiments.cell_table import Line, size, tables
from plackett.experiments.cells import Cell
from plackett.experiments.recipes import Strict, shipped
from plackett.experiments.statistics import FEWEST, Difference, Finding


class Verdict(StrEnum):
    SEEN = "seen"
    NOT_SEEN = "not seen"
    UNDECIDED = "undecided"
    UNTRIED = "not run"


class Claim(Strict):
    text: str
    better: str
    than: list[str]


class Claims(Strict):
    recipe: str
    source: str
    claims: list[Claim]
    excepted: Mapping[str, Mapping[str, list[str]]] = {}


@dataclass(frozen=True)
class Comparison:
    """Of one pair of networks: `difference` is None where a cell is missing."""

    than: str
    difference: Difference | None

    @property
    def verdict(self) -> Verdict:
        if self.difference is None:
            return Verdict.UNTRIED
        found = {Finding.HIGHER: Verdict.SEEN, Finding.LOWER: Verdict.NOT_SEEN}
        return found.get(self.difference.finding, Verdict.UNDECIDED)


@dataclass(frozen=True)
class Answer:
    claim: Claim
    pair: str
    comparisons: list[Comparison]

    @property
    def verdict(self) -> Verdict:
        found = [comparison.verdict for comparison in self.comparisons]
        for verdict in (Verdict.NOT_SEEN, Verdict.UNTRIED, Verdict.UNDECIDED):
            if verdict in found:
                return verdict
        return Verdict.SEEN


def of_paper(text: str | None = None) -> Claims:
    held = yamls.load(shipped("cifar100-claims.yaml") if text is None else text)
    held["excepted"] = held.pop("except", {})
    return Claims.model_validate(held)


def answers(cells: Iterable[Cell], said: Claims) -> list[Answer]:
    """An answer for each claim and each pair of networks that has cells; what the paper excepts is left out.

    Cells of fewer epochs or pictures than the paper's answer nothing.
    """
    mine = [cell for cell in cells if cell.recipe == said.recipe and (cell.epochs, cell.test) == size()]
    found = []
    for claim in said.claims:
        for pair in dict.fromkeys(cell.pair for cell in mine):
            here = [cell for cell in mine if cell.pair == pair]
            left_out = said.excepted.get(pair, {}).get(claim.better, [])
            than = [method for method in claim.than if method not in left_out]
            if than:
                found.append(Answer(claim, pair, [Comparison(m, _against(here, claim.better, m)) for m in than]))
    return found


def _against(cells: Sequence[Cell], better: str, than: str) -> Difference | None:
    if not {better, than} <= {cell.method for cell in cells}:
        return None
    [table] = tables(cells, than)
    lines: dict[str, Line] = {line.method: line for line in table.lines}
    return lines[better].difference


def rows(found: Sequence[Answer]) -> list[list[str]]:
    """A head, and a row an answer: the claim, where, the verdict, and every difference behind it."""
    head = ["claim", "pair", "verdict", "differences, points [95 %]"]
    return [head, *([a.claim.text, a.pair, str(a.verdict), _figures(a)] for a in found)]


def _figures(answer: Answer) -> str:
    return "; ".join(
        f"to {c.than} {c.difference.text(100, 2) if c.difference is not None else 'not run'}"
        for c in answer.comparisons
    )


def note(said: Claims) -> str:
    return (
        f"Claims: {said.source}. Seen: the 95 % interval of the paired differences lies above 0 for every method "
        "named; not seen: below 0 for one of them; undecided: neither, or fewer than "
        f"{FEWEST} seeds. No interval is corrected for the number of claims."
    )
