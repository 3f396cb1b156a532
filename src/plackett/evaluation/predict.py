"""The logits of a network over a set of pictures."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from plackett.data import Pictures


@torch.no_grad()
def predict(network: nn.Module, pictures: Pictures, batch_size: int = 1024) -> Tensor:
    """Logits `[N, C]` float32, in evaluation mode; the network's mode is restored."""
    was_training = network.training
    network.eval()
    try:
        return torch.cat([network(inputs).float() for inputs in torch.split(pictures.inputs, batch_size)])
    finally:
        network.train(was_training)
