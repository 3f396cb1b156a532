"""How the steps are carried out: the same arithmetic, one kernel at a time or a whole step at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch

from plackett.errors import InputError

_LIMITS = ("recompile_limit", "accumulated_recompile_limit")


@dataclass(frozen=True)
class Mode:
    """What is switched on.

    Args:
        bfloat16: networks run under autocast; losses, weights and a teacher's last layer stay in float32.
        channels_last: weights are laid out for the convolutions that a GPU is fastest at.
        compile: forward passes go through `torch.compile`.
        graph: the whole step of the teacher and all students is one CUDA graph.
        streams: in it every student has a stream of its own, so that small students overlap.
    """

    bfloat16: bool = False
    channels_last: bool = False
    compile: bool = False
    graph: bool = False
    streams: bool = False

    @classmethod
    def best(cls, device: torch.device | str) -> Mode:
        """Everything on a GPU; plain float32, bit for bit repeatable, on a CPU."""
        return cls(True, True, True, True, True) if torch.device(device).type == "cuda" else cls()

    def check(self, device: torch.device, processes: int = 1) -> None:
        if self.graph and processes > 1:
            raise InputError(f"A CUDA graph is for one process, and there are {processes}; use graph=False.")
        if self.graph and device.type != "cuda":
            raise InputError(
                f"A CUDA graph needs a CUDA device, and the pictures are on {device.type}; use graph=False."
            )
        if self.streams and not self.graph:
            raise InputError("Streams overlap students inside a CUDA graph; use graph=True with streams=True.")

    @contextmanager
    def precision(self, device: torch.device) -> Iterator[None]:
        # A cache of cast weights would outlive the step that it is right for.
        with torch.autocast(device.type, torch.bfloat16, enabled=self.bfloat16, cache_enabled=False):
            yield

    def compiled(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """`function`, compiled for each shape that it meets, where that is asked for."""
        return torch.compile(function, dynamic=False) if self.compile else function

    @contextmanager
    def compiling(self) -> Iterator[None]:
        """Networks of one class share their code, as all objectives do, and beyond 8 compilations of it torch would
        give up silently; trials with options of their own need one each."""
        if not self.compile:
            yield
            return
        import torch._dynamo as dynamo

        many = {name: max(4096, getattr(dynamo.config, name)) for name in _LIMITS}
        with dynamo.config.patch(many):
            yield

    def __str__(self) -> str:
        how = "one CUDA graph a step, the teacher a batch ahead" if self.graph else "eager"
        each = [(self.streams, "a stream a student"), (self.compile, "compiled forwards"),
                (self.channels_last, "channels-last")]  # fmt: skip
        said = [how, *(name for on, name in each if on), "bfloat16" if self.bfloat16 else "float32"]
        return ", ".join(said)
