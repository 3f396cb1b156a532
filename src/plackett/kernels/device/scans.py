"""Sums over what comes after, or before, each element of a hypercube `[2] * N` of ranks, itself excluded.

Excluding by subtraction would round away exactly what a nearly right student leaves, so each bit of the rank adds the
sum of the half on the other side: n log n additions, nearly all within a thread, and no change of layout.
"""

import triton
import triton.language as tl


@triton.jit
def bit(N: tl.constexpr, J: tl.constexpr):
    """Bit J of the rank, broadcastable over the hypercube `[2] * N`."""
    return tl.reshape(tl.arange(0, 2), [1] * (N - J - 1) + [2] + [1] * J)


@triton.jit
def whole(x):
    """The sum of everything in `x`."""
    return tl.sum(tl.reshape(x, [x.numel]), 0)


@triton.jit
def largest(x):
    return tl.max(tl.reshape(x, [x.numel]), 0)


@triton.jit
def _levels(x, N: tl.constexpr, LOW: tl.constexpr, HIGH: tl.constexpr, AFTER: tl.constexpr):
    """Exclusive sums over bits [LOW, HIGH) of `x`, whose lower bits are summed already; and the sums over them all."""
    beyond = x * 0.0
    for j in tl.static_range(LOW, HIGH):
        far = tl.sum(tl.where(bit(N, j) == (1 if AFTER else 0), x, -0.0), N - 1 - j, keep_dims=True)
        beyond = beyond + tl.where(bit(N, j) == (0 if AFTER else 1), far, -0.0)
        x = tl.sum(x, N - 1 - j, keep_dims=True)
    return beyond, x


@triton.jit
def sum_beyond(x, N: tl.constexpr, REGISTERS: tl.constexpr, AFTER: tl.constexpr):
    within, threads = _levels(x, N, 0, REGISTERS, AFTER)
    beyond, _ = _levels(threads, N, REGISTERS, N, AFTER)
    return within + beyond


@triton.jit
def _max_levels(x, N: tl.constexpr, LOW: tl.constexpr, HIGH: tl.constexpr):
    least: tl.constexpr = -0x80000000
    beyond = tl.full(x.shape, least, tl.int32)
    for j in tl.static_range(LOW, HIGH):
        far = tl.max(tl.where(bit(N, j) == 0, x, least), N - 1 - j, keep_dims=True)
        beyond = tl.maximum(beyond, tl.where(bit(N, j) == 1, far, least))
        x = tl.max(x, N - 1 - j, keep_dims=True)
    return beyond, x


@triton.jit
def max_before(x, N: tl.constexpr, REGISTERS: tl.constexpr):
    """The largest int32 before each element."""
    within, threads = _max_levels(x, N, 0, REGISTERS)
    beyond, _ = _max_levels(threads, N, REGISTERS, N)
    return tl.maximum(within, beyond)
