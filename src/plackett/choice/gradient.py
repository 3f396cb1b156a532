"""The autograd seam: a value whose gradient is already known."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

_ONCE = (
    "This loss has a closed-form gradient that is not differentiable a second time. "
    "For second derivatives use its readable twin, e.g. plackett.reference.pld."
)


def wants_gradient(tensor: Tensor) -> bool:
    """Whether computing a gradient for `tensor` is worth anything."""
    return torch.is_grad_enabled() and tensor.requires_grad


def attach_gradient(student: Tensor, rows: Tensor, gradient: Tensor) -> Tensor:
    """`rows` `[N]`, as a function of `student` `[N, C]` with d rows_n / d student_n = `gradient` `[N, C]`."""
    attached: Tensor = _KnownGradient.apply(student, rows, gradient)  # type: ignore[no-untyped-call]
    return attached


class _KnownGradient(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(student: Tensor, rows: Tensor, gradient: Tensor) -> Tensor:
        return rows.clone()

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor, Tensor], output: Tensor) -> None:
        ctx.save_for_backward(inputs[2])

    @staticmethod
    def backward(ctx: Any, *upstream: Tensor) -> tuple[Tensor, None, None]:
        (gradient,) = ctx.saved_tensors
        # Stands for the student, so that a second derivative arrives at the refusal below rather than at silence.
        student = torch.empty(0, requires_grad=torch.is_grad_enabled())
        scaled: Tensor = _ScaleOnce.apply(gradient, upstream[0], student)  # type: ignore[no-untyped-call]
        return scaled, None, None


class _ScaleOnce(torch.autograd.Function):
    """Chain rule for one more step; a second derivative would silently miss the student's curvature, so refuse it."""

    generate_vmap_rule = True

    @staticmethod
    def forward(gradient: Tensor, upstream: Tensor, student: Tensor) -> Tensor:
        scale = upstream.unsqueeze(-1)
        if gradient.dtype == scale.dtype:
            return gradient * scale
        # The product is rounded to half precision once, and no float32 copy of the gradient is made.
        return torch.mul(gradient, scale, out=torch.empty_like(gradient))

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, *upstream: Tensor) -> tuple[None, None, None]:
        raise NotImplementedError(_ONCE)
