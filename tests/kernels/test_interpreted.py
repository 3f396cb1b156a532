"""Runs `interpreted.py` in a process of its own, since Triton decides when it is imported whether to interpret."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest


def test_the_kernels_through_the_interpreter() -> None:
    pytest.importorskip("triton")
    here = Path(__file__)
    command = [sys.executable, "-m", "pytest", str(here.with_name("interpreted.py")), "-q", "-p", "no:cacheprovider"]
    environment = {**os.environ, "TRITON_INTERPRET": "1"}
    done = subprocess.run(command, cwd=here.parents[2], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
    assert "skipped" not in done.stdout.splitlines()[-1]
