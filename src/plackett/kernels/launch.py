"""One launch a kernel: grids, strides, and how a row is laid over threads."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from plackett.kernels.launching import flags, has_ptx, interpreted, start, where_it_lies

MODES = {"teacher": 0, "uniform": 1, "position": 2}
_PER_THREAD = 16  # logits a thread holds; 8 and 32 were slower
_REGISTERS = 64  # a thread; the general rows spill then, and the others overlap better
_WARP = 32
_LONG = 16384  # classes
# float32 bits that no logit of a dtype uses; the first of any are then found without them
SPARE_BITS = {torch.float32: 0, torch.float16: 13, torch.bfloat16: 16}


@where_it_lies
def launch_exact(
    student: Tensor,
    teacher: Tensor,
    target: Tensor | None,
    keep: Tensor | None,
    temperature: float,
    weights: str,
    rank_weights: Tensor | None,
    label_weight: float | None,
    kept: int,
    want_gradient: bool,
    per_thread: int = _PER_THREAD,
    maxnreg: int = _REGISTERS,
    ptx: bool | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Loss `[N]`, gradient `[N, C]` (empty where not wanted) and weight left out `[N]`."""
    from plackett.kernels.device.exact import exact_kernel

    n, classes = student.shape
    loss = torch.empty(n, dtype=torch.float32, device=student.device)
    left_out = torch.empty_like(loss)
    gradient = torch.empty((n, classes) if want_gradient else 0, dtype=student.dtype, device=student.device)
    if n == 0:
        return loss, gradient, left_out

    bits = max(6, (classes - 1).bit_length())
    warps = max(1, (1 << bits) // (_WARP * per_thread))
    lanes = _WARP * warps
    register_bits = bits - lanes.bit_length() + 1
    align = alignment(student, teacher)
    vector = min(align, 16 // min(student.element_size(), teacher.element_size()), (1 << bits) // lanes)
    options = {} if interpreted() else {"maxnreg": maxnreg}
    counting, counting_step = flags(keep)
    start(
        exact_kernel,
        n,
        student,
        teacher,
        target,
        counting,
        rank_weights,
        loss,
        gradient,
        left_out,
        student.stride(0) // align,
        student.stride(1),
        teacher.stride(0) // align,
        teacher.stride(1),
        0 if target is None else target.stride(0),
        counting_step,
        classes // align,
        kept,
        1.0 / temperature,
        0.0 if label_weight is None else float(label_weight),
        ALIGN=align,
        N=bits,
        LANES=lanes,
        VEC=vector,
        REGISTERS=bits if interpreted() else register_bits,
        MODE=3 if rank_weights is not None else MODES[weights],
        LABELLED=target is not None,
        FLOOR=label_weight is not None,
        KEEP=keep is not None,
        PARTIAL=kept < classes,
        GRADIENT=want_gradient,
        PTX=has_ptx() if ptx is None else ptx,
        num_warps=warps,
        **options,
    )
    return loss, gradient, left_out


@where_it_lies
def launch_topk(
    student: Tensor,
    teacher: Tensor,
    target: Tensor | None,
    keep: Tensor | None,
    temperature: float,
    weights: str,
    rank_weights: Tensor | None,
    label_weight: float | None,
    kept: int,
    want_gradient: bool,
    block: int | None = None,
    warps: int = 1,
    maxnreg: int = 128,
) -> tuple[Tensor, Tensor, Tensor]:
    """The same for the first `kept` choices alone, over rows of any length."""
    from plackett.kernels.device.topk import topk_kernel

    n, classes = student.shape
    loss = torch.empty(n, dtype=torch.float32, device=student.device)
    left_out = torch.empty_like(loss)
    gradient = torch.empty((n, classes) if want_gradient else 0, dtype=student.dtype, device=student.device)
    if n == 0:
        return loss, gradient, left_out

    slots = max(5, (2 * kept - 1).bit_length())  # twice as many as are wanted, for those that tie with the last
    if block is None:
        # Measured on one H200: long rows want many warps and what few registers that leaves, short ones the opposite.
        block, warps, maxnreg = (4096, 16, 64) if classes > _LONG else (2048, 4, 128)
    align = alignment(student, teacher)
    options = {} if interpreted() else {"maxnreg": maxnreg}
    counting, counting_step = flags(keep)
    start(
        topk_kernel,
        n,
        student,
        teacher,
        target,
        counting,
        rank_weights,
        torch.empty(n, 1 << slots, dtype=torch.int32, device=student.device),
        torch.empty(n, dtype=torch.int32, device=student.device),
        loss,
        gradient,
        left_out,
        student.stride(0) // align,
        student.stride(1),
        teacher.stride(0) // align,
        teacher.stride(1),
        0 if target is None else target.stride(0),
        counting_step,
        classes // align,
        kept,
        1.0 / temperature,
        0.0 if label_weight is None else float(label_weight),
        ALIGN=align,
        BLOCK=block,
        CHUNKS=-(-classes // block),
        SLOTS=slots,
        SPARE=SPARE_BITS[teacher.dtype],
        MODE=3 if rank_weights is not None else MODES[weights],
        LABELLED=target is not None,
        FLOOR=label_weight is not None,
        KEEP=keep is not None,
        GRADIENT=want_gradient,
        PTX=has_ptx(),
        num_warps=warps,
        **options,
    )
    return loss, gradient, left_out


def reachable(logits: Tensor) -> Tensor:
    """The kernels count in 32 bits within a row and from one to the next; what lies farther apart is copied."""
    apart = max(logits.stride(0), logits.shape[1] * logits.stride(1))
    return logits if apart < 1 << 31 else logits.contiguous()


def alignment(student: Tensor, teacher: Tensor) -> int:
    """The largest power of two, up to 16, that divides the classes and the rows' strides."""
    common = math.gcd(16, student.shape[1], student.stride(0), teacher.stride(0))
    return common if student.stride(1) == teacher.stride(1) == 1 else 1
