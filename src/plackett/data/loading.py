"""Batches of pictures that are read when they are wanted, by worker processes, and that any later run can replay.

Order, crop, flip and every other random choice is a hash of (seed, epoch, sample): the same bits for any number of
workers, and an epoch begins at any of its batches without reading those before it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from plackett.data.batches import Batch
from plackett.data.counter import Counter
from plackett.data.feeding import Feed
from plackett.data.making import Made, Maker, Wanted
from plackett.data.mixing import Mix, mixed
from plackett.data.normalise import Normalise
from plackett.data.sight import Sight
from plackett.data.source import Source
from plackett.data.unreadable import Bad, Unreadable
from plackett.data.viewing import Augmentation
from plackett.errors import InputError

__all__ = ["Augmentation", "Bad", "Mix", "PictureBatches", "Viewed"]


@dataclass(frozen=True)
class _Shown:
    source: Source
    device: torch.device

    @property
    def classes(self) -> tuple[str, ...]:
        return self.source.classes

    def __len__(self) -> int:
        return len(self.source)


class PictureBatches:
    """Batches of `source`, shuffled and augmented anew in every epoch.

    Args:
        source: what is drawn from.
        size: pictures a batch.
        seed: of this stream; another seed is another order and other crops.
        sight: how the network sees a picture.
        device: where the batches are wanted.
        workers: processes that read ahead; 0 reads here, when a batch is asked for.
        augment: what is random in a picture; None shows the middle, as in a test.
        mix: mixes the pictures of a batch, whose targets are then `[B, classes]` float.
        drop_last: leave out the pictures that do not fill a batch, others in every epoch.
        bad_limit: how many pictures may turn out unreadable; None is 1 % of them, and at least 10. Each is replaced by
            another of its class, always the same.
        on_bad: told of each, once.
    """

    def __init__(
        self,
        source: Source,
        size: int,
        seed: int,
        sight: Sight,
        *,
        device: torch.device | str = "cpu",
        workers: int = 0,
        augment: Augmentation | None = Augmentation(),  # noqa: B008
        mix: Mix | None = None,
        drop_last: bool = False,
        bad_limit: int | None = None,
        on_bad: Callable[[Bad], None] | None = None,
    ) -> None:
        _check(source, size, sight, workers, drop_last)
        self.source, self.size, self.seed, self.sight = source, size, seed, sight
        self.augment, self.mix, self.drop_last = augment, mix, drop_last
        self.device = torch.device(device)
        self.pictures = _Shown(source, self.device)
        self._targets = source.targets
        self._unreadable = Unreadable(source, bad_limit, on_bad)
        self._order, self._key, self._blend = (Counter(seed, use) for use in ("order", "view", "mix"))
        self._feed = Feed(Maker(source, sight, augment, replace=True), workers, self.device)
        self._normalise = Normalise(sight.mean, sight.std)
        self._constants = self._normalise.constants(self.device)

    def __len__(self) -> int:
        n = len(self.source)
        return n // self.size if self.drop_last else -(-n // self.size)

    @property
    def bad(self) -> list[Bad]:
        """What could not be read so far, in the order in which it was found."""
        return self._unreadable.found

    def order(self, epoch: int) -> Tensor:
        """The pictures in the order of that epoch, `[N]` int64; those left over by `drop_last` stand at the end."""
        return self._order.bits(epoch, torch.arange(len(self.source))).argsort(stable=True)

    def epoch(self, epoch: int, start: int = 0) -> Iterator[Batch]:
        """The epoch's batches, from batch `start` on."""
        parts = torch.split(self.order(epoch), self.size)[start : len(self)]
        made = self._feed.made(self._wanted(indices, epoch) for indices in parts)
        for number, (indices, found) in enumerate(zip(parts, made, strict=True), start):
            inputs, targets = self._inputs(indices, found), self._targets[indices]
            if self.mix is not None:
                other = (inputs.flip(0), targets.flip(0))
                inputs, targets = self._mixed((inputs, targets), other, epoch, number)
            yield self._batch(inputs, targets, indices, epoch)

    def replay(self, indices: Tensor, epoch: int) -> Batch:
        """The batch of these pictures as that epoch saw them."""
        indices = indices.cpu()
        inputs, targets = self._read(indices, epoch), self._targets[indices]
        if self.mix is not None:
            inputs, targets = self._replay_mixed(inputs, targets, indices, epoch)
        return self._batch(inputs, targets, indices, epoch)

    def close(self) -> None:
        """Ends the workers; the next epoch would start new ones."""
        self._feed.close()

    def _replay_mixed(self, inputs: Tensor, labels: Tensor, indices: Tensor, epoch: int) -> tuple[Tensor, Tensor]:
        """Each with the picture that stood opposite it in its batch of that epoch."""
        order = self.order(epoch)
        place = torch.empty_like(order).scatter_(0, order, torch.arange(len(order)))[indices]
        number = place // self.size
        first = number * self.size
        last = (first + self.size).clamp(max=len(order)) - 1
        others = order[first + last - place]
        theirs, their_labels = self._read(others, epoch), self._targets[others]
        targets = inputs.new_zeros(len(indices), len(self.source.classes))
        for each in sorted(set(number.tolist())):
            rows = number == each
            inputs[rows], targets[rows] = self._mixed(
                (inputs[rows], labels[rows]), (theirs[rows], their_labels[rows]), epoch, each
            )
        return inputs, targets

    def _mixed(
        self, own: tuple[Tensor, Tensor], other: tuple[Tensor, Tensor], epoch: int, number: int
    ) -> tuple[Tensor, Tensor]:
        assert self.mix is not None
        key = int(self._blend.bits(epoch, torch.tensor(number)))
        blend = self.mix.blend(key, self.sight.size)
        return mixed(own, other, blend, len(self.source.classes))

    def _read(self, indices: Tensor, epoch: int) -> Tensor:
        return self._inputs(indices, self._feed.maker[self._wanted(indices, epoch)])

    def _wanted(self, indices: Tensor, epoch: int) -> Wanted:
        return Wanted(tuple(indices.tolist()), tuple(self._key.bits(epoch, indices).tolist()))

    def _inputs(self, indices: Tensor, made: Made) -> Tensor:
        self._unreadable.add(made.bad)
        if len(made.places) < len(indices):
            missing = set(range(len(indices))) - set(made.places.tolist())
            self._unreadable.no_other(int(indices[min(missing)]))
        return self._normalise.apply(made.pixels.to(self.device).permute(0, 3, 1, 2), *self._constants)

    def _batch(self, inputs: Tensor, targets: Tensor, indices: Tensor, epoch: int) -> Batch:
        return Batch(inputs, targets.to(self.device), indices.to(self.device), epoch)


class Viewed:
    """Test pictures in their order, as `sight` sees them. Those that cannot be read are left out, named and counted.

    `targets` and `len` leave them out too, once a pass has met them. Where all of their bytes fit into `keep`, they are
    read once and kept for later passes.
    """

    def __init__(
        self,
        source: Source,
        sight: Sight,
        *,
        size: int = 256,
        workers: int = 0,
        device: torch.device | str = "cpu",
        bad_limit: int | None = None,
        on_bad: Callable[[Bad], None] | None = None,
        keep: int = 0,
    ) -> None:
        _check(source, size, sight, workers, drop_last=False)
        self.source, self.sight, self.size = source, sight, size
        self.device = torch.device(device)
        self._unreadable = Unreadable(source, bad_limit, on_bad)
        self._keeps = 3 * sight.size**2 * len(source) <= keep
        self._kept: list[tuple[Tensor, Made]] | None = None
        self._feed = Feed(Maker(source, sight, None, replace=False), workers, self.device)
        self._normalise = Normalise(sight.mean, sight.std)
        self._constants = self._normalise.constants(self.device)

    @property
    def classes(self) -> tuple[str, ...]:
        return self.source.classes

    @property
    def bad(self) -> list[Bad]:
        return self._unreadable.found

    @property
    def targets(self) -> Tensor:
        """Of the pictures that can be read, `[n]`, on the CPU."""
        readable = torch.ones(len(self.source), dtype=torch.bool)
        readable[self._unreadable.places()] = False
        return self.source.targets[readable]

    def __len__(self) -> int:
        return len(self.source) - len(self.bad)

    def batches(self) -> Iterator[Batch]:
        """All of them once; `indices` are their numbers in the source."""
        for indices, made in self._made() if self._kept is None else self._kept:
            self._unreadable.add(made.bad)
            if len(kept := indices[made.places]):
                pixels = made.pixels.to(self.device).permute(0, 3, 1, 2)
                inputs = self._normalise.apply(pixels, *self._constants)
                yield Batch(inputs, self.source.targets[kept].to(self.device), kept.to(self.device), 0)

    def _made(self) -> Iterator[tuple[Tensor, Made]]:
        parts = torch.split(torch.arange(len(self.source)), self.size)
        wanted = (Wanted(tuple(part.tolist()), (0,) * len(part)) for part in parts)
        kept: list[tuple[Tensor, Made]] = []
        for each in zip(parts, self._feed.made(wanted), strict=True):
            if self._keeps:
                kept.append(each)
            yield each
        if self._keeps:
            self._kept = kept
            self._feed.close()

    def close(self) -> None:
        self._feed.close()


def _check(source: Source, size: int, sight: Sight, workers: int, drop_last: bool) -> None:
    if not len(source):
        raise InputError("There are no pictures to make batches of.")
    if size < 1:
        raise InputError(f"A batch needs at least 1 picture, not {size}.")
    if drop_last and len(source) < size:
        raise InputError(f"{len(source)} pictures do not fill one batch of {size}; take fewer a batch.")
    if workers < 0:
        raise InputError(f"Pictures are read by 0 or more worker processes, not {workers}.")
    if len(sight.mean) != 3:
        raise InputError(f"Pictures are read as RGB, 3 channels, but the network reads {len(sight.mean)}.")
