"""CIFAR-100 as its authors publish it: the "python version" (pickles) and the "binary version", each checked.

A folder, one above it, or the downloaded archive will do. Pickles can run code, so the files are read by an unpickler
that knows arrays, text, numbers, lists and mappings, and refuses everything else.
"""

from __future__ import annotations

import hashlib
import io
import pickle
import tarfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from plackett.errors import InputError

HOME = "https://www.cs.toronto.edu/~kriz/cifar.html"
WHERE = f"Download cifar-100-python.tar.gz or cifar-100-binary.tar.gz from {HOME} and give the archive or its folder"
PIXELS, RECORD = 3 * 32 * 32, 2 + 3 * 32 * 32
FINE, COARSE = 100, 20

Bytes = npt.NDArray[np.uint8]


@dataclass(frozen=True)
class Part:
    """How many pictures a part has, and its fingerprint in any order of its records (None: any content will do)."""

    name: str
    pictures: int
    fingerprint: str | None


OFFICIAL = (
    Part("train", 50_000, "ac373de74f90be6fdfb81cfbd7226b02f43b733c184edb57bff95ddd459360ce"),
    Part("test", 10_000, "5c20c45e60781cc5e2a989592e6245faee07d4b2bf93bf408b65e089769ee1be"),
)


@dataclass(frozen=True)
class Records:
    """`pictures` `[N, 3, 32, 32]`, and for each its fine and its coarse label."""

    pictures: Bytes
    fine: Bytes
    coarse: Bytes


@dataclass(frozen=True)
class Source:
    """A layout that was found, and how to read a file of it; `at` names a file in a sentence."""

    layout: str
    at: Callable[[str], str]
    open: Callable[[str], bytes]

    def names(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The names of the 100 classes and of the 20 superclasses."""
        if self.layout == "binary":
            said = [self.open(f"{level}_label_names.txt").decode().split() for level in ("fine", "coarse")]
            where = self.at("fine_label_names.txt")
        else:
            where, meta = self.at("meta"), _unpickled(self, "meta")
            said = [[_text(n) for n in meta.get(f"{level}_label_names", ())] for level in ("fine", "coarse")]
        fine, coarse = (tuple(names) for names in said)
        if (len(fine), len(coarse)) != (FINE, COARSE):
            raise InputError(
                f"{where} names {len(fine)} classes and {len(coarse)} superclasses; CIFAR-100 has 100 and 20."
            )
        return fine, coarse

    def records(self, part: Part) -> Records:
        records = self._binary(part) if self.layout == "binary" else self._python(part)
        file = self._file(part)
        for labels, kind, classes in ((records.fine, "fine", FINE), (records.coarse, "coarse", COARSE)):
            if (wrong := np.flatnonzero(labels >= classes)).size:
                raise InputError(
                    f"{self.at(file)}: record {wrong[0]} has {kind} label {labels[wrong[0]]}; "
                    f"{kind} labels run from 0 to {classes - 1}."
                )
        if part.fingerprint is not None and (found := fingerprint(records)) != part.fingerprint:
            raise InputError(
                f"{self.at(file)} has the right size, but other pictures or labels than CIFAR-100's "
                f"(fingerprint {found[:16]}, expected {part.fingerprint[:16]}). {WHERE}."
            )
        return records

    def _file(self, part: Part) -> str:
        return f"{part.name}.bin" if self.layout == "binary" else part.name

    def _binary(self, part: Part) -> Records:
        raw = np.frombuffer(self.open(self._file(part)), np.uint8)
        if raw.size != part.pictures * RECORD:
            raise InputError(
                f"{self.at(self._file(part))} has {raw.size:,} bytes, expected {part.pictures * RECORD:,} "
                f"({part.pictures:,} records of {RECORD:,} bytes). It is truncated, or another file."
            )
        rows = raw.reshape(part.pictures, RECORD)
        return Records(rows[:, 2:].reshape(-1, 3, 32, 32), rows[:, 1].copy(), rows[:, 0].copy())

    def _python(self, part: Part) -> Records:
        where = self.at(part.name)
        said = _unpickled(self, part.name)
        data = said.get("data")
        if not isinstance(data, np.ndarray) or data.shape != (part.pictures, PIXELS) or data.dtype != np.uint8:
            found = f"{list(data.shape)} {data.dtype}" if isinstance(data, np.ndarray) else type(data).__name__
            raise InputError(f"{where}: data is {found}, expected [{part.pictures}, {PIXELS}] uint8.")
        labels = [_labels(where, said, f"{kind}_labels", part.pictures) for kind in ("fine", "coarse")]
        return Records(data.reshape(-1, 3, 32, 32), *labels)


def find(path: Path) -> Source:
    """The layout at `path`: a folder that holds it or stands above it, or an archive of it."""
    if path.is_file():
        return _archive(path)
    for folder in (path, path / "cifar-100-python", path / "cifar-100-binary"):
        for layout, files in (("python", ("train", "test")), ("binary", ("train.bin", "test.bin"))):
            if any((folder / file).is_file() for file in files):
                return Source(layout, partial(_path, folder), partial(_read, folder))
    what = "has no CIFAR-100 in it" if path.is_dir() else "does not exist"
    raise InputError(f"{path} {what}. {WHERE}.")


def fingerprint(records: Records) -> str:
    """SHA-256 over the sorted hashes of all records, so that the order in which they stand does not matter."""
    rows = np.concatenate(
        [records.coarse[:, None], records.fine[:, None], records.pictures.reshape(len(records.fine), -1)], axis=1
    )
    return hashlib.sha256(b"".join(sorted(hashlib.blake2b(row, digest_size=16).digest() for row in rows))).hexdigest()


def _archive(path: Path) -> Source:
    try:
        with tarfile.open(path) as archive:
            members = {Path(m.name).name: m.name for m in archive.getmembers() if m.isfile()}
            wanted = (
                "train",
                "test",
                "meta",
                "train.bin",
                "test.bin",
                "fine_label_names.txt",
                "coarse_label_names.txt",
            )
            held = {name: archive.extractfile(members[name]).read() for name in wanted if name in members}  # type: ignore[union-attr]
    except (tarfile.TarError, EOFError, OSError) as error:
        raise InputError(f"{path} is not a whole archive ({type(error).__name__}). {WHERE}.") from error
    if not held.keys() & {"train", "train.bin"}:
        raise InputError(f"{path} is an archive without CIFAR-100 in it. {WHERE}.")

    def read(name: str) -> bytes:
        if name not in held:
            raise InputError(f"{path} has no {name} in it. {WHERE}.")
        return held[name]

    return Source("binary" if "train.bin" in held else "python", lambda name: f"{path}: {name}", read)


def _path(folder: Path, name: str) -> str:
    return str(folder / name)


def _read(folder: Path, name: str) -> bytes:
    try:
        return (folder / name).read_bytes()
    except FileNotFoundError:
        raise InputError(f"{folder / name} is missing. {WHERE}.") from None


class _Plain(pickle.Unpickler):
    """Admits numpy arrays and what pickle itself knows; asks nobody else to make anything."""

    KNOWN: dict[str, Any] = {  # noqa: RUF012
        "_reconstruct": np.empty(0).__reduce__()[0],
        "ndarray": np.ndarray,
        "dtype": np.dtype,
    }

    def find_class(self, module: str, name: str) -> Any:
        if module in ("numpy", "numpy.core.multiarray", "numpy._core.multiarray") and name in self.KNOWN:
            return self.KNOWN[name]
        raise InputError(f"asks for {module}.{name}, which no file of CIFAR-100 does; it was not loaded")


def _unpickled(source: Source, name: str) -> dict[str, Any]:
    where, raw = source.at(name), source.open(name)
    try:
        said = _Plain(io.BytesIO(raw), encoding="bytes").load()
    except InputError as error:
        raise InputError(f"{where} {error}.") from None
    except Exception as error:  # a damaged pickle can end in nearly any of them
        raise InputError(f"{where} ({len(raw):,} bytes) is not a whole file of CIFAR-100 ({error}). {WHERE}.") from None
    if not isinstance(said, dict):
        raise InputError(f"{where} holds a {type(said).__name__}, not the mapping that CIFAR-100 has. {WHERE}.")
    return {_text(key): value for key, value in said.items()}


def _labels(where: str, said: dict[str, Any], key: str, pictures: int) -> Bytes:
    labels = said.get(key)
    if not isinstance(labels, list) or len(labels) != pictures:
        found = f"{len(labels):,}" if isinstance(labels, list) else "no"
        raise InputError(f"{where} has {found} {key}, expected {pictures:,}.")
    if not all(isinstance(label, int) and 0 <= label < 256 for label in labels):
        raise InputError(f"{where}: {key} holds something that is not a label.")
    return np.array(labels, np.uint8)


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)
