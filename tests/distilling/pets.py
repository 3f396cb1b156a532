"""Three classes that a small network learns in seconds, and a teacher that has learned them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from PIL import Image

from plackett.data.folders import open_pictures
from plackett.data.loading import PictureBatches
from plackett.data.sight import Sight
from plackett.models import create
from plackett.models.packed import Packed, save

CLASSES = ("bird", "cat", "dog")
COLOURS = ((200, 60, 60), (60, 200, 60), (60, 60, 200))
SIGHT = Sight(16, (0.5, 0.5, 0.5), (0.25, 0.25, 0.25), crop=1.0)


def folder(root: Path, splits: dict[str, int], classes: tuple[str, ...] = CLASSES, seed: int = 0) -> Path:
    """`splits` gives the pictures of every class, which are coloured noise; "" puts the classes into `root` itself."""
    generator = np.random.default_rng(seed)
    for split, each in splits.items():
        for name, colour in zip(classes, COLOURS, strict=False):
            place = root / split / name
            place.mkdir(parents=True, exist_ok=True)
            for i in range(each):
                pixels = np.clip(np.array(colour) + generator.normal(0, 70, (20, 20, 3)), 0, 255).astype(np.uint8)
                Image.fromarray(pixels).save(place / f"{i:02d}.png")
    return root


def teacher(pets: Path, out: Path, classes: tuple[str, ...] = CLASSES, epochs: int = 16) -> Path:
    """A ResNet-20 in a folder of its own."""
    torch.manual_seed(0)
    network = create("resnet20", classes=len(classes))
    optimiser = torch.optim.AdamW(network.parameters(), 1e-2)
    train = open_pictures(pets).train
    assert train is not None
    batches = PictureBatches(train, 12, 0, SIGHT, augment=None)
    for epoch in range(epochs):
        for batch in batches.epoch(epoch):
            optimiser.zero_grad()
            torch.nn.functional.cross_entropy(network(batch.inputs), batch.targets).backward()
            optimiser.step()
    return save(out, Packed(network.eval(), "resnet20", classes, SIGHT))
