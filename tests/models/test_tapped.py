"""Features by name from any network, which is otherwise the network that it was."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn

from plackett.errors import InputError
from plackett.models import create
from plackett.models.tapped import channels, tapped

timm = pytest.importorskip("timm")
STAGES = ("stage1", "stage2", "stage3", "stage4", "embedding")


def vit() -> nn.Module:
    made: nn.Module = timm.create_model("vit_tiny_patch16_224", num_classes=4, img_size=64, depth=4)
    return made


@pytest.mark.parametrize(("name", "options", "sizes"), [
    ("resnet18", {}, (64, 128, 256, 512)),
    ("mobilenetv4_conv_small", {}, (32, 64, 96, 960)),
    ("efficientnet_lite0", {}, (24, 40, 112, 320)),
    ("convnext_atto", {}, (40, 80, 160, 320)),
    ("swin_tiny_patch4_window7_224", {"img_size": 64, "window_size": 2, "depths": (1, 1, 1, 1)}, (96, 192, 384, 768)),
    ("vit_tiny_patch16_224", {"img_size": 64, "depth": 4}, (192, 192, 192, 192)),
    ("resnetv2_18", {}, (64, 128, 256, 512)),
])  # fmt: skip
def test_timms_stages(name: str, options: dict[str, object], sizes: tuple[int, ...]) -> None:
    network = timm.create_model(name, num_classes=4, **options).eval()
    x = torch.randn(2, 3, 64, 64)
    before, names = network(x), list(network.state_dict())
    found = tapped(network, STAGES)
    logits, features = found(x, taps=STAGES)
    assert torch.equal(logits, before)
    assert torch.equal(found(x), before)
    assert list(found.state_dict()) == names
    assert isinstance(found, type(timm.create_model(name, **options)))
    assert tuple(features[f"stage{i}"].shape[1] for i in range(1, 5)) == sizes
    assert all(features[f"stage{i}"].dim() == 4 for i in range(1, 5))
    assert channels(found, STAGES, 64) == {tap: feature.shape[1] for tap, feature in features.items()}
    assert features["embedding"].dim() == 2


def test_the_embedding_is_what_the_classifier_reads() -> None:
    network = tapped(timm.create_model("mobilenetv3_small_100", num_classes=4).eval(), ["embedding"])
    logits, features = network(torch.randn(2, 3, 64, 64), taps=("embedding",))
    torch.testing.assert_close(network.classifier(features["embedding"]), logits)


def test_this_packages_networks_by_their_own_taps_and_by_modules() -> None:
    network = create("resnet20", classes=4).eval()
    x = torch.randn(2, 3, 32, 32)
    logits, own = network(x, taps=("stage2", "embedding"))
    found = tapped(network, {"middle": "stage2", "inside": "layer2.1.conv1", "pooled": "embedding"})
    again, features = found(x, taps=("middle", "inside", "pooled"))
    assert torch.equal(again, logits)
    assert torch.equal(features["middle"], own["stage2"])
    assert torch.equal(features["pooled"], own["embedding"])
    assert features["inside"].shape == (2, 32, 16, 16)


def test_a_copy_has_taps_of_its_own_and_gradients_flow_through_them() -> None:
    network = tapped(nn.Sequential(nn.Flatten(), nn.Linear(4, 3), nn.Linear(3, 2)), {"hidden": "1"})
    copied = copy.deepcopy(network)
    copied[1].weight.data.zero_()
    x = torch.randn(5, 4)
    features = [each(x, taps=("hidden",))[1]["hidden"] for each in (network, copied)]
    assert not torch.equal(*features)
    features[0].sum().backward()
    assert network[1].weight.grad is not None


@pytest.mark.slow
@pytest.mark.parametrize("train", [False, True])
@pytest.mark.parametrize("make", [
    lambda: (timm.create_model("resnet18", num_classes=4), ("stage2", "embedding", "layer1.0"), 64),
    lambda: (timm.create_model("mobilenetv4_conv_small", num_classes=4), ("stage2", "embedding"), 64),
    lambda: (vit(), ("stage2", "blocks.1.attn", "embedding"), 64),
    lambda: (create("resnet20", classes=4), ("stage1", "layer2.0", "embedding"), 32),
])  # fmt: skip
def test_a_compiler_takes_it_in_one_graph(make: object, train: bool) -> None:
    network, taps, size = make()  # type: ignore[operator]
    network = tapped(network, taps).train(train)
    x, state = torch.randn(2, 3, size, size), copy.deepcopy(network.state_dict())
    plain, plain_features = network(x, taps=taps)
    network.load_state_dict(state)
    torch._dynamo.reset()
    logits, features = torch.compile(network, fullgraph=True, dynamic=False, backend="eager")(x, taps=taps)
    torch.testing.assert_close(logits, plain)
    for tap in taps:
        torch.testing.assert_close(features[tap], plain_features[tap])


def test_what_cannot_be_tapped_gets_a_sentence() -> None:
    network = timm.create_model("resnet18", num_classes=4)
    with pytest.raises(
        InputError, match=r"ResNet has no feature 'stage5'; did you mean 'stage[1-4]'\? \(choices: act1,"
    ):
        tapped(network, ["stage5"])
    with pytest.raises(InputError, match="Name at least one feature to tap"):
        tapped(network, [])
    tapped(network, ["stage1", "bn1"])
    with pytest.raises(InputError, match="ResNet is tapped already, at stage1, bn1"):
        tapped(network, ["stage1"])
    with pytest.raises(InputError, match="ResNet has no tap 'stage2'; did you mean 'stage1'"):
        network(torch.zeros(1, 3, 64, 64), taps=("stage2",))
    with pytest.raises(InputError, match="'1' is changed in place by what follows it; tap the module after it"):
        tapped(nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2), nn.ReLU(inplace=True)), ["1"]).eval()(
            torch.ones(1, 2), taps=("1",)
        )
    with pytest.raises(InputError, match="The feature '0' is a tuple, not a tensor"):
        tapped(nn.Sequential(nn.LSTM(2, 2)), ["0"])(torch.ones(1, 2), taps=("0",))
    with pytest.raises(InputError, match="Sequential has no linear layer"):
        tapped(nn.Sequential(nn.ReLU()), ["embedding"])
