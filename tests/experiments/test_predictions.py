"""Predictions as a file: what is kept comes back, and what is broken is said."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from plackett.errors import InputError
from plackett.experiments import predictions
from plackett.experiments.predictions import PREDICTIONS, Predictions

TARGETS = np.array([0, 1, 2])
LOGITS = np.array([[2.0, 1.0, 0.0], [0.0, 3.0, -np.inf], [1e6, 0.5, 0.25]], np.float32)


def test_what_is_written_is_read(tmp_path: Path) -> None:
    pixels = np.arange(2 * 4 * 4 * 3, dtype=np.uint8).reshape(2, 4, 4, 3)
    predictions.write(tmp_path, Predictions(TARGETS, {"PLD τ=4": LOGITS}, LOGITS[:, ::-1], np.array([0, 2]), pixels))
    found = predictions.read(tmp_path / PREDICTIONS)
    assert found.targets.tolist() == [0, 1, 2]
    assert found.which.tolist() == [0, 2]
    assert found.pixels is not None
    assert (found.pixels == pixels).all()
    said = found.students["PLD τ=4"]
    assert np.isneginf(said[1, 2])
    assert said[2, 0] == 65504  # the largest number of half precision
    assert found.teacher is not None
    assert np.allclose(found.teacher[0], [0, 1, 2])


def test_the_same_predictions_give_the_same_bytes(tmp_path: Path) -> None:
    first = predictions.write(tmp_path / "a", Predictions(TARGETS, {"b": LOGITS, "a": LOGITS}))
    second = predictions.write(tmp_path / "b", Predictions(TARGETS, {"b": LOGITS, "a": LOGITS}))
    assert first.read_bytes() == second.read_bytes()


def test_a_file_of_ones_own(tmp_path: Path) -> None:
    np.savez(tmp_path / "mine.npz", logits=LOGITS, targets=TARGETS)
    found = predictions.one(str(tmp_path / "mine.npz"))
    assert found.title == "mine"
    assert found.logits.shape == (3, 3)


def test_pictures_to_show_are_the_surest_that_only_the_teacher_gets_right() -> None:
    teacher = np.array([[3.0, 0, 0], [0, 9, 0], [0, 0, 5], [9, 0, 0]])
    student = np.array([[0.0, 1, 0], [1, 0, 0], [0, 0, 1], [0, 1, 0]])
    targets = np.array([0, 1, 2, 1])
    assert predictions.to_show(targets, {"s": student}, teacher).tolist() == [0, 1]
    assert predictions.to_show(targets, {"s": student}, teacher, most=1).tolist() == [1]
    assert predictions.to_show(targets, {"s": student}, None).tolist() == []


def broken(tmp_path: Path, **tensors: np.ndarray) -> str:
    np.savez(tmp_path / "x.npz", **tensors)
    return str(tmp_path / "x.npz")


@pytest.mark.parametrize(("tensors", "sentence"), [
    ({"logits": LOGITS}, "x.npz holds no `targets`, only logits."),
    ({"targets": TARGETS}, "x.npz holds no predictions, only labels."),
    ({"logits": LOGITS[:2], "targets": TARGETS},
     "`logits` must be [pictures, classes] with 3 pictures, as there are labels; it is [2, 3]."),
    ({"logits": LOGITS[:, :2], "targets": TARGETS}, "labels run from 0 to 2, but `logits` has 2 classes."),
    ({"logits": LOGITS, "targets": TARGETS[None]}, "`targets` must be one label a picture, not of shape [1, 3]."),
    ({"a": LOGITS, "b": LOGITS, "targets": TARGETS}, "x.npz:NAME (a, b)."),
])  # fmt: skip
def test_a_file_that_does_not_fit_is_told_of(tmp_path: Path, tensors: dict[str, np.ndarray], sentence: str) -> None:
    with pytest.raises(InputError) as found:
        predictions.one(broken(tmp_path, **tensors))
    assert str(found.value).endswith(sentence)


def test_places_that_are_not_there_are_told_of(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"There is no run folder or file of predictions 'nowhere:x'\."):
        predictions.one("nowhere:x")
    with pytest.raises(InputError, match=rf"has no {PREDICTIONS}: it is no run folder, or its run is not finished\."):
        predictions.one(str(tmp_path))
    (tmp_path / "a.txt").touch()
    with pytest.raises(InputError, match=r"is no file of predictions: they are \.safetensors or \.npz"):
        predictions.one(str(tmp_path / "a.txt"))
    (tmp_path / "a.npz").write_bytes(b"PK no zip")
    (tmp_path / "a.safetensors").write_bytes(b"12345678abc")
    for name in ("a.npz", "a.safetensors"):
        with pytest.raises(InputError, match=rf"{name} cannot be read"):
            predictions.one(str(tmp_path / name))
    path = broken(tmp_path, kd=LOGITS, targets=TARGETS)
    with pytest.raises(InputError, match=r"has no predictions of 'kid'; did you mean 'kd'\? \(choices: kd\)\."):
        predictions.one(f"{path}:kid")
