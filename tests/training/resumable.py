"""`python -m tests.training.resumable FOLDER`: trains the small cohort with checkpoints, and says where it is.

A line is written before every step and before every file is replaced, so that a test can kill it there.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

from plackett import files
from plackett.data import Batch, ResidentBatches
from plackett.training import Checkpoints, Cohort, EpochReport
from tests.training import small


def say(line: str) -> None:
    print(line, flush=True)
    time.sleep(0.02)


class Slow(ResidentBatches):
    def epoch(self, epoch: int, start: int = 0) -> Iterator[Batch]:
        for step, batch in enumerate(super().epoch(epoch, start), start):
            say(f"step {epoch} {step}")
            yield batch


def main(folder: Path) -> None:
    torch.set_num_threads(1)
    replace = files.os.replace

    def slow_replace(source: Any, target: Any) -> None:
        say(f"replace {Path(target).name}")
        replace(source, target)

    files.os.replace = slow_replace  # type: ignore[assignment]
    given = small.stream()
    batches = Slow(given.pictures, given.size, given.seed, given.normalise, padding=given.padding)
    cohort = Cohort(small.students(), batches, small.teacher())
    checkpoints = Checkpoints(folder, {"epochs": small.RECIPE.epochs})
    start, notes = checkpoints.restore(cohort)
    history: list[float] = notes.get("history", [])
    say(f"start {start}")

    def after(report: EpochReport) -> None:
        history.append(report.metrics["KD"].loss)
        scores = {name: found.accuracy for name, found in report.metrics.items()}
        checkpoints.save(cohort, report.epoch, scores, {"history": history})

    cohort.fit(small.RECIPE.epochs, after, start=start)
    for place, student in enumerate(cohort.students):
        save_file(small.weights(student), folder / f"final-{place}")
    say(f"history {history}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
