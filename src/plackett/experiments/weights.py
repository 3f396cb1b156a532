"""The weights of a run's students after the last epoch: `students/NAME/`, each a folder that `models.packed` reads."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import nn

from plackett.data.sight import Sight
from plackett.errors import InputError
from plackett.models import packed
from plackett.models.packed import Packed


def place(folder: Path, student: str) -> Path:
    """
    >>> print(place(Path("run"), "PLD τ=4"))
    run/students/PLD-=4
    """
    return folder / "students" / re.sub(r"[^A-Za-z0-9._=-]+", "-", student)


def write(
    folder: Path,
    student: str,
    network: nn.Module,
    spec: str,
    classes: tuple[str, ...],
    sight: Sight,
    options: Mapping[str, Any],
) -> Path:
    """Replaces the student's folder in that of its run; `options` are what the network was built with."""
    held = Packed(network, spec, classes, sight, {"student": student}, dict(options))
    return packed.save(place(folder, student), held)


def read(folder: Path, student: str, *, trust: bool = False) -> Packed:
    """A student of a finished run, in evaluation mode; `trust` as of `packed.load`."""
    where = place(folder, student)
    if not where.exists():
        raise InputError(
            f"{folder} does not hold the weights of {student!r} ({where} is not there): the run is not finished, or an "
            "older plackett made it. Run its command again."
        )
    return packed.load(where, trust=trust)
