"""WebDataset shards: indexed once, read at random."""

from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path

import pytest
import torch

from plackett.data.folders import open_pictures
from plackett.data.loading import PictureBatches
from plackett.data.shards import expanded
from plackett.data.sight import Sight
from plackett.data.source import NO_LABEL
from plackett.errors import InputError
from tests.data import drawn


def shard(path: Path, numbers: range, labels: str = "cls") -> Path:
    """Picture i is of class i % 3, which is said in the way that `labels` names."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w") as archive:
        for i in numbers:
            buffer = io.BytesIO()
            drawn.picture(i).save(buffer, "PNG")
            said = {
                "cls": ("cls", str(i % 3)),
                "names": ("cls", drawn.CLASSES[i % 3]),
                "json": ("json", json.dumps({"id": i, "label": i % 3})),
                "none": ("txt", "a picture"),
            }[labels]
            for ending, held in (("png", buffer.getvalue()), (said[0], said[1].encode())):
                member = tarfile.TarInfo(f"{i // 4:03d}/{i:05d}.{ending}")
                member.size = len(held)
                archive.addfile(member, io.BytesIO(held))
    return path


@pytest.mark.parametrize("labels", ["cls", "json", "names"])
def test_a_pattern_of_shards_is_read_at_random(tmp_path: Path, labels: str) -> None:
    for number in range(3):
        shard(tmp_path / f"shards-{number:03d}.tar", range(10 * number, 10 * number + 10), labels)
    (tmp_path / "classes.txt").write_text("bird\ncat\ndog\n")
    found = open_pictures(f"{tmp_path}/shards-{{000..002}}.tar")
    assert found.kind == "WebDataset shards"
    assert found.classes == drawn.CLASSES
    assert found.train is not None
    assert found.val is not None
    assert (len(found.train), len(found.val)) == (27, 3)
    for source in (found.train, found.val):
        for i in range(len(source)):
            number = int(source.name(i).split("/")[-1].removesuffix(".png"))
            assert source.read(i).tobytes() == drawn.picture(number).tobytes()
            assert source.targets[i] == number % 3
    assert open_pictures(tmp_path).train.fingerprint() == found.train.fingerprint()  # type: ignore[union-attr]
    batches = [PictureBatches(found.train, 8, 0, Sight(16), workers=workers) for workers in (0, 2)]
    for here, there in zip(*(each.epoch(0) for each in batches), strict=True):
        assert torch.equal(here.inputs, there.inputs)
    batches[1].close()


def test_splits_are_recognised_in_the_names_of_shards(tmp_path: Path) -> None:
    shard(tmp_path / "pets-train-0.tar", range(9))
    shard(tmp_path / "pets-val-0.tar", range(9, 15))
    shard(tmp_path / "test" / "0.tar", range(15, 18))
    shard(tmp_path / "spare.tar", range(18, 21))
    found = open_pictures(tmp_path)
    assert [len(s) for s in (found.train, found.val, found.test) if s is not None] == [9, 6, 3]
    assert found.classes == ("0", "1", "2")
    assert found.notes == (f"Not used: spare.tar in {tmp_path}.",)
    said = open_pictures(tmp_path, splits={"train": "spare.tar", "val": "pets-*.tar"})
    assert [len(s) for s in (said.train, said.val) if s is not None] == [3, 15]


def test_pictures_without_a_label_are_counted(tmp_path: Path) -> None:
    shard(tmp_path / "train-0.tar", range(6))
    shard(tmp_path / "train-1.tar", range(6, 8), "none")
    found = open_pictures(tmp_path)
    assert found.notes[0] == f"2 of the 8 train pictures in {tmp_path} have no label."
    assert found.train is not None
    assert (found.train.targets == NO_LABEL).sum() == 2


def refused(path: Path | str, at: Path) -> str:
    with pytest.raises(InputError) as caught:
        open_pictures(path)
    return str(caught.value).replace(str(at), "AT")


def test_the_mistakes(tmp_path: Path) -> None:
    first = shard(tmp_path / "a-0.tar", range(4))
    assert refused(f"{tmp_path}/a-{{0..2}}.tar", tmp_path) == (
        "AT/a-{0..2}.tar names AT/a-1.tar, which is not there, nor are 1 more."
    )
    assert refused("https://example.org/a-{0..2}.tar", tmp_path) == (
        "https://example.org/a-{0..2}.tar is not on this machine; shards are read at random, which needs local files: "
        "download them."
    )
    assert refused("pipe:cat a.tar", tmp_path).startswith("pipe:cat a.tar is not on this machine; ")
    assert refused(tmp_path / "a.tar.gz", tmp_path) == (
        "AT/a.tar.gz is compressed, and no picture in it can be found without unpacking those before it; pack the "
        "shards as plain .tar (pictures hardly become smaller)."
    )
    assert refused(f"{tmp_path}/b*.tar", tmp_path) == "There are no shards AT/b*.tar."
    whole = first.read_bytes()
    for length, why in ((1000, "unexpected end of data"), (3000, "it has no end"), (3584, "it has no end")):
        first.write_bytes(whole[:length])
        assert refused(first, tmp_path) == (
            f"AT/a-0.tar cannot be read as a tar file ({why}): it is damaged or was not copied whole; copy it again."
        )
    shard(first, range(4), "none")
    assert refused(first, tmp_path) == (
        "No picture in the train shards of AT/a-0.tar has a label; each needs a .cls file beside it, with a number or "
        "a name, or a .json with one of label, cls, class, class_name, category, target."
    )
    shard(tmp_path / "train.tar", range(4))
    shard(tmp_path / "val.tar", range(4), "names")
    first.unlink()
    assert refused(tmp_path, tmp_path) == (
        "The val pictures in AT have the class 'bird', which the first of its splits has not; all of them must have "
        "the same classes."
    )
    (tmp_path / "classes.txt").write_text("bird\nbird\n")
    assert refused(tmp_path, tmp_path) == (
        "AT/classes.txt names 1 classes in 2 lines, but the labels go up to 2; give one name a line, no name twice."
    )


def test_braces_are_expanded_as_a_shell_does(tmp_path: Path) -> None:
    for name in ("x-a-8.tar", "x-a-9.tar", "x-b-8.tar", "x-b-9.tar"):
        (tmp_path / name).touch()
    assert [path.name for path in expanded(f"{tmp_path}/x-{{a,b}}-{{8..9}}.tar")] == [
        "x-a-8.tar", "x-a-9.tar", "x-b-8.tar", "x-b-9.tar",
    ]  # fmt: skip
