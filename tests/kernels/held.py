"""What a fused kernel is held to: the float64 truth, within twice the float32 eager version's own error."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from plackett.kernels.launching import interpreted
from plackett.losses.plackett_luce import Rows, RowsFunction, eager_rows

OPTIONS: dict[str, Any] = {
    "temperature": 1.0,
    "weights": "teacher",
    "label_weight": None,
    "top_k": None,
    "gradient": True,
}


def poisoned(like: Tensor, count: int = 4) -> None:
    """Leaves NaN in the memory that the next allocations are likely to get."""
    for _ in range(count):
        torch.full_like(like, float("nan"))
        torch.full((like.shape[0],), float("nan"), device=like.device)


def hold(
    run: RowsFunction, student: Tensor, teacher: Tensor, target: Tensor | None, keep: Tensor | None = None, **some: Any
) -> Rows:
    """Runs and compares; returns what ran."""
    options = {**OPTIONS, **some}
    weights = options["weights"]
    in_double = {**options, "weights": weights.double() if isinstance(weights, Tensor) else weights}
    before = student.clone()
    poisoned(student)
    got = run(student, teacher, target, keep, **options)
    truth = eager_rows(student.double(), teacher.double(), target, keep, **in_double)
    eager = eager_rows(student.float(), teacher.float(), target, keep, **options)
    assert torch.equal(before.view(torch.uint8), student.view(torch.uint8)), "the caller's logits were overwritten"

    ulps = 4 * truth.loss.abs().clamp_min(torch.finfo(torch.float32).tiny) * torch.finfo(torch.float32).eps
    off, theirs = (got.loss - truth.loss).abs(), (eager.loss - truth.loss).abs()
    assert not got.loss.isnan().any()
    assert (off.max() <= 2 * theirs.max() + ulps.max()).item(), f"loss off by {off.max()}, eager {theirs.max()}"
    assert (off.square().mean().sqrt() <= 2 * theirs.square().mean().sqrt() + ulps.square().mean().sqrt()).item()
    torch.testing.assert_close(got.left_out.double(), truth.left_out, rtol=1e-5, atol=1e-5)

    assert got.gradient is not None
    assert truth.gradient is not None
    assert eager.gradient is not None
    assert got.gradient.dtype == student.dtype
    size = truth.gradient.norm().clamp_min(1e-30)
    slip = (got.gradient.double() - truth.gradient).norm() / size
    own = (eager.gradient.double() - truth.gradient).norm() / size
    half = 0.0 if student.dtype == torch.float32 else torch.finfo(student.dtype).eps / 2
    if interpreted():  # it rounds to half precision towards zero
        half *= 2
    assert (slip <= 2 * own + 4 * torch.finfo(torch.float32).eps + half).item(), f"gradient off by {slip}, eager {own}"
    return got
