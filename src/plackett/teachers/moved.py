"""Whether a teacher is still what it was: a frozen network whose weights or statistics change teaches another thing."""

from __future__ import annotations

import torch
from torch import Tensor, nn

_INTEGERS = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


class Moved:
    """Remembers a network's parameters and buffers as sums of their bits: exact, in any memory layout, on its device.

    >>> norm = nn.BatchNorm1d(2)
    >>> moved = Moved(norm)
    >>> _ = norm(torch.ones(3, 2))
    >>> moved()
    ('running_mean', 'running_var', 'num_batches_tracked')
    """

    def __init__(self, network: nn.Module) -> None:
        self._network = network
        self._before = self._sums()

    def __call__(self) -> tuple[str, ...]:
        """The names of what has changed since."""
        now = self._sums()
        return tuple(name for name, bits in now.items() if bits != self._before.get(name))

    @torch.no_grad()
    def _sums(self) -> dict[str, int]:
        state: dict[str, Tensor] = self._network.state_dict()
        if not state:
            return {}
        device = next(iter(state.values())).device
        return dict(zip(state, torch.stack([_bits(t).to(device) for t in state.values()]).tolist(), strict=True))


def _bits(tensor: Tensor) -> Tensor:
    if tensor.dtype is torch.bool or tensor.is_complex():
        return tensor.to(torch.int64).sum() if not tensor.is_complex() else _bits(torch.view_as_real(tensor))
    return tensor.detach().view(_INTEGERS[tensor.element_size()]).sum(dtype=torch.int64)
