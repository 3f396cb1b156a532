"""Opens pictures however they lie on a disk, and says which of its classes each shows."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Protocol

import torch
from torch import Tensor

from plackett.data import hugging, shards
from plackett.data.labelling import listed, same_classes
from plackett.data.layouts import SPLITS, Layout, is_picture, layout, tree
from plackett.data.parts import Joined, Subset, held_out
from plackett.data.source import NO_LABEL, Source
from plackett.data.stored import EXTENSIONS, Files
from plackett.data.zipped import Zipped, contents
from plackett.errors import InputError, did_you_mean

HELD_OUT, HOLD_OUT_SEED = 0.1, 0


class _Make(Protocol):
    def __call__(self, paths: Sequence[str], targets: Tensor, classes: tuple[str, ...]) -> Source: ...


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
    """Opens pictures; which form they have is seen from what `path` holds.

    Args:
        path: a folder of class folders, with or without folders for train, val and test above them; a zip file of such;
            a Hugging Face data set that `save_to_disk` left, a folder of parquet files, or `hf:NAME`; or WebDataset
            shards, as a folder of tar files or a pattern such as `shards-{000..009}.tar`.
        splits: where the splits are called otherwise: from "train", "val", "test" to a folder within `path`, to a split
            of the data set, or to a pattern of shards within it.

    Where no pictures are there to validate with, a tenth of every class's training pictures is held out, always the
    same, and `notes` says so.
    """
    where, place = str(path), Path(path).expanduser()
    if splits is not None and (wrong := [name for name in splits if name not in SPLITS]):
        raise InputError(f"There is no split {wrong[0]!r}; {did_you_mean(wrong[0], SPLITS)}.")
    if where.startswith(hugging.PREFIX):
        return _opened(*hugging.load(where, splits), "a Hugging Face data set")
    if shards.are_shards(where):
        return _opened(*shards.load(where, splits), "WebDataset shards")
    if not place.exists():
        raise InputError(f"There is no {path}; give the folder that holds the pictures.")
    if place.is_file():
        if place.suffix.lower() != ".zip":
            raise InputError(f"{path} is no folder, zip file or shard (.tar); give the folder that holds the pictures.")
        checksums, folders = contents(place)
        zipped = partial(_zipped, place, checksums)
        return _opened(*_by_class(layout(tree(checksums, folders), where, splits), zipped, where), "a zip file")
    files, folders = _walked(place)
    if hugging.is_saved(place) or _only(files, ".parquet"):
        return _opened(*hugging.load(where, splits), "a Hugging Face data set")
    if _only(files, ".tar"):
        return _opened(*shards.load(where, splits), "WebDataset shards")
    found = layout(tree(files, folders), where, splits)
    return _opened(*_by_class(found, partial(_files, place), where), "a folder")


def unlabelled(path: Path | str) -> Source:
    """Every picture in a folder or a zip file, whatever the folders in it are called; none has a label."""
    place = Path(path).expanduser()
    if not place.exists():
        raise InputError(f"There is no {path}; give the folder that holds the pictures without labels.")
    if place.is_file() and place.suffix.lower() != ".zip":
        raise InputError(f"{path} is no folder or zip file; give the folder that holds the pictures without labels.")
    checksums = contents(place)[0] if place.is_file() else {}
    paths = tree(checksums if place.is_file() else _walked(place)[0]).everything()
    if not paths:
        raise InputError(f"{path} holds no pictures ({', '.join(EXTENSIONS)}).")
    make = partial(_zipped, place, checksums) if place.is_file() else partial(_files, place)
    return make(paths, torch.full((len(paths),), NO_LABEL), ())


def joined(labelled: Source, unlabelled: Source) -> Source:
    """The pictures of both, in that order; those of `unlabelled` have no label, whatever it says of them."""
    return Joined(labelled, unlabelled)


def _only(files: Sequence[str], ending: str) -> bool:
    """Such files, and no pictures beside them."""
    return any(name.endswith(ending) for name in files) and not any(map(is_picture, files))


def _files(root: Path, paths: Sequence[str], targets: Tensor, classes: tuple[str, ...]) -> Source:
    return Files(root, tuple(paths), targets, classes)


def _zipped(
    path: Path, checksums: Mapping[str, int], paths: Sequence[str], targets: Tensor, classes: tuple[str, ...]
) -> Source:
    return Zipped(path, tuple(paths), tuple(checksums[p] for p in paths), targets, classes)


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


def _by_class(found: Layout, make: _Make, where: str) -> tuple[dict[str | None, Source], tuple[str, ...]]:
    """Class folders in the order of their names, as torchvision's ImageFolder has them."""
    same_classes({str(split): list(pictures) for split, pictures in found.splits.items()}, where)
    folders = sorted(next(iter(found.splits.values())))
    classes = tuple(folders)
    if all(name.isdecimal() for name in folders) and (names := listed(Path(where), max(map(int, folders)))):
        classes = tuple(names[int(name)] for name in folders)
    sources: dict[str | None, Source] = {}
    for split, pictures in found.splits.items():
        paths = [path for name in folders for path in pictures[name]]
        targets = [label for label, name in enumerate(folders) for _ in pictures[name]]
        sources[split] = make(paths, torch.tensor(targets), classes)
    return sources, found.notes


def _opened(found: Mapping[str | None, Source], notes: tuple[str, ...], kind: str) -> Opened:
    """What was found, with a part of the training pictures held out where there are none to validate with."""
    train, val, test = found.get("train", found.get(None)), found.get("val"), found.get("test")
    if train is not None and val is None:
        stay, out = held_out(train.targets, HELD_OUT, HOLD_OUT_SEED)
        if len(out):
            notes += (
                f"There are no validation pictures: {len(out):,} of the {len(train):,} training pictures, "
                f"{HELD_OUT:.0%} of every class, are held out for it (always the same ones).",
            )
            train, val = Subset(train, stay), Subset(train, out)
    return Opened(train, val, test, kind, notes)
