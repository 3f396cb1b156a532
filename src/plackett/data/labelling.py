"""From what is written beside a picture, a number or a name, to the number of its class."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import torch
from torch import Tensor

from plackett.data.source import NO_LABEL
from plackett.errors import InputError

Label = int | str | None


def classes_of(labels: Iterable[Label], folder: Path) -> tuple[str, ...]:
    """The names in order. Numbers have the names that a `classes.txt` in `folder` gives them, one a line."""
    held = {label for label in labels if label is not None}
    numbers = {label for label in held if isinstance(label, int)}
    if held - numbers:
        return tuple(sorted(map(str, held)))
    last = max(numbers, default=-1)
    return listed(folder, last) or tuple(map(str, range(last + 1)))


def listed(folder: Path, last: int) -> tuple[str, ...]:
    """The lines of its `classes.txt`, which names the classes 0 to `last` at least; nothing where there is none."""
    file = folder / "classes.txt"
    if not file.is_file():
        return ()
    names = tuple(line.strip() for line in file.read_text().splitlines() if line.strip())
    if len(names) <= last or len(set(names)) < len(names):
        raise InputError(
            f"{file} names {len(set(names))} classes in {len(names)} lines, but the labels go up to {last}; "
            "give one name a line, no name twice."
        )
    return names


def targets_of(labels: Sequence[Label], classes: Sequence[str], split: str, where: str) -> Tensor:
    """`[N]` int64; `NO_LABEL` where there is none."""
    named = any(isinstance(label, str) for label in labels)
    places: dict[Label, int] = {name if named else number: number for number, name in enumerate(classes)}
    targets: list[int] = []
    for label in labels:
        known = label if label is None or not named else str(label)
        if known is None:
            targets.append(NO_LABEL)
        elif known in places:
            targets.append(places[known])
        else:
            raise InputError(
                f"The {split} pictures in {where} have the class {label!r}, which the first of its splits has not; "
                "all of them must have the same classes."
            )
    return torch.tensor(targets, dtype=torch.int64)


def same_classes(found: Mapping[str, Sequence[str]], where: str) -> None:
    """Every split must have the class folders of the first."""
    (first, ours), *others = found.items()
    for other, theirs in others:
        said = [
            f"{_some(sorted(set(names) - set(not_in)))} only in {split}"
            for split, names, not_in in ((first, ours, theirs), (other, theirs, ours))
            if set(names) - set(not_in)
        ]
        if said:
            raise InputError(
                f"{first} and {other} in {where} have different class folders: {'; '.join(said)}. "
                "Give both the same ones, or remove one of the two splits."
            )


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return ", ".join(map(repr, names[:5])) + more
