"""The register of losses: a loss is one file that decorates its function (or module) with its card."""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, ParamSpec, TypeVar, Union, get_args, get_origin, get_type_hints

from torch import nn

from plackett.errors import InputError, UnknownOptionError, did_you_mean

P = ParamSpec("P")
R = TypeVar("R")
M = TypeVar("M", bound=nn.Module)

TENSORS = ("student", "teacher", "target")
# What changes from call to call, and so belongs to a module's forward rather than to its constructor.
PER_CALL = ("mask", "num_items")


@dataclass(frozen=True)
class Card:
    """What there is to know of a loss before using it."""

    title: str
    equation: str
    paper: str
    defaults: str
    deviations: str = "none"
    layers: str = ""

    def text(self, name: str) -> str:
        rows = [("equation", self.equation), ("paper", self.paper), ("published defaults", self.defaults)]
        rows += [("reads layers", self.layers)] if self.layers else []
        rows += [("our deviations", self.deviations)]
        body = "\n".join(f"{label}\n{_indent(words)}" for label, words in rows)
        return f"{name}: {self.title}\n{body}"

    def __str__(self) -> str:
        return self.text(self.title)


@dataclass(frozen=True)
class OptionType:
    """What an option may be: its named values, a number, a flag, and whether None is one."""

    values: tuple[Any, ...] = ()
    number: type[float] | type[int] | None = None
    optional: bool = False
    flag: bool = False

    @classmethod
    def of(cls, hint: Any) -> OptionType:
        parts = get_args(hint) if isinstance(hint, types.UnionType) or get_origin(hint) is Union else (hint,)
        given = [part for part in parts if part is not type(None)]
        only = given[0] if len(given) == 1 else None
        values = get_args(only) if get_origin(only) is Literal else ()
        return cls(values, only if only in (int, float) else None, len(given) < len(parts), only is bool)


@dataclass(frozen=True)
class Loss:
    """One registered loss: its function, where it has one, and its hand-written module, where it has parameters."""

    name: str
    module_name: str
    card: Card
    function: Callable[..., Any] | None = None
    module: type[nn.Module] | None = None
    features: bool = False
    soft_targets: bool = False
    picks_the_label: bool = False  # the label is a choice of its own, also where the teacher does not offer it
    tensors: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    options: dict[str, inspect.Parameter] = field(default_factory=dict)

    @functools.cached_property
    def types(self) -> dict[str, OptionType]:
        """What each option may be, read off its annotation."""
        source = self.function if self.module is None else self.module.__init__
        hints = get_type_hints(source)
        return {name: OptionType.of(hints[name]) for name in self.options if name in hints}

    @property
    def called(self) -> str:
        """What a caller of the function calls it."""
        return self.name if self.function is None else self.function.__name__

    @property
    def reads_target(self) -> bool:
        return "target" in self.tensors

    @property
    def reads_teacher(self) -> bool:
        return "teacher" in self.tensors


LOSSES: dict[str, Loss] = {}


def loss(
    card: Card,
    module: str,
    *,
    name: str = "",
    features: bool = False,
    soft_targets: bool = False,
    picks_the_label: bool = False,
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Registers a function `f(student, [teacher, [target]], *, options...)`, whose twin is `module`.

    `name` is what people call it by, the function's own by default.
    """

    def register(function: Callable[P, R]) -> Callable[P, R]:
        parameters = inspect.signature(function).parameters
        _add(
            Loss(
                name=name or function.__name__,
                module_name=module,
                card=card,
                function=function,
                features=features,
                soft_targets=soft_targets,
                picks_the_label=picks_the_label,
                tensors=tuple(n for n in TENSORS if n in parameters),
                optional=tuple(n for n in TENSORS if n in parameters and parameters[n].default is None),
                options={n: p for n, p in parameters.items() if n not in TENSORS and n not in PER_CALL},
            )
        )
        return function

    return register


def loss_module(
    name: str, card: Card, *, features: bool = True, function: Callable[..., Any] | None = None
) -> Callable[[type[M]], type[M]]:
    """Registers a hand-written module, for a loss with parameters of its own that an optimiser must be given.

    `function`, where there is one, is what is left of the loss without its parameters; `functional` exports it.
    """

    def register(module: type[M]) -> type[M]:
        options = {n: p for n, p in inspect.signature(module.__init__).parameters.items() if n != "self"}
        tensors = ("student", "teacher")
        _add(Loss(name, module.__name__, card, function, module, features, tensors=tensors, options=options))
        return module

    return register


def _add(entry: Loss) -> None:
    if entry.name in LOSSES:
        raise ValueError(f"Two losses are named {entry.name!r}; rename one of them.")
    LOSSES[entry.name] = entry


def get(name: str) -> Loss:
    for entry in LOSSES.values():  # "cross_entropy" is "ce"
        if entry.function is not None and entry.function.__name__ == name:
            return entry
    if not isinstance(name, str) or name not in LOSSES:
        raise InputError(f"There is no loss named {name!r}; {did_you_mean(name, LOSSES)}.")
    return LOSSES[name]


def check_options(entry: Loss, options: dict[str, Any]) -> None:
    """Every option must be one of the loss's own, and those without a default must be there."""
    for name in options:
        if name not in entry.options:
            raise UnknownOptionError(
                f"Loss {entry.name!r} has no option {name!r}; {did_you_mean(name, entry.options)}."
            )
    for name, parameter in entry.options.items():
        if parameter.default is parameter.empty and name not in options:
            raise InputError(f"Loss {entry.name!r} needs {name}; give it, e.g. {name}=64.")


def _indent(text: str) -> str:
    return "\n".join(f"    {line.strip()}" for line in text.strip().splitlines())
