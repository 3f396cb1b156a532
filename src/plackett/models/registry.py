"""The register of networks: a network is a function from a number of classes to a module, under a name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import nn

from plackett.errors import InputError, did_you_mean

MODELS: dict[str, Callable[..., nn.Module]] = {}


def register(make: Callable[..., nn.Module]) -> Callable[..., nn.Module]:
    """Registers `make(classes, **options)` under its own name."""
    if make.__name__ in MODELS:
        raise ValueError(f"Two models are named {make.__name__!r}; rename one of them.")
    MODELS[make.__name__] = make
    return make


def names() -> tuple[str, ...]:
    return tuple(sorted(MODELS))


def create(name: str, *, classes: int, **options: Any) -> nn.Module:
    """The network called `name` with so many classes, its weights drawn from torch's current random state."""
    if name not in MODELS:
        raise InputError(f"There is no model named {name!r}; {did_you_mean(name, MODELS)}.")
    return MODELS[name](classes, **options)


def parameters(model: nn.Module) -> int:
    """How many numbers the network holds."""
    return sum(p.numel() for p in model.parameters())
