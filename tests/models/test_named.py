"""Networks by name, their weights from files as people have them, and a sentence for everything that does not fit."""

from __future__ import annotations

import json
import pathlib
import zipfile

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from plackett.data.sight import Sight
from plackett.errors import InputError, PlackettError
from plackett.models import create, packed
from plackett.models.named import Named, named

timm = pytest.importorskip("timm")


def small(classes: int = 5) -> nn.Module:
    return create("resnet20", classes=classes)


def same(found: Named, network: nn.Module, but: str = "no key") -> bool:
    held = found.network.state_dict()
    return all(torch.equal(held[k], v) for k, v in network.state_dict().items() if not k.startswith(but))


def sentence(*arguments: object, **keywords: object) -> str:
    with pytest.raises(PlackettError) as caught:
        named(*arguments, **keywords)  # type: ignore[arg-type]
    return str(caught.value)


def own(num_classes: int = 1000) -> nn.Module:
    return small(num_classes)


def of_its_own_size() -> nn.Module:
    return small(7)


def no_network() -> int:
    return 3


def pixels() -> nn.Module:
    return nn.Identity()


HERE = "tests.models.test_named"


def test_timm_says_how_its_network_sees() -> None:
    found = named("timm:mobilenetv4_conv_small", classes=["cat", "dog"])
    config = timm.data.resolve_data_config({}, model=timm.create_model("mobilenetv4_conv_small"))
    assert (found.outputs, found.class_names, found.weights, found.fresh_head) == (2, ("cat", "dog"), None, True)
    assert found.network(torch.zeros(1, 3, 32, 32).expand(2, -1, -1, -1)).shape == (2, 2)
    seen = found.sight
    assert (seen.size, seen.mean, seen.std, seen.crop, seen.interpolation) == (
        config["input_size"][1], config["mean"], config["std"], config["crop_pct"], config["interpolation"]
    )  # fmt: skip


def test_a_vision_transformer_is_made_for_the_size_that_it_is_shown() -> None:
    found = named("timm:vit_tiny_patch16_224", classes=3, sight=Sight(64), options={"depth": 1})
    assert found.network(torch.zeros(1, 3, 64, 64)).shape == (1, 3)


def test_every_classifier_of_torchvision_says_how_it_sees_to_the_pixel() -> None:
    models = pytest.importorskip("torchvision.models")
    from plackett.models.from_torchvision import _sight_of_torchvision

    for name in models.list_models(module=models):
        transforms = models.get_model_weights(name).DEFAULT.transforms()
        sight = _sight_of_torchvision(transforms)
        assert (sight.size, sight.resized) == (transforms.crop_size[0], transforms.resize_size[0]), name
    found = named("torchvision:resnet18", classes=3)
    assert (found.outputs, found.sight.size, found.sight.resized, found.sight.interpolation) == (
        3,
        224,
        256,
        "bilinear",
    )


def test_a_function_of_ones_own_is_told_the_number_of_classes_where_it_takes_it() -> None:
    assert named(f"{HERE}:own", classes=3, sight=Sight(32)).outputs == 3
    assert named(f"{HERE}:own", sight=Sight(32)).outputs == 1000
    found = named(f"{HERE}:of_its_own_size")
    assert found.outputs == 7
    assert found.notes == (
        f"Nothing says how {HERE}:of_its_own_size sees a picture: 224 x 224 with ImageNet's usual normalisation is "
        "assumed; say it with a sight of its own if that is wrong.",
    )
    assert sentence(f"{HERE}:of_its_own_size", classes=3, sight=Sight(32)) == (
        f"{HERE}:of_its_own_size gives 7 logits a picture, but the data has 3 classes; let it take num_classes."
    )


def test_a_file_beside_is_found(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = "from plackett.models import create\nmake = lambda: create('resnet20', classes=4)"
    (tmp_path / "mine_beside.py").write_text(code)
    monkeypatch.chdir(tmp_path)
    assert named("mine_beside:make", sight=Sight(32)).outputs == 4


@pytest.mark.parametrize("wrapped", [
    lambda state: state,
    lambda state: {"state_dict": state, "epoch": 3},
    lambda state: {"model": state, "optimizer": {"state": {}}},
    lambda state: {f"module.{k}": v for k, v in state.items()},
    lambda state: {"state_dict": {f"module._orig_mod.{k}": v for k, v in state.items()}},
    lambda state: {"state_dict": {**{f"model.{k}": v for k, v in state.items()}, "criterion.weight": torch.ones(5)}},
    lambda state: {f"anything.at.all.{k}": v for k, v in state.items()},
    lambda state: {k: v for k, v in state.items() if not k.endswith("num_batches_tracked")},
    lambda state: {k: v.half() if v.is_floating_point() else v for k, v in state.items()},
])  # fmt: skip
def test_weights_are_found_under_what_wrappers_put_before_them(wrapped: object, tmp_path: pathlib.Path) -> None:
    network, path = small(), tmp_path / "w.pth"
    for parameter in network.parameters():
        parameter.data = parameter.data.half().float()
    torch.save(wrapped(network.state_dict()), path)  # type: ignore[operator]
    found = named("resnet20", weights=path)
    assert (found.outputs, found.weights, found.fresh_head) == (5, str(path), False)
    assert same(found, network)


def test_what_was_taken_away_is_said(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "w.pth"
    state = {f"module.{k}": v for k, v in small().state_dict().items()}
    torch.save({"model": {}, "model_ema": {**state, "loss.scale": torch.ones(1)}, "state_dict": state}, path)
    n = len(state)
    assert named("resnet20", weights=path).notes == (
        f"{path} holds model_ema and state_dict and model; model_ema was taken.",
        f"The names in {path} begin with 'module.' ({n} tensors), which was taken away.",
        f"1 other tensors in {path} were left alone (first loss.scale).",
    )


def test_a_network_that_wraps_another_takes_the_inner_ones_weights(tmp_path: pathlib.Path) -> None:
    class Wrapped(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.backbone = small()

    from plackett.models import fitting
    from plackett.models.weights import Held

    inner, outer = small(), Wrapped()
    found = fitting.fit(outer, Held(tmp_path, dict(inner.state_dict())))
    fitting.check(found, "it", tmp_path)
    fitting.load(outer, found)
    assert all(torch.equal(a, b) for a, b in zip(outer.state_dict().values(), inner.state_dict().values(), strict=True))


def test_a_teacher_keeps_its_head_and_a_student_gets_a_fresh_one(tmp_path: pathlib.Path) -> None:
    network, path = small(37), tmp_path / "w.safetensors"
    save_file(network.state_dict(), path)
    teacher, student = named("resnet20", weights=path), named("resnet20", weights=path, classes=5)
    assert teacher.outputs == 37
    assert same(teacher, network)
    assert (student.outputs, student.fresh_head) == (5, True)
    assert same(student, network, but="fc.")
    n = len(network.state_dict()) - 2
    assert student.notes == (
        f"The head in {path} has 37 classes, this network 5: it begins with a fresh head, and its other {n} tensors "
        "are from the file.",
    )
    timm_file = tmp_path / "t.safetensors"
    save_file(timm.create_model("resnet18", num_classes=6).state_dict(), timm_file)
    assert named("timm:resnet18", weights=timm_file).outputs == 6


def test_a_packed_folder_says_all_of_it(tmp_path: pathlib.Path) -> None:
    network, sight = small(2), Sight(32, (0.5,) * 3, (0.2,) * 3, crop=1.0)
    packed.save(tmp_path, packed.Packed(network, "resnet20", ("cat", "dog"), sight))
    for found in (named(str(tmp_path)), named("resnet20", weights=tmp_path)):
        assert (found.spec, found.class_names, found.sight, found.fresh_head) == (
            "resnet20",
            ("cat", "dog"),
            sight,
            False,
        )
        assert same(found, network)
    student = named(str(tmp_path), classes="abc")
    assert (student.outputs, student.class_names, student.sight, student.fresh_head) == (3, tuple("abc"), sight, True)
    assert same(student, network, but="fc.")


def test_a_folder_of_timms_names_its_classes(tmp_path: pathlib.Path) -> None:
    network = timm.create_model("resnet18", num_classes=2)
    save_file(network.state_dict(), tmp_path / "model.safetensors")
    config = {"architecture": "resnet18", "num_classes": 2, "pretrained_cfg": {"label_names": ["cat", "dog"]}}
    (tmp_path / "config.json").write_text(json.dumps(config))
    assert named("timm:resnet18", weights=tmp_path).class_names == ("cat", "dog")


def test_what_does_not_exist_gets_a_suggestion() -> None:
    said = sentence("timm:mobilenetv4_conv_smal")
    assert said.startswith(f"timm {timm.__version__} has no network 'mobilenetv4_conv_smal'; did you mean ")
    assert "'mobilenetv4_conv_small'" in said
    assert sentence("timm:resnet18.a1_in2k").startswith(
        "timm:resnet18 has no weights called 'a1_in2k' (choices: a1_in1k,"
    )
    assert sentence("torchvision:resnet19").startswith(
        "torchvision has no classifier 'resnet19'; did you mean 'resnet18'? (choices: "
    )
    assert sentence("resnet21").startswith(
        "There is no model named 'resnet21'; did you mean 'resnet20'? (choices: mlp_student,"
    )
    assert sentence("no_such_package.nets:make") == (
        "no_such_package.nets:make: there is no module 'no_such_package.nets' here or among the installed packages; "
        "networks are named timm:NAME, torchvision:NAME or package.module:function."
    )
    assert sentence(f"{HERE}:ownn") == f"{HERE}:ownn: {HERE} has no 'ownn'; did you mean 'own'?"
    assert sentence(f"{HERE}:HERE") == f"{HERE}:HERE is str, not a function that makes a network."
    assert sentence(f"{HERE}:no_network") == f"{HERE}:no_network gives int, not a torch.nn.Module."
    assert sentence(f"{HERE}:pixels", sight=Sight(32)) == (
        f"{HERE}:pixels gives [1, 3, 32, 32] for one picture, where a classifier gives logits [1, classes]."
    )
    assert sentence("timm:vit_small_patch14_dinov2", options={"depth": 1}) == (
        "timm:vit_small_patch14_dinov2 gives features and no logits; it needs a head, or weights that have one."
    )
    assert sentence("timm:").startswith("'timm:' names no network: write timm:NAME, torchvision:NAME,")
    assert sentence("resnet20", classes=2, weights="pretrained") == (
        "resnet20 has no weights to download; name a file of weights instead of pretrained."
    )
    said = sentence("timm:resnet18", options={"no_such_option": 1})
    assert said.startswith("timm:resnet18 could not be made (TypeError: ")


def test_weights_of_another_architecture(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "w.safetensors"
    save_file(timm.create_model("resnet18", num_classes=7).state_dict(), path)
    assert sentence("timm:resnet34", weights=path) == (
        f"{path} does not hold the weights of timm:resnet34: 120 of its 218 tensors fit; 80 are missing (first "
        "layer1.2.conv1.weight); 2 have another shape (first fc.weight: [7, 512], not [1000, 512])."
    )
    save_file(timm.create_model("resnet34", num_classes=7).state_dict(), path)
    assert "96 are unknown to it (first layer1.2." in sentence("timm:resnet18", weights=path)
    save_file({f"visual.trunk.{k}": v for k, v in create("wrn_40_1", classes=7).state_dict().items()}, path)
    said = sentence("timm:resnet18", weights=path)
    assert said.startswith(f"{path} does not hold the weights of timm:resnet18: 5 of its 122 tensors fit; ")
    assert said.endswith(" All names in the file begin with 'visual.trunk.'.")


def test_a_pickled_checkpoint_needs_trust(tmp_path: pathlib.Path) -> None:
    network, path = small(), tmp_path / "w.pth"
    torch.save(network, path)
    assert sentence("resnet20", weights=path) == (
        f"{path} is pickled with more in it than tensors, and reading it would run whatever code whoever made it put "
        "there: pass --trust-checkpoint if you trust them, or save its state_dict as safetensors."
    )
    assert same(named("resnet20", weights=path, trust=True), network)


def test_what_cannot_be_read(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "w.safetensors"
    assert sentence("resnet20", weights=path) == f"There is no file of weights {path}."
    save_file(small().state_dict(), path)
    path.write_bytes(path.read_bytes()[:1000])
    said = sentence("resnet20", weights=path)
    assert said.startswith(f"{path} cannot be read as safetensors (")
    assert said.endswith("): it is damaged or was cut short, so get it again.")
    path = tmp_path / "w.pth"
    torch.save(small().state_dict(), path)
    path.write_bytes(path.read_bytes()[:100_000])
    assert sentence("resnet20", weights=path).endswith("): it is damaged or was cut short.")
    path.write_bytes(b"hello")
    assert sentence("resnet20", weights=path).endswith("): it is damaged or was cut short.")
    torch.save({"epoch": 3, "lr": 0.1}, path)
    assert sentence("resnet20", weights=path) == (
        f"{path} holds no weights where they are looked for (inside: epoch, lr); save the network's state_dict() as a "
        "file of its own."
    )
    (tmp_path / "empty").mkdir()
    assert sentence("resnet20", weights=tmp_path / "empty") == (
        f"{tmp_path / 'empty'} is a folder without model.safetensors; name a file of weights."
    )
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a", "b")
    with pytest.raises(InputError, match="cannot be read as a file of weights"):
        named("resnet20", weights=path)


def test_without_a_network_the_hubs_weights_are_missed_in_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    import plackett.models.from_timm as from_timm

    def nobody(*_: object, **__: object) -> nn.Module:
        raise OSError("Name or service not known")

    monkeypatch.setattr(from_timm.library("timm", ""), "create_model", nobody)
    assert sentence("timm:resnet18", weights="pretrained") == (
        "The pretrained weights of timm:resnet18 could not be fetched (OSError: Name or service not known); where "
        "there is no network, name a file of weights."
    )


def test_without_timm_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "timm", None)
    assert (
        sentence("timm:resnet18")
        == "timm:resnet18 needs 'timm', which is not installed: pip install 'plackett[vision]'."
    )


def test_a_run_and_a_folder_that_timm_packed_are_networks_by_name(tmp_path: pathlib.Path) -> None:
    timm = pytest.importorskip("timm")
    network = timm.create_model("resnet18", num_classes=3)
    timm.models.save_for_hf(
        network,
        tmp_path / "run" / "of-timm",
        model_config={"label_names": ["cat", "dog", "eel"]},
        safe_serialization=True,
    )
    found = named(str(tmp_path / "run"))
    assert (found.outputs, found.class_names, found.fresh_head) == (3, ("cat", "dog", "eel"), False)
    assert found.sight.size == 224
    assert torch.equal(found.network.fc.weight, network.fc.weight)
    student = named(str(tmp_path / "run"), classes=5, sight={"size": 96})
    assert (student.outputs, student.fresh_head, student.sight.size) == (5, True, 96)
    assert torch.equal(student.network.conv1.weight, network.conv1.weight)


def test_places_that_hold_no_network(tmp_path: pathlib.Path) -> None:
    (tmp_path / "pets").mkdir()
    for spec, sentence in (
        (tmp_path / "pets", f"{tmp_path / 'pets'} has no config.json, nor has a folder in it: name the folder of a "
         "trained network (a run's, or one packed for the hub), or a network such as timm:resnet18."),
        (tmp_path / "none", f"There is no folder {tmp_path / 'none'}: name a run, a folder with config.json, or a "
         "network such as timm:resnet18."),
    ):  # fmt: skip
        with pytest.raises(InputError) as caught:
            named(str(spec))
        assert str(caught.value) == sentence
