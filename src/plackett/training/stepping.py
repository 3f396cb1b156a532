"""What a step does besides the optimiser's own: smaller parts, a bounded gradient, a running average."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from plackett.data import Batch
from plackett.errors import InputError
from plackett.teachers import Signals


@dataclass(frozen=True)
class Stepping:
    """How a step is taken.

    Args:
        parts: a batch goes through the student in so many parts, whose gradients are added up: less memory, the same
            step, but for batch norms and for losses that compare pictures of a batch, which see a part at a time.
        clip: the gradient's norm is brought down to this.
        average: decay of a running mean of the weights, which is then what is tested and kept.
    """

    parts: int = 1
    clip: float | None = None
    average: float | None = None

    def __post_init__(self) -> None:
        if self.parts < 1:
            raise InputError(f"A batch is taken in at least 1 part, not {self.parts}.")
        if self.clip is not None and not 0 < self.clip < math.inf:
            raise InputError(f"A gradient is clipped to a norm above 0, not {self.clip:g}.")
        if self.average is not None and not 0 < self.average < 1:
            raise InputError(f"The decay of a running average lies between 0 and 1, not at {self.average:g}.")


class Average:
    """A running mean of a network's weights; buffers, such as a batch norm's, are copied as they are."""

    def __init__(self, model: nn.Module, decay: float) -> None:
        self.model = copy.deepcopy(model).requires_grad_(False)
        self.decay = decay

    @torch.no_grad()
    def update(self, model: nn.Module, step: int | Tensor) -> None:
        """After `step`, counted from 0. The decay begins at 0.1 and is at most (1 + n) / (10 + n)."""
        decay = min(self.decay, (1 + int(step)) / (10 + int(step)))
        ours, theirs = ([each.detach() for each in both.parameters()] for both in (self.model, model))
        torch._foreach_lerp_(ours, theirs, 1 - decay)
        for mine, other in zip(self.model.buffers(), model.buffers(), strict=True):
            mine.copy_(other)


def parted(batch: Batch, signals: Signals | None, parts: int) -> Iterator[tuple[Batch, Signals | None]]:
    """The batch and what the teacher says of it, in so many parts of nearly the same size."""
    size = -(-len(batch.targets) // parts)
    for start in range(0, len(batch.targets), size):
        rows = slice(start, start + size)
        part = Batch(batch.inputs[rows], batch.targets[rows], batch.indices[rows], batch.epoch)
        if signals is None:
            yield part, None
            continue
        features = None if signals.features is None else {name: x[rows] for name, x in signals.features.items()}
        yield part, Signals(signals.logits[rows], features)
