"""Which implementation computes a call, and why, in words."""

from __future__ import annotations

import functools
import importlib.util
import os

import torch
from torch import Tensor

from plackett.choice import Times, times
from plackett.errors import InputError, did_you_mean
from plackett.kernels.fused import TAKEN, fused_rows, plan
from plackett.kernels.launch_after import launch_times
from plackett.losses.plackett_luce import RowsFunction, eager_rows
from plackett.losses.sparse import SparseRowsFunction, eager_sparse_rows

_HAS_TRITON = importlib.util.find_spec("triton") is not None  # not looked for while a graph is traced
IMPLEMENTATIONS = ("auto", "eager", "compile", "triton")


def pick(impl: str, student: Tensor) -> RowsFunction:
    """The implementation that `impl` names for logits like `student`."""
    name, _ = _decide(impl, student)
    if name == "triton":
        return fused_rows
    return compiled_rows() if name == "compile" else eager_rows


def pick_sparse(impl: str, student: Tensor) -> SparseRowsFunction:
    """The same for a teacher that kept only its first K logits."""
    _decide(impl, student)
    return eager_sparse_rows


def pick_times(impl: str, gradient: Tensor) -> Times:
    """What multiplies rows of a gradient like this one."""
    return launch_times if _decide(impl, gradient)[0] == "triton" else times


def why(student: Tensor, impl: str = "auto", top_k: int | None = None) -> str:
    """Which implementation a call with these logits takes, and the reason."""
    name, reason = _decide(impl, student)
    if name == "triton":
        kernel, how = plan(student.shape[-1], top_k)
        if kernel == "eager":
            return f"eager: {how}"
        reason = f"{reason}; {how}"
    return f"{name}: {reason}."


def _decide(impl: str, student: Tensor) -> tuple[str, str]:
    if impl not in IMPLEMENTATIONS:
        raise InputError(f"pld: unknown impl {impl!r}; {did_you_mean(impl, IMPLEMENTATIONS)}.")
    if impl == "triton":
        obstacle = _obstacle(student)
        if obstacle is not None:
            raise InputError(f"pld: impl='triton' cannot be had: {obstacle}; use impl='auto'.")
    if impl != "auto":
        return impl, "asked for by name"
    if student.device.type == "cpu":
        if torch.compiler.is_compiling():
            return "eager", "a graph is being traced, and PyTorch operations are what it can fuse"
        return (
            "eager",
            "the student's logits are on the CPU, where PyTorch operations and a vectorised sort are fastest",
        )
    obstacle = _obstacle(student)
    if obstacle is None and torch.version.hip is not None:
        obstacle = "the kernels were never run on a chip of this maker"
    if obstacle is not None:
        return "eager", f"{obstacle}, so PyTorch operations compute it"
    return "triton", "the student's logits are on a CUDA device"


def _obstacle(student: Tensor) -> str | None:
    """What keeps the kernels from taking these logits."""
    if not _HAS_TRITON:
        return "Triton is not installed"
    if student.device.type != "cuda" and os.environ.get("TRITON_INTERPRET") != "1":
        return f"the student's logits are on {student.device.type}, and the kernels need a CUDA device"
    if student.dtype not in TAKEN:
        return f"the student's logits are {student.dtype}, and the kernels take float32, bfloat16 and float16"
    return None


@functools.cache
def compiled_rows() -> RowsFunction:
    """The PyTorch operations as one compiled graph."""
    compiled: RowsFunction = torch.compile(eager_rows, dynamic=None)
    return compiled
