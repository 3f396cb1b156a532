"""`plackett distill` as a person meets it: from a folder and a teacher to a student that others run."""

from __future__ import annotations

import contextlib
import io
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from plackett.cli import main
from plackett.experiments import predictions
from plackett.experiments.records import read_run
from plackett.models import create, packed
from tests.cli.calling import call
from tests.distilling import pets
from tests.distilling.command import asked, made

pytest.importorskip("timm")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made(tmp_path_factory.mktemp("distill"))


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
    assert run.results.warnings[-2] == (
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


OWN = """
from torch import nn


def net(classes: int) -> nn.Module:
    return nn.Sequential(nn.Conv2d(3, 8, 3, 2), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, classes))
"""


def test_a_function_of_ones_own_is_a_student_and_what_is_printed_runs(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "ownmade.py").write_text(OWN)
    monkeypatch.syspath_prepend(str(tmp_path))
    out = tmp_path / "run"
    code, said, err = call(capsys, *asked(place, "--out", out, "--no-report", "epochs=1", student="ownmade:net"))
    assert code == 0, err
    assert f"Student: {out / 'student'}" in said
    evaluated = f"evaluate {out / 'student'} --teacher {place / 'teacher'} --data {place / 'pets'} --trust-checkpoint"
    assert f"    plackett {evaluated}\n" in said
    assert f"export {out / 'student'} --data {place / 'pets'} --out {out / 'export'} --trust-checkpoint\n" in said
    code, _, err = call(capsys, *evaluated.removesuffix(" --trust-checkpoint").split())
    assert code == 2
    assert err.splitlines()[-1].endswith("pass --trust-checkpoint if you trust it.")


def test_teachers_weights_are_part_of_the_command_that_is_printed(
    place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    torch.save(packed.load(place / "teacher").network.state_dict(), tmp_path / "w.pth")
    named = ("--teacher", "resnet20", "--teacher-weights", tmp_path / "w.pth", "--teacher-classes", "same",
             "--teacher-sight", "size=16,mean=0.5,std=0.25,crop=1")  # fmt: skip
    code, said, err = call(capsys, *asked(place, "--out", tmp_path / "run", "--no-report", "epochs=1"), *named)
    assert code == 0, err
    assert f"--teacher resnet20 --teacher-weights {tmp_path / 'w.pth'} --teacher-classes same --data" in said


def test_moved_pictures_and_another_folder_go_on(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same pictures and the same teacher are the same run, wherever they lie; one more picture is another."""
    out = tmp_path / "run"
    code, first, err = call(capsys, *asked(place, "--out", out, "--no-report", "epochs=1"))
    assert code == 0, err
    moved = shutil.copytree(place / "pets", tmp_path / "dogs")
    shutil.copytree(place / "teacher", tmp_path / "teacher")
    monkeypatch.chdir(tmp_path)
    arguments = asked(Path(), "--out", "run", "--no-report", "epochs=1", data=Path("dogs"))
    code, said, err = call(capsys, *arguments)
    assert code == 0, err
    assert "epoch 1" not in said
    assert said[said.index("On 24 pictures") : said.index("Student")] in first
    shutil.copy(moved / "train/cat/00.png", moved / "train/cat/more.png")
    code, _, err = call(capsys, *arguments)
    assert code == 2
    words = err.splitlines()[-1]
    assert words.startswith("run/seed-0 was made by another configuration: pictures.train was ")
    assert words.endswith(". Go on with the old one, or take another folder with --out.")


def test_pictures_to_test_on_that_cannot_be_read_are_named_once_and_not_counted(
    place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every share is of those that were shown: accuracy and agreement, counted here from what was written."""
    data, out = shutil.copytree(place / "pets", tmp_path / "pets"), tmp_path / "run"
    (data / "test/cat/00.png").write_text("no picture")
    code, said, err = call(capsys, *asked(place, "--out", out, "--no-report", data=data))
    assert code == 0, err
    assert said.count("test/cat/00.png cannot be read") == 1
    assert "On 23 pictures to test with, 3 classes" in said
    run, held = read_run(out / "seed-0"), load_file(out / "seed-0/predictions.safetensors")
    assert run.results is not None
    assert run.record.data.test == 23
    assert "1 pictures to test on could not be read and are left out: test/cat/00.png." in run.results.warnings
    targets, targets_said = predictions.answers(out / "seed-0/predictions.safetensors", ["PLD"])
    assert len(targets) == 23
    right = int((targets_said["PLD"] == targets).sum())
    assert run.results.students["PLD"].accuracy == pytest.approx(right / 23)
    assert held


@pytest.mark.parametrize("tap", ["middle", "stage9"])
def test_one_named_feature_is_what_is_read(
    place: Path, tmp_path: Path, tap: str, capsys: pytest.CaptureFixture[str]
) -> None:
    taps = (f"student_taps.{tap}=layer2.0", f"teacher_taps.{tap}=layer1.2")
    out = tmp_path / "run"
    code, _, err = call(capsys, *asked(place, "--out", out, "--no-report", "epochs=1", "--objective", "fitnet", *taps))
    assert code == 0, err
    assert read_run(out / "seed-0").record.config["methods"]["FitNet"]["fitnet"]["taps"] == [tap]


def test_letters_that_a_font_lacks_are_no_warning(
    place: Path, tmp_path: Path, recwarn: pytest.WarningsRecorder, capsys: pytest.CaptureFixture[str]
) -> None:
    odd = ("<b>x&y<b>", "a b'c", "你好 🐈")
    data = pets.folder(tmp_path / "odd", {"train": 4, "val": 4}, classes=odd)
    said = ("--teacher-classes", "same", "--objective", "pld,ce")
    code, _, err = call(capsys, *asked(place, "--out", tmp_path / "run", "epochs=1", *said, data=data))
    assert code == 0, err
    assert not [str(each.message) for each in recwarn if "Glyph" in str(each.message)]
    page = (tmp_path / "run/report.html").read_text()
    assert odd[0] not in page
    assert odd[2] in page
