"""How a command ends that was stopped from outside."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from plackett.errors import PlackettError

if TYPE_CHECKING:
    from plackett.training import Pause

SHOW_CURSOR = "\x1b[?25h"


class Stopped(PlackettError):
    """Long work was stopped by the person who started it; the message says what is left of it."""

    exit_code = 130


@contextmanager
def at_once() -> Iterator[None]:
    """While libraries are loaded and nothing is written yet, Ctrl-C ends the process here and now.

    As an exception it would be raised in the middle of an import, and not every library lets it through: NumPy's answer
    can be a RecursionError.
    """
    before = signal.getsignal(signal.SIGINT)
    if before is not signal.default_int_handler:  # somebody else's: ignored in the background, or a caller's own
        yield
        return
    try:
        signal.signal(signal.SIGINT, _end)
    except ValueError:  # not the main thread, where nobody's Ctrl-C arrives
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _end(*_: Any) -> None:
    cursor = SHOW_CURSOR if sys.stdout is not None and sys.stdout.isatty() else ""
    os.write(2, f"{cursor}{os.linesep if cursor else ''}Stopped.{os.linesep}".encode())
    os._exit(Stopped.exit_code)


@dataclass
class How:
    """Which signal asked training to stop."""

    number: int = signal.SIGINT

    def stopped(self, sentence: str) -> Stopped:
        """Ends the command with the code that a shell knows such an end by: 128 and the signal's number."""
        found = Stopped(sentence)
        found.exit_code = 128 + self.number
        return found


@contextmanager
def softly(pause: Pause) -> Iterator[How]:
    """While training, Ctrl-C and SIGTERM (as a scheduler sends it before it takes the machine) are for the next step.

    The second one, and any before training has begun, stops at once.
    """
    how = How()

    def asked(number: int, _: Any) -> None:
        how.number = number
        if not pause.training or pause.reason is not None:
            raise KeyboardInterrupt
        pause.reason = "Stopped by Ctrl-C" if number == signal.SIGINT else "Stopped by SIGTERM"

    before = {}
    try:
        for number in (signal.SIGINT, signal.SIGTERM):
            if signal.getsignal(number) is not signal.SIG_IGN:
                before[number] = signal.signal(number, asked)
    except ValueError:  # not the main thread, where no signal arrives
        yield how
        return
    try:
        yield how
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
