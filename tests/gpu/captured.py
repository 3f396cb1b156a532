"""A step in a CUDA graph, as an engine would hold it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import torch

Held = TypeVar("Held")


@contextmanager
def no_synchronisation() -> Iterator[None]:
    """Where the host waits for the device, it is an error."""
    torch.cuda.set_sync_debug_mode("error")
    try:
        yield
    finally:
        torch.cuda.set_sync_debug_mode("default")


def captured(step: Callable[[], Held]) -> tuple[torch.cuda.CUDAGraph, Held]:
    """The graph, and what a replay of it writes to; the steps before it must not wait for the device."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side), no_synchronisation():
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        held = step()
    return graph, held
