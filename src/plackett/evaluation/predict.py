"""The logits of networks over a set of pictures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import ExitStack

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


@torch.no_grad()
def predict_all(
    networks: Mapping[str, nn.Module], pictures: Pictures, batch_size: int = 2500, *, bfloat16: bool = False
) -> dict[str, Tensor]:
    """As `predict`, for many networks from one pass over the pictures, under autocast where asked."""
    # Within one pass the weights stay as they are, so that their casts may be kept.
    with torch.autocast(pictures.device.type, torch.bfloat16, enabled=bfloat16):
        return predict_batches(networks, torch.split(pictures.inputs, batch_size))


@torch.no_grad()
def predict_batches(networks: Mapping[str, nn.Module], batches: Iterable[Tensor]) -> dict[str, Tensor]:
    """Logits `[N, C]` float32 of each network, of one pass over batches of inputs; the networks' modes are restored."""
    found: dict[str, list[Tensor]] = {name: [] for name in networks}
    with ExitStack() as stack:
        for network in networks.values():
            stack.callback(network.train, network.training)
            network.eval()
        for inputs in batches:
            for name, network in networks.items():
                found[name].append(network(inputs).float())
    return {name: torch.cat(parts) for name, parts in found.items()}
