"""A teacher that is a network, run on every batch."""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn

from plackett.data import Batch
from plackett.errors import InputError
from plackett.models import Float32Linear
from plackett.teachers.source import Signals


class LiveTeacher:
    """A frozen copy of `network`, in evaluation mode; the network that was given is left as it was."""

    def __init__(self, network: nn.Module, classes: int) -> None:
        self.network = copy.deepcopy(network).eval().requires_grad_(False)
        for module in self.network.modules():
            last = module if type(module) is nn.Linear and module.out_features == classes else None
            if last is not None:
                last.__class__ = Float32Linear
        self._classes = classes

    @property
    def classes(self) -> int:
        return self._classes

    @torch.no_grad()
    def signals(self, batch: Batch) -> Signals:
        return Signals(self.logits(batch.inputs))

    @torch.no_grad()
    def logits(self, inputs: Tensor) -> Tensor:
        logits: Tensor = self.network(inputs)
        if logits.shape[-1] != self._classes:
            raise InputError(
                f"The teacher gives {logits.shape[-1]} logits a picture, but the data has {self._classes} classes."
            )
        return logits.float()
