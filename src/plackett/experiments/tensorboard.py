"""Epochs for TensorBoard, beside metrics.jsonl: `tensorboard --logdir RUNS`."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from plackett.errors import missing_extra
from plackett.experiments.records import EpochRecord

FOLDER = "tensorboard"


@contextmanager
def board(folder: Path, wanted: bool) -> Iterator[Callable[[EpochRecord], None]]:
    """What an epoch is handed to. A run that goes on writes its earlier epochs anew, as metrics.jsonl is."""
    if not wanted:
        yield lambda epoch: None
        return
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError as error:
        raise missing_extra("tensorboard", "tracking", "--tensorboard") from error
    shutil.rmtree(folder / FOLDER, ignore_errors=True)
    writers: dict[str, SummaryWriter] = {}

    def write(epoch: EpochRecord) -> None:
        for name, found in epoch.students.items():
            if name not in writers:  # a folder a student: TensorBoard then draws them into one figure
                writers[name] = SummaryWriter(str(folder / FOLDER / name))
            figures = {
                "accuracy/test": found.accuracy,
                "accuracy/train": found.train_accuracy,
                "loss/total": found.loss,
            }
            figures |= {f"loss/{term}": value for term, value in found.terms.items()}
            for title, value in figures.items():
                if value is not None:
                    writers[name].add_scalar(title, value, epoch.epoch + 1)
            writers[name].flush()

    try:
        yield write
    finally:
        for writer in writers.values():
            writer.close()
