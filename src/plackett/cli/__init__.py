"""The command `plackett`: parses, validates, delegates. Torch is imported only by the verbs that need it."""

from __future__ import annotations

from plackett.cli.app import main

__all__ = ["main"]
