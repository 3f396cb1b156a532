"""How long a call takes and how much memory it needs, on the CPU and on CUDA."""

from __future__ import annotations

import itertools
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import torch
from torch.autograd import DeviceType
from torch.profiler import ProfilerActivity, profile

Step = Callable[[], object]


class Timing(NamedTuple):
    """Milliseconds: median and quartiles of n calls."""

    median: float
    low: float
    high: float
    n: int


def time_steps(
    steps: Sequence[Step], device: str, seconds: float = 1.0, most: int = 200, clock: str = "wall"
) -> Timing:
    """Times `steps` in turn (inputs rotate, so that a cache does not serve them), after a warm-up of each.

    On the CPU `clock` may be "processor", the time of all threads of the process, which other processes add little to.
    """
    for step in [*steps, *steps]:
        step()
    one = _one(steps[0], device, clock)
    n = max(10, min(most, int(seconds * 1000 / max(one, 1e-3))))
    taken = sorted(_one(step, device, clock) for step, _ in zip(itertools.cycle(steps), range(n), strict=False))
    quartiles = statistics.quantiles(taken, n=4)
    return Timing(statistics.median(taken), quartiles[0], quartiles[2], n)


def _one(step: Step, device: str, clock: str) -> float:
    if device == "cuda":
        torch.cuda.synchronize()
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        step()
        end.record()
        torch.cuda.synchronize()
        return start.elapsed_time(end)
    now = time.process_time if clock == "processor" else time.perf_counter
    begun = now()
    step()
    return (now() - begun) * 1e3


def extra_mib(step: Step, device: str) -> float:
    """Peak memory above what was held before the call, in MiB, as the allocator or the profiler counts."""
    step()
    if device == "cuda":
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        step()
        torch.cuda.synchronize()
        return float(torch.cuda.max_memory_allocated() - before) / 2**20
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True, acc_events=True) as recorded:
        step()
    changes = [e for e in recorded.profiler.kineto_results.events() if e.name() == "[memory]"]  # type: ignore[union-attr]
    running = itertools.accumulate(e.nbytes() for e in sorted(changes, key=lambda e: e.start_ns()))
    return max(running, default=0) / 2**20


def on_device(recorded: profile) -> Iterator[tuple[str, float]]:
    """Every kernel that a profiler saw on CUDA, and its milliseconds."""
    for event in recorded.events() or []:
        if event.device_type == DeviceType.CUDA:
            yield event.name, event.device_time_total / 1e3


def copy_gb_s(device: str, mib: int = 512) -> float:
    """What a copy moves, counting bytes read and bytes written: the ceiling that passes over memory can reach."""
    source = torch.ones(mib * 2**20 // 4, device=device)
    sink = torch.empty_like(source)
    timing = time_steps([lambda: sink.copy_(source)], device, seconds=0.5, most=30)
    return 2 * source.numel() * 4 / timing.median / 1e6
