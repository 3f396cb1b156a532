"""A stream of batches that depends only on (seed, epoch), so that any epoch, or any one batch, can be replayed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Generator, Tensor

from plackett.data.augment import Augment
from plackett.data.pictures import Pictures
from plackett.data.seeds import derive
from plackett.errors import InputError


@dataclass(frozen=True)
class Batch:
    """What one step sees. `indices` and `epoch` say which pictures, under which augmentation.

    Inside a captured graph the epoch is a tensor on the device, and a number everywhere else.
    """

    inputs: Tensor
    targets: Tensor
    indices: Tensor
    epoch: int | Tensor


class Shown(Protocol):
    """What a stream shows, in memory or on a disk; `device` is where its batches are."""

    @property
    def classes(self) -> tuple[str, ...]: ...

    @property
    def device(self) -> torch.device: ...

    def __len__(self) -> int: ...


class Stream(Protocol):
    """What a cohort asks of its batches: each epoch's in order, from any of them on, and any one of them again."""

    @property
    def pictures(self) -> Shown: ...

    @property
    def size(self) -> int: ...

    def __len__(self) -> int: ...

    def epoch(self, epoch: int, start: int = 0) -> Iterator[Batch]: ...

    def replay(self, indices: Tensor, epoch: int) -> Batch: ...


class Batches:
    """Batches of `pictures`, shuffled and augmented anew in every epoch.

    Args:
        pictures: what is drawn from, on the device where it is wanted.
        size: pictures a batch; the last batch of an epoch is smaller where they do not divide.
        seed: of this stream; another seed is another order and other augmentations.
        augment: applied on the pictures' device; None leaves them as they are.

    >>> pictures = Pictures(torch.arange(5.0).reshape(5, 1, 1, 1), torch.zeros(5, dtype=torch.long), ("a",))
    >>> stream = Batches(pictures, size=2, seed=0)
    >>> [len(batch.targets) for batch in stream.epoch(0)]
    [2, 2, 1]
    """

    def __init__(self, pictures: Pictures, size: int, seed: int, augment: Augment | None = None) -> None:
        if not len(pictures):
            raise InputError("There are no pictures to make batches of.")
        if size < 1:
            raise InputError(f"A batch needs at least 1 picture, not {size}.")
        self.pictures, self.size, self.seed, self.augment = pictures, size, seed, augment

    def __len__(self) -> int:
        return -(-len(self.pictures) // self.size)

    def epoch(self, epoch: int, start: int = 0) -> Iterator[Batch]:
        """The epoch's batches, from batch `start` on."""
        order = torch.randperm(len(self.pictures), generator=self._generator("order", epoch))
        drawn = self._drawn(epoch)
        for indices in torch.split(order.to(self.pictures.device), self.size)[start:]:
            yield self._batch(indices, drawn, epoch)

    def replay(self, indices: Tensor, epoch: int) -> Batch:
        """The batch of these pictures as that epoch saw them."""
        return self._batch(indices.to(self.pictures.device), self._drawn(epoch), epoch)

    def _batch(self, indices: Tensor, drawn: Tensor | None, epoch: int) -> Batch:
        inputs = self.pictures.inputs[indices]
        if self.augment is not None and drawn is not None:
            inputs = self.augment.apply(inputs, drawn[indices])
        return Batch(inputs, self.pictures.targets[indices], indices, epoch)

    def _drawn(self, epoch: int) -> Tensor | None:
        if self.augment is None:
            return None
        return self.augment.draw(len(self.pictures), self._generator("augment", epoch)).to(self.pictures.device)

    def _generator(self, purpose: str, epoch: int) -> Generator:
        # Always on the CPU: a stream is then the same whatever device the pictures are on.
        return torch.Generator().manual_seed(derive(self.seed, purpose, epoch))
