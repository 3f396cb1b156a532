"""What a worker process does: reads the pictures of a batch, takes the part that is shown, and names what is bad."""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import signal
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from plackett.data.counter import mix
from plackett.data.sight import Sight
from plackett.data.source import Source
from plackett.data.viewing import Augmentation, plain_view, random_view

TRIES = 20  # other pictures of its class that are tried in the place of a bad one
GRACE = 60  # seconds that a worker goes on after it was told to end, so that its parent can save


class Wanted(NamedTuple):
    """Pictures by number, and the key of each one's random choices."""

    indices: tuple[int, ...]
    keys: tuple[int, ...]


class Made(NamedTuple):
    """`pixels` `[n, size, size, 3]` uint8 of those at `places` of what was wanted, and what could not be read."""

    pixels: Tensor
    places: Tensor
    bad: list[tuple[int, str]]


@dataclass(frozen=True)
class Maker:
    """Makes batches of `source` as `sight` sees them, without `augment` as in a test.

    With `replace`, a picture that cannot be read is replaced by another of its class, always the same.
    """

    source: Source
    sight: Sight
    augment: Augmentation | None
    replace: bool

    def __getitem__(self, wanted: Wanted) -> Made:
        side = self.sight.size
        pixels = torch.empty(len(wanted.indices), side, side, 3, dtype=torch.uint8)
        rows = pixels.numpy()
        good: list[int] = []
        bad: list[tuple[int, str]] = []
        for place, (index, key) in enumerate(zip(wanted.indices, wanted.keys, strict=True)):
            view = self._view(index, key, bad)
            if view is not None:
                rows[len(good)] = view
                good.append(place)
        return Made(pixels[: len(good)], torch.tensor(good, dtype=torch.int64), bad)

    def _view(self, index: int, key: int, bad: list[tuple[int, str]]) -> NDArray[np.uint8] | None:
        for candidate in self._candidates(index):
            try:
                image = self.source.read(candidate)
            except (OSError, ValueError) as error:
                bad.append((candidate, _why(error)))
                continue
            if self.augment is None:
                return plain_view(image, self.sight)
            return random_view(image, self.sight, self.augment, key)
        return None

    def _candidates(self, index: int) -> Iterator[int]:
        yield index
        if self.replace:
            targets = self.source.targets
            peers = (targets == targets[index]).nonzero().squeeze(1)
            first = mix(index)
            for step in range(min(TRIES, len(peers))):
                yield int(peers[(first + step) % len(peers)])


def _why(error: Exception) -> str:
    said = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return said.splitlines()[0] if said else type(error).__name__


def begin_worker(_: int) -> None:
    """Ctrl-C is for the parent, which ends its workers; a worker also ends when the parent is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(signal, "SIGALRM"):
        signal.signal(signal.SIGTERM, lambda *_: signal.alarm(GRACE))
    sys.excepthook = _quietly
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG: of the thread that made it
    parent = multiprocessing.parent_process()
    if parent is not None and not parent.is_alive():  # it went before that was said, and torch would not notice either
        os._exit(1)


def _quietly(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """A batch on its way to a parent that has just gone is nobody's concern."""
    if not issubclass(kind, BrokenPipeError | ConnectionResetError | EOFError):
        sys.__excepthook__(kind, error, trace)
