"""Folders for the hub, as timm itself loads them."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from plackett.errors import InputError
from plackett.exporting import ExportError, to_hub
from plackett.models.given import given
from plackett.models.packed import WEIGHTS, load
from tests.exporting.networks import CLASSES, Forked, of, packed, pictures

timm = pytest.importorskip("timm")

ALONE = """
import json, sys, timm, torch
network = timm.create_model("local-dir:" + sys.argv[1], pretrained=True).eval()
with torch.no_grad():
    torch.save(network(torch.load(sys.argv[2], weights_only=True)), sys.argv[3])
assert "plackett" not in sys.modules
look = timm.data.resolve_model_data_config(network)
print(json.dumps([look["input_size"], look["mean"], look["std"], look["crop_pct"], look["interpolation"],
                  network.pretrained_cfg["label_names"], network.num_classes]))
"""


@pytest.mark.parametrize("kind", ["convnet", "vit"])
def test_timm_loads_the_folder_with_the_same_logits(kind: str, tmp_path: Path) -> None:
    found, folder = packed(kind), tmp_path / "small"
    compared = to_hub(found, folder)
    assert compared.difference == 0
    assert sorted(p.name for p in folder.iterdir()) == ["README.md", "config.json", "model.safetensors"]
    assert [p.name for p in tmp_path.iterdir()] == ["small"]
    inputs = pictures(found, 5)
    torch.save(inputs, tmp_path / "in.pt")
    done = subprocess.run(
        [sys.executable, "-c", ALONE, str(folder), str(tmp_path / "in.pt"), str(tmp_path / "out.pt")],
        capture_output=True, text=True, check=True, cwd=tmp_path,
    )  # fmt: skip
    size = found.sight.size
    assert json.loads(done.stdout) == [
        [3, size, size], [0.4, 0.5, 0.6], [0.25, 0.3, 0.2], 0.9, "bilinear", list(CLASSES), 5,
    ]  # fmt: skip
    with torch.no_grad():
        expected = found.network(inputs)  # other threads add in another order
    torch.testing.assert_close(torch.load(tmp_path / "out.pt", weights_only=True), expected, rtol=1e-4, atol=1e-5)


def test_own_networks_load_through_timm_once_they_are_registered(tmp_path: Path) -> None:
    found = packed()
    to_hub(found, tmp_path / "small")
    from plackett.models import register_with_timm

    register_with_timm()
    network = timm.create_model(f"local-dir:{tmp_path / 'small'}", pretrained=True).eval()
    inputs = pictures(found, 3)
    with torch.no_grad():
        assert torch.equal(network(inputs), found.network(inputs))
    with pytest.raises(InputError, match="plackett_resnet20 has no weights to download"):
        timm.create_model("plackett_resnet20", pretrained=True)


@pytest.mark.parametrize("ours", [True, False])
def test_the_folder_is_a_network_by_name_also_without_what_plackett_wrote(ours: bool, tmp_path: Path) -> None:
    found = packed("vit")
    to_hub(found, tmp_path / "small")
    config = tmp_path / "small" / "config.json"
    if not ours:
        held = json.loads(config.read_text())
        del held["plackett"]
        config.write_text(json.dumps(held))
    back = given(str(tmp_path / "small"))
    assert (back.packed.classes, back.packed.sight, back.trained) == (CLASSES, found.sight, True)
    inputs = pictures(found, 3)
    with torch.no_grad():
        assert torch.equal(back.packed.network(inputs), found.network(inputs))


def test_the_card_says_what_was_measured_and_how_to_use_it(tmp_path: Path) -> None:
    found = packed("vit")
    to_hub(found, tmp_path / "small", title="Small coats", figures={"top-1 accuracy, %": "93.5"}, conditions="On 40.")
    text = (tmp_path / "small" / "README.md").read_text()
    assert text.startswith("---\nlibrary_name: timm\npipeline_tag: image-classification\n")
    assert "# Small coats\n" in text
    assert "| top-1 accuracy, % | 93.5 |\n\nOn 40.\n" in text
    assert "0: bag; 1: coat; 2: dress; 3: löwe; 4: zebra." in text
    assert '"teacher": "timm:resnet50"' in text
    code = re.search(r"```python\n(.*?)```", text, re.DOTALL)
    assert code is not None
    from PIL import Image

    Image.new("RGB", (50, 40), "red").save(tmp_path / "small" / "picture.jpg")
    done = subprocess.run(
        [sys.executable, "-c", code.group(1)], capture_output=True, text=True, check=True, cwd=tmp_path / "small"
    )
    assert done.stdout.strip() in CLASSES


def test_half_precision_weights_and_networks_of_ones_own(tmp_path: Path) -> None:
    found = packed()
    to_hub(found, tmp_path / "half", half=True)
    to_hub(found, tmp_path / "full")
    half, full = ((tmp_path / name / WEIGHTS).stat().st_size for name in ("half", "full"))
    assert half < 0.52 * full
    to_hub(of(Forked()), tmp_path / "mine")
    with pytest.raises(InputError, match="would import and run that code"):
        load(tmp_path / "mine")
    assert "The network is built by `mine.nets:small`" in (tmp_path / "mine" / "README.md").read_text()


def test_a_folder_that_timm_cannot_load_is_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("no such network")

    monkeypatch.setattr(timm, "create_model", broken)
    with pytest.raises(ExportError) as error:
        to_hub(packed(), tmp_path / "small")
    assert str(error.value) == ("timm cannot load resnet8x4 back from its folder (RuntimeError: no such network).")
    assert not list(tmp_path.iterdir())
