"""`plackett export` from a trained folder to files that others run."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from plackett.data.folders import open_pictures
from plackett.data.loading import Viewed
from plackett.data.sight import Sight
from plackett.models import create
from plackett.models.packed import Packed, load, save
from tests.cli.test_evaluate import call
from tests.data.drawn import CLASSES, folder
from tests.exporting.networks import Forked

ort = pytest.importorskip("onnxruntime")
pytest.importorskip("timm")

SIGHT = Sight(16, (0.5, 0.5, 0.5), (0.25, 0.25, 0.25), crop=1.0)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("export")
    folder(root / "pets", {"train": 4, "test": 5})
    torch.manual_seed(0)
    save(root / "run" / "student", Packed(create("resnet8x4", classes=3).eval(), "resnet8x4", CLASSES, SIGHT))
    return root


@pytest.mark.slow
def test_everything_at_once_from_a_run_folder_with_real_pictures(
    place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "small"
    code, said, err = call(capsys, "export", place / "run", "--data", place / "pets", "--out", out)
    assert code == 0, err
    lines = said.splitlines()
    assert [line.partition(": ")[0] for line in lines] == [
        str(out / name) for name in ("model.onnx", "model.pt2", "model.safetensors")
    ]
    assert all(", same first class 100.0 %, on 15 pictures of pets/test." in line for line in lines)
    assert sorted(p.name for p in out.iterdir()) == [
        "README.md", "config.json", "model.onnx", "model.pt2", "model.safetensors",
    ]  # fmt: skip
    test = open_pictures(place / "pets").test
    assert test is not None
    inputs = torch.cat([batch.inputs for batch in Viewed(test, SIGHT).batches()])
    with torch.no_grad():
        expected = load(place / "run" / "student").network(inputs).numpy()
    session = ort.InferenceSession(str(out / "model.onnx"), providers=["CPUExecutionProvider"])
    np.testing.assert_allclose(session.run(None, {"pictures": inputs.numpy()})[0], expected, atol=1e-4)
    with torch.no_grad():
        logits = load(out).network(inputs).numpy()
    np.testing.assert_array_equal(logits, expected)
    card = (out / "README.md").read_text()
    right = 100 * float((expected.argmax(-1) == test.targets.numpy()).mean())
    assert f"| top-1 accuracy, % [95 %] | {right:.1f} [" in card
    assert "Accuracy: on 15 pictures of pets/test." in card
    assert json.loads((out / "config.json").read_text())["label_names"] == list(CLASSES)


def test_a_failed_check_exits_with_a_sentence_and_leaves_no_file(
    place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = "tests.cli.test_export:forked"
    save(tmp_path / "mine", Packed(forked(), spec, tuple("abcde"), SIGHT))
    code, out, err = call(capsys, "export", tmp_path / "mine", "--to", "onnx", "--out", tmp_path / "out")
    assert (code, out) == (2, "")
    assert err.splitlines()[-1] == (
        f"{tmp_path / 'mine'} holds a network that {spec} builds, and loading it would import and run that code: "
        "pass --trust-checkpoint if you trust it."
    )
    code, out, err = call(
        capsys, "export", tmp_path / "mine", "--to", "onnx", "--out", tmp_path / "out", "--trust-checkpoint"
    )
    assert (code, out) == (2, "")
    assert err.splitlines()[-1].startswith("model.onnx does not answer as the network does: ")
    assert not list((tmp_path / "out").iterdir())


def forked() -> torch.nn.Module:
    return Forked()


def test_mistakes_get_their_sentence(
    place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def said(*arguments: object) -> str:
        code, out, err = call(capsys, "export", *arguments)
        assert (code, out) == (2, "")
        return err.splitlines()[-1]

    student, out = place / "run" / "student", tmp_path / "out"
    assert said(student, "--to", "onxn", "--out", out) == (
        "There is no form 'onxn' to export to; did you mean 'onnx'? (choices: all, hub, onnx, torch)."
    )
    assert said(student, "--to", ",", "--out", out) == "--to is empty; choices: all, onnx, torch, hub."
    assert said(student, "--to", "hub", "--with-preprocessing", "hwc", "--out", out) == (
        "There is no layout 'hwc' of pictures; did you mean 'nhwc'? (choices: nchw, nhwc)."
    )
    (tmp_path / "file").write_text("")
    assert said(student, "--out", tmp_path / "file") == (
        f"{tmp_path / 'file'} is not a folder, so nothing can be written to {tmp_path / 'file'}: name a folder with "
        "--out."
    )
    assert said(student) == "Missing option '--out'. See plackett export --help."
    assert said("--out", out) == "Missing argument 'MODEL'. See plackett export --help."
    assert said(student, "--opset", 7, "--to", "onnx", "--out", out) == (
        "There is no --opset 7 to export to; torch writes 18 to 23."
    )
    monkeypatch.setitem(sys.modules, "onnxscript", None)
    assert said(student, "--to", "onnx", "--out", out) == (
        "plackett export --to onnx needs 'onnxscript', which is not installed: pip install 'plackett[export]'."
    )
    assert not out.exists()
