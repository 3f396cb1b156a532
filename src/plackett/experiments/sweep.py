"""A sweep is a recipe with more methods: each value of a key of an objective is a method, and all share a cohort.

    objective.METHOD.OPTION=a,b   an option of the method's own term, its `weight`, `standardize`, or `ce_weight`: the
                                  weight a of cross-entropy, with 1 - a of the method's own term
    training.KEY=a,b              a key of the recipe's training: each value is a recipe of its own, of one teacher

Read without torch.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from plackett import yamls
from plackett.errors import InputError, did_you_mean
from plackett.experiments.recipes import Method, Recipe, Training

HEADS = ("objective", "training")
OF_METHOD = ("learning_rate", "weight_decay")  # of the recipe's training, but each student may have its own
FORM = "write KEY=VALUE,VALUE, such as objective.pld.temperature=0.5,1,2 or training.epochs=50,100"


@dataclass(frozen=True)
class Key:
    """`method` is None for a key of the training; `values` map what is written to what is meant."""

    method: str | None
    option: str
    values: Mapping[str, Any]

    @property
    def text(self) -> str:
        return f"training.{self.option}" if self.method is None else f"objective.{self.method}.{self.option}"


@dataclass(frozen=True)
class Point:
    """One combination of values: which method of which recipe it is, and the settings by option."""

    recipe: Recipe
    method: str
    of: str  # the method of the recipe that was changed, or that stayed as it is
    settings: Mapping[str, str]
    usual: bool  # just what the recipe says


@dataclass(frozen=True)
class Plan:
    """`recipes` are carried out one after the other, each with all of `methods`."""

    recipes: list[Recipe]
    methods: list[str]
    points: list[Point]
    keys: list[Key]

    @property
    def title(self) -> str:
        return ", ".join(f"{key.text}={','.join(key.values)}" for key in self.keys)


def parse(text: str, recipe: Recipe) -> Key:
    """A key as it is typed, held to what the recipe has."""
    name, equals, said = text.partition("=")
    head, _, rest = name.strip().partition(".")
    if not equals or not rest:
        raise InputError(f"The sweep {text!r} is not understood; {FORM}.")
    if head not in HEADS:
        raise InputError(f"There is nothing to sweep under {head!r}; {did_you_mean(head, HEADS)}; {FORM}.")
    values = {_written(value): value for value in values_of(text, said)}
    if head == "training":
        if rest not in Training.model_fields:
            raise InputError(f"A recipe's training has no key {rest!r}; {did_you_mean(rest, Training.model_fields)}.")
        return Key(None, rest, values)
    method, _, option = rest.rpartition(".")
    if not method:
        raise InputError(f"The sweep {text!r} names no option; {FORM}.")
    if method not in recipe.methods:
        raise InputError(f"The recipe {recipe.name} has no method {method!r}; {did_you_mean(method, recipe.methods)}.")
    return Key(method, option, values)


def plan(recipe: Recipe, given: Sequence[str], along: Sequence[str] = ()) -> Plan:
    """Every combination that is asked for; `along` are methods that are trained as they are.

    Without a key of an objective, every value of the training's keys is tried with `along`.
    """
    if not given:
        raise InputError(f"There is nothing to sweep; {FORM}.")
    keys = list({(key := parse(text, recipe)).text: key for text in given}.values())
    if len(keys) < len(given):
        raise InputError("A key is given twice; put all its values behind one: KEY=VALUE,VALUE.")
    of_training = [key for key in keys if key.method is None]
    swept = list(dict.fromkeys(key.method for key in keys if key.method is not None))
    if not swept and not along:
        raise InputError("A sweep over training alone needs methods: name them with --methods.")
    pair = recipe.default_pairs[0]
    methods: dict[str, Any] = dict(recipe.methods)
    points: list[tuple[str, str, dict[str, str]]] = []
    for method in swept:
        own = [key for key in keys if key.method == method]
        for chosen in itertools.product(*(key.values.items() for key in own)):
            settings = {key.option: written for key, (written, _) in zip(own, chosen, strict=True)}
            name = "-".join([method, *(f"{option}={written}" for option, written in settings.items())])
            changes = {key.option: value for key, (_, value) in zip(own, chosen, strict=True)}
            methods[name] = _changed(recipe, method, pair, changes, settings)
            points.append((name, method, settings))
    points += [(name, name, {}) for name in dict.fromkeys(along)]
    full = _rebuilt(recipe, {"methods": methods})
    recipes, found = [], []
    for chosen in itertools.product(*(key.values.items() for key in of_training)):
        settings = {key.option: written for key, (written, _) in zip(of_training, chosen, strict=True)}
        changed = {key.option: value for key, (_, value) in zip(of_training, chosen, strict=True)}
        one = full if not of_training else _trained(full, changed, settings)
        recipes.append(one)
        same_training = one.training == recipe.training
        for name, method, own_settings in points:
            same = _normal(full.terms(name, pair)) == _normal(recipe.terms(method, pair))
            same = same and full.training_of(name) == full.training_of(method) and same_training
            found.append(Point(one, name, method, {**own_settings, **settings}, same))
    return Plan(recipes, [name for name, _, _ in points], found, keys)


def smallest(given: Sequence[str]) -> list[str]:
    """The same keys with their first two values; of epochs 1 and 2, since those of a sweep are many.

    >>> smallest(["objective.pld.temperature=1,2,4", "training.epochs=80,240"])
    ['objective.pld.temperature=1,2', 'training.epochs=1,2']
    """
    few = (",".join(text.split(",")[:2]) for text in given)
    return ["training.epochs=1,2" if text.startswith("training.epochs=") else text for text in few]


def values_of(text: str, said: str) -> list[Any]:
    try:
        values = [None if each.strip() == "none" else yamls.load(each) for each in said.split(",")]
    except yamls.YAMLError as error:
        raise InputError(f"The values of {text!r} are not understood: {' '.join(str(error).split())}.") from error
    if any(".." in each for each in said.split(",")):
        raise InputError(
            f"The values of {text!r} are a range; a sweep takes each one with a comma, plackett tune ranges."
        )
    if any(isinstance(value, list | dict) for value in values) or any(not each.strip() for each in said.split(",")):
        raise InputError(f"The values of {text!r} must be words or numbers with commas between them.")
    return values


def _written(value: Any) -> str:
    """The same for 1 and 1.0."""
    if value is None:
        return "none"
    return f"{value:g}" if isinstance(value, int | float) and not isinstance(value, bool) else str(value).lower()


def own_term(terms: Mapping[str, Any]) -> str:
    """The term that a method is about: its first that is not cross-entropy, if there is one."""
    return next((name for name in terms if name != "ce"), next(iter(terms)))


def _normal(terms: Mapping[str, Any]) -> dict[str, Any]:
    """Equal for equal objectives: a weight alone or as an option, and what is None or left out."""
    said = {name: dict(term) if isinstance(term, Mapping) else {"weight": term} for name, term in terms.items()}
    return {
        name: {"weight": 1.0, **{key: value for key, value in term.items() if value is not None}}
        for name, term in said.items()
    }


def weight_of(term: Any) -> float:
    return float(term.get("weight", 1.0)) if isinstance(term, Mapping) else float(term)


def changed_terms(method: str, terms: Mapping[str, Any], options: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """`Method.changes` for these options of a method's own term, `ce_weight` among them."""
    own = own_term(terms)
    changes: dict[str, dict[str, Any]] = {own: {key: value for key, value in options.items() if key != "ce_weight"}}
    share = options.get("ce_weight")
    if share is not None:
        if own == "ce":
            raise InputError(f"The method {method!r} is cross-entropy alone, so ce_weight has nothing to share with.")
        if isinstance(share, bool) or not isinstance(share, int | float) or not 0 <= share <= 1:
            raise InputError(f"ce_weight lies between 0 and 1, not at {share!r}: the rest is the method's own term's.")
        weights = weight_of(terms.get("ce", 0.0)), weight_of(terms[own])
        whole = 1.0 if abs(sum(weights) - 1) < 1e-9 else weights[1]
        changes["ce"] = {"weight": float(share)}
        changes[own]["weight"] = round((1 - share) * whole, 12)
    return changes


def _changed(
    recipe: Recipe, method: str, pair: str, options: Mapping[str, Any], written: Mapping[str, str]
) -> dict[str, Any]:
    of_method = {key: value for key, value in options.items() if key in OF_METHOD}
    of_term = {key: value for key, value in options.items() if key not in OF_METHOD}
    base = recipe.methods[method]
    changes = {**base.changes}
    for term, said in (changed_terms(method, recipe.terms(method, pair), of_term) if of_term else {}).items():
        changes[term] = {**changes.get(term, {}), **said}
    title = ", ".join([base.title, *(f"{key} {value}" for key, value in written.items())])
    return {**base.model_dump(), **of_method, "title": title, "changes": changes}


def _trained(recipe: Recipe, changed: Mapping[str, Any], written: Mapping[str, str]) -> Recipe:
    name = "-".join([recipe.name, *(f"{key}={value}" for key, value in written.items())])
    training = {**recipe.training.model_dump(), **changed}
    return _rebuilt(recipe, {
        "name": name, "training": training, "teacher_training": recipe.for_teacher, "extends": recipe.teachers_of,
    })  # fmt: skip


def _rebuilt(recipe: Recipe, update: Mapping[str, Any]) -> Recipe:
    """Validated anew, which a copy is not."""
    from pydantic import ValidationError

    held = {**{key: getattr(recipe, key) for key in Recipe.model_fields}, **update}
    held["methods"] = {
        name: each.model_dump() if isinstance(each, Method) else each for name, each in held["methods"].items()
    }
    try:
        return Recipe.model_validate(held)
    except ValidationError as error:
        found = error.errors()[0]
        at = ".".join(map(str, found["loc"]))
        raise InputError(f"The sweep sets {at} to {found['input']!r}: {found['msg']}.") from error
