"""How much a network computes for a picture."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode


@torch.no_grad()
def macs(network: nn.Module, inputs: Tensor) -> int:
    """Multiply-accumulates of one forward pass: convolutions, matrix products and attention, from the shapes that ran.

    Norms, activations, pooling, softmax and additions are not counted, as in published figures. Half of what torch's
    FlopCounterMode counts.

    >>> macs(nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU()), torch.zeros(1, 3, 10, 10))
    21600
    """
    training = network.training
    network.eval()
    try:
        # Fused attention has names on a CPU that torch's counter does not know; taken apart it is matrix products.
        with FlopCounterMode(display=False) as counter, sdpa_kernel(SDPBackend.MATH):
            network(inputs)
    finally:
        network.train(training)
    return int(counter.get_total_flops()) // 2
