"""Gets batches made: here, or ahead of time by worker processes that stay from epoch to epoch."""

from __future__ import annotations

import atexit
import warnings
import weakref
from collections.abc import Iterable, Iterator
from typing import Any

import torch
from torch.utils.data import DataLoader

from plackett.data.making import Made, Maker, Wanted, begin_worker

AHEAD = 2  # batches that a worker makes before they are asked for


class Feed:
    """`made(wanted)` gives batches in the order in which they were wanted, whoever makes them."""

    def __init__(self, maker: Maker, workers: int, device: torch.device) -> None:
        self.maker, self.workers, self._pinned = maker, workers, device.type == "cuda"
        self._wanted = _Latest()
        self._loader: DataLoader[Any] | None = None
        self._busy = False

    def made(self, wanted: Iterable[Wanted]) -> Iterator[Made]:
        if not self.workers or self._busy:  # workers go through one list at a time
            yield from map(self.maker.__getitem__, wanted)
            return
        self._wanted.wanted = wanted
        self._busy = True
        try:
            yield from self._begun()
        finally:
            self._busy = False

    def _begun(self) -> Iterator[Made]:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="This DataLoader will create")  # as many as were asked for
            if self._loader is None:
                self._loader = DataLoader(
                    self.maker,  # type: ignore[arg-type]
                    batch_size=None,
                    sampler=self._wanted,
                    num_workers=self.workers,
                    collate_fn=_as_it_is,  # type: ignore[arg-type]
                    worker_init_fn=begin_worker,
                    persistent_workers=True,
                    prefetch_factor=AHEAD,
                    pin_memory=self._pinned,
                )
                _open.add(self)
            return iter(self._loader)

    def close(self) -> None:
        """Ends the workers; the next batch that is wanted starts new ones."""
        iterator = getattr(self._loader, "_iterator", None)
        self._loader, self._busy = None, False
        if iterator is not None:
            iterator._shutdown_workers()


# Python itself would only tell them to end, and wait until they do.
_open: weakref.WeakSet[Feed] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    for feed in list(_open):
        feed.close()


class _Latest:
    """What is wanted now, for a loader that asks anew at the beginning of each epoch."""

    def __init__(self) -> None:
        self.wanted: Iterable[Wanted] = ()

    def __iter__(self) -> Iterator[Wanted]:
        return iter(self.wanted)


def _as_it_is(made: Made) -> Made:
    return made
