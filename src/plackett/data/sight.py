"""How a network sees a picture: what stands between a file's pixels and the tensor that it reads."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

from plackett.errors import InputError, did_you_mean

Interpolation = Literal["nearest", "bilinear", "bicubic"]
IMAGENET_MEAN, IMAGENET_STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


@dataclass(frozen=True)
class Sight:
    """For a test: the shorter side becomes `size / crop` pixels, the middle `size` x `size` is taken, then normalised.

    Args:
        size: pixels a side.
        mean: of each channel, where a white pixel is 1.
        std: of each channel, likewise.
        crop: the share of the resized picture's side that the middle is.
        interpolation: how it is resized, with antialiasing.

    >>> Sight(224, crop=0.875).resized
    256
    """

    size: int
    mean: tuple[float, ...] = IMAGENET_MEAN
    std: tuple[float, ...] = IMAGENET_STD
    crop: float = 0.875
    interpolation: Interpolation = "bicubic"

    def __post_init__(self) -> None:
        if not isinstance(self.size, int):
            raise InputError(f"A network reads pictures of a whole number of pixels a side, not {self.size!r}.")
        if self.size < 1:
            raise InputError(f"A network reads pictures of at least 1 pixel a side, not {self.size}.")
        if not 0 < self.crop <= 1:
            raise InputError(f"The middle of a picture is a share of it above 0 and at most 1, not {self.crop:g}.")
        if len(self.mean) != len(self.std) or not self.mean or any(not 0 < s < math.inf for s in self.std):
            raise InputError(f"Normalisation takes a mean and a std above 0 a channel, not {self.mean}, {self.std}.")
        if self.interpolation not in get_args(Interpolation):
            raise InputError(
                f"There is no interpolation {self.interpolation!r}; "
                f"{did_you_mean(self.interpolation, get_args(Interpolation))}."
            )

    @property
    def resized(self) -> int:
        """Pixels of the shorter side before the middle is taken."""
        return math.floor(self.size / self.crop)

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, held: Mapping[str, Any]) -> Sight:
        return cls(**{**held, "mean": tuple(held["mean"]), "std": tuple(held["std"])})
