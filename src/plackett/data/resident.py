"""Small pictures that stay on the device as bytes, and are cropped, flipped and normalised there.

Every random choice is a hash of (seed, epoch, sample): any epoch, and any batch of it, is made without those before it,
and nothing waits for the host. `inputs(indices, epoch)` is a function of device tensors with fixed shapes, so that a
CUDA graph can hold it.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from plackett.data.batches import Batch
from plackett.data.counter import Counter, below
from plackett.data.normalise import Normalise
from plackett.data.pictures import Pictures
from plackett.errors import InputError


class ResidentBatches:
    """Batches of uint8 `pictures`, as `Batches` are of float ones, and on whatever device the pictures are.

    Args:
        pictures: uint8, on the device where the batches are wanted.
        size: pictures a batch.
        seed: of this stream; another seed is another order and other crops.
        normalise: from bytes to what the network reads.
        padding: a crop may lie so many black pixels beyond each edge; 0 leaves the picture where it is.
        flip: mirror every second picture, at random.
        drop_last: leave out the pictures that do not fill a batch, others in every epoch.
    """

    def __init__(
        self,
        pictures: Pictures,
        size: int,
        seed: int,
        normalise: Normalise,
        *,
        padding: int = 4,
        flip: bool = True,
        drop_last: bool = False,
    ) -> None:
        _check(pictures, size, normalise, padding, drop_last)
        self.pictures, self.size, self.seed, self.normalise = pictures, size, seed, normalise
        self.padding, self.flip, self.drop_last = padding, flip, drop_last
        n, channels, self._height, self._width = pictures.inputs.shape
        device = pictures.device
        # [N * H * W, C]: one gather of whole pixels gives a channels-last batch.
        self._pixels = pictures.inputs.permute(0, 2, 3, 1).reshape(-1, channels).contiguous()
        self._mean, self._std = normalise.constants(device)
        self._samples = torch.arange(n, device=device)
        self._rows = torch.arange(self._height, device=device)
        self._columns = torch.arange(self._width, device=device)
        self._order, self._crop, self._mirror = (Counter(seed, use) for use in ("order", "crop", "mirror"))

    def __len__(self) -> int:
        n = len(self.pictures)
        return n // self.size if self.drop_last else -(-n // self.size)

    def __repr__(self) -> str:
        return (
            f"ResidentBatches(size={self.size}, padding={self.padding}, flip={self.flip}, "
            f"drop_last={self.drop_last}, {self.normalise})"
        )

    def order(self, epoch: int | Tensor) -> Tensor:
        """The pictures in the order of that epoch, `[N]` int64; those left over by `drop_last` stand at the end."""
        return self._order.bits(epoch, self._samples).argsort(stable=True)

    def epoch(self, epoch: int, start: int = 0) -> Iterator[Batch]:
        """The epoch's batches, from batch `start` on."""
        order = self.order(epoch)
        for step in range(start, len(self)):
            yield self.replay(order[step * self.size : (step + 1) * self.size], epoch)

    def replay(self, indices: Tensor, epoch: int) -> Batch:
        """The batch of these pictures as that epoch saw them."""
        indices = indices.to(self.pictures.device)
        return Batch(self.inputs(indices, epoch), self.pictures.targets[indices], indices, epoch)

    def inputs(self, indices: Tensor, epoch: int | Tensor) -> Tensor:
        """`[B, C, H, W]` float32, channels-last in memory."""
        crop = self._crop.bits(epoch, indices)
        rows = self._rows + (below(crop, 2 * self.padding + 1) - self.padding)[:, None]  # [B, H]
        columns = self._columns
        if self.flip:
            mirrored = (self._mirror.bits(epoch, indices) & 1).bool()[:, None]
            columns = torch.where(mirrored, self._width - 1 - columns, columns)
        columns = columns + (below(crop >> 16, 2 * self.padding + 1) - self.padding)[:, None]  # [B, W]
        inside = _within(rows, self._height)[:, :, None] & _within(columns, self._width)[:, None, :]
        rows, columns = rows.clamp(0, self._height - 1), columns.clamp(0, self._width - 1)
        place = (indices[:, None, None] * self._height + rows[:, :, None]) * self._width + columns[:, None, :]
        pixels = self._pixels[place] * inside[..., None]  # [B, H, W, C]
        return self.normalise.apply(pixels.permute(0, 3, 1, 2), self._mean, self._std)


def _within(places: Tensor, size: int) -> Tensor:
    return (places >= 0) & (places < size)


def _check(pictures: Pictures, size: int, normalise: Normalise, padding: int, drop_last: bool) -> None:
    if not len(pictures):
        raise InputError("There are no pictures to make batches of.")
    if size < 1:
        raise InputError(f"A batch needs at least 1 picture, not {size}.")
    if drop_last and len(pictures) < size:
        raise InputError(f"{len(pictures)} pictures do not fill one batch of {size}; take fewer a batch.")
    if pictures.inputs.dtype != torch.uint8:
        raise InputError(f"These batches are made of uint8 pixels, not {pictures.inputs.dtype}; use Batches for those.")
    if pictures.inputs.dim() != 4 or pictures.inputs.shape[1] != len(normalise.mean):
        raise InputError(
            f"Pictures must be [N, {len(normalise.mean)}, height, width], not {list(pictures.inputs.shape)}."
        )
    if not 0 <= padding <= min(pictures.inputs.shape[2:]):
        raise InputError(f"A crop can lie 0 to {min(pictures.inputs.shape[2:])} pixels outside, not {padding}.")
