"""`plackett distill` as a person meets it: from a folder and a teacher to a student that others run; every mistake."""

from __future__ import annotations

import contextlib
import io
import json
import pickle
import shutil
from pathlib import Path

import pytest
import torch
import yaml

from plackett.cli import main
from plackett.experiments.records import read_run
from plackett.models import create, packed
from tests.distilling import pets

pytest.importorskip("timm")

SMALL = ("--student-sight", "size=16,mean=0.5,std=0.25,crop=1", "epochs=2", "batch_size=12", "--workers", 0)


def call(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as end:
        main([*map(str, arguments)])
    said = capsys.readouterr()
    return int(end.value.code or 0), said.out, said.err


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("distill")
    pets.folder(root / "pets", {"train": 12, "val": 6, "test": 8})
    pets.teacher(root / "pets", root / "teacher")
    return root


def asked(place: Path, *more: object, data: Path | None = None, student: str = "resnet8x4") -> tuple[object, ...]:
    named = ("--teacher", place / "teacher", "--student", student, "--data", data or place / "pets")
    return ("distill", *named, *SMALL, *more)


@pytest.fixture(scope="module")
def done(place: Path) -> tuple[Path, str]:
    """Two objectives beside each other, with a report."""
    out, said = place / "both", io.StringIO()
    with pytest.raises(SystemExit) as end, contextlib.redirect_stdout(said):
        main([*map(str, asked(place, "--objective", "pld,ce", "--out", out, "objective.pld.temperature=2"))])
    assert end.value.code in (0, None)
    return out, said.getvalue()


def test_from_a_folder_to_a_student(place: Path, done: tuple[Path, str]) -> None:
    out, said = done
    assert "On 24 pictures to test with, 3 classes" in said
    assert f"Student: {out / 'student'}" in said
    assert "Intervals are over pictures: these very students, trained with one seed." in said
    for name in ("recipe.yaml", "check.json", "experiment.json", "report.html", "seed-0/run.json",
                 "seed-0/results.json", "seed-0/predictions.safetensors", "seed-0/students/PLD/model.safetensors",
                 "student/model.safetensors"):  # fmt: skip
        assert (out / name).exists(), name
    run = read_run(out / "seed-0")
    assert run.results is not None
    assert run.record.students == ["PLD", "CE"]
    assert run.record.data.train == 36
    assert run.record.data.test == 24
    assert run.record.config["methods"]["PLD"]["pld"]["temperature"] == 2
    assert run.record.teacher is not None
    assert run.record.teacher.accuracy > 0.9
    page = (out / "report.html").read_text()
    assert "through the student’s pictures" in page or "through the student&#39;s pictures" in page
    assert (out / "report-files").is_dir()
    assert "validation accuracy" in page


def test_what_is_kept_is_what_was_trained(place: Path, done: tuple[Path, str]) -> None:
    """The student's own accuracy on the test pictures is the one that was reported, and evaluate finds it too."""
    from plackett.data.folders import open_pictures
    from plackett.data.loading import Viewed

    out, _ = done
    held = packed.load(out / "student")
    test = open_pictures(place / "pets").test
    assert test is not None
    with torch.no_grad():
        said = torch.cat([held.network(batch.inputs).argmax(-1) for batch in Viewed(test, held.sight).batches()])
    results = read_run(out / "seed-0").results
    assert results is not None
    assert int((said == test.targets).sum()) / len(test) == results.students["PLD"].accuracy == held.about["accuracy"]
    assert held.classes == pets.CLASSES
    assert held.about["objective"] == "PLD"


def test_every_epoch_is_monitored(done: tuple[Path, str]) -> None:
    run = read_run(done[0] / "seed-0")
    assert [epoch.epoch for epoch in run.metrics] == [0, 1]
    pld, ce = run.metrics[-1].students["PLD"], run.metrics[-1].students["CE"]
    assert pld.gradient_share == {"pld": 1.0}
    assert pld.agreement is not None
    assert 0 <= pld.agreement <= 1
    assert pld.first_choice_weight is not None
    assert 1 / 3 < pld.first_choice_weight < 1
    assert ce.first_choice_weight is None


def test_the_same_command_again_trains_nothing(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = place / "again"
    command = asked(place, "--out", out, "--no-report", "epochs=1")
    assert call(capsys, *command)[0] == 0
    before = {path: path.stat().st_mtime_ns for path in (out / "seed-0").iterdir()}
    code, said, _ = call(capsys, *command)
    assert code == 0
    assert "epoch" not in said.partition("On 24")[0].rpartition("Suggested")[2]
    assert {path: path.stat().st_mtime_ns for path in (out / "seed-0").iterdir()} == before
    code, _, err = call(capsys, *asked(place, "--out", out, "--no-report", "epochs=3", "learning_rate=1e-4"))
    assert code == 2
    assert err.splitlines()[-1] == (
        f"{out / 'seed-0'} was made by another configuration: training.epochs was 1 and is 3; training.learning_rate was "
        "0.001 and is 0.0001. Go on with the old one, or take another folder with --out."
    )


def test_the_recipe_that_was_written_does_the_same(place: Path, done: tuple[Path, str], tmp_path: Path,
                                                   capsys: pytest.CaptureFixture[str]) -> None:  # fmt: skip
    code, _, err = call(capsys, "distill", "--recipe", done[0] / "recipe.yaml", "--out", tmp_path / "twin", "--no-report",
                        "--workers", 0)  # fmt: skip
    assert code == 0, err
    for name in ("student/model.safetensors", "seed-0/results.json"):
        assert (tmp_path / "twin" / name).read_bytes() == (done[0] / name).read_bytes()


def test_without_the_reports_extra_all_else_is_done(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from plackett.cli import ready

    monkeypatch.setitem(ready.EXTRAS, "report", ("no_such_module",))
    code, said, err = call(capsys, *asked(place, "--out", tmp_path / "run", "epochs=1"))
    assert code == 0, err
    assert "No report: it needs 'no_such_module', which is not installed: pip install 'plackett[report]'.\n" in said
    assert (tmp_path / "run/student/model.safetensors").exists()
    assert not (tmp_path / "run/report.html").exists()


def test_seeds_share_nothing_and_three_allow_a_finding(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = place / "seeds"
    code, said, err = call(capsys, *asked(place, "--objective", "kd,ce", "--seeds", "0-2", "--out", out, "--no-report",
                                          "epochs=1"))  # fmt: skip
    assert code == 0, err
    assert "against CE [95 %]" in said
    assert " ± " in said
    assert "Intervals are over pictures" not in said
    first, second = (packed.tensors(out / f"seed-{seed}/students/KD") for seed in (0, 1))
    assert any(not torch.equal(first[name], second[name]) for name in first)


@pytest.mark.parametrize("objective", ["fitnet", "vid", "at", "rkd"])
def test_features_teach_too_and_projectors_are_not_exported(
    place: Path, objective: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = call(capsys, *asked(place, "--objective", objective, "--out", tmp_path / "run", "--no-report",
                                       "epochs=1"))  # fmt: skip
    assert code == 0, err
    kept = packed.tensors(tmp_path / "run" / "student")
    assert kept.keys() == create("resnet8x4", classes=3).state_dict().keys()
    share = read_run(tmp_path / "run" / "seed-0").metrics[-1].students[
        {"fitnet": "FitNet"}.get(objective, objective.upper())
    ].gradient_share  # fmt: skip
    assert sum(share.values()) == pytest.approx(1)
    assert share[objective] > 0


def test_everything_at_once(place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Mixing, unlabelled pictures, accumulation, clipping, averaging, LAMB, warm-up, erasing; and it is all recorded."""
    pets.folder(tmp_path / "more", {"": 4}, seed=9)
    code, _, err = call(
        capsys, *asked(place, "--out", tmp_path / "run", "--no-report", "--unlabelled", tmp_path / "more",
                       "--objective", "pld", "mixup=0.8", "cutmix=1", "parts=2", "clip=1.0", "average=0.9",
                       "optimiser=lamb", "warmup_epochs=1", "erase=0.5", "objective.pld.label_weight=0.5"),
    )  # fmt: skip
    assert code == 0, err
    run = read_run(tmp_path / "run" / "seed-0")
    assert run.record.data.train == 36 + 12
    assert run.record.config["mix"]["mixup"] == 0.8
    assert run.record.config["training"]["optimiser"] == "lamb"
    assert run.results is not None
    assert set(run.results.students) == {"PLD"}


def test_without_validation_pictures_some_are_held_out(place: Path, tmp_path: Path,
                                                       capsys: pytest.CaptureFixture[str]) -> None:  # fmt: skip
    pets.folder(tmp_path / "plain", {"": 12})
    code, said, err = call(capsys, *asked(place, "--out", tmp_path / "run", "--no-report", "epochs=1",
                                          data=tmp_path / "plain"))  # fmt: skip
    assert code == 0, err
    assert "Note: There are no validation pictures: 3 of the 36 training pictures" in said
    assert "On 3 pictures to validate with, 3 classes" in said
    run = read_run(tmp_path / "run" / "seed-0")
    assert (run.record.data.tested, run.record.data.watched) == ("validation", "validation")


def test_one_unreadable_picture_is_named_replaced_and_counted(place: Path, tmp_path: Path,
                                                              capsys: pytest.CaptureFixture[str]) -> None:  # fmt: skip
    shutil.copytree(place / "pets", tmp_path / "pets")
    (tmp_path / "pets/train/cat/03.png").write_bytes(b"nothing")
    (tmp_path / "pets/test/dog/01.png").write_bytes(b"nothing")
    code, said, err = call(capsys, *asked(place, "--out", tmp_path / "run", "epochs=1", data=tmp_path / "pets"))
    assert code == 0, err
    assert "train/cat/03.png cannot be read" in said
    assert "another of its class stands in for it" in said
    assert "test/dog/01.png cannot be read" in said
    run = read_run(tmp_path / "run" / "seed-0")
    assert run.results is not None
    assert run.results.warnings[-1] == (
        "1 pictures to train on could not be read, and others of their class stood in for them: train/cat/03.png."
    )
    assert "train/cat/03.png" in (tmp_path / "run/report.html").read_text()
    code, _, err = call(capsys, *asked(place, "--out", tmp_path / "none", "epochs=1", "bad_limit=0",
                                       data=tmp_path / "pets"))  # fmt: skip
    assert code == 2
    assert "1 of 36 pictures cannot be read, and at most 0 may be" in err


def test_train_makes_a_teacher_of_pictures(place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, said, err = call(
        capsys, "train", "resnet20", "epochs=1", "batch_size=12", "--recipe", "small-pictures", "--data", place / "pets",
        "--sight", "size=16", "--out", tmp_path / "run", "--workers", 0,
    )  # fmt: skip
    assert code == 0, err
    assert f"plackett distill --teacher {tmp_path / 'run/network'} --student timm:NAME" in said
    assert packed.load(tmp_path / "run/network").classes == pets.CLASSES
    assert read_run(tmp_path / "run/seed-0").record.teacher is None


def test_other_class_names_are_told_and_shared_ones_distilled(place: Path, tmp_path: Path,
                                                              capsys: pytest.CaptureFixture[str]) -> None:  # fmt: skip
    more = (*pets.CLASSES[:2], "eel")
    pets.folder(tmp_path / "pets", {"train": 6, "val": 3}, classes=more)
    code, said, err = call(capsys, *asked(place, "--out", tmp_path / "run", "--no-report", "epochs=1",
                                          "objective.pld.label_weight=1", data=tmp_path / "pets"))  # fmt: skip
    assert code == 0, err
    words = " ".join(said.split())
    assert "Teacher and data share 2 classes of 3, among which the teacher chooses." in words
    assert "The teacher does not offer 'eel'. 1 of the teacher's classes are not in the data ('dog')." in words


def sentence(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    code, _, err = call(capsys, *arguments)
    assert code == 2, err
    return err.splitlines()[-1]


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
    ("optimiser=lamp", "There is no optimiser 'lamp'; did you mean 'lamb'? (timm has "),
    ("objective=pdl", "There is no objective 'pdl'; did you mean 'pld'? (choices: "),
    ("seeds=[-1]", "The command, seeds: seeds are whole numbers from 0 on."),
])  # fmt: skip
def test_a_wrong_key_gets_its_sentence(
    place: Path, tmp_path: Path, key: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert sentence(capsys, *asked(place, "--out", tmp_path / "run", "--no-report", key)).startswith(said)


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
