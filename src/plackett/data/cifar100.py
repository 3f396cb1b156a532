"""CIFAR-100: prepared once from the official files into one file of tensors, and loaded from there.

The prepared file is `cifar100.safetensors`: pixels and labels as bytes, and the names of the classes.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from plackett.data import official
from plackett.data.normalise import Normalise
from plackett.data.official import OFFICIAL, Part, Records
from plackett.data.pictures import Pictures
from plackett.data.sight import Sight
from plackett.errors import InputError
from plackett.files import replacing

FILE, FORMAT = "cifar100.safetensors", "plackett cifar100 1"
# As the distillation literature has them; the exact ones of the training pictures differ by 0.0003 at most.
NORMALISE = Normalise((0.5071, 0.4867, 0.4408), (0.2675, 0.2565, 0.2761))
SIGHT = Sight(32, NORMALISE.mean, NORMALISE.std, crop=1.0)


@dataclass(frozen=True)
class Cifar100:
    """`train` and `test` as uint8 pixels; `superclass_of` gives the superclass of every class."""

    train: Pictures
    test: Pictures
    superclasses: tuple[str, ...]
    superclass_of: Tensor
    subset: str | None


def default_folder() -> Path:
    """`$PLACKETT_DATA`, or `plackett` in the user's cache folder."""
    if said := os.environ.get("PLACKETT_DATA"):
        return Path(said)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "plackett"


def prepare(
    source: Path, folder: Path | None = None, *, per_class: int | None = None, parts: Sequence[Part] = OFFICIAL
) -> Path:
    """Checks the official files in `source` and writes what `load` reads; the path of that file.

    Args:
        source: the official archive, or the folder that it unpacks to.
        folder: where the prepared file goes; None is the default folder.
        per_class: only the first so many training pictures of every class, and a fifth as many to test on.
        parts: sizes and fingerprints to check, for files that were cut down on purpose.
    """
    if per_class is not None and per_class < 1:
        raise InputError(f"A subset needs at least 1 picture of every class, not {per_class}.")
    found = official.find(source)
    fine, coarse = found.names()
    tensors: dict[str, Tensor] = {}
    groups: list[Records] = []
    for part in parts:
        records = found.records(part)
        groups.append(records)
        if per_class is not None:
            records = _first(records, per_class if part.name == "train" else -(-per_class // 5))
        tensors[f"{part.name}.pixels"] = torch.from_numpy(np.ascontiguousarray(records.pictures))
        tensors[f"{part.name}.labels"] = torch.from_numpy(records.fine)
    tensors["superclass_of"] = _superclasses(groups)
    target = (default_folder() if folder is None else folder) / FILE
    subset = "" if per_class is None else f"the first {per_class} of every class"
    about = {"format": FORMAT, "classes": json.dumps(fine), "superclasses": json.dumps(coarse), "subset": subset}
    with replacing(target) as temporary:
        save_file(tensors, temporary, metadata=about)
    return target


def load(folder: Path | None = None) -> Cifar100:
    """The pictures that `prepare` left in `folder`."""
    path = (default_folder() if folder is None else folder) / FILE
    if not path.is_file():
        raise InputError(f"There is no {path}. {official.WHERE} to: plackett data cifar100 --from PATH.")
    try:
        with safe_open(path, framework="pt") as file:
            about = file.metadata() or {}
            held = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError) as error:
        raise InputError(f"{path} cannot be read ({error}). Run again: plackett data cifar100 --from PATH.") from error
    if about.get("format") != FORMAT:
        raise InputError(
            f"{path} says it is {about.get('format') or 'nothing'!r}, not {FORMAT!r}. "
            "Run again: plackett data cifar100 --from PATH."
        )
    classes = tuple(json.loads(about["classes"]))
    train, test = (
        Pictures(held[f"{part}.pixels"], held[f"{part}.labels"].long(), classes) for part in ("train", "test")
    )
    superclasses = tuple(json.loads(about["superclasses"]))
    return Cifar100(train, test, superclasses, held["superclass_of"].long(), about["subset"] or None)


def _first(records: Records, count: int) -> Records:
    """The first `count` records of each class, in the order in which they stand."""
    order = np.argsort(records.fine, kind="stable")
    starts = np.searchsorted(records.fine[order], records.fine[order])
    chosen = np.sort(order[np.arange(len(order)) - starts < count])
    return Records(records.pictures[chosen], records.fine[chosen], records.coarse[chosen])


def _superclasses(groups: Sequence[Records]) -> Tensor:
    fine, coarse = (np.concatenate([getattr(group, kind) for group in groups]) for kind in ("fine", "coarse"))
    pairs = np.unique(np.stack([fine, coarse], axis=1), axis=0)
    if (twice := np.flatnonzero(np.bincount(pairs[:, 0]) > 1)).size:
        raise InputError(f"Class {twice[0]} stands in two superclasses; every class of CIFAR-100 has one.")
    table = np.zeros(official.FINE, np.uint8)
    table[pairs[:, 0]] = pairs[:, 1]
    return torch.from_numpy(table)
