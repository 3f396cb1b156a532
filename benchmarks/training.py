"""What an epoch of CIFAR-100 costs: an ordinary training loop, and cohorts: `python -m benchmarks.training`.

Both in one run, on the same machine. The pictures are random: the figures are about time, not about accuracy. The
ordinary loop is a DataLoader with torchvision's transforms, in float32. One student at batch 2048 is the floor: the
same work without waiting for launches. Seconds are for 50,000 pictures; the first epoch, which compiles, is apart.
"""

from __future__ import annotations

import argparse
import gc
import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from benchmarks import written
from plackett import models, presets
from plackett.data import Pictures, ResidentBatches, cifar100
from plackett.experiments import surroundings
from plackett.objectives import Objective
from plackett.teachers import LiveTeacher
from plackett.training import Cohort, Mode, Recipe, Student

RESULTS = Path(__file__).parent / "results"
PAIRS = {"56-20": ("resnet56", "resnet20"), "32x4-8x4": ("resnet32x4", "resnet8x4")}
EPOCH = 50_000
METHODS: dict[str, Any] = {
    "KD": presets.get("cifar100", "kd"),
    "PLD": presets.get("cifar100", "pld"),
    "DIST": presets.get("cifar100", "dist"),
    "CE": presets.get("cifar100", "ce"),
    "DKD": {"ce": 1.0, "dkd": {"alpha": 1.0, "beta": 2.0, "temperature": 4.0, "warmup_epochs": 20}},
    "PLD tau 2": {"pld": {"temperature": 2.0}},
    "PLD label 1": {"pld": {"temperature": 4.0, "label_weight": 1.0}},
    "KD tau 2": {"ce": 0.1, "kd": {"weight": 0.9, "temperature": 2.0}},
}
Row = dict[str, Any]


def pictures(n: int, device: str) -> Pictures:
    generator = torch.Generator().manual_seed(0)
    pixels = torch.randint(0, 256, (n, 3, 32, 32), dtype=torch.uint8, generator=generator)
    return Pictures(pixels, torch.arange(n) % 100, tuple(map(str, range(100)))).to(device)


def network(name: str, device: str) -> torch.nn.Module:
    return models.create(name, classes=100, float32_head=True).to(device)


def cohort(pair: str, count: int, mode: Mode, device: str, batch: int, n: int) -> tuple[Cohort, int]:
    teacher, student = PAIRS[pair]
    stream = ResidentBatches(pictures(n, device), batch, 0, cifar100.NORMALISE, drop_last=True)
    recipe = Recipe(epochs=250, batch_size=batch, learning_rate=1e-3, weight_decay=0.5)
    students = [
        Student.make(name, lambda: models.create(student, classes=100, float32_head=True), Objective(terms), recipe,
                     steps_per_epoch=len(stream), seed=0, device=device)
        for name, terms in list(METHODS.items())[:count]
    ]  # fmt: skip
    return Cohort(students, stream, LiveTeacher(network(teacher, device), 100), mode=mode), n // batch * batch


def wait(device: str) -> float:
    if device == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter()


def measure_cohort(pair: str, count: int, mode: Mode, device: str, batch: int, n: int, epochs: int) -> Row:
    """The fastest of `epochs` epochs after one that builds."""
    gc.collect()  # the graphs of the cohort before
    if device == "cuda":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    begun = wait(device)
    made, seen = cohort(pair, count, mode, device, batch, n)
    ends = [begun]
    made.fit(1 + epochs, lambda report: ends.append(wait(device)))
    taken = min(after - before for before, after in itertools.pairwise(ends[1:]))
    return row(pair, str(mode), count, batch, taken / seen, first=ends[1] - ends[0])


def row(pair: str, what: str, count: int, batch: int, per_picture: float, first: float = 0.0) -> Row:
    seconds = EPOCH * per_picture
    cuda = torch.cuda.is_available()
    return {
        "pair": "-".join(PAIRS[pair]),
        "what": what,
        "students": count,
        "batch": batch,
        "seconds_an_epoch": round(seconds, 3),
        "seconds_a_student": round(seconds / count, 3),
        "ms_a_step": round(1e3 * per_picture * batch, 3),
        "images_a_second": round(count / per_picture),
        "first_epoch_s": round(first, 1),
        "peak_mib": round(torch.cuda.max_memory_reserved() / 2**20) if cuda else "",
    }


class Ordinary(torch.utils.data.Dataset[tuple[Tensor, int]]):
    """Pictures in memory, transformed one at a time, as torchvision's own data set has them."""

    def __init__(self, n: int) -> None:
        from torchvision import transforms

        normalise = cifar100.NORMALISE
        self.pixels = np.random.default_rng(0).integers(0, 256, (n, 32, 32, 3), np.uint8)
        self.transform: Callable[[Any], Tensor] = transforms.Compose([
            transforms.ToPILImage(), transforms.RandomCrop(32, padding=4), transforms.RandomHorizontalFlip(),
            transforms.ToTensor(), transforms.Normalize(normalise.mean, normalise.std),
        ])  # fmt: skip

    def __len__(self) -> int:
        return len(self.pixels)

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        return self.transform(self.pixels[index]), index % 100


def measure_ordinary(pair: str, device: str, steps: int, workers: int, batch: int = 128) -> Row:
    teacher, student = (network(name, device) for name in PAIRS[pair])
    teacher.eval().requires_grad_(False)
    objective = Objective(METHODS["KD"])
    optimiser = torch.optim.AdamW(student.parameters(), lr=1e-3, weight_decay=0.5)
    loader = torch.utils.data.DataLoader(
        Ordinary((steps + 20) * batch),
        batch,
        shuffle=True,
        drop_last=True,
        num_workers=workers,
        pin_memory=device == "cuda",
    )
    begun = 0.0
    for step, (inputs, targets) in enumerate(loader):
        if step == 20:
            begun = wait(device)
        inputs, targets = inputs.to(device, non_blocking=True), targets.to(device, non_blocking=True)
        with torch.no_grad():
            logits = teacher(inputs)
        loss = objective(student(inputs), logits, targets).total
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        loss.item()  # as a loop that shows its loss does
    return row(pair, f"ordinary loop, {workers} workers", 1, batch, (wait(device) - begun) / steps / batch)


def measured(given: argparse.Namespace) -> Iterator[Row]:
    device: str = given.device
    mode = Mode.best(device)
    mode = replace(mode, compile=mode.compile and given.compile)
    for pair in given.pairs:
        if given.ordinary:
            yield measure_ordinary(pair, device, given.ordinary, given.workers)
        for count in given.students:
            yield measure_cohort(pair, count, mode, device, 128, given.pictures, given.epochs)
        if given.floor:
            yield measure_cohort(pair, 1, mode, device, 2048, given.pictures, given.epochs)


def write(rows: Sequence[Row], out: Path, common: Row) -> Path:
    path = out / f"training-{written.slug(str(common['device']))}.csv"
    return written.write([each | common for each in rows], path)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu", choices=("cpu", "cuda"))
    parser.add_argument("--pairs", nargs="+", default=list(PAIRS), choices=list(PAIRS))
    parser.add_argument("--students", nargs="+", type=int, default=[1, 8], help="sizes of the cohorts")
    parser.add_argument("--epochs", type=int, default=3, help="epochs of which the fastest counts")
    parser.add_argument("--pictures", type=int, default=EPOCH, help="pictures an epoch; seconds are scaled to 50,000")
    parser.add_argument("--ordinary", type=int, default=150, help="steps of the ordinary loop; 0 leaves it out")
    parser.add_argument("--workers", type=int, default=8, help="processes of its DataLoader")
    parser.add_argument("--compile", action=argparse.BooleanOptionalAction, default=True, help="torch.compile")
    parser.add_argument("--floor", action=argparse.BooleanOptionalAction, default=True, help="batch 2048")
    parser.add_argument("--out", type=Path, default=RESULTS, help="where the CSV goes")
    given = parser.parse_args()
    device = torch.cuda.get_device_name() if given.device == "cuda" else surroundings.processor()
    common = {
        "device": device,
        "torch": torch.__version__,
        "plackett": surroundings.versions()["plackett"],
        "commit": surroundings.commit() or "",
        "date": datetime.now(UTC).date().isoformat(),
    }
    print(f"{device}, torch {torch.__version__}; teacher and students, 50,000 pictures an epoch", flush=True)
    rows: list[Row] = []
    for found in measured(given):
        rows.append(found)
        print("  " + "  ".join(f"{name} {value}" for name, value in found.items()), flush=True)
    print(f"written to {write(rows, given.out, common)}")


if __name__ == "__main__":
    main()
