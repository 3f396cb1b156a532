"""Rows of a gradient times one number each, rounded once: a float32 product that is never written."""

import triton
import triton.language as tl


@triton.jit
def times_kernel(
    gradient,
    scale,
    count,  # one float32 that divides every scale, or None
    out,
    scale_step,
    units,  # classes / ALIGN
    blocks,  # a row
    ALIGN: tl.constexpr,
    BLOCK: tl.constexpr,
    COUNTED: tl.constexpr,
):
    row = (tl.program_id(0) // blocks).to(tl.int64)
    classes = units * ALIGN
    cols = (tl.program_id(0) % blocks) * BLOCK + tl.arange(0, BLOCK)
    inside = cols < classes
    factor = tl.load(scale + row * scale_step).to(tl.float32)
    if COUNTED:
        factor = tl.div_rn(factor, tl.load(count))
    g = tl.load(gradient + row * classes + cols, mask=inside, other=0.0).to(tl.float32)
    tl.store(out + row * classes + cols, (g * factor).to(out.dtype.element_ty), mask=inside)
