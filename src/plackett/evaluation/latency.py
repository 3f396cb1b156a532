"""How long a network takes for a picture, on the device where it is."""

from __future__ import annotations

import statistics
import time
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn

ROUNDS = 5


@dataclass(frozen=True)
class Latency:
    """The median of `n` calls of `batch` pictures each, in ms; half of the calls lie between `low_ms` and `high_ms`."""

    median_ms: float
    n: int
    batch: int
    low_ms: float
    high_ms: float


@torch.no_grad()
def latency(network: nn.Module, inputs: Tensor, *, seconds: float = 0.2, most: int = 50) -> Latency:
    """Forward passes of `inputs` in evaluation mode, until `seconds` or `most` calls are over, after 3 uncounted.

    >>> latency(nn.Linear(2, 2), torch.ones(1, 2), most=5).batch
    1
    """
    training = network.training
    network.eval()
    try:
        times = _times(network, inputs, seconds, most, 3)
    finally:
        network.train(training)
    return _summary(times, len(inputs))


@torch.no_grad()
def latencies(
    networks: Mapping[str, tuple[nn.Module, Tensor]], *, seconds: float = 1.0, most: int = 1000
) -> dict[str, Latency]:
    """As `latency` of several networks with their inputs, which take turns: what disturbs one disturbs all."""
    times: dict[str, list[float]] = {name: [] for name in networks}
    before = {name: network.training for name, (network, _) in networks.items()}
    try:
        for turn in range(ROUNDS):
            for name, (network, inputs) in networks.items():
                network.eval()
                left = max(1, most // ROUNDS)
                times[name] += _times(network, inputs, seconds / ROUNDS, left, 3 if turn == 0 else 1)
    finally:
        for name, (network, _) in networks.items():
            network.train(before[name])
    return {name: _summary(times[name], len(inputs)) for name, (_, inputs) in networks.items()}


def _times(network: nn.Module, inputs: Tensor, seconds: float, most: int, uncounted: int) -> list[float]:
    for _ in range(uncounted):
        _call(network, inputs)
    begun = time.perf_counter()
    times: list[float] = []
    while len(times) < most and (not times or time.perf_counter() - begun < seconds):
        times.append(_call(network, inputs))
    return times


def _summary(times: list[float], batch: int) -> Latency:
    low, middle, high = statistics.quantiles(times, n=4, method="inclusive") if len(times) > 1 else 3 * times
    return Latency(1000 * middle, len(times), batch, 1000 * low, 1000 * high)


def _call(network: nn.Module, inputs: Tensor) -> float:
    begun = time.perf_counter()
    network(inputs)
    if inputs.is_cuda:
        torch.cuda.synchronize(inputs.device)
    return time.perf_counter() - begun
