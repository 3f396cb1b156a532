"""Real pictures as files, a folder a class: `python -m tools.pictures fashion|cifar100 OUT [--train N] [--test N]`.

fashion     Fashion-MNIST, from the four files of Debian's package dataset-fashion-mnist (MIT licence), or `--source`
cifar100    CIFAR-100, from the folder that `plackett data cifar100` prepared, or `--source`
"""

from __future__ import annotations

import argparse
import gzip
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from plackett.data import cifar100

Bytes = NDArray[np.uint8]
FASHION = Path("/usr/share/datasets/fashion-mnist")
CLASSES = ("t-shirt", "trouser", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag", "ankle-boot")
FILES = {"train": "train", "test": "t10k"}


def fashion(source: Path, split: str) -> tuple[Bytes, Bytes, Sequence[str]]:
    """Pictures `[N, 28, 28]` and labels `[N]` of an IDX pair: 16 and 8 bytes of head, then the bytes."""
    pictures = gzip.decompress((source / f"{FILES[split]}-images-idx3-ubyte.gz").read_bytes())
    labels = gzip.decompress((source / f"{FILES[split]}-labels-idx1-ubyte.gz").read_bytes())
    return (
        np.frombuffer(pictures, np.uint8, offset=16).reshape(-1, 28, 28),
        np.frombuffer(labels, np.uint8, offset=8),
        CLASSES,
    )


def cifar(source: Path | None, split: str) -> tuple[Bytes, Bytes, Sequence[str]]:
    """Pictures `[N, 32, 32, 3]` and labels `[N]`, in an order that mixes the classes."""
    held = getattr(cifar100.load(source), split)
    order = np.random.default_rng(0).permutation(len(held))
    return held.inputs.permute(0, 2, 3, 1).numpy()[order], held.targets.numpy()[order], held.classes


def write(pictures: Bytes, labels: Bytes, names: Sequence[str], out: Path, count: int | None) -> int:
    """The first `count` pictures, as PNG."""
    for name in names:
        (out / name).mkdir(parents=True, exist_ok=True)
    several = min(count or len(labels), len(labels))
    for i in range(several):
        Image.fromarray(pictures[i]).save(out / names[labels[i]] / f"{i:05d}.png")
    return several


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("which", choices=("fashion", "cifar100"))
    parser.add_argument("out", type=Path)
    parser.add_argument("--train", type=int)
    parser.add_argument("--test", type=int)
    parser.add_argument("--source", type=Path)
    given = parser.parse_args()
    said = []
    for split, count in (("train", given.train), ("test", given.test)):
        found = cifar(given.source, split) if given.which == "cifar100" else fashion(given.source or FASHION, split)
        said.append(f"{write(*found, given.out / split, count):,} to {split}")
    print(f"{given.out}: pictures, {' and '.join(said)} with, {len(found[2])} classes")


if __name__ == "__main__":
    main()
