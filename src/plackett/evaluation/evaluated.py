"""Everything that is measured of one classifier, as plain numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import torch
from torch import Tensor

from plackett.data.sight import Sight
from plackett.evaluation.accuracy import accuracy, agreement
from plackett.evaluation.calibration import calibration
from plackett.evaluation.latency import Latency, latencies
from plackett.evaluation.macs import macs
from plackett.evaluation.memory import activation_bytes, weight_bytes
from plackett.intervals import Share, wilson
from plackett.models.packed import Packed

MIB = 2**20


@dataclass(frozen=True)
class Quality:
    """How good it is on `pictures` labelled pictures; `top5` is None with fewer than six classes."""

    pictures: int
    top1: Share
    top5: Share | None
    ece: float
    agreement: Share | None = None


@dataclass(frozen=True)
class Cost:
    """What it costs. `activations_mib` by batch size: the most tensors that live at once, inputs among them."""

    parameters: int
    macs: int
    weights_mib: float
    activations_mib: dict[int, float]
    latency: dict[int, Latency]


@dataclass(frozen=True)
class Evaluated:
    name: str
    spec: str
    size: int
    classes: int
    cost: Cost
    quality: Quality | None = None
    notes: tuple[str, ...] = field(default_factory=tuple)

    def as_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        found = asdict(self)
        if self.quality is not None:
            for key in ("top1", "top5", "agreement"):
                share: Share | None = getattr(self.quality, key)
                found["quality"][key] = None if share is None else share._asdict()
        return found


def quality(logits: Tensor, targets: Tensor, teacher: Tensor | None = None) -> Quality:
    """
    >>> found = quality(torch.eye(4), torch.tensor([0, 1, 2, 0]))
    >>> found.top1.value, found.top5, found.pictures
    (0.75, None, 4)
    """
    n, classes = logits.shape

    def share(value: float) -> Share:
        return wilson(round(value * n), n)

    return Quality(
        n,
        share(accuracy(logits, targets)),
        share(accuracy(logits, targets, 5)) if classes > 5 else None,
        calibration(logits, targets).ece,
        None if teacher is None else share(agreement(logits, teacher)),
    )


def costs(
    networks: Sequence[Packed], batch_sizes: Sequence[int], device: torch.device | str = "cpu", seconds: float = 1.0
) -> list[Cost]:
    """Of each network on pictures of its own size; they take turns while time is taken."""
    there = [packed.network.to(device).eval() for packed in networks]
    times: dict[int, dict[str, Latency]] = {}
    for batch in batch_sizes:
        pairs = {
            str(i): (net, _pictures(p.sight, batch, device))
            for i, (net, p) in enumerate(zip(there, networks, strict=True))
        }
        times[batch] = latencies(pairs, seconds=seconds)
    return [
        Cost(
            sum(p.numel() for p in network.parameters()),
            macs(network, _pictures(packed.sight, 1, device)),
            weight_bytes(network) / MIB,
            {n: activation_bytes(network, _pictures(packed.sight, n, device)) / MIB for n in batch_sizes},
            {n: times[n][str(i)] for n in batch_sizes},
        )
        for i, (network, packed) in enumerate(zip(there, networks, strict=True))
    ]


def _pictures(sight: Sight, n: int, device: torch.device | str) -> Tensor:
    return torch.zeros(n, len(sight.mean), sight.size, sight.size, device=device)
