"""Work that ends by itself before a given time, after an epoch, so that the same command goes on another time."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from plackett.errors import InputError, UnfinishedError


class OutOfTime(UnfinishedError):
    """Not all that was asked for is done; what is done is saved."""

    exit_code = 75  # EX_TEMPFAIL of sysexits.h: run it again


class Limit:
    """So many minutes from now on; None is no limit.

    What the next epoch will take is judged by the longest so far, tests and checkpoints with it, and before a cohort
    begins by the longest first epoch of the others. Where nothing is known yet the work goes on, so that every run of
    a command gets further. An epoch that compiles says nothing of the next one.

    >>> Limit(None).next_passes()
    False
    """

    def __init__(self, minutes: float | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        if minutes is not None and not (minutes > 0 and math.isfinite(minutes)):
            raise InputError(f"--minutes is a time above 0, not {minutes:g}.")
        self.minutes, self._clock = minutes, clock
        self._begun = self._mark = clock()
        self._first = self._later = 0.0
        self._entered = False

    def begin(self) -> None:
        """A cohort is made, taught and fitted from here on; not where its first epoch would come too late."""
        self._mark, self._later, self._entered = self._clock(), 0.0, False
        if self._first and self._passes(self._first):
            raise OutOfTime(f"{self._said()} The same command does the rest.")

    def epoch_over(self, *, compiled: bool = False) -> None:
        now = self._clock()
        taken, self._mark = now - self._mark, now
        if not self._entered:
            self._entered, self._first = True, max(self._first, taken)
            if compiled:
                return
        self._later = max(self._later, taken)

    def next_passes(self) -> bool:
        """Whether another epoch would end too late."""
        return self._passes(self._later)

    def out_of_time(self, done: int, epochs: int, folder: object) -> OutOfTime:
        return OutOfTime(f"{self._said()} Epoch {done} of {epochs} is saved in {folder}; the same command goes on.")

    def _passes(self, seconds: float) -> bool:
        if self.minutes is None:
            return False
        return self._clock() - self._begun + seconds > 60 * self.minutes

    def _said(self) -> str:
        spent = (self._clock() - self._begun) / 60
        return f"Stopped after {spent:.1f} of {self.minutes:g} minutes."
