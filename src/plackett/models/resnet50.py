"""ResNet-50 for 32x32 pictures: a 3x3 stem without pooling in place of ImageNet's, and the same four stages.

Parameters have the names of RepDistiller and mdistiller. `stageN_pre` is the sum before the stage's last ReLU.
"""

from __future__ import annotations

from typing import cast

import torch.nn.functional as F
from torch import Tensor, nn

from plackett.models.network import initialise, last_layer, stage_taps
from plackett.models.registry import register
from plackett.models.resnet import Residual, projection

EXPANSION = 4


class Bottleneck(nn.Module):
    """1x1, 3x3 (which carries the stride) and 1x1 convolutions, and a shortcut; gives the sum before its ReLU."""

    def __init__(self, inputs: int, width: int, stride: int) -> None:
        super().__init__()
        outputs = EXPANSION * width
        self.conv1 = nn.Conv2d(inputs, width, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, outputs, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(outputs)
        self.shortcut = projection(inputs, outputs, stride)

    def forward(self, x: Tensor) -> Tensor:
        out = F.relu(self.bn1(self.conv1(x)))
        out = F.relu(self.bn2(self.conv2(out)))
        return cast(Tensor, self.bn3(self.conv3(out)) + self.shortcut(x))


class ResNet50(Residual):
    taps = stage_taps(4)

    def __init__(self, classes: int, float32_head: bool = False) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 64, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        self.layer1 = self._stage(64, 64, 3, 1)
        self.layer2 = self._stage(256, 128, 4, 2)
        self.layer3 = self._stage(512, 256, 6, 2)
        self.layer4 = self._stage(1024, 512, 3, 2)
        self.linear = last_layer(2048, classes, float32_head)
        initialise(self)

    @staticmethod
    def _stage(inputs: int, width: int, blocks: int, stride: int) -> nn.Sequential:
        rest = (Bottleneck(EXPANSION * width, width, 1) for _ in range(blocks - 1))
        return nn.Sequential(Bottleneck(inputs, width, stride), *rest)

    def stages(self) -> tuple[nn.Sequential, ...]:
        return self.layer1, self.layer2, self.layer3, self.layer4

    def classify(self, embedding: Tensor) -> Tensor:
        return cast(Tensor, self.linear(embedding))


@register
def resnet50_cifar(classes: int, float32_head: bool = False) -> nn.Module:
    """23,705,252 parameters with 100 classes."""
    return ResNet50(classes, float32_head)
