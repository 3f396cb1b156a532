"""Recipes: what is trained, how, and with which methods, as a file says; read without torch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from plackett import presets, yamls
from plackett.errors import InputError, did_you_mean

SWEEPS = ("tau", "ce-weight", "weights", "standardize", "divergence", "epochs")
SHIPPED = ("cifar100", "digits", *(f"{data}-{sweep}" for data in ("cifar100", "digits") for sweep in SWEEPS))


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _known(cls, given: Any) -> Any:
        for key in given if isinstance(given, Mapping) else ():
            if key not in cls.model_fields:
                raise ValueError(f"there is no key {key!r}; {did_you_mean(key, cls.model_fields)}")
        return given


class Training(Strict):
    """AdamW with a cosine schedule; `padding` and `flip` are the augmentation."""

    epochs: int = Field(ge=1)
    batch_size: int = Field(ge=1)
    learning_rate: float = Field(gt=0, allow_inf_nan=False)
    weight_decay: float = Field(ge=0, allow_inf_nan=False)
    padding: int = Field(default=0, ge=0)
    flip: bool = False
    drop_last: bool = False


class Method(Strict):
    """A preset with options for its own term, or the terms of an objective; `reads` names the features it takes.

    `changes` are options of any of its terms, said last; a rate or decay of its own stands for the recipe's.
    """

    title: str
    preset: str | None = None
    options: dict[str, Any] = {}
    terms: dict[str, Any] | None = None
    reads: Literal["stages", "second", "last", "embedding"] | None = None
    changes: dict[str, dict[str, Any]] = {}
    learning_rate: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    weight_decay: float | None = Field(default=None, ge=0, allow_inf_nan=False)

    @model_validator(mode="after")
    def _one(self) -> Self:
        if (self.preset is None) == (self.terms is None):
            raise ValueError("a method has either a preset or terms")
        return self


class Pair(Strict):
    teacher: str
    student: str


class Smoke(Strict):
    """The size that shows within minutes whether everything works."""

    epochs: int = Field(ge=1)
    seeds: list[int]
    pairs: list[str]
    methods: list[str]


class Sweep(Strict):
    """`keys` as `plackett sweep` takes them; `methods` are trained along as they are."""

    keys: list[str]
    methods: list[str] = []


class Recipe(Strict):
    """`extends` names the recipe that this one changes, whose teachers it shares."""

    name: str
    extends: str | None = None
    data: Literal["cifar100", "digits"]
    title: str
    seeds: list[int]
    baseline: str
    training: Training
    teacher_training: Training | None = None
    evaluate_every: int = Field(ge=1)
    checkpoint_every: int = Field(ge=1)
    pairs: dict[str, Pair]
    methods: dict[str, Method]
    default_pairs: list[str]
    default_methods: list[str]
    smoke: Smoke
    sweep: Sweep | None = None

    @model_validator(mode="after")
    def _named(self) -> Self:
        for what, named, known in (
            ("pair", [*self.default_pairs, *self.smoke.pairs], self.pairs),
            ("method", [*self.default_methods, *self.smoke.methods, self.baseline, *self._along], self.methods),
        ):
            for name in named:
                if name not in known:
                    raise ValueError(f"there is no {what} {name!r}; {did_you_mean(name, known)}")
        return self

    @property
    def _along(self) -> list[str]:
        return [] if self.sweep is None else self.sweep.methods

    @property
    def for_teacher(self) -> Training:
        return self.teacher_training or self.training

    @property
    def teachers_of(self) -> str:
        """The recipe under whose name teachers are kept."""
        return self.extends or self.name

    def training_of(self, method: str) -> Training:
        said = self.methods[method]
        own = {"learning_rate": said.learning_rate, "weight_decay": said.weight_decay}
        return self.training.model_copy(update={key: value for key, value in own.items() if value is not None})

    def chosen_pairs(self, names: Sequence[str] | None) -> list[str]:
        return self._chosen("pair", names, self.pairs, self.default_pairs)

    def chosen_methods(self, names: Sequence[str] | None) -> list[str]:
        return self._chosen("method", names, self.methods, self.default_methods)

    def _chosen(
        self, what: str, names: Sequence[str] | None, known: Mapping[str, object], usual: Sequence[str]
    ) -> list[str]:
        for name in names or ():
            if name not in known:
                raise InputError(f"The recipe {self.name} has no {what} {name!r}; {did_you_mean(name, known)}.")
        return list(dict.fromkeys(usual if names is None else names))

    def smoked(self, epochs: int | None = None) -> Recipe:
        """The same at its smoke size."""
        small = self.smoke
        return self.model_copy(
            update={"seeds": small.seeds, "default_pairs": small.pairs, "default_methods": small.methods}
        ).lasting(epochs or small.epochs, teacher=True)

    def lasting(self, epochs: int, *, teacher: bool = False) -> Recipe:
        """The same for so many epochs."""
        if epochs < 1:
            raise InputError(f"Training takes at least 1 epoch, not {epochs}.")
        update: dict[str, Any] = {"training": self.training.model_copy(update={"epochs": epochs})}
        update["teacher_training"] = self.for_teacher.model_copy(update={"epochs": epochs} if teacher else {})
        return self.model_copy(update=update)

    def terms(self, method: str, pair: str, taps: Sequence[str] = ()) -> dict[str, Any]:
        """What `Objective` takes; `taps` are the names of the student's features."""
        return merged(self._terms(method, pair, taps), self.methods[method].changes)

    def _terms(self, method: str, pair: str, taps: Sequence[str]) -> dict[str, Any]:
        said = self.methods[method]
        if said.terms is not None:
            return dict(said.terms)
        assert said.preset is not None
        options = dict(said.options)
        if said.reads is not None:
            stages = [tap for tap in taps if tap.startswith("stage") and not tap.endswith("_pre")]
            options["taps"] = {
                "stages": stages, "second": stages[1:2], "last": stages[-1:], "embedding": ["embedding"]
            }[said.reads]  # fmt: skip
        known = pair if pair in presets.pairs("cifar100") else None
        return presets.get("cifar100", said.preset, known, **options)


def merged(terms: Mapping[str, Any], changes: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """An objective's terms with these options of them; a term may be a weight alone.

    >>> merged({"ce": 1.0, "kd": {"weight": 0.9}}, {"ce": {"weight": 0.5}, "kd": {"temperature": 2.0}})
    {'ce': {'weight': 0.5}, 'kd': {'weight': 0.9, 'temperature': 2.0}}
    """
    found = dict(terms)
    for term, options in changes.items():
        held = found.get(term, {})
        found[term] = {**(held if isinstance(held, Mapping) else {"weight": held}), **options}
    return found


def shipped(file: str) -> str:
    return (files("plackett") / "recipes" / file).read_text(encoding="utf-8")


def read(which: str) -> Recipe:
    """A recipe of the package by its name, or one in a file of your own."""
    if which in SHIPPED:
        return parse(shipped(f"{which}.yaml"), f"recipes/{which}.yaml")
    path = Path(which)
    if path.suffix not in (".yaml", ".yml"):
        raise InputError(f"There is no recipe {which!r}; {did_you_mean(which, SHIPPED)}. A file ends in .yaml.")
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"The recipe {path} cannot be read: {error}.") from error
    return parse(text, str(path))


def parse(text: str, where: str) -> Recipe:
    try:
        return Recipe.model_validate(_extended(yamls.load(text), where))
    except yamls.YAMLError as error:
        raise InputError(f"The recipe {where} is not YAML: {' '.join(str(error).split())}.") from error
    except ValidationError as error:
        found = error.errors()[0]
        at = ".".join(map(str, found["loc"]))
        message = found["msg"].removeprefix("Value error, ")
        raise InputError(f"The recipe {where}{f', {at}' if at else ''}: {message}.") from error


def _extended(given: Any, where: str) -> Any:
    """What is said, and for the rest the recipe that it extends: training key by key, pairs and methods by name."""
    if not isinstance(given, Mapping) or given.get("extends") is None:
        return given
    base = given["extends"]
    if base not in SHIPPED:
        raise InputError(f"The recipe {where} extends {base!r}; {did_you_mean(base, SHIPPED)}.")
    held = _extended(yamls.load(shipped(f"{base}.yaml")), base)
    merged = {key: {**held[key], **(given.get(key) or {})} for key in ("training", "pairs", "methods")}
    teacher = {"teacher_training": held.get("teacher_training") or held["training"]}
    return {**held, **teacher, **given, **merged, "extends": held.get("extends") or base}
