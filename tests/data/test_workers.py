"""Worker processes end with their parent, however it ends, and say nothing at Ctrl-C."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.data import drawn


def alive(pid: int) -> bool:
    """Running, and not merely a name that nobody has asked after."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


def ended(pids: list[int], seconds: float) -> bool:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if not any(map(alive, pids)):
            return True
        time.sleep(0.05)
    return False


def begun(folder: Path) -> tuple[subprocess.Popen[str], list[int]]:
    run = subprocess.Popen(
        [sys.executable, "-m", "tests.data.reading", str(drawn.folder(folder))],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    assert run.stdout is not None
    workers = [int(pid) for pid in run.stdout.readline().split()]
    assert len(workers) == 2
    assert all(map(alive, workers))
    return run, workers


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks at processes as Linux shows them")
class TestWorkers:
    def test_they_end_when_the_parent_is_killed(self, tmp_path: Path) -> None:
        run, workers = begun(tmp_path)
        run.kill()
        run.wait()
        assert ended(workers, 20)

    def test_ctrl_c_is_the_parents_to_answer(self, tmp_path: Path) -> None:
        run, workers = begun(tmp_path)
        os.killpg(run.pid, signal.SIGINT)  # as a terminal does: to all of them
        out, errors = run.communicate(timeout=60)
        assert (run.returncode, out.strip(), errors) == (0, "interrupted", "")
        assert ended(workers, 20)

    def test_a_worker_that_is_told_to_end_leaves_the_parent_time(self, tmp_path: Path) -> None:
        run, workers = begun(tmp_path)
        for pid in workers:
            os.kill(pid, signal.SIGTERM)
        time.sleep(0.5)
        assert all(map(alive, workers))
        assert run.poll() is None
        run.send_signal(signal.SIGINT)
        assert run.communicate(timeout=60) == ("interrupted\n", "")
        assert ended(workers, 20)

    def test_one_that_begins_after_its_parent_has_gone_ends_too(self, tmp_path: Path) -> None:
        """torch's own watch compares the parent's number with that which the worker found when it began."""
        code = (
            "import multiprocessing, os, sys, time\n"
            "from plackett.data.making import begin_worker\n"
            "def late(place):\n"
            "    while os.getppid() == parent: time.sleep(0.01)\n"
            "    begin_worker(0)\n"
            "    open(place, 'w').close()\n"
            "parent = os.getpid()\n"
            "process = multiprocessing.get_context('fork').Process(target=late, args=(sys.argv[1],))\n"
            "process.start()\n"
            "print(process.pid, flush=True)\n"
            "os._exit(0)\n"
        )
        place = tmp_path / "went-on"
        run = subprocess.run([sys.executable, "-c", code, place], capture_output=True, text=True, check=True)
        assert ended([int(run.stdout)], 20)
        assert not place.exists()
