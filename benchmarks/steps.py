"""What a step of a cohort is made of: `python -m benchmarks.steps` (CUDA).

Kernels of a step, how long each kind takes, and how many run at a time: the sum of their times over the step's own. The
pictures are random, as in `benchmarks.training`, whose cohorts these are.
"""

from __future__ import annotations

import argparse
import ast
import re
import time
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import torch
import torch._inductor.config
from torch.profiler import ProfilerActivity, profile

from benchmarks import written
from benchmarks.measure import on_device
from benchmarks.training import PAIRS, RESULTS, cohort
from plackett.experiments import surroundings
from plackett.training import Mode

STEPS = 16


def profiled(pair: str, count: int, batch: int = 128) -> tuple[float, dict[str, tuple[int, float]]]:
    """Milliseconds a step without the profiler, and kernel -> (launches, milliseconds) a step with it."""
    made, _ = cohort(pair, count, Mode.best("cuda"), "cuda", batch, STEPS * batch)
    clock: list[float] = []

    def stamp(_: object) -> None:
        torch.cuda.synchronize()
        clock.append(time.perf_counter())

    made.fit(4, stamp)
    with profile(activities=[ProfilerActivity.CUDA]) as recorded:
        made.fit(5, stamp, start=4)
        torch.cuda.synchronize()
    launches: Counter[str] = Counter()
    taken: dict[str, float] = defaultdict(float)
    for kernel, ms in on_device(recorded):
        launches[kernel] += 1
        taken[kernel] += ms
    return (clock[3] - clock[2]) / STEPS * 1e3, {
        name: (round(launches[name] / STEPS), taken[name] / STEPS) for name in taken
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--pairs", nargs="+", default=list(PAIRS), choices=list(PAIRS))
    parser.add_argument("--students", nargs="+", type=int, default=[1, 8], help="sizes of the cohorts")
    parser.add_argument(
        "--inductor", nargs="*", default=[], help="settings of the compiler, such as combo_kernels=True"
    )
    parser.add_argument("--shown", type=int, default=25, help="kinds of kernels printed; the CSV has all")
    parser.add_argument("--out", type=Path, default=RESULTS, help="where the CSV goes")
    given = parser.parse_args()
    for setting in given.inductor:
        name, value = setting.split("=")
        setattr(torch._inductor.config, name, ast.literal_eval(value))
    chip = torch.cuda.get_device_name()
    common = {"device": chip, "torch": torch.__version__, "commit": surroundings.commit() or ""}
    rows: list[dict[str, Any]] = []
    for pair in given.pairs:
        for count in given.students:
            wall, kernels = profiled(pair, count)
            busy = sum(ms for _, ms in kernels.values())
            many = sum(n for n, _ in kernels.values())
            print(f"{pair}, {count} students: {wall:.3f} ms a step, {many} kernels of {busy:.3f} ms in all, "
                  f"{busy / wall:.2f} at a time", flush=True)  # fmt: skip
            for i, (name, (n, ms)) in enumerate(sorted(kernels.items(), key=lambda item: -item[1][1])):
                short = re.sub(r"<.*", "", name)[:100]
                rows.append({
                    "pair": pair, "students": count, "wall_ms": round(wall, 4), "kernel": short, "launches": n,
                    "ms": round(ms, 5), "inductor": " ".join(given.inductor), **common,
                })  # fmt: skip
                if i < given.shown:
                    print(f"  {n:>5} {ms:8.4f} ms  {short}", flush=True)
            written.write(rows, given.out / f"steps-{written.slug(chip)}.csv")


if __name__ == "__main__":
    main()
