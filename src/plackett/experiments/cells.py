"""Cells: what one method reached with one seed on one pair of networks, a line of JSON each; read without torch.

Files of several machines merge: a later line of the same cell replaces an earlier one of the same configuration.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from plackett.differences import differences
from plackett.errors import InputError, PlackettError
from plackett.experiments.records import Document, Run, find_runs, read_run

SCHEMA = 1
FILE = "cells.jsonl"
Key = tuple[str, str, str, int]


class TeacherNote(Document):
    network: str
    sha256: str
    accuracy: float


class Cell(Document):
    """Accuracies are of the last epoch and of the best one that was measured; a stopped student has only `stopped`.

    `config` decides whether two lines are of the same cell; versions, device and commit say where it was made.
    `seconds` are those of the whole cohort, whose members are in `cohort`.
    """

    schema_version: int = SCHEMA
    recipe: str
    pair: str
    method: str
    title: str
    seed: int
    accuracy: float | None = None
    best_accuracy: float | None = None
    best_epoch: int | None = None
    stopped: str | None = None
    epochs: int
    test: int
    config: dict[str, Any]
    teacher: TeacherNote | None = None
    cohort: list[str]
    seconds: float | None = None
    mode: str
    device: str
    versions: dict[str, str]
    commit: str | None = None
    finished: str

    @property
    def key(self) -> Key:
        return self.recipe, self.pair, self.method, self.seed

    def __str__(self) -> str:
        return f"{self.recipe}, {self.pair}, {self.method}, seed {self.seed}"


def check_same(old: Cell, new: Cell, where: str) -> None:
    """Two lines of one cell must have the same configuration."""
    if found := list(differences(old.config, new.config)):
        raise InputError(
            f"{where}: the cell {new} was made by another configuration: {'; '.join(found)}. "
            "Keep the two in different folders, or take one of them away."
        )


def read(files: Iterable[Path]) -> dict[Key, Cell]:
    """All cells of these files; a torn last line, which a kill can leave, is passed over."""
    held: dict[Key, Cell] = {}
    for path in files:
        for cell in _lines(path):
            if (old := held.get(cell.key)) is not None:
                check_same(old, cell, str(path))
                if old.stopped is None and cell.stopped is not None:
                    continue
            held[cell.key] = cell
    return held


def files(place: Path) -> list[Path]:
    """The files of cells in a folder, or beside a file, which need not exist yet."""
    folder = place.parent if place.suffix == ".jsonl" else place
    return sorted(folder.glob("*.jsonl"))


def target(place: Path) -> Path:
    """The file that new lines go to."""
    return place if place.suffix == ".jsonl" else place / FILE


def append(path: Path, cells: Sequence[Cell]) -> None:
    """All lines in one piece, after a line end where a kill left none."""
    text = "".join(cell.model_dump_json() + "\n" for cell in cells)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab+") as file:
            if file.tell() and (file.seek(-1, os.SEEK_END), file.read())[1] != b"\n":
                text = "\n" + text
            file.write(text.encode())
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise PlackettError(
            f"The results could not be written to {path} ({error.strerror or error}). The checkpoint of the last epoch "
            "is kept: make room and run the same command again."
        ) from error


def gather(places: Sequence[Path]) -> dict[Key, Cell]:
    """Cells of files, of folders with such files, and of run folders."""
    held: dict[Key, Cell] = {}
    for place in places:
        if not place.exists():
            raise InputError(f"There is no {place}; a table is made of run folders or .jsonl files.")
        if place.is_dir():
            found = files(place) if not (place / "run.json").exists() else []
            new = read(found) if found else {c.key: c for folder in find_runs(place) for c in _of_run(read_run(folder))}
        else:
            new = read([place])
        for key, cell in new.items():
            if key in held:
                check_same(held[key], cell, str(place))
            held[key] = cell
    if not held:
        raise InputError(f"There is no finished cell in {', '.join(map(str, places))}.")
    return held


def _lines(path: Path) -> Iterator[Cell]:
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}.") from error
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            cell = Cell.model_validate_json(line)
        except ValidationError as error:
            if _torn(line):
                continue
            found = error.errors()[0]
            at = ".".join(map(str, found["loc"]))
            raise InputError(
                f"{path}, line {number}, is not a cell ({at + ': ' if at else ''}{found['msg']}). "
                "Take the line away, or give another file."
            ) from error
        if cell.schema_version != SCHEMA:
            raise InputError(f"{path}, line {number}, has schema version {cell.schema_version}; this reads {SCHEMA}.")
        yield cell


def _torn(line: bytes) -> bool:
    """A line without its end, whether more was appended after it or not."""
    return line.startswith(b"{") and not line.rstrip().endswith(b"}")


def _of_run(run: Run) -> Iterator[Cell]:
    if run.results is None:
        return
    record = run.record
    for method in record.students:
        result = run.results.students.get(method)
        yield Cell(
            recipe=record.name,
            pair=record.group,
            method=method,
            title=method,
            seed=record.seed,
            accuracy=None if result is None else result.accuracy,
            best_accuracy=None if result is None else result.best_accuracy,
            best_epoch=None if result is None else result.best_epoch,
            stopped=None if result is not None else run.results.stopped.get(method, "It has no result."),
            epochs=int(record.config.get("recipe", {}).get("epochs", 0)),
            test=record.data.test,
            config={**record.config, "data": record.data.fingerprint},
            cohort=record.students,
            seconds=record.seconds,
            mode="",
            device=record.device,
            versions=record.versions,
            commit=record.commit,
            finished=record.started,
        )
