"""Knowledge distillation by the Plackett-Luce choice model.

>>> import torch, plackett
>>> student, teacher = torch.tensor([[2.0, 1.0, 0.0]]), torch.tensor([[3.0, 1.0, 2.0]])
>>> plackett.PLDLoss()(student, teacher, torch.tensor([0]))
tensor(0.5925)
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

# Where each public name lives. Looked up on first use, so that `plackett --help` does not wait for torch.
_HOMES = {
    "plackett.modules": (
        "ATLoss",
        "CrossEntropyLoss",
        "DISTLoss",
        "DKDLoss",
        "FitNetLoss",
        "KDLoss",
        "ListMLELoss",
        "PKTLoss",
        "PLDLoss",
        "PositionListMLELoss",
        "RKDLoss",
        "SPLoss",
        "VIDLoss",
    ),
    "plackett.objectives": ("Objective",),
    "plackett.vocabulary": ("FusedLinearPLDLoss", "LinearTeacher", "SparsePLDLoss", "SparseTeacher"),
    "plackett.losses.standardize": ("standardize",),
    "plackett.checks": ("debug",),
    "plackett.errors": ("InputError", "PlackettError"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}
_MODULES = ("functional", "kernels", "losses", "modules", "objectives", "presets", "reference")

if TYPE_CHECKING:
    from plackett import functional as functional
    from plackett import kernels as kernels
    from plackett import losses as losses
    from plackett import modules as modules
    from plackett import objectives as objectives
    from plackett import presets as presets
    from plackett import reference as reference
    from plackett.checks import debug as debug
    from plackett.errors import InputError as InputError
    from plackett.errors import PlackettError as PlackettError
    from plackett.losses.standardize import standardize as standardize
    from plackett.modules import ATLoss as ATLoss
    from plackett.modules import CrossEntropyLoss as CrossEntropyLoss
    from plackett.modules import DISTLoss as DISTLoss
    from plackett.modules import DKDLoss as DKDLoss
    from plackett.modules import FitNetLoss as FitNetLoss
    from plackett.modules import KDLoss as KDLoss
    from plackett.modules import ListMLELoss as ListMLELoss
    from plackett.modules import PKTLoss as PKTLoss
    from plackett.modules import PLDLoss as PLDLoss
    from plackett.modules import PositionListMLELoss as PositionListMLELoss
    from plackett.modules import RKDLoss as RKDLoss
    from plackett.modules import SPLoss as SPLoss
    from plackett.modules import VIDLoss as VIDLoss
    from plackett.objectives import Objective as Objective
    from plackett.vocabulary import FusedLinearPLDLoss as FusedLinearPLDLoss
    from plackett.vocabulary import LinearTeacher as LinearTeacher
    from plackett.vocabulary import SparsePLDLoss as SparsePLDLoss
    from plackett.vocabulary import SparseTeacher as SparseTeacher


def __getattr__(name: str) -> Any:
    if name in _HOME_OF:
        value = getattr(importlib.import_module(_HOME_OF[name]), name)
        globals()[name] = value
        return value
    if name in _MODULES:
        return importlib.import_module(f"plackett.{name}")
    raise AttributeError(f"module 'plackett' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOME_OF, *_MODULES])


__all__ = ["__version__", *sorted(_HOME_OF), *_MODULES]
