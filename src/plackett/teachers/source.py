"""What every teacher offers, live, cached or several in one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Protocol

from torch import Tensor

from plackett.data import Batch


class Signals(NamedTuple):
    """What a teacher says of a batch: `logits` `[B, C]` float32 (`-inf`: not offered), and features by name."""

    logits: Tensor
    features: Mapping[str, Tensor] | None = None


class Teacher(Protocol):
    """Gives signals without a gradient. A batch says which pictures it shows and how, so that a cache can meet it."""

    @property
    def classes(self) -> int: ...

    def signals(self, batch: Batch) -> Signals: ...
