"""What comes after the rows: their one number, and the gradient times what comes from upstream."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from plackett.choice import times
from plackett.kernels.launching import flags, start, where_it_lies

_NUMBERS = 4096  # a program multiplies
_NUMBERS_A_WARP = 512
_FEW_ROWS = 1024


@where_it_lies
def launch_times(gradient: Tensor, scale: Tensor, out: Tensor | None = None, count: Tensor | None = None) -> Tensor:
    """`gradient` `[N, C]` times `scale` `[N]` or `[]`, over `count` `[]`; `out` may be the gradient itself."""
    from plackett.kernels.device.times import times_kernel

    if not gradient.is_contiguous():
        return times(gradient, (scale if count is None else scale / count).expand(len(gradient)), out)
    n, classes = gradient.shape
    out = torch.empty_like(gradient) if out is None else out
    if gradient.numel() == 0:
        return out
    block = min(_NUMBERS, max(128, 1 << (classes - 1).bit_length()))
    blocks = -(-classes // block)
    align = math.gcd(16, classes)
    start(
        times_kernel,
        n * blocks,
        gradient,
        scale,
        count,
        out,
        scale.stride(0) if scale.dim() else 0,
        classes // align,
        blocks,
        ALIGN=align,
        BLOCK=block,
        COUNTED=count is not None,
        num_warps=max(1, block // _NUMBERS_A_WARP),
    )
    return out


@where_it_lies
def launch_total(loss: Tensor, keep: Tensor | None, mean: bool) -> tuple[Tensor, Tensor | None]:
    """Sum of `loss` `[N]`, which is 0 where `keep` is not, or its mean over the rows that count; and their number."""
    from plackett.kernels.device.total import total_kernel

    total = torch.empty((), dtype=torch.float32, device=loss.device)
    count = torch.empty_like(total) if mean else None
    block, warps = (_FEW_ROWS, 4) if len(loss) <= _FEW_ROWS else (8 * _FEW_ROWS, 32)
    counting, counting_step = flags(keep)
    start(
        total_kernel,
        1,
        loss,
        counting,
        total,
        count,
        counting_step,
        len(loss),
        KEEP=keep is not None,
        MEAN=mean,
        BLOCK=block,
        num_warps=warps,
    )
    return total, count
