"""Opens pictures however they lie on a disk, and says which of its classes each shows."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from plackett.data.layouts import Layout, layout, tree
from plackett.data.parts import Joined, Subset, held_out
from plackett.data.source import NO_LABEL, Source
from plackett.data.stored import EXTENSIONS, Files, labels
from plackett.data.zipped import Zipped, contents
from plackett.errors import InputError

HELD_OUT, HOLD_OUT_SEED = 0.1, 0

_Make = Callable[[Sequence[str], Tensor, tuple[str, ...]], Source]


@dataclass(frozen=True)
class Opened:
    """The splits that were found, and `notes`: what a person should know of how they were made."""

    train: Source | None
    val: Source | None
    test: Source | None
    kind: str
    notes: tuple[str, ...] = ()

    @property
    def classes(self) -> tuple[str, ...]:
        return next(source for source in (self.train, self.val, self.test) if source is not None).classes


def open_pictures(path: Path | str, *, splits: Mapping[str, str] | None = None) -> Opened:
    """Opens a folder or a zip file of pictures; which form it has is seen from what it holds.

    Args:
        path: a folder of class folders, with or without folders for train, val and test above them, or a zip file of
            such.
        splits: where the splits are called otherwise: from "train", "val", "test" to the folder within `path`.

    Where no pictures are there to validate with, a tenth of every class's training pictures is held out, always the
    same, and `notes` says so.
    """
    place = Path(path)
    _exists(place)
    if place.is_dir():
        found = layout(tree(*_walked(place)), str(path), splits)

        def files(paths: Sequence[str], targets: Tensor, classes: tuple[str, ...]) -> Source:
            return Files(place, tuple(paths), targets, classes)

        return _opened(found, files, "a folder", str(path))
    if place.suffix.lower() == ".zip":
        held, folders = contents(place)

        def zipped(paths: Sequence[str], targets: Tensor, classes: tuple[str, ...]) -> Source:
            return Zipped(place, tuple(paths), tuple(held[p] for p in paths), targets, classes)

        return _opened(layout(tree(held, folders), str(path), splits), zipped, "a zip file", str(path))
    raise InputError(f"{path} is neither a folder nor a zip file; give the folder that holds the pictures.")


def unlabelled(path: Path | str) -> Source:
    """Every picture below a folder, whatever the folders in it are called; none has a label."""
    place = Path(path)
    _exists(place)
    if not place.is_dir():
        raise InputError(f"{path} is not a folder; give the folder that holds the pictures without labels.")
    paths = tuple(tree(*_walked(place)).everything())
    if not paths:
        raise InputError(f"{path} holds no pictures ({', '.join(EXTENSIONS)}).")
    return Files(place, paths, torch.full((len(paths),), NO_LABEL), ())


def joined(labelled: Source, unlabelled: Source) -> Source:
    """The pictures of both, in that order; those of `unlabelled` have no label, whatever it says of them."""
    return Joined(labelled, unlabelled)


def _exists(path: Path) -> None:
    if not path.exists():
        raise InputError(f"There is no {path}; give the folder that holds the pictures.")


def _walked(root: Path) -> tuple[list[str], list[str]]:
    """Files and folders below `root`, as paths within it."""
    files: list[str] = []
    folders: list[str] = []
    for place, inner, names in os.walk(root, followlinks=True):
        inner[:] = [name for name in inner if not name.startswith(".")]
        at = "" if place == str(root) else Path(place).relative_to(root).as_posix() + "/"
        folders += [at + name for name in inner]
        files += [at + name for name in names]
    return files, folders


def _opened(found: Layout, make: _Make, kind: str, where: str) -> Opened:
    first = next(iter(found.splits))
    classes = tuple(sorted(found.splits[first]))
    sources: dict[str | None, Source] = {}
    for split, pictures in found.splits.items():
        _same_classes(classes, tuple(sorted(pictures)), str(first), str(split), where)
        paths = [path for name in classes for path in pictures[name]]
        targets = [label for label, name in enumerate(classes) for _ in pictures[name]]
        sources[split] = make(paths, labels(targets), classes)
    if None in sources:
        sources = {"train": sources[None]}
    return with_validation(sources.get("train"), sources.get("val"), sources.get("test"), kind, found.notes)


def with_validation(
    train: Source | None, val: Source | None, test: Source | None, kind: str, notes: tuple[str, ...] = ()
) -> Opened:
    """As they are, or with a part of the training pictures held out where there are none to validate with."""
    if train is not None and val is None:
        stay, out = held_out(train.targets, HELD_OUT, HOLD_OUT_SEED)
        if len(out):
            notes += (
                f"There are no validation pictures: {len(out):,} of the {len(train):,} training pictures, "
                f"{HELD_OUT:.0%} of every class, are held out for it (always the same ones).",
            )
            train, val = Subset(train, stay), Subset(train, out)
    return Opened(train, val, test, kind, notes)


def _same_classes(ours: Sequence[str], theirs: Sequence[str], first: str, other: str, where: str) -> None:
    if ours == theirs:
        return
    said = [
        f"{', '.join(map(repr, names[:5]))}{f' and {len(names) - 5} more' if len(names) > 5 else ''} only in {split}"
        for names, split in (
            ([n for n in ours if n not in set(theirs)], first),
            ([n for n in theirs if n not in set(ours)], other),
        )
        if names
    ]
    raise InputError(
        f"{first} and {other} in {where} have different class folders: {'; '.join(said)}. "
        "Give both the same ones, or remove one of the two splits."
    )
