"""What a captured step of a network does at once for all layers, or leaves out, at the same numbers.

Autocast casts every convolution's weight by itself, and its gradient back: two small kernels a layer and step, of the
some ten that a layer takes. Norms count their batches, a kernel each, for numbers that are known beforehand.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from plackett.training.mode import Mode
from plackett.training.student import Student

_COUNTING = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)  # and no class derived from them


class Lean:
    """`leaves` stand in for the student's trained parameters; weights of convolutions among them are in bfloat16."""

    def __init__(self, student: Student, inputs: Tensor, mode: Mode) -> None:
        cast, self._counted = _seen(student, inputs, mode)
        self._forwards = student.stepping.parts  # of a step
        self._places = [(c, c.get_parameter("weight"), nn.Parameter(c.weight.detach().bfloat16())) for c in cast]
        halves = {id(whole): half for _, whole, half in self._places}
        self.leaves: list[Tensor] = [halves.get(id(parameter), parameter) for parameter in student.trained]

    @torch.no_grad()
    def refresh(self) -> None:
        """The halves follow what the optimiser did."""
        if self._places:
            _, whole, half = zip(*self._places, strict=True)
            torch._foreach_copy_(half, whole)

    def count(self, steps: int) -> None:
        """Norms are told of so many steps that they did not count."""
        if self._counted:
            counters, added = zip(*((c, steps * self._forwards * each) for _, c, each in self._counted), strict=True)
            torch._foreach_add_(counters, added)

    @contextmanager
    def inside(self) -> Iterator[None]:
        """The network computes with halves, and counts nothing."""
        try:
            for convolution, _, half in self._places:
                convolution._parameters["weight"] = half
            for norm, _, _ in self._counted:
                norm._buffers["num_batches_tracked"] = None
            yield
        finally:
            for convolution, whole, _ in self._places:
                convolution._parameters["weight"] = whole
            for norm, counter, _ in self._counted:
                norm._buffers["num_batches_tracked"] = counter


def _seen(student: Student, inputs: Tensor, mode: Mode) -> tuple[list[nn.Conv2d], list[tuple[nn.Module, Tensor, int]]]:
    """Convolutions whose weight autocast casts once a forward pass, and nobody else reads; norms with their counter and
    what a pass adds to it. A pass without gradients tells; it leaves no trace."""
    model, trained = student.model, {id(parameter) for parameter in student.trained}
    readers = Counter(id(p) for module in model.modules() for p in module._parameters.values() if p is not None)
    convolutions = [
        m for m in model.modules()
        if type(m) is nn.Conv2d and id(m.weight) in trained and readers[id(m.weight)] == 1
        and m.weight.requires_grad and m.weight.dtype == torch.float32
    ]  # fmt: skip
    calls: dict[nn.Module, list[bool]] = defaultdict(list)  # of each, whether it was under autocast

    def note(module: nn.Module, _: object) -> None:
        calls[module].append(torch.is_autocast_enabled(inputs.device.type))

    hooks = [convolution.register_forward_pre_hook(note) for convolution in convolutions]
    norms = [m for m in model.modules() if type(m) in _COUNTING and m.momentum is not None]
    counters = [(m, c) for m in norms if (c := m._buffers.get("num_batches_tracked")) is not None]
    before = [int(counter) for _, counter in counters]
    kept = [(buffer, buffer.clone()) for buffer in model.buffers()]
    devices = [] if inputs.device.type == "cpu" else [inputs.device]
    try:
        with torch.no_grad(), torch.random.fork_rng(devices), mode.precision(inputs.device):
            model(inputs)
        added = [int(counter) - was for (_, counter), was in zip(counters, before, strict=True)]
    finally:
        for hook in hooks:
            hook.remove()
        for buffer, was in kept:
            buffer.copy_(was)
    counted = [(norm, counter, each) for (norm, counter), each in zip(counters, added, strict=True) if each]
    return [convolution for convolution in convolutions if calls[convolution] == [True]], counted
