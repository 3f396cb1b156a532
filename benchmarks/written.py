"""Where measurements go: a CSV file named after what was measured, and on what."""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping, Sequence
from pathlib import Path


def slug(text: str) -> str:
    """
    >>> slug("NVIDIA H200")
    'nvidia-h200'
    """
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def place(folder: Path, what: str, chip: str, torch: str) -> Path:
    """
    >>> print(place(Path("results"), "losses", "NVIDIA H200", "2.11.0+cu130"))
    results/losses-nvidia-h200-2.11.0.csv
    """
    return folder / f"{what}-{slug(chip)}-{torch.split('+')[0]}.csv"


def write(rows: Sequence[Mapping[str, object]], path: Path) -> Path:
    """The rows under the names of the first one's columns; folders above are made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path
