"""How long a network takes for a picture, on the device where it is."""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass

import torch
from torch import Tensor, nn


@dataclass(frozen=True)
class Latency:
    """The median of `n` calls of `batch` pictures each, in ms."""

    median_ms: float
    n: int
    batch: int


@torch.no_grad()
def latency(network: nn.Module, inputs: Tensor, *, seconds: float = 0.2, most: int = 50) -> Latency:
    """Forward passes of `inputs` in evaluation mode, until `seconds` or `most` calls are over, after 3 uncounted.

    >>> latency(nn.Linear(2, 2), torch.ones(1, 2), most=5).batch
    1
    """
    training = network.training
    network.eval()
    try:
        for _ in range(3):
            _call(network, inputs)
        begun = time.perf_counter()
        times: list[float] = []
        while len(times) < most and (not times or time.perf_counter() - begun < seconds):
            times.append(_call(network, inputs))
    finally:
        network.train(training)
    return Latency(1000 * statistics.median(times), len(times), len(inputs))


def _call(network: nn.Module, inputs: Tensor) -> float:
    begun = time.perf_counter()
    network(inputs)
    if inputs.is_cuda:
        torch.cuda.synchronize(inputs.device)
    return time.perf_counter() - begun
