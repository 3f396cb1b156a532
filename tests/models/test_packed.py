"""Networks saved as folders, loaded back, and every way in which a folder can be wrong."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from plackett.data.sight import Sight
from plackett.errors import InputError
from plackett.models import create
from plackett.models import packed as packs
from plackett.models.packed import CONFIG, WEIGHTS, Packed, load, save

SIGHT = Sight(32, (0.5, 0.4, 0.3), (0.2, 0.2, 0.3), crop=0.9, interpolation="bilinear")
CLASSES = ("cat", "dog", "löwe")


def packed(seed: int = 0, classes: tuple[str, ...] = CLASSES) -> Packed:
    torch.manual_seed(seed)
    return Packed(create("resnet20", classes=len(classes)), "resnet20", classes, SIGHT, {"accuracy": 0.5, "n": [1, 2]})


def same(one: torch.nn.Module, other: torch.nn.Module) -> bool:
    theirs = other.state_dict()
    return all(torch.equal(tensor, theirs[name]) for name, tensor in one.state_dict().items())


def test_what_comes_back_is_what_was_saved(tmp_path: Path) -> None:
    kept = packed()
    folder = save(tmp_path / "new" / "student", kept)
    before = torch.get_rng_state()
    back = load(folder)
    assert torch.equal(before, torch.get_rng_state())
    assert (back.spec, back.classes, back.sight, back.about, back.options) == (
        "resnet20", CLASSES, SIGHT, {"accuracy": 0.5, "n": [1, 2]}, {},
    )  # fmt: skip
    assert same(back.network, kept.network)
    assert not back.network.training
    assert sorted(p.name for p in folder.iterdir()) == [CONFIG, WEIGHTS]


def test_timm_networks_and_options_come_back(tmp_path: Path) -> None:
    timm = pytest.importorskip("timm")
    options = {"patch_size": 8, "embed_dim": 24, "depth": 2, "num_heads": 2}
    network = timm.create_model("vit_tiny_patch16_224", num_classes=3, img_size=32, **options)
    save(tmp_path, Packed(network, "timm:vit_tiny_patch16_224", CLASSES, SIGHT, {}, options))
    back = load(tmp_path)
    assert back.options == options
    inputs = torch.randn(2, 3, 32, 32)
    assert torch.equal(back.network(inputs), network.eval()(inputs))


def test_a_save_that_is_stopped_between_its_files_leaves_the_last_network(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = packed(0)
    save(tmp_path, first)
    write = packs._write
    for stop_before in (2, 3):
        written = 0

        def stopping(path: Path, content: bytes, at: int = stop_before) -> None:
            nonlocal written
            written += 1
            if written == at:
                raise KeyboardInterrupt
            write(path, content)

        monkeypatch.setattr(packs, "_write", stopping)
        second = packed(stop_before, ("a", "b", "c", "d"))
        with pytest.raises(KeyboardInterrupt):
            save(tmp_path, second)
        back = load(tmp_path)
        expected = first if stop_before == 2 else second
        assert back.classes == expected.classes
        assert same(back.network, expected.network)
    monkeypatch.undo()
    save(tmp_path, first)
    assert load(tmp_path).classes == CLASSES
    assert "before" not in (tmp_path / CONFIG).read_text()


def refused(folder: Path) -> str:
    with pytest.raises(InputError) as error:
        load(folder)
    return str(error.value)


def test_every_wrong_folder_gets_its_sentence(tmp_path: Path) -> None:
    folder, weights, config = save(tmp_path / "m", packed()), tmp_path / "m" / WEIGHTS, tmp_path / "m" / CONFIG
    content, said = weights.read_bytes(), config.read_text()
    assert refused(tmp_path) == f"{tmp_path} has no config.json: that is not the folder of a saved network."
    weights.write_bytes(content[: len(content) // 2])
    assert refused(folder).startswith(f"{weights} is truncated or damaged (")
    assert refused(folder).endswith("): copy it again, or export it again from its run.")
    weights.write_bytes(content[:-4] + b"\0\0\0\1")
    assert refused(folder).startswith(f"{weights} is not the file that config.json was written for (SHA-256 ")
    assert refused(folder).endswith("): copy both files again from the same place.")
    weights.unlink()
    assert refused(folder) == f"{folder} has no model.safetensors: a network's folder holds it beside config.json."
    weights.write_bytes(content)
    config.write_text(said[:40])
    assert refused(folder).startswith(f"{config} cannot be read: ")
    config.write_text('{"architecture": "resnet18"}')
    assert refused(folder) == f"{config} has no key 'plackett': it was not written by plackett."
    config.write_text(said.replace("plackett model 1", "plackett model 2"))
    assert refused(folder) == f"{config} says it is 'plackett model 2', this plackett reads 'plackett model 1'."
    config.write_text(said.replace('"sha256"', '"sha"'))
    assert refused(folder) == (f"{config} does not say 'sha256': copy it again, or export it again from its run.")


def test_a_network_that_cannot_be_built_here_is_named(tmp_path: Path) -> None:
    folder = save(tmp_path, packed())
    config = tmp_path / CONFIG

    def of(spec: str) -> None:
        held = json.loads(config.read_text())
        held["plackett"]["spec"] = spec
        config.write_text(json.dumps(held))

    of("mine.nets:small")
    assert refused(folder) == (
        f"{folder} holds a network that mine.nets:small builds, and loading it would import and run that code: pass "
        "--trust-checkpoint if you trust it."
    )
    with pytest.raises(InputError, match=r"holds a network that cannot be built here\. .*mine"):
        load(folder, trust=True)
    of("resnet21")
    assert refused(folder).startswith(
        f"{folder} holds a network that cannot be built here. There is no model named 'resnet21'; "
        "did you mean 'resnet20'?"
    )
    of("resnet56")
    assert refused(folder) == (
        f"{folder / WEIGHTS} does not fit resnet56: 216 tensors are missing, 0 are not of it, 0 have another shape "
        "(such as layer1.3.bn1.bias); another version of the network's code wrote it."
    )
    pytest.importorskip("timm")
    of("timm:resnet18x")
    assert " has no network 'resnet18x'; did you mean 'resnet18'?" in refused(folder)
