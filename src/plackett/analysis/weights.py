"""A plane of weights around a trained network: w(a, b) = w + a d1 + b d2, with filter-normalised directions.

Each direction is random, and each filter of it (a row of a weight) is as long as the network's own; biases and norms
are left as they are. Li et al.: Visualizing the Loss Landscape of Neural Nets, NeurIPS 2018.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.func import functional_call

from plackett.analysis.convexity import Function, Surface, survey
from plackett.data import derive
from plackett.objectives import Objective


@dataclass(frozen=True)
class WeightSlice:
    """A network in evaluation mode, pictures with labels, what the teacher says of them, and two directions."""

    network: nn.Module
    inputs: Tensor
    targets: Tensor
    teacher: Tensor | None
    first: Mapping[str, Tensor]
    second: Mapping[str, Tensor]

    @classmethod
    def around(
        cls, network: nn.Module, inputs: Tensor, targets: Tensor, teacher: Tensor | None, seed: int = 0
    ) -> WeightSlice:
        network.eval()
        made = [filter_normalised(network, derive(seed, "weights", which)) for which in (1, 2)]
        return cls(network, inputs, targets, teacher, *made)

    def function(self, objective: Objective, watch: Callable[[int, int], None] = lambda done, of: None) -> Function:
        """The objective on these pictures over points `[M, 2]`; `watch` is told how many of them are done."""
        own = {name: tensor.detach() for name, tensor in self.network.named_parameters()}

        def at(point: Tensor) -> Tensor:
            a, b = point.tolist()
            moved = {name: own[name] + a * self.first[name] + b * self.second[name] for name in self.first}
            logits = functional_call(self.network, {**own, **moved}, (self.inputs,))
            total: Tensor = objective(logits, self.teacher, self.targets).total
            return total

        def function(points: Tensor) -> Tensor:
            values = []
            with torch.no_grad():
                for place, point in enumerate(points):
                    watch(place, len(points))
                    values.append(at(point))
            return torch.stack(values)

        return function

    def survey(
        self,
        objective: Objective,
        *,
        radius: float = 1.0,
        points: int = 25,
        segments: int = 20_000,
        watch: Callable[[int, int], None] = lambda done, of: None,
    ) -> Surface:
        """Over [-radius, radius]^2, differences by the grid's spacing: every point is a pass over the pictures."""
        return survey(self.function(objective, watch), radius, points=points, segments=segments)


def filter_normalised(network: nn.Module, seed: int) -> dict[str, Tensor]:
    """A random direction for every weight of two or more dimensions, each row as long as the network's own."""
    generator = torch.Generator().manual_seed(seed)
    direction = {}
    for name, weight in network.named_parameters():
        if weight.dim() < 2:
            continue
        drawn = torch.randn(weight.shape, generator=generator).to(weight.device, weight.dtype)
        rows = (len(weight), *[1] * (weight.dim() - 1))
        norms = [each.detach().flatten(1).norm(dim=1).reshape(rows) for each in (weight, drawn)]
        direction[name] = drawn * (norms[0] / norms[1].clamp_min(1e-12))
    return direction
