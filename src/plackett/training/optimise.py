"""How a student is optimised: the numbers of a recipe, and the optimiser and schedule made from them."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import AdamW, Optimizer

from plackett.errors import InputError


@dataclass(frozen=True)
class Schedule:
    """A cosine from `peak` to 0 over `steps` steps: a function of the step, so there is nothing to save or to replay.

    >>> [round(Schedule(1.0, 4).at(step), 3) for step in range(6)]
    [1.0, 0.854, 0.5, 0.146, 0.0, 0.0]
    """

    peak: float
    steps: int

    def at(self, step: int) -> float:
        return self.peak * (0.5 * (1 + math.cos(math.pi * min(step, self.steps) / self.steps)))

    def table(self, device: torch.device) -> Tensor:
        """Every step's rate, for a graph that looks its own step up; the last one goes on for ever."""
        return torch.tensor([self.at(step) for step in range(self.steps + 1)], dtype=torch.float32, device=device)


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
        trained = list(parameters)
        if trained[0].device.type == "cpu":
            return AdamW(trained, lr=self.learning_rate, weight_decay=self.weight_decay, fused=True)
        # A rate that lives on the device reaches a captured graph, which would otherwise keep the first one.
        rate = torch.tensor(self.learning_rate, device=trained[0].device)
        return AdamW(trained, lr=rate, weight_decay=self.weight_decay, fused=True, capturable=True)

    def schedule(self, steps_per_epoch: int) -> Schedule:
        return Schedule(self.learning_rate, self.epochs * steps_per_epoch)

    def as_dict(self) -> dict[str, Any]:
        return {"optimiser": "AdamW", "schedule": "cosine", **asdict(self)}
