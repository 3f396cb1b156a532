"""From a picture to the square of bytes that a network is shown: as in a test, or a random part of it.

Done by Pillow, as timm and torchvision do it with pictures from files: to the byte the same, antialiasing included.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from plackett.data.draws import Draws
from plackett.data.sight import Sight
from plackett.data.stored import pillow
from plackett.errors import InputError, missing_extra

if TYPE_CHECKING:
    from PIL.Image import Image

Box = tuple[int, int, int, int]
ATTEMPTS = 10


@dataclass(frozen=True)
class Augmentation:
    """What is random in a training picture.

    Args:
        scale: the crop's share of the picture's area, from and to.
        ratio: its width by its height, from and to.
        flip: how often it is mirrored.
        jitter: brightness, contrast and saturation change by up to this share.
        rand_augment: magnitude, from 0 to 30, of two operations of RandAugment; None for none.
        erase: how often a random rectangle is painted over with the mean colour.
    """

    scale: tuple[float, float] = (0.08, 1.0)
    ratio: tuple[float, float] = (3 / 4, 4 / 3)
    flip: float = 0.5
    jitter: float = 0.0
    rand_augment: int | None = None
    erase: float = 0.0

    def __post_init__(self) -> None:
        if not 0 < self.scale[0] <= self.scale[1] <= 1:
            raise InputError(f"A crop's share of the area goes from above 0 to at most 1, not {_range(self.scale)}.")
        if not 0 < self.ratio[0] <= self.ratio[1]:
            raise InputError(f"A crop's width by height goes from above 0 upwards, not {_range(self.ratio)}.")
        for name in ("flip", "erase"):
            if not 0 <= getattr(self, name) <= 1:
                raise InputError(f"{name} is how often it happens, from 0 to 1, not {getattr(self, name):g}.")
        if not 0 <= self.jitter < 1:
            raise InputError(f"Colours change by a share from 0 to below 1, not {self.jitter:g}.")
        if self.rand_augment is not None and not 0 <= self.rand_augment <= 30:
            raise InputError(f"RandAugment's magnitude goes from 0 to 30, not to {self.rand_augment}.")


def crop(width: int, height: int, augment: Augmentation, draws: Draws) -> Box:
    """Left, top, right, bottom of a random part: Inception's, as torchvision and timm choose it."""
    for _ in range(ATTEMPTS):
        area = width * height * draws.uniform(*augment.scale)
        ratio = math.exp(draws.uniform(*map(math.log, augment.ratio)))
        w, h = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
        if 0 < w <= width and 0 < h <= height:
            top, left = draws.below(height - h + 1), draws.below(width - w + 1)
            return left, top, left + w, top + h
    w = min(width, max(1, round(height * augment.ratio[1])))
    h = min(height, max(1, round(width / augment.ratio[0])))
    left, top = (width - w) // 2, (height - h) // 2
    return left, top, left + w, top + h


def random_view(image: Image, sight: Sight, augment: Augmentation, key: int) -> NDArray[np.uint8]:
    """`[size, size, 3]`; every choice follows from `key`."""
    draws = Draws(key)
    box = crop(*image.size, augment, draws)
    part = image if box == (0, 0, *image.size) else image.crop(box)
    part = resized(part, sight.size, sight.size, sight)
    if augment.jitter or augment.rand_augment is not None:
        part = _coloured(part, augment, draws.bits())
    pixels = np.asarray(part)
    if draws.happens(augment.flip):
        pixels = pixels[:, ::-1]
    if augment.erase and draws.happens(augment.erase):
        pixels = _erased(pixels, sight, draws)
    return pixels


def plain_view(image: Image, sight: Sight) -> NDArray[np.uint8]:
    """`[size, size, 3]`: the shorter side resized, then the middle, with black where a picture is too small for it."""
    width, height = image.size
    short = sight.resized
    if width <= height:
        width, height = short, int(short * height / width)
    else:
        width, height = int(short * width / height), short
    image = resized(image, width, height, sight)
    left, top = round((width - sight.size) / 2), round((height - sight.size) / 2)
    return np.asarray(image.crop((left, top, left + sight.size, top + sight.size)))


def resized(image: Image, width: int, height: int, sight: Sight) -> Image:
    if image.size == (width, height):
        return image
    how = getattr(pillow().Resampling, sight.interpolation.upper())
    return image.resize((width, height), how)


def _coloured(image: Image, augment: Augmentation, key: int) -> Image:
    # torchvision draws from torch's own random numbers: they are set for one picture, and set back.
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(key)
        for transform in _transforms(augment.jitter, augment.rand_augment):
            image = transform(image)
    return image


@lru_cache
def _transforms(jitter: float, rand_augment: int | None) -> list[Any]:
    try:
        from torchvision.transforms import v2
    except ImportError as error:
        raise missing_extra("torchvision", "vision", "Changing colours at random") from error
    made: list[Any] = [v2.ColorJitter(jitter, jitter, jitter)] if jitter else []
    return made + ([v2.RandAugment(2, rand_augment)] if rand_augment is not None else [])


def _erased(pixels: NDArray[np.uint8], sight: Sight, draws: Draws) -> NDArray[np.uint8]:
    """Zhong et al.: from 2 % to a third of the area, in the mean colour, so that it is about 0 once normalised."""
    side = sight.size
    for _ in range(ATTEMPTS):
        area = side * side * draws.uniform(0.02, 1 / 3)
        ratio = math.exp(draws.uniform(math.log(0.3), math.log(1 / 0.3)))
        w, h = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
        if w < side and h < side:
            left, top = draws.below(side - w + 1), draws.below(side - h + 1)
            pixels = pixels.copy()
            pixels[top : top + h, left : left + w] = [round(255 * mean) for mean in sight.mean]
            return pixels
    return pixels


def _range(pair: tuple[float, float]) -> str:
    return f"{pair[0]:g} to {pair[1]:g}"
