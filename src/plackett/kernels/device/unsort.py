"""A run's gradient from the teacher's order to that of classes, through shared memory: the last launch of `long`.

Stored straight to their classes, a part's numbers would lie all over the row, two bytes here and there, of more rows
than the cache holds: a sector of 32 bytes to and from memory for each.
"""

import triton
import triton.language as tl

from plackett.kernels.device.exchange import buffer, exchange


@triton.jit
def unsort_kernel(
    by_rank,  # [rows, classes], by run and rank in it
    place,
    keep,
    gradient,
    keep_step,
    units,  # classes / ALIGN
    runs,
    ALIGN: tl.constexpr,
    N: tl.constexpr,
    KEEP: tl.constexpr,
    PTX: tl.constexpr,
):
    SIZE: tl.constexpr = 1 << N
    row = (tl.program_id(0) // runs).to(tl.int64)
    first = (tl.program_id(0) % runs) * SIZE
    classes = units * ALIGN
    cols = tl.arange(0, SIZE)
    inside = first + cols < classes
    begin = row * classes + first
    half = gradient.dtype.element_ty
    counts = True
    if KEEP:
        counts = tl.load(keep + row * keep_step) != 0
    if counts:
        g = tl.load(by_rank + begin + cols, mask=inside, other=0.0).to(tl.float32)
        to = tl.load(place + begin + cols, mask=inside, other=0).to(tl.int32)
        if PTX:
            g = exchange(buffer(SIZE, PTX), g, tl.where(inside, to, cols), cols)
            tl.store(gradient + begin + cols, g.to(half), mask=inside)
        else:
            tl.store(gradient + begin + to, g.to(half), mask=inside)
    else:
        tl.store(gradient + begin + cols, tl.zeros([SIZE], tl.float32).to(half), mask=inside)
