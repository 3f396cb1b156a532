"""PLD of a last layer's logits without ever holding them: a chunk of tokens at a time, loss and gradients at once."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from plackett.choice import Times
from plackett.choice.sparse import SparseTeacher
from plackett.losses.plackett_luce import Rows, RowsFunction
from plackett.losses.rows import compute_dtype
from plackett.losses.sparse import SparseRowsFunction

_LOGITS = 1 << 26  # of a chunk, unless somebody says how many tokens
_BLOCK = 1 << 14  # classes of the weight whose gradient is added to at once


class LinearTeacher(NamedTuple):
    """What a teacher's last layer reads and holds: `hidden` `[..., D]`, `weight` `[V, D]`, `bias` `[V]` or None."""

    hidden: Tensor
    weight: Tensor
    bias: Tensor | None = None


class Options(NamedTuple):
    """What stays the same from chunk to chunk."""

    temperature: float
    label_weight: float | None
    top_k: int | None
    chunk: int
    whole: RowsFunction
    sparse: SparseRowsFunction
    multiply: Times


class Parts(NamedTuple):
    """Loss and weight left out of every row `[N]`, and the gradients of sum(factor * loss) that were asked for."""

    loss: Tensor
    left_out: Tensor
    hidden: Tensor | None
    weight: Tensor | None
    bias: Tensor | None


def tokens_a_chunk(classes: int) -> int:
    return max(1, _LOGITS // classes)


def linear_parts(
    hidden: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    teacher: Tensor | LinearTeacher | SparseTeacher,
    target: Tensor | None,
    keep: Tensor | None,
    factor: Tensor | None,
    wanted: tuple[bool, bool, bool],
    options: Options,
) -> Parts:
    """Everything, in chunks of tokens. `factor` `[N]` or `[]` multiplies the rows in the gradients; None wants none."""
    n = hidden.shape[0]
    dtype = compute_dtype(hidden)
    loss = torch.empty(n, dtype=dtype, device=hidden.device)
    left_out = torch.empty_like(loss)
    of_hidden, of_weight, of_bias = (w and factor is not None for w in wanted)
    d_hidden = torch.empty_like(hidden) if of_hidden else None
    d_weight = torch.zeros(weight.shape, dtype=dtype, device=weight.device) if of_weight else None
    d_bias = torch.zeros(weight.shape[0], dtype=dtype, device=weight.device) if of_bias else None
    for start in range(0, n, options.chunk):
        rows = slice(start, start + options.chunk)
        h = hidden[rows]
        logits = torch.nn.functional.linear(h, weight, bias)
        part = _rows(logits, teacher, target, keep, rows, of_hidden or of_weight or of_bias, options)
        del logits
        loss[rows], left_out[rows] = part.loss, part.left_out
        slope = part.gradient
        if slope is None or factor is None:
            continue
        scale = factor.expand(len(slope)) if factor.dim() == 0 else factor[rows]
        slope = options.multiply(slope, scale, out=slope)
        if d_hidden is not None:
            torch.mm(slope, weight, out=d_hidden[rows])
        if d_weight is not None:
            _add_product(d_weight, slope, h)
        if d_bias is not None:
            d_bias += slope.sum(0, dtype=dtype)
    return Parts(
        loss,
        left_out,
        d_hidden,
        None if d_weight is None else d_weight.to(weight.dtype),
        None if d_bias is None or bias is None else d_bias.to(bias.dtype),
    )


def _rows(
    logits: Tensor,
    teacher: Tensor | LinearTeacher | SparseTeacher,
    target: Tensor | None,
    keep: Tensor | None,
    rows: slice,
    gradient: bool,
    options: Options,
) -> Rows:
    y = None if target is None else target[rows]
    counts = None if keep is None else keep[rows]
    label_weight = None if target is None else options.label_weight
    if isinstance(teacher, SparseTeacher):
        kept = SparseTeacher(*(None if x is None else x[rows] for x in teacher))  # type: ignore[arg-type]
        return options.sparse(
            logits,
            kept,
            y,
            counts,
            temperature=options.temperature,
            label_weight=label_weight,
            gradient=gradient,
        )
    if isinstance(teacher, LinearTeacher):
        teacher_logits = torch.nn.functional.linear(teacher.hidden[rows], teacher.weight, teacher.bias)
    else:
        teacher_logits = teacher[rows]
    return options.whole(
        logits,
        teacher_logits,
        y,
        counts,
        temperature=options.temperature,
        weights="teacher",
        label_weight=label_weight,
        top_k=options.top_k,
        gradient=gradient,
    )


def _add_product(total: Tensor, slope: Tensor, hidden: Tensor) -> None:
    """total += slope^T hidden, `[V, D]`, added up in `total`'s precision whatever that of the factors."""
    if slope.dtype == total.dtype:
        total.addmm_(slope.t(), hidden)
        return
    if slope.is_cuda and torch.version.cuda is not None:
        # The matrix units add up in float32 anyway; into `total` itself, so that no product is written apart.
        torch.addmm(total, slope.t(), hidden, out_dtype=total.dtype, out=total)
        return
    for start in range(0, total.shape[0], _BLOCK):
        block = slice(start, start + _BLOCK)
        total[block].addmm_(slope[:, block].t().to(total.dtype), hidden.to(total.dtype))
