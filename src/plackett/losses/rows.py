"""From a loss a row to the number a user asked for: which rows count, and what divides them."""

from __future__ import annotations

import math
import numbers
from typing import Literal, SupportsFloat

import torch
from torch import Tensor

from plackett.errors import InputError, did_you_mean
from plackett.tracing import may_look

Reduction = Literal["mean", "sum", "none"]


def rows_that_count(target: Tensor | None, mask: Tensor | None, ignore_index: int = -100) -> Tensor | None:
    """`[...]` bool, True = counts; None where every row is known to, without having to wait for a device."""
    keep = None
    if target is not None and not target.is_floating_point():
        keep = target.long() != ignore_index  # an unsigned -100 would be somebody's label
    if mask is not None:
        keep = mask if keep is None else keep & mask
    return None if keep is not None and may_look(keep) and bool(keep.all()) else keep


def rows_with_label(target: Tensor, ignore_index: int = -100) -> Tensor:
    """`[...]` bool, True = a label is known; in a soft target a row of zeros says that none is.

    >>> rows_with_label(torch.tensor([2, -100])), rows_with_label(torch.tensor([[0.5, 0.5], [0.0, 0.0]]))
    (tensor([ True, False]), tensor([ True, False]))
    """
    return target.sum(-1) > 0 if target.is_floating_point() else target.long() != ignore_index


def labels_that_count(target: Tensor, keep: Tensor | None) -> Tensor:
    """Labels as int64, 0 in rows that do not count, so that every one of them can be looked up."""
    return target.long() if keep is None else torch.where(keep, target.long(), 0)


def keep_rows(logits: Tensor, keep: Tensor | None) -> Tensor:
    """`logits` `[..., C]` with zeros in rows that do not count, so that whatever stands there reaches nobody."""
    return logits if keep is None else torch.where(keep.unsqueeze(-1), logits, 0.0)


def reduce_rows(
    rows: Tensor, keep: Tensor | None = None, reduction: Reduction = "mean", num_items: float | Tensor | None = None
) -> Tensor:
    """Reduces a loss a row; "mean" is over the rows that count, or over `num_items` where it is given.

    >>> reduce_rows(torch.tensor([1.0, 3.0, 100.0]), torch.tensor([True, True, False]))
    tensor(2.)
    """
    if keep is not None:
        rows = torch.where(keep, rows, 0.0)
    if reduction == "none":
        return rows
    total = rows.sum()
    return total if reduction == "sum" else total / divisor(rows, keep, num_items)


def reduce_batch(
    who: str,
    mean: Tensor,
    rows: int | Tensor,
    reduction: Reduction = "mean",
    num_items: float | Tensor | None = None,
) -> Tensor:
    """Reduces a loss that couples the rows of a batch, and so has no value a row.

    "mean" is the batch's own value, "sum" is that times the `rows` that count, and `num_items` divides the sum.

    >>> reduce_batch("sp", torch.tensor(0.5), 4, num_items=8)
    tensor(0.2500)
    """
    no_rows(who, reduction)
    if reduction == "sum":
        return mean * rows
    return mean if num_items is None else mean * rows / _items(num_items)


def no_rows(who: str, reduction: str) -> None:
    """Refuses a reduction that needs a value a row."""
    if reduction == "none":
        raise InputError(
            f"{who}: reduction 'none' needs a value a row, and it gives one number a batch; use mean or sum."
        )
    if reduction not in ("mean", "sum"):
        raise InputError(f"{who}: unknown reduction {reduction!r}; {did_you_mean(reduction, ('mean', 'sum'))}.")


def divisor(rows: Tensor, keep: Tensor | None, num_items: float | Tensor | None) -> float | Tensor:
    """What a mean divides by; at least 1, so that a batch in which nothing counts is a zero with a graph, not NaN."""
    if num_items is not None:
        return _items(num_items)
    return max(1, rows.numel()) if keep is None else keep.sum().clamp_min(1)


def _items(num_items: float | Tensor) -> float | Tensor:
    number = num_items
    if isinstance(num_items, Tensor) and num_items.numel() == 1:
        num_items = num_items.reshape(())
        number = num_items.item() if may_look(num_items) else 1
    if isinstance(number, Tensor | bool) or not isinstance(number, SupportsFloat) or not 0 < number < math.inf:
        said = list(number.shape) if isinstance(number, Tensor) else number
        raise InputError(
            f"num_items must be one finite number above 0 (how many rows the loss is divided by); not {said!r}."
        )
    return num_items


def is_number(value: object) -> bool:
    """Whether an option holds one finite number, of Python or of NumPy.

    >>> is_number(1), is_number(True), is_number(math.nan), is_number("1")
    (True, False, False, False)
    """
    return not isinstance(value, bool) and isinstance(value, numbers.Real) and math.isfinite(value)


def compute_dtype(*tensors: Tensor) -> torch.dtype:
    """Half precision in, float32 inside; float64 stays."""
    return torch.float64 if any(t.dtype == torch.float64 for t in tensors) else torch.float32
