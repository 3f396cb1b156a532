"""How people lay out pictures: splits that hold class folders, or class folders alone, in a folder or in an archive.

A tree is a list of paths, so that folders and archives are read by one and the same code.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from plackett.data.stored import EXTENSIONS
from plackett.errors import InputError

SPLITS = {
    "train": ("train", "training", "trainset", "train_images"),
    "val": ("val", "valid", "validation", "dev", "validate"),
    "test": ("test", "testing", "testset", "eval"),
}
EXAMPLE = "train/cat/1.jpg, train/dog/2.jpg, val/cat/3.jpg, ..."


def split_called(name: str) -> str | None:
    """Which split people call so, whatever its case.

    >>> split_called("Validation"), split_called("cats")
    ('val', None)
    """
    return next((split for split, names in SPLITS.items() if name.lower() in names), None)


def is_picture(path: str) -> bool:
    name = path.rsplit("/", 1)[-1].lower()
    return name.endswith(EXTENSIONS) and not name.startswith(".")


def is_junk(path: str) -> bool:
    """Hidden, or left there by an operating system."""
    return any(part.startswith(".") or part == "__MACOSX" for part in path.split("/"))


@dataclass
class Folder:
    """A folder in a tree: its pictures, by their whole path, and the folders in it."""

    pictures: list[str] = field(default_factory=list)
    folders: dict[str, Folder] = field(default_factory=dict)

    def everything(self) -> list[str]:
        """Its pictures and those of the folders in it, in order."""
        found = sorted(self.pictures)
        for name in sorted(self.folders):
            found += self.folders[name].everything()
        return found

    @property
    def holds_any(self) -> bool:
        return bool(self.pictures) or any(folder.holds_any for folder in self.folders.values())


def tree(files: Iterable[str], folders: Iterable[str] = ()) -> Folder:
    root = Folder()
    for path in folders:
        _at(root, PurePosixPath(path).parts)
    for path in files:
        if not is_junk(path) and is_picture(path):
            _at(root, path.split("/")[:-1]).pictures.append(path)
    return root


def _at(root: Folder, parts: Sequence[str]) -> Folder:
    for part in parts:
        if part.startswith(".") or part == "__MACOSX":
            return Folder()
        root = root.folders.setdefault(part, Folder())
    return root


@dataclass(frozen=True)
class Layout:
    """Pictures of each class, for each split; `None` as a split where the folder knows none."""

    splits: Mapping[str | None, Mapping[str, Sequence[str]]]
    notes: tuple[str, ...] = ()


def layout(root: Folder, where: str, splits: Mapping[str, str] | None = None) -> Layout:
    """Finds splits and classes below `root`; `where` is what people call it."""
    if not root.holds_any:
        raise InputError(f"{where} holds no pictures ({', '.join(EXTENSIONS)}); lay them out as {EXAMPLE}.")
    while len(root.folders) == 1 and not root.pictures and splits is None:
        (only,) = root.folders.values()
        if _is_split(*next(iter(root.folders.items()))) or only.pictures:
            break
        root = only
    found = _named(root, where, splits) if splits is not None else _found(root)
    notes = []
    if found and splits is None:
        unused = [name for name in root.folders if name not in found.values() and root.folders[name].holds_any]
        notes += [f"Not used: {', '.join(sorted(unused))} in {where}."] if unused else []
    shown: dict[str | None, Mapping[str, Sequence[str]]] = {}
    for split, name in (found or {None: ""}).items():
        folder, place = _at(root, PurePosixPath(name).parts), f"{where}/{name}".rstrip("/")
        shown[split] = _classes(folder, place)
        if folder.pictures:
            notes.append(f"Not used: {len(folder.pictures):,} pictures beside the class folders in {place}.")
    return Layout(shown, tuple(notes))


def _is_split(name: str, folder: Folder) -> bool:
    return split_called(name) is not None and (bool(folder.folders) or not folder.pictures)


def _found(root: Folder) -> dict[str | None, str]:
    """Folders that are called as splits are; none where a class just happens to be called so."""
    named = {name: split for name in sorted(root.folders) if (split := split_called(name)) is not None}
    others = any(folder.holds_any for name, folder in root.folders.items() if name not in named)
    if others and not all(_is_split(name, root.folders[name]) for name in named):
        return {}
    found: dict[str | None, str] = {}
    for split in SPLITS:
        called = [name for name, each in named.items() if each == split and root.folders[name].holds_any]
        if len(called) > 1:
            raise InputError(f"Both {called[0]} and {called[1]} could be the {split} pictures; rename or remove one.")
        if called:
            found[split] = called[0]
    return found


def _named(root: Folder, where: str, splits: Mapping[str, str]) -> dict[str | None, str]:
    for split, path in splits.items():
        if not _at(root, PurePosixPath(path).parts).holds_any:
            raise InputError(f"{where} has no pictures in {path}, which was to be its {split} split.")
    return dict(splits.items())


def _classes(folder: Folder, place: str) -> dict[str, list[str]]:
    if not folder.folders:
        raise InputError(
            f"{place} holds {len(folder.pictures):,} pictures and no class folders: put the pictures of each class "
            f"into a folder of its own ({EXAMPLE}), or give them as pictures without labels."
        )
    found = {name: folder.folders[name].everything() for name in sorted(folder.folders)}
    if empty := [name for name, pictures in found.items() if not pictures]:
        named = ", ".join(map(repr, empty[:5])) + (f" and {len(empty) - 5} more" if len(empty) > 5 else "")
        what = "Class folder" if len(empty) == 1 else "Class folders"
        raise InputError(f"{what} {named} in {place} hold{'s' * (len(empty) == 1)} no picture; fill or remove it.")
    if len(found) < 2:
        raise InputError(f"{place} has one class only, {next(iter(found))!r}; a classifier needs two class folders.")
    return found
