"""What each loss costs, forward and backward from logits: `python -m benchmarks.losses [--device cpu|cuda]`.

Everything of a shape is measured in one run, so that ratios compare like with like. "floor" is the share of what three
passes over the logits (read the student's, read the teacher's, write the gradient) cost as a plain copy.

On a CPU that others use too, `OMP_WAIT_POLICY=PASSIVE python -m benchmarks.losses --device cpu --clock processor`
counts the processor's time of all threads instead of the wall's.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor

from benchmarks import written
from benchmarks.measure import Timing, copy_gb_s, extra_mib, time_steps
from plackett import functional, reference
from plackett.experiments import surroundings

RESULTS = Path(__file__).parent / "results"
Loss = Callable[[Tensor, Tensor, Tensor], Tensor]


class Shape(NamedTuple):
    rows: int
    classes: int
    dtype: torch.dtype = torch.float32

    def __str__(self) -> str:
        return f"{self.rows} x {self.classes} {str(self.dtype).removeprefix('torch.')}"


SHAPES = {
    "cpu": [Shape(128, 100), Shape(128, 1000), Shape(2048, 1000), Shape(64, 32000)],
    "cuda": [
        Shape(128, 100),
        Shape(2048, 1000),
        Shape(2048, 1000, torch.bfloat16),
        Shape(65536, 1000),
        Shape(65536, 1000, torch.bfloat16),
        Shape(8192, 4096),
        Shape(4096, 32000, torch.bfloat16),
        Shape(2048, 128256, torch.bfloat16),
        Shape(2048, 152064, torch.bfloat16),
    ],
}


def contenders(device: str) -> dict[str, Loss]:
    """Name -> loss; compiled ones where kernels are fused on the device."""
    found: dict[str, Loss] = {
        "CE": lambda s, t, y: functional.cross_entropy(s, y),
        "KD": lambda s, t, y: functional.kd(s, t),
        "DIST": lambda s, t, y: functional.dist(s, t),
        "DKD": lambda s, t, y: functional.dkd(s, t, y),
        "PLD as published": reference.published_pld,
        "PLD": lambda s, t, y: functional.pld(s, t, y),
        "PLD, first 64": lambda s, t, y: functional.pld(s, t, y, top_k=64),
    }
    if device == "cuda":
        found["KD compiled"] = torch.compile(found["KD"], dynamic=False)
        found["PLD as published, compiled"] = torch.compile(reference.published_pld, dynamic=False)
    return found


def inputs(shape: Shape, device: str, sets: int) -> list[tuple[Tensor, Tensor, Tensor]]:
    generator = torch.Generator(device).manual_seed(0)

    def logits() -> Tensor:
        drawn = torch.randn(shape.rows, shape.classes, generator=generator, device=device)
        return (3 * drawn).to(shape.dtype)

    labels = torch.randint(0, shape.classes, (shape.rows,), generator=generator, device=device)
    return [(logits().requires_grad_(), logits(), labels) for _ in range(sets)]


def backward(loss: Loss, student: Tensor, teacher: Tensor, labels: Tensor) -> None:
    student.grad = None
    loss(student, teacher, labels).backward()


def measure(shape: Shape, device: str, bandwidth: float, only: str, clock: str) -> Iterator[dict[str, Any]]:
    # Past its limit of shapes, the compiler runs a function eagerly and only warns.
    torch.compiler.reset()
    size = torch.empty((), dtype=shape.dtype).element_size()
    moved = 3 * shape.rows * shape.classes * size
    cache = 60 * 2**20 if device == "cuda" else 32 * 2**20
    given = inputs(shape, device, min(8, 1 + cache // moved))
    for name, loss in contenders(device).items():
        if not re.search(only, name):
            continue
        steps = [lambda loss=loss, g=g: backward(loss, *g) for g in given]
        timing: Timing = time_steps(steps, device, clock=clock)  # type: ignore[arg-type]
        yield {
            "rows": shape.rows,
            "classes": shape.classes,
            "dtype": str(shape.dtype).removeprefix("torch."),
            "loss": name,
            "median_ms": round(timing.median, 4),
            "q25_ms": round(timing.low, 4),
            "q75_ms": round(timing.high, 4),
            "n": timing.n,
            "extra_mib": round(extra_mib(steps[0], device), 1),
            "gb_s": round(moved / timing.median / 1e6, 1),
            "floor_share": round(moved / bandwidth / timing.median / 1e6, 4),
        }


def show(shape: Shape, rows: list[dict[str, Any]], console: Console) -> None:
    by_name = {row["loss"]: row for row in rows}
    table = Table(title=str(shape), title_justify="left", box=None)
    ratios = [n for n in ("KD", "KD compiled", "PLD as published") if n in by_name]
    for heading in ("loss", "ms", "quartiles", "extra MiB", "GB/s", "floor", *(f"/ {n}" for n in ratios)):
        table.add_column(heading, justify="left" if heading == "loss" else "right")
    for row in rows:
        spread = f"{row['q25_ms']:.3g}-{row['q75_ms']:.3g}"
        compared = [f"{row['median_ms'] / by_name[n]['median_ms']:.2f}" for n in ratios]
        figures = (f"{row['median_ms']:.3g}", spread, f"{row['extra_mib']:.1f}", f"{row['gb_s']:.0f}")
        table.add_row(row["loss"], *figures, f"{row['floor_share']:.0%}", *compared)
    console.print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu", choices=list(SHAPES))
    parser.add_argument("--threads", type=int, default=2, help="threads of the CPU")
    parser.add_argument("--clock", default="wall", choices=["wall", "processor"], help="which time of a CPU counts")
    parser.add_argument("--only", default="", help="a pattern of the losses' names")
    parser.add_argument("--shapes", default="", help="a pattern of the shapes, as the tables are headed")
    parser.add_argument("--out", type=Path, default=RESULTS, help="where the CSV goes")
    given = parser.parse_args()
    torch.set_num_threads(given.threads)

    device: str = given.device
    chip = torch.cuda.get_device_name() if device == "cuda" else surroundings.processor()
    versions = surroundings.versions()
    bandwidth = copy_gb_s(device)
    common = {
        "device": chip,
        "threads": given.threads if device == "cpu" else "",
        "clock": given.clock if device == "cpu" else "wall",
        "copy_gb_s": round(bandwidth, 1),
        **{name: versions[name] for name in ("plackett", "python", "torch", "numpy")},
        "commit": surroundings.commit() or "",
    }
    console = Console(width=110)
    console.print(f"{chip}, torch {versions['torch']}, copy {bandwidth:.0f} GB/s; forward and backward from logits")
    rows: list[dict[str, Any]] = []
    path = written.place(given.out, "losses", chip, versions["torch"])
    for shape in (shape for shape in SHAPES[device] if re.search(given.shapes, str(shape))):
        measured = list(measure(shape, device, bandwidth, given.only, given.clock))
        show(shape, measured, console)
        rows += [row | common for row in measured]
        written.write(rows, path)  # after each, for a run may be cut short
    console.print(f"written to {path}")


if __name__ == "__main__":
    main()
