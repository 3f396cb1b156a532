"""WebDataset shards on a disk: tar files whose headers are read once, so that any picture can be read at random.

A sample is what shares a name up to its first dot: `000/17.jpg` with `000/17.cls` or `000/17.json`.
"""

from __future__ import annotations

import glob
import io
import itertools
import json
import re
import tarfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, NamedTuple

import torch
from torch import Tensor

from plackett.data.labelling import Label, classes_of, targets_of
from plackett.data.layouts import split_called
from plackett.data.source import Source
from plackett.data.stored import EXTENSIONS, Stored
from plackett.errors import InputError

_PACKED = (".tar.gz", ".tgz", ".tar.bz2", ".tar.xz", ".tar.zst")
_JSON = ("label", "cls", "class", "class_name", "category", "target")
_ELSEWHERE = re.compile(r"^(pipe:|\w\w+:/)")  # a path on the command line has lost one of its slashes


@dataclass(frozen=True)
class Sharded(Stored):
    """`at` `[N, 3]`: which shard each picture lies in, where, and how many bytes."""

    shards: tuple[Path, ...]
    names: tuple[str, ...]
    at: Tensor
    targets: Tensor
    classes: tuple[str, ...]

    def name(self, index: int) -> str:
        return f"{self.shards[int(self.at[index, 0])].name}/{self.names[index]}"

    def opened(self, index: int) -> BinaryIO:
        shard, offset, size = self.at[index].tolist()
        with self.shards[shard].open("rb", buffering=0) as file:
            file.seek(offset)
            return io.BytesIO(file.read(size))

    def sizes(self) -> list[int]:
        held: list[int] = self.at[:, 2].tolist()
        return held


class Sample(NamedTuple):
    """A picture in a shard."""

    name: str
    offset: int
    size: int
    label: Label


def are_shards(path: str) -> bool:
    """Whether the path itself says so."""
    return path.lower().endswith((".tar", *_PACKED)) or _ELSEWHERE.match(path) is not None


def load(path: str, splits: Mapping[str, str] | None) -> tuple[dict[str | None, Source], tuple[str, ...]]:
    """The splits among the shards of a folder or a pattern; None as a split where nothing is called as one."""
    chosen, notes = _chosen(path, splits)
    samples = {split: [_indexed(shard) for shard in shards] for split, shards in chosen.items()}
    labels = {split: [s.label for shard in each for s in shard] for split, each in samples.items()}
    folder = Path(path) if Path(path).is_dir() else Path(path).parent
    classes = classes_of(next(iter(labels.values())), folder)
    found: dict[str | None, Source] = {}
    for split, shards in chosen.items():
        called = split or "train"
        if not any(label is not None for label in labels[split]):
            raise InputError(
                f"No picture in the {called} shards of {path} has a label; each needs a .cls file beside it, with a "
                f"number or a name, or a .json with one of {', '.join(_JSON)}."
            )
        if without := sum(label is None for label in labels[split]):
            notes += (f"{without:,} of the {len(labels[split]):,} {called} pictures in {path} have no label.",)
        every = [(number, sample) for number, each in enumerate(samples[split]) for sample in each]
        found[split] = Sharded(
            tuple(shards),
            tuple(sample.name for _, sample in every),
            torch.tensor([(number, sample.offset, sample.size) for number, sample in every], dtype=torch.int64),
            targets_of(labels[split], classes, called, path),
            classes,
        )
    return found, notes


def _chosen(path: str, splits: Mapping[str, str] | None) -> tuple[dict[str | None, list[Path]], tuple[str, ...]]:
    if splits is not None:
        folder = Path(path)
        return {split: expanded(str(folder / pattern)) for split, pattern in splits.items()}, ()
    shards = expanded(path)
    called = {shard: _split(shard, path) for shard in shards}
    if not any(called.values()):
        return {None: shards}, ()
    order = ("train", "val", "test")
    chosen: dict[str | None, list[Path]] = {s: [x for x in shards if called[x] == s] for s in order}
    unused = ", ".join(shard.name for shard in shards if called[shard] is None)
    notes = (f"Not used: {unused} in {path}.",) if unused else ()
    return {split: each for split, each in chosen.items() if each}, notes


def _split(shard: Path, path: str) -> str | None:
    """Of which split it is, by the words of its name and of the folders that it lies in."""
    inside = shard.relative_to(path).parts if Path(path).is_dir() else shard.parts[-1:]
    words = (word for part in inside for word in re.split(r"[^A-Za-z]+", part))
    return next((split for word in words if (split := split_called(word))), None)


def expanded(pattern: str) -> list[Path]:
    """The shards that are meant: `{000..009}` and `{a,b}`, `*`, a single file, or all tar files of a folder.

    >>> [path.name for path in _named("shards-{08..11}.tar")]
    ['shards-08.tar', 'shards-09.tar', 'shards-10.tar', 'shards-11.tar']
    """
    if _ELSEWHERE.match(pattern):
        raise InputError(
            f"{pattern} is not on this machine; shards are read at random, which needs local files: download them."
        )
    if pattern.lower().endswith(_PACKED):
        raise InputError(
            f"{pattern} is compressed, and no picture in it can be found without unpacking those before it; "
            "pack the shards as plain .tar (pictures hardly become smaller)."
        )
    if Path(pattern).is_dir():
        found = sorted(Path(pattern).rglob("*.tar"))
    else:
        found = list(_named(pattern))
        if any(sign in pattern for sign in "*?["):
            found = sorted(Path(name) for each in found for name in glob.glob(str(each)))
    if not found:
        raise InputError(f"There are no shards {pattern}.")
    if missing := [shard for shard in found if not shard.is_file()]:
        more = f", nor are {len(missing) - 1} more" if len(missing) > 1 else ""
        raise InputError(f"{pattern} names {missing[0]}, which is not there{more}.")
    return found


def _named(pattern: str) -> Iterator[Path]:
    parts = re.split(r"\{([^{}]*)\}", pattern)
    choices = [_choices(part) if i % 2 else [part] for i, part in enumerate(parts)]
    yield from (Path("".join(each)) for each in itertools.product(*choices))


def _choices(inside: str) -> list[str]:
    span = re.fullmatch(r"(\d+)\.\.(\d+)", inside)
    if span is None:
        return inside.split(",")
    first, last = span.groups()
    return [f"{number:0{len(first)}d}" for number in range(int(first), int(last) + 1)]


def _indexed(shard: Path) -> list[Sample]:
    try:
        with tarfile.open(shard, "r:") as archive, shard.open("rb") as file:
            samples = list(_samples(_members(archive), file, shard))
            # tarfile takes a header that was cut off for the end; the end is a block of zeros.
            if (size := shard.stat().st_size) % 512 or size <= archive.offset:
                raise EOFError("it has no end")
            return samples
    except (tarfile.TarError, EOFError) as error:
        raise InputError(
            f"{shard} cannot be read as a tar file ({error}): it is damaged or was not copied whole; copy it again."
        ) from error


def _members(archive: tarfile.TarFile) -> Iterator[tarfile.TarInfo]:
    while (member := archive.next()) is not None:
        archive.members = []  # type: ignore[attr-defined]  # it would keep them all
        if member.isfile() and not member.name.rsplit("/", 1)[-1].startswith("."):
            yield member


def _samples(members: Iterable[tarfile.TarInfo], file: BinaryIO, shard: Path) -> Iterator[Sample]:
    for key, group in itertools.groupby(members, lambda member: _key(member.name)[0]):
        picture: tarfile.TarInfo | None = None
        label: Label = None
        for member in group:
            ending = _key(member.name)[1]
            if f".{ending.rsplit('.', 1)[-1]}" in EXTENSIONS:
                picture = picture or member
            elif ending in ("cls", "json"):
                file.seek(member.offset_data)
                label = _label(file.read(member.size), ending, f"{shard.name}/{key}")
        if picture is not None:
            yield Sample(picture.name, picture.offset_data, picture.size, label)


def _key(name: str) -> tuple[str, str]:
    """Up to the first dot of the file's own name, and from there on."""
    folder, slash, file = name.rpartition("/")
    stem, _, ending = file.partition(".")
    return folder + slash + stem, ending.lower()


def _label(held: bytes, ending: str, name: str) -> Label:
    text = held.decode("utf-8", "replace").strip()
    if ending == "json":
        try:
            said = json.loads(text)
        except ValueError as error:
            raise InputError(f"{name}.json is not JSON ({error}).") from error
        value = next((said[key] for key in _JSON if key in said), None) if isinstance(said, dict) else said
        if value is None or (isinstance(value, int | str) and not isinstance(value, bool)):
            return value if not isinstance(value, int) or value >= 0 else None
        raise InputError(f"{name}.json gives the label {value!r}; a label is a whole number or a name.")
    return int(text) if re.fullmatch(r"\d+", text) else text or None
