"""Wide residual networks of depth 6n + 4 (Zagoruyko and Komodakis 2016): norm and ReLU come before each convolution.

Parameters have the names of RepDistiller and mdistiller. `stageN` is the residual stream behind a stage, to which no
ReLU has been applied; `stageN_pre` is that after the next norm and before its ReLU, which is what OFD reads. That norm
is computed once: the published code runs it a second time for the features, and so updates its statistics twice.
"""

from __future__ import annotations

from typing import cast

import torch.nn.functional as F
from torch import Tensor, nn

from plackett.errors import InputError
from plackett.models.network import Network, initialise, last_layer, stage_taps
from plackett.models.registry import register


class WideBlock(nn.Module):
    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.bn1 = nn.BatchNorm2d(inputs)
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
        self.convShortcut = None if inputs == outputs else nn.Conv2d(inputs, outputs, 1, stride, bias=False)

    def forward(self, x: Tensor, normed: Tensor) -> Tensor:
        """`normed` is `bn1(x)`: the caller computes it, because it is also a tap."""
        active = F.relu(normed)
        out = self.conv2(F.relu(self.bn2(self.conv1(active))))
        return cast(Tensor, out + (x if self.convShortcut is None else self.convShortcut(active)))


class Stage(nn.Module):
    def __init__(self, inputs: int, outputs: int, blocks: int, stride: int) -> None:
        super().__init__()
        rest = (WideBlock(outputs, outputs, 1) for _ in range(blocks - 1))
        self.layer = nn.Sequential(WideBlock(inputs, outputs, stride), *rest)


class WideResNet(Network):
    taps = stage_taps(3)

    def __init__(self, depth: int, widen: int, classes: int, float32_head: bool = False) -> None:
        super().__init__()
        blocks, rest = divmod(depth - 4, 6)
        if rest or blocks < 1:
            raise InputError(f"A wide ResNet has a depth of 6n + 4 (10, 16, 22, ...), not {depth}.")
        self.conv1 = nn.Conv2d(3, 16, 3, padding=1, bias=False)
        self.block1 = Stage(16, 16 * widen, blocks, 1)
        self.block2 = Stage(16 * widen, 32 * widen, blocks, 2)
        self.block3 = Stage(32 * widen, 64 * widen, blocks, 2)
        self.bn1 = nn.BatchNorm2d(64 * widen)
        self.fc = last_layer(64 * widen, classes, float32_head)
        initialise(self)
        nn.init.zeros_(self.fc.bias)

    def features(self, inputs: Tensor) -> dict[str, Tensor]:
        x = self.conv1(inputs)
        seen = {"stem": x}
        for number, stage in enumerate((self.block1, self.block2, self.block3), 1):
            for place, block in enumerate(stage.layer):
                normed = cast(WideBlock, block).bn1(x)
                if place == 0 and number > 1:
                    seen[f"stage{number - 1}_pre"] = normed
                x = block(x, normed)
            seen[f"stage{number}"] = x
        normed = seen["stage3_pre"] = self.bn1(x)
        return {**seen, "embedding": F.relu(normed).mean((2, 3))}

    def classify(self, embedding: Tensor) -> Tensor:
        return cast(Tensor, self.fc(embedding))


@register
def wrn_40_1(classes: int, float32_head: bool = False) -> nn.Module:
    """569,780 parameters with 100 classes."""
    return WideResNet(40, 1, classes, float32_head)


@register
def wrn_40_2(classes: int, float32_head: bool = False) -> nn.Module:
    """2,255,156 parameters with 100 classes."""
    return WideResNet(40, 2, classes, float32_head)
