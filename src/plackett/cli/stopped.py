"""How a command ends that was stopped from outside."""

from __future__ import annotations

from plackett.errors import PlackettError


class Stopped(PlackettError):
    """Long work was stopped by the person who started it; the message says what is left of it."""

    exit_code = 130
