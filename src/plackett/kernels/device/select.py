"""Where the first `wanted` of a row end, without sorting it.

The largest logits of 2^n interleaved slots are kept while the row streams by. At least `wanted` logits are as large as
the `wanted`-th largest of those, and few more are: it is found by halving the integers that rise as logits fall.
"""

import triton
import triton.language as tl

_LAST = tl.constexpr(0x7FFFFFFF)


@triton.jit
def falling32(t):
    """Integers that rise as float32 logits fall; -0.0 ties with 0.0."""
    bits = t.to(tl.int32, bitcast=True)
    bits = tl.where(bits == -0x80000000, 0, bits)
    return ~bits ^ ((bits >> 31) & 0x7FFFFFFF)


@triton.jit
def rising32(falling):
    bits = ~falling
    return (bits ^ ((bits >> 31) & 0x7FFFFFFF)).to(tl.float32, bitcast=True)


@triton.jit
def nth_smallest(x, wanted, SPARE: tl.constexpr):
    """An int32 that at least `wanted` of `x` do not exceed: the smallest, but for the last `SPARE` bits."""
    x = x >> SPARE
    low, high = tl.min(x, 0).to(tl.int64), tl.max(x, 0).to(tl.int64)
    while low < high:
        middle = (low + high) >> 1
        if tl.sum((x <= middle).to(tl.int32), 0) >= wanted:
            high = middle
        else:
            low = middle + 1
    return (low.to(tl.int32) << SPARE) | ((1 << SPARE) - 1)


@triton.jit
def exact_end(t_row, t_col, label, classes, wanted, BLOCK: tl.constexpr, CHUNKS: tl.constexpr):
    """Logit and index of the `wanted`-th offered class that is not the label: for rows with too many ties to hold."""
    cols = tl.arange(0, BLOCK)
    low = tl.full((), -0x80000000, tl.int64)
    high = tl.full((), _LAST, tl.int64)
    while low < high:
        middle = (low + high) >> 1
        count = 0
        for chunk in range(CHUNKS):
            c = chunk * BLOCK + cols
            t = tl.load(t_row + c * t_col, mask=c < classes, other=-float("inf")).to(tl.float32)
            count += tl.sum(((falling32(t) <= middle) & (t > -float("inf")) & (c != label)).to(tl.int32), 0)
        if count >= wanted:
            high = middle
        else:
            low = middle + 1
    end = low.to(tl.int32)
    first = 0
    last = classes - 1
    while first < last:
        index = (first + last) >> 1
        count = 0
        for chunk in range(CHUNKS):
            c = chunk * BLOCK + cols
            t = tl.load(t_row + c * t_col, mask=c < classes, other=-float("inf")).to(tl.float32)
            f = falling32(t)
            in_front = (f < end) | ((f == end) & (c <= index))
            count += tl.sum((in_front & (t > -float("inf")) & (c != label)).to(tl.int32), 0)
        if count >= wanted:
            last = index
        else:
            first = index + 1
    return end, first
