"""What every network here shares: logits, and on request the tensors on the way to them, by name and without hooks."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from plackett.errors import InputError, did_you_mean


class Network(nn.Module):
    """A classifier with named taps.

    `network(x)` gives logits; `network(x, taps=("stage2", "embedding"))` gives `(logits, {name: tensor})`. A compiler
    sees plain tensors and drops what is not asked for.
    """

    taps: tuple[str, ...]
    channels: int | None = 3  # of the pictures it reads; None where any will do

    def features(self, inputs: Tensor) -> dict[str, Tensor]:
        """Every tap; `embedding` is what the last layer reads."""
        raise NotImplementedError

    def classify(self, embedding: Tensor) -> Tensor:
        raise NotImplementedError

    def forward(self, inputs: Tensor, taps: Sequence[str] = ()) -> Tensor | tuple[Tensor, dict[str, Tensor]]:
        if self.channels is not None and (inputs.dim() != 4 or inputs.shape[1] != self.channels):
            raise InputError(
                f"{type(self).__name__} reads pictures [batch, {self.channels}, height, width], not "
                f"[{', '.join(map(str, inputs.shape))}]."
            )
        for tap in taps:
            if tap not in type(self).taps:  # its own, whatever names `tapped` gave them
                raise InputError(f"{type(self).__name__} has no tap {tap!r}; {did_you_mean(tap, type(self).taps)}.")
        features = self.features(inputs)
        logits = self.classify(features["embedding"])
        return (logits, {tap: features[tap] for tap in taps}) if taps else logits


class Float32Linear(nn.Linear):
    """A last layer that answers in float32 under autocast: half precision makes ties, and PLD jumps there."""

    def forward(self, inputs: Tensor) -> Tensor:
        with torch.autocast(inputs.device.type, enabled=False):
            bias = None if self.bias is None else self.bias.float()
            return F.linear(inputs.float(), self.weight.float(), bias)


def answer_in_float32(network: nn.Module, outputs: int) -> None:
    """Lets every linear layer of so many outputs answer in float32: torch's own, and timm's that only adds casts."""
    for module in network.modules():
        if isinstance(module, nn.Linear) and type(module).__name__ == "Linear" and module.out_features == outputs:
            module.__class__ = Float32Linear


def last_layer(width: int, classes: int, float32: bool) -> nn.Linear:
    if classes < 1:
        raise InputError(f"A network needs at least 1 class, not {classes}.")
    return Float32Linear(width, classes) if float32 else nn.Linear(width, classes)


def initialise(network: nn.Module) -> None:
    """Convolutions from N(0, 2 / fan_out), as all of these networks were published; norms and biases as torch does."""
    for module in network.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")


def stage_taps(stages: int) -> tuple[str, ...]:
    """
    >>> stage_taps(2)
    ('stem', 'stage1_pre', 'stage1', 'stage2_pre', 'stage2', 'embedding')
    """
    each = [name for i in range(1, stages + 1) for name in (f"stage{i}_pre", f"stage{i}")]
    return ("stem", *each, "embedding")
