"""What networks said of the test pictures, as a file: logits in half precision, labels, and a few pictures to show.

    predictions.safetensors   `targets` [N], `teacher` [N, C] where there is one, `student/NAME` [N, C] each;
                              `pictures/which` [P] and `pictures/pixels` [P, H, W, channels], where pictures are kept

Read without torch. An .npz of anybody's own with `logits` and `targets` is read as well.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from plackett.errors import InputError, did_you_mean
from plackett.files import replacing
from plackett.intervals import Change, on_the_same

PREDICTIONS = "predictions.safetensors"
_STUDENT = "student/"
_PART = 4096
_LARGEST = float(np.finfo(np.float16).max)

Array = NDArray[Any]


@dataclass(frozen=True)
class Predictions:
    """`students` and `teacher` are logits `[N, C]` float32; `pixels` are of the pictures that `which` counts."""

    targets: Array
    students: dict[str, Array]
    teacher: Array | None = None
    which: Array = field(default_factory=lambda: np.zeros(0, np.int64))
    pixels: Array | None = None


def write(folder: Path, predictions: Predictions) -> Path:
    """Replaces the file of the run in `folder`."""
    held: dict[str, Array] = {"targets": predictions.targets.astype(np.int32)}
    if predictions.teacher is not None:
        held["teacher"] = _half(predictions.teacher)
    held |= {f"{_STUDENT}{name}": _half(logits) for name, logits in predictions.students.items()}
    if predictions.pixels is not None and len(predictions.which):
        held["pictures/which"] = predictions.which.astype(np.int32)
        held["pictures/pixels"] = np.ascontiguousarray(predictions.pixels, np.uint8)
    path = folder / PREDICTIONS
    with replacing(path) as temporary:
        temporary.write_bytes(save(held))
    return path


def read(path: Path) -> Predictions:
    """A file that `write` left, or one of your own: .safetensors or .npz with `logits` and `targets`."""
    held = _load(path)
    if "targets" not in held:
        raise InputError(f"{path} holds no `targets`, only {', '.join(sorted(held)) or 'nothing'}.")
    targets = held.pop("targets").astype(np.int64)
    if targets.ndim != 1:
        raise InputError(f"{path}: `targets` must be one label a picture, not of shape {list(targets.shape)}.")
    which, pixels = held.pop("pictures/which", np.zeros(0)), held.pop("pictures/pixels", None)
    logits = {name: value.astype(np.float32) for name, value in held.items()}
    for name, value in logits.items():
        if value.ndim != 2 or len(value) != len(targets) or not len(targets):
            raise InputError(
                f"{path}: `{name}` must be [pictures, classes] with {len(targets)} pictures, as there are labels; "
                f"it is {list(value.shape)}."
            )
        if not 0 <= targets.min() <= targets.max() < value.shape[1]:
            low, high = targets.min(), targets.max()
            raise InputError(f"{path}: labels run from {low} to {high}, but `{name}` has {value.shape[1]} classes.")
    students = {name.removeprefix(_STUDENT): value for name, value in logits.items() if name != "teacher"}
    return Predictions(targets, students, logits.get("teacher"), which.astype(np.int64), pixels)


class Named(NamedTuple):
    """What one network said, and what it is called."""

    title: str
    targets: Array
    logits: Array


def one(said: str) -> Named:
    """One network's predictions: FILE, FILE:NAME or RUN:NAME, where NAME is a student's or `teacher`."""
    place, _, name = (said, "", "") if Path(said).exists() else said.rpartition(":")
    path = Path(place)
    if not place or not path.exists():
        raise InputError(f"There is no run folder or file of predictions {said!r}.")
    path = path / PREDICTIONS if path.is_dir() else path
    if not path.is_file():
        raise InputError(f"{path.parent} has no {PREDICTIONS}: it is no run folder, or its run is not finished.")
    found = read(path)
    known = {**found.students, **({} if found.teacher is None else {"teacher": found.teacher})}
    if not known:
        raise InputError(f"{path} holds no predictions, only labels.")
    if not name and len(known) > 1:
        raise InputError(f"{said} holds {len(known)} networks; say which: {said}:NAME ({', '.join(known)}).")
    name = name or next(iter(known))
    if name not in known:
        raise InputError(f"{path} has no predictions of {name!r}; {did_you_mean(name, known)}.")
    return Named(f"{path.stem if name == 'logits' else name}", found.targets, known[name])


def answers(path: Path, names: Sequence[str]) -> tuple[Array, dict[str, Array]]:
    """The labels, and the class that each of these networks says, `[N]` each; what a file has not is left out.

    A part at a time, so that the logits of a thousand classes need not lie in memory.
    """
    try:
        with safe_open(path, framework="np") as held:
            targets, there = held.get_tensor("targets").astype(np.int64), set(held.keys())
            said = {}
            for name in names:
                key = name if name == "teacher" else f"{_STUDENT}{name}"
                if key in there:
                    logits = held.get_slice(key)
                    if logits.get_shape()[0] != len(targets):
                        raise InputError(f"{path} has other numbers of labels and of predictions.")
                    parts = [logits[i : min(i + _PART, len(targets))].argmax(-1) for i in range(0, len(targets), _PART)]
                    said[name] = np.concatenate(parts)
    except (OSError, ValueError, SafetensorError) as error:
        raise InputError(f"{path} cannot be read ({error}).") from error
    return targets, said


def change(targets: Array, ours: Array, theirs: Array) -> Change:
    """How many more of the same pictures one network gets right than another, by the classes that each says.

    >>> change(np.array([0, 1, 1]), np.array([0, 1, 1]), np.array([0, 0, 0])).value
    0.666...
    """
    right, other = ours == targets, theirs == targets
    return on_the_same(int((right & ~other).sum()), int((~right & other).sum()), len(targets))


def pictures(path: Path) -> tuple[Array, Array]:
    """The pictures to show, `[P, H, W, channels]`, and which of the test pictures; none where none were kept."""
    try:
        with safe_open(path, framework="np") as held:
            if {"pictures/which", "pictures/pixels"} <= set(held.keys()):
                return held.get_tensor("pictures/which").astype(np.int64), held.get_tensor("pictures/pixels")
    except (OSError, ValueError, SafetensorError) as error:
        raise InputError(f"{path} cannot be read ({error}).") from error
    return np.zeros(0, np.int64), np.zeros((0, 1, 1, 1), np.uint8)


def to_show(targets: Array, students: Mapping[str, Array], teacher: Array | None, most: int = 48) -> Array:
    """Which pictures a report shows: the teacher is right and a student is not, the surest teacher first."""
    if teacher is None or not students:
        return np.zeros(0, np.int64)
    wrong = np.any([logits.argmax(-1) != targets for logits in students.values()], axis=0)
    found = np.flatnonzero(wrong & (teacher.argmax(-1) == targets))
    second, first = np.partition(teacher[found].astype(np.float64), -2, axis=-1)[:, -2:].T
    return np.sort(found[np.argsort(second - first, kind="stable")[:most]])


def _half(logits: Array) -> Array:
    clipped = np.clip(logits, -_LARGEST, _LARGEST)  # -inf, a class that is not offered, stays
    return np.where(np.isneginf(logits), -np.inf, clipped).astype(np.float16)


def _load(path: Path) -> dict[str, Array]:
    if path.suffix not in (".npz", ".safetensors"):
        raise InputError(f"{path} is no file of predictions: they are .safetensors or .npz, with logits and targets.")
    try:
        if path.suffix == ".npz":
            with np.load(path, allow_pickle=False) as file:
                return dict(file)
        with safe_open(path, framework="np") as held:
            return {name: held.get_tensor(name) for name in held.keys()}  # noqa: SIM118
    except FileNotFoundError as error:
        raise InputError(f"There is no file of predictions {path}.") from error
    except (OSError, ValueError, BadZipFile, SafetensorError) as error:
        raise InputError(f"{path} cannot be read ({error}).") from error
