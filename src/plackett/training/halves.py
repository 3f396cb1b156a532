"""Weights of convolutions in half precision, made for all of a network at once.

Autocast casts each by itself, and its gradient back: two small kernels a layer and step, of the some ten that a layer
takes. The numbers are the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from plackett.training.student import Student


class Halves:
    """`leaves` stand in for the student's trained parameters; those of convolutions are in bfloat16."""

    def __init__(self, student: Student) -> None:
        self._student = student
        whole = {id(parameter): parameter for parameter in student.trained if parameter.dtype == torch.float32}
        found: dict[int, nn.Parameter] = {}
        self._places: list[tuple[nn.Conv2d, nn.Parameter, nn.Parameter]] = []
        for module in student.model.modules():
            if isinstance(module, nn.Conv2d) and id(module.weight) in whole:
                kept = whole[id(module.weight)]
                half = found.setdefault(id(kept), nn.Parameter(kept.detach().bfloat16()))
                self._places.append((module, kept, half))
        self._whole: list[Tensor] = [whole[key] for key in found]
        self._half: list[Tensor] = list(found.values())
        self.leaves: list[Tensor] = [found.get(id(parameter), parameter) for parameter in student.trained]

    @torch.no_grad()
    def refresh(self) -> None:
        """Follows what the optimiser did."""
        if self._half:
            torch._foreach_copy_(self._half, self._whole)

    @contextmanager
    def inside(self) -> Iterator[None]:
        """The network computes with them."""
        try:
            for module, _, half in self._places:
                module.weight = half
            yield
        finally:
            for module, kept, _ in self._places:
                module.weight = kept
