"""`plackett check` on picture files and a factory of one's own, and every way in which it is asked wrongly."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from plackett.experiments.findings import Findings
from plackett.models import create
from plackett.models.packed import Packed, save
from tests.cli.test_evaluate import call
from tests.experiments.shades import SIGHT, ByShade, folder, shade_names

pytest.importorskip("timm")

FACTORY = "tests.experiments.shades:by_shade"
SEES = "size=16,mean=0,std=1,crop=1"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("check")
    folder(root / "greys", splits=("train", "val"))
    network = ByShade(12)
    save_file(network.state_dict(), root / "teacher.safetensors")
    torch.save({"epoch": 3, "state_dict": {f"module.{k}": v for k, v in network.state_dict().items()}}, root / "t.pth")
    save(root / "run" / "teacher", Packed(network, FACTORY, shade_names(), SIGHT))
    return root


def asked(place: Path, *more: object, data: str = "greys") -> tuple[object, ...]:
    return ("check", "--teacher", FACTORY, "--weights", place / "teacher.safetensors", "--teacher-sight", SEES,
            "--data", place / data, *more)  # fmt: skip


def test_what_a_person_reads(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = call(capsys, *asked(place, "--student", "resnet20", "--student-sight", "size=8", "--workers", 1))
    assert code == 0, err
    assert out.splitlines()[0] == f"Teacher: {FACTORY}, 24 parameters. Student: resnet20, 272,604 parameters."
    rows = [line.split("  ") for line in out.splitlines() if line.endswith("100.0")]
    assert [(row[0], "".join(row[1:]).split()) for row in rows] == [
        ("its own way (16 px of 16, bicubic, mean 0.000, std 1.000)", ["100.0", "100.0"]),
        ("through the student's pictures (8 px of 8, resized to 16 px)", ["100.0", "100.0"]),
    ]
    said = " ".join(out.split())
    assert f"Pictures: 48 of 12 classes, {place / 'greys'} (val). Nothing says what" in said
    assert "confidently wrong (a wrong class above 50 %) on 0.0 % of the pictures." in said
    assert "Mean first-choice weight, the share of PLD that the label itself gets: " in said
    assert said.endswith(
        "Warning: The student has 272,604 parameters and the teacher 24: the student is not the smaller one, so look "
        "whether the two were exchanged."
    )
    assert "Suggested temperature: " in out


def test_json_has_everything_and_reads_back(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = call(capsys, *asked(place, "--format", "json", "--split", "train", "--limit", 24))
    assert code == 0
    found = Findings.model_validate_json(out)
    assert (found.split, found.pictures, found.looks[0].top1) == ("train", 24, 1.0)
    assert json.loads(out)["first_choice_weight"].keys() == {"0.5", "1.0", "2.0", "4.0", "8.0"}


def test_prefixes_are_taken_away_and_said(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = call(capsys, "check", "--teacher", FACTORY, "--weights", place / "t.pth", "--teacher-sight", SEES,
                        "--data", place / "greys", "--format", "json")  # fmt: skip
    assert code == 0
    assert json.loads(out)["looks"][0]["top1"] == 1.0
    assert json.loads(out)["notes"] == [
        f"The weights stand under state_dict in {place / 't.pth'}.",
        f"The names in {place / 't.pth'} begin with 'module.' (2 tensors), which was taken away.",
    ]


def test_a_saved_folder_and_a_run_that_holds_it(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = []
    for name in ("run/teacher", "run"):
        code, out, err = call(
            capsys, "check", "--teacher", place / name, "--data", place / "greys", "--format", "json",
            "--trust-checkpoint",
        )  # fmt: skip
        assert code == 0, err
        said.append(json.loads(out))
    assert said[0] == said[1]
    assert said[0]["looks"][0]["top1"] == 1.0
    assert said[0]["matching"] == "Teacher and data have the same 12 classes in the same order."


def test_near_chance_stops_after_the_findings_and_goes_on_where_that_is_allowed(
    place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Class folders that stand one further than what their pictures show."""
    names = shade_names()
    folder(tmp_path / "moved", 6, (*names[1:], names[0]))
    code, out, err = call(capsys, *asked(place, data=str(tmp_path / "moved")))
    assert code == 2
    assert "Warning: Labels and logits look to be in different orders: 0.0 %" in " ".join(out.split())
    assert err.splitlines()[-1] == (
        f"The teacher is right on 0.0 % of 72 pictures of {tmp_path / 'moved'} (val), where guessing would be right on "
        "8.3 %. Likely causes: its classes are in another order than the data's (relabelled, 100.0 % would be right; "
        "name them with --teacher-classes). --allow-weak-teacher goes on all the same."
    )
    allowed = call(capsys, *asked(place, "--allow-weak-teacher", data=str(tmp_path / "moved")))
    assert allowed[:2] == (0, out)
    (tmp_path / "names.txt").write_text("\n".join((*names[1:], names[0])))
    code, out, _ = call(capsys, *asked(place, "--teacher-classes", tmp_path / "names.txt", "--format", "json",
                                       data=str(tmp_path / "moved")))  # fmt: skip
    assert code == 0
    assert json.loads(out)["looks"][0]["top1"] == 1.0


def test_shared_classes_and_what_is_left_out_is_said(
    place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder(tmp_path / "some", 4, (*shade_names(4), "unheard"))
    (tmp_path / "some" / "val" / "shade-00" / "0.png").write_bytes(b"no picture")
    (tmp_path / "names.txt").write_text("\n".join(shade_names()))
    code, out, err = call(
        capsys, *asked(place, "--teacher-classes", tmp_path / "names.txt", data=str(tmp_path / "some"))
    )
    assert code == 0, err
    said = " ".join(out.split())
    assert (
        f"Pictures: 15 of 5 classes, {tmp_path / 'some'} (val) (left out: 4 of a class that it does not offer, 1 "
        "unreadable). Teacher and data share 4 classes of 5, among which the teacher chooses. The teacher does not "
        "offer 'unheard'. 8 of the teacher's classes are not in the data ('shade-04', 'shade-05', 'shade-06', "
        "'shade-07', 'shade-08' and 3 more)."
    ) in said


def test_mistakes_get_their_sentence(place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def said(*arguments: object) -> str:
        code, out, err = call(capsys, *arguments)
        assert (code, out) == (2, ""), err
        return err.splitlines()[-1]

    assert said(*asked(place, "--format", "yaml")) == "There is no format 'yaml'; choices: json, text."
    assert said(*asked(place, "--split", "vall")) == (
        "There is no split 'vall'; did you mean 'val'? (choices: test, train, val)."
    )
    assert said(*asked(place, "--split", "test")) == (
        f"{place / 'greys'} has no split 'test'; it has train, val: name one with --split."
    )
    assert said(*asked(place, "--device", "tpu0x")) == "There is no device 'tpu0x'; choices: cpu, cuda."
    assert said(*asked(place, "--student-sight", "size=8")) == (
        "--student-sight says how a student sees, and none is named with --student."
    )
    assert said(*asked(place, "--teacher-option", "sharp")) == "--teacher-option 'sharp' is not key=value."
    assert said(*asked(place, "--student", "resnet20", "--student-sight", "mean=x")) == (
        "--student-sight: 'x' is not a number; write 0.5 or 127/255."
    )
    assert said(*asked(place, "--student", "resnet20", "--student-sight", "sice=8")) == (
        "There is nothing called 'sice' in how a network sees; did you mean 'size'? (choices: crop, interpolation, "
        "mean, size, std)."
    )
    for size in ("8.5", "big"):
        assert said(*asked(place, "--student", "resnet20", "--student-sight", f"size={size}")) == (
            f"A network reads pictures of a whole number of pixels a side, not {size if size == '8.5' else repr(size)}."
        )
    assert said(*asked(place, data="dogs")) == f"There is no {place / 'dogs'}; give the folder that holds the pictures."
    elsewhere = ("check", "--teacher", FACTORY, "--data", "https://example.org/a-{0..2}.tar")
    assert said(*elsewhere) == (
        "https:/example.org/a-{0..2}.tar is not on this machine; shards are read at random, which needs local files: "
        "download them."
    )
    assert said(*asked(place, "--teacher-classes", "birds.txt")) == (
        "--teacher-classes birds.txt cannot be read (No such file or directory): name a file with one class a line, "
        "same, or one of imagenet-1k, imagenet-12k, imagenet-21k, imagenet-22k."
    )
    bare = ("check", "--teacher", FACTORY, "--data", place / "greys")
    assert said(*bare) == (
        f"The teacher {FACTORY} has no weights: name a file with --teacher-weights, or pretrained for its "
        "library's own."
    )
    assert said(*bare, "--weights", "w.pth") == "There is no file of weights w.pth."
    assert said("check", "--teacher", place / "run", "--data", place / "greys") == (
        f"{place / 'run' / 'teacher'} holds a network that {FACTORY} builds, and loading it would import and run that "
        "code: pass --trust-checkpoint if you trust it."
    )
    assert said("check", "--teacher", place / "nothing", "--data", place / "greys") == (
        f"There is no folder {place / 'nothing'}: name a run, a folder with config.json, or a network such as "
        "timm:resnet18."
    )
    assert said("check", "--teacher", place / "run" / "teacher", "--weights", "w.pth", "--data", place / "greys") == (
        f"{place / 'run' / 'teacher'} is a folder with weights of its own; leave out --weights w.pth."
    )
    assert said("check", "--teacher", "timm:resnet19", "--data", place / "greys").startswith("timm ")
    torch.save(ByShade(12), tmp_path / "whole.pt")
    assert said(*bare, "--weights", tmp_path / "whole.pt") == (
        f"{tmp_path / 'whole.pt'} is pickled with more in it than tensors, and reading it would run whatever code "
        "whoever made it put there: pass --trust-checkpoint if you trust them, or save its state_dict as safetensors."
    )
    assert (
        call(capsys, *bare, "--weights", tmp_path / "whole.pt", "--trust-checkpoint", "--teacher-sight", SEES)[0] == 0
    )
    save_file(create("resnet20", classes=12).state_dict(), tmp_path / "resnet.safetensors")
    assert said(*bare, "--weights", tmp_path / "resnet.safetensors") == (
        f"{tmp_path / 'resnet.safetensors'} does not hold the weights of {FACTORY}: 1 of its 2 tensors fit; 126 are "
        "unknown to it (first bn1.num_batches_tracked); 1 has another shape (first fc.weight: [12, 64], not [12, 1])."
    )
    short = tmp_path / "short.safetensors"
    short.write_bytes((place / "teacher.safetensors").read_bytes()[:100])
    assert said(*bare, "--weights", short).endswith("it is damaged or was cut short, so get it again.")
    shutil.copytree(place / "greys", tmp_path / "greys")
    shutil.rmtree(tmp_path / "greys" / "val" / "shade-03")
    (tmp_path / "greys" / "val" / "shade-03").mkdir()
    assert said(*asked(place, data=str(tmp_path / "greys"))) == (
        f"Class folder 'shade-03' in {tmp_path / 'greys'}/val holds no picture; fill or remove it."
    )
    (tmp_path / "greys" / "val" / "shade-03").rmdir()
    assert said(*asked(place, data=str(tmp_path / "greys"))) == (
        f"train and val in {tmp_path / 'greys'} have different class folders: 'shade-03' only in train. Give both the "
        "same ones, or remove one of the two splits."
    )
    folder(tmp_path / "four", 4, shade_names(4))
    assert said(*asked(place, data=str(tmp_path / "four"))) == (
        "Teacher has 12 classes, data 4, and nothing says what the teacher's are called: name them with "
        "--teacher-classes FILE (one a line, in the order of its logits), or take a teacher that was trained on these "
        "classes."
    )
    assert said(*asked(place, "--limit", 0)) == "At least 1 picture must be looked at, not 0."


def test_no_val_folder_holds_a_tenth_out_and_says_so(
    place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder(tmp_path / "one", 20, splits=("train",))
    code, out, _ = call(capsys, *asked(place, "--format", "json", data=str(tmp_path / "one")))
    assert code == 0
    found = json.loads(out)
    assert found["pictures"] == 24
    assert found["notes"] == [
        "There are no validation pictures: 24 of the 240 training pictures, 10% of every class, are held out for it "
        "(always the same ones)."
    ]


def test_the_page_shows_the_committed_findings() -> None:
    from plackett.cli.check import shown

    root = Path(__file__).parent.parent.parent
    page, found = (root / "docs" / "check.md").read_text(), {}
    for size in (128, 160):
        file = root / "results" / "check" / f"efficientnet-lite2-{size}px.json"
        found[size] = Findings.model_validate_json(file.read_text())
    assert f"```text\n{shown(found[160])}\n```" in page
    kept = found[128].through_student.top1
    assert f"With `--student-sight size=128` the teacher keeps {100 * kept:.1f} %." in " ".join(page.split())
    assert all(each.pictures == 1000 for each in found.values())
