"""Hugging Face data sets: saved by `save_to_disk`, as parquet files, or by the name of one, `hf:NAME`."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from torch import Tensor

from plackett.data.labelling import Label, classes_of, targets_of
from plackett.data.layouts import split_called
from plackett.data.source import Source
from plackett.data.stored import Stored
from plackett.errors import InputError, missing_extra

PREFIX = "hf:"
PICTURES = ("image", "img", "picture", "pixels")
LABELS = ("label", "labels", "fine_label", "class", "target", "category")


@dataclass(frozen=True)
class Rows(Stored):
    """The pictures of a split's `column`, which holds each as the bytes of a file, or as a path."""

    rows: Any
    column: str
    split: str
    targets: Tensor
    classes: tuple[str, ...]

    def name(self, index: int) -> str:
        return f"{self.split}, row {index}"

    def opened(self, index: int) -> BinaryIO | Path:
        held = self.rows[index][self.column]
        if not held or (held.get("bytes") is None and not held.get("path")):
            raise ValueError("there is nothing in this row")
        return Path(held["path"]) if held.get("bytes") is None else io.BytesIO(held["bytes"])

    def sizes(self) -> Iterator[object]:
        import pyarrow.compute as arrow

        for batch in self.rows.with_format("arrow").iter(1000):
            pictures = batch[self.column]
            lengths = arrow.binary_length(arrow.struct_field(pictures, "bytes"))
            yield from zip(lengths.to_pylist(), arrow.struct_field(pictures, "path").to_pylist(), strict=True)


def is_saved(folder: Path) -> bool:
    """By `save_to_disk`."""
    return any((folder / name).is_file() for name in ("dataset_dict.json", "state.json"))


def load(path: str, splits: Mapping[str, str] | None) -> tuple[dict[str | None, Source], tuple[str, ...]]:
    """The splits of `path`, which is a folder or `hf:NAME`; None as a split where the data set knows none."""
    held = _loaded(path)
    chosen, unused = _splits(held, path, splits)
    first = next(iter(chosen.values()))
    picture, label = _picture_column(first, path), _label_column(first, path)
    labels = {split: _labels(rows, label, split, path) for split, rows in chosen.items()}
    names = getattr(first.features[label], "names", None)
    folder = Path(path.removeprefix(PREFIX))
    classes = tuple(names) if names else classes_of(next(iter(labels.values())), folder)
    found: dict[str | None, Source] = {}
    for split, rows in chosen.items():
        called = split or "train"
        found[split] = _rows(rows, picture, called, targets_of(labels[split], classes, called, path), classes)
    notes = [f"Not used: {', '.join(unused)} in {path}."] if unused else []
    return found, tuple(notes)


def _loaded(path: str) -> Any:
    try:
        import datasets
    except ImportError as error:
        raise missing_extra("datasets", "data", f"Reading {path}") from error
    folder = Path(path.removeprefix(PREFIX)).expanduser()
    with _silently():
        try:
            return datasets.load_from_disk(str(folder)) if is_saved(folder) else datasets.load_dataset(str(folder))
        except Exception as error:  # of half a dozen libraries
            raise InputError(
                f"Hugging Face datasets cannot load {path} ({type(error).__name__}: {str(error).splitlines()[0]}); "
                "give the name of a data set, a folder that save_to_disk made, or one of parquet files."
            ) from error


@contextmanager
def _silently() -> Iterator[None]:
    from datasets.utils import are_progress_bars_disabled, disable_progress_bars, enable_progress_bars

    were = are_progress_bars_disabled()
    disable_progress_bars()
    try:
        yield
    finally:
        if not were:
            enable_progress_bars()


def _splits(held: Any, path: str, said: Mapping[str, str] | None) -> tuple[dict[str | None, Any], list[str]]:
    if not isinstance(held, dict):
        return {None: held}, []
    if said is not None:
        for split, name in said.items():
            if name not in held:
                raise InputError(f"{path} has no {name!r}, which was to be its {split} split; it has {_listed(held)}.")
        return {split: held[name] for split, name in said.items()}, []
    called = {name: split_called(name) for name in held}
    order = ("train", "val", "test")
    chosen: dict[str | None, Any] = {s: held[name] for s in order for name, split in called.items() if split == s}
    if not chosen and len(held) == 1:
        return {None: next(iter(held.values()))}, []
    if not chosen:
        raise InputError(f"{path} has {_listed(held)}, and none is called train; say which is which with splits.")
    return chosen, [name for name, split in called.items() if split is None]


def _listed(names: Any) -> str:
    return ", ".join(map(repr, names))


def _picture_column(rows: Any, path: str) -> str:
    import datasets

    def holds(feature: Any) -> bool:
        return isinstance(feature, datasets.Image) or (isinstance(feature, dict) and {"bytes", "path"} <= set(feature))

    found = [name for name, feature in rows.features.items() if holds(feature)]
    if not found:
        columns = ", ".join(f"{name} ({_kind(feature)})" for name, feature in rows.features.items())
        raise InputError(f"{path} has no column of pictures; its columns are {columns}.")
    return next((name for name in PICTURES if name in found), found[0])


def _label_column(rows: Any, path: str) -> str:
    import datasets

    named = [name for name, feature in rows.features.items() if isinstance(feature, datasets.ClassLabel)]
    plain = [n for n, f in rows.features.items() if getattr(f, "dtype", "") in ("string", *_WHOLE)]
    for known in (named, plain):
        if usual := [name for name in LABELS if name in known]:
            return str(usual[0])
    if len(named) == 1:
        return str(named[0])
    columns = ", ".join(f"{name} ({_kind(feature)})" for name, feature in rows.features.items())
    raise InputError(
        f"{path} has no column of labels ({', '.join(LABELS)}, or one of class labels); its columns are {columns}."
    )


_WHOLE = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")


def _kind(feature: Any) -> str:
    return str(getattr(feature, "dtype", None) or type(feature).__name__)


def _labels(rows: Any, column: str, split: str | None, path: str) -> list[Label]:
    """By name where the data set has names for them; -1 is how some say that there is none."""
    if column not in rows.features:
        raise InputError(f"The {split} split of {path} has no column {column!r}, which its first split has.")
    names = getattr(rows.features[column], "names", None)
    held = list(rows[column])
    return [None if x is None or x == -1 else names[x] if names and isinstance(x, int) else x for x in held]


def _rows(rows: Any, picture: str, split: str, targets: Tensor, classes: tuple[str, ...]) -> Rows:
    import datasets

    if isinstance(rows.features.get(picture), datasets.Image):
        rows = rows.cast_column(picture, datasets.Image(decode=False))
    return Rows(rows.select_columns([picture]), picture, split, targets, classes)
