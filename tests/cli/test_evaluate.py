"""`plackett evaluate` on real pictures and folders, and every way in which it is asked wrongly."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from plackett.data.folders import open_pictures
from plackett.data.loading import PictureBatches, Viewed
from plackett.data.sight import Sight
from plackett.models import create, parameters
from plackett.models.packed import Packed, save
from tests.cli.calling import call
from tests.data.drawn import CLASSES, folder

pytest.importorskip("timm")

SIGHT = Sight(16, (0.5, 0.5, 0.5), (0.25, 0.25, 0.25), crop=1.0)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Pictures in `pets`, a student and a teacher that learned some of them, in other orders of the classes."""
    root = tmp_path_factory.mktemp("evaluate")
    folder(root / "pets", {"train": 8, "val": 3, "test": 6})
    train = open_pictures(root / "pets").train
    assert train is not None
    for name, spec, epochs in (("student", "resnet20", 1), ("teacher", "resnet20", 3)):
        torch.manual_seed(0)
        network = create(spec, classes=3)
        optimiser = torch.optim.AdamW(network.parameters(), 1e-3)
        batches = PictureBatches(train, 8, 0, SIGHT, augment=None)
        for epoch in range(epochs):
            for batch in batches.epoch(epoch):
                loss = torch.nn.functional.cross_entropy(network(batch.inputs), batch.targets)
                optimiser.zero_grad()
                loss.backward()
                optimiser.step()
        save(root / name, Packed(network.eval(), spec, CLASSES, SIGHT))
    return root


def test_student_and_teacher_side_by_side(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = (place / "student", "--teacher", place / "teacher", "--data", place / "pets", "--seconds", 0.01)
    code, out, err = call(capsys, "evaluate", *asked)
    assert code == 0, err
    assert out.startswith("On 18 pictures of pets/test, 3 classes\n")
    lines = {line.split("  ")[0]: line for line in out.splitlines()}
    count = f"{parameters(create('resnet20', classes=3)):,}"
    assert lines["parameters"].split() == ["parameters", count, count, "1", "x"]
    assert "teacher / student" in out
    assert "top-5" not in out
    assert "medians of at least 5 calls, in turns." in out
    for title in ("top-1 accuracy, % [95 %]", "expected calibration error, %", "same first class as teacher, %",
                  "million MACs a picture", "activations, MiB, batch 32", "ms, batch 1 [middle half]"):  # fmt: skip
        assert title in lines

    code, out, _ = call(capsys, "evaluate", *asked, "--format", "json", "--batch", "2", "--split", "val", "--limit", 6)
    held = json.loads(out)
    student, teacher = held["networks"]
    assert held["pictures"] == "pets/val, 6 of 9, evenly spaced"
    assert student["quality"]["pictures"] == 6
    assert student["cost"]["parameters"] == parameters(create("resnet20", classes=3))
    assert list(student["cost"]["latency"]) == ["2"]
    assert teacher["quality"]["agreement"] is None

    _, out, _ = call(capsys, "evaluate", place / "student", "--seconds", 0, "--batch", 1, "--format", "markdown")
    assert f"| parameters | {count} |" in out
    assert "What it costs (no pictures were named with --data)" in out


def test_the_accuracy_is_the_one_that_is_counted_by_hand(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from plackett.models.packed import load

    test = open_pictures(place / "pets").test
    assert test is not None
    said, right, n = [], 0, 0
    for name in ("student", "teacher"):
        network = load(place / name).network
        with torch.no_grad():
            each = torch.cat([network(batch.inputs).argmax(-1) for batch in Viewed(test, SIGHT).batches()])
        said.append(each)
    right, n = int((said[0] == test.targets).sum()), len(test)
    _, out, _ = call(capsys, "evaluate", place / "student", "--teacher", place / "teacher", "--data", place / "pets",
                     "--seconds", 0, "--batch", 1, "--format", "json")  # fmt: skip
    found = json.loads(out)["networks"][0]["quality"]
    assert found["top1"]["value"] == right / n
    assert found["agreement"]["value"] == int((said[0] == said[1]).sum()) / n


def test_classes_in_another_order_are_matched_by_name(
    place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from plackett.models.packed import load

    packed = load(place / "teacher")
    order = [2, 0, 1]
    with torch.no_grad():
        packed.network.fc.weight.copy_(packed.network.fc.weight[order])
        packed.network.fc.bias.copy_(packed.network.fc.bias[order])
    save(tmp_path / "turned", replace(packed, classes=tuple(CLASSES[i] for i in order)))
    figures = []
    for name in (place / "teacher", tmp_path / "turned"):
        _, out, _ = call(
            capsys, "evaluate", name, "--data", place / "pets", "--seconds", 0, "--batch", 1, "--format", "json"
        )
        figures.append(json.loads(out))
    assert figures[0]["networks"][0]["quality"] == figures[1]["networks"][0]["quality"]
    assert figures[1]["notes"] == [
        "The classes of resnet20 stand in another order than the folder's; they are matched by name."
    ]


def test_an_unreadable_picture_is_named_and_left_out(
    place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder(tmp_path / "pets", {"train": 2, "test": 4})
    (tmp_path / "pets" / "test" / "cat" / "00.jpg").write_bytes(b"not a picture")
    code, out, _ = call(
        capsys, "evaluate", place / "student", "--data", tmp_path / "pets", "--seconds", 0, "--batch", 1
    )
    assert code == 0
    assert out.startswith("On 11 pictures of pets/test, 3 classes\n")
    assert "1 of 12 pictures cannot be read and are left out (the first: test/cat/00.jpg)." in out


def test_mistakes_get_their_sentence(place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def said(*arguments: object) -> str:
        code, out, err = call(capsys, "evaluate", *arguments)
        assert (code, out) == (2, "")
        return err.splitlines()[-1]

    pets = place / "pets"
    assert said(place / "student", "--format", "yaml") == ("There is no format 'yaml'; choices: json, markdown, text.")
    assert said(place / "student", "--batch", "1,x") == "--batch '1,x' is not a list of batch sizes; write 1,32."
    assert said(place / "student", "--limit", 3) == "--limit is of pictures; name them with --data DIR."
    assert said(place / "student", "--teacher-classes", "same") == (
        "--teacher-weights and --teacher-classes are of a teacher; name it with --teacher."
    )
    assert said(place / "nothing") == (
        f"There is no folder {place / 'nothing'}: name a run, a folder with config.json, or a network such as "
        "timm:resnet18."
    )
    assert said(pets) == (
        f"{pets} has no config.json, nor has a folder in it: name the folder of a trained network (a run's, or one "
        "packed for the hub), or a network such as timm:resnet18."
    )
    assert said(place) == f"{place} holds 2 networks: name one of {place / 'student'}, {place / 'teacher'}."
    assert said(place / "student", "--weights", "w.pth") == (
        f"{place / 'student'} is a folder with weights of its own; leave out --weights w.pth."
    )
    assert said("resnet20", "--data", pets) == (
        "MODEL resnet20 has no trained weights for these classes: give them with --weights FILE (or pretrained), or "
        "name the folder of a trained network."
    )
    assert said("renset20").startswith("There is no model named 'renset20'; did you mean 'resnet20'?")
    assert said(place / "student", "--data", pets, "--split", "tset") == (
        "There is no --split 'tset'; did you mean 'test'? (choices: test, train, val)."
    )
    assert said(place / "student", "--device", "tpu0x").startswith("There is no device 'tpu0x'; choices: cpu, cuda.")
    assert said(place / "student", "--threads", 0) == "--threads 0 is too few; take 1 or more."
    folder(tmp_path / "birds", {"train": 2, "val": 2}, classes=("crow", "cat", "owl"))
    assert said(place / "student", "--data", tmp_path / "birds", "--split", "test") == (
        f"{tmp_path / 'birds'} has no pictures to test with; take --split val or --split train."
    )
    assert said(place / "student", "--data", tmp_path / "birds") == (
        "resnet20 was trained on 3 classes ('bird', 'cat', 'dog') and does not know 'crow', 'owl' of these pictures: "
        "name the folder that it was trained for."
    )
    (tmp_path / "strange").mkdir()
    (tmp_path / "strange" / "config.json").write_text('{"model_type": "bert"}')
    assert said(tmp_path / "strange") == (
        f"{tmp_path / 'strange' / 'config.json'} names no architecture: it is neither plackett's nor timm's. Name the "
        f"network and give its weights: timm:NAME --weights {tmp_path / 'strange' / 'model.safetensors'}."
    )
    save(tmp_path / "numbers", Packed(create("resnet20", classes=4), "resnet20", tuple("0123"), SIGHT))
    assert said(tmp_path / "numbers", "--data", pets) == (
        "resnet20 gives 4 logits and the pictures have 3 classes: name the folder that it was trained for."
    )
    lost = create("resnet20", classes=3)
    lost.fc.weight.data.fill_(torch.nan)
    save(tmp_path / "lost", Packed(lost, "resnet20", CLASSES, SIGHT))
    assert said(tmp_path / "lost", "--data", pets) == (
        "resnet20 gives logits that are not finite on 18 of 18 pictures: its weights are damaged, or it is fed in a "
        "way that it was not trained for."
    )
