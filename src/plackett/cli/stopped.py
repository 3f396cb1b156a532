"""How a command ends that was stopped from outside."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from plackett.errors import PlackettError

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
