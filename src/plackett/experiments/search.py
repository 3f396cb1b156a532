"""What tuning may change of an objective: a range or a list of values for each option; read without torch."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from plackett.errors import InputError, did_you_mean
from plackett.experiments import sweep
from plackett.experiments.recipes import Recipe

TEMPERED = ("kd", "dist", "dkd", "pld")  # losses of logits with a temperature
FORM = "write objective.METHOD.OPTION=LOW..HIGH, LOW..HIGH:log, or A,B,C"


@dataclass(frozen=True)
class Range:
    """Numbers from `low` to `high`, drawn evenly, or evenly in their logarithm; or one of `values`."""

    low: float = 0.0
    high: float = 0.0
    log: bool = False
    values: tuple[Any, ...] = ()

    def __str__(self) -> str:
        if self.values:
            return ", ".join(map(str, self.values))
        return f"{self.low:g} to {self.high:g}{', evenly in the logarithm' if self.log else ''}"


Space = dict[str, Range]


def usual(recipe: Recipe, method: str) -> Space:
    """The learning rate within a factor of 4; the temperature from 0.5 to 8; the weight of cross-entropy up to 0.9.

    A feature loss has its own weight, within a factor of 10, in the place of the last.
    """
    rate = recipe.training_of(method).learning_rate
    space = {"learning_rate": Range(rate / 4, rate * 4, log=True)}
    terms = recipe.terms(method, recipe.default_pairs[0])
    own = sweep.own_term(terms)
    said = terms[own]
    loss = said.get("loss", own) if isinstance(said, Mapping) else own
    if loss in TEMPERED:
        space["temperature"] = Range(0.5, 8.0, log=True)
    if recipe.methods[method].reads is not None:
        weight = sweep.weight_of(said)
        space["weight"] = Range(weight / 10, weight * 10, log=True)
    elif "ce" in terms and own != "ce":
        space["ce_weight"] = Range(0.0, 0.9)
    return space


def spaces(recipe: Recipe, methods: Sequence[str], given: Sequence[str] = ()) -> dict[str, Space]:
    """What is searched for each method: what is given for it, or the usual."""
    asked: dict[str, Space] = {}
    for text in given:
        name, equals, said = text.partition("=")
        head, _, rest = name.strip().partition(".")
        method, _, option = rest.rpartition(".")
        if not equals or head != "objective" or not method or not said.strip():
            raise InputError(f"The search {text!r} is not understood; {FORM}.")
        if method not in methods:
            raise InputError(f"The search {text!r} is of no tuned objective; {did_you_mean(method, methods)}.")
        asked.setdefault(method, {})[option] = _range(text, said.strip())
    return {method: asked.get(method) or usual(recipe, method) for method in methods}


def own_values(recipe: Recipe, method: str, space: Space) -> dict[str, Any] | None:
    """What the recipe says of every searched option; None where it lies outside, or is not said."""
    terms = recipe.terms(method, recipe.default_pairs[0])
    own = terms[sweep.own_term(terms)]
    said: dict[str, Any] = dict(own) if isinstance(own, Mapping) else {"weight": own}
    training = recipe.training_of(method)
    said |= {"learning_rate": training.learning_rate, "weight_decay": training.weight_decay}
    if "ce_weight" in space and sweep.own_term(terms) != "ce":
        weights = sweep.weight_of(terms.get("ce", 0.0)), sweep.weight_of(own)
        if abs(sum(weights) - 1) < 1e-9:
            said["ce_weight"] = weights[0]
    values = {option: said.get(option) for option in space}
    for option, within in space.items():
        value = values[option]
        if within.values:
            if value not in within.values:
                return None
        elif not isinstance(value, int | float) or not within.low <= value <= within.high:
            return None
    return values


def _range(text: str, said: str) -> Range:
    number = r"\s*([-+.\de]+)\s*"
    match = re.fullmatch(rf"{number}\.\.{number}(:log)?", said)
    if match is None:
        if ".." in said:
            raise InputError(f"The search {text!r} is not understood; {FORM}.")
        return Range(values=tuple(sweep.values_of(text, said)))
    try:
        low, high = float(match[1]), float(match[2])
    except ValueError:
        raise InputError(f"The search {text!r} is not understood; {FORM}.") from None
    if not low < high or (match[3] and low <= 0):
        what = "LOW must be above 0 for a logarithm" if match[3] and low <= 0 else "LOW must be below HIGH"
        raise InputError(f"The search {text!r} is empty: {what}.")
    return Range(low, high, bool(match[3]))
