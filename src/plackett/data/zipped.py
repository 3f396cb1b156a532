"""Pictures in a zip file, read from there one by one, without unpacking it."""

from __future__ import annotations

import io
import os
import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from torch import Tensor

from plackett.data.stored import Stored
from plackett.errors import InputError


@dataclass(frozen=True)
class Zipped(Stored):
    """Pictures in the zip file `path`, at `paths` within it."""

    path: Path
    paths: tuple[str, ...]
    checksums: tuple[int, ...]
    targets: Tensor
    classes: tuple[str, ...]
    _open: dict[int, zipfile.ZipFile] = field(default_factory=dict, init=False, repr=False, compare=False)

    def name(self, index: int) -> str:
        return f"{self.path.name}/{self.paths[index]}"

    def opened(self, index: int) -> BinaryIO:
        try:
            return io.BytesIO(self._archive().read(self.paths[index]))
        except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError) as error:
            raise ValueError(str(error)) from error

    def sizes(self) -> tuple[int, ...]:
        return self.checksums

    def _archive(self) -> zipfile.ZipFile:
        # One for each process: two that share a file descriptor would move each other's place in it.
        if os.getpid() not in self._open:
            self._open.clear()
            self._open[os.getpid()] = zipfile.ZipFile(self.path)
        return self._open[os.getpid()]

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "_open": {}}


def contents(path: Path) -> tuple[dict[str, int], list[str]]:
    """The checksum of every file in it, and its folders."""
    try:
        with zipfile.ZipFile(path) as archive:
            entries = archive.infolist()
    except (zipfile.BadZipFile, OSError, EOFError) as error:
        raise InputError(
            f"{path} cannot be read as a zip file ({error}): it is damaged or was not copied whole; copy it again."
        ) from error
    files = {entry.filename: entry.CRC for entry in entries if not entry.is_dir()}
    return files, [entry.filename for entry in entries if entry.is_dir()]
