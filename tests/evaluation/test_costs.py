"""What networks cost: counted by hand, against published figures, and timed in turns."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from plackett.errors import InputError
from plackett.evaluation.evaluated import quality
from plackett.evaluation.latency import latencies
from plackett.evaluation.macs import macs
from plackett.evaluation.memory import activation_bytes, weight_bytes
from plackett.intervals import wilson
from plackett.models import create


def test_wilsons_interval_is_the_published_one_and_stays_a_share() -> None:
    assert wilson(0, 10)[:3] == pytest.approx((0.0, 0.0, 0.2775), abs=5e-5)  # Brown, Cai and DasGupta 2001
    assert wilson(10, 10)[:3] == pytest.approx((1.0, 0.7225, 1.0), abs=5e-5)
    assert wilson(81, 263)[1:3] == pytest.approx((0.2553, 0.3662), abs=5e-5)  # Newcombe 1998, method 3
    assert wilson(15, 148)[1:3] == pytest.approx((0.0624, 0.1605), abs=5e-5)
    with pytest.raises(InputError, match="3 of 2 pictures is not a share; at least one picture is needed"):
        wilson(3, 2)


@pytest.mark.parametrize(("name", "published"), [
    ("mobilenetv4_conv_small", 0.19), ("resnet18", 1.8), ("resnet50", 4.1), ("deit_tiny_patch16_224", 1.3),
])  # fmt: skip
def test_multiply_accumulates_are_those_that_were_published(name: str, published: float) -> None:
    timm = pytest.importorskip("timm")
    found = macs(timm.create_model(name), torch.zeros(1, 3, 224, 224)) / 1e9
    digits = 2 if published < 1 else 1
    assert round(found, digits) == published


def test_multiply_accumulates_by_hand_for_groups_strides_and_attention() -> None:
    x = torch.zeros(1, 8, 10, 10)
    assert macs(nn.Conv2d(8, 16, 3, stride=2, padding=1, groups=4), x) == 16 * 5 * 5 * (8 // 4) * 9

    class Attends(nn.Module):
        def forward(self, tokens: torch.Tensor) -> torch.Tensor:
            q = k = v = tokens.unsqueeze(1)
            return nn.functional.scaled_dot_product_attention(q, k, v)

    assert macs(Attends(), torch.zeros(1, 7, 16)) == 2 * 7 * 7 * 16
    network = create("resnet20", classes=10).train()
    assert macs(network, torch.zeros(2, 3, 32, 32)) == 2 * macs(network, torch.zeros(1, 3, 32, 32))
    assert network.training


def test_memory_by_hand() -> None:
    network = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 16, 5))
    pixels, wide = 4 * 3 * 16, 4 * 8 * 16
    assert activation_bytes(network, torch.zeros(1, 3, 4, 4)) == pixels + 2 * wide  # before and after the ReLU
    assert activation_bytes(network, torch.zeros(9, 3, 4, 4)) == 9 * (pixels + 2 * wide)
    in_place = nn.Sequential(network[0], nn.ReLU(inplace=True), *network[2:])
    assert activation_bytes(in_place, torch.zeros(1, 3, 4, 4)) == pixels + wide + 4 * 5
    tied = nn.Sequential(network[3], network[3])
    assert weight_bytes(tied) == weight_bytes(network[3]) == 4 * (8 * 16 * 5 + 5)
    assert weight_bytes(create("resnet20", classes=10).half()) < 2 * 280_000


def test_networks_take_turns_and_keep_their_mode() -> None:
    calls: list[str] = []

    class Counting(nn.Module):
        def __init__(self, name: str) -> None:
            super().__init__()
            self.name = name

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            assert not self.training
            calls.append(self.name)
            return x

    pair = {name: (Counting(name), torch.zeros(4, 1)) for name in "ab"}
    found = latencies(pair, seconds=60, most=10)
    assert "".join(calls) == "aaaaabbbbb" + "aaabbb" * 4  # uncounted ones come first: three, then one
    assert (found["a"].n, found["a"].batch) == (10, 4)
    assert 0 < found["a"].low_ms <= found["a"].median_ms <= found["a"].high_ms < math.inf
    assert all(network.training for network, _ in pair.values())


def test_quality_has_intervals_and_no_top5_of_few_classes() -> None:
    torch.manual_seed(0)
    targets = torch.randint(10, (200,))
    logits = nn.functional.one_hot(targets, 10) * 2.0 + torch.randn(200, 10)
    found = quality(logits, targets, teacher=logits.roll(1, 0))
    assert found.top1 == wilson(int((logits.argmax(-1) == targets).sum()), 200)
    assert found.top5 is not None
    assert found.top5.value > found.top1.value
    assert found.agreement is not None
    assert found.agreement.n == 200
    assert quality(logits[:, :5], targets.clamp(max=4)).top5 is None
