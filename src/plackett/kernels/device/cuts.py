"""Where in every sorted run the first q of the whole row end: the second of four launches of `long`.

The logit of the q-th class lies between the runs' own logits at the same share of each. It is found by halving what
lies between, counting in each run by halving too, between what the last two counts left open. Of the classes that share
that logit the first runs', which are the lower classes, are taken.
"""

import triton
import triton.language as tl

from plackett.kernels.device.select import falling32


@triton.jit
def _key(run, at, real, SPARE: tl.constexpr):
    return falling32(tl.load(run + at, mask=real, other=0.0).to(tl.float32)) >> SPARE


@triton.jit
def _counts(run, low, high, bound, SPARE: tl.constexpr):
    """How many of each run are not beyond `bound`, known to lie in [low, high]."""
    while tl.max(high - low, 0) > 0:
        middle = (low + high) >> 1
        open_ = low < high
        key = _key(run, middle, open_, SPARE)
        near = key <= bound
        low = tl.where(open_ & near, middle + 1, low)
        high = tl.where(open_ & (near == 0), middle, high)
    return low


@triton.jit
def cuts_kernel(
    by_teacher,
    keep,
    cuts,  # [rows, parts + 1, RUNS] int32
    keep_step,
    classes,
    parts,
    N: tl.constexpr,  # log2 of a run
    PART: tl.constexpr,
    RUNS: tl.constexpr,  # a power of two
    SPARE: tl.constexpr,
    KEEP: tl.constexpr,
):
    row = (tl.program_id(0) // (parts + 1)).to(tl.int64)
    part = tl.program_id(0) % (parts + 1)
    counts = True
    if KEEP:
        counts = tl.load(keep + row * keep_step) != 0
    if counts:
        runs = tl.arange(0, RUNS)
        size = tl.minimum(tl.maximum(classes - (runs << N), 0), 1 << N)
        run = by_teacher + row * classes + (runs << N)
        wanted = tl.minimum(part * PART, classes)
        # Each run's own quantile, from below and from above. Were the row's beyond the largest of them, no run would
        # have its share of those wanted; were it before the smallest, every run would have more.
        real = size > 0
        share = wanted.to(tl.int64) * size
        under = tl.maximum((share + (classes - 1)) // classes - 1, 0).to(tl.int32)
        over = tl.minimum(share // classes, size - 1).to(tl.int32)
        lowest: tl.constexpr = -0x80000000 >> SPARE
        highest: tl.constexpr = 0x7FFFFFFF >> SPARE
        low = tl.min(tl.where(real, _key(run, under, real, SPARE), highest), 0).to(tl.int64)
        high = tl.max(tl.where(real, _key(run, over, real, SPARE), lowest), 0).to(tl.int64)
        # Nothing lies before the lowest key, which is a NaN's.
        below = _counts(run, size * 0, tl.where(low > lowest, size, 0), tl.maximum(low - 1, lowest).to(tl.int32), SPARE)
        above = _counts(run, below, size, high.to(tl.int32), SPARE)
        while low < high:
            middle = (low + high) >> 1
            here = _counts(run, below, above, middle.to(tl.int32), SPARE)
            if tl.sum(here, 0) >= wanted:
                high = middle
                above = here
            else:
                low = middle + 1
                below = here
        ties = above - below
        taken = wanted - tl.sum(below, 0) - (tl.cumsum(ties, 0) - ties)
        cut = below + tl.minimum(tl.maximum(taken, 0), ties)
        tl.store(cuts + (row * (parts + 1) + part) * RUNS + runs, cut)
