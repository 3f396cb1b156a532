"""Every loss, one file a family: its function and its card. Adding a loss is adding one file here.

>>> "pld" in names()
True
>>> print(create("kd", temperature=2.0))
KDLoss(temperature=2.0)
"""

from __future__ import annotations

import importlib
import pkgutil
from typing import Any

from torch import nn

from plackett.losses.registry import LOSSES, Card, get

for _found in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_found.name}")


def names() -> tuple[str, ...]:
    """The registered names, which `create`, `card` and `plackett.Objective` take."""
    return tuple(sorted(LOSSES))


def card(name: str) -> Card:
    """Equation, paper, published defaults and our deviations.

    >>> print(card("pld").paper)
    Bassam, Zhu, Bian: PLD, A Choice-Theoretic List-Wise Knowledge Distillation, NeurIPS 2025
    """
    return get(name).card


def create(name: str, **options: Any) -> nn.Module:
    """The loss as a module, with some of its options set."""
    # The twins are made to the right of this package in the house; they are looked up only when someone asks for one.
    modules = importlib.import_module("plackett.modules")
    module: nn.Module = modules.create(name, **options)
    return module


__all__ = ["Card", "card", "create", "names"]
