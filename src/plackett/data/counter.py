"""Random numbers that are a function of their place: (key, epoch, sample) -> 32 bits, on any device, in any order.

A generator must be stepped to where one wants to be; a hash is there at once, inside a captured graph too, and gives
the same bits on a CPU and on a GPU because it is made of whole-number operations only.
"""

from __future__ import annotations

from typing import TypeVar

from torch import Tensor

from plackett.data.seeds import derive

_MASK = 0xFFFFFFFF
_Number = TypeVar("_Number", int, Tensor)


def mix(x: _Number) -> _Number:
    """A bijection of 32-bit numbers, in int64 where they are tensors: a product's low 32 bits survive its overflow.

    Constants by C. Wellons and TheIronBorn (hash-prospector): of all two-round ones the least biased that is known.

    >>> import torch
    >>> mix(1), mix(torch.tensor(1)).item()
    (114555507, 114555507)
    """
    x = ((x ^ (x >> 16)) * 0x21F0AAAD) & _MASK
    x = ((x ^ (x >> 15)) * 0xD35A2D97) & _MASK
    return x ^ (x >> 15)


class Counter:
    """32 random bits for each sample of each epoch. Within an epoch no two samples get the same."""

    def __init__(self, *parts: int | str) -> None:
        seed = derive(*parts)
        self._sample, self._epoch = seed & _MASK, (seed >> 31) & _MASK

    def bits(self, epoch: int | Tensor, samples: Tensor) -> Tensor:
        """`samples` and the result are int64; an `epoch` on the device keeps everything there."""
        if isinstance(epoch, Tensor):
            return mix(mix(samples ^ self._sample) ^ mix(epoch ^ self._epoch))
        return mix(mix(samples ^ self._sample) ^ mix(epoch ^ self._epoch))


def below(bits: Tensor, n: int) -> Tensor:
    """Sixteen random bits to a number in [0, n); the bias is n / 65536 of a share.

    >>> import torch
    >>> below(torch.tensor([0, 0x7FFF, 0xFFFF]), 9).tolist()
    [0, 4, 8]
    """
    return ((bits & 0xFFFF) * n) >> 16
