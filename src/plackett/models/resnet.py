"""ResNets of depth 6n + 2 for 32x32 pictures (He et al. 2016), as the distillation literature has them.

Unlike He's own, a shortcut that changes width is a 1x1 convolution with a norm, and the x4 networks have stages of 64,
128 and 256 channels behind a stem of 32. Parameters have the names of RepDistiller and mdistiller, whose published
weights therefore load as they are.

`stageN_pre` is the sum of a stage's last block before its ReLU, which is what OFD and SemCKD read.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import torch.nn.functional as F
from torch import Tensor, nn

from plackett.errors import InputError
from plackett.models.network import Network, initialise, last_layer, stage_taps
from plackett.models.registry import register


class BasicBlock(nn.Module):
    """Two 3x3 convolutions and a shortcut; gives the sum before its ReLU."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.downsample = projection(inputs, outputs, stride)

    def forward(self, x: Tensor) -> Tensor:
        out = F.relu(self.bn1(self.conv1(x)))
        return cast(Tensor, self.bn2(self.conv2(out)) + self.downsample(x))


def projection(inputs: int, outputs: int, stride: int) -> nn.Module:
    if stride == 1 and inputs == outputs:
        return nn.Identity()
    return nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))


class Residual(Network):
    """A stem and stages of blocks, each block followed by a ReLU."""

    conv1: nn.Conv2d
    bn1: nn.BatchNorm2d

    def stages(self) -> tuple[nn.Sequential, ...]:
        raise NotImplementedError

    def features(self, inputs: Tensor) -> dict[str, Tensor]:
        x = F.relu(self.bn1(self.conv1(inputs)))
        seen = {"stem": x}
        for number, stage in enumerate(self.stages(), 1):
            for block in stage:
                before = block(x)
                x = F.relu(before)
            seen[f"stage{number}_pre"], seen[f"stage{number}"] = before, x
        return {**seen, "embedding": x.mean((2, 3))}


class ResNet(Residual):
    """`depth` = 6n + 2; `widths` of the stem and the three stages."""

    taps = stage_taps(3)

    def __init__(self, depth: int, widths: Sequence[int], classes: int, float32_head: bool = False) -> None:
        super().__init__()
        blocks, rest = divmod(depth - 2, 6)
        if rest or blocks < 1:
            raise InputError(f"A ResNet for 32x32 pictures has a depth of 6n + 2 (8, 14, 20, ...), not {depth}.")
        stem, *stages = widths
        self.conv1 = nn.Conv2d(3, stem, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(stem)
        self.layer1 = self._stage(stem, stages[0], blocks, 1)
        self.layer2 = self._stage(stages[0], stages[1], blocks, 2)
        self.layer3 = self._stage(stages[1], stages[2], blocks, 2)
        self.fc = last_layer(stages[2], classes, float32_head)
        initialise(self)

    @staticmethod
    def _stage(inputs: int, outputs: int, blocks: int, stride: int) -> nn.Sequential:
        first = BasicBlock(inputs, outputs, stride)
        return nn.Sequential(first, *(BasicBlock(outputs, outputs, 1) for _ in range(blocks - 1)))

    def stages(self) -> tuple[nn.Sequential, ...]:
        return self.layer1, self.layer2, self.layer3

    def classify(self, embedding: Tensor) -> Tensor:
        return cast(Tensor, self.fc(embedding))


THIN, WIDE = (16, 16, 32, 64), (32, 64, 128, 256)


@register
def resnet20(classes: int, float32_head: bool = False) -> nn.Module:
    """278,324 parameters with 100 classes."""
    return ResNet(20, THIN, classes, float32_head)


@register
def resnet56(classes: int, float32_head: bool = False) -> nn.Module:
    """861,620 parameters with 100 classes."""
    return ResNet(56, THIN, classes, float32_head)


@register
def resnet8x4(classes: int, float32_head: bool = False) -> nn.Module:
    """1,233,540 parameters with 100 classes."""
    return ResNet(8, WIDE, classes, float32_head)


@register
def resnet32x4(classes: int, float32_head: bool = False) -> nn.Module:
    """7,433,860 parameters with 100 classes."""
    return ResNet(32, WIDE, classes, float32_head)
