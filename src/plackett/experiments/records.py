"""The run folder: what one cohort was asked, in what surroundings, what it measured, and how it ended.

    run.json        RunRecord: configuration, versions, device, seed, commit, data, teacher, status
    metrics.jsonl   one EpochRecord a line
    results.json    Results: the final figures of every student; holds no times, so equal runs give equal files

Documents are replaced whole, so a killed run leaves the last good one; a torn line of metrics is left out and named.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from plackett.errors import InputError, UnfinishedError

SCHEMA = 1
RUN, METRICS, RESULTS = "run.json", "metrics.jsonl", "results.json"

Status = Literal["running", "finished", "interrupted", "failed"]
D = TypeVar("D", bound="Document")


class Document(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class DataRecord(Document):
    """`test` pictures are those of the last figures; `watched` is what students were tested on after each epoch."""

    name: str
    fingerprint: str
    classes: list[str]
    train: int
    test: int
    watched: Literal["test", "validation"] = "test"
    tested: Literal["test", "validation"] = "test"


class CalibrationRecord(Document):
    ece: float
    counts: list[int]
    confidence: list[float | None]
    accuracy: list[float | None]


class TeacherRecord(Document):
    """`first_choice_weight`: the mean of softmax(t / tau)[label], by tau, over the pictures that `weighed_on` names."""

    model: str
    parameters: int
    accuracy: float
    calibration: CalibrationRecord
    first_choice_weight: dict[float, float]
    weighed_on: Literal["training", "validation"] = "training"


class RunRecord(Document):
    """One cohort. `group` names what its seeds have in common, so that seeds can be gathered again.

    `title` is what people read for `name`; `command` is what was typed, empty where no command made it.
    """

    schema_version: int = SCHEMA
    name: str
    title: str = ""
    command: str = ""
    group: str
    status: Status
    message: str | None = None
    seed: int
    students: list[str]
    config: dict[str, Any]
    data: DataRecord
    teacher: TeacherRecord | None = None
    versions: dict[str, str]
    device: str
    commit: str | None = None
    started: str
    seconds: float | None = None


class StudentEpoch(Document):
    """`agreement` with the teacher on the test pictures; `gradient_share`: each term's part of the gradients' norms."""

    loss: float
    terms: dict[str, float]
    train_accuracy: float
    accuracy: float
    agreement: float | None = None
    gradient_share: dict[str, float] = {}
    first_choice_weight: float | None = None


class EpochRecord(Document):
    epoch: int
    students: dict[str, StudentEpoch]


class StudentResult(Document):
    """Figures of the last epoch; the best epoch stands beside them and is never the headline."""

    parameters: int
    accuracy: float
    best_accuracy: float
    best_epoch: int
    agreement: float | None
    calibration: CalibrationRecord


class Results(Document):
    """`stopped` holds the sentence of every student that did not finish, `warnings` what was noticed on the way."""

    schema_version: int = SCHEMA
    students: dict[str, StudentResult]
    stopped: dict[str, str] = {}
    warnings: list[str] = []


class Run(Document):
    """A run folder as read; `problems` says in sentences what is missing or broken."""

    folder: Path
    record: RunRecord
    metrics: list[EpochRecord]
    results: Results | None
    problems: list[str]


def write_json(path: Path, document: BaseModel) -> None:
    """Replaces `path` at once or not at all."""
    write_text(path, document.model_dump_json(indent=2) + "\n")


def write_text(path: Path, text: str) -> None:
    """Replaces `path` at once or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        _replace(path, text)
    except OSError as error:  # of the file that was asked for, not of the one that takes its place
        raise OSError(error.errno, error.strerror, str(path)) from error


def _replace(path: Path, text: str) -> None:
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, 0o644)
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


@contextmanager
def under_way(folder: Path, record: RunRecord) -> Iterator[None]:
    """`run.json` says that the run is going on, and where it ends before its time, how."""
    (folder / RESULTS).unlink(missing_ok=True)
    write_json(folder / RUN, record)
    try:
        yield
    except BaseException as error:
        status = "interrupted" if isinstance(error, KeyboardInterrupt | UnfinishedError) else "failed"
        with suppress(OSError):
            write_json(folder / RUN, record.model_copy(update={"status": status, "message": str(error) or None}))
        raise


class MetricsFile:
    """Appends epochs to `metrics.jsonl`, which it begins anew."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._file = (folder / METRICS).open("w", encoding="utf-8")

    def append(self, epoch: EpochRecord) -> None:
        self._file.write(epoch.model_dump_json() + "\n")
        self._file.flush()

    def __enter__(self) -> MetricsFile:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()


def read_run(folder: Path) -> Run:
    """The run in `folder`. Without a readable `run.json` there is none; what else is missing is told in `problems`."""
    problems: list[str] = []
    record = _read(folder / RUN, RunRecord)
    if isinstance(record, str):
        raise InputError(record)
    metrics = list(_epochs(folder / METRICS, problems))
    results: Results | None = None
    if record.status != "finished":  # a folder in use again may still hold an older run's results
        why = f" ({record.message})" if record.message else ""
        problems.insert(0, f"{folder} is not finished: its status is {record.status!r}{why}.")
    elif isinstance(found := _read(folder / RESULTS, Results), str):
        problems.append(found)
    else:
        results = found
        problems += [*results.stopped.values(), *results.warnings]
    return Run(folder=folder, record=record, metrics=metrics, results=results, problems=problems)


def the_run(folder: Path) -> Run:
    """The run in just this folder, for what is about one run."""
    if not folder.is_dir():
        near = sorted(path.name for path in folder.parent.glob(f"{folder.name}*") if (path / RUN).exists())
        meant = f"; did you mean {folder.parent / near[0]}?" if near else "."
        raise InputError(f"There is no run folder {folder}{meant}")
    if not (folder / RUN).exists() and (below := sorted(path.parent for path in folder.rglob(RUN))):
        raise InputError(f"{folder} is no run folder; it holds {len(below)}. Name one of them, such as {below[0]}.")
    return read_run(folder)


def find_runs(*roots: Path) -> list[Path]:
    """Every run folder at or below the given folders, in the order of their names."""
    for root in roots:
        if not root.is_dir():
            raise InputError(f"There is no run folder {root}.")
    found = [path.parent for root in roots for path in sorted(root.rglob(RUN))]
    if not found:
        raise InputError(f"There is no {RUN} in or below {', '.join(map(str, roots))}: that is not a run folder.")
    return list(dict.fromkeys(found))


def read_document(path: Path, kind: type[D]) -> D:
    """A JSON document of a known kind, or the sentence that says what is wrong with it."""
    document = _read(path, kind)
    if isinstance(document, str):
        raise InputError(document)
    return document


def _read(path: Path, kind: type[D]) -> D | str:
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return f"{path} is missing: the run was stopped before it was written, or the file was taken away."
    except (OSError, UnicodeDecodeError) as error:
        return f"{path} cannot be read: {error}."
    try:
        data = json.loads(text)
    except ValueError as error:
        return f"{path} is damaged: {error}."
    version = data.get("schema_version", SCHEMA) if isinstance(data, dict) else SCHEMA
    if version != SCHEMA:
        return f"{path} has schema version {version}, this plackett reads {SCHEMA}: use the version that wrote it."
    try:
        return kind.model_validate(data)
    except ValidationError as error:
        return f"{path} is not as expected: {_first(error)}."


def _epochs(path: Path, problems: list[str]) -> Iterator[EpochRecord]:
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        problems.append(f"{path} cannot be read: {error.strerror}.")
        return
    for number, line in enumerate(lines, 1):
        try:
            yield EpochRecord.model_validate_json(line)
        except ValidationError as error:
            problems.append(f"{path} is damaged from line {number} of {len(lines)} on: {_first(error)}.")
            return


def _first(error: ValidationError) -> str:
    found = error.errors()[0]
    where = ".".join(map(str, found["loc"]))
    return f"{where}: {found['msg']}" if where else found["msg"]
