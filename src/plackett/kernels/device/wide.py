"""The sums of `scans` for positive numbers of any size: a float times a power of two, `x * 2^k`.

Student logits may span thousands (a masked vocabulary); float32 ends at 2^127. Multiplying by a power of two is exact,
so these sums are as good as plain ones, and need neither exp nor log.
"""

import triton
import triton.language as tl

from plackett.kernels.device.scans import bit

_LOG2E_HIGH = tl.constexpr(1.44269502162933349609375)
_LOG2E_LOW = tl.constexpr(1.92596299112661746887e-8)
NOTHING = tl.constexpr(-0x40000000)  # the exponent of zero


@triton.jit
def power_of_two(k):
    """2^k, k clamped to what float32 holds; 0 below."""
    return ((tl.minimum(tl.maximum(k, -127), 127) + 127) << 23).to(tl.float32, bitcast=True)


@triton.jit
def _shrink(x, k):
    """x * 2^k, k <= 0."""
    return x * ((tl.maximum(k, -127) + 127) << 23).to(tl.float32, bitcast=True)


@triton.jit
def scaled_exp(z):
    """exp(z), z <= 0."""
    # Past -1e8 nothing changes any more, and a whole number of that size still fits an int32.
    bounded = tl.where(z < -1e8, -1e8, z)
    k = tl.floor(bounded * _LOG2E_HIGH)
    x = tl.exp2(tl.fma(bounded, _LOG2E_LOW, tl.fma(bounded, _LOG2E_HIGH, -k)))
    zero = z == -float("inf")
    return tl.where(zero, 0.0, x), tl.where(zero, NOTHING, k.to(tl.int32))


@triton.jit
def scaled(x, k):
    """x * 2^k with x brought into [1, 2)."""
    bits = x.to(tl.int32, bitcast=True)
    zero = x == 0
    mantissa = ((bits & 0x7FFFFF) | 0x3F800000).to(tl.float32, bitcast=True)
    return tl.where(zero, x, mantissa), tl.where(zero, NOTHING, k + (bits >> 23) - 127)


@triton.jit
def scaled_add(x, k, y, m):
    top = tl.maximum(k, m)
    return _shrink(x, k - top) + _shrink(y, m - top), top


@triton.jit
def _levels(x, k, N: tl.constexpr, LOW: tl.constexpr, HIGH: tl.constexpr, AFTER: tl.constexpr):
    beyond, beyond_k = x * 0.0, tl.full(x.shape, NOTHING, tl.int32)
    for j in tl.static_range(LOW, HIGH):
        far = bit(N, j) == (1 if AFTER else 0)
        far_x = tl.sum(tl.where(far, x, 0.0), N - 1 - j, keep_dims=True)
        far_k = tl.max(tl.where(far, k, NOTHING), N - 1 - j, keep_dims=True)
        merged, merged_k = scaled_add(beyond, beyond_k, far_x, far_k)
        beyond, beyond_k = tl.where(far, beyond, merged), tl.where(far, beyond_k, merged_k)
        top = tl.max(k, N - 1 - j, keep_dims=True)
        x, k = tl.sum(_shrink(x, k - top), N - 1 - j, keep_dims=True), top
    return beyond, beyond_k, x, k


@triton.jit
def scaled_sum_beyond(x, k, N: tl.constexpr, REGISTERS: tl.constexpr, AFTER: tl.constexpr):
    within, within_k, threads, threads_k = _levels(x, k, N, 0, REGISTERS, AFTER)
    beyond, beyond_k, _, _ = _levels(threads, threads_k, N, REGISTERS, N, AFTER)
    return scaled_add(within, within_k, beyond, beyond_k)


@triton.jit
def scaled_whole(x, k):
    top = tl.max(tl.reshape(k, [k.numel]), 0)
    return tl.sum(tl.reshape(_shrink(x, k - top), [x.numel]), 0), top
