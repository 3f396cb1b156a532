"""What a network occupies: its weights, and the tensors that live at once during a pass."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable
from itertools import chain
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_iter


def weight_bytes(network: nn.Module) -> int:
    """Bytes of parameters and buffers; what two share is counted once.

    >>> weight_bytes(nn.Linear(10, 10))
    440
    """
    held = {t.untyped_storage()._cdata: t.untyped_storage().nbytes() for t in _state(network)}
    return sum(held.values())


@torch.no_grad()
def activation_bytes(network: nn.Module, inputs: Tensor) -> int:
    """The most bytes of tensors that live at once in an eager forward pass, the inputs among them, the weights not.

    Counted between operations, from the tensors themselves: the same on every device. What an operation needs inside
    (a convolution's workspace) and what an allocator holds in reserve is not in it.

    >>> activation_bytes(nn.Sequential(nn.Linear(4, 100), nn.ReLU(), nn.Linear(100, 2)), torch.zeros(1, 4))
    816
    """
    training = network.training
    network.eval()
    try:
        with _Live(_state(network)) as live:
            live.see(inputs)
            network(inputs)
    finally:
        network.train(training)
    return int(live.peak)


def _state(network: nn.Module) -> Iterable[Tensor]:
    return chain(network.parameters(), network.buffers())


class _Live(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Sums the storages that operations make, until they are freed."""

    def __init__(self, apart: Iterable[Tensor]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.apart = {tensor.untyped_storage()._cdata for tensor in apart}
        self.sizes: dict[int, int] = {}
        self.now = self.peak = 0

    def see(self, tensor: Tensor) -> None:
        storage = tensor.untyped_storage()
        key = storage._cdata  # a view has its base's
        if key not in self.sizes and key not in self.apart:
            self.sizes[key] = storage.nbytes()
            self.now += self.sizes[key]
            self.peak = max(self.peak, self.now)
            weakref.finalize(storage, self._freed, key)

    def _freed(self, key: int) -> None:
        self.now -= self.sizes.pop(key)

    def __torch_dispatch__(
        self, function: Callable[..., Any], types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        made = function(*args, **(kwargs or {}))
        for tensor in tree_iter(made):
            if isinstance(tensor, Tensor):
                self.see(tensor)
        return made
