"""The last layer and PLD as one operator: what a graph keeps whole, and autograd's view of it."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from plackett.choice.gradient import ONCE
from plackett.choice.sparse import SparseTeacher
from plackett.kernels.select import pick, pick_sparse, pick_times
from plackett.losses.linear import LinearTeacher, Options, Parts, linear_parts
from plackett.losses.rows import compute_dtype

Teacher = Tensor | LinearTeacher | SparseTeacher
_KINDS: dict[str, Any] = {"linear": LinearTeacher, "sparse": SparseTeacher}


def taken_apart(teacher: Teacher) -> tuple[str, list[Tensor | None]]:
    """Its kind and four tensors, as operators take them."""
    if isinstance(teacher, Tensor):
        return "logits", [teacher, None, None, None]
    kind = "linear" if isinstance(teacher, LinearTeacher) else "sparse"
    return kind, [*teacher, None][:4]


def _together(kind: str, parts: list[Tensor | None]) -> Teacher:
    if kind == "logits":
        assert parts[0] is not None
        return parts[0]
    made: Teacher = _KINDS[kind](*parts[: len(_KINDS[kind]._fields)])
    return made


def _parts(
    hidden: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    kind: str,
    t0: Tensor,
    t1: Tensor | None,
    t2: Tensor | None,
    t3: Tensor | None,
    target: Tensor | None,
    keep: Tensor | None,
    factor: Tensor | None,
    temperature: float,
    label_weight: float | None,
    top_k: int | None,
    chunk: int,
    impl: str,
    hidden_wanted: bool,
    weight_wanted: bool,
    bias_wanted: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """`linear_parts`, with an empty tensor for every gradient that is not wanted."""
    picked = pick(impl, hidden), pick_sparse(impl, hidden), pick_times(impl, hidden)
    options = Options(temperature, label_weight, top_k, chunk, *picked)
    wanted = (hidden_wanted, weight_wanted, bias_wanted)
    with torch.no_grad(), torch.autocast(hidden.device.type, enabled=False):
        teacher = _together(kind, [t0, t1, t2, t3])
        parts: Parts = linear_parts(hidden, weight, bias, teacher, target, keep, factor, wanted, options)
    slopes = [hidden.new_empty(0) if g is None else g for g in parts[2:]]
    return parts.loss, parts.left_out, slopes[0], slopes[1], slopes[2]


parts_op = torch.library.custom_op("plackett::linear_parts", _parts, mutates_args=())


@parts_op.register_fake
def _(hidden: Tensor, weight: Tensor, bias: Tensor | None, *rest: Any) -> tuple[Tensor, ...]:
    loss = hidden.new_empty(hidden.shape[0], dtype=compute_dtype(hidden))
    slopes = [
        hidden.new_empty(0) if g is None or not wanted else g.new_empty(g.shape)
        for g, wanted in zip((hidden, weight, bias), rest[-3:], strict=True)
    ]
    return (loss, torch.empty_like(loss), *slopes)


class FusedLinear(torch.autograd.Function):
    """sum(factor * loss) with gradients known after the forward pass; without a factor the rows, computed again."""

    @staticmethod
    def forward(
        ctx: Any, hidden: Tensor, weight: Tensor, bias: Tensor | None, factor: Tensor | None, *call: Any
    ) -> tuple[Tensor, Tensor]:
        compute = parts_op if torch.compiler.is_compiling() else _parts
        wanted = ctx.needs_input_grad[:3]
        kind, t0, t1, t2, t3, target, keep, *options = call
        known = factor is not None
        now = [known and w for w in wanted]
        loss, left_out, *slopes = compute(
            hidden, weight, bias, kind, t0, t1, t2, t3, target, keep, factor, *options, *now
        )
        ctx.known, ctx.wanted, ctx.kind, ctx.options = known, wanted, kind, options
        ctx.impl = options[-1]
        kept = slopes if known else (t0, t1, t2, t3, target, keep)
        ctx.save_for_backward(hidden, weight, bias, *kept)
        ctx.mark_non_differentiable(left_out)
        return (loss if factor is None else (loss * factor).sum()), left_out

    @staticmethod
    def backward(ctx: Any, upstream: Tensor, _: Tensor) -> Any:
        hidden, weight, bias, *kept = ctx.saved_tensors
        compiling = torch.compiler.is_compiling()
        if ctx.known:
            slopes = [_scaled(g, upstream, "eager" if compiling else ctx.impl) for g in kept]
        else:
            compute = parts_op if compiling else _parts
            call = (ctx.kind, *kept, upstream.contiguous(), *ctx.options, *ctx.wanted)
            _, _, *slopes = compute(hidden.detach(), weight.detach(), None if bias is None else bias.detach(), *call)
        if not compiling:
            slopes = [_Refusing.apply(g, upstream, hidden, weight, bias) for g in slopes]  # type: ignore[no-untyped-call]
        found = [g if wanted else None for g, wanted in zip(slopes, ctx.wanted, strict=True)]
        return (*found, *[None] * 14)


def _scaled(gradient: Tensor, upstream: Tensor, impl: str) -> Tensor:
    if gradient.numel() == 0:
        return gradient
    rows = gradient if gradient.dim() == 2 else gradient.unsqueeze(0)  # the bias's
    return pick_times(impl, rows)(rows, upstream.expand(len(rows))).view_as(gradient)


class _Refusing(torch.autograd.Function):
    """The gradient as it is; differentiated again it would silently miss the layer's own curvature, so refuse."""

    @staticmethod
    def forward(ctx: Any, gradient: Tensor, *inputs: Tensor | None) -> Tensor:
        return gradient

    @staticmethod
    def backward(ctx: Any, *upstream: Tensor) -> None:
        raise NotImplementedError(ONCE)
