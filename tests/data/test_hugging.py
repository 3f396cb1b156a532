"""Hugging Face data sets, in the forms in which they lie on a disk."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from plackett.data.folders import open_pictures
from plackett.data.loading import PictureBatches
from plackett.data.sight import Sight
from plackett.data.source import NO_LABEL
from plackett.errors import InputError, MissingExtraError
from tests.data import drawn

datasets = pytest.importorskip("datasets")
datasets.disable_progress_bars()


@pytest.fixture(autouse=True)
def _no_cache_but_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)


def rows(numbers: range, kind: str = "names") -> Any:
    """Picture i is of class i % 3, as a class label, a number or a string."""
    feature = {"names": datasets.ClassLabel(names=list(drawn.CLASSES)), "number": datasets.Value("int64"),
               "string": datasets.Value("string")}[kind]  # fmt: skip
    labels = [drawn.CLASSES[i % 3] if kind == "string" else i % 3 for i in numbers]
    features = datasets.Features({"id": datasets.Value("int64"), "img": datasets.Image(), "label": feature})
    pictures = [drawn.picture(i) for i in numbers]
    return datasets.Dataset.from_dict({"id": list(numbers), "img": pictures, "label": labels}, features=features)


def check(found: Any, numbers: range, classes: tuple[str, ...] = drawn.CLASSES) -> None:
    assert found.classes == classes
    assert len(found) == len(numbers)
    for i, number in enumerate(numbers):
        assert found.read(i).tobytes() == drawn.picture(number).tobytes()
        assert classes[found.targets[i]] == classes[number % 3]


def test_a_saved_dictionary_of_splits(tmp_path: Path) -> None:
    held = datasets.DatasetDict(train=rows(range(9)), validation=rows(range(9, 15)), extra=rows(range(2)))
    held.save_to_disk(tmp_path / "pets")
    found = open_pictures(tmp_path / "pets")
    assert found.kind == "a Hugging Face data set"
    check(found.train, range(9))
    check(found.val, range(9, 15))
    assert found.test is None
    assert found.notes == (f"Not used: extra in {tmp_path / 'pets'}.",)
    assert found.train is not None
    assert found.train.name(4) == "train, row 4"
    again = open_pictures(f"hf:{tmp_path / 'pets'}", splits={"train": "extra", "val": "train"})
    check(again.train, range(2))
    check(again.val, range(9))
    assert again.val is not None
    batches = [PictureBatches(found.train, 4, 0, Sight(16), workers=workers) for workers in (0, 2)]
    for here, there in zip(*(each.epoch(0) for each in batches), strict=True):
        assert torch.equal(here.inputs, there.inputs)
    batches[1].close()


def test_a_single_saved_data_set_is_held_out_from(tmp_path: Path) -> None:
    rows(range(30)).shuffle(seed=1).save_to_disk(tmp_path / "pets")
    found = open_pictures(tmp_path / "pets")
    assert found.train is not None
    assert found.val is not None
    assert (len(found.train), len(found.val)) == (27, 3)
    assert found.train.fingerprint() == open_pictures(tmp_path / "pets").train.fingerprint()  # type: ignore[union-attr]


@pytest.mark.parametrize(("kind", "classes"), [
    ("names", drawn.CLASSES), ("string", drawn.CLASSES), ("number", ("0", "1", "2")),
])  # fmt: skip
@pytest.mark.parametrize("plain", [False, True])
def test_a_folder_of_parquet_files(tmp_path: Path, kind: str, classes: tuple[str, ...], plain: bool) -> None:
    """`plain`: without what Hugging Face writes into such files, as others write them."""
    folder = tmp_path / "pets"
    folder.mkdir()
    for name, numbers in (("train", range(9)), ("test", range(9, 12))):
        path = folder / f"{name}-00000-of-00001.parquet"
        rows(numbers, kind).to_parquet(path)
        if plain:
            import pyarrow.parquet as parquet

            parquet.write_table(parquet.read_table(path).replace_schema_metadata(None), path)
    if plain and kind == "names":
        (folder / "classes.txt").write_text("\n".join(drawn.CLASSES))
    found = open_pictures(folder, splits={"train": "train", "test": "test", "val": "test"})
    check(found.train, range(9), classes)
    check(found.test, range(9, 12), classes)


def test_labels_that_are_not_there(tmp_path: Path) -> None:
    held = rows(range(6), "number").to_dict()
    held["label"][2], held["label"][4] = -1, None
    features = datasets.Features(
        {"id": datasets.Value("int64"), "img": datasets.Image(), "label": datasets.Value("int64")}
    )
    datasets.Dataset.from_dict(held, features=features).save_to_disk(tmp_path / "pets")
    found = open_pictures(tmp_path / "pets", splits=None)
    assert found.train is not None
    assert (found.train.targets == NO_LABEL).sum() == 2


def refused(path: Path | str, at: Path, **options: Any) -> str:
    with pytest.raises(InputError) as caught:
        open_pictures(path, **options)
    return str(caught.value).replace(str(at), "AT")


def test_the_mistakes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows(range(3)).remove_columns("img").save_to_disk(tmp_path / "a")
    assert refused(tmp_path / "a", tmp_path) == (
        "AT/a has no column of pictures; its columns are id (int64), label (int64)."
    )
    rows(range(3)).rename_column("label", "colour").rename_column("id", "n").cast_column(
        "colour", datasets.Value("float32")
    ).save_to_disk(tmp_path / "b")
    assert refused(tmp_path / "b", tmp_path) == (
        "AT/b has no column of labels (label, labels, fine_label, class, target, category, or one of class labels); "
        "its columns are n (int64), img (PIL.Image.Image), colour (float32)."
    )
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "data.parquet").write_bytes(b"PAR1 no")
    assert refused(tmp_path / "c", tmp_path).startswith("Hugging Face datasets cannot load AT/c (")
    assert refused("hf:no/such-data-set", tmp_path).startswith(
        "Hugging Face datasets cannot load hf:no/such-data-set ("
    )
    datasets.DatasetDict(one=rows(range(3)), two=rows(range(3))).save_to_disk(tmp_path / "d")
    assert refused(tmp_path / "d", tmp_path) == (
        "AT/d has 'one', 'two', and none is called train; say which is which with splits."
    )
    assert refused(tmp_path / "d", tmp_path, splits={"train": "three"}) == (
        "AT/d has no 'three', which was to be its train split; it has 'one', 'two'."
    )
    assert refused(tmp_path / "d", tmp_path, splits={"trian": "one"}) == (
        "There is no split 'trian'; did you mean 'train'? (choices: test, train, val)."
    )
    more = rows(range(4), "string").map(lambda row: {"label": row["label"] + "s"})
    datasets.DatasetDict(train=rows(range(3), "string"), test=more).save_to_disk(tmp_path / "e")
    assert refused(tmp_path / "e", tmp_path) == (
        "The test pictures in AT/e have the class 'birds', which the first of its splits has not; all of them must "
        "have the same classes."
    )
    monkeypatch.setitem(__import__("sys").modules, "datasets", None)
    with pytest.raises(MissingExtraError) as caught:
        open_pictures(tmp_path / "a")
    assert str(caught.value).replace(str(tmp_path), "AT") == (
        "Reading AT/a needs 'datasets', which is not installed: pip install 'plackett[data]'."
    )
