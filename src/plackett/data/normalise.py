"""From pixels to what a network reads."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from plackett.data.pictures import Pictures
from plackett.errors import InputError


class Normalise:
    """(pixel / 255 - mean) / std, a channel at a time, in float32.

    >>> Normalise((0.5,), (0.25,))(torch.tensor([[[[0, 255]]]], dtype=torch.uint8))
    tensor([[[[-2.,  2.]]]])
    """

    def __init__(self, mean: Sequence[float], std: Sequence[float]) -> None:
        if len(mean) != len(std) or not mean or min(std) <= 0:
            raise InputError(f"A mean and a std above 0 are needed for every channel, not {mean} and {std}.")
        self.mean, self.std = tuple(mean), tuple(std)

    def __call__(self, pixels: Tensor) -> Tensor:
        """`[N, C, H, W]` uint8 to float32, laid out as it came."""
        mean, std = self.constants(pixels.device)
        return self.apply(pixels, mean, std)

    def constants(self, device: torch.device | str) -> tuple[Tensor, Tensor]:
        """What `apply` needs on that device, as 255 times mean and std."""
        made = (torch.tensor(values, dtype=torch.float64, device=device) * 255 for values in (self.mean, self.std))
        mean, std = (values.float().view(1, -1, 1, 1) for values in made)
        return mean, std

    @staticmethod
    def apply(pixels: Tensor, mean: Tensor, std: Tensor) -> Tensor:
        # Two operations, each rounded once: the same bits on every device. In place, since memory that is new to the
        # process costs a CPU more than the arithmetic does.
        made = pixels.to(torch.float32, copy=True)
        if made.device.type == "cpu" and made.is_contiguous(memory_format=torch.channels_last):
            n, channels, height, width = made.shape
            rows = made.permute(0, 2, 3, 1).view(n * height, width * channels)  # inner loops of a row, not of 3 values
            rows.sub_(mean.flatten().repeat(width)).div_(std.flatten().repeat(width))
            return made
        return made.sub_(mean).div_(std)

    def pictures(self, pictures: Pictures) -> Pictures:
        """All of them at once, as for testing."""
        channels = pictures.inputs.shape[1]
        if channels != len(self.mean):
            raise InputError(f"The pictures have {channels} channels, but {len(self.mean)} are normalised.")
        return Pictures(self(pictures.inputs), pictures.targets, pictures.classes)

    def __repr__(self) -> str:
        return f"Normalise(mean={self.mean}, std={self.std})"
