"""Starts a command again and again and kills it at random moments: run as a process, which has no threads of its own.

    python -m tests.distilling.killed KILLS SEED SECONDS ARGUMENTS...

Forks, so that torch is imported once. A start lives for up to SECONDS; the last one is left to its end, and its exit
code is this one's. Prints how many were killed on their way, and how many seconds the last one took.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from collections.abc import Sequence

import torch

from plackett.cli import main
from plackett.distilling import outcome, run  # noqa: F401 - imported before any fork


def begun(arguments: Sequence[str]) -> int:
    pid = os.fork()
    if pid:
        return pid
    torch.set_num_threads(1)
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 1)
    try:
        main(arguments)
    except SystemExit as end:
        os._exit(int(end.code or 0))
    os._exit(70)


if __name__ == "__main__":
    kills, seed, seconds, arguments = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]), sys.argv[4:]
    draws, killed = random.Random(seed), 0
    for _ in range(kills):
        pid = begun(arguments)
        time.sleep(draws.uniform(0, seconds))
        if os.waitpid(pid, os.WNOHANG) == (0, 0):
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            killed += 1
    started = time.monotonic()
    code = os.waitstatus_to_exitcode(os.waitpid(begun(arguments), 0)[1])
    print(killed, time.monotonic() - started)
    sys.exit(code)
