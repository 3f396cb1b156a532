"""A loss as it is written on the command line: a name, a name with options, or the terms of an objective."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from plackett import yamls
from plackett.errors import InputError
from plackett.objectives import Objective


@dataclass(frozen=True)
class Given:
    """What it is called, and what `Objective` takes."""

    title: str
    terms: Mapping[str, Any]

    def objective(self) -> Objective:
        """The objective, which must read logits alone."""
        objective = Objective(self.terms)
        if objective.reads_features:
            raise InputError(f"{self.title} reads features of a network, and a plane of logits has none.")
        return objective


def given(text: str) -> Given:
    """
    >>> given("pld:temperature=0.5")
    Given(title='pld:temperature=0.5', terms={'pld': {'temperature': 0.5}})
    >>> given("{ce: 0.1, kd: {weight: 0.9}}").terms
    {'ce': 0.1, 'kd': {'weight': 0.9}}
    """
    if text.lstrip().startswith("{"):
        try:
            terms = yamls.load(text)
        except yamls.YAMLError as error:
            raise InputError(f"The loss {text!r} is not YAML: {' '.join(str(error).split())}.") from error
        return Given(text, terms)
    name, _, said = text.partition(":")
    return Given(text, {name: {"weight": 1.0} if not said else dict(_option(text, each) for each in said.split(","))})


def over_temperatures(temperatures: Sequence[float]) -> list[Given]:
    """PLD at each of them.

    >>> [each.title for each in over_temperatures([2.0, 0.1])]
    ['PLD, τ = 2', 'PLD, τ = 0.1']
    """
    return [Given(f"PLD, τ = {tau:g}", {"pld": {"temperature": tau}}) for tau in temperatures]


# The three of the paper's appendix, which names no temperatures: 1 each.
PAPER = (
    Given("DIST", {"dist": {"temperature": 1.0}}),
    Given("KD", {"kd": {"temperature": 1.0}}),
    Given("PLD", {"pld": {"temperature": 1.0}}),
)


def _option(text: str, each: str) -> tuple[str, Any]:
    key, equals, value = each.partition("=")
    if not equals or not key.strip():
        raise InputError(f"The loss {text!r} is not understood at {each!r}; write NAME:option=value,option=value.")
    return key.strip(), yamls.load(value)
