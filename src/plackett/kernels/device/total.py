"""The losses of all rows as one number, and how many rows count: one program, so that the order never changes."""

import triton
import triton.language as tl


@triton.jit
def total_kernel(
    loss,  # [rows] float32, 0 where a row does not count
    keep,
    total,
    count,
    keep_step,
    rows,
    KEEP: tl.constexpr,
    MEAN: tl.constexpr,
    BLOCK: tl.constexpr,
):
    each = tl.arange(0, BLOCK)
    value = tl.zeros([BLOCK], tl.float32)
    counted = tl.zeros([BLOCK], tl.int32)
    start = tl.full((), 0, tl.int32)
    while start < rows:
        row = start + each
        inside = row < rows
        value += tl.load(loss + row, mask=inside, other=0.0)
        if KEEP:
            counted += (tl.load(keep + row.to(tl.int64) * keep_step, mask=inside, other=0) != 0).to(tl.int32)
        else:
            counted += inside.to(tl.int32)
        start += BLOCK
    whole = tl.sum(value, 0)
    if MEAN:
        # At least 1, so that a batch in which nothing counts is 0, not NaN.
        many = tl.maximum(tl.sum(counted, 0), 1).to(tl.float32)
        tl.store(count, many)
        whole = tl.div_rn(whole, many)
    tl.store(total, whole)
