"""Training that somebody wants to stop, at a step after which all of it can be saved."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from plackett.errors import UnfinishedError


class Paused(UnfinishedError):
    """Training was stopped after a step, and everything needed to go on from there was saved."""


@dataclass
class Pause:
    """`reason` says why training is to stop at its next step; `training` whether it is going on at all."""

    reason: str | None = None
    training: bool = False

    @contextmanager
    def while_training(self) -> Iterator[None]:
        self.training = True
        try:
            yield
        finally:
            self.training = False
