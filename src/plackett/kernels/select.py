"""Which implementation computes a call, and why, in words."""

from __future__ import annotations

import functools

import torch
from torch import Tensor

from plackett.errors import InputError, did_you_mean
from plackett.losses.plackett_luce import RowsFunction, eager_rows

IMPLEMENTATIONS = ("auto", "eager", "compile")


def pick(impl: str, student: Tensor) -> RowsFunction:
    """The implementation that `impl` names for logits like `student`."""
    name, _ = _decide(impl, student)
    return compiled_rows() if name == "compile" else eager_rows


def why(student: Tensor, impl: str = "auto") -> str:
    """Which implementation a call with these logits takes, and the reason."""
    name, reason = _decide(impl, student)
    return f"{name}: {reason}"


def _decide(impl: str, student: Tensor) -> tuple[str, str]:
    if impl not in IMPLEMENTATIONS:
        raise InputError(f"pld: unknown impl {impl!r}; {did_you_mean(impl, IMPLEMENTATIONS)}.")
    if impl != "auto":
        return impl, "asked for by name."
    if torch.compiler.is_compiling():
        return "eager", "a graph is being traced, and PyTorch operations are what it can fuse."
    if student.device.type == "cpu":
        return "eager", (
            "the student's logits are on the CPU, where PyTorch operations and a vectorised sort are fastest."
        )
    return "eager", f"the student's logits are on {student.device.type}, where PyTorch operations are all there is."


@functools.cache
def compiled_rows() -> RowsFunction:
    """The PyTorch operations as one compiled graph."""
    compiled: RowsFunction = torch.compile(eager_rows, dynamic=None)
    return compiled
