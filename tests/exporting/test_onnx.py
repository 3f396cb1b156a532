"""ONNX files as onnxruntime runs them, and the ones that must not be written."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from plackett.errors import InputError, MissingExtraError
from plackett.exporting import Checking, ExportError, to_onnx, with_onnx
from tests.exporting.networks import CLASSES, Choosing, Forked, of, packed, pictures

onnx = pytest.importorskip("onnx")
ort = pytest.importorskip("onnxruntime")


def run(path: Path, inputs: np.ndarray) -> np.ndarray:
    session = ort.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    return np.asarray(session.run(None, {session.get_inputs()[0].name: inputs})[0])


@pytest.mark.parametrize("kind", ["own", "convnet", "vit"])
def test_any_number_of_pictures_gets_the_networks_logits(kind: str, tmp_path: Path) -> None:
    found, path = packed(kind), tmp_path / "model.onnx"
    compared = to_onnx(found, path, checking=Checking(pictures(found, 13), "13 pictures of a test"))
    for n in (1, 3, 8):
        inputs = pictures(found, n, seed=n)
        with torch.no_grad():
            expected = found.network(inputs).numpy()
        np.testing.assert_allclose(run(path, inputs.numpy()), expected, atol=1e-4 * np.abs(expected).max())
    assert compared.pictures == 13
    assert compared.agreement == 1
    assert compared.difference < 1e-4 * compared.largest
    assert [p.name for p in tmp_path.iterdir()] == ["model.onnx"]

    model = onnx.load(str(path))
    dims = model.graph.input[0].type.tensor_type.shape.dim
    assert [dim.dim_param or dim.dim_value for dim in dims] == ["batch", 3, found.sight.size, found.sight.size]
    said = {each.key: each.value for each in model.metadata_props}
    assert json.loads(said["class_names"]) == list(CLASSES)
    assert json.loads(said["input_size"]) == [3, found.sight.size, found.sight.size]
    assert json.loads(said["resize_shorter_side"]) == found.sight.resized
    assert json.loads(said["mean"]) == [0.4, 0.5, 0.6]
    assert json.loads(said["std"]) == [0.25, 0.3, 0.2]
    assert (said["interpolation"], said["crop_pct"], said["channel_order"]) == ("bilinear, antialiased", "0.9", "RGB")
    assert said["input"] == "float32 NCHW, (value / 255 - mean) / std"
    assert said["check_against_pytorch"] == compared.sentence()
    assert compared.sentence().endswith("on 13 pictures of a test")


@pytest.mark.parametrize(("layout", "half"), [("nhwc", False), ("nchw", True)])
def test_normalisation_inside_the_graph_takes_bytes(layout: str, half: bool, tmp_path: Path) -> None:
    found, path = packed(), tmp_path / "model.onnx"
    to_onnx(found, path, bytes_in=layout, half=half)  # type: ignore[arg-type]
    pixels = torch.randint(256, (3, 32, 32, 3), dtype=torch.uint8, generator=torch.Generator().manual_seed(7))
    mean, std = torch.tensor(found.sight.mean), torch.tensor(found.sight.std)
    with torch.no_grad():
        expected = found.network(((pixels / 255 - mean) / std).permute(0, 3, 1, 2)).numpy()
    given = pixels if layout == "nhwc" else pixels.permute(0, 3, 1, 2).contiguous()
    np.testing.assert_allclose(
        run(path, given.numpy()), expected, atol=(1e-2 if half else 1e-4) * np.abs(expected).max()
    )
    said = {each.key: each.value for each in onnx.load(str(path)).metadata_props}
    assert said["input"] == f"uint8 {layout.upper()}, 0 to 255"
    assert said["normalisation"] == "inside the graph"
    if half:
        weights = onnx.load(str(path)).graph.initializer
        assert {w.data_type for w in weights if len(w.dims) == 4 and w.dims[0] > 1} == {onnx.TensorProto.FLOAT16}


def test_the_opset_is_the_one_that_was_asked_for(tmp_path: Path) -> None:
    to_onnx(packed("vit"), tmp_path / "m.onnx", opset=18)
    assert {each.version for each in onnx.load(str(tmp_path / "m.onnx")).opset_import if not each.domain} == {18}
    with pytest.raises(InputError) as error:
        to_onnx(packed(), tmp_path / "m.onnx", opset=7)
    assert str(error.value) == "There is no --opset 7 to export to; torch writes 18 to 23."


def test_a_file_that_answers_otherwise_is_not_written_and_the_last_good_one_stays(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(b"the last good one")
    with pytest.raises(ExportError) as error:
        to_onnx(of(Forked()), path)
    said = str(error.value)
    assert said.startswith("model.onnx does not answer as the network does: largest logit difference ")
    assert said.endswith(" is allowed. Not written; try another --opset, or another form with --to.")
    assert path.read_bytes() == b"the last good one"
    assert [p.name for p in tmp_path.iterdir()] == ["model.onnx"]


def test_what_cannot_be_exported_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "model.onnx"
    with pytest.raises(ExportError) as error:
        to_onnx(of(Choosing()), path)
    assert str(error.value).startswith("mine.nets:small has no graph that torch can export (")
    assert str(error.value).endswith(
        "). Its code may depend neither on the values of pixels nor on how many pictures come; --to hub needs no graph."
    )
    large = of(Forked())
    torch.nn.init.constant_(large.network.last.weight, 1e6)
    with pytest.raises(ExportError) as error:
        to_onnx(large, path, half=True)
    assert str(error.value) == (
        "model.onnx gives logits that are not finite (float16 ends at 65,504: leave out --fp16); not written."
    )
    monkeypatch.setattr(with_onnx, "LARGEST", 50)
    with pytest.raises(ExportError) as error:
        to_onnx(of(Forked()), path)
    assert str(error.value) == (
        "The weights of mine.nets:small are 0.0 GiB and an ONNX file holds less than 2 GiB: use --fp16, or --to torch."
    )
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("module", ["onnx", "onnxscript", "onnxruntime"])
def test_a_missing_package_is_named(module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, module, None)
    with pytest.raises(MissingExtraError) as error:
        to_onnx(of(Forked()), tmp_path / "m.onnx")
    assert str(error.value) == (
        f"An ONNX file needs {module!r}, which is not installed: pip install 'plackett[export]'."
    )
