"""The teacher's order of a row, by sorting integers that rise as logits fall.

Half precision: 16 bits of logit and 16 of class index make one 32-bit key, and one sort is exact. float32: two sorts,
low half first; the second is stable because its index is the rank in the first. Ties therefore go to the lower index.
Up to 1024 float32 classes, one sort in fixed point is right for most rows of normal logits: it is tried, and checked.

A label comes before everything. The padding comes last, since it is loaded as -inf and its indices are the highest.
"""

import triton
import triton.language as tl

from plackett.kernels.device.exchange import gather
from plackett.kernels.device.network import sort
from plackett.kernels.device.scans import max_before, whole

_FINE = tl.constexpr(10)


@triton.jit
def deal(x, N: tl.constexpr, LANES: tl.constexpr, VEC: tl.constexpr):
    """`[2^N]` by class to the hypercube, without moving anything where threads load `VEC` classes at a time."""
    x = tl.permute(tl.reshape(x, [(1 << N) // (LANES * VEC), LANES, VEC]), (1, 0, 2))
    return tl.reshape(x, [2] * N)


@triton.jit
def ranks(N: tl.constexpr):
    return tl.reshape(tl.arange(0, 1 << N), [2] * N)


@triton.jit
def _order_half(t, cols, label, base, N: tl.constexpr, LANES: tl.constexpr, VEC: tl.constexpr,
                REGISTERS: tl.constexpr, LABELLED: tl.constexpr, PTX: tl.constexpr):  # fmt: skip
    bits = t.to(tl.int16, bitcast=True).to(tl.int32)
    bits = tl.where(bits == -0x8000, 0, bits)  # -0.0 ties with 0.0
    falling = ~bits ^ ((bits >> 31) & 0x7FFF)
    if LABELLED:
        falling = tl.where(cols == label, -0x8000, falling)
    key = sort(deal((falling << 16) | cols, N, LANES, VEC), base, N, REGISTERS, PTX)
    rising = ~(key >> 16)
    bits = rising ^ ((rising >> 31) & 0x7FFF)
    return key & 0xFFFF, bits.to(tl.int16).to(t.dtype, bitcast=True).to(tl.float32)


@triton.jit
def _order_single(t, cols, label, base, N: tl.constexpr, LANES: tl.constexpr, VEC: tl.constexpr,
                  REGISTERS: tl.constexpr, LABELLED: tl.constexpr, PTX: tl.constexpr):  # fmt: skip
    bits = t.to(tl.int32, bitcast=True)
    bits = tl.where(bits == -0x80000000, 0, bits)
    falling = ~bits ^ ((bits >> 31) & 0x7FFFFFFF)
    if LABELLED:
        falling = tl.where(cols == label, -0x80000000, falling)
    if N <= _FINE:
        key = sort(deal(_fixed_point(t, cols, label, N, LABELLED), N, LANES, VEC), base, N, REGISTERS, PTX)
        index = key & ((1 << N) - 1)
        by_rank = gather(base, falling, cols, index, PTX)
        wrong = whole((max_before(by_rank, N, REGISTERS) > by_rank).to(tl.int32))
        if wrong > 0:
            index, by_rank = _twice(falling, cols, base, N, LANES, VEC, REGISTERS, PTX)
    else:
        index, by_rank = _twice(falling, cols, base, N, LANES, VEC, REGISTERS, PTX)
    rising = ~by_rank
    bits = rising ^ ((rising >> 31) & 0x7FFFFFFF)
    return index, bits.to(tl.float32, bitcast=True)


@triton.jit
def _fixed_point(t, cols, label, N: tl.constexpr, LABELLED: tl.constexpr):
    """The row's range in 2^(32-N) - 3 equal steps, so that a step and an index make 32 bits: 0 is the label's."""
    steps: tl.constexpr = (1 << (32 - N)) - 1
    offered = t > -float("inf")
    top = tl.max(t, 0)
    width = top - tl.min(tl.where(offered, t, top), 0)
    step = tl.minimum((top - t) * ((steps - 4.0) / tl.maximum(width, 1e-30)), steps - 4.0).to(tl.int32) + 1
    step = tl.where(offered, step, steps)
    if LABELLED:
        step = tl.where(cols == label, 0, step)
    return ((step << N) | cols) ^ -0x80000000


@triton.jit
def _twice(falling, cols, base, N: tl.constexpr, LANES: tl.constexpr, VEC: tl.constexpr, REGISTERS: tl.constexpr,
           PTX: tl.constexpr):  # fmt: skip
    low = sort(deal(((falling ^ 0x8000) << 16) | cols, N, LANES, VEC), base, N, REGISTERS, PTX)
    falling = gather(base, falling, cols, low & 0xFFFF, PTX)
    rank = ranks(N)
    high = sort((falling & -0x10000) | rank, base, N, REGISTERS, PTX)
    low = gather(base, low, rank, high & 0xFFFF, PTX)
    return low & 0xFFFF, (high & -0x10000) | (((low >> 16) & 0xFFFF) ^ 0x8000)


@triton.jit
def order(t, cols, label, base, N: tl.constexpr, LANES: tl.constexpr, VEC: tl.constexpr,
          REGISTERS: tl.constexpr, LABELLED: tl.constexpr, PTX: tl.constexpr):  # fmt: skip
    """Class indices and float32 logits by rank; a label's logit is junk, the padding's -inf."""
    if t.dtype.primitive_bitwidth == 16:
        return _order_half(t, cols, label, base, N, LANES, VEC, REGISTERS, LABELLED, PTX)
    else:
        return _order_single(t, cols, label, base, N, LANES, VEC, REGISTERS, LABELLED, PTX)
