"""The mistakes of `plackett distill`, each with its sentence; its recipes, listed, shown and copied."""

from __future__ import annotations

import json
import pickle
import shutil
from pathlib import Path

import pytest
import torch
import yaml

from plackett.models import create, packed
from tests.cli.calling import call, sentence
from tests.distilling import pets
from tests.distilling.command import SMALL, asked, made

pytest.importorskip("timm")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made(tmp_path_factory.mktemp("distill"))


def test_what_is_missing_is_asked_for(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert sentence(capsys, "distill") == (
        "plackett distill needs a teacher: --teacher timm:NAME (or a saved network's folder, or package.module:function)."
    )
    assert sentence(capsys, "distill", "--teacher", "timm:resnet18") == (
        "plackett distill needs a student: --student timm:NAME."
    )
    assert sentence(capsys, "distill", "--teacher", "x", "--student", "y") == (
        "plackett distill needs pictures: --data FOLDER, a folder a class."
    )
    assert sentence(capsys, "train", "timm:resnet18") == (
        "plackett train needs pictures: --data FOLDER, a folder a class."
    )


@pytest.mark.parametrize(("key", "said"), [
    ("epoch=3", "There is no key 'epoch'; did you mean 'epochs'? (choices: "),
    ("training.epoch=3", "training has no key 'epoch'; did you mean 'epochs'? (choices: "),
    ("epochs", "'epochs' is not understood: write key=value, such as epochs=50 or objective.pld.temperature=2."),
    ("epochs=0", "The command, training.epochs: input should be greater than or equal to 1."),
    ("epochs=many", "The command, training.epochs: input should be a valid integer, unable to parse string as an "
                    "integer."),
    ("objective.kd.temperature=2", "No objective 'kd' is trained; choices: pld. Name it with --objective."),
    ("objective.pld.temprature=2", "Objective term 'pld' has no option 'temprature'; did you mean 'temperature'? ("),
    ("objective.pld.temperature=0", "pld: temperature must be above 0 and finite, not 0; 1 leaves the logits as they are."),
    ("optimiser=qqqq", "There is no optimiser 'qqqq'; timm has adabelief, adamw, "),
    ("optimiser_option.eps=1e-6", "There is no key 'optimiser_option'; did you mean 'optimiser_options'? (choices: "),
    ("optimiser=lamp", "There is no optimiser 'lamp'; did you mean 'lamb'? (timm has "),
    ("objective=pdl", "There is no objective 'pdl'; did you mean 'pld'? (choices: "),
    ("seeds=[-1]", "The command, seeds: seeds are whole numbers from 0 on."),
])  # fmt: skip
def test_a_wrong_key_gets_its_sentence(
    place: Path, tmp_path: Path, key: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert sentence(capsys, *asked(place, "--out", tmp_path / "run", "--no-report", key)).startswith(said)


def test_a_mistake_that_trained_nothing_leaves_the_folder_free(place: Path, tmp_path: Path,
                                                               capsys: pytest.CaptureFixture[str]) -> None:  # fmt: skip
    def again(*keys: str) -> tuple[object, ...]:
        return asked(place, "--out", tmp_path / "run", "--no-report", "epochs=1", *keys)

    assert sentence(capsys, *again("flip=2")) == "flip is how often it happens, from 0 to 1, not 2."
    code, _, err = call(capsys, *again("flip=0.5", "optimiser_options.eps=1e-6"))
    assert code == 0, err
    assert sentence(capsys, *again("flip=0.25")) == (
        f"{tmp_path / 'run/seed-0'} was made by another configuration: augment.flip was 0.5 and is 0.25; "
        "training.optimiser_options.eps was 1e-06 and is null. Go on with the old one, or take another folder with "
        "--out."
    )


@pytest.mark.parametrize(("key", "said"), [
    ("flip=2", "flip is how often it happens, from 0 to 1, not 2."),
    ("warmup_epochs=2", "A recipe's warmup_epochs must be at least 0 and below its 2 epochs, not 2."),
    ("optimiser_options.betta=1", "The optimiser 'adamw' cannot be made with {'betta': 1}: "),
    ("mixup=-1", "The alpha of mixup is at least 0, not -1."),
])  # fmt: skip
def test_a_value_that_no_training_takes_is_told_before_the_teacher_is_checked(
    place: Path, tmp_path: Path, key: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert sentence(capsys, *asked(place, "--out", tmp_path / "run", "--no-report", key)).startswith(said)
    assert not (tmp_path / "run").exists()


def test_data_that_does_not_fit_gets_its_sentence(place: Path, tmp_path: Path,
                                                  capsys: pytest.CaptureFixture[str]) -> None:  # fmt: skip
    def said(data: Path, *more: object) -> str:
        return sentence(capsys, *asked(place, "--out", tmp_path / "run", "--no-report", *more, data=data))

    assert said(tmp_path / "nowhere") == f"There is no {tmp_path / 'nowhere'}; give the folder that holds the pictures."
    other = pets.folder(tmp_path / "other", {"train": 4})
    pets.folder(other, {"val": 4}, classes=("bird", "cat", "eel"))
    assert "'dog'" in said(other)
    assert "'eel'" in said(other)
    empty = pets.folder(tmp_path / "empty", {"train": 4, "val": 2})
    for file in (empty / "train/cat").iterdir():
        file.unlink()
    assert "cat" in said(empty)
    four = pets.folder(tmp_path / "four", {"train": 4, "val": 2}, classes=("0", "1"))
    assert said(four) == (
        "Teacher and data share no class names, and a choice needs 2: the teacher's begin with 'bird', 'cat', 'dog', the "
        "data's with '0', '1'. If the teacher's logits are in the data's order, say so with --teacher-classes same."
    )
    only = pets.folder(tmp_path / "only", {"test": 4})
    assert said(only).startswith(f"{only} has no pictures to train on: put them into {only}/train, a folder a class.")
    single = pets.folder(tmp_path / "single", {"": 1})
    assert said(single) == (
        f"{single} has no pictures to validate with, and none can be held out, for no class has two: add some."
    )


def test_teachers_that_cannot_teach_get_their_sentence(place: Path, tmp_path: Path,
                                                       capsys: pytest.CaptureFixture[str]) -> None:  # fmt: skip
    def said(teacher: object, *more: object) -> str:
        named = ("--teacher", teacher, "--student", "resnet8x4", "--data", place / "pets", *SMALL)
        return sentence(capsys, "distill", *named, "--out", tmp_path / "run", "--no-report", *more)

    assert said("resnet20") == (
        "The teacher resnet20 has no weights: name a file with --teacher-weights, or pretrained for its library's own."
    )
    torch.manual_seed(3)
    packed.save(tmp_path / "poor", packed.Packed(create("resnet20", classes=3).eval(), "resnet20", pets.CLASSES,
                                                 pets.SIGHT))  # fmt: skip
    words = said(tmp_path / "poor")
    assert "where guessing would be right on 33.3 %. Likely causes:" in words
    assert words.endswith("--allow-weak-teacher goes on all the same.")
    torch.save(create("resnet20", classes=3).state_dict(), tmp_path / "w.pth")
    (tmp_path / "evil.pth").write_bytes(pickle.dumps({"a": print}))
    assert "--trust-checkpoint" in said("resnet20", "--teacher-weights", tmp_path / "evil.pth")
    words = said("resnet8x4", "--teacher-weights", tmp_path / "w.pth")
    assert "tensors" in words
    shutil.copytree(place / "teacher", tmp_path / "short")
    weights = tmp_path / "short/model.safetensors"
    weights.write_bytes(weights.read_bytes()[:1000])
    assert said(tmp_path / "short").startswith(f"{weights} is truncated or damaged (")


def test_a_label_that_the_teacher_does_not_offer_needs_a_weight(place: Path, tmp_path: Path,
                                                                capsys: pytest.CaptureFixture[str]) -> None:  # fmt: skip
    data = pets.folder(tmp_path / "pets", {"train": 6, "val": 3}, classes=(*pets.CLASSES[:2], "eel"))
    assert sentence(capsys, *asked(place, "--out", tmp_path / "run", "--no-report", data=data)) == (
        "The teacher does not offer 'eel', so that PLD has no weight for such labels: say what they are worth with "
        "objective.pld.label_weight=1."
    )
    code, _, err = call(capsys, *asked(place, "--out", tmp_path / "kd", "--no-report", "epochs=1", "--objective", "kd",
                                       data=data))  # fmt: skip
    assert code == 0, err


def test_a_module_that_is_never_called_is_no_feature(place: Path, tmp_path: Path,
                                                     capsys: pytest.CaptureFixture[str]) -> None:  # fmt: skip
    taps = ("--objective", "fitnet", "student_taps.middle=layer2.0", "teacher_taps.middle=layer1")
    assert sentence(capsys, *asked(place, "--out", tmp_path / "run", "--no-report", *taps)) == (
        "ResNet has a module 'layer1' but never calls it, only what is in it, so that it gives no feature: name the last "
        "part of it, such as 'layer1.2'."
    )


def test_a_student_that_is_larger_is_warned_of(place: Path, tmp_path: Path,
                                               capsys: pytest.CaptureFixture[str]) -> None:  # fmt: skip
    code, said, err = call(capsys, *asked(place, "--out", tmp_path / "run", "--no-report", "epochs=1",
                                          student="resnet32x4"))  # fmt: skip
    assert code == 0, err
    assert "Warning: The student has" in " ".join(said.split())


def test_what_is_not_finite_stops_the_student_alone(place: Path, tmp_path: Path,
                                                    capsys: pytest.CaptureFixture[str]) -> None:  # fmt: skip
    code, said, err = call(capsys, *asked(place, "--out", tmp_path / "run", "--no-report", "--objective", "pld,ce",
                                          "objective.ce.weight=1e30", "learning_rate=1e30"))  # fmt: skip
    assert code == 2
    assert "stopped in epoch" in said or "stopped after epoch" in said
    assert err.splitlines()[-1].startswith("The student that was to be kept did not finish")
    code, said, _ = call(capsys, *asked(place, "--out", tmp_path / "one", "--no-report", "learning_rate=1e30"))
    assert code == 2
    assert "What the teacher added" not in said


def test_a_folder_that_may_not_be_written_is_told_before_the_work(place: Path, tmp_path: Path,
                                                                  capsys: pytest.CaptureFixture[str]) -> None:  # fmt: skip
    (tmp_path / "file").write_text("")
    assert sentence(capsys, *asked(place, "--out", tmp_path / "file")) == (
        f"{tmp_path / 'file'} is not a folder, so nothing can be written to {tmp_path / 'file'}: name a folder with "
        "--out."
    )


def test_recipes_are_listed_shown_and_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                             capsys: pytest.CaptureFixture[str]) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    code, said, _ = call(capsys, "recipes")
    assert code == 0
    assert "small-pictures" in said
    assert "cifar100-tau" in said
    code, said, _ = call(capsys, "recipes", "show", "pictures")
    assert yaml.safe_load(said)["training"]["epochs"] == 30
    code, said, _ = call(capsys, "recipes", "copy", "pictures", "mine.yaml")
    assert said == "mine.yaml: change it, then: plackett distill --recipe mine.yaml\n"
    assert sentence(capsys, "recipes", "copy", "pictures", "mine.yaml") == (
        "mine.yaml is there already: name another file, or remove it."
    )
    assert sentence(capsys, "recipes", "show", "picture").startswith(
        "There is no recipe 'picture'; did you mean 'pictures'? (choices: "
    )
    assert sentence(capsys, "recipes", "shwo", "pictures") == (
        "plackett recipes cannot 'shwo'; did you mean 'show'? (choices: copy, list, show)."
    )
    assert sentence(capsys, "recipes", "show").startswith(
        "Say which recipe to show: plackett recipes show NAME; choices"
    )
    assert sentence(capsys, "distill", "--recipe", "picture") == (
        "There is no recipe 'picture'; did you mean 'pictures'? (choices: pictures, small-pictures). A file ends in .yaml."
    )
    (tmp_path / "odd.yaml").write_text("trainig: {epochs: 3}\n")
    assert sentence(capsys, "distill", "--recipe", "odd.yaml").startswith(
        "The recipe odd.yaml: there is no key 'trainig'; did you mean 'training'? (choices: "
    )


def test_the_shipped_recipe_says_every_key_as_it_is_without_it() -> None:
    from plackett.distilling.asked import Asked, read

    assert read("pictures", {}) == Asked()
    held = json.loads(json.dumps(yaml.safe_load(_text("pictures"))))
    named = set(Asked.model_fields) - {"teacher", "teacher_weights", "teacher_classes", "teacher_options",
                                       "teacher_sight", "student", "student_weights", "student_options",
                                       "student_sight", "data", "splits", "unlabelled", "student_taps",
                                       "teacher_taps"}  # fmt: skip
    assert set(held) == named


def _text(name: str) -> str:
    from plackett.distilling import asked

    return asked.text(name)
