"""Small networks of three kinds, with weights and statistics that are not those of a beginning."""

from __future__ import annotations

import torch

from plackett.data.sight import Sight
from plackett.models.named import named
from plackett.models.packed import Packed

CLASSES = ("bag", "coat", "dress", "löwe", "zebra")
SIGHT = Sight(32, (0.4, 0.5, 0.6), (0.25, 0.3, 0.2), crop=0.9, interpolation="bilinear")
KINDS = {
    "own": ("resnet8x4", 32, {"float32_head": True}),
    "convnet": ("timm:mobilenetv4_conv_small", 64, {}),
    "vit": ("timm:vit_tiny_patch16_224", 32, {"patch_size": 8, "embed_dim": 48, "depth": 2, "num_heads": 2}),
}


def packed(kind: str = "own", classes: tuple[str, ...] = CLASSES) -> Packed:
    spec, size, options = KINDS[kind]
    sight = Sight(size, SIGHT.mean, SIGHT.std, SIGHT.crop, SIGHT.interpolation)
    torch.manual_seed(0)
    network = named(spec, classes=classes, sight=sight, options=options).network
    with torch.no_grad():  # a few batches of anything, so that norms have statistics of their own
        for _ in range(3):
            network.train()(torch.randn(8, 3, size, size))
        for parameter in network.parameters():
            parameter += 0.01 * torch.randn_like(parameter)
    return Packed(network.eval(), spec, classes, sight, {"teacher": "timm:resnet50"}, options)


def pictures(found: Packed, n: int, seed: int = 1) -> torch.Tensor:
    size = found.sight.size
    return torch.randn(n, 3, size, size, generator=torch.Generator().manual_seed(seed))


class Forked(torch.nn.Module):
    """A network that answers otherwise once it is exported."""

    def __init__(self) -> None:
        super().__init__()
        self.last = torch.nn.Linear(3, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        shift = 0.1 if torch.compiler.is_exporting() else 0.0
        logits: torch.Tensor = self.last(x.mean((2, 3)) + shift)
        return logits


class Choosing(Forked):
    """A network whose Python reads its pixels."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = self.last(x.mean((2, 3)) if x.sum() > 0 else x.amax((2, 3)))
        return logits


def of(network: torch.nn.Module) -> Packed:
    return Packed(network.eval(), "mine.nets:small", CLASSES, SIGHT)
