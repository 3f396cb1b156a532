"""The command `plackett`: parses, validates, delegates. Torch is imported only by the verbs that need it."""

from __future__ import annotations

import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the command line and exits the process."""
    try:  # from the first import on, so that Ctrl-C is answered from there on
        import atexit
        import signal

        from plackett.cli.stopped import at_once

        with at_once():
            from plackett.cli import app
        # When everything is said, there is nothing left to stop.
        atexit.register(signal.signal, signal.SIGINT, signal.SIG_IGN)
        app.main(arguments)
    except KeyboardInterrupt:
        print("Stopped.", file=sys.stderr)
        sys.exit(130)


__all__ = ["main"]
