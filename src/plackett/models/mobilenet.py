"""MobileNetV2 of half width for 32x32 pictures (Sandler et al. 2018), as the distillation literature has it.

The literature's form, from route constrained optimisation on: the stem has stride 2 and the first 24-channel stage
stride 1, every block of the first stage too has the two outer layers, widths are cut to whole numbers (not to multiples
of 8), the last layer before the classifier keeps 1280 channels, and there is no dropout. Parameters have the names of
RepDistiller and mdistiller.

Four stages are tapped, behind the 24-, 32-, 96- and 320-channel groups. A linear bottleneck ends in a norm without a
ReLU, so `stageN_pre` is `stageN`.
"""

from __future__ import annotations

from typing import cast

from torch import Tensor, nn

from plackett.models.network import Network, initialise, last_layer, stage_taps
from plackett.models.registry import register

# expansion, channels at full width, blocks, stride of the first
GROUPS = ((1, 16, 1, 1), (6, 24, 2, 1), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))
TAPPED = (1, 2, 4, 6)
LAST = 1280


class InvertedResidual(nn.Module):
    def __init__(self, inputs: int, outputs: int, stride: int, expansion: int) -> None:
        super().__init__()
        wide = inputs * expansion
        self.shortcut = stride == 1 and inputs == outputs
        self.conv = nn.Sequential(
            *_conv(inputs, wide, 1),
            *_conv(wide, wide, 3, stride, groups=wide),
            nn.Conv2d(wide, outputs, 1, bias=False),
            nn.BatchNorm2d(outputs),
        )

    def forward(self, x: Tensor) -> Tensor:
        out = self.conv(x)
        return cast(Tensor, x + out if self.shortcut else out)


def _conv(inputs: int, outputs: int, kernel: int, stride: int = 1, groups: int = 1) -> nn.Sequential:
    conv = nn.Conv2d(inputs, outputs, kernel, stride, padding=kernel // 2, groups=groups, bias=False)
    return nn.Sequential(conv, nn.BatchNorm2d(outputs), nn.ReLU())


class MobileNetV2(Network):
    taps = stage_taps(4)

    def __init__(self, width: float, classes: int, float32_head: bool = False) -> None:
        super().__init__()
        inputs = int(32 * width)
        self.conv1 = _conv(3, inputs, 3, stride=2)
        self.blocks = nn.ModuleList()
        for expansion, channels, blocks, stride in GROUPS:
            outputs = int(channels * width)
            first = InvertedResidual(inputs, outputs, stride, expansion)
            rest = (InvertedResidual(outputs, outputs, 1, expansion) for _ in range(blocks - 1))
            self.blocks.append(nn.Sequential(first, *rest))
            inputs = outputs
        self.conv2 = _conv(inputs, LAST, 1)
        head = last_layer(LAST, classes, float32_head)
        self.classifier = nn.Sequential(head)
        initialise(self)
        nn.init.normal_(head.weight, 0, 0.01)
        nn.init.zeros_(head.bias)

    def features(self, inputs: Tensor) -> dict[str, Tensor]:
        x = self.conv1(inputs)
        seen = {"stem": x}
        for place, group in enumerate(self.blocks):
            x = group(x)
            if place in TAPPED:
                number = TAPPED.index(place) + 1
                seen[f"stage{number}_pre"] = seen[f"stage{number}"] = x
        return {**seen, "embedding": self.conv2(x).mean((2, 3))}

    def classify(self, embedding: Tensor) -> Tensor:
        return cast(Tensor, self.classifier(embedding))


@register
def mobilenetv2_cifar(classes: int, float32_head: bool = False) -> nn.Module:
    """812,836 parameters with 100 classes."""
    return MobileNetV2(0.5, classes, float32_head)
