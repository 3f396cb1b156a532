"""Small pictures on a disk: photographs as JPEG in class folders, each unlike the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from PIL import Image

CLASSES = ("bird", "cat", "dog")


def picture(number: int, width: int = 40, height: int = 30) -> Image.Image:
    generator = np.random.default_rng(number)
    small = generator.integers(0, 256, (4, 5, 3), np.uint8)
    return Image.fromarray(small).resize((width + number % 7, height + number % 5), Image.Resampling.BICUBIC)


def folder(
    root: Path, splits: Mapping[str, int] | None = None, classes: Sequence[str] = CLASSES, ending: str = "jpg"
) -> Path:
    """`splits` gives the pictures of every class; the split "" puts the class folders into `root` itself."""
    number = 0
    for split, each in (splits or {"train": 6, "val": 2}).items():
        for name in classes:
            place = root / split / name
            place.mkdir(parents=True, exist_ok=True)
            for i in range(each):
                number += 1
                picture(number).save(place / f"{i:02d}.{ending}")
    return root
