"""Pictures however they lie on a disk, and the sentences for those that lie otherwise."""

from __future__ import annotations

import shutil
import zipfile
from pathlib import Path

import pytest
import torch

from plackett.data.folders import joined, open_pictures, unlabelled
from plackett.data.source import NO_LABEL
from plackett.errors import InputError
from tests.data import drawn


def test_splits_are_recognised_by_the_names_that_people_use(tmp_path: Path) -> None:
    found = open_pictures(drawn.folder(tmp_path, {"Training": 4, "valid": 2, "TEST": 1}))
    assert found.train is not None
    assert found.val is not None
    assert found.test is not None
    assert (len(found.train), len(found.val), len(found.test)) == (12, 6, 3)
    assert found.classes == found.val.classes == drawn.CLASSES
    assert found.train.targets.tolist() == [0] * 4 + [1] * 4 + [2] * 4
    assert found.train.name(5) == "Training/cat/01.jpg"
    assert found.train.read(5).size == drawn.picture(6).size
    assert (found.kind, found.notes) == ("a folder", ())


def test_without_validation_pictures_a_tenth_of_each_class_is_held_out_and_said(tmp_path: Path) -> None:
    found = open_pictures(drawn.folder(tmp_path, {"": 20}))
    assert found.train is not None
    assert found.val is not None
    assert found.train.targets.bincount().tolist() == [18, 18, 18]
    assert found.val.targets.bincount().tolist() == [2, 2, 2]
    names = [{part.name(i) for i in range(len(part))} for part in (found.train, found.val)]
    assert not names[0] & names[1]
    assert found.notes == (
        "There are no validation pictures: 6 of the 60 training pictures, 10% of every class, are held out for it "
        "(always the same ones).",
    )
    again = open_pictures(tmp_path)
    assert again.val is not None
    assert again.val.fingerprint() == found.val.fingerprint() != found.train.fingerprint()


@pytest.mark.parametrize("top", ["", "pets/"])
def test_a_zip_file_is_read_without_unpacking_it(tmp_path: Path, top: str) -> None:
    folder = drawn.folder(tmp_path / "pets")
    path = tmp_path / "pets.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for file in sorted(folder.rglob("*")):
            archive.write(file, top + file.relative_to(folder).as_posix())
        archive.writestr("__MACOSX/pets/train/cat/._00.jpg", b"junk")
        archive.writestr(f"{top}train/.DS_Store", b"junk")
        archive.writestr(f"{top}train/cat/._00.jpg", b"junk")
    inside, outside = open_pictures(path), open_pictures(folder)
    assert inside.kind == "a zip file"
    assert inside.train is not None
    assert outside.train is not None
    assert inside.classes == outside.classes
    assert torch.equal(inside.train.targets, outside.train.targets)
    assert [inside.train.read(i).tobytes() for i in range(18)] == [outside.train.read(i).tobytes() for i in range(18)]
    assert inside.train.name(0) == f"pets.zip/{top}train/bird/00.jpg"


def test_pictures_without_labels_join_those_with(tmp_path: Path) -> None:
    labelled = open_pictures(drawn.folder(tmp_path / "pets", {"train": 2, "val": 1})).train
    assert labelled is not None
    others = unlabelled(drawn.folder(tmp_path / "more", {"here": 1, "there/deep": 1}))
    both = joined(labelled, others)
    assert len(both) == 12
    assert both.targets.tolist() == [0, 0, 1, 1, 2, 2] + [NO_LABEL] * 6
    assert both.classes == drawn.CLASSES
    assert both.name(6) == "here/bird/00.jpg"
    assert both.read(6).size == others.read(0).size
    assert both.fingerprint() != labelled.fingerprint()


def test_classes_txt_gives_names_to_numbered_folders_in_the_order_of_image_folder(tmp_path: Path) -> None:
    drawn.folder(tmp_path, classes=("0", "2", "10"))
    assert open_pictures(tmp_path).classes == ("0", "10", "2")
    (tmp_path / "classes.txt").write_text("\n".join(f"bird {i}" for i in range(11)))
    found = open_pictures(tmp_path)
    assert found.classes == ("bird 0", "bird 10", "bird 2")
    assert found.train is not None
    assert found.train.name(6).startswith("train/10/")
    assert found.train.targets[6] == 1


def test_folders_in_class_folders_and_oddly_named_splits(tmp_path: Path) -> None:
    drawn.folder(tmp_path / "photos", {"a": 2, "b": 1}, ("cat/black", "cat/white", "dog"))
    (tmp_path / "photos" / "c").mkdir()
    found = open_pictures(tmp_path, splits={"train": "photos/a", "val": "photos/b"})
    assert found.classes == ("cat", "dog")
    assert found.train is not None
    assert found.train.targets.tolist() == [0, 0, 0, 0, 1, 1]
    assert found.notes == ()


def test_what_is_not_used_is_said(tmp_path: Path) -> None:
    drawn.folder(tmp_path, {"Train": 2, "dev": 1, "raw": 1})
    drawn.picture(1).save(tmp_path / "Train" / "overview.png")
    (tmp_path / "masks").mkdir()
    assert open_pictures(tmp_path).notes == (
        f"Not used: raw in {tmp_path}.",
        f"Not used: 1 pictures beside the class folders in {tmp_path}/Train.",
    )


def test_a_class_that_is_called_as_a_split_is_a_class(tmp_path: Path) -> None:
    drawn.folder(tmp_path, {"": 2}, ("bus", "plane", "train"))
    assert open_pictures(tmp_path).classes == ("bus", "plane", "train")


def refused(path: Path, **options: object) -> str:
    with pytest.raises(InputError) as caught:
        open_pictures(path, **options)  # type: ignore[arg-type]
    return str(caught.value).replace(str(path), "PATH")


def test_every_folder_that_is_laid_out_otherwise_gets_a_sentence(tmp_path: Path) -> None:
    assert refused(tmp_path / "no") == "There is no PATH; give the folder that holds the pictures."
    (tmp_path / "empty").mkdir()
    assert refused(tmp_path / "empty").startswith("PATH holds no pictures (.jpg, .jpeg, ")
    drawn.folder(tmp_path / "flat" / "train" / "cat", {"": 1}, ("",))
    shutil.move(tmp_path / "flat" / "train" / "cat" / "00.jpg", tmp_path / "flat" / "train")
    shutil.rmtree(tmp_path / "flat" / "train" / "cat")
    assert refused(tmp_path / "flat") == (
        "PATH/train holds 1 pictures and no class folders: put the pictures of each class into a folder of its own "
        "(train/cat/1.jpg, train/dog/2.jpg, val/cat/3.jpg, ...), or give them as pictures without labels."
    )
    (drawn.folder(tmp_path / "gap") / "train" / "fox").mkdir()
    assert refused(tmp_path / "gap") == "Class folder 'fox' in PATH/train holds no picture; fill or remove it."
    drawn.folder(tmp_path / "one", classes=("cat",))
    assert refused(tmp_path / "one") == ("PATH/train has one class only, 'cat'; a classifier needs two class folders.")
    drawn.folder(drawn.folder(tmp_path / "other"), {"val": 1}, ("fox",))
    assert refused(tmp_path / "other") == (
        "train and val in PATH have different class folders: 'fox' only in val. "
        "Give both the same ones, or remove one of the two splits."
    )
    shutil.rmtree(tmp_path / "other" / "val" / "cat")
    assert refused(tmp_path / "other") == (
        "train and val in PATH have different class folders: 'cat' only in train; 'fox' only in val. "
        "Give both the same ones, or remove one of the two splits."
    )
    drawn.folder(tmp_path / "twice", {"train": 1, "val": 1, "valid": 1})
    assert refused(tmp_path / "twice") == "Both val and valid could be the val pictures; rename or remove one."
    assert refused(tmp_path / "twice", splits={"train": "training"}) == (
        "PATH has no pictures in training, which was to be its train split."
    )
    (tmp_path / "text").write_text("no")
    assert refused(tmp_path / "text") == (
        "PATH is no folder, zip file or shard (.tar); give the folder that holds the pictures."
    )


def test_a_truncated_zip_file_gets_a_sentence(tmp_path: Path) -> None:
    folder = drawn.folder(tmp_path / "pets")
    path = Path(shutil.make_archive(str(tmp_path / "pets"), "zip", folder))
    path.write_bytes(path.read_bytes()[: path.stat().st_size * 3 // 4])
    assert refused(path) == (
        "PATH cannot be read as a zip file (File is not a zip file): it is damaged or was not copied whole; "
        "copy it again."
    )
