"""What PLD's kernels take by themselves, and what the host takes around them: `python -m benchmarks.launches` (CUDA).

Kernels: the profiler's times of each, medians over calls with inputs in rotation. Host: microseconds until a call
returns, while the device keeps up, with compiled kernels started as they are and through Triton's own look-up.
"""

from __future__ import annotations

import argparse
import re
import statistics
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile

from benchmarks import written
from benchmarks.losses import RESULTS, SHAPES, Shape, inputs
from benchmarks.measure import Step, on_device
from plackett import functional
from plackett.experiments import surroundings
from plackett.kernels.fused import fused_rows
from plackett.kernels.launch_after import launch_times, launch_total
from plackett.kernels.launching import through_triton
from plackett.losses.plackett_luce import Rows


def steps(shape: Shape, top_k: int | None) -> list[Step]:
    def step(s: Any, t: Any, y: Any) -> Step:
        return lambda: torch.autograd.grad(functional.pld(s, t, y, top_k=top_k), s)

    return [step(*given) for given in inputs(shape, "cuda", 3)]


def kernel_times(calls: list[Step], rounds: int = 5) -> dict[str, list[float]]:
    """Kernel -> milliseconds of every launch, those of one call together."""
    for call in calls:
        call()
    torch.cuda.synchronize()
    found: dict[str, list[float]] = defaultdict(list)
    for call in calls * rounds:
        with profile(activities=[ProfilerActivity.CUDA]) as recorded:
            call()
            torch.cuda.synchronize()
        taken: dict[str, float] = defaultdict(float)
        for kernel, ms in on_device(recorded):
            taken[kernel if kernel.endswith("_kernel") else "PyTorch's own"] += ms
        for name, ms in taken.items():
            found[name].append(ms)
    return found


def host_us(call: Step, n: int = 300) -> float:
    """Median of five times `n` calls; shapes must be small enough for the device to keep up."""
    taken = []
    for _ in range(5):
        torch.cuda.synchronize()
        begun = time.perf_counter()
        for _ in range(n):
            call()
        taken.append((time.perf_counter() - begun) / n * 1e6)
    return statistics.median(taken)


def host(shape: Shape) -> dict[str, float]:
    ((s, t, y),) = inputs(shape, "cuda", 1)
    plain = s.detach()

    def alone() -> Rows:
        return fused_rows(
            plain, t, y, None, temperature=1.0, weights="teacher", label_weight=None, top_k=None, gradient=True
        )

    rows = alone()
    assert rows.gradient is not None
    slope, one = rows.gradient, torch.ones((), device="cuda")
    calls: dict[str, Step] = {
        "PLD": lambda: torch.autograd.grad(functional.pld(s, t, y), s),
        "PLD, forward": lambda: functional.pld(s, t, y),
        "its rows alone": alone,
        "its mean alone": lambda: launch_total(rows.loss, None, True),
        "its scaling alone": lambda: launch_times(slope, one, count=one),
        "PyTorch's scaling": lambda: slope * one,
        "KD": lambda: torch.autograd.grad(functional.kd(s, t), s),
        "KD, forward": lambda: functional.kd(s, t),
        "CE": lambda: torch.autograd.grad(functional.cross_entropy(s, y), s),
        "PyTorch's own CE": lambda: torch.autograd.grad(torch.nn.functional.cross_entropy(s, y), s),
    }
    found = {name: host_us(call) for name, call in calls.items()}
    with through_triton():
        found["PLD, launched by Triton"] = host_us(calls["PLD"])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--shapes", default="", help="a pattern of the shapes")
    parser.add_argument("--out", type=Path, default=RESULTS, help="where the CSV goes")
    given = parser.parse_args()
    chip, versions = torch.cuda.get_device_name(), surroundings.versions()
    common = {
        "device": chip,
        **{name: versions[name] for name in ("plackett", "python", "torch")},
        "commit": surroundings.commit() or "",
    }
    path = written.place(given.out, "launches", chip, versions["torch"])
    rows: list[dict[str, Any]] = []

    def add(shape: Shape, what: str, part: str, value: float, unit: str, n: int) -> None:
        rows.append({"shape": str(shape), "what": what, "part": part, "median": value, "unit": unit, "n": n} | common)
        print(f"  {shape!s:<24} {what:<14} {part:<28} {value:9.3f} {unit}", flush=True)
        written.write(rows, path)

    small = SHAPES["cuda"][0]
    if re.search(given.shapes, str(small)):
        for name, us in host(small).items():
            add(small, "host", name, round(us, 1), "us", 5)
    # After the host, for a profiler slows every launch that follows it.
    for shape in (shape for shape in SHAPES["cuda"] if re.search(given.shapes, str(shape))):
        for top_k in (None, 64):
            for name, taken in kernel_times(steps(shape, top_k)).items():
                what = "PLD" if top_k is None else f"first {top_k}"
                add(shape, what, name, round(statistics.median(taken), 4), "ms", len(taken))


if __name__ == "__main__":
    main()
