"""The nn.Module twin of every loss function, made from its signature: one source for every default.

`modules.pyi` beside this file says the same to type checkers and editors; `make stubs` writes it.

>>> PLDLoss(temperature=4.0)
PLDLoss(temperature=4.0)
"""

from __future__ import annotations

from typing import Any

from torch import nn

from plackett import checks
from plackett.losses import registry
from plackett.twins import LossModule, twin

MODULES: dict[str, type[nn.Module]] = {}

for _entry in registry.LOSSES.values():
    MODULES[_entry.name] = _entry.module or twin(_entry)
    globals()[_entry.module_name] = MODULES[_entry.name]


def create(name: str, **options: Any) -> nn.Module:
    """The module of the loss called `name`."""
    entry = registry.get(name)
    registry.check_options(entry, options)
    checks.option_values(entry, options)
    return MODULES[entry.name](**options)


__all__ = ["MODULES", "LossModule", "create", *(entry.module_name for entry in registry.LOSSES.values())]
