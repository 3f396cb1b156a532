"""The networks of the CIFAR tables: their sizes, their names of parameters, what they compute, and their taps."""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from plackett import models
from plackett.errors import InputError, MissingExtraError
from plackett.models import Float32Linear
from plackett.models.resnet import ResNet
from plackett.models.wrn import WideResNet

PARAMETERS = {
    "wrn_40_2": 2_255_156, "wrn_40_1": 569_780, "resnet56": 861_620, "resnet20": 278_324, "resnet32x4": 7_433_860,
    "resnet8x4": 1_233_540, "resnet50_cifar": 23_705_252, "mobilenetv2_cifar": 812_836,
}  # fmt: skip
SMALL = ("resnet20", "resnet8x4", "wrn_40_1", "mobilenetv2_cifar")
# Names that published checkpoints hold, one of every kind.
PUBLISHED = {
    "resnet20": ("conv1.weight", "bn1.running_var", "layer1.0.conv1.weight", "layer2.0.downsample.0.weight",
                 "layer2.0.downsample.1.bias", "layer3.2.bn2.num_batches_tracked", "fc.weight", "fc.bias"),
    "resnet50_cifar": ("conv1.weight", "layer1.0.shortcut.0.weight", "layer3.5.conv3.weight", "layer4.2.bn3.weight",
                       "linear.bias"),
    "wrn_40_1": ("conv1.weight", "block1.layer.0.bn1.weight", "block2.layer.0.convShortcut.weight",
                 "block3.layer.5.conv2.weight", "bn1.weight", "fc.bias"),
    "mobilenetv2_cifar": ("conv1.0.weight", "conv1.1.weight", "blocks.0.0.conv.7.bias", "blocks.5.2.conv.3.weight",
                          "conv2.0.weight", "classifier.0.bias"),
}  # fmt: skip


def pictures(n: int = 2) -> Tensor:
    return torch.randn(n, 3, 32, 32)


@pytest.mark.parametrize("name", PARAMETERS)
def test_parameter_counts_are_the_published_ones(name: str) -> None:
    network = models.create(name, classes=100)
    assert models.parameters(network) == PARAMETERS[name]
    assert f"{PARAMETERS[name]:,} parameters" in str(models.registry.MODELS[name].__doc__)


@pytest.mark.parametrize("name", PUBLISHED)
def test_parameters_have_the_published_names(name: str) -> None:
    held = models.create(name, classes=100).state_dict()
    assert [key for key in PUBLISHED[name] if key not in held] == []


@pytest.mark.parametrize("name", SMALL)
def test_taps_are_named_and_change_nothing(name: str) -> None:
    network: Any = models.create(name, classes=7).eval()
    x = pictures()
    plain = network(x)
    logits, seen = network(x, taps=network.taps)
    assert torch.equal(plain, logits)
    assert tuple(seen) == network.taps
    assert plain.shape == (2, 7)
    assert seen["embedding"].shape == (2, network.features(x)["embedding"].shape[1])
    assert torch.equal(network.classify(seen["embedding"]), logits)
    (only,) = network(x, taps=("stage2",))[1].values()
    assert torch.equal(only, seen["stage2"])


@pytest.mark.parametrize(
    ("name", "sizes"),
    [("resnet50_cifar", (256, 32, 512, 16, 1024, 8, 2048, 4)), ("mobilenetv2_cifar", (12, 16, 16, 8, 48, 4, 160, 2))],
)
def test_stages_have_the_published_sizes(name: str, sizes: tuple[int, ...]) -> None:
    with torch.device("meta"):
        network = models.create(name, classes=4).eval()
    stages = tuple(f"stage{i}" for i in (1, 2, 3, 4))
    _, seen = network(torch.empty(1, 3, 32, 32, device="meta"), taps=stages)
    assert tuple(number for stage in stages for number in seen[stage].shape[1:3]) == sizes


def test_a_tap_before_the_relu_is_before_the_relu() -> None:
    network: Any = models.create("resnet8x4", classes=4)
    _, seen = network(pictures(), taps=network.taps)
    for stage in (1, 2, 3):
        assert seen[f"stage{stage}_pre"].min() < 0
        assert torch.equal(seen[f"stage{stage}_pre"].relu(), seen[f"stage{stage}"])
    assert torch.equal(seen["embedding"], seen["stage3"].mean((2, 3)))


def test_reading_a_wide_networks_taps_updates_its_norms_once() -> None:
    torch.manual_seed(0)
    one: Any = models.create("wrn_40_1", classes=4)
    torch.manual_seed(0)
    other: Any = models.create("wrn_40_1", classes=4)
    x = pictures()
    one(x)
    _, seen = other(x, taps=other.taps)
    assert all(torch.equal(a, b) for a, b in zip(one.buffers(), other.buffers(), strict=True))
    second = other.block2.layer[0]
    assert torch.equal(seen["stage1_pre"], F.batch_norm(seen["stage1"], None, None, second.bn1.weight, second.bn1.bias,
                                                        training=True))  # fmt: skip


def _norm(x: Tensor, held: Mapping[str, Tensor], name: str) -> Tensor:
    return F.batch_norm(x, *(held[f"{name}.{part}"] for part in ("running_mean", "running_var", "weight", "bias")))


def _stirred(network: nn.Module) -> nn.Module:
    """Norms with statistics and scales of their own, so that a norm left out or moved shows."""
    for module in network.modules():
        if isinstance(module, nn.BatchNorm2d):
            for tensor in (module.running_mean, module.bias):
                nn.init.normal_(tensor, 0, 0.3)
            for tensor in (module.running_var, module.weight):
                nn.init.uniform_(tensor, 0.5, 1.5)
    return network.eval()


def test_a_resnet_is_the_published_function() -> None:
    network = _stirred(ResNet(14, (4, 8, 16, 32), classes=5))
    held, x = network.state_dict(), pictures()
    y = _norm(F.conv2d(x, held["conv1.weight"], padding=1), held, "bn1").relu()
    for stage in (1, 2, 3):
        for block in (0, 1):
            name, stride = f"layer{stage}.{block}", 2 if stage > 1 and block == 0 else 1
            out = _norm(F.conv2d(y, held[f"{name}.conv1.weight"], None, stride, 1), held, f"{name}.bn1").relu()
            out = _norm(F.conv2d(out, held[f"{name}.conv2.weight"], padding=1), held, f"{name}.bn2")
            if f"{name}.downsample.0.weight" in held:
                y = _norm(F.conv2d(y, held[f"{name}.downsample.0.weight"], None, stride), held, f"{name}.downsample.1")
            y = (out + y).relu()
    expected = F.avg_pool2d(y, 8).flatten(1) @ held["fc.weight"].T + held["fc.bias"]
    torch.testing.assert_close(network(x), expected, rtol=1e-4, atol=1e-4)


def test_a_wide_resnet_is_the_published_function() -> None:
    network = _stirred(WideResNet(16, 2, classes=5))
    held, x = network.state_dict(), pictures()
    y = F.conv2d(x, held["conv1.weight"], padding=1)
    for stage in (1, 2, 3):
        for block in (0, 1):
            name, stride = f"block{stage}.layer.{block}", 2 if stage > 1 and block == 0 else 1
            active = _norm(y, held, f"{name}.bn1").relu()
            out = _norm(F.conv2d(active, held[f"{name}.conv1.weight"], None, stride, 1), held, f"{name}.bn2").relu()
            out = F.conv2d(out, held[f"{name}.conv2.weight"], padding=1)
            shortcut = held.get(f"{name}.convShortcut.weight")
            y = out + (y if shortcut is None else F.conv2d(active, shortcut, None, stride))
    pooled = F.avg_pool2d(_norm(y, held, "bn1").relu(), 8).flatten(1)
    expected = pooled @ held["fc.weight"].T + held["fc.bias"]
    torch.testing.assert_close(network(x), expected, rtol=1e-4, atol=1e-4)


def test_the_first_weights_are_drawn_as_published() -> None:
    resnet: Any = models.create("resnet8x4", classes=100)
    conv = resnet.layer3[0].conv2.weight
    assert conv.std().item() == pytest.approx(math.sqrt(2 / (9 * 256)), rel=0.02)
    assert bool((resnet.layer3[0].bn1.weight == 1).all())
    wide: Any = models.create("wrn_40_1", classes=100)
    assert wide.block3.layer[5].conv2.weight.std().item() == pytest.approx(math.sqrt(2 / (9 * 64)), rel=0.02)
    assert not bool(wide.fc.bias.any())
    mobile: Any = models.create("mobilenetv2_cifar", classes=100)
    assert mobile.classifier[0].weight.std().item() == pytest.approx(0.01, rel=0.02)
    assert not bool(mobile.classifier[0].bias.any())
    depthwise = mobile.blocks[6][0].conv[3].weight  # 480 channels, each with 9 weights
    assert depthwise.std().item() == pytest.approx(math.sqrt(2 / (9 * 480)), rel=0.05)


@pytest.mark.parametrize("name", ["resnet20", "wrn_40_1", "mobilenetv2_cifar"])
def test_a_compiler_sees_one_graph(name: str) -> None:
    network: Any = models.create(name, classes=4, float32_head=True).eval()
    x = pictures()
    compiled: Any = torch.compile(network, fullgraph=True, backend="eager")
    logits, seen = compiled(x, taps=("stage1", "embedding"))
    torch.testing.assert_close(logits, network(x))
    assert tuple(seen) == ("stage1", "embedding")


@pytest.mark.parametrize("name", ["resnet8x4", "wrn_40_1", "mobilenetv2_cifar"])
def test_the_last_layer_can_stay_in_float32(name: str) -> None:
    network: Any = models.create(name, classes=100, float32_head=True).eval()
    half: Any = models.create(name, classes=100).eval()
    assert list(network.state_dict()) == list(half.state_dict())
    assert any(isinstance(module, Float32Linear) for module in network.modules())
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert network(pictures()).dtype == torch.float32
        assert half(pictures()).dtype == torch.bfloat16


def test_other_picture_sizes_are_read() -> None:
    assert models.create("resnet8x4", classes=3).eval()(torch.randn(1, 3, 48, 40)).shape == (1, 3)


def test_mistakes_get_a_sentence() -> None:
    network: Any = models.create("resnet8x4", classes=3)
    with pytest.raises(InputError, match=r"ResNet reads pictures \[batch, 3, height, width\], not \[2, 1, 32, 32\]"):
        network(torch.zeros(2, 1, 32, 32))
    with pytest.raises(InputError, match="ResNet has no tap 'stage2_per'; did you mean 'stage2_pre'"):
        network(pictures(), taps=("stage2_per",))
    with pytest.raises(InputError, match="at least 1 class, not 0"):
        models.create("wrn_40_1", classes=0)
    with pytest.raises(InputError, match=r"6n \+ 2 \(8, 14, 20, ...\), not 18"):
        ResNet(18, (16, 16, 32, 64), 10)
    with pytest.raises(InputError, match=r"6n \+ 4 \(10, 16, 22, ...\), not 30"):
        WideResNet(30, 2, 10)


class TestTimm:
    @pytest.fixture(autouse=True)
    def _timm(self) -> None:
        pytest.importorskip("timm", reason="timm is not installed")

    def test_the_networks_are_registered(self) -> None:
        import timm

        assert models.register_with_timm() == models.register_with_timm()
        network = timm.create_model("plackett_resnet20", num_classes=10, drop_rate=0.0)
        assert network(pictures()).shape == (2, 10)
        assert set(PARAMETERS) == {name.removeprefix("plackett_") for name in timm.list_models("plackett_*")}
        settings = timm.data.resolve_data_config({}, model=network)
        assert settings["input_size"] == (3, 32, 32)
        assert settings["mean"] == (0.5071, 0.4867, 0.4408)

    def test_mistakes_get_a_sentence(self) -> None:
        import timm

        models.register_with_timm()
        with pytest.raises(InputError, match="plackett_resnet20 has no weights to download"):
            timm.create_model("plackett_resnet20", pretrained=True)
        with pytest.raises(InputError, match="pictures of 3 channels, not 1"):
            timm.create_model("plackett_resnet20", in_chans=1)
        with pytest.raises(InputError, match="plackett_resnet20 has no option 'drop_rate'"):
            timm.create_model("plackett_resnet20", drop_rate=0.1)


def test_without_timm_the_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("timm", "timm.models"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(
        MissingExtraError, match=r"needs 'timm', which is not installed: pip install 'plackett\[vision\]'"
    ):
        models.register_with_timm()


def test_importing_the_networks_does_not_import_timm() -> None:
    code = "import sys, plackett.models; print('timm' in sys.modules or 'torchvision' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "False"
