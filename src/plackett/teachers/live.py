"""A teacher that is a network, run on every batch."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from plackett.data import Batch
from plackett.errors import InputError
from plackett.models import answer_in_float32
from plackett.teachers.source import Signals


class LiveTeacher:
    """A frozen copy of `network`, in evaluation mode; the network that was given is left as it was.

    `taps` names the features that are given besides the logits, for objectives that read them.
    """

    def __init__(self, network: nn.Module, classes: int, taps: Sequence[str] = ()) -> None:
        self.network = copy.deepcopy(network).eval().requires_grad_(False)
        self._forward: Callable[..., Any] = self.network
        self.taps = tuple(taps)
        answer_in_float32(self.network, classes)
        self._classes = classes

    @property
    def classes(self) -> int:
        return self._classes

    def tune(self, *, channels_last: bool, compiled: bool) -> None:
        """Lays the weights out for fast convolutions, and compiles the pass over a batch, where asked."""
        if channels_last:
            self.network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self._forward = torch.compile(self.network, dynamic=False) if compiled else self.network

    @torch.no_grad()
    def signals(self, batch: Batch) -> Signals:
        if not self.taps:
            return Signals(self._checked(self._forward(batch.inputs)))
        logits, features = self._forward(batch.inputs, taps=self.taps)
        return Signals(self._checked(logits), features)

    @torch.no_grad()
    def logits(self, inputs: Tensor) -> Tensor:
        """Of any number of pictures; never compiled, since each size would be compiled for itself."""
        return self._checked(self.network(inputs))

    def _checked(self, logits: Tensor) -> Tensor:
        if logits.shape[-1] != self._classes:
            raise InputError(
                f"The teacher gives {logits.shape[-1]} logits a picture, but the data has {self._classes} classes."
            )
        return logits.float()
