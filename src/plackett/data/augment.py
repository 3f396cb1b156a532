"""Augmentations in two steps: what is random is drawn for a whole epoch, and then applied to any pictures of it."""

from __future__ import annotations

from typing import Protocol

import torch
import torch.nn.functional as F
from torch import Generator, Tensor


class Augment(Protocol):
    """`draw` gives one row of random numbers a picture; `apply` uses the rows of the pictures it is given."""

    def draw(self, n: int, generator: Generator) -> Tensor: ...

    def apply(self, inputs: Tensor, drawn: Tensor) -> Tensor: ...


class Shift:
    """Moves a picture by up to `pixels` in each direction; what comes in from outside is 0."""

    def __init__(self, pixels: int = 1) -> None:
        self.pixels = pixels

    def draw(self, n: int, generator: Generator) -> Tensor:
        return torch.randint(0, 2 * self.pixels + 1, (n, 2), generator=generator)

    def apply(self, inputs: Tensor, drawn: Tensor) -> Tensor:
        n, channels, height, width = inputs.shape
        padded = F.pad(inputs, [self.pixels] * 4)
        rows = drawn[:, 0, None] + torch.arange(height, device=inputs.device)
        columns = drawn[:, 1, None] + torch.arange(width, device=inputs.device)
        picture = torch.arange(n, device=inputs.device)[:, None, None, None]
        channel = torch.arange(channels, device=inputs.device)[:, None, None]
        return padded[picture, channel, rows[:, None, :, None], columns[:, None, None, :]]

    def __repr__(self) -> str:
        return f"Shift(pixels={self.pixels})"
