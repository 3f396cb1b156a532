"""PLD for vocabularies: a teacher that kept its first K choices, a last layer whose logits are never held whole.

>>> import torch
>>> student, teacher = torch.tensor([[2.0, 1.0, 0.0]]), torch.tensor([[3.0, 1.0, 2.0]])
>>> kept = SparseTeacher.of(teacher, torch.tensor([0]), k=2)
>>> sparse_pld(student, kept, torch.tensor([0]))
tensor(0.5925)
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, cast

import torch
from torch import Tensor, nn

from plackett import checks_vocabulary as checks
from plackett.choice.sparse import SparseTeacher
from plackett.errors import UnknownOptionError, did_you_mean
from plackett.kernels import pick_sparse
from plackett.losses import linear, sparse
from plackett.losses.linear import LinearTeacher
from plackett.losses.registry import PER_CALL
from plackett.losses.rows import Reduction, compute_dtype, divisor, rows_that_count

__all__ = [
    "FusedLinearPLDLoss",
    "LinearTeacher",
    "SparsePLDLoss",
    "SparseTeacher",
    "fused_linear_pld",
    "sparse_pld",
]


def sparse_pld(
    student: Tensor,
    teacher: SparseTeacher,
    target: Tensor | None = None,
    *,
    temperature: float = 1.0,
    label_weight: float | None = None,
    return_left_out: bool = False,
    mask: Tensor | None = None,
    num_items: float | Tensor | None = None,
    ignore_index: int = -100,
    reduction: Reduction = "mean",
    impl: str = "auto",
) -> Tensor | tuple[Tensor, Tensor]:
    """`pld(top_k=K)` from a teacher of which only the first K logits were kept, as a cache on disk keeps them.

    Args:
        student: logits `[..., C]`.
        teacher: `SparseTeacher(values, indices, rest, label_logit)`; see there. Classes outside the indices count as
            offered unless the rest is -inf.
        target: labels `[...]`, or None where none is known.
        temperature: tau, the one at which the teacher's rest was summed.
        label_weight: at least this weight for the label's own choice; None is the paper.
        return_left_out: return `(loss, left_out)`, with the weight a row that the K choices left uncharged.
        mask: `[...]` bool, True = counts.
        num_items: divides instead of the number of rows that count.
        ignore_index: label of rows that do not count.
        reduction: "mean" over the rows that count, "sum" or "none".
        impl: which implementation computes it.

    >>> student, teacher = torch.tensor([[2.0, 1.0, 0.0, 1.5]]), torch.tensor([[3.0, 1.0, 2.0, 0.0]])
    >>> target = torch.tensor([3])
    >>> sparse_pld(student, SparseTeacher.of(teacher, target, k=2), target)
    tensor(0.3024)
    """
    who = "sparse_pld"
    checks.sparse_call(who, student, teacher, target, mask, ignore_index)
    checks.options(who, {"temperature": temperature, "label_weight": label_weight}, reduction, target)
    result: Tensor | tuple[Tensor, Tensor] = sparse.sparse_pld(
        student,
        teacher,
        target,
        temperature=temperature,
        label_weight=label_weight,
        return_left_out=return_left_out,
        mask=mask,
        num_items=num_items,
        ignore_index=ignore_index,
        reduction=reduction,
        impl=pick_sparse(impl, student),
    )
    return result


def fused_linear_pld(
    hidden: Tensor,
    weight: Tensor,
    teacher: Tensor | LinearTeacher | SparseTeacher,
    target: Tensor | None = None,
    bias: Tensor | None = None,
    *,
    top_k: int | None = None,
    temperature: float = 1.0,
    label_weight: float | None = None,
    chunk: int | None = None,
    return_left_out: bool = False,
    mask: Tensor | None = None,
    num_items: float | Tensor | None = None,
    ignore_index: int = -100,
    reduction: Reduction = "mean",
    impl: str = "auto",
) -> Tensor | tuple[Tensor, Tensor]:
    """`pld(hidden @ weight.T + bias, teacher, target)`, where the student's `[tokens, V]` logits are never held whole.

    Tokens are taken in chunks; loss and gradients of a chunk are computed together and its logits forgotten. The
    weight's gradient is added up in float32. With reduction "none" the chunks are computed again in backward.

    Args:
        hidden: what the student's last layer reads, `[..., D]`.
        weight: that layer's weight, `[V, D]`.
        teacher: logits `[..., V]`; or `LinearTeacher(hidden, weight, bias)`, whose logits are never held whole
            either; or a `SparseTeacher`, which says how many choices are charged.
        target: labels `[...]`, or None where none is known.
        bias: that layer's bias, `[V]`.
        top_k: charge only the first so many choices; None is all of them. A sparse teacher has its own.
        temperature: tau in the weights a_k = softmax(t / tau)[pi_k].
        label_weight: at least this weight for the label's own choice; None is the paper.
        chunk: tokens at a time; by default so many that a chunk has about 2^26 logits.
        return_left_out: return `(loss, left_out)`, with the weight a row that was left uncharged.
        mask: `[...]` bool, True = counts.
        num_items: divides instead of the number of rows that count.
        ignore_index: label of rows that do not count.
        reduction: "mean" over the rows that count, "sum" or "none".
        impl: which implementation computes a chunk.

    >>> hidden, weight = torch.tensor([[1.0, 2.0]]), torch.tensor([[0.0, 1.0], [1.0, 0.0], [0.0, 0.0]])
    >>> fused_linear_pld(hidden, weight, torch.tensor([[3.0, 1.0, 2.0]]), torch.tensor([0]))
    tensor(0.5925)
    """
    from plackett.kernels.linear import FusedLinear, taken_apart  # an operator, which takes a moment to register

    who = "fused_linear_pld"
    checks.linear_call(who, hidden, weight, bias, teacher, target, mask, ignore_index, top_k)
    numbers = {"temperature": temperature, "label_weight": label_weight, "top_k": top_k, "chunk": chunk}
    checks.options(who, numbers, reduction, target)
    device = hidden.device.type
    if torch.is_autocast_enabled(device):
        dtype = torch.get_autocast_dtype(device)
        hidden, weight, bias = hidden.to(dtype), weight.to(dtype), None if bias is None else bias.to(dtype)
    shape = hidden.shape[:-1]
    keep = rows_that_count(target, mask, ignore_index)
    flat_keep = None if keep is None else keep.reshape(-1)
    y = None if target is None else target.reshape(-1)
    flat_hidden = hidden.reshape(-1, hidden.shape[-1])
    factor = None
    if reduction != "none":
        one = torch.ones((), dtype=compute_dtype(hidden), device=hidden.device)
        factor = one if reduction == "sum" else one / divisor(flat_hidden[:, 0], flat_keep, num_items)
    kind, parts = taken_apart(_flat_teacher(teacher))
    chunk = linear.tokens_a_chunk(weight.shape[0]) if chunk is None else chunk
    call = (kind, *parts, y, flat_keep, temperature, label_weight, top_k, chunk, impl)
    value, left_out = FusedLinear.apply(flat_hidden, weight, bias, factor, *call)  # type: ignore[no-untyped-call]
    result = cast(Tensor, value.reshape(shape) if reduction == "none" else value)
    return (result, left_out.reshape(shape)) if return_left_out else result


def _flat_teacher(teacher: Tensor | LinearTeacher | SparseTeacher) -> Tensor | LinearTeacher | SparseTeacher:
    if isinstance(teacher, SparseTeacher):
        return sparse.flat(teacher)
    if isinstance(teacher, LinearTeacher):
        hidden = teacher.hidden.detach().reshape(-1, teacher.hidden.shape[-1])
        return LinearTeacher(hidden, teacher.weight.detach(), None if teacher.bias is None else teacher.bias.detach())
    return teacher.detach().reshape(-1, teacher.shape[-1])


class _Held(nn.Module):
    """A function with its options held; tensors, `mask` and `num_items` are given to every call."""

    function: Callable[..., Any]

    def __init__(self, **options: Any) -> None:
        super().__init__()
        known = [
            n
            for n, p in inspect.signature(self.function).parameters.items()
            if p.kind is p.KEYWORD_ONLY and n not in PER_CALL
        ]
        for name in options:
            if name not in known:
                raise UnknownOptionError(f"{type(self).__name__} has no option {name!r}; {did_you_mean(name, known)}.")
        numbers: dict[str, Any] = {
            n: options[n] for n in ("temperature", "label_weight", "top_k", "chunk") if n in options
        }
        checks.options(type(self).__name__, numbers, options.get("reduction", "mean"), True)
        self.options = options

    def forward(self, *tensors: Any, **call: Any) -> Any:
        return type(self).function(*tensors, **self.options, **call)

    def extra_repr(self) -> str:
        return ", ".join(f"{name}={value!r}" for name, value in self.options.items())


class SparsePLDLoss(_Held):
    """`sparse_pld` as a module, with its options and defaults; call it with `(student, teacher, target)`.

    >>> SparsePLDLoss(temperature=2.0)
    SparsePLDLoss(temperature=2.0)
    """

    function = staticmethod(sparse_pld)


class FusedLinearPLDLoss(_Held):
    """`fused_linear_pld` as a module; call it with `(hidden, weight, teacher, target, bias)`.

    >>> FusedLinearPLDLoss(top_k=64)
    FusedLinearPLDLoss(top_k=64)
    """

    function = staticmethod(fused_linear_pld)
