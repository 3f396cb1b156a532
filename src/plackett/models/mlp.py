"""Perceptrons for 8x8 pictures: the demo's teacher and its student, 125 times smaller."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from torch import Tensor, nn

from plackett.models.network import Network
from plackett.models.registry import register


class MLP(Network):
    """Linear layers of the given widths with ReLU between them."""

    taps = ("embedding",)
    channels = None

    def __init__(self, inputs: int, hidden: Sequence[int], classes: int) -> None:
        super().__init__()
        widths = [inputs, *hidden]
        layers: list[nn.Module] = []
        for width, wider in itertools.pairwise(widths):
            layers += [nn.Linear(width, wider), nn.ReLU()]
        self.body = nn.Sequential(nn.Flatten(), *layers)
        self.head = nn.Linear(widths[-1], classes)

    def features(self, inputs: Tensor) -> dict[str, Tensor]:
        return {"embedding": self.body(inputs)}

    def classify(self, embedding: Tensor) -> Tensor:
        logits: Tensor = self.head(embedding)
        return logits


@register
def mlp_teacher(classes: int, inputs: int = 64) -> nn.Module:
    """64-512-512-10: 301,066 parameters."""
    return MLP(inputs, (512, 512), classes)


@register
def mlp_student(classes: int, inputs: int = 64) -> nn.Module:
    """64-32-10: 2,410 parameters."""
    return MLP(inputs, (32,), classes)
