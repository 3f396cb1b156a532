"""A student over several processes: DistributedDataParallel averages what `backward()` leaves in each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from plackett.objectives import Objective
from plackett.training.charge import Charged, charge
from plackett.training.processes import Processes


class _Whole(nn.Module):
    """Network and objective in one, for losses may have parameters of their own."""

    def __init__(self, model: nn.Module, objective: Objective) -> None:
        super().__init__()
        self.model, self.objective = model, objective

    def forward(self, *arguments: Any) -> Charged:
        return charge(self.objective, *arguments)


class Spread:
    """The gradients of a mean over the batch of all processes, from this one's part of it."""

    def __init__(self, model: nn.Module, objective: Objective, processes: Processes) -> None:
        whole = _Whole(model, objective)
        device = next(model.parameters()).device
        self._whole = DistributedDataParallel(whole, device_ids=None if device.type == "cpu" else [device])
        self._processes = processes
        self.share = 1.0  # what this process's mean counts, times the processes that DDP divides by

    def gradients(
        self, trained: Sequence[nn.Parameter], arguments: tuple[Any, ...]
    ) -> tuple[list[Tensor], list[Tensor | None], Tensor]:
        for parameter in trained:
            parameter.grad = None
        charged: Charged = self._whole(*arguments)
        (charged.total * self.share).backward()  # type: ignore[no-untyped-call]
        values = torch.stack([value.detach().float() for value in (charged.total, *charged.terms)])
        # All of them must see the same loss, so that all stop, or none.
        values = self._processes.added(values * (self.share / self._processes.world))
        return list(values), [parameter.grad for parameter in trained], charged.logits
