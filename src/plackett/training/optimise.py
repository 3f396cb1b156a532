"""How a student is optimised: the numbers of a recipe, and the optimiser and schedule made from them."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from torch import nn
from torch.optim import AdamW, Optimizer
from torch.optim.lr_scheduler import LambdaLR, LRScheduler

from plackett.errors import InputError


@dataclass(frozen=True)
class Recipe:
    """AdamW with a cosine schedule from `learning_rate` to 0, stepped once a batch."""

    epochs: int
    batch_size: int
    learning_rate: float = 1e-3
    weight_decay: float = 0.0

    def __post_init__(self) -> None:
        for name in ("epochs", "batch_size"):
            if getattr(self, name) < 1:
                raise InputError(f"A recipe's {name} must be at least 1, not {getattr(self, name)}.")
        if not 0 < self.learning_rate < math.inf:
            raise InputError(f"A recipe's learning_rate must be above 0 and finite, not {self.learning_rate:g}.")

    def optimiser(self, parameters: Iterable[nn.Parameter]) -> Optimizer:
        return AdamW(list(parameters), lr=self.learning_rate, weight_decay=self.weight_decay, fused=True)

    def scheduler(self, optimiser: Optimizer, steps_per_epoch: int) -> LRScheduler:
        steps = self.epochs * steps_per_epoch
        return LambdaLR(optimiser, lambda step: 0.5 * (1 + math.cos(math.pi * min(step, steps) / steps)))

    def as_dict(self) -> dict[str, Any]:
        return {"optimiser": "AdamW", "schedule": "cosine", **asdict(self)}
