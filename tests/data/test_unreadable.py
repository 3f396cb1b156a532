"""Pictures that cannot be read: named, replaced or left out, counted, and beyond the limit the end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from plackett.data.folders import open_pictures
from plackett.data.loading import Bad, PictureBatches, Viewed
from plackett.data.sight import Sight
from plackett.data.source import Source
from plackett.errors import InputError
from tests.data import drawn

SIGHT = Sight(16)


def broken(root: Path, *names: str) -> Source:
    """A folder of pictures of which some were cut short, are something else, or are gone once they were found."""
    drawn.folder(root)
    for name in names:
        file = root / name
        if "00" in name:
            file.write_bytes(file.read_bytes()[:-100])
        elif "01" in name:
            file.write_text("no picture")
    found = open_pictures(root).train
    assert found is not None
    for name in names:
        if "02" in name:
            (root / name).unlink()
    return found


def stream(source: Source, **options: Any) -> PictureBatches:
    return PictureBatches(source, 6, 1, SIGHT, **options)


@pytest.mark.parametrize("workers", [0, 2])
def test_bad_pictures_are_named_and_replaced_by_others_of_their_class(tmp_path: Path, workers: int) -> None:
    source = broken(tmp_path, "train/cat/00.jpg", "train/cat/01.jpg", "train/dog/02.jpg")
    told: list[Bad] = []
    given = stream(source, workers=workers, on_bad=told.append)
    epochs = [list(given.epoch(epoch)) for epoch in (0, 1)]
    given.close()
    why = {
        "train/cat/01.jpg": "not a picture of a kind that Pillow knows",
        "train/dog/02.jpg": "No such file or directory",
    }
    assert {bad.name: bad.why for bad in told if "00" not in bad.name} == why
    assert next(bad.why for bad in told if "00" in bad.name).startswith("image file is truncated (")
    assert given.bad == told
    assert len(told) == 3
    for batch in (batch for epoch in epochs for batch in epoch):
        assert torch.equal(batch.targets, source.targets[batch.indices])
        assert torch.isfinite(batch.inputs).all()
    again = stream(source)
    assert all(torch.equal(a.inputs, b.inputs) for a, b in zip(again.epoch(1), epochs[1], strict=True))
    batch = epochs[1][1]
    assert torch.equal(again.replay(batch.indices, 1).inputs, batch.inputs)


def test_the_replacement_is_a_picture_of_that_class(tmp_path: Path) -> None:
    source = broken(tmp_path, "train/cat/00.jpg")
    given = PictureBatches(source, 1, 1, SIGHT, augment=None)
    cats = [given.replay(torch.tensor([i]), 0).inputs for i in range(len(source)) if source.targets[i] == 1]
    assert any(torch.equal(cats[0], other) for other in cats[1:])


@pytest.mark.parametrize("workers", [0, 1])
def test_too_many_bad_pictures_end_the_run(tmp_path: Path, workers: int) -> None:
    source = broken(tmp_path, "train/cat/01.jpg", "train/dog/01.jpg")
    with pytest.raises(InputError) as caught:
        list(stream(source, bad_limit=1, workers=workers).epoch(0))
    first = next(name for name in ("train/cat/01.jpg", "train/dog/01.jpg") if name in str(caught.value))
    assert str(caught.value) == (
        f"2 of 18 pictures cannot be read, and at most 1 may be (the first: {first}: not a picture of a kind that "
        "Pillow knows). Repair or remove them, or allow more with bad_limit."
    )


@pytest.mark.parametrize("workers", [0, 1])
def test_a_class_of_which_nothing_can_be_read_ends_the_run(tmp_path: Path, workers: int) -> None:
    source = broken(tmp_path, *(f"train/cat/0{i}.jpg" for i in range(6)))
    for i in range(3, 6):
        (tmp_path / f"train/cat/0{i}.jpg").write_bytes(b"")
    with pytest.raises(InputError) as caught:
        list(stream(source, workers=workers).epoch(0))
    name = str(caught.value).split(" ")[0]
    assert str(caught.value) == (
        f"{name} cannot be read, nor can any other picture of class 'cat' that was tried; look at those files."
    )
    assert name.startswith("train/cat/")


def test_test_pictures_that_cannot_be_read_are_left_out(tmp_path: Path) -> None:
    source = broken(tmp_path, "train/cat/01.jpg", "train/dog/00.jpg")
    whole = Viewed(source, SIGHT, size=4)
    assert len(whole) == 18
    batches = list(whole.batches())
    assert [bad.name for bad in whole.bad] == ["train/cat/01.jpg", "train/dog/00.jpg"]
    assert len(whole) == len(whole.targets) == 16
    assert torch.equal(torch.cat([batch.targets for batch in batches]), whole.targets)
    assert torch.cat([batch.indices for batch in batches]).tolist() == [i for i in range(18) if i not in (7, 12)]
    there = Viewed(source, SIGHT, size=4, workers=2)
    for _ in range(2):
        assert all(torch.equal(a.inputs, b.inputs) for a, b in zip(there.batches(), batches, strict=True))
    there.close()
    with pytest.raises(InputError, match="2 of 18 pictures cannot be read, and at most 0 may be"):
        list(Viewed(source, SIGHT, bad_limit=0).batches())


def test_the_limit_is_one_in_a_hundred_and_at_least_ten(tmp_path: Path) -> None:
    from plackett.data.unreadable import Unreadable

    source = broken(tmp_path)
    assert Unreadable(source, None, None).limit == 10
    with pytest.raises(InputError, match=r"The limit of unreadable pictures is at least 0, not -1\."):
        Unreadable(source, -1, None)
