"""`python -m tests.training.divided FOLDER [break]`: the small cohort in as many processes as torchrun starts.

Without a norm and dropout, whose results depend on how a batch is divided.
"""

from __future__ import annotations

import gc
import json
import sys
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from safetensors.torch import save_file
from torch import Tensor, nn

from plackett.objectives import Objective
from plackett.teachers import LiveTeacher
from plackett.training import Checkpoints, Cohort, EpochReport, Stepping, Student
from tests.training import small

OBJECTIVES: dict[str, dict[str, Any]] = {
    **small.OBJECTIVES,
    "FitNet": {
        "ce": 1.0,
        "fitnet": {
            "weight": 10.0,
            "student_channels": 8,
            "teacher_channels": 8,
            "batch_norm": False,
            "taps": ["features"],
        },
    },
}


class Net(nn.Module):
    taps = ("features",)

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.fc = nn.Conv2d(3, 8, 3, padding=1), nn.Linear(8, 4)

    def forward(self, x: Tensor, taps: tuple[str, ...] = ()) -> Any:
        found = self.conv(x).relu()
        logits = self.fc(found.mean((2, 3)))
        return (logits, {"features": found}) if taps else logits


class Breaks(Net):
    def forward(self, x: Tensor, taps: tuple[str, ...] = ()) -> Any:
        said = super().forward(x, taps)
        return said * torch.where((x.sum() * 0 + dist.get_rank()) == 1, torch.nan, 1.0)


def cohort(broken: bool = False) -> Cohort:
    # 40 pictures: three batches of 12 and an odd one of 4.
    stream = small.stream(size=12)
    made = []
    for name, terms in OBJECTIVES.items():
        torch.manual_seed(4)
        build = Breaks if broken and name == "KD" else Net
        student = Student.make(name, build, Objective(terms), small.RECIPE, steps_per_epoch=len(stream), seed=0)
        made.append(student)
    whole = made[0]
    made[0] = Student(whole.name, whole.model, whole.objective, whole.optimiser, whole.schedule, whole.random_state,
                      stepping=Stepping(parts=2, clip=1.0))  # fmt: skip
    torch.manual_seed(9)
    return Cohort(made, stream, LiveTeacher(Net(), 4, ("features",)))


def train(folder: Path, epochs: int, broken: bool = False) -> Cohort:
    made = cohort(broken)
    checkpoints = Checkpoints(folder)
    start, notes = checkpoints.restore(made)
    told: list[Any] = notes.get("told", [])

    def after(report: EpochReport) -> None:
        told.append({name: [found.loss, found.accuracy] for name, found in report.metrics.items()})
        checkpoints.save(made, report.epoch, notes={"told": told})

    made.fit(epochs, after, start=start)
    if made.processes.first:
        weights = {f"{s.name} {i}": p.detach().clone() for s in made.students for i, p in enumerate(s.trained)}
        save_file(weights, folder / "weights.safetensors")
        (folder / "told.json").write_text(json.dumps(told))
        (folder / "stopped.json").write_text(json.dumps({s.name: s.stopped for s in made.students}))
    return made


if __name__ == "__main__":
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    where, *how = sys.argv[1:]
    if "resume" in how:
        train(Path(where), 2)
        dist.barrier()
    train(Path(where), 4, broken="break" in how)
    gc.collect()  # a network that is still spread would outlive the group, and gloo's threads with it
    dist.barrier()
    dist.destroy_process_group()
