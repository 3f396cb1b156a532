"""Real pictures, a folder a class, from Fashion-MNIST: `python -m tools.fashion OUT [--train N] [--test N]`.

Debian's package dataset-fashion-mnist (MIT licence) has the four files; `--source` names another place of them.
"""

from __future__ import annotations

import argparse
import gzip
from pathlib import Path

import numpy as np
from PIL import Image

SOURCE = Path("/usr/share/datasets/fashion-mnist")
CLASSES = ("t-shirt", "trouser", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag", "ankle-boot")
SPLITS = {"train": "train", "test": "t10k"}


def read(source: Path, split: str) -> tuple[np.ndarray, np.ndarray]:
    """Pictures `[N, 28, 28]` uint8 and labels `[N]` of an IDX pair: 16 and 8 bytes of head, then the bytes."""
    pictures = gzip.decompress((source / f"{SPLITS[split]}-images-idx3-ubyte.gz").read_bytes())
    labels = gzip.decompress((source / f"{SPLITS[split]}-labels-idx1-ubyte.gz").read_bytes())
    return np.frombuffer(pictures, np.uint8, offset=16).reshape(-1, 28, 28), np.frombuffer(labels, np.uint8, offset=8)


def write(source: Path, out: Path, counts: dict[str, int]) -> None:
    """The first pictures of each split, as PNG."""
    for split, count in counts.items():
        pictures, labels = read(source, split)
        for name in CLASSES:
            (out / split / name).mkdir(parents=True, exist_ok=True)
        for i in range(min(count, len(labels))):
            Image.fromarray(pictures[i]).save(out / split / CLASSES[labels[i]] / f"{i:05d}.png")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--train", type=int, default=6000)
    parser.add_argument("--test", type=int, default=2000)
    parser.add_argument("--source", type=Path, default=SOURCE)
    given = parser.parse_args()
    write(given.source, given.out, {"train": given.train, "test": given.test})
    print(f"{given.out}: {given.train:,} pictures to train, {given.test:,} to test with, {len(CLASSES)} classes")


if __name__ == "__main__":
    main()
