"""Sources made of others: some pictures of one, and the pictures of two."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from plackett.data.counter import Counter
from plackett.data.source import NO_LABEL, Source

if TYPE_CHECKING:
    from PIL.Image import Image


@dataclass(frozen=True)
class Subset:
    """The pictures of `whole` at `places`, `[n]` int64."""

    whole: Source
    places: Tensor

    @property
    def classes(self) -> tuple[str, ...]:
        return self.whole.classes

    @property
    def targets(self) -> Tensor:
        return self.whole.targets[self.places]

    def __len__(self) -> int:
        return len(self.places)

    def name(self, index: int) -> str:
        return self.whole.name(int(self.places[index]))

    def read(self, index: int) -> Image:
        return self.whole.read(int(self.places[index]))

    def fingerprint(self) -> str:
        return _digest(self.whole.fingerprint(), self.places)


@dataclass(frozen=True)
class Joined:
    """The pictures of `labelled`, then those of `others`, of which no label is known."""

    labelled: Source
    others: Source

    @property
    def classes(self) -> tuple[str, ...]:
        return self.labelled.classes

    @property
    def targets(self) -> Tensor:
        return torch.cat([self.labelled.targets, torch.full((len(self.others),), NO_LABEL)])

    def __len__(self) -> int:
        return len(self.labelled) + len(self.others)

    def name(self, index: int) -> str:
        source, place = self._at(index)
        return source.name(place)

    def read(self, index: int) -> Image:
        source, place = self._at(index)
        return source.read(place)

    def fingerprint(self) -> str:
        return _digest(self.labelled.fingerprint(), self.others.fingerprint())

    def _at(self, index: int) -> tuple[Source, int]:
        first = len(self.labelled)
        return (self.labelled, index) if index < first else (self.others, index - first)


def held_out(targets: Tensor, share: float, seed: int) -> tuple[Tensor, Tensor]:
    """Places that stay and places that are held out: of every class `share`, rounded, and at least one picture.

    A class of a single picture keeps it.
    """
    bits = Counter(seed, "hold-out").bits(0, torch.arange(len(targets)))
    out = torch.zeros(len(targets), dtype=torch.bool)
    for label in sorted(set(targets.tolist()) - {NO_LABEL}):
        places = (targets == label).nonzero().squeeze(1)
        if len(places) > 1:
            count = min(max(1, round(share * len(places))), len(places) - 1)
            out[places[bits[places].argsort(stable=True)[:count]]] = True
    return (~out).nonzero().squeeze(1), out.nonzero().squeeze(1)


def _digest(*parts: str | Tensor) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part.encode() if isinstance(part, str) else part.numpy().tobytes())
    return digest.hexdigest()
