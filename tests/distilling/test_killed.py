"""A distillation that is killed, pre-empted or stopped loses nothing that was saved, and ends with the same bits."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from plackett.experiments.records import read_run
from tests.distilling.command import made

pytest.importorskip("timm")

ROOT = Path(__file__).parent.parent.parent
KEPT = ("student/model.safetensors", "seed-0/results.json", "seed-0/metrics.jsonl",
        "seed-0/students/PLD/model.safetensors", "seed-0/students/KD/model.safetensors")  # fmt: skip


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made(tmp_path_factory.mktemp("killed"), train=24, test=6)


def command(place: Path, out: Path, epochs: int = 3) -> list[str]:
    return [
        "distill", "--teacher", str(place / "teacher"), "--student", "resnet8x4", "--data", str(place / "pets"),
        "--student-sight", "size=16", "--objective", "pld,kd", "--workers", "0", "--no-report", "--out", str(out),
        f"epochs={epochs}", "batch_size=6", "average=0.9",
    ]  # fmt: skip


def killer(place: Path, out: Path, kills: int, seconds: float) -> tuple[int, float]:
    """How many were killed on their way, and how long the last one took."""
    arguments = [sys.executable, "-m", "tests.distilling.killed", str(kills), "0", str(seconds)]
    run = subprocess.run([*arguments, *command(place, out, 10)], capture_output=True, text=True, cwd=ROOT, check=False)
    assert run.returncode == 0, run.stderr
    killed, took = run.stdout.split()
    return int(killed), float(took)


@pytest.mark.slow
def test_killed_at_twenty_random_moments_it_ends_with_the_same_bits(place: Path) -> None:
    _, seconds = killer(place, place / "whole", 0, 0)
    killed, _ = killer(place, place / "killed", 20, seconds / 5)
    assert killed >= 10  # where it was quick, the others found it finished
    for name in KEPT:
        assert (place / "killed" / name).read_bytes() == (place / "whole" / name).read_bytes(), name


@pytest.mark.parametrize(("number", "code", "words"), [
    (signal.SIGTERM, 143, "Stopped by SIGTERM after step "), (signal.SIGINT, 130, "Stopped by Ctrl-C after step "),
])  # fmt: skip
def test_a_signal_saves_and_says_so(place: Path, number: signal.Signals, code: int, words: str, tmp_path: Path) -> None:
    arguments = [sys.executable, "-m", "plackett", *command(place, tmp_path / "run", epochs=400)]
    run = subprocess.Popen(
        arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip
    checkpoint = tmp_path / "run/seed-0/last.ckpt"
    begun = time.monotonic()
    while not checkpoint.exists():
        assert run.poll() is None, run.communicate()
        assert time.monotonic() - begun < 120
        time.sleep(0.05)
    time.sleep(0.3)
    before = checkpoint.stat().st_mtime_ns
    os.kill(run.pid, number)
    out, err = run.communicate(timeout=60)
    assert run.returncode == code, out + err
    said = err.splitlines()[-1]
    assert said.startswith(words)
    assert said.endswith(f"all of it is saved in {tmp_path / 'run'}: the same command goes on.")
    assert checkpoint.stat().st_mtime_ns > before
    assert read_run(tmp_path / "run/seed-0").record.status == "interrupted"
    assert not list((tmp_path / "run/seed-0").glob(".last.ckpt.*"))


def test_a_full_disk_is_a_sentence_and_the_last_checkpoint_is_whole(place: Path, tmp_path: Path) -> None:
    """A limit on the size of files stands for the disk: every write of a checkpoint fails in its middle."""
    import resource

    out = tmp_path / "run"
    first = subprocess.run(
        [sys.executable, "-m", "plackett", *command(place, out, epochs=2), "--smoke"], cwd=ROOT, capture_output=True,
        text=True, check=False,
    )  # fmt: skip
    assert first.returncode == 0, first.stderr
    limit = (out / "seed-0/last.ckpt").stat().st_size // 2

    def small() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    other = tmp_path / "full"
    run = subprocess.run(
        [sys.executable, "-m", "plackett", *command(place, other)], cwd=ROOT, capture_output=True, text=True,
        check=False, preexec_fn=small,
    )  # fmt: skip
    assert run.returncode == 2
    assert run.stderr.splitlines()[-1] == (
        f"The checkpoint of epoch 1 could not be saved in {other / 'seed-0'} (File too large); the last good one is "
        "intact. Make room and run the same command again."
    )
