"""The autograd seam: a value whose gradient is already known."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import torch
from torch import Tensor
from torch.autograd import forward_ad

from plackett.tracing import is_transformed

ONCE = (
    "This loss has a closed-form gradient that is not differentiable a second time. "
    "For second derivatives use its readable twin, e.g. plackett.reference.pld."
)


def wants_gradient(tensor: Tensor) -> bool:
    """Whether computing a gradient for `tensor` is worth anything, to backward or to forward differentiation."""
    if torch.compiler.is_compiling():
        return torch.is_grad_enabled() and tensor.requires_grad
    if is_transformed(tensor):
        return True
    inside = forward_ad._current_level >= 0  # with forward_ad.dual_level():
    forward = inside and forward_ad.unpack_dual(tensor).tangent is not None  # type: ignore[no-untyped-call]
    return forward or (torch.is_grad_enabled() and tensor.requires_grad)


def is_plain(tensor: Tensor) -> bool:
    """Whether nothing but `backward()` and its kin can be asked of what is computed from `tensor`."""
    if torch.compiler.is_compiling() or is_transformed(tensor) or forward_ad._current_level >= 0:
        return False
    return not torch._C._are_functorch_transforms_active()


Times = Callable[..., Tensor]


class After(NamedTuple):
    """What a device has of its own for the steps after the rows: each as few launches as can be.

    `times(gradient, scale, out=None, count=None)` is the function below, over `count` `[]`; `total(rows, keep, mean)`
    adds rows up, or takes their mean, and says how many it divided by.
    """

    times: Times
    total: Callable[[Tensor, Tensor | None, bool], tuple[Tensor, Tensor | None]]


F = TypeVar("F", bound=Callable[..., Any])


def times(gradient: Tensor, scale: Tensor, out: Tensor | None = None) -> Tensor:
    """`gradient` `[N, C]` times `scale` `[N]`; `out` may be the gradient itself."""
    scale = scale.unsqueeze(-1)  # not 0-dimensional: a GPU would first round it to the gradient's precision
    if out is None and (gradient.dtype == scale.dtype or is_transformed(gradient) or is_transformed(scale)):
        return (gradient * scale).to(gradient.dtype)
    # The product is rounded to half precision once, and no float32 copy of the gradient is made.
    return torch.mul(gradient, scale, out=torch.empty_like(gradient) if out is None else out)


def attach_gradient(student: Tensor, rows: Tensor, gradient: Tensor, multiply: Times | None = None) -> Tensor:
    """`rows` `[N]`, as a function of `student` `[N, C]` with d rows_n / d student_n = `gradient` `[N, C]`.

    `multiply` stands in for `times` where the device has something faster.
    """
    link, known = (_Link, _KnownGradient) if torch.compiler.is_compiling() else (_ForwardLink, _ForwardGradient)
    attached: Tensor = known.apply(student, rows, gradient, link.apply(student), multiply)  # type: ignore[no-untyped-call]
    return attached


def attach_total(
    student: Tensor, rows: Tensor, gradient: Tensor, keep: Tensor | None, mean: bool, after: After
) -> Tensor:
    """Sum or mean of `rows` `[N]`, 0 where `keep` is not, as a function of a plain `student`; `gradient` as above."""
    link = student[:0].clone()  # what `_Link` is for; being empty it needs no launch
    attached: Tensor = _KnownTotal.apply(student, link, rows, gradient, keep, mean, after)  # type: ignore[no-untyped-call]
    return attached


def _read_once(forward: F) -> F:
    """PyTorch asks for the signature at every call, and reading it off takes longer than a small gradient does."""
    forward.__signature__ = inspect.signature(forward)  # type: ignore[attr-defined]
    return forward


class _Link(torch.autograd.Function):
    """An empty tensor that depends on the student: a second derivative finds its way to the refusal below, while the
    student's logits need not be kept until backward."""

    generate_vmap_rule = True

    @staticmethod
    @_read_once
    def forward(student: Tensor) -> Tensor:
        return student.new_zeros(())

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor], output: Tensor) -> None:
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(ctx: Any, *upstream: Tensor | None) -> None:
        return None


class _KnownGradient(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    @_read_once
    def forward(student: Tensor, rows: Tensor, gradient: Tensor, link: Tensor, multiply: Times | None) -> Tensor:
        return rows.clone()

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.save_for_backward(inputs[2], inputs[3])
        ctx.multiply = inputs[4]

    @staticmethod
    def backward(ctx: Any, *upstream: Tensor) -> tuple[Tensor, None, None, None, None]:
        gradient, link = ctx.saved_tensors
        scaled: Tensor = _ScaleOnce.apply(gradient, upstream[0], link, ctx.multiply)  # type: ignore[no-untyped-call]
        return scaled, None, None, None, None


class _ScaleOnce(torch.autograd.Function):
    """Chain rule for one more step; a second derivative would silently miss the student's curvature, so refuse it."""

    generate_vmap_rule = True

    @staticmethod
    @_read_once
    def forward(gradient: Tensor, upstream: Tensor, link: Tensor, multiply: Times | None) -> Tensor:
        if multiply is None or is_transformed(gradient) or is_transformed(upstream):
            return times(gradient, upstream)
        return multiply(gradient, upstream)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, *upstream: Tensor) -> tuple[None, None, None, None]:
        raise NotImplementedError(ONCE)


class _KnownTotal(torch.autograd.Function):
    """Reduction and chain rule in one node. PyTorch binds no signature for a `forward` that takes the context."""

    @staticmethod
    def forward(
        ctx: Any,
        student: Tensor,
        link: Tensor,
        rows: Tensor,
        gradient: Tensor,
        keep: Tensor | None,
        mean: bool,
        after: After,
    ) -> Tensor:
        total, count = after.total(rows, keep, mean)
        ctx.save_for_backward(gradient, link, count)
        ctx.times = after.times
        return total

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor, None, None, None, None, None, None]:
        gradient, link, count = ctx.saved_tensors
        if torch.is_grad_enabled() or is_transformed(upstream):
            scale = upstream if count is None else upstream / count
            scaled: Tensor = _ScaleOnce.apply(gradient, scale.expand(len(gradient)), link, ctx.times)  # type: ignore[no-untyped-call]
        else:
            scaled = ctx.times(gradient, upstream, count=count)
        return scaled, None, None, None, None, None, None


# Forward differentiation, apart because a traced graph admits no jvp.


class _ForwardLink(_Link):
    @staticmethod
    def jvp(ctx: Any, *tangents: Tensor | None) -> Tensor | None:
        return None if tangents[0] is None else tangents[0].new_zeros(())


class _ForwardGradient(_KnownGradient):
    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        _KnownGradient.setup_context(ctx, inputs, output)
        ctx.save_for_forward(inputs[2])

    @staticmethod
    def jvp(ctx: Any, *tangents: Tensor | None) -> Tensor:
        gradient: Tensor = ctx.saved_tensors[0]
        assert tangents[0] is not None
        return (gradient * tangents[0]).sum(-1)
