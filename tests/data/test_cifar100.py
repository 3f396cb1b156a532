"""CIFAR-100 from the official files: both layouts say the same, and what is wrong with a file is said of that file."""

from __future__ import annotations

import pickle
import shutil
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from plackett.cli import main
from plackett.data import cifar100, official
from plackett.data.cifar100 import Cifar100, load, prepare
from plackett.data.official import OFFICIAL, RECORD, Part
from plackett.errors import InputError
from tests.cifar import PER_CLASS, Cifar, old_pickle


@pytest.fixture(scope="module")
def prepared(cifar: Cifar, tmp_path_factory: pytest.TempPathFactory) -> Cifar100:
    return load(prepare(cifar.binary, tmp_path_factory.mktemp("prepared"), parts=cifar.parts).parent)


@pytest.fixture
def binary(cifar: Cifar, tmp_path: Path) -> Path:
    """A copy to spoil."""
    return Path(shutil.copytree(cifar.binary, tmp_path / "cifar-100-binary"))


@pytest.fixture
def python(cifar: Cifar, tmp_path: Path) -> Path:
    return Path(shutil.copytree(cifar.python, tmp_path / "cifar-100-python"))


def test_what_was_prepared_is_loaded(prepared: Cifar100, cifar: Cifar) -> None:
    assert prepared.train.inputs.shape == (100 * PER_CLASS["train"], 3, 32, 32)
    assert prepared.train.inputs.dtype == torch.uint8
    assert prepared.test.targets.bincount().tolist() == [PER_CLASS["test"]] * 100
    record = np.fromfile(cifar.binary / "train.bin", np.uint8).reshape(-1, RECORD)[7]
    assert torch.equal(prepared.train.inputs[7].flatten(), torch.from_numpy(record[2:]))
    assert prepared.train.targets[7] == record[1]
    assert prepared.superclass_of[record[1]] == record[0]
    assert (len(prepared.train.classes), len(prepared.superclasses), prepared.subset) == (100, 20, None)


def test_both_layouts_and_the_archive_say_the_same(prepared: Cifar100, cifar: Cifar, tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "cifar-100-python.tar.gz", "w:gz") as archive:
        archive.add(cifar.python, "cifar-100-python")
    for source in (cifar.python, cifar.python.parent, tmp_path / "cifar-100-python.tar.gz"):
        found = load(prepare(source, tmp_path, parts=cifar.parts).parent)
        for part in ("train", "test"):
            assert getattr(found, part).fingerprint() == getattr(prepared, part).fingerprint()
        assert torch.equal(found.superclass_of, prepared.superclass_of)


def test_a_subset_has_the_same_number_of_every_class(cifar: Cifar, prepared: Cifar100, tmp_path: Path) -> None:
    found = load(prepare(cifar.binary, tmp_path, per_class=5, parts=cifar.parts).parent)
    assert found.train.targets.bincount().tolist() == [5] * 100
    assert found.test.targets.bincount().tolist() == [1] * 100
    assert found.subset == "the first 5 of every class"
    first = prepared.train.inputs[(prepared.train.targets == 3).nonzero()[:5, 0]]
    assert torch.equal(found.train.inputs[found.train.targets == 3], first)


def test_the_whole_data_set_has_the_known_fingerprint(cifar: Cifar, tmp_path: Path) -> None:
    if cifar.whole is None:
        pytest.skip("the real CIFAR-100 is not at hand; its slices were generated")
    found = load(prepare(cifar.whole, tmp_path).parent)
    assert (len(found.train), len(found.test)) == (50_000, 10_000)
    share = found.train.inputs.double() / 255
    mean, std = share.mean((0, 2, 3)), share.std((0, 2, 3), correction=0)
    assert (mean - torch.tensor(cifar100.NORMALISE.mean)).abs().max() < 2e-4
    assert (std - torch.tensor(cifar100.NORMALISE.std)).abs().max() < 4e-4
    assert found.train.classes[found.train.targets[0]] == "apple"


def test_a_fingerprint_does_not_mind_the_order_but_every_byte(cifar: Cifar) -> None:
    records = official.find(cifar.binary).records(cifar.parts[1])
    turned = official.Records(records.pictures[::-1], records.fine[::-1], records.coarse[::-1])
    assert official.fingerprint(turned) == official.fingerprint(records)
    other = official.Records(records.pictures, records.fine[::-1], records.coarse)
    assert official.fingerprint(other) != official.fingerprint(records)


def test_one_changed_pixel_is_noticed(binary: Path, cifar: Cifar) -> None:
    records = official.find(binary).records(cifar.parts[1])
    known = Part("test", cifar.parts[1].pictures, official.fingerprint(records))
    official.find(binary).records(known)
    raw = bytearray((binary / "test.bin").read_bytes())
    raw[100] ^= 1
    (binary / "test.bin").write_bytes(raw)
    with pytest.raises(
        InputError, match=r"test\.bin has the right size, but other pictures or labels than CIFAR-100's"
    ):
        official.find(binary).records(known)


def test_a_truncated_file_is_named_with_the_size_expected(binary: Path, python: Path, cifar: Cifar) -> None:
    for part in cifar.parts:
        file = binary / f"{part.name}.bin"
        size = file.stat().st_size
        file.write_bytes(file.read_bytes()[:-5])
        with pytest.raises(InputError, match=rf"{part.name}\.bin has {size - 5:,} bytes, expected {size:,}"):
            official.find(binary).records(part)
    with pytest.raises(
        InputError, match=r"train\.bin has 3,073,995 bytes, expected 153,700,000 \(50,000 records of 3,074"
    ):
        prepare(binary)
    (python / "train").write_bytes((python / "train").read_bytes()[:-500])
    with pytest.raises(InputError, match=r"train \([0-9,]+ bytes\) is not a whole file of CIFAR-100 \(.*\)\. Download"):
        official.find(python).records(cifar.parts[0])


def test_a_label_out_of_range_is_said_with_its_record(binary: Path, cifar: Cifar) -> None:
    raw = bytearray((binary / "train.bin").read_bytes())
    raw[7 * RECORD + 1] = 100
    (binary / "train.bin").write_bytes(raw)
    with pytest.raises(InputError, match=r"train\.bin: record 7 has fine label 100; fine labels run from 0 to 99"):
        official.find(binary).records(cifar.parts[0])
    raw[7 * RECORD : 7 * RECORD + 2] = bytes((20, 4))
    (binary / "train.bin").write_bytes(raw)
    with pytest.raises(InputError, match="record 7 has coarse label 20; coarse labels run from 0 to 19"):
        official.find(binary).records(cifar.parts[0])


def test_a_class_in_two_superclasses_is_noticed(binary: Path, cifar: Cifar, tmp_path: Path) -> None:
    raw = bytearray((binary / "train.bin").read_bytes())
    raw[0] = (raw[0] + 1) % 20
    (binary / "train.bin").write_bytes(raw)
    with pytest.raises(InputError, match=f"Class {raw[1]} stands in two superclasses"):
        prepare(binary, tmp_path, parts=cifar.parts)


class Harmful:
    def __reduce__(self) -> Any:
        return print, ("this must not run",)


def test_a_pickle_that_runs_code_is_not_loaded(python: Path, cifar: Cifar, capsys: pytest.CaptureFixture[str]) -> None:
    (python / "train").write_bytes(pickle.dumps({"data": Harmful()}))
    with pytest.raises(InputError, match=r"train asks for builtins\.print, which no file of CIFAR-100 does"):
        official.find(python).records(cifar.parts[0])
    assert capsys.readouterr().out == ""


def test_a_pickle_of_today_is_read_too(python: Path, cifar: Cifar) -> None:
    before = official.find(python).records(cifar.parts[1])
    held = {"data": before.pictures.reshape(-1, 3072), "fine_labels": before.fine.tolist(),
            "coarse_labels": before.coarse.tolist()}  # fmt: skip
    (python / "test").write_bytes(pickle.dumps(held))
    assert np.array_equal(official.find(python).records(cifar.parts[1]).pictures, before.pictures)


@pytest.mark.parametrize(("held", "sentence"), [
    ({"data": np.zeros((5, 3072), np.uint8)}, r"test: data is \[5, 3072\] uint8, expected \[200, 3072\] uint8"),
    ({"data": [1, 2]}, "test: data is list, expected"),
    ({"data": np.zeros((200, 3072), np.uint8), "fine_labels": [0] * 3}, "test has 3 fine_labels, expected 200"),
    ({"data": np.zeros((200, 3072), np.uint8)}, "test has no fine_labels, expected 200"),
    ({"data": np.zeros((200, 3072), np.uint8), "fine_labels": [300] * 200}, "fine_labels holds something that is not"),
])  # fmt: skip
def test_another_pickle_is_refused(python: Path, held: dict[str, Any], sentence: str) -> None:
    (python / "test").write_bytes(old_pickle(held))
    with pytest.raises(InputError, match=sentence):
        official.find(python).records(Part("test", 200, None))


def test_something_else_gets_a_sentence_that_says_where_cifar100_is(tmp_path: Path, binary: Path, python: Path) -> None:
    where = r"Download cifar-100-python\.tar\.gz or cifar-100-binary\.tar\.gz from https://www\.cs\.toronto\.edu"
    with pytest.raises(InputError, match=f"nowhere does not exist. {where}"):
        prepare(tmp_path / "nowhere")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match=f"empty has no CIFAR-100 in it. {where}"):
        prepare(tmp_path / "empty")
    (tmp_path / "text.tar.gz").write_text("not an archive")
    with pytest.raises(InputError, match=rf"text\.tar\.gz is not a whole archive \(ReadError\). {where}"):
        prepare(tmp_path / "text.tar.gz")
    with tarfile.open(tmp_path / "other.tar", "w") as archive:
        archive.add(tmp_path / "text.tar.gz", "text")
    with pytest.raises(InputError, match=r"other\.tar is an archive without CIFAR-100 in it"):
        prepare(tmp_path / "other.tar")
    (binary / "fine_label_names.txt").unlink()
    with pytest.raises(InputError, match=r"fine_label_names\.txt is missing"):
        prepare(binary)
    (python / "meta").write_bytes(old_pickle({"fine_label_names": ["apple"]}))
    with pytest.raises(InputError, match="meta names 1 classes and 0 superclasses; CIFAR-100 has 100 and 20"):
        prepare(python)
    (python / "meta").write_bytes(pickle.dumps([1]))
    with pytest.raises(InputError, match="meta holds a list, not the mapping"):
        prepare(python)
    with pytest.raises(InputError, match="at least 1 picture of every class, not 0"):
        prepare(binary, per_class=0)


def test_nothing_prepared_says_how_to_prepare(tmp_path: Path, cifar: Cifar) -> None:
    with pytest.raises(InputError, match=r"There is no .*cifar100\.safetensors.*plackett data cifar100 --from PATH"):
        load(tmp_path)
    path = prepare(cifar.binary, tmp_path, parts=cifar.parts)
    path.write_bytes(path.read_bytes()[:-10])
    with pytest.raises(InputError, match=r"cifar100\.safetensors cannot be read .* Run again: plackett data cifar100"):
        load(tmp_path)


def test_another_safetensors_file_is_refused(tmp_path: Path) -> None:
    from safetensors.torch import save_file

    save_file({"x": torch.zeros(1)}, tmp_path / cifar100.FILE, metadata={"format": "pt"})
    with pytest.raises(InputError, match="says it is 'pt', not 'plackett cifar100 1'"):
        load(tmp_path)


def test_a_failed_preparation_leaves_the_last_good_file(
    cifar: Cifar, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = prepare(cifar.binary, tmp_path, parts=cifar.parts)
    before = path.read_bytes()

    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(cifar100, "save_file", full)
    with pytest.raises(OSError, match="No space left"):
        prepare(cifar.binary, tmp_path, parts=cifar.parts)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_the_folder_can_be_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLACKETT_DATA", "/somewhere")
    assert cifar100.default_folder() == Path("/somewhere")
    monkeypatch.delenv("PLACKETT_DATA")
    monkeypatch.setenv("XDG_CACHE_HOME", "/cache")
    assert cifar100.default_folder() == Path("/cache/plackett")


def test_the_command_prepares_a_subset(cifar: Cifar, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if cifar.whole is None:
        pytest.skip("the real CIFAR-100 is not at hand; its slices were generated")
    with pytest.raises(SystemExit) as ended:
        main(["data", "cifar100", "--from", str(cifar.whole), "--out", str(tmp_path), "--per-class", "4"])
    assert ended.value.code == 0
    assert "CIFAR-100, the first 4 of every class: 400 pictures to train on, 100 to test on" in capsys.readouterr().out


def test_the_command_ends_mistakes_with_a_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, said in (
        (["cifar100", "--from", str(tmp_path / "none")], "does not exist. Download cifar-100-python.tar.gz"),
        (["cifar10", "--from", str(tmp_path)], "There is no data set 'cifar10'; did you mean 'cifar100'?"),
    ):
        with pytest.raises(SystemExit) as ended:
            main(["data", *arguments])
        assert ended.value.code == 2
        assert said in capsys.readouterr().err


def test_the_official_sizes_are_known() -> None:
    assert [(part.name, part.pictures) for part in OFFICIAL] == [("train", 50_000), ("test", 10_000)]
