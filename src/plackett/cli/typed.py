"""The command as it was typed, for what it leaves to say how it was made."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from contextvars import ContextVar

_ARGUMENTS: ContextVar[Sequence[str] | None] = ContextVar("arguments", default=None)


def remember(arguments: Sequence[str]) -> None:
    _ARGUMENTS.set(tuple(arguments))


def typed() -> str:
    """
    >>> remember(["demo", "--out", "a b"])
    >>> typed()
    "plackett demo --out 'a b'"
    """
    arguments = _ARGUMENTS.get()
    if arguments is None:
        return ""
    # as it is typed, also where the locale cannot read it
    return os.fsencode(shlex.join(["plackett", *arguments])).decode("utf-8", "replace")
